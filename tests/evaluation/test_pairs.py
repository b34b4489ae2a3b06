"""A random part of the pairs of columns: equal chances, and an error that covers."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.evaluation.associations import association_blocks, pair_mean, pairs_of

COLUMNS = 240


def scored(rng: np.random.Generator) -> np.ndarray:
    """Symmetric flags of pairs."""
    flags = np.zeros((COLUMNS, COLUMNS), dtype=bool)
    for block in association_blocks(COLUMNS, rng):
        flags[np.ix_(block, block)] = True
    return flags


def test_up_to_200_columns_all_pairs_are_scored_without_a_random_number() -> None:
    """Would catch a part where all are cheap, and later numbers of a seed that change by it."""
    rng = np.random.default_rng(0)
    (block,) = association_blocks(200, rng)
    assert block.tolist() == list(range(200))
    assert rng.random() == np.random.default_rng(0).random()


def test_every_pair_is_scored_equally_often() -> None:
    """Would catch blocks of neighbours in the schema, or a column in two blocks."""
    rng = np.random.default_rng(1)
    share = np.mean([scored(rng) for _ in range(300)], axis=0)
    assert (share.diagonal() == 1.0).all()
    expected = pairs_of(80) * 3 / pairs_of(COLUMNS)
    beside, apart = share.diagonal(1).mean(), share.diagonal(COLUMNS // 2).mean()
    assert beside == pytest.approx(expected, abs=0.012) and apart == pytest.approx(expected, abs=0.012)


@pytest.mark.parametrize("by_column", [0.0, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_covers_the_mean_of_all_pairs(by_column: float, weighted: bool) -> None:
    """Would catch an error that is too small, or far too large where pairs differ by more than columns."""
    rng = np.random.default_rng(2)
    own, noise = rng.exponential(size=COLUMNS), rng.exponential(size=(COLUMNS, COLUMNS))
    gaps = by_column * (own[:, None] + own) + noise + noise.T
    weights = 1.0 + weighted * rng.random((COLUMNS, COLUMNS))
    upper = np.triu(np.ones_like(gaps, dtype=bool), k=1)
    exact = (gaps * weights)[upper].sum() / weights[upper].sum()
    distances = []
    for _ in range(300):
        kept = scored(rng) & upper
        found = pair_mean((gaps * weights)[kept], weights[kept], pairs_of(COLUMNS))
        assert found is not None and found.error is not None
        distances.append((found.value - exact) / found.error)
    spread = np.sqrt(np.mean(np.square(distances)))
    assert spread < 1.15 and abs(np.mean(distances)) < 0.2
    assert by_column or spread > 0.85
