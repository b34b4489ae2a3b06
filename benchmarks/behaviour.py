"""Utility and time of the default generator in two checkouts of the package, in one run.

    python benchmarks/behaviour.py --before CHECKOUT --after CHECKOUT [--seeds 5] [--tables NAME ...]
        [--times]

For changes that move draws on purpose, after which digests of samples say nothing (`tests/behaviour`). Each
checkout has a process of its own with one thread of BLAS, and names its estimator by its own
`tests/behaviour/fits.py`. The two take turns: same table, same seed, each first at every second seed. Three
quarters of a table are fitted; the package that runs this script evaluates all samples.

A measure is *within seed spread* if the means over seeds differ by no more than their spread explains:
Student's t at 5 % for all lines of the table together. The column *shown* is the difference that would be
seen; a smaller one needs more seeds. The time of a fit is that of the processor, its ratio a median.
--times fits whole tables and takes the time alone. The table ``made-up`` has 50,000 rows and 20 columns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import dpsynth

TABLES = ("breast_cancer", "heart_failure_299", "flchain", "support2", "randhie")
MEASURES = ("auc_mean", "effects_overlap_mean", "tvd_mean", "association_error", "nn_accuracy_test")
ROWS = 4000  # of each table, at most
WHOLE = 10**9  # rows, where only the time is taken
WRONG = 0.05  # chance that any line says no where nothing has changed


def split(name: str, rows: int = ROWS) -> tuple[pd.DataFrame, pd.DataFrame, Any]:
    """Records to fit, others a third as many, and the schema."""
    if name == "made-up":
        frame, schema = made_up()
    else:
        table = dpsynth.datasets.load(name)
        frame, schema = table.frame, table.schema
    frame = frame.sample(frac=1.0, random_state=0)[:rows]
    n = len(frame) * 3 // 4 if rows < WHOLE else len(frame)
    return frame[:n], frame[n:], schema.model_copy(update={"n_public": n})


def made_up(rows: int = 50_000) -> tuple[pd.DataFrame, dpsynth.Schema]:
    """Five columns each of integers, of measurements with gaps, of amounts in cents, and of categories."""
    rng = np.random.default_rng(0)
    level = rng.normal(size=rows)
    columns, data = [], {}
    for k in range(5):
        own = 0.5 * level + rng.normal(size=rows)
        data[f"age{k}"] = np.clip(50 + 15 * own, 0, 100).round().astype(int)
        data[f"lab{k}"] = np.where(rng.random(rows) < 0.1, np.nan, np.clip(10 + 2 * own, 0, 30))
        data[f"cost{k}"] = np.exp(5 + own).clip(0, 9999).round(2)
        data[f"group{k}"] = np.array([f"group {c}" for c in "abcdef"])[np.clip(own + 3, 0, 5).astype(int)]
        columns += [
            dpsynth.Column(name=f"age{k}", kind="integer", lower=0, upper=100),
            dpsynth.Column(name=f"lab{k}", kind="continuous", lower=0, upper=30, missing=True),
            dpsynth.Column(name=f"cost{k}", kind="continuous", lower=0, upper=9999, decimals=2),
            dpsynth.Column(
                name=f"group{k}", kind="categorical", categories=tuple(f"group {c}" for c in "abcdef")
            ),
        ]
    return pd.DataFrame(data), dpsynth.Schema(columns=tuple(columns))


def work() -> None:
    """Fit what lines of JSON on standard input ask for, and answer each with its seconds."""
    from fits import GENERATORS

    warnings.simplefilter("ignore")  # a seed is not private; this is a benchmark
    for line in sys.stdin:
        table, seed, out, rows = json.loads(line)
        frame, _, schema = split(table, rows)
        start = time.process_time()
        model = GENERATORS["marginals"](random_state=seed).fit(frame, schema=schema)
        seconds = time.process_time() - start
        if rows < WHOLE:
            model.sample(len(frame)).to_parquet(out)
        print(json.dumps([seconds, str(Path(dpsynth.__file__).parents[1])]), flush=True)


class Checkout:
    """A process that fits with the package of one checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        first = [str(self.folder), str(self.folder / "tests" / "behaviour")]  # before an installed package
        path = [*first, str(Path(__file__).parent)]
        code = f"import sys; sys.path[:0] = {path}; import behaviour; behaviour.work()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def fit(self, *asked: Any) -> float:
        """Seconds of a fit to a table, with a seed; its sample lies in a file."""
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()  # type: ignore[union-attr]
        if not answer or Path(json.loads(answer)[1]) != self.folder:
            sys.exit(
                f"{self.folder}: {answer or 'no answer'}. Errors are above, or another package was found."
            )
        return json.loads(answer)[0]


def difference(before: list[float], after: list[float], lines: int) -> tuple[float, float]:
    """The difference of two means over seeds, and how large it may be by their spread."""
    seeds, error = len(before), np.sqrt((np.var(before, ddof=1) + np.var(after, ddof=1)) / len(before))
    return float(np.mean(after) - np.mean(before)), float(
        stats.t.isf(WRONG / lines / 2, 2 * seeds - 2) * error
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, metavar="CHECKOUT")
    parser.add_argument("--after", type=Path, required=True, metavar="CHECKOUT")
    parser.add_argument("--seeds", type=int, default=5, help="at least 2")
    parser.add_argument("--tables", nargs="+", default=TABLES, metavar="NAME")
    parser.add_argument("--times", action="store_true", help="fit whole tables, and take the time alone")
    options = parser.parse_args()
    rows, measures = (WHOLE, ()) if options.times else (ROWS, MEASURES)
    checkouts = {"before": Checkout(options.before), "after": Checkout(options.after)}
    found: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "sample.parquet")
        for checkout in checkouts.values():
            checkout.fit(options.tables[0], 0, out, rows)  # imports are no part of a fit
        for table, seed in product(options.tables, range(options.seeds)):
            train, test, schema = split(table, rows)
            given = {"train": train, "test": test, "schema": schema, "reference": False, "groups": ()}
            for side in sorted(checkouts, reverse=seed % 2 == 0):
                found[table, "fit, s", side].append(checkouts[side].fit(table, seed, out, rows))
                if options.times:
                    continue
                evaluation = dpsynth.evaluate(pd.read_parquet(out), **given, seed=0, records=1000)
                values = {measure.name: measure.value for measure in evaluation.measures}
                for name in MEASURES:
                    found[table, name, side].append(values[name])
            print(f"{table}, seed {seed}", file=sys.stderr, flush=True)
    print("| table | measure | before | after | difference | shown | within seed spread |")
    print("|---|---|--:|--:|--:|--:|---|")
    for table, name in product(options.tables, (*measures, "fit, s")):
        before, after = found[table, name, "before"], found[table, name, "after"]
        moved, most = difference(before, after, len(options.tables) * len(MEASURES))
        answer = "yes" if abs(moved) <= most else "no"
        if name == "fit, s":
            answer = f"ratio {np.median(np.divide(after, before)):.2f}"
        means = f"{np.mean(before):.4f} | {np.mean(after):.4f} | {moved:+.4f} | {most:.4f}"
        print(f"| {table} | {name} | {means} | {answer} |", flush=True)


if __name__ == "__main__":
    main()
