"""Patients' rows in several files of a folder, linked by the column that identifies a patient.

A file whose columns all have one value for each patient has one row for each patient. Every other file has
rows in time, with the column that orders them. In long form such a file has one value in a row, beside the
name of the column that it belongs to.

Rows of a patient at the same time become one row. If a file has several, its first joins the first of each
other file, its second the second, and so on. So no value is lost. The columns of a file without a row there
are missing. A terminal column has its first category there, such as alive. An order that is no column of the
schema links the files too. Rows that are written then have the numbers 1, 2, ….
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, StrictStr, ValidationError, model_validator

from dpsynth.checks import few, file_name
from dpsynth.errors import DataError, OwnerWarning, SchemaError, of_records
from dpsynth.files.text import one_sentence
from dpsynth.table.cells import ABSENT, Codes, distinct_cells, number, unescape
from dpsynth.table.column import Column
from dpsynth.table.csv_format import CsvFile, CsvFormat
from dpsynth.table.files import WRITABLE, read_cells, write_table
from dpsynth.table.identity import identities
from dpsynth.table.schema import Schema

#: What a schema's file may say of one of ``files``, beside its columns.
FILE_KEYS = ("item", "value", "order", "key", "through", "lasts", "within")


class PatientFile(BaseModel):
    """One file of a folder, with the columns of the schema that it gives.

    Parameters
    ----------
    name : str
        Name of a CSV or Parquet file in the folder.
    columns : tuple of str
        Columns of the schema, without the unit and the order.
    item, value : str, optional
        Columns of a file in long form. ``item`` holds a column's name, ``value`` its value.
    order : str, optional
        The file's own name for the column that orders the rows.
    key, through : str, optional
        A column, such as the number of a stay, by which rows belong to a patient, and the file that has it
        beside the unit. Rows whose key is not there are left out.
    lasts : str, optional
        The column of the file that says how long each of its rows lasts, such as the days of a stay. In the
        unit of the order, or in days where the order is a date.
    within : str, optional
        A file with ``lasts``. No synthetic row of this file lies outside a stay of its patient there.

    Raises
    ------
    SchemaError
        One sentence that names the file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: StrictStr
    columns: tuple[StrictStr, ...] = ()
    item: StrictStr | None = None
    value: StrictStr | None = None
    order: StrictStr | None = None
    key: StrictStr | None = None
    through: StrictStr | None = None
    lasts: StrictStr | None = None
    within: StrictStr | None = None

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as problem:
            said = one_sentence(problem, tuple(type(self).model_fields))
            raise SchemaError(f"files: {fields.get('name')!r}: {said}") from None

    @model_validator(mode="after")
    def _fields_fit(self) -> PatientFile:
        if not file_name(self.name).endswith(WRITABLE):
            raise ValueError("a file's name must end with .csv or .parquet")
        if (self.item is None) != (self.value is None) or (self.item is not None and not self.columns):
            raise ValueError("a file in long form must have item, value and columns")
        if (self.key is None) != (self.through is None):
            raise ValueError("key and through belong together: name the file that has the key and the unit")
        if self.lasts is not None and (self.lasts not in self.columns or self.item is not None):
            raise ValueError("lasts must name one of the file's columns, and the file has no item")
        return self

    @classmethod
    def of(cls, name: str, entry: Any) -> PatientFile:
        """Read what a YAML file says of a file: a list of columns, or a mapping that says more."""
        if isinstance(entry, Mapping):
            return cls(**{**{str(key): value for key, value in entry.items()}, "name": name})
        if isinstance(entry, Sequence) and not isinstance(entry, str):
            return cls(name=name, columns=entry)
        raise SchemaError(
            f"files: {name!r} must have a list of columns, or a mapping with columns and "
            f"{', '.join(FILE_KEYS[:-1])} or {FILE_KEYS[-1]}"
        )

    def entry(self) -> Any:
        """Inverse of `of`."""
        own = {name: getattr(self, name) for name in FILE_KEYS}
        said = {key: name for key, name in own.items() if name is not None}
        return {**said, "columns": list(self.columns)} if said else list(self.columns)


#: whose rows are those of keys that no patient has: no identity that is read holds this sign
_NOBODY = "\0"


@dataclass(frozen=True)
class Presence:
    """A column that may be missing in a row, or the row of a file that gives several columns.

    ``within``: the file of such a column. Its presence is about the rows of that file alone.
    """

    name: str
    columns: tuple[str, ...]
    within: str = ""

    @property
    def level(self) -> str:
        """The level that gives the share of a patient's rows in which it is there."""
        return f"{self.name} measured" if {*self.columns} == {self.name} else f"row in {self.name}"


