"""Audits of releases on worst-case neighbours: correct ones pass, and lies of every size are caught."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import beside, marginals_options
from visits import VISITS, histories_of, visits

from dpsynth import DPMarginals
from dpsynth.audits.configuration import Releases, audit_one, releases_of
from dpsynth.audits.releases import (
    _MADE_UP,
    LEAST_EPSILON,
    audit_choices,
    audit_in_one_run,
    audit_path,
    audit_release,
    exact,
    neighbours_of,
    rarely,
    uniform_records,
    worst_case,
)
from dpsynth.audits.trials import AWAKE
from dpsynth.errors import InputError
from dpsynth.privacy.release import CountRelease, GaussianRelease
from dpsynth.studies.study import Study
from dpsynth.synthesis.matching import MatchingOptions
from dpsynth.synthesis.parts.rows import VisitsRelease
from dpsynth.table.schema import Column, Schema

#: so many would show half of the noise at noise multiplier 1, so that a verdict is "pass"
DELTA, TRIALS = 1e-5, 1000
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=99, missing=True),
        Column(name="lab", kind="continuous", lower=0.1, upper=50, scale="log", missing=True),
        Column(name="group", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="died", kind="binary", categories=(0, 1)),
    ),
    outcome="died",
)
STUDIES = (
    Study(name="death", model="logistic: died ~ age + group"),
    Study(name="time", model="cox: (lab, died) ~ age"),
)
NAMES = (
    "number of records",
    "single-column counts",
    "base model edges",
    "base model tables",
    "pairwise statistics",
    "choice of further tables",
    "further tables",
    "information of study death",
    "score of study death (1)",
    "score of study death (2)",
    "information of study time",
    "score of study time (1)",
    "score of study time (2)",
    "life table of study time",
)
FURTHER = tuple(f"{name} ({k})" for k in (1, 2, 3) for name in ("choice of further tables", "further tables"))
#: one of each class: the rest differ in the point that they are taken at
CHOICES = ("base model edges", "choice of further tables")
GAUSSIAN = dict.fromkeys(name for name in NAMES if name not in CHOICES and not name.endswith("(2)"))


@cache
def found() -> Releases:
    """Every release of a fit, with all bins and points."""
    options = marginals_options(
        epsilon=20.0,
        delta=DELTA,
        pairwise_statistics=True,
        rounds=1,
    )
    with pytest.MonkeyPatch.context() as patch:  # the chain reads nothing and takes seconds
        patch.setattr("dpsynth.marginals.chain_fit._POOL", 500)
        patch.setattr("dpsynth.synthesis.study_forecast.DRAWS", 2000)
        return releases_of(SCHEMA, options, np.random.default_rng(0), also=beside(STUDIES))


def audited(release: GaussianRelease, made_up: pd.DataFrame, *, trials: int = TRIALS, seed: int = 1):
    """One release at noise multiplier 1."""
    loud = replace(release, noise_multiplier=1.0, stage=None)
    return audit_release(loud, made_up, delta=DELTA, trials=trials, rng=np.random.default_rng(seed))


@pytest.mark.slow
def test_every_release_of_a_fit_is_audited():
    """Catches a reading that the auditor never sees: each that a fit posts is in the list, in its order."""
    assert found().names == NAMES


def test_every_release_that_a_count_could_choose_is_audited():
    """Catches an audit of made-up records so few that rules leave out what a real fit releases."""
    given = {"epsilon": 0.1, "delta": DELTA}
    names = releases_of(SCHEMA, marginals_options(**given), np.random.default_rng(0)).names
    assert names == (*NAMES[:5], *FURTHER)


def test_rounds_of_equal_noise_are_audited_once():
    """Catches rounds that are audited again and again, and one of another sensitivity that is left out."""
    options = marginals_options(epsilon=20.0, delta=DELTA, rounds=3, pairwise_statistics=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpsynth.marginals.chain_fit._POOL", 200)
        of = releases_of(SCHEMA, options, np.random.default_rng(0))
    further = {name: place for name, place in of.mechanisms.items() if "further tables" in name}
    # the first round has one table more
    assert list(further) == [
        "choice of further tables, 3 times",
        "further tables (1)",
        "further tables, 2 times",
    ]
    assert [of.names[place] for place in further.values()] == [
        "choice of further tables (1)",
        "further tables (1)",
        "further tables (2)",
    ]
    audited = audit_one(of, "further tables, 2 times", trials=100, steps=1, rng=np.random.default_rng(0))
    assert audited.name == "further tables, 2 times"
    # two scores of a regression have points and bounds of their own, though their cost and words are the same
    counts = next(one for one in of.releases if one.name == "single-column counts")
    assert len(replace(of, releases=(counts, counts), plan=None).mechanisms) == 2


PATIENTS = VISITS.with_n_public(300)


@cache
def of_patients() -> Releases:
    options = marginals_options(epsilon=3.0, delta=DELTA)
    return releases_of(PATIENTS, options, np.random.default_rng(0))


@pytest.mark.slow
def test_every_release_of_patients_is_audited():
    """Catches rows that are read without an audit, and noise that differs from a fit's."""
    model = DPMarginals(epsilon=3.0, delta=DELTA).fit(visits(300), schema=PATIENTS)
    assert of_patients().names == tuple(entry.name for entry in model.ledger_.entries)
    assert of_patients().names[-1] == "tables of rows"  # a fit and its audit read by the same loop
    assert of_patients().releases[-1].event == model.ledger_.entries[-1].event


