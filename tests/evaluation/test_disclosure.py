"""Disclosure: what must be caught, what must not cry wolf, and each part against a naive count."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from compared import conformed
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from dpsynth.evaluation import distances as copies
from dpsynth.evaluation.disclosure_risk import disclosure
from dpsynth.evaluation.distances import (
    chance_tpr,
    closer_share,
    closest,
    count_copies,
    exchanged,
    membership,
    membership_tpr,
    reach,
    record_distance,
)
from dpsynth.evaluation.neighbours import METRICS
from dpsynth.evaluation.results import Evaluation, Findings, Measure
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import distance_features
from dpsynth.table.schema import Column, Schema

SMALL = Schema(
    columns=(
        Column(name="a", kind="categorical", categories=(0, 1, 2)),
        Column(name="b", kind="binary", categories=(0, 1)),
        Column(name="c", kind="integer", lower=0, upper=3, missing=True),
    )
)
SMOOTH = Schema(columns=tuple(Column(name=n, kind="continuous", lower=-6, upper=6) for n in "xyz"))


def small(rng: np.random.Generator, n: int) -> pd.DataFrame:
    c = rng.integers(0, 4, n).astype(float)
    c[rng.random(n) < 0.1] = np.nan
    frame = pd.DataFrame(
        {"a": rng.choice(3, n, p=[0.7, 0.2, 0.1]), "b": rng.choice(2, n, p=[0.8, 0.2]), "c": c}
    )
    return SMALL.conform(frame).frame


def smooth(rng: np.random.Generator, n: int) -> pd.DataFrame:
    return pd.DataFrame(rng.normal(size=(n, 3)).clip(-6, 6), columns=list("xyz"))


def told(
    made: pd.DataFrame,
    train: pd.DataFrame,
    test: pd.DataFrame | None,
    schema: Schema,
    *,
    rng: np.random.Generator,
) -> Findings:
    return disclosure(conformed(made, train, test, schema), Settings(), rng)


def named(found: Findings) -> dict[str, Measure]:
    return {measure.name: measure for measure in found.measures}


def test_a_bootstrap_of_the_training_table_is_caught() -> None:
    """Would catch a test without power: all three signs must exclude what honest tables give."""
    rng = np.random.default_rng(0)
    train, test = smooth(rng, 200), smooth(rng, 120)
    made = train.iloc[rng.integers(0, 200, 800)]
    found = named(told(made, train, test, SMOOTH, rng=rng))
    assert found["copies_train"].value == 800 and found["copies_test"].value == 0
    assert found["copies_expected"].upper < 40
    assert found["copies_excess"].lower > 0.3
    assert found["dcr_closer_to_train"].lower > 0.5
    assert found["membership_auc"].lower > 0.9 and found["membership_auc_calibrated"].lower > 0.9
    assert found["membership_tpr_at_1pct"].lower > 0.9
    assert found["membership_tpr_at_0.1pct"].value is None
    assert "120 held-out records, 1,000 are needed" in found["membership_tpr_at_0.1pct"].detail
    assert found["dcr_median_train"].value == 0.0 < found["dcr_median_test"].lower
    assert found["duplicates_synthetic"].value == 800 - len(made.drop_duplicates())
    assert [name for name, measure in found.items() if not measure.internal] == ["duplicates_synthetic"]


def test_a_small_discrete_table_that_memorises_is_caught() -> None:
    """Would catch power lost to coincidences: every record agrees with many others here."""
    schema = Schema(columns=tuple(Column(name=f"c{i}", kind="binary", categories=(0, 1)) for i in range(12)))
    rng = np.random.default_rng(1)
    train, test = (pd.DataFrame(rng.binomial(1, 0.4, (100, 12)), columns=schema.names) for _ in range(2))
    found = named(told(train.iloc[rng.integers(0, 100, 300)], train, test, schema, rng=rng))
    assert found["copies_test"].value > 0
    assert found["copies_excess"].lower > 0 and found["membership_auc"].lower > 0.8


def _alarms(
    draw: Callable[..., pd.DataFrame], schema: Schema, sizes: tuple[int, int, int], seeds: int
) -> dict:
    honest = {"copies_excess": 0.0, "dcr_closer_to_train": 0.5}
    honest |= {"membership_auc": 0.5, "membership_auc_calibrated": 0.5}
    alarms = dict.fromkeys(honest, 0)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        made, train, test = (draw(rng, n) for n in sizes)
        found = named(told(made, train, test, schema, rng=rng))
        for name, value in honest.items():
            alarms[name] += not found[name].lower <= value <= found[name].upper
    return alarms


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "schema", "sizes"),
    [
        (small, SMALL, (500, 30, 30)),  # far more synthetic than real records, nearly all of them coincide
        (small, SMALL, (200, 60, 20)),
        (smooth, SMOOTH, (300, 50, 50)),  # many synthetic records share one nearest real record
        (smooth, SMOOTH, (20, 80, 30)),
    ],
    ids=["discrete", "discrete unequal", "continuous", "continuous unequal"],
)
def test_a_fresh_draw_raises_no_alarm(
    draw: Callable[..., pd.DataFrame], schema: Schema, sizes: tuple[int, int, int]
) -> None:
    """Would catch intervals over synthetic records alone, which cry wolf in a third of such tables.

    60 tables of which 5 % may alarm: 3 expected, more than 8 with probability 0.3 %.
    """
    alarms = _alarms(draw, schema, sizes, 60)
    assert max(alarms.values()) <= 8, alarms


def test_without_held_out_records() -> None:
    """Would catch numbers without a control passed for evidence, or a crash for want of one."""
    rng = np.random.default_rng(2)
    train = small(rng, 80)
    result = told(small(rng, 60), train, None, SMALL, rng=rng)
    found = named(result)
    for name in (
        "copies_excess",
        "dcr_closer_to_train",
        "membership_auc",
        "dcr_median_holdout",
        "copies_test",
    ):
        assert found[name].value is None and "without held-out records" in found[name].detail
    assert found["copies_train"].value > 0 and found["dcr_median_train"].value is not None
    # leave one out: the expected share is about that of a fresh draw
    assert found["copies_train_share"].value == pytest.approx(found["copies_expected_share"].value, abs=0.15)
    assert {row["table"] for row in result.details["distances"]} == {"synthetic"}


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("draw", [small, smooth])
def test_tiny_and_constant_tables(n: int, draw: Callable[..., pd.DataFrame]) -> None:
    """Would catch NaN in JSON, or a division by zero."""
    rng = np.random.default_rng(n)
    schema = SMALL if draw is small else SMOOTH
    constant = draw(rng, 1).iloc[[0] * n]
    for made, train, test in ((draw(rng, n), draw(rng, n + 1), draw(rng, n)), (constant, constant, constant)):
        result = told(made, train, test, schema, rng=rng)
        Evaluation(result.measures, {}, result.details).to_json()
        found = named(result)
        for name, honest in (("copies_excess", 0.0), ("dcr_closer_to_train", 0.5)):
            assert found[name].lower <= honest <= found[name].upper


def test_the_most_records_are_kept_and_progress_ends() -> None:
    """Would catch a limit that is ignored, and a bar that goes back or never fills."""
    rng = np.random.default_rng(3)
    frame = smooth(rng, 30)
    seen: list[float] = []
    tables = conformed(frame, frame, frame, SMOOTH)
    found = disclosure(tables, Settings(records=20), rng, seen.append)
    assert seen == sorted(seen) and 0.9 < seen[-1] <= 1.0
    assert "20 training against 20 held-out" in named(found)["membership_auc"].detail


points = st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=2), min_size=1, max_size=6)


@settings(max_examples=50, deadline=None)
@given(points, st.integers(1, 5), st.integers(0, 10**6))
def test_closest_equals_all_distances(made: list[list[int]], k: int, seed: int) -> None:
    """Would catch ties given to one side, a record of the wrong table, or references among the tested."""
    rng = np.random.default_rng(seed)
    synthetic = np.array(made, dtype=float)
    train, test = rng.integers(0, 3, (k, 2)).astype(float), rng.integers(0, 3, (k, 2)).astype(float)
    found = closest(synthetic, train, test, metric=METRICS["euclidean"])
    to_train, to_test, across = cdist(synthetic, train), cdist(synthetic, test), cdist(test, train)
    assert np.array_equal(found.synthetic_train, to_train.min(axis=1))
    assert np.array_equal(found.train_synthetic, to_train.min(axis=0))
    assert np.array_equal(found.test_synthetic, to_test.min(axis=0))
    assert np.array_equal(found.test_train, across.min(axis=1))
    if k > 1:
        assert np.array_equal(found.synthetic_test, to_test.min(axis=1))
        assert np.array_equal(found.train_reference, across[: k // 2].min(axis=0))
        assert np.array_equal(found.test_reference, cdist(test, test)[k // 2 :, : k // 2].min(axis=1))
    every = np.hstack([to_train, to_test])
    tied = every == every.min(axis=1, keepdims=True)
    assert found.weights == pytest.approx((tied / tied.sum(axis=1, keepdims=True)).mean(axis=0))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_codes_give_the_distances_of_the_encoding(seed: int) -> None:
    """Would catch a missing value at the wrong distance, or equal records that are not at distance 0."""
    rng = np.random.default_rng(seed)
    one, other = small(rng, 6), small(rng, 5)
    metric = record_distance(SMALL)
    assert metric.embed is not None
    encoded = [metric.encode(frame, SMALL) for frame in (one, other)]
    squared = metric.tile(*encoded)
    assert cdist(*map(metric.embed, encoded), "sqeuclidean") == pytest.approx(squared, abs=1e-12)
    features = [distance_features(frame, SMALL) for frame in (one, other)]
    assert squared == pytest.approx(cdist(*features, "sqeuclidean"), abs=1e-12)
    for columns in (["a", "b"], ["c"]):
        schema = SMALL.select(columns)
        metric = record_distance(schema)
        part = metric.encode(one[columns], schema)
        assert np.array_equal(np.diag(metric.tile(part, part)), np.zeros(6))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 6))
def test_copies_equal_a_naive_count(seed: int, n: int, h: int) -> None:
    """Would catch missing values that differ from each other, or a mean over parts that is not exact."""
    rng = np.random.default_rng(seed)
    made, train, test = small(rng, 5), small(rng, n), small(rng, h)
    found = count_copies(made, train, test, rng=rng)
    rows = [list(map(str, frame.to_numpy(dtype=object).tolist())) for frame in (made, train, test)]
    assert found.train == sum(row in rows[1] for row in rows[0])
    assert found.test == sum(row in rows[2] for row in rows[0])
    k = min(n, h)
    for table, value in ((rows[1], found.equal_train), (rows[2], found.equal_test)):
        parts = list(combinations(table, k))
        assert value == pytest.approx(np.mean([[row in part for row in rows[0]] for part in parts]))


def test_coincidence_without_held_out_records_leaves_each_record_out() -> None:
    """Would catch a training record that counts as its own coincidence."""
    rng = np.random.default_rng(8)
    train = pd.DataFrame({"x": [1, 1, 2, 3]})
    found = count_copies(train, train, None, rng=rng)
    assert found.expected_share is not None and found.expected_share.value == 0.5
    assert count_copies(train, train.iloc[:1], None, rng=rng).expected_share is None


def test_the_interval_of_the_excess_reaches_as_far_as_exchanges_do() -> None:
    """Would catch an exchange that never changes the statistic.

    All of many synthetic records equal one training record: the exchange that hands this record to the other
    table turns the excess of 1 into -1, so that nothing is proved.
    """
    train, test = (pd.DataFrame({"x": np.arange(50) + shift}) for shift in (0, 50))
    made = pd.DataFrame({"x": np.full(5000, 7)})
    found = count_copies(made, train, test, rng=np.random.default_rng(9))
    assert found.excess is not None and found.excess.value == 1.0 and found.excess.lower <= 0.0


def test_exchange_equals_every_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch labels that are not drawn uniformly with the tables' sizes kept."""
    rng = np.random.default_rng(4)
    weights = np.array([0.5, 0.3, 0.2])
    monkeypatch.setattr(copies, "DRAWS", 20_000)
    values = exchanged(lambda labels: float(weights[labels].sum()), 3, 8, 3, rng=rng)
    padded = np.append(weights, np.zeros(5))
    every = [padded[list(split)].sum() for split in combinations(range(8), 3)]
    assert values.mean() == pytest.approx(np.mean(every), abs=0.006)
    assert values.std() == pytest.approx(np.std(every), abs=0.006)
    assert reach(np.arange(999.0), 0.0, 0.95) == 949.0


