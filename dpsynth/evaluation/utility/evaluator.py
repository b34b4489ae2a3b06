"""Is the synthetic table as useful as the real one? Predictions, their scores, and how often outcomes occur.

Models trained on the synthetic records (TSTR) and on the real training records (TRTR) predict the outcome of
the same real test records. Each score is given for both, and as the difference synthetic minus real, with
intervals from the same resamples of test records. See Pedersen (2022), section 3.4.2.

Scores, and rates of real records, are not paid for: internal. Rates of the synthetic table are read from
that table and the public schema alone.
"""

from __future__ import annotations

import numpy as np

from dpsynth.evaluation.progress import Progress, silent, within
from dpsynth.evaluation.records import Findings, Measure
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.subsample import LEARNED, TESTED, on_part, random_rows
from dpsynth.evaluation.tables import Tables
from dpsynth.evaluation.utility.learning import Learned, learn_and_predict
from dpsynth.evaluation.utility.models import chosen_models
from dpsynth.evaluation.utility.outcomes import known_outcomes, outcome_kind
from dpsynth.evaluation.utility.rates import outcome_rates
from dpsynth.evaluation.utility.scoreboard import Scoreboard
from dpsynth.table.leaks import find_leaks

#: of the test records, for intervals
RESAMPLES = 500
#: part of the progress that training takes; the rest is resampling
_TRAINING = 0.9


def utility(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """Compare what models learn from synthetic and from real records.

    Parameters
    ----------
    tables : Tables
        Without test records only rates are given.
    settings : Settings
        ``outcome`` (nothing is measured without one: binary, ordinal or categorical ones are classified,
        numbers regressed), ``reference``, ``records``, ``models``, ``level``.

    Returns
    -------
    Findings
        Measures ``<score>_<model>``, ``<score>_real_<model>``, ``<score>_difference_<model>`` and the same
        with ``mean`` in place of a model, for each of :data:`~dpsynth.evaluation.utility.scores.SCORES`;
        the rates of :func:`~dpsynth.evaluation.utility.rates.outcome_rates`; ``outcome_auc[<column>]``
        (internal) of each column that gives the outcome away in the training records, see
        :mod:`dpsynth.table.leaks`. For a binary outcome details ``"roc"`` and ``"calibration"`` of each
        model.

    Raises
    ------
    InputError
        If the outcome cannot be predicted from other columns, or not by one of the models.

    Notes
    -----
    Intervals are percentiles over resamples of the *test records*; the models are held fixed, so neither the
    randomness of training nor that of the synthetic table is covered. All scores, differences and means use
    the same resamples. There is no interval for fewer than 10 test records or, for categories, fewer than 5
    test records in each of two.

    A mean is over the models that can have the score: a model without probabilities has no Brier score.

    Privacy: reads ``train`` and ``test`` and posts no event.
    """
    schema, test = tables.schema, tables.test
    outcome = settings.predicted(schema)
    if outcome is None:
        return Findings()
    chosen = chosen_models(outcome_kind(schema.column(outcome)), settings.models)
    group = f"Utility: predicting {outcome}"
    rates = tuple(outcome_rates(tables, outcome, group=group, level=settings.level))
    rates += tuple(
        Measure(group, f"outcome_auc[{leak.column}]", leak.auc, True, f"real records, one column: {leak}")
        for leak in find_leaks(tables.train, outcome)
    )
    if test is None:
        return Findings(rates)

    tested = test.iloc[random_rows(len(test), settings.most(schema, TESTED), rng)]
    known, y = known_outcomes(tested, schema, outcome)
    limit = settings.most(schema, LEARNED)
    nothing = f"no test record has a known {outcome}"
    trained_on = {"synthetic": tables.synthetic} | ({"train": tables.train} if settings.reference else {})
    learned: dict[str, Learned] = {}
    for done, (arm, table) in enumerate(trained_on.items()):
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
            progress=within(progress, *(_TRAINING * part / len(trained_on) for part in (done, done + 1))),
        )
    board = Scoreboard(group, schema.column(outcome), y, learned)
    board.resample(RESAMPLES, rng, within(progress, _TRAINING, 1.0))
    told = on_part(board.measures(settings.level), "testing models", len(tested), len(test), settings.level)
    longest = max(map(len, trained_on.values()))
    learning = on_part((), "training models", min(limit, longest), longest, settings.level)
    return Findings(rates + told.measures, tuple(board.details()), learning.parts + told.parts)
