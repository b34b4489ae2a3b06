"""A declared study: what a record can do to it, what it estimates without noise, and how honest it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from stored import read_back

from dpsynth.files.codec import to_plain
from dpsynth.privacy import Ledger
from dpsynth.privacy.noise import STEP
from dpsynth.privacy.records import FrameRecords
from dpsynth.studies.estimation import StudyDesign
from dpsynth.studies.fitted_study import (
    SPLIT,
    SURVIVAL_SPLIT,
    FittedStudy,
    StudyReleases,
    begin,
    not_far_out,
)
from dpsynth.studies.statistics import ScorePoint, symmetric, triangle
from dpsynth.studies.study import Study
from dpsynth.table.coded import CodedTable
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="x", kind="continuous", lower=-1e9, upper=1e9, missing=True),
        Column(name="z", kind="continuous", lower=-5, upper=5),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="died", kind="binary", categories=(0, 1)),
    ),
    outcome="died",
)
STUDY = Study(model="logistic: died ~ x + z + sex", units={"x": 1})


def cohort(n: int, seed: int = 0, slope: float = 0.5, correlation: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, n)
    z = (correlation * x + np.sqrt(1 - correlation**2) * rng.normal(0, 1, n)).clip(-5, 5)
    sex = rng.integers(0, 2, n)
    p = 1 / (1 + np.exp(1 - slope * x - 0.3 * z))
    frame = pd.DataFrame({"x": x, "z": z, "sex": np.where(sex, "M", "F"), "died": (rng.random(n) < p) * 1})
    return SCHEMA.conform(frame).frame


def run(
    frame: pd.DataFrame, draws: pd.DataFrame, noise: float | None, seed: int = 0, study: Study = STUDY
) -> FittedStudy:
    releases = StudyReleases.plan("a", noise_multiplier=noise)
    rng = np.random.default_rng(seed)
    return releases.run(Ledger(), FrameRecords(frame), study, SCHEMA, draws, len(frame), rng)


class Spied(FrameRecords):
    """Records that remember in which ways they were read."""

    def __init__(self, frame: pd.DataFrame) -> None:
        super().__init__(frame)
        self.read: list[str] = []

    def __getattribute__(self, name: str):
        if name in {"_size", "_counts", "_sums", "_frame", "_table"}:
            object.__getattribute__(self, "read").append(name)
        return super().__getattribute__(name)


class Watched(Ledger):
    """A ledger that remembers what drew the noise."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[np.random.Generator] = []

    def run(self, release, records, rng):
        self.drawn.append(rng)
        return super().run(release, records, rng)


READ = {
    "logistic: died ~ x + z + sex": ["_sums"] * 3,
    "linear: x ~ z + sex": ["_sums"] * 3,
    "logistic: died ~ x where sex == 'F'": ["_sums"] * 3,
    "cox: (days, died) ~ x + z": ["_sums"] * 4,
}


@pytest.mark.parametrize("model", READ)
def test_nothing_but_the_releases_reads_the_records(model):
    """Quantiles, caps, intervals, shares or totals of the records: one more reading than stand in the ledger.

    Also noise of a seed of somebody's own: one generator draws that of all readings.
    """
    study, survival = Study(model=model), model.startswith("cox")
    frame, draws = (cohort(n, seed=n).assign(days=lambda t: 1.0 + 5 + t["z"]) for n in (400, 3000))
    columns = (*SCHEMA.columns, Column(name="days", kind="continuous", lower=0, upper=20))
    schema = Schema(columns=columns, outcome="died", n_public=400)
    records, ledger, rng = Spied(frame), Watched(), np.random.default_rng(0)
    releases = StudyReleases.plan("a", noise_multiplier=5.0, survival=survival)
    releases.run(ledger, records, study, schema, draws, 400.0, rng)
    assert [name for name in records.read if name != "_table"] == READ[model]
    assert records.read.count("_table") == len(READ[model]) == len(ledger.entries)
    assert all(drawn is rng for drawn in ledger.drawn) and len(ledger.drawn) == len(ledger.entries)


