"""Jia, Tan, Liu, Li, Liu, Lv and Dong 2023, "Total variation distance privacy": Theorem 18 and the figures.

The paper's full title goes on: "Accurately measuring inference attacks and improving utility".
:mod:`dpsynth.accounting` has the parts that runs need. `tv_bounds` has mechanisms, composition and bounds
from KL (Theorems 6 to 13, Definition 5, section 5.1). `membership_bounds` has bounds of attacks (Theorems 3,
4 and 14 to 17, Proposition 1, section 4.2). Here are section 6.1, how well releases of one total variation
(TV) can compose, and figures 1 to 3 and 5 to 10. Figure 4 is a training experiment. FPR and FNR are the error
rates of an attack that tests whether a record was there. A mechanism's trade-off curve is its FNR over FPR.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting import membership_bounds as bounds
from dpsynth.accounting.conversions import largest_tv
from dpsynth.accounting.events import training_event
from dpsynth.accounting.gaussian import GaussianLoss
from dpsynth.accounting.profile import Profile
from dpsynth.accounting.tv_bounds import gaussian_tv, sampled_gaussian_tv
from dpsynth.checks import in_range, whole
from dpsynth.errors import InputError
from dpsynth.report.drawing.style import Drawing, legend_below, line, panels
from dpsynth.research.papers.ghazi_issa import compose
from dpsynth.research.papers.trade_off import Pair, composed_laplace_fnr, fnr, gaussian_fnr, laplace_fnr

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_LARGEST_COUNT = 100_000


Curve = NDArray[np.float64]

DELTA = 1e-5
RECORDS = 60_000
#: (batch, steps) of the panels of figure 3
RUNS = ((300, 6000), (300, 20_000), (600, 6000), (600, 20_000))
#: Noise multipliers at which figure 3 composes numerically, which takes up to a second each.
NOISE = (0.8, 1.2, 1.8, 2.7, 4.2, 7.0)
#: Grid coarser than for reported results: quicker, pessimistic, and off by less than a line's width.
COARSENESS = 8.0
SIGMAS = (8.0, 4.0, 2.0, 1.0)
PRIORS = (0.5, 0.2, 0.1, 0.01)
EQUAL_TVS = (0.05, 0.1, 0.2, 0.4)
COMPOSED_TV = 0.1
COUNTS = (1, 10, 50, 100)


def optimal_composition(tv: float, count: int) -> tuple[Pair, ...]:
    """Composition of ``count`` releases that are each as good as a release of this TV can be (Theorem 18).

    It is the best case among all mechanisms of TV ``tv`` (in [0, 1)), reached by randomised response of
    ``epsilon = ln((1 + tv) / (1 - tv))``. The paper's proof leaves out the logarithm, and (6) prints ``(1 +
    epsilon)^count`` for ``(1 + e^epsilon)^count``. It is **never a guarantee for a given mechanism**. With tv
    0.1 and count 10 its TV is 0.243. A mechanism that reveals the record with probability 0.1 has 0.651
    (:func:`~dpsynth.accounting.tv_bounds.naive_composition`).

    Returns
    -------
    tuple of Pair
        As of :func:`~dpsynth.research.papers.ghazi_issa.compose`: the first delta is the total variation.
    """
    tv = in_range("tv", tv, 0.0, 1.0, high_open=True)
    if whole("count", count) > _LARGEST_COUNT:
        raise InputError(f"count must be at most {_LARGEST_COUNT}, not {count}")
    epsilon = math.log1p(tv) - math.log1p(-tv)
    return compose(epsilon, 0.0, largest_tv(epsilon), count)


def laplace_log_ratio(output: Curve, scale: float = 1.0) -> Curve:
    """Log ratio of the densities of Laplace noise around 0 and around 1."""
    return (np.abs(output - 1) - np.abs(output)) / scale


def at_equal_tv(tv: float) -> tuple[float, float]:
    """Laplace epsilon and Gaussian mu of one total variation (Theorems 11 and 12 solved for the noise)."""
    from scipy.special import ndtri

    return -2 * math.log1p(-tv), 2 * float(ndtri((1 + tv) / 2))


def accuracy_bounds(noise: Iterable[float], batch: int, steps: int) -> tuple[Curve, Curve]:
    """Attack accuracy of a run on 60,000 records, from epsilon at delta 1e-5 and from the exact TV."""
    events = [training_event(z, batch / RECORDS, steps) for z in noise]
    profiles = [Profile([event], coarseness=COARSENESS) for event in events]
    from_epsilon = [bounds.dp_accuracy(profile.epsilon(DELTA), DELTA) for profile in profiles]
    return np.array(from_epsilon), np.array([bounds.tv_accuracy(profile.tv()) for profile in profiles])


def kl_accuracy(noise: Curve, batch: int, steps: int) -> Curve:
    """Jia's accuracy bound of a run on 60,000 records, from the larger KL divergence (section 5.1)."""
    tvs = [sampled_gaussian_tv(z, batch / RECORDS, steps, direction="largest") for z in noise.tolist()]
    return np.array([bounds.tv_accuracy(tv) for tv in tvs])


