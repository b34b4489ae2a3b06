"""What each noisy statistic beside the base model returns in AUC, and what it takes from the others.

    python benchmarks/parts.py --out DIR [--table support2 flchain] [--sizes 1000 3000] [--seeds 3]

Tables of the registry are cut to n training records. The rest tests. Of a *rare* table, records with the
rarer outcome are left out until they are 7 %. One fit releases all statistics. Samples are drawn from its
base model alone, with pairwise statistics, and with the nearest-neighbour histogram too. All have the same
noise, so their differences are precise. Two fits with noise of their own differ by more than that.

The price of a statistic is the larger noise of all others. It is the slope of the base model's AUC over the
epsilons times the change of the logarithm of the noise. Each round is kept in DIR, so the same command goes
on after an interruption. DIR/parts.md has the results of all rounds in DIR.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.ground.headroom import discriminator
from benchmarks.peers.tables import split
from dpsynth.evaluation.associations import correlation_errors
from dpsynth.evaluation.models import CLASSIFIERS, known_outcomes, learn_and_predict, outcome_kind
from dpsynth.evaluation.scores import scorer
from dpsynth.files.storage import ROUNDS, carry_out, read_json, write_text
from dpsynth.marginals.reweighting import reweighted, weighted
from dpsynth.privacy.gaussian_loss import analytic_sigma
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.fit import plan_fit, total_delta
from dpsynth.synthesis.marginals import MarginalsOptions, Networked, Statistics
from dpsynth.synthesis.parts.histogram import Histogram
from dpsynth.synthesis.parts.pairwise import Pairwise
from dpsynth.synthesis.parts.part import Reading
from dpsynth.table.schema import Schema

RARE = "_rare"
TABLES = (
    "flchain",
    "flchain_rare",
    "randhie",
    "physionet2012",
    "support2",
    "support2_rare",
    "diabetes130_hba1c",
    "diabetes130_any",
)
SIZES = (1_000, 3_000, 7_000, 20_000)
EPSILONS = (0.3, 1.0, 3.0)
ALONE, PAIRS, BOTH = "alone", "pairs", "both"
#: each part that adds a statistic, beside the part without it
STATISTICS = {PAIRS: (PAIRS, ALONE), BOTH: (BOTH, PAIRS)}
#: sums of the shares of mu^2 in each part
_SHARES = {ALONE: 0.85, PAIRS: 0.95, BOTH: 1.05}
#: how many times larger the tables' share was without the histogram, before these results
_TOOK = 0.6 / 0.5
#: rules: most noise of a pairwise statistic, and fewest groups of the histogram
Rule = tuple[float, float]
NOISES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 2.0)
GROUPS = (0.0, 10.0, 20.0, 35.0, 50.0, 70.0, 140.0, 400.0)
RULES: list[Rule] = [(noise, groups) for noise in NOISES for groups in (*GROUPS[:-1], math.inf)]
BEFORE: Rule = (0.2, 35.0)
NOW: Rule = (default_rules._MOST_PAIR_NOISE, default_rules._FEWEST_GROUPS)
#: the parts themselves as rules
EVERY: tuple[Rule, ...] = ((0.0, math.inf), (math.inf, math.inf), (math.inf, 0.0))
#: most of a table that trains, the share of the rarer outcome, synthetic records that models learn from, and
#: those that are told from real ones
_TRAIN, _RARE, DRAWN, _APART = 0.8, 0.07, 10_000, 2_000
#: standard deviation of gains over tables that is added to their error
_SPREAD = 0.003


@dataclass(frozen=True)
class Round:
    """One cut of a table at one epsilon."""

    table: str
    n: int
    epsilon: float
    seed: int


@cache
def population(name: str) -> tuple[pd.DataFrame, Schema]:
    """All records of a table."""
    train, test = split(name.removesuffix(RARE))
    frame, schema = pd.concat([train.frame, test.frame], ignore_index=True), train.schema
    if name.endswith(RARE):
        values = frame[str(schema.outcome)]
        cases = values == values.value_counts().index[-1]
        kept = frame[cases].sample(int((~cases).sum() * _RARE / (1 - _RARE)), random_state=0)
        frame = pd.concat([frame[~cases], kept], ignore_index=True)
    return frame, schema


def cut(task: Round) -> tuple[pd.DataFrame, pd.DataFrame, Schema]:
    """Records that train, others that test, and the schema."""
    frame, schema = population(task.table)
    mixed = frame.sample(frac=1.0, random_state=task.seed)
    return mixed.iloc[: task.n], mixed.iloc[task.n : task.n + DRAWN], schema


def carried_out(task: Round, *, public: bool = True) -> dict[str, Any]:
    """Figures of a base model, of the same with pairwise statistics, and with the histogram too.

    ``public``: whether the number of records is.
    """
    train, test, schema = cut(task)
    options = MarginalsOptions.of(
        epsilon=task.epsilon,
        statistics=Statistics(pairwise_statistics=True, neighbour_histogram=True),
    )
    rng, records, ledger = np.random.default_rng(task.seed), FrameRecords(train), Ledger()
    plan = plan_fit(records, schema.with_n_public(task.n if public else None), options, rng, ledger)
    reading = Reading(ledger, records, rng, plan.n)
    for part in plan.parts.own:
        reading.read(part)
    model = options.build(plan.schema, reading, refine=False)
    pairs, histogram = reading.of(Pairwise), reading.of(Histogram)
    base_model, marginals = model.base_model, model.encoder.marginals
    if base_model is None or marginals is None or histogram is None:
        raise RuntimeError("the fit has no base model")
    stages = {ALONE: base_model, PAIRS: reweighted(base_model, pairs, rng)}
    stages[BOTH] = weighted(stages[PAIRS], histogram, rng)
    parts = {}
    for name, stage in stages.items():
        coupled = stage.coupled(marginals.grids, marginals.n, rng)
        made = replace(model, sampler=Networked(coupled)).sample(DRAWN, rng)
        parts[name] = figures(made, test, schema, task.seed, rng)
    return {**vars(task), "parts": parts}


def figures(
    made: pd.DataFrame, test: pd.DataFrame, schema: Schema, seed: int, rng: np.random.Generator
) -> dict[str, float]:
    """AUC of models of synthetic records, error of correlations, and AUC of telling both apart."""
    return {
        "AUC": mean_auc(made, test, schema, seed),
        "correlation error": correlation_errors(test, [made], schema)[0].value,
        "discriminator": discriminator(test, made, schema, _APART, rng),
    }


def mean_auc(train: pd.DataFrame, test: pd.DataFrame, schema: Schema, seed: int) -> float:
    """Mean AUC of logistic regression and gradient boosting. A model that fails has 0.5."""
    outcome = str(schema.outcome)
    known, y = known_outcomes(test, schema, outcome)
    models = {name: CLASSIFIERS[name] for name in ("logistic_regression", "hist_gradient_boosting")}
    rng = np.random.default_rng([34, seed])
    learned = learn_and_predict(train, known, schema, outcome, models=models, rng=rng)
    kind, weights = outcome_kind(schema.column(outcome)), np.ones((len(y), 1))
    scores = [
        0.5 if each.predicted is None else float(scorer(kind, y, each)(weights)["auc"][0])
        for each in learned.predictions.values()
    ]
    return float(np.mean(scores))


def cells(records: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Mean return and price of each statistic by table, n and epsilon, with standard errors over seeds."""
    seeds = pd.json_normalize(list(records))
    for name, (after, before) in STATISTICS.items():
        for figure in ("AUC", "correlation error", "discriminator"):
            change = seeds[f"parts.{after}.{figure}"] - seeds[f"parts.{before}.{figure}"]
            seeds[f"{name} {figure}"] = change
    by = seeds.groupby(["table", "n", "epsilon"], sort=False)
    found = by.mean(numeric_only=True).drop(columns="seed")
    found = found.rename(columns={f"parts.{ALONE}.AUC": "alone"})
    found["seeds"], found["spread"] = by.size(), by[f"parts.{ALONE}.AUC"].std()
    for name in STATISTICS:
        found[f"{name} SE"] = by[f"{name} AUC"].std() / np.sqrt(by.size())
    public = pd.DataFrame([_public(*index) for index in found.index])
    found = found.reset_index().join(public)
    slope = pd.Series(np.nan, found.index)  # of one epsilon there is none
    for _, cut in found.groupby(["table", "n"]):
        if len(cut) > 1:
            slope[cut.index] = np.gradient(cut["alone"], np.log(cut["mu"]))
    for name, (after, before) in STATISTICS.items():
        found[f"{name} price"] = slope * math.log(_SHARES[after] / _SHARES[before]) / 2
        found[f"{name} gain"] = found[f"{name} AUC"] - found[f"{name} price"]
    found["gain before"] = found["both AUC"] - slope * math.log(_TOOK) / 2
    return found


