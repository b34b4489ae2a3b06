"""Declared studies in a fit: what is refused beforehand, how wide intervals will be, and the readings."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpsynth.accounting.ledger.ledger import Ledger
from dpsynth.errors import PrivacyError
from dpsynth.regression.design import INTERVALS
from dpsynth.regression.study import Study
from dpsynth.regression.terms import model_terms
from dpsynth.releases.records import Records
from dpsynth.releases.study import SPLIT, FittedStudy, StudyReleases
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.table.schema import Schema

#: synthetic records that stand for the real ones in every expectation
DRAWS = 20_000
#: studies whose intervals would be more than this times as wide as without noise are refused
MOST_WIDENING = 5.0


def check_studies(studies: Sequence[Study], schema: Schema) -> None:
    """Refuse a study that does not fit the schema, before anything is read.

    Raises
    ------
    InputError
        Naming the study and what is wrong with it.
    """
    for study in studies:
        study.effects(schema)


def expected_widening(study: Study, schema: Schema, n: float, noise_multiplier: float | None) -> float:
    """How many times as wide as without noise a study's intervals will be at least, from public numbers.

    For d coefficients, standardised predictors that do not correlate and an outcome as common as not, the
    information of n records is n / 4 in every direction and a record's score is sqrt(d) / 2 long; both scores
    together have noise of multiplier z. The variance is then ``1 + z^2 d / n`` times that without noise.
    Rare outcomes and tails make it more.

    Parameters
    ----------
    noise_multiplier : float or None
        Of one Gaussian mechanism that costs what the study does.

    Examples
    --------
    >>> from dpsynth.table import Column
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=99),
    ...                          Column(name="died", kind="binary", categories=(0, 1))))
    >>> round(expected_widening(Study(model="died ~ age"), schema, 1000, 20.0), 2)
    1.41
    """
    if noise_multiplier is None:
        return 1.0
    model = study.effects(schema)
    intercepts = 1
    if model.duration is not None:
        intercepts = INTERVALS if study.intervals is None else len(study.intervals) + 1
    size = len(model_terms(schema, model)) + intercepts
    return math.sqrt(1.0 + noise_multiplier**2 / (SPLIT[0] + SPLIT[2]) * size / n)


def check_widening(
    studies: Sequence[Study], releases: Sequence[StudyReleases], schema: Schema, n: float
) -> dict[str, float]:
    """What each study's intervals will be at least; refuse what the budget cannot bear.

    Raises
    ------
    PrivacyError
        If one would be more than `MOST_WIDENING` times as wide as without noise.
    """
    expected = {}
    for study, planned in zip(studies, releases, strict=True):
        wide = expected_widening(study, schema, n, planned.multiplier)
        if wide > MOST_WIDENING:
            raise PrivacyError(
                f"study {study.label!r} has more terms than the budget can bear: its intervals would be at "
                f"least {wide:.1f} times as wide as without noise; declare fewer predictors or studies, or "
                "raise epsilon or shares.studies"
            )
        expected[study.label] = wide
    return expected


def fit_studies(
    records: Records,
    model: GeneratorModel,
    studies: Sequence[Study],
    releases: Sequence[StudyReleases],
    n: float,
    rng: np.random.Generator,
    ledger: Ledger,
) -> tuple[FittedStudy, ...]:
    """Read the records for every declared study, in order; ``model`` is the prior's, not trained."""
    if not studies:
        return ()
    draws = model.sample(DRAWS, rng)
    return tuple(
        planned.run(ledger, records, study, model.schema, draws, n, rng)
        for study, planned in zip(studies, releases, strict=True)
    )
