"""Figures of MOSAICrOWN deliverable D5.3, "Identifiability bounds": 3.2, 4.1 and 4.2.

One number is released, 0 for table D and 1 for its neighbour D', with the Gaussian noise of formula (2.1).
Figure 3.1 is a diagram of a proof, and those of chapter 5 show training runs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.conversions import posterior_belief
from dpsynth.accounting.gaussian import GaussianLoss
from dpsynth.report.drawing.style import COLOURS, Drawing, legend_below, line, panels
from dpsynth.research.papers.mosaicrown.identifiability import (
    OutOfRangeWarning,
    advantage,
    classical_sigma,
    exact_advantage,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve = NDArray[np.float64]

DELTA = 1e-6
EPSILONS = (6.0, 3.0, 1.0)  # of figure 3.2; figure 4.1 has the first two
DELTAS = (1e-1, 1e-2, 1e-4, 1e-6)  # of figure 4.2
LARGEST_EPSILON = 10.0
_COLOURS = {"D": COLOURS[1], "D'": COLOURS[0]}  # red and blue in the document


def noise(epsilon: float, delta: float = DELTA) -> float:
    """Noise std of formula (2.1), also for epsilon of 1 and more, where the document uses it too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRangeWarning)
        return classical_sigma(epsilon, delta)


