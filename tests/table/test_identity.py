"""Who a row is about: the same patients whichever way a table comes in."""

from __future__ import annotations

import datetime
import unicodedata
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import marginals_options
from dask_workers import threads
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsynth.attacks.shadow import _Round
from dpsynth.datasets.table import PatientTable, independent_split, train_test
from dpsynth.errors import DataError, OwnerWarning
from dpsynth.evaluation.tables import Tables
from dpsynth.patients.files import PatientFile
from dpsynth.patients.inference import infer_patient_schema
from dpsynth.patients.reader import reader_of
from dpsynth.patients.schema import PatientSchema
from dpsynth.privacy.records import PartitionedRecords
from dpsynth.synthesis.check_inputs import records_of
from dpsynth.table.identity import identities, repeated_persons, spellings
from dpsynth.table.parquet import ParquetTable, units_in
from dpsynth.table.schema import Column

SCHEMA = PatientSchema(
    unit="id",
    order="day",
    most=20,
    columns=(
        Column(name="day", kind="integer", lower=0, upper=199),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="row", kind="integer", lower=0, upper=199),
    ),
    per_patient=("sex",),
    missing_words=("?",),
)

#: Cells that are one patient each. A file of text holds the words, a Parquet file any column of one type.
WORDS = [
    [
        *("A1", " A1", "A1 ", "A1\u00a0", "\u200bA1", "A\u200d1", "\ufeffA1", "\uff21\uff11", "A\u00ad1"),
        *("A1\ufe0f", "A\u034f1", "A1\u3164", "\uffa0A1", "A1\u180f", "A\U000e01001", "A1\u17b4", "A1\u2800"),
    ],
    ["A 1", "A  1", "A\u00a01", "A\t1", "A\u20031", "A\n1", "A\u28001"],
    ["A-1", "A\u20101", "A\u20111", "A\u20131", "A\u20141", "A\u22121", "A\uff0d1"],
    ["A2"],
    ["a1"],
    ["\u00c9", "E\u0301"],
    ["7", "7.0", " 7.00 ", "\uff17", "7.", "+7", "+7.0"],
    ["07", "+07"],
    ["0", "-0", "+0", "0.", "-0.0"],
    ["7.5"],
    ["7.50"],
    ["-7", "-7.0", "\u22127"],
    ["1E5"],
    ["12E5"],
    ["E+5"],
    ["9007199254740993"],
    ["9007199254740992"],
    ["2020-01-02", "2020-01-02 00:00", "2020-01-02 00:00:00", "2020-01-02T00:00:00.000"],
    ["2020-01-02 00:00:01"],
    ["3"],  # a code for no value elsewhere
]
MIXED = [
    ["A1", b"A1", " A1", b"A1 ", np.str_("A1"), b"A1\0", bytearray(b"A1"), memoryview(b"A1"), "A\0001"],
    [7, "7", 7.0, "7.0", Decimal("7.00"), Decimal("7E0"), np.int8(7), np.float32(7), np.float64(7), b"7"],
    [70, Decimal("7E1")],
    [0, -0.0, 0.0, "0"],
    [1, "1"],
    [True, np.True_, "True"],
    [2**60, str(2**60), Decimal(2**60)],
    [2**60 + 1, Decimal(2**60 + 1)],
    [2**53 - 1, 2.0**53 - 1],
    [np.float32(2**24 - 1), 2**24 - 1],
    [Decimal("7.5"), "7.5"],
    [
        pd.Timestamp("2020-01-02"),
        datetime.date(2020, 1, 2),
        datetime.datetime(2020, 1, 2),
        np.datetime64("2020-01-02", "ns"),
        "2020-01-02",
    ],
    [UUID(int=5), str(UUID(int=5))],
    [(1, 2), "(1, 2)"],
]
#: Of one type each, for which pandas has rules of its own: it compares text up to a NUL.
NUL = [["A\0001", "A1", "\0A1"], ["A\0002"], ["A", "A\0"]]
PLACES = [[Decimal("1.1"), Decimal("1.1")], [Decimal("1.10")], [Decimal("2.0"), Decimal(2)]]
WHOLE = [[7, 7], [8], [2**24 - 1], [0, 0]]


