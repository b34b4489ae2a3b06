"""Intervals by splitting: parts evaluated from lists as if alone, variances as in simulations, coverage."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.evaluation import neighbour_inference as module
from dpsynth.evaluation.neighbour_inference import (
    LIST_LENGTH,
    AccuracyInterval,
    Labels,
    Parted,
    accuracy_intervals,
    losses,
    same_distribution,
    split_intervals,
)
from dpsynth.evaluation.neighbours import METRICS, adversarial_accuracy, metric_named, two_sides

EUCLIDEAN = metric_named("euclidean")
Tables = tuple[np.ndarray, ...]


def part_means(real: np.ndarray, synthetic: np.ndarray, labels: Sequence[np.ndarray], k: int) -> np.ndarray:
    sides = two_sides(real, synthetic, EUCLIDEAN, k=k)
    first = Parted(sides[0]).means(labels[0], labels[1], 4)
    return np.stack([first, Parted(sides[1]).means(labels[1], labels[0], 4)], axis=1)


@pytest.mark.parametrize(("n", "m"), [(80, 80), (81, 83), (60, 160), (160, 60), (80, 79), (80, 78)])
@pytest.mark.parametrize("law", ["normal", "whole"])
def test_a_part_scores_as_if_it_were_alone(n: int, m: int, law: str) -> None:
    """Would catch a neighbour of another part, a lost count, or the sizes of the whole in the formula."""
    rng = np.random.default_rng(n + m)
    real, synthetic = (
        rng.normal(size=(size, 2)) if law == "normal" else rng.integers(0, 5, (size, 2)).astype(float)
        for size in (n, m)
    )
    labels = []
    for size in (n, m):
        label = np.arange(size) % 4
        label[4 * (size // 4) :] = -1
        labels.append(rng.permutation(label).astype(np.int8))
    # Lists of everything make the evaluation exact; those of 32 all but exact.
    whole = part_means(real, synthetic, labels, 200)
    for part in range(4):
        alone = adversarial_accuracy(real[labels[0] == part], synthetic[labels[1] == part])
        # Of 83 and 81, one side thins its own table, and of a quarter of each, 20 and 20, the other one: then
        # both are kept whole, in all parts alike.
        near = 3e-2 if (n, m) == (81, 83) else 1e-12
        assert whole[part] == pytest.approx([alone.aa_real, alone.aa_synthetic], abs=near)
    if n == m:
        np.testing.assert_allclose(part_means(real, synthetic, labels, LIST_LENGTH), whole, atol=2e-2)


def test_split_intervals_of_a_mean_are_the_textbook_ones() -> None:
    """Would catch a variance off by a factor 2 or 4, the whole point of halves and quarters."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=400), 3 * rng.normal(size=800)

    def statistic(labels: Sequence[Labels], parts: int) -> np.ndarray:
        means = [
            [t[label == part].mean() for t, label in zip((x, y), labels, strict=True)]
            for part in range(parts)
        ]
        return np.array([[a, b, a - b] for a, b in means])

    found = split_intervals([0.0, 0.0, 0.0], statistic, [400, 800], rng=rng, level=0.9, splits=2000)
    errors = [x.std() / 20, y.std() / np.sqrt(800)]
    for interval, error in zip(found, [*errors, np.hypot(*errors)], strict=True):
        assert interval.standard_error == pytest.approx(error, rel=0.1)
        assert interval.upper == pytest.approx(1.65 * interval.standard_error, rel=0.02)


@pytest.mark.parametrize("n", [60, 160])
def test_standard_errors_are_those_of_repetition(n: int) -> None:
    """Would catch records taken as independent terms (a fifth too small) or a jackknife (60 % too large)."""
    rng = np.random.default_rng(n)
    found = [
        accuracy_intervals(rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), rng=rng, splits=15)
        for _ in range(40)
    ]
    estimated = np.sqrt(np.mean([interval.both.standard_error**2 for interval in found]))
    # In two dimensions 0.62 of all records are one of a mutually nearest pair: Var = 1.62 / (8 n).
    assert estimated == pytest.approx(np.sqrt(1.62 / (8 * n)), rel=0.15)


