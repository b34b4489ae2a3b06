"""Stages of a ledger add up; what is claimed of the sum holds for every mechanism that keeps the parts."""

import itertools
import json
import math
import pickle
import threading
import time
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from dpsynth.errors import InputError, PrivacyError
from dpsynth.privacy import Ledger, Profile
from dpsynth.privacy.calibration import AdvantageTarget, BeliefTarget, EpsilonTarget, TvTarget
from dpsynth.privacy.conversions import posterior_belief
from dpsynth.privacy.events import approx_tv_event, gaussian_event, laplace_event, training_event
from dpsynth.privacy.gaussian_loss import analytic_sigma
from dpsynth.privacy.profile import measures_of
from dpsynth.privacy.records import FrameRecords
from dpsynth.privacy.stages import Contents, Stage
from dpsynth.runs.commands.account import calibrated, of_ledger

MECHANISMS = {
    "gaussian": [gaussian_event(0.8)],
    "laplace": [laplace_event(0.7)],
    "training": [training_event(1.0, 0.05, 300)],
    "mixed": [gaussian_event(3.0), laplace_event(2.0), training_event(2.0, 0.2, 50)],
}


def staged(*parts):
    """A ledger with one Gaussian release a stage."""
    ledger = Ledger()
    for delta, epsilon, multiplier in parts:
        ledger.begin_stage(delta, epsilon=epsilon)
        ledger.post("release", gaussian_event(multiplier), sensitivity="1")
    return ledger


def test_a_promise_bounds_every_mechanism_that_keeps_it():
    """Catches a claim that does not follow from epsilon, delta and total variation: a true curve beyond it.

    The true curves are numerical, and lie on the private side by up to the tolerances.
    """
    for name in MECHANISMS:
        for delta in [1e-6, 1e-2]:
            real = Profile(MECHANISMS[name])
            promised = Profile.promised(real.epsilon(delta), delta, real.tv())
            grid = np.linspace(0.0, 1.5 * real.epsilon(delta), 40)
            for epsilon in grid:
                assert real.delta(epsilon) <= promised.delta(epsilon) * (1 + 1e-9) + 1e-12
                assert real.exceedance(epsilon) <= promised.exceedance(epsilon) * (1 + 1e-6) + 1e-12
            for probability in (2 * delta, 0.05, 0.3):
                assert real.loss_quantile(probability) <= promised.loss_quantile(probability) * (1 + 1e-9)
                assert real.epsilon(probability) <= promised.epsilon(probability) * (1 + 1e-5) + 1e-12
            rates = np.linspace(0.0, 1.0, 101)
            assert np.all(real.fnr(rates) >= promised.fnr(rates) - 1e-5)
            for prior in (0.1, 0.5, 0.8):
                assert real.attack_accuracy(prior) <= promised.attack_accuracy(prior) + 1e-12


@pytest.mark.parametrize(("epsilon", "delta", "tv"), [(1.0, 1e-5, 0.3), (3.0, 1e-3, 0.6), (0.2, 0.0, 0.05)])
def test_a_promise_is_the_worst_mechanism_that_keeps_it(epsilon, delta, tv):
    """Catches a bound that is looser than need be, against the erasure mechanism of Ghazi and Issa."""
    worst = Profile([approx_tv_event(epsilon, tv, delta)])
    promised = Profile.promised(epsilon, delta, tv)
    assert promised.epsilon(delta) == epsilon and promised.tv() == tv
    for point in np.linspace(0.0, 1.2 * epsilon, 13):
        assert promised.delta(point) == pytest.approx(worst.delta(point), abs=5e-4 * tv + 1e-12)


def composed_delta(mu, epsilon, delta, tv, point):
    """delta of a Gaussian mechanism and the worst (epsilon, delta, tv) one, by its three or four outcomes."""

    def gaussian(e):
        return ndtr(mu / 2 - e / mu) - math.exp(e) * ndtr(-mu / 2 - e / mu)

    erased = 1 - (tv - delta) / (1 - delta) / math.tanh(epsilon / 2)
    likely = (1 - erased) / (1 + math.exp(-epsilon))
    parts = ((erased, 0.0), (likely, epsilon), (1 - erased - likely, -epsilon))
    return delta + (1 - delta) * math.fsum(share * gaussian(point - loss) for share, loss in parts)


