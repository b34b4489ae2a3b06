"""Draft a schema from a table, with the questions that only its owner can answer.

Reading bounds and categories from private records and then publishing anything that depends on them voids
the guarantee: one unusual record moves a bound. So each column's ``unreviewed`` names all fields that the
draft read. :func:`dpsynth.table.schema.require_reviewed` refuses them until somebody has replaced them by
public knowledge. A :class:`~dpsynth.table.draft.Remark` reports each column left out, word taken as
missing and guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.checks import few, given_twice
from dpsynth.errors import DataError, InputError, of_records
from dpsynth.progress import column_bar, shown_progress
from dpsynth.table.answers import Answers, changed
from dpsynth.table.cells import TextCells, number, plain_table
from dpsynth.table.column import Column
from dpsynth.table.dictionaries.dictionary import Dictionary
from dpsynth.table.draft import draft_column, find_leaks, is_text
from dpsynth.table.drafts import COMPUTED, AnySchema, Draft
from dpsynth.table.frames import pandas_of
from dpsynth.table.questions import asked, in_turn
from dpsynth.table.questions.persons import person
from dpsynth.table.questions.seen import SeenColumn, SeenTable
from dpsynth.table.remarks import Answer, LeftOut, Remark, Remarks
from dpsynth.table.schema import Schema, TableSchema
from dpsynth.table.suggestions import suggested
from dpsynth.table.values import numeric_values

_LISTED = 5


_UNIT = (
    "what is one row: a patient, a stay or a visit? Write it as unit, such as unit: one patient. The "
    "guarantee is about one row"
)
_N_PUBLIC = (
    "is the number of records public, such as one that a publication states? Then write it as n_public. "
    "Otherwise it is released with noise"
)
#: Yes/no columns from which on a draft asks whether they are codes.
_MANY = 30
_GROUP = (
    "are most of these columns no in each row, as codes of diagnoses or drugs are? Then declare them under "
    "groups, with the most that a row can have: {columns: icd_*, at_most: 25}"
)


_RULES = (
    "does each of these rules hold for everybody, by definition or nature? Declare those that do under "
    "constraints. Names suggest them, not records"
)


def asked_about(schema: TableSchema) -> list[Remark]:
    """Return the questions about formulas and rules that a schema's names, units and kinds suggest."""
    remarks = []
    for one in suggested(schema):
        if one.column is None:
            answers = [
                Answer("holds", "declared as a rule", rules=one.texts),
                Answer("does not hold", "as drafted"),
            ]
            remarks += [
                Remark(None, "question", _RULES, text, "rule", tuple(answers), text) for text in one.texts
            ]
        else:
            more = {"missing": True} if one.needs_missing(schema) else {}
            answers = [Answer(text, "declared as derived", {"derived": text, **more}) for text in one.texts]
            text = ". ".join(filter(None, (COMPUTED, one.doubt)))
            answers += [Answer("not computed", "as drafted")]
            remarks.append(
                Remark(one.column, "question", text, " or ".join(one.texts), "formula", tuple(answers))
            )
    return remarks