def objects(cells: list) -> pd.Series:
    """A column of these very cells, of which none is taken for a list of cells."""
    values = np.empty(len(cells), object)
    for k, cell in enumerate(cells):
        values[k] = cell
    return pd.Series(values, name="id", dtype=object)


@dataclass(frozen=True)
class Ids:
    """A column of identifiers, and the patient of each row."""

    values: pd.Series
    patient: list[int]
    in_parquet: bool = True

    @classmethod
    def of(cls, groups: list[list], dtype: object = object, *, in_parquet: bool = True) -> Ids:
        cells = [(cell, k) for k, group in enumerate(groups) for cell in group]
        order = np.random.default_rng(0).permutation(len(cells))
        values = objects([cells[i][0] for i in order]).astype(dtype)
        return cls(values, [cells[i][1] for i in order], in_parquet)

    @property
    def groups(self) -> set[frozenset[int]]:
        """The rows of each patient."""
        return grouped(self.patient)

    def frame(self) -> pd.DataFrame:
        n = len(self.values)
        sex = ["FM"[k % 2] for k in self.patient]
        return pd.DataFrame({"id": self.values, "day": range(n), "sex": sex, "row": range(n)})


def grouped(of_row: list) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero([other == one for other in of_row]).tolist()) for one in set(of_row)}


IDS = {
    "words": Ids.of(WORDS),
    "str": Ids.of(WORDS, "str"),
    "categories": Ids.of(WORDS, "category"),
    "arrow text": Ids.of(WORDS, "string[pyarrow]"),
    "bytes": Ids.of([[word.encode() for word in group] for group in WORDS]),
    "mixed": Ids.of(MIXED, in_parquet=False),
    "NUL": Ids.of(NUL),
    "NUL, str": Ids.of(NUL, "str"),
    "NUL, string": Ids.of(NUL, "string[python]"),
    "decimal places": Ids.of(PLACES, in_parquet=False),
    "sparse": Ids.of(WHOLE, "Sparse[int64]", in_parquet=False),
    "sparse floats": Ids.of(WHOLE, "Sparse[float64]", in_parquet=False),
    "int64": Ids.of([*WHOLE, [2**53 + 1], [2**53]], "int64"),
    "uint64": Ids.of([[2**64 - 1, 2**64 - 1], [2**64 - 2]], "uint64"),
    "nullable": Ids.of(WHOLE, "Int64"),
    "arrow": Ids.of(WHOLE, "int64[pyarrow]"),
    "float64": Ids.of([*WHOLE, [2.0**53 - 1, 2.0**53 - 1], [2.0**53 - 2]], "float64"),
    "float32": Ids.of(WHOLE, "float32"),
    "Float32": Ids.of(WHOLE, "Float32"),
    "decimals": Ids.of([[Decimal(f"{cell}.00") for cell in group] for group in WHOLE]),
    "categories of numbers": Ids.of(WHOLE, "category"),
    "days": Ids.of([[pd.Timestamp("2020-01-02")] * 2, [pd.Timestamp("2020-01-03")]], "datetime64[ns]"),
    "booleans": Ids.of([[True, True], [False]], bool),
}


def quietly(read: Callable, *given: object) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OwnerWarning)
        return read(*given)


def of_histories(rows: pd.DataFrame, schema: PatientSchema) -> set[frozenset[int]]:
    """The rows of each patient, as releases read them."""
    records = reader_of(schema).records(rows)
    return {
        frozenset(int(row) for name, row in record.items() if name.startswith("row@") and row == row)
        for record in records.to_dict("records")
    }


