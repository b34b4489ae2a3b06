"""Guesses of a column, against a naive loop."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from attacked_tables import MIXED, fresh

from dpsynth.attacks.attribute_inference import guess, infer_columns, known_columns
from dpsynth.errors import InputError
from dpsynth.evaluation.neighbours import gower_points
from dpsynth.evaluation.tables import Tables
from dpsynth.table.schema import Column, Schema


@pytest.mark.parametrize("name", ["sex", "stage", "ward", "age", "crp"])
def test_guesses_are_those_of_a_naive_loop(name):
    """A vote over the wrong records, a median of the wrong ones, or a tolerance in another unit."""
    tables = fresh((60, 40, 30), 1)
    found = guess(tables, name, np.random.default_rng(0))
    known = MIXED.select([other for other in MIXED.names if other != name])
    column = MIXED.column(name)
    attacked = pd.concat([tables.train, tables.test], ignore_index=True)
    points, others = gower_points(attacked, known), gower_points(tables.synthetic, known)
    tolerance = 0.0
    if column.is_numeric:
        spread = tables.test[name].astype(float).quantile([0.05, 0.95])
        tolerance = max(0.05 * float(spread.iloc[1] - spread.iloc[0]), column.resolution / 2)
        assert found.tolerance == pytest.approx(tolerance)
    for i, point in enumerate(points):
        distance = np.abs(others - point).sum(axis=1)
        said = tables.synthetic[name][distance <= distance.min() + 1e-12]
        assert found.distance[i] == pytest.approx(distance.min(), abs=1e-12)
        truth = attacked[name][i]
        if len(set(map(str, said))) == 1:  # else a median, or a vote that may be tied
            value = said.iloc[0]
            if pd.isna(truth) or pd.isna(value):
                right = pd.isna(truth) and pd.isna(value)
            else:
                right = abs(value - truth) <= tolerance + 1e-9 if column.is_numeric else value == truth
            assert found.right[i] == right, i


def test_the_best_constant_guess_is_the_commonest_value():
    """A baseline by a random draw, which an unbalanced column makes look weak."""
    tables = fresh((100, 200, 200), 2)
    found = guess(tables, "rare", np.random.default_rng(0))
    assert found.constant.mean() == pytest.approx(
        (pd.concat([tables.train, tables.test])["rare"] == 0).mean()
    )


def test_the_worst_off_are_those_whose_known_columns_lie_closest():
    """Worst-off by luck: of 5 % copies among strangers every one must be chosen, and guessed."""
    rng = np.random.default_rng(0)
    columns = tuple(Column(name=name, kind="continuous", lower=0, upper=1) for name in "abc")
    schema = Schema(columns=columns)
    made, train, held_out = (pd.DataFrame(rng.random((200, 3)), columns=list("abc")) for _ in range(3))
    made = pd.concat([made, train[:10]], ignore_index=True)
    tables = Tables.of(made, train=train, test=held_out, schema=schema)
    everybody, worst, *_ = infer_columns(tables, rng=rng)
    assert worst.rate.value == 1.0
    assert worst.found
    assert worst.tries == (30, 30), "ten people of each column"
    assert everybody.rate.value < 0.3


def test_all_columns_are_judged_together():
    """Intervals of many columns at 95 % each, of which some always exclude 0."""
    single = {risk.level for risk in infer_columns(fresh((50, 50, 50), 0), rng=np.random.default_rng(0))[2:]}
    assert single == {1 - 0.05 / 6}


def test_computed_columns_are_neither_known_nor_guessed():
    """A body mass index that gives the weight away by its formula, whatever the table."""
    schema = Schema(
        columns=(
            Column(name="weight", kind="continuous", lower=30, upper=200, decimals=0),
            Column(name="height", kind="continuous", lower=1.2, upper=2.2, decimals=2),
            Column(name="bmi", kind="continuous", lower=5, upper=140, derived="weight / (height * height)"),
        )
    )
    assert known_columns(schema, "weight") == ("height",)
    rng = np.random.default_rng(0)
    frames = [
        pd.DataFrame({"weight": rng.integers(40, 120, 40), "height": rng.uniform(1.5, 2, 40).round(2)})
        for _ in range(3)
    ]
    tables = Tables.of(frames[0], train=frames[1], test=frames[2], schema=schema)
    assert {risk.attack.split(",")[0] for risk in infer_columns(tables, rng=rng)[2:]} == {"weight", "height"}
    assert guess(tables, "bmi", rng).right.shape == (80,)
    with pytest.raises(InputError, match="'zip' is not a column"):
        known_columns(schema, "zip")
