"""Spread, percentiles, point masses and cells missing together, against NumPy, SciPy and simulation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpsynth.evaluation.estimates import Clustered
from dpsynth.evaluation.results import Evaluation
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Tables
from dpsynth.evaluation.tails import (
    column_tails,
    columns_believed,
    mean_ratio,
    missing_cells,
    spread_ratio,
)
from dpsynth.patients.schema import PatientSchema
from dpsynth.report.verdicts import similarity
from dpsynth.report.verdicts.rules import judge
from dpsynth.table.conform import round_frame
from dpsynth.table.schema import Column, Schema

CREA = Column(name="crea", kind="continuous", lower=0.1, upper=30, decimals=1, scale="log", missing=True)
COMA = Column(name="coma", kind="ordinal", categories=(0, 9, 26, 100))
SEX = Column(name="sex", kind="binary", categories=("F", "M"))
SCHEMA = Schema(columns=(CREA, COMA, SEX))


def table(rng: np.random.Generator, n: int, *, noise: float = 0.0, zeros: float = 0.7) -> pd.DataFrame:
    """Creatinine with a share of noise all over its public range, and a coma score with many zeros."""
    crea = np.exp(rng.normal(0.1, 0.5, n))
    crea = np.where(rng.random(n) < noise, rng.uniform(0.1, 30, n), crea).clip(0.1, 30)
    crea[rng.random(n) < 0.1] = np.nan
    rest = (1 - zeros) / 3
    coma = rng.choice([0, 9, 26, 100], n, p=[zeros, rest, rest, rest])
    frame = pd.DataFrame({"crea": crea, "coma": coma, "sex": rng.choice(["F", "M"], n)})
    return round_frame(SCHEMA.columns, SCHEMA.conform(frame).frame)


def by_measure(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of each column as attributes by measure, and its point masses as ``masses``."""
    columns: dict[str, dict[str, Any]] = {}
    for row in rows:
        of_column = columns.setdefault(row["column"], {"column": row["column"], "masses": []})
        own = SimpleNamespace(**row)
        if row["at"] is None:
            of_column[row["measure"]] = own
        else:
            of_column["masses"].append(own)
    return [*columns.values()]


def test_values_are_those_of_numpy_and_pandas() -> None:
    """Would catch missing values that are counted, the wrong deviation as the unit, or swapped sides."""
    rng = np.random.default_rng(0)
    real, made = table(rng, 900), table(rng, 1100, noise=0.05, zeros=0.36)
    crea, coma = by_measure(column_tails(real, made, SCHEMA))
    a, b = real["crea"].dropna().to_numpy(), made["crea"].dropna().to_numpy()
    assert crea["spread_ratio"].value == pytest.approx(b.std() / a.std())
    for found, percent in ((crea["percentile_1_error"], 1), (crea["percentile_99_error"], 99)):
        assert (found.real, found.synthetic) == (np.percentile(a, percent), np.percentile(b, percent))
        assert found.value == pytest.approx((found.synthetic - found.real) / a.std())
    shares = [frame["crea"].value_counts(normalize=True) for frame in (real, made)]
    many = {v for share in shares for v in share[share > 0.05].index}
    assert {mass.at for mass in crea["masses"]} == many and len(many) > 3
    for mass in crea["masses"]:
        assert mass.real == pytest.approx(shares[0].get(mass.at, 0.0))
        assert mass.synthetic == pytest.approx(shares[1].get(mass.at, 0.0))
        assert mass.value == pytest.approx(mass.synthetic - mass.real)
    assert set(coma) == {"column", "masses"}
    assert coma["masses"][0].at == 0 and coma["masses"][0].upper < -0.25


@pytest.mark.slow
def test_intervals_cover_the_truth_and_are_no_wider_than_they_must() -> None:
    """Would catch a standard error without the square root, of one table only, or of the wrong moment.

    The ratio of normal deviations has an exact interval (F) to compare with; true percentiles are known.
    """
    rng = np.random.default_rng(1)
    column = Column(name="x", kind="continuous", lower=-40, upper=40)
    schema, n, runs = Schema(columns=(column,)), 600, 300
    truth = {"spread": 1.5, "low": 0.5 * stats.norm.ppf(0.01), "high": 0.5 * stats.norm.ppf(0.99)}
    covered, width = dict.fromkeys(truth, 0), []
    for _ in range(runs):
        real, made = (pd.DataFrame({"x": rng.normal(0, s, n)}) for s in (1.0, 1.5))
        (found,) = by_measure(column_tails(real, made, schema))
        ends = {
            "spread": found["spread_ratio"],
            "low": found["percentile_1_error"],
            "high": found["percentile_99_error"],
        }
        for name, end in ends.items():
            covered[name] += end.lower <= truth[name] <= end.upper
        width.append(found["spread_ratio"].upper / found["spread_ratio"].lower)
    exact = np.sqrt(stats.f.ppf(0.975, n - 1, n - 1) / stats.f.ppf(0.025, n - 1, n - 1))
    assert np.mean(width) == pytest.approx(exact, rel=0.01)
    assert all(count / runs > 0.92 for count in covered.values()), covered


