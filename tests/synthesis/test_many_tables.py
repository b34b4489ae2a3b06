"""Tables from redrawn releases."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import dp_marginals

import dpsynth
from dpsynth import DPWGANGP, Column, DPMarginals, Schema, TrainingSettings
from dpsynth.marginals.chain_fit import ChainFit
from dpsynth.marginals.factors import fit_factors
from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.synthesis import many_tables
from dpsynth.synthesis.marginals import Chained
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.parts.base_model import BaseModel
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.part import Parts, Reading
from dpsynth.table.encoder import Encoder
from dpsynth.wgan.history import TrainingHistory

N = 1000
Y, X = (Column(name=name, kind="binary", categories=(0, 1)) for name in "yx")
AGE = Column(name="age", kind="integer", lower=18, upper=90)
DOSE = Column(name="dose", kind="continuous", lower=0, upper=10, decimals=1, missing=True)
SCHEMA = Schema(columns=(AGE, DOSE, X, Y), outcome="y", n_public=400)
PAIR = Schema(columns=(Y, X), outcome="y", n_public=N)


def pairs(n, rng):
    x = (rng.random(n) < 0.3).astype(int)
    return pd.DataFrame({"y": (rng.random(n) < 0.2 + 0.2 * x).astype(int), "x": x})


def cohort(n=400, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, n)
    dose = np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 101, n) / 10)
    y = (rng.random(n) < (age - 18) / 90).astype(int)
    return pd.DataFrame({"age": age, "dose": dose, "x": rng.integers(0, 2, n), "y": y})


def model_of(frame, schema, *, noise, rng, kind="tree"):
    """A fit whose noise multipliers are chosen, without a budget."""
    frame = schema.conform(frame).frame
    # half of the share is for edges: tables have the other half
    base = None if noise is None else noise * np.sqrt(0.5)
    columns = Columns(schema, schema.n_public, share=0.5, noise=noise)
    parts = Parts((columns, BaseModel(schema, kind, 0.5, share=0.5, noise=base)), (), 1e-5)
    reading = Reading(Ledger(), FrameRecords(frame), rng, schema.n_public)
    for part in parts.own:
        reading.read(part)
    encoder, model = Encoder(schema, reading.of(Columns)), DPMarginals()
    chain = ChainFit(reading.of(BaseModel), reading.of(Columns), None, rng, schema).chain
    made = GeneratorModel(schema, encoder, Chained(chain))
    model.n_, model.ledger_ = schema.n_public, reading.ledger
    return model._finish(made, TrainingHistory(), parts)


def redraw(fitted, rng):
    return many_tables.redraw(fitted._plan, fitted.model_, rng)


@pytest.fixture(scope="module")
def fitted():
    model = dp_marginals(epsilon=1.0, delta=1e-5, pairwise_statistics=False)
    return model.fit(cohort(), schema=SCHEMA)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [None, 15.0])
def test_a_share_varies_as_theory_says(noise):
    """Catches redraws without noise or without sampling, and either of them counted twice."""
    schema = Schema(columns=(X,), n_public=N)
    frame = pd.DataFrame({"x": np.arange(N) % 10 < 3})
    model = model_of(frame.astype(int), schema, noise=noise, rng=np.random.default_rng(0))
    p = model.model_.encoder.marginals.probabilities[0][1]
    rng = np.random.default_rng(1)
    shares = [redraw(model, rng).encoder.marginals.probabilities[0][1] for _ in range(300)]
    # two counts with noise, brought to the sum n: the share has half of one count's variance
    variance = p * (1 - p) / N + 0.5 * ((noise or 0.0) / N) ** 2
    assert np.mean(shares) == pytest.approx(p, abs=4 * np.sqrt(variance / 300))
    assert np.var(shares) == pytest.approx(variance, rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [None, 12.0])
def test_an_odds_ratio_varies_as_theory_says(noise):
    """Catches a table redrawn with another noise than its own, which is sqrt(tables) times the multiplier."""
    rng = np.random.default_rng(0)
    model = model_of(pairs(N, rng), PAIR, noise=noise, rng=rng)
    table = model.model_.base_model.factors[0][2]
    assert (
        model.model_.base_model.noise_std == (noise or 0.0) and model.model_.base_model.noise_std is not None
    )

    def log_odds(t):
        return np.log(t[1, 1] * t[0, 0] / (t[1, 0] * t[0, 1]))

    draws = [log_odds(redraw(model, rng).base_model.factors[0][2]) for _ in range(200)]
    # the delta method; bringing four counts to the sum n takes the mean off their noise, and fitting the
    # table to its margins keeps its odds ratio
    gradient = np.array([1.0, -1.0, -1.0, 1.0]) / table.ravel()
    spread = (gradient**2).sum() - gradient.sum() ** 2 / 4
    variance = (1 / table).sum() + (noise or 0.0) ** 2 * spread
    assert np.mean(draws) == pytest.approx(log_odds(table), abs=0.06)
    assert np.var(draws) == pytest.approx(variance, rel=0.25)


@pytest.mark.slow
def test_an_association_outside_the_tables_is_shrunk_once():
    """Catches many tables that hold half of an association where one table holds two thirds of it."""
    rng = np.random.default_rng(0)
    columns = tuple(Column(name=f"x{k}", kind="binary", categories=(0, 1)) for k in range(6))
    schema = Schema(columns=columns, n_public=2000)
    frame = rng.normal(size=(2000, 6)) + 0.35 * rng.normal(size=(2000, 1))
    frame = pd.DataFrame((frame > 0).astype(int), columns=schema.names)
    model = dp_marginals(epsilon=1.0, delta=1e-5, random_state=1)
    base_model = model.fit(frame, schema=schema).model_.base_model
    chain = model.model_.chain
    features, released = chain.pairs.features, chain.pairs.mean
    edges = [set(edge) for edge in base_model.edges]
    outside = features.products & np.array([[{i, j} not in edges for i in range(6)] for j in range(6)])

    def held(fitted):
        return features.mean_and_variance(fitted.bins(fitted.sample(20_000, rng)))[0][outside].mean()

    one, whole = held(chain), released[outside].mean()
    many = np.mean([held(redraw(model, rng).chain) for _ in range(3)])
    assert one < 0.8 * whole and 0.9 * one < many < 1.1 * whole


def test_tables_with_the_outcome_are_redrawn_with_their_own_noise(monkeypatch):
    """Noise of another scale in the tables of many columns, or tables that are not redrawn."""
    rng = np.random.default_rng(4)
    model = model_of(cohort(), SCHEMA, noise=3.0, rng=rng, kind="tan")
    std = model.model_.base_model.noise_std
    assert std == pytest.approx(3.0 * np.sqrt(2 + 3 / 3))
    seen = []

    def watched(families, counts, bins, noise_std):
        seen.append((counts, noise_std))
        return fit_factors(families, counts, bins, noise_std)

    def measured(release, records, rng):
        arrays = zip(release.query(records), release.weights, strict=True)
        return [np.full(exact.shape, release.noise_std / weight) for exact, weight in arrays]

    monkeypatch.setattr("dpsynth.synthesis.parts.base_model.fit_factors", watched)
    monkeypatch.setattr("dpsynth.marginals.statistics.TablesRelease.measure", measured)
    again = redraw(model, rng)
    ((counts, noise_std),) = seen
    assert noise_std == std and again.base_model.noise_std == std
    assert {len(family) for family in counts} == {2, 3} and len(counts) == 5
    for family, noise in counts.items():
        more = np.sqrt(3.0) if len(family) == 2 else 1.0
        np.testing.assert_allclose(noise, more * std)


def test_marginals_and_tables_come_from_one_sample():
    """Catches tables drawn apart from the marginals: fitted to these they would not be whole counts."""
    rng = np.random.default_rng(2)
    model = model_of(pairs(N, rng), PAIR, noise=None, rng=rng)
    again = redraw(model, rng)
    table = again.base_model.factors[0][2]
    np.testing.assert_allclose(table, np.round(table), atol=1e-6)
    np.testing.assert_allclose(table.sum(axis=1), N * again.encoder.marginals.probabilities[0])
    assert not np.array_equal(table, model.model_.base_model.factors[0][2])


@pytest.mark.slow
def test_redraws_vary_as_new_releases_of_new_samples_do(monkeypatch):
    """Catches a redraw that is counted, cleaned or fitted in another way than the release was."""
    labs = tuple(
        Column(name=f"l{i}", kind="continuous", lower=0, upper=10, missing=True, decimals=3) for i in range(3)
    )
    schema = Schema(columns=(Y, *labs), outcome="y", n_public=N)

    def sample(rng):
        y = rng.integers(0, 2, N)
        taken = rng.random(N) < 0.7
        values = {f"l{i}": np.where(taken, rng.normal(4 + y, 1, N).clip(0, 10), np.nan) for i in range(3)}
        return pd.DataFrame({"y": y, **values})

    def told(model):
        marginals, base_model = model.encoder.marginals, model.base_model
        lab, grid = marginals.probabilities[1], marginals.grids[1]
        firsts = grid.decode(np.arange(grid.present), np.zeros(grid.present)).to_numpy()
        # fits have cells of their own: a cell lies below a value in part
        low = np.interp((3.5, 4.5, 5.5), np.append(firsts, 10), np.append(0, lab[:-1].cumsum()))
        held = dict(zip(base_model.families, (t for _, _, t in base_model.factors), strict=True))
        missing = next(t for family, t in held.items() if len(family) == 2)
        return np.array([*low, lab[-1], marginals.missing_law[3], missing[1, -1] / N])

    monkeypatch.setattr("dpsynth.marginals.chain_fit._POOL", 2000)
    rng = np.random.default_rng(3)
    options = {"noise": 4.0, "kind": "tree"}
    truth = np.array([told(model_of(sample(rng), schema, rng=rng, **options).model_) for _ in range(120)])
    first = [model_of(sample(rng), schema, rng=rng, **options) for _ in range(14)]
    draws = np.array([[told(redraw(model, rng)) for _ in range(12)] for model in first])
    spread = np.sqrt(draws.var(axis=1, ddof=1).mean(axis=0))
    np.testing.assert_allclose(spread, truth.std(axis=0, ddof=1), rtol=0.25)


@pytest.mark.slow
def test_records_of_a_table_are_as_good_as_independent(monkeypatch):
    """Catches tables whose own sampling is evened out, from which `combine` subtracts what is not there."""
    rng = np.random.default_rng(4)
    model = model_of(pairs(N, rng), PAIR, noise=4.0, rng=rng)
    monkeypatch.setattr("dpsynth.synthesis.many_tables.redraw", lambda plan, model, rng: model)
    tables = model.sample_many(60, 2000, random_state=0)
    shares = [frame["y"].astype(float).mean() for frame in tables]
    p = model.model_.encoder.marginals.probabilities[0][1]
    own = p * (1 - p) / 2000
    assert np.var(shares) == pytest.approx(own, rel=0.5)
    even = [frame["y"].astype(float).mean() for frame in (model.sample(2000) for _ in range(20))]
    assert np.var(even) < 0.01 * own


def test_each_block_of_a_long_table_is_drawn_from_many():
    """Catches memory that grows with the table, or a long table whose blocks are evened out again."""
    rng = np.random.default_rng(5)
    model = model_of(pairs(N, rng), PAIR, noise=4.0, rng=rng)
    asked: list[int] = []

    class Watched(Chained):
        def draw(self, encoder, n, rng):
            asked.append(n)
            return super().draw(encoder, n, rng)

    watched = dataclasses.replace(model.model_, sampler=Watched(model.model_.chain))
    sizes = [len(frame) for frame in watched.blocks(1000, rng, block=8000, among=20)]
    assert sizes == [333, 333, 334] and asked == [20 * size for size in sizes]


def test_what_is_kept(fitted):
    """Catches other edges or bins than the released ones, or a sampler left at the first marginals."""
    model = fitted
    again = redraw(model, np.random.default_rng(0))
    assert (
        again.base_model.edges == model.model_.base_model.edges
        and again.base_model.noise_std == model.model_.base_model.noise_std
    )
    for before, after, p in zip(
        model.model_.base_model.binnings,
        again.base_model.binnings,
        again.encoder.marginals.probabilities,
        strict=True,
    ):
        assert np.array_equal(before.labels, after.labels)
        np.testing.assert_allclose(after.probabilities, np.bincount(after.labels, weights=p))
    for p, q, cells in zip(
        model.model_.encoder.marginals.probabilities,
        again.encoder.marginals.probabilities,
        again.base_model.cells,
        strict=True,
    ):
        assert not np.array_equal(p, q) and np.array_equal(q, cells) and p.shape == q.shape
    assert again.schema == model.model_.schema and again.encoder.layout == model.model_.encoder.layout
    shares = again.sample(4000, np.random.default_rng(1))["x"].value_counts(normalize=True)
    assert shares[1] == pytest.approx(again.encoder.marginals.probabilities[2][1], abs=1e-3)


def test_values_that_are_missing_together_are_redrawn():
    """Catches a law of missing values, or a way of counting, that is left at the first release's or lost."""
    labs = tuple(
        Column(name=f"l{i}", kind="continuous", lower=0, upper=10, decimals=3, missing=True) for i in range(3)
    )
    schema = Schema(columns=labs, n_public=200)
    rng = np.random.default_rng(8)
    taken = rng.random(200) < 0.7
    frame = pd.DataFrame({lab.name: np.where(taken, rng.uniform(0, 10, 200), np.nan) for lab in labs})
    model = model_of(frame, schema, noise=1.0, rng=rng)
    again = redraw(model, rng)
    marginals = again.encoder.marginals
    assert marginals.counting == model.model_.encoder.marginals.counting and marginals.counting.twice
    assert np.array_equal(marginals.missing_law, again.base_model.missing_law)
    assert not np.array_equal(marginals.missing_law, model.model_.base_model.missing_law)
    assert marginals.missing_law[[0, 3]].sum() > 0.9


