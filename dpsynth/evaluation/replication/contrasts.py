"""Two fits of one regression side by side: signs, decisions, interval overlap, standardised difference.

Karr, Kohnen, Oganian, Reiter and Sanil 2006, "A framework for evaluating the utility of data altered to
protect confidentiality", The American Statistician 60(3), for the overlap; all on the additive scale (log
odds, log hazard, or the outcome's unit), where the intervals are symmetric.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth.evaluation.replication.likelihood import Coefficient, Fit


@dataclass(frozen=True)
class Contrast:
    """One term in two tables; every comparison is None unless both tables tell it.

    Attributes
    ----------
    term : str
    real, synthetic : Coefficient or None
    same_sign : bool or None
        Whether both estimates lie on the same side of 0.
    same_decision : bool or None
        Whether a reader of the two p-values would report the same: above 0, below 0, or no effect shown.
    overlap : float or None
        See :func:`interval_overlap`; negative for disjoint intervals.
    covered : bool or None
        Whether the synthetic estimate lies in the real interval.
    standardised_difference : float or None
        ``|synthetic - real| / real standard error``, at least 0.
    """

    term: str
    real: Coefficient | None
    synthetic: Coefficient | None
    same_sign: bool | None = None
    same_decision: bool | None = None
    overlap: float | None = None
    covered: bool | None = None
    standardised_difference: float | None = None


def contrast(names: Sequence[str], real: Fit, synthetic: Fit, *, level: float = 0.95) -> tuple[Contrast, ...]:
    """Put two fits, with intervals of the same level, side by side: one contrast for each named term.

    A p-value below ``1 - level`` is a decision for an effect.
    """
    return tuple(
        _contrast(name, real.coefficients.get(name), synthetic.coefficients.get(name), level)
        for name in names
    )


def interval_overlap(first: tuple[float, float], second: tuple[float, float]) -> float | None:
    """Karr's overlap of two confidence intervals: the part they share, relative to each, averaged.

    ``J = (u - l) / 2 * (1 / (u1 - l1) + 1 / (u2 - l2))`` with ``l = max(l1, l2)`` and ``u = min(u1, u2)``.
    For disjoint intervals ``u < l`` and the formula is left to become negative, as in the R package synthpop:
    it then measures how far apart they lie. Others count such intervals as 0.

    Returns
    -------
    float or None
        At most 1, reached by equal intervals only; None where an interval has no length.

    Examples
    --------
    >>> interval_overlap((0.0, 2.0), (1.0, 5.0)), interval_overlap((0.0, 1.0), (3.0, 4.0))
    (0.375, -2.0)
    """
    lengths = (first[1] - first[0], second[1] - second[0])
    if not min(lengths) > 0:
        return None
    shared = min(first[1], second[1]) - max(first[0], second[0])
    return 0.5 * (shared / lengths[0] + shared / lengths[1])


def share(rows: Sequence[Contrast], of: Callable[[Contrast], bool | None]) -> float | None:
    """Share of the rows for which something holds among those where it is defined; None without any."""
    return mean([None if value is None else float(value) for value in map(of, rows)])


def mean(values: Sequence[float | None]) -> float | None:
    """Mean of those that are defined; None without any."""
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


def median(values: Sequence[float | None]) -> float | None:
    """Median of those that are defined; None without any."""
    defined = [value for value in values if value is not None]
    return float(np.median(defined)) if defined else None


def _contrast(name: str, real: Coefficient | None, synthetic: Coefficient | None, level: float) -> Contrast:
    if real is None or synthetic is None:
        return Contrast(name, real, synthetic)
    return Contrast(
        term=name,
        real=real,
        synthetic=synthetic,
        same_sign=_sign(real.value) == _sign(synthetic.value),
        same_decision=_decision(real, level) == _decision(synthetic, level),
        overlap=interval_overlap((real.lower, real.upper), (synthetic.lower, synthetic.upper)),
        covered=real.lower <= synthetic.value <= real.upper,
        standardised_difference=abs(synthetic.value - real.value) / real.std_error,
    )


def _sign(value: float) -> int:
    return 0 if value == 0 else int(math.copysign(1, value))


def _decision(coefficient: Coefficient, level: float) -> int:
    return _sign(coefficient.value) if coefficient.p_value < 1 - level else 0
