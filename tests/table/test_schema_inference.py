"""Drafts of schemas."""

from __future__ import annotations

import re
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_strategies import random_frame, schemas

from dpsynth.errors import DataError, PrivacyError
from dpsynth.table import (
    Column,
    Schema,
    infer_schema,
    read_table,
    require_reviewed,
)
from dpsynth.table.inference import limits_of_data


def draft(values: object):
    return infer_schema(pd.DataFrame({"x": values})).schema["x"]


@given(schemas(), st.integers(2, 15), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_draft_fits_its_table_and_marks_everything(schema: Schema, n: int, seed: int) -> None:
    """A field read off the records but not marked would be taken for public knowledge."""
    frame = schema.conform(random_frame(schema, n, seed)).frame
    frame["filler"] = 1  # dates, say, are left out
    drafted = infer_schema(frame).schema
    for column in drafted.columns:
        fields = set(column.model_fields_set) - {"name", "unreviewed"}
        assert set(column.unreviewed) == fields
        assert "missing" in column.unreviewed
    assert drafted.n_public is None  # the number of rows is the records' secret too
    with pytest.raises(PrivacyError):
        require_reviewed(drafted)
    conformed = drafted.conform(frame)
    assert set(conformed.clipped.values()) <= {0}
    assert Schema.from_yaml(drafted.to_yaml()) == drafted


def test_kinds() -> None:
    """Each dtype must become the kind that a reader would have written."""
    assert (draft([1, 5, 9]).kind, draft([1, 5, 9]).upper) == ("integer", 9)
    assert (draft([1.0, 5.0, None]).kind, draft([1.0, 5.0, None, 9]).kind) == ("binary", "integer")
    assert draft([0, 1, 1]).categories == (0, 1)
    assert draft([True, False]).categories == (False, True)
    assert draft(pd.Series([True, None], dtype=object)).categories == (False, True)
    assert draft(["b", "a", "c"]).categories == ("a", "b", "c")
    assert draft([0.25, 0.5, 1.0]).decimals == 2
    assert draft([0.1, 0.2, 1 / 3]).resolution is None
    assert draft([0.5, 1.5, 100.0]).scale == "log"
    ordered = draft(pd.Categorical(["low", "high"], categories=["low", "mid", "high"], ordered=True))
    assert (ordered.kind, ordered.categories) == ("ordinal", ("low", "mid", "high"))
    assert draft([1, None, 3, 4]).missing
    assert not draft([1, 2, 3]).missing


def test_constant_column() -> None:
    """A constant has no width between its bounds: it must become its only category."""
    assert draft([3, 3]).categories == (3,)
    assert draft([2.5, 2.5]).categories == (2.5,)
    assert draft(["a", "a"]).categories == ("a",)


def test_left_out() -> None:
    """Identifiers, free text and numbers in other writings must be left out, with a sentence."""
    for values, words in [
        ([None, None], "left out: x: has no values"),
        (["NA", "NA"], "left out: x ('NA' in 2 cells): has no values"),
        (pd.to_timedelta([1, 2], unit="D"), "left out: x: holds durations. Give them as numbers"),
        (["03-Mar-2019 10:15", "12:30"], "holds dates. Write them all alike, such as 2010-01-31"),
        (
            ["0x1F", "0xff", "0x00"],
            "left out: x (such as '0x1F'): holds hexadecimal numbers. Write them as decimal",
        ),
        (["3,5", "4,1", "5"], "left out: x (such as '3,5'): holds numbers with commas. Write decimal points"),
        (["945,31", "1.641,67", "730,71", "12.641,67"], "holds numbers with commas. Write decimal points"),
        (
            ["1,200.50", "1,641.67", "12,730", "1,234,567.8"],
            "numbers with commas. Write decimal points, and no",
        ),
        (
            ["1 200,50", "1\u00a0641,67", "12'730,0", "3,5"],
            "numbers with commas. Write decimal points, and no",
        ),
        (["11/14/22", "1/2/23", "12/31/21"], "holds dates with years of two digits. Write years of four"),
        (["14-Nov-22", "02-Jan-23", "31 Dec 21 10:15"], "holds dates with years of two digits. Write years"),
        (["11/14/22", "1/2/2023", "08:15"], "holds dates. Write them all alike, such as 2010-01-31"),
        (["12 %", "3%"], "holds percentages. Write the numbers without the sign"),
        ([f"patient {i}" for i in range(120)], "x (120 in 120 rows): has many different words"),
        ([f"p{i}" for i in range(20)], "x (20 in 20 rows): has many different words: identifiers"),
        ([7 * i + i % 3 for i in range(200)], "x (200 in 200 rows): has a different whole number in nearly"),
        ([i - i % 10 // 9 for i in range(1500)], "x (1,350 in 1,500 rows): has a different whole number"),
        (list(range(40, 65)), "(25 in 25 rows)"),  # the row's number
        ([1, 2**60, 2**61], "beyond 2**53"),
        (["a\nb", "a\nb", "c"], "must be one line of text"),
    ]:
        made = infer_schema(pd.DataFrame({"x": values, "y": 0}))
        assert made.schema.ignored == ("x",) and made.schema.names == ("y",)
        assert words in str(made.remarks[0])
        with pytest.raises(DataError, match="cannot be drafted: no column is left"):
            infer_schema(pd.DataFrame({"x": values}))


ADMITTED = pd.date_range("2019-01-07", "2022-11-30", periods=200).normalize()


@pytest.mark.parametrize("written", ["datetime", "%Y-%m-%d", "%d.%m.%Y", "%Y%m%d", "time"])
def test_dates_that_stand_for_none_are_asked_about(written: str) -> None:
    """Catches 2099-12-31 in one of nine rows as an upper bound without a question, as 999 has one."""
    dates = pd.Series([*ADMITTED, *pd.to_datetime(["2099-12-31"] * 25 + ["1900-01-01"])])
    if written == "time":
        dates = dates + pd.to_timedelta(np.r_[np.arange(200), np.zeros(26)], unit="h")
    elif written == "%Y%m%d":
        dates = dates.dt.strftime(written).astype(int)
    elif written != "datetime":
        dates = dates.dt.strftime(written)
    made = infer_schema(pd.DataFrame({"x": dates, "y": 0}))
    (asked,) = [remark for remark in made.questions if "may stand for none" in remark.text]
    assert asked.column == "x" and "missing_codes" in asked.text
    assert asked.detail == "1900-01-01 in 1 cell, 2099-12-31 in 25 cells"


@pytest.mark.parametrize(
    "dates",
    [
        ADMITTED,
        [*ADMITTED, pd.Timestamp("2022-12-31"), *pd.to_datetime(["2019-01-01"] * 3)],
        pd.to_datetime([f"{year}-01-01" for year in range(1900, 2000)]),
        pd.to_datetime(["2019-01-01"] * 9 + ["2099-12-31"]),
    ],
)
def test_usual_dates_are_not_asked_about(dates) -> None:
    """Catches a question about the first day of a year in which patients were admitted."""
    made = infer_schema(pd.DataFrame({"x": dates}))
    assert not any("may stand for none" in remark.text for remark in made.questions)


def test_codes_keep_their_zeros(tmp_path) -> None:
    """A code 010 that becomes the number 10 without a word."""
    lines = ["zip,x", *(f"0{1200 + i % 5},{i % 13}" for i in range(60))]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    drafted = infer_schema(read_table(tmp_path / "a.csv")).schema
    assert drafted["zip"].categories == ("01200", "01201", "01202", "01203", "01204")
    assert drafted["x"].kind == "integer"


def test_named_identifiers_and_repeated_persons() -> None:
    """A hospital number drafted as a measurement, a day as a hospital number; five rows as five persons."""
    rows = np.arange(400)
    frame = pd.DataFrame(
        {
            "patient_nbr": rows % 160 + 7,
            "encounterID": rows * 13 % 401,
            "Name": [f"name {i % 90}" for i in rows],
            "admission_type_id": rows % 8,
            "num_visits": rows % 6,
            "charge": rows * 17.5,
            "admission": rows % 120,
            "disease_index": rows * 0.37,
            "row_index": rows % 390,
            "encounter": rows // 2 * 7,
            "visit": rows[::-1] ** 2,
        }
    )
    made = infer_schema(frame)
    assert made.schema.ignored == ("patient_nbr", "encounterID", "Name", "row_index", "encounter", "visit")
    assert made.lines()[0] == (
        "question: patient_nbr (400 rows of 160 different values): are these persons who have several rows? "
        "Then only one row of a person is protected, not the person. Describe several rows (--unit, "
        "dpsynth.patients.infer_patient_schema), or make one row a person first"
    )
    assert made.lines()[1].startswith("left out: patient_nbr, encounterID, Name, row_index, encounter: ")
    assert made.schema["admission_type_id"].categories == tuple(range(8))
    assert (made.schema["num_visits"].kind, made.schema["charge"].kind) == ("integer", "continuous")
    kept = infer_schema(frame, keep=["patient_nbr"])
    assert kept.schema["patient_nbr"].upper == 166 and "rows of 160" in kept.lines()[0]
    assert "rows of" not in infer_schema(frame.iloc[:160]).lines()[0]


def test_one_bad_cell_is_listed_and_age_stays_a_number() -> None:
    """One slip of the pen that turns an age into sixty categories."""
    age = [str(20 + i % 60) for i in range(300)]
    age[16], age[40] = "4O", "NA"
    made = infer_schema(pd.DataFrame({"age": age}))
    column = made.schema["age"]
    assert (column.kind, column.lower, column.upper, column.missing) == ("integer", 20, 79, True)
    assert made.lines()[:-2] == [
        "note: age (1 cell): the word 'NA' is taken as missing",
        "question: age (row 17 '4O'): not every cell is a number. Correct or empty these in the table, or "
        "name a word for no value in missing_words or --missing-word. A fit stops at a cell that is no "
        "number",
    ]
    with pytest.raises(DataError, match="column 'age', row 17: '4O' is not a number"):
        made.schema.check(pd.DataFrame({"age": age}))
    mended = infer_schema(pd.DataFrame({"age": age}), missing_words=["4O", "NA"]).schema
    assert mended.check(pd.DataFrame({"age": age}))["age"].isna().sum() == 2
    infinite = infer_schema(pd.DataFrame({"x": [0.5, 1.5, np.inf, 2.5]}))
    assert infinite.schema["x"].upper == 2.5 and "row 3 inf" in infinite.lines()[0]
    limits = infer_schema(pd.DataFrame({"x": ["<5", *map(str, range(5, 14))]}))
    assert limits.schema["x"].lower == 5 and "row 1 '<5'" in limits.lines()[0]


def test_codes_beside_numbers_stay_codes() -> None:
    """Diagnosis codes of which most are digits: V45 is no slip."""
    codes = [str(250 + i % 20) if i % 12 else "V45" for i in range(600)]
    made = infer_schema(pd.DataFrame({"diag": codes}))
    assert "V45" in made.schema["diag"].categories
    assert "50 are not: 'V45' in 50 cells" in made.lines()[0]


def test_none_is_asked_about_not_swallowed(tmp_path) -> None:
    """ "None" ("not done") of a laboratory test counted as missing; NA of a program taken for an answer."""
    path = tmp_path / "t.csv"
    lines = [
        f"{['None', 'Norm', '>8'][i % 3]},{['?', 'a', 'b'][i % 3]},{i % 9 / 4 if i % 5 else 'NA'}"
        for i in range(60)
    ]
    path.write_text("test,ward,lab\n" + "\n".join(lines) + "\n")
    made = infer_schema(read_table(path))
    assert made.schema["test"].categories == (">8", "None", "Norm") and not made.schema["test"].missing
    assert made.lines()[0] == (
        "question: test (20 cells): is 'None' an answer (such as 'not done'), as drafted, or a missing "
        "value? Then name 'None' in missing_words or --missing-word, for all columns"
    )
    assert "note: lab (12 cells): the word 'NA' is taken as missing" in made.lines()
    frame = read_table(path, made.schema)
    assert frame["test"].value_counts()["None"] == 20 and frame["lab"].isna().sum() == 12
    answered = infer_schema(read_table(path), missing_words=["None", "?"]).schema
    assert (answered["test"].categories, answered["ward"].categories) == ((">8", "Norm"), ("a", "b"))
    assert answered.missing_words == ("?", "NA", "None")
    frame = read_table(path, answered)
    assert frame["test"].isna().sum() == frame["ward"].isna().sum() == 20


def test_word_of_the_number_columns_is_missing_in_text_columns_too() -> None:
    """A file that writes NA for every missing value would get a category NA."""
    frame = pd.DataFrame({"lab": ["1.5", "NA", "2", "?"] * 9, "ward": ["a", "NA", "b", "?"] * 9})
    made = infer_schema(frame)
    assert made.schema["ward"].categories == ("a", "b") and made.schema["ward"].missing
    assert made.schema.missing_words == ("?", "NA")
    assert any("ward (9 cells)" in line and "add it to the categories" in line for line in made.lines())
    assert made.schema.check(frame)["ward"].isna().sum() == 18


def test_integer_codes_and_fine_decimals_are_asked_about() -> None:
    """A ward's number averaged; a step of 1e-7 for a creatinine of 1.2 that a file stores as 1.19995117."""
    rng = np.random.default_rng(0)
    fine = np.round(rng.uniform(0.5, 9, 400), 1) + rng.uniform(-1e-4, 1e-4, 400)
    frame = pd.DataFrame({"ward": rng.integers(1, 8, 400), "crea": fine, "ratio": rng.uniform(1, 2, 400)})
    made = infer_schema(frame)
    assert made.schema["ward"].kind == "categorical" and made.schema["ward"].categories == tuple(range(1, 8))
    assert (made.schema["crea"].decimals, made.schema["ratio"].resolution) == (1, None)
    lines = [line for line in made.lines() if "is this list public" not in line]
    assert lines[0].startswith("question: ward (1 to 7): few different whole numbers: codes")
    assert "note: crea (but" in lines[1] and "multiples of 0.1" in lines[1]
    assert "ratio (such as" in lines[2] and "in which step" in lines[2]
    as_outcome = infer_schema(pd.DataFrame({"stage": rng.integers(1, 30, 99)}), outcome="stage").schema
    assert as_outcome["stage"].kind == "categorical"


def test_options_that_cannot_be() -> None:
    """A misspelt name that is silently passed over leaves an identifier in the table."""
    for options, words in [
        ({"drop": ["no"]}, "drop 'no' is not a column of the table (id, when, x)"),
        ({"keep": ["no"]}, "keep 'no' is not a column"),
        ({"outcome": "no"}, "outcome 'no' is not a column"),
        ({"keep": ["x"], "drop": ["x"]}, "'x' is both dropped and kept"),
        ({"outcome": "x", "drop": ["x"]}, "'x' is both dropped and the outcome"),
        ({"keep": ["when"]}, "column 'when' cannot be kept: has no values"),
        ({"outcome": "when"}, "the outcome 'when' cannot be used: has no values"),
    ]:
        frame = pd.DataFrame({"id": [1, 2, 3], "when": [None] * 3, "x": [0, 1, 1]})
        with pytest.raises(DataError, match=re.escape(words)):
            infer_schema(frame, **options)


def test_header_that_is_a_record_and_columns_without_name() -> None:
    """The first patient read as the names of the columns; an index column without a name."""
    with pytest.raises(DataError, match=r"first line holds numbers \(63, 1.5\), so it looks like a record"):
        infer_schema(pd.DataFrame({"63": ["50"], "F": ["M"], "1.5": ["2.5"]}))
    made = infer_schema(pd.DataFrame({"": ["0", "1"], "x": ["a", "b"]}))
    assert made.schema.ignored == ("",) and made.lines()[0] == "left out: (no name): has no name"
    frame = pd.DataFrame({"": ["0", "1"], "x": ["a", "b"]})
    assert Schema.from_yaml(made.to_yaml()).check(frame).columns.tolist() == ["x"]


def test_draft_accepts_its_own_table_and_asks_in_the_file(tmp_path) -> None:
    """A schema that refuses the CSV file it was drafted from, because of a column that it left out itself."""
    path = tmp_path / "t.csv"
    rows = [f"{i},{i % 5 + 1},{i % 50 + 20},{i % 2}" for i in range(100)]
    path.write_text("mrn,ward,age,died\n" + "\n".join(rows) + "\n")
    made = infer_schema(read_table(path), outcome="died", drop=["age"])
    text = made.to_yaml(tmp_path / "draft.yaml")
    assert text.startswith("# PRIVATE draft") and "# - left out: mrn: says whose row" in text
    above, _, _ = text.partition("- name: ward")
    for asked in ("few different whole numbers", "is this list public"):
        assert f"\n# question: {asked}" in above
    schema = Schema.from_yaml(tmp_path / "draft.yaml")
    assert schema == made.schema and schema.ignored == ("mrn", "age")
    assert read_table(path, schema).columns.tolist() == ["ward", "died"]
    with pytest.raises(DataError, match=r"'more' that the schema does not declare\. .*'ignored'"):
        schema.check(pd.DataFrame({"ward": [1], "died": [0], "mrn": [5], "more": [1]}))


def test_only_the_owner_may_read_a_draft(tmp_path) -> None:
    """Bounds and categories that were read off the records, in a file for every user of the machine."""
    drafted = infer_schema(pd.DataFrame({"age": [31, 58, 44], "sex": ["F", "M", "F"]}))
    drafted.to_yaml(tmp_path / "draft.yaml")
    drafted.schema.to_yaml(tmp_path / "schema.yaml")
    drafted.schema.mark_reviewed().to_yaml(tmp_path / "unconfirmed.yaml")
    for name in ("draft.yaml", "schema.yaml", "unconfirmed.yaml"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    drafted.schema.mark_reviewed(["age", "sex"]).to_yaml(tmp_path / "schema.yaml")
    (tmp_path / "other").touch()
    assert (tmp_path / "schema.yaml").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("typed", [False, True])
def test_a_missing_word_is_a_number_in_a_column_of_numbers(typed: bool) -> None:
    """-1.0 kept as a measurement because the word was -1, in a file of text or of numbers."""
    bmi, visits = ["-1.0", "21.5", "30", "24.25"] * 10, ["-1", "3", "4", "12"] * 10
    frame = pd.DataFrame({"bmi": bmi, "visits": visits})
    made = infer_schema(
        frame.astype(float).astype({"visits": int}) if typed else frame, missing_words=["-1"]
    ).schema
    assert (made["bmi"].lower, made["bmi"].missing) == (21.5, True)
    assert made["visits"].missing and made.missing_words == ("-1",)
    assert made.conform(frame).frame["bmi"].isna().sum() == 10
    words = infer_schema(
        pd.DataFrame({"x": ["-1.0", "none of these", "often"] * 10}), missing_words=["-1"]
    ).schema
    assert "-1.0" in words["x"].categories


def test_codes_are_asked_about_and_kept() -> None:
    """An upper bound of 999 for a scale to 20, or a code that is clipped to 20."""
    frame = pd.DataFrame({"pain": [*range(21)] * 5 + [999] * 4, "age": range(109)})
    made = infer_schema(frame)
    pain = made.schema["pain"]
    assert (pain.upper, pain.special) == (20, (999,)) and "special" in pain.unreviewed
    assert "question: pain (999 in 4 cells): codes, apart from the other values?" in made.lines()[0]
    conformed = made.schema.conform(frame)
    assert conformed.clipped["pain"] == 0 and (conformed.frame["pain"] == 999).sum() == 4
    few = infer_schema(pd.DataFrame({"smoker": [0, 1, 1, 99] * 5, "grade": [1, 2, 3, 4] * 5}))
    assert few.schema["smoker"].categories == (0, 1, 99)
    assert "question: smoker (99 in 5 cells): codes, apart from the other categories?" in few.lines()[1]


def test_columns_that_give_the_outcome_away_are_named() -> None:
    """A column that is known after the outcome, drafted without a word."""
    died = [0, 1, 0] * 20
    to = ["mortuary" if value else "home" for value in died]
    made = infer_schema(pd.DataFrame({"age": [30, 41, 57] * 20, "to": to, "died": died}), outcome="died")
    assert made.lines()[-3:-2] == [
        "question: age (AUC 1.00), to (AUC 1.00): predicts the outcome died nearly alone (confidential). Is "
        "it known only after the outcome, or another name for it? Then leave it out with drop or --drop"
    ]


@pytest.mark.slow
def test_many_words_are_not_each_compared_with_all() -> None:
    """Comparing 20,000 words with all before them took 5 seconds, so 60,000 took 45; they take .5."""
    seen: list[tuple[int, int]] = []
    frame = pd.DataFrame({"word": [f"w{i}" for i in range(60_000)]})
    start = time.process_time()
    text = infer_schema(frame, keep=["word"], progress=lambda *done: seen.append(done)).to_yaml()
    assert time.process_time() - start < 20  # far above a slow machine's time in proportion
    assert len(Schema.from_yaml(text)["word"].categories) == 60_000 and seen == [(0, 1)]


def test_a_draft_prints_its_schema_and_its_questions() -> None:
    """A draft in a notebook without its questions, without the word confidential, or with HTML of a name."""
    made = infer_schema(
        pd.DataFrame(
            {"<b>age": [31, 58, 44] * 9, "grade": [1, 2, 3] * 9, "mrn": [f"p{i}" for i in range(27)]}
        )
    )
    for shown in (str(made), repr(made), made._repr_html_()):
        assert "grade" in shown and "codes of a category" in shown and "mrn" in shown
        assert "31 to 58" in shown and "Confidential" in shown
    assert "<b>age" in str(made) and "<b>age" not in made._repr_html_()
    assert {remark.kind for remark in made.questions} == {"question"} and len(made.questions) >= 1


def test_a_draft_asks_what_one_row_is() -> None:
    """A guarantee about "one row" because nothing ever asked what a row is."""
    made = infer_schema(pd.DataFrame({"age": [30, 41, 57], "sex": ["F", "M", "F"]}))
    assert made.schema.unit is None and "what is one row" in str(made.questions[-1])
    assert "question: what is one row: a patient" in " ".join(made.to_yaml().replace("# ", "").split())


def test_limits_that_equal_the_data_are_found() -> None:
    """Silence about a draft whose limits stayed, or a warning about limits that the table does not reach."""
    table = pd.DataFrame({"age": [30, 41, 57], "crea": [0.09999084, 0.5, 2.0], "beds": [0, 3, 9]})
    fields = {"age": (30.0, 57.0), "crea": (0.1, 2.0), "beds": (0.0, 9.0)}

    def found(**limits: tuple[float, float]) -> dict[str, tuple[str, ...]]:
        columns = [
            Column(name=name, kind="continuous", lower=lower, upper=upper, decimals=1)
            for name, (lower, upper) in {**fields, **limits}.items()
        ]
        return limits_of_data(Schema(columns=tuple(columns)), table)

    both = ("lower", "upper")
    assert found() == {"age": both, "crea": both, "beds": ("upper",)}
    # the table goes beyond the first two, and does not reach the others
    assert found(age=(31, 56), crea=(0, 3), beds=(0, 9.2)) == {}


@pytest.mark.parametrize("slip", [13682, 400])
def test_a_largest_value_far_beyond_the_others_is_asked_about(slip):
    """Catches a slip that becomes a limit without a word, and a question about a long tail."""
    pressures = np.arange(90, 190).repeat(3)
    made = infer_schema(pd.DataFrame({"sbp": [*pressures, slip], "log": np.geomspace(1, 90, 301)}))
    asked = [(each.column, each.detail) for each in made.questions if "far beyond" in each.text]
    assert asked == ([("sbp", "13682, and 99 in 100 are at most 189")] if slip > 9999 else [])
