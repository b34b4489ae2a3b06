"""What coverage, overlap, width and signs are, one number a resample, and the tables made of them.

A standard error is that of a mean over resamples: the terms of one resample are not independent. A width is a
median over resamples, since a few have intervals that are opened on purpose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from study_trials import FIELDS, Truth

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Intervals:
    """Values, standard errors, interval ends of R resamples and p terms, each (R, p); NaN where untold."""

    values: Floats
    std_errors: Floats
    lower: Floats
    upper: Floats

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]]) -> Intervals:
        """From the records of the results file."""
        return cls(*(np.array([record[field] for record in records], dtype=float) for field in FIELDS))


def covered(told: Intervals, truth: Floats) -> Floats:
    """1 where an interval holds the truth, 0 where not, NaN where there is none; (R, p)."""
    inside = (told.lower <= truth) & (truth <= told.upper)
    return np.where(np.isnan(told.lower) | np.isnan(told.upper), np.nan, inside)


def overlap(told: Intervals, real: Intervals) -> Floats:
    """Karr's overlap of both intervals, 0 where they are disjoint; (R, p)."""
    shared = np.minimum(told.upper, real.upper) - np.maximum(told.lower, real.lower)
    shared = np.maximum(shared, 0.0)  # NaN stays
    return 0.5 * (shared / (told.upper - told.lower) + shared / (real.upper - real.lower))


def widths(told: Intervals, real: Intervals) -> Floats:
    """Length of an interval over the real one's; (R, p)."""
    return (told.upper - told.lower) / (real.upper - real.lower)


def signs(told: Intervals, real: Intervals) -> Floats:
    """1 where the sign of a term is kept that is significant in the real fit, NaN where it is not; (R, p)."""
    significant = (real.lower > 0) | (real.upper < 0)
    kept = np.sign(told.values) == np.sign(real.values)
    return np.where(significant & ~np.isnan(told.values), kept, np.nan)


def z_scores(told: Intervals, truth: Floats) -> Floats:
    """Distances from the truth in standard errors; (R, p)."""
    return (told.values - truth) / told.std_errors


def paired(told: Intervals, real: Intervals) -> Floats:
    """What noise and approximation did over what the intervals say of it, by term, shape (p,).

    The mean squared distance from the real fit over the mean of what the squared standard error has more than
    the real one. Around 1 where that is honest; the luck of the resamples, which both share, is not in it.
    NaN where the intervals claim to be shorter than the real ones.
    """
    moved = (told.values - real.values) ** 2
    claimed = np.where(np.isnan(moved), np.nan, told.std_errors**2 - real.std_errors**2)
    more = np.nanmean(claimed, axis=0)
    return np.nanmean(moved, axis=0) / np.where(more > 0, more, np.nan)


def excluded(told: Intervals) -> Floats:
    """1 where an interval excludes 0; (R, p)."""
    return 1.0 - covered(told, np.zeros(told.values.shape[1]))


def over_terms(each: Floats, *, median: bool = False) -> Floats:
    """One number a resample, from (R, p); NaN where no term has one."""
    known = ~np.isnan(each).all(axis=1)
    result = np.full(len(each), np.nan)
    if known.any():
        result[known] = (np.nanmedian if median else np.nanmean)(each[known], axis=1)
    return result


def mean_error(numbers: Floats) -> tuple[float, float]:
    """Mean and its standard error over resamples; NaN apart."""
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        return math.nan, math.nan
    error = known.std(ddof=1) / math.sqrt(len(known)) if len(known) > 1 else math.nan
    return float(known.mean()), float(error)


def middle_and_most(numbers: Floats) -> tuple[float, float]:
    """Median over resamples, and what 9 in 10 are below; NaN apart."""
    known = numbers[~np.isnan(numbers)]
    return (float(np.median(known)), float(np.quantile(known, 0.9))) if len(known) else (math.nan, math.nan)


