"""Files: whole or absent, and equal to what was written."""

from __future__ import annotations

import csv
import gzip
import io
import re
import time
import unicodedata
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from table_strategies import random_frame, schemas

from dpsynth.errors import DataError, InputError, OwnerWarning, SchemaError
from dpsynth.table import Column, Schema, read_table, write_table
from dpsynth.table import files as table_io
from dpsynth.table.cells import escape, unescape
from dpsynth.table.csv_format import CsvFormat
from dpsynth.table.parquet import ParquetTable, read_part
from dpsynth.table.reader import Reader

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90, missing=True),
        Column(name="sex", kind="binary", categories=("F", "M"), missing=True),
    )
)
FRAME = SCHEMA.conform(pd.DataFrame({"age": [20, None, 40], "sex": ["F", "M", None]})).frame


def parquet_works() -> bool:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


SUFFIXES = [
    ".csv",
    pytest.param(
        ".parquet", marks=pytest.mark.skipif(not parquet_works(), reason="pyarrow does not import here")
    ),
]


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(schema=schemas(), n=st.integers(0, 12), seed=st.integers(0, 99))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_round_trip(tmp_path, suffix: str, schema: Schema, n: int, seed: int) -> None:
    """A digit, a missing mark, a type or a row lost between writing and reading."""
    frame = schema.conform(random_frame(schema, n, seed)).frame
    path = tmp_path / f"table{suffix}"
    assert write_table([frame.iloc[: n // 2], frame.iloc[n // 2 :]], path) == n
    pd.testing.assert_frame_equal(read_table(path, schema), frame, check_exact=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("trouble", [RuntimeError("stop"), KeyboardInterrupt()])
def test_failure_midway_leaves_nothing(tmp_path, suffix: str, trouble: BaseException) -> None:
    """Half a table under the final name, or an old table destroyed by a failed new one."""

    def frames():
        yield FRAME
        raise trouble

    path = tmp_path / f"table{suffix}"
    with pytest.raises(type(trouble)):
        write_table(frames(), path)
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"old")
    with pytest.raises(type(trouble)):
        write_table(frames(), path)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"old"
    write_table(FRAME, path)
    assert len(read_table(path, SCHEMA)) == 3
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_writes_one_piece_at_a_time(tmp_path) -> None:
    """A writer that first collects all pieces would not hold a table larger than memory."""
    target = tmp_path / "t.csv"
    sizes = []

    def frames():
        for _ in range(3):
            sizes.append(sum(entry.stat().st_size for entry in tmp_path.iterdir()))
            yield pd.concat([FRAME] * 5000)

    assert write_table(frames(), target) == 45_000
    assert sizes[0] == 0
    assert sizes[2] > sizes[1] + 10_000


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_pieces_must_agree(tmp_path, suffix: str) -> None:
    """A later piece with other columns would shift values under the wrong names."""
    with pytest.raises(DataError, match="other columns than the first"):
        write_table([FRAME, FRAME[["sex", "age"]]], tmp_path / f"t{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age,sex\n20,F\n30,X\n", "column 'sex', row 2 ({path}, line 3): 'X' is not one of"),
        ("age,sex\n20,F\n\nold,M\n", "column 'age', row 2 ({path}, line 4): 'old' is not a number"),
        ("age,sex\n20,F,1\n", "{path}, line 2: 3 cells where the header has 2"),
        ("age,sex\n20,F\n30\n", "{path}, line 3: 1 cells where the header has 2"),
        ('age,sex\n20,"F\n', "{path}, line 2: not CSV"),
        ("", "{path}: the file has no header line"),
        ("age\n20\n", "lacks the column(s) 'sex'"),
        ("age,sex,age\n20,F,30\n", "'age' more than once"),
    ],
)
def test_csv_errors_name_the_line(tmp_path, text: str, words: str) -> None:
    """A line number that ignores blank lines, or a ragged row filled up in silence."""
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=re.escape(words.format(path=path))):
        read_table(path, SCHEMA)


