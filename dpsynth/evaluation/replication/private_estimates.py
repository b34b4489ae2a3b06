"""A declared study's private estimates against the same regression on the real records.

The comparison is that of the synthetic table's fit (:mod:`~dpsynth.evaluation.replication.contrasts`), so
that the two can be read side by side; terms are matched by name. One question is asked of the private
estimates alone, since their intervals claim to be honest: does each hold what the real records say?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpsynth.checks import few
from dpsynth.evaluation.records import Measure
from dpsynth.evaluation.replication.contrasts import Contrast, contrast, mean, median, share
from dpsynth.evaluation.replication.likelihood import Coefficient, Fit
from dpsynth.studies.estimates import Estimates


@dataclass(frozen=True)
class Declared:
    """The private estimates of a study beside the fit to the real records.

    Attributes
    ----------
    estimates : Estimates
    rows : tuple of Contrast
        One for each term of the regression; ``synthetic`` is the private estimate, None where there is none.
    """

    estimates: Estimates
    rows: tuple[Contrast, ...]

    def note(self) -> str:
        """Return what was not compared, in one sentence; empty if nothing."""
        known = {row.term for row in self.rows}
        left = [term for term in self.estimates.terms if term not in known]
        if not left:
            return ""
        return (
            f"Not compared, because the regression fitted here has no such terms: {few(left)} "
            f"(declared in the study {self.estimates.study}, perhaps for other increments)."
        )

    def measures(self, group: str) -> tuple[Measure, ...]:
        """Return the shares and means over the terms that both sides tell; all internal."""
        rows = self.rows
        compared = sum(row.same_sign is not None for row in rows)
        over = f"over {compared} of {len(rows)} terms of the declared study {self.estimates.study}"
        overlaps = [None if row.overlap is None else max(row.overlap, 0.0) for row in rows]
        values = (
            ("same_sign", share(rows, lambda row: row.same_sign), "share of private estimates of real sign"),
            (
                "same_decision",
                share(rows, lambda row: row.same_decision),
                "share of terms that are significant in private and real estimates in one direction, or in "
                "neither",
            ),
            (
                "covered",
                share(rows, lambda row: row.covered),
                "share of private estimates inside the real interval",
            ),
            ("holds_real", share(rows, holds_real), "share of private intervals that hold the real estimate"),
            ("overlap_mean", mean(overlaps), "mean overlap of the intervals (Karr), 0 where disjoint"),
            (
                "standardised_difference_median",
                median([row.standardised_difference for row in rows]),
                "median |private - real| in real standard errors",
            ),
        )
        return tuple(
            Measure(group, f"declared_{name}", value, True, f"{what}, {over}") for name, value, what in values
        )


def compare(
    declared: Sequence[Estimates], formula: str, terms: Sequence[str], real: Fit, *, level: float
) -> Declared | None:
    """Put the private estimates of a regression beside its fit to the real records.

    Parameters
    ----------
    declared : sequence of Estimates
    formula : str
        Of the regression that was fitted; the estimates of this formula are taken, and of several those that
        share most terms with it.
    terms : sequence of str
        Of the regression, in order.
    real : Fit
        With intervals of ``level``.

    Returns
    -------
    Declared or None
        None where the regression was not declared.
    """
    same = [estimates for estimates in declared if estimates.formula == formula]
    if not same:
        return None
    estimates = max(same, key=lambda told: len(set(told.terms) & set(terms)))
    return Declared(estimates, contrast(terms, real, as_fit(estimates, level), level=level))


def as_fit(estimates: Estimates, level: float) -> Fit:
    """Private estimates as a fit, on the additive scale, with normal intervals of ``level``."""
    from scipy import stats

    half = float(stats.norm.ppf(0.5 + level / 2))
    coefficients = {
        term: Coefficient(
            value,
            error,
            value - half * error,
            value + half * error,
            2.0 * float(stats.norm.sf(abs(value) / error)),
        )
        for term, value, error in zip(
            estimates.terms, estimates.coefficients.tolist(), estimates.std_errors.tolist(), strict=True
        )
    }
    return Fit(coefficients)


def holds_real(row: Contrast) -> bool | None:
    """Whether the private interval holds the real estimate; None unless both are told."""
    if row.real is None or row.synthetic is None:
        return None
    return row.synthetic.lower <= row.real.value <= row.synthetic.upper
