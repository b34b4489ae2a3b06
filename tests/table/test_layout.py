from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import ConfigError
from dpsynth.table.encoder import Layout, interval_ends, locate, put


def corners(layout):
    """Every centred point with numeric coordinates at 0 or 1."""
    points = [np.zeros(0)]
    for _ in range(layout.n_numeric):
        points = [np.append(p, v) for p in points for v in (0.0, 1.0)]
    for start, stop in layout.groups:
        points = [np.concatenate([p, row]) for p in points for row in np.eye(stop - start)]
    return np.array(points) - layout.center


@given(st.integers(0, 4), st.lists(st.integers(1, 4), max_size=3))
def test_radius_and_box_match_enumeration(n_numeric, sizes):
    """A radius or box that a real record can leave, or that is larger than needed."""
    ends = np.cumsum([n_numeric, *sizes])
    layout = Layout(n_numeric, tuple(pairwise(ends)))
    points = corners(layout)
    assert layout.dim == points.shape[1] == n_numeric + sum(sizes)
    assert layout.radius == pytest.approx(np.linalg.norm(points, axis=1).max(), abs=1e-12)
    assert np.all(points >= layout.lo - 1e-12) and np.all(points <= layout.hi + 1e-12)
    assert np.allclose(layout.hi - layout.lo, 1.0)


@pytest.mark.parametrize("groups", [((1, 3),), ((2, 2),), ((2, 4), (5, 6)), ((2, 4), (3, 6))])
def test_groups_must_tile_the_rest(groups):
    """Overlapping, empty or gapped groups, with which every bound would be wrong."""
    with pytest.raises(ConfigError, match=r"groups\[\d\]"):
        Layout(2, groups)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=100), st.integers(1, 16), st.integers(0, 2**31))
def test_put_and_locate_are_inverse(mass, values, seed):
    """Float32 rounding that carries a record into another cell or value, also where there is no mass."""
    rng = np.random.default_rng(seed)
    shared = np.full(len(mass), values)
    ends = interval_ends(np.array(mass), shared)
    assert ends[0] == 0 and ends[-1] == 1 and np.all(np.diff(ends) > 0) and ends.dtype == np.float32
    code = rng.integers(0, len(mass), 300)
    slot = rng.integers(0, values, 300)
    for within in (0.0, rng.random(300), 1.0 - 1e-8):
        points = put(ends, code, (slot + within) / values, (slot / values, (slot + 1) / values))
        assert points.dtype == np.float32
        found, place = locate(ends, points)
        assert np.array_equal(found, code)
        assert np.array_equal(np.floor(place * values), slot)


def test_last_place_of_a_cell():
    """A value at the upper bound, whose place is the last below 1, that leaves its cell or the cube."""
    ends = interval_ends(np.array([1.0, 2.0]), np.array([1, 1]))
    last = np.full(2, np.nextafter(1.0, 0.0))
    points = put(ends, np.array([0, 1]), last, (np.zeros(2), np.ones(2)))
    assert np.all(points < ends[1:]) and locate(ends, points)[0].tolist() == [0, 1]


def test_widths_are_masses():
    """Intervals that are not as wide as their mass, up to the small floor."""
    mass = np.array([0.5, 0.0, 0.3, 0.2])
    assert np.abs(np.diff(interval_ends(mass, np.ones(4, dtype=int))) - mass).max() < 2e-4


def test_points_at_and_beyond_the_ends():
    """A point of exactly 1 that falls off the last interval."""
    ends = interval_ends(np.ones(3), np.ones(3, dtype=int))
    code, place = locate(ends, np.array([0.0, 1.0], dtype=np.float32))
    assert code.tolist() == [0, 2] and np.all((place >= 0) & (place < 1))
