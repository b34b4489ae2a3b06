"""Is the synthetic table as useful as the real one? Predictions, their scores, and how often outcomes occur.

Models trained on the synthetic records (TSTR) and on the real training records (TRTR) predict the outcome of
the same real test records. Each score is given for both, and as the difference synthetic minus real, with
intervals from the same resamples of test records. See Pedersen (2022), section 3.4.2.

Scores, and rates of real records, are not paid for: internal. Rates of the synthetic table are read from
that table and the public schema alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import check_level
from dpsynth.evaluation.progress import within
from dpsynth.evaluation.records import Findings
from dpsynth.evaluation.subsample import random_rows
from dpsynth.evaluation.utility.models import chosen_models
from dpsynth.evaluation.utility.outcome_rates import outcome_rates
from dpsynth.evaluation.utility.outcomes import check_outcome, known_outcomes, outcome_kind
from dpsynth.evaluation.utility.scoreboard import Scoreboard
from dpsynth.evaluation.utility.utility import Learned, learn_and_predict
from dpsynth.table.schema import Schema

#: part of the progress that training takes; the rest is resampling
_TRAINING = 0.9


def usefulness(
    synthetic: pd.DataFrame,
    train: pd.DataFrame,
    test: pd.DataFrame | None,
    schema: Schema,
    outcome: str,
    *,
    rng: np.random.Generator,
    reference: bool = True,
    limit: int = 50_000,
    models: Mapping[str, Any] | None = None,
    resamples: int = 500,
    level: float = 0.95,
    progress: Callable[[float], None] | None = None,
) -> Findings:
    """Compare what models learn from synthetic and from real records.

    Parameters
    ----------
    synthetic : pandas.DataFrame of shape (m, columns)
    train : pandas.DataFrame of shape (n, columns)
        The real records the synthetic ones were made from.
    test : pandas.DataFrame of shape (k, columns) or None
        Real records that had no part in the synthetic table. Without them only rates are given.
    schema : Schema
        All frames are conformed to it.
    outcome : str
        Binary, ordinal or categorical (classified) or integer or continuous (regressed).
    rng : numpy.random.Generator
        Of subsampling, models and resampling.
    reference : bool
        Whether models are trained on the real training records as well.
    limit : int
        Models are trained on a random part of each table at most this large; at least 2.
    models : mapping of str to estimator, factory or Model, optional
        Instead of our three; see :func:`~dpsynth.evaluation.utility.models.chosen_models`.
    resamples : int
        Of the test records, for intervals; at least 1.
    level : float
        Of the intervals; in (0, 1).
    progress : callable, optional
        Told the fraction done.

    Returns
    -------
    Findings
        Measures ``<score>_<model>``, ``<score>_real_<model>``, ``<score>_difference_<model>`` and the same
        with ``mean`` in place of a model, for each of :data:`~dpsynth.evaluation.utility.scores.SCORES`;
        the rates of :func:`~dpsynth.evaluation.utility.outcome_rates.outcome_rates`. For a binary outcome
        details ``"roc"`` and ``"calibration"`` of each model.

    Raises
    ------
    InputError
        If the outcome cannot be predicted from other columns, or an argument is out of its range.

    Notes
    -----
    Intervals are percentiles over resamples of the *test records*; the models are held fixed, so neither the
    randomness of training nor that of the synthetic table is covered. All scores, differences and means use
    the same resamples. There is no interval for fewer than 10 test records or, for categories, fewer than 5
    test records in each of two.

    A mean is over the models that can have the score: a model without probabilities has no Brier score.

    Privacy: reads ``train`` and ``test`` and posts no event.

    Examples
    --------
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=0, upper=99),
    ...                          Column(name="died", kind="binary", categories=(0, 1))))
    >>> real = pd.DataFrame({"age": range(20, 80), "died": [0] * 30 + [1] * 30})
    >>> made = pd.DataFrame({"age": range(20, 80), "died": [0, 1] * 30})
    >>> found = usefulness(made, real, real, schema, "died", rng=np.random.default_rng(0), resamples=50)
    >>> by_name = {measure.name: measure for measure in found.measures}
    >>> by_name["auc_real_logistic_regression"].value, by_name["positive_rate_synthetic"].value
    (1.0, 0.5)
    """
    check_outcome(schema, outcome)
    kind = outcome_kind(schema.column(outcome))
    chosen = chosen_models(kind, models)
    for name, value, least in (("limit", limit, 2), ("resamples", resamples, 1)):
        if value < least:
            raise InputError(f"{name} must be at least {least}, got {value!r}")
    check_level(level)
    group = f"Utility: predicting {outcome}"
    rates = tuple(outcome_rates(synthetic, train, test, schema, outcome, group=group, level=level))
    if test is None:
        return Findings(rates)

    known, y = known_outcomes(test, schema, outcome)
    nothing = f"no test record has a known {outcome}"
    tables = {"synthetic": synthetic, "train": train} if reference else {"synthetic": synthetic}
    learned: dict[str, Learned] = {}
    for done, (arm, table) in enumerate(tables.items()):
        if not len(y):
            learned[arm] = Learned.failed(chosen, nothing)
            continue
        learned[arm] = learn_and_predict(
            table.iloc[random_rows(len(table), limit, rng)],
            known,
            schema,
            outcome,
            models=chosen,
            rng=rng,
            progress=within(progress, _TRAINING * done / len(tables), _TRAINING * (done + 1) / len(tables)),
        )
    board = Scoreboard(group, schema.column(outcome), y, learned)
    board.resample(resamples, rng, within(progress, _TRAINING, 1.0))
    return Findings(rates + tuple(board.measures(level)), tuple(board.details()))
