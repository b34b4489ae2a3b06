"""A number that may rise and fall from row to row, such as a laboratory value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth.patients.courses.course import ColumnCourse, RowNumbers, RowTable, flat_cells
from dpsynth.patients.courses.drawing import RowsDrawing, SyntheticLevels, drawn, place_inside
from dpsynth.patients.series import Floats, Ints, Standardised, before, interval_numbers, packed, trend
from dpsynth.table.column import Column

#: Ends of the intervals of residuals.
RESIDUALS: Floats = np.linspace(-3.6, 3.6, 19)
#: The largest roughness.
MOST_ROUGH = 2.2
#: Cells of trends and roughness. Fewer cells have less noise together, and neither has a fine structure.
_TREND_CELLS = 12
#: Steps of standard deviations.
_SD_STEPS = 2_000
#: Values of a history below which its residuals say too little.
_FEWEST_RESIDUALS = 5
#: Whole steps of a column from which last digits are counted.
_MANY_STEPS = 50
#: Least numbers of a patient's values in the classes by which the spread of means is corrected, patients of
#: a class from which on it is, the least share of means' variance between patients, and the largest ratio.
_VALUES, _FEWEST_PATIENTS, _LEAST_BETWEEN, _MOST_WIDER = (1, 2, 3, 5, 10), 50, 0.1, 2.0
#: How far a value may move for the sake of its last digit, in steps.
_NEAR = 2


def length_level(name: str, lower: float, upper: float, step: float | None, unit: str | None) -> Column:
    """The level of a distance between two values, missing where there is one value or none."""
    kind = "integer" if step == 1 else "continuous"
    fields: dict[str, Any] = {"scale": "log" if step else "linear", "unit": unit, "missing": True}
    return Column(name=name, kind=kind, lower=0, upper=upper - lower, step=step, **fields)


def residuals(values: Standardised, times: Standardised) -> Floats:
    """Standardised residuals around each history's line over time, NaN for few or equal values."""
    enough = (values.count >= _FEWEST_RESIDUALS) & values.moves
    slope = trend(values, times)
    left = values.scores - slope[:, None] * times.scores
    left /= np.sqrt(np.maximum(1.0 - slope**2, 1e-3))[:, None]
    return np.where(enough[:, None], left, np.nan)


def _class_of(values: Floats | Ints) -> Ints:
    """The class of numbers of values, 0 for none."""
    return np.maximum(np.searchsorted(_VALUES, values, side="right") - 1, 0)


