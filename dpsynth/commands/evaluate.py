"""``dpsynth evaluate``: a synthetic table measured against real ones."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.commands import console
from dpsynth.errors import DataError
from dpsynth.markdown import inert
from dpsynth.targets import require_free_folder

if TYPE_CHECKING:
    import pandas as pd

    from dpsynth.table.schema import Schema


def evaluate(
    synthetic: Annotated[Path, typer.Option("--synthetic", help="Synthetic table.", show_default=False)],
    train: Annotated[
        Path, typer.Option("--train", help="Real records it was made from.", show_default=False)
    ],
    schema: Annotated[Path, typer.Option("--schema", help="YAML file.", show_default=False)],
    test: Annotated[Path | None, typer.Option("--test", help="Real records held out.")] = None,
    outcome: Annotated[str | None, typer.Option("--outcome", help="What classifiers predict.")] = None,
    effects: Annotated[
        list[str] | None,
        typer.Option("--effects", help="Regression to replicate, such as 'logistic: death ~ age + sex'."),
    ] = None,
    constraint: Annotated[
        list[str] | None, typer.Option("--constraint", help="Rule for records, such as 'low <= high'.")
    ] = None,
    metric: Annotated[str, typer.Option("--metric", help="euclidean, gower or hamming.")] = "euclidean",
    level: Annotated[float, typer.Option("--level", help="Of the confidence intervals.")] = 0.95,
    seed: Annotated[int | None, typer.Option("--seed", help="Of models and subsamples.", min=0)] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for evaluation.json, evaluation.md and report.html.")
    ] = None,
    force: console.ForceFlag = False,
    as_json: console.JsonFlag = False,
) -> None:
    """Likeness, usefulness and memory of a synthetic table from any tool, against real records.

    Numbers of real records are internal. Without --test nothing tells memory from coincidence.
    """
    from dpsynth import storage
    from dpsynth.evaluation import evaluate as measure
    from dpsynth.report.load import ReportSource
    from dpsynth.report.page import write_page
    from dpsynth.report.verdicts import verdicts
    from dpsynth.table.schema import Schema

    if out is not None:
        require_free_folder(out, force=force, mark="evaluation.json")
    known = Schema.from_yaml(schema)
    with console.stage_bar() as stages:
        result = measure(
            _read(synthetic, known),
            train=_read(train, known),
            test=_read(test, known) if test is not None else None,
            schema=known,
            outcome=outcome,
            effects=effects,
            constraints=tuple(constraint or ()),
            metric=metric,
            level=level,
            seed=seed,
            progress=stages,
        )
    found = verdicts(result)
    said = [f"- {inert(verdict.sentence)}" for verdict in found]
    text = "\n".join(["## In plain words (internal)", "", *said, "", result.to_markdown(level=2)])

    def fill(folder: Path) -> None:
        (folder / "evaluation.json").write_text(result.to_json() + "\n", encoding="utf-8")
        (folder / "evaluation.md").write_text(text, encoding="utf-8")
        write_page(ReportSource.from_run(folder), folder / "report.html", "internal")

    shown = text.rstrip("\n")
    if out is not None:
        storage.write_folder(out, fill, replace=force)
        # the whole is in the folder; a terminal has room for what it means
        shown = "\n".join([*said, f"wrote evaluation.json, evaluation.md and report.html to {out}"])
    record = result.to_dict() | {"verdicts": [asdict(verdict) for verdict in found]}
    console.emit(record, shown, as_json=as_json)


def _read(path: Path, schema: Schema) -> pd.DataFrame:
    """Read a table; an error says which of the three it is about."""
    from dpsynth.table.io import read_table

    try:
        return read_table(path, schema)
    except DataError as problem:
        raise problem if str(path) in str(problem) else DataError(f"{path}: {problem}") from None
