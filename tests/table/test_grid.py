import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import ConfigError, DataError, SchemaError
from dpsynth.table.coded import Codes
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(["continuous", "integer", "ordinal", "categorical", "binary"]))
    missing = draw(st.booleans())
    if kind in ("continuous", "integer"):
        scale = draw(st.sampled_from(["linear", "log"]))
        lower = draw(st.integers(1 if scale == "log" else -20, 30))
        upper = lower + draw(st.integers(1, 400))
        fields = {
            "lower": lower,
            "upper": upper,
            "scale": scale,
            "cells": draw(st.sampled_from([None, 1, 2, 7, 300])),
            "special": draw(st.sampled_from([(), (-99,), (-99, 999)])),
        }
        if kind == "continuous":
            fields["decimals"] = draw(st.sampled_from([None, 0, 1, 3]))
        return Column(name="x", kind=kind, missing=missing, **fields)
    labels = draw(st.sampled_from([("a", "b", "c"), (3, 1, 2), (True, False), (0.5, 1.5, 9.0)]))
    if kind == "binary":
        labels = labels[:2]
    return Column(name="x", kind=kind, missing=missing, categories=labels)


def draw_values(column, n, rng):
    """n declared values, missing where allowed, in the canonical dtype."""
    if column.is_numeric:
        if column.resolution is None:
            values = rng.uniform(column.lower, column.upper, n)
        else:
            values = np.round(column.lower + rng.integers(0, column.n_values, n) * column.resolution, 6)
        if column.special:
            values = np.where(rng.random(n) < 0.3, rng.choice(column.special, n), values)
        return column.series(np.where(column.missing & (rng.random(n) < 0.3), np.nan, values))
    labels = np.array([*column.categories, None], dtype=object)
    top = len(column.categories) + (1 if column.missing else 0)
    return column.series(labels[rng.integers(0, top, n)])


def grids(column, rng):
    """The column's public grid, a finer one, and one whose values have a habit."""
    grid = Grid.from_column(column)
    yield grid
    if column.is_numeric and (grid.starts is not None or column.scale == "linear"):
        yield grid.refined(9)
    if column.is_numeric and grid.starts is not None:
        yield dataclasses.replace(grid, habit=rng.uniform(0.1, 3.0, 7))


def read(column: Column, series: pd.Series, row: int) -> tuple[float, int]:
    """Number and place apart of one value, the number None where it says nothing."""
    if pd.isna(series.iloc[row]):
        return None, len(column.special)
    if not column.is_numeric:
        return list(column.categories).index(series.iloc[row]), -1
    number = column.code(series)[row]
    if number in column.special:
        return None, column.special.index(number)
    return number if column.resolution is None else round((number - column.lower) / column.resolution), -1


@settings(max_examples=60, deadline=None)
@given(columns(), st.integers(0, 2**31))
def test_codes_are_those_of_each_value(column, seed):
    """Catches a category, step, special code or missing value that is coded as another."""
    values = draw_values(column, 30, np.random.default_rng(seed))
    codes = Codes.of(column, values)
    for row in range(len(values)):
        number, apart = read(column, values, row)
        assert codes.apart[row] == apart and (number is None or codes.number[row] == number)
    assert codes.missing.tolist() == values.isna().tolist()
    whole = column.n_values is not None
    assert codes.number.dtype == (np.int32 if whole and column.n_values < 2**31 else np.float64)


@settings(max_examples=60, deadline=None)
@given(columns(), st.integers(0, 2**31), st.integers(0, 2))
def test_round_trip(column, seed, which):
    """Catches a changed value or dtype, a lost code or missing value, or a cell that is off by one."""
    rng = np.random.default_rng(seed)
    found = list(grids(column, rng))
    grid = found[min(which, len(found) - 1)]
    values = draw_values(column, 40, rng)
    coded = Codes.of(column, values)
    codes = grid.cells(coded)
    places = grid.position(coded, codes, rng)
    assert codes.min() >= 0 and codes.max() < grid.size
    assert np.all((places >= 0) & (places < 1))
    back = grid.decode(codes, places)
    if column.is_numeric and column.resolution is None:
        assert np.array_equal(back.isna(), values.isna()) and back.dtype == values.dtype
        assert np.allclose(back.dropna(), values.dropna(), rtol=1e-9, atol=1e-9)
    else:
        pd.testing.assert_series_equal(back, values)


