import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from releases import release_marginals
from scipy import stats
from stored import read_back

from dpsynth.errors import ConfigError, DataError
from dpsynth.table.coded import CodedTable
from dpsynth.table.draws import draw_entry
from dpsynth.table.encoder import Encoder
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="group", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="age", kind="integer", lower=18, upper=900, scale="log", missing=True),
        Column(name="lab", kind="continuous", lower=0.1, upper=50, scale="log", cells=200, missing=True),
        Column(name="temp", kind="continuous", lower=30, upper=43, decimals=1),
        Column(name="stage", kind="ordinal", categories=(1, 2, 3, 9), missing=True),
        Column(name="flag", kind="binary", categories=(True, False), missing=True),
        Column(name="died", kind="binary", categories=(0, 1)),
    ),
    outcome="died",
)


def table(n, rng):
    def pick(*values):
        return np.array(values, dtype=object)[rng.integers(0, len(values), n)]

    frame = pd.DataFrame(
        {
            "group": pick("a", "b", "c", None),
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.integers(18, 901, n)),
            "lab": np.where(rng.random(n) < 0.2, np.nan, np.exp(rng.normal(1, 1, n)).clip(0.1, 50)),
            "temp": np.round(rng.normal(37, 1, n), 1).clip(30, 43),
            "stage": pick(1, 2, 3, 9, None),
            "flag": pick(True, False, None),
            "died": pick(0, 1),
        }
    )
    return SCHEMA.conform(frame).frame


def encoder_of(frame, *, copula=True, noise=3.0):
    """By released distributions, or by the schema's bounds."""
    if not copula:
        return Encoder(SCHEMA, None)
    released = release_marginals(
        frame, SCHEMA, noise_multiplier=noise, n=max(len(frame), 1), rng=np.random.default_rng(0)
    )
    return Encoder(SCHEMA, released)


