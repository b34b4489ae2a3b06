"""The table that `benchmarks/study_share.py` prints."""

from __future__ import annotations

from study_share import MEASURES, summary


def test_each_cell_is_the_median_with_its_range():
    """A mean, a range of another group, or widenings beside tables that have no study."""
    rows = []
    for declared, values in (("no", (0.5, 0.9, 0.6)), ("yes", (0.1, 0.2, 0.7))):
        for seed, value in enumerate(values):
            row = {"table": "made", "ε": 3.0, "study": declared, "seed": seed}
            row |= dict.fromkeys(MEASURES, value)
            rows.append(row | ({"expected": 1.5, "told": 1.0 + value} if declared == "yes" else {}))
    *_, without, bought = summary(rows).splitlines()
    assert without == "| made | 3 | no | " + "0.600 (0.500 to 0.900) | " * 4 + " |  |"
    assert bought.endswith("0.200 (0.100 to 0.700) | 1.50 (1.50 to 1.50) | 1.20 (1.10 to 1.70) |")
