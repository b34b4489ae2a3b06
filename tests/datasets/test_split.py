"""The split into training and test halves, and tables of one's own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from visits import STAYS, VISITS, stays, visits

from dpsynth.datasets import Table, independent_split, open_table, train_test
from dpsynth.datasets.table import PatientTable, training_schema
from dpsynth.errors import DataError, SchemaError
from dpsynth.table import Column, Schema, write_table

SCHEMA = Schema(
    columns=(
        Column(name="i", kind="integer", lower=0, upper=1000),
        Column(name="y", kind="categorical", categories=("a", "b", "c"), missing=True),
    ),
    outcome="y",
)


def make(n: int, seed: int = 0, n_public: int | None = None, outcome: bool = True) -> Table:
    rng = np.random.default_rng(seed)
    y = rng.choice(np.array(["a", "b", "c", None], dtype=object), n, p=[0.6, 0.25, 0.05, 0.1])
    schema = SCHEMA.with_n_public(n_public)
    frame = schema.conform(pd.DataFrame({"i": np.arange(n), "y": y})).frame
    return Table(frame, schema if outcome else Schema(columns=schema.columns, n_public=n_public), "made")


def test_the_training_parts_schema_is_known_beforehand() -> None:
    """What is said of a run before its table is read, with another number of records than the run's."""
    for split in [independent_split, train_test]:
        for n_public in [None, 1, 7, 60]:
            for fraction in [0.3, 0.5, 0.7]:
                table = make(60, n_public=n_public)
                assert split(table, fraction)[0].schema == training_schema(table.schema, fraction)


@given(st.integers(4, 60), st.floats(0.3, 0.7), st.integers(0, 9), st.booleans())
@settings(max_examples=60, deadline=None)
def test_partition_with_exact_sizes(n: int, fraction: float, seed: int, outcome: bool) -> None:
    """A record in both halves or in none, a size that hangs on the outcome, or a class out of proportion."""
    table = make(n, seed, n_public=n, outcome=outcome)
    train, test = train_test(table, fraction, seed)
    together = sorted([*train.frame["i"], *test.frame["i"]])
    assert together == list(range(n))
    assert len(test.frame) == round(fraction * n) == test.schema.n_public
    assert len(train.frame) == train.schema.n_public
    assert train.frame["i"].is_monotonic_increasing
    if outcome:
        counts = table.frame["y"].value_counts(dropna=False)
        for value, count in counts.items():
            in_test = (test.frame["y"].isna() if pd.isna(value) else test.frame["y"] == value).sum()
            assert abs(in_test - count * len(test.frame) / n) < 1


def test_public_sizes_ignore_the_frame() -> None:
    """n_public read off the frame's length would make every rule that uses it depend on the records."""
    for n in (99, 100, 101):
        train, test = train_test(make(n, n_public=100), 0.3)
        assert (train.schema.n_public, test.schema.n_public) == (70, 30)
    train, test = train_test(make(100), 0.3)
    assert train.schema.n_public is test.schema.n_public is None


def test_seed() -> None:
    """The same seed must give the same split, another one another."""
    table = make(50)
    first = train_test(table, seed=1)[0].frame
    pd.testing.assert_frame_equal(first, train_test(table, seed=1)[0].frame)
    assert not first.equals(train_test(table, seed=2)[0].frame)


@pytest.mark.parametrize("split", [independent_split, train_test])
def test_a_patient_with_all_rows_is_in_one_part(split) -> None:
    """Rows of one patient on both sides, a row that is lost, or public numbers that count rows."""
    table = PatientTable(visits(60, seed=3), VISITS.with_n_public(60), "made")
    train, test = split(table, 0.3, 1)
    assert not set(train.frame["id"]) & set(test.frame["id"])
    assert len(train.frame) + len(test.frame) == len(table.frame)
    assert train.records + test.records == 60 and (train.schema.n_public, test.schema.n_public) == (42, 18)
    assert test.records == 18 or split is independent_split


def test_patients_are_divided_in_proportion_to_their_outcome() -> None:
    """Catches strata of rows, and a death that counts only in the row where it stands."""
    frame = stays(200, seed=1)
    schema = STAYS.model_copy(update={"outcome": "died"})
    train, test = train_test(PatientTable(frame, schema, "made"), 0.25, 1)
    dead = [set(part.frame.loc[part.frame["died"] == "yes", "id"]) for part in (train, test)]
    whole = frame.loc[frame["died"] == "yes", "id"].nunique()
    assert test.records == 50 and abs(len(dead[1]) - whole / 4) < 1 and not dead[0] & dead[1]


