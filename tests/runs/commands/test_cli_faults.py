"""One table with every fault that users reported, through `schema`, `fit`, `run` and `sample`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from dpsynth.cli import main
from dpsynth.table import Schema, read_table
from dpsynth.table.csv_format import OURS

N = 300


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    died = rng.random(N) < 0.3
    admission = rng.integers(0, 60, N)
    return pd.DataFrame(
        {
            "patient_id": rng.integers(1000, 1100, N),
            "admission": admission,
            "discharge": admission + rng.integers(0, 30, N),
            "größe": np.where(rng.random(N) < 0.1, -1.0, rng.normal(1.7, 0.1, N).round(2)),
            "pain": np.where(rng.random(N) < 0.1, 999, rng.integers(0, 21, N)),
            "airbag": rng.choice(["airbag", "keiner", "früher"], N),
            "deploy": rng.choice(["no", "yes"], N),
            "zip": rng.choice(["02116", "08001"], N),
            "discharge_to": np.where(died, "mortuary", rng.choice(["home", "rehab"], N)),
            "comment": [f"text {i}" for i in range(N)],
            "died": np.where(died, "yes", "no"),
        }
    )


@pytest.mark.slow
def test_every_fault_from_the_draft_to_the_table(table, tmp_path: Path, monkeypatch, capsys) -> None:
    """A fault that one command mends and the next trips over."""
    monkeypatch.chdir(tmp_path)

    def ran(*words: str, status: int = 0) -> str:
        assert main([*words]) == status, capsys.readouterr().err
        told = capsys.readouterr()
        return told.err + told.out

    table.to_csv("t.csv", sep=";", decimal=",", encoding="cp1252", index=False)
    draft = ["schema", "infer", "t.csv", "--out", "t.yaml", "--outcome", "died"]
    told = ran(*draft, "--missing-word=-1")
    assert "semicolons between cells, decimal commas, cells that are not UTF-8 as cp1252" in told
    assert "pain (999 in" in told and "write missing_codes for special" in told
    assert "question: discharge_to (AUC 1.00): predicts the outcome died nearly alone (confidential" in told
    assert "different values): are these persons who have several rows?" in told and "patient_id (" in told

    # as a person edits it, with a reader of YAML 1.1
    edited = yaml.safe_load(Path("t.yaml").read_text(encoding="utf-8"))
    columns = {column["name"]: column for column in edited["columns"]}
    for column in columns.values():
        del column["unreviewed"]
    assert columns["deploy"]["categories"] == ["no", "yes"] and columns["zip"]["categories"][0] == "02116"
    assert columns["größe"]["lower"] > 1 and columns["größe"]["missing"] is True
    columns["pain"]["missing_codes"] = columns["pain"].pop("special")
    columns["pain"]["missing"] = True
    del edited["ignored"], columns["discharge_to"]
    edited |= {"columns": [*columns.values()], "other_columns": "ignore", "n_public": N}
    edited["constraints"] = ["airbag = airbag implies deploy = yes", "discharge <= admission + 30"]
    Path("t.yaml").write_text(yaml.safe_dump(edited, allow_unicode=True), encoding="utf-8")
    told = ran("schema", "check", "t.yaml", "--data", "t.csv", status=2)
    assert 'write "airbag = \'airbag\'" for the category, or "airbag = `airbag`" for the column' in told
    edited["constraints"][0] = "airbag = 'airbag' implies deploy = yes"
    Path("t.yaml").write_text(yaml.safe_dump(edited, allow_unicode=True), encoding="utf-8")
    broken = ((table["airbag"] == "airbag") & (table["deploy"] == "no")).sum()
    told = ran("schema", "check", "t.yaml", "--data", "t.csv")
    assert f"implies deploy = yes: {N - broken} rows obey, {broken} do not (confidential)" in told
    assert "clipped" not in told

    written = {"sep": ";", "encoding": "cp1252"}
    Path("t.yaml").write_text(
        yaml.safe_dump({**edited, "csv": written}, allow_unicode=True), encoding="utf-8"
    )
    told = ran("fit", "--data", "t.csv", "--schema", "t.yaml", "--epsilon", "3", "--out", "model")
    assert "with decimal commas (guessed; to say otherwise, write csv: {decimal: …} in the schema" in told
    assert "patient_id: 300 rows have" in told and "a person with k rows has at least k times epsilon" in told
    ran("sample", "model", "-n", "40", "--where", "zip = 02116", "--out", "made.csv")
    made = read_table("made.csv", Schema.from_yaml("t.yaml"), OURS)
    assert set(made["zip"]) == {"02116"} and (made["discharge"] <= made["admission"] + 30).all()
    assert set(made.loc[made["airbag"] == "airbag", "deploy"]) == {"yes"}
    assert made["pain"].max() <= 20 and made["größe"].min() > 1

    edited["csv"] = {**written, "decimal": ","}
    Path("t.yaml").write_text(yaml.safe_dump(edited, allow_unicode=True), encoding="utf-8")
    files = {"path": "t.csv", "schema": "t.yaml"}
    quick = {"evaluate": {"enabled": False}, "attack": {"enabled": False}}
    config = {"data": files, "model": {"epsilon": 3}, **quick}
    Path("run.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    told = ran("run", "run.yaml", "--out", "run")
    assert "guessed" not in told and "patient_id: 300 rows have" in told
    assert list(read_table("run/synthetic.csv", Schema.from_yaml("t.yaml"), OURS)) == [*columns]
    for wrong, said in (
        ({"sep": ";;"}, "sep must be tab or one sign"),
        ({"x": ","}, "x is not a known"),
    ):
        text = yaml.safe_dump({**edited, "csv": wrong}, allow_unicode=True)
        Path("t.yaml").write_text(text, encoding="utf-8")
        assert said in ran("run", "run.yaml", "--out", "no", status=2)
    again = ["schema", "infer", "t.csv", "--csv", "sep=;", "--csv", "decimal=,", "--csv", "encoding=cp1252"]
    assert "guessed" not in ran(*again, "--missing-word=-1", "--out", "again.yaml")
    assert yaml.safe_load(Path("again.yaml").read_text(encoding="utf-8"))["csv"] == edited["csv"]
    assert "--csv sets sep, decimal or encoding" in ran(*again[:3], "--csv", "sign=,", status=2)
