"""``dpsynth evaluate``: a synthetic table measured against real ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.commands import console
from dpsynth.errors import DataError
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
    seed: Annotated[int | None, typer.Option("--seed", help="Of classifiers and subsamples.", min=0)] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for evaluation.json and .md.")] = None,
    force: console.ForceFlag = False,
    as_json: console.JsonFlag = False,
) -> None:
    """Utility, resemblance and nearest-neighbour accuracy; numbers of real records are internal."""
    from dpsynth import storage
    from dpsynth.evaluation import evaluate as measure
    from dpsynth.table.schema import Schema

    if out is not None:
        require_free_folder(out, force=force, mark="evaluation.json")
    known = Schema.from_yaml(schema)
    result = measure(
        _read(synthetic, known),
        train=_read(train, known),
        test=_read(test, known) if test is not None else None,
        schema=known,
        outcome=outcome,
        seed=seed,
    )

    def fill(folder: Path) -> None:
        (folder / "evaluation.json").write_text(result.to_json() + "\n", encoding="utf-8")
        (folder / "evaluation.md").write_text(result.to_markdown(level=2), encoding="utf-8")

    text = result.to_markdown(level=2).rstrip("\n")
    if out is not None:
        storage.write_folder(out, fill, replace=force)
        text += f"\n\nwrote evaluation.json and evaluation.md to {out}"
    console.emit(result.to_dict(), text, as_json=as_json)


def _read(path: Path, schema: Schema) -> pd.DataFrame:
    """Read a table; an error says which of the three it is about."""
    from dpsynth.table.io import read_table

    try:
        return read_table(path, schema)
    except DataError as problem:
        raise problem if str(path) in str(problem) else DataError(f"{path}: {problem}") from None
