"""``dpsynth schema infer`` and ``dpsynth schema check``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from dpsynth.errors import DataError
from dpsynth.files.storage import require_free_file
from dpsynth.runs.commands import console
from dpsynth.runs.commands.console import CsvFormat, reads_tables

app = typer.Typer(
    help="Draft a schema from a table, or check one.", rich_markup_mode=None, add_completion=False
)


@app.command()
@reads_tables
def infer(
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file.", show_default=False)],
    out: Annotated[Path | None, typer.Option("--out", help="YAML file to write.")] = None,
    outcome: Annotated[str | None, typer.Option("--outcome", help="Column that is predicted.")] = None,
    n_public: Annotated[
        int | None, typer.Option("--n-public", help="Number of records, where that is public knowledge.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option("--drop", help="Column to leave out.")] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="Column to take although it looks like an identifier or free text."),
    ] = None,
    missing_word: Annotated[
        list[str] | None, typer.Option("--missing-word", help="Word that stands for no value, such as '?'.")
    ] = None,
    force: console.ForceFlag = False,
    as_json: console.JsonFlag = False,
    *,
    csv_format: CsvFormat,
) -> None:
    """Draft a schema; every field that is read off the data is marked as unreviewed.

    Names what it leaves out (identifiers, dates, free text) and asks what only the table's owner knows; the
    questions stand beside the columns in the YAML file. The draft is private.
    """
    from dpsynth.table.io import read_table
    from dpsynth.table.schema_inference import draft

    if out is not None:
        require_free_file(out, force=force)
    try:
        with console.column_bar() as draw:
            drafted = draft(
                read_table(data, csv_format=csv_format),
                data.name.split(".")[0],
                outcome=outcome,
                n_public=n_public,
                drop=drop or (),
                keep=keep or (),
                missing_words=missing_word or (),
                progress=draw,
            )
    except DataError as problem:
        raise problem if str(data) in str(problem) else DataError(f"{data}: {problem}") from None
    for line in drafted.lines():
        console.say(f"- {line}")
    console.say(
        f"{len(drafted.schema)} columns drafted, {len(drafted.schema.ignored)} left out. The draft is "
        "private: bounds and categories were read off the data. Answer the questions, put public values in "
        "their place and delete each 'unreviewed'; dpsynth schema check says what is left."
    )
    if out is not None:
        drafted.to_yaml(out)
    text = drafted.to_yaml().rstrip("\n") if out is None else f"wrote {out}"
    result = {
        "out": str(out) if out else None,
        "schema": drafted.schema.to_dict(),
        "remarks": [asdict(remark) for remark in drafted.remarks],
    }
    console.emit(result, text, as_json=as_json)


@app.command()
@reads_tables
def check(
    schema: Annotated[Path, typer.Argument(help="YAML file.", show_default=False)],
    data: Annotated[Path | None, typer.Option("--data", help="CSV or Parquet file to check.")] = None,
    as_json: console.JsonFlag = False,
    *,
    csv_format: CsvFormat,
) -> None:
    """Check a schema, and a table against it; lists unreviewed fields, clipped values and broken rules."""
    from dpsynth.table.derived import differing
    from dpsynth.table.io import read_table
    from dpsynth.table.schema import Schema

    known = Schema.from_yaml(schema)
    result: dict[str, Any] = {
        "columns": len(known),
        "outcome": known.outcome,
        "n_public": known.n_public,
        "unreviewed": {name: list(fields) for name, fields in known.unreviewed.items()},
        "sha256": known.digest(),
    }
    lines = [f"{schema}: {len(known)} columns, outcome {known.outcome or 'none'}"]
    lines += [f"unreviewed: {name} ({', '.join(fields)})" for name, fields in known.unreviewed.items()]
    if data is not None:
        conformed = known.conform(read_table(data, known, csv_format))
        clipped = {name: count for name, count in conformed.clipped.items() if count}
        broken = {rule.text: int(rule.broken(conformed.frame).sum()) for rule in known.rules}
        for column, formula in known.formulas:
            off = differing(conformed.frame, column, formula, known.columns)
            broken[f"{column.name} = {formula.text}"] = int(off.sum())
        result |= {
            "rows": len(conformed.frame),
            "clipped": clipped,
            "broken": broken,
            "internal": ["rows", "clipped", "broken"],
        }
        lines.append(f"{data}: {len(conformed.frame):,} rows fit (internal: not for release)")
        lines += [
            f"outside the bounds, will be clipped: {name}, {count} values (internal: not for release)"
            for name, count in clipped.items()
        ]
        lines += [
            f"{text}: {count} rows do not obey (internal: not for release)"
            for text, count in broken.items()
            if count
        ]
    console.emit(result, "\n".join(lines), as_json=as_json)
