"""A fit that buys the nearest-neighbour histogram."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import dp_marginals

import dpsynth
from dpsynth import Column, Schema
from dpsynth.marginals.features import FourierFeatures
from dpsynth.marginals.gibbs import FourierReweighting
from dpsynth.synthesis import many_tables, marginals

N = 4000
NAMES = tuple(f"gene{j}" for j in range(5))
SCHEMA = Schema(
    columns=(
        *(Column(name=name, kind="binary", categories=("no", "yes")) for name in NAMES),
        Column(name="age", kind="continuous", lower=0, upper=1, cells=16),
        Column(name="ill", kind="binary", categories=("no", "yes")),
    ),
    outcome="ill",
    n_public=N,
)
READINGS = [
    "single-column counts",
    "base model edges",
    "base model tables",
    "pairwise statistics",
    "nearest-neighbour histogram",
]


@pytest.fixture(autouse=True)
def _few_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of the random Fourier features, which take a twentieth of the time."""
    monkeypatch.setattr("dpsynth.marginals.features.FREQUENCIES", 100)


def cohort(seed: int = 0) -> pd.DataFrame:
    """Illness is the parity of three genes, which no two of them tell, nor one of them with illness."""
    rng = np.random.default_rng(seed)
    genes = rng.random((N, len(NAMES))) < 0.5
    ill = (genes[:, :3].sum(axis=1) % 2 == 1) ^ (rng.random(N) < 0.1)
    frame = pd.DataFrame(np.where(genes, "yes", "no"), columns=list(NAMES))
    return frame.assign(age=rng.random(N), ill=np.where(ill, "yes", "no"))


def new_fit(**given) -> dpsynth.DPMarginals:
    options = {
        "epsilon": 3.0,
        "delta": 1e-5,
        "pairwise_statistics": True,
        "neighbour_histogram": True,
        "random_state": 0,
    } | given
    return dp_marginals(**options).fit(cohort(), schema=SCHEMA)


@cache
def fitted(**given) -> dpsynth.DPMarginals:
    return new_fit(**given)


def parity(frame: pd.DataFrame) -> float:
    odd = (frame[["gene0", "gene1", "gene2"]] == "yes").sum(axis=1) % 2 == 1
    return float(2 * np.mean(odd == (frame["ill"] == "yes")) - 1)


@pytest.mark.slow
def test_a_parity_of_three_is_kept() -> None:
    """A histogram that is released and not used: tables and pairwise statistics have no part of it."""
    assert parity(cohort()) > 0.75
    assert parity(fitted().sample(N, random_state=0)) > 0.5
    assert abs(parity(fitted(neighbour_histogram=False).sample(N, random_state=0))) < 0.1


def test_votes_cost_what_was_asked() -> None:
    """A reading that the calibration forgets, or one that takes more than its share from another."""
    model, plain = fitted(), fitted(neighbour_histogram=False)
    assert [entry.name for entry in model.ledger_.entries] == READINGS
    assert 0.98 * 3.0 < model.ledger_.epsilon(1e-5) <= 3.0
    noise, before = (
        {
            entry.name: entry.event.noise_multiplier
            for entry in of.ledger_.entries
            if entry.name != "base model edges"
        }
        for of in (model, plain)
    )
    for name in before:  # 0.1 beside 0.95
        assert noise[name] == pytest.approx(before[name] * np.sqrt(1.05 / 0.95), rel=0.01)


def test_nothing_but_the_release_reads_the_records(readings, unrefined) -> None:
    """Groups whose centres are read off the records: one more reading than releases."""
    assert new_fit(random_state=None).guarantee().private
    assert readings == ["_counts", "_counts", "_counts", "_sums", "_sums"]


def test_released_marginals_stay_exact() -> None:
    """Draws whose one-way shares follow the nearest-neighbour histogram."""
    model = fitted()
    drawn = model.sample(N, random_state=0)
    marginals = model.model_.encoder.marginals
    for name, law in zip(marginals.names, marginals.probabilities, strict=True):
        if name != "age":
            assert np.mean(drawn[name] == "yes") == pytest.approx(law[1], abs=1 / N)


def test_a_model_with_votes_is_saved_and_read(tmp_path) -> None:
    """Weights that are lost on disk."""
    model = fitted()
    model.save(tmp_path / "model")
    again = dpsynth.load(tmp_path / "model")
    pd.testing.assert_frame_equal(again.sample(300, random_state=1), model.sample(300, random_state=1))
    record = json.loads((tmp_path / "model" / "model.json").read_text())
    network = record["model"]["sampler"]["base_model"]
    assert network["weighting"]["most"] == model.model_.base_model.weighting.most > 1


@pytest.fixture(scope="module")
def redrawn():
    """The weighting of a model with large noise, and ten redrawn histograms of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpsynth.marginals.reweighting._fourier", lambda *given: None)
        fit = new_fit(epsilon=0.25, pairwise_statistics=False)
    model = fit.model_
    weighting, seen = model.base_model.weighting, []
    features = FourierFeatures.of(weighting.groups.tables, np.random.default_rng(0))
    flat = FourierReweighting(features, np.zeros(features.size, np.float32), 0.0)
    weighting = replace(weighting, fourier=flat)
    base_model = replace(model.base_model, weighting=weighting)

    def keep(base_model, neighbour_histogram, rng):
        assert base_model.weighting is None
        seen.append(neighbour_histogram)
        return base_model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marginals, "weighted", keep)
        for seed in range(10):
            model = replace(model, sampler=marginals.Networked(base_model))
            many_tables.redraw(fit._plan, model, np.random.default_rng(seed))
    return weighting, seen


@pytest.mark.slow
def test_votes_are_redrawn_with_their_noise(redrawn) -> None:
    """Tables of many whose nearest-neighbour histograms all have one noise, or follow weights of the model
    that they come from.
    """
    own, seen = redrawn
    counts = np.array([neighbour_histogram.counts for neighbour_histogram in seen])
    spread = np.sqrt(own.noise_std**2 + counts.mean(axis=0).clip(0))
    assert np.sqrt(np.mean((counts.std(axis=0, ddof=1) / spread) ** 2)) == pytest.approx(1, abs=0.35)
    assert all(neighbour_histogram.noise_std == pytest.approx(own.noise_std) for neighbour_histogram in seen)
    # groups have records enough, so that sampling alone would be far less than noise and sampling
    assert own.noise_std > 2 * np.sqrt(counts.mean())


def test_waves_are_redrawn_with_their_noise(redrawn) -> None:
    """Tables of many that have lost the random Fourier features, or whose random Fourier features are those
    of the model, or without noise.
    """
    weighting, seen = redrawn
    features = weighting.fourier.features
    fourier = np.array([neighbour_histogram.fourier for neighbour_histogram in seen])
    assert all(neighbour_histogram.features is features for neighbour_histogram in seen)
    # half a record's square length is sampling in each of as many entries as there are frequencies
    spread = np.sqrt(weighting.noise_std**2 + N / features.size)
    assert np.sqrt(fourier.var(axis=0, ddof=1).mean()) == pytest.approx(spread, rel=0.1)
    assert weighting.noise_std > 5 * np.sqrt(N / features.size)


@pytest.mark.slow
def test_redrawn_tables_keep_the_parity() -> None:
    """Tables of many that have no nearest-neighbour histogram, and fall back on what tables and pairwise
    statistics tell.
    """
    assert parity(fitted().sample_many(2, N, random_state=0)[0]) > 0.4