@pytest.mark.parametrize("tv", [None, 0.7])
@pytest.mark.parametrize(("first", "second"), [((0.06, 2e-8), (2.94, 9.8e-7)), ((0.5, 1e-6), (1.0, 1e-5))])
def test_the_belief_of_a_count_and_what_depends_on_it(first, second, tv):
    """Catches a belief read off the sum, off entries that a count has chosen, or off the worst pair's loss.

    Computed apart, by the outcomes of the worst mechanism and the tails of the normal distribution.
    """
    multiplier = analytic_sigma(*first)
    ledger = Ledger()
    ledger.begin_stage(first[1])
    ledger.post("count", gaussian_event(multiplier), sensitivity="1")
    ledger.begin_stage(second[1], epsilon=second[0], tv=tv)
    ledger.post("rest", gaussian_event(2 * analytic_sigma(*second)), sensitivity="1")
    profile, delta = ledger.profile(), ledger.delta
    whole = math.tanh(second[0] / 2)
    worst = second[1] + (1 - second[1]) * whole if tv is None else min(tv, whole)

    def delta_at(point):
        return composed_delta(1 / multiplier, *second, worst, point)

    level = brentq(lambda point: delta_at(point) - delta, second[0] / 2, sum((first[0], second[0])))
    assert profile.belief(delta) == pytest.approx(1 / (1 + math.exp(-level)), rel=2e-3)
    assert profile.belief(delta) >= (1 - 1e-9) / (1 + math.exp(-level))
    grid = np.linspace(1e-4, level, 3000)
    bound = min(delta_at(level - ahead) / -math.expm1(-ahead) for ahead in grid)
    assert profile.belief_exceedance(delta) == pytest.approx(bound, rel=0.1)
    assert delta < profile.belief_exceedance(delta) < 0.05 * profile.exceedance(profile.epsilon(delta))
    cost = measures_of(profile, delta)
    assert cost["belief_bound"] == profile.belief(delta)
    assert cost["belief_exceedance"] == profile.belief_exceedance(delta)


def epsilon_of(p, q, delta):
    """Smallest epsilon at which two distributions differ by at most delta."""
    if divergence(p, q, 0.0) <= delta:
        return 0.0
    return brentq(lambda epsilon: divergence(p, q, epsilon) - delta, 0.0, 50.0)


@pytest.mark.slow
def test_beliefs_of_adaptive_stages_stay_within_the_bound():
    """Catches a belief that is passed more often than said where the first outcome chooses the second noise.

    Drawn at random on three outcomes each, and counted over all nine.
    """
    rng, passed = np.random.default_rng(), 0
    for _ in range(60):
        first = rng.dirichlet(np.ones(3), 2)
        second = rng.dirichlet(np.full(3, 2.0), (2, 3))
        joint = [(first[t][:, None] * second[t]).ravel() for t in (0, 1)]
        d2 = 0.02
        pairs = [(second[a][y], second[1 - a][y]) for a in (0, 1) for y in range(3)]
        e2 = max(epsilon_of(*pair, d2) for pair in pairs)
        tv2 = max(divergence(*pair, 0.0) for pair in pairs)
        e1 = float(np.abs(np.log(first[0] / first[1])).max())
        tv1 = divergence(*first, 0.0)
        events = [approx_tv_event(e1, tv1), approx_tv_event(e2, tv2, d2)]
        profile = Profile.promised(e1 + e2, d2, tv1 + tv2, composed=events)
        for delta in (d2, 0.1, 0.3):
            level = math.log(profile.belief(delta) / (1 - profile.belief(delta)))
            for a in (0, 1):
                beyond = joint[a][np.log(joint[a] / joint[1 - a]) > level + 1e-9].sum()
                passed += beyond > 0.0
                assert beyond <= profile.belief_exceedance(delta) + 1e-9
    assert passed > 20  # or nothing was tried


def test_costs_that_nobody_fixed_beforehand_are_summed():
    """Catches a composition of stages whose costs may have been chosen in view of earlier outputs."""
    ledger = staged((1e-6, None, 20.0), (1e-6, None, 5.0))  # a second fit may follow from the first
    profile = ledger.profile()
    level = profile.epsilon(ledger.delta)
    assert profile.belief(ledger.delta) == pytest.approx(posterior_belief(level), rel=1e-12)
    assert profile.belief_exceedance(ledger.delta) == profile.exceedance(level)


