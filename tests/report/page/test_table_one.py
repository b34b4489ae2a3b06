"""Table 1 and the subgroups as people read them, on the page and in Markdown."""

from __future__ import annotations

from typing import Any

from dpsynth.evaluation.results import Evaluation
from dpsynth.report.page import section_lines
from dpsynth.report.quality import subgroup_section, table_one_section
from dpsynth.report.run_report import RunReport


def rows(
    age: float, spread: float, crea: float, counts: tuple[int, int], missing: int
) -> list[dict[str, Any]]:
    none = dict.fromkeys(("unit", "label", "count", "center", "spread", "low", "high", "special", "missing"))
    return [
        none | {"column": "age", "unit": "years", "form": "mean", "center": age, "spread": spread},
        none
        | {"column": "crea", "unit": "mg/dL", "form": "median", "missing": missing, "special": 0}
        | {"center": crea, "spread": 2.0, "low": crea / 2, "high": 1234.5},
        *(
            none | {"column": "a|b", "form": "counts", "label": label, "count": count}
            for label, count in zip(("no", "yes"), counts, strict=True)
        ),
        none | {"column": "void", "form": "mean", "missing": 20},
    ]


def table_of(table: str, **told: Any) -> list[dict[str, Any]]:
    of = {"table": table, "group": None, "records": 2000, "confidential": table != "synthetic"}
    return [of | row for row in rows(**told)]


def evaluation() -> Evaluation:
    made = table_of("synthetic", age=62.04, spread=9.96, crea=1.0, counts=(1500, 500), missing=0)
    real = table_of("train", age=61.0, spread=15.55, crea=1.2, counts=(0, 2000), missing=500)
    smds = {"age": -0.004, "crea": 0.3, "a|b": None, "void": None}
    of = {"group": None, "chance": 0.062, "confidential": True}
    differences = [of | {"column": column, "smd": smd} for column, smd in smds.items()]
    return Evaluation((), {}, {"table_one": [*made, *real], "table_one_differences": differences})


def cells(found: Evaluation) -> list[list[str]]:
    section = table_one_section(RunReport(evaluation=found))
    assert section is not None
    return [[cell.text for cell in row] for row in section.blocks[-1].rows]


def test_rows_are_those_of_a_clinical_paper():
    """Catches decimals that differ between the tables, a share of the wrong records, and a minus before 0."""
    assert cells(evaluation()) == [
        ["n", "2,000", "2,000", "", ""],
        ["age (years), mean (SD)", "61.0 (15.6)", "62.0 (10.0)", "0.00", ""],
        ["crea (mg/dL), median (quartiles)", "1.2 (0.6 to 1,234.5)", "1.0 (0.5 to 1,234.5)", "0.30", ""],
        ["crea: special codes, n (%)", "0 (0.0)", "0 (0.0)", "", ""],
        ["crea: missing, n (%)", "500 (25.0)", "0 (0.0)", "", ""],
        ["a|b: yes, n (%)", "2,000 (100.0)", "500 (25.0)", "n/a", ""],
        ["void, mean (SD)", "n/a", "n/a", "n/a", ""],
        ["void: missing, n (%)", "20 (1.0)", "20 (1.0)", "", ""],
    ]


def test_the_release_page_has_the_synthetic_column_alone():
    """Catches a real number, a difference or a badge in what may be shared."""
    found = evaluation().released()
    assert cells(found)[:2] == [["n", "2,000"], ["age (years), mean (SD)", "62.0 (10.0)"]]
    text = "\n".join(section_lines(table_one_section(RunReport(evaluation=found))))
    assert "internal" not in text and "SMD" not in text and "61.0" not in text


def test_differences_are_summed_up():
    """Catches a count over columns without a difference, and a worst column that is not the worst."""
    text = "\n".join(section_lines(table_one_section(RunReport(evaluation=evaluation()))))
    assert "It exceeds 0.1 in 1 of 2 columns. The largest is 0.30 (crea). *(confidential" in text
    assert "stay below about 0.06 in 95 of 100 columns" in text
    assert "| a\\|b: yes, n (%) | 2,000 (100.0) | 500 (25.0) | n/a | confidential |" in text


def subgroup(name: str, made: float, real: float, **aucs: tuple[float, float, float] | None) -> Any:
    of = {"column": "sex", "subgroup": name, "confidential": True}
    row: dict[str, Any] = of | {"records": 1400, "events": 90, "event": "died = 1", "model": "random_forest"}
    row |= {"level": 0.9, "fewest": 20, "note": ""}
    for part, value, width in (("real", real, 0), ("synthetic", made, 0), ("difference", made - real, 0.01)):
        row |= {part: value, f"{part}_lower": value - width, f"{part}_upper": value + width}
    scores = []
    for table, auc in aucs.items():
        for score, known in (("auc", auc), ("calibration", (-0.0123, -0.05, 0.02))):
            ends = (None,) * 3 if auc is None else known
            told = of | {"trained_on": table, "score": score, "why": "" if auc else "too few"}
            scores.append(told | dict(zip(("value", "lower", "upper"), ends, strict=True)))
    return row, scores


def test_subgroups_are_told():
    """Catches a loss of AUC of the wrong sign, points taken for shares, and a score of too few records."""
    women = subgroup("F", 0.45, 0.5, synthetic=(0.7, 0.6, 0.8), train=(0.75, 0.65, 0.85))
    men = subgroup("M", 0.5, 0.5, synthetic=(0.8, 0.7, 0.9), train=(0.75, 0.65, 0.85))
    other = subgroup("x", 0.04, 0.0, synthetic=None, train=None)
    scores = [score for _, own in (women, men, other) for score in own]
    details = {"subgroups": [row for row, _ in (women, men, other)], "subgroup_scores": scores}
    found = Evaluation((), {}, details)
    section = subgroup_section(RunReport(evaluation=found))
    text = "\n".join(section_lines(section))
    assert "The share of sex: F differs most: 50.0 % of the training records, 45.0 % of the synthetic" in text
    assert "leaves out 0 in 2 of 3 subgroups" in text
    assert "The AUC in sex: F loses most: 0.700 from synthetic records, 0.750 from real ones." in text
    assert "| sex: F | 50.0 % (50.0 to 50.0) | 45.0 % (45.0 to 45.0) | -5.0 (-6.0 to -4.0) |" in text
    assert "| sex: F | 1,400 (90) | 0.700 (0.600 to 0.800) | 0.750 (0.650 to 0.850) |" in text
    assert "| sex: F | 1,400 (90) | -1.2 (-5.0 to 2.0) | -1.2 (-5.0 to 2.0) |" in text
    assert text.count("| sex: x | 1,400 (90) | too few | too few |") == 2
    assert "The model (random forest) predicts died = 1." in text and "90 %" in text


def test_nothing_measured_is_no_section():
    """Catches an empty section on a page without these numbers."""
    assert table_one_section(RunReport()) is None and subgroup_section(RunReport()) is None
    assert section_lines(None) == []
