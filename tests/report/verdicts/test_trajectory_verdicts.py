"""Verdicts on patients with several rows."""

from __future__ import annotations

from typing import Any

import pytest
import report_sources as sources

from dpsynth.evaluation.results import Evaluation, Findings, Measure
from dpsynth.report.verdicts.rules import judge


def said(*measures: tuple[str, float, float, float]) -> dict[str, tuple[str, str]]:
    records = tuple(Measure("Patients over time", *m[:2], True, "", *m[2:]) for m in measures)
    return {v.code: (v.severity, v.sentence) for v in judge(Evaluation(records))}


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [
        ((0.03, -0.02, 0.08), ("lags_hold", "good")),
        ((0.09, 0.03, 0.15), None),
        ((-0.12, -0.18, -0.06), ("lags_differ", "caution")),
        ((-0.5, -0.6, -0.4), ("lags_differ", "bad")),
    ],
)
def test_correlations_over_time(difference, verdict):
    """Catches a limit on the value where chance may explain it, and the wrong sign of an interval."""
    found = said(("lag1_difference[hdl]", *difference), ("lag3_difference[hdl]", 0.0, -0.01, 0.01))
    assert [(code, severity) for code, (severity, _) in found.items()] == ([verdict] if verdict else [])
    if verdict == ("lags_differ", "bad"):
        assert "hdl, 1 later -0.50" in found["lags_differ"][1] and "3 later" not in found["lags_differ"][1]


@pytest.mark.parametrize(
    ("rows", "gaps", "verdict"),
    [
        ((0.04, 0.0, 0.06), (0.02, 0.0, 0.03), ("rows_hold", "good")),
        ((0.04, 0.0, 0.06), (0.06, 0.04, 0.08), None),
        ((0.04, 0.0, 0.06), (0.08, 0.06, 0.1), ("rows_differ", "caution")),
        ((0.3, 0.2, 0.4), (0.02, 0.0, 0.03), ("rows_differ", "bad")),
    ],
)
def test_rows_and_gaps(rows, gaps, verdict):
    """Catches a distance that is not judged, and one that only chance made large."""
    found = said(("rows_tvd", *rows), ("gap_ks", *gaps))
    assert [(code, severity) for code, (severity, _) in found.items()] == ([verdict] if verdict else [])


@pytest.mark.parametrize(
    ("auc", "verdict"),
    [
        ((0.6, 0.55, 0.64), ("patients_resemble", "good")),
        ((0.7, 0.6, 0.8), None),
        ((0.7, 0.67, 0.73), ("patients_distinguishable", "caution")),
        ((0.95, 0.93, 0.97), ("patients_distinguishable", "bad")),
    ],
)
def test_whole_patients(auc, verdict):
    """Catches a loss of a feature that is taken for an accuracy, and a feature that chance names."""
    losses = (
        ("patient_auc_loss[hdl (slope)]", 0.09, 0.05, 0.1),
        ("patient_auc_loss[bp (mean)]", 0.09, -0.1, 0.2),
    )
    found = said(("patient_auc_hist_gradient_boosting", *auc), *losses)
    assert [(code, severity) for code, (severity, _) in found.items()] == ([verdict] if verdict else [])
    if verdict and verdict[0] == "patients_distinguishable":
        sentence = found["patients_distinguishable"][1]
        assert "hdl (slope)" in sentence and "bp (mean)" not in sentence


@pytest.mark.parametrize(
    ("same", "overlap", "severity", "size"),
    [(9, 0.6, "good", "good"), (9, 0.1, "good", "caution"), (6, 0.6, "caution", None), (4, 0.1, "bad", None)],
)
def test_mixed_effects_have_one_verdict(same, overlap, severity, size):
    """Catches a verdict for each number, and effects that are not clear among those judged."""
    clear, unclear = (
        dict(zip(("estimate", "lower", "upper"), ends, strict=True)) for ends in ((2, 1, 3), (0.5, -1, 2))
    )
    rows = [
        {"term": f"t{k}", "real": clear, "synthetic": clear, "same_sign": k < same, "overlap": overlap}
        for k in range(10)
    ]
    rows += [{"term": "u", "real": unclear, "synthetic": clear, "same_sign": False, "overlap": 0.0}]

    def details(n_real: int) -> dict[str, list[dict[str, Any]]]:
        found = Findings()
        for name, part in (("hdl", rows[:5]), ("sbp", rows[5:])):
            facts = {"model": "mixed", "outcome": name, "n_real": n_real}
            for frame, own in sources.regression_of(part, **facts).items():
                found.details.setdefault(frame, []).extend(row | {"regression": name} for row in own)
        return found.details

    verdict, *sizes = judge(Evaluation((), {}, details(50)))
    assert verdict.severity == severity and verdict.internal
    assert verdict.sentence.removeprefix("Only ").startswith(f"{same} of 10 clear effects")
    assert [v.severity for v in sizes] == ([] if size is None else [size])
    assert {v.severity for v in judge(Evaluation((), {}, details(29)))} == {"open"}