def infer_schema(
    frame: pd.DataFrame,
    name: str | None = None,
    *,
    outcome: str | None = None,
    n_public: int | None = None,
    drop: Iterable[str] = (),
    keep: Iterable[str] = (),
    missing_words: Iterable[str] = (),
    answers: Iterable[Mapping[str, Any]] | Answers | None = None,
    dictionary: Dictionary | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Draft[Schema]:
    """Draft a schema from a table, with the questions that only its owner can answer.

    Not private: it reads the records with unlimited sensitivity and posts no event. The draft must not leave
    the place where the records are before it is reviewed. Each column's ``unreviewed`` lists every field but
    the name, since all are read from the data. The schema's ``ignored`` lists columns left out. The number of
    records is not written down.

    Parameters
    ----------
    frame : pandas.DataFrame, shape (n, columns)
        As :func:`dpsynth.table.files.read_table` reads it without a schema, or with dtypes. Text that writes
        numbers is numbers. Few whole numbers are codes. True/false columns and numbers of two values become
        binary. Ordered categoricals become ordinal, other text categorical.
    name, outcome, n_public : optional
        Fields of the schema.
    drop, keep : iterable of str
        Columns to leave out, and columns to take although they look like identifiers or free text.
    missing_words : iterable of str
        Words that stand for a missing value, such as ``?``. Columns of numbers compare them as numbers.
    answers : iterable of mapping, optional
        Answers to questions of an earlier draft, each with ``question``, ``answer``, and ``column`` and
        ``about`` where the question has them (:class:`dpsynth.table.answers.Answers` reads them from a file).
    dictionary : Dictionary, optional
        A data dictionary (:func:`dpsynth.table.read_dictionary`). What it says is public and needs no review.
    progress : callable, optional
        Receives the number of columns drafted, and of all columns. By default a bar is shown in a notebook or
        at a prompt, and nothing in a script.

    Raises
    ------
    InputError
        If ``frame`` is no DataFrame.
    DataError
        If the table has no rows, no columns or none to keep. If its names are numbers or given twice. If an
        option names no column.

    Examples
    --------
    >>> table = pd.DataFrame({"patient_id": ["p1", "p2", "p3"], "age": [34, 51, 78], "sex": ["F", "M", "F"]})
    >>> made = infer_schema(table)
    >>> made.schema["age"].lower, made.schema["age"].upper, made.schema["age"].unreviewed
    (34.0, 78.0, ('kind', 'lower', 'upper', 'missing'))
    >>> print(made.remarks[0])
    left out: patient_id: says whose row or which row it is (keep or --keep takes it)
    """
    frame = pandas_of(frame)
    plain = plain_table(frame)
    names = _names(frame)
    drop, keep, missing_words = tuple(map(str, drop)), tuple(map(str, keep)), tuple(missing_words)
    outcome = None if outcome is None else str(outcome)
    for option, given in (("drop", drop), ("keep", keep), ("outcome", () if outcome is None else (outcome,))):
        for column in given:
            if column not in names:
                raise DataError(f"{option} {column!r} is not a column of the table ({few(names)})")
    both = next((column for column in (*keep, outcome) if column in drop), None)
    if both is not None:
        raise DataError(
            f"the column {both!r} is both dropped and {'kept' if both in keep else 'the outcome'}"
        )

    answered = Answers.of(answers)
    if dictionary is not None:
        plain = dictionary.without_codes(plain)
        drop = (*drop, *dictionary.leaves_out(names))
        keep = (*keep, *(n for n in dictionary.keeps(plain) if n not in drop))
    chosen = plain.loc[:, [n not in drop for n in names]]
    drafted = draft_columns(chosen, keep, missing_words, outcome, progress, answered)
    columns = drafted.columns
    persons = [*person(drafted.seen)]
    if any((one := answered.chosen(remark)) and one.options for remark in persons):
        raise InputError(
            "answers say that a person has several rows: draft with dpsynth.patients.infer_patient_schema"
        )
    remarks = in_turn((*persons, *drafted.remarks))
    if not columns:
        raise of_records(f"a schema cannot be drafted: no column is left ({few(remarks, separator='; ')})")
    left = tuple(n for n in names if n not in {column.name for column in columns})
    schema = Schema(
        name=name,
        outcome=outcome,
        n_public=n_public,
        columns=tuple(columns),
        constraints=drafted.rules,
        ignored=left,
        missing_words=drafted.missing_words,
    )
    schema, suggestions = with_answers(schema, asked_about(schema), answered)
    number = Remark(None, "question", _N_PUBLIC, question="n_public", sets="n_public")
    whole = [number] * (n_public is None) + [Remark(None, "question", _UNIT, question="row", sets="unit")]
    schema, whole = with_own_words(schema, whole, answered)
    made = Draft(schema, (*unanswered(remarks, answered), *suggestions, *_codes(schema), *whole))
    return made if dictionary is None else dictionary.declared(made, chosen)


def with_answers(
    schema: AnySchema, remarks: Iterable[Remark], answered: Answers
) -> tuple[AnySchema, list[Remark]]:
    """Declare the formulas and rules that answers adopt, and return the questions that are left."""
    left = []
    for remark in remarks:
        answer = answered.chosen(remark)
        if answer is None:
            left.append(remark)
            continue
        columns = tuple(
            changed(one.name, one, answer.fields) if answer.fields and one.name == remark.column else one
            for one in schema.columns
        )
        rules = (*schema.constraints, *answer.rules)
        schema = schema.with_fields(columns=columns, constraints=rules)
    return schema, left


def with_own_words(
    schema: AnySchema, remarks: Iterable[Remark], answered: Answers
) -> tuple[AnySchema, list[Remark]]:
    """Write the fields of the schema that an owner has filled in, and return the questions that are left."""
    left = []
    for remark in remarks:
        word = answered.to_question(remark)
        if word is None:
            left.append(remark)
        else:
            schema = schema.with_fields(**{remark.sets: word})
    return schema, left


def unanswered(remarks: Iterable[Remark], answered: Answers) -> list[Remark]:
    """The remarks, those with an answer as notes of what was answered."""
    return [
        Remark(remark.column, "note", f"{remark.question}, answered: {answer.word}", answer.meaning)
        if (answer := answered.chosen(remark))
        else remark
        for remark in remarks
    ]


def _codes(schema: Schema) -> list[Remark]:
    """A question about yes/no columns that are many enough for codes."""
    count = sum(
        one.kind == "binary" and not one.missing and one.name != schema.outcome for one in schema.columns
    )
    detail = f"{count} columns are yes/no"
    return [Remark(None, "question", _GROUP, detail, "group")] if count >= _MANY else []


@dataclass(frozen=True)
class DraftedColumns:
    """Columns of a draft, the remarks about them, words for a missing value, rules, and what was seen."""

    columns: list[Column]
    remarks: list[Remark]
    missing_words: tuple[str, ...]
    rules: tuple[str, ...]
    seen: SeenTable


def draft_columns(
    frame: pd.DataFrame,
    keep: tuple[str, ...] = (),
    missing_words: tuple[str, ...] = (),
    outcome: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    answered: Answers | None = None,
) -> DraftedColumns:
    """Draft the columns of a frame, as :func:`infer_schema` does, by the answers that were given.

    Answers such as a word for no value change how columns are read. They are then drafted again.

    Raises DataError if the outcome or a column to keep cannot be used.
    """
    answered = answered or Answers()
    options = {"keep": keep, "missing_words": missing_words, "drop": ()}
    while True:
        drop = {*options["drop"]} - {outcome}
        chosen = frame.loc[:, [str(name) not in drop for name in frame.columns]]
        drafted = _drafted_once(chosen, options["keep"], options["missing_words"], outcome, progress)
        more = {option: tuple(dict.fromkeys(given)) for option, given in _options(drafted, answered, options)}
        if more == options:
            return _as_answered(drafted, answered)
        options = more


def _options(
    drafted: DraftedColumns, answered: Answers, options: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The options of a draft with those that answers add."""
    found = [answer for remark in drafted.remarks if (answer := answered.chosen(remark))]
    for option, given in options.items():
        yield option, (*given, *(word for answer in found for word in answer.options.get(option, ())))


def _as_answered(drafted: DraftedColumns, answered: Answers) -> DraftedColumns:
    """The columns as answers declare them, and their rules."""
    columns = {column.name: column for column in drafted.columns}
    rules: list[str] = []
    for remark in drafted.remarks:
        answer = answered.chosen(remark)
        if answer is not None and answer.fields and remark.column is not None:
            columns[remark.column] = changed(remark.column, columns.get(remark.column), answer.fields)
        rules += answer.rules if answer is not None else ()
    order = [seen.name for seen in drafted.seen.columns if seen.name in columns]
    remarks = [
        remark
        for remark in unanswered(drafted.remarks, answered)
        if remark.kind != "left out" or remark.column not in columns
    ]
    return replace(drafted, columns=[columns[name] for name in order], remarks=remarks, rules=tuple(rules))


def _drafted_once(
    frame: pd.DataFrame,
    keep: tuple[str, ...],
    missing_words: tuple[str, ...],
    outcome: str | None,
    progress: Callable[[int, int], None] | None,
) -> DraftedColumns:
    """Draft the columns of a frame without answers."""
    codes = [code for word in missing_words if (code := number(word)) is not None]
    chosen = {str(n): _measured(frame.iloc[:, i], codes) for i, n in enumerate(frame.columns)}
    cells = {n: TextCells.of(values, missing_words) for n, values in chosen.items() if is_text(values)}
    # a word that columns of numbers or dates use for "no value" means the same in text columns beside them
    measured = [read for read in cells.values() if read.is_numeric or read.shape() == "dates"]
    absent = {word for read in measured for word in read.absent}
    columns: dict[str, Column] = {}
    remarks: list[Remark] = []
    with shown_progress(progress, column_bar) as tell:
        for done, (column, values) in enumerate(chosen.items()):
            if tell is not None:
                tell(done, len(chosen))
            said = Remarks(column)
            try:
                columns[column] = draft_column(said, values, cells.get(column), absent, keep, outcome)
            except LeftOut as why:
                if column == outcome:
                    raise of_records(f"the outcome {column!r} cannot be used: {why}") from None
                if column in keep:
                    raise of_records(f"column {column!r} cannot be kept: {why}") from None
                said.left_out(why)
            remarks += said.remarks
    seen = SeenTable(
        tuple(
            SeenColumn(n, values, cells.get(n), columns.get(n), n in keep, n == outcome)
            for n, values in chosen.items()
        )
    )
    remarks = in_turn((*remarks, *asked(seen)))
    if outcome is not None:
        taken = {
            name: pd.Series(column.cell_numbers(chosen[name]))
            if column.written_apart
            else _cells(chosen[name], cells.get(name)).reset_index(drop=True)
            for name, column in columns.items()
        }
        remarks += _giveaways(pd.DataFrame(taken), outcome)
    words = tuple(sorted({*missing_words, *absent}))
    return DraftedColumns([*columns.values()], remarks, words, (), seen)


def open_questions(schema: TableSchema, frame: pd.DataFrame) -> list[Remark]:
    """Questions of a draft of this table about columns of a schema with unreviewed fields. Confidential.

    A question is settled if the column already is as one of its answers declares it. ``frame`` is as a draft
    takes it.
    """
    unreviewed = {column.name: column for column in schema.columns if column.unreviewed}
    names = [name for name in frame.columns if str(name) in unreviewed]
    if not names:
        return []
    drafted = draft_columns(plain_table(frame[names]), (), schema.missing_words, None)
    return [
        remark
        for remark in drafted.remarks
        if remark.kind == "question"
        and not any(_declares(unreviewed[str(remark.column)], answer) for answer in remark.answers)
    ]


def _declares(column: Column, answer: Answer) -> bool:
    """Whether a column is as an answer with fields declares it."""
    if not answer.fields:
        return False
    try:
        asked = changed(column.name, column, answer.fields)
    except InputError:
        return False
    return all(getattr(asked, field) == getattr(column, field) for field in answer.fields)


def limits_of_data(schema: Schema, frame: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Find the limits that equal the smallest or largest value of a table: they may have come from it.

    Confidential: it reads the records without noise. ``frame`` is as :meth:`Schema.check` gives it: values
    outside the limits are left as they are. For each such column the result has ``lower``, ``upper`` or both.
    Natural limits, such as 0, are left out, and so are derived columns.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [34, 51, 78]})
    >>> limits_of_data(infer_schema(table).schema, table)
    {'age': ('lower', 'upper')}
    """
    found: dict[str, tuple[str, ...]] = {}
    for column in schema.columns:
        if not column.is_numeric or column.derived is not None:
            continue
        values = numeric_values(column, frame[column.name])
        values = values[~np.isnan(values)]
        if not len(values):
            continue
        # a draft's limits are rounded to its step
        near = (column.resolution or 0.0) / 2 * (1 - 1e-9)
        ends = zip(("lower", "upper"), column.bounds, (values.min(), values.max()), strict=True)
        same = tuple(
            name
            for name, limit, end in ends
            if limit not in column.natural_limits and abs(limit - end) <= near
        )
        if same:
            found[column.name] = same
    return found


def _names(frame: pd.DataFrame) -> list[str]:
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise DataError("a schema cannot be drafted from a table without rows or columns")
    names = [str(label) for label in frame.columns]
    if (twice := given_twice(names)) is not None:
        raise DataError(f"the table has the column {twice!r} more than once")
    numbers = [n for n in frame.columns if isinstance(n, str) and number(n) is not None]
    if 2 * len(numbers) > len(names):
        raise DataError(
            f"the first line holds numbers ({', '.join(numbers[:_LISTED])}), so it looks like a record: put "
            "a line with the columns' names above it"
        )
    return names


def _measured(values: pd.Series, codes: list[float]) -> pd.Series:
    """Take numbers that stand for no value out of a column of numbers."""
    if not (codes and pd.api.types.is_numeric_dtype(values.dtype)) or values.dtype == bool:
        return values
    absent = values.isin(codes)
    if not absent.any():
        return values
    return (values.astype("Int64") if pd.api.types.is_integer_dtype(values.dtype) else values).mask(absent)


def _cells(values: pd.Series, cells: TextCells | None) -> pd.Series:
    """A column as numbers where it is one, as words elsewhere."""
    if cells is None:
        return values
    return cells.text.map(cells.numbers).astype(np.float64) if cells.is_numeric else cells.text


def _giveaways(frame: pd.DataFrame, outcome: str) -> list[Remark]:
    text = (
        f"predicts the outcome {outcome} nearly alone (confidential). Is it known only after the "
        "outcome, or another name for it? Then leave it out with drop or --drop"
    )
    return [
        Remark(
            leak.column,
            "question",
            text,
            str(leak),
            "gives_away",
            (
                Answer("leave out", "it is not modelled", options={"drop": (leak.column,)}),
                Answer("keep", "it is known before the outcome"),
            ),
        )
        for leak in find_leaks(frame, outcome)
    ]
