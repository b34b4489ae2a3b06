"""Figures 1 to 7 of Ghazi and Issa 2024, "Total variation meets differential privacy".

The text from which this was written lost the parameters of most figures. Each caption says which were chosen
here. The data come from :mod:`dpsynth.research.papers.ghazi_issa`,
:mod:`~dpsynth.accounting.tv_bounds`, :mod:`dpsynth.research.papers.ghazi_issa` and, for exact
references, :class:`~dpsynth.accounting.profile.Profile`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.conversions import largest_tv
from dpsynth.accounting.tv_bounds import laplace_tv, staircase_density, staircase_tv
from dpsynth.report.drawing.style import COLOURS, Drawing, legend_below, line, panels
from dpsynth.research.papers.ghazi_issa import Training, analyses, compose, kairouz
from dpsynth.research.papers.trade_off import Pair, composed_laplace_fnr, fnr, laplace_fnr

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Array = NDArray[np.float64]

REGION = (1.0, 0.1, 0.35)  # epsilon, delta, tv of figures 1 and 2
LAPLACE = ((2.0, 1), (1.0, 3))  # epsilon of one release, releases: the panels of figure 3
PAIR = (1.0, 1 - math.exp(-0.5), 2)  # epsilon, tv, k of figure 4
STAIRCASE_EPSILON = 1.0
STAIRCASE_GAMMAS = ((6, 0.2), (7, 0.8))  # figure, gamma: up to 1/2, and above


def region(epsilon: float, delta: float, tv: float | None, fpr: Array) -> Array:
    """Lower edge of the region of (epsilon, delta)-DP, cut by a total variation unless it is None."""
    pairs = [Pair(epsilon, delta)] + ([] if tv is None else [Pair(0.0, tv)])
    return np.asarray(fnr(pairs, fpr))


def rates(points: int = 801) -> Array:
    """Evenly spaced false positive rates from 0 to 1."""
    return np.linspace(0.0, 1.0, points)


def _regions(edges: dict[str, Array], mark: tuple[float, str] | None = None) -> Figure:
    """Shade the region above the first edge, and draw all."""
    figure, (axis,) = panels(width=3.6, height=3.4)
    fpr = rates()
    _shade(axis, fpr, next(iter(edges.values())))
    for number, (label, edge) in enumerate(edges.items()):
        axis.plot(fpr, edge, label=label, **line(number))
    if mark is not None:
        axis.plot(mark[0], mark[0], "o", color=COLOURS[0], markersize=4)
        arrow = {"arrowstyle": "->", "color": "0.3"}
        axis.annotate(mark[1], (mark[0], mark[0]), (0.02, 0.06), fontsize=8, arrowprops=arrow)
    axis.legend(loc="upper right")
    return figure


def _figure_1() -> Figure:
    epsilon, delta, _ = REGION
    corner = (1 - largest_tv(epsilon, delta)) / 2  # 1 - TV = FPR + FNR
    return _regions(
        {f"({epsilon:g}, {delta:g})-DP": region(epsilon, delta, None, rates())},
        (corner, f"TV = {largest_tv(epsilon, delta):.3f}\nat most"),
    )


def _figure_2() -> Figure:
    epsilon, delta, tv = REGION
    name = f"({epsilon:g}, {delta:g})-DP"
    fpr = rates()
    cut, alone = region(epsilon, delta, tv, fpr), region(epsilon, delta, None, fpr)
    return _regions({f"{name} and TV ≤ {tv:g}": cut, f"{name} alone": alone})


def _figure_3() -> Figure:
    figure, axes = panels(1, 2, width=3.4, height=3.3)
    fpr = rates()
    for axis, (epsilon, k) in zip(axes, LAPLACE, strict=True):
        exact = laplace_fnr(fpr, epsilon) if k == 1 else composed_laplace_fnr(fpr, epsilon, k)
        _shade(axis, fpr, exact)
        axis.plot(fpr, exact, label="Laplace noise, exact", **line(6))
        with_tv = compose(epsilon, 0.0, laplace_tv(1 / epsilon), k)
        axis.plot(fpr, fnr(with_tv, fpr), label="bound from ε and TV", **line(0))
        axis.plot(fpr, fnr(kairouz(epsilon, 0.0, k), fpr), label="bound from ε", **line(1))
        axis.set_title(f"{k} releases, ε = {epsilon:g} each" if k > 1 else f"1 release, ε = {epsilon:g}")
    legend_below(figure, axes[0])
    return figure


def _figure_4() -> Figure:
    figure, axes = panels(1, 2, width=3.9, height=3.9)
    epsilon, tv, k = PAIR
    fpr = rates()
    for axis, count, title in zip(axes, (1, k), ("(a) one mechanism", f"(b) {k} mechanisms"), strict=True):
        pairs = compose(epsilon, 0.0, tv, count)
        _shade(axis, fpr, np.asarray(fnr(pairs, fpr)))
        known = np.asarray(fnr(kairouz(epsilon, 0.0, count), fpr))
        axis.plot(fpr, known, color=COLOURS[2], alpha=0.4, linewidth=4, label="Kairouz et al.")
        for j, pair in enumerate(pairs):
            other = (count - j) % 2
            highest = 1 - pair.delta
            ends = ([0.0, highest * math.exp(-pair.epsilon)], [highest, 0.0])
            label = "Theorem 2, other j" if other else "Theorem 2, j of the parity of k"
            axis.plot(*ends, label=label, **line(other))
            if pair.epsilon > 0:  # the other is its own mirror image: drawn twice, its gaps would be filled
                axis.plot(*ends[::-1], **line(other))
        axis.set_title(title)
    legend_below(figure, axes[1])
    return figure


def _figure_5() -> Figure:
    figure, axes = panels(1, 2, width=3.6, height=3.6)
    fpr = np.concatenate([np.geomspace(1e-5, 0.01, 120), rates()[9:-1]])
    for number, (label, curve) in zip((6, 0, 1, 2, 3, 4), analyses(Training(), fpr).items(), strict=True):
        axes[0].plot(fpr, curve, label=label, **line(number))
        axes[1].plot(fpr, 1 - curve, label=label, **line(number))
    _error_axes(axes[0])
    _guessing(axes[0])
    axes[1].plot(fpr, fpr, color="0.6", linewidth=0.8)
    axes[1].set(xscale="log", yscale="log", xlabel="false positive rate", ylabel="true positive rate")
    axes[1].set(xlim=(1e-5, 1), ylim=(1e-5, 1.2))
    legend_below(figure, axes[0], columns=3)
    return figure


def _staircase(gamma: float) -> Figure:
    figure, (axis,) = panels(width=5.0, height=2.9)
    epsilon = STAIRCASE_EPSILON
    x = np.linspace(-2.5, 3.5, 6001) + 1e-7  # past the jumps
    # centred at 0, and at the sensitivity
    here, shifted = (np.asarray(staircase_density(x - centre, epsilon, gamma)) for centre in (0, 1))
    label = f"TV = {staircase_tv(epsilon, gamma):.4f}"
    axis.fill_between(x, shifted, here, where=x < 0.5, color="0.85", linewidth=0, label=label)
    axis.plot(x, here, label="centred at 0", **line(0))
    axis.plot(x, shifted, label="centred at the sensitivity", **line(1))
    axis.axvline(0.5, color="0.4", linewidth=0.8)
    axis.set(xlim=(-2.5, 3.5), ylim=(0, None), ylabel="density")
    axis.set_xlabel("output, in units of the sensitivity")
    legend_below(figure, axis)
    return figure


def _shade(axis: Axes, fpr: Array, edge: Array) -> None:
    axis.fill_between(fpr, edge, 1 - fpr, color="0.9", linewidth=0)
    _guessing(axis)
    _error_axes(axis)


def _guessing(axis: Axes) -> None:
    axis.plot([0, 1], [1, 0], color="0.6", linewidth=0.8)


def _error_axes(axis: Axes) -> None:
    axis.set(xlabel="false positive rate", ylabel="false negative rate", xlim=(0, 1), ylim=(0, 1))
    axis.set_aspect("equal")


_LOST = "The paper's parameters are lost to us;"

DRAWINGS: tuple[Drawing, ...] = (
    Drawing(
        "ghazi-issa-01-region",
        "Errors that a test for one record can have under (ε, δ)-DP (shaded, up to guessing), and the "
        f"largest total variation that this allows. {_LOST} ε = 1 and δ = 0.1 are ours.",
        _figure_1,
    ),
    Drawing(
        "ghazi-issa-02-region-tv",
        "The region of (ε, δ)-DP without the corner that a bound on the total variation cuts off (shaded: "
        f"what is left). {_LOST} ε = 1, δ = 0.1 and TV = 0.35 are ours.",
        _figure_2,
    ),
    Drawing(
        "ghazi-issa-03-laplace",
        "Trade-off curve of Laplace noise and the bounds from its ε with and without its total variation, "
        f"for one release and for three. {_LOST} ε = 2 and three times 1 are ours, as is the second panel.",
        _figure_3,
    ),
    Drawing(
        "ghazi-issa-04-composition",
        "Lines that bound the errors of a test after one and two mechanisms with ε = 1 and "
        f"TV = 1 − e^(−1/2), that of Laplace noise, and the bound from ε alone. {_LOST} these are ours. "
        "Lines for the j that Kairouz et al. lack cut off most.",
        _figure_4,
    ),
    Drawing(
        "ghazi-issa-05-training",
        "DP-SGD by six analyses: errors of a test for one record (left), and true positives at low false "
        f"positive rates (right). {_LOST} noise multiplier 1.3, batches of 256 of 60,000 and 3,516 steps are "
        "ours. With the TV the bound beats Kairouz et al. everywhere, Abadi et al. at middle rates only; the "
        "exact curve is our addition, and the limit is no bound.",
        _figure_5,
    ),
    *(
        Drawing(
            f"ghazi-issa-{number:02}-staircase",
            "Staircase noise on two neighbouring tables, with ε = 1 and upper steps that fill a share "
            f"γ = {gamma:g} of the sensitivity; shaded: its total variation. {_LOST} both are ours.",
            partial(_staircase, gamma),
        )
        for number, gamma in STAIRCASE_GAMMAS
    ),
)
