from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.errors import ConfigError
from dpsynth.table.layout import Layout


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


def test_negative_numeric_is_refused():
    """A negative count that numpy would take as a slice from the end."""
    with pytest.raises(ConfigError, match="n_numeric is -1"):
        Layout(-1)
