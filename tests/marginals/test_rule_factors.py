"""Rules as factors: shares by enumeration, the law that sweeps draw from, and rules that nothing obeys."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from stored import read_back

from dpsynth import Column, Schema
from dpsynth.errors import InputError
from dpsynth.marginals import network as rule_factors
from dpsynth.marginals.binning import Binning
from dpsynth.marginals.gibbs import Reweighting
from dpsynth.marginals.network import BayesianNetwork, check_possible, with_rules
from dpsynth.table.grid import Grid

SCHEMA = Schema(
    columns=(
        Column(name="low", kind="integer", lower=0, upper=7),
        Column(name="high", kind="integer", lower=0, upper=7, missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="sum", kind="integer", lower=0, upper=20, missing=True, derived="low + high"),
    ),
    constraints=("low <= high", "sex = F implies sum < 9"),
)
GRIDS = tuple(Grid.from_column(column) for column in SCHEMA.modelled.columns)
#: Two values a bin.
LABELS = (np.arange(8) // 2, np.append(np.arange(8) // 2, 4), np.arange(2))


def base_model() -> BayesianNetwork:
    rng = np.random.default_rng(0)
    cells = tuple(rng.dirichlet(np.full(grid.size, 4.0)) for grid in GRIDS)
    binnings = tuple(Binning.from_labels(label, p) for label, p in zip(LABELS, cells, strict=True))
    factors = (
        ((0,), 1, rng.gamma(2.0, size=(4, 5)) + 0.1),
        ((0, 1), 2, rng.gamma(2.0, size=(4, 5, 2)) + 0.1),
    )
    return BayesianNetwork("tan", 0, binnings, cells, factors)


def enumerated(made: BayesianNetwork) -> dict[tuple[int, ...], list[np.ndarray]]:
    """By bins: the probability of each record within them, and whether it obeys each rule."""
    states = list(itertools.product(*(range(grid.size) for grid in GRIDS)))
    frame = pd.DataFrame(
        {g.column.name: g.decode([s[j] for s in states], np.zeros(len(states))) for j, g in enumerate(GRIDS)}
    )
    high = frame["high"].astype("Float64")
    obeys = [
        ~(frame["low"] > high).fillna(False).to_numpy(bool),
        ~((frame["sex"] == "F") & (frame["low"] + high >= 9).fillna(False)).to_numpy(bool),
    ]
    found: dict[tuple[int, ...], list[np.ndarray]] = {}
    for i, state in enumerate(states):
        bins = tuple(int(label[cell]) for label, cell in zip(LABELS, state, strict=True))
        mass = np.prod([p[cell] for p, cell in zip(made.cells, state, strict=True)])
        found.setdefault(bins, []).append(np.array([mass, *(obey[i] for obey in obeys)]))
    return found


def test_shares_are_those_of_all_records_within_the_bins():
    """Catches a rule that is read at the middle of a bin, without missing values, or without formulas."""
    made = with_rules(base_model(), SCHEMA, GRIDS, SCHEMA.rules)
    assert [columns for columns, _ in made.rules] == [(0, 1), (0, 1, 2)]
    for bins, records in enumerated(made).items():
        mass, *obeys = np.stack(records).T
        for (columns, logs), obey in zip(made.rules, obeys, strict=True):
            share = np.exp(logs[tuple(bins[j] for j in columns)])
            assert share == pytest.approx((mass * obey).sum() / mass.sum(), abs=0.25)
            assert (share < 1e-12) == ((mass * obey).sum() == 0)


def test_a_rule_of_too_many_combinations_leaves_the_others_theirs(monkeypatch):
    """Catches a rule beyond the cap that ends the list or takes another's place, and a cap off by one."""
    monkeypatch.setattr(rule_factors, "_MOST", 20)  # the rule of `low` and `high` has as many, the other 40
    kept = [
        with_rules(base_model(), SCHEMA, GRIDS, rules).rules for rules in (SCHEMA.rules, SCHEMA.rules[::-1])
    ]
    for ((columns, logs),) in kept:
        assert columns == (0, 1) and logs.shape == (4, 5)
        assert (logs[3, 0] < -20) and (logs[:, 4] == 0).all()  # 6 or 7 is more than 1; a missing value obeys
    monkeypatch.setattr(rule_factors, "_MOST", 19)
    assert with_rules(base_model(), SCHEMA, GRIDS, SCHEMA.rules).rules == ()
    check_possible(SCHEMA, SCHEMA.rules)


def test_sweeps_draw_from_the_tables_times_the_shares():
    """Catches a factor with its axes exchanged, or one that sweeps leave out."""
    made = with_rules(base_model(), SCHEMA, GRIDS, SCHEMA.rules)
    made = replace(made, reweighting=Reweighting.of_columns(made.binnings, ()))
    states = np.array(list(itertools.product(range(4), range(5), range(2))))
    p = made.binnings[0].probabilities[states[:, 0]]
    for parents, child, table in made.factors:
        conditional = table / table.sum(axis=-1, keepdims=True)
        p = p * conditional[tuple(states[:, j] for j in (*parents, child))]
    for columns, logs in made.rules:
        p = p * np.exp(logs.astype(float))[tuple(states[:, j] for j in columns)]
    draws = made.sample(60_000, np.random.default_rng(1))
    found = np.bincount(np.ravel_multi_index(tuple(draws.T), (4, 5, 2)), minlength=40) / len(draws)
    assert np.abs(found - p / p.sum()).sum() < 0.03


def test_state_round_trip():
    """Catches a model whose file forgets its rules' factors."""
    made = with_rules(base_model(), SCHEMA, GRIDS, SCHEMA.rules)
    again = read_back(made)
    for (columns, logs), (same, kept) in zip(made.rules, again.rules, strict=True):
        assert columns == same
        np.testing.assert_array_equal(logs, kept)


def continuous(*rules: str) -> Schema:
    columns = [Column(name=name, kind="continuous", lower=0, upper=100) for name in "abc"]
    return Schema(columns=(*columns, Column(name="k", kind="integer", lower=0, upper=50)), constraints=rules)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (["a < b", "b < c", "c < a"], "all constraints together"),
        (["a > 100"], "the constraint 'a > 100'"),
        (["a + b = c", "a < b"], r"the constraint 'a \+ b = c'.*with `derived`"),
    ],
)
def test_rules_that_nothing_obeys_are_refused(rules, said):
    """Catches a budget spent on a table that cannot be sampled."""
    schema = continuous(*rules)
    with pytest.raises(InputError, match=said):
        check_possible(schema, schema.rules)


@pytest.mark.parametrize(
    "rules", [["a < b", "b < c"], ["a > 99.9"], ["k = 7", "a + b + c <= 20"], ["a <= 50 implies b >= 98"]]
)
def test_rules_that_some_records_obey_are_not(rules):
    """Catches a refusal of rules that a table may well obey."""
    schema = continuous(*rules)
    check_possible(schema, schema.rules)
