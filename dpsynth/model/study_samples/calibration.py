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

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import together
from dpsynth.model.study_samples.expectations import NO_NOISE, StandIn, roots
from dpsynth.releases.score import ScorePoint, triangle
from dpsynth.studies.newton import UNKNOWN_SLOPE

Floats = NDArray[np.float64]


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
        remarks = []
        if not len(self.stand_in.x):
            remarks.append(
                "No synthetic record has a value in all of the study's columns: nothing was learned, and "
                "these numbers are what was supposed beforehand."
            )
        if len(self.hidden) == 1:
            remarks.append(
                f"Noise hides how much the records know of {self.hidden[0]}, which may hardly vary beside "
                "the others: nothing is claimed of it."
            )
        elif self.hidden:
            remarks.append(
                f"Noise hides how much the records know of {together(self.hidden)}: they may go together too "
                "closely to be told apart with this budget, and nothing is claimed of them."
            )
        if self.apart:
            them = "it" if len(self.apart) == 1 else "them"
            remarks.append(
                f"Synthetic records could not be brought to what the records tell of {together(self.apart)}: "
                f"nothing is claimed of {them}."
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
    found = compared(weighted.information(point), noisy, noise_std)
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


def compared(own: Floats, noisy: Floats, noise_std: float) -> Compared:
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
