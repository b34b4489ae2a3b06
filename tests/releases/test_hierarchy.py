from itertools import pairwise

import numpy as np
import pytest

from dpsynth.releases.hierarchy import consistent, levels_of, nonnegative_leaves, tree_counts


def design(depth):
    """Matrix whose rows sum the leaves under each node, level by level from the root's children."""
    leaves = 2**depth
    return np.concatenate([np.kron(np.eye(2**d), np.ones(leaves // 2**d)) for d in range(1, depth + 1)])


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_consistent_is_least_squares_with_the_root_held(depth):
    """Weights of Hay's two passes that are not the least-squares ones."""
    rng = np.random.default_rng(depth)
    matrix, total = design(depth), 37.0
    noisy = rng.normal(10, 5, len(matrix))
    # Equality-constrained least squares by its Karush-Kuhn-Tucker system.
    leaves = 2**depth
    system = np.block([[matrix.T @ matrix, np.ones((leaves, 1))], [np.ones((1, leaves)), np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.append(matrix.T @ noisy, total))[:leaves]
    levels = np.split(noisy, np.cumsum([2**d for d in range(1, depth)]))
    assert np.allclose(consistent(levels, total)[-1], solved)


def test_children_sum_to_parents():
    """A tree whose levels tell different stories."""
    rng = np.random.default_rng(0)
    tree = consistent([rng.normal(size=2**d) * 9 for d in range(1, 7)], 100.0)
    assert tree[0].sum() == pytest.approx(100.0)
    for parents, children in pairwise(tree):
        assert np.allclose(children.reshape(-1, 2).sum(1), parents)


def test_tree_counts_and_levels():
    """Padding that changes counts, or one level too many (which would understate the noise)."""
    levels = tree_counts(np.arange(5))
    assert [len(level) for level in levels] == [2, 4, 8] and levels_of(5) == 3
    assert [level.sum() for level in levels] == [10.0, 10.0, 10.0]
    assert levels[0].tolist() == [6.0, 4.0]
    assert tree_counts([7.0])[0].tolist() == [7.0, 0.0]


@pytest.mark.parametrize("cells", [1, 2, 5, 8, 33])
def test_leaves_are_nonnegative_and_keep_the_total(cells):
    """Mass lost to padding, a negative cell, or a total that noise has changed."""
    rng = np.random.default_rng(cells)
    depth = levels_of(cells)
    tree = consistent([rng.normal(size=2**d) * 30 for d in range(1, depth + 1)], 50.0)
    leaves = nonnegative_leaves(tree, 50.0, cells)
    assert leaves.shape == (cells,) and np.all(leaves >= 0)
    assert leaves.sum() == pytest.approx(50.0)
    assert not nonnegative_leaves(tree, 0.0, cells).any()