def test_many_tables(fitted):
    """Catches identical tables, records outside the schema, a wrong default size, or a charge."""
    before = len(fitted.ledger_.entries)
    tables = fitted.sample_many(3, random_state=1)
    assert [table.shape for table in tables] == [(400, 4)] * 3 and isinstance(tables, list)
    for table in tables:
        assert sum(SCHEMA.conform(table).clipped.values()) == 0
        pd.testing.assert_frame_equal(SCHEMA.conform(table).frame, table)
    assert not tables[0].equals(tables[1]) and not tables[1].equals(tables[2])
    again = fitted.sample_many(2, random_state=1)
    pd.testing.assert_frame_equal(again[0], tables[0])
    pd.testing.assert_frame_equal(again[1], tables[1])
    assert not fitted.sample_many(2, random_state=2)[0].equals(tables[0])
    first, second = fitted.sample_many(2, 30)
    assert len(first) == 30 and not first.equals(second)
    assert not first.equals(fitted.sample_many(2, 30)[0])
    assert len(fitted.ledger_.entries) == before


@pytest.mark.slow
@pytest.mark.usefixtures("projected")
def test_conditions_and_constraints_hold_in_every_table():
    """Catches a condition that is dropped, or counts of refused candidates of the last table only."""
    schema = Schema(
        columns=SCHEMA.columns, outcome="y", n_public=400, constraints=("age < 30 implies y = 0",)
    )
    frame = cohort()
    frame.loc[frame["age"] < 30, "y"] = 0
    model = dp_marginals(epsilon=3.0, delta=1e-5, pairwise_statistics=False).fit(frame, schema=schema)
    tables = model.sample_many(2, 40, where="x = 1", random_state=0)
    for table in tables:
        assert len(table) == 40 and (table["x"] == 1).all()
        assert (table.loc[table["age"] < 30, "y"] == 0).all()
    many = model.acceptance_.candidates
    model.sample_many(4, 40, where="x = 1", random_state=0)
    assert model.acceptance_.candidates > 1.5 * many > 0
    assert "x" in model.acceptance_.conditions


