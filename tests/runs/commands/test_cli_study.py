"""Declared studies on the command line: `--study` of `fit` and `run`, and `report --mode studies`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import beside, dp_marginals

from dpsynth import DPMarginals
from dpsynth.cli import main
from dpsynth.table.schema import Schema

SCHEMA = """\
name: cohort
n_public: 500
outcome: sex
columns:
  - {name: age, kind: integer, lower: 18, upper: 90}
  - {name: months, kind: integer, lower: 216, upper: 1080, derived: age * 12}
  - {name: crea, kind: continuous, lower: 0.1, upper: 10, decimals: 1, missing: true}
  - {name: sex, kind: binary, categories: [F, M]}
  - {name: died, kind: binary, categories: [0, 1]}
"""
STUDY = "logistic: died ~ age + crea"
FIT = ["fit", "--data", "all.csv", "--schema", "s.yaml", "--out", "m"]


def cohort() -> pd.DataFrame:
    """A table of 500 records."""
    rng = np.random.default_rng(1)
    age = rng.integers(20, 90, 500)
    return pd.DataFrame(
        {
            "age": age,
            "crea": np.where(rng.random(500) < 0.1, np.nan, rng.uniform(0.5, 3, 500).round(1)),
            "sex": rng.choice(["F", "M"], 500),
            "died": (rng.random(500) < 1 / (1 + np.exp(-(age - 55) / 10))).astype(int),
        }
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_draws: None) -> Path:
    """A working folder with a table of 500 records."""
    monkeypatch.chdir(tmp_path)
    cohort().to_csv("all.csv", index=False)
    Path("s.yaml").write_text(SCHEMA)
    return tmp_path


def test_a_private_number_of_records(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A widening that is told although the number of records is private, or silence about why it is not."""
    Path("s.yaml").write_text(SCHEMA.replace("n_public: 500\n", ""))
    assert main([*FIT, "--epsilon", "3", "--study", STUDY, "--json"]) == 0
    printed, said = capsys.readouterr()
    assert "depends on the number of records, which is private" in said.splitlines()[0]
    assert json.loads(printed)["entries"][0]["name"] == "number of records"