def maximum(frame: pd.DataFrame):
    known = frame.dropna()
    terms = np.column_stack([known["x"], known["z"], known["sex"] == "M"]).astype(float)
    return sm.Logit(known["died"], sm.add_constant(terms)).fit(disp=False)


def point_of(frame: pd.DataFrame, **given) -> ScorePoint:
    design = StudyDesign.of(SCHEMA, STUDY.effects(SCHEMA), frame)
    rng = np.random.default_rng(1)
    return ScorePoint(design, rng.normal(size=design.size), np.diag([1.0, 2.0, 0.5, 1.0]), **given)


def test_without_noise_it_is_the_maximum_of_the_likelihood():
    """A bias that noise hides: weights that look at the outcome, an information of another point."""
    frame, fit = cohort(6000), maximum(cohort(6000))
    found = run(frame, cohort(20_000, seed=1), None).estimates
    assert np.abs((found.coefficients - fit.params.iloc[1:]) / fit.bse.iloc[1:]).max() < 0.25
    np.testing.assert_allclose(found.std_errors, fit.bse.iloc[1:], rtol=0.1)
    assert found.widening == pytest.approx(1.0, abs=0.1)


def test_wrong_draws_are_put_right():
    """Intervals that believe draws without the correlation that the records have: too short by half."""
    frame = cohort(20_000, correlation=0.8)
    fit = maximum(frame)
    found = run(frame, cohort(20_000, seed=1), None).estimates
    assert np.abs((found.coefficients - fit.params.iloc[1:]) / fit.bse.iloc[1:]).max() < 1.0
    np.testing.assert_allclose(found.std_errors[:2], fit.bse.iloc[1:3], rtol=0.15)
    drowned = run(frame, cohort(20_000, seed=1), 3000.0).estimates
    assert (drowned.std_errors > 5 * fit.bse.iloc[1:]).all()


def test_intervals_hold_the_noise():
    """Intervals of the sampling alone."""
    frame, draws = cohort(3000), cohort(5000, seed=1)
    bare = run(frame, draws, None).estimates.std_errors
    noisy = [run(frame, draws, 30.0, seed).estimates for seed in range(5)]
    assert np.median([(told.std_errors / bare).min() for told in noisy]) > 1.3
    assert all(told.widening > 1.3 for told in noisy)


def test_collinear_terms_are_told():
    """Draws that cannot say how closely predictors go together: intervals too short by far, and no word."""
    frame, truth = cohort(4000, correlation=0.9998), np.array([0.5, 0.3])
    found = [run(frame, cohort(5000, seed=1, correlation=0.9), 3.0, seed).estimates for seed in range(5)]
    z = [np.abs(told.coefficients[:2] - truth) / told.std_errors[:2] for told in found]
    assert np.median(z) < 2.0
    assert all("records know of x and z:" in told.remarks[0] for told in found)
    # nothing is claimed of them, and all of the other
    assert all((told.std_errors[:2] > 50).all() and told.std_errors[2] < 1.2 for told in found)
    apart = [run(cohort(4000), cohort(5000, seed=1), 3.0, seed).estimates for seed in range(3)]
    assert not any(told.remarks for told in apart)
    assert "short" in run(cohort(300), cohort(5000, seed=1), 100.0).estimates.remarks[-1]


def test_draws_that_noise_put_far_out_are_left_out():
    """A few per cent of draws in cells that are empty but for noise: most of the variance, and no records."""
    frame, clean = cohort(3000), cohort(5000, seed=1)
    stray = clean.copy()
    stray.loc[:150, "x"] = np.random.default_rng(2).uniform(-40, 40, 151)
    bare, told = (run(frame, draws, 20.0).estimates for draws in (clean, stray))
    assert np.abs((told.coefficients - bare.coefficients) / bare.std_errors).max() < 0.5
    np.testing.assert_allclose(told.std_errors, bare.std_errors, rtol=0.25)


PRODUCTS = Schema(
    columns=(
        Column(name="x", kind="continuous", lower=-5, upper=5),
        Column(name="a", kind="integer", lower=0, upper=1),
        Column(name="b", kind="integer", lower=0, upper=1),
        Column(name="ab", kind="integer", lower=0, upper=1, derived="a * b"),
        Column(name="died", kind="binary", categories=(0, 1)),
    )
)
PRODUCT = Study(model="died ~ x + a + b + ab")