def test_without_noise():
    """Catches a redraw with noise where the model has none."""
    model = dp_marginals(None, base_model="tree", pairwise_statistics=False)
    model.fit(cohort(), schema=SCHEMA)
    shares = [
        redraw(model, np.random.default_rng(k)).encoder.marginals.probabilities[3][1] * 400 for k in range(2)
    ]
    np.testing.assert_allclose(shares, np.round(shares))
    assert len(set(np.round(shares))) > 1
    assert len(model.sample_many(2)[1]) == 400


@pytest.mark.usefixtures("eager_steps")
def test_a_trained_generator_is_kept():
    """Catches weights that are lost, so that the columns of the tables are independent."""
    small = TrainingSettings(
        critic_hidden=(4,),
        generator_hidden=(4,),
        latent=2,
        activation="leaky_relu",
        bjorck_steps=0,
        replay=10,
    )
    model = DPWGANGP(2.0, 1e-5, steps=5, training=small)
    model.fit(cohort(), schema=SCHEMA)
    again = redraw(model, np.random.default_rng(0))
    assert again.sampler is model.model_.sampler and again.sampler.weights
    assert len(model.sample_many(2, 50)[0]) == 50


def test_a_saved_model_draws_the_same_tables(fitted, tmp_path):
    """Catches noise scales that are not kept in the file."""
    fitted.save(tmp_path / "m")
    again = dpsynth.load(tmp_path / "m")
    for a, b in zip(fitted.sample_many(2, random_state=3), again.sample_many(2, random_state=3), strict=True):
        pd.testing.assert_frame_equal(a, b)


