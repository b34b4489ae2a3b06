"""A survival curve and its pointwise bands from a noisy life table.

The estimate is the product of Kaplan and Meier (1958, "Nonparametric estimation from incomplete
observations", JASA 53, section 3) at the ends of intervals. Records last seen within an interval count half
at risk in it (Cutler and Ederer 1958, "Maximum utilization of the life table method"). Records last seen *at*
its end count whole: follow-up often ends on one day for everybody.

Bands are those of a basic bootstrap (Davison and Hinkley 1997, "Bootstrap methods and their application",
section 5.2) on plain differences. The usual log(-log S) is undefined here, because a noisy estimate can be
1 or more. Values are cut to [0, 1] only at the end: cutting noise cell by cell would turn it into events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import inside
from dpsynth.files.codec import record

Floats = NDArray[np.float64]


#: how a record's time ends in an interval: with the event; last seen within it, or at its very end
ENDS = 3
_EVENT, _WITHIN, _AT_END = range(ENDS)
#: of the bootstrap
_REDRAWS = 1000
#: standard deviations of noise that must be at risk in an interval for an estimate
_TOLD = 2.0
#: standard deviations of noise by which the counts' sum may be off a public number of records
_OFF = 3.0


def survival_curve(
    counts: ArrayLike,
    times: ArrayLike,
    noise_std: float,
    rng: np.random.Generator,
    *,
    total: float | None = None,
    level: float = 0.95,
    unit: str = "",
) -> SurvivalCurve:
    """Survival at the ends of intervals, with pointwise bands that include sampling and noise.

    Parameters
    ----------
    counts : array of shape (3 J + 1,)
        Noisy counts: for each interval the events, those last seen within it and those last seen at its end.
        Then the records whose time or event is not known.
    times : array of shape (J,)
        Ends of the intervals.
    noise_std : float
        Standard deviation of the noise on each count, 0 without noise.
    total : float, optional
        Public number of records, which reduces noise. It is ignored if the counts disagree with it.

    Examples
    --------
    >>> counts = [10.0, 0.0, 0.0, 10.0, 10.0, 70.0, 0.0]
    >>> print(survival_curve(counts, [30, 90], 0.0, np.random.default_rng(0), unit="days"))
    Survival at 30 days: 0.90 (0.84 to 0.96)
    Survival at 90 days: 0.79 (0.72 to 0.88)
    """
    tail = (1.0 - inside("level", level, 0.0, 1.0)) / 2.0
    noisy = np.asarray(counts, dtype=np.float64)
    if total is not None and abs(noisy.sum() - total) > _OFF * noise_std * np.sqrt(noisy.size):
        total = None
    cells = _adjusted(noisy, total)
    ends = np.asarray(times, dtype=np.float64)
    floor = np.maximum(1.0, _TOLD * noise_std * _spread(len(ends), total))
    told = np.logical_and.accumulate(at_risk(cells) >= floor)
    found = _product(cells, floor, told)

    expected = _expected(cells)
    size = expected.sum()
    redrawn = rng.multinomial(round(size), expected / size, _REDRAWS).astype(np.float64)
    redrawn += noise_std * rng.standard_normal(redrawn.shape)
    again = _product(_adjusted(redrawn, None if total is None else size), floor, told)
    # the basic bootstrap: an estimate is as far from the truth as a redrawn one from what it was drawn from
    differences = np.quantile(again - _product(expected, floor, told), [tail, 1.0 - tail], axis=0)
    upper, lower = np.maximum(found - differences[0], found), np.minimum(found - differences[1], found)
    lower = np.where(told, lower, 0.0)
    # survival is no more than before, so an upper end holds for all that follows: a tail of few, whose own
    # end is near 1, says nothing of the years before it
    curve = _monotone(found)
    return SurvivalCurve(ends, curve, _least(lower), np.maximum(_least(upper), curve), level, unit)


def at_risk(cells: Floats) -> Floats:
    """Records at risk in each interval, half of those lost sight of within it, shape (..., J)."""
    table = _table(cells)
    left = np.cumsum(table.sum(axis=-1)[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(left - table[..., _WITHIN] / 2.0)


def _table(cells: Floats) -> Floats:
    return cells[..., :-1].reshape(*cells.shape[:-1], -1, ENDS)


def _product(cells: Floats, floor: Floats, told: NDArray[np.bool_]) -> Floats:
    """The product, not cut to [0, 1], and constant from the first interval with too few at risk."""
    hazard = _table(cells)[..., _EVENT] / np.maximum(at_risk(cells), floor)
    return np.cumprod(1.0 - np.where(told, np.clip(hazard, -1.0, 1.0), 0.0), axis=-1)


def _adjusted(cells: Floats, total: float | None) -> Floats:
    """The nearest cells that sum to a known total. A record lies in exactly one."""
    if total is None:
        return cells
    return np.asarray(cells - (cells.sum(axis=-1, keepdims=True) - total) / cells.shape[-1])


def _spread(size: int, total: float | None) -> Floats:
    """Standard deviation of the number at risk in each interval for noise of 1 on each cell."""
    weights = at_risk(_adjusted(np.eye(ENDS * size + 1), None if total is None else 0.0))
    return np.asarray(np.sqrt((weights**2).sum(axis=0)))


def _expected(cells: Floats) -> Floats:
    """Nonnegative cells of the same total to redraw from, with one more event: a band needs a width."""
    positive = np.maximum(cells, 0.0)
    kept = positive * (max(cells.sum(), 0.0) / max(positive.sum(), 1e-9))
    kept[_EVENT] += 1.0
    return np.asarray(kept)


def _least(values: Floats) -> Floats:
    """The highest curve below that never increases, in [0, 1]."""
    return np.clip(np.minimum.accumulate(values), 0.0, 1.0)


def _monotone(values: Floats) -> Floats:
    """The nearest curve in [0, 1] that never increases: half between bounds below and above."""
    above = np.clip(np.maximum.accumulate(values[::-1])[::-1], 0.0, 1.0)
    return np.asarray((_least(values) + above) / 2.0)


@record
@dataclass(frozen=True, eq=False)
class SurvivalCurve:
    """Share of the population without the event by each time, with pointwise bands.

    Attributes
    ----------
    times : ndarray of shape (J,)
        In the duration's unit, increasing.
    survival, lower, upper : ndarray of shape (J,)
        In [0, 1], never increasing. ``lower`` is 0 once too few records are left.
    unit : str
        Unit of the times, empty if the schema names none.
    """

    times: Floats
    survival: Floats
    lower: Floats
    upper: Floats
    level: float = 0.95
    unit: str = ""

    def quarters(self) -> list[int]:
        """Places of three boundaries, about the quartiles of follow-up where boundaries are its quantiles."""
        size = len(self.times)
        return sorted({min(round(size * part), size) - 1 for part in (0.25, 0.5, 0.75) if round(size * part)})

    def rows(self) -> list[tuple[str, str, str]]:
        """Time, survival and band at every boundary, as text."""
        return [
            (f"{time:g}", f"{told:.2f}", f"{low:.2f} to {high:.2f}")
            for time, told, low, high in zip(self.times, self.survival, self.lower, self.upper, strict=True)
        ]

    def __str__(self) -> str:
        unit, rows = f" {self.unit}" if self.unit else "", self.rows()
        shown = self.quarters() or list(range(len(rows)))
        return "\n".join(f"Survival at {rows[j][0]}{unit}: {rows[j][1]} ({rows[j][2]})" for j in shown)
