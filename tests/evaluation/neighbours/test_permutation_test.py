"""The permutation test: its statistic under any labels, its p-values where distributions agree and differ."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.evaluation.neighbours import permutation_test as module
from dpsynth.evaluation.neighbours.accuracy import adversarial_accuracy
from dpsynth.evaluation.neighbours.permutation_test import same_distribution
from dpsynth.evaluation.neighbours.search import METRICS


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(list(METRICS)),
    st.integers(2, 30),
    st.integers(2, 60),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_the_statistic_is_the_accuracy_for_any_labels(
    name: str, n: int, m: int, d: int, kept: bool, seed: int
) -> None:
    """Would catch lists that do not settle ties or rare labels, and a fallback that counts otherwise."""
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, (n + m, d)).astype(float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_KEPT", 10**6 if kept else 0)
        pooled = module._Pooled(points, n, METRICS[name])
        labels = rng.permutation(np.arange(n + m) < n)
        direct = adversarial_accuracy(points[labels], points[~labels], metric=METRICS[name])
        assert pooled.accuracy(labels) == pytest.approx(direct.aa, abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(300, 300), (20, 400)])
def test_short_lists_give_the_accuracy_too(n: int, m: int) -> None:
    """Would catch errors that small tables hide, whose lists hold everything."""
    rng = np.random.default_rng(0)
    for points in (rng.normal(size=(n + m, 3)), rng.integers(0, 2, (n + m, 5)).astype(float)):
        pooled = module._Pooled(points, n, METRICS["euclidean"])
        assert pooled._index.shape[1] < n + m - 1
        for _ in range(3):
            labels = rng.permutation(np.arange(n + m) < n)
            direct = adversarial_accuracy(points[labels], points[~labels])
            assert pooled.accuracy(labels) == pytest.approx(direct.aa, abs=1e-12)


def test_copies_and_shifts_are_told_apart() -> None:
    """Would catch one-sided p-values exchanged."""
    rng = np.random.default_rng(1)
    real, new = rng.normal(size=(2, 150, 3))
    copies = same_distribution(real, np.where(np.arange(150)[:, None] < 50, real, new), rng=rng)
    assert copies.p_close == 1 / 201 and copies.p_apart > 0.99 and copies.p_value < 0.02
    apart = same_distribution(real, new + 1, rng=rng)
    assert apart.p_apart == 1 / 201 and apart.p_close > 0.99 and apart.p_value == 1 / 201


def test_all_ties_decide_nothing() -> None:
    """Would catch a test that rejects when every accuracy is exactly 1/2."""
    found = same_distribution(
        np.ones((30, 2)), np.ones((40, 2)), rng=np.random.default_rng(0), permutations=19
    )
    assert (found.accuracy, found.p_value, found.p_close, found.p_apart) == pytest.approx((0.5, 1, 1, 1))


def test_only_a_part_is_used() -> None:
    """Would catch a limit that bounds neither time nor memory, or the sizes of the whole in the record."""
    rng = np.random.default_rng(2)
    found = same_distribution(*rng.normal(size=(2, 400, 2)), rng=rng, limit=50, permutations=9)
    assert (found.n_real, found.n_synthetic, found.permutations) == (50, 50, 9)


def test_two_records_a_side_suffice() -> None:
    """Would catch a list longer than the pooled records."""
    found = same_distribution([[0.0], [1.0]], [[5.0], [7.0]], rng=np.random.default_rng(3), permutations=50)
    assert 0 < found.p_value <= 1


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "bits", "unequal"])
def test_p_values_are_valid_under_equal_distributions(law: str) -> None:
    """Would catch a test that rejects too often (or a statistic that depends on the order of records)."""
    rng = np.random.default_rng(4)

    def draw() -> tuple[np.ndarray, np.ndarray]:
        if law == "bits":
            return tuple(rng.integers(0, 2, (40, 6)).astype(float) for _ in range(2))
        return rng.normal(size=(40, 2)), rng.normal(size=(40 if law == "normal" else 15, 2))

    found = [same_distribution(*draw(), rng=rng, permutations=39) for _ in range(300)]
    for name in ("p_value", "p_close", "p_apart"):
        values = np.array([getattr(result, name) for result in found])
        for level in (0.05, 0.1, 0.25, 0.5):
            error = np.sqrt(level * (1 - level) / 300)
            assert np.mean(values <= level + 1e-12) < level + 4 * error
        assert 0.45 < values.mean() < (0.75 if law == "bits" else 0.6)


@pytest.mark.slow
def test_power_under_a_shift() -> None:
    """Would catch a test that never rejects."""
    rng = np.random.default_rng(5)
    found = [
        same_distribution(rng.normal(size=(80, 3)), rng.normal(size=(80, 3)) + 1.0, rng=rng, permutations=39)
        for _ in range(40)
    ]
    assert np.mean([result.p_value <= 0.05 for result in found]) > 0.8