def composed_fnr(fpr: Curve, tv: float, count: int) -> dict[str, Curve]:
    """Trade-off curves of ``count`` releases of one TV each: Laplace, Gaussian and the optimal mechanism."""
    epsilon, mu = at_equal_tv(tv)
    return {
        "Laplace": composed_laplace_fnr(fpr, epsilon, count),
        "Gaussian": gaussian_fnr(fpr, mu * math.sqrt(count)),
        "optimal": np.asarray(fnr(optimal_composition(tv, count), fpr)),
    }


def rates(points: int = 401) -> Curve:
    """False positive rates from 0 to 1, denser near both ends where the curves bend."""
    return (1 - np.cos(np.linspace(0.0, np.pi, points))) / 2


def _densities() -> Figure:
    figure, (left, right) = panels(1, 2)
    x = np.linspace(-4.5, 5.5, 501)
    absent, present = (np.exp(-((x - mean) ** 2) / 2) / math.sqrt(2 * math.pi) for mean in (0, 1))
    left.plot(x, absent, label="N(0, 1): input 0", **line(0))
    left.plot(x, present, label="N(1, 1): input 1", **line(1))
    shaded = f"TV = {gaussian_tv(1.0):.3f}"
    left.fill_between(x, absent, present, where=x <= 0.5, color="0.8", label=shaded)
    _name(left, "output", "density", "Shaded area: total variation")
    left.set_ylim(0, 0.56)
    left.legend(loc="upper right")
    epsilon = GaussianLoss(1.0).epsilon(DELTA)
    right.plot(x, 0.5 - x, label="log of the density ratio", **line(0))
    for sign in (1, -1):
        label = f"±ε at δ = 1e-5 (ε = {epsilon:.2f})" if sign == 1 else None
        right.axhline(sign * epsilon, label=label, **line(1))
    _name(right, "output", "log ratio, input 0 over 1", "Ratio: differential privacy")
    right.set_ylim(-6.5, 9)
    right.legend(loc="upper right")
    return figure


def _testing() -> Figure:
    figure, (axis,) = panels(width=4.6, height=3.6)
    fpr, epsilon, tv = rates(), GaussianLoss(1.0).epsilon(DELTA), gaussian_tv(1.0)
    interval = bounds.tv_sharper_interval(epsilon, DELTA, tv)
    if interval is not None:
        low, high = interval
        axis.axvspan(low, high, color="0.88", label=f"TV sharper: {low:.3f} to {high:.3f}")
    axis.plot(fpr, gaussian_fnr(fpr, 1.0), label="Gaussian noise, exact", **line(6))
    by_epsilon = bounds.dp_fnr(fpr, epsilon, DELTA)
    axis.plot(fpr, by_epsilon, label=f"from ε = {epsilon:.2f}, δ = 1e-5", **line(1))
    axis.plot(fpr, bounds.tv_fnr(fpr, tv), label=f"from TV = {tv:.3f}", **line(0))
    _name(axis, "false positive rate", "false negative rate")
    legend_below(figure, axis, columns=2)
    return figure