def divergence(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def test_adaptive_stages_add_up():
    """Catches a sum that fails where the second mechanism depends on what the first one showed.

    Drawn at random on three outcomes each; the first outcome chooses the second, whose epsilon, delta
    and total variation are those of the worst choice, as they are when they are fixed beforehand.
    """
    rng = np.random.default_rng(5)
    for _ in range(300):
        first = rng.dirichlet(np.ones(3), 2)
        second = rng.dirichlet(np.ones(3), (2, 3))  # table, outcome of the first
        joint = [(first[t][:, None] * second[t]).ravel() for t in (0, 1)]
        for (a, b), e1, e2 in itertools.product(((0, 1), (1, 0)), (0.0, 0.5), (0.0, 0.7)):
            d1 = divergence(first[a], first[b], e1)
            d2 = max(divergence(second[a][y], second[b][y], e2) for y in range(3))
            whole = divergence(joint[a], joint[b], e1 + e2)
            assert whole <= d1 + d2 + 1e-12
            if e1 == e2 == 0.0:
                assert whole <= Profile.promised(5.0, 0.5, d1 + d2).tv() + 1e-12


def test_a_ledger_of_stages_prints_their_sum():
    """Catches stages put on one privacy-loss distribution, which noise chosen after the fact has not."""
    ledger = staged((1e-6, 0.5, 20.0), (2e-6, 2.0, 3.0), (3e-6, None, 4.0))
    alone = Profile([gaussian_event(4.0)])
    assert ledger.delta == pytest.approx(6e-6)
    assert ledger.epsilon(ledger.delta) == pytest.approx(2.5 + alone.epsilon(3e-6))
    # of the first two, epsilon was fixed and their entries are one of the possible costs
    most = (math.tanh(0.25) + math.tanh(1.0) + alone.tv(), math.tanh(ledger.epsilon(6e-6) / 2))
    assert ledger.profile().tv() == pytest.approx(min(most), abs=1e-5)
    assert ledger.epsilon(5e-6) == math.inf
    one_curve = Profile([gaussian_event(z) for z in (20.0, 3.0, 4.0)])
    assert ledger.epsilon(ledger.delta) > one_curve.epsilon(ledger.delta)
    assert "the sum of 3 stages" in str(ledger.guarantee())
    cost = of_ledger(ledger)
    assert [entry["stage"] for entry in cost["entries"]] == [1, 2, 3]
    assert cost["entries"][-1]["epsilon_cumulative"] == cost["epsilon"]
    assert [stage["epsilon"] for stage in cost["stages"]][:2] == [0.5, 2.0]


@pytest.mark.parametrize("promise", [{"epsilon": 0.1}, {"epsilon": 5.0, "tv": 0.3}])
def test_entries_that_break_the_promise_of_their_stage_are_refused(promise):
    """Catches a promise that is believed although the entries beside it break it."""
    ledger = staged((1e-6, 0.5, 20.0))
    ledger.begin_stage(1e-6, **promise)
    with pytest.raises(PrivacyError, match="'counts' would make stage 2 of the ledger cost more"):
        ledger.post("counts", gaussian_event(1.0), sensitivity="1")
    assert len(ledger.entries) == 1
    ledger.post("counts", gaussian_event(100.0), sensitivity="1")


def test_a_ledger_that_broke_a_promise_is_read_and_counts_the_worse():
    """Catches a data set locked by a file of an older version, or a broken promise that is believed."""
    record = staged((1e-6, 0.5, 20.0), (1e-6, 5.0, 1.0)).to_dict()
    record["stages"][1] |= {"epsilon": 0.1, "tv": 0.05}
    record |= {"epsilon": None, "tv": None}
    ledger = Ledger.from_dict(record)
    alone = Profile([gaussian_event(1.0)])
    assert ledger.epsilon(2e-6) == pytest.approx(0.5 + alone.epsilon(1e-6))
    assert ledger.profile().tv() > 0.9 > alone.tv()  # another branch may be as far as its epsilon allows
    with pytest.raises(InputError, match="epsilon bounds the cost of a stage at its delta"):
        Stage.begin(epsilon=0.1)


@pytest.mark.parametrize("first", [0, 1])
def test_a_promise_without_total_variation_bounds_each_branch(first):
    """Catches total variation of the entries, which are one branch of those that an output may choose."""
    branches = (20.0, 1000.0)
    ledger = staged((1e-6, None, 30.0), (1e-6, 0.3, branches[first]))
    other = staged((1e-6, None, 30.0), (1e-6, None, branches[1 - first]))
    assert ledger.profile().tv() >= other.profile().tv()
    assert ledger.epsilon(0.01) >= other.epsilon(0.01)
    with pytest.raises(InputError, match="tv bounds a stage's total variation together with epsilon"):
        ledger.begin_stage(1e-6, tv=0.1)


def test_the_cost_so_far_within_a_stage_is_that_of_its_entries():
    """Catches a waterfall whose first step is the whole stage, or whose last is not the total."""
    ledger = staged((1e-6, 0.5, 20.0))
    ledger.begin_stage(1e-6, epsilon=3.0)
    ledger.post("a", gaussian_event(4.0), sensitivity="1")
    ledger.post("b", gaussian_event(2.0), sensitivity="1")
    so_far = [entry["epsilon_cumulative"] for entry in ledger.summary()["entries"]]
    assert so_far[1] == pytest.approx(0.5 + Profile([gaussian_event(4.0)]).epsilon(1e-6))
    assert so_far == sorted(so_far) and so_far[2] == pytest.approx(3.5)


def test_a_ledger_file_can_be_read_by_a_person_and_comes_back(tmp_path):
    """Catches a file without delta, adjacency, unit or totals, and stages that are lost on the way."""
    ledger = staged((1e-6, 0.5, 20.0), (2e-6, 2.0, 3.0))
    ledger.save(tmp_path / "ledger.json")
    record = json.loads((tmp_path / "ledger.json").read_text())
    assert record["unit"] == "one row" and record["adjacency"] == "add/remove"
    assert record["delta"] == pytest.approx(3e-6) and record["epsilon"] == 2.5
    assert record["tv"] == pytest.approx(ledger.profile().tv())
    assert Ledger.load(tmp_path / "ledger.json").to_dict() == ledger.to_dict()
    free = Ledger()
    free.post("release", gaussian_event(2.0), sensitivity="1")
    assert (free.to_dict()["delta"], free.to_dict()["epsilon"]) == (None, None)
    with pytest.raises(InputError, match="names no delta"):
        free.guarantee()


class Steps:
    """A release that was posted as a whole and may be interrupted."""

    resumed = True
    name, event, sensitivity, adjacency, detail, stage = (
        "steps",
        gaussian_event(2.0),
        "1",
        "add/remove",
        "",
        None,
    )

    def __call__(self, records, rng):
        return records


def test_a_continuation_costs_nothing_more():
    """Catches a resumed run that pays twice, or whose entry looks like the one that it went on from."""
    interrupted = staged((1e-6, None, 20.0))
    interrupted.post("steps", Steps.event, sensitivity="1")
    ledger = Ledger.from_dict(interrupted.to_dict())
    ledger.resume(Steps(), FrameRecords(pd.DataFrame({"a": [1]})), np.random.default_rng(0))
    assert ledger.epsilon(1e-6) == interrupted.epsilon(1e-6)
    assert ledger.entries[-1].keys[:-1] == interrupted.entries[-1].keys and ledger.counts(interrupted)


def test_a_run_of_an_older_version_goes_on():
    """Catches a checkpoint whose ledger says "critic steps" and that its WGAN critic cannot continue."""
    records, rng = FrameRecords(pd.DataFrame({"a": [1]})), np.random.default_rng(0)
    now = Steps()
    now.name = "WGAN critic steps"
    for posted in ("critic steps", "WGAN critic steps"):
        ledger = Ledger()
        ledger.post(posted, Steps.event, sensitivity="1")
        ledger.resume(now, records, rng)
        assert [entry.name for entry in ledger.entries] == [posted]
    ledger = Ledger()
    ledger.post("other steps", Steps.event, sensitivity="1")
    with pytest.raises(PrivacyError, match="cannot go on"):
        ledger.resume(now, records, rng)


@pytest.mark.parametrize("copy", [lambda ledger: ledger, deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_threads_lose_no_entry(copy, monkeypatch):
    """Catches an entry that another thread's overwrites: it was read, and costs nothing."""
    ledger, adding = copy(Ledger()), Contents.adding

    def slowly(self, entry, stage):
        time.sleep(1e-3)  # another thread's turn, between reading what is there and writing it back
        return adding(self, entry, stage)

    def post(name):
        for place in range(5):
            ledger.post(f"{name} {place}", gaussian_event(9.0), sensitivity="1")

    monkeypatch.setattr(Contents, "adding", slowly)
    threads = [threading.Thread(target=post, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({entry.name for entry in ledger.entries}) == len({e.keys for e in ledger.entries}) == 40


def test_what_is_posted_into_a_complete_ledger_is_a_stage_of_its_own(tmp_path):
    """Catches a release that is free because it hides under what an earlier stage promised as a whole."""
    first = staged((1e-6, None, 80.0), (2e-6, 2.94, 20.0))
    first.save(tmp_path / "ledger.json")
    ledger = Ledger.load(tmp_path / "ledger.json")
    before = ledger.epsilon(ledger.delta)
    ledger.post("deaths", gaussian_event(8.0), sensitivity="1")
    ledger.post("births", gaussian_event(9.0), sensitivity="1")
    assert [entry.stage for entry in ledger.entries] == [1, 2, 3, 3]
    assert ledger.delta == pytest.approx(5e-6)
    alone = Profile([gaussian_event(8.0), gaussian_event(9.0)]).epsilon(2e-6)
    assert ledger.epsilon(ledger.delta) == pytest.approx(before + alone)
    free = Ledger()
    free.post("release", gaussian_event(2.0), sensitivity="1")
    free = Ledger.from_dict(free.to_dict())
    with pytest.raises(PrivacyError, match="begin_stage"):
        free.post("more", gaussian_event(2.0), sensitivity="1")
    assert len(free.entries) == 1
    free.begin_stage(1e-6)
    free.post("more", gaussian_event(2.0), sensitivity="1")
    assert free.delta == 2e-6 and len(free.stages) == 2


def test_a_stage_in_which_nothing_was_read_leaves_no_trace():
    """Catches a fit that is refused before it reads anything and costs its epsilon all the same."""
    ledger = staged((1e-6, 0.5, 20.0))
    ledger.begin_stage(1e-6, epsilon=9.0)
    assert ledger.delta == 1e-6 and len(ledger.stages) == 1
    ledger.begin_stage(1e-6, epsilon=1.0)
    ledger.post("more", gaussian_event(9.0), sensitivity="1")
    assert ledger.epsilon(2e-6) == 1.5


@pytest.mark.parametrize(
    "target",
    [
        EpsilonTarget(3.0, 1e-5),
        pytest.param(TvTarget(0.5), marks=pytest.mark.slow),
        pytest.param(AdvantageTarget(0.3, 0.01), marks=pytest.mark.slow),
    ],
)
def test_a_run_is_calibrated_as_a_stage_after_a_ledger(target):
    """Catches earlier releases put on one curve with a run whose noise was chosen in view of them."""
    earlier = staged((1e-6, None, 20.0))
    cost = calibrated(target, 0.02, 300, 1e-5, earlier=earlier)
    run = Profile([training_event(cost["noise_multiplier"], 0.02, 300)])
    assert cost["epsilon"] == pytest.approx(earlier.epsilon(1e-6) + run.epsilon(9e-6))
    assert cost["tv"] == pytest.approx(earlier.profile().tv() + run.tv())
    whole = Profile.promised(cost["epsilon"], 1e-5, cost["tv"])
    assert 0.99 * target.goal < target.cost(whole) <= target.goal


def test_what_cannot_be_summed_is_refused():
    """Catches a belief bound that nothing proves, and a delta of which nothing is left."""
    earlier = staged((1e-6, 0.5, 20.0))
    with pytest.raises(InputError, match="belief"):
        calibrated(BeliefTarget(0.9, 1e-5), 0.02, 300, 1e-5, earlier=earlier)
    with pytest.raises(PrivacyError, match="leaves nothing"):
        calibrated(TvTarget(0.5), 0.02, 300, 1e-6, earlier=earlier)


def test_the_promise_of_an_only_stage_counts():
    """Catches a fit that was stopped early, in view of its outputs, at the cost of what it had posted."""
    ledger = Ledger()
    ledger.begin_stage(1e-6, epsilon=0.5, tv=0.2)
    ledger.post("count", gaussian_event(1e3), sensitivity="1")
    assert (ledger.epsilon(1e-6), ledger.profile().tv()) == (0.5, 0.2)
    assert ledger.epsilon(1e-7) == np.inf and ledger.summary()["epsilon"] == 0.5
