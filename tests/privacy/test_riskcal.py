"""Against riskcal 1.5.1, which shares no code with this package.

The script that stored its values is in the history up to commit cf22a892.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from dpsynth.privacy import Profile
from dpsynth.privacy.calibration import (
    AdvantageTarget,
    EpsilonTarget,
    Target,
    TvTarget,
    calibrate_training,
)
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


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=[pytest.mark.slow] if row["kind"] == "tpr" else [])
        for row in STORED["calibrations"]
    ],
    ids=lambda r: r["kind"],
)
def test_calibrations(row):
    """Noise for another measure than the one asked for; noise on the non-private side."""
    target: Target
    if row["kind"] == "advantage":
        target = TvTarget(row["target"])
    elif row["kind"] == "epsilon":
        target = EpsilonTarget(row["target"], row["delta"])
    else:
        target = AdvantageTarget(row["target"] - row["fpr"], row["fpr"])
    z = calibrate_training(target, row["sampling_prob"], row["steps"])
    # riskcal ends where the rate it reached is up to 4e-3 above the target
    assert z == pytest.approx(row["noise_multiplier"], rel=1e-2 if row["kind"] == "tpr" else 1e-3)
    assert target.cost(Profile([training_event(z, row["sampling_prob"], row["steps"])])) <= target.goal
