"""Draft the schema of patients with several rows from a table, or from the files of a folder.

The column that identifies a patient is found by its name and because its values repeat. Columns that do not
change within a patient become ``per: patient``. The column that orders the rows is found by its name, or
because it increases. All this is read from private records, so it is unreviewed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.checks import few
from dpsynth.errors import DataError, of_records
from dpsynth.patients.files import PatientFile, cell_texts, key_patients, places
from dpsynth.patients.schema import PatientSchema
from dpsynth.table.answers import Answers
from dpsynth.table.cells import TextCells, plain_table
from dpsynth.table.column import Column
from dpsynth.table.dictionaries.dictionary import Dictionary
from dpsynth.table.draft import draft_column, is_text
from dpsynth.table.drafts import Draft
from dpsynth.table.identity import identities, is_person, named_identifier, spellings, tokens
from dpsynth.table.inference import (
    asked_about,
    draft_columns,
    unanswered,
    with_answers,
    with_own_words,
)
from dpsynth.table.remarks import Answer, LeftOut, Remark, Remarks

_TIMES = {"day", "days", "date", "time", "datetime", "timestamp", "charttime", "admittime", "visit", "seq"}
_TIMES |= {"hour", "hours", "minute", "minutes", "offset"}
_TIMES |= {"week", "weeks", "month", "months", "year", "years", "sequence", "order", "age"}
#: ends of names of times that are one word, as in labresultoffset
_ENDS = ("offset", "hours", "days")
_KEYS = {"id", "key", "no", "nr", "number", "hadm", "stay", "encounter", "visit", "case", "icustay"}
_ITEMS = {"item", "itemid", "test", "analyte", "parameter", "measurement", "component", "lab"}
_VALUES = {"value", "result", "valuenum"}
_MOST_ITEMS = 60
#: proposals for the most rows of a patient, and the share of patients who have no more
_MOST, _ENOUGH = (2, 5, 10, 20, 50, 100), 0.99
#: share of patients in which a column may change and still be drafted as one value for each patient
_SLIPS = 0.01
#: share of steps from a patient's row to the next that increase in a column of times, and steps to say so
_INCREASING, _FEWEST_STEPS = 0.9, 20
_N_PUBLIC = (
    "is the number of patients public, such as one that a publication states? Then write it as n_public. "
    "Otherwise it is released with noise"
)
#: events in the last of several rows from which a terminal column is asked about
_FEWEST_ENDS = 5
#: patients with several values from which a category is asked about that none has twice
_FEWEST_ONCE = 20


def infer_patient_schema(
    tables: pd.DataFrame | Mapping[str, pd.DataFrame],
    name: str | None = None,
    *,
    unit: str | None = None,
    order: str | None = None,
    outcome: str | None = None,
    n_public: int | None = None,
    drop: Iterable[str] = (),
    keep: Iterable[str] = (),
    missing_words: Iterable[str] = (),
    answers: Iterable[Mapping[str, Any]] | Answers | None = None,
    dictionary: Dictionary | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Draft[PatientSchema]:
    """Draft the schema of patients with several rows, with the questions that only the owner can answer.

    Not private, as :func:`dpsynth.infer_schema` is not. The draft must not leave the place of the records
    before it is reviewed.

    Parameters
    ----------
    tables : pandas.DataFrame, or mapping of file name to DataFrame
        One long table, or the files of a folder, as :func:`dpsynth.table.read_table` reads them without a
        schema.
    unit, order : str, optional
        The column that identifies a patient, and the one that orders the rows. Default: guessed.
    outcome : str, optional
        A column with one value for each patient.
    name, n_public, drop, keep, missing_words, answers, dictionary, progress
        As for :func:`dpsynth.infer_schema`. ``n_public`` is the number of patients.

    Returns
    -------
    Draft
        ``rows`` and each column name their unreviewed fields.

    Raises
    ------
    DataError
        If no column identifies patients or orders their rows, or if an option names no column. If the outcome
        changes from row to row.

    Examples
    --------
    >>> visits = pd.DataFrame({"patient_id": [1, 1, 2, 2], "day": [3, 90, 5, 7], "sex": ["F", "F", "M", "M"],
    ...                        "hdl": [50, 55, 41, 40]})
    >>> schema = infer_patient_schema(visits).schema
    >>> schema.unit, schema.order, schema.most, schema.per_patient
    ('patient_id', 'day', 2, ('sex',))
    """
    by_file = tables if isinstance(tables, Mapping) else {"": tables}
    given = {file: plain_table(frame) for file, frame in by_file.items()}
    drop, keep, missing_words = tuple(drop), tuple(keep), tuple(missing_words)
    known = {str(column): None for frame in given.values() for column in frame.columns}
    asked = {"unit": unit, "order": order, "outcome": outcome}
    options = {"drop": drop, "keep": keep} | {option: (name,) for option, name in asked.items() if name}
    for option, names in options.items():
        for column in names:
            if column not in known:
                raise DataError(f"{option} {column!r} is not a column of the table ({few(known)})")
    frames = {file: frame.drop(columns=list({*drop} & {*frame.columns})) for file, frame in given.items()}
    if dictionary is not None:
        left = {*dictionary.leaves_out(known)} - {unit, order}
        frames = {
            file: dictionary.without_codes(frame.drop(columns=list(left & {*frame.columns})))
            for file, frame in frames.items()
        }
        keep = (*keep, *(name for frame in frames.values() for name in dictionary.keeps(frame)))
    remarks: list[Remark] = []
    unreviewed = ["unit"] * (unit is None) + ["most"] + ["order"] * (order is None) + ["per"]
    answered = Answers.of(answers)
    unit = unit or _unit(frames, remarks, answered)
    keyed = _linked(frames, unit, missing_words)
    frames |= {file: frame for file, (frame, _, _) in keyed.items()}
    for file in [file for file, frame in frames.items() if unit not in frame]:
        remarks.append(Remark(None, "left out", f"{file} has no column {unit!r}"))
        del frames[file]
    for file, frame in frames.items():
        # as every reader takes them: two spellings are one patient, who has several rows
        ids = pd.Series(identities(frame[unit], missing_words), frame.index, name=unit)
        frames[file] = frame = frame.assign(**{unit: ids.where(ids != "", None)})
        if copies := int(frame.duplicated().sum()):
            text = "are exact copies of earlier ones. Remove those that are slips"
            rows = f"rows of {file or 'the table'} {text}"
            remarks.append(Remark(None, "question", rows, f"{copies:,}", "copies"))
    events = {file: frame for file, frame in frames.items() if frame[unit].duplicated().any()}
    if not events:
        raise of_records(f"no value of {unit!r} repeats, so no patient has several rows")
    orders = _orders(events, unit, order, remarks, answered)
    order = order or next(iter(orders.values()))
    for file, own in orders.items():
        if own != order and order in events[file]:
            raise DataError(
                f"{own!r} seems to order the rows of {file}, which has a column {order!r} too. Name one with "
                f"order (--order), or fill the empty cells of {order!r}"
            )
    events = {file: frame.rename(columns={orders[file]: order}) for file, frame in events.items()}
    by_key = {file: {"key": key, "through": through} for file, (_, key, through) in keyed.items()}
    drafting = _Drafting(unit, order, outcome, keep, missing_words, progress, remarks, orders, answered)
    drafting.times({file: frame[order] for file, frame in events.items()})
    # What visits may repeat is read from a file of one row for each patient.
    for file, frame in frames.items():
        if file not in events:
            drafting.patients(file, frame.drop(columns=unit))
    for file, frame in events.items():
        drafting.rows(file, frame)
    drafting.without_bare(events)
    columns = drafting.finished()
    if outcome is not None and outcome not in (*drafting.per_patient, *drafting.terminal):
        raise of_records(
            f"the outcome {outcome!r} must have one value for each patient, and it changes from row to row. "
            "Draft without an outcome. Then declare it as over_time: terminal, if it ends a patient's rows"
        )
    most = _most(events, drafting)
    if "" in frames:
        columns.sort(key=lambda column: [*known].index(column.name))
    present = [str(column) for frame in frames.values() for column in frame.columns]
    links = {
        unit,
        order,
        *drafting.columns,
        *(name for file in drafting.files for name in (file.item, file.value, file.order)),
    }
    schema = PatientSchema(
        unit=unit,
        order=order,
        outcome=outcome,
        most=most,
        columns=tuple(columns),
        per_patient=tuple(drafting.per_patient),
        terminal=tuple(drafting.terminal),
        once=tuple(drafting.once),
        n_public=n_public,
        name=name,
        files=tuple(file.model_copy(update=by_key.get(file.name, {})) for file in drafting.files),
        ignored=tuple(dict.fromkeys(column for column in (*present, *drop) if column not in links)),
        missing_words=tuple(sorted(drafting.words)),
        rows_unreviewed=(*unreviewed, "files") if drafting.files else tuple(unreviewed),
        constraints=tuple(drafting.rules),
    )
    schema, suggestions = with_answers(schema, asked_about(schema), answered)
    if n_public is None:
        remarks.append(Remark(None, "question", _N_PUBLIC, question="n_public", sets="n_public"))
    schema, asked_for = with_own_words(schema, [remark for remark in remarks if remark.sets], answered)
    settled = {str(one["question"]) for one in answered.given if one.get("answer") is not None}
    unsettled = tuple(name for name in schema.rows_unreviewed if name not in settled)
    schema = schema.model_copy(update={"rows_unreviewed": unsettled})
    rest = [remark for remark in remarks if not remark.sets]
    made = Draft(schema, (*unanswered(rest, answered), *suggestions, *asked_for))
    return made if dictionary is None else dictionary.declared(made, *frames.values())


@dataclass
class _Drafting:
    """Columns drafted so far, by name."""

    unit: str
    order: str
    outcome: str | None
    keep: tuple[str, ...]
    missing_words: tuple[str, ...]
    progress: Callable[[int, int], None] | None
    remarks: list[Remark]
    #: each file's own name for the order
    orders: Mapping[str, str]
    answered: Answers
    columns: dict[str, Column] = field(default_factory=dict)
    per_patient: list[str] = field(default_factory=list)
    terminal: list[str] = field(default_factory=list)
    once: list[str] = field(default_factory=list)
    files: list[PatientFile] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    rules: list[str] = field(default_factory=list)

    def times(self, by_file: Mapping[str, pd.Series]) -> None:
        """Draft the column that orders the rows: a number without codes, or none where it identifies rows."""
        values = pd.concat(by_file.values(), ignore_index=True)
        if named_identifier(self.order, values.nunique(), len(values)):
            text = "orders the rows and is not released"
            self.remarks.append(Remark(self.order, "note", text))
            return
        said = Remarks(self.order)
        cells = TextCells.of(values, self.missing_words) if is_text(values) else None
        column: Column | None = None
        why = "is no number"
        try:
            column = draft_column(said, values, cells, set(), (), None)
        except LeftOut as problem:
            why = str(problem)
        numbers = _numbers(values)
        if numbers is not None and (column is None or not column.is_numeric or column.special):
            low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
            kind = "integer" if np.array_equal(numbers, np.rint(numbers), equal_nan=True) else "continuous"
            limits = {"kind": kind, "lower": low, "upper": max(high, low + 1)}
            column = Column(name=self.order, **limits, unreviewed=tuple(limits))
        if column is None or not column.is_numeric:
            firsts = [f"{str(own.iloc[0])!r} in {file}" for file, own in by_file.items() if file and len(own)]
            shown = f". The first values are {', '.join(firsts)}" if len(firsts) > 1 else ""
            raise of_records(f"the column {self.order!r} cannot order rows: {why}{shown}")
        empty = int(values.isna().sum())
        if empty:
            text = "orders the rows, so it may not be missing. Fill these cells, or remove their rows"
            self.remarks.append(
                Remark(self.order, "question", text, f"{empty:,} empty cells", "missing_order")
            )
        kept = tuple(name for name in column.unreviewed if name != "missing")
        self.columns[self.order] = column.model_copy(update={"missing": False, "unreviewed": kept})

    def patients(self, file: str, frame: pd.DataFrame) -> None:
        """Draft a file that has one row for each patient."""
        self.per_patient += (names := self._drafted(frame, file))
        self.files += [PatientFile(name=file, columns=tuple(names))] if names else []

    def rows(self, file: str, frame: pd.DataFrame) -> None:
        """Draft a table or file that has several rows for a patient."""
        own = frame.drop(columns=[self.unit, self.order])
        long = _long_form(own)
        if long is not None and file and self._items(file, frame, *long):
            return
        if long is not None and not file:
            text = "seem to be names of values and values. Then draft the folder of this file, not the file"
            self.remarks.append(
                Remark(None, "question", f"{long[0]} and {long[1]} {text}", question="long_table")
            )
        constant = self._constant(own, frame[self.unit])
        firsts = frame.groupby(self.unit, sort=False)[constant].first() if constant else pd.DataFrame()
        self.per_patient += (same := self._drafted(firsts, file))
        names = same + self._drafted(own.drop(columns=constant), file, changing=True)
        self._ends(frame, names)
        self._once(frame, names)
        self.files += [PatientFile(name=file, columns=tuple(names), order=self._own(file))] if file else []

    def _ends(self, frame: pd.DataFrame, names: list[str]) -> None:
        """Ask about binary columns whose second value ends the rows of each patient who has it."""
        frame = frame.drop_duplicates()
        time = pd.Series(self.ordered(frame[self.order]))
        unit = pd.Series(pd.factorize(frame[self.unit])[0])
        last, several = time == time.groupby(unit).transform("max"), unit.duplicated(keep=False)
        for name in names:
            column = self.columns[name]
            if column.kind != "binary" or column.missing or name in self.per_patient:
                continue
            event = pd.Series(cell_texts(frame[name])).str.lower() == str(column.categories[1]).lower()
            ends = int((event & several).sum())
            if ends >= _FEWEST_ENDS and not unit[event].duplicated().any() and last[event].all():
                text = "stands in a patient's last row alone: is it over_time: terminal, such as a death?"
                more = " Rows of the patient after it are then not used"
                counts = f"{column.categories[1]!r} of {ends:,} patients with several rows"
                answers = (
                    Answer("terminal", "it ends a patient's rows"),
                    Answer("row", "a value of each row, as drafted"),
                )
                asked = Remark(name, "question", text + more, counts, "terminal", answers)
                self.terminal += [name] if self._asked(asked) == "terminal" else []

    def _once(self, frame: pd.DataFrame, names: list[str]) -> None:
        """Ask about categories of which no patient has one twice, although many have several."""
        for name in names:
            column = self.columns[name]
            if not column.is_categorical or name in self.per_patient or name in self.terminal:
                continue
            known = frame[[self.unit, name]].dropna()
            several = int((known.groupby(self.unit).size() > 1).sum())
            repeated = int(known.duplicated().sum())
            if several < _FEWEST_ONCE or repeated > _SLIPS * len(known):
                continue
            answers = (
                Answer("once", "a patient has each once at most"),
                Answer("row", "a value of each row, as drafted"),
            )
            text = "has no value twice for one patient: is it over_time: once, such as a first diagnosis?"
            counts = f"{several:,} patients have several"
            asked = Remark(name, "question", text, counts, "once", answers)
            self.once += [name] if self._asked(asked) == "once" else []

    def _asked(self, asked: Remark) -> str | None:
        """The word that answers a question, None without one."""
        return _answer(asked, self.remarks, self.answered)

    def ordered(self, values: pd.Series) -> np.ndarray:
        """Values that order rows as numbers, equal where they say the same: 7 and 7.0, or one date."""
        order = self.columns.get(self.order)
        return order.cell_numbers(values) if order and order.written_apart else places(values)

    def _own(self, file: str) -> str | None:
        return self.orders[file] if self.orders[file] != self.order else None

    @property
    def apart(self) -> bool:
        """Whether the values of a row come from several files or items."""
        return sum(map(self._of_rows, self.files)) > 1 or any(file.item for file in self.files)

    def _of_rows(self, file: PatientFile) -> bool:
        return bool({*file.columns} - {*self.per_patient})

    def without_bare(self, events: Collection[str]) -> None:
        """Leave out files of rows that give nothing from row to row, if another one does."""
        rows = [file for file in self.files if file.name in events]
        for file in rows if any(map(self._of_rows, rows)) else ():
            if not self._of_rows(file):
                text = f"{file.name} has several rows for a patient, and no column that changes between them"
                self.remarks.append(Remark(None, "left out", text))
                self.files.remove(file)
                self.per_patient = [name for name in self.per_patient if name not in file.columns]
                self.columns = {name: c for name, c in self.columns.items() if name not in file.columns}

    def finished(self) -> list[Column]:
        """The columns. Those that change from row to row have no special codes."""
        found = []
        for column in self.columns.values():
            if column.special and column.name not in (self.order, *self.per_patient):
                text = "codes are read as missing, since rows have no special codes"
                self.remarks.append(Remark(column.name, "note", text))
                read = tuple(name.replace("special", "missing_codes") for name in column.unreviewed)
                changes = {"missing": True, "missing_codes": column.special, "special": ()}
                column = column.model_copy(update={**changes, "unreviewed": read})
            found.append(column)
        return found

    def _drafted(self, frame: pd.DataFrame, file: str, *, changing: bool = False) -> list[str]:
        twice = [name for name in frame.columns if name in self.columns]
        for name in twice:
            text = f"stands in {file} too, and is read from the first file that has it"
            self.remarks.append(Remark(str(name), "note", text))
        kept = tuple(name for name in self.keep if name in frame)
        outcome = self.outcome if self.outcome in frame.columns.drop(twice) else None
        given = frame.drop(columns=twice)
        made = draft_columns(given, kept, self.missing_words, outcome, self.progress, self.answered)
        self.remarks += made.remarks
        self.rules += made.rules
        self.words |= {*made.missing_words}
        dates = [column.name for column in made.columns if changing and column.is_date]
        for name in dates:
            text = (
                f"is a date that changes from row to row. Declare the days since {self.order!r} in its place"
            )
            self.remarks.append(Remark(name, "left out", f"{text}, with read_as, and the date as derived"))
        columns = {column.name: column for column in made.columns if column.name not in dates}
        self.columns |= columns
        return [*columns]

    def _items(self, file: str, frame: pd.DataFrame, item: str, value: str) -> bool:
        """Draft each item of a file in long form as a column, unless the owner says that it has none."""
        answers = (
            Answer("items", "each is a column"),
            Answer("columns", f"{item} and {value} are columns of their own"),
        )
        text = f"{file}: each {item} is a column, whose values stand in {value}. Is it so?"
        asked = Remark(None, "question", text, "", "items", answers, file)
        if self.answered.chosen(asked) is answers[1]:
            self.remarks.append(asked)
            return False
        for other in frame.columns.drop([self.unit, self.order, item, value]):
            self.remarks.append(Remark(str(other), "left out", f"stands beside the values of {file}"))
        names: list[str] = []
        for name, values in frame[value].groupby(cell_texts(frame[item])):
            names += self._drafted(values.rename(str(name)).to_frame(), file, changing=True) if name else []
        if names:
            self.remarks.append(asked)
            own = self._own(file)
            self.files.append(PatientFile(name=file, columns=tuple(names), item=item, value=value, order=own))
        return True

    def _constant(self, frame: pd.DataFrame, unit: pd.Series) -> list[str]:
        """Columns with one value for each patient, apart from slips."""
        found = []
        for name in frame.columns:
            codes = pd.Series(pd.factorize(frame[name])[0], index=frame.index)
            groups = codes[codes >= 0].groupby(unit)
            several = int((groups.size() > 1).sum())
            changed = int((groups.min() < groups.max()).sum())
            if not several or changed > _SLIPS * several:
                continue
            if changed:
                text = "has one value for each patient, with exceptions, where the first is used. Is it so?"
                answers = (
                    Answer("patient", "one value for each patient, as drafted"),
                    Answer("row", "it changes from row to row"),
                )
                counts = f"{changed:,} of {several:,} patients"
                if self._asked(Remark(str(name), "question", text, counts, "per_patient", answers)) == "row":
                    continue
            found.append(str(name))
        return found


def _unit(frames: Mapping[str, pd.DataFrame], remarks: list[Remark], answered: Answers) -> str:
    """The column that identifies a patient: in most files, and with values that repeat."""
    files: dict[str, list[pd.Series]] = {}
    for frame in frames.values():
        for name in filter(is_person, map(str, frame.columns)):
            files.setdefault(name, []).append(pd.Series(spellings(frame[name])))
    candidates = [name for name, ids in files.items() if any(own.duplicated().any() for own in ids)]
    if not candidates:
        raise DataError(
            "no column with a name such as patient_id repeats its values. Name the one with unit (--unit)"
        )
    chosen = max(candidates, key=lambda name: len(files[name]))
    candidates.sort(key=lambda name: name != chosen)
    rows = pd.concat([own for own in files[chosen] if own.duplicated().any()])
    rows = rows[rows != ""]
    asked = f" Other candidates, for unit or --unit: {few(candidates[1:])}." if candidates[1:] else ""
    text = f"{chosen} identifies patients, who are then protected with all rows. Is it so?"
    counts = f"{len(rows):,} rows of {rows.nunique():,} patients"
    return _picked(Remark(None, "question", text + asked, counts, "unit"), candidates, remarks, answered)


def _linked(
    frames: Mapping[str, pd.DataFrame], unit: str, missing_words: Sequence[str]
) -> dict[str, tuple[pd.DataFrame, str, str]]:
    """Files without the unit, with it, the key that they share with another file, and that file's name."""
    found: dict[str, tuple[pd.DataFrame, str, str]] = {}
    without = {file: frame for file, frame in frames.items() if unit not in frame}
    for through, other in frames.items():
        for file, frame in without.items() if unit in other else ():
            for key in filter(is_stay, map(str, frame.columns.intersection(other.columns))):
                try:
                    patients = key_patients(other[key], other[unit], missing_words, through)
                except DataError:  # the key is none
                    continue
                known = [patients.get(one) for one in identities(frame[key], missing_words)]
                ids = pd.Series(known, frame.index, dtype=object)
                linked = frame.drop(columns=key).assign(**{unit: ids}).dropna(subset=[unit])
                found.setdefault(file, (linked, key, through))
    return found