@given(st.integers(3, 40), st.integers(0, 9), st.integers(0, 10**6), st.sampled_from(["new", "0", 1e6]))
@settings(max_examples=60, deadline=None)
def test_one_patient_more_moves_no_other(n, seed, key, name) -> None:
    """A split that hangs on other patients, on the number of rows, or on the type of all identifiers."""
    frame = visits(n, seed)
    frame = frame.assign(id=frame["id"] + 1)
    more = visits(1, seed + 1).assign(id=name)
    whole = pd.concat([frame, more], ignore_index=True)
    try:
        without, among = (independent_split(PatientTable(f, VISITS, ""), 0.5, key)[0] for f in (frame, whole))
    except DataError:  # one side of so small a table is empty
        return
    assert set(among.frame["id"]) - {name} == set(without.frame["id"])


def test_patients_without_identifier_are_refused_before_a_split() -> None:
    """A row that belongs to nobody, or a table without the column, in either half."""
    frame = visits(9).astype({"id": object})
    frame.loc[2, "id"] = None
    absent = frame.drop(columns="id")
    for wrong, said in ((absent, "lacks the column 'id'"), (frame, "row 3: 'id' is missing")):
        with pytest.raises(DataError, match=said):
            independent_split(PatientTable(wrong, VISITS, "made"))
    with pytest.raises(DataError, match="a table of 1 patients cannot be split"):
        train_test(PatientTable(visits(1), VISITS, "made"))


def test_two_records() -> None:
    """The smallest table that can be split."""
    train, test = train_test(make(2))
    assert len(train.frame) == len(test.frame) == 1


def test_open_table(tmp_path: Path) -> None:
    """A table of one's own must come out with its schema, its outcome and a name."""
    table = make(5)
    write_table(table.frame, tmp_path / "mine.csv")
    table.schema.to_yaml(tmp_path / "mine.yaml")
    for schema in (tmp_path / "mine.yaml", str(tmp_path / "mine.yaml"), table.schema):
        opened = open_table(tmp_path / "mine.csv", schema)
        assert (opened.name, opened.outcome, opened.card) == ("mine", "y", None)
        pd.testing.assert_frame_equal(opened.frame, table.frame)
    with pytest.raises(SchemaError, match="cannot be read"):
        open_table(tmp_path / "mine.csv", tmp_path / "none.yaml")


@given(st.integers(5, 60), st.floats(0.2, 0.8), st.integers(0, 9), st.integers(0, 10**6), st.integers(1, 60))
@settings(max_examples=80, deadline=None)
def test_one_record_less_is_one_record_less_in_the_training_part(n, fraction, seed, pick, different) -> None:
    """A split that one record can reshuffle, equal ones among them: no guarantee about the table."""
    table = make(n, seed)
    table = Table(table.frame.assign(i=table.frame["i"] % different), table.schema, "made")
    row = pick % n
    fewer = Table(table.frame.drop(index=row).reset_index(drop=True), table.schema, "made")
    try:
        parts = [independent_split(t, fraction, seed)[0].frame for t in (table, fewer)]
    except DataError:  # one side of so small a table is empty
        return
    whole, part, one = (
        Counter(map(repr, frame.astype(object).itertuples(index=False, name=None)))
        for frame in (*parts, table.frame.iloc[[row]])
    )
    assert whole in (part, part + one)


def test_equal_records_part_as_others_do() -> None:
    """Copies that all train or all test: held-out records would be another distribution."""
    table = make(900)
    same = Table(table.frame.assign(i=table.frame["i"].clip(0, 50), y="a"), table.schema, "made")
    assert abs(len(independent_split(same, 0.3, seed=2)[1].frame) / 900 - 0.3) < 0.06


def test_independent_split_takes_its_share() -> None:
    """A hash that is not uniform, or a fraction that means the other part."""
    train, test = independent_split(make(900, n_public=4000), 0.3, seed=2)
    assert abs(len(test.frame) / 900 - 0.3) < 0.06
    assert (train.schema.n_public, test.schema.n_public) == (2800, 1200)
    other = independent_split(make(900), 0.3, seed=3)[1]
    assert len(set(other.frame["i"]) & set(test.frame["i"])) < 0.45 * len(test.frame)
