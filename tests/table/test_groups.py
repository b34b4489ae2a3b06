"""Groups of yes/no columns in a schema."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import SchemaError
from dpsynth.patients.schema import PatientSchema
from dpsynth.table import Column, Schema, infer_schema

TEXT = """
outcome: died
groups:
- columns: icd_*
  at_most: 2
- columns: [drug.a, drug.b]
  at_most: 9
columns:
- {name: age, kind: integer, lower: 18, upper: 95}
- {name: icd_401, kind: binary, categories: ["no", "yes"]}
- {name: drug.b, kind: binary, categories: [0, 1]}
- {name: died, kind: binary, categories: [0, 1]}
- {name: icd_250, kind: binary, categories: ["no", "yes"]}
- {name: drug.a, kind: binary, categories: [0, 1]}
- {name: drugXa, kind: binary, categories: [0, 1]}
"""
SCHEMA = Schema.from_yaml(TEXT)


def changed(**fields: object) -> Schema:
    return Schema(**{**dict(SCHEMA), **fields})


def test_groups_are_read_and_written() -> None:
    """A pattern that takes columns of others, an order that is not the table's, or a key lost in the file."""
    names = [tuple(column.name for column in columns) for _, columns in SCHEMA.group_columns]
    assert names == [("icd_401", "icd_250"), ("drug.b", "drug.a")]
    assert SCHEMA.ungrouped.names == ("age", "died", "drugXa") and not SCHEMA.ungrouped.groups
    assert SCHEMA.ungrouped.outcome == "died"
    again = Schema.from_yaml(SCHEMA.to_yaml())
    assert again == SCHEMA and again.digest() == SCHEMA.digest() != SCHEMA.ungrouped.digest()
    fewer = changed(groups=({"columns": "icd_*", "at_most": 1}, SCHEMA.groups[1]))
    assert fewer.digest() != SCHEMA.digest()
    assert "group: icd_*, at most 2 of a row" in repr(SCHEMA)


def test_groups_follow_their_columns() -> None:
    """A part of a schema whose group names columns that are gone, or holds them all."""
    part = SCHEMA.select(["age", "drug.a", "icd_250"])
    assert [(group.columns, group.at_most) for group in part.groups] == [(("icd_250",), 2), (("drug.a",), 9)]
    assert not SCHEMA.select(["icd_250", "icd_401"]).groups
    assert not SCHEMA.select(["icd_250", "drug.a"]).groups
    assert SCHEMA.modelled.groups == SCHEMA.with_n_public(9).groups == SCHEMA.groups


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"groups": ({"columns": "ops_*", "at_most": 2},)}, r"'ops_\*' is the name of no column"),
        ({"groups": ({"columns": (), "at_most": 2},)}, "must name at least one column"),
        ({"groups": ({"columns": "icd_*", "at_most": 0},)}, "at_most of icd_. must be at least 1, got 0"),
        ({"groups": ({"columns": "icd_*", "at_most": "2"},)}, "at_most must be a valid integer, got '2'"),
        ({"groups": ({"columns": "icd_*", "most": 2},)}, "most is not a known key"),
        ({"groups": ({"columns": "icd_*", "at_most": 2},) * 2}, "'icd_401' is in two groups"),
        ({"groups": ({"columns": ["icd_*", "age"], "at_most": 2},)}, "'age' is of kind integer"),
        ({"groups": ({"columns": "d*", "at_most": 2},)}, "'died' is the outcome"),
        ({"groups": ({"columns": ["age", "*"], "at_most": 2},), "outcome": None}, "'age' is of kind integer"),
        ({"constraints": ("age > 30 or icd_250 = no",)}, "'icd_250' is read by 'age > 30 or icd_250 = no'"),
    ],
)
def test_what_a_group_cannot_be_is_said(fields: dict, message: str) -> None:
    """A group that a fit would get wrong, or a sentence that names neither the group nor the column."""
    with pytest.raises(SchemaError, match=rf"^schema: .*groups.*{message}"):
        changed(**fields)


def test_columns_of_a_group_are_whole_and_not_alone() -> None:
    """A missing value that is read as a zero, or a generator without any column."""
    missing = tuple(
        column.model_copy(update={"missing": column.name == "icd_250"}) for column in SCHEMA.columns
    )
    with pytest.raises(SchemaError, match="'icd_250' may be missing"):
        changed(columns=missing)
    with pytest.raises(SchemaError, match="groups hold every column"):
        SCHEMA.select(["icd_250", "icd_401"])._with(groups=({"columns": "icd_*", "at_most": 2},))
    read = Column(name="any", kind="integer", lower=0, upper=99, derived="age + `drug.a`")
    with pytest.raises(SchemaError, match=r"'drug\.a' is read by"):
        changed(columns=(*SCHEMA.columns, read))


def test_patients_with_several_rows_have_no_groups() -> None:
    """A key that is ignored, or a message that leads nowhere."""
    rows = {**SCHEMA.to_dict(), "unit": "id", "rows": {"most": 3, "order": "day"}}
    with pytest.raises(SchemaError, match="groups are for tables with one row for each record"):
        PatientSchema.from_dict(rows)


def test_a_draft_asks_about_many_codes() -> None:
    """A wide table that is fitted pair by pair, because nobody was told of groups."""
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.integers(0, 2, (40, 31)), columns=[f"icd_{k}" for k in range(31)])
    asked = [remark for remark in infer_schema(wide).questions if "groups" in remark.text]
    assert [remark.detail for remark in asked] == ["31 columns are yes/no"]
    narrow = infer_schema(wide.drop(columns=["icd_0", "icd_1"]))
    assert not any("groups" in remark.text for remark in narrow.questions)


def test_rows_beyond_a_group_are_counted() -> None:
    """A count of rows that are at the limit, of the first category, or of columns outside."""
    codes = pd.DataFrame(
        {"icd_401": ["yes", "yes", "no"], "icd_250": ["no", "yes", "no"], "drugXa": [1, 1, 1]}
    )
    for most, count in ((0, 2), (1, 1), (2, 0)):
        group = SCHEMA.groups[0].model_copy(update={"at_most": most})
        assert group.beyond(codes, SCHEMA.columns) == count