@settings(max_examples=80, deadline=None)
@given(columns())
def test_cells_tile_the_declared_values(column):
    """Cells that are empty, overlap, or leave a declared value out."""
    grid = Grid.from_column(column)
    ends = grid.starts if grid.starts is not None else grid.edges
    assert np.all(np.diff(ends) > 0)
    assert grid.size == grid.present + len(column.special) + column.missing
    if grid.starts is not None:
        assert (ends[0], ends[-1]) == (0, column.n_values)
    else:
        assert (ends[0], ends[-1]) == (column.lower, column.upper)


def test_interval_cells_hold_the_same_number_of_steps():
    """Comb patterns: cells whose count depends on where an edge falls between two steps."""
    grid = Grid.from_column(Column(name="x", kind="integer", lower=0, upper=299, cells=60))
    assert set(np.diff(grid.starts)) == {5}


def test_log_cells_have_equal_ratio():
    """A log scale that is spaced linearly."""
    grid = Grid.from_column(Column(name="x", kind="continuous", lower=0.1, upper=10, scale="log", cells=8))
    assert np.allclose(np.diff(np.log(grid.edges)), np.log(100) / 8)


def test_public_rule_of_cells():
    """A grid that depends on anything but the schema, or ignores `cells`."""
    few = Column(name="x", kind="integer", lower=0, upper=100)
    many = Column(name="x", kind="integer", lower=0, upper=1000)
    assert Grid.from_column(few).size == 101
    assert Grid.from_column(many).size == 64
    assert Grid.from_column(few, max_values=50, default_cells=10).size == 10
    assert Grid.from_column(Column(name="x", kind="integer", lower=0, upper=100, cells=7)).size == 7


def test_bounds_go_to_the_end_cells():
    """Values on or beyond a bound that fall off the grid."""
    grid = Grid.from_column(Column(name="x", kind="continuous", lower=0, upper=1, cells=4))
    assert grid.encode(pd.Series([-5.0, 0.0, 1.0, 9.0])).tolist() == [0, 0, 3, 3]
    decoded = grid.decode([0, 3], [0.0, np.nextafter(1, 0)])
    assert decoded[0] == 0 and decoded[1] <= 1


def test_bad_values_are_named():
    """An unknown category or an undeclared missing value that is counted in some cell in silence."""
    grid = Grid.from_column(Column(name="sex", kind="binary", categories=("F", "M")))
    with pytest.raises(DataError, match="'sex', row 2: 'X'"):
        grid.encode(pd.Series(["F", "X"]))
    with pytest.raises(DataError, match="'sex', row 1: the value is missing"):
        grid.encode(pd.Series([None, "F"]))
    with pytest.raises(ConfigError, match="max_values is 0"):
        Grid.from_column(grid.column, max_values=0)


def test_empty_series():
    """A crash on a table without rows."""
    grid = Grid.from_column(Column(name="x", kind="integer", lower=0, upper=3, missing=True))
    codes = grid.encode(pd.Series([], dtype="Int64"))
    assert len(codes) == 0 and len(grid.decode(codes, np.zeros(0))) == 0


