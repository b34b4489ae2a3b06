"""Do the intervals of declared studies cover? Resamples of a table, the real fit, a synthetic table, a study.

    python benchmarks/studies.py --cases flchain support2 --epsilon 1 3 10 --repetitions 200 \
        --cache studies-cache --jobs 2

A table is the population; n records are drawn of it with replacement. Each resample is fitted (*real*); so is
one synthetic table of n records of a model without studies (*naive*); *declared* are the estimates of a model
of the same whole epsilon, delta = n^-1.5, with the study declared. Both models sample the base model alone.
One line of JSON a resample is appended to ``<cache>/trials.jsonl``: what is there is
not done again. The tables go to ``<cache>/studies.md``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from study_cases import CASES
from study_measures import Cell, by_term, cells, excluded, mean_error, over_terms, shown, summary, with_error
from study_trials import METHODS, expected, run, truth

#: widths beyond these, by epsilon, are listed by term
WIDE = {1.0: 2.0, 3.0: 1.3}
PACKAGES = ("numpy", "pandas", "scipy", "statsmodels", "dp-accounting")

EXPLAINED = """\
Populations are the whole tables; a repetition draws n records with replacement. Means over repetitions of
what is computed over the slopes of one, in brackets the standard error (over repetitions: the slopes of one
are not independent).

