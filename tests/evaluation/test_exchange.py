"""Signs of memorisation in one exact test: against every division, on strangers and on copies."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from compared import conformed

from dpsynth.evaluation import disclosure_risk as evaluator
from dpsynth.evaluation import distances as exchange
from dpsynth.evaluation.disclosure_risk import disclosure
from dpsynth.evaluation.distances import (
    Closest,
    Pooled,
    copy_sign,
    distance_signs,
    exchange_p_values,
    lone_value_shares,
    lone_values,
    named_more_often,
    one_to_one,
    record_distance,
)
from dpsynth.evaluation.estimates import FALSE_ALARMS
from dpsynth.evaluation.results import Evaluation
from dpsynth.evaluation.settings import Settings
from dpsynth.report.verdicts.rules import judge
from dpsynth.table.schema import Column, Schema


def pooled(n: int, h: int) -> Pooled:
    return Pooled(n, h, max(n, h))


@pytest.mark.parametrize("at_once", [64, 11_000])
def test_p_values_are_those_of_every_division(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches another null distribution, a sign judged by itself alone, or a wrong standard deviation.

    With 8 records of which 4 train there are 70 divisions, which are listed. It also catches divisions of the
    last block, which is a shorter one, that are left out or come twice.
    """
    monkeypatch.setattr(exchange, "DIVISIONS", 20_000)
    monkeypatch.setattr(exchange, "_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    signs = {"even": rng.normal(size=8), "hub": np.array([9.0, 0, 0, 0, 0, 0, 1, 0]), "same": np.ones(8)}
    found = exchange_p_values(signs, pooled(4, 4), np.random.default_rng(1))
    assert set(found) == {"even", "hub"}  # no division changes the third
    weights = np.stack([signs["even"], signs["hub"]])
    sums = np.stack([weights[:, list(chosen)].sum(axis=1) for chosen in combinations(range(8), 4)])
    scaled = (sums - sums.mean(axis=0)) / sums.std(axis=0)
    largest = scaled.max(axis=1)
    for name, own in zip(found, scaled[0], strict=True):
        exact = (largest >= own - 1e-9).mean()
        assert found[name] == pytest.approx(exact, abs=0.015), name


@pytest.mark.parametrize(("equal", "suspected"), [(0, 4), (3, 4), (5, 0)])
def test_records_at_one_distance_are_suspected_together(equal: int, suspected: int) -> None:
    """Catches an alarm about one record in three, under the name of an attack that suspects one in fifty.

    Its size was then a share of 0.000: the attack names nobody where too many records are equally near.
    """
    distance = np.r_[np.zeros(equal), 1.0 + np.arange(200 - equal)]
    near = Closest(distance, distance[::2], distance, distance[1::2], weights=np.zeros(200))
    metric = record_distance(Schema(columns=(Column(name="x", kind="binary", categories=(0, 1)),)))
    signs = distance_signs(near, np.zeros((200, 1)), metric, np.random.default_rng(0))
    assert signs["membership_tpr_at_1pct"].sum() == suspected


@pytest.mark.parametrize("most", [40, 7])
def test_references_are_other_real_records(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a record that is its own neighbour, or second neighbours, where not all are references."""
    monkeypatch.setattr(exchange, "REFERENCES", most)
    schema = Schema(columns=(Column(name="x", kind="continuous", lower=0, upper=1),))
    real, seen = np.random.default_rng(0).random((40, 1)), []
    monkeypatch.setattr(exchange, "density_ratio", lambda made, other: seen.append(other) or made)
    distance = np.arange(40.0)
    near = Closest(distance, distance[::2], distance, distance[1::2], weights=np.zeros(40))
    distance_signs(near, real, record_distance(schema), np.random.default_rng(1))
    chosen = np.random.default_rng(1).permutation(40)[:most]
    apart = [min(abs(x - real[j, 0]) for j in chosen if j != i) for i, x in enumerate(real[:, 0])]
    np.testing.assert_allclose(seen[0], apart, atol=1e-12)


def test_records_outside_the_part_stay_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a part of equal numbers that is exchanged with the rest, where most records trained."""
    monkeypatch.setattr(exchange, "DIVISIONS", 5_000)
    both = Pooled(8, 2, 2)
    assert np.flatnonzero(both.part).tolist() == [0, 1, 8, 9]
    found = exchange_p_values({"first": np.eye(10)[0]}, both, np.random.default_rng(0))
    # of the part two of four trained, of all records eight of ten
    assert found["first"] == pytest.approx(0.5, abs=0.03)


def times(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "time": rng.integers(0, 50_000, n),
            "age": rng.integers(20, 90, n),
            "sex": rng.choice(["F", "M"], n),
            "lab": np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 3000, n)),
        }
    )


