"""Columns of dates: what files hold, bounds, rules, formulas, drafts."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth import DPMarginals
from dpsynth.errors import DataError, InputError, SchemaError
from dpsynth.privacy import Ledger
from dpsynth.table.column import Column
from dpsynth.table.derived import parse_where
from dpsynth.table.files import read_table, write_table
from dpsynth.table.grid import Grid
from dpsynth.table.inference import infer_schema, limits_of_data
from dpsynth.table.kinds.date import cycle_places, from_moments, moment, moment_text, text_moments
from dpsynth.table.schema import Schema

BORN = Column(name="born", kind="date", lower="1900-01-01", upper="2019-12-31", missing=True)
CAME = Column(name="came", kind="date", lower="2010-01-01", upper="2019-12-31")
SEEN = Column(name="seen", kind="datetime", lower="2010-01-01 00:00", upper="2020-01-01 00:00")
MOMENTS = st.datetimes(datetime.datetime(1583, 1, 1), datetime.datetime(2262, 1, 1)).map(
    lambda value: value.replace(microsecond=0)
)


def schema(*columns: Column, **fields) -> Schema:
    return Schema(columns=(BORN, CAME, SEEN, *columns), **fields)


def frame(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    came = pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.integers(0, 3652, n), unit="D")
    born = came - pd.to_timedelta(rng.integers(0, 36_000, n), unit="D")
    seen = came + pd.to_timedelta(rng.integers(0, 1440, n), unit="min")
    return pd.DataFrame({"born": pd.Series(born).where(rng.random(n) < 0.9), "came": came, "seen": seen})


@given(MOMENTS)
def test_numbers_of_dates_are_those_of_the_standard_library(value):
    """Catches a wrong epoch, lost seconds, or text that is another date."""
    days = (value.date() - datetime.date(1970, 1, 1)).days
    assert moment(value.date(), "date") == moment(str(value.date()), "date") == days
    seconds = (value - datetime.datetime(1970, 1, 1)).total_seconds()
    assert moment(value, "datetime") == moment(pd.Timestamp(value), "datetime") == seconds
    assert moment_text(days, "date") == value.date().isoformat()
    assert datetime.datetime.fromisoformat(moment_text(seconds, "datetime")) == value
    assert from_moments(np.array([seconds]), "datetime")[0].item() == value
    places = [
        cycle_places(np.array([seconds]), "datetime", cycle)[0] for cycle in ("weekday", "month", "hour")
    ]
    assert places == [value.weekday(), value.month - 1, value.hour]
    assert cycle_places(np.array([days]), "date", "weekday")[0] == value.weekday()


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["%d/%m/%Y", "%m/%d/%Y %H:%M", "%d-%b-%Y", "%Y%m%d"])
@given(MOMENTS)
def test_a_declared_format_reads_what_strftime_writes(pattern, value):
    """Catches day and month that change places, and a format that stops ISO text from being read."""
    value = value.replace(second=0) if "%H" in pattern else value.replace(hour=0, minute=0, second=0)
    texts = pd.Series([value.strftime(pattern), value.isoformat(" "), "soon"], dtype=object)
    read = text_moments(texts, "datetime", pattern)
    assert read[0] == read[1] == moment(value, "datetime") and np.isnan(read[2])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_gives_the_dates_back(suffix, tmp_path):
    """Catches dates that a file turns into numbers or loses, and a date written with a time of day."""
    table = schema().conform(frame()).frame
    assert set(map(str, table.dtypes)) == {"datetime64[ms]"}
    write_table(table, tmp_path / f"t.{suffix}")
    pd.testing.assert_frame_equal(read_table(tmp_path / f"t.{suffix}", schema()), table)
    plain = pd.read_csv(tmp_path / "t.csv") if suffix == "csv" else pd.read_parquet(tmp_path / "t.parquet")
    assert (pd.to_datetime(plain["came"]) == table["came"]).all()
    assert suffix == "parquet" or plain["came"].str.len().max() == 10


def test_arrow_dates_text_and_time_zones_are_read_alike():
    """Catches dates of other programs (date32, time zones, text) that are refused or moved."""
    day = schema().select(["came"])
    given = [datetime.date(2012, 3, 1), "2012-03-01", pd.Timestamp("2012-03-01"), "2012-03-01T00:00:00Z"]
    read = day.conform(pd.DataFrame({"came": pd.Series(given, dtype=object)})).frame["came"]
    assert (read == pd.Timestamp("2012-03-01")).all()
    zoned = pd.DataFrame({"came": pd.DatetimeIndex(["2012-03-01"], tz="Asia/Tokyo")})
    assert day.conform(zoned).frame["came"][0] == pd.Timestamp("2012-03-01")


def test_dates_outside_the_bounds_are_clipped_and_codes_are_missing():
    """Catches a real date beyond the public bounds, and 9999-12-31 as a date."""
    born = BORN.model_copy(update={"missing_codes": ("9999-12-31",)})
    given = pd.DataFrame({"born": ["1850-05-05", "9999-12-31", "2030-01-01", None]})
    made = Schema(columns=(born,)).conform(given)
    assert made.clipped == {"born": 2}
    assert made.frame["born"].isna().tolist() == [False, True, False, True]
    assert [made.frame["born"].min(), made.frame["born"].max()] == [
        pd.Timestamp("1900-01-01"),
        pd.Timestamp("2019-12-31"),
    ]


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (["2012-03-01", "01/03/2012"], "row 2: '01/03/2012' is no date in the form 2010-01-31"),
        (["2012-03-01 10:00"], "has a time of day. Its kind is datetime"),
        ([20120301], "is no date in the form 2010-01-31. Say in the schema how dates are written"),
        (["2012-02-30"], "'2012-02-30' is no date"),
        ([None], "is missing, and the schema does not allow that"),
    ],
)
def test_a_cell_that_is_no_date_is_one_sentence(cells, sentence):
    """Catches 20120301 days since 1970, a time of day that is cut off, or a traceback."""
    with pytest.raises(DataError, match="column 'came'") as caught:
        schema().select(["came"]).conform(pd.DataFrame({"came": pd.Series(cells, dtype=object)}))
    assert sentence in str(caught.value) and "confidential" in str(caught.value)


def test_a_wrong_field_is_one_sentence():
    """Catches bounds that are read as numbers, fields without effect, and formats that swap day and month."""
    for fields, sentence in [
        ({"lower": 2010}, "lower must be a date such as 2010-01-31, got 2010"),
        ({"lower": "2010-02-30"}, "lower must be a date such as 2010-01-31, got '2010-02-30'"),
        ({"upper": "2012-01-01 10:00"}, "upper has a time of day"),
        ({"lower": "2015-01-01"}, "lower must be less than upper, got 2015-01-01 and 2012-12-31"),
        ({"step": 7}, "a whole number of steps of 7 above lower, got 2010-01-01 and 2012-12-31"),
        ({"step": 0.5}, "step must be a whole number of days"),
        ({"scale": "log"}, "scale is not allowed for kind 'date'"),
        ({"special": ("soon",)}, "special must be a date"),
        ({"unit": "days"}, "unit is not allowed for kind 'date'"),
        ({"format": "%d/%m"}, "must hold year, month and day"),
        ({"format": "%Y-%d-%m"}, "reads ISO dates as other dates"),
        ({"format": "%d/%m/%Y %z"}, "may not hold a time zone"),
        ({"format": "%d/%m/%y"}, "must hold years of four digits"),
        ({"cycles": ("hour",)}, "cycles may name 'hour' if a whole number of steps is an hour"),
        ({"cycles": ("month", "month")}, "cycles names 'month' twice"),
        ({"missing": True, "missing_codes": (9,)}, "missing_codes must be a date such as 2010-01-31, got 9"),
        ({"kind": "integer", "lower": 0, "upper": 1, "cycles": ("month",)}, "cycles are not allowed"),
        ({"kind": "integer", "lower": 0, "upper": 1, "unit": "date"}, "unit must not be 'date'"),
    ]:
        known = {"kind": "date", "lower": "2010-01-01", "upper": "2012-12-31"}
        with pytest.raises(SchemaError, match="column 'x'") as caught:
            Column(name="x", **known | fields)
        assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_yaml_keeps_dates_as_dates():
    """Catches a schema that is written with numbers of days, or not read back."""
    own = schema(
        Column(
            name="shift", kind="datetime", lower="2010-01-01", upper="2010-01-02", step=1800, cycles=("hour",)
        ),
        constraints=("born <= came",),
    )
    text = own.to_yaml()
    assert Schema.from_yaml(text) == own and Schema.from_yaml(text).digest() == own.digest()
    assert "upper: '2019-12-31'" in text and "14610" not in text
    flow = Schema.from_yaml("columns:\n- {name: a, kind: date, lower: 2010-01-01, upper: 2010-12-31}\n")
    assert flow["a"].allowed == "2010-01-01 to 2010-12-31"
    assert own["shift"].allowed == "2010-01-01 00:00 to 2010-01-02 00:00 in steps of 1800 seconds"


def test_rules_and_formulas_are_those_of_pandas():
    """Catches dates of two kinds in two units, differences in seconds, and dates that are not moved."""
    age = Column(name="age", kind="integer", lower=0, upper=120, missing=True,
                 derived="floor((came - born) / 365.25)")  # fmt: skip
    hours = Column(name="hours", kind="continuous", lower=0, upper=24, derived="(seen - came) * 24")
    later = Column(
        name="later", kind="datetime", lower="2010-01-01", upper="2021-01-01", derived="seen + 0.5"
    )
    since = Column(name="since", kind="integer", lower=0, upper=9999, derived="came - '2010-01-01'")
    own, table = schema(age, hours, later, since), frame()
    made = own.conform(table).frame
    days = (table["came"] - table["born"]).dt.days
    assert (made["age"].astype(float).dropna() == np.floor(days.dropna() / 365.25)).all()
    np.testing.assert_allclose(made["hours"], (table["seen"] - table["came"]).dt.total_seconds() / 3600)
    assert (made["later"] == table["seen"] + pd.Timedelta(hours=12)).all()
    assert (made["since"] == (table["came"] - pd.Timestamp("2010-01-01")).dt.days).all()
    expected = {
        "seen < came + 0.5": table["seen"] < table["came"] + pd.Timedelta(hours=12),
        "came >= '2015-06-01'": table["came"] >= pd.Timestamp("2015-06-01"),
        "seen - came > 0.25": table["seen"] - table["came"] > pd.Timedelta(hours=6),
        "seen = came": table["seen"] == table["came"],
        "born is missing": table["born"].isna(),
        "came in ('2012-01-01', '2012-01-02')": table["came"].isin(["2012-01-01", "2012-01-02"]),
    }
    for text, selected in expected.items():
        (rule,) = parse_where(text, own.columns)
        assert (rule.selected(made) == selected.to_numpy()).all(), text
    low, high = (datetime.date(2012, 1, 1), pd.Timestamp("2012-12-31"))
    rules = parse_where({"came": (low, high)}, own.columns)
    assert (rules[0].selected(made) & rules[1].selected(made)).sum() == (table["came"].dt.year == 2012).sum()


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("came > 2015", "compares a date with a number"),
        ("came >= 2015-06-01", "A date stands in quotes, such as '2010-01-31'"),
        ("came - born < '2010-01-01'", "compares a date with a number"),
        ("came = 'soon'", "'soon' is no number, and no date such as"),
        ("came + born > 3", "compares a date with a number"),
    ],
)
def test_dates_and_numbers_are_not_compared(rule, sentence):
    """Catches 2015-06-01 as 2008 days, which a record would always obey."""
    with pytest.raises((SchemaError, InputError)) as caught:
        schema(constraints=(rule,))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("formula", "sentence"),
    [
        ("came + 3", "it gives a date, but the column's kind is integer"),
        ("came * 2", "came * 2 uses a date as a number"),
        ("came + born", "it adds or takes away dates"),
        ("max(came, 3)", "uses a date as a number"),
        ("log(came)", "uses a date as a number"),
    ],
)
def test_a_formula_of_dates_gives_days(formula, sentence):
    """Catches days since 1970 as an age or a stay."""
    with pytest.raises(SchemaError) as caught:
        schema(Column(name="n", kind="integer", lower=0, upper=9, missing=True, derived=formula))
    assert sentence in str(caught.value)


LEFT = Column(name="left", kind="date", lower="2010-01-01", upper="2021-01-01", derived="came + stay")
STAY = Column(name="stay", kind="integer", lower=0, upper=90, read_as="left - came")


def test_a_stay_is_read_from_two_dates_and_gives_the_second_back():
    """Catches a stay that is not read, a discharge that is counted, and one that is not came + stay."""
    own, table = schema(STAY, LEFT), frame()
    stays = np.random.default_rng(1).integers(0, 120, len(table))
    given = table.assign(left=table["came"] + pd.to_timedelta(stays, unit="D"))
    modelled = own.conform_modelled(given)
    assert list(modelled.columns) == ["born", "came", "seen", "stay"] == list(own.modelled.names)
    assert (modelled["stay"] == np.minimum(stays, 90)).all()
    assert (own.conform(given).frame["stay"] == np.minimum(stays, 90)).all()
    made = own.conform(modelled).frame
    assert (made["left"] == table["came"] + pd.to_timedelta(np.minimum(stays, 90), unit="D")).all()
    # A table of its own stays needs no second date, and a wrong one is not read.
    wrong = given.assign(stay=5, left="nonsense")
    assert (own.conform_modelled(wrong)["stay"] == 5).all()
    with pytest.raises(DataError, match=r"lacks the column\(s\) 'stay'"):
        own.conform_modelled(table)
    with pytest.raises(SchemaError, match="is read as a formula too"):
        schema(STAY, Column(name="b", kind="integer", lower=0, upper=1, read_as="stay - 1"), LEFT)
    assert own.select(["stay"])["stay"].read_as is None


@given(st.lists(st.integers(0, 3651), min_size=1, max_size=30))
def test_a_grid_gives_dates_back(days):
    """Catches a date that an encoder moves, and cells that are cut around 1970."""
    values = pd.Series(pd.Timestamp("2010-01-01") + pd.to_timedelta(days, unit="D"), name="came")
    grid = Grid.from_column(CAME, max_values=4000)
    read = grid.decode(grid.encode(values), np.full(len(values), 0.5))
    assert (read == values).all() and read.dtype == "datetime64[ms]"


def test_a_draft_finds_dates_and_their_format():
    """Catches dates drafted as categories, a form taken for granted, and formats that are lost."""
    table, n = frame(), 200
    texts = pd.DataFrame(
        {
            "iso": table["came"].dt.strftime("%Y-%m-%d"),
            "us": table["came"].dt.strftime("%m/%d/%Y"),
            "vague": "03/04/2012",
            "stamp": table["seen"].dt.strftime("%d.%m.%Y %H:%M"),
            "whole": table["came"].dt.strftime("%Y%m%d").astype(int),
            "typed": table["born"],
            "short": table["came"].dt.strftime("%d/%m/%y"),
            "x": np.arange(n) % 7,
        }
    )
    draft = infer_schema(texts, outcome=None)
    kinds = {column.name: (column.kind, column.format) for column in draft.schema.columns}
    assert kinds == {
        "iso": ("date", None),
        "us": ("date", "%m/%d/%Y"),
        "vague": ("date", "%d/%m/%Y"),
        "stamp": ("datetime", "%d.%m.%Y %H:%M"),
        "whole": ("date", "%Y%m%d"),
        "typed": ("date", None),
        "x": ("categorical", None),
    }
    assert draft.schema.ignored == ("short",)  # of either century
    asked = [remark.column for remark in draft.questions if "month written first" in remark.text]
    assert asked == ["vague"]
    assert draft.schema["us"].bounds == draft.schema["iso"].bounds == draft.schema["whole"].bounds
    assert {"lower", "upper"} <= set(draft.schema["iso"].unreviewed)
    read = draft.schema.check(texts)
    assert (read["us"] == table["came"]).all() and (read["stamp"] == table["seen"]).all()
    assert limits_of_data(draft.schema, read)["iso"] == ("lower", "upper")


def test_a_date_may_be_a_code_of_its_own() -> None:
    """9999-12-31 for "still insured", which stretches the bounds by eight thousand years or is missing."""
    ends = Column(name="end", kind="date", lower="2010-01-01", upper="2020-12-31", special=("9999-12-31",))
    schema = Schema(columns=(ends, Column(name="age", kind="integer", lower=0, upper=100)), n_public=600)
    assert Schema.from_yaml(schema.to_yaml()) == schema and "'9999-12-31'" in schema.to_yaml()
    assert ends.allowed == "2010-01-01 to 2020-12-31, or 9999-12-31"
    rng = np.random.default_rng(0)
    days = pd.Series(np.datetime64("2012-01-01") + rng.integers(0, 2000, 600)).astype(str)
    days[:200] = "9999-12-31"
    frame = pd.DataFrame({"end": days, "age": rng.integers(0, 90, 600)})
    assert schema.conform(frame).clipped == {"end": 0, "age": 0}
    sample = DPMarginals(epsilon=None, random_state=0).fit(frame, schema=schema, ledger=Ledger()).sample(600)
    coded = sample["end"] == "9999-12-31"
    assert 150 < coded.sum() < 250 and sample["end"][~coded].max() < pd.Timestamp("2021-01-01")
    with pytest.raises(SchemaError, match="special holds 2015-01-01"):
        Column(name="end", kind="date", lower="2010-01-01", upper="2020-12-31", special=("2015-01-01",))
