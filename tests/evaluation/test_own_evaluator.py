"""An evaluator of one's own: one function and one line, and the page, files and releases have its results."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from dpsynth.evaluation import Evaluation, Findings, Measure, Settings, Tables, evaluators
from dpsynth.evaluation.tables import Progress, silent
from dpsynth.report.page import render, to_markdown
from dpsynth.report.run_report import RunReport
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(columns=(Column(name="age", kind="integer", lower=0, upper=99),))


def decades(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """The shares of records by decade of age, and how many decades occur."""
    found = Findings()
    for name, frame in (("synthetic", tables.synthetic), ("train", tables.train)):
        shares = (frame["age"] // 10).value_counts(normalize=True).sort_index()
        count = Measure("Decades", f"decades_{name}", len(shares), name == "train", "that occur")
        found.measures.append(count)
        rows = [{"table": name, "decade": f"{10 * d}s", "share": share} for d, share in shares.items()]
        found.frame("decades_of_age", rows, confidential=name == "train")
    return found


def test_an_evaluator_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches results of a new evaluator that a page, a file or a release drops, or that a release shows."""
    monkeypatch.setattr(evaluators, "EVALUATORS", (evaluators.Question("decades", decades, 0),))
    made, real = pd.DataFrame({"age": [31, 32, 45, 58]}), pd.DataFrame({"age": [71, 72, 73]})
    found = evaluators.evaluate(made, train=real, schema=SCHEMA, seed=0)
    assert (found["decades_synthetic"].value, found["decades_train"].value) == (3, 1)
    frame = found.details["decades_of_age"]
    assert frame["decade"].tolist() == ["30s", "40s", "50s", "70s"]
    assert Evaluation.from_dict(json.loads(found.to_json())) == found
    row = found.to_dataframe().set_index("measure").loc["decades_train"]
    assert (row["group"], row["value"], row["confidential"]) == ("Decades", 1.0, True)
    assert "| decades_train | 1 |" in found.to_markdown()
    report = RunReport.of_evaluation(found)
    for text in (render(report, "internal"), to_markdown(report)):
        assert "decades of age" in text and "30s" in text and "70s" in text and "that occur" in text
    shared = render(report, "release")
    assert "decades of age" in shared and "30s" in shared and "70s" not in shared
    released = found.released()
    assert released.details["decades_of_age"]["decade"].tolist() == ["30s", "40s", "50s"]
    assert "decades_synthetic" in released and "decades_train" not in released
