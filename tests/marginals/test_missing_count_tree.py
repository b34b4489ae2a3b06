from itertools import product

import numpy as np
import pytest

from dpsynth.marginals.factors import CountedTree

#: bins of a root and of five columns, and which of them is of missing values
SIZES = (2, 3, 3, 3, 3, 2)
MISSING = np.array([1, 2, 1, 0, 2, 0])
TAN = (((0,), 1), ((0, 1), 5), ((0, 1), 2), ((0, 1), 3), ((0, 5), 4))
TREE = (((0,), 1), ((0,), 5), ((1,), 2), ((5,), 3), ((3,), 4))


def made(families, rng):
    """A root's law and tables."""
    factors = [(p, c, rng.gamma(0.7, size=[SIZES[j] for j in (*p, c)]) + 0.02) for p, c in families]
    return rng.dirichlet(np.ones(SIZES[0])), factors


def naive(first, factors):
    """Every record and its probability under the tables: written out."""
    records = np.array(list(product(*map(range, SIZES))))
    p = first[records[:, 0]] / first.sum()
    for parents, child, table in factors:
        conditional = table / table.sum(axis=-1, keepdims=True)
        p = p * conditional[tuple(records[:, j] for j in (*parents, child))]
    return records, p


def raked(p, lacks, law, shares):
    """The nearest law with these margins, by scaling records one margin after the other."""
    q, number = p.copy(), lacks.sum(axis=1)
    for _ in range(4000):
        for lacking, share in zip(lacks.T, shares, strict=True):
            q = np.where(lacking, q * share / q[lacking].sum(), q * (1 - share) / q[~lacking].sum())
        q = q * (law / np.bincount(number, weights=q, minlength=len(law)))[number]
    return q


@pytest.mark.parametrize("families", [TAN, TREE], ids=["tan", "tree"])
@pytest.mark.parametrize("panel", [(1, 2, 3, 4), (0, 2, 4)], ids=["columns", "root"])
def test_draws_have_the_nearest_law(families, panel):
    """Messages or draws that are of another law than that of records scaled margin by margin."""
    rng = np.random.default_rng(len(panel))
    first, factors = made(families, rng)
    records, p = naive(first, factors)
    lacks = records[:, panel] == MISSING[list(panel)]
    some = p * rng.gamma(2.0, size=len(p))  # margins that some law has
    some /= some.sum()
    law, shares = np.bincount(lacks.sum(axis=1), weights=some), lacks.T @ some
    tree = CountedTree(0, first, factors, {j: MISSING[j] for j in panel}, law, shares)
    q = p * (law / np.exp(tree.parts[0].log_total))[lacks.sum(axis=1)]
    for j, lacking in zip(panel, lacks.T, strict=True):
        q[lacking] *= tree.columns[j]
    np.testing.assert_allclose(q, raked(p, lacks, law, shares), atol=2e-5)
    n = 400_000
    drawn = tree.draw(n, rng)
    have = np.bincount(np.ravel_multi_index(tuple(drawn.T), SIZES), minlength=len(p)) / n
    assert (np.abs(have - q) < 5.5 * np.sqrt(q / n) + 1e-5).all()
    number = (drawn[:, panel] == MISSING[list(panel)]).sum(axis=1)
    np.testing.assert_allclose(np.bincount(number, minlength=len(law)) / n, law, atol=4 / n)


def test_a_whole_panel_is_missing_where_no_table_lets_it():
    """Records chosen among draws of the tables, none of a million of which lacks six rare values; or a panel
    that tells of the root what eight tables say of it one by one: all would have its second value."""
    columns, rare = 8, 0.004
    factors = [
        ((0,), j, np.array([[1 - rare, rare], [1 - 3 * rare, 3 * rare]])) for j in range(1, columns + 1)
    ]
    law = np.zeros(columns + 1)
    law[[0, 1, 6]] = 0.95, 0.04, 0.01
    shares = np.full(columns, law @ np.arange(columns + 1) / columns)
    tree = CountedTree(0, np.array([0.7, 0.3]), factors, dict.fromkeys(range(1, columns + 1), 1), law, shares)
    drawn = tree.draw(10_000, np.random.default_rng(0))
    lacks = drawn[:, 1:] == 1
    number = lacks.sum(axis=1)
    assert np.bincount(number).tolist() == [9500, 400, 0, 0, 0, 0, 100]
    assert lacks.mean(axis=0) == pytest.approx(shares, abs=0.0015)
    second = [drawn[number == k, 0].mean() for k in (0, 1, 6)]
    # one value tells of it, a whole panel no more
    assert second == pytest.approx([0.294, 0.56, 0.3], abs=0.02)


def test_sweeps_start_from_factors_of_every_number():
    """Sweeps of the heat bath that cannot pass a number of missing values, or stay at one nobody has."""
    rng, panel = np.random.default_rng(1), (1, 2, 3)
    first, factors = made(TREE, rng)
    factors[3][2][:, MISSING[3]] *= 1e-3  # so that three are hardly ever missing together
    law = np.array([0.5, 0.0, 0.2, 0.3])
    tree = CountedTree(0, first, factors, {j: MISSING[j] for j in panel}, law, np.array([0.5, 0.4, 0.4]))
    records, q = naive(first, factors)
    lacks = records[:, panel] == MISSING[list(panel)]
    for j, lacking in zip(panel, lacks.T, strict=True):
        q[lacking] *= tree.columns[j]
    q *= np.exp(tree.log_number)[lacks.sum(axis=1)]
    assert tree.loose.tolist() == [False, False, False, True]  # records that sweeps leave alone
    np.testing.assert_allclose(np.bincount(lacks.sum(axis=1), weights=q), [0.5, 1e-6, 0.2, 1e-6], rtol=1e-6)