def test_estimates_without_noise_say_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exact estimates that could be taken for private ones."""
    assert main([*FIT, "--not-private", "--study", STUDY]) == 0
    assert main(["report", "m", "--mode", "studies"]) == 0
    assert "NOT PRIVATE" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.slow
def test_fit_and_run_buy_studies(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option that is lost on the way to the model, or a widening of the whole table's number in a run."""
    assert main([*FIT, "--epsilon", "1", "--study", STUDY, "--study", "linear: crea ~ sex"]) == 0
    printed, said = capsys.readouterr()
    stages = [line for line in said.splitlines() if line.startswith("fit: ")]
    assert stages[0] == "fit: single-column counts" and stages[-1] == "fit: studies"
    starts = [re.split(": [AIi]", line)[0] for line in said.splitlines() if line not in stages]
    told = ["dpsynth: study 'died'", "dpsynth: study 'crea'"]  # a tail of a predictor and of an outcome
    assert starts == ["study died", "study crea", *told]
    model = DPMarginals.load("m")
    assert all(str(estimates) in printed for estimates in model.estimates_)
    assert [estimates.study for estimates in model.estimates_] == ["died", "crea"]
    assert main(["report", "m", "--mode", "studies"]) == 0
    shown = capsys.readouterr().out
    assert shown == f"{model.study('died')}\n\n{model.study('crea')}\n\n{model.guarantee()}\n"
    assert main(["report", "m", "--mode", "studies", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [record["study"] for record in shown["estimates"]] == ["died", "crea"]

    monkeypatch.setattr(
        "dpsynth.runs.evaluation.evaluate_tables", lambda *args: pytest.fail("nothing is to be evaluated")
    )
    Path("run.yaml").write_text(
        "data: {path: all.csv, schema: s.yaml}\nevaluate: {enabled: false}\n"
        f"model: {{epsilon: 1}}\nstudies: ['{STUDY}']\n"
    )
    assert main(["run", "run.yaml", "--out", "r"]) == 0
    printed, said = capsys.readouterr()
    half = Schema.from_yaml(SCHEMA).with_n_public(250)
    (studies,) = beside([STUDY])
    expected = studies.expected_widening(half, DPMarginals(1.0))["died"]
    whole = studies.expected_widening(Schema.from_yaml(SCHEMA), DPMarginals(1.0))["died"]
    assert f"{expected:.1f}" != f"{whole:.1f}"
    assert said.splitlines()[0].startswith(
        f"study died: intervals about {expected:.1f} times as wide as without noise, and wider where records "
        "lack a value"
    )
    assert said.count("dpsynth: study 'died': A record far out in crea counts less") == 1
    assert "`dpsynth report r --mode studies`" in printed
    assert main(["report", "r", "--mode", "studies"]) == 0
    assert str(DPMarginals.load("r/model").study("died")) in capsys.readouterr().out
    assert json.loads(Path("r/report.json").read_text())["config"]["studies"] == [{"model": STUDY}]
    assert main(["run", "run.yaml", "--study", STUDY, "--out", "q"]) == 2
    assert "--study does not go with run.yaml" in capsys.readouterr().err


PRIVATE = [*FIT, "--epsilon", "1"]
RUN = ["run", "--data", "all.csv", "--schema", "s.yaml", "--epsilon", "1", "--out", "r", "--study"]
REFUSED: dict[str, tuple[list[str], str]] = {
    "no model": ([*PRIVATE, "--study", "died"], "studies: study 1: model: a model is written"),
    "unknown column": ([*PRIVATE, "--study", "died ~ dose"], "study 'died': 'dose' is not a column"),
    "derived": ([*PRIVATE, "--study", "months ~ sex"], "study 'months': 'months' is a derived column"),
    "numeric outcome": ([*PRIVATE, "--study", "logistic: age ~ sex"], "study 'age': the outcome 'age' of"),
    "twice": ([*PRIVATE, "--study", STUDY, "--study", "died ~ sex"], "two studies are called 'died'"),
    "predictor twice": ([*PRIVATE, "--study", "died ~ age + age"], "the predictor 'age' is given twice"),
    "no marginals": ([*PRIVATE, "--study", STUDY, "--generator", "matching"],
                     "Studies needs a model with the columns' associations, and generator matching has none"),
    "budget": ([*FIT, "--epsilon", "0.02", "--study", "died ~ ."], "more terms than the budget can bear"),
    "no table": ([*PRIVATE[:2], "absent.csv", *PRIVATE[3:], "--study", STUDY],
                 "absent.csv: there is no such file"),
    "run": ([*RUN, "died ~ dose"], "studies: study 'died': 'dose' is not a column"),
    "run no model": ([*RUN, "died"], "--study: study 1: model: a model is written"),
    "run budget": ([*RUN, "died ~ .", "--delta", "1e-9", "--epsilon", "0.02"],
                   "more terms than the budget can bear"),
    "show no study": (["report", "none", "--mode", "studies"], "the model of none holds no study"),
    "show into a file": (["report", "none", "--mode", "studies", "--out", "x"], "--out does not go with"),
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted() -> DPMarginals:
    """A model without a study."""
    model = dp_marginals(1.0, 1e-5, base_model="tree", pairwise_statistics=False)
    return model.fit(cohort(), schema=Schema.from_yaml(SCHEMA))


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str, folder: Path, fitted: DPMarginals, capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback, a second line, a wrong exit status, or a file that was written or read for nothing."""
    words, said = REFUSED[case]
    fitted.save("none")
    before = sorted(folder.rglob("*"))
    capsys.readouterr()
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and said in captured.err
    assert captured.err.count("\n") == 1 and captured.err.startswith("dpsynth: ")
    assert sorted(folder.rglob("*")) == before
