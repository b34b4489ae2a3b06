"""Numbers that look like codes, and outliers that do not."""

from __future__ import annotations

import numpy as np

from dpsynth.table.cells import codes_of_categories, likely_codes

AGES = np.repeat(np.arange(18, 90), 5)
RNG = np.random.default_rng(3)
LACTATE = RNG.gamma(2, 1, 4000).round(1)


def test_codes() -> None:
    """A code that goes unasked, or a measurement that is taken for one."""
    for values, codes in [
        ([*AGES, *[99] * 30], [99]),
        ([*AGES, 99], []),  # a patient of 99 years
        ([*AGES, 999], [999]),
        ([*AGES, *[-1] * 3, *[-9] * 2], [-9, -1]),
        ([*LACTATE, *[999] * 40, *[998] * 9], [998, 999]),
        (LACTATE, []),
        (np.abs(RNG.standard_cauchy(4000)).round(1), []),
        ([*RNG.normal(0, 3, 500).round(), *range(-9, 10)], []),  # a base excess
        ([*RNG.normal(0, 3, 500).round(1), *[-99] * 20], [-99]),
        (np.arange(0, 1000), []),
        ([77, 88, 99], []),
    ]:
        distinct, counts = np.unique(np.array(values, dtype=float), return_counts=True)
        assert likely_codes(distinct, counts).tolist() == codes


def test_codes_of_categories() -> None:
    """A code taken for a category like the others, or a scale's low values taken for codes."""
    for categories, codes in [
        ([0, 1, 2, 3, 4, 99], [99]),
        ([0, 1, 99], [99]),
        ([-9, -8, 1, 2, 3, 88], [-9, -8, 88]),
        ([-9, -2, -1, 0, 1, 2], [-9]),  # answers from -2 to 2
        (range(-5, 5), []),  # a sedation scale
        ([-1, 0, 1], []),
        ([50, 60, 70, 77, 88], []),
        ([0, 99], []),
    ]:
        assert codes_of_categories(np.array(categories, dtype=float)).tolist() == codes
