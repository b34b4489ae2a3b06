"""Trainers whose attack accuracy is known."""

from __future__ import annotations

import math

import numpy as np


class Says:
    """A model that gives class 1 this probability, or one for each record."""

    def __init__(self, of_one):
        self.of_one = of_one

    def predict_proba(self, x):
        p = self.of_one
        p = np.asarray([p(row) for row in x]) if callable(p) else np.full(len(x), p)
        return np.stack([1 - p, p], axis=1)


def memoriser(x, y, seed):
    """Sure of the class of every record that it was trained on, and of no other."""
    known = {row.tobytes(): label for row, label in zip(x, y, strict=True)}
    return Says(lambda row: {None: 0.5, 0: 0.0, 1: 1.0}[known.get(row.tobytes())])


def constant(x, y, seed):
    """Learns nothing."""
    return Says(0.3)


class RandomisedResponse:
    """Tells whether the sum of the first column is odd, and lies with probability 1 / (1 + e^epsilon)."""

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def __call__(self, x, y, seed):
        truth = int(x[:, 0].sum()) % 2
        lie = np.random.default_rng(seed).random() < 1 / (1 + math.exp(self.epsilon))
        said = 0.8 if truth ^ lie else 0.2
        return Says(said)


def shuffler(x, y, seed):
    """Deterministic, but minds the order: says 0.9 or 0.1 as the first record's feature is above 0 or not."""
    first = x[0, 0] > 0
    return Says(0.9 if first else 0.1)