def as_text(values: pd.Series) -> list:
    """Cells as a database writes them to a file of text, where a NUL is refused."""
    return [None if cell is None else _as_text(cell) for cell in values.astype(object)]


def _as_text(cell: object) -> str:
    if isinstance(cell, bytes | bytearray | memoryview | str):
        return str(cell if isinstance(cell, str) else bytes(cell).decode()).replace("\0", "")
    # NumPy 2 writes 2^24 - 1 in float32 as a rounded number
    own = float(cell) if isinstance(cell, np.float32) else cell
    return f"{cell:f}" if isinstance(cell, Decimal) else str(own)


def in_memory(ids: Ids, folder: Path) -> set:
    return of_histories(ids.frame(), SCHEMA)


def at_random(ids: Ids, folder: Path) -> set:
    return of_histories(ids.frame(), SCHEMA.model_copy(update={"keep": "random"}))


def one_csv(ids: Ids, folder: Path) -> set:
    ids.frame().assign(id=as_text(ids.values)).to_csv(folder / "visits.csv", index=False)
    return of_histories(quietly(SCHEMA.read, folder / "visits.csv"), SCHEMA)


def one_parquet(ids: Ids, folder: Path) -> set:
    ids.frame().to_parquet(folder / "visits.parquet", index=False)
    return of_histories(SCHEMA.read(folder / "visits.parquet"), SCHEMA)


def linked(ids: Ids, folder: Path, suffix: str) -> set:
    """Two files, of which one has each patient once, by the spelling of the patient's last row."""
    files = (
        PatientFile(name=f"patients{suffix}", columns=("sex",)),
        PatientFile(name=f"rows{suffix}", columns=("row",)),
    )
    schema = SCHEMA.model_copy(update={"files": files})
    frame = ids.frame()
    if suffix == ".csv":
        frame["id"] = as_text(ids.values)
    one_each = frame[~pd.Series(ids.patient).duplicated(keep="last")]
    for made, file in ((one_each[["id", "sex"]], files[0]), (frame.drop(columns="sex"), files[1])):
        write = made.to_csv if suffix == ".csv" else made.to_parquet
        write(folder / file.name, index=False)
    return of_histories(quietly(schema.read, folder), schema)


def in_parts(ids: Ids, folder: Path) -> set:
    """Each row in a file of its own: the files of a patient have one hash."""
    frame = ids.frame()
    for k in range(len(frame)):
        frame.iloc[[k]].to_parquet(folder / f"{k:03}.parquet", index=False)
    reader = reader_of(SCHEMA)
    parts = ParquetTable(folder).whole_files
    found = [hashes["unit"] for part in parts for _, hashes in units_in(part, reader, "0123456789abcdef")]
    return grouped([tuple(own.tolist()) for own in found])


def sides(ids: Ids, split: Callable) -> set:
    """The rows that every split of 20 leaves on one side."""
    table = PatientTable(ids.frame(), SCHEMA, "made")
    where = np.zeros((len(ids.values), 20), bool)
    for seed in range(20):
        try:
            where[split(table, 0.5, seed)[1].frame["row"], seed] = True
        except DataError as problem:  # one side of so small a table is empty
            if "cannot be split" not in str(problem):
                raise
    return grouped([tuple(own) for own in where])


def evaluated(ids: Ids, folder: Path) -> set:
    frame = ids.frame()
    rows = Tables.of(frame, train=frame, schema=SCHEMA).histories["train"].numbers["row"]
    return {frozenset(int(row) for row in own if row == row) for own in rows}


def attacked(ids: Ids, folder: Path) -> set:
    frame = ids.frame()
    made = _Round.of(lambda *_: None, frame, frame, SCHEMA, lambda *_: None)
    assert made.canaries == len(ids.groups) and grouped(made.base["id"].tolist()) == ids.groups
    return grouped(made.canary.tolist())