def is_stay(name: str) -> bool:
    """Whether a name is that of a key of stays, visits or the like."""
    return bool({*tokens(name)} & _KEYS)


def _picked(asked: Remark, columns: Sequence[str], remarks: list[Remark], answered: Answers) -> str:
    """The column that an answer names, the first one without an answer."""
    answers = (Answer(columns[0], "as drafted"), *(Answer(name, "this one") for name in columns[1:]))
    return _answer(replace(asked, answers=answers), remarks, answered) or columns[0]


def _answer(asked: Remark, remarks: list[Remark], answered: Answers) -> str | None:
    """Ask a question, and return the word that answers it, None without one."""
    remarks.append(asked)
    chosen = answered.chosen(asked)
    return chosen.word if chosen else None


def _orders(
    events: Mapping[str, pd.DataFrame],
    unit: str,
    order: str | None,
    remarks: list[Remark],
    answered: Answers,
) -> dict[str, str]:
    """The column of each file that orders its rows: by its name, or because it increases.

    One that all files have goes first.
    """
    scores: dict[str, dict[str, tuple[int, bool]]] = {}
    for file, frame in events.items():
        if order not in frame:
            found = {str(c): _looks_like_times(frame[c], frame[unit]) for c in frame.columns.drop(unit)}
            scores[file] = {name: score for name, score in found.items() if score[0]}
    common = {
        name: min(found[name] for found in scores.values())
        for name in next(iter(scores.values()), {})
        if len(scores) == len(events) and all(name in found for found in scores.values())
    }
    chosen = dict.fromkeys(events, order or "")
    for file, found in {"": common}.items() if common else scores.items():
        if not found:
            where = f" of {file}" if file else ""
            how = (
                "Give it the name that another file has"
                if len(events) > 1
                else "Name one with order (--order)"
            )
            raise DataError(
                f"no column{where} seems to order the rows of a patient. {how}, such as a day or the number "
                "of a visit"
            )
        names = sorted(found, key=lambda each: found[each], reverse=True)
        asked = f" Other candidates, for order or --order: {few(names[1:])}." if names[1:] else ""
        text = f"{names[0]} orders the rows of {'a patient' if common else file}. Is it so?{asked}"
        name = _picked(Remark(None, "question", text, "", "order", (), file), names, remarks, answered)
        chosen |= dict.fromkeys(events, name) if common else {file: name}
    return chosen