def test_unreadable_files(tmp_path) -> None:
    """A folder, an absent file or bytes that are no text must not end in a traceback."""
    with pytest.raises(DataError, match="cannot be read"):
        read_table(tmp_path / "none.csv", SCHEMA)
    with pytest.raises(DataError, match="cannot be read"):
        read_table(tmp_path / "none.csv")
    path = tmp_path / "t.csv"
    path.write_bytes(b"age,sex\n20,\x81\n")  # neither UTF-8 nor what spreadsheets wrote before it
    for schema in (SCHEMA, None):
        with pytest.raises(
            DataError, match=r"line 2: a byte that is neither UTF-8 nor cp1252.*csv: {encoding: …}"
        ):
            read_table(path, schema)
        with pytest.raises(DataError, match=r"its bytes are no text in utf-8.*csv: {encoding: …}"):
            read_table(path, schema, CsvFormat(encoding="utf-8"))
    (tmp_path / "t.parquet").write_bytes(b"not parquet")
    with pytest.raises(DataError):
        read_table(tmp_path / "t.parquet")
    path.write_bytes(b"a,b\n1,2,3\n")
    with pytest.raises(DataError, match="3 cells where the header has 2"):
        read_table(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"age,sex\n20,F\n3\x000,M\n", "line 3: a NUL byte: the file is damaged or not UTF-8 text"),
        ("age,sex\n20,F\n".encode("utf-16-le"), "a NUL byte"),
        (b"age,sex,age\n20,F,30\n", "the header names 'age' more than once. Give each column"),
        (
            b"age,sex\n20,F\n30,a, b\n",
            "line 3: 3 cells where the header has 2. Put a cell that holds a comma",
        ),
        (b"age,sex\n20\n", "line 2: 1 cells where the header has 2"),
        (b"", "the file has no header line"),
    ],
)
@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_damaged_files(tmp_path, content: bytes, words: str, schema: Schema | None) -> None:
    """A file in another format must be told by a sentence, with a schema and while one is drafted."""
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=re.escape(words)):
        read_table(path, schema)


FORMULAS = (
    '=HYPERLINK("http://x")',
    "=1+1",
    "@sum",
    "+A1",
    "-A1|x",
    "'=1",
    "＝1+1",
    "-",
    "++",
    "-1.5",
    "F",
    "'F",
)


FORMATS = (
    ("age;bmi;sex\n20;20,5;m\xe4\n30;1.234;f\n".encode("latin-1"), None),
    (
        "age;bmi;sex\n20;20,5;mä\n30;31;f\n".encode("cp1252"),
        "semicolons .*, decimal commas, .* as cp1252, first in line 2 ",
    ),
    ("age\tbmi\tsex\n20\t20,5\tmä\n30\t31\tf\n".encode("utf-16"), "tabs .*, decimal commas, .* utf-16"),
    ("age|bmi|sex\n20|20.5|mä\n30|31|f\n".encode("utf-8-sig"), "bars between cells .guessed; .*csv: {sep: "),
    ('"age";"bmi";"sex"\r\n20;"20,5";mä\r\n30;31;f\r\n'.encode(), "semicolons between cells, decimal commas"),
    ('age,bmi,sex\n20,"20,5",mä\n30,31,f\n'.encode(), "read with decimal commas .guessed; .*csv: {decimal: "),
)
WRITTEN = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="bmi", kind="continuous", lower=10, upper=60, decimals=1),
        Column(name="sex", kind="binary", categories=("f", "mä")),
    )
)


