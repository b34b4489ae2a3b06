"""Rows that a clinician would not believe: broken statements per 1,000 rows, ours beside MST and AIM.

    python -m benchmarks.plausibility --out DIR --environments ENVS --python google=PATH --seeds 3

``plausibility.yaml`` beside this file has the statements. At most 5,000 rows of one half of a table train,
the same rows for every arm. The same command on the same folder goes on where it was. ``DIR/plausibility.md``
holds all rounds of the folder.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.peers.arms import ARMS, Arm
from benchmarks.peers.environments import Environments
from benchmarks.peers.tables import split
from benchmarks.peers.utility import Task, synthesised
from dpsynth import datasets
from dpsynth.datasets import Table
from dpsynth.errors import InputError
from dpsynth.files.storage import ROUNDS, carry_out, read_json, write_text
from dpsynth.files.text import inert, read_yaml
from dpsynth.table.column import Column
from dpsynth.table.derived import add_derived
from dpsynth.table.schema import Schema

MOST_ROWS = 5_000
DEFAULT, DECLARED = "ours: default", "ours: definitions declared"
OURS = (DEFAULT, DECLARED)
#: real rows, and training rows whose columns are shuffled
FIXED = ("real", "shuffled")
ANY = "any of these"
COMPARED = {
    name: ARMS.get(name, Arm(name, "ours", "fit_ours.py"))
    for name in (*OURS, "google MST", "dpmm MST", "google AIM", "dpmm AIM")
}


@dataclass(frozen=True)
class Statements:
    """What holds of a table's rows: by the definition of its columns, and as a rule of thumb.

    ``helpers`` are formulas of numbers that statements name.
    """

    by_definition: Sequence[str] = ()
    usual: Sequence[str] = ()
    helpers: Mapping[str, str] = field(default_factory=dict)

    def broken(self, frame: pd.DataFrame, schema: Schema) -> dict[str, np.ndarray]:
        """Which rows of a frame break each statement, shape (n,)."""
        wide = self.read(schema)
        plain = Schema(columns=schema.columns).conform(frame).frame
        whole = add_derived(plain, wide.formulas, wide.columns)
        return {rule.text: rule.broken(whole) for rule in wide.rules}

    def read(self, schema: Schema) -> Schema:
        """The columns and helpers, with the statements as rules. Raises SchemaError if one cannot be read."""
        bounds = {"kind": "continuous", "lower": -1e12, "upper": 1e12, "missing": True}
        helpers = [Column(name=name, derived=text, **bounds) for name, text in self.helpers.items()]
        return Schema(columns=(*schema.columns, *helpers), constraints=(*self.by_definition, *self.usual))


@cache
def statements() -> dict[str, Statements]:
    """The statements of each table."""
    path = Path(__file__).with_suffix(".yaml")
    return read_yaml(
        path, lambda data: {name: Statements(**parts) for name, parts in data.items()}, error=InputError
    )


def training(table: str, arm: str) -> Table:
    """The training rows of a table, with the rules that an arm is told."""
    half, _ = split(table)
    if len(half.frame) > MOST_ROWS:
        frame = half.frame.sample(MOST_ROWS, random_state=0).reset_index(drop=True)
        half = replace(half, frame=frame, schema=half.schema.with_n_public(MOST_ROWS))
    declared = statements()[table].by_definition if arm == DECLARED else ()
    rules = tuple(dict.fromkeys((*datasets.card(table).table.constraints, *declared))) if arm in OURS else ()
    schema = half.schema
    told = Schema(columns=schema.columns, outcome=schema.outcome, n_public=schema.n_public, constraints=rules)
    return replace(half, schema=told)


def real_rates(table: str) -> dict[str, dict[str, float]]:
    """Rates of all real rows, and of training rows whose columns are shuffled, each by itself."""
    train, test = split(table)
    rows = training(table, "").frame
    rng = np.random.default_rng(0)
    mixed = {name: rows[name].iloc[rng.permutation(len(rows))].reset_index(drop=True) for name in rows}
    whole = pd.concat([train.frame, test.frame], ignore_index=True)
    return {"real": rates(table, whole), "shuffled": rates(table, pd.DataFrame(mixed))}


def rates(table: str, frame: pd.DataFrame) -> dict[str, float]:
    """Rows per 1,000 that break each statement, and that break any."""
    broken = statements()[table].broken(frame, training(table, "").schema)
    found = {text: 1000 * float(rows.mean()) for text, rows in broken.items()}
    return {**found, ANY: 1000 * float(np.logical_or.reduce(list(broken.values())).mean())}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.plausibility",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--environments", type=Path, default=Path("peer-environments"))
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--data", nargs="+", choices=list(statements()), default=list(statements()))
    parser.add_argument("--arms", nargs="+", choices=list(COMPARED), default=list(COMPARED), metavar="ARM")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds of processor time for a fit")
    given = parser.parse_args(argv)
    # so that a fit does not go on when this is ended
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended; the same command goes on from here"))
    environments = Environments(
        given.environments.resolve(), dict(pair.split("=", 1) for pair in given.python)
    )
    tasks = [
        Task(table, COMPARED[arm], epsilon, seed)
        for seed in range(given.seeds)
        for arm in given.arms
        for table in given.data
        for epsilon in given.epsilon
        if arm != DECLARED or training(table, DECLARED).schema != training(table, DEFAULT).schema
    ]
    carry_out(
        partial(_round, environments=environments, limit=given.limit),
        {task.label: task for task in tasks},
        folder=given.out,
        settings={"most_rows": MOST_ROWS},
        on_round=_tell,
    )
    records = [read_json(path) for path in sorted((given.out / ROUNDS).glob("*.json"))]
    write_text(given.out / "plausibility.md", "\n".join(markdown(summary(records), records)) + "\n")


def _tell(done: int, total: int, label: str, seconds: float) -> None:
    print(f"{done}/{total} {label}: {seconds:.0f} s", file=sys.stderr, flush=True)


def _round(task: Task, *, environments: Environments, limit: float) -> dict[str, Any]:
    assert task.arm is not None
    train = training(task.table, task.arm.name)
    record, synthetic = synthesised(task, train, environments=environments, limit=limit)
    return record if synthetic is None else record | {"rates": rates(task.table, synthetic)}


def summary(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row a table, arm, epsilon and statement: seeds that gave a table, median of rows per 1,000."""
    rows = [
        {**{key: record[key] for key in ("table", "arm", "epsilon")}, "statement": text, "rate": rate}
        for record in records
        for text, rate in record.get("rates", {}).items()
    ]
    rows += [
        {"table": table, "arm": arm, "epsilon": 0.0, "statement": text, "rate": rate}
        for table in dict.fromkeys(record["table"] for record in records)
        for arm, of_arm in real_rates(table).items()
        for text, rate in of_arm.items()
    ]
    keys = ["table", "arm", "epsilon", "statement"]
    found = pd.DataFrame(rows).groupby(keys, sort=False)["rate"].agg(seeds="size", rate="median")
    return found.reset_index()