def _public(table: str, n: int, epsilon: float) -> dict[str, float]:
    """Noise of a pairwise statistic and groups of the histogram, which the rules read."""
    schema = population(table)[1]
    mu = 1 / analytic_sigma(epsilon, total_delta(schema.with_n_public(n), MarginalsOptions.of()))
    numbers = np.array(default_rules.numbers_per_column(schema))
    products = (numbers.sum() ** 2 - (numbers**2).sum()) / 2
    noise, groups = math.sqrt(products / 0.1) / (n * mu), n * mu * math.sqrt(0.1 / 2) / 8
    return {"mu": mu, "noise": noise, "groups": groups}


def gain(found: pd.DataFrame, rule: Rule, histogram: str = "both gain") -> pd.Series:
    """AUC that a rule wins over the base model alone with the whole budget.

    ``histogram``: column with what the histogram wins.
    """
    pairs = found["noise"] <= rule[0]
    return pairs * found["pairs gain"] + (pairs & (found["groups"] >= rule[1])) * found[histogram]


def lacking(found: pd.DataFrame, rule: Rule, histogram: str = "both gain") -> pd.Series:
    """AUC by which a rule is below the best part of each cut."""
    parts = [gain(found, part, histogram) for part in EVERY]
    return pd.concat(parts, axis=1).max(axis=1) - gain(found, rule, histogram)


