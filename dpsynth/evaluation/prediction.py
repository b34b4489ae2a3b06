"""How useful a table is: models that learn from it, their scores, and how often outcomes occur."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import Counted
from dpsynth.evaluation.estimates import share
from dpsynth.evaluation.models import (
    Learned,
    Model,
    chosen_models,
    known_outcomes,
    learn_and_predict,
    mean_interval,
    mode_collapse,
    outcome_kind,
)
from dpsynth.evaluation.results import Findings, Measure, Row, TrainedOn
from dpsynth.evaluation.scores import (
    SCORES,
    bootstrap,
    calibration_curve,
    enough_records,
    percentile_interval,
    roc_points,
    scorer,
)
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import LEARNED, TESTED, Progress, Tables, on_part, random_rows, silent, within
from dpsynth.table.draft import find_leaks
from dpsynth.table.schema import Column

# ------------------------------------------------------------------------------------------------
# Is the synthetic table as useful as the real one? Predictions, their scores, and how often outcomes occur.
#
# Models trained on the synthetic records (TSTR) and on the real training records (TRTR) predict the outcome
# of the same real test records. Each score is given for both, and as the difference synthetic minus real.
# Differences and means over the models are formed within each resample of the test records. See Pedersen
# (2022), section 3.4.2.
#
# Scores and rates of real records have no noise: they are confidential. Rates of the synthetic table are
# read from that table and the public schema alone. Rates have Wilson's interval and means Student's, both
# for independent records. :mod:`~dpsynth.evaluation.models` describes post-processed synthetic
# rows.

Floats = NDArray[np.float64]
#: trained on, model or "mean", score
Key = tuple[str, str, str]

#: what a model was trained on -> part of the measures' names, and words
_TRAINED_ON = {
    "synthetic": ("", "train on synthetic, test on real"),
    "train": ("_real", "train on real, test on real"),
    "difference": ("_difference", "synthetic minus real training, same test {records}"),
}


class Scoreboard:
    """Scores of predictions of the same test records.

    ``point`` holds the score of each (trained on, model, score), arrays of shape (1,), NaN if not defined. A
    key is absent if the model failed. ``resampled`` holds the same of each resample. It is
    empty before :meth:`resample`, or if there are too few records.
    """

    def __init__(
        self,
        group: str,
        column: Column,
        y: NDArray[np.int64 | np.float64],
        learned: Mapping[TrainedOn, Learned],
        counted: Counted = Counted.RECORDS,
    ) -> None:
        self.group, self.column, self.y, self.learned = group, column, y, learned
        self.counted = counted
        self.kind = outcome_kind(column)
        self.models = list(learned["synthetic"].predictions)
        self._scorers = {
            (table, model): scorer(self.kind, y, prediction)
            for table, trained in learned.items()
            for model, prediction in trained.predictions.items()
            if prediction.predicted is not None
        }
        self.point = self._scores(np.ones((len(y), 1)))
        self.resampled: dict[Key, Floats] = {}

    def _scores(self, weights: Floats) -> dict[Key, Floats]:
        """Every score, every difference, and the means over the models that have the score."""
        found: dict[Key, Floats] = {}
        for (arm, model), scores in self._scorers.items():
            found |= {(arm, model, score): values for score, values in scores(weights).items()}
        for table, model, score in list(found):
            if table == "synthetic" and ("train", model, score) in found:
                difference = found[table, model, score] - found["train", model, score]
                found["difference", model, score] = difference
        for table in _TRAINED_ON:
            for score in SCORES[self.kind]:
                over = [found[table, model, score] for model in self.models if (table, model, score) in found]
                if over:
                    found[table, "mean", score] = np.mean(over, axis=0)
        return found

    def resample(self, resamples: int, rng: np.random.Generator) -> None:
        """Score resamples of the test records, unless they are too few."""
        if self._scorers and enough_records(self.y, self.kind):
            self.resampled = bootstrap(self._scores, len(self.y), resamples, rng)

    def measures(self, level: float = 0.95) -> Iterator[Measure]:
        """Yield each score as a measure with its interval, the means over the models first."""
        tables = [*self.learned, "difference"] if len(self.learned) > 1 else list(self.learned)
        for score in SCORES[self.kind]:
            for model in ("mean", *self.models):
                for table in tables:
                    yield self._measure((table, model, score), level)

    def _measure(self, key: Key, level: float) -> Measure:
        table, model, score = key
        part, words = _TRAINED_ON[table]
        name = f"{score}{part}_{model}"
        what = f"{self.counted.fill(words)}, {self.counted.fill(SCORES[self.kind][score])}"
        if score in ("rmse", "mae") and self.column.unit:
            what += f" ({self.column.unit})"
        if model == "mean":
            having = sum((table, model, score) in self.point for model in self.models)
            what += f", mean of {having} model{'' if having == 1 else 's'}" if having else ", mean of models"
        if why := self._why_undefined(key):
            return Measure(self.group, name, None, True, f"{what}: {why}")
        notes = [trained.note for on, trained in self.learned.items() if table in (on, "difference")]
        interval = percentile_interval(self.resampled[key], level) if self.resampled else None
        if not self.resampled:
            notes.append(f"too few test {self.counted} for an interval")
        elif interval is None:
            notes.append("no interval: not defined in more than a tenth of the resamples")
        elif interval[0] == interval[1]:
            notes.append("the same in every resample, so that the interval has no width")
        lower, upper = interval or (None, None)
        detail = ", ".join([what, *(note for note in notes if note)])
        return Measure(self.group, name, float(self.point[key][0]), True, detail, lower, upper)

    def _why_undefined(self, key: Key) -> str:
        """One reason why a score has no value, empty if it has one."""
        table, model, score = key
        if model == "mean":
            reasons = {name: self._why_undefined((table, name, score)) for name in self.models}
            lacking = {name: why for name, why in reasons.items() if why}
            if len(lacking) == len(self.models) and len(set(lacking.values())) == 1:
                return next(iter(lacking.values()))
            return ", ".join(f"{name}: {why}" for name, why in lacking.items())
        for on, trained in self.learned.items():
            if table in (on, "difference") and trained.predictions[model].failure:
                return trained.predictions[model].failure
        if np.isfinite(self.point[key][0]):
            return ""
        if len(np.unique(self.y)) < 2:
            return f"every test {self.counted.one} has the same {self.column.name}: not defined"
        if self.kind == "numeric":
            return "the predictions are all equal: not defined"
        return "the predictions are all equal, or part the outcomes completely: no finite slope"

    def curves(self) -> Iterator[tuple[str, list[Row]]]:
        """Yield rows of the ROC and calibration curves of a binary outcome with both classes, by frame."""
        if self.kind != "binary" or len(np.unique(self.y)) < 2:
            return
        positive = self.y == 1
        for table, trained in self.learned.items():
            for model, prediction in trained.predictions.items():
                if prediction.predicted is None:
                    continue
                score = prediction.predicted[:, 1]
                of = {"trained_on": table, "model": model}
                roc = zip(*roc_points(positive, score), strict=True)
                auc = float(self.point[table, model, "auc"][0])
                yield "roc", [{**of, "fpr": fpr, "tpr": tpr, "auc": auc} for fpr, tpr in roc]
                groups = calibration_curve(positive, score)
                cells = zip(*groups.values(), strict=True)
                yield "calibration", [{**of, **dict(zip(groups, cell, strict=True))} for cell in cells]


def outcome_rates(tables: Tables, outcome: str, *, group: str, level: float = 0.95) -> Iterator[Measure]:
    """Yield the rates of the outcome in each table, and the warnings about lost outcomes.

    The positive rate is the share of the last declared category. ``outcome_constant_synthetic`` is 1 if one
    value only occurs in the synthetic table, ``mode_collapse`` is 1 as
    :func:`~dpsynth.evaluation.models.mode_collapse` says.
    """
    schema = tables.schema
    column, counted = schema.column(outcome), schema.counted
    for table, frame in (("synthetic", tables.synthetic), ("train", tables.train), ("test", tables.test)):
        if frame is None:
            continue
        internal = table != "synthetic"
        values = known_outcomes(frame, schema, outcome)[1]
        rates = _numbers if column.is_numeric else _rates
        for name, what, value, interval in rates(values, column, table, level):
            detail = f"{what}, {table}"
            if not len(values):
                detail += f": no {counted.one} has a known {outcome}"
            # The synthetic table's own rate is a fact about it; what the noise did to it is not in an
            # interval over its records, which would be read as one for the real rate.
            lower, upper = interval if internal and interval else (None, None)
            yield Measure(group, name, value, internal, detail, lower, upper)
        if table == "synthetic":
            yield _constant(values, column, group, counted)
    lost, reason = mode_collapse(tables.synthetic, tables.train, schema, outcome)
    detail = f"1 if an outcome of the training {counted} got lost: {reason}"
    yield Measure(group, "mode_collapse", None if lost is None else int(lost), True, detail)


_Row = tuple[str, str, float | None, tuple[float, float] | None]


def _rates(codes: NDArray[np.int64 | np.float64], column: Column, table: str, level: float) -> Iterator[_Row]:
    last = len(column.categories) - 1
    named = [(f"positive_rate_{table}", last)]
    if last > 1:
        named += [(f"outcome_rate_{table}[{category}]", i) for i, category in enumerate(column.categories)]
    for name, code in named:
        what = f"share of {column.name} = {column.categories[code]!r}"
        count = int((codes == code).sum())
        if len(codes):
            rate = share(count, len(codes), level, method="wilson")
            yield name, what, rate.value, (rate.lower, rate.upper)
        else:
            yield name, what, None, None


def _numbers(
    values: NDArray[np.int64 | np.float64], column: Column, table: str, level: float
) -> Iterator[_Row]:
    unit = f" ({column.unit})" if column.unit else ""
    known = values.astype(np.float64)
    mean = float(known.mean()) if len(known) else None
    yield f"outcome_mean_{table}", f"mean of {column.name}{unit}", mean, mean_interval(known, level)
    spread = float(known.std(ddof=1)) if len(known) > 1 else None
    yield f"outcome_sd_{table}", f"standard deviation of {column.name}{unit}", spread, None


def _constant(
    values: NDArray[np.int64 | np.float64], column: Column, group: str, counted: Counted
) -> Measure:
    different = np.unique(values)
    value: int | None = None
    if not len(different):
        sentence = f"no synthetic {counted.one} has a known {column.name}"
    elif len(different) > 1:
        value, sentence = 0, f"{column.name} varies in the synthetic table"
    else:
        only = f"{different[0]:g}" if column.is_numeric else repr(column.categories[int(different[0])])
        value, sentence = 1, f"every synthetic {counted.one} has {column.name} = {only}"
    detail = f"1 if one outcome only occurs: {sentence}"
    return Measure(group, "outcome_constant_synthetic", value, False, detail)


@dataclass(frozen=True)
class Arms:
    """Predictions for the same held-out records, by models of synthetic and, if asked for, of real records.

    ``records`` have a known outcome ``y``. They are among ``tested``, a random part of the held-out ones.
    """

    records: pd.DataFrame
    y: NDArray[np.int64 | np.float64]
    tested: int
    learned: dict[TrainedOn, Learned]


def learned_arms(
    tables: Tables,
    test: pd.DataFrame,
    settings: Settings,
    outcome: str,
    models: Mapping[str, Model],
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Arms:
    """Train models on each table and let them predict the held-out records."""
    schema = tables.schema
    part = test.iloc[random_rows(len(test), settings.most(schema, TESTED), rng)]
    known, y = known_outcomes(part, schema, outcome)
    limit = settings.most(schema, LEARNED)
    tables_of: dict[TrainedOn, pd.DataFrame] = {"synthetic": tables.synthetic}
    if settings.reference:
        tables_of["train"] = tables.train
    learned = {}
    for done, (arm, table) in enumerate(tables_of.items()):
        if not len(y):
            learned[arm] = Learned.failed(models, f"no test {schema.counted.one} has a known {outcome}")
            continue
        rows = table.iloc[random_rows(len(table), limit, rng)]
        share = within(progress, done / len(tables_of), (done + 1) / len(tables_of))
        learned[arm] = learn_and_predict(rows, known, schema, outcome, models=models, rng=rng, progress=share)
    return Arms(known, y, len(part), learned)


#: of the test records, for intervals
RESAMPLES = 500
#: part of the progress that training takes; the rest is resampling
_TRAINING = 0.9


def utility(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """Compare models trained on synthetic and on real records. Nothing is measured without an outcome.

    Also gives the AUC of each column that reveals the outcome in the training records, see
    :mod:`dpsynth.table.draft`. Intervals are percentiles over resamples of the *test records*. The models are
    held fixed: the randomness of training and of the synthetic table is left out. Fewer than 10 test records,
    or of categories fewer than 5 in each of two, have no interval.
    """
    schema, test = tables.schema, tables.test
    outcome = settings.predicted(schema)
    if outcome is None:
        return Findings()
    group = f"Utility: predicting {outcome}"
    results = Findings([*outcome_rates(tables, outcome, group=group, level=settings.level)])
    results.measures += [
        Measure(
            group, f"outcome_auc[{leak.column}]", leak.auc, True, f"real {schema.counted}, one column: {leak}"
        )
        for leak in find_leaks(tables.train, outcome)
    ]
    if test is None:
        return results

    chosen = chosen_models(outcome_kind(schema.column(outcome)), settings.models)
    found = learned_arms(tables, test, settings, outcome, chosen, rng, within(progress, 0.0, _TRAINING))
    board = Scoreboard(group, schema.column(outcome), found.y, found.learned, schema.counted)
    board.resample(RESAMPLES, rng)
    progress(1.0)
    longest = max(len(tables.synthetic), len(tables.train) if settings.reference else 0)
    limit, level = settings.most(schema, LEARNED), settings.level
    results.join(
        on_part((), "training models", min(limit, longest), longest, level, schema.counted),
        on_part(board.measures(level), "testing models", found.tested, len(test), level, schema.counted),
    )
    for name, rows in board.curves():
        results.frame(name, rows, confidential=True)
    return results