def cells(medians: pd.DataFrame, table: str, epsilon: float) -> pd.DataFrame:
    """Rows per 1,000 by statement and arm, real and shuffled among them, without arms that gave no table."""
    chosen = medians[(medians["table"] == table) & medians["epsilon"].isin((0.0, epsilon))]
    order = list(dict.fromkeys(chosen["statement"]))
    return chosen.pivot_table(index="statement", columns="arm", values="rate").reindex(order)


def verdicts(found: pd.DataFrame, arm: str) -> list[int] | None:
    """Statements where an arm breaks fewer than half of the best peer's, more, and where nothing could.

    ``found`` has a row a statement and a column an arm. None if there is no peer. Nothing could where half
    of the best peer's rate is no more than that of real rows, which includes a rate of 0.
    """
    peers = [name for name in found if name not in (*OURS, *FIXED)]
    if not peers or arm not in found:
        return None
    best = found[peers].min(axis=1)
    below = found[arm] < best / 2
    out_of_reach = ~below & (best / 2 <= found["real"])
    return [int(below.sum()), int((~below & ~out_of_reach).sum()), int(out_of_reach.sum())]


def markdown(medians: pd.DataFrame, records: Sequence[Mapping[str, Any]]) -> list[str]:
    """A table of means, one of the statements of each table, and the fits that failed."""
    arms = [*FIXED, *(name for name in COMPARED if name in set(medians["arm"]))]
    tables = [name for name in statements() if name in set(medians["table"])]
    epsilons = sorted(set(medians["epsilon"]) - {0.0})
    lines = [
        f"| table | ε | {' | '.join(arms)} | half | more | no room |",
        "|---|---:|" + "---:|" * (len(arms) + 3),
    ]
    for table, epsilon in product(tables, epsilons):
        found = cells(medians, table, epsilon)
        each = found.drop(index=ANY)
        shown = [f"{each[arm].mean():.1f} ({found[arm][ANY]:.0f})" if arm in found else "" for arm in arms]
        counts = verdicts(each, DEFAULT) or ["", "", ""]
        lines.append(f"| {table} | {epsilon:g} | {' | '.join([*shown, *map(str, counts)])} |")
    seeds = medians[medians["epsilon"] > 0].groupby("arm", sort=False)["seeds"].agg(["min", "max"])
    lines += ["", "Seeds that gave a table, fewest and most:", ""]
    lines += [f"- {arm}: {least} and {most}" for arm, least, most in seeds.itertuples()]
    for table in tables:
        by_epsilon = [cells(medians, table, epsilon) for epsilon in epsilons]
        lines += ["", f"## {table}", "", f"| statement | {' | '.join(arms)} |"]
        lines += ["|---|" + "---:|" * len(arms)]
        for text in by_epsilon[0].index:
            row = [_rates_of(text, arm, by_epsilon) for arm in arms]
            lines.append(f"| {text if text == ANY else f'`{text}`'} | {' | '.join(row)} |")
    failed = [record for record in records if record["failed"] is not None]
    lines += ["", "## Fits without a table", ""] if failed else []
    lines += [
        f"- {record['table']}, {record['arm']}, ε = {record['epsilon']:g}, seed {record['seed']}: "
        f"{inert(record['failed'])}"
        for record in failed
    ]
    return lines


def _rates_of(text: str, arm: str, by_epsilon: Sequence[pd.DataFrame]) -> str:
    """The rates at each epsilon, a dash where an arm gave no table; one number if epsilon is no matter."""
    shown = [f"{found[arm][text]:.1f}" if arm in found else "–" for found in by_epsilon]
    return shown[0] if arm in FIXED else "" if set(shown) == {"–"} else " / ".join(shown)


if __name__ == "__main__":
    main()
