"""Table 1 and the subgroups as people read them, on the page and in Markdown."""

from __future__ import annotations

from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.results import (
    Detail,
    Differences,
    Evaluation,
    SmdRow,
    SubgroupRow,
    Subgroups,
    SubgroupScores,
    TableOne,
    TableOneRow,
)
from dpsynth.report.page import section_lines
from dpsynth.report.run_report import RunReport
from dpsynth.report.sections import subgroup_section
from dpsynth.report.similarity import table_one_section


def rows(
    age: float, spread: float, crea: float, counts: tuple[int, int], missing: int
) -> tuple[TableOneRow, ...]:
    return (
        TableOneRow("age", "years", "mean", None, None, age, spread),
        TableOneRow("crea", "mg/dL", "median", missing, 0, crea, 2.0, crea / 2, 1234.5),
        TableOneRow("a|b", None, "counts", None, None, labels=("no", "yes"), counts=counts),
        TableOneRow("void", None, "mean", 20, None),
    )


def table_of(table: str, **told: object) -> Detail[TableOne]:
    data = TableOne(table, None, 2000, rows(**told))
    return Detail("table_one", f"table_one.{table}", table != "synthetic", data)


def evaluation() -> Evaluation:
    made = table_of("synthetic", age=62.04, spread=9.96, crea=1.0, counts=(1500, 500), missing=0)
    real = table_of("train", age=61.0, spread=15.55, crea=1.2, counts=(0, 2000), missing=500)
    smds = (SmdRow("age", -0.004), SmdRow("crea", 0.3), SmdRow("a|b", None), SmdRow("void", None))
    differences = Detail("table_one_differences", "d", True, Differences(None, 0.062, smds))
    return Evaluation((), {}, (made, real, differences))


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


def subgroup(name: str, made: float, real: float, **scores: Estimate | None) -> SubgroupRow:
    difference = Estimate(made - real, made - real - 0.01, made - real + 0.01)
    told = tuple(
        SubgroupScores(
            table, auc, None if auc is None else Estimate(-0.0123, -0.05, 0.02), "" if auc else "too few"
        )
        for table, auc in scores.items()
    )
    return SubgroupRow(
        "sex", name, Estimate(real, real, real), Estimate(made, made, made), difference, 1400, 90, told
    )


def test_subgroups_are_told():
    """Catches a loss of AUC of the wrong sign, points taken for shares, and a score of too few records."""
    women = subgroup("F", 0.45, 0.5, synthetic=Estimate(0.7, 0.6, 0.8), train=Estimate(0.75, 0.65, 0.85))
    men = subgroup("M", 0.5, 0.5, synthetic=Estimate(0.8, 0.7, 0.9), train=Estimate(0.75, 0.65, 0.85))
    other = subgroup("x", 0.04, 0.0, synthetic=None, train=None)
    data = Subgroups("died = 1", "random_forest", 0.9, 20, "", (women, men, other))
    found = Evaluation((), {}, (Detail("subgroups", "subgroups", True, data),))
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
