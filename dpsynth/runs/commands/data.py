"""``dpsynth data``, ``cohort`` and ``schema``: tables, where they come from and what they hold."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from dpsynth import progress
from dpsynth.errors import DataError, InputError
from dpsynth.files.storage import require_free_file
from dpsynth.files.text import text_table
from dpsynth.runs.commands import console

if TYPE_CHECKING:
    from dpsynth.datasets.cohorts.extraction import Cohort
    from dpsynth.datasets.data_cards import Card
    from dpsynth.table.column import Column
    from dpsynth.table.csv_format import CsvFormat
    from dpsynth.table.drafts import Draft
    from dpsynth.table.schema import TableSchema


_WIDTH = 100


def show_cards(
    name: Annotated[
        list[str] | None, Argument(help="Data sets, or YAML files of cards. Default: a list.")
    ] = None,
    fetch: Annotated[bool, Option("--fetch", help="Download their files, if they are not there.")] = False,
    folder: Annotated[
        Path | None, Option("--dir", help="Folder for --fetch. Default: the system's cache folder.")
    ] = None,
) -> None:
    """List public health tables, print the card of one, or download its file.

    A card says where a table comes from, its licence, what a row is, what leaks, its columns and bounds.
    Only files with the card's checksum are kept.
    """
    if fetch and name:
        _fetch(name, folder)
    elif fetch or folder is not None:
        raise InputError("--fetch needs the name of a data set, and --dir needs --fetch")
    elif name:
        _show(name)
    else:
        _list()


def _list() -> None:
    from dpsynth.datasets.data_cards import CREDENTIALED, card, names
    from dpsynth.datasets.files import state_of

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
    text = text_table(head, [[str(cell) for cell in row.values()] for row in shown])
    for name, (what, licence, page) in CREDENTIALED.items():
        text += f"\n{name} ({what}) needs credentials: {licence}, {page}"
    console.emit({"datasets": rows}, text)


def _show(names: Sequence[str]) -> None:
    from dpsynth.datasets.data_cards import card
    from dpsynth.datasets.files import file_of, state_of

    records, texts = [], []
    for found in map(card, names):
        path, state = file_of(found) if found.source == "file" else None, state_of(found)
        record = found.model_dump(mode="json", exclude={"table"})
        record |= {"schema": found.table.to_dict(), "address": found.origin.address, "state": state}
        records.append({**record, "found": str(path) if path is not None else None})
        texts.append("\n".join(_card(found, state, path)))
    console.emit({"datasets": records}, "\n\n".join(texts))


def _fetch(names: Sequence[str], folder: Path | None) -> None:
    from dpsynth.datasets.data_cards import card
    from dpsynth.datasets.files import fetch

    done = {one: fetch(one, folder, say=console.say) for one in names}
    shipped = {one: card(one).source for one in names}
    lines = [
        f"{one}: {path}" if path is not None else f"{one}: comes with {shipped[one]}, nothing to fetch"
        for one, path in done.items()
    ]
    if folder is not None and any(done.values()):
        lines.append(f"Set DPSYNTH_DATA_DIR to {folder} to use these files")
    files = {one: str(path) if path is not None else None for one, path in done.items()}
    console.emit({"files": files}, "\n".join(lines))


def _short(licence: str) -> str:
    """A licence's name without its particulars, which stand in the card."""
    return licence.split(" (")[0].split(",")[0].split(";")[0]


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
    first, *others = map(_column, found.table.columns)
    yield from (f"  {line}" for line in text_table(first, others).splitlines())
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
        what = " to ".join(map(column.shown, column.bounds))
        what += f" {column.unit}" if column.unit else ""
        what += "" if column.has_usual_step else f", step {column.resolution:g}"
        what += ", logarithmic" if column.scale == "log" else ""
    else:
        what = " | ".join(map(str, column.categories))
    what += ", may be missing" if column.missing else ""
    what += f" ({column.description})" if column.description else ""
    return column.name, column.kind, what


