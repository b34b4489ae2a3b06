"""Search for valid schemas, tables and options on which a fit, its sample, evaluation or page fails.

    python benchmarks/search.py --cases 1000 --processes 2

Case k is drawn with seed k by the strategies of the tests (``tests/helpers/table_strategies.py``): every
kind of column, scale, step and cells, missing values, 1 to 500 categories, a derived column, rules; tables of
constants, zeros, spikes, one record a value, 95 % missing; every base model, pairwise statistics, the
nearest-neighbour histogram, critic steps and studies; epsilon 0.01 to 1,000, 2 to 5,000 records. Each goes
through fit, save, load, sample, conform, evaluate and page (``tests/helpers/whole_way.py``). Warnings of
NumPy and pandas count as failures.

Outcomes are kept one a line, so that an interrupted search goes on where it was. ``--again 12`` goes through
one case and shows where it fails. Delete the file of outcomes after a change of package or strategies.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # processes share the cores
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

import numpy as np  # noqa: E402
import whole_way  # noqa: E402
from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: E402
from table_strategies import Case, cases  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "search.md"


def drawn(number: int) -> Case:
    """Case of a number. Hypothesis's first example is always the simplest, so the second is taken."""
    kept: list[Case] = []

    @seed(number)
    @settings(
        max_examples=2,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def keep(case: Case) -> None:
        kept.append(case)

    keep()
    return kept[-1]


def outcome(number: int) -> dict[str, object]:
    """What becomes of a case, in one line."""
    start = time.perf_counter()
    case = drawn(number)
    try:
        said = whole_way.go(case, page="release" if number % 2 else "internal")
    except Exception as problem:
        places = [Path(frame.filename) for frame in traceback.extract_tb(problem.__traceback__)]
        ours = [path for path in places if path.is_relative_to(ROOT)]
        where = ours[-1].relative_to(ROOT) if ours else "?"
        said = f"failed: {type(problem).__name__} in {where}: {str(problem).splitlines()[0][:200]}"
    seconds = round(time.perf_counter() - start, 1)
    return {"case": number, "rows": len(case.frame), "outcome": said, "seconds": seconds}


def written(records: list[dict[str, object]]) -> str:
    """The results as Markdown."""
    kinds = Counter(str(record["outcome"]).split(":")[0] for record in records)
    seconds = [float(str(record["seconds"])) for record in records]
    lines = [
        "# Search for fits that fail",
        "",
        f"`python benchmarks/search.py`: {len(records):,} cases (seeds "
        f"{min(int(str(r['case'])) for r in records)} to {max(int(str(r['case'])) for r in records)}), "
        f"median {np.median(seconds):.1f} s, longest {max(seconds):.0f} s a case.",
        "",
        "- made: table, evaluation and page came out, and the table fits its schema, steps and rules;",
        "- refused: said in one sentence before a budget was spent (a study: after the private count);",
        "- rejected: the schema's rules refuse nearly every record of the model, which is said;",
        "- failed: anything else.",
        "",
        "| outcome | cases |",
        "|---|---:|",
        *(f"| {kind} | {kinds[kind]:,} |" for kind in ("made", "refused", "rejected", "failed")),
    ]
    failed = [record for record in records if str(record["outcome"]).startswith("failed")]
    if failed:
        lines += ["", "| case | failure |", "|---:|---|"]
        lines += [f"| {r['case']} | {str(r['outcome'])[8:].replace('|', '/')} |" for r in failed]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first case")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--kept", type=Path, default=ROOT / "runs" / "search.jsonl", help="outcomes so far")
    parser.add_argument("--again", type=int, help="go through one case and show where it fails")
    asked = parser.parse_args()
    if asked.again is not None:
        case = drawn(asked.again)
        print(case.schema.to_yaml(), case.frame.describe(include="all"), case.options, sep="\n")
        print(whole_way.go(case))
        return
    asked.kept.parent.mkdir(parents=True, exist_ok=True)
    lines = asked.kept.read_text(encoding="utf-8").splitlines() if asked.kept.exists() else []
    records = {record["case"]: record for record in map(json.loads, lines)}
    wanted = [n for n in range(asked.first, asked.first + asked.cases) if n not in records]
    with ProcessPoolExecutor(asked.processes) as pool, asked.kept.open("a", encoding="utf-8") as kept:
        for done in as_completed([pool.submit(outcome, number) for number in wanted]):
            record = done.result()
            records[record["case"]] = record
            kept.write(json.dumps(record) + "\n")
            kept.flush()
            RESULTS.write_text(written([records[n] for n in sorted(records)]), encoding="utf-8")


if __name__ == "__main__":
    main()
