"""Runs whose patients have several rows: from one file of rows to the page, and everything after it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import beside, dp_marginals
from visits import VISITS, visits

from dpsynth import DPMarginals
from dpsynth.cli import main
from dpsynth.datasets.table import PatientTable
from dpsynth.errors import DataError, InputError, PrivacyError
from dpsynth.files.text import dump_yaml
from dpsynth.patients.schema import PatientSchema
from dpsynth.runs import forecast as preflight
from dpsynth.runs import pipeline
from dpsynth.runs.attack_inputs import attacked_run
from dpsynth.runs.config import RunConfig
from dpsynth.runs.forecast import load_table, plan, split_table

SCHEMA = VISITS.with_n_public(160)
FRAME = visits(160, seed=5)
FAST = {"epsilon": 3.0, "delta": 1e-5}


def config(**changes: Any) -> RunConfig:
    fields: dict[str, Any] = {
        "data": {"path": "visits.csv", "schema": "visits.yaml"},
        "model": FAST,
        "evaluate": {"seed": 0, "reference": False},
    }
    return RunConfig.from_dict(fields | changes)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a file of rows and its schema."""
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("visits.csv", index=False)
    Path("visits.yaml").write_text(dump_yaml(SCHEMA.to_dict()))
    return tmp_path


def test_a_run_is_of_patients(folder: Path) -> None:
    """Catches a table of levels, sizes that count rows, and a ledger about rows."""
    lines: list[str] = []
    done = pipeline.run(config(sample={"n": 30}), "run", evaluate=False, log=lines.append)
    made = SCHEMA.read("run/synthetic.csv")
    assert made["id"].nunique() == 30 and list(made.columns) == [*VISITS.names, "id"]
    report = json.loads(Path("run/report.json").read_text())
    sizes = (report["table"][name] for name in ("synthetic_records", "synthetic_rows", "columns", "n_public"))
    assert tuple(sizes) == (30, len(made), 5, 80)
    assert report["table"]["schema_sha256"] == SCHEMA.with_n_public(80).digest()
    assert report["ledger"]["unit"] == VISITS.levels.unit
    assert any(f"sampled 30 patients with {len(made):,} rows" in line for line in lines)
    described = json.loads(Path("run/croissant.json").read_text())
    assert [field["name"] for field in described["recordSet"][0]["field"]] == ["id", *VISITS.names]
    assert f"30 synthetic patients with {len(made):,} rows" in described["description"]
    assert done.report.released().table["synthetic_rows"] == len(made)


@pytest.mark.slow
def test_rules_of_patients_are_said_to_be_about_patients(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Catches a sample that speaks of records where the run that made the model speaks of patients."""
    ruled = SCHEMA.model_copy(update={"constraints": ("day >= 0 or sex = F",)})
    Path("visits.yaml").write_text(dump_yaml(ruled.to_dict()))
    dp_marginals(**FAST).fit(FRAME, schema=ruled).save("model")
    assert main(["sample", "model", "-n", "7", "--out", "more.csv"]) == 0
    assert "of the model's patients obey day >= 0 or sex = F" in capsys.readouterr().out


@pytest.mark.slow
def test_by_default_as_many_patients_come_out_as_trained(folder: Path) -> None:
    """Catches a number of rows, or the exact private number, in place of the public one."""
    pipeline.run(config(), "run", evaluate=False)
    assert pd.read_csv("run/synthetic.csv")["id"].nunique() == 80
    lines: list[str] = []
    Path("visits.yaml").write_text(dump_yaml(VISITS.to_dict()))
    pipeline.run(config(model=FAST | {"epsilon": 30.0}), "again", evaluate=False, log=lines.append)
    assert abs(pd.read_csv("again/synthetic.csv")["id"].nunique() - 80) < 20
    assert "the exact number of training patients is private" in lines[-1]


@pytest.mark.slow
@pytest.mark.audited
def test_from_a_file_to_the_page_and_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a page, a second evaluation, a sample or an attack that takes rows for patients."""
    config(studies=["weight ~ sex", "sex ~ rows"]).to_yaml("run.yaml")
    assert main(["run", "run.yaml", "--out", "run"]) == 0
    assert "patients trained the model" in capsys.readouterr().out
    train, test = split_table(config(), load_table(config()))
    page, text = (Path(f"run/report.{end}").read_text() for end in ("html", "md"))
    assert not re.search(r"\b[Rr]ecords?\b|\bone row =", text) and "one patient with all rows (id" in page
    assert (
        "One patient with all rows counts once" in page
        and "Formula, named before the fit: linear: weight" in page
    )
    report = json.loads(Path("run/report.json").read_text())
    measured = {m["name"]: m for m in report["evaluation"]["measures"]}
    assert measured["train_records"]["value"] == train.records and measured["train_records"]["internal"]
    assert measured["train_rows"]["internal"] and not measured["synthetic_rows"]["internal"]
    tried = {attempt["attack"]: attempt for attempt in report["attempts"]}
    assert f"{train.records} attacks on training, {test.records} on held-out" in str(tried)
    assert any(name.startswith("audit: tables of rows") for name in tried)
    assert main(["evaluate", "run", "--force"]) == 0
    assert main(["report", "run", "--mode", "release"]) == 0
    shared = Path("run/release.html").read_text()
    assert 'class="badge"' not in shared and f"{train.records} of" not in shared
    assert main(["sample", "run", "-n", "7", "--out", "more.csv"]) == 0
    assert pd.read_csv("more.csv")["id"].nunique() == 7
    assert main(["attack", "synthetic", "run", "--shadow", "4", "--json"]) == 0
    out = capsys.readouterr().out
    attacked = json.loads(out[out.index('{"') if '{"' in out else out.index("{\n") :])
    assert attacked["shadow"]["canaries"] == 20
    assert {risk["tries"][0] for risk in attacked["risks"] if risk["risk"] == "membership"} == {train.records}


def test_attackers_of_a_run_get_patients_and_its_rows(folder: Path) -> None:
    """Catches an attack on rows that is reported as one on patients, and a generator fitted to levels."""
    pipeline.run(config(), "run", evaluate=False)
    train, test = split_table(config(), load_table(config()))
    attacked = attacked_run("run")
    assert (len(attacked.tables.train), len(attacked.tables.test)) == (train.records, test.records)
    assert len(attacked.tables.synthetic) == attacked.generator.n == 80
    pd.testing.assert_frame_equal(attacked.base, train.frame)
    assert attacked.generator.schema == train.schema


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"model": FAST | {"generator": "matching"}}, InputError, "one row per patient"),
        ({"studies": ["sex ~ height"]}, InputError, "studies: "),
        ({"evaluate": {"effects": ["sex ~ height"]}}, InputError, "evaluate: "),
        ({"data": {"path": "none.csv", "schema": "visits.yaml"}}, DataError, "there is no such file"),
    ],
)
def test_what_cannot_run_is_refused_before_the_rows_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], error: type, said: str
) -> None:
    """Catches a budget that is spent, or rows that are read, for a run that must fail."""

    def never(*args: Any) -> None:
        raise AssertionError("rows were read")

    monkeypatch.setattr(PatientSchema, "read", never)
    with pytest.raises(error, match=said):
        pipeline.run(config(**changes), "run")
    assert not Path("run").exists()


