"""Rare categories pooled along a public tree."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth import DPMarginals
from dpsynth.marginals.binning import Binning, make_binning
from dpsynth.marginals.columns import estimate_marginals
from dpsynth.marginals.density import norm_sub
from dpsynth.marginals.growth import Resolution
from dpsynth.marginals.pooling import pool_rare
from dpsynth.marginals.statistics import MarginalsRelease
from dpsynth.privacy import Ledger
from dpsynth.table import Column, Schema
from dpsynth.table.grid import Grid


@st.composite
def trees(draw: st.DrawFn) -> tuple[np.ndarray, list[np.ndarray], float]:
    """Probabilities, levels of a random tree and a threshold. The last cell may be of a missing value."""
    size = draw(st.integers(1, 30))
    levels = [np.array(draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)))]
    for _ in range(draw(st.integers(0, 2))):
        above = np.array(draw(st.lists(st.integers(0, 4), min_size=10, max_size=10)))
        levels.append(above[levels[-1]])
    cells = size + draw(st.integers(0, 1))
    mass = np.array(draw(st.lists(st.integers(0, 50), min_size=cells, max_size=cells))) / 200
    return mass, levels, draw(st.integers(1, 60)) / 200 - 1e-9


@given(trees())
@settings(max_examples=300, deadline=None)
def test_cells_are_groups_of_the_tree(made: tuple[np.ndarray, list[np.ndarray], float]) -> None:
    """A cell that crosses parents, a category in no cell, or one in a coarser cell than it needs."""
    mass, levels, least = made
    rare = mass < least
    labels = pool_rare(mass, rare, least, levels)
    used = np.unique(labels)
    assert len(labels) == len(mass) and used.tolist() == list(range(len(used)))
    assert labels[~rare].tolist() == list(range((~rare).sum()))
    # a naive transcription: by level, the groups of what is left
    left = {k for k in range(len(mass)) if rare[k]}
    expected = []
    for level in levels:
        for group in sorted({*level}):
            members = {k for k in left if k < len(level) and level[k] == group}
            if members and sum(mass[k] for k in members) >= least:
                expected.append(members)
        left -= set().union(*expected)
    expected += [left] if left else []
    assert [{*np.flatnonzero(labels == one)} for one in used[used >= (~rare).sum()]] == expected


def column(tree: bool, missing: bool = False) -> Column:
    codes = tuple(f"{chapter}{block}.{k}" for chapter in "ABCD" for block in range(5) for k in range(10))
    return Column(
        name="code",
        kind="categorical",
        categories=codes,
        missing=missing,
        tree={"prefixes": [1, 2]} if tree else None,
    )


def test_bins_and_tables_follow_the_tree() -> None:
    """A tree that one of the two ways to cut a column does not see."""
    for missing in (False, True):
        one = column(True, missing)
        law = np.full(200 + missing, 1 / (200 + missing))
        grid = Grid.from_column(one)
        bins = make_binning(grid, law, 6)  # rare: below a twenty-fourth, less than a block
        chapter = np.array([code[0] for code in one.categories])
        block = np.array([code[:2] for code in one.categories])
        assert len({*zip(block, bins.labels, strict=False)}) == bins.size - missing == 20
        coarse = make_binning(grid, law, 2)  # below an eighth: a chapter
        assert len({*zip(chapter, coarse.labels, strict=False)}) == coarse.size - missing == 4
        states = Binning.from_labels(np.arange(len(law)), law)
        cut = Resolution([grid], [states], [law], 1000.0, 20.0)._cut(0, 0.04)
        assert len({*zip(block, cut, strict=False)}) == cut.max() + 1 - missing == 20
        flat = Resolution([Grid.from_column(column(False, missing))], [states], [law], 1000.0, 20.0)._cut(
            0, 0.04
        )
        assert flat.max() == 0


def cohort(n: int, seed: int) -> pd.DataFrame:
    """Deaths whose risk depends on the block, alone, and codes of which most are rare."""
    rng, one = np.random.default_rng(seed), column(True)
    law = np.random.default_rng(0).permutation(1 / np.arange(1, 201))
    code = rng.choice(200, n, p=law / law.sum())
    risk = np.random.default_rng(1).uniform(0.05, 0.95, 20)[code // 10]
    died = np.where(rng.random(n) < risk, "yes", "no")
    return pd.DataFrame({"code": np.array(one.categories)[code], "died": died})


def test_rare_codes_keep_the_risk_of_their_block() -> None:
    """Rare codes with the risk of all others, or codes that are drawn by their shares in the records."""
    frame, error, shares = cohort(5000, 2), {}, None
    real = (frame["died"] == "yes").groupby(frame["code"].str[:2]).mean()
    weight = frame["code"].str[:2].value_counts(normalize=True)
    for tree in (False, True):
        schema = Schema(
            columns=(column(tree), Column(name="died", kind="binary", categories=("no", "yes"))),
            outcome="died",
            n_public=5000,
        )
        model = DPMarginals(epsilon=1.0, random_state=0).fit(frame, schema=schema, ledger=Ledger())
        sample = model.sample(20_000, random_state=0)
        risk = (sample["died"] == "yes").groupby(sample["code"].str[:2]).mean()
        error[tree] = float(((real - risk).abs() * weight).sum())
        shares = model.model_.encoder.marginals.probabilities[0]
        drawn = sample["code"].value_counts(normalize=True).reindex(column(tree).categories, fill_value=0)
        own = frame["code"].value_counts(normalize=True).reindex(column(tree).categories, fill_value=0)
        released, private = (0.5 * np.abs(drawn - other).sum() for other in (shares, own))
        assert released < 0.05 < private
    assert error[True] < error[False] / 2


def test_noise_of_single_codes_is_taken_away_within_their_block() -> None:
    """Rare codes that are mostly noise, a block that loses records to another, or exact counts that move."""
    rng = np.random.default_rng(3)
    block, truth = np.repeat(np.arange(40), 10), np.zeros(400)
    truth[:] = (rng.gamma(1.0, 30.0, 40)[block] * rng.uniform(0.5, 1.5, 400)).round()
    one = Column(
        name="code",
        kind="categorical",
        categories=tuple(f"{b:02d}.{k}" for b in range(40) for k in range(10)),
        tree={"prefixes": [1, 2]},
    )
    n = float(truth.sum())
    release = MarginalsRelease(schema=Schema(columns=(one,)), n=n, noise_multiplier=30.0)
    found, flat = np.zeros(400), np.zeros(400)
    error = dict.fromkeys(("tree", "none"), 0.0)
    for _ in range(5):
        noisy = truth + 30.0 * rng.standard_normal(400)
        found, flat = n * estimate_marginals(release, [noisy]).probabilities[0], norm_sub(noisy, n)
        assert np.bincount(block, found).tolist() == pytest.approx(np.bincount(block, flat), abs=1e-6)
        assert found.min() >= 0
        error["tree"] += np.abs(found - truth).sum()
        error["none"] += np.abs(flat - truth).sum()
    assert error["tree"] < 0.75 * error["none"]
    exact = MarginalsRelease(schema=Schema(columns=(one,)), n=n, noise_multiplier=None)
    assert n * estimate_marginals(exact, [truth]).probabilities[0] == pytest.approx(truth, abs=1e-9)
