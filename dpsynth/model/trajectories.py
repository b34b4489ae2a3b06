"""From released tables of rows to the rows of synthetic patients who have their levels: post-processing.

A patient's rows are drawn as chains. They are then moved so that the patient has the drawn levels. Span,
mean, standard deviation and trend are met exactly, until values are rounded and clipped. The chain of the
nearest roughness is kept, out of several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.model.columns.projection import norm_sub
from dpsynth.table.column import Column
from dpsynth.table.draws import draw_conditional
from dpsynth.table.histories import Floats, Standardised, packed
from dpsynth.table.patients import SHARE_CLASSES, PatientSchema
from dpsynth.table.values import category_codes
from dpsynth.table.visits import (
    RATIOS,
    RESIDUALS,
    Ints,
    VisitTable,
    both_measured,
    has_digits,
    rows_since,
    visit_tables,
)

#: Chains of a number of which the one of the nearest roughness is kept.
_TRIES = 10
#: Patients that are drawn at once, which bounds memory.
_BLOCK = 20_000
#: How far a value may move for the sake of its last digit, in steps.
_NEAR = 2


@dataclass(frozen=True)
class Trajectories:
    """Conditional distributions of `dpsynth.table.visits`, as arrays of their shapes."""

    schema: PatientSchema
    tables: Sequence[Floats]

    @classmethod
    def of(cls, schema: PatientSchema, noisy: Sequence[Floats], noise_std: float) -> Trajectories:
        """Estimate the distributions from noisy tables."""
        return cls(schema, [conditional(table, noise_std) for table in noisy])

    def rows(self, levels: pd.DataFrame, rng: np.random.Generator, before: int = 0) -> pd.DataFrame:
        """Rows of synthetic patients with these levels, in order. The unit counts on from ``before``."""
        parts = [
            _Drawing(self, levels.iloc[start : start + _BLOCK].reset_index(drop=True), rng).frame(
                before + start
            )
            for start in range(0, max(len(levels), 1), _BLOCK)
        ]
        return pd.concat(parts, ignore_index=True)

    def to_state(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        """JSON-able record and arrays."""
        return self.schema.to_dict(), {f"{k:03d}": table for k, table in enumerate(self.tables)}

    @classmethod
    def from_state(cls, record: dict[str, Any], arrays: dict[str, Floats]) -> Trajectories:
        """Inverse of `to_state`."""
        return cls(PatientSchema.from_dict(record), [arrays[key] for key in sorted(arrays)])

    @property
    def named(self) -> Iterator[tuple[VisitTable, Floats]]:
        """The tables with their descriptions."""
        return zip(visit_tables(self.schema), self.tables, strict=True)

    def table(self, kind: str, column: str = "") -> Floats:
        """The distribution of this kind and column."""
        return next(p for table, p in self.named if (table.kind, table.column) == (kind, column))


def conditional(noisy: Floats, noise_std: float) -> Floats:
    """Distribution of the last axis given the others.

    Each row of counts is shrunk towards the pooled one by the positive-part rule of James and Stein (1961).
    """
    size = noisy.shape[-1]
    counts = noisy.reshape(-1, size).sum(axis=0)
    everybody = max(float(counts.sum()), 1.0)
    pooled = norm_sub(counts, everybody) / everybody
    total = np.maximum(noisy.sum(axis=-1, keepdims=True), 1e-6)
    away = ((noisy - total * pooled) ** 2).sum(axis=-1, keepdims=True)
    shrink = np.minimum(1.0, noise_std**2 * max(size - 2, 1) / np.maximum(away, 1e-12))
    shrink = np.where(total <= noise_std * np.sqrt(size), 1.0, shrink) if noise_std else 0.0
    found = norm_sub((1 - shrink) * noisy + shrink * total * pooled, total[..., 0])
    return found / np.maximum(found.sum(axis=-1, keepdims=True), 1e-12)


def drawn(table: Floats, rng: np.random.Generator, *parents: Ints) -> Ints:
    """One entry of the last axis for each element of the parents, the indices of the other axes."""
    size = table.shape[-1]
    groups = np.ravel_multi_index(parents, table.shape[:-1])
    return draw_conditional(table.reshape(-1, size), groups, rng, even=False)


def inside(bins: Ints, edges: Floats, density: Floats, rng: np.random.Generator) -> Floats:
    """A value in each bin, by the straight line through the densities of the bins beside it."""
    heights = density / np.diff(edges)
    padded = np.r_[heights[0], heights, heights[-1]]
    slope = np.clip((padded[2:] - padded[:-2]) / np.maximum(4 * heights, 1e-12), -0.95, 0.95)[bins]
    u, flat = rng.random(bins.shape), np.abs(slope) < 1e-6
    safe = np.where(flat, 1.0, slope)
    place = np.where(flat, u, (safe - 1 + np.sqrt((1 - safe) ** 2 + 4 * safe * u)) / (2 * safe))
    return edges[bins] + place * (edges[bins + 1] - edges[bins])


class _Drawing:
    """The rows of one block of patients."""

    def __init__(self, model: Trajectories, levels: pd.DataFrame, rng: np.random.Generator) -> None:
        self.model, self.levels, self.rng = model, levels, rng
        self.schema = model.schema
        self.of_levels = model.schema.levels
        self.count = levels["rows"].to_numpy(dtype=np.int64)
        self.here = np.arange(self.schema.most) < self.count[:, None]

    def number(self, name: str, beside: Floats | None = None) -> Floats:
        """A level. A patient nearby in ``beside``, or any patient, lends one that is not defined."""
        values = np.array(self.levels[name].to_numpy(dtype=np.float64, na_value=np.nan))
        known = np.flatnonzero(~np.isnan(values))
        if not len(known):
            return np.zeros(len(values))
        key = self.rng.random(len(values)) if beside is None else beside
        known = known[np.argsort(key[known], kind="stable")]
        lacks = np.flatnonzero(np.isnan(values))
        place = np.minimum(np.searchsorted(key[known], key[lacks]), len(known) - 1)
        values[lacks] = values[known[place]]
        return values

    def frame(self, start: int) -> pd.DataFrame:
        measured = self.measured()
        times = self.times(measured)
        data: dict[str, Any] = {
            self.schema.unit: np.repeat(np.arange(len(self.count)), self.count) + start + 1
        }
        for column in self.schema.columns:
            name = column.name
            if name in self.schema.per_patient:
                data[name] = np.repeat(self.levels[name].to_numpy(), self.count)
                continue
            if name == self.schema.order:
                data[name] = self.valued(column, times)
                continue
            has = self.here & measured.get(name, self.here)
            values = self.numbers(column, has, times) if column.is_numeric else self.categories(column, has)
            data[name] = self.valued(column, values)
        frame = pd.DataFrame(data)
        unit = frame.pop(self.schema.unit)
        frame = self.schema.table.conform(frame).frame
        frame.insert(0, self.schema.unit, unit)
        return frame

    def valued(self, column: Column, numbers: Floats) -> Any:
        """Drawn numbers of all rows in order, as values of a column."""
        flat = numbers[self.here]
        if not column.is_numeric:
            words = np.array([*column.categories, None], dtype=object)
            return words[np.where(np.isnan(flat), len(column.categories), flat).astype(np.int64)]
        lower, upper = column.bounds
        if column.resolution is not None:
            flat = lower + np.rint((flat - lower) / column.resolution) * column.resolution
        return np.clip(flat, lower, upper)

    def measured(self) -> dict[str, Any]:
        """Which rows have a value of each variable that may be missing."""
        found: dict[str, Any] = {}
        other = np.zeros(self.here.shape, np.int64)
        for column in self.schema.variables:
            if not column.missing:
                continue
            p = self.model.table("measured", column.name)
            level = self.of_levels[f"{column.name} measured"]
            shares = category_codes(level, self.levels[level.name])
            own = np.zeros(self.here.shape, bool)
            since = np.full(len(own), p.shape[0] - 1)
            other = other if p.shape[2] > 1 else np.zeros_like(other)
            for t in range(self.schema.most):
                own[:, t] = drawn(p, self.rng, since, shares, other[:, t]) == 1
                since = rows_since(np.pad(own[:, : t + 1], ((0, 0), (0, 1))))[:, -1]
            own &= self.here
            # The drawn class decides whether there is any value at all, and whether each row has one.
            own[shares == 0] = False
            own[shares == len(SHARE_CLASSES) - 1] = self.here[shares == len(SHARE_CLASSES) - 1]
            lone = np.flatnonzero((shares > 0) & ~own.any(axis=1))
            own[lone, (self.rng.random(len(lone)) * self.count[lone]).astype(np.int64)] = True
            found[column.name] = own
            other = own.astype(np.int64)
        return found

    def times(self, measured: dict[str, Any]) -> Floats:
        """Values of the column that orders the rows."""
        order = self.schema.column(self.schema.order)
        lower, upper = order.bounds
        step = order.resolution or 0.0
        span = np.where(self.count > 1, self.number(f"{order.name} span"), 0.0)
        first = np.minimum(self.number(f"{order.name} first"), upper - span)
        p = self.model.table("gap")
        pair = (
            both_measured(next(iter(measured.values()))) if measured else np.zeros(self.here.shape, np.int64)
        )
        bins = self.chain(p, pair, first=1)
        ratios = inside(bins, RATIOS, p.mean(axis=(0, 1)), self.rng) * self.here
        ratios[:, 0] = 0.0
        gaps = ratios * (span / np.maximum(ratios.sum(axis=1), 1e-12))[:, None]
        times = first[:, None] + np.cumsum(gaps, axis=1)
        if step:
            times = lower + np.rint((times - lower) / step) * step
        return np.where(self.here, np.clip(times, lower, upper), np.nan)

    def chain(self, table: Floats, *fixed: Ints, first: int = 0) -> Ints:
        """Bins of all rows from ``first`` on, each given the one before and ``fixed``, (n,) or (n, most)."""
        bins, last = np.zeros(self.here.shape, np.int64), np.full(len(self.here), table.shape[0] - 1)
        for t in range(first, self.schema.most):
            now = (parent if parent.ndim == 1 else parent[:, t] for parent in fixed)
            last = bins[:, t] = drawn(table, self.rng, last, *now)
        return bins

    def categories(self, column: Column, has: Any) -> Floats:
        """Codes of a category's chain, NaN where there is no value."""
        p = self.model.table("category", column.name)
        levels = self.of_levels[f"{column.name} mode"]
        mode = category_codes(levels, self.levels[levels.name])
        mode = np.clip(mode, 0, p.shape[1] - 1)
        return self.unpacked(self.chain(p, mode).astype(np.float64), has)

    def unpacked(self, values: Floats, has: Any) -> Floats:
        """Values of the measured rows, which stand at the left, at the rows that have one."""
        out = np.full(has.shape, np.nan)
        place = np.maximum(np.cumsum(has, axis=1) - 1, 0)
        out[has] = np.take_along_axis(values, place, axis=1)[has]
        return out

    def numbers(self, column: Column, has: Any, times: Floats) -> Floats:
        """Values of a number's chain, moved to the patient's levels, NaN where there is none."""
        name, n = column.name, len(self.count)
        mean = self.number(f"{name} mean")
        sd, slope, rough = (self.number(f"{name} {of}", mean) for of in ("sd", "trend", "roughness"))
        (_, at) = packed(np.where(has, 0.0, np.nan), times)
        clock, count = Standardised.of(at), has.sum(axis=1)
        slope = np.where(count == 2, np.where(self.rng.random(n) < 0.5, -1.0, 1.0), slope)
        slope = np.where(clock.sd > 1e-9, slope, 0.0)
        p = self.model.table("residual", name)
        density = p.mean(axis=0)
        best, kept = np.full(n, np.inf), np.zeros(self.here.shape)
        absent = np.isnan(at)
        for _ in range(_TRIES):
            left = np.where(absent, np.nan, inside(self.chain(p), RESIDUALS, density, self.rng))
            left = Standardised.of(left).scores
            along = np.nansum(left * clock.scores, axis=1) / np.maximum(count, 1)
            left = Standardised.of(left - along[:, None] * clock.scores).scores
            moved = Standardised.of(slope[:, None] * clock.scores + np.sqrt(1 - slope**2)[:, None] * left)
            miss = np.abs(moved.roughness - rough)
            kept = np.where((miss < best)[:, None], moved.scores, kept)
            best = np.minimum(best, miss)
        values = self.unpacked(mean[:, None] + sd[:, None] * np.nan_to_num(kept), has)
        return self.digits(column, values) if has_digits(column) else values

    def digits(self, column: Column, values: Floats) -> Floats:
        """Values moved by up to two steps, to last digits as often as they were released."""
        lower, step = column.bounds[0], column.resolution or 1.0
        shares = np.maximum(self.model.table("digit", column.name), 1e-6)
        steps = np.rint((np.nan_to_num(values, nan=lower) - lower) / step)
        near = shares[(np.arange(10)[:, None] + np.arange(-_NEAR, _NEAR + 1)) % 10]
        last = steps.astype(np.int64) % 10
        chosen = steps + drawn(near, self.rng, last.ravel()).reshape(steps.shape) - _NEAR
        return np.where(np.isnan(values), np.nan, lower + chosen * step)
