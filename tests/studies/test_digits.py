"""How many decimals an effect and its interval get."""

from __future__ import annotations

import math

import numpy as np

from dpsynth.studies.study import Estimates, interval_texts


def test_examples():
    """'0.998 to 1.01', an exponent beside plain numbers, minus zero, or an end that is written as zero."""
    for values, texts in [
        ((1.0040, 0.9979, 1.0101), ("1.004", "0.998", "1.010")),
        ((1.00031, 1.00012, 1.0005), ("1.00031", "1.00012", "1.00050")),
        ((1e-4, 8e-5, 1.25e-4), ("0.000100", "0.000080", "0.000125")),
        ((1e-4, 1e-8, 1.0), ("0.0001", "1e-08", "1")),
        ((1e6, 9e5, 1.11e6), ("1,000,000", "900,000", "1,110,000")),
        ((1e6, 1e3, 1e9), ("1e+06", "1e+03", "1e+09")),
        ((0.6, 0.004, 1.196), ("0.600", "0.004", "1.196")),
        ((-0.001, -0.12, 0.118), ("-0.001", "-0.120", "0.118")),
        ((0.3, 0.1, math.inf), ("0.300", "0.100", "∞")),
        ((-3.0, -math.inf, 2.0), ("-3.00", "-∞", "2.00")),
        ((math.nan,) * 3, ("n/a",) * 3),
        ((2.5, 2.5, 2.5), ("2.5",) * 3),
        ((0.0, 0.0, 0.0), ("0",) * 3),
        ((1.0, 0.0, 1e304), ("1", "0", "∞")),
        ((3.0, 1e-60, 1e60), ("3", "0", "∞")),
    ]:
        assert interval_texts(*values) == texts


def test_any_interval_is_told_to_a_tenth_of_its_shorter_side():
    """An estimate that is rounded onto an end of its interval, whatever the scale."""
    rng = np.random.default_rng(0)
    for size, log in [(10.0**k, log) for k in range(-8, 9) for log in (False, True)] * 20:
        estimate, half = rng.normal() * 10, rng.uniform(0.01, 4.0)
        ends = np.array([estimate, estimate - half, estimate + half])
        values = size * (np.exp(ends) if log else ends)
        texts = interval_texts(*map(float, values))
        told = np.array([float(text.replace(",", "")) for text in texts])
        side = min(values[0] - values[1], values[2] - values[0])
        assert (np.abs(told - values) <= np.maximum(0.11 * side, 0.006 * np.abs(values))).all(), texts
        plain = [text for text in texts if "e" not in text]
        if len(plain) == 3 and "." in "".join(texts) and values[2] < 1000 * max(values[1], 1e-300):
            assert len({len(text.partition(".")[2]) for text in texts}) == 1, texts


def test_estimates_are_printed_so():
    """A small effect a unit, '1  0.998 to 1.01'."""
    told = Estimates(
        "m", "logistic", "logistic: y ~ x", "y", ("x",), np.array([0.004]), np.array([[0.0031**2]]), 1.0
    )
    assert str(told).splitlines()[2].split() == ["x", "1.004", "0.998", "to", "1.010", ".197"]
