"""Rows that break rules: counted as pandas counts them, without anything that real rows decide to share."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from compared import conformed

from dpsynth.evaluation.resemblance import similarity, violations
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.evaluation.settings import Settings
from dpsynth.report.page import render
from dpsynth.report.run_report import RunReport
from dpsynth.table.schema import Column, Schema
from dpsynth.table.suggestions import RuleCount

LIMITS = {"kind": "continuous", "step": 0.1}
#: limits so wide that a body-mass index of a height in metres is possible too
COLUMNS = (
    Column(name="weight", lower=30, upper=200, **LIMITS),
    Column(name="height", lower=1, upper=220, **LIMITS),
    Column(name="bmi", lower=0, upper=400_000, **LIMITS),
    Column(name="sbp", kind="integer", lower=40, upper=260),
    Column(name="dbp", kind="integer", lower=20, upper=160, missing=True),
)
FORMULA = "weight / (height / 100) ** 2"
DECLARED = tuple(
    Column(**{**dict(column), "derived": FORMULA}) if column.name == "bmi" else column for column in COLUMNS
)


def patients(n: int, rng: np.random.Generator, *, shuffled: bool) -> pd.DataFrame:
    """Patients with a body-mass index of their own, or of another patient."""
    frame = pd.DataFrame({"weight": rng.normal(75, 9, n).round(1), "height": rng.normal(170, 9, n).round(1)})
    bmi = frame["weight"] / (frame["height"] / 100) ** 2
    frame["bmi"] = (rng.permutation(bmi) if shuffled else bmi).round(1)
    frame["sbp"], frame["dbp"] = rng.integers(90, 160, n), rng.integers(60, 100, n).astype(float)
    frame.loc[rng.random(n) < 0.1, "dbp"] = np.nan
    return frame


def evaluated(made: pd.DataFrame, real: pd.DataFrame, schema: Schema, **options: object) -> Evaluation:
    found = similarity(
        conformed(made, real, None, schema), Settings.of(records=10, **options), np.random.default_rng(0)
    )
    return Evaluation(found.measures, {}, found.details)


def test_suggested_rules_are_counted_until_they_are_declared():
    """Catches a formula of wrong units, a declared rule that is still suggested, a count that is no count."""
    rng = np.random.default_rng(0)
    made, real = patients(400, rng, shuffled=True), patients(300, rng, shuffled=False)
    found = evaluated(made, real, Schema(columns=COLUMNS))
    off = ((made["weight"] / (made["height"] / 100) ** 2).round(1) - made["bmi"]).abs() > 0.1 + 1e-9
    shares = {
        f"suggestion_violations_synthetic[bmi = {FORMULA}]": (off.mean(), False),
        f"suggestion_violations_train[bmi = {FORMULA}]": (0.0, True),
        "suggestion_violations_synthetic[dbp <= sbp]": ((made["dbp"] > made["sbp"]).mean(), False),
        "suggestion_violations_train[dbp <= sbp]": ((real["dbp"] > real["sbp"]).mean(), True),
    }
    assert {m.name: (m.value, m.internal) for m in found.measures if "violations" in m.name} == shares
    schema = Schema(columns=DECLARED, constraints=("sbp < 300",))
    kept = made.assign(bmi=made["weight"] / (made["height"] / 100) ** 2)
    names = {m.name for m in evaluated(kept, real, schema, constraints=["dbp < sbp"]).measures}
    texts = ("sbp < 300", "dbp < sbp", f"bmi = {FORMULA}")
    tables = ("synthetic", "train")
    expected = {f"constraint_violations_{table}[{text}]" for table in tables for text in texts}
    assert {name for name in names if "violations" in name} == expected


@pytest.mark.slow
def test_the_page_names_the_rule_with_its_rate_and_no_real_row():
    """Catches a page that hides what is not believable, and one to share that shows real rows."""
    rng = np.random.default_rng(1)
    made, real = patients(400, rng, shuffled=True), patients(300, rng, shuffled=False)
    report = RunReport(evaluation=evaluated(made, real, Schema(columns=COLUMNS)))
    metres = made.assign(bmi=(made["weight"] / made["height"] ** 2).round(1))
    other = RunReport(evaluation=evaluated(made, metres, Schema(columns=COLUMNS)))
    rate = report.measured[f"suggestion_violations_synthetic[bmi = {FORMULA}]"].value
    for mode in ("internal", "release"):
        page = render(report, mode)
        assert f"{1000 * rate:.3g} of 1,000 synthetic rows break bmi = {FORMULA}" in page
        assert ("of 1,000 real rows" in page) == (mode == "internal")
    assert render(report, "release") == render(other, "release")
    declared = Schema(columns=DECLARED, constraints=("sbp < 300",))
    kept = real.assign(dbp=np.nan)
    page = render(RunReport(evaluation=evaluated(kept, kept, declared)), "release")
    assert "No synthetic row breaks one of these rules." in page and "not believable" not in page


@pytest.mark.parametrize("units", [200, 20])
def test_real_shares_are_confidential_and_rows_of_one_patient_count_once(units):
    """Catches the real table's share marked for release, and an interval as if all rows were independent."""

    def count(frame: pd.DataFrame) -> list[RuleCount]:
        broken = int(frame["x"].sum())
        return [RuleCount("x = 0", True, len(frame) - broken, broken, 0)]

    made, real = (pd.DataFrame({"x": np.arange(n) < k}) for n, k in ((100, 25), (200, 20)))
    synthetic, train = violations(count, made, real, units=units, level=0.95)
    assert (synthetic.value, synthetic.internal, train.value, train.internal) == (0.25, False, 0.1, True)
    ends = {200: (0.0622, 0.1503), 20: (0.0123, 0.3170)}  # R: binom.test(20, 200), binom.test(2, 20)
    assert (train.lower, train.upper) == pytest.approx(ends[units], abs=5e-4)
    assert isinstance(synthetic, Measure) and "25 of 100" in synthetic.detail
