"""Associations against scipy, pandas and naive formulas."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats.contingency import association as scipy_association

from dpsynth.evaluation.associations import (
    Association,
    PairMean,
    _correlations,
    association,
    association_blocks,
    association_error,
    association_findings,
    association_lost,
    correlation_errors,
    cramers_v,
    pairs_of,
)
from dpsynth.evaluation.tables import distance_features
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="x", kind="continuous", lower=-9, upper=9, missing=True),
        Column(name="site", kind="categorical", categories=("A", "B", "C"), missing=True),
        Column(name="n", kind="integer", lower=0, upper=9, missing=True),
        Column(name="sex", kind="binary", categories=(0, 1)),
        Column(name="grade", kind="ordinal", categories=("lo", "mid", "hi")),
    )
)


def table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).clip(-9, 9)
    site = rng.choice(np.array(["A", "B", "C", None], dtype=object), n)
    count = np.clip(np.round(3 + 2 * x), 0, 9)
    frame = pd.DataFrame({"x": x, "site": site, "n": count})
    frame.loc[rng.random(n) < 0.2, "x"] = np.nan
    frame.loc[rng.random(n) < 0.1, "n"] = np.nan
    frame["sex"] = (rng.random(n) < np.where(site == "A", 0.8, 0.3)).astype(int)
    frame["grade"] = rng.choice(["lo", "mid", "hi"], n)
    return SCHEMA.conform(frame).frame


def whole(score: Callable[..., PairMean | None], real: Association, synthetic: Association) -> float:
    """A score of all pairs."""
    found = score([real], [synthetic], pairs_of(len(real.columns)))
    assert found is not None and found.error is None
    return found.value


def naive_eta(labels: pd.Series, values: pd.Series) -> float:
    both = labels.notna() & values.notna()
    groups = values[both].astype(float).groupby(labels[both].astype(object))
    mean = values[both].astype(float).mean()
    between = sum(len(g) * (g.mean() - mean) ** 2 for _, g in groups)
    eta2 = between / ((values[both].astype(float) - mean) ** 2).sum()
    n, k = both.sum(), labels[both].nunique()
    return float(np.sqrt(max(1 - (1 - eta2) * (n - 1) / (n - k), 0)))  # Kelley's epsilon squared


def bergsma(counts: np.ndarray) -> float:
    """Bergsma 2013, equations 7 to 9, from scipy's V."""
    n, (r, c) = counts.sum(), counts.shape
    phi2 = scipy_association(counts, method="cramer") ** 2 * (min(r, c) - 1)
    least = min(side - (side - 1) ** 2 / (n - 1) for side in (r, c)) - 1 if n > 1 else 0
    return (
        float(np.sqrt(min(max(phi2 - (r - 1) * (c - 1) / (n - 1), 0) / least, 1))) if least > 1e-12 else 0.0
    )


def test_every_measure_equals_its_definition_on_complete_pairs() -> None:
    """Would catch missing values taken for numbers, sums over the wrong records, or ranks of labels."""
    frame = table(400, 0)
    found = association(frame, SCHEMA.columns)
    entry = dict(zip(found.columns, found.matrix, strict=True))
    place = {name: i for i, name in enumerate(found.columns)}
    rank = frame["grade"].map({"lo": 0, "mid": 1, "hi": 2}).astype(float)
    x, n = frame["x"].astype(float), frame["n"].astype(float)
    assert entry["x"][place["n"]] == pytest.approx(abs(x.corr(n)))
    assert entry["grade"][place["x"]] == pytest.approx(abs(x.corr(rank)))
    counts = pd.crosstab(frame["site"], frame["sex"]).to_numpy()
    assert entry["site"][place["sex"]] == pytest.approx(bergsma(counts))
    assert entry["site"][place["x"]] == pytest.approx(naive_eta(frame["site"], frame["x"]))
    assert entry["n"][place["sex"]] == pytest.approx(naive_eta(frame["sex"], frame["n"]))
    assert np.array_equal(found.matrix, found.matrix.T) and (np.diag(found.matrix) == 1).all()


def test_corrected_ratio_is_the_adjusted_r_squared_of_regression() -> None:
    """Would catch degrees of freedom that are off by one."""
    frame = table(60, 6)[["x", "grade", "sex", "site"]].dropna()
    dummies = pd.get_dummies(frame["site"].astype(object), drop_first=True, dtype=float)
    schema = SCHEMA.select(["x", "grade", "sex", "site"])
    for weight in (0.0, 1.0):
        values = (frame["x"] + weight * dummies.sum(axis=1)).clip(-9, 9)
        fitted = sm.OLS(values.to_numpy(), sm.add_constant(dummies.to_numpy())).fit()
        matrix = association(frame.assign(x=values), schema.columns).matrix
        assert matrix[0, 3] == pytest.approx(np.sqrt(max(fitted.rsquared_adj, 0.0)), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=2, max_size=4))