def test_one_hub_proves_nothing() -> None:
    """Would catch synthetic records counted as independent: ten thousand of them near one real record."""
    weights = np.zeros(200)
    weights[3] = 1.0
    found = closer_share(weights, 100, 0.95, rng=np.random.default_rng(5))
    assert found.value == 1.0 and found.lower <= 0.5


def test_rates_at_a_threshold_with_ties() -> None:
    """Would catch a threshold that lets a tied block of non-members through."""
    others = np.concatenate([np.zeros(90), np.ones(10)])
    members = np.array([0.0, 1.0, 1.0, 2.0])
    assert membership_tpr(members, others, 0.05).value == 0.25  # ten tied non-members are more than 5 %
    assert membership_tpr(members, others, 0.10).value == 0.75
    assert membership_tpr(members, others[:99], 0.01) is None
    # 0.01 * 100 and 0.001 * 1000 are one record each, whatever their floating-point product
    assert membership_tpr(members, np.arange(100.0) / 100, 0.01).value == 0.75
    assert membership_tpr(members, np.arange(1000.0) / 1000, 0.001).value == 0.75


@pytest.mark.slow
def test_chance_of_a_rate_equals_simulation() -> None:
    """Would catch a threshold of ten non-members taken for exact."""
    rng = np.random.default_rng(6)
    values = [membership_tpr(rng.random(300), rng.random(400), 0.01).value for _ in range(3000)]
    limit = chance_tpr(300, 400, 0.01, 0.9)
    assert np.mean(np.array(values) <= limit + 1e-12) >= 0.885
    assert np.mean(np.array(values) <= limit - 1 / 300 + 1e-12) < 0.9
    assert chance_tpr(300, 99, 0.01) is None


def test_membership_calibrates_for_crowds() -> None:
    """Would catch a calibration of the wrong sign: copies in a crowd look like non-members far off."""
    rng = np.random.default_rng(7)
    crowd = np.where(np.arange(400) % 2, 0.01, 1.0)
    noise = rng.uniform(0.5, 1.5, (2, 400))
    found = membership(0.5 * crowd * noise[0], crowd * noise[1], crowd, crowd)
    assert found.auc_calibrated is not None
    assert found.auc_calibrated.lower > found.auc.upper > 0.5
