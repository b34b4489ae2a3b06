"""All scores of all models beside each other, with the paired differences, as measures and details.

A *score* belongs to a model and to the table it was trained on: ``synthetic`` or ``train`` (real). Their
``difference``, and the mean over the models, are formed within each resample of the test records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.details import Calibration, Roc
from dpsynth.evaluation.progress import Progress, silent
from dpsynth.evaluation.records import Detail, Measure
from dpsynth.evaluation.utility.calibration import calibration_curve
from dpsynth.evaluation.utility.learning import Learned
from dpsynth.evaluation.utility.outcomes import outcome_kind
from dpsynth.evaluation.utility.scores import (
    SCORES,
    bootstrap,
    enough_records,
    percentile_interval,
    roc_points,
    scorer,
)
from dpsynth.table.schema import Column

Floats = NDArray[np.float64]
#: trained on, model or "mean", score
Key = tuple[str, str, str]

#: what a model was trained on -> part of the measures' names, and words
_TRAINED_ON = {
    "synthetic": ("", "train on synthetic, test on real"),
    "train": ("_real", "train on real, test on real"),
    "difference": ("_difference", "synthetic minus real training, same test records"),
}


class Scoreboard:
    """Scores of predictions of the same test records.

    Parameters
    ----------
    column : Column
        The outcome.
    y : ndarray of shape (n,)
        Known outcomes of the test records.
    learned : mapping of str to Learned
        ``"synthetic"`` and, for the reference, ``"train"``, with the same models.

    Attributes
    ----------
    point : dict
        Score of each (trained on, model, score), arrays of shape (1,); NaN where it is not defined. A key is
        absent where the model cannot have the score.
    resampled : dict
        The same of each resample, arrays of shape (resamples,); empty before :meth:`resample`, or if there
        are too few records.
    """

    def __init__(
        self,
        group: str,
        column: Column,
        y: NDArray[np.int64 | np.float64],
        learned: Mapping[str, Learned],
    ) -> None:
        self.group, self.column, self.y, self.learned = group, column, y, learned
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
        for (table, model), scores in self._scorers.items():
            found |= {(table, model, score): values for score, values in scores(weights).items()}
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

    def resample(self, resamples: int, rng: np.random.Generator, progress: Progress = silent) -> None:
        """Score resamples of the test records; nothing if they are too few."""
        if self._scorers and enough_records(self.y, self.kind):
            self.resampled = bootstrap(self._scores, len(self.y), resamples, rng, progress)
        else:
            progress(1.0)

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
        what = f"{words}, {SCORES[self.kind][score]}"
        if score in ("rmse", "mae") and self.column.unit:
            what += f" ({self.column.unit})"
        if model == "mean":
            having = sum((table, model, score) in self.point for model in self.models)
            what += f", mean of {having} model{'' if having == 1 else 's'}" if having else ", mean of models"
        if why := self._why_undefined(key):
            return Measure(self.group, name, None, True, f"{what}; {why}")
        notes = [trained.note for on, trained in self.learned.items() if table in (on, "difference")]
        interval = percentile_interval(self.resampled[key], level) if self.resampled else None
        if not self.resampled:
            notes.append("too few test records for an interval")
        elif interval is None:
            notes.append("no interval: not defined in more than a tenth of the resamples")
        elif interval[0] == interval[1]:
            notes.append("the same in every resample, so that the interval has no width")
        lower, upper = interval or (None, None)
        detail = "; ".join([what, *(note for note in notes if note)])
        return Measure(self.group, name, float(self.point[key][0]), True, detail, lower, upper)

    def _why_undefined(self, key: Key) -> str:
        """One reason why a score has no value; empty if it has one."""
        table, model, score = key
        if model == "mean":
            reasons = {name: self._why_undefined((table, name, score)) for name in self.models}
            # A model that cannot have the score is left out of the mean; one that failed is not.
            lacking = {name: why for name, why in reasons.items() if why and why != _ONLY_RANKS}
            if len(lacking) == len(self.models) and len(set(lacking.values())) == 1:
                return next(iter(lacking.values()))
            if lacking:
                return "; ".join(f"{name}: {why}" for name, why in lacking.items())
            return "" if key in self.point else _ONLY_RANKS
        for on, trained in self.learned.items():
            if table in (on, "difference") and trained.predictions[model].failure:
                return trained.predictions[model].failure
        if key not in self.point:
            return _ONLY_RANKS
        if np.isfinite(self.point[key][0]):
            return ""
        if len(np.unique(self.y)) < 2:
            return f"every test record has the same {self.column.name}: not defined"
        if self.kind == "numeric":
            return "the predictions are all equal: not defined"
        return "the predictions are all equal, or part the outcomes completely: no finite slope"

    def details(self) -> Iterator[Detail]:
        """Yield the ROC and calibration curves of a binary outcome with both classes."""
        if self.kind != "binary" or len(np.unique(self.y)) < 2:
            return
        positive = self.y == 1
        for table, trained in self.learned.items():
            for model, prediction in trained.predictions.items():
                if prediction.predicted is None:
                    continue
                score = prediction.predicted[:, 1]
                roc = roc_points(positive, score)
                auc = float(self.point[table, model, "auc"][0])
                points = (list(roc.fpr), list(roc.tpr))
                yield Detail("roc", f"roc.{table}.{model}", True, Roc(table, model, *points, auc))
                if prediction.probabilities:
                    curve = calibration_curve(positive, score)
                    groups = (list(getattr(curve, key)) for key in ("predicted", "observed", "count"))
                    data = Calibration(table, model, *groups)
                    yield Detail("calibration", f"calibration.{table}.{model}", True, data)


_ONLY_RANKS = "the model gives no probabilities"
