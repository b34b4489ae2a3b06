from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from releases import release_count, release_marginals
from stored import read_back

from dpsynth.errors import ConfigError
from dpsynth.marginals.statistics import MarginalsRelease
from dpsynth.table.grid import Counting, default_cells, default_values, intervals
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=99),
        Column(name="lab", kind="continuous", lower=0.1, upper=50, scale="log", cells=200, missing=True),
        Column(name="group", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="died", kind="binary", categories=(0, 1)),
    ),
    outcome="died",
)


def table(n, rng):
    lab = np.exp(rng.normal(1, 1, n)).clip(0.1, 50)
    group = np.array(["a", "b", "c", None], dtype=object)[rng.integers(0, 4, n)]
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 100, n),
            "lab": np.where(rng.random(n) < 0.2, np.nan, lab),
            "group": group,
            "died": rng.integers(0, 2, n),
        }
    )
    return SCHEMA.conform(frame).frame


def test_exact_release_is_the_empirical_distribution():
    """Post-processing that changes counts which carry no noise."""
    frame = table(500, np.random.default_rng(2))
    released = release_marginals(frame, SCHEMA, noise_multiplier=None, n=500, rng=np.random.default_rng(0))
    for grid, p in zip(released.grids, released.probabilities, strict=True):
        counted = np.bincount(grid.encode(frame[grid.column.name]), minlength=grid.size) / 500
        assert np.allclose(p, counted)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_tiny_tables_under_noise(n):
    """Negative, unnormalised or NaN probabilities where noise exceeds the counts."""
    frame = table(n, np.random.default_rng(3))
    rng = np.random.default_rng(0)
    released = release_marginals(frame, SCHEMA, noise_multiplier=5.0, n=max(n, 1), rng=rng)
    for p in released.probabilities:
        assert np.all(p >= 0) and p.sum() == pytest.approx(1.0)


def test_length_of_the_frame_is_not_used():
    """The private number of records leaking in through the scaling: only n may set it."""
    frame = table(100, np.random.default_rng(5))
    one = release_marginals(frame, SCHEMA, noise_multiplier=2.0, n=70, rng=np.random.default_rng(6))
    assert one.n == 70
    other = release_marginals(frame, SCHEMA, noise_multiplier=2.0, n=170, rng=np.random.default_rng(6))
    assert not np.allclose(one.probabilities[3], other.probabilities[3])


def test_the_error_of_a_private_number_falls_on_all_values_in_proportion():
    """Catches a noisy number of records that is taken off the rarest category: 100 deaths became none."""
    schema = Schema(columns=(SCHEMA.columns[3], Column(name="sex", kind="binary", categories=("F", "M"))))
    frame = pd.DataFrame({"died": np.repeat([0, 1], [9900, 100]), "sex": np.tile(["F", "M"], 5000)})
    for off in (-600.0, 600.0):
        rng = np.random.default_rng(1)
        released = release_marginals(
            schema.conform(frame).frame, schema, noise_multiplier=7.0, n=10_000 + off, n_std=250.0, rng=rng
        )
        assert released.n == pytest.approx(10_000, abs=60)  # sums of two histograms of two cells
        assert released.probabilities[0][1] == pytest.approx(0.01, abs=0.004)


def test_columns_of_many_values_are_counted_twice_where_that_can_show_something():
    """Catches values that are counted beside intervals where noise leaves nothing of them to be seen."""
    column = Column(name="x", kind="integer", lower=0, upper=100_000)
    few = Column(name="k", kind="integer", lower=0, upper=20)
    schema = Schema(columns=(column, few))
    for n, twice in ((300, False), (3000, True)):
        release = MarginalsRelease(schema=schema, n=n, noise_multiplier=10.0)
        assert release.counting.counts_twice(column) == twice == (release.by_value[0] is not None)
    million = column.model_copy(update={"upper": 1e6})
    release = MarginalsRelease(schema=Schema(columns=(million, few)), n=3000, noise_multiplier=10.0)
    assert release.by_value[0].present == 1_000_001
    # Fewer values show at more noise: half of 5,000 records at one of 201 values.
    rate = Schema(columns=tuple(Column(name=f"e{j}", kind="integer", lower=0, upper=200) for j in range(10)))
    release = MarginalsRelease(schema=rate, n=5000, noise_multiplier=19.0)
    assert sum(grid is not None for grid in release.by_value) == 10


@pytest.mark.parametrize(
    ("kind", "bounds", "levels"),
    [
        ("integer", (0, 2**20 + 2), 1),
        ("integer", (-(10**6), 10**9), 2),
        ("integer", (0, 2**52), 3),
        ("date", ("1900-01-01", "9999-12-31"), 1),
        ("datetime", ("1900-01-01", "9999-12-31"), 2),
    ],
)
def test_blocks_and_places_tell_each_value_of_any_range(kind, bounds, levels):
    """Catches residues that leave places open, or that other blocks share, and a count for each value."""
    column = Column(name="x", kind=kind, lower=bounds[0], upper=bounds[1])
    counting = Counting.of(Schema(columns=(column,)), 2000, 5.0)
    width, residues = counting.width(column), counting.places(column)
    assert 2000 < column.n_values / width <= 2**20 and len(residues) == levels
    for part, modulus in residues:
        assert width % part == 0 and 16 * width // part <= modulus < 2**20 + 1440
        width = part
    assert width == 1
    small = Counting.of(Schema(columns=(column,)), 300, 10.0)
    assert not small.counts_twice(column) and not small.residues(column)


