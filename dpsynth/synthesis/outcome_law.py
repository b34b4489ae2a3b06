"""A categorical outcome's law given the other columns, smoothed: post-processing of released points.

Matched points are fitted to noise as well. Each has an outcome of its own, so a flexible model that learns
from samples finds structure that is noise. A multinomial logistic regression of the outcome keeps its mean
products with all coordinates and with the squares of numbers (its score equations), and nothing else.
Outcomes are then drawn from it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpsynth.files.codec import record
from dpsynth.table.draws import draw_entry
from dpsynth.table.encoder import Encoder
from dpsynth.wgan.networks import MatchedPoints

Floats = NDArray[np.float64]
# Points from which the law is learnt, and iterations of L-BFGS at most.
_POINTS, _ITERATIONS = 20_000, 300
# Intercept of a category that no point has.
_NEVER = -30.0


@record
@dataclass(frozen=True, eq=False)
class OutcomeLaw:
    """Multinomial logistic regression of the outcome on the other coordinates and squares of numbers.

    ``group``: the outcome's one-hot group among the coordinates of a point.
    ``weights``, shape (features + 1, categories): of the `coordinates_and_squares`, and then the intercepts.
    """

    group: tuple[int, int]
    weights: Floats

    @classmethod
    def of(cls, points: MatchedPoints, encoder: Encoder) -> Self | None:
        """The law of matched points, or None where no outcome is declared or it is not a category.

        The random numbers are public and always the same. They draw 20,000 points.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        schema, rng = encoder.schema, np.random.default_rng(0)
        if schema.outcome is None:
            return None
        j = schema.names.index(schema.outcome)
        group = encoder.group[j]
        if group is None or encoder.coordinate[j] is not None:
            return None
        k = encoder.layout.n_numeric
        drawn = with_categories(points.sample(_POINTS, k, rng), encoder.layout.groups, rng)
        labels = drawn[:, slice(*group)].argmax(axis=1)
        learnt = np.unique(labels)
        if len(learnt) < 2:
            return None
        model = LogisticRegression(max_iter=_ITERATIONS)
        with warnings.catch_warnings():  # it is a law wherever it stops
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(coordinates_and_squares(drawn, k, group), labels)
        slopes, intercepts = model.coef_, model.intercept_
        if len(learnt) == 2:  # scikit-learn keeps the second category's log odds alone
            slopes, intercepts = np.stack([0 * slopes[0], slopes[0]]), np.array([0.0, intercepts[0]])
        weights = np.zeros((slopes.shape[1] + 1, group[1] - group[0]))
        weights[-1] = _NEVER
        weights[:, learnt] = np.concatenate([slopes.T, intercepts[None]])
        return cls(group, weights)

    def probabilities(self, points: NDArray[np.floating], n_numeric: int) -> Floats:
        """Of each category of the outcome, shape (n, categories), for points whose categories are drawn."""
        scores = coordinates_and_squares(points, n_numeric, self.group) @ self.weights[:-1] + self.weights[-1]
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def redrawn(
        self, points: NDArray[np.float32], encoder: Encoder, rng: np.random.Generator
    ) -> NDArray[np.float32]:
        """Points with drawn categories, and the outcome's probabilities given these, shape (n, dim)."""
        others = (group for group in encoder.layout.groups if group != self.group)
        points = with_categories(points, others, rng)
        points[:, slice(*self.group)] = self.probabilities(points, encoder.layout.n_numeric)
        return points


def coordinates_and_squares(points: NDArray[np.floating], n_numeric: int, group: tuple[int, int]) -> Floats:
    """All coordinates but the outcome's, and the squares of numbers about the middle, from 0 to 1."""
    squares = 4.0 * (points[:, :n_numeric].astype(np.float64) - 0.5) ** 2
    return np.concatenate([np.delete(points, np.arange(*group), axis=1), squares], axis=1)


def with_categories(
    points: NDArray[np.float32], groups: Iterable[tuple[int, int]], rng: np.random.Generator
) -> NDArray[np.float32]:
    """A copy of points in which one category of each of these groups is drawn by its probabilities."""
    drawn = points.copy()
    for start, stop in groups:
        drawn[:, start:stop] = np.eye(stop - start, dtype=np.float32)[draw_entry(points[:, start:stop], rng)]
    return drawn
