"""Figures of a synthetic table of known structure, against fresh records of the same population.

Real records have chance values and not perfect ones.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.ground.tables import Ground
from dpsynth.evaluation.associations import correlation_errors
from dpsynth.evaluation.models import CLASSIFIERS, known_outcomes, learn_and_predict
from dpsynth.evaluation.neighbours import adversarial_accuracy
from dpsynth.evaluation.resemblance import cell_counts
from dpsynth.evaluation.tables import Tables, distance_features, random_rows
from dpsynth.table import Column, Schema
from dpsynth.table.kinds.category import category_codes

#: largest parts of tables that are read: by discriminator and neighbours, by learners, by everything else
APART, LEARNING, WHOLE = 4_000, 20_000, 100_000
#: of the seeds of measuring: those of a sample are the same numbers
_MEASURING = 0x6E
#: codes that histogram gradient boosting takes, one of them for missing values
_MOST_CATEGORIES = 255


def measure(frame: pd.DataFrame, ground: Ground, *, seed: int = 0, parts: int = APART) -> dict[str, float]:
    """Figures of a synthetic table against the test records of its ground.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (m, columns)
        From any generator; of more than ``WHOLE`` records a random part is read.
    ground : Ground
        Its test records are the yardstick.
    seed : int
        Of random parts and of models.
    parts : int
        Records that the discriminator and neighbours read of each table, at most. As many at every n, so that
        the figures of small and large tables can be compared.

    Returns
    -------
    dict of str to float
        By name: ``structure`` where the ground has a score; ``AUC (...)`` (trained on the
        frame, tested on test records) and ``outcome error`` (total variation distance of the outcome; of a
        binary one the error of its positive rate) where the schema has an outcome; ``discriminator`` (AUC of
        boosting by cross-fitting), ``correlation error``, ``TVD`` (mean of columns), ``NN accuracy``.
    """
    rng = np.random.default_rng([_MEASURING, seed])
    frame = frame.iloc[random_rows(len(frame), WHOLE, rng)]
    schema = ground.schema
    tables = Tables.of(frame, train=ground.test, schema=schema)
    made, test = tables.synthetic, tables.train
    figures: dict[str, float] = {}
    if ground.score is not None:
        figures["structure"] = ground.score(made)
    if schema.outcome is not None:
        figures |= _utility(made, test, schema, schema.outcome, rng)
    figures["discriminator"] = discriminator(test, made, schema, parts, rng)
    figures["correlation error"] = correlation_errors(test, [made], schema)[0].value
    gaps = {c.name: _distance(*cell_counts(test[c.name], made[c.name], c)) for c in schema.columns}
    figures["TVD"] = float(np.mean(list(gaps.values())))
    if schema.outcome is not None:
        figures["outcome error"] = gaps[schema.outcome]
    figures["NN accuracy"] = _neighbours(made, test, schema, parts, rng)
    return figures


def _utility(
    made: pd.DataFrame, test: pd.DataFrame, schema: Schema, outcome: str, rng: np.random.Generator
) -> dict[str, float]:
    from sklearn.metrics import roc_auc_score

    known, y = known_outcomes(test, schema, outcome)
    names = {"AUC (logistic)": "logistic_regression", "AUC (boosting)": "hist_gradient_boosting"}
    learned = learn_and_predict(
        made.iloc[random_rows(len(made), LEARNING, rng)],
        known,
        schema,
        outcome,
        models={model: CLASSIFIERS[model] for model in names.values()},
        rng=rng,
    )
    figures = {}
    for name, model in names.items():
        scores = learned.predictions[model].predicted
        if scores is None:
            raise RuntimeError(f"{model} trained on a synthetic table: {learned.predictions[model].failure}")
        if scores.shape[1] == 2:
            figures[name] = float(roc_auc_score(y, scores[:, 1]))
        else:
            figures[name] = float(roc_auc_score(y, scores, multi_class="ovr", average="macro"))
    return figures


def _distance(real: np.ndarray, made: np.ndarray) -> float:
    return float(0.5 * np.abs(real / real.sum() - made / made.sum()).sum())


def _neighbours(
    made: pd.DataFrame, test: pd.DataFrame, schema: Schema, parts: int, rng: np.random.Generator
) -> float:
    one, other = (distance_features(part, schema) for part in _parts(test, made, parts, rng))
    return adversarial_accuracy(one, other).aa


def _parts(
    test: pd.DataFrame, made: pd.DataFrame, parts: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    size = min(len(test), len(made), parts)
    one, other = (frame.iloc[rng.permutation(len(frame))[:size]] for frame in (test, made))
    return one, other


def discriminator(
    test: pd.DataFrame, made: pd.DataFrame, schema: Schema, parts: int, rng: np.random.Generator
) -> float:
    """AUC of boosting that tells made from test records, mean of five folds; both frames conformed.

    The classifier of :func:`dpsynth.evaluate`, without the shuffled columns, which take most of its time.
    """
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    both = pd.concat(_parts(test, made, parts, rng), ignore_index=True)
    points = pd.DataFrame({column.name: _coordinate(column, both[column.name]) for column in schema.columns})
    label = np.repeat([0, 1], len(both) // 2)
    seed = int(rng.integers(2**31 - 1))
    model = CLASSIFIERS["hist_gradient_boosting"].make(seed).set_params(categorical_features="from_dtype")
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return float(cross_val_score(model, points, label, cv=folds, scoring="roc_auc").mean())


def _coordinate(column: Column, values: pd.Series) -> pd.Series | pd.Categorical:
    """A column as boosting takes it: a missing number has a value of its own, below all others."""
    if column.is_numeric:
        return values.astype(float).fillna(2 * float(column.lower or 0) - float(column.upper or 0))
    if len(column.categories) < _MOST_CATEGORIES:
        return pd.Categorical(values.astype(object), categories=list(column.categories))
    return pd.Series(category_codes(column, values), index=values.index, dtype=float)
