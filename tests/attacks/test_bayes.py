"""The Bayes attack on Gaussian-fitted outputs: closed forms, simulations with known answers, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dpsynth.attacks.bayes import (
    centred_logits,
    fit_gaussians,
    label_logit,
    lowest_fpr,
    membership_probability,
    tpr_at_fpr,
)
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import auc


def shadows(rng, models, n, shift, scale=1.0):
    """Outputs with a known distribution: N(shift, scale) with the record, N(0, scale) without."""
    members = rng.permuted(np.arange(models)[:, None] < models // 2 + np.zeros((1, n)), axis=0)
    return rng.normal(size=(models, n)) * scale + shift * members, members


def test_log_odds_are_the_ratio_of_scipys_densities():
    """Catches a wrong sign, a forgotten log-determinant, or standard deviations taken for variances."""
    rng = np.random.default_rng(1)
    outputs, members = shadows(rng, 60, 5, shift=[0.0, 0.5, 1.0, 2.0, -1.0], scale=[1, 2, 0.5, 1, 3])
    fitted, seen = fit_gaussians(outputs, members), rng.normal(size=(3, 5))
    for i in range(5):
        ours, others = outputs[members[:, i], i], outputs[~members[:, i], i]
        expected = norm.logpdf(seen[:, i], ours.mean(), ours.std(ddof=1)) - norm.logpdf(
            seen[:, i], others.mean(), others.std(ddof=1)
        )
        np.testing.assert_allclose(fitted.log_odds(seen)[:, i], expected)


def test_attack_reaches_the_exact_accuracy_of_shifted_normals():
    """Catches an attack below Bayes: N(1,1) against N(0,1) has AUC Phi(1/sqrt 2), also pair by pair."""
    rng = np.random.default_rng(2)
    outputs, members = shadows(rng, 2000, 400, shift=1.0)
    fitted = fit_gaussians(outputs, members, spread="pooled")
    released, truth = shadows(rng, 50, 400, shift=1.0)
    gamma = fitted.log_odds(released)
    found = auc(gamma[truth], gamma[~truth])
    assert found.lower - 0.005 < norm.cdf(np.sqrt(0.5)) < found.upper + 0.005
    first, second = gamma[truth][:5000], gamma[~truth][:5000]
    assert (first - second > 0).mean() == pytest.approx(norm.cdf(np.sqrt(0.5)), abs=0.02)
    # calibrated: among predictions near .7, 70 % are members
    p = membership_probability(gamma)
    near = (p > 0.65) & (p < 0.75)
    assert truth[near].mean() == pytest.approx(p[near].mean(), abs=0.03)


def test_record_that_changes_nothing_gives_no_evidence():
    """Catches evidence invented from a constant output: log-odds 0, and a coin for its pair."""
    members = np.array([[True], [False]] * 4)
    fitted = fit_gaussians(np.full((8, 1), 3.0), members)
    assert fitted.log_odds([3.0]).tolist() == [0.0]
    assert membership_probability(0.0) == 0.5


def test_memoriser_is_named_with_certainty_and_finite_log_odds():
    """Catches infinities or NaN where a model is sure of its members and certain against others."""
    members = np.array([[True], [False]] * 4)
    probabilities = np.where(members[..., None], [0.0, 1.0], [1.0, 0.0])
    logits = label_logit(probabilities, [1])
    gamma = fit_gaussians(logits, members).log_odds(logits)
    assert np.isfinite(gamma).all() and (gamma[members] > 100).all() and (gamma[~members] < -100).all()


def test_centred_logits_are_the_raw_outputs_and_twice_the_half_of_the_label_logit():
    """Catches centring over records instead of classes, and a label logit of another class."""
    from scipy.special import log_softmax, softmax

    raw = np.random.default_rng(3).normal(size=(4, 6, 3))
    centred = centred_logits(softmax(raw, axis=-1))
    np.testing.assert_allclose(centred, raw - raw.mean(axis=-1, keepdims=True), atol=1e-9)
    np.testing.assert_allclose(log_softmax(centred, axis=-1), log_softmax(raw, axis=-1), atol=1e-9)
    binary, labels = softmax(raw[..., :2], axis=-1), np.array([0, 1, 0, 1, 1, 0])
    np.testing.assert_allclose(
        label_logit(binary, labels), 2 * centred_logits(binary)[:, np.arange(6), labels], atol=1e-9
    )


def test_true_positive_rate_is_conservative_with_ties_and_refuses_rates_without_data():
    """Catches ties that lift the false positive rate over the one asked for, and rates read off 3 records."""
    tied = tpr_at_fpr(np.zeros(30), np.zeros(100), 0.2)
    assert tied.fpr == 0.0 and tied.tpr.value == 0.0
    rng = np.random.default_rng(4)
    found = tpr_at_fpr(rng.normal(2, 1, 200_000), rng.normal(0, 1, 200_000), 0.01)
    assert found.fpr <= 0.01
    assert found.tpr.value == pytest.approx(norm.sf(norm.isf(0.01) - 2), abs=0.02)
    assert lowest_fpr(100) == 0.1
    with pytest.raises(InputError, match=r"at least 0.1 with 100 non-members"):
        tpr_at_fpr(np.ones(5), np.ones(100), 0.05)


@pytest.mark.parametrize(
    ("outputs", "members", "words"),
    [
        (np.zeros((4, 2)), np.zeros((4, 3)), "one shape"),
        (np.full((4, 1), np.inf), [[1], [1], [0], [0]], "finite"),
        (np.zeros((4, 1)), [[1], [0], [0], [0]], "at least two shadow models"),
    ],
)
def test_faults_are_named(outputs, members, words):
    """Catches a fault that becomes NaN or a broadcast."""
    with pytest.raises(InputError, match=words):
        fit_gaussians(outputs, members)
