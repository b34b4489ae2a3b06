"""Events of mechanisms of which only ``(epsilon, delta)``, or that and the total variation, is known.

dp_accounting (0.4.3 to 0.6.0) has no such events, so this module adds them in the same manner. The first
describes exponential mechanisms (``delta = 0``); its worst case is Kairouz, Oh and Viswanath 2015, "The
composition theorem for differential privacy", section 3. The second describes, for example, the staircase
mechanism; its worst case is Ghazi and Issa 2024, "Total variation meets differential privacy", section III-C.
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