def make_cohort(
    study: Annotated[str, Argument(help="diabetes-mortality, aki-mortality or icu-readmission.")],
    tables: Annotated[Path, Option(help="Folder of MIMIC-III's CSV or CSV.gz files.")],
    out: Annotated[Path, Option(help="Table to write, .parquet or .csv.")],
    force: console.ForceFlag = False,
) -> None:
    """Make one of the three tables of Pedersen (2022) from MIMIC-III: one row per patient, with its schema.

    The table is private. So is what is printed: rows, share with the outcome, and what each step left.
    """
    from dpsynth.datasets.cohorts.definitions import find_study
    from dpsynth.datasets.cohorts.extraction import extract, require_free_target, save_cohort, schema_path

    chosen = find_study(study)
    require_free_target(out, force=force)
    cohort = extract(chosen, tables, scratch=out.parent)
    save_cohort(cohort, out)
    rows, rate = len(cohort.frame), cohort.positive_rate
    result = {
        "study": study,
        "out": str(out),
        "schema": str(schema_path(out)),
        "rows": rows,
        "positive_rate": rate if rows else None,
        "steps": [asdict(step) for step in cohort.steps],
        "internal": ["rows", "positive_rate", "steps"],
    }
    console.emit(result, "\n".join(_counts(cohort, out, schema_path(out))))


def _counts(cohort: Cohort, out: Path, schema: Path) -> list[str]:
    study, rows = cohort.study, len(cohort.frame)
    lines = [f"{study.title} (after {study.source})", f"{'stays':>10} {'patients':>10}  excluded stays"]
    before = cohort.steps[0].stays
    for step in cohort.steps:
        gone = f"{before - step.stays:,}" if before != step.stays else "0"
        lines.append(f"{step.stays:>10,} {step.patients:>10,}  {gone:>8}  {step.step}")
        before = step.stays
    outcome = study.schema.outcome
    positive = int(cohort.frame[outcome].astype(int).sum())
    share = f" ({100 * cohort.positive_rate:.1f} %)" if rows else ""
    return [
        *lines,
        f"{rows:,} rows, one a patient, {outcome} in {positive:,}{share}",
        "These counts are confidential.",
        f"wrote {out} and {schema}",
    ]