def test_cramers_v_equals_scipy(rows: list[list[int]]) -> None:
    """Would catch empty categories counted as dimensions."""
    counts = np.array(rows)
    kept = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    value = cramers_v(counts)
    if min(kept.shape) < 2:
        assert np.isnan(value)
    else:
        assert value == pytest.approx(bergsma(kept), abs=1e-6) and 0.0 <= value <= 1.0


def test_corrections_take_chance_away() -> None:
    """Would catch a correction of the wrong sign: independent columns of many categories look associated."""
    rng = np.random.default_rng(1)
    schema = Schema(
        columns=(
            Column(name="a", kind="categorical", categories=tuple(range(12))),
            Column(name="b", kind="categorical", categories=tuple(range(12))),
            Column(name="x", kind="continuous", lower=-9, upper=9),
        )
    )
    found = []
    for _ in range(40):
        frame = pd.DataFrame(
            {"a": rng.integers(0, 12, 120), "b": rng.integers(0, 12, 120), "x": rng.normal(size=120)}
        )
        matrix = association(frame, schema.columns).matrix
        found.append([matrix[0, 1], matrix[0, 2]])
    assert (np.mean(found, axis=0) < 0.12).all()  # about 0.3 without a correction
    # unbiased before negative values are cut off: about half of them are 0
    assert 0.3 < np.mean(np.array(found) == 0.0) < 0.7


def test_perfect_association_stays_one_after_correction() -> None:
    """Would catch a correction that shrinks what is certain."""
    labels = np.repeat([0, 1, 2], 30)
    schema = Schema(
        columns=(
            Column(name="a", kind="categorical", categories=(0, 1, 2)),
            Column(name="b", kind="categorical", categories=(0, 1, 2)),
            Column(name="x", kind="integer", lower=0, upper=9),
        )
    )
    frame = pd.DataFrame({"a": labels, "b": 2 - labels, "x": labels * 3})
    assert association(frame, schema.columns).matrix == pytest.approx(np.ones((3, 3)))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_small_constant_and_missing_columns(n: int) -> None:
    """Would catch a warning of numpy, or a number where nothing varies."""
    frame = table(30, 2).iloc[:n].copy()
    frame["x"], frame["site"], frame["sex"] = np.nan, None, 1
    frame["site"] = frame["site"].astype(table(3, 0)["site"].dtype)
    found = association(frame, SCHEMA.columns)
    off = ~np.eye(5, dtype=bool)
    assert np.isnan(found.matrix[[0, 1, 3]][:, [0, 1, 3]][off[:3, :3]]).all()
    assert whole(association_error, found, found) == 0.0


def test_findings_split_tables() -> None:
    """Would catch a real matrix marked for release, or the baseline of another table."""
    real = table(300, 3)
    made = real.copy()
    made["n"] = made["n"].to_numpy()[::-1]
    found = association_findings(made, real, table(200, 4), SCHEMA, group="G")
    by_name = {m.name: m for m in found.measures}
    assert by_name["association_error"].value > by_name["association_error_baseline"].value
    marks = {(row["table"], row["confidential"]) for row in found.details["association"]}
    assert marks == {("synthetic", False), ("train", True)}


def test_a_single_column_has_no_pair() -> None:
    """Would catch a mean of nothing."""
    schema = SCHEMA.select(["sex"])
    frame = table(9, 5)[["sex"]]
    found = association_findings(frame, frame, frame, schema, group="G")
    by_name = {measure.name: measure for measure in found.measures}
    error = by_name["association_error"]
    assert error.value is None and "single column" in error.detail and by_name["correlation_error"].value == 0