def test_noise_all_over_the_range_and_spread_zeros_are_found() -> None:
    """Would catch silence about what norm-sub leaves in empty cells: TVD and KS are 0.03 here."""
    rng = np.random.default_rng(3)
    crea, coma = by_measure(column_tails(table(rng, 2000), table(rng, 2000, noise=0.03, zeros=0.36), SCHEMA))
    assert crea["spread_ratio"].lower > 1.25 and crea["percentile_99_error"].lower > 0.5
    assert coma["masses"][0].upper < -0.25


def test_small_tables_end_at_public_bounds() -> None:
    """Would catch an interval that ends at the largest of 100 values, which often lies below."""
    rng = np.random.default_rng(4)
    crea = by_measure(column_tails(table(rng, 100), table(rng, 100), SCHEMA))[0]
    assert crea["percentile_99_error"].upper > 10 and crea["percentile_99_error"].lower < -10


def test_no_interval_is_told_where_its_ends_are_public_bounds() -> None:
    """Would catch an interval of -27 to 1 deviations, or one withheld from tables that are large enough."""
    rng = np.random.default_rng(4)
    level = 1 - 0.05 / 8  # of four comparisons of each of two columns
    fewest = int(np.ceil(np.log((1 - level) / 2) / np.log(0.99)))
    for n, told in ((fewest - 1, False), (fewest, True)):
        real, made = (table(rng, 1000).dropna().head(size) for size in (n, 600))
        tables = Tables.of(made, train=real, schema=SCHEMA)
        measures = {m.name: m for m in columns_believed(tables, Settings(), rng).measures}
        for name in ("percentile_1_error[crea]", "percentile_99_error[crea]", "percentile_error_worst"):
            found = measures[name]
            assert found.value is not None and (found.lower is not None) == told
            assert (f"Interval n/a: both tables need {fewest} present values" in found.detail) != told


def test_values_missing_together() -> None:
    """Would catch panels that are missing apart although each column's rate is right."""
    rng = np.random.default_rng(5)
    columns = tuple(Column(name=c, kind="integer", lower=0, upper=9, missing=True) for c in "abcd")
    schema, n = Schema(columns=columns), 1500
    panel = pd.DataFrame(np.repeat(rng.random((n, 1)) < 0.4, 4, axis=1), columns=list("abcd"))
    apart = pd.DataFrame(rng.random((n, 4)) < 0.4, columns=list("abcd"))
    real, made = (pd.DataFrame(5, index=range(n), columns=list("abcd")).mask(gone) for gone in (panel, apart))
    deviation, other, ratio = missing_cells(real, made, schema)
    assert deviation == pytest.approx(4 * np.sqrt(0.24), abs=0.05)
    assert other == pytest.approx(2 * np.sqrt(0.24), abs=0.05)
    assert ratio.lower < 0.5 < ratio.upper < 0.6
    assert missing_cells(real[["a"]], made[["a"]], schema.select(["a"])) is None


def test_tables_without_variance_or_values() -> None:
    """Would catch a division by zero, NaN, or an error for a column that is constant, absent or tiny."""
    rng = np.random.default_rng(6)
    constant = Clustered.of(np.full(9, 0.1))
    usual, flat = table(rng, 50), table(rng, 50).assign(crea=0.3, coma=0)
    crea, coma = by_measure(column_tails(flat, usual, SCHEMA))
    assert crea["spread_ratio"].value is None and crea["percentile_99_error"].value is None
    assert crea["masses"][0].real == 1.0 and coma["masses"][0].real == 1.0
    crea = by_measure(column_tails(usual, flat, SCHEMA))[0]
    assert crea["spread_ratio"].value == crea["spread_ratio"].upper == 0.0
    assert {row["column"] for row in column_tails(usual.assign(crea=np.nan), usual, SCHEMA)} == {"coma"}
    assert len(by_measure(column_tails(usual[:2], usual[:1], SCHEMA))) == 2
    assert spread_ratio(constant, constant) is None


