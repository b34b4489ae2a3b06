"""Adjust samples to match the noisy information matrix of the real records.

Samples have the pairs of columns of a tree with noise. Without adjustment, intervals of a trial with
correlated predictors covered 0.5 for 0.95. Those with a product of two columns that the tree does not join
covered 0.3. So the records' information is released once and first, and samples are adjusted in three steps.

1. Weights. Predictors that are 0 or 1 have their whole distribution in their counts, which no map of the
   predictors can change. Samples are weighted by ``exp(tilt' x)`` until these counts agree with the
   records', as far as their noise allows. This is the least change (raking, Deming and Stephan 1940, and
   entropy balancing). Beforehand the odds in records and in samples have a ratio of 1, within a factor of e
   (a standard deviation of its logarithm).
2. Shrinkage. In coordinates in which the samples' information is the identity, the records' is a symmetric
   matrix of ratios plus noise. Its difference to the identity is shrunk by the noise that it holds (James
   and Stein 1961). An interval is made as if the ratio in every direction were a standard error of that
   noise less.
3. Map. An affine map takes the predictors to the mean and covariance of the shrunk information, or for
   intervals, of its lower end.

A ratio is far below 1 if predictors go together more closely than in the samples, as a radius, a perimeter
and an area do. Effects of their differences are then hidden. Noise alone spreads the eigenvalues by ``sqrt(2
d)`` of its standard deviation (the edge of Wigner's semicircle). An eigenvalue farther below 1 is taken for
such a direction, and its interval may claim next to nothing there. If the edge itself is beyond 1, noise
hides whether there is any.

The information has a cap on every record's part. Most of it may be capped, in the few records of a rare cell.
Then no map moves the samples' information in that direction, and further moves only stretch them. They are
made anew, with uncapped information at most in proportion to what was read. Nothing is claimed of what is
still apart after the last move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from dpsynth.checks import together
from dpsynth.studies.estimation import (
    RESIDUAL_BOUND,
    UNKNOWN_SLOPE,
    Linear,
    Observation,
    StudyDesign,
    bounded_step,
    posterior,
    prior_precision,
    shares,
)
from dpsynth.studies.model import shorter_tails
from dpsynth.studies.statistics import ScorePoint, ScoreRelease, triangle

# ------------------------------------------------------------------------------------------------
# Samples in the place of records: a study's expectations, and the coefficients that a score implies.
#
# A study averages over the records: their information, the expected score, the length of a bound's
# intervals. These averages are computed from samples of the released base model, and are free. If the
# samples are wrong, so is every expectation: `dpsynth.studies.calibration` corrects them.

Floats = NDArray[np.float64]

#: intervals may be longer than the shortest by this, if more records keep a weight of 1 for it: an unweighted
#: fit is what the study is compared with where the model does not quite hold
_SLACK = 1.1
#: shares of the draws whose reach a bound C is tried at
_BOUNDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995, 0.999, 1.0)
#: share of the draws whose information is below the cap K
_CAPPED = 0.95
#: whitening lifts no eigenvalue below this part of their mean: near it, terms are collinear
_FLOOR = 0.01
#: Newton's steps from scores to coefficients, and when they are near enough; a hazard of a rare category that
#: is overshot comes back by 1 a step
_ROUNDS, _CLOSE_EXPECTATION = 100, 1e-6
#: noise of a release without any, over its bound, so that its inverse exists
NO_NOISE = 1e-6


@dataclass(frozen=True, eq=False)
class StandIn:
    """Samples that stand for the records.

    ``x``, ``y``, shape (k, p), (k,): of the samples without missing values.
    ``share``: how many records each stands for.
    ``ratio``, shape (d, d): sampling variance of a score over its information, None for 1. See
        `dpsynth.studies.calibration`.
    """

    design: StudyDesign
    x: Floats
    y: Floats
    share: float
    ratio: Floats | None = None

    def point(self, beta: Floats, release: ScoreRelease) -> ScorePoint:
        """Whitening and bound C at a point."""
        plain = ScorePoint(self.design, beta, np.eye(self.design.size))
        values, vectors = np.linalg.eigh(plain.information(self.x, self.y) / max(len(self.x), 1))
        values = np.maximum(values, _FLOOR * values.mean() + 1e-9)
        point = replace(plain, whitening=(vectors * values**-0.5) @ vectors.T)
        reach = point.reach(self.x)
        bounds = np.unique(np.quantile(reach[np.isfinite(reach)], _BOUNDS)) if len(reach) else np.ones(1)
        tried = [replace(point, bound=max(float(bound), 1e-12)) for bound in bounds]
        errors = np.array([self._errors(choice, release, reach) for choice in tried])
        relative = (errors / errors.min(axis=0)).mean(axis=1)
        return tried[int(np.flatnonzero(relative <= _SLACK * relative.min())[-1])]

    def cap(self, point: ScorePoint) -> float:
        """A cap K on a record's information."""
        norms = point.norms(self.x, self.y)
        return max(float(np.quantile(norms, _CAPPED)), 1e-12) if len(norms) else 1.0

    def _errors(self, point: ScorePoint, release: ScoreRelease, reach: Floats) -> Floats:
        """Standard errors of the reported coefficients that the release alone would give."""
        read = (point, release.noise_std, np.zeros(self.design.size))
        covariance = posterior([self.observation(*read, point.beta, reach)], self.prior)[1]
        return np.sqrt(np.diag(covariance))[self.design.reports]

    def estimate(
        self, read: Sequence[tuple[ScorePoint, float, Floats]], beta: Floats
    ) -> tuple[Floats, Floats]:
        """Coefficients and covariance, from points with their noise and scores, beginning at ``beta``."""
        reaches = [each[0].reach(self.x) for each in read]
        for _ in range(_ROUNDS):
            observations = [
                self.observation(*each, beta, reach) for each, reach in zip(read, reaches, strict=True)
            ]
            mean, covariance = posterior(observations, self.prior)
            step = bounded_step(mean - beta)
            beta = beta + step
            if np.abs(step).max() < _CLOSE_EXPECTATION:
                break
        return beta, covariance

    def observation(
        self, point: ScorePoint, noise_std: float, score: Floats, truth: Floats, reach: Floats | None = None
    ) -> Observation:
        """The observation that a whitened score makes, near ``truth``.

        A score is linear in the coefficients only nearby. So its expectation over the samples at its own
        point, if ``truth`` is true, is subtracted. It is then a score at ``truth``. ``reach`` is that of the
        samples at the point, if it is known.
        """
        back = np.linalg.inv(point.whitening)
        weights, family = point.weights(self.x, reach)[:, None], self.design.family
        eta, at = self.rows @ truth, self.rows @ point.beta
        flat = self.rows.reshape(-1, self.design.size)
        expected = self.share * flat.T @ (weights * family.shift(eta, at, self.y)).ravel()
        curved = flat * (weights * family.curvature(eta, self.y)).reshape(-1, 1)
        information = self.share * curved.T @ flat
        std = max(noise_std, NO_NOISE) * point.bound
        seen = truth, back @ score - expected, information, std**2 * back @ back
        return Observation(*seen, self.sampling(information))

    def sampling(self, information: Floats) -> Floats:
        """Sampling variance of a score with this information, both (d, d)."""
        if self.ratio is None:
            return information
        root, _ = roots(information)
        return np.asarray(root @ self.ratio @ root)

    def precision(self, information: Floats) -> Floats:
        """Precision of coefficients from records of this information without noise, both (d, d)."""
        if self.ratio is None:
            return information + self.prior
        root, _ = roots(information)
        return np.asarray(root @ np.linalg.inv(self.ratio) @ root + self.prior)

    @cached_property
    def rows(self) -> Floats:
        """Rows of the draws' design, shape (k, J, d)."""
        return self.design.rows(self.x)

    @cached_property
    def prior(self) -> Floats:
        """Precision of the coefficients beforehand, shape (d, d)."""
        return prior_precision(self.design, self.x)

    def information(self, point: ScorePoint) -> Floats:
        """The information of the draws at a point, as that of the records is read there, shape (d, d)."""
        return self.share * point.information(self.x, self.y)

    def moments(self, point: ScorePoint, whitened: Floats) -> tuple[float, Floats, Floats]:
        """Mass, mean and covariance of the predictors in the distribution that an information is of."""
        j, back = self.design.family.baseline, np.linalg.inv(point.whitening)
        information = back @ whitened @ back
        mass = max(float(np.trace(information[:j, :j])), 1e-12)
        mean = information[:j, j:].sum(axis=0) / mass
        return mass, mean, information[j:, j:] / mass - np.outer(mean, mean)


