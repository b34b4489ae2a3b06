"""Numerical composition by privacy-loss distributions (PLDs).

Koskela, Jälkö and Honkela 2020, "Computing tight differential privacy guarantees using FFT"; the grid is
made pessimistic by connecting the dots (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, "Connect the
dots: tighter discrete approximations of privacy loss distributions"). dp_accounting's PLD library does the
work; its ``PLDAccountant`` is not used because it has no (epsilon, delta) events, and a fixed grid.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dpsynth.accounting.atoms import Atom, GaussianAtom, NormalForm
from dpsynth.accounting.gaussian import GaussianLoss

#: Deltas below this are lost in the rounding of the FFT (about 1e-16 a point) and in dp_accounting's
#: truncation of tails (1e-15 a composition), so no claim is made there.
DELTA_FLOOR = 1e-12
#: The coarsest grid used where accuracy asks for no finer one.
_INTERVAL = 2.0**-13
#: Relative excess of the variance of the loss that the grid may cause.
_EXCESS = 5e-4
#: Most points of the grid for the composed loss and for one mechanism.
_COMPOSED_POINTS, _SINGLE_POINTS = 2**21, 2**18
#: A loss that needs a grid coarser than this is no guarantee: epsilon is then in the hundreds of thousands.
_LARGEST_INTERVAL = 1.0


class NoPrivacy:
    """The loss of a release without a guarantee."""

    def delta(self, epsilon: float) -> float:
        """Always 1."""
        return 1.0

    def epsilon(self, delta: float) -> float:
        """Infinite, but for ``delta`` = 1."""
        return 0.0 if delta == 1.0 else math.inf

    def deltas(self, epsilons: list[float]) -> list[float]:
        """Always 1."""
        return [1.0] * len(epsilons)


class NumericLoss:
    """The composed loss of atoms that have no closed form.

    Parameters
    ----------
    form : NormalForm
        What is composed.
    interval : float
        Grid spacing of the privacy loss, a power of two so that all grid points are exact.
    """

    def __init__(self, form: NormalForm, interval: float) -> None:
        self._pld = _composed(form, interval)
        exact = [(atom.pure_epsilon, atom.pure_delta, count) for atom, count in form.atoms]
        # Basic composition: a bounded loss stays bounded, which the FFT's floor would hide at small deltas.
        self._pure_epsilon = math.inf if form.mu else sum(epsilon * count for epsilon, _, count in exact)
        survival = sum(count * math.log1p(-delta) for _, delta, count in exact)
        self._pure_delta = max(0.0, -math.expm1(survival))

    def delta(self, epsilon: float) -> float:
        """Smallest delta at ``epsilon`` (at least 0), at least :data:`DELTA_FLOOR` unless exactly known."""
        return self.deltas([epsilon])[0]

    def deltas(self, epsilons: list[float]) -> list[float]:
        """:meth:`delta` at each of an ascending list of epsilons, in one pass over the grid."""
        with np.errstate(over="ignore", under="ignore"):
            values = self._pld.get_delta_for_epsilon(list(epsilons))
        values = np.clip(values, DELTA_FLOOR, 1.0)
        bounded = np.asarray(epsilons) >= self._pure_epsilon
        return [float(v) for v in np.where(bounded, np.minimum(values, self._pure_delta), values)]

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon at ``delta``; infinite below :data:`DELTA_FLOOR` unless exactly known."""
        bound = self._pure_epsilon if delta >= self._pure_delta else math.inf
        if delta < DELTA_FLOOR:
            return bound
        try:
            return min(bound, float(self._pld.get_epsilon_for_delta(delta)))
        except OverflowError:
            # dp_accounting scans the losses from above and stops at epsilon; exp(-loss) overflows only
            # at a loss below -709, so everything above 0 was passed and epsilon is 0.
            return 0.0


def loss_of(form: NormalForm, coarseness: float = 1.0) -> GaussianLoss | NumericLoss | NoPrivacy:
    """Return the composed privacy loss of a normal form.

    Parameters
    ----------
    form : NormalForm
        What is composed.
    coarseness : float
        1 for the answer that is reported; larger for a quicker one that is more pessimistic.

    Examples
    --------
    >>> loss_of(NormalForm(mu=1.0, atoms=(), private=True))
    GaussianLoss(mu=1.0)
    """
    if not form.private:
        return NoPrivacy()
    try:
        return _finite_loss_of(form, coarseness)
    except ValueError as problem:
        # With next to no noise dp_accounting's own grid of a sampled Gaussian loses its order to rounding.
        # Saying that nothing is known is on the private side.
        if "non-increasing" not in str(problem):
            raise
        return NoPrivacy()


def _finite_loss_of(form: NormalForm, coarseness: float) -> GaussianLoss | NumericLoss | NoPrivacy:
    if not form.atoms:
        return GaussianLoss(form.mu)
    interval = grid_interval(form, coarseness)
    if interval > _LARGEST_INTERVAL or any(700 < atom.pure_epsilon < math.inf for atom, _ in form.atoms):
        return NoPrivacy()
    return NumericLoss(form, interval)


def grid_interval(form: NormalForm, coarseness: float = 1.0) -> float:
    """Choose the grid spacing, a power of two, for a normal form that has atoms.

    Connecting the dots adds at most about ``interval**2 / 6`` to the variance of each application's loss, and
    rounding an (epsilon, delta) event up to the grid on average ``epsilon interval``; both are kept below a
    small part of the variance of the whole. The grid is coarsened again where it would be too long.
    """
    sizes = [(atom.size(), count) for atom, count in _all_atoms(form)]
    variance = sum(count * size.std**2 for size, count in sizes)
    interval = _INTERVAL
    if variance > 0.0:
        interval = min(interval, math.sqrt(6 * _EXCESS * variance / sum(count for _, count in sizes)))
        rounded = sum(2 * size.std * count for size, count in sizes if size.rounded)
        if rounded > 0.0:
            interval = min(interval, 4 * _EXCESS * variance / rounded)
    reach = sum(count * size.mean + 20 * math.sqrt(count) * size.std + size.width for size, count in sizes)
    longest = max(size.width for size, _ in sizes)
    interval = max(interval * coarseness, reach / _COMPOSED_POINTS, longest / _SINGLE_POINTS, 2.0**-60)
    return 2.0 ** math.floor(math.log2(interval))


def _all_atoms(form: NormalForm) -> tuple[tuple[Atom, int], ...]:
    joint: tuple[tuple[Atom, int], ...] = ((GaussianAtom(1 / form.mu), 1),) if form.mu else ()
    return joint + form.atoms


@functools.lru_cache(maxsize=32)
def _repeated(atom: Atom, count: int, interval: float) -> Any:
    with np.errstate(all="ignore"):  # dp_accounting takes logarithms of probabilities that may be 0
        pld = atom.pld(interval)
        return pld if count == 1 else pld.self_compose(count)


@functools.lru_cache(maxsize=8)
def _composed(form: NormalForm, interval: float) -> Any:
    plds = [_repeated(atom, count, interval) for atom, count in _all_atoms(form)]
    return functools.reduce(lambda one, other: one.compose(other), plds)