def test_a_doubled_mean_of_a_skewed_count_is_seen():
    """Catches calm where a difference is small beside the standard deviation: emergency visits .26 to .57."""
    rng = np.random.default_rng(7)
    column = Column(name="visits", kind="integer", lower=0, upper=100)
    schema = Schema(columns=(column, column.model_copy(update={"name": "gain", "lower": -100})))
    real, far, fresh = (
        pd.DataFrame(
            {name: rng.negative_binomial(0.1, 0.1 / (0.1 + m), 20_000) for name in ("visits", "gain")}
        )
        for m in (0.26, 0.57, 0.26)
    )
    visits, gain = by_measure(column_tails(real, far, schema))
    assert "mean_ratio" not in gain
    assert visits["mean_ratio"].value == pytest.approx(far["visits"].mean() / real["visits"].mean())
    assert visits["mean_ratio"].lower > 1.8 and visits["mean_ratio"].real == real["visits"].mean()
    assert by_measure(column_tails(real, fresh, schema))[0]["mean_ratio"].lower < 1.0


def test_intervals_of_a_ratio_of_means_hold_it():
    """Catches an interval of another length: exponential means have a ratio that follows F exactly."""
    from scipy.stats import f

    rng = np.random.default_rng(8)
    a, b = rng.exponential(size=300), rng.exponential(size=200)
    one, other = map(Clustered.of, (a, b))
    found = mean_ratio(one, other, 0.95)
    ratio = b.mean() / a.mean()
    exact = ratio / f.isf([0.025, 0.975], 400, 600)
    assert [found.lower, found.upper] == pytest.approx(exact, rel=0.06)
    nothing = mean_ratio(one, Clustered.of(np.zeros(200)))
    assert (nothing.value, nothing.lower) == (0.0, 0.0) and 0.0 < nothing.upper < 0.5
    assert mean_ratio(Clustered.of(np.zeros(9)), Clustered.of(np.ones(9))) is None


def test_alike_values_of_a_patient_count_once():
    """Catches intervals of rows that are too short: each value three times says no more than once."""
    rng = np.random.default_rng(9)
    x, y = rng.exponential(size=300).round(1), rng.exponential(size=200).round(1)
    once, thrice = (
        [Clustered.of(np.repeat(values, k), np.repeat(np.arange(len(values)), k)) for values in (x, y)]
        for k in (1, 3)
    )
    alone = [Clustered.of(values) for values in (x, y)]
    for compare in (spread_ratio, mean_ratio):
        found = [(e.value, e.lower, e.upper) for e in (compare(*pair) for pair in (alone, once, thrice))]
        assert found[1] == pytest.approx(found[0]) and found[2] == pytest.approx(found[0])
    shares = [of.share(of.numbers == 0.1) for of in (alone[0], once[0], thrice[0])]
    assert len({(round(e.lower, 12), round(e.upper, 12)) for e in shares}) == 1
    assert thrice[0].effective(thrice[0].numbers < 9) == 300  # no share of 1 says how alike values are


@pytest.mark.slow
def test_intervals_of_rows_cover_the_truth():
    """Catches rows that are taken for independent, and an interval that a patient of many rows breaks."""
    rng = np.random.default_rng(10)
    column = Column(name="cost", kind="continuous", lower=0, upper=99)
    schema, runs = Schema(columns=(column,)), 150
    covered, naive = dict.fromkeys(("mean", "spread", "high", "zero"), 0), 0

    def rows(n: int) -> pd.DataFrame:
        """One to nine rows of n patients, whose share of zeros and usual cost differ."""
        who = np.repeat(np.arange(n), rng.integers(1, 10, n))
        zero, usual = rng.random(n) < 0.5, rng.gamma(4, 1, n)
        cost = np.where(zero[who] & (rng.random(len(who)) < 0.9), 0, usual[who] + rng.random(len(who)))
        return pd.DataFrame({"who": who, "cost": cost})

    for _ in range(runs):
        real, made = rows(300), rows(400)
        (found,) = by_measure(column_tails(real, made, schema, unit="who"))
        ends = {
            "mean": (found["mean_ratio"], 1),
            "spread": (found["spread_ratio"], 1),
            "high": (found["percentile_99_error"], 0),
        }
        ends["zero"] = next(mass for mass in found["masses"] if mass.at == 0), 0
        for name, (end, truth) in ends.items():
            covered[name] += end.lower <= truth <= end.upper
        (found,) = by_measure(column_tails(real, made, schema))
        naive += found["mean_ratio"].lower <= 1 <= found["mean_ratio"].upper
    # an interval of 95 % covers the truth in .9 or fewer of 150 tables with a probability of 0.8 %
    assert all(count / runs > 0.9 for count in covered.values()), covered
    assert naive / runs < 0.85


