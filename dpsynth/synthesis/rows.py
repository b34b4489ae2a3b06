"""Rows of synthetic patients: trajectories, and rows for given levels. Post-processing, free of cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.metrics import mutual_info_score

from dpsynth.errors import RejectionError
from dpsynth.files.codec import record
from dpsynth.marginals.density import norm_sub
from dpsynth.patients.files import Presence
from dpsynth.patients.histories import (
    RATIOS,
    RESIDUALS,
    Floats,
    Ints,
    Standardised,
    VisitTable,
    gap_edges,
    has_digits,
    is_last,
    kind_pairs,
    linked,
    measured_before,
    of_several_files,
    packed,
    packed_to,
    presence_class,
    rows_since,
    share_class,
    small_categories,
    visit_tables,
)
from dpsynth.patients.schema import PRESENCE_CLASSES, SHARE_CLASSES, PatientSchema
from dpsynth.synthesis.row_rules import lawful
from dpsynth.table.column import Column
from dpsynth.table.draws import draw_entry
from dpsynth.table.kinds.category import categories_at, category_codes, positions
from dpsynth.table.kinds.number import step_values

# ------------------------------------------------------------------------------------------------
# Distributions of what each row adds to a patient's levels, estimated from released tables.


@record
@dataclass(frozen=True)
class Trajectories:
    """Conditional distributions of `dpsynth.patients.histories`, as arrays of their shapes.

    In place of the pairs' table stands a correlation matrix, see `correlations`. The tables *end*, *beside*
    and, in one file, *kinds* are ratios to the distribution of all rows. ``parents`` are those of
    `visit_tables`.
    ``noise_std``: of each count that they were estimated from.
    """

    schema: PatientSchema
    tables: tuple[Floats, ...]
    parents: Mapping[str, str]
    noise_std: float

    @classmethod
    def of(
        cls,
        schema: PatientSchema,
        noisy: Sequence[Floats],
        noise_std: float,
        parents: Mapping[str, str] | None = None,
    ) -> Trajectories:
        """Estimate the distributions from noisy tables."""
        kinds = visit_tables(schema, parents)
        chosen = {table.column: table.parent for table in kinds if table.parent}
        names = [column.name for column in linked(schema)]
        found = []
        for table, sums in zip(kinds, noisy, strict=True):
            if table.kind == "pairs":
                # The categories of a row that are linked by a table are not linked once more.
                apart = [chosen.get(b) == a for a, b in combinations(names, 2)]
                sums = np.where(np.array(apart)[:, None], 1.0, sums)
                found.append(correlations(sums, len(names), noise_std))
            elif table.kind in ("end", "beside"):
                found.append(ratios(shrunk_conditional(sums, noise_std), sums))
            elif table.kind == "kinds":
                gaps = gaps_of_kinds(sums, noise_std)
                found.append(gaps if of_several_files(schema) else ratios(gaps, sums))
            else:
                found.append(shrunk_conditional(sums, noise_std))
        return cls(schema, tuple(found), chosen, noise_std)

    @cached_property
    def factor(self) -> Floats:
        """Cholesky factor of the correlations of the linked variables' steps."""
        count = len(linked(self.schema))
        return np.linalg.cholesky(self.table("pairs")) if count > 1 else np.eye(count)

    @property
    def gaps(self) -> Floats:
        """Weights of a gap given the last one and the kinds of both rows, as far as there are tables."""
        found = {table.kind: p for table, p in self.named if table.kind in ("gap", "kinds")}
        return found.get("kinds", np.ones((1, 1))) * found.get("gap", np.ones((1, 1)))[:, None]

    @property
    def named(self) -> Iterator[tuple[VisitTable, Floats]]:
        """The tables with their descriptions."""
        return zip(visit_tables(self.schema, self.parents), self.tables, strict=True)

    def table(self, kind: str, column: str = "") -> Floats:
        """The distribution of this kind and column."""
        return next(p for table, p in self.named if (table.kind, table.column) == (kind, column))


