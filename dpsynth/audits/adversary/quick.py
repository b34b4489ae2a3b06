"""The adversary A_DI in a few seconds, for the report of a run and its own plan.

Runs whose differing record moves every step by all that the accounting allows: the worst case itself.

What is released is one number a step. A Gaussian mechanism in any number of dimensions gives an adversary
who knows both means the same log-odds as this one number does (the part along the difference of the means),
so that the exact total variation and the exact exceedance are reached here, and nowhere passed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.events import training_event
from dpsynth.accounting.normal_form import REPLACE_ONE, check_adjacency
from dpsynth.accounting.profile import Profile
from dpsynth.attacks.adversary.belief import log_odds
from dpsynth.attacks.adversary.game import Game, attempts
from dpsynth.attacks.attempt import Attempt
from dpsynth.attacks.audit.verdict import SURE
from dpsynth.audits.adversary.critic import critic_subject
from dpsynth.audits.adversary.setting import Setting
from dpsynth.checks import inside, whole
from dpsynth.evaluation.estimates import Estimate
from dpsynth.mechanism.plan import Plan
from dpsynth.model.wgan.settings import TrainingSettings
from dpsynth.releases.critic import Transcript
from dpsynth.table.layout import Layout


def run_at_the_bound(
    noise_multiplier: float,
    sampling_prob: float,
    steps: int,
    world: int,
    rng: np.random.Generator,
    *,
    adjacency: str = "add/remove",
) -> Transcript:
    """One run of T steps on D (world 0) or D' (world 1).

    Parameters
    ----------
    noise_multiplier : float
        Of the event of one step, in units of the sensitivity to adding or removing one record.
    sampling_prob : float
        In (0, 1].
    steps : int
        At least 1.
    world : {0, 1}
    rng : numpy.random.Generator
    adjacency : {"add/remove", "replace-one"}
        Under replace-one the two records move the sum in opposite directions.

    Examples
    --------
    >>> run_at_the_bound(8.4, 1.0, 30, 0, np.random.default_rng(0)).released.shape
    (30, 1)
    """
    inside("noise_multiplier", noise_multiplier, 0.0, np.inf)
    one = np.ones((whole("steps", steps), 1))
    other = -one if check_adjacency(adjacency) == REPLACE_ONE else 0.0 * one
    records = np.stack([one, other])
    taken = rng.random(one.shape) < sampling_prob
    released = np.where(taken, records[world], 0.0) + noise_multiplier * rng.standard_normal(one.shape)
    return Transcript(released, 0.0 * one, records, noise_multiplier * one, sampling_prob)


Floats = NDArray[np.float64]

#: simulated runs of the whole plan; watched trainings of its first steps
SIMULATED, WATCHED, WATCHED_STEPS = 1000, 8, 20
#: the belief told is one that a record at the bound passes with this probability
PASSED = 0.01


def quick_attempts(
    plan: Plan, training: TrainingSettings, layout: Layout, points: Floats, *, name: str, seed: int = 0
) -> tuple[Attempt, ...]:
    """A simulated record at the bound over the whole plan, and what a real one moves in its first steps.

    Parameters
    ----------
    plan : Plan
        Of the run.
    training : TrainingSettings
        Of the run.
    layout : Layout
    points : ndarray (n, dim)
        Encoded records, in the unit cube, at least two.
    name : str
        Of the table.
    seed : int
        Of the experiment, which releases nothing.

    Returns
    -------
    tuple of Attempt
        Advantage and exceedance of the simulation, which reads no record and is not internal; then the
        advantage reckoned for the record that lies furthest from all others. Empty where the plan adds no
        noise; without the last where the penalty reads records, which cannot be watched.

    Notes
    -----
    A few trainings cannot show an advantage of a tenth. They do show which part of the bound a record moves
    a step by; the advantage is that of the plan with the noise divided by this part, as if later steps were
    like the first. Its interval is Student's, of the part over trainings.
    """
    if plan.noise_multiplier is None:
        return ()
    whole = Setting(plan.steps, plan.noise_multiplier, plan.sampling_prob)
    profile = whole.profile()
    belief = max(profile.belief_quantile(PASSED), 0.5 + 1e-6)
    rng = np.random.default_rng(seed)
    worlds = np.arange(SIMULATED) % 2
    odds = [
        log_odds(run_at_the_bound(plan.noise_multiplier, plan.sampling_prob, plan.steps, world, rng))[-1]
        for world in worlds
    ]
    found = [
        replace(attempt, internal=False)
        for attempt in attempts(
            Game(worlds, np.array(odds)),
            profile,
            belief,
            attack="A_DI against a record at the bound",
            about=f"simulated, all {plan.steps:,} critic steps of this run, no record read",
            closer="nothing: this is the worst case that the accounting is about",
            level=SURE,
        )
    ]
    steps = min(plan.steps, max(WATCHED_STEPS // training.critic_steps, 1) * training.critic_steps)
    if training.penalty == "data" or len(points) < 2 or steps % training.critic_steps:
        return tuple(found)
    short = replace(whole, steps=steps)
    subject = critic_subject(name, np.asarray(points, np.float64), points, layout, training, short, plan)
    parts = np.array([np.mean(subject.play(run, run + 1, seed)["moved"]) for run in range(WATCHED)])
    return (*found, _reckoned(whole, parts, profile.tv(), name))


def _reckoned(whole: Setting, parts: Floats, tv: float, name: str) -> Attempt:
    from scipy.stats import t as student

    middle, level = float(parts.mean()), 0.95
    reach = float(student.isf((1 - level) / 2, len(parts) - 1) * parts.std(ddof=1) / np.sqrt(len(parts)))
    ends = [min(max(part, 0.0), 1.0) for part in (middle, middle - reach, middle + reach)]
    value, lower, upper = (_tv_of_part(whole, part) for part in ends)
    return Attempt(
        "A_DI against the record furthest from all others",
        "advantage",
        Estimate(value, lower, upper),
        tv,
        Estimate(0.0, 0.0, 0.0),
        f"reckoned from {len(parts)} trainings on {name}: it moves a step by {middle:.0%} of the bound",
        "a record that moves every step by the whole bound, always in the same direction",
        level,
    )


def _tv_of_part(whole: Setting, part: float) -> float:
    if part <= 0.0:
        return 0.0
    event = training_event(whole.noise_multiplier / part, whole.sampling_prob, whole.steps)
    return Profile([event], coarseness=4.0).tv()