def density(points: Curve, centre: float, sigma: float) -> Curve:
    """Normal density at ``points``."""
    return np.exp(-(((points - centre) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))


def belief_in_d(points: Curve, sigma: float) -> Curve:
    """Posterior belief in D after a release at each of ``points``, from a prior of 1/2 (Lemma 1)."""
    # log density of D' over that of D: (r^2 - (r - 1)^2) / (2 sigma^2)
    return 1 / (1 + np.exp((2 * points - 1) / (2 * sigma * sigma)))


def error_rate(sigma: float) -> float:
    """Probability that A_DI chooses the wrong table: one shaded area of figure 4.1."""
    return math.erfc(1 / (2 * sigma) / math.sqrt(2)) / 2


def beliefs(epsilons: Sequence[float]) -> Curve:
    """Bound rho_beta along epsilon."""
    return np.array([posterior_belief(epsilon) for epsilon in epsilons])


def beliefs_exceeded(epsilons: Sequence[float], delta: float) -> Curve:
    """Belief that is exceeded with probability delta under the noise of formula (2.1)."""
    losses = [GaussianLoss(1 / noise(epsilon, delta)).quantile(delta) for epsilon in epsilons]
    return np.array([posterior_belief(loss) for loss in losses])


def advantages(epsilons: Sequence[float], delta: float) -> Curve:
    """Bound rho_a along epsilon, for the noise of formula (2.1)."""
    return np.array([advantage(epsilon, delta) for epsilon in epsilons])


def exact_advantages(epsilons: Sequence[float], delta: float) -> Curve:
    """Advantage along epsilon, for the least noise that is (epsilon, delta)-DP."""
    return np.array([exact_advantage(epsilon, delta) for epsilon in epsilons])


def _regions(axis: Axes, low: float, high: float, height: float) -> None:
    for name, start, end in (("D", low, 0.5), ("D'", 0.5, high)):
        axis.axvspan(start, end, color=_COLOURS[name], alpha=0.1, linewidth=0)
        edge, align = (low, "left") if name == "D" else (high, "right")
        text = f" A$_{{DI}}$ chooses {name} "
        axis.text(edge, height, text, fontsize=8, ha=align, va="center", color=_COLOURS[name])
    axis.axvline(0.5, color="black", linewidth=0.8)
    axis.set_xlim(low, high)


def _draw_decision() -> Figure:
    figure, (left, right) = panels(1, 2)
    points = np.linspace(-7.0, 8.0, 601)
    for i, epsilon in enumerate(EPSILONS):
        sigma = noise(epsilon)
        for axis, curve in (
            (left, density(points, 0.0, sigma)),
            (left, density(points, 1.0, sigma)),
            (right, belief_in_d(points, sigma)),
        ):
            label = f"ε = {epsilon:g}, noise std {sigma:.2f}" if axis is right else None
            axis.plot(points, curve, label=label, **line(i))
    left.annotate("D", (0.0, 0.46), ha="right")
    left.annotate("D'", (1.0, 0.46), ha="left")
    left.set(title="(a) density of the release", ylabel="probability density", ylim=(0.0, 0.53))
    left.set_xlim(-7.0, 8.0)
    right.set(title="(b) posterior belief", ylabel="belief in D", ylim=(0.0, 1.2))
    right.set_yticks(np.linspace(0.0, 1.0, 6))
    _regions(right, -7.0, 8.0, 1.1)
    for axis in (left, right):
        axis.set_xlabel("released number r")
    legend_below(figure, right, columns=3)
    return figure


def _draw_errors() -> Figure:
    figure, axes = panels(1, 2)
    points = np.linspace(-5.0, 6.0, 601)
    for axis, panel, epsilon in zip(axes, "ab", EPSILONS[:2], strict=True):
        sigma = noise(epsilon)
        for name, centre, chosen, dash, hatch in (
            ("D", 0.0, "D'", "-", "\\" * 4),
            ("D'", 1.0, "D", "--", "////"),
        ):
            curve = density(points, centre, sigma)
            axis.plot(points, curve, label=f"released from {name}", color=_COLOURS[name], linestyle=dash)
            axis.fill_between(
                points,
                curve,
                where=(points >= 0.5) == (chosen == "D'"),
                facecolor="none",
                edgecolor=_COLOURS[chosen],
                hatch=hatch,
                linewidth=0,
                label=f"error: from {name}, {chosen} chosen",
            )
        _regions(axis, -5.0, 6.0, 0.49)
        axis.set(xlabel="released number r", ylabel="probability density", ylim=(0.0, 0.53))
        axis.set_title(f"({panel}) ε = {epsilon:g}: advantage {1 - 2 * error_rate(sigma):.3f}")
    legend_below(figure, axes[0], columns=2)
    return figure


def _draw_bounds() -> Figure:
    figure, (first, second, third) = panels(1, 3, width=3.0)
    epsilons = np.linspace(0.0, LARGEST_EPSILON, 201).tolist()
    wide: dict[str, Any] = {"color": "black", "linewidth": 3.5, "alpha": 0.3}
    first.plot(epsilons, beliefs(epsilons), label="bound ρ$_β$, every δ", **wide)
    for i, delta in enumerate(DELTAS):
        label = f"δ = 10$^{{{math.log10(delta):.0f}}}$"
        first.plot(epsilons[1:], beliefs_exceeded(epsilons[1:], delta), label=label, **line(i))
        second.plot(epsilons, advantages(epsilons, delta), label=label, **line(i))
        third.plot(epsilons, exact_advantages(epsilons, delta), label=label, **line(i))
    first.set(title="(a) belief, noise (2.1)", ylabel="posterior belief", ylim=(0.49, 1.01), xlim=(0.0, 6.0))
    second.set(title="(b) advantage, noise (2.1)", ylabel="advantage ρ$_a$")
    third.set(title="(c) advantage, least noise", ylabel="advantage")
    for axis in (second, third):
        axis.set(xlim=(0.0, LARGEST_EPSILON), ylim=(0.0, 1.0))
    for axis in (first, second, third):
        axis.set_xlabel("ε")
    legend_below(figure, first, columns=5)
    return figure


DRAWINGS: tuple[Drawing, ...] = (
    Drawing(
        "mosaicrown-3-2-decision",
        "A number, 0 for table D and 1 for D', released with Gaussian noise of formula (2.1): its densities, "
        "and the belief in D of an adversary who knows both tables. A smaller ε moves the belief, not the "
        "decision at 1/2. ε = 6, 3, 1 and δ = 1e-6 are ours.",
        _draw_decision,
    ),
    Drawing(
        "mosaicrown-4-1-errors",
        "The same release at δ = 1e-6 for ε = 6 (left) and 3 (right), as in the document; the densities are "
        "not scaled by the prior. The hatched areas are the adversary's two error rates; the advantage is 1 "
        "minus their sum.",
        _draw_errors,
    ),
    Drawing(
        "mosaicrown-4-2-bounds",
        "Bounds on belief and advantage against ε for one Gaussian release. (a) The bound ρ_β, and the "
        "belief that is passed with probability δ; (b) ρ_a; both for noise (2.1), proved for ε < 1 only. "
        "(c) For the least noise that is (ε, δ)-DP, which we add. The four δ are ours.",
        _draw_bounds,
    ),
)