def _looks_like_times(values: pd.Series, unit: pd.Series) -> tuple[int, bool]:
    """Three for increasing values with such a name, two for the name alone, one for increasing numbers.

    Beside it, whether they are numbers rather than dates.
    """
    numbers = _numbers(values)
    moments = _dates(values) if numbers is None else numbers
    if moments is None or np.isnan(moments).any():
        return 0, False
    patient = pd.factorize(unit)[0]
    by_patient = np.argsort(patient, kind="stable")
    steps = np.diff(moments[by_patient])[np.diff(patient[by_patient]) == 0]
    if not (steps != 0).any():
        return 0, False
    name = str(values.name)
    identifies = named_identifier(name, values.nunique(), len(values))
    said = bool(_TIMES & {*tokens(name)}) or name.lower().endswith(_ENDS)
    named = numbers is None or (said and not identifies)
    increasing = len(steps) >= _FEWEST_STEPS and float(np.mean(steps > 0)) >= _INCREASING
    return 2 * named + increasing, numbers is not None


def _dates(values: pd.Series) -> np.ndarray | None:
    """Dates as numbers, NaN where a value is missing or no date, None if the column holds something else."""
    if is_text(values) and TextCells.of(values).shape() != "dates":
        return None
    if not is_text(values) and not pd.api.types.is_datetime64_any_dtype(values.dtype):
        return None
    moments = pd.to_datetime(values, errors="coerce", utc=True, format="mixed")
    seconds = moments.dt.tz_localize(None).to_numpy(dtype="datetime64[s]")
    return np.where(np.isnat(seconds), np.nan, seconds.astype(np.int64))


