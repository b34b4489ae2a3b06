"""Distributions of what each row adds to a patient's levels, estimated from released tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd
from sklearn.metrics import mutual_info_score

from dpsynth.files.codec import record
from dpsynth.model.columns.projection import norm_sub
from dpsynth.table.histories import Floats
from dpsynth.table.patients import PatientSchema
from dpsynth.table.values import category_codes
from dpsynth.table.visits import VisitTable, linked, of_several_files, small_categories, visit_tables


@record
@dataclass(frozen=True)
class Trajectories:
    """Conditional distributions of `dpsynth.table.visits`, as arrays of their shapes.

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
                found.append(ratios(conditional(sums, noise_std), sums))
            elif table.kind == "kinds":
                gaps = gaps_of_kinds(sums, noise_std)
                found.append(gaps if of_several_files(schema) else ratios(gaps, sums))
            else:
                found.append(conditional(sums, noise_std))
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
    later = conditional(noisy.reshape(kinds, kinds, -1).sum(axis=0), noise_std * np.sqrt(kinds))
    return conditional(noisy, noise_std, np.tile(later, (kinds, 1)))


def conditional(noisy: Floats, noise_std: float, usual: Floats | None = None) -> Floats:
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
