"""Protocols: those that come with the package, and what a wrong one says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from dpsynth import datasets
from dpsynth.datasets.cohorts.definitions import STUDIES
from dpsynth.datasets.table import Table
from dpsynth.errors import ConfigError
from dpsynth.research.replications.protocol import Protocol, find_protocol, protocol_names
from dpsynth.table.schema import Column, Schema

PAPERS = ("diabetes130-readmission", "flchain-mortality", "mimic3-heart-failure", "support2-mortality")
THESIS = ("aki-mortality", "diabetes-mortality", "icu-readmission")
GOOD: dict[str, Any] = {
    "name": "a-study",
    "title": "A study",
    "citation": "nobody",
    "question": "Does it?",
    "dataset": "support2",
    "studies": [{"model": "logistic: hospdead ~ age", "name": "one"}],
    "findings": [{"text": "It does.", "study": "one", "term": "age (years)", "effect": "above"}],
}
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=99, unit="years"),
        Column(name="stage", kind="categorical", categories=("I", "II"), missing=True),
        Column(name="hospdead", kind="binary", categories=(0, 1)),
    ),
    outcome="hospdead",
)
LATE = {
    "name": "late",
    "kind": "integer",
    "lower": 0,
    "upper": 1,
    "missing": True,
    "derived": "(stage == 'II')",
}


def schema_of(protocol: Protocol) -> Schema:
    return datasets.card(protocol.dataset).table if protocol.dataset else STUDIES[str(protocol.cohort)].schema


def test_the_studies_that_there_are() -> None:
    """A protocol that is not found, or a file in the folder that is none."""
    assert protocol_names() == tuple(sorted((*PAPERS, *THESIS, "icu-mortality")))


@pytest.mark.parametrize("name", protocol_names())
def test_protocols_fit_their_tables(name: str) -> None:
    """A column, term, category or cohort that does not exist would be found after hours of fits only."""
    protocol = find_protocol(name)
    assert protocol.name == name
    protocol.check(schema_of(protocol))
    assert protocol.epsilons == (1.0, 3.0, 10.0) and protocol.seeds == 5 and protocol.baseline is not None
    assert Protocol.from_dict(yaml.safe_load(protocol.to_yaml())) == protocol


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_says_where_it_was_read(name: str) -> None:
    """A number that nobody can trace: the file says which text was read, and each number where it stands."""
    protocol = find_protocol(name)
    file = Path(__file__).parents[3] / "configs" / "studies" / f"{name}.yaml"
    assert "abstract" in file.read_text(encoding="utf-8").splitlines()[0]
    assert 3 <= len(protocol.findings) <= 6
    assert all(f.reported.where for f in protocol.findings if f.reported)


@pytest.mark.parametrize("name", THESIS)
def test_the_thesis_form(name: str) -> None:
    """Section 3.4: half the records, two sets, two models (ten where the outcome is rarest)."""
    protocol = find_protocol(name)
    assert (protocol.test_fraction, protocol.sets, protocol.cohort) == (0.5, 2, name)
    assert protocol.restarts == (10 if name == "icu-readmission" else 2)
    assert protocol.baseline is not None and protocol.baseline.training_steps == 200_000 * 5


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"colour": "red"}, "colour"),
        ({"title": None}, "title"),
        ({"cohort": "aki-mortality"}, "one of dataset and cohort is required, and both are given"),
        ({"dataset": None}, "one of dataset and cohort is required, and neither is given"),
        ({"epsilons": [1, 1]}, "epsilons: at least one value, and none twice, is needed"),
        ({"epsilons": [0]}, "epsilons"),
        ({"test_fraction": 1}, "test_fraction"),
        ({"classifiers": ["forest"]}, "got forest"),
        ({"name": "Study 1"}, "name"),
        ({"studies": ["hospdead ~ age", "hospdead ~ stage"]}, "two studies are called 'hospdead'"),
        ({"studies": []}, "findings name the study 'one', which is none of none"),
        ({"studies": [], "findings": [], "coverage": {"repetitions": 5}}, "coverage needs studies"),
        ({"columns": "late"}, "a list of columns, each a mapping of fields, is required"),
        ({"columns": [{"name": "x", "kind": "integer", "lower": 0, "upper": 1}]}, "'x' has no formula"),
        ({"columns": [{"name": "x", "kind": "whole"}]}, "column 'x'"),
    ],
)
def test_a_wrong_protocol_is_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    """A slip that passes, a traceback, or a message that does not say which key."""
    given = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
    with pytest.raises(ConfigError) as caught:
        Protocol.from_dict(given)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"findings": [{**GOOD["findings"][0], "term": "sex"}]},
            "'sex' is no term of 'one' (terms: age (years))",
        ),
        ({"studies": [{"model": "hospdead ~ weight", "name": "one"}]}, "weight"),
        ({"columns": [{**LATE, "derived": "(stage == 'III')"}]}, "'III' is not a declared category"),
        ({"columns": [{**LATE, "name": "age"}]}, "the column 'age' is given twice"),
    ],
)
def test_what_does_not_fit_the_table_is_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    """A protocol of another table that starts all the same."""
    with pytest.raises(ConfigError) as caught:
        Protocol.from_dict({**GOOD, **changes}).check(SCHEMA)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="the table has no outcome"):
        Protocol.from_dict(GOOD).check(SCHEMA.select(["age"]))


def test_a_study_adds_its_columns_to_the_table_once() -> None:
    """A derived column that is not computed, is lost on the way to a file, or is added twice."""
    studies = [{"model": "hospdead ~ age + late", "name": "one"}]
    protocol = Protocol.from_dict({**GOOD, "columns": [LATE], "studies": studies})
    frame = pd.DataFrame({"age": [40, 17, 60], "stage": ["I", "II", None], "hospdead": [0, 1, 0]})
    table = protocol.table(Table(frame, SCHEMA, "t"))
    assert table.schema.names == ("age", "stage", "hospdead", "late") and table.schema.outcome == "hospdead"
    assert table.frame["late"].astype(float).tolist()[:2] == [0.0, 1.0] and pd.isna(table.frame["late"][2])
    assert table.frame["age"][1] == 17  # values beyond the bounds stay what they are until they are encoded
    assert protocol.table(table) is table
    protocol.check(SCHEMA)
    protocol.check(table.schema)
    again = Protocol.from_dict(yaml.safe_load(protocol.to_yaml()))
    assert again == protocol and again.columns == (Column(**LATE),)
    untouched = Table(frame, SCHEMA, "t")
    assert Protocol.from_dict(GOOD).table(untouched) is untouched