def test_last_digits_are_counted_where_values_would_hide_them():
    """Catches last digits that are paid for though they show without, or though noise would hide them."""
    columns = [Column(name="x", kind="integer", lower=0, upper=upper) for upper in (20, 500, 100_000)]
    columns.append(Column(name="real", kind="continuous", lower=0, upper=1))
    columns.append(Column(name="sd", kind="continuous", lower=0, upper=12.375, step=0.02475))
    columns.append(Column(name="day", kind="date", lower="2000-01-01", upper="2020-01-01"))
    columns.append(Column(name="own", kind="integer", lower=0, upper=20_000, cells=50))
    found = {}
    for n in (300, 2000, 20_000, 10**6):
        counting = Counting.of(Schema(columns=tuple(columns[:1])), n, 20.0)
        found[n] = [len(counting.residues(column)) for column in columns]
    assert found == {
        300: [0, 0, 0, 0, 0, 0, 0],
        2000: [0, 1, 1, 0, 0, 0, 0],
        20_000: [0, 0, 1, 0, 0, 0, 0],
        10**6: [0, 0, 0, 0, 0, 0, 0],
    }


def test_a_count_is_at_least_one():
    """A private count below 1, by which everything is divided."""
    frame = pd.DataFrame({"a": np.zeros(1000)})
    assert release_count(frame.iloc[:0], 0.001, np.random.default_rng(7)) == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise_multiplier": 0.0}, "noise_multiplier is 0"),
        ({"noise_multiplier": np.nan}, "is nan"),
        ({"n": 0}, "n is 0"),
        ({"n_std": -1.0}, "n_std is -1.0"),
    ],
)
def test_bad_arguments(change, message):
    """Noise of scale zero or NaN, which would pass as private."""
    arguments = {"noise_multiplier": 1.0, "n": 10, "rng": np.random.default_rng(0)} | change
    with pytest.raises(ConfigError, match=message):
        release_marginals(table(10, np.random.default_rng(0)), SCHEMA, **arguments)


def test_state_round_trip():
    """A saved model whose marginals come back different, or on another column's grid."""
    frame = table(50, np.random.default_rng(8))
    released = release_marginals(frame, SCHEMA, noise_multiplier=1.0, n=50, rng=np.random.default_rng(0))
    back = read_back(released)
    assert (back.n, back.noise_multiplier) == (50, 1.0)
    assert all(np.array_equal(a, b) for a, b in zip(back.probabilities, released.probabilities, strict=True))
    rng, many = np.random.default_rng(0), Column(name="x", kind="integer", lower=0, upper=9999, special=(-1,))
    schema = Schema(columns=(many,))
    values = np.where(np.arange(4000) % 4 == 0, -1, 10 * rng.integers(100, 400, 4000))
    frame = schema.conform(pd.DataFrame({"x": values})).frame
    twice = release_marginals(frame, schema, noise_multiplier=1.0, n=4000, rng=rng)
    again = read_back(twice)
    assert again.counting == twice.counting and twice.counting.twice and twice.grids[0].habit is not None
    assert np.array_equal(again.grids[0].habit, twice.grids[0].habit)
    assert np.array_equal(again.grids[0].starts, twice.grids[0].starts)
    with pytest.raises(ConfigError, match=r"'[a-z]+' has \d+ probabilities for \d+ cells"):
        replace(released, grids=released.grids[::-1])


def test_grids_are_the_schemas(monkeypatch):
    """Catches cells between the smallest and the largest value of the table, which one record moves."""
    column = Column(name="x", kind="continuous", lower=-4, upper=60)
    schema = Schema(columns=(column, Column(name="k", kind="integer", lower=0, upper=500)))
    rng = np.random.default_rng(9)
    frame = schema.conform(
        pd.DataFrame({"x": rng.uniform(20, 30, 80), "k": rng.integers(100, 200, 80)})
    ).frame
    released = release_marginals(frame, schema, noise_multiplier=1.0, n=80, rng=rng)
    for grid, column in zip(released.grids, schema.columns, strict=True):
        lowest, highest = grid.decode([0, grid.present - 1], [0.0, np.nextafter(1, 0)])
        assert lowest == column.lower and highest == pytest.approx(column.upper, abs=1e-6)


def test_cells_follow_a_public_rule_and_are_kept():
    """Catches cells chosen by the data: two tables of one schema, n and noise must share their grids."""
    column = Column(name="x", kind="continuous", lower=0, upper=1)
    count = Column(name="k", kind="integer", lower=0, upper=17)
    schema = Schema(columns=(column, count, *SCHEMA.columns[1:]))
    assert default_cells(285, 17.0) < default_cells(4000, 17.0) <= default_cells(4000, 0.0)
    sizes = set()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        frame = table(30 + 40 * seed, rng).assign(age=rng.random(30 + 40 * seed)).rename(columns={"age": "x"})
        frame["k"] = rng.integers(0, 18, len(frame))
        released = release_marginals(
            schema.conform(frame).frame, schema, noise_multiplier=5.0, n=100, rng=np.random.default_rng(0)
        )
        again = read_back(released)
        assert [g.size for g in again.grids] == [g.size for g in released.grids]
        sizes.add((released.grids[0].size, released.grids[1].size))
    noise = 5.0 * np.sqrt(len(schema))
    # so many intervals of equal width, and as many of equal ratio less the one that they share
    assert sizes == {(intervals(column, default_cells(100, noise)).size, 18)}
    assert default_values(30, noise) < 18 <= default_values(100, noise)