- real: the usual fit of the resample (maximum likelihood; ordinary least squares; Cox with Efron's ties), the
  yardstick: it does not cover .95 either where its own assumptions fail;
- naive: the same fit of one synthetic table of n records, made with the whole ε and no study;
- declared: what the model holds after a fit with the study declared, of the same whole ε;
- coverage: share of 95 % intervals that hold the population's coefficient; z²: mean squared distance from it
  in standard errors, 1 where they are honest and nothing is biased;
- overlap: of an interval with the real one (Karr et al. 2006), 0 where they are disjoint; width: median over
  the slopes of the length over the real one's, of which the median over repetitions, and in brackets what 9
  in 10 are below; signs: share kept among terms significant in the real fit;
- where noise hides what the records know of a term, its interval claims nothing: hundreds of times as wide;
- told: the widening expected before the fit, from public numbers alone, then the median of what
  the released estimates say; remarked: share of fits whose estimates carry a remark.
"""

EXPLAINED_TERMS = """\
without remark: coverage in the fits whose estimates carry none. mean z: bias in the interval's own standard
errors. paired: mean squared distance from the real fit over what the squared standard errors have more than
the real ones, 1 where the noise is told honestly. target: how far the maximum of the study's own likelihood
(residuals clipped, time in intervals; in memory) lies from the population's coefficient, and exact: how far
what a model tells of the population without noise, in standard errors of the real fit.
"""
BY_TERM = (
    "coverage",
    "without remark",
    "mean z",
    "mean z2",
    "width",
    "paired",
    "real coverage",
    "real mean z",
    "target",
    "exact",
)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Lines of the results file; a last line that was cut off is left out."""
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                print(f"{path}: a line that was cut off is left out", file=sys.stderr)


def missing(
    lines: list[dict[str, Any]], names: list[str], epsilons: list[float], methods: list[str], repetitions: int
) -> list[tuple[str, float, int, tuple[str, ...]]]:
    """What is to be done: case, epsilon, repetition and the methods that have no result yet."""
    done: dict[tuple[str, float, int], set[str]] = {}
    for line in lines:
        key = (line["case"], float(line["epsilon"]), line["repetition"])
        done.setdefault(key, set()).update(line["told"])
    tasks = [
        (name, epsilon, r, tuple(m for m in methods if m not in done.get((name, epsilon, r), ())))
        for name in names
        for epsilon in epsilons
        for r in range(repetitions)
    ]
    return [task for task in tasks if task[3]]


def work(tasks: list[tuple[str, float, int, tuple[str, ...]]], path: Path, jobs: int) -> None:
    from joblib import Parallel, delayed

    path.parent.mkdir(parents=True, exist_ok=True)
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
    lines = parallel(delayed(run)(CASES[name], *rest) for name, *rest in tasks)
    # a line that was cut off stays alone
    start = "" if not path.exists() or path.read_bytes().endswith(b"\n") else "\n"
    with path.open("a") as sink:
        sink.write(start)
        for count, line in enumerate(lines, 1):
            sink.write(json.dumps(line) + "\n")
            sink.flush()
            if count % 20 == 0 or count == len(tasks):
                print(
                    f"{count} of {len(tasks)}: {line['case']}, {line['epsilon']:g}",
                    file=sys.stderr,
                    flush=True,
                )


def yardstick(found: list[Cell], name: str) -> Cell:
    """The real fits of a case; every epsilon has the same resamples."""
    own = [cell for cell in found if cell.case == name and cell.method == "real"]
    return max(own, key=lambda cell: len(cell.real.values))


def main_table(found: list[Cell]) -> list[str]:
    rows = [
        "| study | ε | | coverage | z² | overlap | width | signs | told | remarked |",
        "|---|---:|---|---:|---:|---:|---:|---:|---|---:|",
    ]
    for name in dict.fromkeys(cell.case for cell in found):
        known = truth(name)
        own = [cell for cell in found if cell.case == name]
        real = yardstick(found, name)
        said = summary(real.real, real.real, known.values)
        rows.append(
            f"| {name} | | real | {with_error(said['coverage'])} | {with_error(said['z2'])} | | | | | |"
        )
        for cell in own:
            if cell.method == "real":
                continue
            head = f"| | {cell.epsilon:g} | {cell.method} |"
            if not len(cell.told.values):
                rows.append(f"{head} refused | | | | | {shown(expected(CASES[name], cell.epsilon))} | |")
                continue
            said = summary(cell.told, cell.real, known.values)
            told = ""
            if cell.method != "naive":
                told = f"{shown(expected(CASES[name], cell.epsilon))}, {shown(cell.widening)}"
            columns = [with_error(said[key]) for key in ("coverage", "z2", "overlap", "width", "signs")]
            remarked = shown(float(cell.remarked.mean())) if cell.method == "declared" else ""
            rows.append(f"{head} {' | '.join(columns)} | {told} | {remarked} |")
    return rows


def null_table(found: list[Cell]) -> list[str]:
    rows = ["| study | ε | | coin | normal | both |", "|---|---:|---|---:|---:|---:|"]
    for cell in found:
        if not CASES[cell.case].nulls or not len(cell.told.values):
            continue
        if cell.method == "real" and cell is not yardstick(found, cell.case):
            continue
        out = excluded(cell.told)[:, -2:]
        numbers = [mean_error(out[:, 0]), mean_error(out[:, 1]), mean_error(over_terms(out))]
        epsilon = "" if cell.method == "real" else f"{cell.epsilon:g}"
        rows.append(
            f"| {cell.case} | {epsilon} | {cell.method} | " + " | ".join(map(with_error, numbers)) + " |"
        )
    return rows


def term_table(found: list[Cell], below: float) -> list[str]:
    rows = [f"| study | ε | term | {' | '.join(BY_TERM)} |", "|---|---:|---|" + "---:|" * len(BY_TERM)]
    for cell in found:
        if cell.method != "declared" or not len(cell.told.values):
            continue
        for row in by_term(cell, truth(cell.case)):
            if float(row["coverage"]) < below or float(row["width"]) > WIDE.get(cell.epsilon, math.inf):
                numbers = " | ".join(shown(float(row[key])) for key in BY_TERM)
                rows.append(f"| {cell.case} | {cell.epsilon:g} | {row['term']} | {numbers} |")
    return rows


def population_table(found: list[Cell]) -> list[str]:
    rows = ["| study | n | population | events | model | remarks |", "|---|---:|---:|---:|---|---|"]
    for name in dict.fromkeys(cell.case for cell in found):
        case, known = CASES[name], truth(name)
        schema = case.population()[1]
        formula = case.study(nulls=False).effects(schema).formula(schema)
        events = "" if known.events is None else shown(known.events)
        remarks = [f"population: {known.remark}"] if known.remark else []
        for cell in found:
            if cell.case != name or (cell.method == "real" and cell is not yardstick(found, name)):
                continue
            what = "real" if cell.method == "real" else f"{cell.method}, ε {cell.epsilon:g}"
            remarks += [f"{what}: {count} × {remark}" for remark, count in cell.remarks.items()]
        rows.append(
            f"| {name} | {case.n:,} | {known.records:,} | {events} | `{formula}` | {'; '.join(remarks)} |"
        )
    return rows


def report(lines: list[dict[str, Any]], repetitions: int, machine: str, below: float) -> str:
    found = cells(lines, repetitions)
    order = {name: position for position, name in enumerate(CASES)}
    methods = {name: position for position, name in enumerate(("real", *METHODS))}
    found.sort(key=lambda cell: (order[cell.case], cell.epsilon, methods[cell.method]))
    counts = sorted({len(cell.real.values) for cell in found if len(cell.real.values)})
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    wide = ", ".join(f"{limit:g} (ε = {epsilon:g})" for epsilon, limit in WIDE.items())
    done = " to ".join(str(n) for n in dict.fromkeys((counts[0], counts[-1])))
    return "\n".join(
        [
            "# Do the intervals of declared studies cover?",
            "",
            f"`python benchmarks/studies.py --repetitions {repetitions}`, {datetime.date.today()},",
            f"{machine}; {versions}. Repetitions done: {done}.",
            "",
            EXPLAINED,
            *main_table([cell for cell in found if not CASES[cell.case].nulls]),
            "",
            "## Covariates that know nothing",
            "",
            "A coin and a normal number, drawn anew for every resample, among the covariates: share of",
            "resamples whose 95 % interval excludes 0 (.05 is honest).",
            "",
            *null_table(found),
            "",
            f"## Terms of declared studies with a coverage below {shown(below)}, or a width beyond {wide}",
            "",
            EXPLAINED_TERMS,
            *term_table(found, below),
            "",
            "## Populations",
            "",
            *population_table(found),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES), metavar="CASE")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cache", type=Path, required=True, help="folder of the results file")
    parser.add_argument("--below", type=float, default=0.93, help="terms covered less often are listed")
    parser.add_argument("--machine", default=f"{os.cpu_count()} shared cores")
    parser.add_argument("--report-only", action="store_true")
    parser.add_argument("--terms", action="store_true", help="print every term of every method")
    args = parser.parse_args()
    path = args.cache / "trials.jsonl"
    if not args.report_only:
        tasks = missing(list(read_lines(path)), args.cases, args.epsilon, args.methods, args.repetitions)
        work(tasks, path, args.jobs)
    lines = [
        line for line in read_lines(path) if line["case"] in args.cases and line["epsilon"] in args.epsilon
    ]
    text = report(lines, args.repetitions, args.machine, args.below)
    (args.cache / "studies.md").write_text(text, encoding="utf-8")
    print(text)
    if args.terms:
        found = [cell for cell in cells(lines, args.repetitions) if len(cell.told.values)]
        rows = [row for cell in found for row in by_term(cell, truth(cell.case))]
        with pd.option_context("display.width", 250, "display.max_rows", None, "display.max_columns", None):
            print(pd.DataFrame(rows).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
