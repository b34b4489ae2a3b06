"""Rules as factors: shares by enumeration, factors of a chain, and rules that nothing obeys."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from releases import fit_base_model, release_marginals
from stored import read_back

from dpsynth import Column, Schema
from dpsynth.errors import InputError
from dpsynth.marginals import rules as of_rules
from dpsynth.marginals.binning import Binning
from dpsynth.marginals.chain_fit import ChainFit
from dpsynth.marginals.rules import RuleFactor, check_possible, rule_factors
from dpsynth.marginals.terms import DrawnColumns
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


def cells() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.dirichlet(np.full(grid.size, 4.0)) for grid in GRIDS)


def binnings() -> list[Binning]:
    return [Binning.from_labels(label, p) for label, p in zip(LABELS, cells(), strict=True)]


def shares(rules=SCHEMA.rules) -> list[RuleFactor]:
    same = [np.arange(binning.size) for binning in binnings()]
    return rule_factors(binnings(), same, cells(), SCHEMA, GRIDS, rules)


def enumerated() -> dict[tuple[int, ...], list[np.ndarray]]:
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
        mass = np.prod([p[cell] for p, cell in zip(cells(), state, strict=True)])
        found.setdefault(bins, []).append(np.array([mass, *(obey[i] for obey in obeys)]))
    return found


def test_shares_are_those_of_all_records_within_the_bins():
    """Catches a rule that is read at the middle of a bin, without missing values, or without formulas."""
    found = shares()
    assert [rule.columns for rule in found] == [(0, 1), (0, 1, 2)]
    for bins, records in enumerated().items():
        mass, *obeys = np.stack(records).T
        for rule, obey in zip(found, obeys, strict=True):
            share = np.exp(rule.logs[tuple(bins[j] for j in rule.columns)])
            assert share == pytest.approx((mass * obey).sum() / mass.sum(), abs=0.25)
            assert (share < 1e-12) == ((mass * obey).sum() == 0)


def test_a_rule_of_too_many_combinations_leaves_the_others_theirs(monkeypatch):
    """Catches a rule beyond the cap that ends the list or takes another's place, and a cap off by one."""
    monkeypatch.setattr(of_rules, "_MOST", 20)  # the rule of `low` and `high` has as many, the other 40
    for (rule,) in (shares(), shares(SCHEMA.rules[::-1])):
        assert rule.columns == (0, 1) and rule.logs.shape == (4, 5)
        assert (rule.logs[3, 0] < -20) and (rule.logs[:, 4] == 0).all()  # a missing value obeys
    monkeypatch.setattr(of_rules, "_MOST", 19)
    assert shares() == []
    check_possible(SCHEMA, SCHEMA.rules)


def test_a_rule_of_many_states_takes_their_bins(monkeypatch):
    """Catches fine states that leave a rule without a factor, or bins that are read as states."""
    monkeypatch.setattr(of_rules, "_MOST", 20)
    fine = [Binning.from_labels(np.arange(len(p)), p) for p in cells()]
    (rule,) = rule_factors(fine, list(LABELS), cells(), SCHEMA, GRIDS, SCHEMA.rules)
    assert [label.tolist() for label in rule.labels] == [label.tolist() for label in LABELS[:2]]
    np.testing.assert_allclose(np.exp(rule.logs), np.exp(shares()[0].logs), atol=0.1)


@pytest.mark.parametrize("column", [0, 1, 2])
def test_the_term_of_a_column_has_the_shares_by_its_states(column):
    """Catches a factor with its axes exchanged."""
    rule = shares()[1]
    states = np.array(list(itertools.product(range(4), range(5), range(2)))).T
    rows = DrawnColumns.empty(3, states.shape[1])
    rows.states[:] = states
    for k, logits in enumerate(rule.term(column).logits(rows)):
        moved = states.copy()
        moved[column] = k
        np.testing.assert_array_equal(logits, rule.logs[tuple(moved)])


def test_the_last_column_of_a_rule_is_drawn_by_it():
    """Catches a factor that the chain leaves out: independent columns, of which a third disobey."""
    rng = np.random.default_rng(0)
    schema = Schema(columns=SCHEMA.modelled.columns, constraints=("low <= high",), n_public=4000)
    frame = pd.DataFrame({"low": rng.integers(0, 8, 4000), "high": rng.integers(0, 8, 4000), "sex": "F"})
    frame = schema.conform(frame).frame
    released = release_marginals(frame, schema, noise_multiplier=None, n=4000, rng=rng)
    network = fit_base_model(
        frame, schema, released, kind="tree", noise_multiplier=None, selection_epsilon=None, rng=rng
    )

    def broken(rules):
        chain = ChainFit(network, released, None, rng, schema, rules).chain
        drawn = chain.cells_of(chain.sample(8000, rng), rng)
        return np.mean((drawn[:, 0] > drawn[:, 1]) & (drawn[:, 1] < 8)), chain

    assert broken(())[0] > 0.3
    share, chain = broken(schema.rules)
    assert share < 0.01 and chain.ruled
    again = read_back(chain)
    np.testing.assert_array_equal(
        chain.sample(100, np.random.default_rng(1)), again.sample(100, np.random.default_rng(1))
    )


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