SCHEMA = Schema(
    columns=(
        Column(name="time", kind="integer", lower=0, upper=50_000),
        Column(name="age", kind="integer", lower=20, upper=90),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="lab", kind="integer", lower=0, upper=3000, missing=True),
    )
)


def page_of(
    made: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame, seed: int = 0, records: int | None = None
) -> dict[str, str]:
    settings = Settings(records=records)
    found = disclosure(conformed(made, train, test, SCHEMA), settings, np.random.default_rng(seed))
    return {verdict.code: verdict.severity for verdict in judge(Evaluation(found.measures))}


@pytest.mark.parametrize("seed", range(3))
def test_copies_open_red(seed: int) -> None:
    """Catches a test so strict that a copied table, one row in twenty, or copied rare values pass."""
    train, test, fresh = (times(400, 3 * seed + place) for place in range(3))
    assert page_of(train, train, test) == {"memorises": "bad"}
    few = pd.concat([fresh.head(380), train.sample(20, random_state=seed)])
    assert page_of(few, train, test) == {"memorises": "bad"}
    rare = fresh.assign(time=train["time"].sample(400, random_state=seed).to_numpy())
    assert page_of(rare, train, test) == {"memorises": "bad"}
    assert page_of(fresh, train, test) == {"no_memory_found": "good"}


def test_a_part_of_large_tables_tells_copies_from_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches records out of step with the distances, or the first ones, where only a part is compared.

    The tables are sorted, and those who were copied come last.
    """
    monkeypatch.setattr(evaluator, "POOLED", 300)
    train, test, fresh = (times(400, place).sort_values("age", ignore_index=True) for place in range(3))
    few = pd.concat([fresh.head(370), train.tail(30)])
    for made, said in ((train, "memorises"), (few, "memorises"), (fresh, "no_memory_found")):
        assert [*page_of(made, train, test, records=100)] == [said]


def test_lone_values_are_counted_by_people() -> None:
    """Catches a value that occurs twice counted as lone, a missing one, or one of a column with too few."""
    train, test, made = times(600, 9), times(300, 10), times(6000, 11)
    found = lone_values(made, train, test)
    assert set(found) == {"time", "lab"}
    values = [*train["time"], *test["time"]]
    naive = [values.count(value) == 1 and value in set(made["time"]) for value in values]
    assert found["time"].astype(bool).tolist() == naive
    both = pooled(600, 300)
    shares = lone_value_shares(found, both, 0.95)
    hits = np.array(naive)
    first, second = hits[:600].mean(), hits[600:].mean()
    assert shares["time"].value == pytest.approx(first / (first + second))
    assert shares["time"].lower < 0.5 < shares["time"].upper
    assert named_more_often(hits, both, 0.95).value == pytest.approx(first - second)
    few = lone_values(made.head(40), train, test)
    assert "lab" not in few  # fewer than 30 people


def test_copies_are_shared_among_equal_records() -> None:
    """Catches a copy of two equal records that counts twice, and tables matched many to one."""
    train, test = pd.DataFrame({"x": [1.0, 1.0, 2.0]}), pd.DataFrame({"x": [1.0, 3.0, np.nan]})
    made = pd.DataFrame({"x": [1.0, 1.0, 1.0, np.nan]})
    assert copy_sign(made, train, test).tolist() == pytest.approx([0.25, 0.25, 0, 0.25, 0, 0.25])
    assert one_to_one(made, train) == pytest.approx(2 / 3)  # three of four are 1, and two of three are
    assert one_to_one(made, test) == pytest.approx(1 / 3 + 1 / 4)
    assert one_to_one(train, train) == 1.0


@pytest.mark.slow
def test_strangers_are_seldom_suspected() -> None:
    """Catches tests that together suspect more than 1 page in 200 of strangers, prototypes among them.

    Of 80 pages, .4 are expected at most. More than 3 come with a probability of 0.08 %, and of tests that
    suspect one page in ten with 96 %.
    """
    alarms = 0
    for seed in range(80):
        train, test, third = (times(60, 3 * seed + place) for place in range(3))
        made = third if seed % 2 else third.iloc[np.random.default_rng(seed).integers(5, size=60)]
        alarms += "memorises" in page_of(made, train, test, seed)
    assert alarms <= 3 and FALSE_ALARMS == 0.01
