"""Skewed columns: are mean, spread and tail right after the noise?

    python benchmarks/skewed_columns.py simulated [flchain ...] --epsilon 1 3 10 --seeds 5 [--columns]

Noisy counts of one column are made into its distribution (`estimate_marginals`), without a model of several
columns. ``simulated`` are 30 made-up columns: counts with many zeros, costs with zeros, concentrations that
are missing for 40 to 70 %, heavy tails. Their bounds reach up to 100 times the 99.9th percentile, and every
other one has ``scale: log``. Their noise is that of a table of 15 columns. Columns of a table have the noise
of its default fit on half of the records. ``simulated:even`` and ``simulated:odd`` are halves, so that a rule
can be chosen on one and judged on the other.

mean     the mean over the real one's
spread   the standard deviation over the real one's
p99      error of the 99th percentile, in real standard deviations
tvd      total variation distance of the values, in 40 intervals of equal numbers of real records
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

import dpsynth
from dpsynth.marginals.columns import estimate_marginals
from dpsynth.marginals.statistics import MarginalsRelease
from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.synthesis.fit import planned_parts
from dpsynth.synthesis.marginals import MarginalsOptions
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.table.column import Column
from dpsynth.table.schema import Schema

_DRAWS = 50_000
_OTHERS = 14


@dataclass(frozen=True)
class Case:
    """One column with its records and the noise of its counts at each epsilon."""

    name: str
    column: Column
    series: pd.Series
    release: dict[float, MarginalsRelease]


def planned(schema: Schema, n: int, epsilon: float) -> MarginalsRelease:
    """Single-column counts of the default fit."""
    options = MarginalsOptions.of(epsilon=epsilon)
    found = planned_parts(schema, n, options).of(Columns)
    assert found is not None
    return found.release


def alone(column: Column, of_table: MarginalsRelease) -> MarginalsRelease:
    """The counts of one column, with the cells and the noise that it has in its table."""
    schema = Schema(columns=(column,))
    found = replace(of_table, schema=schema, counted=of_table.counting)
    return replace(found, noise_multiplier=of_table.noise_std / found.l2_sensitivity)


def simulated(epsilons: list[float], kept: slice) -> Iterator[Case]:
    """30 skewed columns."""
    rng = np.random.default_rng(46)
    kinds = ["counts"] * 10 + ["costs"] * 6 + ["concentrations"] * 9 + ["heavy"] * 5
    for i, kind in enumerate(kinds):
        n = int((2000, 5000, 20_000)[i % 3])
        step, missing = 1.0, 0.0
        if kind == "counts":
            mean, size = (
                np.exp(rng.uniform(np.log(0.3), np.log(6))),
                np.exp(rng.uniform(np.log(0.2), np.log(2))),
            )
            x = rng.negative_binomial(size, size / (size + mean), n) * (rng.random(n) > rng.uniform(0, 0.6))
        elif kind == "costs":
            x = np.exp(rng.normal(rng.uniform(4, 8), rng.uniform(0.6, 1.5), n)) * (
                rng.random(n) > rng.uniform(0.05, 0.6)
            )
        elif kind == "concentrations":
            shape, typical = (
                np.exp(rng.uniform(np.log(0.8), np.log(8))),
                np.exp(rng.uniform(np.log(0.5), np.log(50))),
            )
            missing, step = rng.uniform(0.4, 0.7), 0.1 if typical < 20 else 1.0
            x = rng.gamma(shape, typical / shape, n) + step
        else:
            x = 10 * np.exp(rng.uniform(0.4, 0.8) * rng.standard_t(rng.uniform(6, 12), n))
            step = 0.1
        x = np.round(np.asarray(x, float) / step) * step
        wide = (1.0, 3.0, 10.0, 100.0)[rng.integers(4)]
        upper = float(np.ceil(max(wide * np.quantile(x, 0.999), x.max() if wide < 3 else 0) / step) * step)
        logarithmic = i % 2 == 1
        column = Column(
            name=f"{kind}_{i}",
            kind="integer" if step == 1 else "continuous",
            lower=0 if not logarithmic or x.min() == 0 or kind == "counts" else step,
            upper=round(upper, 1),
            decimals=None if step == 1 else 1,
            scale="log" if logarithmic else "linear",
            missing=missing > 0,
        )
        values = pd.Series(np.where(rng.random(n) < missing, np.nan, x.clip(column.lower, column.upper)))
        others = tuple(Column(name=f"x{k}", kind="integer", lower=0, upper=20) for k in range(_OTHERS))
        schema = Schema(columns=(column, *others), n_public=n)
        if i in range(30)[kept]:
            yield Case(column.name, column, values, {e: planned(schema, n, e) for e in epsilons})


def of_table(name: str, epsilons: list[float]) -> Iterator[Case]:
    """Numeric columns of a table's training half."""
    train, _ = dpsynth.datasets.train_test(dpsynth.datasets.load(name), test_fraction=0.5, seed=0)
    releases = {e: planned(train.schema, len(train.frame), e) for e in epsilons}
    for column in train.schema.columns:
        if column.is_numeric:
            yield Case(f"{name}:{column.name}", column, train.frame[column.name], releases)


