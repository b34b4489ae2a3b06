"""Cells of further tables, what a model expects in them, and what is left of them after their noise."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from chains import chain_of
from hypothesis import given, settings
from hypothesis import strategies as st
from releases import fit_base_model, release_marginals

from dpsynth.errors import PrivacyError
from dpsynth.marginals.binning import Binning
from dpsynth.marginals.chain_fit import ChainFit
from dpsynth.marginals.denoising import Function, GrownTable, denoised
from dpsynth.marginals.growth import Resolution, TableCells
from dpsynth.marginals.terms import DrawnColumns, softmax
from dpsynth.privacy import records as private
from dpsynth.privacy.records import FrameRecords
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Column, Schema

N = 4000
SCHEMA = Schema(
    columns=(
        Column(name="died", kind="binary", categories=(0, 1)),
        Column(name="age", kind="integer", lower=0, upper=99, missing=True),
        Column(
            name="unit", kind="categorical", categories=tuple(f"u{k:02d}" for k in range(30)), missing=True
        ),
        Column(name="stage", kind="ordinal", categories=(1, 2, 3, 4)),
    ),
    outcome="died",
    n_public=N,
)


def cohort(n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    law = 1.0 / np.arange(1, 31) ** 1.5
    unit = rng.choice(30, n, p=law / law.sum())
    age = np.where(rng.random(n) < 0.1, np.nan, (20 + 2 * unit + rng.integers(0, 20, n)).clip(0, 99))
    return SCHEMA.conform(
        pd.DataFrame(
            {
                "died": rng.integers(0, 2, n),
                "age": age,
                "unit": np.array([f"u{k:02d}" for k in range(30)])[unit],
                "stage": rng.integers(1, 5, n),
            }
        )
    ).frame


def fitted() -> ChainFit:
    frame, rng = cohort(), np.random.default_rng(1)
    marginals = release_marginals(frame, SCHEMA, n=N, noise_multiplier=2.0, rng=rng)
    network = fit_base_model(
        frame, SCHEMA, marginals, kind="tan", noise_multiplier=2.0, selection_epsilon=1.0, rng=rng
    )
    return ChainFit(network, marginals, None, rng, SCHEMA)


@pytest.fixture(scope="module")
def fit() -> ChainFit:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpsynth.marginals.chain_fit._POOL", 500)
        return fitted()


@settings(max_examples=30, deadline=None)
@given(std=st.floats(0.0, 3000.0))
def test_cells_part_the_states_and_are_not_too_many(fit: ChainFit, std: float) -> None:
    """States outside every cell, ranges that are none, or cells that noise fills with its own counts."""
    resolution = Resolution(fit.grids, fit.chain.binnings, fit.laws, N, std)
    for size in (2, 3):
        for columns in itertools.permutations(range(4), size):
            cells = resolution.cells(columns)
            if cells is None:  # all categories of a column are too rare
                assert std > 30.0
                continue
            assert cells.columns == columns and min(cells.shape) > 1
            assert np.prod(cells.shape) <= (200_000 if size == 2 else 20_000)
            for j, labels in zip(columns, cells.labels, strict=True):
                assert len(labels) == len(fit.laws[j]) and set(labels) == set(range(labels.max() + 1))
                if fit.grids[j].ordered:
                    assert (np.diff(labels) >= 0).all()
    cells = resolution.cells((1, 3))
    assert cells is not None and (cells.shape[0] > 24 if std < 1.0 else cells.shape[0] < 5 or std < 300.0)


def test_pairs_keep_what_noise_lets_stand(fit: ChainFit) -> None:
    """Categories that share a cell though they hold many records, or have one of their own under noise."""
    for std in (1.0, 10.0, 100.0):
        cells = Resolution(fit.grids, fit.chain.binnings, fit.laws, N, std).cells((2, 3))
        assert cells is not None
        alone = np.bincount(cells.labels[0])[cells.labels[0]] == 1
        clear = fit.laws[2] * N >= 2.0 * std
        assert alone[clear].all() and (clear.sum() > len(clear) - 2 or not alone[~clear].any())


def test_what_is_expected_is_the_mean_of_the_conditional_distributions(fit: ChainFit) -> None:
    """Expectations of another order of axes, of draws, or of a column's states instead of its cells."""
    column = fit.chain.conditionals[-1]
    logits = column.logits(fit.rows).astype(np.float64)
    shares = np.exp(logits) / np.exp(logits).sum(axis=0)
    resolution = Resolution(fit.grids, fit.chain.binnings, fit.laws, N, 20.0)
    before = [one.column for one in fit.chain.conditionals[:-1]]
    cells = resolution.cells((before[1], before[0], column.column))
    assert cells is not None
    (found,) = fit.expected(softmax(column.logits(fit.rows)), [cells], resolution)
    naive = np.zeros(cells.shape)
    for record in range(fit.pool):
        a, b = (
            int(labels[fit.rows.states[i, record]])
            for i, labels in zip(cells.columns[:2], cells.labels, strict=False)
        )
        for state, share in enumerate(shares[:, record]):
            naive[a, b, cells.labels[2][state]] += share * N / fit.pool
    np.testing.assert_allclose(found.expected, naive, rtol=1e-3, atol=1e-3)
    assert found.draws == fit.pool / N and [axis.size for axis in found.axes] == list(cells.shape)


