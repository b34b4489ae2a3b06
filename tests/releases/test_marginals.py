import numpy as np
import pandas as pd
import pytest
from releases import release_count, release_marginals

from dpsynth.errors import ConfigError
from dpsynth.table.marginals import Marginals, default_cells, default_values
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=99),
        Column(name="lab", kind="continuous", lower=0.1, upper=50, scale="log", cells=200, missing=True),
        Column(name="group", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="died", kind="binary", categories=(0, 1)),
    ),
    outcome="died",
)


def table(n, rng):
    lab = np.exp(rng.normal(1, 1, n)).clip(0.1, 50)
    group = np.array(["a", "b", "c", None], dtype=object)[rng.integers(0, 4, n)]
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 100, n),
            "lab": np.where(rng.random(n) < 0.2, np.nan, lab),
            "group": group,
            "died": rng.integers(0, 2, n),
        }
    )
    return SCHEMA.conform(frame).frame


@pytest.mark.parametrize("method", ["histogram", "hierarchical"])
def test_exact_release_is_the_empirical_distribution(method):
    """Post-processing that changes counts which carry no noise."""
    frame = table(500, np.random.default_rng(2))
    released = release_marginals(
        frame, SCHEMA, noise_multiplier=None, n=500, rng=np.random.default_rng(0), method=method
    )
    for grid, p in zip(released.grids, released.probabilities, strict=True):
        counted = np.bincount(grid.encode(frame[grid.column.name]), minlength=grid.size) / 500
        assert np.allclose(p, counted)


@pytest.mark.parametrize("method", ["histogram", "hierarchical"])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_tiny_tables_under_noise(method, n):
    """Negative, unnormalised or NaN probabilities where noise exceeds the counts."""
    frame = table(n, np.random.default_rng(3))
    released = release_marginals(
        frame, SCHEMA, noise_multiplier=5.0, n=max(n, 1), rng=np.random.default_rng(0), method=method
    )
    for p in released.probabilities:
        assert np.all(p >= 0) and p.sum() == pytest.approx(1.0)


def test_hierarchical_answers_ranges_better_on_1024_cells():
    """A tree that costs its levels without paying back."""
    schema = Schema(columns=(Column(name="x", kind="continuous", lower=0, upper=1, cells=1024),))
    rng = np.random.default_rng(4)
    frame = schema.conform(pd.DataFrame({"x": rng.beta(2, 3, 20_000)})).frame
    errors = {"histogram": [], "hierarchical": []}
    for method, error in errors.items():
        exact = release_marginals(frame, schema, noise_multiplier=None, n=20_000, rng=rng, method=method)
        for _ in range(10):
            noisy = release_marginals(frame, schema, noise_multiplier=20.0, n=20_000, rng=rng, method=method)
            gap = np.cumsum(noisy.probabilities[0]) - np.cumsum(exact.probabilities[0])
            error.append(np.abs(gap).mean())
    assert np.mean(errors["hierarchical"]) < 0.7 * np.mean(errors["histogram"])


def test_length_of_the_frame_is_not_used():
    """The private number of records leaking in through the scaling: only n may set it."""
    frame = table(100, np.random.default_rng(5))
    one = release_marginals(frame, SCHEMA, noise_multiplier=2.0, n=70, rng=np.random.default_rng(6))
    assert one.n == 70
    other = release_marginals(frame, SCHEMA, noise_multiplier=2.0, n=170, rng=np.random.default_rng(6))
    assert not np.allclose(one.probabilities[3], other.probabilities[3])


def test_a_count_is_at_least_one():
    """A private count below 1, by which everything is divided."""
    frame = pd.DataFrame({"a": np.zeros(1000)})
    assert release_count(frame.iloc[:0], 0.001, np.random.default_rng(7)) == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise_multiplier": 0.0}, "noise_multiplier is 0"),
        ({"noise_multiplier": np.nan}, "is nan"),
        ({"n": 0}, "n is 0"),
        ({"method": "tree"}, "method is 'tree'"),
    ],
)
def test_bad_arguments(change, message):
    """Noise of scale zero or NaN, which would pass as private."""
    arguments = {"noise_multiplier": 1.0, "n": 10, "rng": np.random.default_rng(0)} | change
    with pytest.raises(ConfigError, match=message):
        release_marginals(table(10, np.random.default_rng(0)), SCHEMA, **arguments)


def test_state_round_trip():
    """A saved model whose marginals come back different, or on another schema's grid."""
    frame = table(50, np.random.default_rng(8))
    released = release_marginals(frame, SCHEMA, noise_multiplier=1.0, n=50, rng=np.random.default_rng(0))
    meta, arrays = released.to_state()
    back = Marginals.from_state(SCHEMA, meta, arrays)
    assert (back.n, back.noise_multiplier) == (50, 1.0)
    assert all(np.array_equal(a, b) for a, b in zip(back.probabilities, released.probabilities, strict=True))
    with pytest.raises(ConfigError, match="saved cells"):
        Marginals.from_state(SCHEMA.select(["died", "age"]), meta, arrays)


def test_grids_are_the_schemas(monkeypatch):
    """Catches cells between the smallest and the largest value of the table, which one record moves."""
    column = Column(name="x", kind="continuous", lower=-4, upper=60)
    schema = Schema(columns=(column, Column(name="k", kind="integer", lower=0, upper=500)))
    rng = np.random.default_rng(9)
    frame = schema.conform(
        pd.DataFrame({"x": rng.uniform(20, 30, 80), "k": rng.integers(100, 200, 80)})
    ).frame
    released = release_marginals(frame, schema, noise_multiplier=1.0, n=80, rng=rng)
    for grid, column in zip(released.grids, schema.columns, strict=True):
        lowest, highest = grid.decode([0, grid.present - 1], [0.0, np.nextafter(1, 0)])
        assert lowest == column.lower and highest == pytest.approx(column.upper, abs=1e-6)


def test_cells_follow_a_public_rule_and_are_kept():
    """Catches cells chosen by the data: two tables of one schema, n and noise must share their grids."""
    column = Column(name="x", kind="continuous", lower=0, upper=1)
    count = Column(name="k", kind="integer", lower=0, upper=17)
    schema = Schema(columns=(column, count, *SCHEMA.columns[1:]))
    assert default_cells(285, 17.0) < default_cells(4000, 17.0) <= default_cells(4000, 0.0)
    sizes = set()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        frame = table(30 + 40 * seed, rng).assign(age=rng.random(30 + 40 * seed)).rename(columns={"age": "x"})
        frame["k"] = rng.integers(0, 18, len(frame))
        released = release_marginals(
            schema.conform(frame).frame, schema, noise_multiplier=5.0, n=100, rng=np.random.default_rng(0)
        )
        again = Marginals.from_state(schema, *released.to_state())
        assert [g.size for g in again.grids] == [g.size for g in released.grids]
        sizes.add((released.grids[0].size, released.grids[1].size))
    noise = 5.0 * np.sqrt(len(schema))
    assert sizes == {(default_cells(100, noise), 18)}
    assert default_values(30, noise) < 18 <= default_values(100, noise)
