"""Groups of yes/no columns: thinned records, the vectors beside them, and the latent Gaussian model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from dpsynth.marginals import latent
from dpsynth.marginals.groups import STEP, GroupSums, OtherColumns, thinned
from dpsynth.marginals.latent import LatentGaussian, tetrachoric

RECORDS = st.integers(1, 12).flatmap(
    lambda width: st.lists(st.lists(st.booleans(), min_size=width, max_size=width), min_size=1, max_size=20)
)


@given(RECORDS, st.integers(1, 6), st.randoms())
def test_a_record_is_thinned_by_itself(rows: list[list[bool]], most: int, random) -> None:
    """A record with more ones than its sensitivity, with ones of its own made up, or by others' lot."""
    ones = np.array(rows)
    found = thinned(ones, most)
    np.testing.assert_array_equal(found.sum(axis=1), np.minimum(ones.sum(axis=1), most))
    assert not (found & ~ones).any()
    order = random.sample(range(len(ones)), len(ones))
    np.testing.assert_array_equal(thinned(ones[order], most), found[order])
    np.testing.assert_array_equal(np.vstack([thinned(ones[[k]], most) for k in order]), found[order])


def test_every_code_is_left_out_as_often() -> None:
    """The first codes of the table that are always kept, or a lot of the same codes for all records."""
    rng = np.random.default_rng(0)
    ones = np.ones((20_000, 12), dtype=bool)
    ones[:, 6:] = rng.random((20_000, 6)) < 0.5  # so that there are 64 kinds of records
    kept, chance = thinned(ones, 4), 4.0 / ones.sum(axis=1)
    shares = [kept[ones[:, k], k].mean() / chance[ones[:, k]].mean() for k in range(12)]
    assert np.ptp(shares) < 1.0 and min(shares) > 0.5
    alike = thinned(np.triu(np.ones((200, 200), dtype=bool)), 1)
    assert alike.argmax(axis=1).std() > 40


def other_columns(rng: np.random.Generator, outcome: int | None = 0) -> OtherColumns:
    tables = tuple(
        rng.integers(-20_000, 20_000, (size, numbers)) for size, numbers in ((2, 1), (5, 2), (9, 1))
    )
    return OtherColumns(tables, outcome, (1.5, 4.0) if outcome is not None else (4.0,))


@given(st.integers(0, 99), st.sampled_from([0, None]))
@settings(max_examples=20)
def test_vectors_are_no_longer_than_their_cap(seed: int, outcome: int | None) -> None:
    """A vector that is longer than the sensitivity, by a rounding or because it is not scaled."""
    rng = np.random.default_rng(seed)
    others = other_columns(rng, outcome)
    cells = np.stack([rng.integers(0, len(table), 50) for table in others.tables], axis=1)
    for vectors, cap in zip(others.vectors(cells), others.caps, strict=True):
        lengths = [sum(int(x) ** 2 for x in vector) for vector in vectors]
        assert vectors.dtype == np.int64 and max(lengths) <= (cap / STEP) ** 2
        assert max(lengths) >= (cap / STEP * (1 - 2e-3)) ** 2  # some are scaled down
    assert (np.linalg.norm(others.values(cells), axis=1) <= np.sqrt(len(others.caps))).all()


@pytest.mark.parametrize("r", [-0.9, -0.3, 0.0, 0.05, 0.6, 0.95])
def test_correlations_of_dichotomised_numbers(r: float) -> None:
    """A correlation that is another number's, by a wrong integral: against SciPy's bivariate distribution."""
    a, b = np.array([-2.0, -0.5, 0.0, 1.0]), np.array([-1.0, 0.3, 0.0, -2.0])

    def both(of: list[float]) -> list[float]:
        pairs = zip(of, zip(a, b, strict=True), strict=True)
        return [multivariate_normal([0, 0], [[1, r], [r, 1]]).cdf(pair) for r, pair in pairs]

    found = tetrachoric(a, b, np.array(both([r] * 4)))
    np.testing.assert_allclose(both(found), both([r] * 4), atol=2e-4)
    np.testing.assert_allclose(found[1:3], r, atol=2e-3)


def exact_sums(ones: np.ndarray, others: OtherColumns, cells: np.ndarray) -> GroupSums:
    together = (ones.T @ ones).astype(float)
    i, j = np.triu_indices(ones.shape[1], 1)
    beside = ones.T @ others.values(cells)
    nothing = np.zeros(beside.shape[1])
    return GroupSums(
        others, float(len(ones)), np.diag(together).copy(), together[i, j], beside, 0.0, 0.0, nothing
    )


