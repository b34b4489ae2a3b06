"""Tests of an analyst on synthetic tables: type I error where nothing is there, and power where something is.

    python benchmarks/null_tests.py --repetitions 100 --cache null-tests.jsonl

Tables of 2,000 records and 10 columns are simulated. One group, ``coin``, is independent of all other
columns. Another one, ``drug``, changes four of them. Four tests compare the groups: Welch's t,
Mann-Whitney, chi-squared and log-rank. Each is done in four ways (`WAYS`): on the real table, on one
synthetic table as if it were real, by the median p-value of ten tables, and by `dpsynth.combine` of ten
tables. For ``combine`` each test becomes an estimate with a variance (`ESTIMATES`). The schema's outcome is
``coin`` in one half of the fits and ``drug`` in the other. Associations with the schema's outcome are in the
base model. Others may be left out. A third kind of fit declares the two comparisons of means beforehand. One
line of JSON a fit is appended to ``--cache``. What is there is not done again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from statsmodels.duration.survfunc import survdiff

import dpsynth
from dpsynth import Column, Schema

Floats = NDArray[np.float64]
N, TABLES, LEVEL = 2000, 10, 0.05
GROUPS = {"coin": "null", "drug": "effect"}
DECLARED = "declared"
STAGES = ("I", "II", "III", "IV")


def schema(outcome: str) -> Schema:
    def words(name: str, *values: str) -> Column:
        return Column(name=name, kind="binary" if len(values) == 2 else "categorical", categories=values)

    return Schema(
        columns=(
            words("coin", "a", "b"),
            words("drug", "a", "b"),
            Column(name="age", kind="integer", lower=18, upper=100),
            words("sex", "F", "M"),
            Column(name="height", kind="continuous", lower=130, upper=220, decimals=0),
            Column(name="lab", kind="continuous", lower=0, upper=10, decimals=2),
            Column(name="cost", kind="continuous", lower=10, upper=100_000, decimals=0, scale="log"),
            words("stage", *STAGES),
            Column(name="months", kind="continuous", lower=0, upper=60, decimals=1),
            words("died", "no", "yes"),
        ),
        outcome=outcome,
        n_public=N,
        unit="one patient",
    )


def simulate(rng: np.random.Generator) -> pd.DataFrame:
    """Patients whose ``coin`` is independent of everything, and whose ``drug`` changes four columns."""
    coin, drug, male = (rng.integers(0, 2, N) for _ in range(3))
    older = rng.standard_normal(N)
    stage = np.digitize(0.5 * older + 0.17 * drug + rng.standard_normal(N), [-0.7, 0.3, 1.2])
    waited = rng.exponential(40.0 * np.exp(-0.4 * older + 0.18 * drug))
    until = rng.uniform(12.0, 60.0, N)
    return pd.DataFrame(
        {
            "coin": np.array(["a", "b"])[coin],
            "drug": np.array(["a", "b"])[drug],
            "age": np.clip(60 + 12 * older, 18, 100).round(),
            "sex": np.array(["F", "M"])[male],
            "height": np.clip(165 + 12 * male + 7 * rng.standard_normal(N), 130, 220).round(),
            "lab": np.clip(5 + 0.4 * older + 0.14 * drug + rng.standard_normal(N), 0, 10).round(2),
            "cost": np.clip(np.exp(7 + 0.5 * older + 0.15 * drug + rng.standard_normal(N)), 10, 1e5).round(),
            "stage": np.array(STAGES)[stage],
            "months": np.minimum(waited, until).round(1),
            "died": np.where(waited <= until, "yes", "no"),
        }
    )


def both(frame: pd.DataFrame, group: str, column: str) -> tuple[Floats, Floats]:
    """The values of a column in the two groups."""
    numbers, second = frame[column].to_numpy(float), frame[group].to_numpy(str) == "b"
    return numbers[~second], numbers[second]


def crossed(frame: pd.DataFrame, group: str) -> Floats:
    """Patients by group and stage, shape (2, 4)."""
    stage = pd.Categorical(frame["stage"].astype(str), categories=STAGES)
    return pd.crosstab(frame[group].astype(str), stage, dropna=False).to_numpy(float)


def welch(frame: pd.DataFrame, group: str) -> float:
    return float(stats.ttest_ind(*both(frame, group, "lab"), equal_var=False).pvalue)


def mann_whitney(frame: pd.DataFrame, group: str) -> float:
    return float(stats.mannwhitneyu(*both(frame, group, "cost")).pvalue)


def chi_squared(frame: pd.DataFrame, group: str) -> float:
    counts = crossed(frame, group)
    return float(stats.chi2_contingency(counts[:, counts.sum(axis=0) > 0], correction=False).pvalue)


def log_rank(frame: pd.DataFrame, group: str) -> float:
    died = (frame["died"].astype(str) == "yes").to_numpy(int)
    return float(survdiff(frame["months"].to_numpy(float), died, frame[group].to_numpy(str))[1])


def mean_difference(frame: pd.DataFrame, group: str) -> tuple[Floats, Floats]:
    """Difference of the means, and Welch's variance."""
    x, y = both(frame, group, "lab")
    return np.array([y.mean() - x.mean()]), np.array([x.var(ddof=1) / len(x) + y.var(ddof=1) / len(y)])


