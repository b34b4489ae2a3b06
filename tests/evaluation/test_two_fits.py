"""Two fits side by side, by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from regressions import told

from dpsynth.evaluation.effects import (
    compare_effects,
    enough_complete,
    interval_overlap,
    mean,
    median,
    replication,
)
from dpsynth.evaluation.regression import Coefficient
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Tables
from dpsynth.studies.model import EffectsModel
from dpsynth.table.schema import Column, Schema


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0.0, 1.0), (0.0, 1.0), 1.0),
        ((0.0, 2.0), (1.0, 3.0), 0.5),
        ((0.0, 4.0), (1.0, 2.0), 0.625),  # (1/4 + 1/1) / 2
        ((0.0, 1.0), (1.0, 2.0), 0.0),
        ((0.0, 1.0), (2.0, 6.0), -0.625),  # (-1/1 - 1/4) / 2
        ((0.0, 0.0), (0.0, 1.0), None),
    ],
)
def test_overlap_by_hand(first, second, expected) -> None:
    """A union in place of the average of two shares, or disjoint intervals cut at 0."""
    assert interval_overlap(first, second) == expected
    assert interval_overlap(second, first) == expected


ENDS = st.tuples(st.floats(-100, 100), st.floats(0.01, 50)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@settings(max_examples=50, deadline=None)
@given(ENDS, ENDS, st.floats(-3, 3), st.floats(0.1, 10))
def test_overlap_is_at_most_one_and_of_no_unit(first, second, shift, factor) -> None:
    """An overlap that depends on the scale of the outcome, or above 1."""
    overlap = interval_overlap(first, second)
    moved = [tuple(factor * end + shift for end in ends) for ends in (first, second)]
    assert overlap <= 1.0 + 1e-12
    assert interval_overlap(*moved) == pytest.approx(overlap, rel=1e-6, abs=1e-6)


def estimate(value: float, error: float, p_value: float) -> Coefficient:
    return Coefficient(value, error, value - 2 * error, value + 2 * error, p_value)


@pytest.mark.parametrize(
    ("real", "synthetic", "sign", "decision", "covered", "difference"),
    [
        ((1.0, 0.25, 0.001), (1.5, 0.25, 0.001), True, True, True, 2.0),
        ((1.0, 0.25, 0.001), (1.75, 0.25, 0.001), True, True, False, 3.0),
        ((1.0, 0.25, 0.001), (0.5, 0.5, 0.3), True, False, True, 2.0),
        ((0.5, 0.5, 0.3), (-0.5, 0.5, 0.3), False, True, True, 2.0),
        # significant on both sides, but a reader would report the opposite
        ((1.0, 0.25, 0.001), (-1.0, 0.25, 0.001), False, False, False, 8.0),
    ],
)
def test_one_term_by_hand(real, synthetic, sign, decision, covered, difference) -> None:
    """The two tables exchanged, or a difference measured in the wrong standard error."""
    row = compare_effects(estimate(*real), estimate(*synthetic), 0.95)
    assert (row["same_sign"], row["same_decision"], row["covered"]) == (sign, decision, covered)
    assert row["standardised_difference"] == difference


def test_level_decides() -> None:
    """A decision at 5 % whatever the level."""
    sides = [estimate(1.0, 0.5, p) for p in (0.03, 0.08)]
    assert [compare_effects(*sides, level)["same_decision"] for level in (0.95, 0.9, 0.99)] == [
        False,
        True,
        True,
    ]


def test_a_term_of_one_table_is_compared_with_nothing() -> None:
    """A comparison with an absent estimate."""
    assert (
        compare_effects(estimate(1, 1, 0.3), None, 0.95)
        == compare_effects(None, estimate(1, 1, 0.3), 0.95)
        == {}
    )


def test_summaries_leave_out_what_is_not_defined() -> None:
    """A term without an estimate that counts as a failure, or a mean over nothing that is NaN."""
    assert (mean([0.5, None, 1.0]), median([1.0, None, 9.0, 2.0])) == (0.75, 2.0)
    assert mean([True, None, False]) == 0.5
    assert mean([None]) is median([]) is None


SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=99),
        *(Column(name=f"lab{k}", kind="continuous", lower=-9, upper=9, missing=True) for k in range(4)),
        Column(name="died", kind="binary", categories=("no", "yes")),
    )
)


def table(n: int, seed: int, missing: tuple[float, ...], together: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    raw = pd.DataFrame({"age": rng.integers(20, 90, n)})
    at_once = rng.random(n)
    for k, rate in enumerate(missing):
        gone = (at_once if together else rng.random(n)) < rate
        raw[f"lab{k}"] = np.where(gone, np.nan, rng.normal(size=n))
    raw["died"] = np.where(rng.random(n) < 1 / (1 + np.exp(-(raw["age"] - 55) / 20)), "yes", "no")
    return SCHEMA.conform(raw).frame


def usual(*frames: pd.DataFrame) -> tuple[tuple[str, ...], str]:
    model = EffectsModel.default(SCHEMA, "died")
    assert model is not None
    kept, told = enough_complete(model, SCHEMA, dict(zip(("real", "synthetic"), frames, strict=False)))
    return tuple(column.name for column in kept.columns(SCHEMA)), told


def test_nothing_is_left_out_where_half_is_complete() -> None:
    """A study that loses columns without need."""
    names, told = usual(table(400, 0, (0.1, 0.1, 0.1, 0.1)))
    assert len(names) == 5 and told == ""


def test_the_most_costly_column_goes_first() -> None:
    """Columns left out that hardly cost a record, in place of the one that costs most of them."""
    names, told = usual(table(2000, 1, (0.0, 0.9, 0.1, 0.0)))
    assert names == ("age", "lab0", "lab2", "lab3")
    assert told.startswith("Left out of the usual study") and "lab1 (missing in 89.0%" in told


def test_a_panel_that_is_missing_together() -> None:
    """A loop without end, or a study without a record, where no single column helps."""
    names, told = usual(table(2000, 2, (0.8, 0.8, 0.8, 0.0), together=True))
    assert names == ("age", "lab3") and told.count("missing in") == 3


def test_each_table_counts() -> None:
    """A synthetic table with a column that is always missing, which leaves no record there."""
    real, made = table(500, 3, (0.0, 0.0, 0.0, 0.0)), table(500, 4, (0.0, 0.0, 0.0, 1.0))
    names, told = usual(real, made)
    assert names == ("age", "lab0", "lab1", "lab2") and "100.0% of the synthetic records" in told


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 15), min_size=1, max_size=8), min_size=1, max_size=3))
def test_columns_go_one_by_one_as_by_trying_each(patterns: list[list[int]]) -> None:
    """A shortcut that leaves out other columns than trying each one does."""
    frames = {}
    for number, rows in enumerate(patterns):
        gone = (np.array(rows)[:, None] >> np.arange(4)) & 1
        raw = pd.DataFrame({f"lab{k}": np.where(gone[:, k], np.nan, 1.0) for k in range(4)})
        frames[str(number)] = SCHEMA.conform(raw.assign(age=50, died="no")).frame
    kept = ["age", *(f"lab{k}" for k in range(4))]

    def complete(names: list[str]) -> float:
        return min(frame[names].notna().all(axis=1).mean() for frame in frames.values())

    while complete(kept) < 0.5 and len(kept) > 1:
        worst = max(kept, key=lambda name: complete([other for other in kept if other != name]))
        if complete([other for other in kept if other != worst]) == complete(kept):
            worst = max(kept, key=lambda name: max(frame[name].isna().mean() for frame in frames.values()))
        kept.remove(worst)
    model = EffectsModel.default(SCHEMA, "died")
    found, _ = enough_complete(model, SCHEMA, frames)
    assert [column.name for column in found.columns(SCHEMA)] == kept


def test_one_predictor_is_kept() -> None:
    """A model without a predictor, which no regression takes."""
    schema = SCHEMA.select(["lab0", "lab1", "died"])
    model = EffectsModel.default(schema, "died")
    frame = table(100, 5, (1.0, 1.0, 0.0, 0.0))[["lab0", "lab1", "died"]]
    kept, _ = enough_complete(model, schema, {"real": frame})
    assert len(kept.columns(schema)) == 1


def test_logarithms_of_what_is_left_out_go_with_it() -> None:
    """A model that names the logarithm of a column that it no longer has, or loses one that it has."""
    columns = [
        column if column.name != "lab0" else column.model_copy(update={"lower": 1.0})
        for column in SCHEMA.columns
    ]
    schema = Schema(columns=tuple(columns))
    frame = schema.conform(table(300, 7, (0.9, 0.0, 0.0, 0.0))).frame
    model = EffectsModel("logistic", "died", sparing=True, logs={"age": "log1p", "lab0": "log"})
    kept, _ = enough_complete(model, schema, {"real": frame})
    kept.check(schema)
    assert kept.logs == {"age": "log1p"}


def test_what_somebody_asked_for_is_fitted_as_it_is() -> None:
    """A study with other terms than the ones that were named."""
    real = table(400, 6, (0.9, 0.0, 0.0, 0.0))
    rng = np.random.default_rng(0)
    tables = Tables.of(real, train=real, schema=SCHEMA)
    asked = replication(tables, Settings(effects=["logistic: died ~ age + lab0"]), rng)
    assert "Left out of the usual study" not in told(asked)["note"]
    assert len(told(asked)["rows"]) == 2


def test_the_usual_study_has_estimates() -> None:
    """A study of nothing: with all columns, fewer records are complete than there are terms."""
    real = table(300, 7, (0.95, 0.95, 0.0, 0.0))
    tables = Tables.of(real, train=real, schema=SCHEMA)
    found = replication(tables, Settings(outcome="died"), np.random.default_rng(0))
    data = told(found)
    assert data["n_real"] >= 150 and "lab0" in data["note"] and "lab0" not in data["formula"]
    assert {measure.name: measure.value for measure in found.measures}["effects_same_sign"] == 1.0
