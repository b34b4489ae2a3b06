"""Fitting and sampling in parts from the command line, on workers of a small real cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from dask_workers import threads

from dpsynth.cli import main
from dpsynth.privacy import Ledger

SCHEMA = """\
n_public: 60
outcome: died
columns:
  - {name: age, kind: integer, lower: 18, upper: 90}
  - {name: crea, kind: continuous, lower: 0.1, upper: 10, decimals: 1, missing: true}
  - {name: died, kind: binary, categories: [0, 1]}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"age": [20 + i for i in range(60)], "crea": [None, 1.5, 2.0] * 20})
    frame["died"] = (frame["age"] > 50).astype(int)
    Path("parts").mkdir()
    frame[:25].to_parquet("parts/a.parquet")
    frame[25:].to_parquet("parts/b.parquet")
    frame.to_parquet("whole.parquet", row_group_size=20)
    Path("schema.yaml").write_text(SCHEMA)
    return tmp_path


@pytest.fixture
def in_threads(monkeypatch):
    """Workers in threads of this process, where a process is not what is tested."""
    monkeypatch.setattr("dpsynth.parallel.connected", lambda *given, **named: threads())


FIT = "fit --schema schema.yaml --epsilon 3 --delta 1e-5 --workers 1"


@pytest.mark.slow
@pytest.mark.parametrize("data", ["parts", "whole.parquet"])
def test_fit_and_sample(data, folder, capsys, request):
    if data != "parts":
        request.getfixturevalue("in_threads")
    assert main(f"{FIT} --data {data} --out model --json".split()) == 0
    fitted = json.loads(capsys.readouterr().out)
    names = ["single-column counts", "base model tables", "pairwise statistics"]
    assert [entry["name"] for entry in fitted["entries"]] == names
    if data != "parts":  # from here on all models are alike
        return
    sample = "sample model -n 100 --partitions 2 --workers 1 --seed 3 --out drawn"
    assert main(sample.split()) == 0
    assert "wrote 100 records to drawn" in capsys.readouterr().out
    assert sorted(file.name for file in Path("drawn").iterdir()) == [
        "part-00000.parquet",
        "part-00001.parquet",
    ]
    assert len(pd.read_parquet("drawn")) == 100
    assert main(sample.split()) == 2
    assert "drawn exists and is not empty" in capsys.readouterr().err
    assert main([*sample.split(), "--force"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{FIT} --data nothing --out m", "nothing: there is no such file"),
        (
            f"{FIT.replace('--workers 1', '--workers tcp://127.0.0.1:9')} --data parts --out m",
            "no Dask scheduler answers at tcp://127.0.0.1:9",
        ),
        ("sample parts -n 1 --out m --partitions 2 --force", "parts holds no model: model.json is absent"),
        ("sample parts -n 1 --out parts --partitions 2 --force", "parts holds no part-00000.parquet"),
        (
            "run --data parts --schema schema.yaml --epsilon 3 --out m",
            "parts is a folder. Name a CSV or Parquet",
        ),
    ],
)
def test_what_is_refused_before_workers_start(command, message, folder, capsys):
    assert main(command.split()) == 2
    assert message in capsys.readouterr().err
    assert not Path("m").exists()


VISITS = """\
unit: id
rows: {most: 4, order: day}
n_public: 60
columns:
  - {name: day, kind: integer, lower: 0, upper: 9}
  - {name: sex, kind: binary, categories: [F, M], per: patient}
  - {name: lab, kind: integer, lower: 0, upper: 99}
"""
FIT_VISITS = "fit --schema visits.yaml --epsilon 3 --delta 1e-5 --data visits"


@pytest.fixture
def hospital(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"id": [i // 3 for i in range(180)], "day": [i % 3 for i in range(180)]})
    frame = frame.assign(sex=["F" if i % 2 else "M" for i in frame["id"]], lab=[i % 90 for i in range(180)])
    Path("visits").mkdir()
    frame[:90].to_parquet("visits/a.parquet")
    frame[90:].to_parquet("visits/b.parquet")
    Path("visits.yaml").write_text(VISITS)


@pytest.mark.slow
@pytest.mark.usefixtures("in_threads")
def test_patients_are_fitted_and_sampled_in_parts(hospital, capsys):
    """Catches a folder of patients that is read as one of linked files, and samples that are rows."""
    assert main(f"{FIT_VISITS} --workers 1 --out model".split()) == 0
    assert main(["sample", "model", "-n", "40", "--partitions", "2", "--workers", "1", "--out", "drawn"]) == 0
    assert "wrote 40 patients to drawn" in capsys.readouterr().out
    assert pd.read_parquet("drawn")["id"].nunique() == 40
    Path("visits/c.parquet").write_bytes(Path("visits/a.parquet").read_bytes())
    assert main(f"{FIT_VISITS} --out m".split()) == 2
    assert "c.parquet hold rows of one patient" in capsys.readouterr().err
    assert not Path("m").exists() and not Ledger.open("m.ledger").entries


def test_linked_files_are_not_read_in_parts(hospital, capsys):
    """Catches files of a hospital that workers read one by one, as if each held whole patients."""
    Path("visits.yaml").write_text(VISITS + "files: {a.parquet: [sex, lab]}\n")
    assert main(f"{FIT_VISITS} --workers 1 --out m".split()) == 2
    message = capsys.readouterr().err
    assert "the schema's files in visits are linked in memory. Leave out --workers, or" in message
    assert not Path("m").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("in_threads")
def test_a_wrong_record_costs_nothing(folder, capsys):
    """Catches a folder whose ledger says that something was spent on a fit that never read a count."""
    pd.DataFrame({"age": [30], "crea": [1.0], "died": [7]}).to_parquet("parts/c.parquet")
    assert main(f"{FIT} --data parts --out m".split()) == 2
    message = capsys.readouterr().err
    assert "c.parquet, counted within rows 1 to 1: column 'died', row 1: 7 is not one of the" in message
    assert not Path("m").exists() and not Ledger.open("m.ledger").entries