def superiority(frame: pd.DataFrame, group: str) -> tuple[Floats, Floats]:
    """Probability that a value of the second group is the greater one, less 0.5, and its variance.

    U over the number of pairs, with the variance of DeLong, DeLong and Clarke-Pearson (1988).
    """
    x, y = both(frame, group, "cost")
    above = (stats.rankdata(np.r_[x, y])[len(x) :] - stats.rankdata(y)) / len(x)
    below = 1 - (stats.rankdata(np.r_[x, y])[: len(x)] - stats.rankdata(x)) / len(y)
    return np.array([above.mean() - 0.5]), np.array([above.var(ddof=1) / len(y) + below.var(ddof=1) / len(x)])


def share_differences(frame: pd.DataFrame, group: str) -> tuple[Floats, Floats]:
    """Differences of the shares of each stage, and their variances."""
    counts = crossed(frame, group)
    n = counts.sum(axis=1, keepdims=True)
    shares = counts / n
    return shares[1] - shares[0], (shares * (1 - shares) / n).sum(axis=0)


def log_hazard_ratio(frame: pd.DataFrame, group: str) -> tuple[Floats, Floats]:
    """Observed less expected deaths over their variance (Peto), an estimate of the log hazard ratio."""
    months = frame["months"].to_numpy(float)
    died, second = frame["died"].to_numpy(str) == "yes", frame[group].to_numpy(str) == "b"
    times = np.unique(months[died])
    falls = np.searchsorted(times, months[died])
    deaths = np.bincount(falls, minlength=len(times))
    deaths_second = np.bincount(falls, weights=second[died], minlength=len(times))
    at_risk = len(months) - np.searchsorted(np.sort(months), times)
    at_risk_second = second.sum() - np.searchsorted(np.sort(months[second]), times)
    share = at_risk_second / at_risk
    left = (at_risk - deaths) / np.maximum(at_risk - 1, 1)
    variance = float((deaths * share * (1 - share) * left).sum())
    return np.array([(deaths_second - deaths * share).sum() / variance]), np.array([1 / variance])


TESTS: dict[str, Callable[[pd.DataFrame, str], float]] = {
    "t-test": welch,
    "Mann-Whitney": mann_whitney,
    "chi-squared": chi_squared,
    "log-rank": log_rank,
}
ESTIMATES = {
    "t-test": mean_difference,
    "Mann-Whitney": superiority,
    "chi-squared": share_differences,
    "log-rank": log_hazard_ratio,
}
WAYS = ("real", "one table", "median p of 10", "combined")


def p_values(
    name: str, group: str, real: pd.DataFrame, one: pd.DataFrame, tables: list[pd.DataFrame]
) -> list:
    """A p-value for each of `WAYS`. Several combined estimates count by the least p-value (Bonferroni)."""
    test = TESTS[name]
    estimates, variances = zip(*(ESTIMATES[name](table, group) for table in tables), strict=True)
    p = dpsynth.combine(np.array(estimates), np.array(variances)).p_value
    median = float(np.median([test(table, group) for table in tables]))
    return [test(real, group), test(one, group), median, min(1.0, float(p.min()) * len(p))]


def run(outcome: str, epsilon: float, repetition: int) -> dict:
    def seed(*words: object) -> int:
        return zlib.crc32("|".join(map(str, (*words, repetition))).encode())

    start = time.perf_counter()
    made = schema(outcome)
    real = made.conform(simulate(np.random.default_rng(seed("records")))).frame
    model = dpsynth.DPMarginals(epsilon=epsilon, random_state=seed(outcome, epsilon, "fit"))
    model.fit(real, schema=made)
    one = model.sample(N, random_state=seed(outcome, epsilon, "one"))
    tables = list(model.sample_many(TABLES, N, random_state=seed(outcome, epsilon, "many")))
    names = made.names
    families = [sorted(names[k] for k in family) for family in model.model_.base_model.families]
    found = {group: {name: p_values(name, group, real, one, tables) for name in TESTS} for group in GROUPS}
    return {
        "outcome": outcome,
        "epsilon": epsilon,
        "repetition": repetition,
        "families": families,
        "seconds": round(time.perf_counter() - start, 2),
        "p": found,
    }


