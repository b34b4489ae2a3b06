"""The JSON Schema of schema files allows what the package reads, and marks what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from visits import VISITS

from dpsynth import datasets
from dpsynth.cli import main
from dpsynth.files.text import dump_yaml, load_yaml
from dpsynth.patients.form import json_schema
from dpsynth.runs.config import RunConfig
from dpsynth.runs.form import run_form

FORM = jsonschema.Draft202012Validator(json_schema())


def plain(schema) -> dict:
    return yaml.safe_load(dump_yaml(schema.to_dict()))


def test_every_schema_of_the_package_has_the_form():
    """Catches a key that schemas may have and an editor would underline."""
    schemas = [datasets.card(name).table for name in datasets.names()]
    for schema in (*schemas, VISITS):
        FORM.validate(plain(schema))


@pytest.mark.parametrize(
    "change",
    [
        {"outcom": "sex"},
        {"columns": [{"name": "age", "kind": "int"}]},
        {"columns": [{"name": "age", "kind": "integer", "loweer": 0}]},
        {"rows": {"most": "eight", "order": "day"}},
        {"rows": {"most": 8, "order": "day", "sort": True}},
        {"files": {"labs.csv": {"columns": ["hdl"], "items": "test"}}},
    ],
)
def test_slips_are_marked(change):
    """Catches a form that allows a misspelt key, or a word where a number must be."""
    with pytest.raises(jsonschema.ValidationError):
        FORM.validate(plain(VISITS) | change)


RUN = jsonschema.Draft202012Validator(run_form())
CONFIGS = sorted((Path(__file__).parents[3] / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=[path.stem for path in CONFIGS])
def test_every_configuration_of_the_package_has_the_form(path: Path) -> None:
    """Catches an option of a generator that an editor would underline."""
    RUN.validate(load_yaml(path.read_text(encoding="utf-8")))
    RUN.validate(yaml.safe_load(RunConfig.from_yaml(path).to_yaml()))


@pytest.mark.parametrize(
    "change",
    [
        {"modle": {"epsilon": 1}},
        {"model": {"epsilon": "three"}},
        {"model": {"epsilon": 1, "stepps": 10, "generator": "wgan-gp"}},
        {"model": {"epsilon": 1, "steps": 10}},  # of another generator
        {"split": {"test_fraction": "half"}},
    ],
)
def test_slips_of_a_configuration_are_marked(change: dict) -> None:
    """Catches a form that allows a misspelt key, or an option of another generator."""
    with pytest.raises(jsonschema.ValidationError):
        RUN.validate({"dataset": "flchain", "model": {"epsilon": 1.0}} | change)


def test_the_command_prints_both(capsys: pytest.CaptureFixture[str]) -> None:
    """A form that other programs cannot ask for."""
    assert main(["schema", "json", "--run"]) == 0
    assert json.loads(capsys.readouterr().out) == run_form()
    assert main(["schema", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema()
