"""The usual study keeps half of the records, and says what it left out for that."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth.evaluation.replication.evaluator import replication
from dpsynth.evaluation.replication.two_fits import enough_complete
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Tables
from dpsynth.studies.model import EffectsModel
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=99),
        *(Column(name=f"lab{k}", kind="continuous", lower=-9, upper=9, missing=True) for k in range(4)),
        Column(name="died", kind="binary", categories=("no", "yes")),
    )
)


def table(n: int, seed: int, missing: tuple[float, ...], together: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    raw = pd.DataFrame({"age": rng.integers(20, 90, n)})
    at_once = rng.random(n)
    for k, share in enumerate(missing):
        gone = (at_once if together else rng.random(n)) < share
        raw[f"lab{k}"] = np.where(gone, np.nan, rng.normal(size=n))
    raw["died"] = np.where(rng.random(n) < 1 / (1 + np.exp(-(raw["age"] - 55) / 20)), "yes", "no")
    return SCHEMA.conform(raw).frame


def usual(*frames: pd.DataFrame) -> tuple[tuple[str, ...], str]:
    model = EffectsModel.default(SCHEMA, "died")
    assert model is not None
    kept, told = enough_complete(model, SCHEMA, dict(zip(("real", "synthetic"), frames, strict=False)))
    return tuple(column.name for column in kept.columns(SCHEMA)), told


def test_nothing_is_left_out_where_half_is_complete() -> None:
    """A study that loses columns without need."""
    names, told = usual(table(400, 0, (0.1, 0.1, 0.1, 0.1)))
    assert len(names) == 5 and told == ""


def test_the_most_costly_column_goes_first() -> None:
    """Columns left out that hardly cost a record, in place of the one that costs most of them."""
    names, told = usual(table(2000, 1, (0.0, 0.9, 0.1, 0.0)))
    assert names == ("age", "lab0", "lab2", "lab3")
    assert told.startswith("Left out of the usual study") and "lab1 (missing in 89.0%" in told


def test_a_panel_that_is_missing_together() -> None:
    """A loop without end, or a study without a record, where no single column helps."""
    names, told = usual(table(2000, 2, (0.8, 0.8, 0.8, 0.0), together=True))
    assert names == ("age", "lab3") and told.count("missing in") == 3


def test_each_table_counts() -> None:
    """A synthetic table with a column that is always missing, which leaves no record there."""
    real, made = table(500, 3, (0.0, 0.0, 0.0, 0.0)), table(500, 4, (0.0, 0.0, 0.0, 1.0))
    names, told = usual(real, made)
    assert names == ("age", "lab0", "lab1", "lab2") and "100.0% of the synthetic records" in told


def test_one_predictor_is_kept() -> None:
    """A model without a predictor, which no regression takes."""
    schema = SCHEMA.select(["lab0", "lab1", "died"])
    model = EffectsModel.default(schema, "died")
    frame = table(100, 5, (1.0, 1.0, 0.0, 0.0))[["lab0", "lab1", "died"]]
    kept, _ = enough_complete(model, schema, {"real": frame})
    assert len(kept.columns(schema)) == 1


def test_logarithms_of_what_is_left_out_go_with_it() -> None:
    """A model that names the logarithm of a column that it no longer has, or loses one that it has."""
    columns = [
        column if column.name != "lab0" else column.model_copy(update={"lower": 1.0})
        for column in SCHEMA.columns
    ]
    schema = Schema(columns=tuple(columns))
    frame = schema.conform(table(300, 7, (0.9, 0.0, 0.0, 0.0))).frame
    model = EffectsModel("logistic", "died", sparing=True, logs=["age", "lab0"])
    kept, _ = enough_complete(model, schema, {"real": frame})
    kept.check(schema)
    assert kept.logs == ("age",)


def test_what_somebody_asked_for_is_fitted_as_it_is() -> None:
    """A study with other terms than the ones that were named."""
    real = table(400, 6, (0.9, 0.0, 0.0, 0.0))
    rng = np.random.default_rng(0)
    tables = Tables.of(real, train=real, schema=SCHEMA)
    asked = replication(tables, Settings(effects=["logistic: died ~ age + lab0"]), rng)
    assert "Left out of the usual study" not in asked.details[0].data.to_dict()["note"]
    assert len(asked.details[0].data.to_dict()["rows"]) == 2


def test_the_usual_study_has_estimates() -> None:
    """A study of nothing: with all columns, fewer records are complete than there are terms."""
    real = table(300, 7, (0.95, 0.95, 0.0, 0.0))
    tables = Tables.of(real, train=real, schema=SCHEMA)
    found = replication(tables, Settings(outcome="died"), np.random.default_rng(0))
    data = found.details[0].data.to_dict()
    assert data["n_real"] >= 150 and "lab0" in data["note"] and "lab0" not in data["formula"]
    assert {measure.name: measure.value for measure in found.measures}["effects_same_sign"] == 1.0
