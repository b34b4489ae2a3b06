"""The event of a mechanism of which only ``(epsilon, delta)`` is known.

dp_accounting (0.4.3 to 0.6.0) has no such event, so this module adds one in the same manner. It describes
exponential mechanisms (``delta = 0``); its worst case is Kairouz, Oh and Viswanath 2015, "The composition
theorem for differential privacy", section 3. The module imports dp_accounting; :mod:`dpsynth.accounting`
does not import it until an event is needed.
"""

from __future__ import annotations

import attr
from dp_accounting import dp_event


@attr.s(frozen=True, slots=True, auto_attribs=True)
class EpsilonDeltaDpEvent(dp_event.DpEvent):
    """A mechanism that is ``(epsilon, delta)``-differentially private under add/remove one record.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1].

    Examples
    --------
    >>> EpsilonDeltaDpEvent(0.5)
    EpsilonDeltaDpEvent(epsilon=0.5, delta=0.0)
    """

    epsilon: float
    delta: float = 0.0
