import numpy as np
import pytest

from dpsynth.errors import InputError
from dpsynth.table.encoder import Layout
from dpsynth.wgan.theorems import Domain


def test_holds_every_encoded_record():
    """Catches a domain that excludes a float32 record because of the centre's rounding.

    Of all groups up to 200 entries only that of 31 has a centre whose rounding leaves the box.
    """
    layout = Layout(2, ((2, 5), (5, 6), (6, 13), (13, 44)))
    domain = Domain.from_layout(layout)
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        points = rng.random((200, layout.dim)).round(rng.integers(0, 2))
        for start, stop in layout.groups:
            points[:, start:stop] = np.eye(stop - start)[rng.integers(0, stop - start, 200)]
        points = points.astype(np.float32)
        points = (points - layout.center.astype(dtype)).astype(np.float32)
        assert (points >= domain.lo).all() and (points <= domain.hi).all()
        assert np.linalg.norm(points.astype(float), axis=1).max() <= domain.radius


def test_centring_halves_a_numeric_radius():
    """Catches a radius taken for the wrong points."""
    layout = Layout(9)
    assert Domain.from_layout(layout).radius == pytest.approx(1.5, rel=1e-5)


def test_refuses_what_is_no_domain():
    """Catches bounds computed from a malformed box."""
    for changes, words in [
        ({"lo": [0.0], "hi": [0.0, 1.0]}, "lo and hi"),
        ({"lo": [], "hi": []}, "lo and hi"),
        ({"lo": [1.0, 0.0]}, "lo <= hi"),
        ({"hi": [np.nan, 1.0]}, "finite"),
        ({"groups": ((0, 3),)}, "group"),
        ({"groups": ((0, 2), (1, 2))}, "overlaps"),
        ({"groups": ((1, 1),)}, "empty"),
        ({"radius": -1.0}, "radius"),
        ({"radius": np.nan}, "radius"),
    ]:
        fields = {"lo": [0.0, 0.0], "hi": [0.5, 1.0], "groups": (), "radius": 2.0} | changes
        with pytest.raises(InputError, match=words):
            Domain(**fields)