def _numbers(values: pd.Series) -> np.ndarray | None:
    """A column as numbers, NaN where missing, None if it holds something else."""
    if not is_text(values):
        numeric = pd.api.types.is_numeric_dtype(values.dtype)
        return values.to_numpy(dtype=np.float64, na_value=np.nan) if numeric else None
    cells = TextCells.of(values)
    if cells.is_numeric and not cells.others:
        return cells.text.map(cells.numbers).to_numpy(dtype=np.float64)
    return None


def _long_form(frame: pd.DataFrame) -> tuple[str, str] | None:
    """The columns of a table in long form that hold the names of values, and the values."""
    names = {str(name): {*tokens(str(name))} for name in frame.columns}
    items = [n for n, words in names.items() if words & _ITEMS and frame[n].nunique() <= _MOST_ITEMS]
    values = [n for n, words in names.items() if words & _VALUES and n not in items]
    return (items[0], values[0]) if items and values else None


def _most(events: Mapping[str, pd.DataFrame], drafting: _Drafting) -> int:
    """A round number of rows that is enough for nearly all patients."""
    unit, order = drafting.unit, drafting.order
    rows = pd.concat([frame[[unit, order]] for frame in events.values()], ignore_index=True)
    if drafting.apart:  # rows at the same time in several files become one
        rows = rows.assign(**{order: drafting.ordered(rows[order])}).drop_duplicates()
    counts = rows.groupby(unit).size()
    most = next((most for most in _MOST if most >= counts.quantile(_ENOUGH)), _MOST[-1])
    text = (
        f"at most {most} rows of a patient are used, and {int((counts > most).sum()):,} patients have more. "
        "How many are plausible? Write that number as most"
    )
    drafting.remarks.append(Remark(None, "question", text, question="most", sets="most"))
    return most