READERS = {
    "frame": in_memory,
    "random rows": at_random,
    "CSV": one_csv,
    "Parquet": one_parquet,
    "folder of CSV files": lambda ids, folder: linked(ids, folder, ".csv"),
    "folder of Parquet files": lambda ids, folder: linked(ids, folder, ".parquet"),
    "parts": in_parts,
    "independent split": lambda ids, folder: sides(ids, independent_split),
    "split": lambda ids, folder: sides(ids, train_test),
    "evaluation": evaluated,
    "attack": attacked,
}
WRITES_PARQUET = ("Parquet", "folder of Parquet files", "parts")


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_the_same_patients_whichever_way_they_come_in(reader, tmp_path):
    """Catches a patient who is two for one reader, and two patients who are one: in any type and spelling."""
    wrong = {}
    for k, (name, ids) in enumerate(IDS.items()):
        if reader in WRITES_PARQUET and not ids.in_parquet:
            ids = replace(ids, values=pd.Series(as_text(ids.values)))
        (folder := tmp_path / f"{k}").mkdir()
        try:
            if READERS[reader](ids, folder) != ids.groups:
                wrong[name] = "other patients"
        except DataError as problem:  # as of a file whose patients another one does not know
            wrong[name] = str(problem)
    assert not wrong


def drafted(ids: Ids, folder: Path) -> None:
    twice = pd.concat([ids.frame(), ids.frame()], ignore_index=True)
    infer_patient_schema(twice, unit="id", order="day")


MISSING, ROUNDED, NO_TEXT, NOT_SHOWN = "is missing", "rounded", "not UTF-8", "which a spreadsheet shows"
#: As spreadsheets of several countries, R, Python, Java and Fortran write numbers.
SCIENTIFIC = ["1.23457E+15", "1E+11", "1,23457E+11", "-1E+11", "1e+05", "1e+16", "1.0E11", "1.23457 E+11"]
SCIENTIFIC += [
    "1.23457D+11",
    "1\u00b723457E+11",
    "\uff11E+11",
    "1.23457\u00d710^11",
    "1E\u22123",
    "1.E+11",
    ",5E+9",
]
REFUSED = [
    (MISSING, [None, 1.0]),
    (MISSING, [" ", "A"]),
    (MISSING, ["\u200b", "A"]),
    (MISSING, ["NA", "A"]),
    (MISSING, ["nan", "A"]),
    (MISSING, ["\u00a0? ", "A"]),
    (ROUNDED, [b"1.23457E+15", b"A"]),
    *((ROUNDED, [text, "A"]) for text in SCIENTIFIC),
    (NOT_SHOWN, ["#######", "A"]),
    (NOT_SHOWN, ["#VALUE!", "A"]),
    (NO_TEXT, ["M\ufffdller", "A"]),
    # which files of text do not have
    (ROUNDED, [2.0**53, 1.0]),
    (ROUNDED, [-(2.0**53), 1.0]),
    (ROUNDED, [np.inf, 1.0]),
    (ROUNDED, [7.5, 1.0]),
    (ROUNDED, np.array([2**24, 1], np.float32)),
    (ROUNDED, pd.array([2**24, 1], "float[pyarrow]")),
    (ROUNDED, pd.Categorical([2.0**53, 1.0])),
    (NO_TEXT, [b"\xe6", b"A"]),
]
OF_TEXT = next(k for k, (_, cells) in enumerate(REFUSED) if not isinstance(cells[0], str | bytes | None))


@pytest.mark.parametrize("reader", [*READERS, "draft"])
def test_a_row_of_nobody_or_of_several_patients_is_refused(reader, tmp_path):
    """Catches rows of several persons that pass for one patient's: without an identifier, or with one that
    was rounded. Removing a person then changes a record, which no sensitivity bounds.
    """
    for k, (said, cells) in enumerate(REFUSED[: OF_TEXT if "CSV" in reader else None]):
        if (reader, said) == ("draft", MISSING):
            continue  # refused by the fit, which names the row
        (folder := tmp_path / f"{k}").mkdir()
        # bytes that are no text are refused in any column, before anybody looks for a row
        row = "" if said == NO_TEXT else "row 1.*"
        with pytest.raises(DataError, match=rf"{row}'id' .*{said}.*\(confidential\)$"):
            {**READERS, "draft": drafted}[reader](Ids(pd.Series(cells), [0, 1]), folder)


