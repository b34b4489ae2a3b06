"""Links by way of the synthetic table, against a naive search."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from attacked_tables import MIXED

from dpsynth.attacks.linkability import check_linked, columns_of, link_people, tied_nearest
from dpsynth.errors import InputError
from dpsynth.evaluation.neighbours import metric_named
from dpsynth.evaluation.tables import Tables
from dpsynth.table.schema import Column, Schema


def test_links_are_those_of_a_naive_search():
    """A search that finds others than the nearest, or compares training with held-out rows."""
    columns = tuple(Column(name=name, kind="continuous", lower=0, upper=9) for name in "ab")
    rng = np.random.default_rng(3)
    made, train, test = (pd.DataFrame(rng.uniform(0, 9, (n, 2)), columns=["a", "b"]) for n in (4, 60, 50))
    tables = Tables.of(made, train=train, test=test, schema=Schema(columns=columns))
    found = link_people(tables, (["a"], ["b"]), rng=rng)
    for frame, rate in ((train, found.rate), (test, found.held_out)):
        a, b = (
            np.abs(frame[name].to_numpy()[:, None] - made[name].to_numpy()).argmin(axis=1) for name in "ab"
        )
        assert 0 < rate.value == (a == b).mean() < 1


def test_ties_do_not_link_everybody():
    """Taking the first of equally close records for both parts, which links records of few categories."""
    columns = tuple(Column(name=name, kind="binary", categories=("0", "1")) for name in "ab")
    schema, rng = Schema(columns=columns), np.random.default_rng(0)
    made, train, held_out = (
        pd.DataFrame({name: rng.choice(["0", "1"], n) for name in "ab"}) for n in (400, 2000, 500)
    )
    tables = Tables.of(made, train=train, test=held_out, schema=schema)
    found = link_people(tables, (["a"], ["b"]), rng=rng)
    # about 100 of 400 records agree with both parts, of 200 that agree with either: 100 / 200 / 200
    assert found.rate.value == pytest.approx(1 / 400, abs=0.004)
    assert found.without.value == pytest.approx(1 / 400)


def test_ties_are_drawn_evenly_and_alike_with_one_seed():
    """A draw that depends on threads, or prefers some of the tied."""
    flat = np.zeros((6000, 1))
    drawn = [tied_nearest(flat, flat[:3], metric_named("gower"), 5) for _ in range(2)]
    assert (drawn[0] == drawn[1]).all()
    assert np.bincount(drawn[0].ravel()).min() > 1800


def test_columns_held_twice_or_unknown_are_refused():
    """A link by a shared column, which succeeds by itself."""
    with pytest.raises(InputError, match="'age' is in both"):
        check_linked((["age", "sex"], ["age"]), MIXED)
    with pytest.raises(InputError, match="'zip' is not a column"):
        check_linked((["age"], ["zip"]), MIXED)
    with pytest.raises(InputError, match="empty"):
        check_linked((["age"], []), MIXED)
    assert columns_of(MIXED, ["crp", "age"]).names == ("crp", "age")
