"""Golden values; ``python -m dpsynth.research.papers.golden`` is tested with all of them."""

import pytest

from dpsynth.research.papers import golden


@pytest.mark.parametrize("values", [golden.ghazi_issa_values, golden.mosaicrown_values, golden.lowy_values])
def test_golden_values_are_found_again(values):
    """Any wrong formula: an erasure probability, a lost factor 2, a distance that is not divided by n."""
    checks = [golden.Check("source", *line) for line in values()]
    assert len(checks) >= 4 and [check.name for check in checks if not check.holds] == []
