import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from chains import chain_of
from hypothesis import given, settings
from hypothesis import strategies as st
from releases import read, release_marginals

from dpsynth.marginals.missing import Lacking, missing_odds
from dpsynth.marginals.statistics import MarginalsRelease, panel_of
from dpsynth.marginals.terms import DrawnColumns
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Column, Schema

LABS = tuple(
    Column(name=f"lab{i}", kind="continuous", lower=0, upper=10, decimals=1, missing=True) for i in range(5)
)
SITE = Column(name="site", kind="categorical", categories=("a", "b", "c"), missing=True)
DIED = Column(name="died", kind="binary", categories=(0, 1))
SCHEMA = Schema(columns=(*LABS, SITE, DIED), outcome="died", n_public=4000)


def table(n, rng):
    """Half of the records lack the whole panel, the others hardly a value."""
    panel = rng.random(n) < 0.5
    made = {c.name: np.where(panel | (rng.random(n) < 0.02), np.nan, rng.uniform(2, 8, n)) for c in LABS}
    made["site"] = np.where(rng.random(n) < 0.01, None, rng.choice(["a", "b", "c"], n))
    made["died"] = rng.integers(0, 2, n)
    return SCHEMA.conform(pd.DataFrame(made)).frame


def test_one_record_lies_in_one_cell_more():
    """A histogram of missing values that nobody pays for; by brute force over all neighbours."""
    frame = table(60, np.random.default_rng(0))
    release = MarginalsRelease(schema=SCHEMA, n=4000, noise_multiplier=2.0)
    full = np.concatenate(read(release, frame))
    moved = [
        np.linalg.norm(full - np.concatenate(read(release, frame.drop(index=row)))) for row in frame.index
    ]
    assert release.sensitivity_squared == len(SCHEMA) + 1
    assert max(moved) == pytest.approx(np.sqrt(len(SCHEMA) + 1))
    naive = np.bincount(frame[[*(lab.name for lab in LABS), "site"]].isna().sum(axis=1), minlength=7)
    assert read(release, frame)[-1].tolist() == naive.tolist()


def missing_numbers(states, chain, panel):
    return sum(states[:, j] == chain.binnings[j].labels[-1] for j in panel)


@pytest.mark.parametrize("pairs", [None, 5.0])
def test_panels_are_missing_together_in_sampled_records(pairs):
    """Records that lack about the same number of values each, however real ones hang together."""
    rng = np.random.default_rng(2)
    frame = table(4000, rng)
    released = release_marginals(frame, SCHEMA, noise_multiplier=1.0, n=4000, rng=rng)
    shuffled = pd.DataFrame({name: rng.permutation(frame[name].array) for name in frame})
    chain = chain_of(shuffled, SCHEMA, released, rng)
    panel = panel_of(released.grids)

    def spread(chain):
        return np.std(missing_numbers(chain.sample(8000, rng), chain, panel))

    real = frame.isna().sum(axis=1).std()
    without = chain_of(shuffled, SCHEMA, dataclasses.replace(released, missing_law=None), rng)
    assert spread(without) < 0.6 * real  # the fault
    if pairs is not None:
        chain = chain_of(frame, SCHEMA, released, rng, pairs=pairs)
    assert spread(chain) == pytest.approx(real, rel=0.07)
    states = chain.sample(20_000, rng)
    for j in panel:
        share = np.mean(states[:, j] == chain.binnings[j].labels[-1])
        assert share == pytest.approx(released.probabilities[j][-1], abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [None, 5.0])
def test_a_rare_panel_is_missing_as_a_whole(pairs):
    """Records that lack five of six, as two in a hundred do, of which tables or products leave none."""
    rng = np.random.default_rng(5)
    frame = table(4000, rng)
    missing = [*(lab.name for lab in LABS), "site"]
    there = frame.dropna(subset=missing)
    frame = there.iloc[rng.integers(len(there), size=4000)].reset_index(drop=True)
    frame.loc[:79, missing[:5]] = np.nan
    released = release_marginals(frame, SCHEMA, noise_multiplier=1.0, n=4000, rng=rng)
    panel = panel_of(released.grids)

    def numbers(released):
        chain = chain_of(frame, SCHEMA, released, rng, pairs=pairs)
        states = chain.sample(20_000, rng)
        return chain, states, np.bincount(missing_numbers(states, chain, panel), minlength=7) / len(states)

    _, _, without = numbers(dataclasses.replace(released, missing_law=None))
    chain, states, number = numbers(released)
    assert number[4:6].sum() == pytest.approx(0.02, abs=0.008)
    assert without[4:6].sum() < number[4:6].sum() - 0.002  # noise of the tables: many lack one to three
    assert number[1:4].sum() < 0.025
    shares = [np.mean(states[:, j] == chain.binnings[j].labels[-1]) for j in panel]
    np.testing.assert_allclose(shares, [released.probabilities[j][-1] for j in panel], atol=0.005)