def groups(n: int, seed: int, rare: float, together: float) -> pd.DataFrame:
    """Records of which ``rare`` are in b and 15 % in a, but ``together`` of those in b."""
    rng = np.random.default_rng(seed)
    x, b = rng.normal(0, 1, n).clip(-5, 5), rng.random(n) < rare
    a = rng.random(n) < np.where(b, together, 0.15)
    eta = -1 + 0.4 * x + 0.6 * a + 0.5 * b - 1.0 * (a & b)
    frame = pd.DataFrame(
        {"x": x, "a": a * 1, "b": b * 1, "died": (rng.random(n) < 1 / (1 + np.exp(-eta))) * 1}
    )
    return PRODUCTS.conform(frame.assign(ab=frame["a"] * frame["b"])).frame


@pytest.mark.parametrize(("rare", "together", "noise"), [(0.2, 0.4, None), (0.1, 0.4, None), (0.2, 0.4, 3.0)])
def test_a_product_that_draws_do_not_know_is_put_right(rare, together, noise):
    """False, confident intervals where the prior does not know that two categories go together."""
    frame, draws = groups(20_000, 0, rare, together), groups(20_000, 1, rare, 0.15)
    terms = frame[["x", "a", "b", "ab"]].astype(float)
    fit = sm.Logit(frame["died"].astype(float), sm.add_constant(terms)).fit(disp=False)
    releases = StudyReleases.plan("a", noise_multiplier=noise)
    rng = np.random.default_rng(0)
    found = releases.run(Ledger(), FrameRecords(frame), PRODUCT, PRODUCTS, draws, len(frame), rng).estimates
    assert np.abs((found.coefficients - fit.params.iloc[1:]) / fit.bse.iloc[1:]).max() < 0.5
    np.testing.assert_allclose(found.std_errors, fit.bse.iloc[1:], rtol=0.12)
    assert found.remarks == ()


def test_a_rare_one_of_two_values_is_not_far_out():
    """Every draw that has both of two categories left out, since few have: a product that is always 0."""
    draws = groups(5000, 0, 0.05, 0.2)
    draws.loc[0, "x"] = 5.0
    design = StudyDesign.of(PRODUCTS, PRODUCT.effects(PRODUCTS), draws)
    design = replace(design, scale=design.scale * np.where(np.arange(4) == 0, 0.5, 1.0))
    kept = not_far_out(design, design.read(draws)[0])
    assert 0.005 < draws["ab"].mean() < 0.02
    assert kept[draws["ab"] == 1].mean() > 0.99 and not kept[0]


def test_what_stays_apart_is_opened():
    """An interval from draws of which no map makes the records: a number that is rarely anything but 0."""
    frame, draws = cohort(20_000), cohort(20_000, seed=1)
    for table, share in ((frame, 0.12), (draws, 0.035)):
        table["x"] = (np.random.default_rng(2).random(len(table)) < share) * 1.0
    found = run(frame, draws, None).estimates
    assert found.remarks == (
        "Synthetic records could not be brought to what the records tell of x: nothing is claimed of it.",
    )
    assert found.std_errors[0] > 50 and (found.std_errors[1:] < 0.1).all() and found.widening < 2


def test_a_hazard_that_is_overshot_comes_back():
    """Newton's step from where a rare category hardly has a hazard: a large effect with a tiny error."""
    schema = Schema(
        columns=(
            Column(name="age", kind="continuous", lower=-5, upper=5),
            Column(name="rare", kind="binary", categories=(0, 1)),
            Column(name="days", kind="continuous", lower=0, upper=100),
            Column(name="died", kind="binary", categories=(0, 1)),
        )
    )
    rng, n = np.random.default_rng(0), 10_000
    frame = pd.DataFrame({"age": rng.normal(0, 1, n).clip(-5, 5), "rare": (rng.random(n) < 0.005) * 1})
    death = rng.exponential(200.0, n)
    frame["days"], frame["died"] = np.minimum(death, 100), (death < 100) * 1
    frame = schema.conform(frame).frame
    study = Study(model="cox: (days, died) ~ age + rare")
    design = StudyDesign.of(schema, study.effects(schema), frame)
    truth, stand_in = begin(design, *design.read(frame), 1.0)
    point = stand_in.point(truth, StudyReleases.plan("a", noise_multiplier=None).first)
    for rare in (-0.6, 0.0, 0.3):  # standardised by about 0.07: from -8 to 4
        start = truth + np.r_[np.zeros(design.size - 1), rare]
        there = replace(point, beta=start)
        expected = stand_in.observation(there, 0.0, np.zeros(design.size), truth).score
        found, _ = stand_in.estimate([(there, 0.0, -there.whitening @ expected)], start)
        np.testing.assert_allclose(found, truth, atol=0.02)


