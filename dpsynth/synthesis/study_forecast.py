"""Pre-specified regressions before a fit: checks, expected width of intervals, and samples to read with."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpsynth.checks import together
from dpsynth.errors import RejectionError
from dpsynth.studies.estimation import INTERVALS, RESIDUAL_BOUND
from dpsynth.studies.fitted_study import SPLIT, SURVIVAL_SPLIT
from dpsynth.studies.model import may_have_long_tail, model_terms, shorter_tails
from dpsynth.studies.study import Study
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.table.schema import TableSchema

#: synthetic records that stand for the real ones in every expectation
DRAWS = 20_000
#: studies whose intervals would be more than this times as wide as without noise are refused
MOST_WIDENING = 5.0
#: c of `expected_widening`
_NOISE_IN_PRACTICE = 16.0
#: c without predictors: of a share of 20 % (0.8^2 / 0.16 / 0.8), and of a mean, whose residuals are bounded
_NOISE_ALONE = {"logistic": 5.0, "linear": RESIDUAL_BOUND**2 / 0.8}


def check_studies(studies: Sequence[Study], schema: TableSchema) -> None:
    """Raise InputError for a study that does not fit the schema, before anything is read."""
    for study in studies:
        study.effects(schema)


def expected_widening(study: Study, schema: TableSchema, n: float, noise_multiplier: float | None) -> float:
    """Expected width of a study's intervals over their width without noise, from public numbers.

    The variance of d coefficients of n records is taken as ``1 + c z^2 d / n`` times that without noise. Here
    z is the noise multiplier of one Gaussian mechanism of the study's cost. For a balanced outcome,
    uncorrelated predictors and no tails, c would be 1.25. The information of n records is then n / 4 in every
    direction, and a record's score has length sqrt(d) / 2. The scores have 0.8 of the study's mu^2.
    `_NOISE_IN_PRACTICE` is the rounded median of a benchmark: six studies (``benchmarks/study_cases.py``) at
    epsilon 1 and 3. The 12 widenings were 0.83 to 1.28 times the value given here. Heavy tails, rare outcomes
    and correlated predictors increase it. Without predictors, c is `_NOISE_ALONE`. For a subgroup, n is the
    number of its records.

    >>> from dpsynth.table import Column, Schema
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=99),
    ...                          Column(name="died", kind="binary", categories=(0, 1))))
    >>> round(expected_widening(Study(model="died ~ age"), schema, 1000, 10.0), 2)
    2.05
    """
    if noise_multiplier is None:
        return 1.0
    model = study.effects(schema)
    intercepts = 1
    if model.duration is not None:
        intercepts = INTERVALS if study.intervals is None else len(study.intervals) + 1
    slopes = len(model_terms(study.table(schema), model))
    c = _NOISE_IN_PRACTICE if slopes else _NOISE_ALONE[model.kind]
    for_scores = (SURVIVAL_SPLIT if study.is_survival else SPLIT)[0] / SPLIT[0]
    return math.sqrt(1.0 + c * noise_multiplier**2 / for_scores * (slopes + intercepts) / n)


def smallest_subgroup(
    study: Study, schema: TableSchema, noise_multiplier: float | None, widening: float
) -> int:
    """Fewest records in a study's subgroup for an `expected_widening` of at most ``widening``.

    >>> from dpsynth.table import Column, Schema
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=99),
    ...                          Column(name="died", kind="binary", categories=(0, 1))))
    >>> smallest_subgroup(Study(model="died ~ 1 where age >= 65"), schema, 5.0, 2.0)
    42
    """
    of_one = expected_widening(study, schema, 1.0, noise_multiplier)
    return max(1, math.ceil((of_one**2 - 1.0) / (widening**2 - 1.0)))


def cautions(study: Study, schema: TableSchema) -> list[str]:
    """Meaning of a study's estimates where bounded influence matters, by public facts alone: one text each.

    These are a linear regression, whose outcome may have a long tail, and predictors that may have one.

    >>> from dpsynth.table import Column, Schema
    >>> schema = Schema(columns=(Column(name="nodes", kind="integer", lower=0, upper=50),
    ...                          Column(name="died", kind="binary", categories=(0, 1))))
    >>> cautions(Study(model="died ~ log1p(nodes)"), schema)
    []
    >>> print(*cautions(Study(model="died ~ nodes"), schema))  # doctest: +NORMALIZE_WHITESPACE
    A record far out in nodes counts less. If nodes has a long tail, its effect is that of the middle.
    log1p(nodes) or narrower bounds shorten the tail.
    """
    model = study.effects(schema)
    said = []
    if model.kind == "linear":
        told = "these are effects on its middle, and not those of least squares"
        if model.predictors == ():
            told = "this is the mean of its middle, and not of all values"
        said.append(
            f"A residual counts for {RESIDUAL_BOUND:g} standard deviations at most. If {model.outcome} has a "
            f"long tail, {told}. A logarithm or narrower bounds shorten the tail."
        )
    columns = [
        column
        for column in model.columns(study.table(schema))
        if column.is_numeric and column.name not in model.logs and may_have_long_tail(column)
    ]
    if columns:
        names = together([column.name for column in columns])
        tail = (
            "have long tails, their effects are those"
            if columns[1:]
            else "has a long tail, its effect is that"
        )
        shorter = shorter_tails(columns, model.logs)
        far = f"A {schema.counted.one} far out in {names} counts less."
        said.append(f"{far} If {names} {tail} of the middle. {shorter}")
    return said


def study_draws(model: GeneratorModel, rng: np.random.Generator, *, rows: bool = False) -> pd.DataFrame:
    """Synthetic records that stand for the real ones. ``model`` is the untrained base model.

    Patients with several rows have one row each, of their levels, unless ``rows`` asks for all rows.
    """
    model = model if rows else dataclasses.replace(model, trajectories=None)
    try:
        return model.sample(DRAWS, rng)
    except RejectionError:  # keep the releases: samples that break constraints are better than none
        bare, trajectories = dataclasses.replace(model, schema=model.schema.modelled), model.trajectories
        if trajectories is not None:
            patients = trajectories.schema.model_copy(update={"constraints": ()})
            bare = dataclasses.replace(bare, trajectories=dataclasses.replace(trajectories, schema=patients))
        return bare.sample(DRAWS, rng)


def may_lack(study: Study, schema: TableSchema) -> bool:
    """Whether a record may lack a value of the study's columns. Only complete records count."""
    model, table = study.effects(schema), study.table(schema)
    names = {term.column for term in model_terms(table, model)} | {model.outcome, model.duration}
    return any(column.missing for column in table.columns if column.name in names)
