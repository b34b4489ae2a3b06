"""Combine one estimate over several fully synthetic tables.

The rule is that of Raghunathan, Reiter and Rubin (2003), "Multiple imputation for statistical disclosure
limitation", Journal of Official Statistics 19, section 3. The full posterior is that of Si and Reiter (2011),
"A comparison of posterior simulation and inference by combining rules for multiple imputation", Journal of
Statistical Theory and Practice 5.

Each table has parameters of its own, and records drawn from them. The variance of interest is therefore the
variance between the tables *less* the mean of the tables' own variances.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import few, inside
from dpsynth.errors import InputError
from dpsynth.studies.study import aligned, interval_texts, p_text

Floats = NDArray[np.float64]
#: What a regression package gives for each table.
Given = ArrayLike | pd.Series | pd.DataFrame | Sequence[pd.Series] | Sequence[pd.DataFrame]
#: probabilities at which a law is evaluated, dense near 0, where variances are large; their weights
_STEPS = (np.arange(1000) + 0.5) / 1000
_PLACES, _WEIGHTS = _STEPS**3, 3.0 * _STEPS**2 / len(_STEPS)


@dataclass(frozen=True, eq=False)
class Combined:
    """Result of :func:`combine`: one entry for each of p coefficients.

    Attributes
    ----------
    terms : tuple of str
        Names of the coefficients, or else "1", "2", ...
    estimate, std_error : ndarray of shape (p,)
        ``std_error`` is the posterior median. The interval also includes the uncertainty of it.
    lower, upper : ndarray of shape (p,)
        Ends of the interval.
    p_value : ndarray of shape (p,)
        Two-sided, for a coefficient of 0.
    level : float
        Level of the intervals.
    m : int
        Number of tables.
    """

    terms: tuple[str, ...]
    estimate: Floats
    std_error: Floats
    lower: Floats
    upper: Floats
    p_value: Floats
    level: float
    m: int

    def to_frame(self) -> pd.DataFrame:
        """One row a term."""
        names = ("estimate", "std_error", "lower", "upper", "p_value")
        return pd.DataFrame({name: getattr(self, name) for name in names}, index=pd.Index(self.terms))

    def __str__(self) -> str:
        rows = [("term", "estimate", "std error", f"{100 * self.level:g} % interval", "p")]
        for k, term in enumerate(self.terms):
            told = map(float, (self.estimate[k], self.lower[k], self.upper[k]))
            estimate, lower, upper = interval_texts(*told)
            error, p = f"{self.std_error[k]:.3g}", p_text(self.p_value[k])
            rows.append((term, estimate, error, f"{lower} to {upper}", p))
        return "\n".join([*aligned(rows, "<>><>"), f"From {self.m} synthetic tables."])


def combine(estimates: Given, variances: Given, *, level: float = 0.95) -> Combined:
    """Combine the same analysis of m synthetic tables, by the rule for fully synthetic ones.

    Each table must have parameters of its own, as from :meth:`dpsynth.DPMarginals.sample_many`. The rule does
    **not** hold for several samples of one model. They share the noise for privacy and the sampling of the
    real records, and the interval would be far too short. The rule cannot correct an association that the
    model left out: it is absent from all tables.

    Means, shares and comparisons with the schema's outcome are valid without a pre-specified regression. Use
    an estimate with its variance in place of a test. For the t-test this is a difference of means, and for
    chi-squared a difference of shares. For Mann-Whitney it is ``U / (n1 n2) - 0.5``, and for log-rank a log
    hazard ratio. A test of one table is not valid. Neither is the median of several p-values. An association
    of two other columns may be missing from the tables. To find none is then no evidence.

    Parameters
    ----------
    estimates : array of shape (m,) or (m, p), DataFrame, or m Series of p terms
        On a scale where they are about normal: log odds, not odds ratios.
    variances : array of shape (m,), (m, p) or (m, p, p), DataFrame, or m Series or DataFrames
        Squared standard errors, or covariance matrices, of which the diagonals are read. Named terms are put
        into the order of the estimates.
    level : float
        Level of the intervals, in (0, 1).

    Returns
    -------
    Combined
        Estimates, standard errors, intervals and p-values.

    Raises
    ------
    InputError
        If there are fewer than two tables, shapes or terms do not agree, or a term is named twice. Also if an
        estimate is not finite (a fit did not converge), or a variance is negative or not finite. The message
        names the table, counted from 1.

    Notes
    -----
    Let qbar be the mean of the estimates, b their variance (divisor m - 1), and ubar the mean of the tables'
    own variances. A table's estimate has the variance ``tau = V + ubar``, with V the variance of interest.
    ``(m - 1) b / tau`` is chi-squared with m - 1 degrees of freedom. Take a flat prior on log tau, cut off
    where V would be negative. The estimand is then normal around qbar with variance
    ``T = (1 + 1/m) tau - ubar``, mixed over tau. The interval has that mixture's quantiles, by quadrature.

    The rule of 2003 uses the point estimate ``T = (1 + 1/m) b - ubar``, which can be near 0 or negative. Its
    intervals are then extremely wide. Here T is ``ubar / m`` at least. In simulations, 95 % intervals covered
    the truth in 94.6 to 100 %. There were 10,000 for each of m = 5, 10 and 20 tables, and V from 0.25 to 50
    times ubar.

    References
    ----------
    Raghunathan, Reiter and Rubin (2003), section 3; Si and Reiter (2011); Reiter (2002), "Satisfying
    disclosure restrictions with synthetic data sets", Journal of Official Statistics 18, section 2.

    Examples
    --------
    >>> combined = combine([0.8, 1.3, 1.1, 0.7, 1.6], [0.02, 0.03, 0.02, 0.02, 0.03])
    >>> print(combined)
    term  estimate  std error  95 % interval     p
    1         1.10      0.411  0.02 to 2.18   .048
    From 5 synthetic tables.
    """
    outside = 1.0 - inside("level", level, 0.0, 1.0)
    q, names = _estimates(estimates)
    terms = tuple(str(k + 1) for k in range(q.shape[1])) if names is None else tuple(map(str, names))
    u = _variances(variances, q.shape, names)
    _refuse(u, (u < 0) | ~np.isfinite(u), terms, "a variance that is negative or not finite", "Give squares")

    m = len(q)
    qbar = q.mean(axis=0)
    laws = [_law(b, ubar, m) for b, ubar in zip(q.var(axis=0, ddof=1), u.mean(axis=0), strict=True)]
    width = np.array([_half_width(deviations, outside) for deviations in laws])
    p_value = np.array([_beyond(abs(centre), law) for centre, law in zip(qbar, laws, strict=True)])
    error = np.array([float(np.interp(0.5, _PLACES, law)) for law in laws])
    return Combined(terms, qbar, error, qbar - width, qbar + width, p_value, level, m)


def _law(between: float, own: float, m: int) -> Floats:
    """Standard deviations of the mixed normal distributions, at the quantiles `_PLACES` of 1 / tau."""
    from scipy.stats import chi2

    # (m - 1) b / tau is chi-squared, and below this, since tau is ubar at least
    most = (m - 1) * between / own if own > 0 else np.inf
    held = chi2.cdf(most, m - 1)
    if held < 1e-100:  # a power of the chi-squared itself
        tau = own * _PLACES ** (-2.0 / (m - 1))
    else:
        tau = (m - 1) * between / chi2.ppf(held * _PLACES, m - 1)
    return np.asarray(np.sqrt(np.maximum((1.0 + 1.0 / m) * tau - own, 0.0)))


def _beyond(distance: float, deviations: Floats) -> float:
    """Probability of the mixture farther from its centre than this, to either side."""
    from scipy.special import erfc

    # 0 / 0 is no evidence at all
    away = np.divide(distance, deviations, out=np.full_like(deviations, np.inf), where=deviations > 0)
    return float(_WEIGHTS @ erfc(away / np.sqrt(2.0))) if distance > 0 else 1.0


def _half_width(deviations: Floats, outside: float) -> float:
    """Distance beyond which the mixture has this probability."""
    from scipy.optimize import brentq

    scale = float(np.median(deviations))
    if scale == 0:
        return 0.0
    reach = 1.0
    while _beyond(reach * scale, deviations) > outside:
        reach *= 2.0
    return scale * float(
        brentq(lambda way: _beyond(way * scale, deviations) - outside, 0.0, reach, xtol=1e-9)
    )


def _estimates(given: Given) -> tuple[Floats, list[Hashable] | None]:
    """Estimates of shape (m, p), all finite, and the names of the terms, if they have any."""
    values, names = _stacked("estimates", given, None)
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(f"estimates must have shape (m,) or (m, p), not {values.shape}")
    if len(values) < 2:
        raise InputError(f"estimates are of {len(values)} table, and combining takes at least 2")
    terms = tuple(map(str, names or range(1, values.shape[1] + 1)))
    _refuse(
        values,
        ~np.isfinite(values),
        terms,
        "an estimate that is not a number, as of a fit that did not converge",
        "Fit a regression of fewer terms to every table",
    )
    return values, names


def _variances(given: Given, shape: tuple[int, ...], names: list[Hashable] | None) -> Floats:
    """Variances of shape (m, p), from variances or covariance matrices."""
    values, _ = _stacked("variances", given, names)
    if values.ndim == 3 and values.shape[1] == values.shape[2]:
        values = np.diagonal(values, axis1=1, axis2=2)
    if values.shape != shape:
        said = " or ".join(map(str, (shape, (*shape, shape[1]))))
        raise InputError(f"variances must have the shape {said} that fits the estimates, not {values.shape}")
    return values


def _stacked(name: str, given: Given, names: list[Hashable] | None) -> tuple[Floats, list[Hashable] | None]:
    """The given numbers, of shape (m, ...), with terms in the order of ``names``, or of the first table."""
    if isinstance(given, pd.DataFrame):
        given = [row for _, row in given.iterrows()]
    elif isinstance(given, pd.Series):
        given = given.to_numpy()
    tables = list(given) if isinstance(given, Iterable) else []
    if tables and all(isinstance(table, pd.Series | pd.DataFrame) for table in tables):
        order = list(tables[0].index) if names is None else names
        twice = next((term for k, term in enumerate(order) if str(term) in map(str, order[:k])), None)
        if twice is not None:
            raise InputError(f"{name} name the term {twice} twice. Give each coefficient a name of its own")
        for number, table in enumerate(tables, start=1):
            for axis in table.axes:
                if sorted(map(str, axis)) != sorted(map(str, order)):
                    raise InputError(
                        f"{name} of table {number} are of the terms {few(axis)}, but must be of {few(order)}"
                    )
            tables[number - 1] = table.reindex(order) if table.ndim == 1 else table.loc[order, order]
        names = order
    try:
        values = np.array(tables, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, the same number of them for each table") from None
    return values[:, None] if values.ndim == 1 else values, names


def _refuse(values: Floats, bad: NDArray[np.bool_], terms: tuple[str, ...], what: str, mend: str) -> None:
    """Raise an error that names the tables and the first wrong term."""
    if not bad.any():
        return
    tables = [int(k) + 1 for k in np.flatnonzero(bad.any(axis=1))]
    term = int(np.flatnonzero(bad[tables[0] - 1])[0])
    said = f"table{'s' * (len(tables) > 1)} {', '.join(map(str, tables))}"
    verb = "have" if len(tables) > 1 else "has"
    raise InputError(f"{said} {verb} {what} (term {terms[term]}: {values[tables[0] - 1, term]:g}). {mend}")
