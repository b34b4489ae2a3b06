"""Numbers of rows over time, beside pandas, scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp
from statsmodels.duration.survfunc import SurvfuncRight
from statsmodels.regression.mixed_linear_model import MixedLM
from visits import STAYS, VISITS, stays, visits

from dpsynth.evaluation import row_statistics as row
from dpsynth.evaluation.development import patient_features
from dpsynth.evaluation.row_statistics import (
    CellCounts,
    Resampled,
    distance_interval,
    fit_mixed,
    follow_up,
    kaplan_meier,
    kolmogorov_smirnov,
    survival_distance,
    total_variation,
)
from dpsynth.patients.histories import Histories

FRAME = visits(150, seed=3, most=6).sort_values(["id", "day"], kind="stable")
GROUPED = FRAME.groupby("id")


def table(frame: pd.DataFrame, resamples: int = 0) -> Resampled:
    rng = np.random.default_rng(0)
    return Resampled.of(Histories.of(frame, VISITS, rng), rng, resamples)


TABLE = table(FRAME)


def correlation(a: pd.Series, b: pd.Series) -> float:
    both = a.notna() & b.notna()
    return float(np.corrcoef(a[both], b[both])[0, 1])


def lagged(lag: int) -> float:
    lab = FRAME.dropna(subset="lab")
    return correlation(lab["lab"], lab.groupby("id")["lab"].shift(-lag))


def within_rows() -> float:
    def away(name: str) -> pd.Series:
        values = GROUPED[name]
        return (FRAME[name] - values.transform("mean")).where(values.transform("count") > 1)

    return correlation(away("lab"), away("weight"))


def changed() -> float:
    counts = FRAME.dropna(subset="grade").groupby("id")["grade"].agg(["count", "nunique"])
    return float((counts.loc[counts["count"] > 1, "nunique"] > 1).mean())


def within_spread() -> float:
    squares = (FRAME["lab"] - GROUPED["lab"].transform("mean")).pow(2).sum()
    counts = GROUPED["lab"].count()
    return float(np.sqrt(squares / (counts - 1).clip(lower=0).sum()))


GAPS = row.gaps_of(TABLE.histories.numbers["day"])
#: by name: our number, and the one of pandas
NUMBERS = {
    "rows": (row.mean_rows, lambda: GROUPED.size().mean()),
    "measured": (lambda t: row.measured_share(t, "lab"), lambda: FRAME["lab"].notna().mean()),
    "falls": (
        lambda t: row.falling_share(t, "lab"),
        lambda: (FRAME.dropna(subset="lab").groupby("id")["lab"].diff().dropna() < 0).mean(),
    ),
    "returns": (
        lambda t: row.short_gaps(t, "day", 30),
        lambda: (GROUPED["day"].diff().dropna() <= 30).mean(),
    ),
    "median gap": (
        lambda t: row.gap_quantiles(t, "day", [0.1, 0.5])[1],
        lambda: np.quantile(GROUPED["day"].diff().dropna(), 0.5, method="inverted_cdf"),
    ),
    "changed": (lambda t: row.changed_share(t, "grade"), changed),
    "lag 1": (lambda t: row.lag_correlation(t, "lab", 1), lambda: lagged(1)),
    "lag 3": (lambda t: row.lag_correlation(t, "lab", 3), lambda: lagged(3)),
    "between": (lambda t: row.between_sd(t, "lab"), lambda: GROUPED["lab"].mean().std(ddof=0)),
    "within": (lambda t: row.within_sd(t, "lab"), within_spread),
    "within rows": (lambda t: row.row_correlation(t, "lab", "weight"), within_rows),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_that_of_pandas(name):
    """Catches a row too many or too few, a missing value that counts, and pairs of two patients."""
    ours, theirs = NUMBERS[name]
    assert ours(TABLE).numbers == pytest.approx([theirs()], rel=1e-9)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_resample_is_a_table_with_patients_again(name):
    """Catches rows that are drawn instead of patients, and weights that a number ignores."""
    ours, _ = NUMBERS[name]
    resampled = table(FRAME, resamples=2)
    times = resampled.weights[2].astype(int)
    assert times.sum() == len(times) and times.max() > 1
    chosen = np.repeat(np.arange(len(times)), times)
    parts = [FRAME[FRAME["id"] == who].assign(id=place) for place, who in enumerate(chosen)]
    assert ours(resampled).numbers[2] == pytest.approx(ours(table(pd.concat(parts))).numbers[0], rel=1e-9)


def test_a_number_that_does_not_vary_has_no_correlation():
    """Catches a correlation of rounding errors."""
    found = row.lag_correlation(table(FRAME.assign(weight=66.6)), "weight", 1)
    assert np.isnan(found.numbers).all() and found.patients > 50


def test_distances_are_those_of_scipy_and_pandas():
    """Catches ties that are not counted together, and shares of the wrong table."""
    other = visits(90, seed=5, most=4).sort_values(["id", "day"], kind="stable")
    made = table(other)
    gaps = [frame.groupby("id")["day"].diff().dropna() for frame in (FRAME, other)]
    cells, lengths = CellCounts.of(GAPS, row.gaps_of(made.histories.numbers["day"]))
    found = cells.distances(TABLE, made, kolmogorov_smirnov)
    assert found == pytest.approx([ks_2samp(*gaps).statistic])
    assert lengths.tolist() == sorted({*gaps[0], *gaps[1]})
    counts = [frame.groupby("id").size().value_counts(normalize=True) for frame in (FRAME, other)]
    rows = (side.histories.rows.astype(float)[:, None] for side in (TABLE, made))
    found = CellCounts.of(*rows)[0].distances(TABLE, made, total_variation)
    assert found == pytest.approx([counts[0].sub(counts[1], fill_value=0).abs().sum() / 2])


def test_transitions_are_those_of_a_cross_table():
    """Catches a step over a patient's end, and shares of all rows in place of those after a category."""
    other = visits(90, seed=6).query("grade != 'c'")
    made = table(other)
    steps = [row.transitions(side.histories.numbers["grade"], 3) for side in (TABLE, made)]
    cells, codes = CellCounts.of(*steps)
    origin = codes.astype(np.int64) // 3
    found = cells.distances(TABLE, made, lambda p, q: row.transition_distance(origin, p, q))

    def crossed(frame: pd.DataFrame) -> pd.DataFrame:
        known = frame.sort_values(["id", "day"], kind="stable").dropna(subset="grade")
        known = known[known.groupby("id").cumcount() < 6]
        after = known.groupby("id")["grade"].shift(-1)
        return pd.crosstab(known["grade"][after.notna()], after.dropna())

    kept = other.sort_values(["id", "day"], kind="stable")
    real, synthetic = crossed(FRAME), crossed(kept[kept.groupby("id").cumcount() < 6])
    expected = 0.0
    for grade, counts in real.iterrows():
        distance = 1.0
        if grade in synthetic.index:
            given = synthetic.loc[grade] / synthetic.loc[grade].sum()
            distance = (counts / counts.sum()).sub(given, fill_value=0).abs().sum() / 2
        expected += distance * counts.sum() / real.to_numpy().sum()
    assert found == pytest.approx([expected]) and 0.3 < expected < 1


