"""Events of mechanisms of which only a bound is known: ``(epsilon, delta)``, total variation, or the range.

dp_accounting (0.4.3 to 0.6.0) has no such events. Their worst cases are atoms of
:mod:`dpsynth.privacy.atoms`. The module imports dp_accounting, so it is imported when an event is made.
"""

from __future__ import annotations

import attr
from dp_accounting import dp_event


@attr.s(frozen=True, slots=True, auto_attribs=True)
class EpsilonDeltaDpEvent(dp_event.DpEvent):
    """A mechanism that is ``(epsilon, delta)``-differentially private under add/remove one record."""

    epsilon: float
    delta: float = 0.0


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ApproxTvDpEvent(dp_event.DpEvent):
    """An ``(epsilon, delta)``-DP mechanism of total variation at most ``tv``, under add/remove one record."""

    epsilon: float
    delta: float
    tv: float


@attr.s(frozen=True, slots=True, auto_attribs=True)
class BoundedRangeDpEvent(dp_event.DpEvent):
    """A mechanism whose privacy losses under add/remove one record lie within an interval of this length.

    For every two neighbours, the largest and the smallest loss of an output differ by at most ``epsilon``.
    See Durfee and Rogers 2019, "Practical differentially private top-k selection with pay-what-you-get
    composition".
    """

    epsilon: float