@pytest.mark.filterwarnings("ignore::dpsynth.errors.OwnerWarning")
def test_a_folder_about_rows_does_not_go_on_with_patients(folder: Path) -> None:
    """Catches a ledger that adds a patient's cost to a row's, and calls the sum one of rows."""
    simple = VISITS.table.model_copy(update={"other_columns": "ignore"})
    simple.to_yaml("rows.yaml")
    rows = config(data={"path": "visits.csv", "schema": "rows.yaml"})
    pipeline.run(rows, "run", evaluate=False)
    with pytest.raises(PrivacyError, match="protects one row, and this run protects one patient"):
        pipeline.run(config(), "run", force=True, evaluate=False)


def test_a_plan_is_that_of_the_fit() -> None:
    """Catches a plan without the tables of rows, whose noise is less than the fit's, or about records."""
    schema = VISITS.with_n_public(160)
    found = plan(schema, epsilon=3.0, delta=1e-5)
    model = DPMarginals(epsilon=3.0, delta=1e-5).fit(FRAME, schema=schema)
    assert found.statistics[-1].name == "tables of rows" and found.counted == "patients"
    alone = [entry["epsilon_alone"] for entry in model.ledger_.summary()["entries"]]
    assert [each.epsilon for each in found.statistics] == pytest.approx(alone, rel=1e-6)
    assert "160 patients (taken as public), 5 columns" in str(found) and "record" not in str(found)
    assert found.plot().axes[0].get_ylabel() == "Smallest group, of 160 patients"


def test_a_regression_of_patients_is_planned() -> None:
    """Catches a width of another fit, and a refusal of what a fit takes."""
    schema, studies = VISITS.with_n_public(400), ["linear: weight ~ day"]
    (part,) = also = beside(studies)
    found = plan(schema, epsilon=3.0, delta=1e-5, also=also)
    expected = part.expected_widening(schema, DPMarginals(epsilon=3.0, delta=1e-5))
    assert found.forecast.widening == expected and expected["weight"] > 1.0


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_a_long_synthetic_table_is_evaluated_on_whole_patients(rows, monkeypatch):
    """Catches a last patient whose later rows are cut off, and a whole one who is left out."""
    made = visits(40, seed=5).sort_values("id", kind="stable", ignore_index=True)
    ends = np.flatnonzero(made["id"].diff().shift(-1).to_numpy() != 0) + 1  # rows up to each patient's last
    most = int(ends[10]) + rows - 1
    monkeypatch.setattr(preflight, "EVALUATED_ROWS", most)
    real = PatientTable(visits(9), VISITS, "made")
    used = preflight.compared(made, real, real).raw["synthetic"]
    whole = ends[ends <= most].max()
    assert len(used) == whole and set(used["id"]) == set(made["id"].iloc[:whole])