def test_what_nothing_was_learned_of_is_told():
    """A prior's interval as a finding, '1.0 times as wide as without noise'; a constant that goes along."""
    draws = cohort(3000, seed=1)
    lost = run(cohort(500), draws.assign(x=np.nan), 5.0).estimates
    assert "nothing was learned" in lost.remarks[0]
    fixed = cohort(3000).assign(z=1.0)
    found = run(SCHEMA.conform(fixed).frame, draws, 5.0).estimates
    assert found.remarks[0].startswith("Noise hides how much the records know of z, which may hardly vary")
    # how much wider is told of the others
    assert found.std_errors[1] > 50 and found.widening < 10


def test_a_long_tail_is_told():
    """Effects on the middle of an outcome read as least squares; samples whose tail noise cut off."""
    study, told = Study(model="linear: x ~ z + sex"), []
    for tail in (False, True):
        frame, draws = cohort(2000, correlation=0.5), cohort(5000, seed=1, correlation=0.5)
        if tail:
            frame["x"] = np.exp(1.5 * frame["x"])
            # these samples have the same least squares: their tails balance
            draws["x"] += np.select([np.arange(5000) % 50 == 0, np.arange(5000) % 50 == 25], [4.0, -4.0])
        told.append(run(frame, draws, 10.0, study=study).estimates.remarks)
    assert ["x may have a long tail" in " ".join(remarks) for remarks in told] == [False, True]


@pytest.mark.parametrize("kind", ["score", "information"])
def test_a_record_adds_one_at_most(kind):
    """A record far out, or with an unlikely outcome, that adds more than the sensitivity."""
    point = point_of(cohort(500), bound=0.3, cap=0.2)
    rng = np.random.default_rng(2)
    for far in (0.01, 1.0, 30.0, 1e4, 1e9):
        for _ in range(20):
            one = cohort(1, seed=int(rng.integers(10**6)))
            one["x"], one["died"] = far * rng.normal(), rng.integers(0, 2)
            one = CodedTable(SCHEMA.conform(one).frame)
            total = point.total_score(one) if kind == "score" else point.total_information(one)
            assert np.linalg.norm(total[0] * STEP) <= 1
            assert far > 1 or kind == "information" or total[0].any()


def test_the_weight_does_not_look_at_the_outcome():
    """A weight by the score's own length: what is cut off would depend on who died, and shift the effect."""
    point = point_of(cohort(500), bound=0.3)
    x = np.random.default_rng(3).normal(0, 2, (50, 3))
    scores = [point.scores(x, np.full(50, y)) / point.weights(x)[:, None] for y in (0.0, 1.0)]
    rows = point.design.rows(x)[:, 0] @ point.whitening
    np.testing.assert_allclose(scores[1] - scores[0], rows, rtol=1e-9)
    p = 1 / (1 + np.exp(-(point.design.rows(x)[:, 0] @ point.beta)))
    reach = np.linalg.norm(rows, axis=1) * np.maximum(p, 1 - p)
    np.testing.assert_allclose(point.weights(x), np.minimum(1, 0.3 / reach))


