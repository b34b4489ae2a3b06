"""Equations (5.14) and (5.15): worked by hand, at their ends, and where they agree."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from dpsynth.research.soft_labels.targets import (
    Hard,
    Interpolated,
    LeaveOut,
    OptimallySoft,
    PerRecord,
    Smoothed,
    from_logits,
    from_probabilities,
    per_record_alpha,
)


def some(seed=0, n=6, classes=3):
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(n, classes))
    return (
        mean - mean.mean(axis=1, keepdims=True),
        rng.uniform(0.1, 2, (n, classes)),
        rng.integers(0, classes, n),
    )


def naive_logit_form(mean, std, labels, alpha):
    """(5.15), record by record and class by class, as it stands in the thesis."""
    rows = []
    for mu, sigma, label in zip(mean, std, labels, strict=True):
        raised = [
            math.exp(m + alpha * (s if c == label else -s))
            for c, (m, s) in enumerate(zip(mu, sigma, strict=True))
        ]
        rows.append([value / sum(raised) for value in raised])
    return np.array(rows)


@given(st.integers(0, 2**32 - 1), st.floats(0, 5))
def test_logit_form_is_its_transcription(seed, alpha):
    """Catches a sign given to the wrong class, and a softmax over records."""
    mean, std, labels = some(seed)
    np.testing.assert_allclose(
        from_logits(mean, std, labels, alpha), naive_logit_form(mean, std, labels, alpha)
    )


def test_worked_example():
    """Catches alpha or sigma used twice or squared: logits (1, 0, -1), sigma (.5, 1, 2), true class 2."""
    soft = from_logits([[1.0, 0.0, -1.0]], [[0.5, 1.0, 2.0]], [2], 1.0)
    np.testing.assert_allclose(soft, softmax([[0.5, -1.0, 1.0]], axis=1))


def test_alpha_0_is_the_leave_out_mean_in_both_forms():
    """Catches a label that is still read where the record's own is to count for nothing."""
    mean, std, labels = some()
    np.testing.assert_allclose(from_logits(mean, std, labels, 0.0), softmax(mean, axis=1))
    probabilities = softmax(mean, axis=1)
    np.testing.assert_allclose(from_probabilities(probabilities, labels, 0.0), probabilities)


def test_alpha_of_each_record_is_its_own():
    """Catches alphas that are laid along the classes, which three records of three classes would not show."""
    mean, std, labels = some(3, n=3)
    together = from_logits(mean, std, labels, [0.0, 1.0, 2.0])
    for i, alpha in enumerate((0.0, 1.0, 2.0)):
        np.testing.assert_allclose(together[i], from_logits(mean[[i]], std[[i]], labels[[i]], alpha)[0])


def test_more_exposed_records_get_less_alpha():
    """Catches the rule turned round, and a division by an exposure of 0."""
    alpha = per_record_alpha([0.0, 1.0, 2.0, 4.0, 8.0], 1.5)
    np.testing.assert_allclose(alpha, [1.5, 1.5, 1.5, 0.75, 0.375])
    np.testing.assert_array_equal(per_record_alpha(np.zeros(4), 1.0), np.ones(4))


def test_schemes_give_their_functions_targets():
    """Catches a scheme that hands on the wrong statistics; every row sums to 1."""
    mean, std, labels = some(4)
    known = LeaveOut(mean, std, softmax(mean, axis=1), np.arange(6.0))
    made = {
        scheme.name: scheme.targets(labels, 3, known)
        for scheme in (Hard(), Smoothed(0.6), OptimallySoft(0.5), Interpolated(0.25), PerRecord(1.0))
    }
    assert list(made) == ["hard", "smoothed 0.6", "soft 0.5", "interpolated 0.25", "per record 1"]
    for targets in made.values():
        np.testing.assert_allclose(targets.sum(axis=1), 1.0)
    np.testing.assert_allclose(made["smoothed 0.6"].max(axis=1), 0.6)
    np.testing.assert_allclose(made["interpolated 0.25"], 0.25 * made["hard"] + 0.75 * softmax(mean, axis=1))
    np.testing.assert_allclose(made["soft 0.5"], naive_logit_form(mean, std, labels, 0.5))
