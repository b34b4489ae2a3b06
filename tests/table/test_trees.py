"""Public trees of categories in a schema, and in a draft's questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth import DPMarginals, load
from dpsynth.errors import PrivacyError, SchemaError
from dpsynth.patients.form import json_schema
from dpsynth.patients.schema import PatientSchema, read_schema
from dpsynth.privacy import Ledger
from dpsynth.table import Column, Schema, infer_schema
from dpsynth.table.schema import TableSchema, require_reviewed
from dpsynth.table.trees import Tree

FILE = "code,block,chapter\nA1,A,I\nA2,A,I\nB1,B,I\n,,\nC1,C,II\nD1,D,II\n"


def column(**fields: Any) -> Column:
    return Column(**{"name": "diagnosis", "kind": "categorical", **fields})


def groups(one: Column) -> list[list[Any]]:
    """Groups of categories, by level."""
    return [
        [
            [c for c, own in zip(one.categories, level, strict=True) if own == group]
            for group in np.unique(level)
        ]
        for level in one.tree_levels
    ]


def test_a_tree_of_a_file_stands_in_the_schema(tmp_path: Path) -> None:
    """A file that must travel with each copy, or of which a schema of few codes holds all 70,000 rows."""
    (tmp_path / "icd.csv").write_text(FILE, encoding="utf-8")
    text = "columns:\n- {name: %s, kind: categorical, tree: {file: icd.csv}%s}\n"
    (path := tmp_path / "schema.yaml").write_text(text % ("all", ""), encoding="utf-8")
    whole = Schema.from_yaml(path)
    assert whole == read_schema(path) and whole["all"].categories == ("A1", "A2", "B1", "C1", "D1")
    assert groups(whole["all"]) == [
        [["A1", "A2"], ["B1"], ["C1"], ["D1"]],
        [["A1", "A2", "B1"], ["C1", "D1"]],
    ]
    path.write_text(text % ("some", ", categories: [C1, A2]"), encoding="utf-8")
    some = Schema.from_yaml(path)
    (tmp_path / "icd.csv").unlink()
    for schema in (whole, some):
        again = Schema.from_yaml(schema.to_yaml())
        assert again == schema and again.digest() == schema.digest()
    assert some["some"].tree == Tree(values=(("C1", "C", "II"), ("A2", "A", "I")))
    assert "B1" not in some.to_yaml()


def test_columns_of_a_file_are_chosen_by_name(tmp_path: Path) -> None:
    """A text beside each code that is taken for its parent."""
    rows = "text,chapter,code\nfirst,I,1\nsecond,I,2\nthird,II,3\n"
    (path := tmp_path / "t.csv").write_text(rows, encoding="utf-8")
    tree = {"file": str(path), "columns": ["code", "chapter"]}
    assert groups(column(categories=(3, 1, 2), tree=tree)) == [[[1, 2], [3]]]


def test_prefixes_are_groups() -> None:
    """Characters counted from one too few or too many."""
    one = column(categories=("250.1", "250.8", "251", "V58", "2"), tree={"prefixes": [1, 3]})
    assert groups(one) == [
        [["2"], ["250.1", "250.8"], ["251"], ["V58"]],
        [["250.1", "250.8", "251", "2"], ["V58"]],
    ]
    schema = Schema(columns=(one,))
    assert Schema.from_yaml(schema.to_yaml()) == schema and schema.to_dict()["columns"][0]["tree"] == {
        "prefixes": [1, 3]
    }


@given(st.lists(st.text("ABC.", min_size=1, max_size=5), min_size=2, unique=True), st.sets(st.integers(1, 6)))
def test_levels_of_prefixes_are_nested(codes: list[str], lengths: set[int]) -> None:
    """Codes of one group in two groups of the level above."""
    for fine, coarse in zip(
        levels := Tree(prefixes=(*sorted(lengths), 7)).levels(codes), levels[1:], strict=False
    ):
        assert all(len({*coarse[fine == group]}) == 1 for group in fine)
        assert len({*fine}) >= len({*coarse})


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("code\nA\n", "no level above its categories"),
        ("code,block\nA,\n", "an empty cell in column 2, of 'A'"),
        ("code,block\nA,x\nB\n", "an empty cell in column 2, of 'B'"),
        ("code,block\nA,x\nA,y\n", "the category 'A' is in 'x' and in 'y'"),
        ("code,block,chapter\nA,x,1\nB,x,2\n", "the group 'x' is in '1' and in '2'"),
        ("code,block\n", "no rows below its header"),
        ("", "no rows below its header"),
    ],
)
def test_a_file_that_is_no_tree_is_refused(tmp_path: Path, rows: str, said: str) -> None:
    """A code pooled with one of its two parents by chance, in silence."""
    (path := tmp_path / "t.csv").write_text(rows, encoding="utf-8")
    with pytest.raises(SchemaError, match=f"column 'diagnosis': .*t.csv: .*{said}"):
        column(tree={"file": str(path)})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"categories": ("A1", "Z9"), "tree": {"values": [["A1", "A"]]}}, "'Z9' is not in the tree"),
        ({"categories": ("A1", "Z9"), "tree": {"prefixes": [3, 1]}}, "must grow from 1 on"),
        ({"categories": ("A1", "Z9"), "tree": {"prefixes": [0, 1]}}, "must grow from 1 on"),
        ({"categories": ("A1", "Z9"), "tree": {"prefixes": []}}, "needs prefixes"),
        ({"categories": (1, 2, 3), "tree": {"prefixes": [1]}}, "in quotes"),
        ({"categories": ("A1", "Z9"), "tree": 3}, "a file or prefixes, got 3"),
        ({"categories": 3, "tree": {"prefixes": [1]}}, "categories"),
        ({"tree": {"prefixes": [1]}}, "categories are required"),
        ({"tree": {"values": [["a", "b"], ["c"]]}}, "2 columns, but 1 values for 'c'"),
        ({"tree": {"file": "nowhere.csv"}}, "nowhere.csv: cannot be read"),
        ({"tree": {"file": "nowhere.csv", "prefixes": [1]}}, "Leave one of them"),
        ({"tree": {"file": "nowhere.csv", "columns": "code"}}, "a list of names"),
        ({"kind": "ordinal", "categories": ("A1", "A2"), "tree": {"prefixes": [1]}}, "kind 'ordinal'"),
        ({"kind": "binary", "categories": ("A1", "A2"), "tree": {"prefixes": [1]}}, "kind 'binary'"),
        ({"kind": "integer", "lower": 0, "upper": 9, "tree": {"prefixes": [1]}}, "kind 'integer'"),
        (
            {"kind": "date", "lower": "2000-01-01", "upper": "2001-01-01", "tree": {"prefixes": [1]}},
            "kind 'date'",
        ),
    ],
)
def test_a_wrong_tree_is_refused(fields: dict[str, Any], said: str) -> None:
    """A tree that does nothing, or a traceback."""
    with pytest.raises(SchemaError, match=f"column 'diagnosis': .*{said}"):
        column(**fields)


def test_a_missing_column_of_a_file_is_named(tmp_path: Path) -> None:
    """A KeyError."""
    (path := tmp_path / "t.csv").write_text(FILE, encoding="utf-8")
    with pytest.raises(SchemaError, match="no column 'part'"):
        column(tree={"file": str(path), "columns": ["code", "part"]})


def test_the_form_of_schemas_has_trees() -> None:
    """An editor that marks a tree as an error."""
    form = json.dumps(json_schema())
    assert all(f'"{name}"' in form for name in ("tree", "prefixes"))


def of_patients(folder: Path) -> TableSchema:
    """Patients with several diagnoses, the groups of which stand in a file."""
    (folder / "icd.csv").write_text(FILE, encoding="utf-8")
    (path := folder / "schema.yaml").write_text(
        "rows: {most: 3, order: day}\nunit: id\nn_public: 200\ncolumns:\n"
        "- {name: day, kind: integer, lower: 0, upper: 99}\n"
        "- {name: diagnosis, kind: categorical, tree: {file: icd.csv}}\n",
        encoding="utf-8",
    )
    return read_schema(path)


def test_the_level_of_a_patient_keeps_the_tree(tmp_path: Path) -> None:
    """A patient's most frequent diagnosis that is counted without its tree, or a file that is not found."""
    schema = of_patients(tmp_path)
    assert isinstance(schema, PatientSchema)
    level = schema.levels["diagnosis mode"]
    assert level.tree == schema.column("diagnosis").tree and groups(level) == groups(
        schema.column("diagnosis")
    )


