"""Weekdays, months and hours of dates: raked to their noisy counts, and kept by samples."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from dpsynth import DPMarginals
from dpsynth.marginals.columns import with_cycles
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid
from dpsynth.table.kinds.date import CYCLES, cycle_places
from dpsynth.table.kinds.number import step_values
from dpsynth.table.schema import Schema

DAY = Column(name="day", kind="date", lower="2010-01-01", upper="2014-12-31", cycles=("weekday", "month"))
TIME = Column(
    name="time", kind="datetime", lower="2010-01-01", upper="2010-12-31", cycles=("hour", "weekday")
)
RNG = np.random.default_rng(0)
GOALS = {cycle: RNG.dirichlet(3 * np.ones(size)) for cycle, size in CYCLES.items()}


def shares(grid: Grid, counts: np.ndarray, cycle: str, n: int = 200_000) -> np.ndarray:
    """Shares of a cycle among draws of the grid's own decoder."""
    cells = RNG.choice(len(counts), size=n, p=counts / counts.sum())
    drawn = grid.decode(cells, RNG.random(n)).dt
    places = {"weekday": drawn.day_of_week, "month": drawn.month - 1, "hour": drawn.hour}[cycle]
    return np.bincount(places, minlength=CYCLES[cycle]) / n


@pytest.mark.parametrize("column", [DAY, TIME], ids=["date", "datetime"])
@pytest.mark.parametrize("cells", [20, 2000])
@pytest.mark.parametrize("habit", [False, True])
def test_draws_have_the_released_shares(column, cells, habit):
    """Catches places counted from another day, a habit that is lost, and months that cells run across."""
    grid = Grid.from_column(column, max_values=cells, default_cells=20)
    if habit and grid.present < (column.n_values or 0):
        grid = dataclasses.replace(grid, habit=np.tile([1.0, 0.0], 7))
    counts = 1000 * RNG.random(grid.size) + 500
    noisy = {cycle: np.append(counts.sum() * GOALS[cycle], 0.0) for cycle in column.cycles}
    made, placed = with_cycles(grid, counts, noisy, 0.0)
    assert placed.sum() == pytest.approx(counts.sum()) and placed.min() >= 0
    for cycle in column.cycles:
        assert np.abs(shares(made, placed, cycle) - GOALS[cycle]).max() < 0.01
    numbers = step_values(column, np.arange(column.n_values or 0))
    if "month" not in column.cycles:
        assert np.abs(placed - counts).max() < 0.2 * counts.max()  # the public cells keep their counts
    elif made.present < len(numbers):
        assert (np.diff(cycle_places(numbers[made.starts[:-1]], "date", "month")) != 0).any()


def test_noise_alone_moves_nothing_much():
    """Catches shares of pure noise, which would make every table's weekdays uneven."""
    column = DAY.model_copy(update={"cycles": ("weekday",)})
    grid = Grid.from_column(column)
    counts = np.full(grid.size, 7.0)
    worst = []
    for _ in range(50):
        noisy = np.append(np.full(7, counts.sum() / 7) + 30 * RNG.standard_normal(7), 0.0)
        made, _ = with_cycles(grid, counts, {"weekday": noisy}, 30.0)
        assert made.habit is not None
        worst.append(np.ptp(made.habit))
    assert np.median(worst) < 0.5 * 30 * 2.7 / (counts.sum() / 7)


def test_a_fit_keeps_weekdays_months_and_hours():
    """Catches counts that no sample follows, and a column whose cycles move with another's."""
    n = 4000
    days = pd.Timestamp("2010-01-01") + pd.to_timedelta(RNG.integers(0, 1825, 4 * n), unit="D")
    kept = days[
        RNG.random(4 * n) < np.where(days.day_of_week < 5, 0.9, 0.2) * np.where(days.month < 4, 1, 0.5)
    ]
    hour = RNG.choice([8, 9, 13, 22], len(kept[:n]), p=[0.4, 0.3, 0.2, 0.1])
    time = pd.Timestamp("2010-01-01") + pd.to_timedelta(RNG.integers(0, 364, n) * 24 + hour, unit="h")
    own = Schema(columns=(DAY.model_copy(update={"missing": True}), TIME), n_public=n)
    real = pd.DataFrame({"day": pd.Series(kept[:n]).where(RNG.random(n) < 0.8), "time": time})
    made = DPMarginals(epsilon=3.0, delta=1e-5).fit(real, schema=own).sample(n)
    for name, part in (("day", "day_of_week"), ("day", "month"), ("time", "hour")):
        a, b = (getattr(frame[name].dropna().dt, part).value_counts(normalize=True) for frame in (real, made))
        assert a.subtract(b, fill_value=0).abs().max() < 0.04, (name, part)
    assert made["day"].isna().mean() == pytest.approx(0.2, abs=0.05)
