"""A row is read alike in a table of any length: no fault begins at a size."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from visits import VISITS, histories_of, read_by_pandas, visits

from dpsynth.table import parquet
from dpsynth.table.files import read_table
from dpsynth.table.parquet import ParquetTable, read_part
from dpsynth.table.reader import Reader
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=2000, missing=True, missing_codes=(999,)),
        Column(name="lab", kind="continuous", lower=0, upper=20, missing=True, missing_codes=(9.99, -1.0)),
        Column(name="dose", kind="continuous", lower=0, upper=5, decimals=1, special=(99.9,)),
        Column(
            name="seen",
            kind="date",
            lower="1900-01-01",
            upper="2020-12-31",
            missing=True,
            missing_codes=("1900-01-01",),
        ),
        Column(
            name="grade", kind="categorical", categories=("a", "b", "A"), missing=True, missing_codes=("9",)
        ),
        Column(name="sex", kind="binary", categories=("F", "M"), missing=True),
    ),
    missing_words=("unknown",),
)
#: Codes of missing values, numbers close to them, clipped numbers, and text that is one of the words.
FEW = pd.DataFrame(
    {
        "age": ["999", "998", "1000", "999.0", "0", "2000", "unknown", "3000"],
        "lab": ["9.99", "9.990000001", "9.99001", "9.98", "-1", "9.9900", "1e-9", None],
        "dose": ["99.9", "4.9", "5", "0.04", "0.1", "99.90", "3.3", "0"],
        "seen": [
            "1900-01-01",
            "1900-01-02",
            "2020-12-31",
            None,
            "1999-12-31",
            "2000-02-29",
            "unknown",
            "1901-01-01",
        ],
        "grade": ["9", "a", "A", "b", "unknown", "a ", None, "A"],
        "sex": ["F", "M", None, "F", "unknown", "M", "F", "M"],
    },
    dtype=object,
)
#: One row more than the numbers from which a fault might begin, and than the longest block of a reader.
LENGTHS = [1_001, pytest.param(parquet.BATCH_ROWS + 1, marks=pytest.mark.slow)]


def many(n: int) -> np.ndarray:
    """Places of n rows among the few ones, each often."""
    return np.random.default_rng(0).integers(0, len(FEW), n)


def expected(place: np.ndarray) -> pd.DataFrame:
    """The rows, each of which was read alone."""
    alone = [SCHEMA.conform(FEW.iloc[[row]]).frame for row in range(len(FEW))]
    return pd.concat(alone).iloc[place].reset_index(drop=True)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("numbers", [(), ("lab", "dose")])
def test_a_row_of_a_long_frame_is_read_as_if_it_were_alone(n, numbers):
    """Catches a code that is matched with a tolerance from 1,000 rows on, and another reading by blocks."""
    place = many(n)
    frame = FEW.iloc[place].reset_index(drop=True).astype(dict.fromkeys(numbers, float))
    found = SCHEMA.conform(frame)
    pd.testing.assert_frame_equal(found.frame, expected(place), check_exact=True)
    clipped = [SCHEMA.conform(FEW.iloc[[row]]).clipped for row in range(len(FEW))]
    for name, number in found.clipped.items():
        assert number == sum(clipped[row].get(name, 0) for row in place)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_row_of_a_long_file_is_read_as_if_it_were_alone(n, suffix, tmp_path):
    """Catches readers that go by blocks of a file, of which one reads numbers or text otherwise."""
    place, path = many(n), tmp_path / f"table{suffix}"
    frame = FEW.iloc[place].reset_index(drop=True)
    if suffix == ".csv":
        frame.to_csv(path, index=False)
        found = [SCHEMA.conform(read_table(path, SCHEMA)).frame]
    else:
        frame.to_parquet(path)
        parts = ParquetTable(path).parts
        found = [part for group in parts for part in read_part(group, Reader(SCHEMA, 0))]
        assert len(found) == -(-n // parquet.BATCH_ROWS)
    pd.testing.assert_frame_equal(pd.concat(found, ignore_index=True), expected(place), check_exact=True)


@pytest.mark.parametrize("n", [1_001, pytest.param(20_001, marks=pytest.mark.slow)])
def test_a_patient_among_many_is_read_as_if_alone(n):
    """Catches what rows of patients have: rows of the next one, or a value filled in, from a size on."""
    few, place = visits(15, seed=4), np.random.default_rng(1).integers(0, 15, n)
    rows = [np.flatnonzero(few["id"] == name) for name in range(15)]
    alone = pd.concat([histories_of(read_by_pandas(few.iloc[own]), VISITS) for own in rows])
    whole = few.iloc[np.concatenate([rows[name] for name in place])]
    whole = whole.assign(id=np.repeat(np.arange(n), [len(rows[name]) for name in place]))
    # first rows of all patients, then second ones: rows of others between those of each
    whole = whole.iloc[np.argsort(whole.groupby("id").cumcount(), kind="stable")]
    found = histories_of(read_by_pandas(whole), VISITS)
    pd.testing.assert_frame_equal(
        found.reset_index(drop=True), alone.iloc[place].reset_index(drop=True), check_exact=True
    )
