"""All evaluators together, and the records they write."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import DataError, InputError, SchemaError
from dpsynth.evaluation import Evaluation, Measure, adversarial_accuracy, evaluate
from dpsynth.evaluation.effects import replication
from dpsynth.evaluation.results import frame_rows
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Tables, distance_features
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=100),
        Column(name="crea", kind="continuous", lower=0, upper=9, missing=True),
        Column(name="a|b", kind="categorical", categories=("x", "y", "z")),
        Column(name="died", kind="binary", categories=(0, 1)),
    ),
    outcome="died",
)


def table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 101, n)
    crea = np.where(rng.random(n) < 0.2, np.nan, rng.random(n) * 9)
    died = (rng.random(n) < age / 100).astype(int)
    return pd.DataFrame({"age": age, "crea": crea, "a|b": rng.choice(["x", "y", "z"], n), "died": died})


#: what the evaluation of the fixture said of its progress
TOLD: list[tuple[str, float]] = []


@pytest.fixture(scope="module")
def result() -> Evaluation:
    def progress(stage: str, done: float) -> None:
        TOLD.append((stage, done))

    train, test = table(120, 1), table(100, 2)
    return evaluate(table(150, 0), train=train, test=test, schema=SCHEMA, seed=3, progress=progress)


@pytest.mark.slow
def test_every_number_of_real_records_is_internal(result: Evaluation) -> None:
    """Would catch an unpaid number offered for release; only these read the synthetic table alone."""
    assert {m.name for m in result.measures if not m.internal} == {
        "synthetic_records",
        "positive_rate_synthetic",
        "outcome_constant_synthetic",
        "missing_rate_synthetic[crea]",
        "values_off_step",
        "rows_left_out",
        "values_outside",
        "values_undeclared",
        "values_missing",
        "duplicates_synthetic",
    }
    released = result.released().details
    assert set(released) == {"association", "marginal", "table_one"}
    assert all(set(frame["table"]) == {"synthetic"} for frame in released.values())
    assert set(released["marginal"]["column"]) == set(SCHEMA.names)
    groups = {row.group for row in frame_rows(released["table_one"])}
    assert groups == {None, "died = 0", "died = 1"}


@pytest.mark.slow
def test_what_is_released_does_not_depend_on_real_records(result: Evaluation) -> None:
    """Would catch bins, subsamples or an order read off the real tables in what is offered for release.

    The real tables differ in size and distribution; only the synthetic one is the same.
    """
    other = evaluate(
        table(150, 0), train=table(60, 8).assign(age=3, died=1), test=table(31, 9), schema=SCHEMA, seed=3
    )
    released, again = result.released(), other.released()
    assert released == Evaluation(again.measures, released.settings, again.details)
    assert result.released().measures == tuple(m for m in result.measures if not m.internal)


def test_a_schema_read_off_the_records_releases_nothing() -> None:
    """Would catch bins and categories that were read off real records on a page for release."""
    columns = [
        column.model_copy(update={"unreviewed": ("categories",)}) if column.name == "a|b" else column
        for column in SCHEMA.columns
    ]
    schema = Schema(columns=tuple(columns), outcome="died")
    result = evaluate(table(40, 0), train=table(40, 1), schema=schema, seed=0)
    assert result.settings["unreviewed"] == ["a|b"]
    assert result.released().measures == () and result.released().details == {}


def test_numbers_of_the_report_are_there(result: Evaluation) -> None:
    """Would catch a measure that is renamed or lost, and values outside their range."""
    for name in (
        "auc_mean", "auc_logistic_regression", "auc_hist_gradient_boosting", "auc_random_forest",
        "auc_real_mean", "positive_rate_train", "positive_rate_test", "tvd_mean", "tvd[a|b]",
        "correlation_error", "nn_accuracy_train", "nn_accuracy_test",
    ):  # fmt: skip
        value = result[name].value
        assert value is not None and 0 <= value <= 1
    loss = result["privacy_loss"]
    assert loss.lower < loss.value < loss.upper and abs(loss.value) < 0.2
    # equal sizes, for the comparison to be fair
    assert "against 100 test minus against 100 training" in loss.detail
    assert result["synthetic_records"].value == 150
    assert result.settings["outcome"] == "died"


@pytest.mark.slow
def test_seed_decides_everything(result: Evaluation) -> None:
    """Would catch hidden randomness, and a drawn seed that is not kept."""
    again = evaluate(table(150, 0), train=table(120, 1), test=table(100, 2), schema=SCHEMA, seed=3)
    assert again == result
    drawn = evaluate(table(20, 0), train=table(20, 1), schema=SCHEMA)
    repeated = evaluate(table(20, 0), train=table(20, 1), schema=SCHEMA, seed=drawn.settings["seed"])
    assert repeated == drawn


def test_neighbours_are_compared_at_equal_sizes() -> None:
    """Would catch unequal sizes, a limit that is ignored, or features other than the distance features."""
    real, made = table(30, 1), table(30, 2)
    direct = adversarial_accuracy(
        *(distance_features(SCHEMA.conform(frame).frame, SCHEMA) for frame in (real, made))
    )
    result = evaluate(made, train=real, schema=SCHEMA, seed=0)
    assert result["nn_accuracy_train"].value == pytest.approx(direct.aa, abs=1e-12)
    limited = evaluate(table(60, 2), train=real, schema=SCHEMA, seed=0, records=12)
    assert "against 12 training records" in limited["nn_accuracy_train"].detail


@pytest.mark.slow
def test_digits_beyond_the_declared_step_are_no_difference() -> None:
    """Would catch a discriminator that reads 1.199951 for 1.2, or an age in days where years are declared.

    Every number must be that of the rounded tables, and the finer files are named.
    """
    columns = [c.model_copy(update={"decimals": 1}) if c.name == "crea" else c for c in SCHEMA.columns]
    schema = Schema(columns=tuple(columns), outcome="died")
    train, test, made = (table(90, seed) for seed in (1, 2, 3))
    made = made.round({"crea": 1})
    tables = {"train": train, "test": test}
    fine = evaluate(made, **tables, schema=schema, seed=0)
    plain = {name: frame.round({"crea": 1}) for name, frame in tables.items()}
    rounded = evaluate(made, **plain, schema=schema, seed=0)
    assert fine.measures == rounded.measures
    assert fine["discriminator_auc_hist_gradient_boosting"].value < 0.7
    found = fine.details["finer_than_declared"]
    assert set(found["table"]) == {"train", "test"} and found["confidential"].all()
    (row,) = frame_rows(found[found["table"] == "train"])
    assert (row.column, row.step) == ("crea", 0.1)
    assert row.count == int((train["crea"].dropna().round(1) != train["crea"].dropna()).sum())
    assert "finer_than_declared" not in rounded.details
    finer = evaluate(train, train=plain["train"], schema=schema, seed=0)
    assert finer.details["finer_than_declared"]["confidential"].tolist() == [False]  # of the synthetic table


@pytest.mark.slow
def test_twenty_rows_constant_and_all_missing_columns() -> None:
    """Would catch NaN or a traceback on a small table without variance, one outcome and no creatinine."""
    made = table(20, 7).assign(age=50, crea=np.nan, died=0)
    result = evaluate(made, train=table(20, 8), test=table(20, 9), schema=SCHEMA, seed=0)
    assert result["auc_mean"].value == 0.5
    assert "nothing to learn" in result["auc_mean"].detail
    assert all(m.detail for m in result.measures if m.value is None)
    json.loads(result.to_json())


def test_several_studies_keep_their_names_apart() -> None:
    """Would catch one study's numbers written over another's."""
    tables = Tables.of(table(80, 0), train=table(80, 1), schema=SCHEMA)
    studies = ["logistic: died ~ age", "linear: age ~ died"]
    found = replication(tables, Settings.of(effects=studies), np.random.default_rng(0))
    assert {"effects_same_sign", "effects_same_sign[2]"} <= {m.name for m in found.measures}
    assert [row["model"] for row in found.details["regressions"]] == ["logistic", "linear"]
    assert replication(tables, Settings.of(effects=[]), np.random.default_rng(0)).details == {}


def test_progress_is_told_stage_by_stage(result: Evaluation) -> None:
    """Would catch a bar that stands still: every stage begins, and parts lie in [0, 1]."""
    assert list(dict.fromkeys(stage for stage, _ in TOLD)) == [
        "utility", "replication", "similarity", "similarity of single columns", "neighbours", "disclosure",
        "Table 1", "subgroups",
    ]  # fmt: skip
    assert all(0 <= done <= 1 for _, done in TOLD)


def test_without_test_records_or_outcome() -> None:
    """Would catch utility measured on training records, or a demand for an outcome."""
    result = evaluate(table(20, 0), train=table(20, 1), schema=SCHEMA, seed=0)
    assert "auc_mean" not in result and "positive_rate_train" in result
    bare = SCHEMA.select(["age", "crea"])
    result = evaluate(table(20, 0)[["age", "crea"]], train=table(20, 1)[["age", "crea"]], schema=bare, seed=0)
    assert not any(m.group.startswith("Utility") for m in result.measures)


def test_json_and_markdown(result: Evaluation) -> None:
    """Would catch a lossy record, invalid JSON, or a column's name that breaks the table."""
    assert Evaluation.from_dict(json.loads(result.to_json())) == result
    text = result.to_markdown(level=4)
    assert "#### Nearest neighbours" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert all(line.replace("\\|", "").count("|") == 6 for line in rows)
    assert sum("confidential" in line for line in rows) == sum(m.internal for m in result.measures)


