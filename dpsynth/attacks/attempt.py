"""What an attack reached, beside what is proved and what an attacker who holds nothing would reach."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate

#: what is measured: right guesses in [0, 1] from even odds; true minus false positive rate; the share of
#: members named at a false positive rate; total variation; epsilon; posterior belief; the rate of an attack
#: on a table; the share of runs whose belief passes a limit
Measure = Literal["accuracy", "advantage", "tpr", "tv", "epsilon", "belief", "rate", "exceedance"]
MEASURES: tuple[str, ...] = get_args(Measure)


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
        What the attack reached, with its interval.
    proved : float or None
        The bound in the same measure; None where none is proved.
    control : Estimate or None
        What an attacker without the table, the model or the run reaches.
    about : str
        Against what it was tried and how often, in a few words.
    closer : str
        What would have to be true for the attack to come closer to the bound.
    level : float
        Confidence level of the intervals.
    internal : bool
        Whether real records were read without payment.
    one_table : bool
        Whether one outcome of the mechanism was attacked. What is proved then holds on average over the
        outcomes, and a single one, however unlucky, cannot disprove it.
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
        """Whether even the lower end of the interval lies above the bound."""
        return self.proved is not None and self.found.lower > self.proved

    @property
    def contradicts(self) -> bool:
        """Whether the bound is passed by what it must hold for: then the proof or its code is wrong.

        Examples
        --------
        >>> Attempt("guess", "tv", Estimate(0.3, 0.25, 0.35), proved=0.28).contradicts
        False
        """
        return self.passes and not self.one_table

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, infinite numbers as None."""

        def finite(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: finite(entry) for key, entry in value.items()}
            return None if isinstance(value, float) and not math.isfinite(value) else value

        plain: dict[str, Any] = finite(asdict(self))
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Attempt:
        """Build an attempt from what :meth:`to_dict` gives; raise InputError otherwise."""
        try:
            record = dict(data)
            record["found"] = Estimate(**record["found"])
            record["control"] = None if record["control"] is None else Estimate(**record["control"])
            if not isinstance(record["internal"], bool):  # whatever is not clearly released is not
                raise TypeError("internal must be true or false")
            return cls(**record)
        except (KeyError, TypeError) as problem:
            raise InputError(f"this is no saved attempt: {problem}") from None
