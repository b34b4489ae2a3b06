"""Generators that a study compares, and the cost of their restarts together.

Pedersen (2022), section 3.4.1, fits each generator several times and keeps the synthetic table with the most
positive records. Choosing looks at every table. So the cost is that of all fits, composed, and not of the one
that was kept, which Pedersen (2022) states. Both ways stand here side by side. Restarts may each have the
whole epsilon (*unpaid*, with the true cost beside it) or share it (*paid*).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpsynth.privacy.events import gaussian_event
from dpsynth.privacy.gaussian_loss import analytic_sigma
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.profile import Profile
from dpsynth.research.replications.protocol import Protocol
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.studies import Studies
from dpsynth.synthesis.wgan_gp import WganOptions

#: the records themselves, in place of a synthetic table
REAL = "real"
HEALTHGAN = "HealthGAN"


@dataclass(frozen=True)
class Arm:
    """One generator, fitted several times to each training part. Its name is unique in a study.

    ``options`` are those of each fit, None for the records themselves. ``epsilon`` is that of the whole arm
    if its restarts share it, of each fit otherwise. ``also`` are further parts of each fit.
    """

    name: str
    options: FitOptions | None = None
    epsilon: float | None = None
    restarts: int = 1
    shared: bool = False
    also: tuple[Studies, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether it is a private generator whose fits each have the whole epsilon."""
        return self.epsilon is not None and not self.shared


def arms_of(protocol: Protocol, delta: float) -> tuple[Arm, ...]:
    """Return the arms that a protocol compares, the records first.

    ``delta`` is that of a shared epsilon.

    Examples
    --------
    >>> told = Protocol(name="a", title="A", citation="c", question="q", dataset="flchain", restarts=2,
    ...                 epsilons=[3], baseline={})
    >>> [(arm.name, arm.restarts) for arm in arms_of(told, 1e-5)]
    [('real', 1), ('HealthGAN', 2), ('ε = 3', 2), ('ε = 3 shared', 2)]
    """
    found = [Arm(REAL)]
    if protocol.baseline is not None:
        steps = protocol.baseline.training_steps
        thesis = WganOptions(epsilon=None, steps=steps)
        found.append(Arm(HEALTHGAN, thesis, None, protocol.restarts))

    def private(epsilon: float) -> FitOptions:
        return protocol.model.model_copy(update={"epsilon": epsilon, "random_state": None})

    also = (Studies(protocol.studies),) if protocol.studies else ()

    for epsilon in protocol.epsilons:
        name = f"ε = {epsilon:.12g}"
        found.append(Arm(name, private(epsilon), epsilon, protocol.restarts, also=also))
        if protocol.restarts > 1:
            each = epsilon_of_each(epsilon, delta, protocol.restarts)
            found.append(
                Arm(f"{name} shared", private(each), epsilon, protocol.restarts, shared=True, also=also)
            )
    return tuple(found)


def epsilon_of_each(epsilon: float, delta: float, restarts: int) -> float:
    """Return the epsilon of each of several Gaussian mechanisms that together have ``epsilon``, at one delta.

    The noise has sqrt(restarts) times the standard deviation of one (Gaussian mechanisms compose exactly). A
    fit with critic's steps is no single Gaussian mechanism. The cost of its restarts is composed from their
    ledgers afterwards, and the tables state this cost.

    Examples
    --------
    >>> round(epsilon_of_each(3.0, 1e-5, 2), 3), epsilon_of_each(3.0, 1e-5, 1)
    (2.031, 3.0)
    """
    if restarts == 1:
        return epsilon
    sigma = analytic_sigma(epsilon, delta) * math.sqrt(restarts)
    return Profile([gaussian_event(sigma)]).epsilon(delta)


def composed(ledgers: Sequence[Ledger], delta: float) -> float:
    """Return the epsilon of several fits of one training table together, at one delta.

    Restarts of one stage each and of the same noise, which was fixed before anything was read, are composed
    on one privacy-loss distribution. Others (with a private number of records, on which the noise depends)
    add up, each at its part of delta.
    """
    if any(ledger.not_private for ledger in ledgers):
        return math.inf
    planned = {tuple(repr(entry.event) for entry in ledger.entries) for ledger in ledgers}
    if len(planned) == 1 and all(len(ledger.stages) == 1 for ledger in ledgers):
        events = [entry.event for ledger in ledgers for entry in ledger.entries]
        return Profile(events, adjacency=ledgers[0].adjacency).epsilon(delta)
    return math.fsum(ledger.epsilon(delta / len(ledgers)) for ledger in ledgers)
