"""A chain of conditionals: the laws that its terms are fitted to, against what others compute."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from chains import chain_of
from hypothesis import given, settings
from hypothesis import strategies as st
from releases import release_marginals
from sklearn.linear_model import LogisticRegression
from stored import read_back

from dpsynth.marginals.chain import Conditional
from dpsynth.marginals.coupling import Coupling, score_ends
from dpsynth.marginals.drawing import ProductSums
from dpsynth.marginals.terms import (
    DrawnColumns,
    Products,
    ProductsFitting,
    TableFitting,
    TableTerm,
    fit_terms,
    softmax,
)
from dpsynth.table.schema import Column, Schema


def rows_of(*columns: np.ndarray) -> DrawnColumns:
    rows = DrawnColumns.empty(len(columns) + 1, len(columns[0]))
    rows.states[: len(columns)] = columns
    return rows


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_table_alone_is_met_exactly(seed):
    """Catches cells of the parents or the child that are exchanged, and a base that moves the table."""
    rng = np.random.default_rng(seed)
    rows = rows_of(rng.integers(0, 4, 5000), rng.integers(0, 3, 5000))
    labels, child = (np.array([0, 1, 1, 0]), np.arange(3)), np.array([0, 1, 2, 1])
    law = rng.dirichlet(np.ones(3), 6)
    weight = np.bincount(labels[0][rows.states[0]] * 3 + rows.states[1], minlength=6) / 5000
    cells = weight @ law
    p = cells[child] * np.array([1.0, 0.3, 1.0, 0.7])  # two states of one cell keep their ratio
    table = TableFitting(TableTerm((0, 1), labels, child, np.zeros((6, 3), np.float32)), law, rows)
    base = fit_terms(p, [], [table], rows, 5)
    shares = softmax(Conditional(2, base.astype(np.float32), (table.term(),)).logits(rows))
    for cell in range(6):
        mine = labels[0][rows.states[0]] * 3 + rows.states[1] == cell
        found = shares[:, mine].mean(axis=1)
        np.testing.assert_allclose(np.bincount(child, found), law[cell], atol=2e-3)
        assert found[1] / found[3] == pytest.approx(3 / 7, rel=1e-3)


def test_products_without_noise_are_a_logistic_regression():
    """Catches Newton's steps towards other means: coefficients of scikit-learn's, of the same records."""
    rng = np.random.default_rng(0)
    n = 40_000
    states = rng.integers(0, 5, (3, n))
    numbers = np.linspace(-1.5, 1.5, 5).astype(np.float32)[:, None]
    x = numbers[states, 0]
    y = rng.random(n) < 1 / (1 + np.exp(0.5 - x[0] + 0.6 * x[1] - 0.3 * x[2]))
    rows = rows_of(*states)
    child = np.array([[-1.0], [1.0]], np.float32)
    empty = np.zeros((3, 1), np.float32)
    products = Products((0, 1, 2), (numbers,) * 3, None, np.zeros(0, np.float32), child, empty)
    goal = (x @ np.where(y, 1.0, -1.0) / n)[:, None]
    fitting = ProductsFitting(products, goal, np.zeros((3, 1)), rows)
    p = np.array([1 - y.mean(), y.mean()])
    fit_terms(p, [], [fitting], rows, 8)
    theirs = LogisticRegression(C=1e9).fit(x.T, y).coef_[0]
    np.testing.assert_allclose(2 * fitting.effects[:, 0], theirs, atol=5e-3)


def test_products_times_the_outcome_are_its_interaction():
    """Catches an outcome whose number multiplies nothing, or the wrong side."""
    rng = np.random.default_rng(0)
    rows = rows_of(rng.integers(0, 2, 4000), rng.integers(0, 3, 4000))
    numbers, times = np.array([[-1.0], [0.0], [1.0]], np.float32), np.array([-1.0, 2.0], np.float32)
    effects = np.array([[0.7]], np.float32)
    products = Products((1,), (numbers,), 0, times, np.array([[0.0], [1.0]], np.float32), effects)
    expected = 0.7 * times[rows.states[0]] * numbers[rows.states[1], 0]
    np.testing.assert_allclose(products.logits(rows)[1], expected, atol=1e-6)
    again = read_back(products)
    np.testing.assert_array_equal(again.logits(rows), products.logits(rows))


@pytest.mark.parametrize("outcomes", [(None,), (0,), (None, 0), (0, None)])
def test_sums_of_products_are_those_of_their_terms(outcomes):
    """Catches numbers of other columns or states, and an outcome that multiplies both terms or none."""
    rng = np.random.default_rng(0)
    rows = rows_of(*rng.integers(0, 4, (3, 500)))
    numbers = [rng.standard_normal((4, k)).astype(np.float32) for k in (1, 2, 3)]

    def term(outcome: int | None, width: int) -> Products:
        columns = (2, 1, 0) if outcome is None else (1, 2)
        size = sum(numbers[column].shape[1] for column in columns)
        effects = rng.standard_normal((size, width)).astype(np.float32)
        child = rng.standard_normal((5, width)).astype(np.float32)
        own = tuple(numbers[column] for column in columns)
        return Products(columns, own, outcome, np.arange(4, dtype=np.float32), child, effects)

    terms, first = [term(outcome, k + 1) for k, outcome in enumerate(outcomes)], np.array([4, 0, 2])
    expected = sum(each.logits(rows, first) for each in terms)
    np.testing.assert_allclose(ProductSums.of(terms, first).logits(rows), expected, rtol=1e-4, atol=1e-4)


def test_noise_is_shrunk():
    """Catches a ridge that is not used: products that are noise alone keep an effect of nearly nothing."""
    rng = np.random.default_rng(0)
    rows = rows_of(rng.integers(0, 2, 4000))
    number = np.array([[-1.0], [1.0]], np.float32)
    effects = []
    for ridge in (0.0, 10.0):
        products = Products(
            (0,), (number,), None, np.zeros(0, np.float32), number, np.zeros((1, 1), np.float32)
        )
        fitting = ProductsFitting(products, np.array([[0.1]]), np.array([[ridge]]), rows)
        fit_terms(np.array([0.5, 0.5]), [], [fitting], rows, 8)
        effects.append(float(fitting.effects[0, 0]))
    assert effects[0] > 0.09 and effects[1] < 0.012


def test_draws_are_those_of_the_probabilities_and_even():
    """Catches a state off by one, and draws that are less even than they could be."""
    rng = np.random.default_rng(0)
    rows = rows_of(rng.integers(0, 2, 3001))
    law = np.array([[0.5, 0.3, 0.2], [0.1, 0.0, 0.9]])
    table = TableTerm((0,), (np.arange(2),), np.arange(3), np.log(np.maximum(law, 1e-12)).astype(np.float32))
    drawn = Conditional(1, np.zeros(3, np.float32), (table,)).draw(rows, rng)
    for k in range(2):
        mine = drawn[rows.states[0] == k]
        assert np.abs(np.bincount(mine, minlength=3) - len(mine) * law[k]).max() <= 1.01


@pytest.mark.parametrize("coupled_with", [(), (1,)])
def test_the_form_that_is_drawn_from_has_the_same_law(coupled_with):
    """Catches sums of other tables, states of another group, and a coupling that is lost within a group."""
    rng = np.random.default_rng(3)
    n, p = 60_000, np.array([0.3, 0.2, 0.2, 0.1, 0.15, 0.05])
    rows = rows_of(*np.broadcast_to(rng.integers(0, 2, (2, 6))[:, :, None], (2, 6, n // 6)).reshape(2, -1))
    rows.scores[:] = np.repeat(rng.normal(size=6), n // 6)
    children = np.array([0, 0, 1, 1, 1, 2]), np.array([1, 1, 0, 0, 0, 0])
    tables = [
        TableTerm((0,), (np.arange(2),), children[0], rng.normal(size=(2, 3)).astype(np.float32)),
        TableTerm((1, 0), (np.arange(2),) * 2, children[1], rng.normal(size=(4, 2)).astype(np.float32)),
    ]
    terms = [*tables, *(Coupling((k,), np.float32([0.8]), 0.36, score_ends(p[:5]), 6) for k in coupled_with)]
    column = Conditional(2, np.log(p).astype(np.float32), tuple(terms))
    assert len(column.drawing.tables) == 1 and len(column.drawing.base) == 3  # groups of states
    shares, drawn = softmax(column.logits(rows)), column.draw(rows, rng)
    for part in range(0, n, n // 6):
        found = np.bincount(drawn[part : part + n // 6], minlength=6) / (n // 6)
        np.testing.assert_allclose(found, shares[:, part], atol=0.015)


N = 6000
COLUMNS = (
    Column(name="died", kind="binary", categories=("no", "yes")),
    Column(name="sex", kind="binary", categories=("F", "M")),
    *(Column(name=f"lab{j}", kind="continuous", lower=-5, upper=5, decimals=2) for j in range(3)),
    Column(name="tight", kind="continuous", lower=-5, upper=5, decimals=3),
)
SCHEMA = Schema(columns=COLUMNS, outcome="died", n_public=N)


def cohort(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    common = rng.normal(size=N)
    made = {f"lab{j}": (0.7 * common + 0.7 * rng.normal(size=N)).clip(-5, 5) for j in range(3)}
    made["tight"] = (made["lab0"] + 0.15 * rng.normal(size=N)).clip(-5, 5)
    made["died"] = np.where(common + rng.normal(size=N) > 0.8, "yes", "no")
    made["sex"] = np.where(rng.random(N) < 0.5, "F", "M")
    return SCHEMA.conform(pd.DataFrame(made)[list(SCHEMA.names)]).frame


@pytest.fixture(scope="module")
def released():
    return release_marginals(cohort(), SCHEMA, noise_multiplier=1.0, n=N, rng=np.random.default_rng(1))


def test_a_tight_pair_stays_tight(released):
    """Catches values that are independent within bins: their spread would be that of a bin."""
    rng = np.random.default_rng(2)
    chain = chain_of(cohort(), SCHEMA, released, rng, noise=2.0)
    cells = chain.cells_of(chain.sample(N, rng), rng)
    values = {j: released.grids[j].decode(cells[:, j], rng.random(N)) for j in (2, 5)}
    spread = float(np.std(np.asarray(values[5], float) - np.asarray(values[2], float)))
    within = np.quantile(abs(np.asarray(values[5], float) - np.asarray(values[2], float)), 0.5)
    real = cohort()
    assert within < 1.3 * np.quantile(abs(real["tight"] - real["lab0"]), 0.5)
    assert spread < 2.5 * (real["tight"] - real["lab0"]).std()


@pytest.mark.parametrize("pairs", [None, 2.0])
def test_tables_hold_beside_couplings_and_products(released, pairs):
    """Catches a coupling or products that move the tables they stand beside."""
    rng = np.random.default_rng(3)
    chain = chain_of(cohort(), SCHEMA, released, rng, noise=1.0, pairs=pairs)
    bins = chain.bins(chain.sample(40_000, rng))
    for parents, child, table in chain.network.factors:
        family = (*parents, child)
        cell = np.ravel_multi_index(tuple(bins[:, j] for j in family), table.shape)
        found = np.bincount(cell, minlength=table.size) / len(bins)
        noise = np.sqrt(table.size / len(bins))  # of draws, roughly
        assert np.abs(found - table.ravel() / table.sum()).sum() < 1.1 * noise, family


def test_products_bring_pairs_that_no_table_holds(released):
    """Catches pairwise statistics that are fitted to nothing: of four numbers some meet in no table."""
    rng = np.random.default_rng(4)

    def error(pairs):
        chain = chain_of(cohort(), SCHEMA, released, rng, noise=1.0, pairs=pairs)
        found = np.corrcoef(chain.cells_of(chain.sample(20_000, rng), rng)[:, 2:].T, rowvar=True)
        real = np.stack([grid.encode(cohort()[grid.column.name]) for grid in released.grids[2:]])
        return np.abs(found - np.corrcoef(real)).max()

    assert error(2.0) < 0.07 < error(None)


def test_a_saved_chain_draws_the_same_records(released):
    """Catches a term that a file forgets, and tables for drawing that are sent to every worker."""
    chain = chain_of(cohort(), SCHEMA, released, np.random.default_rng(5), pairs=2.0)
    again = read_back(chain)
    assert len(pickle.dumps(chain)) < 1.1 * len(pickle.dumps(again))  # it has drawn, for its fit
    kinds = {type(term).__name__ for column in chain.conditionals for term in column.terms}
    assert kinds == {"TableTerm", "Products", "Coupling"}
    for n in (0, 1, 5000):
        one, other = (each.sample(n, np.random.default_rng(0)) for each in (chain, again))
        assert one.shape == (n, 6)
        np.testing.assert_array_equal(one, other)


def test_states_are_cut_where_bins_are(released):
    """Catches a state that lies in two bins of a table."""
    chain = chain_of(cohort(), SCHEMA, released, np.random.default_rng(6))
    for states, bins, coarse in zip(chain.binnings, chain.network.binnings, chain.coarse, strict=True):
        np.testing.assert_array_equal(coarse[states.labels], bins.labels)
        assert states.size <= 64 + bins.size
    assert any(
        states.size > 2 * bins.size
        for states, bins in zip(chain.binnings, chain.network.binnings, strict=True)
    )
    assert list(itertools.chain(*(column.terms for column in chain.conditionals[:1]))) == []
