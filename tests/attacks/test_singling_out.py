"""Descriptions that fit exactly one record, against plain pandas and by enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from attacked_tables import MIXED, patients

from dpsynth.attacks.singling_out import (
    codes,
    fits,
    lone_chance,
    matches,
    of_one_column,
    of_schema,
    of_several,
    single_out,
)
from dpsynth.evaluation.tables import Tables
from dpsynth.table.schema import Column, Schema


@pytest.mark.parametrize(("n", "k"), [(5, 5), (6, 3), (5, 1)])
def test_the_chance_of_a_lone_match_is_that_of_all_parts(n, k):
    """A wrong correction for tables of unequal size."""
    parts = list(combinations(range(n), k))
    for c in range(n + 1):
        lone = np.mean([sum(record < c for record in part) == 1 for part in parts])
        assert lone_chance(np.array([c]), n, k)[0] == pytest.approx(lone, abs=1e-12)


def test_descriptions_fit_one_synthetic_record_and_are_counted_right():
    """Descriptions that fit nobody or several, that come twice, or counts other than those of pandas."""
    rng = np.random.default_rng(0)
    made, real = (MIXED.conform(patients(80, rng)).frame for _ in range(2))
    points, others = codes(made, MIXED), codes(real, MIXED)
    several = of_several(points, MIXED, 3, 60, rng)
    assert len(several) == len(set(several)) == 60
    for description in [*of_one_column(points, MIXED, 60, rng), *several]:
        assert int(fits(description, points).sum()) == 1
    counts = np.asarray(matches(several, others).sum(axis=1)).ravel()
    for description, count in zip(several, counts, strict=True):
        assert _by_pandas(description, made, real, points) == count


def _by_pandas(description, made, real, points):
    """Count with the values of the one synthetic record that the description was read off."""
    source = made.iloc[int(np.flatnonzero(fits(description, points))[0])]
    fitting = pd.Series(True, index=real.index)
    for condition in description:
        name = MIXED.names[condition.column]
        column = MIXED.column(name)
        values, value = real[name], source[name]
        if condition.sign == "missing":
            fitting &= values.isna()
            continue
        if column.is_ordinal:
            order = list(column.categories)
            values, value = values.map(order.index), order.index(value)
        if condition.sign == "==":
            fitting &= (values == value).fillna(False).astype(bool)
        else:
            compare = values.le if condition.sign == "<=" else values.ge
            # the record may lie beyond the value it was read off only if both signs are the same
            fitting &= compare(value).fillna(False).astype(bool)
    return int(fitting.sum())


def test_two_equal_people_are_not_singled_out():
    """Records that are made unique first, so that a description of two counts as one of one."""
    schema = Schema(columns=(Column(name="age", kind="integer", lower=0, upper=99),))
    made, train = pd.DataFrame({"age": [10, 20, 30]}), pd.DataFrame({"age": [10, 10, 50]})
    tables = Tables.of(made, train=train, test=pd.DataFrame({"age": [10, 60, 70]}), schema=schema)
    found = single_out(tables, columns=1, rng=np.random.default_rng(0))
    # == 10, <= 10, == 20, == 30, >= 30: of the training records 10 fits two and >= 30 one, of the held-out
    # ones 10 fits one and >= 30 two
    assert found.tries == (5, 5)
    assert found.rate.value == pytest.approx(1 / 5)
    assert found.held_out.value == pytest.approx(2 / 5)


def test_without_the_table_nothing_of_it_is_known():
    """A baseline that reads the synthetic values; it must stay within the public schema."""
    rng = np.random.default_rng(0)
    for description in of_schema(MIXED, 2, 50, rng):
        for condition in description:
            column = MIXED.columns[condition.column]
            assert 0 <= condition.value < column.n_values
