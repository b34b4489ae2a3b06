"""Models on random halves of the records, and what they say of the records that they have not seen.

The records are split in halves many times; a model is trained on each half, with the labels as they are, and
predicts all records. For each record that gives one logit vector a split from a model that had it and one
from a model that had not.

References
----------
Pedersen (2022), thesis, section 5.3 (the leave-out average, logits centred) and 5.4 (25 splits).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.bayes import SMALLEST_STD, centred_logits
from dpsynth.checks import whole
from dpsynth.errors import InputError
from dpsynth.files.rounds import carry_out
from dpsynth.research.soft_labels.classifiers import Classifier

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

#: how often a split is drawn again because a half has not every class
TRIES = 1000


@dataclass(frozen=True)
class LeaveOut:
    """What models without a record say of it.

    Attributes
    ----------
    mean, std : ndarray of shape (n, classes)
        Of the centred logits, the leave-out mean and standard deviation of (5.15).
    mean_probability : ndarray of shape (n, classes)
        The leave-out mean of (5.14).
    exposure : ndarray of shape (n,)
        Mean logit of the label with the record less that without it, in standard deviations of the latter.
    """

    mean: Floats
    std: Floats
    mean_probability: Floats
    exposure: Floats


def leave_out(
    classifier: Classifier,
    X: Floats,
    targets: Floats,
    labels: Codes,
    *,
    splits: int = 25,
    seed: int = 0,
    jobs: int = 1,
) -> LeaveOut:
    """Train models on both halves of random splits and collect their logits.

    Parameters
    ----------
    classifier : Classifier
    X : ndarray of shape (n, d)
    targets : ndarray of shape (n, classes)
        What the models are trained on: one-hot labels, or soft ones where labels are updated recursively.
    labels : ndarray of int, shape (n,)
        Each class at least twice; a split is drawn again if a half lacks one.
    splits : int
        At least 2.
    seed : int
    jobs : int
        Splits at a time.

    Raises
    ------
    InputError
        If a class has fewer than two records, or no split gives every class to both halves.
    """
    whole("splits", splits, 2)
    children = np.random.SeedSequence(seed).spawn(splits)
    tasks = {f"{number:04d}": child for number, child in enumerate(children)}
    _check(labels)
    found = carry_out(partial(_one_split, classifier, X, targets, labels), tasks, jobs=jobs)
    inside, outside = (np.array([found[label][side] for label in tasks]) for side in ("in", "out"))
    logits, label = centred_logits(outside), np.arange(len(labels))
    mean, std = logits.mean(axis=0), logits.std(axis=0, ddof=1)
    shift = (centred_logits(inside).mean(axis=0) - mean)[label, labels]
    return LeaveOut(mean, std, outside.mean(axis=0), shift / np.maximum(std[label, labels], SMALLEST_STD))


def halves(labels: Codes, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Split record numbers at random into halves that both have every class.

    Returns
    -------
    first, second : ndarray of int
        Of n // 2 and n - n // 2 records.
    """
    classes = len(np.unique(labels))
    for _ in range(TRIES):
        order = rng.permutation(len(labels))
        first, second = order[: len(labels) // 2], order[len(labels) // 2 :]
        if len(np.unique(labels[first])) == len(np.unique(labels[second])) == classes:
            return first, second
    raise InputError(f"no random split gave both halves all {classes} classes; leave out the rarest class")


def _one_split(
    classifier: Classifier, X: Floats, targets: Floats, labels: Codes, seeds: np.random.SeedSequence
) -> Mapping[str, Any]:
    rng = np.random.default_rng(seeds)
    parts = halves(labels, rng)
    said = {side: np.empty_like(targets) for side in ("in", "out")}
    for mine, others in (parts, parts[::-1]):
        model = classifier.fit(X[mine], targets[mine], int(rng.integers(2**31)))
        said["in"][mine] = model.predict_proba(X[mine])
        said["out"][others] = model.predict_proba(X[others])
    return {side: values.tolist() for side, values in said.items()}


def _check(labels: Codes) -> None:
    counts = np.bincount(labels)
    if len(counts) < 2 or (counts[counts > 0] < 2).any() or (counts > 0).sum() < 2:
        raise InputError("labels must have at least two classes with at least two records each")
