"""Distributions of what each row adds to a patient's levels, estimated from released tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpsynth.model.columns.projection import norm_sub
from dpsynth.table.histories import Floats
from dpsynth.table.patients import PatientSchema
from dpsynth.table.visits import VisitTable, linked, visit_tables


@dataclass(frozen=True)
class Trajectories:
    """Conditional distributions of `dpsynth.table.visits`, as arrays of their shapes.

    In place of the pairs' table stands a correlation matrix, see `correlations`.
    """

    schema: PatientSchema
    tables: Sequence[Floats]

    @classmethod
    def of(cls, schema: PatientSchema, noisy: Sequence[Floats], noise_std: float) -> Trajectories:
        """Estimate the distributions from noisy tables."""
        links = len(linked(schema))
        return cls(
            schema,
            [
                correlations(sums, links, noise_std)
                if table.kind == "pairs"
                else conditional(sums, noise_std)
                for table, sums in zip(visit_tables(schema), noisy, strict=True)
            ],
        )

    @cached_property
    def factor(self) -> Floats:
        """Cholesky factor of the correlations of the linked variables' steps."""
        count = len(linked(self.schema))
        return np.linalg.cholesky(self.table("pairs")) if count > 1 else np.eye(count)

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