KINDS = [
    st.text(max_size=5),
    st.text("\0A1\u2212.,E+-\ufffd\ud800", max_size=4),
    st.sampled_from([cell for group in (*WORDS, *MIXED) for cell in group]),
    st.integers(-(2**70), 2**70),
    st.integers(-(2**53) + 1, 2**53 - 1).map(float),
    st.integers(-(2**24) + 1, 2**24 - 1).map(np.float32),
    st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9),
    st.sampled_from(["1.1", "1.10", "2", "2.0", "-0", "0.00"]).map(Decimal),
    st.sampled_from(["2020-01-02T00:00Z", "2020-01-02T01:00+01:00", "2020-01-02"]).map(pd.Timestamp),
    st.booleans(),
    st.dates(),
    st.none(),
]


def test_text_that_no_file_can_hold_is_refused():
    """Catches a crash in a hash, where others are read, by a text that a reader has left undecoded."""
    with pytest.raises(DataError, match=r"row 2: 'id' holds .* not UTF-8"):
        identities(objects(["A", "A\udce4"]))


def accepted(cells: list) -> list[str] | None:
    """The identifiers, or None if one is refused."""
    try:
        return identities(objects(cells)).tolist()
    except DataError:
        return None


@given(st.one_of(*(st.lists(kind, max_size=8) for kind in (st.one_of(*KINDS), *KINDS))))
@example([True, 1])
@example(["A\0001", "A\0002"])
@example([Decimal("1.1"), Decimal("1.10")])
@example([pd.Timestamp("2020-01-02T00:00Z"), pd.Timestamp("2020-01-02T01:00+01:00")])
@settings(deadline=None)
def test_who_a_row_is_about_depends_on_its_own_cell_alone(cells):
    """Catches an identifier that another row changes: pandas takes True for the 1 of an earlier row, and in a
    column of one type it stops at a NUL and takes 1.10 for 1.1.
    """
    alone = [accepted([cell]) for cell in cells]
    whole = accepted(cells)
    assert whole == (None if None in alone else [word for (word,) in alone])
    if whole is not None:
        assert whole == identities(objects(whole)).tolist()


@pytest.mark.slow
def test_a_plain_form_has_no_other():
    """Catches a sign of Unicode by which an identifier is another one when it is read again, such as from a
    synthetic table, or that no reader sees.
    """
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000 and code != 0xFFFD]
    inert = {"Lo", "Cn", "Co"}
    found = [
        s for s in every if unicodedata.category(s) not in inert or unicodedata.normalize("NFKC", s) != s
    ]
    cells = [form.format(s) for s in found for form in ("A{}1", "{}7", "7{0}.{0}0", "-{0}0", "e{}\u0301")]
    words = spellings(objects(cells))
    again = spellings(objects(words.tolist()))
    assert [(a, b) for a, b in zip(words, again, strict=True) if a != b] == []
    blank = [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010)]
    blank += [*range(0x2060, 0x2070), 0x2800, 0x3164, *range(0xFE00, 0xFE10), 0xFFA0, *range(0xFFF0, 0xFFF9)]
    blank += [*range(0xE0100, 0xE01F0)]
    assert [hex(c) for c in blank if spellings(objects([f"{chr(c)}A1{chr(c)}"]))[0] != "A1"] == []