@pytest.mark.slow
@pytest.mark.parametrize("name", ["single-column counts", "base model tables", "tables of rows"])
def test_neighbours_differ_in_a_patient_with_all_rows(name):
    """Catches an audit of neighbours that differ in a row, or whose patients are no worst case."""
    of = of_patients()
    release = of.releases[of.names.index(name)]
    pair = neighbours_of(release, of.made_up)
    assert len(pair.with_record) - len(pair.without) == 1 and of.made_up["day@1"].notna().any()
    assert pair.moved == pytest.approx(release.l2_sensitivity, rel=2e-2)
    assert audited(release, of.made_up, trials=400).verdict == "pass"


@pytest.mark.slow
def test_random_critics_are_audited_as_a_fit_has_them():
    """Catches an audit of other critics, or of plain coordinates, where a fit has no base model."""
    options = MatchingOptions.of(epsilon=2.0, delta=DELTA)
    of = releases_of(SCHEMA, options, np.random.default_rng(0))
    assert of.names[-1] == "WGAN critic steps" and of.plan.steps == 32 and of.plan.sampling_prob == 1.0
    assert of.scale.max() == 3.0 and (of.scale == 1.0).any()
    result = audit_one(of, of.names[-1], trials=1000, steps=4, rng=np.random.default_rng(1), most_noise=2.0)
    assert result.verdict == "pass" and result.attained >= 0.95 and not result.own_noise


@pytest.mark.slow
@pytest.mark.parametrize("name", GAUSSIAN)
def test_correct_releases_pass(name):
    """Catches an audit that contradicts what is right, that sleeps, or whose neighbours are no worst case."""
    of = found()
    result = audited(of.releases[of.names.index(name)], of.made_up)
    assert result.verdict == "pass", result.to_dict()
    assert result.attained == pytest.approx(1.0, abs=2e-2)
    assert 0.4 * result.declared["epsilon"] < result.gaussian_epsilon.lower <= result.declared["epsilon"]


@pytest.mark.slow
def test_a_patient_with_many_rows_is_no_more_than_declared():
    """Catches tables of rows that are noisy for one row. An attacker then finds a patient with six of them.

    The differing patient is the one of forty who moves the tables most, and the attacker knows all others.
    """
    patients = histories_of(visits(45, seed=3, most=12), VISITS)
    release = VisitsRelease(noise_multiplier=1.0, schema=VISITS)
    result = audited(release, patients, trials=500)
    assert result.verdict == "pass", result.to_dict()
    assert result.attained == pytest.approx(1.0)
    assert 0.4 * result.declared["epsilon"] < result.gaussian_epsilon.lower <= result.declared["epsilon"]


@dataclass(frozen=True, kw_only=True)
class Lying(CountRelease):
    """A count whose noise is a part of what is declared, or that does not count."""

    part: float = 1.0
    deaf: bool = False

    @property
    def noise_std(self) -> float:
        return self.part * super().noise_std

    def query(self, records):
        return [np.array(7)] if self.deaf else super().query(records)


class Deaf(Lying):
    """Reads with its own query, but measures something else."""

    def measure(self, records, rng):
        return [np.array(rng.standard_normal())]


@pytest.mark.parametrize(
    ("part", "verdict"), [(1.0, "pass"), (0.5, "contradicted"), (1e-9, "contradicted"), (4.0, "asleep")]
)
def test_a_lie_about_the_noise_is_caught(part, verdict):
    """Catches an audit that lets half of the declared noise pass, or none, or that finds too much noise good
    enough: then nobody would notice that it looks at the wrong numbers.
    """
    made_up = uniform_records(SCHEMA, 20, np.random.default_rng(0))
    release = Lying(noise_multiplier=1.0, part=part)
    result = audit_release(release, made_up, delta=DELTA, trials=TRIALS, rng=np.random.default_rng(2))
    assert result.verdict == verdict, result.to_dict()
    assert result.failed == (verdict != "pass")
    contradicted = [attempt for attempt in result.attempts() if attempt.contradicts]
    assert bool(contradicted) == (verdict == "contradicted")
    assert not any(attempt.internal for attempt in result.attempts())


