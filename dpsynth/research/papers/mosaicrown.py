"""MOSAICrOWN deliverable D5.3, "Identifiability bounds" (Bernau et al.): belief and advantage.

The adversary A_DI has both tables: D with the record, and D' without it or with another in its place. It sees
every release, and keeps a Bayesian belief in D (Lemma 1). Epsilon bounds the belief (Theorem 2, rho_beta, in
:mod:`dpsynth.accounting.conversions`). The noise bounds how often it leads to the right guess (Theorem 3,
rho_a). Any number of Gaussian releases is one with ``mu**2 = steps / noise_multiplier**2``, so the advantage
``2 Phi(mu / 2) - 1`` is exact under composition. Sections 2.1 and 4.3 bound both from the Renyi divergence of
the releases, which is looser than the exact curve of
:class:`~dpsynth.accounting.gaussian.GaussianLoss`.

The noise of formula (2.1) is that of Dwork and Roth 2014, Theorem A.1. It is too much for small epsilon and
too little for large ones (beyond 8.8 at delta = 1e-6). :mod:`dpsynth.accounting.gaussian` has the least
noise. Arguments out of range or NaN raise InputError by name.

Figures 3.2, 4.1 and 4.2 are of one number, 0 for table D and 1 for D', published with the noise of formula
(2.1). Figure 3.1 is a diagram of a proof, and those of chapter 5 show training runs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.conversions import epsilon_of_belief, posterior_belief, tv_of_mu
from dpsynth.accounting.gaussian import GaussianLoss, analytic_sigma
from dpsynth.checks import in_range, inside, whole
from dpsynth.report.drawing.style import COLOURS, Drawing, legend_below, line, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class OutOfRangeWarning(UserWarning):
    """A formula was used outside the range for which it is proved."""


def classical_sigma(epsilon: float, delta: float) -> float:
    """Gaussian noise std of formula (2.1): ``sqrt(2 ln(1.25 / delta)) / epsilon``, for sensitivity 1.

    ``epsilon`` may be infinite, ``delta`` lies in [0, 1). At 0 of either no finite noise suffices. Proved for
    epsilon below 1: OutOfRangeWarning for others, where
    :func:`~dpsynth.accounting.gaussian.analytic_sigma` is right.
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    delta = in_range("delta", delta, 0.0, 1.0, high_open=True)
    if epsilon >= 1.0:
        warnings.warn(
            f"classical_sigma is proved for epsilon < 1 only, not {epsilon:g}. Use analytic_sigma",
            OutOfRangeWarning,
            stacklevel=2,
        )
    if delta == 0.0 or epsilon == 0.0:
        return math.inf
    return classical_factor(delta) / epsilon


def classical_factor(delta: float) -> float:
    """Factor ``sqrt(2 ln(1.25 / delta))`` of formula (2.1), for a delta inside (0, 1)."""
    delta = inside("delta", delta, 0.0, 1.0)
    return math.sqrt(2 * (math.log(1.25) - math.log(delta)))  # 1.25 / delta overflows for the least deltas