def test_an_interval_of_a_distance_takes_back_what_chance_adds():
    """Catches intervals of two halves of one table that leave out 0."""
    first, second = (table(FRAME[FRAME["id"] % 2 == half], resamples=200) for half in (0, 1))
    rows = (side.histories.rows.astype(float)[:, None] for side in (first, second))
    values = CellCounts.of(*rows)[0].distances(first, second, total_variation)
    found = distance_interval(values, 0.95)
    assert found.lower < 0.05 < found.value <= found.upper and np.quantile(values[1:], 0.025) > 0.05


def test_a_mixed_model_is_that_of_statsmodels():
    """Catches maximum likelihood without restriction, and standard errors of independent rows."""
    rng = np.random.default_rng(0)
    values = TABLE.histories.numbers["lab"]
    values = values[~np.isnan(values).all(axis=1)]
    male, age = rng.integers(0, 2, len(values)), rng.normal(60, 12, len(values))
    values = values + 4.0 * male[:, None]
    found = fit_mixed(values, np.column_stack([male, age]))
    who, place = np.nonzero(~np.isnan(values))
    design = np.column_stack([np.ones(len(who)), male[who], age[who]])
    theirs = MixedLM(values[who, place], design, groups=who).fit(reml=True)
    assert found.fixed == pytest.approx(theirs.fe_params, rel=1e-3)
    assert np.sqrt(np.diag(found.covariance)) == pytest.approx(theirs.bse_fe, rel=1e-3)
    assert found.between**2 == pytest.approx(theirs.cov_re[0, 0], rel=1e-3)
    assert found.within**2 == pytest.approx(theirs.scale, rel=1e-3)