def test_independent_columns_lose_all_associations() -> None:
    """Would catch a loss that depends on how strong the real associations are."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    for weight in (0.5, 3.0):
        frame = pd.DataFrame({"a": x, "b": weight * x + rng.normal(size=4000), "c": rng.normal(size=4000)})
        schema = Schema(
            columns=tuple(Column(name=name, kind="continuous", lower=-50, upper=50) for name in "abc")
        )
        shuffled = pd.DataFrame({name: rng.permutation(frame[name]) for name in frame})
        real = association(frame, schema.columns)
        assert whole(association_lost, real, real) == 0.0
        made = association(shuffled, schema.columns)
        assert 0.9 < whole(association_lost, real, made) <= 1.0


def test_only_what_is_lost_or_reversed_is_lost() -> None:
    """Would catch associations that are too strong told as lost, and a reversed one told as kept."""

    def of(r: float, sign: float = 1.0) -> Association:
        matrix, signs = (np.array([[1.0, value], [value, 1.0]]) for value in (r, sign))
        return Association(("x", "y"), matrix, signs)

    assert whole(association_lost, of(0.4), of(0.9)) == 0.0
    assert whole(association_lost, of(0.4), of(0.4, -1.0)) == 1.0
    assert whole(association_lost, of(0.4), of(0.1)) == pytest.approx(0.75)
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    schema = Schema(columns=tuple(Column(name=name, kind="continuous", lower=-9, upper=9) for name in "ab"))
    real = association(pd.DataFrame({"a": x, "b": x}), schema.columns)
    reversed_ = association(pd.DataFrame({"a": x, "b": -x}), schema.columns)
    assert whole(association_lost, real, reversed_) == pytest.approx(1.0)


def test_a_part_of_the_pairs_is_near_all_of_them() -> None:
    """Would catch pairs of one column scaled up, a matrix of all columns, or a missing sentence."""
    kinds = [dict(kind="continuous", lower=-9, upper=9, missing=True)] * 2
    kinds += [dict(kind="categorical", categories=("a", "b", "c"), missing=True)]
    columns = tuple(Column(name=f"c{i}", **kinds[i % 3]) for i in range(230))
    schema = Schema(columns=columns)

    def drawn(seed: int, weight: float) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        base = rng.normal(size=(120, 230)) + weight * rng.normal(size=(120, 1))
        base[rng.random(base.shape) < 0.05] = np.nan
        words = np.array(["a", "b", "c", None], dtype=object)
        data = {}
        for column, values in zip(columns, base.T, strict=True):
            coded = np.where(np.isnan(values), 3, np.digitize(values, [-1, 1]))
            data[column.name] = values if column.is_numeric else words[coded]
        return schema.conform(pd.DataFrame(data)).frame

    tables = (drawn(0, 0.3), drawn(1, 0.9), drawn(2, 0.9))
    every = association_findings(*tables, schema, group="G")
    part = association_findings(*tables, schema, association_blocks(230, np.random.default_rng(3)), group="G")
    assert "parts" not in every.details and len(every.measures) == len(part.measures) == 6
    (told,) = part.details["parts"]
    assert (told["used"], told["total"]) == (2 * pairs_of(77) + pairs_of(76), pairs_of(230))
    for one, other in zip(every.measures, part.measures, strict=True):
        error = float(other.detail.rpartition("standard error of ")[2])
        assert one.name == other.name and 0 < abs(one.value - other.value) < 4 * error < 0.1 * one.value
        assert error <= told["error"] * 1.001
    assert len(part.details["association"]) == 2 * 77**2


GRADE = Column(name="grade", kind="categorical", categories=("a", "b", "c"), missing=True)
SCORE = Column(name="score", kind="continuous", lower=0, upper=1, missing=True)
ENCODED = Schema(columns=(GRADE, SCORE))


def test_correlation_error_equals_numpy() -> None:
    """Would catch a diagonal in the mean or a wrong normalisation."""
    rng = np.random.default_rng(1)
    schema = Schema(
        columns=(
            *(Column(name=name, kind="continuous", lower=-9, upper=9) for name in "xyz"),
            Column(name="sex", kind="binary", categories=(0, 1)),
        )
    )
    mix = rng.normal(size=(3, 3))
    real = pd.DataFrame(rng.normal(size=(200, 3)) @ mix, columns=list("xyz")).assign(
        sex=rng.integers(0, 2, 200)
    )
    made = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("xyz")).assign(sex=rng.integers(0, 2, 150))
    a, b = (np.corrcoef(distance_features(frame, schema).T) for frame in (real, made))
    off = ~np.eye(len(a), dtype=bool)
    assert correlation_errors(real, [made], schema)[0].value == pytest.approx(np.abs(a - b)[off].mean())
    assert correlation_errors(real, [real], schema)[0].value == 0.0


def test_constant_columns_have_no_correlation() -> None:
    """Would catch NaN (or noise of rounding divided by itself) from a column without variance."""
    schema = Schema(columns=tuple(Column(name=name, kind="continuous", lower=0, upper=3) for name in "xy"))
    constant = pd.DataFrame({"x": [0.1] * 7, "y": np.linspace(0, 1, 7)})
    tied = pd.DataFrame({"x": np.linspace(0, 1, 7), "y": np.linspace(0, 1, 7)})
    assert correlation_errors(constant, [constant], schema)[0].value == 0.0
    assert correlation_errors(tied, [constant], schema)[0].value == pytest.approx(1.0)


def test_correlations_of_a_large_table_are_numpys_in_little_memory() -> None:
    """Would catch copies of a table of one-hot columns: each is as large as the table is."""
    rng, names = np.random.default_rng(0), [f"x{i}" for i in range(7)]
    columns = [Column(name=name, kind="continuous", lower=0, upper=1, missing=True) for name in names]
    columns.append(Column(name="code", kind="categorical", categories=tuple(range(200)), missing=True))
    schema = Schema(columns=tuple(columns))
    frame = pd.DataFrame(np.where(rng.random((5000, 7)) < 0.1, np.nan, rng.random((5000, 7))), columns=names)
    frame = schema.conform(frame.assign(code=rng.integers(0, 200, 5000), x5=0.3)).frame
    values = distance_features(frame, schema)
    varies = values.std(axis=0) > 1e-12
    tracemalloc.start()
    found = _correlations(frame, schema.columns)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.allclose(found[varies][:, varies], np.corrcoef(values[:, varies], rowvar=False))
    assert not found[~varies].any() and 0 < (~varies).sum() < 10 and peak < 0.6 * values.nbytes