@pytest.mark.parametrize(
    ("content", "said"), FORMATS[1:], ids=["cp1252", "utf-16", "bars", "quoted", "commas"]
)
def test_other_formats_are_guessed_and_said(tmp_path, content: bytes, said: str) -> None:
    """Cells that are not cut, 20,5 that is no number or 205, mojibake, or a guess in silence."""
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.warns(OwnerWarning, match=said):
        frame = read_table(path, WRITTEN)
    assert frame.to_numpy().tolist() == [[20, 20.5, "mä"], [30, 31.0, "f"]]
    with pytest.warns(OwnerWarning, match=said):
        cells = read_table(path)
    assert cells.to_numpy().tolist() == [["20", "20.5", "mä"], ["30", "31", "f"]]


def read_back(path: Path, cells: list[bytes]) -> list | None:
    """The cells of a file with these bytes, None where they are refused."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wb") as file:
        file.write(b"a;b\n" + b"".join(b"%d;%s\n" % (k, cell) for k, cell in enumerate(cells)))
    try:
        return read_table(path)["b"].tolist()
    except DataError:
        return None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpsynth.errors.OwnerWarning")
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=4).filter(lambda cell: not {*cell} & {*b'\0\r\n;"'}),
            st.text("\u00e4\u20ac\U0001f600z", max_size=3).map(str.encode),
        ),
        max_size=4,
    ),
    st.sampled_from(["t.csv", "t.csv.gz"]),
)
@example([b"\xc3\xa4", b"M\xfcller", b"\xc2\xa0x"], "t.csv")
@example([b"\xe2\x82", b"\xac", b"\x81"], "t.csv")
def test_no_cell_decides_how_another_is_decoded(cells, name):
    """Catches one byte of one record that makes mojibake of all others, their identifiers among it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        alone = [read_back(path, [cell]) for cell in cells]
        expected = None if None in alone else [one for (one,) in alone]
        assert read_back(path, cells) == expected


def test_a_large_file_is_decoded_as_a_small_one(tmp_path):
    """Catches a character that is cut, or read as two of cp1252, where a block of bytes ends."""
    path = tmp_path / "t.csv"
    rows = [("x" * (k % 7) + "\u00e4\u20ac").encode() for k in range(30_000)]
    rows[20_000] = b"\xe4"
    path.write_bytes(b"a\n" + b"\n".join(rows) + b"\n")
    with pytest.warns(
        OwnerWarning,
        match=r"not UTF-8 as cp1252, first in line 20002 \(guessed; .*{encoding: …}",
    ):
        found = read_table(path)["a"].tolist()
    assert found == [row.decode() if k != 20_000 else "\u00e4" for k, row in enumerate(rows)]


NOTED = Schema(
    ignored=("note",),
    columns=(
        Column(name="age", kind="integer", lower=0, upper=100, missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
    ),
)


def noted(path: Path, rows: list[str], order: Sequence[int], sep: str) -> list:
    """The ages that are read of a file. ``order``: of the columns age, sex, note."""
    opened = gzip.open if path.suffix == ".gz" else open
    lines = [sep.join(cells[k] for k in order) for cells in [["age", "sex", "note"], *rows]]
    with opened(path, "wt", newline="") as file:
        file.write("\n".join(lines) + "\n")
    return read_table(path, NOTED)["age"].dropna().tolist()


@pytest.mark.parametrize(
    ("between", "order", "sep", "name"),
    [
        (0, (0, 1, 2), ",", "t.csv"),
        (0, (0, 2, 1), "\t", "t.csv.gz"),
        (1, (2, 0, 1), "\t", "t.csv"),
        (1, (0, 1, 2), ",", "t.csv.gz"),
        (20, (0, 2, 1), ",", "t.csv"),
        (20, (2, 0, 1), "\t", "t.csv.gz"),
    ],
)
def test_a_quote_that_swallows_records_is_refused(between, order, sep, name, tmp_path):
    """Catches two rows with a stray quote in a column that nobody reads, and the loss of all between them."""
    honest = [[str(k), "FM"[k % 2], ["ok", "", "3 tablets"][k % 3]] for k in range(20, 20 + between)]
    hurt = [["50", "F", '"hurt'], *honest, ["51", "M", 'see above"']]
    first = [["10", "F", "ok"], ["11", "M", "'1"]]
    what = rf"line 4: a double quote opens in column 'note' and closes in line {5 + between}, but line 5"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OwnerWarning)
        with pytest.raises(DataError, match=what):
            noted(tmp_path / name, [*first, *hurt, *first], order, sep)