def simulated(n: int) -> tuple[np.ndarray, OtherColumns, np.ndarray, np.ndarray]:
    """Codes that depend on a yes/no column, on an ordered one and on each other. And their correlations."""
    rng = np.random.default_rng(1)
    cells = np.stack([rng.integers(0, 2, n), rng.integers(0, 5, n)], axis=1)
    tables = tuple(np.rint(4096 * np.linspace(-1, 1, size)).astype(np.int64)[:, None] for size in (2, 5))
    others = OtherColumns(tables, 0, (1.0, 1.0))
    correlations = np.array([[1, 0.6, 0, 0], [0.6, 1, -0.3, 0], [0, -0.3, 1, 0], [0, 0, 0, 1.0]])
    effects = np.array([[1.2, 0.0], [0.0, 1.0], [-0.6, 0.5], [0.0, 0.0]])
    given = others.values(cells) @ effects.T + np.array([-1.0, -1.5, 0.2, -0.7])
    ones = given + rng.multivariate_normal(np.zeros(4), correlations, n) > 0
    return ones.astype(np.int64), others, cells, correlations


def test_a_model_of_exact_counts_has_them() -> None:
    """Prevalences, covariances with the other columns or with each other that the samples do not have."""
    ones, others, cells, correlations = simulated(60_000)
    model = LatentGaussian.of(exact_sums(ones, others, cells), cells[:8_000])
    np.testing.assert_allclose(model.factor @ model.factor.T, correlations, atol=0.08)
    drawn = model.draw(cells, np.random.default_rng(2), even=True).astype(float)
    assert abs(drawn.sum(axis=0) - ones.sum(axis=0)).max() <= 6  # one for each block
    both = [np.cov(np.hstack([each, cells]).T) for each in (ones, drawn)]
    np.testing.assert_allclose(both[1], both[0], atol=0.01)


def test_few_records_are_independent_samples() -> None:
    """Records whose codes depend on how many there are: prevalences too exact, or links that are lost."""
    ones, others, cells, _ = simulated(4_000)
    model = LatentGaussian.of(exact_sums(ones, others, cells), cells)
    rng = np.random.default_rng(3)
    alone = np.concatenate([model.draw(cells[[k]], rng, even=False) for k in range(len(cells))])
    both = [np.cov(np.hstack([each, cells]).T) for each in (ones, alone)]
    np.testing.assert_allclose(both[1], both[0], atol=0.03)
    np.testing.assert_allclose(alone.mean(axis=0), ones.mean(axis=0), atol=0.03)
    counts = np.array([model.draw(cells[:200], rng, even=False).sum(axis=0) for _ in range(200)])
    assert (counts.std(axis=0) > 3).all()
    assert [model.draw(cells[:0], rng, even=even).shape for even in (True, False)] == [(0, 4), (0, 4)]
    always = replace(model, prevalence=np.array([0.0, 1.0, 0.5, 1e-9]))
    np.testing.assert_array_equal(always.draw(cells[:4], rng, even=True).sum(axis=0), [0, 4, 2, 0])


def test_noise_alone_makes_no_correlations() -> None:
    """Noise that is taken for structure: of independent codes, or of codes without records."""
    rng, codes, n = np.random.default_rng(0), 30, 2_000
    ones = (rng.random((n, codes)) < 0.1).astype(np.int64)
    cells, others = np.zeros((n, 1), np.int64), OtherColumns((np.array([[100], [-100]]),), None, (1.0,))
    sums, std = exact_sums(ones, others, cells), 40.0
    noisy = GroupSums(
        others,
        sums.n,
        sums.single + rng.normal(0, std, codes),
        sums.pairs + rng.normal(0, std, len(sums.pairs)),
        sums.beside + rng.normal(0, std, sums.beside.shape),
        std,
        std,
        np.full(1, std),
    )
    model = LatentGaussian.of(noisy, cells)
    away = model.factor @ model.factor.T - np.eye(codes)
    assert np.quantile(abs(away), 0.99) < 0.05
    assert np.isfinite(model.intercepts).all() and np.isfinite(model.effects).all()
    nobody = GroupSums(others, sums.n, -sums.single, -sums.pairs, -sums.beside, std, std, np.full(1, std))
    assert LatentGaussian.of(nobody, cells).draw(cells, rng, even=True).mean() <= 2 / n


def test_the_nearest_correlation_matrix_is_one() -> None:
    """Latent numbers whose variance is not 1, so that a prevalence is another one."""
    wrong = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1.0]])
    factor = latent._factor(wrong)
    np.testing.assert_allclose(np.linalg.norm(factor, axis=1), 1.0, rtol=1e-6)
    nearest = np.array([[1, 0.5, -0.5], [0.5, 1, 0.5], [-0.5, 0.5, 1.0]])
    np.testing.assert_allclose(factor @ factor.T, nearest, atol=0.02)
