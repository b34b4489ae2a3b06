"""Tables of a study's regressions, against counts that were made by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import study_results as made

from dpsynth.research.replications.regression_tables import paper_sheets, regression_sheets
from dpsynth.research.replications.results import Results
from dpsynth.research.replications.trial import Task, Trial
from dpsynth.research.writing import Sheet, SheetCell


def sheet(results: Results, name: str) -> Sheet:
    (found,) = [each for each in (*regression_sheets(results), *paper_sheets(results)) if each.name == name]
    assert all(len(row) == len(found.header) for row in found.rows)
    return found


def cell(found: Sheet, row: str, column: str) -> SheetCell:
    (entries,) = [each for each in found.rows if each[0].text == row]
    return dict(zip(found.header, entries, strict=True))[column]


def test_estimates_over_seeds():
    """Catches half of the records in the place of all, and a lacking estimate counted as a number."""
    found = sheet(made.made_up(), "regression-1-estimates")
    assert cell(found, "age", "all real records (95 % interval)").text == "1.50 (1.20 to 1.88)"
    assert cell(found, "age", "training part").numbers["median"] == 1.4
    naive = cell(found, "age", "ε = 3 naive")
    assert naive.text.endswith("[2 of 3 seeds]")
    assert naive.numbers == {"median": pytest.approx(1.2), "lowest": 1.1, "highest": 1.3, "seeds": 2}
    assert cell(found, "age", "ε = 3 declared").numbers["median"] == 1.5
    assert cell(found, "dose", "HealthGAN naive (NOT PRIVATE)").text == "n/a"


def test_signs_and_decisions():
    """Catches agreement with the training part in place of all, and a lacking estimate that agrees."""
    results = made.made_up()
    sign, decision = (sheet(results, f"regression-1-{name}") for name in ("sign", "decision"))
    # age, naive: 1.3, 1.1, none; declared: 1.5, 1.6, 0.9
    assert cell(sign, "age", "ε = 3 naive").text == "2 of 3"
    assert cell(sign, "age", "ε = 3 declared").text == "2 of 3"
    # dose, naive: 1.6, 0.9, 1.0 exactly, which is on neither side
    assert cell(sign, "dose", "ε = 3 naive").text == "1 of 3"
    assert cell(sign, "all terms", "ε = 3 naive").text == "3 of 6"
    # age is above 1 in all records; dose is not shown, and an interval without ends shows nothing either
    assert cell(decision, "age", "ε = 3 naive").text == "1 of 3"
    assert cell(decision, "dose", "ε = 3 naive").text == "2 of 3"
    assert cell(decision, "all terms", "ε = 3 declared").text == "5 of 6"
    assert cell(decision, "all terms", "HealthGAN naive (NOT PRIVATE)").text == "0 of 6"


def test_overlaps():
    """Catches an overlap on the scale of ratios, and one with the training part."""
    found = sheet(made.made_up(), "regression-1-overlap")
    # logarithms of 1.1 to 1.6 in 1.2 to 1.875, and of .9 to 1.35, by Karr's formula
    real = (math.log(1.2), math.log(1.875))
    expected = []
    for low, high in ((1.1, 1.6), (0.9, 1.35)):
        shared = math.log(high) - real[0]
        expected.append(shared / 2 * (1 / (real[1] - real[0]) + 1 / (math.log(high) - math.log(low))))
    told = cell(found, "age", "ε = 3 naive").numbers
    assert (told["highest"], told["lowest"]) == tuple(pytest.approx(value) for value in expected)
    assert cell(found, "age", "ε = 3 declared").numbers["highest"] == pytest.approx(1.0)
    # an interval without ends holds all of the other one, and nearly nothing of itself
    assert cell(found, "dose", "ε = 3 naive").numbers["seeds"] == 3
    assert 0 < cell(found, "all terms", "ε = 3 naive").numbers["median"] < 1


def test_coverage():
    """Catches intervals counted against the resample's own estimate, and an error over terms."""
    found = sheet(made.made_up(), "regression-1-coverage")
    # in all records 1.5 and 1.1; intervals of the records 1.05 to 1.9 and .8 to 1.25
    assert cell(found, "all terms", "records of the resample").text == "100.0 % (s.e. 0.0)"
    assert cell(found, "age", "ε = 3 naive").text == "0 of 2"
    assert cell(found, "dose", "ε = 3 naive").text == "1 of 2"
    # shares 0 and 1/2: mean 1/4, standard deviation sqrt(1/8), over sqrt(2)
    assert cell(found, "all terms", "ε = 3 naive").text == "25.0 % (s.e. 25.0)"
    assert cell(found, "age", "ε = 3 declared").text == "2 of 2"
    assert cell(found, "all terms", "ε = 3 declared").text == "75.0 % (s.e. 25.0)"


def test_a_resample_without_a_fit_is_not_counted():
    """Catches a refused fit that counts as an interval which misses, or stops the table."""
    results = made.made_up()
    refused = Trial(Task("ε = 3", "resample", 2), records=1000, columns=3, problem="no room")
    found = sheet(replace(results, trials=(*results.trials, refused)), "regression-1-coverage")
    assert cell(found, "age", "ε = 3 declared").text == "2 of 2"
    assert cell(found, "all terms", "ε = 3 declared").numbers["resamples"] == 2


def test_findings_kept_and_lost():
    """Catches a finding kept by its sign alone, by a lacking estimate, or lost for a wide interval."""
    found = sheet(made.made_up(), "findings")
    age, dose = "Age kills. [age: above 1]", "Dose does nothing. [dose: 1 not excluded]"
    assert cell(found, age, "reported").text == "1.4 (1.2 to 1.6), Table 2"
    assert cell(found, age, "all real records here").text == "1.50 (1.20 to 1.88), kept"
    assert cell(found, dose, "reported").text == "no number"
    told = {
        name: cell(found, row, f"ε = 3 {name}").numbers for row in (age,) for name in ("naive", "declared")
    }
    assert (told["naive"]["count"], told["naive"]["of"]) == (1, 3)
    assert (told["declared"]["count"], told["declared"]["median"]) == (2, 1.5)
    assert cell(found, dose, "ε = 3 naive").text.startswith("2 of 3; ")
    assert any("wide interval" in note for note in found.notes)


def test_aucs():
    """Catches the paper's number among those found here, and a selected table in place of one fit's."""
    found = sheet(made.made_up(), "aucs")
    assert cell(found, "paper: their model, Figure 3", "reported").text == "0.8"
    assert cell(found, "paper: their model, Figure 3", "mean here").text == ""
    assert cell(found, "ε = 3", "mean here").text == "0.605 (0.600 to 0.610) [2 of 3 seeds]"
    assert cell(found, "real training records", "logistic regression").numbers["median"] == 0.8
