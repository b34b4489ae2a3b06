"""Events of mechanisms of which only a bound is known: ``(epsilon, delta)``, total variation, or the range.

dp_accounting (0.4.3 to 0.6.0) has no such events, so this module adds them in the same manner. The worst case
of the first is Kairouz, Oh and Viswanath 2015, "The composition theorem for differential privacy", section 3.
The second describes, for example, the staircase mechanism; its worst case is Ghazi and Issa 2024, "Total
variation meets differential privacy", section III-C. The third describes exponential mechanisms; its worst
case is told in :class:`dpsynth.accounting.atoms.BoundedRangeAtom`.
The module imports dp_accounting; :mod:`dpsynth.accounting` does not import it until an event is needed.
"""

from __future__ import annotations

import attr
from dp_accounting import dp_event


@attr.s(frozen=True, slots=True, auto_attribs=True)
class EpsilonDeltaDpEvent(dp_event.DpEvent):
    """A mechanism that is ``(epsilon, delta)``-differentially private under add/remove one record.

    ``epsilon`` is at least 0, ``delta`` in [0, 1].
    """

    epsilon: float
    delta: float = 0.0


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ApproxTvDpEvent(dp_event.DpEvent):
    """An ``(epsilon, delta)``-differentially private mechanism whose total variation is at most ``tv``.

    All three under add/remove one record.

    ``epsilon`` is at least 0, ``delta`` and ``tv`` are in [0, 1].
    """

    epsilon: float
    delta: float
    tv: float


@attr.s(frozen=True, slots=True, auto_attribs=True)
class BoundedRangeDpEvent(dp_event.DpEvent):
    """A mechanism whose privacy losses under add/remove one record lie within an interval of this length.

    For every two neighbours, the largest and the smallest loss of an output differ by at most ``epsilon``, at
    least 0 (Durfee and Rogers 2019, "Practical differentially private top-k selection with pay-what-you-get
    composition"). Such a mechanism is (epsilon, 0)-differentially private, and costs less.
    """

    epsilon: float