def _accuracy() -> Figure:
    figure, axes = panels(2, 2)
    fine = np.geomspace(NOISE[0], NOISE[-1], 60)
    for axis, (batch, steps) in zip(axes, RUNS, strict=True):
        from_epsilon, exact = accuracy_bounds(NOISE, batch, steps)
        axis.plot(NOISE, from_epsilon, marker="s", markersize=4, label="from ε at δ = 1e-5", **line(1))
        axis.plot(fine, kl_accuracy(fine, batch, steps), label="from TV by KL (the paper's)", **line(0))
        axis.plot(NOISE, exact, marker="o", markersize=4, label="from TV, exact", **line(6))
        axis.set_xscale("log")
        axis.set_xticks([1, 2, 4, 7], ["1", "2", "4", "7"])
        axis.minorticks_off()
        axis.set_ylim(0.48, 1.02)
        _name(axis, "noise multiplier", "largest attack accuracy", f"batch {batch}, {steps:,} steps")
    legend_below(figure, axes[0])
    return figure


def _bounds_and_best(axis: Axes, fpr: Curve, by_epsilon: Curve, by_tv: Curve, exact: Curve) -> None:
    axis.plot(fpr, by_epsilon, label="bound from ε at δ = 1e-5", **line(1))
    axis.plot(fpr, by_tv, label="bound from TV", **line(0))
    axis.plot(fpr, exact, label="best attack, exact", **line(6))


def _per_sigma(
    ylabel: str, dp: Callable[..., Curve], tv: Callable[..., Curve], exact: Callable[[Curve, Curve], Curve]
) -> Figure:
    figure, axes = panels(2, 2)
    fpr = rates()
    for axis, sigma in zip(axes, SIGMAS, strict=True):
        epsilon = GaussianLoss(1 / sigma).epsilon(DELTA)
        best = exact(fpr, 1 - gaussian_fnr(fpr, 1 / sigma))
        _bounds_and_best(axis, fpr, dp(fpr, epsilon, DELTA), tv(fpr, gaussian_tv(sigma)), best)
        title = f"σ = {sigma:g}: ε = {epsilon:.2f}, TV = {gaussian_tv(sigma):.3f}"
        _name(axis, "false positive rate", ylabel, title)
    legend_below(figure, axes[0])
    return figure


def _ppv() -> Figure:
    figure, axes = panels(2, 2)
    fpr, sigma = rates(), 2.0
    epsilon, tv = GaussianLoss(1 / sigma).epsilon(DELTA), gaussian_tv(sigma)
    for axis, prior in zip(axes, PRIORS, strict=True):
        by_epsilon, by_tv = bounds.dp_ppv(fpr, epsilon, DELTA, prior), bounds.tv_ppv(fpr, tv, prior)
        exact = bounds.ppv(fpr, 1 - gaussian_fnr(fpr, 1 / sigma), prior)
        _bounds_and_best(axis, fpr, by_epsilon, by_tv, exact)
        title = f"{prior:.0%} of the targets are members"
        _name(axis, "false positive rate", "positive predictive value", title)
        axis.set_ylim(0, 1.03)
    legend_below(figure, axes[0])
    return figure


def _log_ratio() -> Figure:
    figure, (axis,) = panels(width=4.6)
    x = np.linspace(-2.0, 3.0, 501)
    axis.axvspan(0, 1, color="0.88", label="protection that ε does not count")
    axis.axhline(1, label="±ε (ε = 1)", **line(1))
    axis.axhline(-1, **line(1))
    axis.plot(x, laplace_log_ratio(x), label="log density ratio", **line(0))
    axis.set_ylim(-1.3, 1.3)
    _name(axis, "output", "log ratio, input 0 over 1")
    legend_below(figure, axis, columns=2)
    return figure


