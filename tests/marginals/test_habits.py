import numpy as np
import pandas as pd
import pytest
from releases import release_marginals

from dpsynth.marginals.cells import Residues, find_habit
from dpsynth.marginals.density import denoise
from dpsynth.table.column import Column
from dpsynth.table.grid import Counting, intervals
from dpsynth.table.schema import Schema


def heaped(n: int, upper: int, part: float = 0.425, seed: int = 0) -> np.ndarray:
    """Numbers of which such a part is rounded to fives: 54 % are then multiples of five."""
    rng = np.random.default_rng(seed)
    values = rng.normal(upper / 2, upper / 8, n)
    return np.where(rng.random(n) < part, (values / 5).round() * 5, values.round()).clip(0, upper).astype(int)


def share_of_fives(column: Column, values: np.ndarray, std: float, modulus: int, seed: int) -> float:
    """Share of multiples of five, from noisy counts of intervals, values and residues (0: none)."""
    rng, grid = np.random.default_rng(seed), intervals(column, 40)
    by_value = np.bincount(values, minlength=column.n_values).astype(float)
    exact = [np.add.reduceat(by_value, grid.starts[:-1]), by_value]
    exact += [np.bincount(values % modulus, minlength=modulus)] if modulus else []
    noisy = [count + std * rng.standard_normal(len(count)) for count in exact]
    found, counts = denoise(grid, noisy[0], std, len(values), *noisy[1:])
    made = found.decode(rng.choice(found.size, 20_000, p=counts / counts.sum()), rng.random(20_000))
    return float((made % 5 == 0).mean())


@pytest.mark.parametrize(("upper", "modulus"), [(300, 20), (6000, 20), (20_000, 100)])
def test_last_digits_are_those_of_the_records_where_values_drown(upper, modulus):
    """Catches digit preference that noise hides value by value: 54 % multiples of five that become 20 %."""
    column, std = Column(name="x", kind="integer", lower=0, upper=upper), 30.0
    values = heaped(3000, upper)
    without, ours = (
        np.median([share_of_fives(column, values, std, period, seed) for seed in range(5)])
        for period in (0, modulus)
    )
    assert without < 0.35 or upper == 300  # the fault
    assert ours == pytest.approx((values % 5 == 0).mean(), abs=0.08)


def test_residues_count_from_zero_and_leave_point_masses_out():
    """Catches residues from a column's lower bound, and zeros that make all tens frequent."""
    column = Column(name="x", kind="integer", lower=-3, upper=9999)
    expected = np.full(10, 300.0)
    noisy = np.where(np.arange(10) == 8, 1200.0, 200.0)  # the ninth value is number 5
    factor = find_habit(column, [Residues.of_counts(column, expected, noisy, np.full(10, 25.0**2))])
    assert len(factor) == 10 and factor.argmax() == 8 and factor[8] == pytest.approx(4.0, rel=0.05)
    values = np.where(np.arange(4000) % 2, 0, np.random.default_rng(0).integers(1, 5000, 4000))
    wide = Column(name="x", kind="integer", lower=0, upper=4999)
    made = np.median([share_of_fives(wide, values, 20.0, 20, seed) for seed in range(5)])
    assert made == pytest.approx((values % 5 == 0).mean(), abs=0.05)  # 0.6; all of them fives otherwise


@pytest.mark.parametrize("n", [3000, 20_000])
def test_midnights_keep_their_share(n):
    """Catches half of the times at midnight, that become any minute of the day."""
    column = Column(name="x", kind="datetime", lower="2015-01-01", upper="2025-01-01")
    rng, schema = np.random.default_rng(n), Schema(columns=(column,))
    minute = np.where(rng.random(n) < 0.5, 0, rng.integers(0, 1440, n))
    seen = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3653, n) * 1440 + minute, unit="m")
    frame = schema.conform(pd.DataFrame({"x": seen})).frame
    shares = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        released = release_marginals(frame, schema, n=n, noise_multiplier=14.0, rng=rng)
        (grid,), (p,) = released.grids, released.probabilities
        made = grid.decode(rng.choice(grid.size, 20_000, p=p), rng.random(20_000))
        shares.append((made == made.dt.normalize()).mean())
    assert np.median(shares) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("modulus", [20, 100, 1440])
def test_noise_alone_is_no_habit(modulus):
    """Catches a habit made of the noise of residues in more than one of ten columns."""
    column = Column(name="x", kind="integer", lower=0, upper=50_000)
    if modulus == 1440:
        column = Column(name="x", kind="datetime", lower="2020-01-01", upper="2021-01-01")
    expected, rng = np.full(modulus, 4000 / modulus), np.random.default_rng(modulus)
    found = []
    for _ in range(150):
        noisy = rng.poisson(expected) + 25.0 * rng.standard_normal(modulus)
        found.append(
            find_habit(column, [Residues.of_counts(column, expected, noisy, np.full(modulus, 625.0))])
        )
    assert sum(len(factor) > 1 and factor.max() > 1.5 for factor in found) <= 15


def test_a_single_frequent_residue_leaves_the_others_alike():
    """Catches one price ending that makes noise of all others a habit."""
    column = Column(name="x", kind="integer", lower=0, upper=50_000)
    truth = np.full(100, 16.0)
    truth[99] += 400
    rng = np.random.default_rng(4)
    for _ in range(5):
        noisy = truth + 25.0 * rng.standard_normal(100)
        counts = Residues.of_counts(column, np.full(100, truth.sum() / 100), noisy, np.full(100, 625.0))
        factor = find_habit(column, [counts])
        share = factor / factor.sum()
        assert share[99] == pytest.approx(truth[99] / truth.sum(), abs=0.05)
        assert share[:99].std() < 0.3 * share[:99].mean()


def test_a_column_with_a_cell_for_each_value_reads_residues_too():
    """Catches residues that are paid for and not read where values are counted once."""
    column, values = Column(name="x", kind="integer", lower=60, upper=260), heaped(2000, 200)
    counting = Counting(values=500, digits=40)
    grid = counting.grid(column)
    assert grid.values_per_cell.max() == 1 and counting.residues(column) == ((1, 20),)
    exact = [np.bincount(values, minlength=201), np.bincount(values % 20, minlength=20)]
    shares = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        noisy = [count + 35.0 * rng.standard_normal(len(count)) for count in exact]
        _, counts = denoise(grid, noisy[0], 35.0, 2000.0, None, noisy[1])
        shares.append(counts[::5].sum() / counts.sum())
    assert np.median(shares) == pytest.approx((values % 5 == 0).mean(), abs=0.06)