def test_axes_of_records_are_the_cells_of_states(fit: ChainFit) -> None:
    """Records that are counted in other cells than the model expects them in."""
    frame = cohort(60)
    resolution = Resolution(fit.grids, fit.chain.binnings, fit.laws, N, 20.0)
    cells = resolution.cells((1, 2))
    assert cells is not None
    records = FrameRecords(frame)
    with records.opened():
        (counts,) = records.counts([resolution.axes(cells)])
    naive = np.zeros(cells.shape, int)
    table = records._table
    for record in range(60):
        place = []
        for j, labels in zip(cells.columns, cells.labels, strict=True):
            cell = fit.grids[j].cells(table.codes(SCHEMA.columns[j]))[record]
            place.append(labels[fit.chain.binnings[j].labels[cell]])
        naive[tuple(place)] += 1
    np.testing.assert_array_equal(counts, naive)


@pytest.mark.parametrize("cells", [1, 50, 10**6])
def test_tables_counted_some_at_a_time_are_the_same(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that are lost, or counted twice, where memory has no room for all."""
    records, rng = FrameRecords(cohort(60)), np.random.default_rng(0)
    marginals = release_marginals(cohort(60), SCHEMA, n=60, noise_multiplier=None, rng=rng)
    axes = [private.GridAxis(grid) for grid in marginals.grids]
    tables = [(a, b) for a, b in itertools.combinations(axes, 2)]
    monkeypatch.setattr(private, "_CELLS", cells)
    counts, batches = records.counts, []

    def watched(some: Sequence[private.Axes]) -> list[np.ndarray]:
        batches.append([np.prod([axis.size for axis in one]) for one in some])
        return counts(some)

    monkeypatch.setattr(records, "counts", watched)
    with records.opened():
        for one, other in zip(records.each_count(iter(tables)), counts(tables), strict=True):
            np.testing.assert_array_equal(one, other)
        assert list(records.each_count([])) == []
    # no batch has more cells, unless it is one table, and two that follow each other have more together
    assert all(sum(sizes) <= cells or len(sizes) == 1 for sizes in batches)
    assert all(sum(one) + other[0] > cells for one, other in itertools.pairwise(batches))


def test_tables_are_kept_for_a_later_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that are read again, kept beyond the room for them, or shown when no reading is paid for."""
    records = FrameRecords(cohort(60))
    axes = [private.GridAxis(Grid.from_column(column)) for column in SCHEMA.columns]
    tables = list(itertools.combinations(axes, 2))
    with records.opened():
        expected = records.counts(tables)
        records._room = sum(counts.size for counts in expected[:3])
        assert len(list(records.each_count(tables[:4], keep=True))) == 4 and len(records._kept) == 3
        counted: list[int] = []
        counts = records._counts
        monkeypatch.setattr(records, "_counts", lambda asked: counted.append(len(asked)) or counts(asked))
        for one, other in zip(records.each_count(tables), expected, strict=True):
            np.testing.assert_array_equal(one, other)
        assert counted == [len(tables) - 3]
    with records.opened():
        begun = records.each_count(tables[:2])
        with pytest.raises(ValueError):
            next(begun)[:] = 0
    for late in (begun, records.each_count(tables[:1])):
        with pytest.raises(PrivacyError):
            next(late)


@pytest.mark.parametrize("strength", [0.0, 0.1, 0.6])
def test_a_table_without_its_noise_is_nearer_to_the_truth(strength: float) -> None:
    """A rule that believes noise, or that loses what stands out of it: against the table and the model."""
    rng, std, errors = np.random.default_rng(0), 12.0, []
    for _ in range(20):
        expected = 5000 * rng.dirichlet(np.full(60, 2.0)).reshape(10, 6)
        truth = expected * np.exp(strength * rng.normal(size=expected.shape))
        sample = rng.poisson(truth)
        noisy = sample + rng.normal(0, std, expected.shape)
        found, _ = denoised(noisy, expected, std)
        errors.append([((one - truth) ** 2).mean() for one in (found, noisy, expected)])
    found, raw, model = np.mean(errors, axis=0)
    assert found < (0.3 if not strength else 0.95) * raw and (not strength or found < model)


def test_a_rare_row_is_believed_where_the_others_say_nothing() -> None:
    """One variance for all rows: what a rare category has by itself is then taken for noise."""
    rng = np.random.default_rng(3)
    expected = np.full((40, 24), 20.0)
    expected[-1] = 6.0
    truth = expected.copy()
    truth[-1, :12], truth[-1, 12:] = 0.0, 12.0
    noisy = rng.poisson(truth) + rng.normal(0, 1.5, truth.shape)
    found, _ = denoised(noisy, expected, 1.5)
    assert found[-1, :12].sum() < 0.2 * expected[-1, :12].sum()
    assert np.abs(found[:-1] - expected[:-1]).mean() < 1.5


def test_more_records_take_no_table_away() -> None:
    """Tables of three numbers that are too fine for their limit, and gone, where there are many records."""
    columns = [Column(name=name, kind="integer", lower=0, upper=63) for name in "abc"]
    grids = [Grid.from_column(column) for column in columns]
    law = np.full(64, 1 / 64)
    states = [Binning.from_labels(np.arange(64), law) for _ in columns]
    sizes = []
    for n in (1e4, 1e5, 1e6, 1e8):
        cells = Resolution(grids, states, [law] * 3, n, 10.0).cells((0, 1, 2))
        assert cells is not None and np.prod(cells.shape) <= 20_000
        sizes.append(np.prod(cells.shape))
    assert sizes == sorted(sizes) and sizes[-1] > 5000


def test_a_rare_flag_is_no_function() -> None:
    """A flag that few records have, and that depends on nothing, left out where noise hides it."""
    rng = np.random.default_rng(0)
    expected = np.outer(np.full(20, 1000.0), [0.996, 0.004])
    for _ in range(50):
        assert Function.of(expected + rng.normal(0, 20.0, expected.shape), expected, 20.0) is None


def codes_in_chapters(broken: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Counts of 60 codes by 10 chapters, some of which are any, and what independence expects."""
    code = rng.integers(0, 60, 20_000)
    chapter = np.where(rng.random(20_000) < broken, rng.integers(0, 10, 20_000), code % 10)
    table = np.zeros((60, 10))
    np.add.at(table, (code, chapter), 1)
    return table, np.outer(table.sum(axis=1), table.sum(axis=0)) / 20_000


def test_a_function_is_found_and_what_is_none_is_left() -> None:
    """Codes of several chapters, or a column that mostly follows another and is made to do so always."""
    rng = np.random.default_rng(0)
    table, expected = codes_in_chapters(0.0, rng)
    noisy = table + rng.normal(0, 5.0, table.shape)
    for one, before, kept in ((noisy, expected, table > 0), (noisy.T, expected.T, table.T > 0)):
        found = Function.of(one, before, 5.0)
        assert found is not None and (found.cells == kept).all()
    # where noise hides too much, nothing is left out
    assert Function.of(noisy + rng.normal(0, 60.0, table.shape), expected, 60.0) is None
    table, expected = codes_in_chapters(0.15, rng)
    assert Function.of(table + rng.normal(0, 5.0, table.shape), expected, 5.0) is None
    # of a code that stands in two chapters, both are possible
    table, expected = codes_in_chapters(0.0, rng)
    table[7, 3] = 200.0
    found = Function.of(table + rng.normal(0, 5.0, table.shape), expected, 5.0)
    assert found is not None and found.cells[7, 3] and found.cells[7, 7] and found.cells.sum() == 61


@pytest.mark.parametrize("broken", [0.0, 0.005, 0.02])
def test_exceptions_from_a_function_are_as_many_as_the_counts_prove(broken: float) -> None:
    """Exceptions that are erased because noise hides each of them, or noise that is taken for some."""
    rng, shares, real = np.random.default_rng(0), [], []
    for _ in range(40):
        table, expected = codes_in_chapters(broken, rng)
        found = Function.of(table + rng.normal(0, 5.0, table.shape), expected, 5.0)
        assert found is not None
        shares.append(found.beside)
        real.append(1.0 - table.max(axis=1).sum() / 20_000)
    # the sum of 540 cells of noise is 0.6 % of the records
    assert np.median(shares) == pytest.approx(np.median(real), abs=0.002)
    if not broken:
        assert np.mean(shares) < 0.005


@pytest.mark.parametrize("exceptions", [0.0, 0.01])
def test_a_term_makes_exceptions_as_frequent_as_was_counted(exceptions: float) -> None:
    """Noise of other tables that stays where nothing can be, and exceptions that no record has."""
    rng = np.random.default_rng(0)
    table, expected = codes_in_chapters(0.0, rng)
    noisy = (1.0 - exceptions) * table + exceptions * expected
    grown = GrownTable.of(TableCells((0, 1), (np.arange(60), np.arange(10))), noisy, expected, 5.0, 10_000)
    assert grown is not None and grown.function is not None
    kept = grown.law[np.arange(60), np.arange(60) % 10]
    assert 1.0 - kept.mean() == pytest.approx(0.9 * exceptions, abs=1e-3)
    rows = DrawnColumns.empty(2, 6000)
    rows.states[0] = rng.integers(0, 60, 6000)
    shares = np.full((10, 6000), 0.05 / 9, np.float32)
    shares[rows.states[0] % 10, np.arange(6000)] = 0.95
    term = grown.exceptions(rows, shares)
    shares = softmax(np.log(shares) + term.logits(rows))
    found = 1.0 - shares[rows.states[0] % 10, np.arange(6000)].mean(dtype=np.float64)
    assert found == pytest.approx(0.9 * exceptions, abs=1e-4)


def test_a_grown_table_is_a_distribution() -> None:
    """Negative or missing shares, or effects that do not lead from the model to the table."""
    rng = np.random.default_rng(0)
    cells = TableCells((0, 1, 2), tuple(np.arange(size) for size in (3, 4, 5)))
    expected = 3000 * rng.dirichlet(np.ones(60)).reshape(3, 4, 5)
    noisy = 3000 * rng.dirichlet(np.ones(60)).reshape(3, 4, 5) + rng.normal(0, 6.0, (3, 4, 5))
    table = GrownTable.of(cells, noisy, expected, 6.0, 10_000)
    assert (
        table is not None and table.law.shape == (12, 5) and (table.law > 0).all() and (table.ridge > 0).all()
    )
    np.testing.assert_allclose(table.law.sum(axis=1), 1.0)
    before = expected.reshape(12, 5) / expected.reshape(12, 5).sum(axis=1, keepdims=True)
    moved = before * np.exp(table.start)
    np.testing.assert_allclose(moved / moved.sum(axis=1, keepdims=True), table.law, rtol=2e-2, atol=1e-4)
    assert GrownTable.of(cells, expected.copy(), expected, 6.0, 10_000) is None


def test_rare_categories_that_stand_out_have_bins_of_their_own() -> None:
    """Categories that share one bin however small the noise is."""
    frame, rng = cohort(), np.random.default_rng(0)
    marginals = release_marginals(frame, SCHEMA, n=N, noise_multiplier=None, rng=rng)
    sizes = [
        chain_of(frame, SCHEMA, marginals, rng, noise=noise).network.binnings[2].size for noise in (0.5, 30.0)
    ]
    assert sizes[0] > 20 > sizes[1]