def _equal_tv() -> Figure:
    figure, axes = panels(2, 4, width=2.5, height=2.4)
    fpr = rates()
    for column, tv in enumerate(EQUAL_TVS):
        epsilon, mu = at_equal_tv(tv)
        curves = (("Laplace", laplace_fnr(fpr, epsilon)), ("Gaussian", gaussian_fnr(fpr, mu)))
        for number, (name, curve) in enumerate(curves):
            axes[column].plot(fpr, curve, label=name, **line(number))
            axes[4 + column].plot(fpr, 1 - fpr - curve, **line(number))
        _name(axes[column], "false positive rate", "false negative rate", f"TV = {tv:g}")
        _name(axes[4 + column], "false positive rate", "advantage, 1 − FPR − FNR")
    legend_below(figure, axes[0])
    return figure


def _composition() -> Figure:
    figure, axes = panels(2, 2)
    fpr = rates()
    for axis, count in zip(axes, COUNTS, strict=True):
        curves = composed_fnr(fpr, COMPOSED_TV, count)
        for number, (name, curve) in zip((0, 1, 6), curves.items(), strict=True):
            axis.plot(fpr, curve, label=name, **line(number))
        title = f"{count} release{'s' if count > 1 else ''}"
        _name(axis, "false positive rate", "false negative rate", title)
    legend_below(figure, axes[0])
    return figure


def _name(axis: Axes, xlabel: str, ylabel: str, title: str = "") -> None:
    axis.set(xlabel=xlabel, ylabel=ylabel, title=title)


_OURS = "The paper states no δ; 1e-5 and the exact curve are ours."

DRAWINGS: tuple[Drawing, ...] = (
    Drawing(
        "jia-01-densities",
        "Gaussian noise, σ = 1, sensitivity 1: the total variation is an area between the densities (left), "
        "and ε bounds their log ratio but for δ (right). The paper states no δ; 1e-5 is ours.",
        _densities,
    ),
    Drawing(
        "jia-02-testing",
        "Error rates of tests for one record under Gaussian noise with sensitivity 1, and lower bounds; that "
        "from the total variation is sharper in the shaded interval. σ = 1 and δ = 1e-5 are ours.",
        _testing,
    ),
    Drawing(
        "jia-03-accuracy",
        "Largest accuracy of membership attacks on DP-SGD (half of the targets are members) over the noise. "
        "The paper states no δ or noise; 60,000 records are MNIST's, 1e-5 and the exact bound ours.",
        _accuracy,
    ),
    Drawing(
        "jia-05-advantage",
        f"Membership advantage over FPR for a Gaussian release with sensitivity 1, and its bounds. {_OURS}",
        partial(
            _per_sigma,
            "advantage, TPR − FPR",
            bounds.dp_advantage,
            bounds.tv_advantage,
            lambda fpr, tpr: tpr - fpr,
        ),
    ),
    Drawing(
        "jia-06-roc",
        f"ROC curve of attacks on a Gaussian release with sensitivity 1, and its bounds. {_OURS}",
        partial(_per_sigma, "true positive rate", bounds.dp_tpr, bounds.tv_tpr, lambda fpr, tpr: tpr),
    ),
    Drawing(
        "jia-07-ppv",
        "Positive predictive value over FPR for a Gaussian release with σ = 2 and sensitivity 1, and bounds. "
        f"The paper's caption names four σ, its text these four shares of members. {_OURS}",
        _ppv,
    ),
    Drawing(
        "jia-08-log-ratio",
        "Log ratio of the output densities of Laplace noise with b = 1 for inputs 0 and 1: ±ε outside "
        "(0, 1), and smaller inside.",
        _log_ratio,
    ),
    Drawing(
        "jia-09-equal-tv",
        "Trade-off curves of Laplace and Gaussian noise of equal total variation (top), and the same curves "
        "as advantage (bottom, our addition): at every FPR Gaussian noise gives away as much or more.",
        _equal_tv,
    ),
    Drawing(
        "jia-10-composition",
        "Trade-off curves of 1 to 100 releases with a total variation of 0.1 each. The optimal mechanism is "
        "the best case among those of this total variation, and bounds no other one.",
        _composition,
    ),
)