@dataclass(frozen=True)
class _Part:
    """Rows of one file, or of one item of a file in long form. ``turn`` counts those at the same time."""

    ids: NDArray[np.object_]
    frame: pd.DataFrame
    turn: NDArray[np.int64]


@dataclass(frozen=True)
class PatientFolder:
    """The files of a folder, and the schema of the rows that they give together."""

    files: tuple[PatientFile, ...]
    table: Schema
    unit: str
    order: str
    per_patient: tuple[str, ...]
    terminal: tuple[str, ...]

    @property
    def events(self) -> tuple[PatientFile, ...]:
        """The files that have rows in time."""
        return tuple(file for file in self.files if not file.columns or self._of_rows(file))

    def _of_rows(self, file: PatientFile) -> list[str]:
        return [name for name in file.columns if name not in self.per_patient]

    @property
    def joined(self) -> tuple[Column, ...]:
        """The columns of joined rows: what not every file gives may be missing, and what follows from it."""
        columns = {column.name: column for column in self.table.columns}
        for file in self.events if self.apart else ():
            for name in {*self._of_rows(file)} - {*self.terminal}:
                columns[name] = columns[name].model_copy(update={"missing": True})
        for column, formula in self.table.formulas:
            if any(columns[name].incomplete for name in formula.columns):
                columns[column.name] = column.model_copy(update={"missing": True})
        return tuple(columns.values())

    @property
    def presences(self) -> tuple[Presence, ...]:
        """The columns and files that may be missing in joined rows, see `Presence`."""
        found: dict[str, Presence] = {}
        modelled = {column.name for column in self.table.columns if column.derived is None}
        wide = [file for file in self.events if self.apart and not file.item]
        panels = [
            Presence(file.name, tuple(c for c in self._of_rows(file) if c in modelled)) for file in wide
        ]
        homes = {name: panel for panel in panels if len(panel.columns) > 1 for name in panel.columns}
        for given, column in zip(self.table.columns, self.joined, strict=True):
            name, home = column.name, homes.get(column.name)
            if name in (self.order, *self.per_patient, *self.terminal) or name not in modelled:
                continue
            if home is not None:
                found.setdefault(home.name, home)
            if given.missing or (home is None and column.missing):
                found[name] = Presence(name, (name,), home.name if home else "")
        return tuple(found.values())

    @property
    def stays(self) -> tuple[str, tuple[str, ...]] | None:
        """The column that says how long stays last, and the columns of files whose rows lie within them."""
        lengths = [file.lasts for file in self.files if file.lasts is not None]
        within = [file for file in self.files if file.within is not None]
        return (
            (lengths[0], tuple(name for file in within for name in self._of_rows(file))) if lengths else None
        )

    @property
    def apart(self) -> bool:
        """Whether the values of a row come from several places, so that any may be absent."""
        return len(self.events) > 1 or any(file.item is not None for file in self.files)

    def check(self) -> None:
        """Raise ValueError with one sentence if the files do not give each column once."""
        home: dict[str, str] = {}
        twice = [name for name, times in Counter(file.name for file in self.files).items() if times > 1]
        if twice:
            raise ValueError(f"files: {twice[0]!r} is given twice")
        for file in self.files:
            links = [self.unit, self._called(self.order, file), *filter(None, (file.item, file.value))]
            if len({*links}) < len(links) or file.order in file.columns:
                raise ValueError(
                    f"files: item, value and order of {file.name!r} must be columns of their own"
                )
            if file.order is not None and file not in self.events:
                raise ValueError(f"files: {file.name!r} has one row for each patient, so it needs no order")
            for name in file.columns:
                if name in (self.unit, self.order):
                    raise ValueError(f"files: {file.name!r} need not name {name!r}, take it off the list")
                if name not in self.table.names:
                    raise ValueError(f"files: {file.name!r} names {name!r}, which is not a column")
                if name in home:
                    other = home[name]
                    raise ValueError(
                        f"files: {name!r} stands in {other!r} and {file.name!r}. Name it in one of them"
                    )
                home[name] = file.name
                if file.item is not None and name in self.per_patient:
                    raise ValueError(f"files: {name!r} of {file.name!r} cannot be per patient in long form")
        given = [column.name for column in self.table.columns if column.derived is None]
        absent = [name for name in given if name not in home and name != self.order]
        if absent:
            raise ValueError(f"files: no file has the column(s) {few(map(repr, absent))}")
        if not self.events:
            raise ValueError("files: no file has rows, all columns have one value for each patient")
        for file in self.events if self.apart else ():
            if not self._of_rows(file):
                raise ValueError(f"files: {file.name!r} must give a column that changes from row to row")
        self._check_stays()

    def _check_stays(self) -> None:
        lasting = {file.name: file for file in self.files if file.lasts is not None}
        if len(lasting) > 1:
            raise ValueError("files: one file alone can say how long its rows last")
        for file in self.files:
            if file.within is not None and (file.within not in lasting or file.name in lasting):
                raise ValueError(f"files: {file.name!r} must be within another file, one that has lasts")
            if file.within is not None and file not in self.events:
                raise ValueError(
                    f"files: {file.name!r} has one row for each patient, so it lies within no stay"
                )
        for file in lasting.values():
            length = self.table.column(str(file.lasts))
            what = f"files: lasts of {file.name!r} must name a number of rows"
            if not self._timed:
                raise ValueError(f"files: lasts of {file.name!r} needs the order {self.order!r} as a column")
            if not length.is_numeric or length.is_date or length.missing or length.name in self.per_patient:
                raise ValueError(f"{what}, which is never missing in its file")
            if length.bounds[0] != 0 or length.derived is not None:
                raise ValueError(f"{what} from 0, without a formula")
            order = self.table.column(self.order)
            unit = "days" if order.is_date else order.unit
            if unit and length.unit and unit != length.unit:
                raise ValueError(f"{what} in the unit of the order: {unit}, not {length.unit}")

    def read(self, folder: Path, csv_format: CsvFormat) -> pd.DataFrame:
        """Read the rows, with the unit's column as text, patient by patient in order.

        Warns (OwnerWarning) how many patients, items and rows were left out.

        Raises DataError if a file is absent, lacks a column or does not fit the schema. It is also raised if
        a row lacks its patient or time, or if a file of columns per patient lacks a patient.
        """
        parts: list[_Part] = []
        patients: list[tuple[PatientFile, pd.DataFrame]] = []
        for file in self.files:
            path = _found(folder / file.name)
            try:
                cells, source = read_cells(path, self._columns(file), csv_format)
                if file.order not in (None, self.order):
                    cells = cells.drop(columns=self.order, errors="ignore")
                    cells = cells.rename(columns={file.order: self.order})
                if file.key is not None:
                    cells = self._linked(folder, path, cells, file, csv_format)
                ids = self._ids(path, cells, file)
                if file.item is not None:
                    parts += self._items(path, cells, source, ids, file)
                    continue
                frame = self._checked(cells, source, file)
            except DataError as problem:
                raise problem if str(folder) in str(problem) else DataError(f"{path}: {problem}") from None
            own = [name for name in file.columns if name in self.per_patient]
            if file not in self.events:
                _refuse_twice(path, ids)
            if own:
                found = frame[own].groupby(ids).first()
                patients.append((file, found[found.index != _NOBODY]))
            if file in self.events:
                parts.append(self._wide(path, frame, ids, file))
        joined = self._joined(parts)
        joined = joined[joined[self.unit] != _NOBODY].reset_index(drop=True)
        units = joined[self.unit]
        for file, own_values in patients:
            _refuse_unknown(folder / file.name, units, own_values.index)
            without = len(own_values.index.difference(pd.Index(units)))
            if without:
                _tell(folder / file.name, f"{without:,} patient(s) without a row in the other files")
            joined = joined.join(own_values, on=self.unit)
        return joined

    def _linked(
        self, folder: Path, path: Path, cells: pd.DataFrame, file: PatientFile, csv_format: CsvFormat
    ) -> pd.DataFrame:
        """Cells with the patient of each row's key, or nobody."""
        through = _found(folder / str(file.through))
        links, _ = read_cells(through, csv_format=csv_format)
        for where, table in ((path, cells), (through, links)):
            if file.key not in table:
                raise DataError(
                    f"{where}: the column {file.key!r}, which links {file.name}, is not in the file"
                )
        if self.unit not in links:
            raise DataError(
                f"{through}: the column {self.unit!r}, which identifies patients, is not in the file"
            )
        patients = key_patients(links[str(file.key)], links[self.unit], self.table.missing_words, through)
        found = [patients.get(key, _NOBODY) for key in identities(cells[file.key], self.table.missing_words)]
        if without := found.count(_NOBODY):
            _tell(path, f"{without:,} row(s) whose {file.key!r} is not in {through.name}")
        return cells.assign(**{self.unit: found})

    def write(
        self, rows: pd.DataFrame, folder: Path, *, escape_formulas: bool = True, shared: bool = False
    ) -> None:
        """Write rows to the files, into a folder that exists. Missing values have no row in long form."""
        for file in self.files:
            part = self._split(rows, file).rename(columns={self.order: self._called(self.order, file)})
            write_table(part, folder / file.name, escape_formulas=escape_formulas, shared=shared)

    def _split(self, rows: pd.DataFrame, file: PatientFile) -> pd.DataFrame:
        columns, keys = self._given(file), [self.unit, self.order]
        if file not in self.events:
            return rows.groupby(self.unit, sort=False)[columns].first().reset_index()
        if file.item is not None:
            # a row for each value, in the order of the rows
            words = rows[keys].join(rows[columns].astype(object).where(self._valued(rows, columns)))
            words = words.reset_index(drop=True)
            made = words.melt(keys, columns, ignore_index=False).sort_index(kind="stable")
            made.columns = pd.Index([*keys, file.item, file.value])
            made = made[made[file.value].notna()]
            return made.assign(**{str(file.value): self._values(made[file.value], file)})
        changing = self._of_rows(file)
        return rows.loc[self._valued(rows, changing).any(axis=1) | (not self.apart), keys + columns]

    def _values(self, values: pd.Series, file: PatientFile) -> pd.Series:
        """Values of a file in long form. A Parquet file has one type for all."""
        if file.name.endswith(".csv"):
            return values
        numeric = all(self.table.column(name).is_numeric for name in file.columns)
        return values.astype(np.float64) if numeric else values.map(str)

    def _given(self, file: PatientFile) -> list[str]:
        """The columns that a file gives, and those by formula that one of them is read from."""
        sources = {
            name for column, of in self.table.readings if column.name in file.columns for name in of.columns
        }
        derived = [column.name for column in self.table.columns if column.derived is not None]
        return list(dict.fromkeys((*file.columns, *(name for name in derived if name in sources))))

    @property
    def _timed(self) -> bool:
        return self.order in self.table.names

    def _times(self, file: PatientFile) -> list[str]:
        """The order, where a file has it as a column of the schema."""
        return [self.order] if file in self.events and self._timed else []

    def _called(self, name: str, file: PatientFile) -> str:
        """The name that a file has for a column which links it to others."""
        return file.order or name if name == self.order else name

    def _clock(self, file: PatientFile) -> Column:
        """The order, by the file's own name."""
        name = self._called(self.order, file)
        return self.table.column(self.order).model_copy(update={"name": name})

    def _columns(self, file: PatientFile) -> list[Column]:
        """Describe the cells of a file for its reader."""
        order = [self._clock(file)] if self._times(file) else []
        own = [self.table.column(name) for name in self._given(file)]
        if file.item is None:
            return order + own
        words = tuple(dict.fromkeys(str(word) for column in own for word in column.categories))
        # a word for "no value" that is a category of an item stays
        if any(column.is_numeric for column in own) and not ABSENT & {*words}:
            return [*order, Column(name=str(file.value), kind="continuous", lower=0, upper=1)]
        return [*order, Column(name=str(file.value), kind="categorical", categories=words)]

    def _ids(self, path: Path, cells: pd.DataFrame, file: PatientFile) -> NDArray[np.object_]:
        """The patient of each row, after checking that the columns are there that link the files."""
        needed = {self.unit: "identifies patients"}
        needed |= {self.order: "orders the rows"} if file in self.events else {}
        needed |= {file.item: "names the columns", str(file.value): "holds values"} if file.item else {}
        for name, role in needed.items():
            if name not in cells:
                own = self._called(name, file)
                raise DataError(f"{path}: the column {own!r}, which {role}, is not in the file")
        words = self.table.missing_words
        ids = cells[self.unit].to_numpy() if file.key else identities(cells[self.unit], words)
        empty = {self.unit: ids == ""}
        if file in self.events and not self._timed:
            empty[self.order] = without_value(cells[self.order], self.table.missing_words)
        for name, here in empty.items():
            if here.any():
                row, own = int(here.argmax()) + 1, self._called(name, file)
                raise of_records(f"{path}, row {row}: {own!r} is missing, but {needed[name]}")
        return ids

    def _checked(self, cells: pd.DataFrame, source: Path | CsvFile, file: PatientFile) -> pd.DataFrame:
        """The columns that are read from a file. Those that come from other files are left out."""
        own = [*self._times(file), *([] if file.item else self._given(file))]
        links = {self.unit, *(each.key for each in self.files)}
        elsewhere = {*links, file.item, file.value, *self.table.names, *self.table.ignored} - {*own}
        kept = [name for name in cells.columns if name not in elsewhere]
        try:
            found = self.table.select(own).check(cells[kept], path=source) if own else cells[[]]
        except DataError:
            if file.order is not None and self._timed:  # an error names the file's own column
                alone = self.table.model_copy(update={"columns": (self._clock(file),), "constraints": ()})
                alone.check(cells[[self.order]].rename(columns={self.order: file.order}), path=source)
            raise
        if file in self.events and not self._timed:
            found = found.assign(**{self.order: ordered(cells[self.order])})
        return found

    def _valued(self, frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
        """Which cells say something: not missing, and of a terminal column the second category."""
        valued = frame[[*names]].notna()
        for name in set(names) & set(self.terminal):
            valued[name] &= frame[name] == self.table.column(name).categories[1]
        return valued

    def _wide(self, path: Path, frame: pd.DataFrame, ids: NDArray[np.object_], file: PatientFile) -> _Part:
        changing = self._of_rows(file)
        frame = frame[[self.order, *changing]]
        if self.apart:
            kept = self._valued(frame, changing).any(axis=1).to_numpy()
            if not kept.all():
                _tell(path, f"{int((~kept).sum()):,} row(s) without any value")
            frame, ids = frame[kept], ids[kept]
        return _Part(ids, frame, self._turns(ids, frame))

    def _items(
        self,
        path: Path,
        cells: pd.DataFrame,
        source: Path | CsvFile,
        ids: NDArray[np.object_],
        file: PatientFile,
    ) -> list[_Part]:
        times = self._checked(cells, source, file)
        names = cell_texts(cells[file.item], unescape)
        # an item without a value is as good as none
        parts, table = [], self.table.model_copy(update={"columns": self.joined})
        for name in file.columns:
            here = names == name
            one = table.select([name])
            cells_of_item = cells[[file.value]].rename(columns={file.value: name})
            try:
                values = one.check(cells_of_item[here])
            except DataError:
                one.check(cells_of_item.where(here[:, None]), path=source)  # names the line of the file
                raise
            present = self._valued(values, [name])[name].to_numpy()
            here[here] = present
            frame = times[here].assign(**{name: values.loc[present, name]})
            parts.append(_Part(ids[here], frame, self._turns(ids[here], frame)))
        others = int((~np.isin(names.astype(str), file.columns)).sum())
        if others:
            _tell(path, f"{others:,} row(s) with a value of {file.item!r} that is no column of the schema")
        return parts

    def _turns(self, ids: NDArray[np.object_], frame: pd.DataFrame) -> NDArray[np.int64]:
        keys = pd.DataFrame({"patient": pd.factorize(ids)[0], "time": places(frame[self.order])})
        return np.asarray(keys.groupby(["patient", "time"]).cumcount(), dtype=np.int64)

    def _joined(self, parts: Sequence[_Part]) -> pd.DataFrame:
        """One row for each patient, time and turn."""
        ids = np.concatenate([part.ids for part in parts])
        times = pd.concat([part.frame[self.order] for part in parts], ignore_index=True)
        turns = np.concatenate([part.turn for part in parts])
        keys = pd.DataFrame({"patient": pd.factorize(ids)[0], "time": places(times), "turn": turns})
        place = keys.groupby(["patient", "time", "turn"]).ngroup().to_numpy()
        first = np.unique(place, return_index=True)[1]
        joined = {self.unit: pd.Series(ids[first]), self.order: times.iloc[first].reset_index(drop=True)}
        start = 0
        for part in parts:
            own = place[start : start + len(part.ids)]
            start += len(part.ids)
            for name in part.frame.columns.drop(self.order):
                joined[name] = part.frame[name].set_axis(own).reindex(range(len(first)))
        for name in set(self.terminal) & joined.keys():
            words = joined[name].astype(object)
            joined[name] = words.where(words.notna(), self.table.column(name).categories[0])
        return pd.DataFrame(joined)


def read_files(folder: Path, csv_format: CsvFormat) -> dict[str, pd.DataFrame]:
    """Read all tables of a folder without a schema, by the names that a schema gives them.

    Raises DataError if one cannot be read, or if there is none.
    """
    found = {}
    for path in sorted(folder.iterdir()):
        name = path.name.removesuffix(".gz")
        if name.lower().endswith(WRITABLE) and not name.startswith("."):
            found[name] = read_cells(path, csv_format=csv_format)[0]
    if not found:
        raise DataError(f"{folder} holds no file that ends with .csv, .csv.gz or .parquet")
    return found


def _found(path: Path) -> Path:
    packed = path.with_name(f"{path.name}.gz")
    return packed if not path.exists() and packed.exists() else path


def ordered(values: pd.Series) -> pd.Series:
    """Values that order rows: words that write a number become that number, cell by cell."""
    # One type for all cells would read a large number otherwise beside a decimal one.
    codes, keys = _keys(values)
    return pd.Series(np.array([*keys, None], dtype=object)[codes], index=values.index, dtype="object")


def _keys(values: pd.Series) -> tuple[Codes, list[Any]]:
    """Place of each row's cell among the distinct ones, -1 if it is missing, and what these count as."""
    codes, distinct = distinct_cells(values)
    return codes, [_number(word) if isinstance(word, str) else word for word in distinct]


def _number(word: str) -> int | float | str:
    value = number(word)
    if value is None:
        return word
    return int(word) if word.lstrip("+-").isdigit() else value


def places(values: pd.Series) -> NDArray[np.int64]:
    """Place of each value among the sorted distinct ones, as `ordered` reads them. Numbers precede words."""
    codes, keys = _keys(values)
    try:
        known = sorted({*keys}, key=lambda key: (isinstance(key, str), key))
    except TypeError:
        raise DataError(
            f"the values of {values.name!r} order rows, but cannot be compared with each other. Give "
            "numbers, words or dates, not several of these"
        ) from None
    place = dict(zip(known, range(len(known)), strict=True))
    return np.array([*map(place.__getitem__, keys), -1], dtype=np.int64)[codes]


def without_value(values: pd.Series, missing_words: Iterable[str]) -> NDArray[np.bool_]:
    """Which cells of an order are empty, or hold a word for a missing value. Digits may be a number of it."""
    words = [word for word in missing_words if not word.isdigit()]
    return pd.Series(cell_texts(values)).isin(["", *words]).to_numpy()


def cell_texts(values: pd.Series, read: Callable[[str], str] = str) -> NDArray[np.object_]:
    """Words of cells, alike in CSV and Parquet files: 7.0 of a column with decimals is 7."""
    codes, distinct = distinct_cells(values)
    whole = (int(word) if isinstance(word, float | Decimal) and word % 1 == 0 else word for word in distinct)
    return np.array([*(read(str(word).strip()) for word in whole), ""], dtype=object)[codes]


def key_patients(
    keys: pd.Series, units: pd.Series, missing_words: Iterable[str], path: Path | str
) -> dict[str, str]:
    """The patient of each key, such as a stay. DataError if one key has two of them."""
    pairs = pd.DataFrame({"key": identities(keys, missing_words), "unit": identities(units, missing_words)})
    pairs = pairs[(pairs != "").all(axis=1)].drop_duplicates()
    twice = pairs["key"].duplicated().to_numpy()
    if twice.any():
        key = pairs["key"].iloc[int(twice.argmax())]
        raise of_records(
            f"{path}: {keys.name} {key!r} stands with two patients. Give each one a key of its own"
        )
    return dict(zip(pairs["key"], pairs["unit"], strict=True))


def _refuse_twice(path: Path, ids: NDArray[np.object_]) -> None:
    twice = pd.Series(ids).duplicated().to_numpy() & (ids != _NOBODY)
    if twice.any():
        row = int(twice.argmax())
        raise of_records(
            f"{path}, row {row + 1}: patient {ids[row]!r} has a row already. Keep one row for each patient"
        )


def _refuse_unknown(path: Path, units: pd.Series, known: pd.Index) -> None:
    unknown = units[~units.isin(known)].unique()
    if len(unknown):
        raise of_records(
            f"{path}: patient {unknown[0]!r} of another file is not in this one ({len(unknown):,} such "
            "patients). Add them, or remove their rows"
        )


def _tell(path: Path, what: str) -> None:
    warnings.warn(f"{path}: left out {what} (confidential)", OwnerWarning, stacklevel=4)