def likely_parents(schema: PatientSchema, levels: pd.DataFrame) -> dict[str, str]:
    """For each category of few values the earlier one with which it shares most information.

    The levels are of synthetic patients: the information is that of their most frequent categories.
    """
    columns, found = small_categories(schema), {}
    codes = [category_codes(column, levels[f"{column.name} mode"]) for column in columns]
    for k, column in enumerate(columns[1:], start=1):
        shared = [mutual_info_score(codes[k], codes[j]) for j in range(k)]
        found[column.name] = columns[int(np.argmax(shared))].name
    return found


def pooled(counts: Floats) -> Floats:
    """Distribution of the last axis."""
    summed = counts.reshape(-1, counts.shape[-1]).sum(axis=0)
    everybody = max(float(summed.sum()), 1.0)
    return norm_sub(summed, everybody) / everybody


def ratios(given: Floats, counts: Floats) -> Floats:
    """Distributions of the last axis over that of all ``counts``."""
    return given / np.maximum(pooled(counts), 1e-3)


def gaps_of_kinds(noisy: Floats, noise_std: float) -> Floats:
    """Distribution of gaps given the kinds of both rows, shrunk towards that of the later row's kind."""
    kinds = math.isqrt(len(noisy))
    later = shrunk_conditional(noisy.reshape(kinds, kinds, -1).sum(axis=0), noise_std * np.sqrt(kinds))
    return shrunk_conditional(noisy, noise_std, np.tile(later, (kinds, 1)))


def shrunk_conditional(noisy: Floats, noise_std: float, usual: Floats | None = None) -> Floats:
    """Distribution of the last axis given the others.

    Each row of counts is shrunk towards the ``usual`` one, by default the pooled one. This is the
    positive-part rule of James and Stein (1961).
    """
    size = noisy.shape[-1]
    everyone = pooled(noisy) if usual is None else usual
    total = np.maximum(noisy.sum(axis=-1, keepdims=True), 1e-6)
    away = ((noisy - total * everyone) ** 2).sum(axis=-1, keepdims=True)
    shrink = np.minimum(1.0, noise_std**2 * max(size - 2, 1) / np.maximum(away, 1e-12))
    shrink = np.where(total <= noise_std * np.sqrt(size), 1.0, shrink) if noise_std else 0.0
    found = norm_sub((1 - shrink) * noisy + shrink * total * everyone, total[..., 0])
    return found / np.maximum(found.sum(axis=-1, keepdims=True), 1e-12)


def correlations(pairs: Floats, count: int, noise_std: float) -> Floats:
    """Correlation matrix of normal steps of ``count`` variables that agree and differ so often.

    Two normal variables of correlation r have the same sign with probability 1/2 + arcsin(r) / pi (Sheppard
    1899). Differences are shrunk by their noise, and the nearest matrix without negative eigenvalues follows.
    """
    away, total = pairs[:, 0] - pairs[:, 1], np.maximum(pairs.sum(axis=1), 1e-6)
    shrink = np.maximum(0.0, 1 - 2 * noise_std**2 / np.maximum(away**2, 1e-12))
    found = np.eye(count)
    found[np.triu_indices(count, 1)] = np.sin(np.pi / 2 * np.clip(shrink * away / total, -1.0, 1.0))
    values, vectors = np.linalg.eigh(np.triu(found) + np.triu(found, 1).T)
    near = (vectors * np.maximum(values, 1e-3)) @ vectors.T
    scale = np.sqrt(np.diag(near))
    return near / np.outer(scale, scale)


# ------------------------------------------------------------------------------------------------
# Draw the rows of synthetic patients who have given levels: post-processing.
#
# A patient's rows are drawn as chains. They are then moved so that the patient has the drawn levels. Span,
# mean, standard deviation and trend are met exactly, until values are rounded and clipped. The chain of the
# nearest roughness is kept, out of several.