def test_an_information_is_the_mean_of_squared_scores():
    """An information without the weight, or not whitened: intervals of another size."""
    point = point_of(cohort(500))
    frame = cohort(1000, seed=4)
    x, _ = point.design.read(frame)
    rows = point.design.rows(x)
    eta = rows @ point.beta
    total = np.zeros((4, 4))
    for z, e in zip(rows[:, 0] @ point.whitening, eta[:, 0], strict=True):
        p = 1 / (1 + np.exp(-e))
        total += p * (1 - p) * np.outer(z, z)
    np.testing.assert_allclose(point.information(x, np.zeros(len(x))), total)
    capped = replace(point, cap=0.1)
    naive = np.zeros((4, 4))
    for z, e in zip(rows[:, 0] @ point.whitening, eta[:, 0], strict=True):
        p = 1 / (1 + np.exp(-e))
        one = p * (1 - p) * np.outer(z, z)
        naive += one * min(1, 0.1 / np.linalg.norm(one))
    np.testing.assert_allclose(capped.information(x, np.zeros(len(x))), naive)
    np.testing.assert_allclose(symmetric(triangle(naive)), naive)
    assert np.linalg.norm(triangle(naive)) == pytest.approx(np.linalg.norm(naive))


def test_a_record_that_lacks_a_value_adds_nothing():
    """A missing covariate that makes the sum NaN, which tells that the record is there."""
    frame = cohort(50)
    point = point_of(frame, bound=0.3, cap=0.2)
    gap = frame.iloc[:1].assign(x=np.nan)
    more = pd.concat([frame, gap], ignore_index=True)
    with_gap, gap_alone, none, whole = map(CodedTable, (more, gap, frame.iloc[:0], frame))
    for total in (point.total_score, point.total_information):
        np.testing.assert_array_equal(total(with_gap)[0], total(whole)[0])
        assert not total(gap_alone)[0].any() and total(none)[0].shape == total(whole)[0].shape


WOMEN = Study(model="logistic: died ~ x + z where sex == 'F'", units={"x": 1})


def test_a_record_outside_the_subgroup_adds_nothing():
    """Records outside, or whose group is unknown, that are counted all the same."""
    frame = cohort(50)
    design = StudyDesign.of(SCHEMA, WOMEN.effects(SCHEMA), frame)
    point = ScorePoint(design, np.zeros(3), np.eye(3), 0.3, 0.2)
    outside = frame["sex"] == "M"
    assert outside.sum() > 10
    whole, women, men = map(CodedTable, (frame, frame[~outside], frame[outside]))
    for total in (point.total_score, point.total_information):
        np.testing.assert_array_equal(total(whole)[0], total(women)[0])
        assert not total(men)[0].any() and total(women)[0].any()
    located = StudyDesign.of(SCHEMA, WOMEN.effects(SCHEMA), frame[~outside])
    np.testing.assert_array_equal([design.centre, design.scale], [located.centre, located.scale])


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_a_subgroup_has_the_usual_fit_of_its_records(share):
    """Effects of all records, or intervals of the number that draws, and not records, have in the group."""
    frame, draws = cohort(20_000), cohort(20_000, seed=1)
    for table, part, seed in ((frame, share, 2), (draws, 0.3, 3)):
        table["sex"] = np.where(np.random.default_rng(seed).random(len(table)) < part, "F", "M")
        table["died"] = table["died"].where((table["sex"] == "F") | (table["z"] < 0), 1)
    frame, draws = (SCHEMA.conform(table).frame for table in (frame, draws))
    own = frame[frame["sex"] == "F"]
    fit = sm.Logit(own["died"], sm.add_constant(own[["x", "z"]].astype(float))).fit(disp=False)
    alone = sm.Logit(own["died"], np.ones(len(own))).fit(disp=False)
    for noise, apart in ((None, 0.25), (3.0, 1.0)):
        found = run(frame, draws, noise, study=WOMEN).estimates
        assert np.abs((found.coefficients - fit.params.iloc[1:]) / fit.bse.iloc[1:]).max() < apart
        np.testing.assert_allclose(found.std_errors, fit.bse.iloc[1:], rtol=0.15)
        told = run(frame, draws, noise, study=Study(model="died ~ 1 where sex == 'F'")).estimates
        assert abs(told.coefficients[0] - alone.params.iloc[0]) < apart * alone.bse.iloc[0]
        np.testing.assert_allclose(told.std_errors, alone.bse, rtol=0.15)
        assert found.remarks == told.remarks == ()


