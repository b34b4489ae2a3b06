"""Times of day: read as tables write them, drawn as text that a clinician reads."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth import DPMarginals, PatientSchema
from dpsynth.errors import DataError, InputError, SchemaError
from dpsynth.evaluation.models import check_outcome
from dpsynth.studies.model import EffectsModel
from dpsynth.table import Column, Schema, infer_schema
from dpsynth.table.kinds.time_of_day import seconds_of
from dpsynth.table.values import numbers_of

SEEN = Column(name="seen", kind="time", lower="00:00", upper="23:59", missing=True)
DIED = Column(name="died", kind="binary", categories=("no", "yes"))


@given(st.times())
def test_what_people_write_is_what_python_reads(value: datetime.time) -> None:
    """Noon and midnight exchanged in the form with AM and PM, and seconds that are lost."""
    seconds = value.hour * 3_600 + value.minute * 60 + value.second
    for text in (value.strftime("%H:%M:%S"), value.strftime("%I:%M:%S %p"), value.replace(microsecond=0)):
        assert seconds_of(text) == seconds
    assert seconds_of(value.strftime("%H:%M")) == seconds - value.second
    assert seconds_of(value.strftime("%I:%M p.m.")) - seconds_of(value.strftime("%I:%M am")) == 43_200


def test_a_day_is_public_and_needs_no_question() -> None:
    """Bounds that are the first and the last time in the records."""
    made = infer_schema(
        pd.DataFrame({"seen": ["8:05", "11:30 PM", None] * 30, "died": ["no", "yes", "no"] * 30})
    )
    drafted = made.schema["seen"]
    assert (drafted.kind, drafted.shown(drafted.bounds[0]), drafted.shown(drafted.bounds[1])) == (
        "time",
        "00:00",
        "23:59",
    )
    assert not [one for one in made.questions if one.column == "seen"]
    assert Schema.from_yaml(made.schema.to_yaml()) == made.schema
    assert made.schema.conform(made.schema.conform(pd.DataFrame({"seen": ["1:05 PM"], "died": ["no"]})).frame)


def test_samples_hold_times_that_follow_the_records() -> None:
    """Samples as seconds, or such that have lost when the sick come."""
    rng = np.random.default_rng(0)
    died = rng.random(4000) < 0.4
    minutes = np.clip(np.where(died, rng.normal(300, 60, 4000), rng.normal(840, 90, 4000)), 0, 1439).astype(
        int
    )
    table = pd.DataFrame(
        {"seen": [f"{m // 60:02}:{m % 60:02}" for m in minutes], "died": np.where(died, "yes", "no")}
    )
    schema = Schema(columns=(SEEN, DIED), outcome="died", n_public=4000)
    made = DPMarginals(epsilon=10.0, random_state=0).fit(table, schema=schema).sample(4000, random_state=0)
    assert made["seen"].dropna().str.fullmatch(r"\d\d:\d\d").all()
    assert schema.conform(made).frame.equals(made)
    medians = schema["seen"].code(made["seen"])
    yes = (made["died"].astype(str) == "yes").to_numpy()
    for dead, middle in ((yes, 300), (~yes, 840)):
        assert abs(np.nanmedian(medians[dead]) / 60 - middle) < 30


def test_bad_times_say_what_to_write() -> None:
    """A sentence that does not name the column, the row or a right form."""
    schema = Schema(columns=(SEEN, DIED), n_public=10)
    with pytest.raises(DataError, match="column 'seen', row 2: '25:00' is no time of day such as 13:05"):
        schema.conform(pd.DataFrame({"seen": ["08:00", "25:00"], "died": ["no", "yes"]}))
    with pytest.raises(SchemaError, match="upper must be a time of day such as '13:05', got 'noon'"):
        Column(name="seen", kind="time", lower="08:00", upper="noon")
    with pytest.raises(SchemaError, match="must lie from 00:00 to 23:59"):
        Column(name="seen", kind="time", lower=0, upper=86_400)
    with pytest.raises(InputError, match="of a linear model must be numeric, got kind 'time'"):
        EffectsModel("linear", "seen", ("died",)).check(schema)
    with pytest.raises(InputError, match="outcome 'seen' is a time"):
        check_outcome(schema, "seen")


def test_rules_and_codes_read_times_as_people_write_them() -> None:
    """A rule that counts in seconds where a formula counts in minutes, and midnight in another form kept."""
    rules = ("seen >= '08:30'", "seen <= left", "left - seen <= 60", "left != '9:00 AM'", "left < 1430")
    left = SEEN.model_copy(update={"name": "left"})
    schema = Schema(columns=(SEEN, left), constraints=rules, n_public=5)
    table = pd.DataFrame({"seen": ["08:30", "08:29", "12:00"], "left": ["09:00", "09:31", "23:50"]})
    numbers = numbers_of(schema.conform(table).frame)
    held = [[*rule.truth(numbers)[0]] for rule in schema.rules]
    assert held == [[1, 0, 1], [1, 1, 1], [1, 0, 0], [0, 1, 1], [1, 1, 0]]
    coded = Column(**{**SEEN.model_dump(), "missing_codes": ("00:00", "99:99")})
    cells = ["00:00", "00:00:00", "12:00 AM", datetime.time(0, 0), "99:99", "12:00"]
    read = Schema(columns=(coded, DIED)).conform(pd.DataFrame({"seen": cells, "died": "no"})).frame
    assert read["seen"].isna().tolist() == [True] * 5 + [False]


def test_times_of_patients_keep_their_unit() -> None:
    """Times from row to row that are drawn as minutes where seconds are meant."""
    rng = np.random.default_rng(0)
    minutes = np.concatenate([[7, 12, 20] for _ in range(400)]) * 60 + rng.integers(0, 60, 1200)
    words = [f"{m // 60:02}:{m % 60:02}" for m in minutes]
    frame = pd.DataFrame({"id": np.repeat(np.arange(400), 3), "seen": words, "day": [1, 2, 3] * 400})
    seen = SEEN.model_copy(update={"missing": False})
    day = Column(name="day", kind="integer", lower=0, upper=9)
    for order, columns in (("day", (day, seen)), ("seen", (seen, day))):
        schema = PatientSchema(unit="id", order=order, most=3, n_public=400, columns=columns)
        made = DPMarginals(epsilon=30.0, random_state=0).fit(frame, schema=schema).sample(400, random_state=0)
        drawn = seen.code(made["seen"]) / 60
        assert abs(np.mean(drawn) - np.mean(minutes)) < 60
        assert np.quantile(drawn, 0.95) > 1150 and np.quantile(drawn, 0.05) < 500
