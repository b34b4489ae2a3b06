"""Gaussian tables: dense ones, in which every pair is correlated, and wide ones of correlated blocks.

A tree of marginals holds one path of correlations between any two columns. In the dense tables there are as
many paths as columns; in the wide ones what a tree leaves out lies within blocks of five.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.ground.known import Floats, Structure, answers, number, numbers, yes_no
from dpsynth.table import Column, Schema

OUTCOME = "outcome"
#: of the dense tables: the last variable above its 70th percentile is a positive outcome
_THRESHOLD = NormalDist().inv_cdf(0.7)
#: factors and seed of the dense correlation matrices; public, part of the benchmark
_FACTORS, _SEED = 3, 15
#: of the wide tables: columns of a block and the correlation of any two of them
_BLOCK, _WITHIN = 5, 0.6


def correlations(d: int) -> Floats:
    """The correlation matrix of d numbers and, last, of the variable that becomes the outcome.

    Random loadings on three factors, the first strong in every variable so that no pair is uncorrelated.
    """
    rng = np.random.default_rng([_SEED, d])
    loadings = rng.normal(scale=0.22, size=(d + 1, _FACTORS))
    loadings[:, 0] = rng.choice([-1.0, 1.0], d + 1) * rng.uniform(0.45, 0.85, d + 1)
    norms = np.sqrt((loadings**2).sum(axis=1, keepdims=True))
    loadings *= np.minimum(1.0, 0.9 / norms)
    matrix = loadings @ loadings.T
    np.fill_diagonal(matrix, 1.0)
    return matrix


def dense(d: int) -> Structure:
    """d numbers and an outcome, all correlated with each other."""
    names = tuple(f"x{i}" for i in range(1, d + 1))
    root = np.linalg.cholesky(correlations(d))

    def draw(n: int, rng: np.random.Generator) -> pd.DataFrame:
        values = rng.standard_normal((n, d + 1)) @ root.T
        data = dict(zip(names, numbers(values[:, :-1]).T, strict=True))
        return pd.DataFrame({**data, OUTCOME: answers(values[:, -1] > _THRESHOLD)})

    return Structure(
        name=f"dense{d}",
        about=f"{d} Gaussian numbers, every pair correlated; outcome: one more, above its 70th percentile.",
        schema=Schema(
            name=f"dense{d}", columns=(*(number(name) for name in names), yes_no(OUTCOME)), outcome=OUTCOME
        ),
        draw=draw,
    )


def wide(d: int) -> Structure:
    """d columns in all: blocks of five, numbers and categories in turn, and an outcome that hangs on five."""
    columns = [_wide_column(i) for i in range(d - 1)]
    schema = Schema(name=f"wide{d}", columns=(*columns, yes_no(OUTCOME)), outcome=OUTCOME)

    def draw(n: int, rng: np.random.Generator) -> pd.DataFrame:
        block = rng.standard_normal((n, -(-(d - 1) // _BLOCK)))
        own = rng.standard_normal((n, d - 1))
        latent = np.sqrt(_WITHIN) * np.repeat(block, _BLOCK, axis=1)[:, : d - 1] + np.sqrt(1 - _WITHIN) * own
        data = {column.name: _values(column, latent[:, i]) for i, column in enumerate(columns)}
        # one column of each of the first three blocks, and a pair of the fourth that acts together only
        logit = latent[:, 0] + 0.8 * (latent[:, 6] > 0) - 0.8 * latent[:, 10] - 1.4
        logit += 0.8 * latent[:, 15] * np.where(latent[:, 16] > 0, 1.0, -1.0)
        return pd.DataFrame({**data, OUTCOME: answers(rng.random(n) < 1 / (1 + np.exp(-logit)))})

    return Structure(
        name=f"wide{d}",
        about=f"{d} columns: blocks of five correlated numbers and categories; the outcome hangs on five.",
        schema=schema,
        draw=draw,
    )


def _wide_column(i: int) -> Column:
    """Numbers at even places; binary, categorical and ordinal columns in turn at odd ones."""
    name = f"x{i + 1}"
    if i % 2 == 0:
        return number(name)
    kind = ("ordinal", "binary", "categorical")[(i // 2) % 3]
    if kind == "binary":
        return yes_no(name)
    return Column(name=name, kind=kind, categories=tuple("abcde" if kind == "categorical" else "1234"))


def _values(column: Column, latent: Floats) -> Floats | NDArray[np.object_]:
    if column.is_numeric:
        return numbers(latent)
    if column.kind == "binary":
        return answers(latent > 0)
    cuts = [-1.0, 0.0, 1.0] if column.kind == "ordinal" else [-1.2, -0.4, 0.4, 1.2]
    return np.array(column.categories, dtype=object)[np.digitize(latent, cuts)]
