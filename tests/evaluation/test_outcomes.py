"""Kinds of outcomes, their rates with intervals, and outcomes that got lost."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from compared import conformed
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from scipy.stats import t as student
from statsmodels.stats.proportion import proportion_confint
from visits import VISITS, visits

from dpsynth.errors import InputError, SchemaError
from dpsynth.evaluation import evaluators
from dpsynth.evaluation.estimates import FALSE_ALARMS, share
from dpsynth.evaluation.models import (
    check_outcome,
    known_outcomes,
    mean_interval,
    mode_collapse,
    outcome_kind,
)
from dpsynth.evaluation.prediction import outcome_rates
from dpsynth.evaluation.results import Findings, Measure
from dpsynth.evaluation.tables import Tables
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="days", kind="integer", lower=0, upper=400, missing=True, unit="d"),
        Column(name="crea", kind="continuous", lower=0, upper=9),
        Column(name="died", kind="binary", categories=("no", "yes"), missing=True),
        Column(name="stage", kind="ordinal", categories=(1, 2, 3)),
        Column(name="both", kind="categorical", categories=("a", "b")),
        Column(name="only", kind="categorical", categories=("a",)),
    )
)


def deaths(no: int, yes: int) -> pd.DataFrame:
    return pd.DataFrame({"died": ["no"] * no + ["yes"] * yes})


def by_name(*frames: pd.DataFrame | None, outcome: str) -> dict[str, Measure]:
    return {m.name: m for m in outcome_rates(conformed(*frames, SCHEMA), outcome, group="g")}


def test_kind_of_every_column() -> None:
    """Would catch two ordinal categories treated as many, and an integer treated as categories."""
    kinds = {column.name: outcome_kind(column) for column in SCHEMA.columns if column.name != "only"}
    assert kinds == {
        "days": "numeric", "crea": "numeric", "died": "binary", "stage": "categories", "both": "binary",
    }  # fmt: skip


def test_only_the_impossible_is_refused() -> None:
    """Would catch a refused number, and one category or one column that reaches a model."""
    for name in ("days", "crea", "died", "stage", "both"):
        check_outcome(SCHEMA, name)
    with pytest.raises(InputError, match="outcome 'only' has the category 'a' only"):
        check_outcome(SCHEMA, "only")
    with pytest.raises(InputError, match="outcome 'days' is the only column"):
        check_outcome(SCHEMA.select(["days"]), "days")
    with pytest.raises(SchemaError, match="'nothing' is not a column"):
        check_outcome(SCHEMA, "nothing")


def test_known_outcomes_leave_missing_ones_out() -> None:
    """Would catch a missing outcome that takes part, as a category or as a number."""
    raw = {
        "days": pd.array([3, None, 0], dtype="Int64"),
        "died": ["yes", "no", None],
        "crea": [1.5, 2.0, 3.0],
    }
    frame = pd.DataFrame(raw)
    for name, expected in (("days", [3.0, 0.0]), ("died", [1, 0]), ("crea", [1.5, 2.0, 3.0])):
        kept, values = known_outcomes(frame, SCHEMA, name)
        assert values.tolist() == expected and len(kept) == len(expected)
    assert known_outcomes(frame.iloc[:0], SCHEMA, "days")[1].shape == (0,)


@settings(max_examples=50, deadline=None)
@given(
    st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999)
)
def test_wilson_equals_statsmodels(count_total: tuple[int, int], level: float) -> None:
    """Would catch a wrong quantile, and ends outside [0, 1] or on the wrong side of the share."""
    count, total = count_total
    interval = share(count, total, level, method="wilson")
    lower, upper = interval.lower, interval.upper
    expected = proportion_confint(count, total, alpha=1 - level, method="wilson")
    assert (lower, upper) == pytest.approx(expected, abs=1e-9)
    assert 0 <= lower <= count / total <= upper <= 1 and lower < upper


def test_mean_interval_is_students() -> None:
    """Would catch the normal quantile or the biased standard deviation on a small table."""
    values = np.array([1.0, 2.0, 4.0, 8.0])
    expected = student.interval(0.9, 3, values.mean(), values.std(ddof=1) / 2)
    assert mean_interval(values, 0.9) == pytest.approx(expected)
    assert mean_interval(values[:1], 0.9) is None


@pytest.mark.parametrize(
    ("made", "real", "collapsed", "words"),
    [
        (
            deaths(100, 0),
            deaths(50, 50),
            True,
            "died = 'yes' (50 of 100 training records, 0 of 100 synthetic ones)",
        ),
        (deaths(990, 10), deaths(900, 100), True, "10 of 1,000 synthetic"),
        (deaths(975, 25), deaths(900, 100), False, "no died of at least 30 training records got lost"),
        (deaths(99, 1), deaths(93, 7), False, "no died of at least 30 training records got lost"),
        (deaths(100, 0), deaths(970, 30), False, "Absent by chance"),
        (
            deaths(200, 0),
            deaths(171, 29),
            False,
            "of fewer than 30 training records: died = 'yes' (29 of 200",
        ),
        (deaths(0, 90), deaths(0, 90), False, "no died"),  # what is not real cannot get lost
        (deaths(0, 20), deaths(10, 10), None, "no died has 30 training records"),
        (deaths(0, 0), deaths(5, 5), None, "no synthetic record has a known died"),
        (deaths(5, 5), pd.DataFrame({"died": [None]}), None, "no training record has a known died"),
    ],
)
def test_collapse_of_a_category(
    made: pd.DataFrame, real: pd.DataFrame, collapsed: bool | None, words: str
) -> None:
    """Would catch chance called collapse, a collapse overlooked, and tables exchanged."""
    lost, reason = mode_collapse(made, real, SCHEMA, "died")
    assert lost is collapsed and words in reason


@pytest.mark.parametrize("categories", [2, 12, 40])
@pytest.mark.parametrize("n", [200, 1000])
def test_fresh_records_have_hardly_ever_lost_an_outcome(categories: int, n: int) -> None:
    """Catches chance called collapse: 2 of 3 tables of fresh records with forty outcomes opened red."""
    column = Column(name="y", kind="categorical", categories=tuple(range(categories)))
    schema, rng = Schema(columns=(column, SCHEMA["crea"])), np.random.default_rng(0)
    rates = rng.dirichlet(np.full(categories, 0.5), size=500)
    pairs = [[rng.choice(categories, n, p=p) for _ in range(2)] for p in rates]
    alarms = sum(
        mode_collapse(pd.DataFrame({"y": made}), pd.DataFrame({"y": real}), schema, "y")[0] is True
        for made, real in pairs
    )
    assert binomtest(alarms, len(pairs), FALSE_ALARMS, alternative="greater").pvalue > 1e-6


def test_collapse_of_a_number() -> None:
    """Would catch a generator that gives one number unnoticed, and a constant real outcome called lost."""
    wide, narrow = (pd.DataFrame({"crea": np.tile(values, 20)}) for values in ([1, 5, 9.0], [4.9, 5, 5.1]))
    assert mode_collapse(narrow, wide, SCHEMA, "crea")[0] is True
    assert mode_collapse(wide, narrow, SCHEMA, "crea")[0] is False
    assert mode_collapse(narrow.head(6), wide.head(6), SCHEMA, "crea")[0] is None
    constant = pd.DataFrame({"crea": [5.0] * 40})
    assert mode_collapse(constant, constant, SCHEMA, "crea")[0] is False
    outlier = wide.assign(crea=[5e4, *wide["crea"].iloc[1:]])  # one record, which fresh tables lack
    lost, reason = mode_collapse(wide, outlier, SCHEMA, "crea")
    assert lost is False and "not far smaller than" in reason and "beyond chance" in reason


def test_rates_of_two_categories() -> None:
    """Would catch rates of the wrong table, one of real records offered for release, or a wrong interval."""
    found = by_name(deaths(80, 20), deaths(60, 40), deaths(5, 5), outcome="died")
    values = {name: measure.value for name, measure in found.items()}
    assert values == {
        "positive_rate_synthetic": 0.2,
        "outcome_constant_synthetic": 0,
        "positive_rate_train": 0.4,
        "positive_rate_test": 0.5,
        "mode_collapse": 0,
    }
    assert [name for name, m in found.items() if not m.internal] == [
        "positive_rate_synthetic", "outcome_constant_synthetic",
    ]  # fmt: skip
    rate = found["positive_rate_train"]
    wilson = share(40, 100, method="wilson")
    assert (rate.lower, rate.upper) == (wilson.lower, wilson.upper)
    assert rate.detail == "share of died = 'yes', train"


def test_released_rates_do_not_depend_on_real_records() -> None:
    """Would catch a public number, or its words, that change with the real tables."""
    public = [
        [
            m
            for m in outcome_rates(conformed(deaths(9, 0), real, None, SCHEMA), "died", group="g")
            if not m.internal
        ]
        for real in (deaths(60, 40), deaths(0, 3), deaths(0, 0))
    ]
    assert public[0] == public[1] == public[2]
    assert public[0][1].value == 1 and "every synthetic record has died = 'no'" in public[0][1].detail


def test_rates_of_three_categories_and_without_any() -> None:
    """Would catch a category that is left out, and a rate of nothing given as NaN or a traceback."""
    frame = pd.DataFrame({"stage": [1, 1, 3, 1]})
    found = by_name(frame, frame, None, outcome="stage")
    assert [found[f"outcome_rate_train[{stage}]"].value for stage in (1, 2, 3)] == [0.75, 0.0, 0.25]
    assert found["positive_rate_train"].value == 0.25
    empty = by_name(deaths(0, 0), deaths(0, 0), deaths(0, 0), outcome="died")
    assert {m.value for m in empty.values()} == {None}
    assert "no record has a known died" in empty["positive_rate_test"].detail


def test_numbers_have_means_and_deviations() -> None:
    """Would catch the share of a number, or a released mean of real records."""
    frame = pd.DataFrame({"days": pd.array([1, 3, None], dtype="Int64")})
    found = by_name(frame, frame, frame, outcome="days")
    assert set(found) == {
        *(f"outcome_{what}_{table}" for what in ("mean", "sd") for table in ("synthetic", "train", "test")),
        "outcome_constant_synthetic", "mode_collapse",
    }  # fmt: skip
    assert found["outcome_mean_test"].value == 2 and found["outcome_mean_test"].internal
    assert found["outcome_sd_synthetic"].value == pytest.approx(math.sqrt(2))
    assert found["outcome_mean_train"].detail == "mean of days (d), train"
    single = by_name(frame.iloc[:1], frame, None, outcome="days")
    assert single["outcome_sd_synthetic"].value is None and single["outcome_mean_synthetic"].value == 1
    assert "every synthetic record has days = 1" in single["outcome_constant_synthetic"].detail


def test_a_value_of_the_table_keeps_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a value that is rewritten with the sentence about patients: "No record" as "No patient"."""

    def rates(tables: Tables, *_: object) -> Findings:
        return Findings([*outcome_rates(tables, "sex", group="g")])

    monkeypatch.setattr(evaluators, "EVALUATORS", [evaluators.Question("rates", rates, 0)])
    sex = Column(name="sex", kind="binary", categories=("F", "No record"))
    columns = tuple(sex if column.name == "sex" else column for column in VISITS.columns)
    schema = VISITS._with(columns=columns, outcome="sex")
    frame = visits(40).replace({"sex": {"M": "No record"}})
    found = evaluators.evaluate(frame, train=frame, schema=schema)
    assert found["positive_rate_train"].detail == "share of sex = 'No record', train"
    assert "training patients" in found["mode_collapse"].detail
