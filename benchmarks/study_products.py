"""Do intervals of a product of two 0/1 columns cover, where the prior does not know that the two go together?

    python benchmarks/study_products.py --repetitions 60

A simulated population with known coefficients: two columns of two categories depend on a third, which is
the edge that a tree takes, and on each other, which it leaves out. Their product is a derived column of the
study. One line a cell is printed: coverage of 95 % intervals by term, median standard error, and how often a
term was left open.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from dpsynth import Column, DPMarginals, Schema, Studies

TRUTH = np.array([0.4, 0.6, 0.5, -1.0])
INTERCEPT = -1.0
#: by the share of records in which both are 1: shares of the two, and their odds ratio within a ward
SHARES = {
    "10 %": (0.22, 0.20, 3.0),
    "6 %": (0.15, 0.12, 5.0),
    "2 %": (0.08, 0.06, 4.0),
    "0.5 %": (0.035, 0.03, 4.0),
}
WARDS, LIFT = np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.9, 2.9])


def derived(name: str, formula: str) -> Column:
    return Column(name=name, kind="integer", lower=0, upper=1, derived=formula)


def schema(n: int) -> Schema:
    def words(name: str, *values: str) -> Column:
        kind = "binary" if len(values) == 2 else "categorical"
        return Column(name=name, kind=kind, categories=values)

    return Schema(
        columns=(
            Column(name="age", kind="continuous", lower=-5, upper=5),
            words("ward", "u", "v", "w"),
            words("test", "no", "yes"),
            words("group", "no", "yes"),
            derived("tested", "(test == 'yes')"),
            derived("grouped", "(group == 'yes')"),
            derived("both", "tested * grouped"),
            Column(name="died", kind="binary", categories=(0, 1)),
        ),
        outcome="died",
        n_public=n,
        unit="one patient",
    )


def cohort(n: int, kind: str, rng: np.random.Generator) -> pd.DataFrame:
    """n records of the population."""
    share_a, share_b, odds = SHARES[kind]
    ward = rng.choice(3, n, p=WARDS)
    pa, pb = share_a * LIFT[ward], share_b * LIFT[ward]
    total = 1 + (pa + pb) * (odds - 1)
    both = (total - np.sqrt(total**2 - 4 * odds * (odds - 1) * pa * pb)) / (2 * (odds - 1))  # Plackett 1965
    a = rng.random(n) < pa
    b = rng.random(n) < np.where(a, both / pa, (pb - both) / (1 - pa))
    age = rng.normal(0, 1, n).clip(-5, 5)
    eta = INTERCEPT + np.column_stack([age, a, b, a & b]) @ TRUTH
    return pd.DataFrame(
        {
            "age": age,
            "ward": np.array(["u", "v", "w"])[ward],
            "test": np.where(a, "yes", "no"),
            "group": np.where(b, "yes", "no"),
            "died": (rng.random(n) < 1 / (1 + np.exp(-eta))) * 1,
        }
    )


def told(kind: str, epsilon: float, repetition: int, n: int) -> np.ndarray:
    """z of every term and its standard error, shape (2, 4)."""
    rng = np.random.default_rng([repetition, list(SHARES).index(kind)])
    frame = cohort(n, kind, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPMarginals(epsilon=epsilon, delta=1e-6, random_state=repetition)
        also = [Studies(["died ~ age + tested + grouped + both"])]
        found = model.fit(frame, schema=schema(n), also=also).study("died")
    return np.array([(found.coefficients - TRUTH) / found.std_errors, found.std_errors])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", choices=list(SHARES), default=list(SHARES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--records", type=int, default=8000)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    for kind in args.kinds:
        for epsilon in args.epsilon:
            tasks = (delayed(told)(kind, epsilon, r, args.records) for r in range(args.repetitions))
            z, error = np.stack(Parallel(n_jobs=args.jobs)(tasks), axis=1)
            text = [f"{kind:5s} eps {epsilon:4g}  held"]
            text += [f"{share:.2f}" for share in (np.abs(z) < 1.96).mean(axis=0)]
            text += ["  mean z"] + [f"{mean:+.2f}" for mean in z.mean(axis=0)]
            text += ["  mean z2"] + [f"{mean:.1f}" for mean in (z**2).mean(axis=0)]
            text += ["  median se"] + [f"{width:.2f}" for width in np.median(error, axis=0)]
            text += ["  open"] + [f"{count}" for count in (error > 15).sum(axis=0)]
            print(" ".join(text), flush=True)


if __name__ == "__main__":
    main()