def advantage(epsilon: float, delta: float) -> float:
    """Advantage rho_a of A_DI against one Gaussian release with the noise of formula (2.1) (Theorem 3).

    It is ``2 Phi(epsilon / (2 sqrt(2 ln(1.25 / delta)))) - 1``: success rate scaled to 0 for guessing, 1 for
    certainty, under equal prior probabilities. It is no bound if only epsilon and delta are known. The bound
    is :func:`exact_advantage`, for the least noise that is (epsilon, delta)-DP.
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    return tv_of_mu(epsilon / classical_factor(delta))


def epsilon_of_advantage(advantage: float, delta: float) -> float:
    """Epsilon at which rho_a is ``advantage``: the inverse of :func:`advantage`, infinite at 1."""
    from scipy.special import erfinv

    advantage = in_range("advantage", advantage, 0.0, 1.0)
    # epsilon = 2 sqrt(2 ln(1.25 / delta)) Phi^-1((rho_a + 1) / 2); the printed inverse lacks the first 2.
    return classical_factor(delta) * math.sqrt(8) * float(erfinv(advantage))


def exact_advantage(epsilon: float, delta: float) -> float:
    """Largest advantage that (epsilon, delta)-DP allows a Gaussian release: Theorem 3, least noise."""
    delta = inside("delta", delta, 0.0, 1.0)
    sigma = analytic_sigma(epsilon, delta)
    return tv_of_mu(1 / sigma if sigma > 0.0 else math.inf)


@dataclass(frozen=True)
class RdpGuarantee:
    """Guarantee of Gaussian releases from one Renyi order.

    ``epsilon``, of (epsilon, delta)-DP, is ``epsilon_rdp + ln(1 / delta) / (order - 1)``. It is least at the
    Renyi order alpha ``order``. ``epsilon_rdp`` is the Renyi divergence of that order over all releases.
    """

    epsilon: float
    delta: float
    order: float
    epsilon_rdp: float

    @property
    def advantage(self) -> float:
        """Advantage rho_a of A_DI: exact, because it depends on the noise alone."""
        return advantage_rdp(self.epsilon_rdp, self.order)

    def belief(self, prior: float = 0.5) -> float:
        """Bound rho_beta on the belief."""
        return posterior_belief(self.epsilon, prior)


def rdp_guarantee(
    noise_multiplier: float, delta: float, steps: int = 1, *, integer_orders: bool = False
) -> RdpGuarantee:
    """Compose ``steps`` Gaussian releases by Renyi differential privacy (section 4.3), from the best order.

    Parameters
    ----------
    noise_multiplier : float
        Noise std over sensitivity in each release, greater than 0 and finite.
    delta : float
        Inside (0, 1), for all releases together.
    steps : int
        At least 1.
    integer_orders : bool
        Whether only whole orders from 2 upwards are tried, as by accountants of the time.
    """
    z = inside("noise_multiplier", noise_multiplier, 0.0, math.inf)
    room = math.sqrt(-math.log(inside("delta", delta, 0.0, 1.0)))
    # Section 2.1: the Renyi divergence is order * c, c = steps / (2 z^2); the root of c does not underflow.
    root = math.sqrt(whole("steps", steps)) / z / math.sqrt(2)
    order = min(1 + room / root, 1e300) if root > 0.0 else 1e300
    if not integer_orders:
        # order * c + ln(1 / delta) / (order - 1) is least at the order 1 + sqrt(ln(1 / delta) / c)
        return RdpGuarantee(root * (root + 2 * room), delta, order, root * (root + room))
    below = max(2.0, float(math.floor(order)))
    # Convex in the order, so that the best whole one is next to the best real one.
    candidates = ((a * root * root + room * room / (a - 1), a) for a in (below, below + 1))
    epsilon, order = min(candidates)
    return RdpGuarantee(epsilon, delta, order, order * root * root)


def advantage_rdp(epsilon_rdp: float, order: float) -> float:
    """Advantage rho_a against Gaussian releases that compose to this Renyi divergence (section 4.3).

    It is ``2 Phi(sqrt(epsilon_rdp / (2 order))) - 1``, which is ``2 Phi(mu / 2) - 1``. ``order`` is at least
    1.
    """
    epsilon_rdp, order = _divergence(epsilon_rdp, order)
    return tv_of_mu(2 * math.sqrt(epsilon_rdp / order / 2))


def _divergence(epsilon_rdp: float, order: float) -> tuple[float, float]:
    epsilon_rdp = in_range("epsilon_rdp", epsilon_rdp, 0.0, math.inf)
    return epsilon_rdp, in_range("order", order, 1.0, math.inf, high_open=True)


def belief_rdp(epsilon_rdp: float, order: float, delta: float, prior: float = 0.5) -> float:
    """Bound rho_beta on the belief from a Renyi divergence over all releases, of any mechanism (section 4.3).

    ``order`` is at least 1 and finite. At 1 there is no bound.
    """
    epsilon_rdp, order = _divergence(epsilon_rdp, order)
    room = -math.log(inside("delta", delta, 0.0, 1.0))
    # (4.8) as printed has the wrong sign before ln(1 / delta) and lacks the 1 / (1 + e^-...) of (4.7).
    return posterior_belief(epsilon_rdp + (room / (order - 1) if order > 1.0 else math.inf), prior)


def noise_for_belief_rdp(
    belief: float, delta: float, steps: int = 1, *, prior: float = 0.5, integer_orders: bool = False
) -> float:
    """Least noise multiplier of ``steps`` Gaussian releases whose Renyi bound on the belief is ``belief``.

    ``belief`` lies between the prior probability, for infinite noise, and 1, for none. Other parameters are
    those of :func:`rdp_guarantee`, which has the bounds that the noise reaches.

    Examples
    --------
    The document's 30 epochs with belief 0.9 at delta 0.01 (advantage 0.2562 there):

    >>> z = noise_for_belief_rdp(0.9, 0.01, 30)
    >>> round(z, 4), round(rdp_guarantee(z, 0.01, 30).advantage, 5)
    (8.3799, 0.25619)
    """
    epsilon = epsilon_of_belief(belief, prior)
    room, steps = math.sqrt(-math.log(inside("delta", delta, 0.0, 1.0))), whole("steps", steps)
    if epsilon == 0.0:
        return math.inf
    if math.isinf(epsilon):
        return 0.0
    # The positive root of c + 2 sqrt(c ln(1 / delta)) = epsilon in sqrt(c), without cancellation.
    root = epsilon / (room + math.sqrt(room * room + epsilon))
    if integer_orders:
        below = max(2.0, float(math.floor(min(1 + room / root, 1e300))))
        root = math.sqrt(max((epsilon - room * room / (a - 1)) / a for a in (below, below + 1)))
    z = math.sqrt(steps) / root / math.sqrt(2)
    while rdp_guarantee(z, delta, steps, integer_orders=integer_orders).epsilon > epsilon:
        z = math.nextafter(z, math.inf)  # rounding must not end on the other side
    return z


Curve = NDArray[np.float64]

DELTA = 1e-6
EPSILONS = (6.0, 3.0, 1.0)  # of figure 3.2; figure 4.1 has the first two
DELTAS = (1e-1, 1e-2, 1e-4, 1e-6)  # of figure 4.2
LARGEST_EPSILON = 10.0
_COLOURS = {"D": COLOURS[1], "D'": COLOURS[0]}  # red and blue in the document


def noise(epsilon: float, delta: float = DELTA) -> float:
    """Noise std of formula (2.1), also for epsilon of 1 and more, where the document uses it too."""
    return classical_factor(delta) / epsilon


def density(points: Curve, centre: float, sigma: float) -> Curve:
    """Normal density at ``points``."""
    return np.exp(-(((points - centre) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))


def belief_in_d(points: Curve, sigma: float) -> Curve:
    """Posterior belief in D after a release at each of ``points``, with prior probability 1/2 (Lemma 1)."""
    # log density of D' over that of D: (r^2 - (r - 1)^2) / (2 sigma^2)
    return 1 / (1 + np.exp((2 * points - 1) / (2 * sigma * sigma)))


def error_rate(sigma: float) -> float:
    """Probability that A_DI chooses the wrong table: one shaded area of figure 4.1."""
    return math.erfc(1 / (2 * sigma) / math.sqrt(2)) / 2


def beliefs_exceeded(epsilons: Sequence[float], delta: float) -> Curve:
    """Belief that is exceeded with probability delta under the noise of formula (2.1)."""
    losses = [GaussianLoss(1 / noise(epsilon, delta)).quantile(delta) for epsilon in epsilons]
    return np.array([posterior_belief(loss) for loss in losses])


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
        for centre in (0.0, 1.0):
            left.plot(points, density(points, centre, sigma), **line(i))
        label = f"ε = {epsilon:g}, noise std {sigma:.2f}"
        right.plot(points, belief_in_d(points, sigma), label=label, **line(i))
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
            wrong = (points >= 0.5) == (chosen == "D'")
            label = f"error: from {name}, {chosen} chosen"
            shaded = axis.fill_between(points, curve, where=wrong, hatch=hatch, label=label, linewidth=0)
            shaded.set(facecolor="none", edgecolor=_COLOURS[chosen])
        _regions(axis, -5.0, 6.0, 0.49)
        axis.set(xlabel="released number r", ylabel="probability density", ylim=(0.0, 0.53))
        axis.set_title(f"({panel}) ε = {epsilon:g}: advantage {1 - 2 * error_rate(sigma):.3f}")
    legend_below(figure, axes[0], columns=2)
    return figure


def _draw_bounds() -> Figure:
    figure, (first, second, third) = panels(1, 3, width=3.0)
    epsilons = np.linspace(0.0, LARGEST_EPSILON, 201).tolist()
    wide: dict[str, Any] = {"color": "black", "linewidth": 3.5, "alpha": 0.3}
    first.plot(epsilons, [posterior_belief(e) for e in epsilons], label="bound ρ$_β$, every δ", **wide)
    for i, delta in enumerate(DELTAS):
        label = f"δ = 10$^{{{math.log10(delta):.0f}}}$"
        first.plot(epsilons[1:], beliefs_exceeded(epsilons[1:], delta), label=label, **line(i))
        second.plot(epsilons, [advantage(e, delta) for e in epsilons], label=label, **line(i))
        third.plot(epsilons, [exact_advantage(e, delta) for e in epsilons], label=label, **line(i))
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
