"""A fit that buys pairwise statistics, and a chain that is fitted to them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import dp_marginals

import dpsynth
from dpsynth import Column, Schema
from dpsynth.marginals.chain_fit import ChainFit
from dpsynth.synthesis import many_tables

N = 3000
SCHEMA = Schema(
    columns=(
        Column(name="died", kind="binary", categories=("no", "yes")),
        *(Column(name=f"lab{j}", kind="continuous", lower=-4, upper=4, cells=32) for j in range(4)),
        Column(name="ward", kind="categorical", categories=("a", "b", "c"), missing=True),
    ),
    outcome="died",
    n_public=N,
)


def cohort(n: int = N, seed: int = 0) -> pd.DataFrame:
    """All laboratory values go together: a tree keeps three of their six pairs."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n)
    frame = pd.DataFrame({f"lab{j}": (0.7 * common + 0.7 * rng.normal(size=n)).clip(-4, 4) for j in range(4)})
    frame.insert(0, "died", np.where(common + rng.normal(size=n) > 0.8, "yes", "no"))
    frame["ward"] = np.array(["a", "b", "c", None], dtype=object)[
        np.clip((common + rng.normal(size=n)).round().astype(int) + 1, 0, 3)
    ]
    return frame


def new_fit(**given) -> dpsynth.DPMarginals:
    options = {
        "epsilon": 3.0,
        "delta": 1e-5,
        "pairwise_statistics": True,
        "rounds": 0,
        "random_state": 0,
    } | given
    return dp_marginals(**options).fit(cohort(), schema=SCHEMA)


@cache
def fitted(**given) -> dpsynth.DPMarginals:
    return new_fit(**given)


def correlation_error(frame: pd.DataFrame) -> float:
    labs = [f"lab{j}" for j in range(4)]
    return float(np.abs(frame[labs].corr("spearman") - cohort()[labs].corr("spearman")).to_numpy().max())


@pytest.mark.slow
def test_draws_keep_the_pairs_that_no_table_holds() -> None:
    """Pairwise statistics that are released and not used, or with the wrong sign."""
    refined, plain = (fitted(pairwise_statistics=given) for given in (True, False))
    errors = [correlation_error(model.sample(N, random_state=0)) for model in (refined, plain)]
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.slow
def test_an_interaction_with_the_outcome_is_kept() -> None:
    """Products with the outcome that are bought and not used: no pair of columns tells of XOR."""
    rng = np.random.default_rng(1)
    frame = cohort(seed=1).assign(**{f"lab{j}": rng.normal(size=N).clip(-4, 4) for j in range(4)})

    def xor(table: pd.DataFrame) -> float:
        together = np.sign(table["lab0"].to_numpy() * table["lab1"].to_numpy())
        return float(np.mean(together * np.where(table["died"] == "yes", 1, -1)))

    odd = frame["lab0"] * frame["lab1"] > 0
    frame["died"] = np.where(odd ^ (rng.random(N) < 0.1), "yes", "no")
    model = dp_marginals(epsilon=3.0, delta=1e-5, base_model="tree", pairwise_statistics=True)
    drawn = model.fit(frame, schema=SCHEMA).sample(N)
    assert xor(frame) > 0.75 and xor(drawn) > 0.3


@pytest.mark.slow
def test_a_fit_with_moments_costs_what_was_asked() -> None:
    """A reading that the calibration forgets, or that leaves budget unused."""
    model = fitted()
    assert 0.98 * 3.0 < model.ledger_.epsilon(1e-5) <= 3.0
    names = [entry.name for entry in model.ledger_.entries]
    assert names == ["single-column counts", "base model edges", "base model tables", "pairwise statistics"]
    plain = [entry.event.noise_multiplier for entry in fitted(pairwise_statistics=False).ledger_.entries[::2]]
    more = [entry.event.noise_multiplier for entry in model.ledger_.entries[::2]]
    assert all(a < b < 1.2 * a for a, b in zip(plain, more, strict=True))


def test_nothing_but_the_release_reads_the_records(readings, unrefined) -> None:
    """Features whose length or deviations are read off the records: one more reading than releases."""
    assert new_fit(random_state=None).guarantee().private
    assert readings == ["_counts", "_counts", "_counts", "_sums"]


def test_released_marginals_stay_exact() -> None:
    """Draws whose one-way shares follow the products."""
    model = fitted()
    drawn = model.sample(N, random_state=0)
    released = dict(
        zip(model.model_.encoder.marginals.names, model.model_.encoder.marginals.probabilities, strict=True)
    )
    for name in ("died", "ward"):
        values = drawn[name].astype(object).where(drawn[name].notna(), None)
        column = next(column for column in SCHEMA.columns if column.name == name)
        levels = [*column.categories, *([None] if column.missing else [])]
        shares = [np.mean([value == level for value in values]) for level in levels]
        np.testing.assert_allclose(shares, released[name], atol=1 / N)


@pytest.mark.slow
def test_a_model_with_moments_is_saved_and_read(tmp_path) -> None:
    """A tilt that is lost on disk."""
    model = fitted()
    model.save(tmp_path / "model")
    again = dpsynth.load(tmp_path / "model")
    pd.testing.assert_frame_equal(again.sample(300, random_state=1), model.sample(300, random_state=1))
    first, second = (one.sample_many(2, 100, random_state=1)[0] for one in (model, again))
    pd.testing.assert_frame_equal(first, second)


@pytest.mark.slow
def test_moments_are_redrawn_with_their_noise() -> None:
    """Tables of many whose pairwise statistics all have one noise, so that their spread tells of none."""
    rng = np.random.default_rng(0)
    seen = []

    def remember(network, marginals, pairs, *given, **named):
        seen.append(pairs)
        return ChainFit(network, marginals, None, *given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpsynth.marginals.chain_fit._POOL", 500)
        fit = new_fit(epsilon=0.5)
        released = fit.model_.chain.pairs
        patch.setattr("dpsynth.synthesis.parts.growth.ChainFit", remember)
        for _ in range(6):
            many_tables.redraw(fit._plan, fit.model_, rng)
    means = np.array([pairwise_statistics.mean[released.features.places] for pairwise_statistics in seen])
    # noise and the sampling of N records; the latter alone is several times smaller
    spread = means.std(axis=0, ddof=1)
    assert np.median(spread) == pytest.approx(released.noise_std, rel=0.3)
    np.testing.assert_allclose(
        [pairwise_statistics.noise_std for pairwise_statistics in seen], released.noise_std, rtol=1e-12
    )