def test_random_rows_are_the_same_in_any_spelling():
    """Catches a table in parts, or a second reading, that keeps other rows of a patient since 7 is "7.0"."""
    schema = SCHEMA.model_copy(update={"keep": "random", "most": 3})
    frame = Ids.of([[k] * 6 for k in range(12)], "int64").frame()
    whole = of_histories(frame, schema)
    assert whole != of_histories(frame, schema.model_copy(update={"keep": "first"}))
    for spelled in (frame["id"].astype(float), frame["id"].map(" {}\u200b".format)):
        assert of_histories(frame.assign(id=spelled), schema) == whole


@pytest.mark.slow
def test_a_patient_in_two_files_is_refused_by_any_spelling(tmp_path):
    """Catches a patient who counts twice in every release of a table in parts."""
    words = IDS["str"]
    rows = sorted(min(words.groups, key=lambda own: (-len(own), min(own))))
    frame = words.frame()
    with threads() as client:
        for k in rows[1:]:
            for name, row in (("a", rows[0]), ("b", k)):
                frame.iloc[[row]].to_parquet(tmp_path / f"{name}.parquet", index=False)
            records = PartitionedRecords(ParquetTable(tmp_path), SCHEMA, client)
            with pytest.raises(DataError, match=r"a\.parquet and \S*b\.parquet hold rows of one patient"):
                records.check()


NEAR = [["A1"], ["a1"], ["007"], ["7"], ["B2", "B2 "], ["70"], ["X0"], ["1E5"], ["100000"], ["5,0"], ["5"]]
NEAR += [["'-C"], ["-C"]]


@pytest.mark.parametrize("parts", [False, True])
def test_spellings_that_stay_apart_are_told_to_the_owner(parts, tmp_path):
    """Catches a patient who is two patients by a capital letter or a lost zero, without a word."""
    given = (SCHEMA, marginals_options(epsilon=1.0, delta=1e-6))

    def check(groups: list) -> None:
        frame = Ids.of(groups).frame()
        if not parts:
            records_of(frame, *given, accept_n_public=True)
            return
        folder = tmp_path / str(len(groups))
        folder.mkdir()
        for k, (_, own) in enumerate(frame.groupby(frame["id"].str.strip())):
            own.to_parquet(folder / f"{k:02}.parquet", index=False)
        with threads() as client:
            records_of(PartitionedRecords(ParquetTable(folder), SCHEMA, client), *given, accept_n_public=True)

    with pytest.warns(OwnerWarning, match=r"^id: 10 identifiers differ from another .*\(confidential\)"):
        check(NEAR)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OwnerWarning)
        check([["A1", "A1 "], ["A2"], ["70"], ["7"]])


def test_a_draft_counts_patients_as_a_fit_does():
    """Catches a largest number of rows below a patient's, or a sex that is drafted as changing."""
    frame = pd.DataFrame(
        {
            "patient_id": [f"P{k}{blank}" for k in range(40) for blank in ("", "", "\u00a0")],
            "day": [*range(3)] * 40,
            "sex": ["F" if k % 3 else "M" for k in range(40) for _ in range(3)],
            "hdl": [40 + (7 * k + 3 * row) % 50 for k in range(40) for row in range(3)],
        }
    )
    schema = infer_patient_schema(frame.sample(frac=1, random_state=0)).schema
    assert (schema.unit, schema.most, schema.per_patient) == ("patient_id", 5, ("sex",))
    (found,) = repeated_persons(frame[["patient_id"]])
    assert (found.distinct, found.most) == (40, 3)


@pytest.mark.parametrize("keep", ["first", "random"])
def test_a_unit_whose_name_is_a_number_is_found(keep):
    """Catches identifiers that the rows are read by, and that the choice of rows or the fit does not find."""
    schema = SCHEMA.model_copy(update={"unit": "5", "keep": keep, "most": 2})
    frame = Ids(pd.Series(["A", "A ", "A", "B"], name="id"), [0, 0, 0, 1]).frame()
    for name in (5, "5"):
        own = frame.rename(columns={"id": name})
        assert records_of(own, schema, marginals_options(epsilon=1.0), accept_n_public=True)[1] == 2
