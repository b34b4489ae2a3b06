"""Figures 1 to 6 of Lowy and others 2024, on data of our own, generated as their text describes.

"Why does differential privacy with large epsilon defend against practical membership inference attacks?"
Three epsilons of one mechanism are compared. Epsilon of DP holds for all data. epsilon_X is that of DP
restricted to adjacent halves of the parent set. And epsilon_PMP is against an attacker who has no more than
the parent set. Figures 1 to 3 are of the exponential mechanism for the geometric median, figures 4 to 6 of
the Gaussian mechanism on a clipped mean.

The paper draws epsilon_PMP / epsilon and epsilon_PMP / epsilon_X. Their quotient epsilon_X / epsilon is drawn
too. The text at hand has lost most of the paper's parameters, so these are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsynth.report.drawing.style import Drawing, legend_below, line, panels
from dpsynth.research.papers.lowy import MeanLoss, exponential_pmp
from dpsynth.research.papers.lowy_gaussian import (
    gaussian_dp_sigma,
    gaussian_parent_epsilon,
    gaussian_pmp_epsilon,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Values = NDArray[np.float64]

TRIALS = 20
#: Seed of the data of the exponential and of the Gaussian mechanism; trial t draws from (seed, t).
SEEDS = (20241, 20242)

#: Exponential mechanism: records in a half, candidates, and what does not vary in a figure.
SMALL_HALF, CANDIDATES = 6, 30
MEDIAN_CLIP, MEDIAN_DIMENSION, MEDIAN_EPSILON = 1.0, 2, 10.0
STDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
STD_EPSILONS = (1.0, 10.0)
MEDIAN_CLIPS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
MEDIAN_OUTLIERS = (2, 100.0)
MEDIAN_DIMENSIONS = (2, 4, 8, 16, 32, 64, 128)

#: Gaussian mechanism: records in a half, and what does not vary in a figure.
LARGE_HALF, DELTA = 50, 1e-5
MEAN_CLIP, MEAN_DIMENSION, MEAN_EPSILON = 10.0, 5, 10.0
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
MEAN_CLIPS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
MEAN_OUTLIERS = (2, 10.0)
MEAN_DIMENSIONS = (1, 2, 5, 10, 20, 50, 100)

LEGEND_SIZE = 11.0  # so that the subscripts can be read

DISTANCE = MeanLoss(lambda records, outputs: np.linalg.norm(records[:, None] - outputs, axis=2))


class Ratios(NamedTuple):
    """Ratios of epsilons, a row a trial, a column a value on the axis."""

    to_dp: Values  # epsilon_PMP / epsilon
    to_parent: Values  # epsilon_PMP / epsilon_X
    parent_to_dp: Values  # epsilon_X / epsilon


def clipped(points: Values, threshold: float) -> Values:
    """Shorten the rows that are longer than the threshold."""
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    return points / np.maximum(1.0, norms / threshold)


def normal_parent(
    rng: np.random.Generator,
    records: int,
    dimension: int,
    *,
    std: float = 1.0,
    clip: float,
    outliers: tuple[int, float] = (0, 1.0),
) -> Values:
    """Normal points, of which ``outliers[0]`` are multiplied by ``outliers[1]``, and all then clipped."""
    points = std * rng.normal(size=(records, dimension))
    count, factor = outliers
    points[:count] *= factor  # which ones is no matter: the points are exchangeable
    return clipped(points, clip)


def median_ratios(
    epsilon: float = MEDIAN_EPSILON,
    *,
    std: float = 1.0,
    clip: float = MEDIAN_CLIP,
    dimension: int = MEDIAN_DIMENSION,
    outliers: tuple[int, float] = (0, 1.0),
    trials: int = TRIALS,
) -> Values:
    """Ratios of the exponential mechanism that chooses the candidate of least mean distance to the records.

    Candidates are random unit vectors. Data have this ``std`` in each dimension. ``outliers[0]`` records are
    multiplied by ``outliers[1]``, and all records clipped at norm ``clip``. Returns exact epsilon_PMP /
    epsilon and epsilon_PMP / epsilon_X of each parent set, shape (trials, 2).
    """
    # |w - x| lies between max(0, 1 - clip) and 1 + clip where |w| = 1 and |x| <= clip
    sensitivity = (clip + min(clip, 1.0)) / SMALL_HALF
    rows = []
    for trial in range(trials):
        rng = np.random.default_rng((SEEDS[0], trial))
        candidates = rng.normal(size=(CANDIDATES, dimension))
        candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
        parent = normal_parent(rng, 2 * SMALL_HALF, dimension, std=std, clip=clip, outliers=outliers)
        cost = exponential_pmp(parent, DISTANCE, candidates, epsilon, sensitivity=sensitivity)
        rows.append((cost.epsilon_pmp / epsilon, cost.epsilon_pmp / cost.epsilon_parent))
    return np.array(rows)


def mean_ratios(
    epsilon: float = MEAN_EPSILON,
    *,
    clip: float = MEAN_CLIP,
    dimension: int = MEAN_DIMENSION,
    outliers: tuple[int, float] = (0, 1.0),
    trials: int = TRIALS,
) -> Values:
    """Ratios of the Gaussian mechanism on the clipped mean, with the noise that DP needs at delta 1e-5.

    As :func:`median_ratios`, for data of standard deviation 1, with epsilon_PMP bounded by Proposition 12.
    """
    sigma = gaussian_dp_sigma(2 * clip, LARGE_HALF, epsilon, DELTA)
    rows = []
    for trial in range(trials):
        rng = np.random.default_rng((SEEDS[1], trial))
        parent = normal_parent(rng, 2 * LARGE_HALF, dimension, clip=clip, outliers=outliers)
        practical = gaussian_pmp_epsilon(parent, sigma, DELTA)
        rows.append((practical / epsilon, practical / gaussian_parent_epsilon(parent, sigma, DELTA)))
    return np.array(rows)


def along(ratios: Callable[..., Values], name: str, values: Sequence[float], **fixed: Any) -> Ratios:
    """Compute ratios for each value of one parameter."""
    columns = np.stack([ratios(**{name: value}, **fixed) for value in values], axis=1)
    to_dp, to_parent = columns[..., 0], columns[..., 1]
    return Ratios(to_dp, to_parent, to_dp / to_parent)


def _plot(axis: Axes, x: Sequence[float], ratios: Ratios, xlabel: str, title: str = "") -> None:
    labels = (r"$ε_\mathrm{PMP}\,/\,ε$", r"$ε_\mathrm{PMP}\,/\,ε_X$", r"$ε_X\,/\,ε$")
    for number, (label, values, marker) in enumerate(zip(labels, ratios, "os^", strict=True)):
        mean, std = values.mean(axis=0), values.std(axis=0, ddof=1)
        look: dict[str, Any] = {
            "marker": marker,
            "markersize": 4,
            "capsize": 2,
            "elinewidth": 0.8,
            **line(number),
        }
        axis.errorbar(x, mean, yerr=std, label=label, **look)
    axis.set_xscale("log")
    axis.set_xticks(list(x), [f"{value:g}" for value in x])
    axis.minorticks_off()
    axis.set(ylim=(0, 1.05), xlabel=xlabel, ylabel="ratio of epsilons", title=title)


def _by_std() -> Figure:
    figure, axes = panels(1, 2, height=3.0)
    for axis, epsilon in zip(axes, STD_EPSILONS, strict=True):
        ratios = along(median_ratios, "std", STDS, epsilon=epsilon)
        _plot(axis, STDS, ratios, "std of the data in each dimension", f"ε = {epsilon:g}")
    legend_below(figure, axes[0], fontsize=LEGEND_SIZE)
    return figure


def _along(
    ratios: Callable[..., Values], name: str, values: Sequence[float], xlabel: str, **fixed: Any
) -> Callable[[], Figure]:
    def draw() -> Figure:
        figure, (axis,) = panels(width=4.6, height=3.2)
        _plot(axis, values, along(ratios, name, values, **fixed), xlabel)
        legend_below(figure, axis, fontsize=LEGEND_SIZE)
        return figure

    return draw


_MEDIAN = (
    f"Exponential mechanism: of {CANDIDATES} random unit vectors, the nearest on average to {SMALL_HALF} of "
    f"{2 * SMALL_HALF} normal records"
)
_MEAN = f"Gaussian mechanism on the mean of {LARGE_HALF} of {2 * LARGE_HALF} normal records, δ = 1e-5"
_SPREAD = f"Means and standard deviations over {TRIALS} parent sets with fixed seeds"
_OURS = f"{_SPREAD}; the data and all parameters are ours."

DRAWINGS: tuple[Drawing, ...] = (
    Drawing(
        "lowy-01-std",
        f"{_MEDIAN}, in {MEDIAN_DIMENSION} dimensions, clipped at norm {MEDIAN_CLIP:g}. The closer the "
        f"records, the less there is to find. {_OURS}",
        _by_std,
    ),
    Drawing(
        "lowy-02-clip-outliers",
        f"{_MEDIAN}, {MEDIAN_OUTLIERS[0]} of these multiplied by {MEDIAN_OUTLIERS[1]:g}, in "
        f"{MEDIAN_DIMENSION} dimensions, ε {MEDIAN_EPSILON:g}. The paper calls such data nearly worst-case "
        "(ε_X close to ε); here ε_X falls too, because a far record moves the losses of all candidates "
        f"almost alike. {_OURS}",
        _along(
            median_ratios, "clip", MEDIAN_CLIPS, "clip threshold (candidates: 1)", outliers=MEDIAN_OUTLIERS
        ),
    ),
    Drawing(
        "lowy-03-dimension",
        f"{_MEDIAN}, clipped at norm {MEDIAN_CLIP:g}, ε {MEDIAN_EPSILON:g}. ε_PMP / ε falls with the "
        f"dimension as in the paper, but ε_PMP / ε_X rises here. {_OURS}",
        _along(median_ratios, "dimension", MEDIAN_DIMENSIONS, "dimension of the data"),
    ),
    Drawing(
        "lowy-04-epsilon",
        f"{_MEAN}, in {MEAN_DIMENSION} dimensions, clipped at norm {MEAN_CLIP:g}; ε_PMP is an upper bound. "
        f"ε_PMP / ε_X rises with ε; ε_PMP / ε hardly moves, where the paper reports a rise. {_OURS}",
        _along(mean_ratios, "epsilon", EPSILONS, "ε of DP"),
    ),
    Drawing(
        "lowy-05-clip-outliers",
        f"{_MEAN}, {MEAN_OUTLIERS[0]} of these multiplied by {MEAN_OUTLIERS[1]:g}, in {MEAN_DIMENSION} "
        f"dimensions, ε {MEAN_EPSILON:g}; ε_PMP is an upper bound. The noise that a high threshold needs "
        f"hides ordinary records well. {_SPREAD}; the outliers are the paper's, all else is ours.",
        _along(
            mean_ratios, "clip", MEAN_CLIPS, "clip threshold (std of the data: 1)", outliers=MEAN_OUTLIERS
        ),
    ),
    Drawing(
        "lowy-06-dimension",
        f"{_MEAN}, clipped at norm {MEAN_CLIP:g}, ε {MEAN_EPSILON:g}; ε_PMP is an upper bound. The ratios "
        f"rise as the norms grow towards the threshold. {_OURS}",
        _along(mean_ratios, "dimension", MEAN_DIMENSIONS, "dimension of the data"),
    ),
)
