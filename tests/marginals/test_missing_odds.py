"""Odds and numbers of missing values that are told by their shares, for any distribution of the number."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from scipy.special import expit

from dpsynth.marginals.missing import missing_odds, number_given


@pytest.mark.parametrize("size", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_a_hundred_columns_have_their_shares(size):
    """Catches odds of independent columns, and powers of odds that overflow: of two kinds of records one
    lacks most values.
    """
    odds = np.exp(np.random.default_rng(size).normal(0.0, 1.5, size))
    kinds = [odds * factor / (1 + odds * factor) for factor in (0.1, 8.0)]
    law = np.zeros(size + 1)
    for p in kinds:
        law += 0.5 * reduce(np.convolve, [[1 - one, one] for one in p], np.ones(1))
    shares = np.mean(kinds, axis=0)
    found = missing_odds(law, shares)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(expit(found) @ law, shares, atol=0.01)
    np.testing.assert_allclose(expit(found).sum(axis=0), np.arange(size + 1), atol=0.02)


def test_the_number_given_the_outcome_has_the_means_and_the_law():
    """Catches a number that does not depend on the outcome, or of another distribution than released."""
    law, root, means = np.array([0.5, 0.1, 0.1, 0.3]), np.array([0.8, 0.2]), np.array([1.0, 2.0])
    given = number_given(law, root, means)
    np.testing.assert_allclose(root @ given, law, atol=1e-3)
    np.testing.assert_allclose(given @ np.arange(4), means, atol=0.01)
    ratio = np.log(given[1] / given[0])  # the nearest to independence: linear in the number
    np.testing.assert_allclose(np.diff(ratio, n=2), 0.0, atol=1e-6)
