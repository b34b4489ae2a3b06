"""Tables of polars, duckdb and pyarrow, from the draft to the sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth import DPMarginals, evaluate
from dpsynth.errors import InputError
from dpsynth.privacy import Ledger
from dpsynth.table import Column, Schema, infer_schema

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(20, 90, 400),
        "sex": RNG.choice(["F", "M"], 400),
        "bmi": RNG.normal(27, 4, 400).clip(15, 50).round(1),
        "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, 400), unit="D"),
    }
)
FRAME.loc[:20, "bmi"] = np.nan
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=100),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="bmi", kind="continuous", lower=10, upper=60, decimals=1, missing=True),
        Column(name="seen", kind="date", lower="2019-01-01", upper="2024-12-31"),
    ),
    n_public=400,
)


def of(library: str) -> Any:
    module = pytest.importorskip(library)
    if library == "polars":
        return module.from_pandas(FRAME)
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.Table.from_pandas(FRAME, preserve_index=False)
    return table if library == "pyarrow" else module.from_arrow(table)


@pytest.mark.parametrize("library", ["polars", "duckdb", "pyarrow"])
def test_a_table_of_another_library_is_fitted_and_given_back(library: str) -> None:
    """A sample that its user must convert, or a fit that reads other values than of the same pandas table."""
    table = of(library)
    assert infer_schema(table).schema == infer_schema(FRAME).schema
    samples = []
    for given in (table, FRAME):
        model = DPMarginals(epsilon=None, random_state=1).fit(given, schema=SCHEMA, ledger=Ledger())
        samples.append(model.sample(50, random_state=2))
    assert type(samples[0]) is type(table)
    arrow = pytest.importorskip("pyarrow")
    back = SCHEMA.conform(arrow.table(samples[0]).to_pandas()).frame
    pd.testing.assert_frame_equal(back, SCHEMA.conform(samples[1]).frame)


def test_evaluation_takes_them() -> None:
    """A report that needs pandas although the fit did not."""
    table = of("polars")
    own = DPMarginals(epsilon=None, random_state=1).fit(table, schema=SCHEMA, ledger=Ledger()).sample(200)
    assert evaluate(own, train=table, schema=SCHEMA)


def test_what_is_no_table_is_refused() -> None:
    """A list or a lazy frame that fails far inside."""
    with pytest.raises(InputError, match="a table of polars, pyarrow or duckdb, got list"):
        DPMarginals(epsilon=None).fit([1, 2], schema=SCHEMA, ledger=Ledger())
    polars = pytest.importorskip("polars")
    with pytest.raises(InputError, match="got LazyFrame"):
        infer_schema(polars.from_pandas(FRAME).lazy())