def test_a_model_of_patients_keeps_the_tree(tmp_path: Path) -> None:
    """A tree that a saved model cannot hold, or codes of no patient."""
    schema, rng = of_patients(tmp_path), np.random.default_rng(0)
    codes = schema.column("diagnosis").categories
    rows = {
        "id": np.repeat(np.arange(200), 2),
        "day": rng.integers(0, 100, 400),
        "diagnosis": rng.choice(codes, 400),
    }
    model = DPMarginals(epsilon=3.0, random_state=0).fit(pd.DataFrame(rows), schema=schema, ledger=Ledger())
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.model_.declared_schema == schema
    assert {*again.sample(100, random_state=0)["diagnosis"]} <= {*codes}


def test_a_draft_offers_the_tree_and_keeps_it_unreviewed() -> None:
    """Codes of records that count as public because a tree was chosen for them."""
    rng = np.random.default_rng(0)
    codes = [f"{a}{b:02d}.{c}" for a in "CEIJ" for b in (10, 11, 25, 48, 50) for c in (0, 1, 9)]
    frame = pd.DataFrame({"diagnosis": rng.choice(codes, 2000), "age": rng.integers(18, 99, 2000)})
    asked = next(one for one in infer_schema(frame).questions if one.question == "code_tree")
    assert asked.answers[0].word == "tree"
    answer = {"question": "code_tree", "column": "diagnosis", "answer": "tree"}
    drafted = infer_schema(frame, answers=[answer]).schema
    made = drafted["diagnosis"]
    assert {*made.categories} == {*codes} and [len(level) for level in groups(made)] == [20, 16, 4]
    assert {"categories", "tree"} <= {*made.unreviewed} and made.unconfirmed
    with pytest.raises(PrivacyError, match=r"diagnosis \(.*tree"):
        require_reviewed(drafted)
    assert Schema.from_yaml(drafted.to_yaml()) == drafted
