"""The result of an attack, beside the proved bound and the result of a baseline attack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate, sure_end
from dpsynth.files.storage import finite

Floats = NDArray[np.float64]


#: what is measured: right guesses in [0, 1] from even odds; true minus false positive rate; the share of
#: members named at a false positive rate; total variation; epsilon; posterior belief; the rate of an attack
#: on a table; the share of runs whose belief passes a limit
Measure = Literal["accuracy", "advantage", "tpr", "tv", "epsilon", "belief", "rate", "exceedance"]
MEASURES: tuple[str, ...] = get_args(Measure)


#: by guessing one of two, and nothing: controls
COIN, NOTHING = Estimate(0.5, 0.5, 0.5), Estimate(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Attempt:
    """One number of an attack.

    Parameters
    ----------
    attack : str
        The attack, for instance ``"leave-two-unlabeled, retraining"``.
    measure : str
        One of :data:`MEASURES`.
    found : Estimate
        Result of the attack, with its interval.
    proved : float or None
        The bound in the same measure, None if none is proved.
    control : Estimate or None
        Result of an attacker without the table, the model or the run.
    about : str
        Target and number of tries, in a few words.
    closer : str
        Change that would bring the attack closer to the bound.
    level : float
        Confidence level of the intervals.
    internal : bool
        Whether real records were read without noise, so that it is confidential.
    one_table : bool
        Whether one outcome of the mechanism was attacked. The bound is then valid on average over the
        outcomes. A single one cannot disprove it.
    """

    attack: str
    measure: Measure
    found: Estimate
    proved: float | None = None
    control: Estimate | None = None
    about: str = ""
    closer: str = ""
    level: float = 0.95
    internal: bool = True
    one_table: bool = False

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise InputError(f"measure must be one of {', '.join(MEASURES)}, got {self.measure!r}")

    @property
    def passes(self) -> bool:
        """Whether even the lower end of its own interval lies above the bound. Pages ask :func:`passing`."""
        return self.proved is not None and self.found.lower > self.proved

    @property
    def contradicts(self) -> bool:
        """Whether a result that must obey the bound passes it: then the proof or its code is wrong.

        Examples
        --------
        >>> Attempt("guess", "tv", Estimate(0.3, 0.25, 0.35), proved=0.28).contradicts
        False
        """
        return self.passes and not self.one_table

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, infinite numbers as None."""
        return finite(asdict(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Attempt:
        """Build an attempt from :meth:`to_dict`. Raise InputError otherwise."""
        try:
            record = dict(data)
            record["found"] = Estimate(**record["found"])
            record["control"] = None if record["control"] is None else Estimate(**record["control"])
            if not isinstance(record["internal"], bool):  # whatever is not clearly released is not
                raise TypeError("`internal` must be true or false")
            return cls(**record)
        except (KeyError, TypeError) as problem:
            raise InputError(f"this is no saved attempt: {problem}") from None


def passing(attempts: Iterable[Attempt]) -> tuple[Attempt, ...]:
    """Attempts that pass their bound by intervals that hold for all bounded ones together.

    If no attack can pass its bound, one is named with a probability of at most 0.005, half of
    :data:`~dpsynth.evaluation.estimates.FALSE_ALARMS`. Pages and commands judge by this.

    Examples
    --------
    >>> just = Attempt("guess", "tv", Estimate(0.3, 0.25, 0.35), proved=0.24)
    >>> far = Attempt("guess", "tv", Estimate(0.9, 0.85, 0.95), proved=0.24)
    >>> [attempt.found.value for attempt in passing([just, far])]
    [0.9]
    """
    bounded = [(attempt, attempt.proved) for attempt in attempts if attempt.proved is not None]
    return tuple(
        attempt
        for attempt, proved in bounded
        if sure_end(attempt.found, attempt.level, len(bounded)) > proved
    )