#: Chains of a number of which the one of the nearest roughness is kept.
_TRIES = 10
#: Patients that are drawn at once, which bounds memory.
_BLOCK = 20_000
#: Draws of patients of whom a row breaks a rule.
_TURNS = 10
#: How far a value may move for the sake of its last digit, in steps.
_NEAR = 2


def draw_rows(
    model: Trajectories, levels: pd.DataFrame, rng: np.random.Generator, before: int = 0
) -> pd.DataFrame:
    """Rows of synthetic patients with these levels, in order. The unit counts on from ``before``."""
    parts = []
    for start in range(0, max(len(levels), 1), _BLOCK):
        parts.append(_block(model, levels.iloc[start : start + _BLOCK], rng, before + start + 1))
    return pd.concat(parts, ignore_index=True)


def _block(model: Trajectories, levels: pd.DataFrame, rng: np.random.Generator, number: int) -> pd.DataFrame:
    """Rows of a block of patients, the first of whom has this number.

    Patients of whom a row breaks a rule are drawn again, at last with the levels of others.
    """
    open_, done, parts = np.arange(len(levels)), np.zeros(0, np.int64), []
    chosen = open_
    for turn in range(_TURNS):
        frame, unit, broken = _Drawing(model, levels.iloc[chosen].reset_index(drop=True), rng).frame()
        wrong = np.bincount(unit[broken], minlength=len(open_)) > 0
        frame.insert(0, model.schema.unit, open_[unit] + number)
        if not model.schema.timed:
            frame.insert(1, model.schema.order, frame.groupby(model.schema.unit).cumcount() + 1)
        parts.append(frame[~wrong[unit]])
        done, open_ = np.concatenate([done, chosen[~wrong]]), open_[wrong]
        if not len(open_):
            return pd.concat(parts).sort_values(model.schema.unit, kind="stable", ignore_index=True)
        if not len(done):
            break
        chosen = open_ if turn < _TURNS // 2 else done[rng.integers(0, len(done), len(open_))]
    rules = "; ".join(map(str, model.schema.constraints))
    raise RejectionError(
        "the rows of synthetic patients cannot obey all constraints together "
        f"({rules}). Correct them if they are not true of the real table"
    )


def drawn(table: Floats, uniform: Floats, *parents: Ints) -> tuple[Ints, Floats]:
    """One entry of the last axis for each uniform, given the indices of the other axes.

    Also the place of the uniform within the entry's part of [0, 1).
    """
    size = table.shape[-1]
    groups = np.ravel_multi_index(parents, table.shape[:-1])
    ends = np.cumsum(table.reshape(-1, size), axis=1)
    ends[ends[:, -1] <= 0] = np.arange(1, size + 1)  # a group without weight is uniform
    ends /= ends[:, -1:]
    # One ascending list of all groups' ends lets a single search serve all.
    shifted = (ends + np.arange(len(ends))[:, None]).ravel()
    entry = np.searchsorted(shifted, groups + uniform, side="right") - groups * size
    entry = np.clip(entry, 0, size - 1)
    ends = np.concatenate([np.zeros((len(ends), 1)), ends], axis=1)
    lower, upper = ends[groups, entry], ends[groups, entry + 1]
    return entry, np.clip((uniform - lower) / np.maximum(upper - lower, 1e-12), 0.0, 1.0)


def place_inside(bins: Ints, edges: Floats, density: Floats, place: Floats) -> Floats:
    """The value at a place in each bin, by the straight line through the densities of the bins beside it."""
    heights = density / np.diff(edges)
    padded = np.r_[heights[0], heights, heights[-1]]
    slope = np.clip((padded[2:] - padded[:-2]) / np.maximum(4 * heights, 1e-12), -0.95, 0.95)[bins]
    flat = np.abs(slope) < 1e-6
    safe = np.where(flat, 1.0, slope)
    part = np.where(flat, place, (safe - 1 + np.sqrt((1 - safe) ** 2 + 4 * safe * place)) / (2 * safe))
    return edges[bins] + part * (edges[bins + 1] - edges[bins])