def test_intervals_belong_to_the_accuracy() -> None:
    """Would catch the sides exchanged, an interval off its estimate, or one outside [0, 1]."""
    rng = np.random.default_rng(1)
    real, synthetic = rng.normal(size=(60, 2)), rng.normal(size=(80, 2)) * 0.3
    found = accuracy_intervals(real, synthetic, rng=rng, level=0.8)
    direct = adversarial_accuracy(real, synthetic)
    for interval, value in (
        (found.real, direct.aa_real),
        (found.synthetic, direct.aa_synthetic),
        (found.both, direct.aa),
    ):
        assert interval.value == value and interval.level == 0.8
        assert 0.0 <= interval.lower <= value <= interval.upper <= 1.0
    wide = accuracy_intervals(real, synthetic, rng=rng, level=0.99)
    assert wide.both.lower < found.both.lower and wide.both.upper > found.both.upper


def test_intervals_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch splits in another order or lost, on tables that are long enough for threads."""
    rng = np.random.default_rng(3)
    real, synthetic = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    found = []
    for least in (module._THREADS_FROM, 0):
        monkeypatch.setattr(module, "_THREADS_FROM", least)
        found.append(accuracy_intervals(real, synthetic, rng=np.random.default_rng(4)))
    assert found[0] == found[1]


def test_the_generator_decides_the_splits() -> None:
    """Would catch hidden randomness: one generator state, one interval."""
    points = np.random.default_rng(2).normal(size=(2, 40, 2))
    first, second = (accuracy_intervals(*points, rng=np.random.default_rng(5)).both for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("real", "synthetic", "value"),
    [
        (np.ones((20, 2)), np.ones((30, 2)), 0.5),
        (np.arange(20.0)[:, None], np.arange(20.0)[:, None] + 1e3, 1.0),
    ],
)
def test_tables_without_spread_have_no_width(real: np.ndarray, synthetic: np.ndarray, value: float) -> None:
    """Would catch a division by a variance of zero."""
    found = accuracy_intervals(real, synthetic, rng=np.random.default_rng(0)).both
    assert (found.lower, found.value, found.upper) == pytest.approx((value, value, value))


@pytest.mark.parametrize(("n", "m"), [(2, 2), (7, 30), (30, 7)])
def test_few_records_have_no_interval(n: int, m: int) -> None:
    """Would catch an interval from parts of one record, or a traceback."""
    rng = np.random.default_rng(3)
    found = accuracy_intervals(rng.normal(size=(n, 2)), rng.normal(size=(m, 2)), rng=rng)
    assert found.both == AccuracyInterval(found.accuracy.aa, None, None, None, 0.95)


def test_losses_are_the_accuracies_and_their_difference() -> None:
    """Would catch the sign of the privacy loss, or train and test exchanged."""
    rng = np.random.default_rng(4)
    train, test = rng.normal(size=(60, 3)), rng.normal(size=(44, 3))
    found = losses(train, test, train + 0.01, rng=rng)
    assert found.train.both.value == adversarial_accuracy(train, train + 0.01).aa
    assert found.test.both.value == adversarial_accuracy(test, train + 0.01).aa
    assert found.privacy_loss.value == pytest.approx(found.test.both.value - found.train.both.value)
    assert 0 < found.privacy_loss.lower < found.privacy_loss.value < found.privacy_loss.upper <= 1


@pytest.mark.parametrize("law", ["normal", "scaled"])
def test_shared_lists_change_no_contribution(law: str) -> None:
    """Would catch lists, shared between comparisons, that hide a record left open."""
    rng = np.random.default_rng(8)
    train, test, made = (
        rng.normal(size=(300, 4)) if law == "normal" else rng.integers(0, 9, (300, 4)) / 7 for _ in range(3)
    )
    found = losses(train, test, made, rng=rng, splits=10)
    for table, result in ((train, found.train), (test, found.test)):
        direct = adversarial_accuracy(table, made)
        np.testing.assert_array_equal(result.accuracy.per_real, direct.per_real)
        np.testing.assert_array_equal(result.accuracy.per_synthetic, direct.per_synthetic)


@pytest.mark.slow
def test_the_interval_of_the_difference_knows_the_shared_table() -> None:
    """Would catch the two accuracies taken as independent: they share the synthetic table."""
    rng = np.random.default_rng(5)
    found = [losses(*rng.normal(size=(3, 120, 2)), rng=rng, splits=30) for _ in range(30)]
    difference = np.mean([loss.privacy_loss.standard_error**2 for loss in found])
    apart = np.mean([loss.train.both.standard_error**2 + loss.test.both.standard_error**2 for loss in found])
    simulated = np.var([loss.privacy_loss.value for loss in found])
    assert difference < 0.95 * apart
    assert difference == pytest.approx(simulated, rel=0.8)


@pytest.mark.slow
def test_privacy_loss_is_unbiased_for_unequal_sizes() -> None:
    """Would catch the bias of the older definition (-0.03 where it should be 0), train larger than test."""
    rng = np.random.default_rng(6)
    values = [
        adversarial_accuracy(rng.normal(size=(12, 2)), made).aa
        - adversarial_accuracy(rng.normal(size=(36, 2)), made).aa
        for made in rng.normal(size=(500, 24, 2))
    ]
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(500) < 0.02


def test_an_unknown_metric_is_refused() -> None:
    """Would catch a traceback."""
    points = np.random.default_rng(0).normal(size=(3, 20, 2))
    with pytest.raises(InputError, match="metric must be one of"):
        losses(*points, rng=np.random.default_rng(0), metric="cosine")


def test_losses_name_the_table() -> None:
    """Would catch an error that speaks of "real" where there are two real tables."""
    points = np.zeros((3, 2))
    with pytest.raises(
        InputError, match="test and synthetic must have the same number of columns, got 1 and 2"
    ):
        losses(points, points[:, :1], points, rng=np.random.default_rng(0))


def copied(share: float, n: int) -> Callable[[np.random.Generator], Tables]:
    def draw(rng: np.random.Generator) -> Tables:
        real, synthetic = rng.normal(size=(2, n, 4))
        which = rng.random(n) < share
        synthetic[which] = real[which]
        return real, synthetic

    return draw


def shifted(n: int, m: int, by: float) -> Callable[[np.random.Generator], Tables]:
    return lambda rng: (rng.normal(size=(n, 4)), rng.normal(size=(m, 4)) + by)


def bits(n: int, m: int, share: float) -> Callable[[np.random.Generator], Tables]:
    return lambda rng: ((rng.random((n, 6)) < 0.3).astype(float), (rng.random((m, 6)) < share).astype(float))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (shifted(50, 50, 0.0), 0.5),
        (shifted(50, 150, 0.0), 0.5),
        (bits(60, 60, 0.3), 0.5),
        (shifted(80, 80, 0.7), None),
        (bits(60, 120, 0.5), None),
        (copied(0.3, 100), None),
    ],
)
def test_coverage(draw: Callable[[np.random.Generator], Tables], mean: float | None) -> None:
    """Would catch intervals that are systematically too narrow or too wide, nominal 95 %."""
    rng = np.random.default_rng(7)
    found = [accuracy_intervals(*draw(rng), rng=rng, splits=25).both for _ in range(120)]
    truth = np.mean([interval.value for interval in found]) if mean is None else mean
    covered = np.mean([interval.lower <= truth <= interval.upper for interval in found])
    # Three binomial errors about the range 0.93 to 0.98 that long simulations show.
    assert 0.87 <= covered <= 1.0
    widths = [interval.standard_error for interval in found]
    assert np.mean(widths) < 1.4 * np.std([interval.value for interval in found])


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(list(METRICS)),
    st.integers(2, 30),
    st.integers(2, 60),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
def test_the_statistic_is_the_accuracy_for_any_labels(name: str, n: int, m: int, d: int, seed: int) -> None:
    """Would catch lists that do not settle ties or rare labels, and a fallback that counts otherwise."""
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, (n + m, d)).astype(float)
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

    found = [same_distribution(*draw(), rng=rng, permutations=39) for _ in range(200)]
    for name in ("p_value", "p_close", "p_apart"):
        values = np.array([getattr(result, name) for result in found])
        for level in (0.05, 0.1, 0.25, 0.5):
            error = np.sqrt(level * (1 - level) / 200)
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