def declared(epsilon: float, repetition: int) -> dict:
    """p-values of the two comparisons of means, as two pre-specified regressions of one fit."""
    made = schema("drug")
    rng = np.random.default_rng(zlib.crc32(f"records|{repetition}".encode()))
    real = made.conform(simulate(rng)).frame
    own = zlib.crc32(f"declared|{epsilon}|{repetition}".encode())
    studies = [{"model": f"linear: lab ~ {group}", "name": group} for group in GROUPS]
    model = dpsynth.DPMarginals(epsilon=epsilon, random_state=own)
    told = model.fit(real, schema=made, also=[dpsynth.Studies(studies)]).estimates_
    found = {one.study: 2 * stats.norm.sf(abs(one.coefficients[0] / one.std_errors[0])) for one in told}
    return {"outcome": DECLARED, "epsilon": epsilon, "repetition": repetition, "p": found}


def read(path: Path) -> Iterator[dict]:
    if path.exists():
        for line in path.read_text().splitlines():
            yield json.loads(line)


COLUMNS = {"t-test": "lab", "Mann-Whitney": "cost", "chi-squared": "stage", "log-rank": "months"}


def modelled(line: dict, group: str, name: str) -> bool:
    """Whether a table of the base model holds the group and the tested column."""
    return any({group, COLUMNS[name]} <= set(family) for family in line["families"])


def rejected(lines: list[dict], group: str, name: str) -> Floats:
    """1 where p < 0.05, by fit and way."""
    return np.array([[p < LEVEL for p in line["p"][group][name]] for line in lines], dtype=float)


def table(lines: list[dict], group: str) -> list[str]:
    """Shares of tests with p < 0.05, with standard errors over fits for all four together."""
    rows = [
        f"| ε | the group is | test | in the base model | {' | '.join(WAYS)} |",
        "|---:|---|---|---:|" + "---:|" * len(WAYS),
    ]
    for epsilon, outcome in itertools.product(sorted({line["epsilon"] for line in lines}), GROUPS):
        own = [line for line in lines if line["epsilon"] == epsilon and line["outcome"] == outcome]
        if not own:
            continue
        where = "the outcome" if outcome == group else "another column"
        each = {name: rejected(own, group, name) for name in TESTS}
        held = {name: np.mean([modelled(line, group, name) for line in own]) for name in TESTS}
        for name, found in each.items():
            shares = " | ".join(f"{share:.2f}" for share in found.mean(axis=0))
            rows.append(f"| {epsilon:g} | {where} | {name} | {held[name]:.2f} | {shares} |")
        found = np.mean(list(each.values()), axis=0)
        errors = found.std(axis=0, ddof=1) / np.sqrt(len(found))
        shares = " | ".join(f"**{m:.3f}** ({e:.3f})" for m, e in zip(found.mean(axis=0), errors, strict=True))
        share = np.mean(list(held.values()))
        rows.append(f"| {epsilon:g} | {where} | all, {len(own)} fits | {share:.2f} | {shares} |")
    return rows


def declared_line(lines: list[dict], epsilon: float) -> str:
    """Shares of pre-specified comparisons of means with p < 0.05."""
    found = [line["p"] for line in lines if line["outcome"] == DECLARED and line["epsilon"] == epsilon]
    shares = [f"{group} {np.mean([p[group] < LEVEL for p in found]):.2f}" for group in GROUPS]
    return f"Pre-specified t-tests, ε = {epsilon:g}, {len(found)} fits: {', '.join(shares)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0])
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--outcomes", nargs="+", choices=[*GROUPS, DECLARED], default=[*GROUPS, DECLARED])
    parser.add_argument("--cache", type=Path, required=True, help="file of results, one line a fit")
    args = parser.parse_args()
    done = {(line["outcome"], line["epsilon"], line["repetition"]) for line in read(args.cache)}
    todo = itertools.product(range(args.repetitions), args.epsilon, args.outcomes)
    with args.cache.open("a") as sink, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for repetition, epsilon, outcome in todo:
            if (outcome, epsilon, repetition) not in done:
                one = (epsilon, repetition)
                line = declared(*one) if outcome == DECLARED else run(outcome, *one)
                sink.write(json.dumps(line) + "\n")
                sink.flush()
    lines = list(read(args.cache))
    for group, title in (("coin", "No difference: type I error"), ("drug", "A difference: power")):
        print("\n".join([f"## {title}", "", *table(lines, group), ""]))
    for epsilon in args.epsilon:
        print(declared_line(lines, epsilon))


if __name__ == "__main__":
    main()