def roots(matrix: Floats) -> tuple[Floats, Floats]:
    """Square root of a symmetric matrix and its inverse. Eigenvalues of 0 or less are raised a little."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 1e-6 * max(float(values.sum()) / max(len(values), 1), 1e-12))
    return (vectors * values**0.5) @ vectors.T, (vectors * values**-0.5) @ vectors.T


# ------------------------------------------------------------------------------------------------
# Remarks on what bounded influence may hide of a pre-specified regression, from samples and public bounds.
#
# No record adds more than its bound to a score (`dpsynth.studies.statistics`). If the regression holds, the
# coefficients are the same with and without the bounds. If it does not quite hold, those of the bounded
# score are the coefficients of the middle of the records. An interval does not include this difference. If
# it may be large, a remark says so. One is about residuals of a linear regression, and one about records far
# out in a predictor, such as a skewed count.


#: twice the share of a normal distribution beyond the bound of residuals
_NORMAL_BEYOND = 2 * float(chi2.sf(RESIDUAL_BOUND**2, 1))
#: quantiles of a predictor beyond which its effect is supposed to level off
_MIDDLE = (0.05, 0.95)
#: standard errors from which a difference is told. An interval off by as much covers 94 %. Normal predictors
#: with strong effects have up to this
_TOLD = 0.3
#: samples of which it is computed, and Newton's steps
_SAMPLES, _INFLUENCE_STEPS = 4000, 8


def clipped_influence(draws: StandIn, start: Floats, covariance: Floats) -> tuple[str, ...]:
    """Possible effect of bounded residuals on a linear model, from samples and public bounds.

    Samples have about as many residuals beyond the bound as the records. Noise hides how far out these are:
    on flchain, samples had 0 to 25 % of the difference to least squares. So they are taken to be as far out
    as the outcome's bounds allow.
    """
    design, x = draws.design, draws.x
    if not isinstance(design.family, Linear) or not len(x):
        return ()
    farthest = RESIDUAL_BOUND * design.family.spread
    beyond = float((np.abs(draws.y - draws.rows[:, 0] @ start) > farthest).mean())
    shift = (beyond - _NORMAL_BEYOND) * (design.outcome_range - farthest)
    if shift < np.sqrt(np.diag(covariance)[design.reports]).min():
        return ()
    told = "These are effects on its middle, and those of least squares can be others."
    if not design.terms:
        told = "This is the mean of its middle, and that of all values can be another."
    return (
        f"{design.model.outcome} may have a long tail: {100 * beyond:.1f} % of synthetic "
        f"{design.counted} are beyond {RESIDUAL_BOUND:g} standard deviations, where a {design.counted.one} "
        f"counts no more. {told} A logarithm or narrower bounds shorten the tail.",
    )


def far_out(x: Floats, y: Floats, point: ScorePoint, beta: Floats, covariance: Floats) -> tuple[str, ...]:
    """Possible effect of records far out in a predictor, from samples and the estimates.

    ``x``, ``y``, shape (k, p), (k,): of all samples, those far out too.
    ``point``: whose weights the records had.
    """
    design = point.design
    errors = np.sqrt(np.diag(covariance))[design.reports]
    with np.errstate(all="ignore"):  # what overflows says nothing, and the budget is spent
        found = levelled(x[:_SAMPLES], y[:_SAMPLES], point, beta)
        off = {design.terms[j].column: float((np.abs(each) / errors).max()) for j, each in found.items()}
    names = [name for name, size in off.items() if size > _TOLD]
    if not names:
        return ()
    effects = "their effects level" if len(names) > 1 else "its effect levels"
    shorter = shorter_tails([design.schema.column(name) for name in names], design.model.logs)
    return (
        f"{design.counted.capitalize()} far out in {together(names)} have a weight below 1. If {effects} "
        f"off there, the usual fit differs by {max(off[name] for name in names):.1f} standard errors or "
        f"more. The intervals do not include this. {shorter}",
    )


def levelled(x: Floats, y: Floats, point: ScorePoint, beta: Floats) -> dict[int, Floats]:
    """By position of a numeric term, how far the reported coefficients are off if its effect levels off.

    The effect is taken to be ``beta`` within the middle 90 % of the samples (`_MIDDLE`), and to be none
    beyond. Samples have expected outcomes. The coefficients of their weighted score are compared with those
    of the plain one.
    """
    design, found = point.design, dict[int, Floats]()
    if not len(x):
        return found
    rows, weights = design.rows(x), point.weights(x)
    for j, term in enumerate(design.terms):
        if term.two_valued or not design.schema.column(term.column).is_numeric:
            continue
        beyond = x[:, j] - np.clip(x[:, j], *np.quantile(x[:, j], _MIDDLE))
        truth = rows @ beta - (beta[design.family.baseline + j] * beyond)[:, None]
        ours, usual = (_solved(design, rows, y, truth, w, beta) for w in (weights, np.ones(len(x))))
        found[j] = (ours - usual)[design.reports]
    return found


def _solved(
    design: StudyDesign, rows: Floats, y: Floats, truth: Floats, weights: Floats, beta: Floats
) -> Floats:
    """Coefficients at which the weighted expected score is 0, if outcomes follow ``truth`` (k, J)."""
    flat, family = rows.reshape(-1, design.size), design.family
    for _ in range(_INFLUENCE_STEPS):
        eta = rows @ beta
        score = flat.T @ (weights[:, None] * family.shift(truth, eta, y)).ravel()
        information = (flat * (weights[:, None] * family.curvature(eta, y)).reshape(-1, 1)).T @ flat
        least = 1e-6 * max(float(np.trace(information)), 1e-12) * np.eye(design.size)
        beta = beta + bounded_step(np.linalg.solve(information + least, score))
    return beta


# ------------------------------------------------------------------------------------------------
# Rows of synthetic patients in a regression of patients with several rows.
#
# A patient's score is the mean over the rows (`dpsynth.studies.statistics`). A row drawn at random from each
# synthetic patient has the same expectation. So one row of each patient stands for all in every expectation.
#
# The variance of a patient's mean score is less than that of a row's score, unless the rows of a patient are
# alike. Liang and Zeger (1986), "Longitudinal data analysis using generalized linear models", Biometrika 73,
# take the squares of the patients' own scores. Synthetic patients give these squares here, at the synthetic
# patients' own coefficients. Their ratio to the information of a row is kept. It is a matrix R in
# coordinates where that information is the identity. A score of information H then has variance ``H^(1/2) R
# H^(1/2)``.


@dataclass(frozen=True, eq=False)
class Clusters:
    """Predictors ``x`` (k, p), outcomes ``y`` (k,) and patients' numbers (k,) of rows that lack nothing."""

    x: Floats
    y: Floats
    patient: NDArray[np.int64]

    def one_each(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Position of a random row of each patient."""
        order = rng.permutation(len(self.patient))
        return order[np.unique(self.patient[order], return_index=True)[1]]

    def ratio(self, design: StudyDesign, beta: Floats, kept: NDArray[np.bool_], most: int) -> Floats:
        """R, shape (d, d), from the rows that are ``kept`` (k,).

        No direction has less than 1 / ``most``, that of independent rows of a patient with as many.
        """
        x, y, patient = self.x[kept], self.y[kept], self.patient[kept]
        point, weight = ScorePoint(design, beta, np.eye(design.size)), shares(patient)
        means = np.zeros((patient.max(initial=-1) + 1, design.size))
        np.add.at(means, patient, point.scores(x, y) * weight[:, None])
        inverse = roots(point.information(x, y, weight))[1]
        values, vectors = np.linalg.eigh(inverse @ means.T @ means @ inverse)
        return np.asarray((vectors * np.maximum(values, 1.0 / most)) @ vectors.T)


_STEPS, _CLOSE = 100, 1e-9


def raked(each: Floats, mass: Floats, wanted: Floats, noise: Floats, scale: Floats) -> Floats:
    """The most probable ``tilt`` of samples whose b terms of two values are counted, shape (1 + b,).

    ``each``, shape (k, 1 + 2 b): of a sample: a 1, its b terms, and their squares.
    ``mass``, shape (k,): its weight, 0 or more.
    ``wanted``, shape (1 + 2 b,): ``each.T @ mass`` of the records, with noise.
    ``noise``, shape (1 + 2 b, 1 + 2 b): the covariance of that, positive definite.
    ``scale``, shape (1 + b,): standard deviation beforehand: 1 for all, and for each term one over how far
        its values lie apart.
    """
    rows = each[:, : len(scale)]
    weight = np.linalg.inv(noise)
    tilt = np.zeros(len(scale))
    for _ in range(_STEPS):  # of Gauss and Newton
        weighted = each * (mass * np.exp(rows @ tilt))[:, None]
        slope = weighted.T @ rows
        score = slope.T @ weight @ (wanted - weighted.sum(axis=0)) - tilt / scale**2
        step = np.linalg.solve(slope.T @ weight @ slope + np.diag(scale**-2.0), score)
        # the exponential is far from its tangent beyond a factor of e
        step /= max(1.0, float(np.abs(rows @ step).max(initial=0.0)))
        tilt = tilt + step
        if np.abs(step).max() < _CLOSE:
            break
    return tilt


def resampled(weights: Floats) -> NDArray[np.int64]:
    """Positions of as many draws as there are weights, each as often as its weight has it, shape (k,).

    Systematic resampling, of draws in the order of their weights: every count is met to within one draw.
    """
    order = np.argsort(weights, kind="stable")
    ends = np.cumsum(weights[order]) * (len(weights) / weights.sum())
    times = np.diff(np.floor(ends + 0.5), prepend=0.0).astype(int)
    return np.sort(np.repeat(order, times))


#: moves until the draws' information is the records'
_MOVES = 4
#: a term takes part in a combination if its coefficient is more than this of the largest
_TAKES_PART = 1 / 3
#: part of what was read that moved draws reach in every direction, if moves bring them there
_REACHED = 0.9
#: draws whose information is this many times what was read in some direction, or as little, do not match
_APART = 1.5


@dataclass(frozen=True, eq=False)
class Corrected:
    """Samples that were compared with the records.

    ``cautious``: the same, for intervals.
    ``hidden``: terms whose information the noise hides.
    ``apart``: others, of which the samples could not be brought to the records' information.
    ``blind``: whether noise hides if there are any.
    """

    stand_in: StandIn
    cautious: StandIn
    hidden: tuple[str, ...]
    apart: tuple[str, ...]
    blind: bool

    @property
    def unknown(self) -> tuple[str, ...]:
        """Terms of which nothing is claimed."""
        return self.hidden + self.apart

    def opened(self, covariance: Floats) -> Floats:
        """A covariance of the coefficients, shape (d, d), that claims nothing of the unknown terms."""
        design = self.stand_in.design
        wide = np.zeros(design.size)
        wide[design.reports] = [name in self.unknown for name in design.names]
        return covariance + np.diag(wide * UNKNOWN_SLOPE**2)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks for readers of the intervals."""
        remarks, counted = [], self.stand_in.design.counted
        if not len(self.stand_in.x):
            remarks.append(
                f"No synthetic {counted.one} has a value in all of the study's columns: nothing was "
                "learned, and these numbers are what was supposed beforehand."
            )
        if len(self.hidden) == 1:
            remarks.append(
                f"Noise hides how much the {counted} know of {self.hidden[0]}, which may hardly vary beside "
                "the others: nothing is claimed of it."
            )
        elif self.hidden:
            remarks.append(
                f"Noise hides how much the {counted} know of {together(self.hidden)}: they may go together "
                "too closely to be told apart with this budget, and nothing is claimed of them."
            )
        if self.apart:
            them = "it" if len(self.apart) == 1 else "them"
            remarks.append(
                f"Synthetic {counted} could not be brought to what the {counted} tell of "
                f"{together(self.apart)}: nothing is claimed of {them}."
            )
        if self.blind:
            remarks.append(
                "Noise hides whether predictors go together closely: where some do, these intervals are too "
                "short."
            )
        return tuple(remarks)


def corrected(draws: StandIn, point: ScorePoint, noisy: Floats, noise_std: float) -> Corrected:
    """The samples with the information of the records, and the same for intervals.

    ``point``: where the information was read. Its cap is finite.
    ``noisy``, shape (d, d).
    ``noise_std``: of the noise on its diagonal, over the cap.
    """
    noise_std = max(noise_std, NO_NOISE) * point.cap
    weighted = _weighted(draws, _tilt(draws, point, noisy, noise_std))
    found = compare_information(weighted.information(point), noisy, noise_std)
    free = replace(point, cap=np.inf)
    ratio = _transport(weighted.information(point), found.estimate)
    most = ratio @ weighted.information(free) @ ratio
    for bounded in (False, True):
        moved = weighted
        for _ in range(_MOVES):
            moved = _moved(moved, point, found.estimate)
            if bounded:
                moved = _moved(moved, free, _at_most(moved.information(free), most))
        if _ratios(moved.information(point), found.estimate)[0].min() > _REACHED:
            break

    mass, mean, wanted = moved.moments(point, found.estimate)
    least, _, narrow = moved.moments(point, found.lower)
    # a map changes no mass: what is less of it is less of the covariance
    cautious = replace(moved, x=mean + (moved.x - mean) @ _transport(wanted, narrow * least / mass).T)
    hidden = _terms(moved, point, found.hidden)
    left = _terms(moved, point, _apart(moved.information(point), found.estimate)) if len(moved.x) else ()
    apart = tuple(name for name in left if name not in hidden)
    return Corrected(moved, cautious, hidden, apart, found.blind)


def _tilt(draws: StandIn, point: ScorePoint, noisy: Floats, noise_std: float) -> Floats:
    """How samples are weighted, for the counts of their terms of two values, shape (1 + p,).

    The information holds a count twice, as a sum and as a sum of squares. Those of a rare value are greater,
    and have the same noise.
    """
    design = draws.design
    j, every = design.family.baseline, np.eye(design.size)
    two = np.array([term.two_valued for term in design.terms], dtype=bool)
    ones = every[:j].sum(axis=0)
    sides = [(np.outer(ones, term) + np.outer(term, ones)) / 2 for term in every[j:][two]]
    squares = [np.outer(term, term) for term in every[j:][two]]
    back = np.linalg.inv(point.whitening)
    # sums of the records as inner products with their information, in coordinates in which its noise is round
    linear = np.array([triangle(back @ part @ back) for part in (np.diag(ones), *sides, *squares)])
    x = draws.x[:, two]
    each = np.column_stack([np.ones(len(x)), x, x**2])
    mass = draws.share * point.curvatures(draws.x, draws.y)[1].sum(axis=1)
    wanted, noise = linear @ triangle(noisy), noise_std**2 * linear @ linear.T
    tilt = np.zeros(1 + len(two))
    tilt[np.r_[True, two]] = raked(each, mass, wanted, noise, np.r_[1.0, design.scale[two]])
    return tilt


def _weighted(draws: StandIn, tilt: Floats) -> StandIn:
    """As many draws, each as often as its weight has it."""
    if not len(draws.x):
        return draws
    weights = np.exp(tilt[0] + draws.x @ tilt[1:])
    kept = resampled(weights)
    return replace(draws, x=draws.x[kept], y=draws.y[kept], share=draws.share * float(weights.mean()))


def _moved(draws: StandIn, point: ScorePoint, wanted: Floats) -> StandIn:
    """The draws, mapped to the mean and covariance of an information, as a distribution of weights ``v``."""
    if not len(draws.x):
        return draws
    mass, centre, spread = draws.moments(point, draws.information(point))
    whole, mean, goal = draws.moments(point, wanted)
    step = _transport(spread, goal).T
    return replace(draws, x=mean + (draws.x - centre) @ step, share=draws.share * whole / mass)


def _ratios(found: Floats, wanted: Floats) -> tuple[Floats, Floats]:
    """Ratios of one information to another, by direction, and these as combinations of the coefficients."""
    inverse = roots(wanted)[1]
    ratios, axes = np.linalg.eigh(inverse @ found @ inverse)
    return ratios, inverse @ axes


def _at_most(found: Floats, most: Floats) -> Floats:
    """An information that is at most ``most`` in any direction."""
    root, inverse = roots(most)
    ratios, axes = np.linalg.eigh(inverse @ found @ inverse)
    back = root @ axes
    return np.asarray((back * np.minimum(ratios, 1.0)) @ back.T)


def _apart(found: Floats, wanted: Floats) -> Floats:
    """Combinations of the coefficients, one a column, in which draws and records differ."""
    ratios, axes = _ratios(found, wanted)
    return np.asarray(axes[:, (ratios < 1 / _APART) | (ratios > _APART)])


def _terms(draws: StandIn, point: ScorePoint, combinations: Floats) -> tuple[str, ...]:
    """Names of the terms that take part in combinations, one a column, of whitened coefficients."""
    parts = np.abs(point.whitening @ combinations)[draws.design.reports]
    taken = (parts > _TAKES_PART * parts.max(axis=0)).any(axis=1)
    return tuple(name for name, part in zip(draws.design.names, taken, strict=True) if part)


def _transport(spread: Floats, wanted: Floats) -> Floats:
    """The map that takes one covariance to another and moves normal draws least (optimal transport)."""
    root, inverse = roots(spread)
    squares, axes = np.linalg.eigh(root @ wanted @ root)
    return np.asarray(inverse @ (axes * np.sqrt(np.maximum(squares, 0.0))) @ axes.T @ inverse)


#: ratios are taken to be no less and no more
_RATIOS = (0.1, 4.0)
#: how far, in logarithms, draws may be off where noise drowns the records' information
_DOUBT = 0.5
#: what is left of a ratio at its lower end at least; of one beyond the noise's edge, which is itself no less
_LEAST, _LEAST_BEYOND = 0.3, 0.01
#: part of a ratio that is left where it is not taken for hidden
_HIDDEN = 0.5


@dataclass(frozen=True, eq=False)
class Compared:
    """The records' information, as far as it differs from that of the draws by more than noise.

    ``estimate``, shape (d, d): positive definite.
    ``lower``, shape (d, d): A standard error less, in every direction.
    ``hidden``, shape (d, k): combinations of the coefficients, one a column, with little information, the
        noise hiding how little.
    ``blind``: whether the noise is too strong to see such combinations.
    """

    estimate: Floats
    lower: Floats
    hidden: Floats
    blind: bool


def compare_information(own: Floats, noisy: Floats, noise_std: float) -> Compared:
    """Compare a noisy information with that of draws.

    ``own``, shape (d, d): the draws' information, positive semidefinite.
    ``noisy``, shape (d, d): of the records, with noise of ``noise_std`` on its diagonal and 1 / sqrt(2) of
        that beside it.
    """
    size = len(own)
    squared = float(((noisy - own) ** 2).sum())
    kept = max(0.0, 1.0 - noise_std**2 * size * (size + 1) / 2 / squared) if squared else 0.0
    root, inverse = roots(own)
    seen, axes = np.linalg.eigh(inverse @ noisy @ inverse)
    noise = noise_std * ((inverse @ axes) ** 2).sum(axis=0)
    edge = np.sqrt(2 * size) * noise
    beyond = seen < np.minimum(1.0 - edge, 0.5)
    shrunk = 1.0 + kept * (seen - 1.0)
    least = np.where(beyond, np.maximum(noise, _LEAST_BEYOND), _RATIOS[0])
    ratios = np.clip(shrunk, least, _RATIOS[1])
    relative = noise / ratios
    unsure = np.sqrt(kept) * relative + (1.0 - kept) * np.minimum(relative, _DOUBT)
    # a standard error less, of the logarithm where there is something for sure
    left = np.where(beyond, np.maximum(1.0 - unsure, _LEAST_BEYOND), np.maximum(np.exp(-unsure), _LEAST))
    back = root @ axes
    return Compared(
        (back * ratios) @ back.T,
        (back * (ratios * left)) @ back.T,
        (inverse @ axes)[:, beyond & (left < _HIDDEN)],
        bool(np.median(edge) > 1.0),
    )
