"""Against riskcal 1.5.1, which shares no code with this package.

The script that stored its values is in the history up to commit cf22a892.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from dpsynth.privacy import Profile
from dpsynth.privacy.events import gaussian_event, training_event

STORED = json.loads((Path(__file__).parent / "riskcal_values.json").read_text())
FPRS = np.array(STORED["fprs"])


@pytest.mark.parametrize(
    "row", STORED["settings"], ids=lambda r: f"z{r['noise_multiplier']}-q{r['sampling_prob']:.3g}"
)
def test_measures_of_training_runs(row):
    """A trade-off curve, advantage or accuracy of another definition than the field's."""
    profile = Profile([training_event(row["noise_multiplier"], row["sampling_prob"], row["steps"])])
    assert profile.tv() == pytest.approx(row["advantage"], rel=2e-3)  # its grid is coarser
    # riskcal's grid is coarser: its rounding makes it the more pessimistic of the two
    assert np.asarray(profile.fnr(FPRS)) == pytest.approx(np.array(row["fnr"]), abs=5e-4)
    for prior, error in zip(STORED["priors"], row["bayes_error"], strict=True):
        assert 1 - profile.attack_accuracy(prior) == pytest.approx(error, abs=5e-4)


@pytest.mark.parametrize("row", STORED["pure_gaussian"], ids=lambda r: f"mu{r['mu']}")
def test_measures_of_gaussians(row):
    """The closed form of a Gaussian release."""
    profile = Profile([gaussian_event(1 / row["mu"])])
    assert profile.tv() == pytest.approx(row["advantage"], rel=1e-9)
    assert np.asarray(profile.fnr(FPRS)) == pytest.approx(np.array(row["fnr"]), rel=1e-9)
    assert profile.mu() == pytest.approx(row["mu"])