def summary(told: Intervals, real: Intervals, truth: Floats) -> dict[str, tuple[float, float]]:
    """Every measure of one method, with its standard error; of the width what 9 in 10 are below."""
    found = {
        "coverage": over_terms(covered(told, truth)),
        "overlap": over_terms(overlap(told, real)),
        "signs": over_terms(signs(told, real)),
        "z2": over_terms(z_scores(told, truth) ** 2),
    }
    width = middle_and_most(over_terms(widths(told, real), median=True))
    return {name: mean_error(numbers) for name, numbers in found.items()} | {"width": width}


@dataclass(frozen=True)
class Cell:
    """All resamples of one case, epsilon and method."""

    case: str
    epsilon: float
    method: str
    told: Intervals
    real: Intervals
    widening: float
    remarked: NDArray[np.bool_]
    remarks: dict[str, int]
    refused: str


def cells(lines: Iterable[Mapping[str, Any]], repetitions: int) -> list[Cell]:
    """Results by case, epsilon and method, in the order of the lines; lines of one resample are joined."""
    joined: dict[tuple[str, float], dict[int, dict[str, Any]]] = {}
    for line in lines:
        if line["repetition"] < repetitions:
            by = joined.setdefault((line["case"], line["epsilon"]), {})
            by.setdefault(line["repetition"], {}).update(line["told"])
    found = []
    for (case, epsilon), by in joined.items():
        names = dict.fromkeys(name for told in by.values() for name in told)
        for name in names:
            tried = [by[r] for r in sorted(by) if name in by[r]]
            remarks: dict[str, int] = {}
            for told in tried:
                remark = told[name].get("failed") or told[name].get("remark") or ""
                if remark:
                    remarks[remark] = remarks.get(remark, 0) + 1
            good = [told for told in tried if "values" in told[name]]
            refused = next((told[name]["refused"] for told in tried if "refused" in told[name]), "")
            if not good and not refused:
                continue
            widening = [told[name]["widening"] for told in good if "widening" in told[name]]
            found.append(
                Cell(
                    case,
                    epsilon,
                    name,
                    Intervals.of([told[name] for told in good]),
                    Intervals.of([told["real"] for told in good]),
                    float(np.median(widening)) if widening else math.nan,
                    np.array([bool(told[name].get("remarked")) for told in good], dtype=bool),
                    remarks,
                    refused,
                )
            )
    return found


def by_term(cell: Cell, truth: Truth) -> list[dict[str, float | str]]:
    """Coverage, mean z, mean z^2 and width of each term, beside the real fit's."""
    z, z_real = z_scores(cell.told, truth.values), z_scores(cell.real, truth.values)
    inside, wide = covered(cell.told, truth.values), widths(cell.told, cell.real)
    moved = paired(cell.told, cell.real) if cell.method != "real" else np.full(z.shape[1], np.nan)
    rows: list[dict[str, float | str]] = []
    plain = ~cell.remarked
    for j, term in enumerate(truth.terms):
        if np.isnan(z[:, j]).all():
            continue
        rows.append(
            {
                "case": cell.case,
                "epsilon": cell.epsilon,
                "method": cell.method,
                "term": term,
                "coverage": float(np.nanmean(inside[:, j])),
                "without remark": float(np.nanmean(inside[plain, j])) if plain.any() else math.nan,
                "mean z": float(np.nanmean(z[:, j])),
                "mean z2": float(np.nanmean(z[:, j] ** 2)),
                "width": float(np.nanmedian(wide[:, j])),
                "paired": float(moved[j]),
                "real coverage": float(np.nanmean(covered(cell.real, truth.values)[:, j])),
                "real mean z": float(np.nanmean(z_real[:, j])),
                "target": float((truth.target - truth.values)[j] / np.nanmedian(cell.real.std_errors[:, j])),
                "exact": float((truth.exact - truth.values)[j] / np.nanmedian(cell.real.std_errors[:, j])),
            }
        )
    return rows


def shown(value: float, digits: int = 2) -> str:
    """As the tables have it: no zero before the point, nothing where there is no number."""
    if not math.isfinite(value):
        return ""
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def with_error(pair: tuple[float, float], digits: int = 2) -> str:
    """A mean with its standard error."""
    mean, error = shown(pair[0], digits), shown(pair[1], digits)
    return f"{mean} ({error})" if mean and error else mean