@settings(max_examples=12, deadline=None)
@given(st.booleans(), st.integers(0, 60), st.integers(0, 2**31))
def test_round_trip(copula, n, seed):
    """A value, type or missing mark that does not survive encoding, also where noise emptied its cell."""
    rng = np.random.default_rng(seed)
    frame = table(n, rng)
    encoder = encoder_of(frame, copula=copula)
    points = encoder.transform(CodedTable(frame), rng)
    assert points.dtype == np.float32 and points.shape == (n, encoder.layout.dim)
    assert np.all((points >= 0) & (points <= 1))
    for start, stop in encoder.layout.groups:
        assert np.all(np.sort(points[:, start:stop], axis=1)[:, -1] == 1) and np.all(
            points[:, start:stop].sum(1) == 1
        )
    back = encoder.inverse_transform(points, rng)
    exact = [name for name in SCHEMA.names if name != "lab"]
    pd.testing.assert_frame_equal(back[exact], frame[exact])
    assert back["lab"].dtype == frame["lab"].dtype
    assert np.array_equal(back["lab"].isna(), frame["lab"].isna())
    grid = encoder.grids[2]
    if copula:
        assert np.array_equal(grid.encode(back["lab"]), grid.encode(frame["lab"]))
    else:
        assert np.allclose(back["lab"].dropna(), frame["lab"].dropna(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("copula", [True, False], ids=["copula", "bounds"])
def test_any_point_decodes_to_the_schema(copula):
    """A generated point that decodes to an undeclared value, step, category or type."""
    rng = np.random.default_rng(1)
    encoder = encoder_of(table(50, rng), copula=copula)
    points = rng.uniform(-0.2, 1.2, (500, encoder.layout.dim))
    decoded = encoder.inverse_transform(points, rng)
    conformed = SCHEMA.conform(decoded)
    pd.testing.assert_frame_equal(conformed.frame, decoded)
    assert not any(conformed.clipped.values())
    assert np.allclose(decoded["temp"] * 10, np.round(decoded["temp"] * 10))


def test_copula_coordinates_are_uniform():
    """A copula through a wrong distribution: without noise, coordinates must be uniform."""
    rng = np.random.default_rng(3)
    frame = table(20_000, rng)
    encoder = encoder_of(frame, noise=None)
    points = encoder.transform(CodedTable(frame), rng)
    for at in range(encoder.layout.n_numeric):
        assert stats.kstest(points[:, at], "uniform").pvalue > 1e-4
    scaled = encoder_of(frame, copula=False).transform(CodedTable(frame), rng)
    assert stats.kstest(scaled[:, 1], "uniform").pvalue < 1e-6


def test_minmax_values_by_hand():
    """A scaling by anything but the public bounds."""
    schema = Schema(columns=(Column(name="x", kind="continuous", lower=-10, upper=30),))
    points = Encoder(schema, None).transform(
        CodedTable(pd.DataFrame({"x": [-10.0, 0.0, 30.0]})), np.random.default_rng(0)
    )
    assert points.ravel().tolist() == [0.0, 0.25, 1.0]


class Middle:
    """A generator that always gives the middle, so that equal records get equal points."""

    def random(self, n):
        return np.full(n, 0.5)


@pytest.mark.parametrize("copula", [True, False], ids=["copula", "bounds"])
def test_a_record_is_encoded_by_itself(copula):
    """Bounds, ranks or scales read off the table: whoever leaves it would move all others' points."""
    rng = np.random.default_rng(12)
    frame = table(60, rng)
    encoder = encoder_of(frame, copula=copula)
    points = encoder.transform(CodedTable(frame), Middle())
    inner = frame[frame["temp"].between(36.5, 37.5) & (frame["lab"].isna() | frame["lab"].between(1, 5))]
    assert 2 < len(inner) < 40
    np.testing.assert_array_equal(encoder.transform(CodedTable(inner), Middle()), points[inner.index])


def test_minmax_goes_by_the_schemas_bounds():
    """Both bounds read off a table that reaches neither of them."""
    schema = Schema(columns=(Column(name="x", kind="continuous", lower=-10, upper=30),))
    frame = pd.DataFrame({"x": [0.0, 10.0, 20.0]})
    points = Encoder(schema, None).transform(CodedTable(frame), np.random.default_rng(0))
    assert points.ravel().tolist() == [0.25, 0.5, 0.75]


def test_soft_groups_are_drawn_in_proportion():
    """Arg-max decoding, which erases rare categories from soft generator outputs."""
    rng = np.random.default_rng(5)
    label = draw_entry(np.tile([0.1, 0.0, 0.3], (8000, 1)), rng)
    assert np.bincount(label, minlength=3) / 8000 == pytest.approx([0.25, 0, 0.75], abs=0.02)
    assert draw_entry(np.array([[-1.0, 0.0], [0.0, -2.0]]), rng).shape == (2,)


def test_group_probabilities():
    """Released probabilities in another order than the layout's groups."""
    frame = table(1000, np.random.default_rng(6))
    encoder = encoder_of(frame, noise=None)
    found = encoder.group_probabilities()
    assert [len(p) for p in found] == [b - a for a, b in encoder.layout.groups]
    means = encoder.transform(CodedTable(frame), np.random.default_rng(0)).mean(axis=0)
    for p, (start, stop) in zip(found, encoder.layout.groups, strict=True):
        assert p == pytest.approx(means[start:stop], abs=1e-5)
    bare = Encoder(SCHEMA, None).group_probabilities()
    assert bare[0] == pytest.approx(np.full(4, 0.25))


@pytest.mark.parametrize("copula", [True, False], ids=["copula", "bounds"])
def test_state_round_trip(copula):
    """A saved encoder that decodes differently."""
    rng = np.random.default_rng(7)
    encoder = encoder_of(table(200, rng), copula=copula)
    again = read_back(encoder)
    points = rng.random((50, encoder.layout.dim))
    first = encoder.inverse_transform(points, np.random.default_rng(0))
    pd.testing.assert_frame_equal(first, again.inverse_transform(points, np.random.default_rng(0)))


def test_bad_arguments():
    """Points of another layout, and marginals of other columns."""
    encoder = Encoder(SCHEMA, None)
    with pytest.raises(DataError, match=r"shape \(2, 3\)"):
        encoder.inverse_transform(np.zeros((2, 3)), np.random.default_rng(0))
    with pytest.raises(DataError, match="row 1: a coordinate"):
        encoder.inverse_transform(np.full((1, encoder.layout.dim), np.nan), np.random.default_rng(0))
    other = encoder_of(table(5, np.random.default_rng(0))).marginals
    with pytest.raises(ConfigError, match="marginals are of the columns"):
        Encoder(SCHEMA.select(["died"]), other)


def test_column_of_one_value():
    """Division by zero where a grid has one cell only."""
    schema = Schema(
        columns=(
            Column(name="x", kind="categorical", categories=("only",)),
            Column(name="y", kind="continuous", lower=0, upper=1, cells=1),
        )
    )
    frame = pd.DataFrame({"x": ["only"] * 3, "y": [0.0, 0.5, 1.0]})
    released = release_marginals(frame, schema, noise_multiplier=1.0, n=3, rng=np.random.default_rng(0))
    for marginals in (released, None):
        encoder = Encoder(schema, marginals)
        rng = np.random.default_rng(1)
        back = encoder.inverse_transform(encoder.transform(CodedTable(schema.conform(frame).frame), rng), rng)
        assert back["y"].to_numpy() == pytest.approx([0.0, 0.5, 1.0], abs=1e-6)