def _many(count: int, what: str) -> str:
    """A number with its noun, in the plural where it must be."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


schema_app = typer.Typer(help="Draft a schema from a table, check one, or print the form of its file.")


@schema_app.command()
def infer(
    data: Annotated[Path, Argument(help="CSV or Parquet file, or a folder of files that share patients.")],
    out: Annotated[Path | None, Option(help="YAML file to write.")] = None,
    unit: Annotated[
        str | None,
        Option(help="Column that identifies a patient, who may have several rows. Default: guessed."),
    ] = None,
    order: Annotated[
        str | None, Option(help="Column that orders a patient's rows. Default: guessed.")
    ] = None,
    outcome: Annotated[
        str | None, Option(help="Column that is predicted: one value for each patient.")
    ] = None,
    drop: Annotated[list[str] | None, Option(help="Column to leave out.")] = None,
    keep: Annotated[
        list[str] | None, Option(help="Column to take although it looks like an identifier or free text.")
    ] = None,
    missing_word: Annotated[
        list[str] | None, Option(help="Word that stands for no value, such as '?'.")
    ] = None,
    csv: Annotated[
        list[str] | None,
        Option(
            help="How the CSV file is written, where the guess is wrong: sep=tab, decimal=, or "
            "encoding=cp1252. Repeatable. The draft says so."
        ),
    ] = None,
    dictionary: Annotated[
        Path | None,
        Option(
            help="Data dictionary of REDCap or Frictionless. Files of SPSS, Stata and SAS carry their own. "
            "Its kinds, limits and categories are public."
        ),
    ] = None,
    answers: Annotated[
        Path | None,
        Option(
            help="YAML file of the questions and their answers. It is made if it is absent. Write an answer "
            "behind each question, and run the command again."
        ),
    ] = None,
    force: console.ForceFlag = False,
) -> None:
    """Draft a schema. Every field that is read off the data is marked as unreviewed.

    It lists what it leaves out (identifiers, free text). Its questions for the table's owner stand
    beside the columns in the YAML file. The draft is private.

    If a column such as patient_id repeats its values, it drafts a schema of patients with several rows.
    """
    from dpsynth.table import labelled
    from dpsynth.table.answers import Answers
    from dpsynth.table.dictionaries import read_dictionary

    if out is not None:
        require_free_file(out, force=force)
    written = _csv_format(csv or ())
    chosen: dict[str, Any] = {"outcome": outcome, "drop": drop or (), "keep": keep or ()}
    chosen["missing_words"] = missing_word or ()
    given = Answers.read(answers) if answers is not None else Answers()
    chosen["answers"] = given
    unit = unit or given.unit
    described = dictionary or (data if data.suffix.lower() in labelled.SUFFIXES else None)
    chosen["dictionary"] = None if described is None else read_dictionary(described)
    try:
        with progress.column_bar() as draw:
            drafted = _drafted(data, written, unit, order, {**chosen, "progress": draw})
    except DataError as problem:
        raise problem if str(data) in str(problem) else DataError(f"{data}: {problem}") from None
    drafted = replace(drafted, schema=drafted.schema.model_copy(update={"csv": written}))
    for line in drafted.lines():
        console.say(f"- {line}")
    console.say(f"{drafted.counts()} dpsynth schema check says what is left.")
    console.say(
        "A run's configuration names a contact for readers. It holds half of the rows out to judge by. Of a "
        "small table fewer are enough: split: {test_fraction: 0.2}"
    )
    if out is not None:
        drafted.to_yaml(out)
    text = drafted.to_yaml().rstrip("\n") if out is None else f"wrote {out}"
    if answers is not None:
        for line in given.unused():
            console.say(f"- {line}")
        given.to_yaml(answers)
        console.say(f"wrote {answers}: {_many(given.open, 'question')} without an answer")
    result = {
        "out": str(out) if out else None,
        "schema": drafted.schema.to_dict(),
        "remarks": [asdict(remark) for remark in drafted.remarks],
    }
    console.emit(result, text)


def _csv_format(given: Sequence[str]) -> CsvFormat:
    """Read ``sep=;``, ``decimal=,`` and ``encoding=cp1252``."""
    from dpsynth.table.csv_format import CsvFormat

    pairs = dict(pair.partition("=")[::2] for pair in given)
    if unknown := pairs.keys() - {"sep", "decimal", "encoding"}:
        raise InputError(f"--csv sets sep, decimal or encoding, such as --csv sep=tab, got {unknown.pop()!r}")
    return CsvFormat(**pairs)


def _drafted(
    data: Path,
    csv_format: CsvFormat,
    unit: str | None,
    order: str | None,
    options: dict[str, Any],
) -> Draft[TableSchema]:
    """Draft for patients with several rows where these are found or asked for, else for one row each."""
    from dpsynth.patients.files import read_files
    from dpsynth.patients.inference import infer_patient_schema
    from dpsynth.table.files import read_table
    from dpsynth.table.identity import repeated_persons
    from dpsynth.table.inference import infer_schema

    name = data.name.split(".")[0]
    if data.is_dir():
        return infer_patient_schema(read_files(data, csv_format), name, unit=unit, order=order, **options)
    table = read_table(data, csv_format=csv_format)
    if unit is not None or order is not None:
        return infer_patient_schema(table, name, unit=unit, order=order, **options)
    kept = table.drop(columns=[column for column in options["drop"] if column in table])
    if any(repeated_persons(kept)):
        try:
            return infer_patient_schema(table, name, **options)
        except InputError as problem:
            console.say(f"- question: does a patient have several rows? Not drafted: {problem}")
    return infer_schema(table, name, **options)


@schema_app.command()
def check(
    schema: Annotated[Path, Argument(help="YAML file.")],
    data: Annotated[
        Path | None, Option(help="CSV or Parquet file to check, or the folder of the schema's files.")
    ] = None,
) -> None:
    """Check a schema, and a table against it. Lists unreviewed fields and clipped values.

    With --data it counts the rows that obey each rule and formula, also those that names suggest and nobody
    declared. It names limits that equal the smallest or largest value of the table.
    """
    from dpsynth.checks import few
    from dpsynth.patients.histories import unused_rows
    from dpsynth.patients.reader import reader_of
    from dpsynth.patients.schema import patients_of, read_schema
    from dpsynth.table.derived import read_and_modelled
    from dpsynth.table.drafts import lines_of
    from dpsynth.table.inference import limits_of_data, open_questions
    from dpsynth.table.suggestions import count_rules, suggested

    described = read_schema(schema)
    known, patients = described.table, patients_of(described)
    result: dict[str, Any] = {
        "columns": len(known),
        "outcome": described.outcome,
        "n_public": described.n_public,
        "unit": described.unit,
        "unreviewed": {name: list(fields) for name, fields in described.unreviewed.items()},
        "unconfirmed": list(known.unconfirmed),
        "sha256": described.levels.digest(),
    }
    lines = [f"{schema}: {len(known)} columns, outcome {described.outcome or 'none'}"]
    lines += [f"unreviewed: {name} ({', '.join(fields)})" for name, fields in described.unreviewed.items()]
    if described.unreviewed:
        lines.append("a run refuses this schema until you review these fields and delete each 'unreviewed'")
    if result["unconfirmed"]:
        lists = few(result["unconfirmed"])
        lines.append(
            f"lists of categories or codes that nobody confirmed: {lists}. Confirm one with reviewed: true"
        )
    if described.unit is None:
        lines.append(
            "no unit: write what one row is, such as unit: one patient. The guarantee is about one row"
        )
    lines += [
        f"{name} is read as {known.column(name).read_as}, and the columns of this formula are modelled as "
        f"well: synthetic rows will not obey it. Declare one of them as derived from {name}"
        for name in read_and_modelled(known.columns)
    ]
    if data is not None:
        try:
            table = reader_of(described).read(data)
            conformed = known.conform(table)
        except DataError:
            if not console.AS_JSON.get():
                print("\n".join(lines))
            raise
        clipped = {name: count for name, count in conformed.clipped.items() if count}
        counts = count_rules(known, conformed.frame, known.rules, suggested(described))
        beyond = [group.beyond(conformed.frame, known.columns) for group in known.groups]
        taken = limits_of_data(known, known.check(table))
        unused = {} if patients is None else unused_rows(table, patients)
        asked = open_questions(known, table)
        result |= {
            "rows": len(conformed.frame),
            "unused": unused,
            "clipped": clipped,
            "rules": [asdict(count) for count in counts],
            "beyond_groups": beyond,
            "limits_of_data": {name: list(ends) for name, ends in taken.items()},
            "questions": [asdict(remark) for remark in asked],
            "internal": [
                "rows",
                "unused",
                "clipped",
                "rules",
                "beyond_groups",
                "limits_of_data",
                "questions",
            ],
        }
        rows = len(conformed.frame)
        lines.append(f"{data}: {_many(rows, 'row')} fit{'s' if rows == 1 else ''} (confidential)")
        lines += [
            f"not used: {_many(count, 'row')} {reason} (confidential)" for reason, count in unused.items()
        ]
        lines += [
            f"outside the bounds, will be clipped: {name}, {_many(count, 'value')} (confidential)"
            for name, count in clipped.items()
        ]
        lines += [
            f"group {few(group.columns)}: {_many(count, 'row')} with more than {group.at_most}. "
            "Such a row loses the others by lot (confidential)"
            for group, count in zip(known.groups, beyond, strict=True)
        ]
        lines += [f"{line} (confidential)" for line in lines_of(asked)]
        lines += map(str, counts)
        if not all(count.declared for count in counts):
            lines.append(
                "names suggest what is not declared. Declare what holds by definition or nature, never "
                "because these rows obey"
            )
        if taken:
            ends = {("lower",): "smallest", ("upper",): "largest", ("lower", "upper"): "smallest and largest"}
            named = (
                f"the {words} value of {', '.join(name for name in taken if taken[name] == which)}"
                for which, words in ends.items()
                if which in taken.values()
            )
            lines.append(
                f"limits equal {'; '.join(named)}: limits must not come from the data. Write limits that you "
                "know without this table (confidential)"
            )
    console.emit(result, "\n".join(lines))


@schema_app.command(name="json")
def print_form(
    run: Annotated[bool, Option("--run", help="Print that of runs' configurations.")] = False,
) -> None:
    """Print the JSON Schema of schema files, with which an editor completes and checks them.

    In Visual Studio Code, save it and name it in the setting yaml.schemas.
    """
    from dpsynth.files.storage import dump_json
    from dpsynth.patients.form import json_schema
    from dpsynth.runs.form import run_form

    form = run_form() if run else json_schema()
    console.emit(form, dump_json(form))
