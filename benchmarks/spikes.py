"""Are frequent values, placeholders, midnights and last digits kept in columns of very many values?

    python benchmarks/spikes.py [--epsilon 1 3] [--rows 2000 20000] [--seeds 5]

A simulated table of eight columns, whose truth is known. The default is fitted, and as many records are
sampled as it has. Printed are medians over seeds of shares in per cent, beside those of the real records:

price         costs at one price, in cents from 0 to 100,000 (10,000,001 values)
midnight      times at midnight, by the minute from 2015 to 2024 (5,260,321 values)
placeholder   dates at 1900-01-01 or 9999-12-31 (2,958,464 values)
impossible    dates in between that are not within 2010 to 2024, where all others are
pressure, gram   multiples of five among 201 blood pressures, and among 6,001 weights
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd

import dpsynth
from dpsynth import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=100),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="cost", kind="continuous", lower=0, upper=100_000, decimals=2),
        Column(name="seen", kind="datetime", lower="2015-01-01", upper="2025-01-01"),
        Column(name="ended", kind="date", lower="1900-01-01", upper="9999-12-31"),
        Column(name="pressure", kind="integer", lower=60, upper=260),
        Column(name="gram", kind="integer", lower=0, upper=6000),
        Column(name="died", kind="binary", categories=(0, 1)),
    ),
    outcome="died",
)
PRICE = 1234.5


def table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.normal(62, 15, n).round().clip(18, 100)
    cost = np.exp(rng.normal(6.5, 1.2, n)).round(2).clip(0, 100_000)
    day = rng.integers(0, 3653, n) * 1440
    minute = np.where(rng.random(n) < 0.5, 0, rng.integers(0, 1440, n))
    ended = (pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.integers(0, 5479, n), unit="D")).to_series()
    ended = ended.reset_index(drop=True).astype("datetime64[s]")
    which = rng.random(n)
    ended[which < 0.1] = pd.Timestamp("1900-01-01")
    ended[which > 0.9] = np.datetime64("9999-12-31", "s")
    pressure, gram = rng.normal(135, 22, n), rng.normal(3300, 550, n)
    heaped = rng.random((2, n)) < 0.425  # and a fifth of the others: 54 % together
    return SCHEMA.conform(
        pd.DataFrame(
            {
                "age": age,
                "sex": rng.choice(["F", "M"], n),
                "cost": np.where(rng.random(n) < 0.2, PRICE, cost),
                "seen": pd.Timestamp("2015-01-01") + pd.to_timedelta(day + minute, unit="m"),
                "ended": ended,
                "pressure": np.where(heaped[0], (pressure / 5).round() * 5, pressure.round()).clip(60, 260),
                "gram": np.where(heaped[1], (gram / 5).round() * 5, gram.round()).clip(0, 6000),
                "died": rng.random(n) < 1 / (1 + np.exp(-(age - 70) / 10)),
            }
        ).astype({"age": int, "died": int, "pressure": int, "gram": int})
    ).frame


def shares(frame: pd.DataFrame) -> dict[str, float]:
    ended = frame["ended"].to_numpy().astype("datetime64[D]")
    first, last = np.datetime64("1900-01-01"), np.datetime64("9999-12-31")
    held = (ended == first) | (ended == last)
    possible = (ended >= np.datetime64("2010-01-01")) & (ended < np.datetime64("2025-01-01"))
    found = {
        "price": np.isclose(frame["cost"], PRICE),
        "midnight": frame["seen"] == frame["seen"].dt.normalize(),
        "placeholder": held,
        "impossible": ~held & ~possible,
        "pressure": frame["pressure"] % 5 == 0,
        "gram": frame["gram"] % 5 == 0,
    }
    return {name: 100 * float(np.mean(values)) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0])
    parser.add_argument("--rows", nargs="+", type=int, default=[2000, 20_000])
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    rows = []
    for n in args.rows:
        for epsilon in args.epsilon:
            for seed in range(args.seeds):
                real, start = table(n, seed), time.process_time()
                model = dpsynth.DPMarginals(epsilon=epsilon, random_state=seed)
                model.fit(real, schema=SCHEMA)
                made = shares(model.sample(n, random_state=seed))
                made["seconds"] = time.process_time() - start
                rows += [{"rows": n, "epsilon": epsilon, "seed": seed} | made]
            rows += [
                {"rows": n, "epsilon": np.inf, "seed": s} | shares(table(n, s)) for s in range(args.seeds)
            ]
    frame = pd.DataFrame(rows).drop(columns="seed")
    print(frame.groupby(["rows", "epsilon"]).median().round(1).to_string())


if __name__ == "__main__":
    main()