def test_undefined_numbers_are_none() -> None:
    """Would catch NaN written into JSON."""
    measure = Measure("g", "x", float("nan"), True)
    assert measure.value is None
    assert json.loads(Evaluation((measure,)).to_json())["measures"][0]["value"] is None
    assert "| x | n/a |" in Evaluation((measure,)).to_markdown()


def test_records_refuse_nonsense() -> None:
    """Would catch two measures of one name, a silent lookup failure, and a foreign JSON file."""
    measure = Measure("g", "x", 1.0, True)
    with pytest.raises(InputError, match="measure 'x' is given twice"):
        Evaluation((measure, measure))
    with pytest.raises(KeyError, match="There are: x"):
        Evaluation((measure,))["y"]
    with pytest.raises(InputError, match="not a saved evaluation"):
        Evaluation.from_dict({"format": 2, "measures": [{"nonsense": 1}], "settings": {}, "details": {}})
    entry = {"group": "g", "name": "x", "value": 1.0, "internal": None}
    with pytest.raises(InputError, match="`internal` of 'x' must be true or false"):
        Evaluation.from_dict({"format": 2, "measures": [entry], "settings": {}, "details": {}})


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"train": table(1, 0)}, DataError, "the train table must have at least 2 records, got 1"),
        ({"test": table(5, 0).drop(columns="age")}, DataError, "test table: .*'age'"),
        (
            {"train": table(5, 0).assign(died=2)},
            DataError,
            "train table: column 'died', row 1: 2 is not one of",
        ),
        ({"level": 1.0}, InputError, "level must be less than 1, got 1.0"),
        (
            {"effects": "logistic: died ~ age"},
            InputError,
            "effects must be a list, got 'logistic: died ~ age'",
        ),
        ({"effects": ["logistic: died ~ height"]}, InputError, "height"),
        ({"constraints": ["age <"]}, InputError, "age <"),
        ({"metric": "cosine"}, InputError, "metric must be 'euclidean', 'gower' or 'hamming', got 'cosine'"),
        (
            {"models": {"mine": object()}},
            InputError,
            "models.mine must be an instance of Model",
        ),
        (
            {"models": [object()]},
            InputError,
            "models must map names to Model .*such as {'forest'",
        ),
        ({"colour": "red"}, InputError, "colour is not a known key .known keys: seed, reference"),
        ({"outcome": "nothing"}, SchemaError, "'nothing' is not a column"),
        ({"seed": -1}, InputError, "seed must be greater than or equal to 0, got -1"),
        ({"records": 1}, InputError, "records must be greater than or equal to 2 or .all., got 1"),
    ],
)
def test_bad_input_is_named(change: dict[str, object], error: type[Exception], message: str) -> None:
    """Would catch an error that does not say which of the three tables or which argument is wrong."""
    arguments = {"train": table(5, 1), "test": table(5, 2), "schema": SCHEMA, "seed": 0} | change
    with pytest.raises(error, match=message):
        evaluate(table(5, 0), **arguments)
