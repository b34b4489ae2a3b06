"""Classifiers whose answer to every attack is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Constant:
    """Says the same whatever it is trained on."""

    classes: int = 2

    def fit(self, X, targets, seed):
        return self

    def predict_proba(self, X):
        return np.tile(np.arange(1.0, self.classes + 1) / np.arange(1.0, self.classes + 1).sum(), (len(X), 1))


@dataclass(frozen=True)
class IgnoresLabels:
    """Depends on the features and the seed of its training, never on a target."""

    def fit(self, X, targets, seed):
        return _Scored(np.random.default_rng(seed).normal(size=X.shape[1]))


@dataclass(frozen=True)
class _Scored:
    direction: np.ndarray

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-X @ self.direction))
        return np.stack([1 - p, p], axis=1)


@dataclass(frozen=True)
class Memoriser:
    """Gives each record it was trained on its target back, by the first feature, and 1/2 to all others."""

    def fit(self, X, targets, seed):
        return _Remembered(dict(zip(X[:, 0].tolist(), targets.tolist(), strict=True)), targets.shape[1])


@dataclass(frozen=True)
class _Remembered:
    seen: dict
    classes: int

    def predict_proba(self, X):
        return np.array([self.seen.get(x, [1 / self.classes] * self.classes) for x in X[:, 0].tolist()])
