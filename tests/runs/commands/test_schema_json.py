"""The JSON Schema of schema files allows what the package reads, and marks what it refuses."""

from __future__ import annotations

import jsonschema
import pytest
import yaml
from visits import VISITS

from dpsynth import datasets
from dpsynth.files.text import dump_yaml
from dpsynth.patients.form import json_schema

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
