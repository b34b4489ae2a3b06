"""What is printed of private estimates."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.files.codec import from_plain, to_plain
from dpsynth.studies.study import Estimates


@pytest.mark.parametrize(
    ("widening", "said"), [(0.94, "1.0"), (1.0, "1.0"), (1.26, "1.3"), (9.96, "10.0"), (142.0, "142.0")]
)
def test_widening_is_printed_with_one_decimal_and_never_below_one(widening, said):
    """'1 times as wide' or '1.4e+02 times', or a claim that noise makes an interval shorter."""
    told = Estimates("m", "linear", "linear: y ~ x", "y", ("x",), np.ones(1), np.eye(1), widening)
    assert str(told).splitlines()[-1].endswith(f": {said} times as wide as without noise.")
    assert from_plain(Estimates, to_plain(told)).widening == widening
