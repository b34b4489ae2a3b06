"""Allowed combinations of categories."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth import DPMarginals
from dpsynth.cli import main
from dpsynth.errors import SchemaError
from dpsynth.patients.schema import read_schema
from dpsynth.privacy import Ledger
from dpsynth.table import Column, Schema
from dpsynth.table.pairs import Pairs

HOSPITALS = tuple(f"H{i:02d}" for i in range(40))
REGION = {hospital: f"R{i % 7}" for i, hospital in enumerate(HOSPITALS)}
COLUMNS = (
    Column(name="hospital", kind="categorical", categories=HOSPITALS),
    Column(name="region", kind="categorical", categories=tuple(f"R{i}" for i in range(7)), missing=True),
    Column(name="age", kind="integer", lower=18, upper=100),
)
PAIRS = Pairs(columns=("hospital", "region"), values=tuple(REGION.items()))


def table(n: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    hospital = rng.choice(HOSPITALS, n)
    region = np.array([REGION[one] for one in hospital], dtype=object)
    region[rng.random(n) < 0.05] = None
    return pd.DataFrame({"hospital": hospital, "region": region, "age": rng.integers(18, 101, n)})


@pytest.mark.parametrize("epsilon", [0.3, None])
def test_no_sample_has_an_impossible_pair(epsilon: float | None) -> None:
    """A hospital in a region where it is not, because the noise of a count said so."""
    schema = Schema(columns=COLUMNS, constraints=(PAIRS,), n_public=3000)
    model = DPMarginals(epsilon=epsilon, random_state=0).fit(table(), schema=schema, ledger=Ledger())
    sample = model.sample(5000, random_state=1).dropna()
    assert len(sample) > 4000 and (sample["hospital"].map(REGION) == sample["region"]).all()
    # Awake: without the rule such noise makes impossible ones.
    if epsilon is not None:
        bare = schema.model_copy(update={"constraints": ()})
        loose = DPMarginals(epsilon=epsilon, random_state=0).fit(table(), schema=bare, ledger=Ledger())
        found = loose.sample(5000, random_state=1).dropna()
        assert (found["hospital"].map(REGION) != found["region"]).mean() > 0.05


@given(st.sets(st.tuples(st.sampled_from("ABC"), st.sampled_from([1, 2]), st.booleans()), min_size=1))
@settings(max_examples=40, deadline=None)
def test_a_rule_is_true_of_the_listed_combinations_alone(allowed: set[tuple[str, int, bool]]) -> None:
    """A combination that is taken for another one: every one is tried."""
    columns = (
        Column(name="a", kind="categorical", categories=("A", "B", "C"), missing=True),
        Column(name="b", kind="binary", categories=(1, 2)),
        Column(name="c", kind="binary", categories=(False, True)),
    )
    used = [{one[k] for one in allowed} for k in range(3)]
    if [len(values) for values in used] != [3, 2, 2]:
        return  # a category in no combination is refused
    rule = Pairs(columns=("a", "b", "c"), values=tuple(allowed)).rule(columns)
    every = list(product("ABC", (1, 2), (False, True)))
    broken = rule.broken(pd.DataFrame(every, columns=["a", "b", "c"]))
    assert [one not in allowed for one in every] == broken.tolist()
    assert not rule.broken(pd.DataFrame([(None, 1, True)], columns=["a", "b", "c"])).any()


def test_pairs_of_a_file_stand_in_the_schema(tmp_path: Path) -> None:
    """A file that must travel with each copy of the schema, or whose later change changes a fit."""
    lines = [f"{hospital},{region},ignored" for hospital, region in REGION.items()]
    (tmp_path / "hospitals.csv").write_text("\n".join(["hospital,region,city", *lines]), encoding="utf-8")
    plain = Schema(columns=COLUMNS, n_public=3000).to_yaml()
    text = plain + "constraints:\n- {columns: [hospital, region], file: hospitals.csv}\n- age >= 20\n"
    (path := tmp_path / "schema.yaml").write_text(text, encoding="utf-8")
    schema = Schema.from_yaml(path)
    assert schema == read_schema(path) and schema.constraints == (PAIRS, "age >= 20")
    (tmp_path / "hospitals.csv").unlink()
    again = Schema.from_yaml(schema.to_yaml())
    assert again == schema and again.digest() == schema.digest()
    assert [rule.text for rule in schema.rules] == ["allowed pairs of hospital and region", "age >= 20"]
    assert schema.select(["hospital", "age"]).constraints == ("age >= 20",)
    table(50).to_csv(tmp_path / "table.csv", index=False)
    schema.to_yaml(path)
    assert main(["schema", "check", str(path), "--data", str(tmp_path / "table.csv")]) == 0


WRONG = [
    ({"columns": ["hospital", "city"], "values": [["H00", "R0"]]}, "'city' is not a column"),
    ({"columns": ["hospital", "age"], "values": [["H00", 3]]}, "'age' is a column of numbers"),
    (
        {"columns": ["hospital", "region"], "values": [["H00", "R0"]]},
        "'H01' of 'hospital' is in no",
    ),
    ({"columns": ["hospital", "region"], "values": [["H00"]]}, "has 1 values"),
    ({"columns": ["hospital", "region"]}, "need values, or a file"),
    ({"columns": ["hospital", "hospital"], "values": [["H00", "H00"]]}, "must be different"),
    ({"columns": ["hospital", "region"], "file": "absent.csv"}, "absent.csv: cannot be read"),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[said for _, said in WRONG])
def test_wrong_pairs_are_named(given: dict[str, object], said: str) -> None:
    """A slip that leaves a rule out, or a traceback."""
    with pytest.raises(SchemaError, match=said):
        Schema.from_dict({**Schema(columns=COLUMNS).to_dict(), "constraints": [given]})
