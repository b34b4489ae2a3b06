"""Statements of plausibility: what they say of real rows, and how a comparison counts them."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pytest

from dpsynth import datasets
from dpsynth.errors import DpsynthError
from dpsynth.table import Column, Schema

plausibility = importlib.import_module("benchmarks.plausibility")
STATEMENTS = plausibility.statements()
SCHEMA = Schema(
    columns=(
        Column(name="weight", kind="continuous", lower=30, upper=200),
        Column(name="height", kind="continuous", lower=1, upper=2.2, missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
    )
)


@pytest.mark.parametrize("table", STATEMENTS)
def test_each_statement_can_be_read(table):
    """A column or category that the table does not have, or a table with hardly any statement."""
    said = STATEMENTS[table]
    read = said.read(datasets.card(table).table).rules
    assert len(read) == len(said.by_definition) + len(said.usual)
    assert 10 <= len(read) <= 20


@pytest.mark.parametrize(
    "table",
    [pytest.param(name, marks=[pytest.mark.slow] if name == "diabetes130" else []) for name in STATEMENTS],
)
def test_real_rows_obey(table):
    """A statement that no clinician would hold of the table, or one of a definition that a row breaks."""
    try:
        found = plausibility.real_rates(table)["real"]
    except DpsynthError as problem:
        pytest.skip(str(problem))
    said = STATEMENTS[table]
    assert all(found[text] == 0 for text in said.by_definition)
    assert all(found[text] < 20 for text in said.usual)


def test_rows_that_break_a_statement():
    """A helper of other columns, a missing value taken for a broken statement, or rows counted twice."""
    said = plausibility.Statements(
        usual=("bmi > 12 and bmi < 60", "sex = F implies weight < 120"),
        helpers={"bmi": "weight / height ** 2"},
    )
    frame = pd.DataFrame(
        {"weight": [70.0, 190, 190, 130], "height": [1.75, 1.5, np.nan, 1.8], "sex": ["M", "F", "M", "F"]}
    )
    broken = said.broken(frame, SCHEMA)
    assert [rows.tolist() for rows in broken.values()] == [
        [False, True, False, False],
        [False, True, False, True],
    ]


def test_arms_train_on_the_same_rows_and_only_ours_are_told_rules():
    """A peer's table without rules beside ours of other rows, or definitions told to the default arm."""
    default, declared, peer = (
        plausibility.training("breast_cancer", arm)
        for arm in (plausibility.DEFAULT, plausibility.DECLARED, "dpmm MST")
    )
    assert default.frame.equals(peer.frame) and default.frame.equals(declared.frame)
    assert (default.schema.constraints, peer.schema.constraints) == ((), ())
    assert declared.schema.constraints == tuple(STATEMENTS["breast_cancer"].by_definition)
    large = plausibility.training("randhie", plausibility.DEFAULT)
    assert len(large.frame) == large.schema.n_public == plausibility.MOST_ROWS
    assert len(large.schema.constraints) == 1
    assert plausibility.training("randhie", "dpmm MST").schema.constraints == ()


def test_a_statement_is_won_by_fewer_than_half_of_the_best_peers_rows():
    """The worst peer as the measure, or a statement lost that half of the best peer's rate cannot win."""
    cells = pd.DataFrame(
        {
            "real": [0.0, 1, 5, 0],
            "shuffled": [90.0] * 4,
            plausibility.DEFAULT: [9.0, 11, 9, 0],
            "dpmm MST": [20.0, 30, 10, 0],
            "google MST": [40.0, 20, 30, 7],
        }
    )
    assert plausibility.verdicts(cells, plausibility.DEFAULT) == [1, 1, 2]


def test_each_cell_is_a_median_over_seeds(monkeypatch):
    """A mean, or seeds of another epsilon."""
    monkeypatch.setattr(plausibility, "real_rates", lambda table: {"real": {"a": 1.0}})
    records = [
        {"table": "t", "arm": "x", "epsilon": epsilon, "rates": {"a": rate}}
        for epsilon, rate in ((1.0, 4.0), (1.0, 5.0), (1.0, 60.0), (3.0, 2.0))
    ]
    found = plausibility.summary([*records, {"table": "t", "arm": "x", "epsilon": 3.0}])
    assert found[["arm", "epsilon", "seeds", "rate"]].to_numpy().tolist() == [
        ["x", 1.0, 3, 5.0],
        ["x", 3.0, 1, 2.0],
        ["real", 0.0, 1, 1.0],
    ]