class _Drawing:
    """The rows of one block of patients."""

    def __init__(self, model: Trajectories, levels: pd.DataFrame, rng: np.random.Generator) -> None:
        self.model, self.levels, self.rng = model, levels, rng
        self.schema = model.schema
        self.of_levels = model.schema.levels
        self.count = levels["rows"].to_numpy(dtype=np.int64)
        self.here = np.arange(self.schema.most) < self.count[:, None]
        self.links = {column.name: k for k, column in enumerate(linked(self.schema))}
        self.kept: list[Floats] = []
        self.few = {column.name for column in small_categories(self.schema)}
        self.drawn_codes: dict[str, Ints] = {}

    def number(self, name: str, beside: Floats | None = None) -> Floats:
        """A level. A patient nearby in ``beside``, or any patient, lends one that is not defined."""
        values = self.of_levels[name].code(self.levels[name]).copy()
        known = np.flatnonzero(~np.isnan(values))
        if not len(known):
            return np.zeros(len(values))
        key = self.rng.random(len(values)) if beside is None else beside
        known = known[np.argsort(key[known], kind="stable")]
        lacks = np.flatnonzero(np.isnan(values))
        place = np.minimum(np.searchsorted(key[known], key[lacks]), len(known) - 1)
        values[lacks] = values[known[place]]
        return values

    def codes(self, name: str) -> Ints:
        """A level's categories as numbers, -1 where it is missing."""
        return category_codes(self.of_levels[name], self.levels[name])

    def frame(self) -> tuple[pd.DataFrame, Ints, NDArray[np.bool_]]:
        """The rows, the place of each row's patient, and which rows break a rule."""
        schema = self.schema
        last = is_last(self.count, schema.most)
        events = {name: last & (self.codes(name) == 1)[:, None] for name in schema.terminal}
        presences = self.presences(events)
        times = self.times(presences)
        # a column that may be missing within the rows of its file comes after the file
        measured = {c: presences[each.name] for each in schema.presences for c in each.columns}
        data: dict[str, Any] = {}
        if schema.timed:
            data[schema.order] = self.valued(schema.column(schema.order), times)
        for column in schema.variables:
            has = measured.get(column.name, self.here)
            if column.name in schema.terminal:
                values = events[column.name].astype(np.float64)
            elif column.name in schema.increasing:
                values = self.course(column, has)
            else:
                values = (
                    self.numbers(column, has, times) if column.is_numeric else self.categories(column, has)
                )
            data[column.name] = self.valued(column, values)
        for name in self.of_levels.names:
            if name in schema.per_patient:
                data[name] = np.repeat(self.levels[name].to_numpy(), self.count)
        unit = np.repeat(np.arange(len(self.count)), self.count)
        own = schema.table.modelled.conform(pd.DataFrame(data)).frame
        frame, broken = lawful(own, schema, unit, self.rng)
        return frame, unit, broken

    def valued(self, column: Column, numbers: Floats) -> Any:
        """Drawn numbers of all rows in order, as values of a column."""
        flat = numbers[self.here]
        if not column.is_numeric:
            return categories_at(column, flat)
        lower, upper = column.bounds
        if column.resolution is not None:
            flat = step_values(column, np.rint((flat - lower) / column.resolution))
        return column.series(np.clip(flat, lower, upper))

    def presences(self, events: Mapping[str, NDArray[np.bool_]]) -> dict[str, NDArray[np.bool_]]:
        """Which rows have each of the schema's presences. A terminal event has a row of its file."""
        found: dict[str, NDArray[np.bool_]] = {}
        for home in dict.fromkeys(presence.within for presence in self.schema.presences):
            drawn_here: list[NDArray[np.bool_]] = []
            group = [presence for presence in self.schema.presences if presence.within == home]
            of = found.get(home, self.here)
            for presence in group:
                own = self.presence(presence, of, measured_before(drawn_here, of.shape))
                for name in events.keys() & {*presence.columns}:
                    own |= events[name]
                found[presence.name] = own
                drawn_here.append(own)
            self.fill(drawn_here, of & self.incomplete(home, group, events))
        return found

    def incomplete(
        self, home: str, group: Sequence[Presence], events: Mapping[str, NDArray[np.bool_]]
    ) -> NDArray[np.bool_]:
        """Rows that need one presence of a group, since nothing else would be there."""
        schema = self.schema
        columns = {c for each in schema.presences if each.name == home for c in each.columns}
        columns = columns or {column.name for column in schema.variables}
        ends = columns & {*schema.terminal}
        always = columns - ends - {c for each in group for c in each.columns}
        # In one file a row may say that the patient is alive, and no more.
        if always or (ends and not (schema.files and schema.folder.apart)):
            return np.zeros(self.here.shape, bool)
        return ~np.logical_or.reduce([np.zeros(self.here.shape, bool), *(events[name] for name in ends)])

    def presence(self, presence: Presence, of: NDArray[np.bool_], beside: Ints) -> NDArray[np.bool_]:
        """The rows among ``of`` in which something is there, as the drawn class of their share says."""
        p, count = self.model.table("measured", presence.name), of.sum(axis=1)
        shares = self.shares(presence.level)
        there, beside = np.arange(self.schema.most) < count[:, None], packed_to(of, beside)
        own, off = np.zeros(of.shape, bool), count > 0
        for _ in range(_TRIES):
            own[off] = self.presence_chain(p, shares[off], beside[off]) & there[off]
            off = (presence_class(own, there) != shares) & (count > 0)
        # The drawn class decides whether it is there at all, and whether it is in each row.
        own[shares == 0] = False
        own[shares == len(PRESENCE_CLASSES) - 1] = there[shares == len(PRESENCE_CLASSES) - 1]
        own[(shares == 1) & (own.sum(axis=1) > 1)] = False
        lone = np.flatnonzero((shares > 0) & (count > 0) & ~own.any(axis=1))
        own[lone, (self.rng.random(len(lone)) * count[lone]).astype(np.int64)] = True
        return self.unpacked(own, of) == 1

    def shares(self, level: str) -> Ints:
        """Classes of a share of rows. A patient who has one lends it to a patient without."""
        codes = self.codes(level)
        known, lacks = codes[codes >= 0], np.flatnonzero(codes < 0)
        if len(lacks):
            codes[lacks] = self.rng.choice(known if len(known) else [len(PRESENCE_CLASSES) - 1], len(lacks))
        return codes

    def presence_chain(self, table: Floats, shares: Ints, beside: Ints) -> NDArray[np.bool_]:
        """Chains of rows in which something is there, for patients of these classes, (n, most)."""
        own, since = np.zeros(beside.shape, bool), np.full(len(beside), table.shape[0] - 1)
        uniform = self.rng.random(own.shape)
        for t in range(self.schema.most):
            own[:, t] = drawn(table, uniform[:, t], since, shares, beside[:, t])[0] == 1
            since = rows_since(np.pad(own[:, : t + 1], ((0, 0), (0, 1))))[:, -1]
        return own

    def fill(self, measured: Sequence[NDArray[np.bool_]], of: NDArray[np.bool_]) -> None:
        """Give a row among ``of`` without any of these one that the patient has, or else any."""
        row = np.argwhere(of & ~np.logical_or.reduce(measured))
        likely = np.array([float(has.sum()) for has in measured])
        own = np.stack([has.any(axis=1) for has in measured], axis=1)[row[:, 0]]
        chosen = draw_entry(np.where(own.any(axis=1, keepdims=True), own * likely, likely + 1.0), self.rng)
        for k, has in enumerate(measured):
            has[tuple(row[chosen == k].T)] = True

    def times(self, measured: Mapping[str, NDArray[np.bool_]]) -> Floats:
        """Values of the column that orders the rows, or their numbers."""
        schema = self.schema
        if not schema.timed:
            return np.where(self.here, np.arange(schema.most), np.nan)
        order = schema.column(schema.order)
        lower, upper = order.bounds
        span = np.where(self.count > 1, self.number(f"{order.name} span") / order.unit_size, 0.0)
        first = np.minimum(self.number(f"{order.name} first"), upper - span)
        pair = kind_pairs(measured, schema, self.here.shape)
        times = first[:, None] + self.climb(self.model.gaps, gap_edges(schema), span, self.here, pair)
        if step := order.resolution:
            times = lower + np.rint((times - lower) / step) * step
        return np.where(self.here, np.clip(times, lower, upper), np.nan)

    def climb(self, table: Floats, edges: Floats, total: Floats, here: Any, *fixed: Ints) -> Floats:
        """Sums of steps that add up to ``total`` over the values that are there, which stand at the left."""
        bins, place = self.chain(table, self.rng.random(here.shape), *fixed, first=1)
        density = table.mean(axis=tuple(range(table.ndim - 1)))
        steps = place_inside(bins, edges, density, place) * here
        steps[:, 0] = 0.0
        return np.cumsum(steps * (total / np.maximum(steps.sum(axis=1), 1e-12))[:, None], axis=1)

    def course(self, column: Column, has: Any) -> Floats:
        """Values of an increasing column, NaN where there is none."""
        name = column.name
        lower, upper = column.bounds if column.is_numeric else (0.0, len(column.categories) - 1.0)
        count = has.sum(axis=1)
        rise = np.where(count > 1, self.number(f"{name} rise"), 0.0)
        first = (
            self.number(f"{name} first") if column.is_numeric else np.maximum(self.codes(f"{name} first"), 0)
        )
        there = np.arange(self.schema.most) < count[:, None]
        values = first[:, None] + self.climb(self.model.table("rise", name), RATIOS, rise, there)
        values = np.clip(values if column.is_numeric else np.rint(values), lower, upper)
        return self.unpacked(values, has)

    def chain(self, table: Floats, uniform: Floats, *fixed: Ints, first: int = 0) -> tuple[Ints, Floats]:
        """Bins of all rows from ``first`` on, each given the one before and ``fixed``, (n,) or (n, most).

        Also the places of the uniforms in them.
        """
        bins, place = np.zeros(self.here.shape, np.int64), np.zeros(self.here.shape)
        last = np.full(len(self.here), table.shape[0] - 1)
        for t in range(first, self.schema.most):
            now = (parent if parent.ndim == 1 else parent[:, t] for parent in fixed)
            # A table that is not given the one before has one entry for it.
            last, place[:, t] = drawn(table, uniform[:, t], np.minimum(last, len(table) - 1), *now)
            bins[:, t] = last
        return bins, place

    def decided(self, name: str) -> tuple[Floats, float]:
        """The part of a variable's normal scores that earlier variables of the same row decide.

        Also the weight of the rest.
        """
        if name not in self.links:
            return np.zeros(self.here.shape), 1.0
        weights = self.model.factor[self.links[name]]
        earlier = sum((w * z for w, z in zip(weights, self.kept, strict=False)), np.zeros(self.here.shape))
        return earlier, float(weights[self.links[name]])

    def best(self, name: str, has: Any, attempt: Callable[[Floats], tuple[Floats, Floats]]) -> Floats:
        """The one of several chains, from uniforms of the measured rows, that misses the levels least."""
        earlier, own = self.decided(name)
        kept, normal = np.zeros(self.here.shape), np.zeros(self.here.shape)
        least = np.full(len(kept), np.inf)
        for _ in range(_TRIES):
            fresh = self.rng.standard_normal(self.here.shape)
            values, miss = attempt(packed_to(has, ndtr(earlier + own * fresh)))
            better = (miss < least)[:, None]
            kept, normal = np.where(better, values, kept), np.where(better, fresh, normal)
            least = np.minimum(least, miss)
        if name in self.links:
            self.kept.append(normal)
        return kept

    def categories(self, column: Column, has: Any) -> Floats:
        """Codes of a category's chain, NaN where there is no value."""
        name, size = column.name, len(column.categories)
        p, mode = self.model.table("category", name), self.codes(f"{name} mode")
        count = has.sum(axis=1)
        share, there = self.codes(f"{name} same") + 1, np.arange(self.schema.most) < count[:, None]
        given = [np.clip(mode, 0, p.shape[1] - 1)]
        if name in self.few:
            p = p[:, :, None] * self.model.table("end", name)
            given.append(packed_to(has, is_last(self.count, self.schema.most).astype(np.int64)))
        if name in self.model.parents:
            ratios = self.model.table("beside", name)
            # Where the other category is missing, it says nothing.
            p = p[:, :, :, None] * np.concatenate([ratios, np.ones((1, size))])
            other = self.drawn_codes[self.model.parents[name]]
            given.append(packed_to(has, np.where(other < 0, len(ratios), other)))

        def attempt(uniform: Floats) -> tuple[Floats, Floats]:
            codes = np.where(there, self.chain(p, uniform, *given)[0], -1)
            counts = np.stack([(codes == code).sum(axis=1) for code in range(size)], axis=1)
            same = share_class(counts.max(axis=1) / np.maximum(there.sum(axis=1), 1))
            return codes.astype(np.float64), size * (counts.argmax(axis=1) != mode) + np.abs(same - share)

        codes = self.best(name, has, attempt)
        alike = ((share == len(SHARE_CLASSES) - 1) | (count == 1)) & (mode >= 0)
        values = self.unpacked(np.where(alike[:, None], mode[:, None], codes), has)
        self.drawn_codes[name] = positions(values)
        return values

    def unpacked(self, values: Floats, has: Any) -> Floats:
        """Values of the measured rows, which stand at the left, at the rows that have one."""
        out = np.full(has.shape, np.nan)
        place = np.maximum(np.cumsum(has, axis=1) - 1, 0)
        out[has] = np.take_along_axis(values, place, axis=1)[has]
        return out

    def numbers(self, column: Column, has: Any, times: Floats) -> Floats:
        """Values of a number's chain, moved to the patient's levels, NaN where there is none."""
        name = column.name
        mean = self.number(f"{name} mean")
        sd, slope, rough = (self.number(f"{name} {of}", mean) for of in ("sd", "trend", "roughness"))
        (_, at) = packed(np.where(has, 0.0, np.nan), times)
        clock, count = Standardised.of(at), has.sum(axis=1)
        p = self.model.table("residual", name)
        density, absent = p.mean(axis=0), np.isnan(at)

        def attempt(uniform: Floats) -> tuple[Floats, Floats]:
            line = np.where(count == 2, np.sign(uniform[:, 1] - uniform[:, 0]), slope)
            line = np.where(clock.sd > 1e-9, line, 0.0)[:, None]
            bins, place = self.chain(p, uniform)
            left = np.where(absent, np.nan, place_inside(bins, RESIDUALS, density, place))
            left = Standardised.of(left).scores
            along = np.nansum(left * clock.scores, axis=1) / np.maximum(count, 1)
            left = Standardised.of(left - along[:, None] * clock.scores).scores
            moved = Standardised.of(line * clock.scores + np.sqrt(1 - line**2) * left)
            return moved.scores, np.abs(moved.roughness - rough)

        scores = np.nan_to_num(self.best(name, has, attempt))
        values = self.unpacked(mean[:, None] + sd[:, None] * scores, has)
        return self.digits(column, values) if has_digits(column) else values

    def digits(self, column: Column, values: Floats) -> Floats:
        """Values moved by up to two steps, to last digits as often as they were released."""
        lower, step = column.bounds[0], column.resolution or 1.0
        shares = np.maximum(self.model.table("digit", column.name), 1e-6)
        steps = np.rint((np.nan_to_num(values, nan=lower) - lower) / step)
        near = shares[(np.arange(10)[:, None] + np.arange(-_NEAR, _NEAR + 1)) % 10]
        last = steps.astype(np.int64) % 10
        chosen = steps + drawn(near, self.rng.random(steps.shape), last)[0] - _NEAR
        return np.where(np.isnan(values), np.nan, lower + chosen * step)