def test_of_a_mechanism_that_ignores_the_data_nothing_is_found():
    """Catches an audit that finds something in noise (the null test)."""
    made_up = uniform_records(SCHEMA, 20, np.random.default_rng(0))
    for seed in range(5):
        result = audit_release(
            Deaf(noise_multiplier=1.0), made_up, delta=DELTA, trials=TRIALS, rng=np.random.default_rng(seed)
        )
        assert result.verdict == "asleep" and result.tv.lower < 0.02 and result.lower < 0.15


def test_few_trials_are_called_few():
    """Catches a pass that nothing stands behind: weak releases in few trials show nothing either way."""
    made_up = uniform_records(SCHEMA, 20, np.random.default_rng(0))
    weak = CountRelease(noise_multiplier=30.0)
    result = audit_release(weak, made_up, delta=DELTA, trials=200, rng=np.random.default_rng(0))
    assert result.verdict == "too few trials" and not result.failed
    with pytest.raises(InputError, match="no noise"):
        silent = Lying(noise_multiplier=1.0)
        from dpsynth.audits.trials import Declared, judge_trials
        from dpsynth.privacy.events import non_private_event
        from dpsynth.privacy.profile import Profile

        profile = Profile([non_private_event()])
        judge_trials(silent.name, [0.0, 1.0], [True, False], Declared(profile, DELTA), about="")


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_passes_and_its_law_is_the_definitions(name):
    """Catches a worst case that is none, and a choice with another law than the exponential mechanism's."""
    release = found().releases[NAMES.index(name)]
    result = audit_choices(release, delta=DELTA, trials=2 * TRIALS, rng=np.random.default_rng(3))
    assert result.verdict == "pass" and 0.4 < result.epsilon.lower <= result.declared["epsilon"]
    worst = worst_case(replace(release, epsilon=0.01))
    assert worst.epsilon == LEAST_EPSILON
    scores = [exact_scores(worst, present) for present in (0, 1)]
    moved = scores[1] - scores[0]
    assert np.abs(np.abs(moved) - 1.0).max() < 1e-4 and (moved < 0).sum() == 1
    weights = np.exp(0.5 * (scores[1] - scores[1].max()))
    assert (weights / weights.sum())[moved < 0] == pytest.approx(rarely(1.0)[1], rel=1e-4)
    with pytest.raises(InputError, match="no noise"):
        worst_case(replace(release, epsilon=None))


def exact_scores(release, present):
    from dpsynth.privacy.records import FrameRecords

    frame = pd.DataFrame({name: [0] * present for name in _MADE_UP.names})
    records = FrameRecords(_MADE_UP.conform(frame).frame)
    with records.opened():
        if release.name == "base model edges":
            return release.scores(records)[0, 1:]
        return release.scores(records, release.given[0])


@pytest.mark.slow
def test_the_priors_path_is_one_mechanism():
    """Catches noise that several releases of a fit share, and a release that rests on more than is posted."""
    schema = Schema(columns=tuple(column for column in SCHEMA.columns if column.name != "lab"), n_public=300)
    options = marginals_options(epsilon=10.0, delta=DELTA)
    result = audit_path(schema, options, trials=120, rng=np.random.default_rng(4))
    assert not result.failed and result.tv.lower >= AWAKE * result.expected_tv > 0.2
    assert result.declared["epsilon"] == pytest.approx(10.0, abs=0.07)
    assert abs(result.tv.value - result.declared["tv"]) < 0.15
    with pytest.raises(InputError, match="no n_public"):
        audit_path(SCHEMA, options, trials=10, rng=np.random.default_rng(4))


@pytest.mark.slow
def test_one_reading_of_many_canaries():
    """Catches a bound from one run that passes what is declared, and one that sees nothing of it."""
    made_up = uniform_records(SCHEMA, 400, np.random.default_rng(5))
    release = replace(found().releases[3], noise_multiplier=1.0, stage=None)
    shown = [
        audit_in_one_run(release, made_up, delta=DELTA, rng=np.random.default_rng(seed)) for seed in range(5)
    ]
    assert np.median(shown) > 0.1 and max(shown) < 4.38  # mu = 1 at this delta


def test_neighbours_are_as_far_apart_as_any_that_are_made_up():
    """Catches a worst case that looks at the first record only: scores differ from record to record."""
    release, made_up = (
        found().releases[found().names.index("score of study death (1)")],
        found().made_up.iloc[:45],
    )
    pair = neighbours_of(release, made_up)
    base = exact(release, made_up.iloc[:5])
    moved = [
        np.linalg.norm(exact(release, pd.concat([made_up.iloc[:5], made_up.iloc[i : i + 1]])) - base)
        for i in range(5, 45)
    ]
    assert pair.moved == pytest.approx(max(moved))
    assert min(moved) < 0.9 * pair.moved