def best(found: pd.DataFrame) -> Rule:
    """The rule of the greatest mean gain, cuts weighted by their precision."""
    errors = (found["pairs SE"] ** 2 + found["both SE"] ** 2).groupby([found["n"], found["epsilon"]])
    weights = 1 / (errors.transform("mean") + _SPREAD**2)
    return max(RULES, key=lambda rule: float(np.average(gain(found, rule), weights=weights)))


def markdown(found: pd.DataFrame) -> str:
    """All cuts, means by what the rules read, rules chosen without each table, and what defaults lack."""
    rows = [
        "| table | n | ε | fits | AUC alone (SD) | noise | pairwise statistics: return | price | gain "
        "| correlation error | groups | histogram: return | price | gain |",
        "|---|" + "---:|" * 13,
    ]
    for _, cut in found.iterrows():
        known = f"{cut['table']} | {cut['n']:,} | {cut['epsilon']:g} | {cut['seeds']}"
        errors = f"{cut['pairs correlation error']:+.3f} | {cut['groups']:.0f}"
        pairs, histogram = (
            f"{cut[f'{name} AUC']:+.3f} ± {cut[f'{name} SE']:.3f} | {cut[f'{name} price']:.3f} "
            f"| {cut[f'{name} gain']:+.3f}"
            for name in STATISTICS
        )
        alone = f"{cut['alone']:.3f} ({cut['spread']:.3f}) | {cut['noise']:.2f}"
        rows.append(f"| {known} | {alone} | {pairs} | {errors} | {histogram} |")
    for name, read, edges in ((PAIRS, "noise", NOISES), (BOTH, "groups", GROUPS)):
        rows += ["", f"| {read} | cuts | return | price | gain | correlation error | discriminator |"]
        rows += ["|---|" + "---:|" * 6]
        for part, cut in found.groupby(pd.cut(found[read], edges), observed=True):
            error = cut[f"{name} AUC"].std() / math.sqrt(len(cut))
            what = ("AUC", "price", "gain", "correlation error", "discriminator")
            means = [cut[f"{name} {each}"].mean() for each in what]
            told = "{:+.4f} ± {:.4f} | {:.4f} | {:+.4f} | {:+.4f}".format(means[0], error, *means[1:4])
            apart = "" if math.isnan(means[4]) else f"{means[4]:+.4f}"
            rows.append(f"| {part.left:g} to {part.right:g} | {len(cut)} | {told} | {apart} |")
    rows += ["", "| table left out | best rule of the others: noise, groups | its gain | before | now |"]
    rows += ["|---|---|---:|---:|---:|"]
    for table, own in found.groupby("table", sort=False):
        others = found[found["table"] != table]
        rule = best(others) if len(others) else NOW
        gains = gain(own, rule), gain(own, BEFORE, "gain before"), gain(own, NOW)
        means = " | ".join(f"{each.mean():+.4f}" for each in gains)
        rows.append(f"| {table} | {rule[0]:g}, {rule[1]:g} | {means} |")
    rows += ["", "| table | ε | best part less default: before | now |", "|---|---:|---:|---:|"]
    for (table, epsilon), own in found.groupby(["table", "epsilon"], sort=False):
        before, now = lacking(own, BEFORE, "gain before").median(), lacking(own, NOW).median()
        rows.append(f"| {table} | {epsilon:g} | {before:.3f} | {now:.3f} |")
    return "\n".join(rows)


def carry_through(
    about: str | None,
    work: Callable[[Round], dict[str, Any]],
    page: str,
    text: Callable[[list[dict[str, Any]]], str],
    *,
    version: int,
    sizes: Sequence[int],
    epsilons: Sequence[float],
) -> None:
    """Do the rounds that the command line asks for, and write a page of all rounds in the folder."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", nargs="+", choices=TABLES, default=list(TABLES), metavar="NAME")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(sizes), metavar="N")
    parser.add_argument("--epsilon", nargs="+", type=float, default=list(epsilons))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    tasks = {
        f"{table}-{n}-{epsilon:g}-{seed}": Round(table, n, epsilon, seed)
        for seed in range(given.seeds)
        for table in given.table
        for n in given.sizes
        if n <= _TRAIN * len(population(table)[0])
        for epsilon in given.epsilon
    }
    carry_out(work, tasks, folder=given.out, settings={"version": version}, on_round=_tell)
    records = [read_json(path) for path in sorted((given.out / ROUNDS).glob("*.json"))]
    records.sort(key=lambda record: (TABLES.index(record["table"]), record["n"], record["epsilon"]))
    write_text(given.out / page, text(records) + "\n")
    print(given.out / page)


def _tell(done: int, total: int, label: str, seconds: float) -> None:
    print(f"{done}/{total} {label}: {seconds:.1f} s", file=sys.stderr, flush=True)


def main() -> None:
    carry_through(
        __doc__,
        carried_out,
        "parts.md",
        lambda records: markdown(cells(records)),
        version=2,
        sizes=SIZES,
        epsilons=EPSILONS,
    )


if __name__ == "__main__":
    main()
