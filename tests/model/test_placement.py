"""Exchanges within bins: rules that hold afterwards, and all that stays as it was."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth import Column, Schema
from dpsynth.model.placement import placed

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


def test_each_bin_keeps_its_values():
    """Catches a value that is lost, doubled or moved to another bin: released counts would be missed."""
    frame, cells = records()
    found = placed(frame, cells, SCHEMA.rules, SCHEMA, np.random.default_rng(1))
    assert (found["sex"] == frame["sex"]).all()
    for name, (cell, labels) in cells.items():
        label = labels[cell]
        for one in np.unique(label):
            np.testing.assert_array_equal(
                np.sort(found[name][label == one].to_numpy(float, na_value=-1)),
                np.sort(frame[name][label == one].to_numpy(float, na_value=-1)),
            )


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