def test_a_lost_spike_of_rows_is_seen():
    """Catches a page that compares levels of patients alone: zeros and a price of rows are spread."""
    rng = np.random.default_rng(11)
    schema = PatientSchema(
        unit="id",
        order="at",
        most=6,
        columns=(
            Column(name="at", kind="datetime", lower="2020-01-01", upper="2022-12-31"),
            Column(name="cost", kind="integer", lower=0, upper=6000),
        ),
    )

    def rows(n: int, spikes: bool) -> pd.DataFrame:
        who = np.repeat(np.arange(n), rng.integers(1, 7, n))
        day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, len(who)), unit="D")
        minutes = np.where((rng.random(len(who)) < 0.6) & spikes, 0, rng.integers(0, 1440, len(who)))
        cost = np.where(rng.random(len(who)) < 0.6, 0, rng.gamma(2, 400, len(who)).round())
        if not spikes:
            cost = cost + np.where(cost == 0, rng.integers(0, 3, len(who)), 0)
        at = day + pd.to_timedelta(minutes, unit="min")
        return pd.DataFrame({"id": who, "at": at, "cost": cost.astype(int)})

    real, lost, fresh = rows(500, True), rows(500, False), rows(500, True)
    for made, codes in ((lost, {"point_masses"}), (fresh, set())):
        tables = Tables.of(made, train=real, test=fresh, schema=schema)
        found = columns_believed(tables, Settings(), rng)
        measures = {measure.name: measure for measure in found.measures}
        assert Evaluation(found.measures, {}, found.details).released() == Evaluation(())
        said = [v for v in judge(Evaluation(found.measures, {}, found.details)) if "of rows" in v.sentence]
        assert {v.code for v in said} - {"tails_hold"} == codes
        assert all(v.rests_on == ("tails",) and v.internal for v in said)
        assert measures["rows_point_mass_error[cost]"].value == pytest.approx(-0.4 * bool(codes), abs=0.05)
        assert measures["rows_point_mass_error[at]"].value == pytest.approx(-0.6 * bool(codes), abs=0.07)
        assert measures["rows_mean_ratio[cost]"].upper > 1
        assert "patients" not in measures["rows_mean_ratio[cost]"].detail
        assert "rows" in measures["rows_mean_ratio_worst_baseline"].detail
        if codes:
            (wrong,) = (v for v in said if v.code == "point_masses")
            assert "of 100 rows are exactly 00:00" in wrong.sentence and "In cost" in wrong.sentence


def test_times_of_day_are_frequent_values():
    """Catches half of all times at midnight, each on a day of its own, that no share shows."""
    rng = np.random.default_rng(12)
    column = Column(name="triage", kind="datetime", lower="2019-01-01", upper="2022-12-31 23:59")
    schema, n = Schema(columns=(column,)), 800

    def times(share: float) -> pd.DataFrame:
        minutes = np.where(rng.random(n) < share, 0, rng.integers(0, 1440, n))
        day = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1400, n), unit="D")
        return pd.DataFrame({"triage": day + pd.to_timedelta(minutes, unit="min")})

    real, lost = times(0.5), times(0.0)
    (mass,) = (row for row in column_tails(real, lost, schema) if row["measure"] == "point_mass_error")
    midnight = real["triage"] == real["triage"].dt.normalize()
    assert (mass["at"], mass["real"]) == ("00:00", pytest.approx(midnight.mean()))
    assert mass["upper"] < -0.4
    day = real.assign(triage=pd.Timestamp("2020-05-01 08:30"))
    found = [row["at"] for row in column_tails(day, day, schema) if row["measure"] == "point_mass_error"]
    assert found == ["2020-05-01 08:30", "08:30"]


RULES = (similarity.tails, similarity.means, similarity.point_masses)


@pytest.mark.parametrize("patients, faults", [(29, 0), (30, 3)])
def test_few_values_give_no_fault(patients: int, faults: int) -> None:
    """Catches a mean, spread or share called wrong in a level that nine patients have."""
    rng = np.random.default_rng(0)
    real = pd.DataFrame({"los": np.where(np.arange(1_000) < patients, rng.integers(5, 8, 1_000), np.nan)})
    long = 40 + 9 * rng.integers(0, 9, 1_000)
    made = pd.DataFrame({"los": np.where(np.arange(1_000) < patients, long, np.nan)})
    column = Column(name="los", kind="integer", lower=0, upper=300, missing=True)
    rows = column_tails(real, made, Schema(columns=(column,)))
    frame = pd.DataFrame([row | {"of": "records", "confidential": True, "baseline": None} for row in rows])
    measured = Evaluation((), details={"tails": frame})
    assert sum(bool(each.wrong) for rule in RULES for each in rule(measured)) == faults
