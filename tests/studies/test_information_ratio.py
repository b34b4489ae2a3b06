"""The records' information against the draws': what noise may not hide from the reader of an interval."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.studies.calibration import compare_information

SIZE = 6


def noise(std: float, rng: np.random.Generator) -> np.ndarray:
    """Symmetric, ``std`` on the diagonal and 1 / sqrt(2) of it beside: a triangle's noise as a matrix."""
    half = rng.normal(scale=std, size=(SIZE, SIZE)) / np.sqrt(2)
    matrix = (half + half.T) / np.sqrt(2)
    matrix[np.diag_indices(SIZE)] = rng.normal(scale=std, size=SIZE)
    return matrix


def positive(rng: np.random.Generator) -> np.ndarray:
    root = rng.normal(size=(SIZE, SIZE))
    return 100 * (root @ root.T + 3 * np.eye(SIZE))


def test_without_noise_it_is_the_records():
    """A difference that is shrunk, or a lower end below it, where nothing is unsure."""
    rng = np.random.default_rng(0)
    own = positive(rng)
    records = own + 0.2 * np.diag(np.diag(own))
    found = compare_information(own, records, 0.0)
    np.testing.assert_allclose(found.estimate, records, rtol=1e-6)
    np.testing.assert_allclose(found.lower, records, rtol=1e-6)
    assert not found.hidden.size and not found.blind


def test_noise_that_drowns_leaves_the_draws():
    """Noise taken for the records' information."""
    rng = np.random.default_rng(1)
    own = 100 * np.eye(SIZE)
    off = [
        np.linalg.norm(compare_information(own, own + noise(60.0, rng), 60.0).estimate - own)
        for _ in range(50)
    ]
    assert np.median(off) < 0.5 * 60.0 * np.sqrt(SIZE * (SIZE + 1) / 2)


def test_the_lower_end_is_a_standard_error_less():
    """An interval that forgets that the information is noisy: the lower end would hold in half the cases."""
    rng = np.random.default_rng(2)
    own, held, directions = 100 * np.eye(SIZE), 0, np.eye(SIZE)
    for _ in range(300):
        lower = compare_information(own, own + noise(15.0, rng), 15.0).lower
        held += int((np.diag(directions @ lower @ directions.T) < 100.0).sum())
    assert held / (300 * SIZE) > 0.75


@pytest.mark.parametrize("std", [3.0, 8.0, 15.0])
def test_a_direction_without_information_is_hidden(std):
    """Collinear predictors in intervals that draws make: nothing warns, and they are confident."""
    rng = np.random.default_rng(3)
    own = positive(rng)
    values, vectors = np.linalg.eigh(own)
    root = (vectors * np.sqrt(values)) @ vectors.T
    direction = np.array([3.0, 0, -2.0, 0, 1.0, 0])
    direction /= np.linalg.norm(np.linalg.solve(root, direction))
    thin = np.linalg.solve(root, direction)
    records = root @ (np.eye(SIZE) - 0.999 * np.outer(thin, thin)) @ root
    scale = std / 100 * values.min()
    seen = [compare_information(own, records + noise(scale, rng), scale) for _ in range(40)]
    found = [one for one in seen if one.hidden.shape[1]]
    assert len(found) >= 36
    # what is claimed there is little beside what the draws say
    null = np.linalg.solve(root, thin)
    assert np.median([null @ one.lower @ null for one in found]) < 0.2 * (null @ own @ null)


def test_nothing_is_hidden_by_chance():
    """Directions that noise alone makes look empty: every study of a small table would be told useless."""
    rng = np.random.default_rng(4)
    own = 100 * np.eye(SIZE)
    hidden = [compare_information(own, own + noise(18.0, rng), 18.0).hidden.size > 0 for _ in range(200)]
    assert np.mean(hidden) < 0.1


def test_blind_is_said():
    """Noise beyond which nothing can be seen, and nobody says so."""
    own = 100 * np.eye(SIZE)
    assert compare_information(own, own, 40.0).blind
    assert not compare_information(own, own, 20.0).blind
