"""Do intervals of a declared subgroup cover the effect and the prevalence there, and how wide are they?

    python benchmarks/study_groups.py --repetitions 200

A simulated population of 5,000 records a table. The subgroup is ``ward == 'icu' and age >= 65``, with 30, 10
or 5 % of the records. Ward and age depend on each other. Treatment has a log odds ratio of 0.8 in the
subgroup and of 0.2 outside. One fit declares two studies of the subgroup: effects of treatment and age, and
prevalence of death. One line a share and an epsilon is printed, each with three numbers: treatment, age and
prevalence. They are the coverage of 95 % intervals, the median width over that of the usual fit of the real
subgroup, and how often nothing was claimed.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
import statsmodels.api as sm

from dpsynth import Column, Schema, Studies
from dpsynth.synthesis.marginals import DPMarginals, MarginalsOptions, Statistics

N = 5000
RULE = "ward == 'icu' and age >= 65"
#: by the subgroup's share of the records: log odds of intensive care at 65 years
SHARES = {0.30: 0.65, 0.10: -1.75, 0.05: -2.57}
EFFECT, ELSEWHERE, SLOPE = 0.8, 0.2, 0.3
#: widths beyond this many times the usual one are those of a term of which nothing is claimed
OPEN = 50
HALF = 1.96


def words(name: str, *values: str) -> Column:
    return Column(name=name, kind="binary", categories=values)


SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=100),
        words("sex", "F", "M"),
        words("ward", "other", "icu"),
        words("treatment", "a", "b"),
        Column(name="lab", kind="continuous", lower=0, upper=10, decimals=2),
        Column(name="died", kind="binary", categories=(0, 1)),
    ),
    outcome="died",
    n_public=N,
    unit="one patient",
)


def cohort(n: int, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """n records of the population."""
    age = np.clip(62 + 13 * rng.standard_normal(n), 18, 100).round()
    decades = (age - 65) / 10
    ward = rng.random(n) < 1 / (1 + np.exp(-SHARES[share] - 0.5 * decades))
    treatment, male = rng.random(n) < 0.4, rng.random(n) < 0.5
    effect = np.where(ward & (age >= 65), EFFECT, ELSEWHERE)
    eta = -2 + 0.5 * ward + effect * treatment + SLOPE * decades
    return pd.DataFrame(
        {
            "age": age.astype(int),
            "sex": np.where(male, "M", "F"),
            "ward": np.where(ward, "icu", "other"),
            "treatment": np.where(treatment, "b", "a"),
            "lab": np.clip(5 + 0.5 * decades + rng.standard_normal(n), 0, 10).round(2),
            "died": (rng.random(n) < 1 / (1 + np.exp(-eta))) * 1,
        }
    )


def inside(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[(frame["ward"] == "icu") & (frame["age"] >= 65)]


def usual(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Estimates and standard errors of the real subgroup, on the scale of log odds."""
    own = inside(frame)
    x = np.column_stack([np.ones(len(own)), own["treatment"] == "b", own["age"] / 10.0])
    effects = sm.Logit(own["died"], x).fit(disp=False)
    alone = sm.Logit(own["died"], np.ones(len(own))).fit(disp=False)
    return np.r_[effects.params[1:], alone.params], np.r_[effects.bse[1:], alone.bse]


def private(frame: pd.DataFrame, epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The same, of two studies declared in one fit."""
    studies = [
        {"model": f"died ~ treatment + age where {RULE}", "name": "effects", "units": {"age": 10}},
        {"model": f"died ~ 1 where {RULE}", "name": "prevalence"},
    ]
    options = MarginalsOptions.of(
        epsilon=epsilon,
        delta=1e-6,
        random_state=seed,
        statistics=Statistics("tree", pairwise_statistics=False, neighbour_histogram=False),
    )
    model = DPMarginals.of(options)
    told = model.fit(frame, schema=SCHEMA, also=[Studies(studies)]).estimates_
    return np.concatenate([e.coefficients for e in told]), np.concatenate([e.std_errors for e in told])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shares", nargs="+", type=float, choices=list(SHARES), default=list(SHARES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--repetitions", type=int, default=200)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| share | ε | covered | usual fit covered | width over usual | nothing claimed |")
    print("|---:|---:|---|---|---|---|")
    for share in args.shares:
        people = inside(cohort(2_000_000, share, np.random.default_rng(0)))["died"]
        truth = np.array([EFFECT, SLOPE, np.log(people.mean() / (1 - people.mean()))])
        for epsilon in args.epsilon:
            real, made = [], []
            for repetition in range(args.repetitions):
                frame = cohort(N, share, np.random.default_rng([repetition, int(100 * share)]))
                real.append(usual(frame))
                made.append(private(frame, epsilon, repetition))
            (ours, error), (theirs, least) = (np.array(each).transpose(1, 0, 2) for each in (made, real))
            wide = error / least
            cells = [
                [f"{each:.2f}" for each in (np.abs(ours - truth) < HALF * error).mean(axis=0)],
                [f"{each:.2f}" for each in (np.abs(theirs - truth) < HALF * least).mean(axis=0)],
                [f"{each:.2f}" for each in np.median(wide, axis=0)],
                [f"{each}" for each in (wide > OPEN).sum(axis=0)],
            ]
            print(f"| {share:.0%} | {epsilon:g} | {' | '.join(map(' '.join, cells))} |", flush=True)


if __name__ == "__main__":
    main()
