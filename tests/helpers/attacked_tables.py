"""Tables for attacks: mixed columns, and records that a synthetic table copies or never saw."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth.evaluation.tables import Tables
from dpsynth.table.schema import Column, Schema

MIXED = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="crp", kind="continuous", lower=0.1, upper=500, decimals=1, missing=True),
        Column(name="stage", kind="ordinal", categories=("I", "II", "III", "IV")),
        Column(name="rare", kind="binary", categories=(0, 1)),
        Column(name="ward", kind="categorical", categories=("a", "b", "c", "d", "e"), missing=True),
    )
)


def patients(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Records of mixed columns: skewed and unbalanced ones, missing values, associations."""
    age = rng.integers(18, 91, n)
    crp = np.round(np.clip(np.exp(rng.normal(1 + age / 50, 1.2)), 0.1, 500), 1)
    ward = np.array(list("abcde"), dtype=object)[rng.choice(5, n, p=[0.5, 0.3, 0.1, 0.07, 0.03])]
    ward[rng.random(n) < 0.05] = None
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["F", "M"], n),
            "crp": np.where(rng.random(n) < 0.1, np.nan, crp),
            "stage": np.array(["I", "II", "III", "IV"])[np.clip(rng.normal(age / 30, 1).astype(int), 0, 3)],
            "rare": (rng.random(n) < 0.03).astype(int),
            "ward": ward,
        }
    )


def copying(n: int = 150, seed: int = 0) -> Tables:
    """The synthetic table is the training table."""
    rng = np.random.default_rng(seed)
    train, held_out = patients(n, rng), patients(n, rng)
    return Tables.of(train, train=train, test=held_out, schema=MIXED)


def fresh(sizes: tuple[int, int, int], seed: int) -> Tables:
    """Synthetic, training and held-out records are independent draws of one source."""
    rng = np.random.default_rng([seed, *sizes])
    made, train, held_out = (patients(size, rng) for size in sizes)
    return Tables.of(made, train=train, test=held_out, schema=MIXED)


def related(n: int, seed: int) -> pd.DataFrame:
    """Numbers that tell one another, without ties; the records that anonymeter was given."""
    rng = np.random.default_rng(seed)
    values = 2 * rng.normal(size=(n, 1)) + 0.2 * rng.normal(size=(n, 4))
    frame = pd.DataFrame(np.clip(values, -4.9, 4.9).round(6), columns=list("abcd"))
    return frame.assign(group=np.where(values.sum(axis=1) > 0, "high", "low"))


def half_copied() -> Tables:
    """Some training records, some fresh ones, and two at the ends of the scale, which fix anonymeter's."""
    schema = Schema(
        columns=(
            *(Column(name=name, kind="continuous", lower=-5, upper=5) for name in "abcd"),
            Column(name="group", kind="binary", categories=("low", "high")),
        )
    )
    train, held_out, others = (related(80, seed) for seed in range(3))
    corners = pd.DataFrame({name: [-5.0, 5.0] for name in "abcd"} | {"group": ["low", "high"]})
    made = pd.concat([train[:30], others[:48], corners], ignore_index=True)
    return Tables.of(made, train=train, test=held_out, schema=schema)
