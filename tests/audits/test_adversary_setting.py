"""The furthest record and the furthest pair, against double loops."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.audits.adversary import largest, removals, replacements

RNG = np.random.default_rng(0)
POINTS, POOL = RNG.random((40, 3)), RNG.random((25, 3))


def test_removals_are_furthest_from_all_others():
    """Catches another mean than that over the other records, or the wrong end of the order."""
    means = [
        np.mean([np.linalg.norm(p - o) for j, o in enumerate(POINTS) if j != i]) for i, p in enumerate(POINTS)
    ]
    found = removals(POINTS, 3)
    assert [n.index for n in found] == np.argsort(means)[::-1][:3].tolist()
    assert found[0].distance == pytest.approx(max(means)) and found[0].replacement is None
    assert removals(POINTS, 1, nearest=True)[0].index == int(np.argmin(means))


def test_replacements_are_the_furthest_pair():
    """Catches a pair of the nearest records, or one of two records of D."""
    distances = np.array([[np.linalg.norm(p - o) for o in POOL] for p in POINTS])
    first = replacements(POINTS, POOL)[0]
    assert (first.index, first.replacement) == np.unravel_index(distances.argmax(), distances.shape)
    last = replacements(POINTS, POOL, nearest=True)[0]
    assert (last.index, last.replacement) == np.unravel_index(distances.argmin(), distances.shape)
    assert first.distance == pytest.approx(distances.max())


def test_local_sensitivity_is_the_largest_move():
    """Catches a move measured from the mean instead of from nothing."""
    assert largest(np.array([[3.0, 4.0], [0.0, -6.0], [1.0, 1.0]])).index == 1
