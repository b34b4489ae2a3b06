"""What is told of a history: the latest estimate, iterations without one, a training on noise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import InputError
from dpsynth.wgan.history import TrainingHistory, last_signal, latest, mostly_noise, quiet
from dpsynth.wgan.settings import TrainingSettings


def frame(estimates, error=1.0, share=0.1):
    return pd.DataFrame({"wasserstein": estimates, "wasserstein_error": error, "noise_share": share})


def test_iterations_without_an_estimate_are_counted_from_the_last_one():
    """Catches a count of all of them, or an estimate far below zero taken for one."""
    assert [quiet(frame(e)) for e in ([3, 1, 1], [1, 3], [1, -9, 1], [])] == [2, 0, 3, 0]
    assert quiet(pd.DataFrame({"step": [1]})) == 0
    assert latest(frame([])) is None and latest(pd.DataFrame({"step": [1]})) is None


def test_a_training_on_noise_is_named():
    """Catches silence where noise is the whole gradient, and a warning where it seldom is."""
    shares = np.r_[np.full(9, 0.95), np.full(91, 0.5)]
    assert mostly_noise(frame(np.zeros(100), share=shares)) is None
    shares[9] = 0.95
    said = mostly_noise(frame(np.zeros(100), share=shares))
    assert said is not None and "more than 90% of the released gradient in 10% of the iterations" in said
    assert mostly_noise(pd.DataFrame()) is None


def test_a_training_that_learned_in_spite_of_noise_is_not_named():
    """Catches a warning on the default fit of a table of 4,000 rows, whose gradients are 94 % noise.

    Single estimates may be within their noise: the mean of a tenth of the training counts.
    """
    share = np.full(200, 0.95)
    by_chance = np.random.default_rng(0).standard_normal(200)
    assert mostly_noise(frame(by_chance, share=share)) is not None
    assert mostly_noise(frame(by_chance + 1.0, share=share)) is None
    assert mostly_noise(frame(by_chance, share=share).drop(columns="wasserstein")) is not None


@pytest.mark.parametrize(("first", "last"), [(0, 1), (0, 5), (4, 5), (0, 6), (5, 6), (9, 10), (0, 0)])
def test_a_training_that_learned_at_first_alone_is_named(first, last):
    """Catches silence where all signal is in the first tenths, and a warning where some is in the later half.

    Tenths ``first`` to ``last`` have signal.
    """
    signal = np.zeros(200)
    signal[20 * first : 20 * last] = 1.0
    rows = frame(signal, share=np.full(200, 0.95)).assign(step=range(2, 402, 2))
    said = mostly_noise(rows)
    if last > 5:
        assert said is None
    elif last:
        assert said is not None and f"After step {40 * last} no difference" in said
        assert f"Use about {40 * last} steps" in said
    else:
        assert said is not None and "The training learned little or nothing" in said
    assert mostly_noise(rows.assign(noise_share=0.5)) is None


@pytest.mark.parametrize("rows", [1, 3, 10, 57])
def test_noise_alone_is_seldom_taken_for_signal(rows):
    """Catches a limit that noise passes, or that a clear signal does not, in a short training as well."""
    rng = np.random.default_rng(rows)
    found = [last_signal(frame(rng.standard_normal(rows), error=1.0)) > 0 for _ in range(300)]
    # 1.3 % at most of the trainings: with 300 of them, twelve or more have a probability of 0.0005
    assert sum(found) < 12
    assert last_signal(frame(np.full(rows, 5.0))) == rows


def test_a_history_comes_back_from_its_columns():
    """Catches steps that become fractions, or a column that is lost."""
    rows = pd.DataFrame({"step": [2, 4], "noise_std": [0.5, 0.25]})
    pd.testing.assert_frame_equal(TrainingHistory.of(rows).frame, rows)
    assert TrainingHistory().frame.empty and TrainingHistory.of(pd.DataFrame()).frame.empty


@pytest.mark.parametrize("other", [{"penalty": "data"}, {"clip_norm": 1.0}])
def test_patience_needs_an_estimate(other):
    """Catches a rule that never stops, or always, for want of an estimate."""
    with pytest.raises(InputError, match="patience needs the estimate"):
        TrainingSettings(patience=5, **other)
