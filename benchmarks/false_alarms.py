"""How often is memorisation reported in tables that cannot have it?

    python benchmarks/false_alarms.py [--tables 100] [--rows 285]

Training and held-out records are random records of one public table, without a record in both. The synthetic
table is independent of both: fresh records of the same public table, or a sample of a model that was fitted
at epsilon = 3 to 300 other records. Counted are the verdicts of the report's rule, and tables of which one
sign's own 95 % interval lies above chance. Seeds are 0, 1, 2 and so on. Then the same for tables that are not
independent: halves of breast_cancer (7 columns), fitted at epsilon = 3.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np
import pandas as pd

import dpsynth
from dpsynth.evaluation.disclosure.evaluator import disclosure
from dpsynth.evaluation.neighbours.evaluator import neighbours
from dpsynth.evaluation.records import Evaluation
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Tables
from dpsynth.report.verdicts.privacy import memory
from dpsynth.table.schema import Schema

DATASETS = ("randhie", "flchain", "diabetes130")
MEANS = ("radius", "texture", "smoothness", "concavity", "symmetry")
#: signs, with their level by chance
CHANCE = {
    "copies_excess": 0.0,
    "dcr_closer_to_train": 0.5,
    "membership_auc": 0.5,
    "membership_auc_calibrated": 0.5,
    "privacy_loss": 0.0,
}
Maker = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]  # from training and fresh records


def counted(schema: Schema, real: pd.DataFrame, make: Maker, rows: int, tables: int) -> Counter[str]:
    """Verdicts on so many synthetic tables."""
    found: Counter[str] = Counter()
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(real))
        train, test, fresh = (
            real.iloc[order[i * rows : (i + 1) * rows]].reset_index(drop=True) for i in range(3)
        )
        compared = Tables.of(make(train, fresh), train=train, test=test, schema=schema)
        parts = [evaluator(compared, Settings(), rng) for evaluator in (disclosure, neighbours)]
        measures = tuple(measure for part in parts for measure in part.measures)
        found.update(verdict.code for verdict in memory(Evaluation(measures, {"level": 0.95})))
        known = [measure for measure in measures if measure.name in CHANCE and measure.lower is not None]
        alone = [m.name for m in known if m.lower is not None and m.lower > CHANCE[m.name]]
        found.update([f"{name} alone" for name in alone] + ["any sign alone"] * bool(alone))
    return found


def main() -> None:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--rows", type=int, default=285)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")

    def told(name: str, schema: Schema, real: pd.DataFrame, make: Maker, rows: int) -> None:
        found = counted(schema, real, make, rows, arguments.tables)
        verdicts = ", ".join(f"{code} {times}" for code, times in sorted(found.items()))
        print(f"{name}, {rows} rows, {arguments.tables} tables: {verdicts}", flush=True)

    def fitted(frame: pd.DataFrame, schema: Schema) -> dpsynth.DPWGANGP:
        return dpsynth.DPWGANGP(epsilon=3.0, delta=1e-5).fit(frame, schema=schema)

    for name in DATASETS:
        table = dpsynth.datasets.load(name)
        order = np.random.default_rng(0).permutation(len(table.frame))
        other, real = table.frame.iloc[order[:300]].reset_index(drop=True), table.frame.iloc[order[300:]]
        model = fitted(other, table.schema.with_n_public(300))
        told(f"{name}, fresh records", table.schema, real, lambda _, fresh: fresh, arguments.rows)
        told(
            f"{name}, independent model",
            table.schema,
            real,
            lambda train, _, model=model: model.sample(len(train)),
            arguments.rows,
        )
    table = dpsynth.datasets.load("breast_cancer")
    columns = ["diagnosis", *(f"mean_{name}" for name in MEANS), "worst_area"]
    schema = table.schema.select(columns).with_n_public(None)
    half = len(table.frame) // 2
    told(
        "breast_cancer, model of the training records",
        schema,
        table.frame[columns],
        lambda train, _: fitted(train, schema).sample(len(train)),
        half,
    )


if __name__ == "__main__":
    main()
