import itertools

import numpy as np
import pandas as pd
import pytest
from releases import fit_base_model, release_marginals

from dpsynth.errors import ConfigError
from dpsynth.marginals.binning import Binning
from dpsynth.marginals.factors import fit_factors
from dpsynth.marginals.network import BaseModelReleases
from dpsynth.marginals.statistics import block_scores, grow_tree, pair_scores
from dpsynth.privacy.records import FrameRecords, GridAxis
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=99),
        Column(name="lab", kind="continuous", lower=0.1, upper=50, scale="log", cells=60, missing=True),
        Column(name="group", kind="categorical", categories=("a", "b", "c")),
        Column(name="died", kind="binary", categories=(0, 1)),
        Column(name="stage", kind="ordinal", categories=(1, 2, 3, 4)),
    ),
    outcome="died",
    n_public=4000,
)
OUTCOME = 3


def table(n, rng):
    age = rng.integers(0, 100, n)
    died = (rng.random(n) < 0.1 + 0.006 * age).astype(int)
    lab = np.exp(rng.normal(0.5 + died, 0.7)).clip(0.1, 50)
    frame = pd.DataFrame(
        {
            "age": age,
            "lab": np.where(rng.random(n) < 0.1 + 0.3 * died, np.nan, lab),
            "group": np.array(["a", "b", "c"], dtype=object)[np.minimum(age // 40, 2)],
            "died": died,
            "stage": 1 + np.minimum(rng.integers(0, 3, n) + died, 3),
        }
    )
    return SCHEMA.conform(frame).frame


def fitted(kind, frame=None, schema=SCHEMA, seed=0, noise=2.0, epsilon=0.5):
    rng = np.random.default_rng(seed)
    frame = table(4000, rng) if frame is None else frame
    released = release_marginals(frame, schema, noise_multiplier=noise, n=max(len(frame), 1), rng=rng)
    base_model = fit_base_model(
        frame, schema, released, kind=kind, noise_multiplier=noise, selection_epsilon=epsilon, rng=rng
    )
    return base_model, released


def random_binnings(rng, sizes):
    return [Binning(np.arange(k), rng.dirichlet(np.ones(k))) for k in sizes]


def count_table(bins, columns, sizes):
    """Counts of some columns, by a loop."""
    counts = np.zeros([sizes[c] for c in columns])
    np.add.at(counts, tuple(bins[:, c] for c in columns), 1)
    return counts


def test_scores_against_loops():
    """A score that is not the L1 distance of its definition."""
    rng = np.random.default_rng(0)
    sizes = (2, 3, 4)
    binnings = random_binnings(rng, sizes)
    bins = np.stack([rng.integers(0, k, 30) for k in sizes], axis=1)
    pairs = list(itertools.combinations(range(3), 2))
    scores = pair_scores([(pair, count_table(bins, pair, sizes)) for pair in pairs], binnings, 33.0)
    for a, b in itertools.permutations(range(3), 2):
        naive = 0.0
        for i in range(sizes[a]):
            for j in range(sizes[b]):
                count = sum(1 for row in bins if row[a] == i and row[b] == j)
                naive += abs(count - 33.0 * binnings[a].probabilities[i] * binnings[b].probabilities[j])
        assert scores[a, b] == pytest.approx(naive)
    assert not pair_scores([((0, 2), count_table(bins, (0, 2), sizes))], binnings, 33.0)[1].any()


@pytest.mark.parametrize("once", [7, 1000])
def test_pairs_of_few_cells_are_counted_at_once(once, monkeypatch):
    """Pairs of other columns, records lost between blocks, or scores that are not those of tables."""
    monkeypatch.setattr("dpsynth.privacy.pair_counts._ONCE", once)
    rng, sizes = np.random.default_rng(0), (2, 5, 1, 3)
    columns = [
        Column(name=f"c{j}", kind="categorical", categories=tuple("abcde"[:k])) for j, k in enumerate(sizes)
    ]
    bins = np.stack([rng.integers(0, k, 60) for k in sizes], axis=1)
    frame = pd.DataFrame({c.name: np.array(c.categories)[bins[:, j]] for j, c in enumerate(columns)})
    records, axes = FrameRecords(frame), [GridAxis(Grid.from_column(column)) for column in columns]
    with records.opened():
        counts = records.pair_counts(axes)
        first = np.cumsum(sizes) - sizes
        for (i, a), (j, b) in itertools.permutations(enumerate(axes), 2):
            own = counts[first[i] : first[i] + sizes[i], first[j] : first[j] + sizes[j]]
            np.testing.assert_array_equal(own, records.counts([(a, b)])[0])
    binnings = random_binnings(rng, sizes)
    tables = [(pair, count_table(bins, pair, sizes)) for pair in itertools.combinations(range(4), 2)]
    np.testing.assert_array_equal(block_scores(counts, binnings, 33.0), pair_scores(tables, binnings, 33.0))


@pytest.mark.parametrize("kind", ["tree", "tan"])
@pytest.mark.parametrize("seed", range(5))
def test_structure_spans_and_starts_at_the_outcome(kind, seed):
    """A column left out or drawn twice, a parent after its child, or an outcome that is not the root."""
    base_model, _ = fitted(kind, frame=table(50, np.random.default_rng(seed)), seed=seed, epsilon=0.05)
    assert base_model.root == OUTCOME
    known = {OUTCOME}
    for parents, child, values in base_model.factors:
        assert set(parents) <= known and child not in known
        assert values.shape == tuple(base_model.binnings[c].size for c in (*parents, child))
        if kind == "tan":
            assert parents[0] == OUTCOME and len(parents) <= 2
        known.add(child)
    assert known == set(range(len(SCHEMA)))
    assert sum(len(p) == (2 if kind == "tan" else 1) for p, _, _ in base_model.factors) >= len(SCHEMA) - 2


def test_tree_without_noise_is_the_maximum_spanning_tree():
    """Prim's algorithm gone wrong: compare with the best of all spanning trees of five columns."""
    rng = np.random.default_rng(5)
    scores = rng.random((5, 5))
    scores += scores.T
    edges = grow_tree(scores, 2, range(5), None, rng)
    pairs = list(itertools.combinations(range(5), 2))
    best = 0.0
    for chosen in itertools.combinations(pairs, 4):
        reached = {0}
        for _ in range(4):
            reached |= {v for e in chosen for v in e if set(e) & reached}
        if len(reached) == 5:
            best = max(best, sum(scores[e] for e in chosen))
    assert sum(scores[e] for e in edges) == pytest.approx(best)


@pytest.mark.parametrize("kind", ["tree", "tan"])
def test_tables_agree_with_released_marginals(kind):
    """A fit that leaves a table with other one-way marginals than the released ones."""
    base_model, released = fitted(kind)
    for parents, child, values in base_model.factors:
        for axis, column in enumerate((*parents, child)):
            others = tuple(a for a in range(values.ndim) if a != axis)
            assert values.sum(axis=others) / released.n == pytest.approx(
                base_model.binnings[column].probabilities, abs=2e-3
            )
        assert np.all(values >= 0)


@pytest.mark.parametrize("kind", ["tree", "tan"])
def test_exact_prior_reproduces_its_tables(kind):
    """Sampling from the wrong axis or group: without noise the counts of a family's pairs must come back."""
    frame = table(4000, np.random.default_rng(6))
    base_model, released = fitted(kind, frame=frame, noise=None, epsilon=None)
    bins = np.stack(
        [
            b.labels[g.encode(frame[g.column.name])]
            for g, b in zip(released.grids, base_model.binnings, strict=True)
        ],
        axis=1,
    )
    drawn = base_model.sample(40_000, np.random.default_rng(0))
    sizes = [b.size for b in base_model.binnings]
    for parents, child, _ in base_model.factors:
        family = (*parents, child)
        for pair in itertools.combinations(family, 2):
            gap = count_table(bins, pair, sizes) / 4000 - count_table(drawn, pair, sizes) / 40_000
            assert np.abs(gap).sum() < 0.02
    assert np.abs(np.bincount(drawn[:, OUTCOME]) - 40_000 * released.probabilities[OUTCOME]).max() <= 1


def test_only_the_released_count_matters():
    """The frame's length used where the public or noisy number belongs."""
    frame = table(300, np.random.default_rng(8))
    released = release_marginals(frame, SCHEMA, noise_multiplier=None, n=900, rng=np.random.default_rng(0))
    base_model = fit_base_model(
        frame,
        SCHEMA,
        released,
        kind="tree",
        noise_multiplier=1.0,
        selection_epsilon=1.0,
        rng=np.random.default_rng(0),
    )
    assert all(values.sum() == pytest.approx(900, rel=1e-3) for _, _, values in base_model.factors)


def test_bins_follow_from_what_is_released():
    """Bins, or their number, read off the records: neighbours would have tables of other shapes."""
    released = release_marginals(
        table(300, np.random.default_rng(8)),
        SCHEMA,
        noise_multiplier=2.0,
        n=300,
        rng=np.random.default_rng(0),
    )
    labels = []
    for n in (20, 3000):
        base_model = fit_base_model(
            table(n, np.random.default_rng(n)),
            SCHEMA,
            released,
            kind="tree",
            noise_multiplier=2.0,
            selection_epsilon=1.0,
            rng=np.random.default_rng(0),
        )
        labels.append([binning.labels.tolist() for binning in base_model.binnings])
    assert labels[0] == labels[1]


def test_tiny_tables_under_noise():
    """NaN tables or a crash where noise exceeds all counts."""
    for kind in ["tree", "tan"]:
        for n in [0, 1, 2]:
            base_model, _ = fitted(kind, frame=table(n, np.random.default_rng(9)), noise=5.0)
            bins = base_model.sample(20, np.random.default_rng(0))
            assert np.all(bins >= 0) and np.all(bins < [b.size for b in base_model.binnings])


def test_small_schemas():
    """One column, two columns, no outcome."""
    frame = table(60, np.random.default_rng(10))
    one, _ = fitted("tree", frame=frame[["age"]], schema=SCHEMA.select(["age"]))
    assert one.factors == () and one.sample(5, np.random.default_rng(0)).shape == (5, 1)
    plan = BaseModelReleases.plan(SCHEMA.select(["age"]), "tree", noise_multiplier=1.0, epsilon=0.1)
    assert plan.events == []
    two, _ = fitted("tree", frame=frame[["age", "group"]], schema=SCHEMA.select(["age", "group"]))
    assert two.edges == ((0, 1),)
    with pytest.raises(ConfigError, match="needs a schema with an outcome"):
        fitted("tan", frame=frame[["age", "group"]], schema=SCHEMA.select(["age", "group"]))
    only, _ = fitted("tan", frame=frame[["died"]], schema=SCHEMA.select(["died"]))
    assert only.factors == ()


def test_tables_are_fitted_with_their_noise_in_view(monkeypatch):
    """Noise that the fit does not know of is taken for interactions."""
    seen = []

    def watched(families, counts, bins, noise_std):
        seen.append(noise_std)
        return fit_factors(families, counts, bins, noise_std)

    monkeypatch.setattr("dpsynth.marginals.network.fit_factors", watched)
    made, _ = fitted("tan", noise=2.0)
    # three tables of three columns, four of the outcome and one
    assert seen == [pytest.approx(2.0 * np.sqrt(3 + 4 / 3))] and made.noise_std == seen[0]


def test_bad_arguments():
    """Values that would pass as private or sample nonsense."""
    with pytest.raises(ConfigError, match="kind is 'forest'"):
        fitted("forest")
    with pytest.raises(ConfigError, match="selection_epsilon is -1"):
        fitted("tree", epsilon=-1.0)
    with pytest.raises(ConfigError, match="n is -3"):
        fitted("tree")[0].sample(-3, np.random.default_rng(0))