@dataclass(frozen=True)
class NumberCourse(ColumnCourse):
    """Its levels are the patient's mean, spread, trend and roughness over time."""

    @property
    def levels(self) -> Sequence[Column]:
        """``mean``, ``sd``, ``trend`` and ``roughness``."""
        column, name = self.column, self.column.name
        lower, upper = column.bounds
        number: dict[str, Any] = {"kind": "continuous", "missing": True}
        mean: dict[str, Any] = {"scale": column.scale if lower > 0 else "linear", "missing": column.missing}
        # Zeros have a cell of their own, since many patients have one value throughout. Columns of few values
        # keep the noise of empty cells, so there are many.
        step = (upper - lower) / 2 / _SD_STEPS
        return (
            Column(name=f"{name} mean", kind="continuous", lower=lower, upper=upper, **mean),
            Column(name=f"{name} sd", lower=0, upper=_SD_STEPS * step, step=step, scale="log", **number),
            Column(name=f"{name} trend", lower=-1, upper=1, cells=_TREND_CELLS, **number),
            Column(name=f"{name} roughness", lower=0, upper=MOST_ROUGH, cells=_TREND_CELLS, **number),
        )

    def level_values(self, rows: RowNumbers) -> Mapping[str, Any]:
        """Of the measured values."""
        name = self.column.name
        values, at = packed(rows.numbers[name], rows.numbers[self.facts.order])
        measured = (~np.isnan(values)).sum(axis=1)
        standard, clock = Standardised.of(values), Standardised.of(at)
        moves = standard.moves
        return {
            f"{name} mean": np.where(measured > 0, standard.mean, np.nan),
            f"{name} sd": np.where(measured > 1, standard.sd, np.nan),
            f"{name} trend": np.where(moves, trend(standard, clock), np.nan),
            f"{name} roughness": np.where(moves, standard.roughness, np.nan),
        }

    @property
    def has_digits(self) -> bool:
        """Whether last digits of the column's whole steps are counted."""
        return self.column.n_values is not None and self.column.n_values > _MANY_STEPS

    def tables(self, parents: Mapping[str, Column]) -> Sequence[RowTable]:
        """*residual* and, of a number that is recorded in many whole steps, the last *digit*.

        A residual is the distance from the patient's own line over time, in units of what is left around the
        line. Given is the last one.
        """
        name, bins = self.column.name, len(RESIDUALS) - 1
        found = [RowTable("residual", name, (bins + 1, bins), self._cells)]
        return [*found, RowTable("digit", name, (10,), self._digits)] if self.has_digits else found

    def _cells(self, rows: RowNumbers) -> Ints:
        given = packed(rows.numbers[self.column.name], rows.numbers[self.facts.order])
        bins = interval_numbers(residuals(*map(Standardised.of, given)), RESIDUALS)
        size = len(RESIDUALS) - 1
        return flat_cells((size + 1, size), (before(bins, size),), bins)

    def _digits(self, rows: RowNumbers) -> Ints:
        values = rows.numbers[self.column.name]
        steps = np.rint((values - self.column.bounds[0]) / (self.column.resolution or 1.0))
        return np.where(np.isnan(values), -1, np.nan_to_num(steps) % 10).astype(np.int64)

    def learned(self, levels: SyntheticLevels) -> Mapping[str, Floats]:
        """Where means lie of patients with so many values, and how much wider or narrower they must spread.

        A mean of n values spreads by between^2 + within^2 / n. The model draws means whose spread hardly
        depends on n. Both parts follow from its levels, shape (classes, 2).
        """
        name = self.column.name
        means, sds = levels.codes(f"{name} mean"), levels.codes(f"{name} sd")
        values = np.where(np.isnan(means), 0.0, np.maximum(levels.values_of(name), 1.0))
        several = (values > 1) & ~np.isnan(sds)
        found = np.tile([0.0, 1.0], (len(_VALUES), 1))
        if several.sum() < _FEWEST_PATIENTS:
            return {name: found}
        within = float(np.mean(sds[several] ** 2 * values[several] / (values[several] - 1)))
        part = within / np.maximum(values, 1.0)
        between = float(np.var(means[values > 0]) - part[values > 0].mean())
        between = max(between, _LEAST_BETWEEN * float(np.var(means[values > 0])))
        for k in range(len(_VALUES)):
            own = (_class_of(values) == k) & (values > 0)
            if own.sum() >= _FEWEST_PATIENTS and (spread := float(np.std(means[own]))) > 0:
                ratio = math.sqrt(between + part[own].mean()) / spread
                found[k] = float(means[own].mean()), min(max(ratio, 1 / _MOST_WIDER), _MOST_WIDER)
        return {name: found}

    def draw(self, drawing: RowsDrawing) -> None:
        """A chain of residuals, moved to the patient's levels: of several that of the nearest roughness."""
        name, has = self.column.name, drawing.has(self.column.name)
        mean = drawing.number(f"{name} mean")
        if name in drawing.learned:
            centre, wider = drawing.learned[name][_class_of(has.sum(axis=1))].T
            mean = np.clip(centre + wider * (mean - centre), *self.column.bounds)
        sd, slope, rough = (drawing.number(f"{name} {of}", mean) for of in ("sd", "trend", "roughness"))
        (_, at) = packed(np.where(has, 0.0, np.nan), drawing.columns[self.facts.order])
        clock, count = Standardised.of(at), has.sum(axis=1)
        p = drawing.table("residual", name)
        density, absent = p.mean(axis=0), np.isnan(at)

        def attempt(uniform: Floats) -> tuple[Floats, Floats]:
            line = np.where(count == 2, np.sign(uniform[:, 1] - uniform[:, 0]), slope)
            line = np.where(clock.sd > 1e-9, line, 0.0)[:, None]
            bins, place = drawing.chain(p, uniform)
            left = np.where(absent, np.nan, place_inside(bins, RESIDUALS, density, place))
            left = Standardised.of(left).scores
            along = np.nansum(left * clock.scores, axis=1) / np.maximum(count, 1)
            left = Standardised.of(left - along[:, None] * clock.scores).scores
            moved = Standardised.of(line * clock.scores + np.sqrt(1 - line**2) * left)
            return moved.scores, np.abs(moved.roughness - rough)

        scores = np.nan_to_num(drawing.best(name, has, attempt))
        values = drawing.unpacked(mean[:, None] + sd[:, None] * scores, has)
        drawing.columns[name] = self._with_digits(drawing, values) if self.has_digits else values

    def _with_digits(self, drawing: RowsDrawing, values: Floats) -> Floats:
        """Values moved by up to two steps, to last digits as often as they were released."""
        lower, step = self.column.bounds[0], self.column.resolution or 1.0
        shares = np.maximum(drawing.table("digit", self.column.name), 1e-6)
        steps = np.rint((np.nan_to_num(values, nan=lower) - lower) / step)
        near = shares[(np.arange(10)[:, None] + np.arange(-_NEAR, _NEAR + 1)) % 10]
        last = steps.astype(np.int64) % 10
        chosen = steps + drawn(near, drawing.rng.random(steps.shape), last)[0] - _NEAR
        return np.where(np.isnan(values), np.nan, lower + chosen * step)