def measures(real: np.ndarray, made: np.ndarray) -> dict[str, float]:
    """Mean, spread, tail and distance."""
    ends = np.unique(np.quantile(real, np.linspace(0, 1, 41)))
    shares = [
        np.bincount(np.searchsorted(ends, x, "right"), minlength=len(ends) + 1) / len(x) for x in (real, made)
    ]
    return {
        "mean": made.mean() / real.mean(),
        "spread": made.std() / real.std(),
        "p99": (np.quantile(made, 0.99) - np.quantile(real, 0.99)) / real.std(),
        "tvd": np.abs(shares[0] - shares[1]).sum() / 2,
    }


def run(case: Case, seeds: int) -> Iterator[dict[str, object]]:
    for epsilon, of_all in case.release.items():
        release = alone(case.column, of_all)
        frame = release.schema.conform(case.series.to_frame(case.column.name)).frame
        real = frame[case.column.name].dropna().to_numpy(float)
        real = real[~np.isin(real, case.column.special)]
        if len(real) < 2 or real.std() == 0:
            continue
        without_noise = replace(release, noise_multiplier=None, counted=release.counting)
        exact = Ledger().run(without_noise, FrameRecords(frame), np.random.default_rng(0))
        for seed in range(seeds):
            rng = np.random.default_rng([seed, 46])
            noisy = [x + release.noise_std * rng.standard_normal(len(x)) for x in exact]
            found = estimate_marginals(release, noisy)
            grid, p = found.grids[0], found.probabilities[0]
            cells = rng.choice(grid.present, _DRAWS, p=p[: grid.present] / p[: grid.present].sum())
            made = grid.decode(cells, rng.random(_DRAWS)).to_numpy(float)
            yield {
                "column": case.name,
                "epsilon": epsilon,
                "seed": seed,
                "n": len(real),
                "std": release.noise_std,
            } | measures(real, made)


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Shares within the aims: of columns (medians over seeds), and of single fits."""
    rows = {}
    columns = frame.groupby(["epsilon", "column"], sort=False).median(numeric_only=True).reset_index()
    for epsilon in frame["epsilon"].unique():
        row: dict[str, float] = {}
        for label, table in (("", columns), (" (fits)", frame)):
            of = table[table["epsilon"] == epsilon]
            row[f"mean{label}"] = of["mean"].between(0.9, 1.1).mean()
            row[f"spread{label}"] = of["spread"].between(0.8, 1.25).mean()
            row[f"p99{label}"] = (of["p99"].abs() < 0.5).mean()
        row["tvd"] = columns.loc[columns["epsilon"] == epsilon, "tvd"].mean()
        of = frame[frame["epsilon"] == epsilon]
        row |= {f"|log {m}|": np.abs(np.log(of[m].clip(1e-2))).mean() for m in ("mean", "spread")}
        row["|p99|"] = of["p99"].abs().mean()
        row["n"] = of["column"].nunique()
        rows[epsilon] = row
    return pd.DataFrame(rows).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--columns", action="store_true", help="print every column as well")
    parser.add_argument("--out")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    halves = {
        "simulated": slice(None),
        "simulated:even": slice(0, None, 2),
        "simulated:odd": slice(1, None, 2),
    }
    rows = []
    for name in args.data:
        cases = simulated(args.epsilon, halves[name]) if name in halves else of_table(name, args.epsilon)
        rows += [row for case in cases for row in run(case, args.seeds)]
    frame = pd.DataFrame(rows)
    if args.out:
        frame.to_csv(args.out, index=False, float_format="%.4g")
    with pd.option_context("display.width", 250, "display.max_columns", 40, "display.max_rows", 900):
        if args.columns:
            print(
                frame.groupby(["epsilon", "column"], sort=False)
                .agg(
                    {
                        "n": "first",
                        "std": "first",
                        "mean": ["median", "min", "max"],
                        "spread": ["median", "min", "max"],
                        "p99": ["median", "min", "max"],
                        "tvd": "median",
                    }
                )
                .round(2)
                .to_string()
            )
        print(summary(frame).round(3).to_string())


if __name__ == "__main__":
    main()