def test_a_quote_of_an_odd_row_swallows_none(tmp_path):
    """Catches records that are lost since the row that holds them is unlike them in a column nobody reads."""
    rows = [
        ["40", "F", "W3"],
        ["50", "F", '"W3'],
        *[[str(k), "", "W3"] for k in (20, 21)],
        ["51", "F", 'W4"'],
    ]
    for ward in ("none", "", "W1"):
        lines = [
            "ward,note,age,sex",
            *(f"{ward if k in (1, 4) else 'W3'},{n},{a},{s}" for k, (a, s, n) in enumerate(rows)),
        ]
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
        with pytest.raises(
            DataError, match="line 3: a double quote opens in column 'note' and closes in line 6"
        ):
            read_table(tmp_path / "t.csv", NOTED.model_copy(update={"ignored": ("note", "ward")}))


@pytest.mark.filterwarnings("ignore::dpsynth.errors.OwnerWarning")
@pytest.mark.parametrize(
    "note",
    [
        "line one\nline two",
        "pain, fever, cough\npain, fever, cough\npain, fever, cough",
        "Dear colleague,\n\nMr X, aged 50, is well\nHe has pain, fever, cough\nYours, Dr Y",
        "Na 140, K 4.1, Cl 100\nNa 138, K 4.0, Cl 99\nNa 138, K 4.0, Cl 99",
        'he said ""see above""\n\n""hurt""',
        "a,b,c\nd,e,f\ng,h,i",
        "\n",
        "1,2\n3,4\n5,6",
    ],
)
def test_a_note_of_several_lines_is_read(note, tmp_path):
    """Catches a clinician's note with commas and line breaks that is taken for swallowed records."""
    rows = [["50", "F", f'"{note}"'], ["", "F", "ok"], ["51", "M", f'"{note}"']]
    for order in ((0, 1, 2), (2, 0, 1), (0, 2, 1)):
        assert noted(tmp_path / "t.csv", rows, order, ",") == [50, 51], order


def test_formats_that_are_given_are_not_guessed(tmp_path) -> None:
    """An option that is not passed on, a warning about what was said, or 1.234 read as a bit above one."""
    path = tmp_path / "t.csv"
    given = CsvFormat(sep=";", decimal=",", encoding="latin-1")
    path.write_bytes(FORMATS[0][0])
    with pytest.raises(DataError, match="column 'bmi' holds a number with a decimal point"):
        read_table(path, WRITTEN, given)
    path.write_text('age,bmi,sex\n20,"20,5",f\nno,1,f\n')
    with pytest.raises(DataError, match=r"column 'bmi', row 1 .*'20,5' is not a number"):
        ignoring = WRITTEN.select(["bmi", "sex"]).model_copy(update={"ignored": ("age",)})
        read_table(path, ignoring, CsvFormat(decimal="."))
    with pytest.raises(DataError, match=r"column 'age', row 2 .*line 3.: 'no' is not a number"):
        read_table(path, WRITTEN, CsvFormat(decimal=","))
    with pytest.raises(DataError, match=r"seem to be separated by a comma. If so, write csv: {sep: ','} in"):
        read_table(path, None, CsvFormat(sep=";"))
    for wrong in ({"sep": ";;"}, {"decimal": ";"}, {"encoding": "utf-9"}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))} .*{next(iter(wrong.values()))}"):
            CsvFormat(**wrong)


