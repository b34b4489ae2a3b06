"""Time from a patient's first row to a terminal event, by the estimator of Kaplan and Meier.

Patients without the event are last seen in their last row.

References
----------
Kaplan, Meier (1958), "Nonparametric estimation from incomplete observations", JASA 53.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.trajectories.resamples import Resampled
from dpsynth.table.histories import Floats, Histories


def follow_up(histories: Histories, order: str, event: str) -> tuple[Floats, NDArray[np.bool_]]:
    """The time from each patient's first row to the last, and whether the event stands there."""
    times = histories.numbers[order]
    ended = (histories.numbers[event] == 1).any(axis=1)
    return np.nanmax(times, axis=1, initial=-np.inf) - times[:, 0], ended


def kaplan_meier(
    place: NDArray[np.int64], ended: NDArray[np.bool_], weights: Floats, size: int
) -> tuple[Floats, Floats]:
    """Share without the event after each of so many times in order, and the patients at risk.

    ``place`` is each patient's time among them.
    """
    seen = np.bincount(place, weights=weights, minlength=size)
    at_risk = np.cumsum(seen[::-1])[::-1]
    events = np.bincount(place[ended], weights=weights[ended], minlength=size)
    return np.cumprod(1.0 - events / np.where(at_risk > 0, at_risk, 1.0)), at_risk


def survival_distance(real: Resampled, synthetic: Resampled, order: str, event: str, fewest: int) -> Floats:
    """Largest difference of both curves while so many patients are at risk in both tables.

    One number a resample. NaN where a table has fewer patients.
    """
    (first, one), (second, other) = (follow_up(side.histories, order, event) for side in (real, synthetic))
    levels, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    places = (place[: len(first)], place[len(first) :])
    found = []
    known = np.zeros(len(levels), bool)
    for number, pair in enumerate(zip(real.weights, synthetic.weights, strict=True)):
        curves = [
            kaplan_meier(at, ended, weights, len(levels))
            for at, ended, weights in zip(places, (one, other), pair, strict=True)
        ]
        if number == 0:
            known = (curves[0][1] >= fewest) & (curves[1][1] >= fewest)
        apart = np.abs(curves[0][0] - curves[1][0])[known]
        found.append(float(apart.max()) if len(apart) else np.nan)
    return np.array(found)
