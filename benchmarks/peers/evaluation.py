"""The evaluation suite: what ours measures of synthetic tables beside sdmetrics' and anonymeter's answers.

Tables and generators are those of `benchmarks/anonymeter_check.py`, whose comparison is part of this one: a
bootstrap of training records, half of that, and fresh records, so that the right answer is known.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpsynth
from benchmarks.peers.environments import Environments
from benchmarks.peers.processes import run
from dpsynth.files.storage import write_text
from dpsynth.table.schema import Schema

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
import anonymeter_check  # noqa: E402

#: question: our measure
ASKED = {
    "tvd of categories": "tvd",
    "correlation error": "correlation_error",
    "category coverage": "category_coverage",
    "range coverage": "range_coverage",
    "discriminator (logistic)": "discriminator_auc_logistic_regression",
    "copies of training records": "copies_train_share",
    "nearer to training records": "dcr_closer_to_train",
}
LIMIT = 900.0


def suite(out: Path, environments: Environments, head: list[str]) -> None:
    """Write ``README.md`` and ``answers.csv``, and print the former."""
    work = (out / "work").resolve()
    work.mkdir(exist_ok=True)
    frame = pd.DataFrame(_beside_sdmetrics(work, environments))
    write_text(out / "answers.csv", frame.to_csv(index=False))
    lines = ["# Evaluation beside sdmetrics and anonymeter", "", *head, *as_markdown(frame)]
    lines += ["", "# Attacks beside anonymeter's", *_beside_anonymeter(work, environments)]
    write_text(out / "README.md", "\n".join(lines) + "\n")
    print("\n".join(lines))


def as_markdown(frame: pd.DataFrame) -> list[str]:
    """A table for each data set: a row a generator and question."""
    lines = [
        "",
        "Training, held-out and synthetic records in equal numbers. The same question need not be the same "
        "formula: sdmetrics' logistic detector is asked of training records and never below .5, ours of "
        "held-out ones; its distances take each table's ranges as units, ours the schema's; its correlations "
        "are of numbers alone, ours of categories' indicators too. Seconds here are those of the whole "
        "evaluation. Nearest-neighbour accuracy and calibrated membership have no counterpart there.",
    ]
    for table, part in frame.groupby("table", sort=False):
        lines += ["", f"## {table}", "", "| generator | question | here | sdmetrics | s here | s there |"]
        lines += ["|---|---|---:|---:|---:|---:|"]
        for _, row in part.iterrows():
            numbers = [row["ours"], row["theirs"], row["our_seconds"], row["their_seconds"]]
            forms = [".4f", ".4f", ".3g", ".3g"]
            cells = ["" if pd.isna(n) else format(n, form) for n, form in zip(numbers, forms, strict=True)]
            cells[1] = cells[1] or str(row.get("failed") or "")
            lines.append(f"| {row['generator']} | {row['question']} | {' | '.join(cells)} |")
    return lines


def _beside_sdmetrics(work: Path, environments: Environments) -> list[dict[str, Any]]:
    rows = []
    for name, size, _, _ in anonymeter_check.TABLES:
        table = dpsynth.datasets.load(name)
        rng = np.random.default_rng(0)
        whole = table.schema.conform(table.frame).frame
        whole = whole.iloc[rng.permutation(len(whole))].reset_index(drop=True)
        train, test, fresh = (whole[i * size : (i + 1) * size].reset_index(drop=True) for i in range(3))
        for generator in anonymeter_check.GENERATORS:
            made = anonymeter_check.generated(generator, train, fresh, np.random.default_rng(1))
            ours, seconds = _ours(made, train, test, table.schema)
            theirs = _theirs(
                work, environments, {"train": train, "synthetic": made, "test": test}, table.schema
            )
            for question in ASKED:
                row = {"table": name, "generator": generator, "question": question}
                answer = theirs.get(question, theirs)
                row |= {"ours": ours[question], "our_seconds": seconds, "failed": answer.get("failed")}
                rows.append(row | {"theirs": answer.get("value"), "their_seconds": answer.get("seconds")})
    return rows


def _ours(
    made: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame, schema: Schema
) -> tuple[dict[str, float | None], float]:
    """Our answers, and the seconds of the whole evaluation, which answers more than is asked."""
    begun = time.perf_counter()
    found = dpsynth.evaluate(made, train=train, test=test, schema=schema, seed=0, reference=False)
    seconds = time.perf_counter() - begun
    categorical = [f"tvd[{column.name}]" for column in schema.columns if not column.is_numeric]
    tvd = float(np.mean([found[name].value for name in categorical]))
    known = {asked: found[name].value for asked, name in ASKED.items() if name != "tvd" and name in found}
    return {question: known.get(question) for question in ASKED} | {"tvd of categories": tvd}, seconds


def _theirs(
    work: Path, environments: Environments, frames: dict[str, pd.DataFrame], schema: Schema
) -> dict[str, Any]:
    environment = environments["sdmetrics"]
    if environment.python is None:
        return {"failed": environment.failed}
    task: dict[str, Any] = {
        "kinds": {
            column.name: "numerical" if column.is_numeric else "categorical" for column in schema.columns
        }
    }
    for name, frame in frames.items():
        task[name] = str(work / f"{name}.csv")
        frame.to_csv(task[name], index=False)
    (work / "task.json").write_text(json.dumps(task))
    command = [environment.python, str(HERE / "fits" / "metrics_sdmetrics.py"), "task.json"]
    ended = run(command, folder=work, limit=LIMIT)
    if ended.failed is not None:
        return {"failed": ended.failed}
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def _beside_anonymeter(work: Path, environments: Environments) -> list[str]:
    """The comparison of `benchmarks/anonymeter_check.py`, in this suite's environment."""
    environment = environments["anonymeter"]
    if environment.python is None:
        return ["", f"anonymeter: {environment.failed}"]
    link = work / "anonymeter"
    link.unlink(missing_ok=True)
    link.symlink_to(Path(environment.python).parents[1], target_is_directory=True)
    return anonymeter_check.compare(work)