def test_a_column_missing_in_one_group_only_stays_so():
    """Structural missing values that come out in the other group, or values where there are none."""
    rng = np.random.default_rng(4)
    n = 4000
    sex = rng.choice(["F", "M"], n)
    weeks = np.where(sex == "M", np.nan, rng.integers(0, 41, n))
    made = {"sex": sex, "weeks": weeks, "died": rng.integers(0, 2, n)}
    columns = (
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="weeks", kind="integer", lower=0, upper=40, missing=True),
        *LABS[:2],
        DIED,
    )
    schema = Schema(columns=columns, outcome="died", n_public=n)
    labs = {c.name: np.where(rng.random(n) < 0.3, np.nan, rng.uniform(2, 8, n)) for c in LABS[:2]}
    frame = schema.conform(pd.DataFrame(made | labs)).frame
    released = release_marginals(frame, schema, noise_multiplier=1.0, n=n, rng=rng)
    chain = chain_of(frame, schema, released, rng, pairs=5.0)
    states = chain.sample(20_000, rng)
    lacks = states[:, 1] == chain.binnings[1].labels[-1]
    male = states[:, 0] == chain.binnings[0].labels[1]
    assert np.mean(lacks & ~male) < 0.01 and np.mean(~lacks & male) < 0.01


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_odds_given_the_number_are_those_of_independent_columns(size, seed):
    """Odds of another law: by enumeration of all patterns of independent columns with odds w."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.9, size)
    patterns = np.array(list(itertools.product([0, 1], repeat=size)))
    mass = np.prod(np.where(patterns, p, 1 - p), axis=1)
    number = patterns.sum(axis=1)
    law = np.bincount(number, mass, minlength=size + 1)
    odds = missing_odds(law, mass @ patterns)
    for k in range(1, size):
        share = (mass * (number == k)) @ patterns / law[k]
        np.testing.assert_allclose(odds[:, k], np.log(share / (1 - share)), atol=0.02)
    assert (odds[:, 0] < -10).all() and (odds[:, size] > 10).all()


def test_a_columns_share_given_what_others_lack_is_that_of_bayes():
    """The effect of columns that are there taken for that of missing ones; by enumeration of the number."""
    law = np.array([[0.6, 0.1, 0.1, 0.2], [0.1, 0.2, 0.3, 0.4]])
    odds = missing_odds(law[0], np.array([0.3, 0.3, 0.3]))
    term = Lacking(0, law, (1, 2), np.array([2, 2]), odds, 0.3, 1, 3)
    rows = DrawnColumns.empty(4, 8)
    rows.states[:3] = list(zip(*itertools.product([0, 1], [0, 2], [1, 2]), strict=True))
    given = 1 / (1 + np.exp(-odds))
    for k, (root, first, second) in enumerate(rows.states[:3].T):
        like = law[root] * np.where(first == 2, given[0], 1 - given[0])
        like = like * np.where(second == 2, given[1], 1 - given[1])
        share = like @ given[2] / like.sum()
        expected = np.log(share / (1 - share)) - np.log(0.3 / 0.7)
        assert term.logits(rows)[:, k].tolist() == pytest.approx([0.0, expected, 0.0], abs=1e-4)


def test_missing_values_are_not_taken_for_rare_categories(monkeypatch):
    """Rare categories share a bin after that of missing values: who takes the last for it counts those."""
    rng = np.random.default_rng(6)
    words = tuple("abcdefgh")
    columns = tuple(
        Column(name=f"x{i}", kind="categorical", categories=words, missing=True) for i in range(3)
    )
    schema = Schema(columns=(*columns, DIED), outcome="died", n_public=4000)
    made = {
        c.name: rng.choice([*"ab", *"cdefgh", None], 4000, p=[0.4, 0.26, *[0.04] * 6, 0.1]) for c in columns
    }
    made["x0"] = made["x1"] = np.where(pd.isna(made["x2"]), None, made["x0"])
    frame = schema.conform(pd.DataFrame({**made, "died": rng.integers(0, 2, 4000)})).frame
    released = release_marginals(frame, schema, noise_multiplier=None, n=4000, rng=rng)
    monkeypatch.setattr("dpsynth.marginals.binning.default_bins", lambda n, noise_std, classes: 2)
    monkeypatch.setattr("dpsynth.marginals.binning._STANDS", 1e6)
    chain = chain_of(frame, schema, released, rng, noise=None)
    assert any(binning.labels[-1] < binning.size - 1 for binning in chain.network.binnings)
    cells = chain.cells_of(chain.sample(4000, rng), rng)
    absent = sum(cells[:, j] == released.grids[j].present for j in panel_of(released.grids))
    number = frame[["x0", "x1", "x2"]].isna().sum(axis=1)
    np.testing.assert_allclose(np.bincount(absent, minlength=4), np.bincount(number, minlength=4), atol=60)


def test_without_a_panel_nothing_more_is_released():
    """A histogram bought for nothing."""
    release = MarginalsRelease(schema=Schema(columns=(*LABS[:2], DIED)), n=40, noise_multiplier=1.0)
    assert release.panel == () and release.sensitivity_squared == 3
    assert panel_of([Grid.from_column(DIED)] * 4) == ()