@pytest.mark.parametrize(
    ("values", "predictors"),
    [
        (np.full((5, 3), 2.0), np.arange(5.0)[:, None]),
        (np.arange(15.0).reshape(5, 3), np.ones((5, 1))),
        (np.zeros((0, 3)), np.zeros((0, 1))),
    ],
    ids=["no variation", "a term that repeats the intercept", "no patient"],
)
def test_a_mixed_model_without_an_estimate_is_refused(values, predictors):
    """Catches estimates made of rounding errors, and a crash that names no cause."""
    with pytest.raises(np.linalg.LinAlgError):
        fit_mixed(values, predictors)


def test_features_of_patients_are_those_of_their_rows():
    """Catches features of missing rows, and values outside the bounds that their schema states."""
    frame, schema = patient_features(TABLE.histories, VISITS)
    assert tuple(frame.columns) == schema.names and len(frame) == 150
    expected = GROUPED["lab"].agg(["mean", "min", "max"]).reset_index(drop=True)
    ours = frame[["lab (mean)", "lab (smallest)", "lab (largest)"]]
    assert np.allclose(ours, expected, equal_nan=True)
    step = FRAME.dropna(subset="lab").groupby("id")["lab"].apply(lambda x: x.diff().abs().mean())
    theirs = step.reindex(range(150)).reset_index(drop=True)
    assert np.allclose(frame["lab (mean step)"], theirs, equal_nan=True)
    slope = FRAME.dropna(subset="weight").groupby("id")[["day", "weight"]].apply(_slope)
    assert np.allclose(frame["weight (slope)"], slope.reset_index(drop=True), equal_nan=True)
    grades = pd.crosstab(FRAME["id"], FRAME["grade"]).reindex(range(150), fill_value=0)
    assert (frame[[f"grade (rows with {one})" for one in "abc"]].to_numpy() == grades.to_numpy()).all()
    for column in schema.columns:
        if column.is_numeric:
            values = frame[column.name].dropna()
            assert values.between(*column.bounds).all(), column.name


def _slope(rows: pd.DataFrame) -> float:
    if len(rows) < 2:
        return np.nan
    return 0.0 if rows["day"].std(ddof=0) < 1 else float(np.polyfit(rows["day"], rows["weight"], 1)[0])


def test_survival_is_that_of_statsmodels():
    """Catches patients who count at risk after their last row, and ties of events and last rows."""
    real, made = (
        Resampled.of(
            Histories.of(stays(n, seed=n), STAYS, np.random.default_rng(0)), np.random.default_rng(0), 2
        )
        for n in (160, 120)
    )
    curves = []
    for side in (real, made):
        follow, ended = follow_up(side.histories, "day", "died")
        follow = follow // 100  # many ties
        theirs = SurvfuncRight(follow, ended)
        times, place = np.unique(follow, return_inverse=True)
        share, at_risk = kaplan_meier(place, ended, np.ones(len(follow)), len(times))
        at = np.searchsorted(times, theirs.surv_times)
        assert share[at] == pytest.approx(theirs.surv_prob) and at_risk[at].tolist() == theirs.n_risk.tolist()
        again = side.weights[2].astype(int)
        theirs = SurvfuncRight(np.repeat(follow, again), np.repeat(ended, again))
        share, _ = kaplan_meier(place, ended, side.weights[2], len(times))
        assert share[np.searchsorted(times, theirs.surv_times)] == pytest.approx(theirs.surv_prob)
        curves.append(SurvfuncRight(*follow_up(side.histories, "day", "died")))
    found = survival_distance(real, made, "day", "died", fewest=30)

    def at_time(curve: SurvfuncRight, time: float) -> float:
        place = np.searchsorted(curve.surv_times, time, side="right")
        return float(curve.surv_prob[place - 1]) if place else 1.0

    follow = [np.sort(follow_up(side.histories, "day", "died")[0]) for side in (real, made)]
    last = min(own[-30] for own in follow)
    times = [time for time in np.concatenate(follow) if time <= last]
    expected = max(abs(at_time(curves[0], time) - at_time(curves[1], time)) for time in times)
    assert found[0] == pytest.approx(expected) and len(found) == 3
    assert np.isnan(survival_distance(real, made, "day", "died", fewest=130)).all()
