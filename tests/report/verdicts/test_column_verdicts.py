"""Rules about single columns: said in a clinician's words, only where chance does not explain it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from compared import conformed

from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.resemblance import outside_bounds, undeclared_digits
from dpsynth.evaluation.results import Evaluation, Findings, Measure, frame_rows
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tails import columns_believed
from dpsynth.report import quality
from dpsynth.report.quality import column_blocks
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts.rules import judge
from dpsynth.report.words import column_value, estimate_text
from dpsynth.table.conform import round_frame
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="creatinine", kind="continuous", lower=0.1, upper=15, decimals=1, unit="mg/dL"),
        Column(name="sbp", kind="integer", lower=0, upper=300, unit="mmHg"),
        Column(name="scoma", kind="ordinal", categories=(0, 9, 26, 100)),
        Column(name="lab_a", kind="integer", lower=0, upper=9, missing=True),
        Column(name="lab_b", kind="integer", lower=0, upper=9, missing=True),
    )
)


def table(n: int, seed: int, *, believed: bool = True) -> pd.DataFrame:
    """What real records look like; or with noisy tails, spread zeros, smooth digits, labs missing apart."""
    rng = np.random.default_rng(seed)
    creatinine = np.exp(rng.normal(0, 0.35, n))
    noise = rng.random(n) < (0.0 if believed else 0.04)
    sbp = rng.normal(130, 20, n)
    gone = rng.random((n, 2)) < 0.4
    zeros = 0.7 if believed else 0.36
    frame = pd.DataFrame(
        {
            "creatinine": np.where(noise, rng.uniform(0.1, 15, n), creatinine),
            "sbp": np.where(rng.random(n) < (0.6 if believed else 0.0), 10 * np.rint(sbp / 10), np.rint(sbp)),
            "scoma": rng.choice([0, 9, 26, 100], n, p=[zeros, *[(1 - zeros) / 3] * 3]),
            "lab_a": np.where(gone[:, 0], np.nan, 5),
            "lab_b": np.where(gone[:, 0 if believed else 1], np.nan, 5),
        }
    )
    return round_frame(SCHEMA.columns, SCHEMA.conform(frame).frame)


def measured(made: pd.DataFrame, *, test: bool = True) -> Evaluation:
    held_out = table(1500, 2) if test else None
    tables = conformed(made, table(1500, 1), held_out, SCHEMA)
    found = columns_believed(tables, Settings(), np.random.default_rng(0))
    return Evaluation(found.measures, {}, found.details)


@pytest.fixture(scope="module")
def good() -> Evaluation:
    return measured(table(1500, 3))


@pytest.fixture(scope="module")
def bad() -> Evaluation:
    return measured(table(1500, 4, believed=False))


def test_what_nobody_believes_is_said_in_plain_words(bad: Evaluation) -> None:
    """Would catch silence about each fault, and sentences that name no value."""
    found = {verdict.code: verdict for verdict in judge(bad)}
    assert set(found) == {"tails", "means", "point_masses", "missing_together", "single_columns"}
    assert found["tails"].severity == found["point_masses"].severity == "bad"
    creatinine = {row.measure: row for row in frame_rows(bad.details["tails"]) if row.column == "creatinine"}
    high, means = (creatinine[name] for name in ("percentile_99_error", "mean_ratio"))
    made = column_value(high.synthetic)
    words = f"In creatinine, 1 in 100 records lies above {made} mg/dL, and"
    assert f"{words} above {column_value(high.real)} in the real table" in found["tails"].sentence
    assert "in 1 of 2 numeric columns" in found["tails"].sentence
    words = (
        f"In creatinine, the mean is {column_value(means.synthetic)}, and {column_value(means.real)} in the"
    )
    assert words in found["means"].sentence
    assert "In scoma, 36 of 100 records are exactly 0, and 7" in found["point_masses"].sentence
    assert "missing apart" in found["missing_together"].sentence
    assert (
        "sbp (0.7" in found["single_columns"].sentence
        and "Last digits explain most of it in the column sbp" in found["single_columns"].sentence
    )
    assert all(verdict.internal and verdict.about == "trust" for verdict in found.values())


def test_real_records_are_believed(good: Evaluation) -> None:
    """Would catch findings that chance makes, and praise that needs a perfect table."""
    assert [(verdict.code, verdict.severity) for verdict in judge(good)] == [("tails_hold", "good")]


def test_numbers_stand_beside_what_chance_gives(good: Evaluation, bad: Evaluation) -> None:
    """Would catch a summary without its baseline, or better for the bad table, or one for release."""
    for name in (
        "spread_ratio_worst",
        "mean_ratio_worst",
        "percentile_error_worst",
        "point_mass_error_worst",
        "missing_cells_spread",
    ):
        assert bad[name].lower <= bad[name].value <= bad[name].upper
        assert bad[f"{name}_baseline"].value == good[f"{name}_baseline"].value
    assert (
        "creatinine" in bad["spread_ratio_worst"].detail
        and "scoma = 0" in bad["point_mass_error_worst"].detail
    )
    assert bad["spread_ratio_worst"].value == bad["spread_ratio[creatinine]"].value
    assert bad["single_column_auc_worst"].value == bad["single_column_auc[sbp]"].value > 0.7
    assert bad["single_column_auc_worst_baseline"].value < 0.56
    for evaluation in (good, bad, measured(table(60, 5), test=False)):
        assert evaluation.released().measures == () and evaluation.released().details == {}
        assert Evaluation.from_dict(evaluation.to_dict()) == evaluation
    alone = measured(table(60, 5), test=False)
    assert not any(measure.name.endswith("_baseline") for measure in alone.measures)
    assert "training records by one column" in alone["single_column_auc_worst"].detail


def test_tables_are_folded_when_all_is_well(good: Evaluation, bad: Evaluation) -> None:
    """Would catch tables that hide what is wrong, fill the page when nothing is, or drop their badges."""
    for evaluation, folded in ((good, True), (bad, False)):
        blocks = column_blocks(RunReport(evaluation=evaluation))
        grids = [b for b in blocks if b.kind == "grid" and "the other" not in b.caption]
        assert len(grids) == 4
        assert [grid.folded for grid in grids] == [folded] * 3 + [True]
        assert all(any(cell.internal for cell in row) for grid in grids for row in grid.rows)
    assert column_blocks(RunReport(evaluation=bad.released())) == []
    tails = bad.details["tails"]
    first = tails[tails["column"] == "creatinine"]
    rows = pd.concat([first.assign(column=f"c{i}") for i in range(20)])
    long = Evaluation((), {}, {"tails": rows})
    grids = [
        block
        for block in column_blocks(RunReport(evaluation=long))
        if block.kind == "grid" and "Means" in block.caption
    ]
    assert [(len(grid.rows), grid.folded) for grid in grids] == [(12, False), (8, True)]


def test_finer_files_are_named() -> None:
    """Would catch a file whose digits were rounded without a word, or the wrong table blamed."""
    fine = pd.DataFrame({"creatinine": [1.19, 1.2, 1.299951], "sbp": [100, 101, 102]})
    schema = SCHEMA.select(["creatinine", "sbp"])
    details = Findings().join(*(undeclared_digits(fine, schema, name) for name in ("train", "test"))).details
    evaluation = Evaluation((), {}, details)
    assert judge(evaluation) == ()  # no fault of the synthetic table
    _, said = quality.similarity_section(RunReport(evaluation=evaluation)).blocks[0].sentences
    assert "The real tables" in said.text and said.internal
    assert "4 values of creatinine in steps of 0.1 mg/dL" in said.text and "sbp" not in said.text
    (found,) = judge(Evaluation((), {}, undeclared_digits(fine, schema, "synthetic").details))
    assert "The synthetic table" in found.sentence and not found.internal


def test_many_columns_are_counted_not_all_told() -> None:
    """Would catch a summary of a hundred names."""
    row = {"table": "synthetic", "count": 9, "step": 1.0, "unit": None, "confidential": False}
    rows = [row | {"column": f"c{i}"} for i in range(5)]
    (found,) = judge(Evaluation((), {}, {"finer_than_declared": rows}))
    assert "9 values of c1 in steps of 1, and of 3 more columns." in found.sentence


@pytest.mark.parametrize(
    ("value", "lower", "severity"),
    [(0.6, 0.49, None), (0.53, 0.51, None), (0.6, 0.51, "caution"), (0.95, 0.93, "bad")],
)
def test_columns_are_named_where_chance_does_not_explain_them(value, lower, severity) -> None:
    """Would catch one of thirty columns of a small table that is named because one of thirty always is.

    And praise beside such a column: a classifier of all columns may miss what one of them shows.
    """
    row = {"column": "sbp", "auc": value, "lower": lower, "upper": 0.99, "last_digits": None}
    row |= {"size": 400, "baseline": None, "reference": "held-out", "confidential": True}
    classifier = Measure("Similarity", "discriminator_auc_x", 0.5, True, "AUC", 0.48, 0.52)
    found = [(v.code, v.severity) for v in judge(Evaluation((classifier,), {}, {"single_columns": [row]}))]
    assert found == ([("single_columns", severity)] if severity else [("resembles", "good")])


def tail(column: str, measure: str, ends: tuple[float, float, float]) -> dict[str, Any]:
    """A row of the frame of tails."""
    row = {"of": "records", "column": column, "unit": None, "measure": measure, "at": None, "real": 4.0}
    row |= {"synthetic": 4.0 * ends[0], "few": False, "baseline": None, "confidential": True}
    return row | dict(zip(("value", "lower", "upper"), ends, strict=True))


@pytest.mark.parametrize(
    ("ratio", "severity"),
    [
        ((1.20, 0.98, 1.46), None),
        ((1.09, 1.05, 1.13), None),
        ((1.23, 1.08, 1.40), "caution"),
        ((0.81, 0.70, 0.94), "caution"),
        ((0.0, 0.0, 0.3), "bad"),
        ((2.0, 1.5, 2.6), "bad"),
    ],
)
def test_the_interval_that_is_printed_decides(ratio, severity) -> None:
    """Catches a stricter level that nobody sees: 1.23 (1.15 to 1.33) was beyond 1.1 and not named."""
    interval = Estimate(*ratio)
    details = {"tails": [tail("cost", "spread_ratio", (1.0, 0.9, 1.1)), tail("cost", "mean_ratio", ratio)]}
    found = {verdict.code: verdict for verdict in judge(Evaluation((), {}, details))}
    assert (found["means"].severity if "means" in found else None) == severity
    grid = next(
        block
        for block in column_blocks(RunReport(evaluation=Evaluation((), {}, details)))
        if block.kind == "grid"
    )
    assert estimate_text(interval, 2) in str(grid)


def test_all_wrong_columns_are_named_worst_first() -> None:
    """Catches a finding that names three columns of seven, so that the owner believes the others."""
    rows = [tail(f"c{k}", "mean_ratio", (2 + k, 1.5 + k, 3 + k)) for k in range(7)]
    right = tail("right", "mean_ratio", (1.0, 0.9, 1.1))
    (found,) = judge(Evaluation((), {}, {"tails": [right, *rows]}))
    assert "wrong in 7 of 8" in found.sentence and found.sentence.endswith("Also in c3, c2, c1, c0.")
    places = [found.sentence.index(f"In c{k}, the mean") for k in (6, 5, 4)]
    assert places == sorted(places) and "right" not in found.sentence


@pytest.mark.slow
def test_strangers_are_seldom_called_wrong() -> None:
    """Catches a page of quality on which chance alone often names a column."""
    rng = np.random.default_rng(2)
    pages = [measured(table(n, int(rng.integers(2**31)))) for n in (150, 400, 1500) for _ in range(10)]
    warned = [any(v.severity in ("caution", "bad") for v in judge(page)) for page in pages]
    assert np.mean(warned) <= 0.1


def test_bounds_that_cut_the_real_table_are_said():
    """Catches a heap at a bound that is blamed on the synthetic table."""
    schema = Schema(columns=(Column(name="rbc", kind="continuous", lower=1, upper=4, decimals=1),))
    raw = pd.DataFrame({"rbc": [3.0] * 70 + [4.04] * 10 + [5.1] * 20})
    details = outside_bounds(raw, schema, "train").details
    assert all(row["confidential"] for row in details["outside_bounds"])
    (found,) = judge(Evaluation((), {}, details))
    assert found.code == "clipped" and found.internal
    assert "20 of 100 values of rbc lie outside 1 to 4" in found.sentence
    assert judge(Evaluation((), {}, outside_bounds(raw.clip(upper=4.0), schema, "train").details)) == ()


def test_a_finding_about_real_records_rests_on_no_synthetic_one():
    """Catches bounds that cut 100 real records called a finding on 2, since so many are synthetic."""
    schema = Schema(columns=(Column(name="rbc", kind="continuous", lower=1, upper=4, decimals=1),))
    details = outside_bounds(pd.DataFrame({"rbc": [3.0] * 70 + [5.1] * 30}), schema, "train").details
    for real, severity in ((100, "caution"), (20, "open")):
        sizes = [
            Measure("Size", f"{table}_records", n, True) for table, n in (("synthetic", 2), ("train", real))
        ]
        found = [
            verdict for verdict in judge(Evaluation(tuple(sizes), {}, details)) if verdict.code == "clipped"
        ]
        assert [verdict.severity for verdict in found] == [severity]
