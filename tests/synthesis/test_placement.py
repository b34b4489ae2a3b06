"""Exchanges within bins: rules that hold afterwards, and all that stays as it was."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth import Column, Schema
from dpsynth.synthesis.sampling import _Order, placed

SCHEMA = Schema(
    columns=(
        Column(name="low", kind="continuous", lower=0, upper=1),
        Column(name="high", kind="continuous", lower=0, upper=1, missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="gap", kind="continuous", lower=-1, upper=1, missing=True, derived="high - low"),
    ),
    constraints=("low <= high", "sex = F implies gap < 0.6"),
)


#: Thirds of 99 cells, and what is missing.
LABELS = np.append(np.arange(99) // 33, 3)


def records(n: int = 4000) -> tuple[pd.DataFrame, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Two numbers in thirds, the second in the same third or a higher one, otherwise independent."""
    rng = np.random.default_rng(0)
    third = np.sort(rng.integers(0, 3, (n, 2)), axis=1)
    values = (third + rng.random((n, 2)) ** [1.3, 0.8]) / 3
    missing = rng.random(n) < 0.1
    frame = pd.DataFrame(
        {
            "low": values[:, 0],
            "high": np.where(missing, np.nan, values[:, 1]),
            "sex": rng.choice(["F", "M"], n),
        }
    )
    frame = SCHEMA.modelled.conform(frame).frame
    cells = (values * 99).astype(int)
    return frame, {"low": (cells[:, 0], LABELS), "high": (np.where(missing, 99, cells[:, 1]), LABELS)}


def broken(frame: pd.DataFrame) -> np.ndarray:
    """Which records break a rule, by hand."""
    low, high = frame["low"].to_numpy(float), frame["high"].to_numpy(float, na_value=np.nan)
    return (low > high) | ((frame["sex"] == "F").to_numpy() & (high - low >= 0.6))


def test_rules_hold_where_bins_allow_them():
    """Catches exchanges that help one rule and break another, and records left as they were."""
    frame, cells = records()
    before = broken(frame).mean()
    after = broken(placed(frame, cells, SCHEMA.rules, SCHEMA, np.random.default_rng(1))).mean()
    assert before > 0.2 and after < 0.03


def test_each_column_keeps_its_values_and_nearly_all_stay_in_their_bins():
    """Catches a value that is lost or doubled, and values that leave bins where those allow the rules."""
    frame, cells = records()
    found = placed(frame, cells, SCHEMA.rules, SCHEMA, np.random.default_rng(1))
    assert (found["sex"] == frame["sex"]).all()
    for name, (cell, labels) in cells.items():
        before, after = (part[name].to_numpy(float, na_value=-1) for part in (frame, found))
        np.testing.assert_array_equal(np.sort(before), np.sort(after))
        bins = np.where(after < 0, 3, np.minimum(after * 3, 2).astype(int))
        assert (bins != labels[cell]).mean() < 0.02


def test_rare_partners_in_other_bins_are_found():
    """Catches records refused that two in a thousand others could help, of categories too."""
    schema = Schema(
        columns=(
            Column(name="drug", kind="binary", categories=("no", "yes")),
            Column(name="dose", kind="continuous", lower=0, upper=1),
        ),
        constraints=("drug = no implies dose < 0.5", "drug = yes implies dose >= 0.5"),
    )
    treated, high = np.arange(4000) < 8, np.arange(4000) // 8 == 400
    dose = np.random.default_rng(0).uniform(0, 0.5, 4000) + 0.5 * high
    frame = schema.conform(pd.DataFrame({"drug": np.where(treated, "yes", "no"), "dose": dose})).frame
    cells = {"drug": (treated.astype(int), np.arange(2)), "dose": (high.astype(int), np.arange(2))}
    found = placed(frame, cells, schema.rules, schema, np.random.default_rng(1))
    assert not any(rule.broken(found).any() for rule in schema.rules)
    assert (found["drug"] == "yes").sum() == 8 and sorted(found["dose"]) == sorted(dose)


def test_partners_are_of_the_same_bin():
    """Catches bins taken for ranges of cells: rare categories share a bin, and others lie between them."""
    rng, labels = np.random.default_rng(0), np.array([2, 0, 2, 1])
    cells = rng.integers(0, 4, 500)
    one, other = _Order(cells, labels).pairs(np.arange(500), 64, rng)
    assert len(one) > 400 and (labels[cells[one]] == labels[cells[other]]).all()


def test_records_that_obey_are_not_disturbed_without_need():
    """Catches a shuffle of everything, which would undo how columns follow each other within bins."""
    frame, cells = records()
    found = placed(frame, cells, SCHEMA.rules, SCHEMA, np.random.default_rng(1))
    assert (found["low"] == frame["low"]).mean() > 0.5
    lawful = frame[~broken(frame)].reset_index(drop=True)
    kept = {name: (cell[~broken(frame)], labels) for name, (cell, labels) in cells.items()}
    pd.testing.assert_frame_equal(
        placed(lawful, kept, SCHEMA.rules, SCHEMA, np.random.default_rng(1)), lawful
    )


def test_values_of_every_kind_are_read_as_rules_read_them():
    """Catches dates, categories, special codes or missing values that an exchange judges by other numbers."""
    limits = {"lower": "2010-01-01", "upper": "2019-12-31"}
    schema = Schema(
        columns=(
            Column(name="start", kind="date", **limits),
            Column(name="end", kind="date", missing=True, **limits),
            Column(name="grade", kind="ordinal", categories=("low", "mid", "high"), missing=True),
            Column(name="score", kind="integer", lower=0, upper=9, special=(99,), missing=True),
            Column(name="old", kind="binary", categories=(False, True)),
        ),
        constraints=(
            "start <= end",
            "grade >= mid implies end - start < 2000",
            "score = 99 implies old = true",
            "score is missing implies grade is not missing",
            "score > 5 implies grade != low",
        ),
    )
    rng, n = np.random.default_rng(0), 3000
    days = pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.integers(0, 3651, (n, 2)).ravel(), unit="D")
    values = {
        "start": days[:n],
        "end": days[n:].where(rng.random(n) < 0.9),
        "grade": rng.choice(np.array(["low", "mid", "high", None], dtype=object), n),
        "score": rng.choice(np.array([*range(10), 99, None], dtype=object), n),
        "old": rng.random(n) < 0.5,
    }
    frame = schema.conform(pd.DataFrame(values)).frame
    everything = np.zeros(n, dtype=int)
    cells = {name: (everything, np.zeros(1, dtype=int)) for name in ("start", "end", "grade", "score")}

    def wrong(of: pd.DataFrame) -> np.ndarray:
        return np.logical_or.reduce([rule.broken(of) for rule in schema.rules])

    found = placed(frame, cells, schema.rules, schema, rng)
    assert wrong(frame).mean() > 0.5 and wrong(found).mean() < 0.3
    assert all(rule.broken(found).mean() < 0.01 for rule in schema.rules[1:])
    for name in frame:
        assert found[name].dtype == frame[name].dtype
        assert (
            found[name].value_counts(dropna=False).to_dict()
            == frame[name].value_counts(dropna=False).to_dict()
        )
    lawful = frame[~wrong(frame)].reset_index(drop=True)
    kept = {name: (np.zeros(len(lawful), dtype=int), labels) for name, (_, labels) in cells.items()}
    pd.testing.assert_frame_equal(placed(lawful, kept, schema.rules, schema, rng), lawful)
