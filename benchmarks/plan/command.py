"""How good `dpsynth plan` is: its predictions beside what real tables reach.

    python -m benchmarks plan --out DIR
    python -m benchmarks plan --table breast_cancer flchain --out DIR

Half of each table trains and half tests, as in the comparison with peers. The plan sees the schema and the
number of training records alone. With --declared, plans are also made that know the AUC of models trained on
real records, as somebody would who takes it from the literature. Reached AUC loss is the mean over real fits.
With --widths, interval widths of simulated tables are set beside those of benchmarks/results/studies.md.
Models are those of the plan. Each round is kept in DIR as soon as it is there. The same command goes on after
an interruption. DIR/plan.md is written from all rounds in DIR.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpsynth
from benchmarks.peers.tables import split
from benchmarks.study_cases import CASES
from dpsynth.errors import DpsynthError
from dpsynth.files.atomic import write_text
from dpsynth.files.rounds import carry_out
from dpsynth.report.verdicts.utility import USEFUL_WITHIN
from dpsynth.runs.plan_simulation import mean_auc, simulated_fits
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.studies import planned_widening

#: of the registry and of the comparison with peers, the quickest first
TABLES = (
    "breast_cancer",
    "heart_failure_299",
    "mimic3_heart_failure",
    "flchain",
    "support2",
    "physionet2012",
    "randhie",
    "diabetes130_any",
)
EPSILONS = (1.0, 3.0, 10.0)
#: cases of benchmarks/study_cases.py whose widths are compared, and at which epsilons
STUDIES = (
    "flchain",
    "support2",
    "physionet2012",
    "mimic3_heart_failure",
    "heart_failure_299",
    "flchain linear",
    "flchain cox",
)
_OF_WIDTHS = (1.0, 3.0)
RESULTS = Path(__file__).parents[1] / "results"
_REACHED = ("reached", "low", "high")
PLAN, DECLARED, REACHED, WIDTHS = "plan", "declared", "reached", "widths"
#: simulated tables of a plan, which are its default, and of one with a declared AUC
TABLES_OF_A_PLAN, DECLARED_TABLES = 5, 3


@dataclass(frozen=True)
class Round:
    """One plan of a table, or one real fit of it."""

    table: str
    what: str
    epsilon: float | None = None
    seed: int = 0


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks plan",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--table", nargs="+", choices=TABLES, default=list(TABLES), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=3, help="real fits at each epsilon")
    parser.add_argument("--declared", action="store_true", help="also plans with a declared AUC")
    parser.add_argument("--widths", action="store_true", help="interval widths in place of AUC losses")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(argv)
    if given.widths:
        cases = {f"{case}-{WIDTHS}".replace(" ", "_"): Round(case, WIDTHS) for case in STUDIES}
        done = carry_out(widths_of, cases, folder=given.out, settings={"version": 1}, on_round=_tell)
        write_text(given.out / "widths.md", widths_table(done.values()) + "\n")
        print(given.out / "widths.md")
        return
    tasks = {f"{table}-{PLAN}": Round(table, PLAN) for table in given.table}
    for table in given.table:
        for epsilon in EPSILONS:
            for seed in range(given.seeds):
                tasks[f"{table}-{REACHED}-{epsilon:g}-{seed}"] = Round(table, REACHED, epsilon, seed)
    if given.declared:
        tasks |= {f"{table}-{DECLARED}": Round(table, DECLARED) for table in given.table}
    try:
        done = carry_out(carried_out, tasks, folder=given.out, settings={"version": 1}, on_round=_tell)
    except DpsynthError as problem:
        sys.exit(str(problem))
    frame = compared(done.values())
    write_text(given.out / "plan.md", markdown(frame) + "\n")
    print(given.out / "plan.md")


def carried_out(task: Round) -> dict[str, Any]:
    """The losses of one round by epsilon."""
    train, test = split(task.table)
    schema, n = train.schema, len(train.frame)
    record: dict[str, Any] = {"table": task.table, "what": task.what, "n": n, "columns": len(schema)}
    real = mean_auc(train.frame, test.frame, schema, 0)
    record["real"] = real
    if task.what == REACHED:
        model = dpsynth.DPWGANGP(task.epsilon, random_state=task.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(train.frame, schema=schema.with_n_public(n))
        made = model.sample(n, random_state=task.seed)
        loss = real - mean_auc(made, test.frame, schema, task.seed)
        return record | {"epsilon": task.epsilon, "loss": loss}
    auc, tables = (
        (min(max(real, 0.55), 0.98), DECLARED_TABLES) if task.what == DECLARED else (None, TABLES_OF_A_PLAN)
    )
    found = simulated_fits(schema.with_n_public(n), n, FitOptions.of(), EPSILONS, auc, tables, None)
    losses = {
        f"{epsilon:g}": [each["real"] - each["synthetic"] for each in fits] for epsilon, fits in found.items()
    }
    return record | {"losses": losses, "simulated": [each["real"] for each in found[EPSILONS[0]]]}


def widths_of(task: Round) -> dict[str, Any]:
    """Widths of one study's intervals: by the formula that refuses studies, and in simulated tables."""
    case = CASES[task.table]
    _, schema = case.population()
    options = FitOptions.of(studies=[case.study()])
    found = simulated_fits(schema, case.n, options, _OF_WIDTHS, None, DECLARED_TABLES, None)
    return {
        "case": task.table,
        "formula": {
            f"{epsilon:g}": planned_widening(options.model_copy(update={"epsilon": epsilon}), schema)["study"]
            for epsilon in _OF_WIDTHS
        },
        "simulated": {
            f"{epsilon:g}": [each["widening"]["study"] for each in fits] for epsilon, fits in found.items()
        },
    }


