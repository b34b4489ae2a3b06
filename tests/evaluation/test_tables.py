"""How many records a step reads, and what is said of those that it leaves out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import DataError
from dpsynth.evaluation.evaluators import evaluate
from dpsynth.evaluation.results import Measure
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import COMPARED, LEARNED, Most, Tables, on_part, random_rows, sampled
from dpsynth.table.schema import Column, Schema


def wide(categories: int) -> Schema:
    return Schema(
        columns=(
            Column(name="code", kind="categorical", categories=tuple(range(categories))),
            Column(name="age", kind="integer", lower=0, upper=99),
        )
    )


@pytest.mark.parametrize(("categories", "learned", "compared"), [(18, 50_000, 10_000), (2498, 4000, 2828)])
def test_wide_tables_are_read_in_smaller_parts(categories: int, learned: int, compared: int) -> None:
    """Would catch a limit on records alone: hundreds of codes made an evaluation of 50 columns endless."""
    schema = wide(categories)
    assert (LEARNED.of(schema), COMPARED.of(schema)) == (learned, compared)
    assert Settings(records="all").most(schema, LEARNED) > 10**9
    assert Settings(records=7).most(schema, LEARNED) == 7
    assert Most(10, 1.0).of(schema) == 500


@pytest.mark.parametrize(("used", "total"), [(100, 400), (900, 1000)])
def test_the_error_that_sampling_adds_is_that_of_repeated_samples(used: int, total: int) -> None:
    """Would catch a wrong factor: of the mean of a part, around the mean of the whole table."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=total)
    means = [table[random_rows(total, used, rng)].mean() for _ in range(4000)]
    reach = 1.959964 * table.std() / np.sqrt(used)  # what the mean's own interval says
    found = on_part([Measure("G", "mean", 0.0, True, "", -reach, reach)], "testing", used, total, 0.95)
    assert found.details["parts"][0]["error"] == pytest.approx(np.std(means), rel=0.08)


@pytest.mark.slow
def test_an_evaluation_says_what_it_read() -> None:
    """Would catch a part that nobody is told of, and a whole table called one."""
    schema = wide(3)
    rng = np.random.default_rng(1)

    def table() -> pd.DataFrame:
        return pd.DataFrame({"code": rng.integers(0, 3, 80), "age": rng.integers(0, 100, 80)})

    real, test, made = table(), table(), table()
    whole = evaluate(made, train=real, test=test, schema=schema, seed=0)
    part = evaluate(made, train=real, test=test, schema=schema, seed=0, records=40)
    assert sampled(whole) == () and "parts" not in whole.details
    told = "\n".join(sampled(part))
    for what in (
        "Separating synthetic from real records",
        "Nearest neighbours",
        "Distances",
        "Single columns",
    ):
        assert f"{what} " in told or f"{what} between" in told
    assert told.count("a random 40 of 80 records") == 4
    assert "which adds a standard error of" in part["nn_accuracy_train"].detail
    assert "parts" not in part.released().details


@pytest.mark.parametrize("dtypes", ["categories", "text", "arrow", "floats"])
def test_a_table_of_another_generator_is_read_as_it_is_meant(dtypes: str) -> None:
    """Catches a table that is refused, or read as other values, for its order of columns or its dtypes."""
    columns = (
        Column(name="age", kind="integer", lower=0, upper=110),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="stage", kind="binary", categories=(1, 2)),
        Column(name="died", kind="binary", categories=(False, True)),
    )
    schema = Schema(columns=columns, outcome="died", ignored=("id",))
    plain = pd.DataFrame(
        {"age": [31, 58, 44], "sex": ["F", "M", "F"], "stage": [1, 2, 2], "died": [True, False, False]}
    )
    made = plain[["died", "stage", "sex", "age"]].assign(id=["sdv-1", "sdv-2", "sdv-3"])
    if dtypes == "categories":
        made = made.astype({"sex": "category", "stage": "category", "died": object, "age": "float32"})
    elif dtypes == "text":
        made = made.astype(str)
    elif dtypes == "arrow":
        made = made.convert_dtypes(dtype_backend="pyarrow")
    else:
        made = made.assign(age=made["age"] + 0.2, stage=made["stage"] * 1.0, died=made["died"] * 1.0)
    made.index = made.index + 7
    tables = Tables.of(made, train=plain, schema=schema)
    pd.testing.assert_frame_equal(tables.synthetic.reset_index(drop=True), tables.train)
    with pytest.raises(DataError, match=r"train table: column 'age', row 1: 31\.2 is not a whole number"):
        Tables.of(made, train=plain.assign(age=plain["age"] + 0.2), schema=schema)