def test_our_own_files_are_read_with_a_schema_of_semicolons(tmp_path) -> None:
    """A synthetic table that its own schema refuses, because the owner's files are written otherwise."""
    schema = WRITTEN.model_copy(update={"csv": CsvFormat(sep=";", decimal=",", encoding="latin-1")})
    path = tmp_path / "t.csv"
    path.write_bytes("age;bmi;sex\n20;20,5;f\n30;21,5;mä\n".encode("latin-1"))
    theirs = read_table(path, schema)
    assert theirs["bmi"].tolist() == [20.5, 21.5] and theirs["sex"].tolist() == ["f", "mä"]
    write_table(theirs, path)
    pd.testing.assert_frame_equal(read_table(path, schema), theirs)


def test_commas_that_are_no_decimals(tmp_path) -> None:
    """Thousands read as decimals, or a category 1,2 that a column of decimals turns into 1.2."""
    path = tmp_path / "t.csv"
    rows = [
        f"{cost};{x};{answers}" for cost, x, answers in (("1,234", "0,5", "1,2"), ("12,000", "2", "left"))
    ]
    path.write_text("\n".join(["cost;x;answers", *rows * 20]) + "\n")
    with pytest.warns(OwnerWarning, match="decimal commas"):
        cells = read_table(path)
    assert cells["answers"].tolist()[:2] == ["1,2", "left"] and cells["x"].tolist()[:2] == ["0.5", "2"]
    path.write_text("\n".join(["cost;n", "1,234;1", "12,000;2"]) + "\n")
    with pytest.warns(OwnerWarning, match="semicolons between cells .guessed"):
        assert read_table(path)["cost"].tolist() == ["1,234", "12,000"]
    for cells in ("1,234 12,000", "1,2 1,2,3", "1,2 0.5"):
        a, b = cells.split()
        path.write_text(f'n,x\n1,"{a}"\n2,"{b}"\n')
        assert read_table(path)["x"].tolist() == [a, b]
    path.write_text('n,x\n1.5,"1,2"\n2,"1,3"\n')
    assert read_table(path)["x"].tolist() == ["1,2", "1,3"]
    named = Schema(columns=(Column(name="x", kind="binary", categories=("1,2", "1,3")),), ignored=("n",))
    path.write_text('n,x\n1,"1,2"\n2,"1,3"\n')
    assert read_table(path, named)["x"].tolist() == ["1,2", "1,3"]