def test_two_panels_keep_their_own_shares():
    """Factors of columns that are missing together, moved one by one: each asks for the whole gap, and
    the fit swings between the panels, or ends beyond what numbers hold."""
    for width in [2, 8, 28]:
        for wrong in [1.0, 1.2]:
            often, seldom, apart = 0.15, 0.08, 0.01
            factors = []
            for start, share in ((1, often * wrong), (1 + width, seldom * wrong)):
                factors.append(((0,), start, np.tile([1 - share, share], (2, 1))))
                follow = np.tile([[1 - apart, apart], [apart, 1 - apart]], (2, 1, 1))
                factors += [((0, j - 1), j, follow) for j in range(start + 1, start + width)]
            law = np.zeros(2 * width + 1)
            law[width] = often + seldom - 2 * often * seldom
            law[[0, 2 * width]] = (1 - often) * (1 - seldom), often * seldom
            shares = np.repeat([often, seldom], width)
            panel = dict.fromkeys(range(1, 2 * width + 1), 1)
            tree = CountedTree(0, np.array([0.6, 0.4]), factors, panel, law, shares)
            have = [part.shares() for part in tree.parts]
            np.testing.assert_allclose([sum(of[j] for of in have) for j in panel], shares, atol=1e-4)
            lacks = tree.draw(20_000, np.random.default_rng(0))[:, 1:] == 1
            assert np.unique(lacks.sum(axis=1)).tolist() == [0, width, 2 * width]
            np.testing.assert_allclose(lacks.mean(axis=0), shares, atol=0.009)  # 3.5 standard deviations


@pytest.mark.parametrize("law", ["none", "at most one", "any"])
def test_a_hundred_columns_may_be_missing(law):
    """Products of a hundred factors beyond what numbers hold, of records that lack fewer than columns do."""
    rng, m = np.random.default_rng(0), 100
    factors = [((0,), 1, rng.dirichlet([5, 5, 1], 2))]
    factors += [((0, j - 1), j, rng.dirichlet([5, 5, 1], (2, 3))) for j in range(2, m + 1)]
    number = {
        "none": np.eye(m + 1)[0],
        "at most one": np.full(m + 1, 0.0),
        "any": rng.dirichlet(np.ones(m + 1)),
    }
    number["at most one"][:2] = 0.5
    shares = np.full(m, 0.9 if law == "at most one" else 0.08)
    tree = CountedTree(
        0, np.array([0.5, 0.5]), factors, dict.fromkeys(range(1, m + 1), 2), number[law], shares
    )
    assert np.isfinite(tree.log_number).all() and np.isfinite(list(tree.columns.values())).all()
    reached = sum(part.joint.sum(axis=0) for part in tree.parts)
    np.testing.assert_allclose(reached, number[law], atol=1e-9)
    lacking = (tree.draw(4000, rng)[:, 1:] == 2).sum(axis=1)
    have = np.bincount(lacking, minlength=m + 1) / 4000
    np.testing.assert_allclose(have, number[law], atol=2.01 / 4000)


def test_what_the_tables_hardly_have_is_drawn_as_often_as_the_law_says():
    """A bin of the root without probability, which alone lacks all that the law has: they would be lost."""
    m = 30
    factors = [((0,), j, np.array([[1.0, 0.0], [0.0, 1.0]])) for j in range(1, m + 1)]
    law = np.zeros(m + 1)
    law[[0, m]] = 0.7, 0.3
    root, panel = np.array([1.0, 0.0]), dict.fromkeys(range(1, m + 1), 1)
    tree = CountedTree(0, root, factors, panel, law, np.full(m, 0.3))
    tree.loose[:] = False  # what is loose depends on the root no more
    tree.parts = tree.parts[:1]
    tree._up()
    number = (tree.draw(1000, np.random.default_rng(0))[:, 1:] == 1).sum(axis=1)
    assert np.bincount(number).tolist() == [700, *[0] * (m - 1), 300]


def test_margins_that_contradict_each_other_end_in_the_law():
    """A fit that ends in NaN where columns lack more values than records do, or never."""
    rng = np.random.default_rng(2)
    first, factors = made(TAN, rng)
    law = np.array([0.9, 0.0, 0.1, 0.0, 0.0])
    panel = dict(enumerate(MISSING[:5]))
    del panel[0]
    drawn = CountedTree(0, first, factors, panel, law, np.array([0.0, 0.9, 1.0, 0.2])).draw(1000, rng)
    number = (drawn[:, 1:5] == MISSING[1:5]).sum(axis=1)
    assert np.bincount(number).tolist() == [900, 0, 100]
    one = CountedTree(0, first, factors, {1: 2}, np.array([0.5, 0.5]), np.array([0.5]))
    assert one.draw(0, rng).shape == (0, 6)
