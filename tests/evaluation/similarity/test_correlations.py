"""Correlations against naive counts."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from dpsynth.evaluation.features import distance_features
from dpsynth.evaluation.similarity.association_errors import (
    _correlations,
    correlation_errors,
)
from dpsynth.table.schema import Column, Schema

GRADE = Column(name="grade", kind="categorical", categories=("a", "b", "c"), missing=True)
SCORE = Column(name="score", kind="continuous", lower=0, upper=1, missing=True)
SCHEMA = Schema(columns=(GRADE, SCORE))


def test_correlation_error_equals_numpy() -> None:
    """Would catch a diagonal in the mean or a wrong normalisation."""
    rng = np.random.default_rng(1)
    schema = Schema(
        columns=(
            *(Column(name=name, kind="continuous", lower=-9, upper=9) for name in "xyz"),
            Column(name="sex", kind="binary", categories=(0, 1)),
        )
    )
    mix = rng.normal(size=(3, 3))
    real = pd.DataFrame(rng.normal(size=(200, 3)) @ mix, columns=list("xyz")).assign(
        sex=rng.integers(0, 2, 200)
    )
    made = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("xyz")).assign(sex=rng.integers(0, 2, 150))
    a, b = (np.corrcoef(distance_features(frame, schema).points.T) for frame in (real, made))
    off = ~np.eye(len(a), dtype=bool)
    assert correlation_errors(real, [made], schema)[0] == pytest.approx(np.abs(a - b)[off].mean())
    assert correlation_errors(real, [real], schema)[0] == 0.0


def test_constant_columns_have_no_correlation() -> None:
    """Would catch NaN (or noise of rounding divided by itself) from a column without variance."""
    schema = Schema(columns=tuple(Column(name=name, kind="continuous", lower=0, upper=3) for name in "xy"))
    constant = pd.DataFrame({"x": [0.1] * 7, "y": np.linspace(0, 1, 7)})
    tied = pd.DataFrame({"x": np.linspace(0, 1, 7), "y": np.linspace(0, 1, 7)})
    assert correlation_errors(constant, [constant], schema)[0] == 0.0
    assert correlation_errors(tied, [constant], schema)[0] == pytest.approx(1.0)


def test_correlations_of_a_large_table_are_numpys_in_little_memory() -> None:
    """Would catch copies of a table of one-hot columns: each is as large as the table is."""
    rng, names = np.random.default_rng(0), [f"x{i}" for i in range(7)]
    columns = [Column(name=name, kind="continuous", lower=0, upper=1, missing=True) for name in names]
    columns.append(Column(name="code", kind="categorical", categories=tuple(range(200)), missing=True))
    schema = Schema(columns=tuple(columns))
    frame = pd.DataFrame(np.where(rng.random((5000, 7)) < 0.1, np.nan, rng.random((5000, 7))), columns=names)
    frame = schema.conform(frame.assign(code=rng.integers(0, 200, 5000), x5=0.3)).frame
    values = distance_features(frame, schema).points
    varies = values.std(axis=0) > 1e-12
    tracemalloc.start()
    found = _correlations(frame, schema)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.allclose(found[varies][:, varies], np.corrcoef(values[:, varies], rowvar=False))
    assert not found[~varies].any() and 0 < (~varies).sum() < 10 and peak < 0.6 * values.nbytes