def test_a_share_and_a_mean():
    """Log odds read as a share, a standardised mean, or a p-value of a share of one half."""
    frame, draws = cohort(20_000), cohort(20_000, seed=1)
    share = run(frame, draws, None, study=Study(model="died ~ 1")).estimates
    told = share.effects()[0]
    assert told["estimate"] == pytest.approx(frame["died"].astype(float).mean(), abs=1e-3)
    assert told["lower"] < told["estimate"] < told["upper"] < told["lower"] + 0.02
    assert (share.measure, share.terms, told["p_value"]) == ("share", ("died: 1",), None)
    frame, draws = frame.assign(z=frame["z"] / 3 + 2), draws.assign(z=draws["z"] / 3 + 1.9)
    mean = run(frame, draws, None, study=Study(model="z ~ 1")).estimates
    assert mean.coefficients[0] == pytest.approx(frame["z"].mean(), abs=0.005) and mean.measure == "mean"
    assert mean.std_errors[0] == pytest.approx(1 / 3 / np.sqrt(20_000), rel=0.1)
    assert read_back(run(frame, draws, 3.0, study=WOMEN)).design.model.where


def test_an_empty_subgroup_claims_nothing():
    """A prior's interval as a finding, or a fit that ends after it has used its budget."""
    nobody = cohort(3000, seed=1).assign(sex="M")
    for model in ("died ~ x where sex == 'F'", "died ~ 1 where sex == 'F'"):
        found = run(cohort(500), SCHEMA.conform(nobody).frame, 5.0, study=Study(model=model)).estimates
        assert "nothing was learned" in found.remarks[0]


def test_a_record_that_overflows_adds_nothing():
    """Infinity from a record at the schema's bound, where draws scale the column by a tiny number."""
    frame = cohort(50)
    point, table = point_of(frame, bound=0.3, cap=0.2), CodedTable(frame)
    for tiny in (1e-300, 1e-308, 1e-160):
        far = replace(point, design=replace(point.design, scale=np.array([tiny, tiny, 1.0])))
        for total in (far.total_score(table)[0], far.total_information(table)[0]):
            assert np.abs(total * STEP).max() <= 50  # a whole number made of NaN is far beyond


@pytest.mark.parametrize(("survival", "split"), [(False, SPLIT), (True, SURVIVAL_SPLIT)])
def test_the_split_is_the_whole_of_a_study(survival, split):
    """Readings that cost more than the one mechanism that the budget thinks of, or one that is forgotten."""
    planned = StudyReleases.plan("a", noise_multiplier=2.0, survival=survival)
    spent = [event.noise_multiplier**-2 * 2.0**2 for event in planned.events]
    assert spent == pytest.approx(split) and sum(split) == pytest.approx(1.0)


def test_state_comes_back():
    """A saved study that draws other outcomes, or tells other numbers, when it is loaded."""
    found = run(cohort(1000), cohort(3000, seed=1), 20.0)
    again = read_back(found)
    assert to_plain(again) == to_plain(found) and str(again.estimates) == str(found.estimates)
    x, y = again.design.read(cohort(10))
    np.testing.assert_array_equal(x, found.design.read(cohort(10))[0])
    assert len(y) == 10


@pytest.mark.slow
@pytest.mark.parametrize("noise", [10.0, 40.0])
def test_intervals_are_honest(noise):
    """Intervals without the noise, with half of it, or of another centre: coverage of known coefficients.

    sex has no effect: its p-values are those of a true null.
    """
    truth, inside, null = np.array([0.5, 0.3, 0.0]), [], []
    draws = cohort(3000, seed=10**6, slope=0.2)
    for seed in range(70):
        found = run(cohort(1500, seed), draws, noise, seed).estimates
        inside.append(np.abs(found.coefficients - truth) < 1.96 * found.std_errors)
        null.append(found.effects()[2]["p_value"] < 0.05)
    assert np.mean(inside) > 0.915
    # where noise drowns the information, intervals are made for what it may be: they are too wide, and say so
    assert noise == 40.0 or np.mean(inside) < 0.99
    assert np.mean(null) < 0.1
