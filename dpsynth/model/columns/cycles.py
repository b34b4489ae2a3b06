"""Weekdays, months and hours of dates, from their noisy counts (post-processing).

The distribution of a column of dates is raked (Deming and Stephan 1940). Its values are weighted until
weekdays, months and hours have their released shares. Each share is first moved towards what the distribution
gives, by the part of the difference that is noise. Cells of several values are cut where months begin.
Weekdays and hours become a habit within the cells (:mod:`dpsynth.table.grid`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from dpsynth.model.columns.projection import norm_sub
from dpsynth.releases.gaussian import Array
from dpsynth.table.dates import CYCLES, SECONDS, cycle_places
from dpsynth.table.grid import Grid
from dpsynth.table.values import step_values

#: Rounds of raking.
_ROUNDS = 5
#: Least share of a weekday, a month or an hour, as a part of what the distribution gives.
_LEAST = 1e-3


def with_cycles(grid: Grid, counts: Array, noisy: Mapping[str, Array], std: float) -> tuple[Grid, Array]:
    """Cells and counts whose weekdays, months and hours follow their noisy counts.

    ``counts``, shape (grid.size,): not negative.
    ``noisy``: by cycle, the counts of its places and then of missing values, with noise of deviation ``std``.
    """
    assert grid.starts is not None
    column, apart = grid.column, counts[grid.present :]
    numbers = step_values(column, np.arange(grid.starts[-1]))
    places = {cycle: cycle_places(numbers, column.kind, cycle) for cycle in noisy}
    starts, single = grid.starts, grid.present == grid.starts[-1]
    if "month" in places and not single:
        starts = np.union1d(starts, np.flatnonzero(np.diff(places["month"])) + 1)
    size = np.diff(grid.starts)
    weight = np.repeat(counts[: grid.present] / size, size)
    if grid.habit is not None:
        whole = np.diff(grid.cumulative(grid.starts)) / size
        weight *= np.resize(grid.habit, len(weight)) / np.repeat(whole, size)
    total = float(weight.sum())
    if total <= 0:
        return grid, counts
    goals = {
        cycle: _shrunk(
            np.bincount(place, weight, CYCLES[cycle]).astype(np.float64), noisy[cycle][: CYCLES[cycle]], std
        )
        for cycle, place in places.items()
    }
    factors = {cycle: np.ones(CYCLES[cycle]) for cycle in places}
    for _ in range(_ROUNDS):
        for cycle, place in places.items():
            now = np.bincount(place, weight, CYCLES[cycle])
            factor = np.divide(goals[cycle], now, out=np.zeros_like(now), where=now > 0)
            factors[cycle] *= factor
            weight *= factor[place]
    present = np.add.reduceat(weight, starts[:-1])
    present *= total / present.sum()
    habit = None if single else _habit(grid, numbers, factors)
    return dataclasses.replace(grid, starts=starts, habit=habit), np.concatenate([present, apart])


def _shrunk(expected: Array, noisy: Array, std: float) -> Array:
    """Noisy counts of a cycle's places, moved towards the expected ones as far as noise explains."""
    total = float(expected.sum())
    found = norm_sub(noisy, total)
    known = expected > 0
    gap = np.where(known, found / np.where(known, expected, 1.0) - 1.0, 0.0)
    noise = np.where(known, (std / np.where(known, expected, 1.0)) ** 2, 0.0)
    spread = max(float((gap[known] ** 2).mean() - noise[known].mean()), 0.0)
    kept = np.divide(spread, spread + noise, out=np.zeros_like(noise), where=spread + noise > 0)
    goal = expected * np.maximum(1.0 + kept * gap, _LEAST)
    return goal * (total / goal.sum())


def _habit(grid: Grid, numbers: Array, factors: Mapping[str, Array]) -> Array | None:
    """Relative frequency of the values within cells, by the residue of their number."""
    step = round(float(grid.column.resolution or 1.0) * SECONDS[grid.column.kind])
    whole = {"weekday": 604_800, "hour": 86_400}
    period = max((whole[cycle] // step for cycle in factors if cycle in whole), default=0)
    if not period:
        return grid.habit
    if grid.habit is not None:
        period = int(np.lcm(period, len(grid.habit)))
    # Beyond the column's last value numbers go on.
    first = numbers[0] + np.arange(period) * float(grid.column.resolution or 1.0)
    habit = np.ones(period) if grid.habit is None else np.resize(grid.habit, period)
    for cycle in whole.keys() & factors.keys():
        habit = habit * factors[cycle][cycle_places(first, grid.column.kind, cycle)]
    return habit / habit.mean() if habit.sum() > 0 else grid.habit
