"""``dpsynth data list | show | fetch``: public data sets and their cards."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsynth.runs.commands import console

if TYPE_CHECKING:
    from dpsynth.datasets.card import Card
    from dpsynth.table.column import Column

app = typer.Typer(
    help="Public health tables: what there is, what it is, where it comes from.",
    rich_markup_mode=None,
    add_completion=False,
)
_WIDTH = 100


@app.command("list")
def list_cards(as_json: console.JsonFlag = False) -> None:
    """Print the data sets that have a card, and whether their files are there."""
    from dpsynth.datasets.registry import CREDENTIALED, card, names, state_of

    cards = [card(name) for name in names()]
    rows: list[dict[str, Any]] = [
        {
            "name": found.name,
            "rows": found.table.n_public,
            "outcome": found.table.outcome,
            "licence": found.licence,
            "file": state_of(found),
            "title": found.title,
        }
        for found in cards
    ]
    shown = [{**row, "rows": f"{row['rows']:,}", "licence": _short(row["licence"])} for row in rows]
    head = [name.replace("file", "file is") for name in rows[0]]
    text = _table([head, *([str(cell) for cell in row.values()] for row in shown)])
    for name, (what, licence, page) in CREDENTIALED.items():
        text += f"\n{name} ({what}) needs credentials: {licence}, {page}"
    console.emit({"datasets": rows}, text, as_json=as_json)


@app.command("show")
def show_card(
    name: Annotated[str, typer.Argument(help="Data set, or the YAML file of a card.", show_default=False)],
    as_json: console.JsonFlag = False,
) -> None:
    """Print a data set's card: origin, licence, what a row is, what leaks, columns and their bounds."""
    from dpsynth.datasets.registry import card, file_of, state_of

    found = card(name)
    path, state = file_of(found) if found.source == "file" else None, state_of(found)
    record = found.model_dump(mode="json", exclude={"table"})
    record |= {"schema": found.table.to_dict(), "address": found.origin.address, "state": state}
    record["found"] = str(path) if path is not None else None
    console.emit(record, "\n".join(_card(found, state, path)), as_json=as_json)


@app.command("fetch")
def fetch_files(
    name: Annotated[list[str], typer.Argument(help="Data sets, or YAML files of cards.", show_default=False)],
    folder: Annotated[
        Path | None,
        typer.Option("--dir", help="Folder to put the files in; default the system's cache folder."),
    ] = None,
    as_json: console.JsonFlag = False,
) -> None:
    """Download the files of data sets, unless they are there; only files of the card's checksum are kept."""
    from dpsynth.datasets.download import fetch
    from dpsynth.datasets.registry import card

    done = {one: fetch(one, folder, say=console.say) for one in name}
    shipped = {one: card(one).source for one in name}
    lines = [
        f"{one}: {path}" if path is not None else f"{one}: comes with {shipped[one]}, nothing to fetch"
        for one, path in done.items()
    ]
    if folder is not None and any(done.values()):
        lines.append(f"set DPSYNTH_DATA_DIR to {folder}, so that the files are found there")
    files = {one: str(path) if path is not None else None for one, path in done.items()}
    console.emit({"files": files}, "\n".join(lines), as_json=as_json)


def _short(licence: str) -> str:
    """A licence's name without its particulars, which the card tells."""
    return licence.split(" (")[0].split(",")[0].split(";")[0]


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def _card(found: Card, state: str, path: Path | None) -> Iterator[str]:
    origin = found.origin
    yield f"{found.name}: {found.title}"
    yield from _wrapped(found.description, "")
    yield ""
    source = f"{found.file}, {path or state}" if found.source == "file" else f"comes with {found.source}"
    if state == "another version":
        source += " (another version or damaged)"
    access = " (given to persons only, who sign for it)" if found.credentials else ""
    facts = {
        "rows": f"{found.table.n_public:,}, of {len(found.table)} columns",
        "outcome": str(found.table.outcome),
        "one row": f"{found.table.unit}. {found.one_row}",
        "citation": origin.citation,
        "page": origin.url,
        "licence": found.licence,
        "licence page": f"{found.licence_page}{access}" if found.licence_page else None,
        "file": source,
        "sha256": found.sha256,
        "download": origin.address,
        "archive's member": origin.member,
        "bounds": found.bounds,
        "preparation": f"dpsynth.datasets.preparations.{found.preparation}" if found.preparation else None,
        "left out without": ", ".join(found.required) or None,
        "filled in": ", ".join(f"{name} {value:g}" for name, value in found.fill.items()) or None,
    }
    for label, text in facts.items():
        if text and " " in text:
            yield from _wrapped(text, f"{label:<18}")
        elif text:  # an address or a checksum, whole
            yield f"{label:<18}{text}"
    yield ""
    yield "left out because they say the outcome or who somebody is:" if found.leaking else "nothing leaks"
    for name, reason in found.leaking.items():
        yield from _wrapped(reason, f"  {name}: ")
    yield ""
    yield "columns:"
    yield from (f"  {line}" for line in _table([_column(c) for c in found.table.columns]).splitlines())
    if found.table.constraints:
        yield ""
        yield "rules:"
        yield from (f"  {rule}" for rule in found.table.constraints)


def _wrapped(text: str, label: str) -> Iterator[str]:
    indent = " " * min(len(label), 18)
    yield from textwrap.wrap(
        label + text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _column(column: Column) -> tuple[str, str, str]:
    if column.is_numeric:
        what = f"{column.lower:g} to {column.upper:g}"
        what += f" {column.unit}" if column.unit else ""
        what += f", step {column.resolution:g}" if column.resolution and column.kind != "integer" else ""
        what += ", logarithmic" if column.scale == "log" else ""
    else:
        what = " | ".join(map(str, column.categories))
    what += ", may be missing" if column.missing else ""
    what += f" ({column.description})" if column.description else ""
    return column.name, column.kind, what
