"""All evaluators of a synthetic table in one call.

Utility, resemblance and nearest-neighbour accuracy, gathered as records that say of each number whether it
may be released. Real records are read and nothing is paid for, so nearly every number is internal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.errors import DataError, InputError
from dpsynth.evaluation.features import distance_features
from dpsynth.evaluation.nnaa import AdversarialAccuracy, adversarial_accuracy
from dpsynth.evaluation.records import Evaluation, Measure
from dpsynth.evaluation.resemblance import resemblance
from dpsynth.evaluation.utility import Utility, check_outcome, positive_rate, train_and_test
from dpsynth.table.schema import Schema

_CLOSENESS = "Closeness to real records"


def evaluate(
    synthetic: pd.DataFrame,
    *,
    train: pd.DataFrame,
    schema: Schema,
    test: pd.DataFrame | None = None,
    outcome: str | None = None,
    seed: int | None = None,
    reference: bool = True,
    neighbour_records: int = 10_000,
    utility_records: int = 50_000,
) -> Evaluation:
    """Measure a synthetic table against the real records it stands for.

    Parameters
    ----------
    synthetic : pandas.DataFrame of shape (m, columns)
    train : pandas.DataFrame of shape (n, columns)
        The real records the synthetic ones were made from.
    schema : Schema
        Of all tables.
    test : pandas.DataFrame of shape (k, columns), optional
        Real records that had no part in the synthetic table. Without them utility is not measured.
    outcome : str, optional
        What classifiers predict; the schema's own outcome by default, no utility where there is none.
    seed : int, optional
        Of subsampling and of the classifiers; drawn from the operating system if not given, and kept in
        ``settings`` either way.
    reference : bool
        Whether the classifiers are trained on the real training records as well.
    neighbour_records : int
        Nearest neighbours are compared at equal sizes: a random part of each table, as large as the smaller
        of the two and at most this large.
    utility_records : int
        Classifiers are trained on a random part at most this large.

    Returns
    -------
    Evaluation
        ``nn_accuracy_train`` (and ``_test``), ``privacy_loss``, ``auc_mean``, ``auc_<classifier>``,
        ``auc_real_mean``, ``positive_rate_<table>``, ``tvd_mean``, ``tvd[<column>]``,
        ``correlation_error``, and the numbers of records.

    Raises
    ------
    DataError
        If a table does not fit the schema; the message names the table, the column and the row.
    InputError
        If the outcome is not a column of categories, or a table has fewer than two records.

    Notes
    -----
    Privacy: reads ``train`` and ``test`` and posts no event. Measures of real records are marked internal.
    ``privacy_loss`` is nearest-neighbour accuracy against test minus against training records (thesis,
    section 2.4): above 0 the synthetic records lie closer to the training records than to new ones.

    Examples
    --------
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=0, upper=99),))
    >>> real, made = pd.DataFrame({"age": [30, 40, 50]}), pd.DataFrame({"age": [31, 41, 90]})
    >>> result = evaluate(made, train=real, schema=schema, seed=0)
    >>> result["synthetic_records"].value, result["nn_accuracy_train"].internal
    (3, True)
    """
    chosen = outcome if outcome is not None else schema.outcome
    if chosen is not None:
        check_outcome(schema, chosen)
    for name, value in (("neighbour_records", neighbour_records), ("utility_records", utility_records)):
        if value < 2:
            raise InputError(f"{name} must be at least 2, got {value!r}")
    made = _conform("synthetic", synthetic, schema)
    real = _conform("train", train, schema)
    held_out = _conform("test", test, schema) if test is not None else None
    entropy = np.random.SeedSequence().entropy if seed is None else seed
    if not isinstance(entropy, int) or entropy < 0:
        raise InputError(f"seed must be a non-negative integer, got {seed!r}")
    rng = np.random.default_rng(entropy)

    measures = list(_sizes(made, real, held_out))
    if chosen is not None:
        measures += _utility(made, real, held_out, schema, chosen, reference, utility_records, rng)
    measures += _resemblance(made, real, schema)
    measures += _closeness(made, real, held_out, schema, neighbour_records, rng)
    settings = {
        "outcome": chosen,
        "seed": entropy,
        "neighbour_records": neighbour_records,
        "utility_records": utility_records,
    }
    return Evaluation(tuple(measures), settings)


def _sizes(made: pd.DataFrame, real: pd.DataFrame, held_out: pd.DataFrame | None) -> Iterator[Measure]:
    yield Measure("Records", "synthetic_records", len(made), False, "rows of the synthetic table")
    yield Measure("Records", "train_records", len(real), True, "real rows it was made from")
    if held_out is not None:
        yield Measure("Records", "test_records", len(held_out), True, "real rows held out")


def _utility(
    made: pd.DataFrame,
    real: pd.DataFrame,
    held_out: pd.DataFrame | None,
    schema: Schema,
    outcome: str,
    reference: bool,
    limit: int,
    rng: np.random.Generator,
) -> Iterator[Measure]:
    group = f"Utility: predicting {outcome}"
    positive = f"share of {outcome} = {schema.column(outcome).categories[-1]!r}"
    yield Measure(
        group,
        "positive_rate_synthetic",
        positive_rate(made, schema, outcome),
        False,
        f"{positive}, synthetic",
    )
    yield Measure(
        group, "positive_rate_train", positive_rate(real, schema, outcome), True, f"{positive}, train"
    )
    if held_out is None:
        return
    yield Measure(
        group, "positive_rate_test", positive_rate(held_out, schema, outcome), True, f"{positive}, test"
    )
    result = train_and_test(_part(made, limit, rng), held_out, schema, outcome, rng=rng)
    yield from _auc(group, "auc", "train on synthetic, test on real", result)
    if reference:
        result = train_and_test(_part(real, limit, rng), held_out, schema, outcome, rng=rng)
        yield from _auc(group, "auc_real", "train on real, test on real", result)


def _auc(group: str, prefix: str, what: str, result: Utility) -> Iterator[Measure]:
    note = f"; {result.note}" if result.note else ""
    yield Measure(group, f"{prefix}_mean", result.auc_mean, True, f"{what}, mean of three AUC{note}")
    for name, value in result.auc.items():
        yield Measure(group, f"{prefix}_{name}", value, True, f"{what}{note}")


def _resemblance(made: pd.DataFrame, real: pd.DataFrame, schema: Schema) -> Iterator[Measure]:
    group = "Resemblance to the training records"
    result = resemblance(real, made, schema)
    yield Measure(
        group, "tvd_mean", result.tvd_mean, True, "one-way total variation distance, mean of columns"
    )
    yield Measure(
        group,
        "correlation_error",
        result.correlation_error,
        True,
        "mean |difference| of encoded correlations",
    )
    for column, value in result.tvd.items():
        yield Measure(group, f"tvd[{column}]", value, True, "one-way total variation distance")


def _closeness(
    made: pd.DataFrame,
    real: pd.DataFrame,
    held_out: pd.DataFrame | None,
    schema: Schema,
    limit: int,
    rng: np.random.Generator,
) -> Iterator[Measure]:
    train = _neighbours(made, real, schema, limit, rng)
    yield from _accuracy("train", "training", train)
    if held_out is not None:
        test = _neighbours(made, held_out, schema, limit, rng)
        yield from _accuracy("test", "test", test)
        detail = "accuracy against test minus against training; above 0 is overfitting"
        yield Measure(_CLOSENESS, "privacy_loss", test.aa - train.aa, True, detail)


def _accuracy(suffix: str, table: str, result: AdversarialAccuracy) -> Iterator[Measure]:
    what = f"nearest-neighbour accuracy against {result.n_real} {table} records"
    values: list[tuple[str, float, str]] = [
        (f"nn_accuracy_{suffix}", result.aa, f"{what}; 0.5 is best"),
        (f"nn_accuracy_{suffix}_real", result.aa_real, f"{what}, real side"),
        (f"nn_accuracy_{suffix}_synthetic", result.aa_synthetic, f"{what}, synthetic side"),
    ]
    for name, value, detail in values:
        yield Measure(_CLOSENESS, name, value, True, detail)


def _neighbours(
    made: pd.DataFrame, real: pd.DataFrame, schema: Schema, limit: int, rng: np.random.Generator
) -> AdversarialAccuracy:
    """Compare nearest neighbours at equal sizes: the formulas allow any, but sizes change the power."""
    size = min(len(made), len(real), limit)
    parts: list[Any] = [distance_features(_part(frame, size, rng), schema).points for frame in (real, made)]
    return adversarial_accuracy(*parts)


def _part(frame: pd.DataFrame, size: int, rng: np.random.Generator) -> pd.DataFrame:
    if len(frame) <= size:
        return frame
    return frame.iloc[np.sort(rng.choice(len(frame), size=size, replace=False))]


def _conform(name: str, frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    if len(frame) < 2:
        raise DataError(f"the {name} table must have at least 2 records, got {len(frame)}")
    try:
        return schema.conform(frame).frame
    except DataError as problem:
        raise DataError(f"{name} table: {problem}") from None