def test_a_separator_in_a_declared_name(tmp_path) -> None:
    """Our own table whose only column is called a;b, cut in two."""
    schema = Schema(columns=(Column(name="a;b", kind="integer", lower=0, upper=9),))
    write_table(schema.conform(pd.DataFrame({"a;b": [1, 2]})).frame, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv", schema)["a;b"].tolist() == [1, 2]


def test_other_columns_are_left_out_by_one_word(tmp_path) -> None:
    """A column that nobody named is read, or must be named."""
    path = tmp_path / "t.csv"
    path.write_text("age,sex,free text\n20,F,x\n")
    with pytest.raises(DataError, match="or write other_columns: ignore there"):
        read_table(path, SCHEMA)
    schema = Schema.from_yaml(SCHEMA.to_yaml() + "other_columns: ignore\n")
    assert list(read_table(path, schema)) == ["age", "sex"]
    assert Schema.from_yaml(schema.to_yaml()) == schema and schema.digest() != SCHEMA.digest()


def test_formulas_in_text_are_written_as_text(tmp_path) -> None:
    """A category that a spreadsheet runs when it opens the table; a category changed by the cure."""
    words = [word for word in FORMULAS if word != "=1"]
    schema = Schema(
        columns=(
            Column(name="note", kind="categorical", categories=tuple(words), missing=True),
            Column(name="=x", kind="integer", lower=-9, upper=9),
        )
    )
    frame = schema.conform(pd.DataFrame({"note": [*words, None], "=x": -4})).frame
    path = tmp_path / "t.csv"
    write_table([frame.iloc[:5], frame.iloc[5:]], path)
    with open(path, newline="") as file:
        cells = list(csv.reader(file))
    assert [cell for row in cells for cell in row if re.match(r"[=@＝]|[-+]\w*[A-Z]", cell)] == []
    assert cells[0] == ["note", "'=x"] and {row[1] for row in cells[1:]} == {"-4"}
    assert [row[0] for row in cells[8:]] == ["-", "++", "-1.5", "F", "'F", ""]
    pd.testing.assert_frame_equal(read_table(path, schema), frame)
    write_table(frame, path, escape_formulas=False)
    assert path.read_text().startswith('note,=x\n"=HYPERLINK(""http://x"")",-4\n=1+1,-4\n')
    pd.testing.assert_frame_equal(read_table(path, schema), frame)
    with pytest.raises(SchemaError, match="differ by an apostrophe"):
        Column(name="x", kind="binary", categories=("=1", "'=1"))


@pytest.mark.parametrize("cut", ["semicolon", "tab", "line break", "carriage return", "bar"])
def test_formulas_are_text_where_other_programs_cut_cells(tmp_path, cut) -> None:
    """A formula that runs in a spreadsheet whose cells end at a semicolon or a tab, or whose rows at a break.

    Quotes are no help: to such a program a quote in the middle of a cell is a sign like any other.
    """
    sign = {"semicolon": ";", "tab": "\t", "line break": "\n", "carriage return": "\r", "bar": "|"}[cut]
    words = [
        f"a{sign}=1+1",
        f"a{sign}{sign}+x{sign}@y",
        f"{sign}-x",
        f"'{sign}'=1",
        f"a{sign}-1.5",
        f"x{sign}-",
    ]
    frame = pd.DataFrame({"note": words, f"b{sign}=c": ["F"] * len(words)})
    write_table(frame, tmp_path / "t.csv")
    text = (tmp_path / "t.csv").read_bytes().decode()
    cells = [cell.strip('"') for cell in re.split(r"[;|\t\r\n]", text)]
    assert [cell for cell in cells if re.match(r"[=@＝]|[-+]\w*[A-Za-z]", cell)] == []
    assert any(cell.startswith("-1.5") for cell in cells)  # a number is none
    if cut in ("semicolon", "bar"):  # a category is one line
        columns = (
            Column(name="note", kind="categorical", categories=tuple(words)),
            Column(name=f"b{sign}=c", kind="binary", categories=("F", f"M{sign}=1")),
        )
        assert read_table(tmp_path / "t.csv", Schema(columns=columns)).equals(frame)


def begins_a_formula(cell: str, cut: str) -> bool:
    """Whether a spreadsheet may run a cell that a reader gave, after what it may skip at the cell's ends."""

    def skipped(sign: str) -> bool:
        return (
            sign == '"'
            or unicodedata.category(sign) in ("Cc", "Cf", "Zs", "Zl", "Zp")
            or sign in "\u3164\ufe0f"
        )

    kept = [not skipped(sign) for sign in cell]
    if True not in kept:
        return False
    seen = cell[kept.index(True) : len(kept) - kept[::-1].index(True)]
    if seen[0] not in "=+-@＝＋－＠﹦﹢﹣﹫":
        return False
    # to a reader with another sign between cells, the numbers of several of our cells are one text
    first = seen if cut == "," else seen.split(",")[0].strip('" ')
    return re.fullmatch(r"[+-]*(?:\d+\.?\d*|\.\d+)?", first) is None


DANGEROUS = st.text(
    alphabet="=+-@＝﹦﹢﹣﹫';|\t\r\n\v\u2028, \"\u200b\ufeff\u00a0\u3164\ufe0f1.aF", max_size=12
)


@given(DANGEROUS)
@example('a;"=1+1;b')
@example("x; =1")
@example("\t\t'=1")
def test_escaped_text_comes_back(text) -> None:
    """An apostrophe too many or too few in text that is written and read, or two texts that become one."""
    written = escape(text)
    assert unescape(written) == text and (escape(written) == written) == (written == text)
    for piece in re.split(r"[;|\t\r\n\v\u2028]", written):
        assert not begins_a_formula(piece, "")


@given(
    st.lists(st.tuples(DANGEROUS, st.sampled_from((-1, 0, 2)), DANGEROUS), min_size=1, max_size=3), DANGEROUS
)
@example([('a;"=1+1;b', 2, "ok")], "w")
@example([("a;", 0, "=1"), ('b"', 0, ';"=1')], "w")
@example([("a", -1, "1;-|")], "w")
def test_no_reader_finds_a_formula(tmp_path_factory, rows, name) -> None:
    """A quote that is a sign like any other to a reader with semicolons, and so hides what follows it.

    The judge is Python's own reader of CSV files, with each sign that programs put between cells.
    """
    names = ["first", "number", f"n{name}"]
    path = tmp_path_factory.getbasetemp() / "formulas.csv"
    write_table(pd.DataFrame(rows, columns=names), path)
    text = path.read_bytes().decode()
    for cut in ",;\t|":
        try:
            cells = list(csv.reader(io.StringIO(text, newline=""), delimiter=cut))
        except csv.Error:  # a line break that this reader does not take
            continue
        assert [cell for row in cells for cell in row if begins_a_formula(cell, cut)] == []
    if "\r" not in text:
        cells = list(csv.reader(io.StringIO(text, newline="")))
        kept = [[unescape(cell) for cell in row] for row in cells if row]
        assert kept == [names, *([first, str(number), last] for first, number, last in rows)]


@given(st.lists(DANGEROUS, min_size=1, max_size=4, unique=True))
@example(['a;"=1+1;b', "ok"])
@example(["a;\u200b=1", "﹦1"])
def test_categories_that_look_like_formulas_come_back(tmp_path_factory, words) -> None:
    """Categories of one table that its own file gives back as others, or not at all."""
    try:
        note = Column(name="note", kind="categorical", categories=tuple(words))
    except SchemaError:
        return
    frame = pd.DataFrame({"note": words})
    path = tmp_path_factory.getbasetemp() / "categories.csv"
    write_table(frame, path)
    assert read_table(path, Schema(columns=(note,)))["note"].tolist() == words


def test_no_sign_that_is_not_seen_hides_a_formula() -> None:
    """A blank, a control or a format sign of some script before a formula, which a spreadsheet skips."""
    unseen = [
        chr(n) for n in range(0x110000) if unicodedata.category(chr(n)) in ("Cc", "Cf", "Zs", "Zl", "Zp")
    ]
    assert [
        sign for sign in unseen for text in (f"{sign}=1", f"a;{sign}=1") if "'=1" not in escape(text)
    ] == []


def test_a_long_cell_is_escaped_in_time() -> None:
    """A cell of blanks that takes hours, because each of them is a start of its own."""
    for sign in ["\t", " ", ";", "=", "+", "'", "; ", "+;", "-1;", '"']:
        text = sign * (131_072 // len(sign))
        start = time.process_time()
        assert unescape(escape(text)) == text
        assert time.process_time() - start < 2


def test_other_programs_files(tmp_path) -> None:
    """A byte order mark, CRLF, blanks, NA and compression are all common, and none is an error."""
    text = b"\xef\xbb\xbf age , sex\r\n 20 ,F\r\nNA, M\r\n40.0,\r\n"
    (tmp_path / "t.csv").write_bytes(text)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text))
    for name in ("t.csv", "t.csv.gz"):
        pd.testing.assert_frame_equal(read_table(tmp_path / name, SCHEMA), FRAME)


