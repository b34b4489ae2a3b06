"""Tables of other tools: a cell that the schema does not allow is a finding, and no reason to stop."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpsynth.cli import app
from dpsynth.errors import DataError
from dpsynth.evaluation.discriminator import discriminate
from dpsynth.evaluation.evaluators import evaluate
from dpsynth.evaluation.tables import Tables
from dpsynth.patients.schema import PatientSchema
from dpsynth.report.verdicts.rules import judge
from dpsynth.table.schema import Column, Schema

AGE = Column(name="age", kind="integer", lower=18, upper=90)
SEX = Column(name="sex", kind="binary", categories=("F", "M"))
PH = Column(name="ph", kind="continuous", lower=6.8, upper=7.8, decimals=1)
SCHEMA = Schema(columns=(AGE, SEX, PH))


def table(n, rng):
    ages, sexes = rng.integers(18, 91, n), rng.choice(["F", "M"], n)
    return pd.DataFrame({"age": ages, "sex": sexes, "ph": np.round(rng.uniform(6.8, 7.8, n), 1)})


def found(synthetic, rng):
    return evaluate(synthetic, train=table(200, rng), schema=SCHEMA, seed=0, reference=False)


@pytest.mark.slow
def test_cells_that_are_not_allowed_are_counted_and_told():
    """Catches one unknown category that stops an evaluation, and one that is left out without a word."""
    rng = np.random.default_rng()
    made = table(300, rng).astype(object)
    made.loc[3, "sex"], made.loc[4, "sex"], made.loc[[4, 9], "age"] = "diverse", None, ["old", "x"]
    result = found(made, rng)
    assert result["rows_left_out"].value == 3 and not result["rows_left_out"].internal
    assert (result["values_undeclared"].value, result["values_missing"].value) == (3, 1)
    assert result["synthetic_records"].value == 297
    (told,) = [verdict for verdict in judge(result) if verdict.code == "not_allowed"]
    assert told.severity == "caution" and not told.internal
    assert told.sentence.startswith("3 synthetic rows hold values that the schema does not allow (3 values")
    made.loc[100:110, "sex"] = "X"
    (told,) = [verdict for verdict in judge(found(made, rng)) if verdict.code == "not_allowed"]
    assert told.severity == "bad"
    clean = found(table(300, rng), rng)
    assert clean["rows_left_out"].value == 0
    assert not [verdict for verdict in judge(clean) if verdict.code == "not_allowed"]


def test_a_table_without_a_row_that_fits_and_real_tables_are_refused():
    """Catches a comparison of nothing, and real records that are left out of a table in silence."""
    rng = np.random.default_rng()
    real, other = table(50, rng), table(50, rng).assign(sex="W")
    with pytest.raises(DataError, match="synthetic table: column 'sex', row 1: 'W' is not one of"):
        Tables.of(other, train=real, schema=SCHEMA)
    with pytest.raises(DataError, match="train table: column 'sex', row 1: 'W' is not one of"):
        Tables.of(real, train=other, schema=SCHEMA)
    with pytest.raises(DataError, match="synthetic table: the table lacks the column"):
        Tables.of(real.drop(columns="age"), train=real, schema=SCHEMA)


def test_rows_of_patients_are_left_out_as_rows():
    """Catches the patients' twin: a foreign value in one visit stops the comparison of all."""
    rng = np.random.default_rng()
    rows = table(60, rng).assign(id=np.arange(60) // 3, visit=np.arange(60) % 3)
    schema = PatientSchema(unit="id", order="visit", most=3, columns=(AGE, SEX, PH))
    made = rows.astype({"sex": object})
    made.loc[5, "sex"] = "diverse"
    tables = Tables.of(made, train=rows, schema=schema)
    assert tables.left_out == 1 and len(tables.rows["synthetic"]) == 59 and len(tables.rows["train"]) == 60


@pytest.mark.slow
def test_the_command_counts_them_too(tmp_path):
    """Catches a reader of files that refuses a table before it is compared."""
    rng = np.random.default_rng()
    SCHEMA.to_yaml(tmp_path / "schema.yaml")
    made, real = table(150, rng), table(150, rng)
    made.loc[7, "sex"] = "diverse"
    made.to_csv(tmp_path / "made.csv", index=False)
    real.to_csv(tmp_path / "real.csv", index=False)
    names = {"--synthetic": "made.csv", "--train": "real.csv", "--schema": "schema.yaml"}
    command = ["evaluate", *(part for key, name in names.items() for part in (key, str(tmp_path / name)))]
    done = CliRunner().invoke(app, [*command, "--seed", "0", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "1 synthetic row holds values that the schema does not allow" in page


def test_conformed_real_rows_are_not_told_from_synthetic_ones_by_digits():
    """Catches 6.0996 for 6.1 in a conformed table: a classifier then tells real from synthetic, AUC .999."""
    rng = np.random.default_rng()
    real = table(400, rng)
    real["ph"] += rng.uniform(-4e-4, 4e-4, 400)  # as files of float32 or converted units hold it
    conformed = SCHEMA.conform(real).frame
    assert set(conformed["ph"]) <= {round(6.8 + k / 10, 1) for k in range(11)}
    apart = discriminate(conformed, table(400, rng), SCHEMA, rng=rng, limit=400)
    assert max(estimate.value for estimate in apart.auc.values()) < 0.65