def _log_odds(frame):
    table = np.bincount(2 * frame["y"].astype(int) + frame["x"].astype(int), minlength=4).reshape(2, 2)
    return np.log(table[1, 1] * table[0, 0] / (table[1, 0] * table[0, 1])), (1 / table).sum()


@pytest.mark.slow
def test_intervals_hold_the_population():
    """Catches intervals that count the noise or the sampling not at all, or twice."""
    truth = np.array([0.26, np.log(0.4 / 0.6) - np.log(0.2 / 0.8)])
    held, alone, errors, estimates = [], [], [], []
    for k in range(50):
        frame = pairs(N, np.random.default_rng([7, k]))
        model = DPMarginals(epsilon=0.5, delta=1e-5, random_state=k).fit(frame, schema=PAIR)

        def told(table):
            share = table["y"].astype(float).mean()
            odds, variance = _log_odds(table)
            return [share, odds], [share * (1 - share) / len(table), variance]

        q, u = zip(*map(told, model.sample_many(15, random_state=k)), strict=True)
        both = dpsynth.combine(q, u)
        held.append((both.lower <= truth) & (truth <= both.upper))
        errors.append(both.std_error)
        estimates.append(both.estimate)
        one, own = map(np.array, told(model.sample(N, random_state=k)))
        alone.append(np.abs(one - truth) <= 1.96 * np.sqrt(own))
    # 150 other fits held 0.94 of both; fewer than 44 of 50 would be chance once in two hundred times
    assert (np.mean(held, axis=0) >= 0.88).all()
    assert (np.mean(alone, axis=0) < 0.92).all()
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(estimates, axis=0)
    assert ((ratio > 0.75) & (ratio < 1.35)).all()