def test_na_that_is_a_category(tmp_path) -> None:
    """Sodium (Na), Namibia (NA): a declared category is no missing value, in that column only."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\nNA,x\nx,NA\n")
    schema = Schema(
        columns=(
            Column(name="a", kind="binary", categories=("NA", "x")),
            Column(name="b", kind="categorical", categories=("x",), missing=True),
        )
    )
    frame = read_table(path, schema)
    assert frame["a"].tolist() == ["NA", "x"]
    assert frame["b"].isna().tolist() == [False, True]


def test_values_outside_bounds_are_kept(tmp_path) -> None:
    """Reading must not clip: the count of clipped values is taken when the records are encoded."""
    path = tmp_path / "t.csv"
    path.write_text("age,sex\n300,F\n")
    assert read_table(path, SCHEMA)["age"].tolist() == [300]


def test_a_line_without_end_is_refused_before_it_is_in_memory(tmp_path):
    """A compressed file of a few kilobytes, which stands for gigabytes without a line break."""
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'age,sex\n"')
        for _ in range(40):
            file.write(b"x" * 10**6)
    with pytest.raises(DataError, match=r"line 2: longer than 16,777,216 characters.*\(confidential\)$"):
        read_table(path, SCHEMA)


@pytest.mark.parametrize("encoding", ["zlib", "base64", "undefined", "utf-8\0"])
def test_an_encoding_that_is_no_text_is_refused(encoding):
    """Encodings of Python that turn bytes into bytes, found only when the file is read."""
    with pytest.raises(InputError, match=re.escape(f"encoding {encoding!r} is not known")):
        CsvFormat(encoding=encoding)


def test_a_header_of_many_names_is_read_in_one_pass(tmp_path):
    """Each name compared with all before it, or each column put into a growing table: this took minutes."""
    path = tmp_path / "t.csv"
    path.write_text(",".join(f"c{i}" for i in range(30_000)) + "\n")
    assert read_table(path).shape == (0, 30_000)


@pytest.mark.slow
def test_many_categories_and_words_that_are_none(tmp_path):
    """Each word that is no category compared with every one: 50,000 of them would take hours."""
    many = Schema(
        columns=(Column(name="code", kind="categorical", categories=tuple(f"c{i}" for i in range(200_000))),)
    )
    path = tmp_path / "t.csv"
    pd.DataFrame({"code": [f"d{i}" for i in range(50_000)]}).to_csv(path, index=False)
    with pytest.raises(DataError, match=r"'d0' is not one of .* and 199,990 more \(50,000 such cells\)"):
        read_table(path, many)


@pytest.mark.skipif(not parquet_works(), reason="pyarrow does not import here")
def test_a_parquet_file_that_does_not_fit_in_memory_is_refused(tmp_path, monkeypatch):
    """A few kilobytes that stand for billions of cells: the process is killed without a word."""
    path = tmp_path / "t.parquet"
    pd.DataFrame({"age": [40] * 10**6}).to_parquet(path)
    assert path.stat().st_size < 10**5
    monkeypatch.setattr(table_io, "memory_bytes", lambda: 7.9e6)
    with pytest.raises(DataError, match=r"its 1,000,000 rows need .* Read it in parts.*\(confidential\)$"):
        read_table(path)
    monkeypatch.setattr(table_io, "memory_bytes", lambda: 8e6)
    assert len(read_table(path)) == 10**6


@pytest.mark.skipif(not parquet_works(), reason="pyarrow does not import here")
def test_text_of_a_parquet_file_that_is_not_utf_8(tmp_path):
    """Bytes that only turn out to be no text where the column is looked at, far from the file's name."""
    path = tmp_path / "t.parquet"
    pd.DataFrame({"sex": ["Fxxxx"] * 3}).to_parquet(path, compression=None, use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"Fxxxx", b"\xffxxxx"))
    with pytest.raises(DataError, match=r"t\.parquet: .*UTF-?8"):
        read_table(path)
    reader = Reader(SCHEMA.select(["sex"]))
    with pytest.raises(DataError, match=r"t\.parquet: .*UTF-?8"):
        list(read_part(ParquetTable(path).parts[0], reader))