def widths_table(records: Any) -> str:
    """Widths by the formula, in simulated tables, and reached over resamples of real tables."""
    reached = _reached_widths((RESULTS / "studies.md").read_text(encoding="utf-8"))
    lines = ["| study | ε | formula | simulated | reached |", "|---|---:|---:|---:|---:|"]
    for record in records:
        for epsilon, simulated in record["simulated"].items():
            mean = f"{np.mean(simulated):.2f} ({min(simulated):.2f} to {max(simulated):.2f})"
            found = reached[record["case"], epsilon]
            lines.append(
                f"| {record['case']} | {epsilon} | {record['formula'][epsilon]:.2f} | {mean} | {found} |"
            )
    return "\n".join(lines)


def _reached_widths(text: str) -> dict[tuple[str, str], str]:
    """Width of the private estimates' intervals by case and epsilon, of the results of the studies."""
    found: dict[tuple[str, str], str] = {}
    case = ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        case = cells[0] or case
        if len(cells) > 6 and cells[2] == "declared":
            found.setdefault((case, cells[1]), cells[6].split(" ")[0])
    return found


def compared(records: Any) -> pd.DataFrame:
    """A row a table and epsilon: predicted and reached losses."""
    records = list(records)
    rows = []
    for table in dict.fromkeys(record["table"] for record in records):
        own = [record for record in records if record["table"] == table]
        plans = {record["what"]: record["losses"] for record in own if record["what"] != REACHED}
        for epsilon in EPSILONS:
            losses = [r["loss"] for r in own if r["what"] == REACHED and r["epsilon"] == epsilon]
            row = {key: own[0][key] for key in ("table", "n", "columns", "real")} | {"epsilon": epsilon}
            for what, found in plans.items():
                simulated = found[f"{epsilon:g}"]
                row |= {
                    what: np.mean(simulated),
                    f"{what} low": min(simulated),
                    f"{what} high": max(simulated),
                }
            reached = dict(zip(_REACHED, (np.mean(losses), min(losses), max(losses)), strict=True))
            rows.append(row | reached | {"seeds": len(losses)})
    return pd.DataFrame(rows)


def markdown(frame: pd.DataFrame) -> str:
    """The table of losses, and how far predictions were off."""
    declared = " predicted, AUC declared |" if DECLARED in frame else ""
    lines = [f"| table | n | columns | real AUC | ε | predicted |{declared} reached |"]
    lines += ["|---|" + "---:|" * (7 if declared else 6)]
    plans = [what for what in (PLAN, DECLARED) if what in frame]
    for _, row in frame.iterrows():
        cells = [
            f"{row[mean]:.3f} ({row[low]:.3f} to {row[high]:.3f})"
            for mean, low, high in (*((what, f"{what} low", f"{what} high") for what in plans), _REACHED)
        ]
        known = [
            row["table"],
            f"{row['n']:,}",
            str(row["columns"]),
            f"{row['real']:.3f}",
            f"{row['epsilon']:g}",
        ]
        lines.append(f"| {' | '.join([*known, *cells])} |")
    lines += [
        "",
        "| predictions | pairs | mean absolute error | mean error | rank correlation | in range | verdict |",
    ]
    lines += ["|---|---:|---:|---:|---:|---:|---:|"]
    for what in plans:
        name = {PLAN: "plan", DECLARED: "plan, AUC declared"}[what]
        for epsilon in (None, *EPSILONS):
            part = frame if epsilon is None else frame[frame["epsilon"] == epsilon]
            shown = name if epsilon is None else f"{name}, ε = {epsilon:g}"
            error = part[what] - part["reached"]
            inside = (part["reached"] >= part[f"{what} low"]) & (part["reached"] <= part[f"{what} high"])
            same = (part[f"{what} high"] <= USEFUL_WITHIN) == (part["reached"] <= USEFUL_WITHIN)
            rank = part[what].corr(part["reached"], method="spearman")
            lines.append(
                f"| {shown} | {len(part)} | {error.abs().mean():.3f} | {error.mean():+.3f} | {rank:.2f} "
                f"| {inside.sum()} of {len(part)} | {same.sum()} of {len(part)} |"
            )
    constant = (frame["reached"] - frame["reached"].mean()).abs().mean()
    lines += [
        "",
        f"For comparison: the mean of all reached losses as the only prediction has a mean absolute error of "
        f"{constant:.3f}.",
    ]
    return "\n".join(lines)


def _tell(done: int, total: int, label: str, seconds: float) -> None:
    print(f"{done}/{total} {label}: {seconds:.1f} s", file=sys.stderr, flush=True)