def test_positions_are_uniform_within_a_cell():
    """A copula whose coordinate is lumpy: all values of a cell at one place."""
    grid = Grid.from_column(Column(name="x", kind="integer", lower=0, upper=299, cells=60))
    rng = np.random.default_rng(5)
    values = pd.Series(rng.integers(0, 300, 20_000))
    codes = Codes.of(grid.column, values)
    places = grid.position(codes, grid.cells(codes), rng)
    counts = np.histogram(places, 20, (0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 50  # chi-squared, 19 degrees of freedom: p = 1e-4


def test_zeros_below_a_logarithmic_scale_have_a_cell_of_their_own():
    """Zeros that share a cell with small values, or that are clipped to the smallest one."""
    receptor = Column(name="er", kind="integer", lower=0, upper=1144, scale="log", missing=True)
    grid = Grid.from_column(receptor)
    frame = pd.Series([0, 0, 1, 2, 1144, None], dtype="Int64", name="er")
    cells = grid.encode(frame)
    assert cells[:2].tolist() == [0, 0] and cells[2] == 1
    assert grid.values_per_cell[0] == 1 and grid.values_per_cell[:-1].sum() == 1145
    widths = np.diff(grid.starts[2:].astype(float) - 0.5)
    assert widths[-1] > 50 * widths[0]  # the scale is logarithmic from the first step upwards
    back = grid.decode(cells, np.zeros(len(cells)))
    assert back[:3].tolist() == [0, 0, 1] and back.isna()[5]


@pytest.mark.parametrize(
    ("fields", "advice"),
    [
        ({"kind": "continuous", "lower": 0, "upper": 20}, "step or decimals"),
        ({"kind": "continuous", "lower": -1, "upper": 20, "decimals": 1}, "linear"),
    ],
)
def test_a_logarithmic_scale_from_zero_or_below_is_refused_with_advice(fields, advice):
    """A refusal that leaves the author of a schema to guess what to write instead."""
    with pytest.raises(SchemaError, match=advice):
        Column(name="lab", scale="log", **fields)


def test_refined_cells_resolve_values_near_zero_in_wide_bounds():
    """Catches wide bounds whose equal intervals hold all values of a column in one cell."""
    wide = Grid.from_column(Column(name="x", kind="continuous", lower=-50, upper=10_000, decimals=1))
    for grid in (
        wide.refined(64),
        Grid.from_column(Column(name="x", kind="continuous", lower=-50, upper=10_000)).refined(64),
    ):
        codes = grid.encode(pd.Series(np.linspace(0.5, 10, 96)))
        assert len(np.unique(codes)) > 15 > len(np.unique(wide.encode(pd.Series(np.linspace(0.5, 10, 96)))))
        ends = grid.starts if grid.starts is not None else grid.edges
        assert np.all(np.diff(ends) > 0) and (ends[0], ends[-1]) in {(0, 100_501), (-50.0, 10_000.0)}


def test_values_are_written_down_as_often_as_their_habit_says():
    """Catches a habit that counts from another value, or values of a cell that are drawn evenly."""
    column = Column(name="x", kind="integer", lower=3, upper=42)
    grid = Grid(column, np.array([0, 11, 40]), None, np.array([4.0, 1.0, 1.0, 1.0, 1.0]))
    places = (np.arange(40_000) + 0.5) / 40_000
    for cell in (0, 1):
        drawn = grid.decode(np.full(len(places), cell), places)
        inside = np.arange(grid.starts[cell], grid.starts[cell + 1])
        weights = np.where(inside % 5 == 0, 4.0, 1.0)
        shares = drawn.value_counts(normalize=True).sort_index()
        assert shares.index.tolist() == (inside + 3).tolist()
        np.testing.assert_allclose(shares, weights / weights.sum(), atol=1e-4)


def test_counts_are_summed_onto_other_cells():
    """Catches counts that are lost, or that go to a neighbour, where cells are cut in other places."""
    column = Column(name="x", kind="integer", lower=0, upper=19, missing=True)
    fine, coarse = (Grid(column, np.array(starts), None) for starts in ([0, 4, 5, 12, 20], [0, 5, 10, 20]))
    counts = np.array([8.0, 3.0, 7.0, 16.0, 2.0])
    np.testing.assert_allclose(fine.summed(counts, coarse), [11.0, 5.0, 18.0, 2.0])
    np.testing.assert_allclose(fine.summed(counts, fine), counts)
    real = Column(name="x", kind="continuous", lower=0, upper=4)
    halves, thirds = (Grid(real, None, np.array(edges)) for edges in ([0.0, 2.0, 4.0], [0.0, 1.0, 4.0]))
    np.testing.assert_allclose(halves.summed(np.array([6.0, 2.0]), thirds), [3.0, 5.0])
