"""What the benchmark of declared studies counts."""

from __future__ import annotations

import numpy as np
import pytest
from study_measures import (
    Cell,
    Intervals,
    by_term,
    cells,
    overlap,
    paired,
    signs,
    summary,
)
from study_trials import Truth

from dpsynth.evaluation.effects import interval_overlap


def intervals(values, errors):
    values, errors = np.array(values, dtype=float), np.array(errors, dtype=float)
    errors = np.broadcast_to(errors, values.shape)
    return Intervals(values, errors, values - 1.96 * errors, values + 1.96 * errors)


def record(values, **more):
    return {
        "values": values,
        "std_errors": [1.0] * len(values),
        "lower": [None if v is None else v - 2.0 for v in values],
        "upper": [None if v is None else v + 2.0 for v in values],
    } | more


def test_overlap_is_that_of_the_package_and_zero_where_disjoint():
    """A formula that differs from Karr's, or that leaves disjoint intervals negative."""
    rng = np.random.default_rng(0)
    told = intervals(rng.normal(size=(20, 3)) * 2, rng.uniform(0.2, 2, (20, 3)))
    real = intervals(rng.normal(size=(20, 3)), 0.5)
    found = overlap(told, real)
    for r in range(20):
        for j in range(3):
            pair = ((told.lower[r, j], told.upper[r, j]), (real.lower[r, j], real.upper[r, j]))
            assert found[r, j] == pytest.approx(max(interval_overlap(*pair), 0.0))
    assert (found == 0).any() and (found > 0.5).any()


def test_signs_count_only_what_is_significant_in_the_real_fit():
    """Signs of terms that nobody would report, or a negative effect taken for none."""
    real = intervals([[3.0, -3.0, 1.0, 3.0]], 1.0)
    told = intervals([[0.1, 2.0, -1.0, np.nan]], 1.0)
    found = signs(told, real)[0]
    assert found[:2].tolist() == [1.0, 0.0] and np.isnan(found[2:]).all()


def test_honest_intervals_cover_and_short_ones_do_not():
    """Coverage or z^2 of the wrong scale, against a normal law."""
    rng = np.random.default_rng(1)
    truth = np.array([1.0, -2.0, 0.0])
    values = truth + rng.normal(size=(4000, 3))
    real = intervals(truth + rng.normal(size=(4000, 3)), 1.0)
    honest, short = summary(intervals(values, 1.0), real, truth), summary(intervals(values, 0.5), real, truth)
    assert honest["coverage"][0] == pytest.approx(0.95, abs=0.01)
    assert honest["z2"][0] == pytest.approx(1.0, abs=0.05)
    assert short["coverage"][0] == pytest.approx(0.673, abs=0.02)
    assert short["width"][0] == pytest.approx(0.5)


def test_the_standard_error_takes_a_resample_as_one():
    """An error over resamples times terms, too small where the terms of one move together."""
    rng = np.random.default_rng(2)
    one = rng.normal(size=(400, 1))
    together = intervals(np.repeat(one, 10, axis=1), 1.0)
    alone = intervals(one, 1.0)
    assert summary(together, together, np.zeros(10))["coverage"] == pytest.approx(
        summary(alone, alone, np.zeros(1))["coverage"]
    )


def test_paired_finds_noise_that_is_told_too_small():
    """A measure that the luck of the resamples drowns, or that forgets the real fit's variance."""
    rng = np.random.default_rng(3)
    real = intervals(rng.normal(size=(5000, 2)), 1.0)
    noise = rng.normal(size=(5000, 2)) * [0.5, 1.0]
    told = intervals(real.values + noise, np.sqrt(1.0 + 0.25))
    assert paired(told, real) == pytest.approx([1.0, 4.0], rel=0.08)
    assert np.isnan(paired(intervals(told.values, 0.9), real)).all()


def test_lines_of_one_resample_are_joined():
    """A method added later that loses its real fit or is paired with that of another resample."""
    lines = [
        {
            "case": "a",
            "epsilon": 1.0,
            "repetition": r,
            "told": {"real": record([r]), "naive": record([r + 1])},
        }
        for r in (1, 0, 2)
    ]
    lines.append(
        {"case": "a", "epsilon": 1.0, "repetition": 1, "told": {"real": record([1]), "later": record([9])}}
    )
    found = {cell.method: cell for cell in cells(lines, 2)}
    assert set(found) == {"real", "naive", "later"}
    assert found["naive"].told.values.tolist() == [[1.0], [2.0]]
    assert found["naive"].real.values.tolist() == [[0.0], [1.0]]
    assert found["later"].real.values.tolist() == [[1.0]]


def test_terms_have_their_bias_beside_that_of_the_target():
    """Terms mixed up, or a target in the wrong unit."""
    truth = Truth(
        ("a", "b"), np.array([0.0, 1.0]), np.array([0.0, 2.0]), np.array([1.0, 1.0]), 9, None, "", None
    )
    real = intervals([[0.0, 1.0], [0.0, 1.0]], 0.5)
    told = intervals([[0.0, 3.0], [0.0, 3.0]], 1.0)
    cell = Cell("x", 1.0, "declared", told, real, 1.0, np.zeros(2, bool), {}, "")
    first, second = by_term(cell, truth)
    assert (first["coverage"], second["coverage"]) == (1.0, 0.0)
    assert (second["mean z"], second["mean z2"], second["width"]) == pytest.approx((2.0, 4.0, 2.0))
    assert (first["target"], second["target"], first["exact"]) == pytest.approx((0.0, 2.0, 2.0))
