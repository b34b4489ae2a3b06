"""The guarantee of a ledger, as a record that prints as a sentence.

The sentence has the true and false positive rates of Jia 2023, "Total variation distance privacy". Their
difference is at most the total variation of the outputs on neighbouring tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from dpsynth.checks import PATIENT, together
from dpsynth.errors import DataError
from dpsynth.files.storage import write_text
from dpsynth.privacy.loss import ADD_REMOVE

#: file that stands beside, or in, an output without a guarantee
WARNING = "NOT_PRIVATE.txt"
#: first words of every output of a run whose guarantee is void
NOT_PRIVATE = "NOT PRIVATE"
#: what neighbouring tables differ in, where nobody says what a row is
UNIT = "one row"

#: exceptions of a guarantee that are about the division of the records, and about earlier statistics
STRATIFIED = "the stratified split: neighbouring tables are training parts, not whole tables"
RESAMPLE = "the resample: neighbouring tables differ in one row, and a record may be several rows"

#: ``private``: for everything; ``excludes``: but for what :attr:`Guarantee.excluded` names; ``void``: none.
Status = Literal["private", "excludes", "void"]


class Described(Protocol):
    """A schema, or a report of a table."""

    @property
    def undecided(self) -> tuple[str, ...]:
        """Parts that may repeat values of records, because nobody said that they are public."""


@dataclass(frozen=True)
class Guarantee:
    """The joint guarantee of all entries of a ledger, made with :meth:`Ledger.guarantee`.

    ``epsilon`` (it may be infinite), ``delta`` and ``tv`` are the cost of all entries. Neighbouring tables
    differ in one ``unit``. ``bare`` are statistics without any guarantee. ``seeded`` says whether noise was
    drawn from a caller's seed. The guarantee does not cover ``excluded``.

    Examples
    --------
    >>> kept = Guarantee(epsilon=3.0, delta=1e-5, tv=0.5, entries=2)
    >>> kept.status, kept.private, str(kept)[:60]
    ('private', True, '(3, 1e-05)-differentially private for adding or removing one')
    """

    epsilon: float
    delta: float
    tv: float
    adjacency: str = ADD_REMOVE
    unit: str = UNIT
    entries: int = 1
    stages: int = 1
    bare: tuple[str, ...] = ()
    seeded: bool = False
    excluded: tuple[str, ...] = ()

    @property
    def with_all_rows(self) -> bool:
        """Whether neighbouring tables differ in a patient with all rows."""
        return self.unit.startswith(PATIENT)

    @property
    def who(self) -> Literal["patient", "row"]:
        """Who is covered: a patient where the ledger says so, else a row."""
        return "patient" if is_of_patients(self.unit) else "row"

    @property
    def status(self) -> Status:
        """Whether there is a guarantee, and for everything."""
        if not self.entries or self.bare or self.seeded:
            return "void"
        if not math.isfinite(self.epsilon) or not self.delta < 1:
            return "void"
        return "excludes" if self.excluded else "private"

    @property
    def private(self) -> bool:
        """Whether anything is guaranteed."""
        return self.status != "void"

    def may_share(self, described: Described) -> bool:
        """Whether others may read an output that repeats values of a schema, and so the mode of its file.

        This is the one rule for samples, models, estimates and metadata: there is a guarantee, and nothing of
        the schema is undecided.
        """
        return self.private and not described.undecided

    @property
    def of_division(self) -> tuple[str, ...]:
        """The exceptions about how the records were divided into training and held-out parts."""
        return tuple(reason for reason in self.excluded if reason in (STRATIFIED, RESAMPLE))

    @property
    def of_schema(self) -> tuple[str, ...]:
        """The exceptions that may be about the schema: all that are not known to be about anything else."""
        return about_schema(self.excluded)

    def __str__(self) -> str:
        if not self.entries:
            return f"{NOT_PRIVATE}: this ledger has no entry. It guarantees nothing about any table."
        text = self._promise()
        if self.excluded:
            text += f" The guarantee does not cover: {together(self.excluded)}."
        return text

    def _promise(self) -> str:
        if self.bare:
            verb = "was" if len(self.bare) == 1 else "were"
            return f"{NOT_PRIVATE}: {', '.join(self.bare)} {verb} computed without any guarantee."
        if self.seeded:
            # No claim about "all others": a seed used twice lets anybody subtract one statistic from another.
            return f"{NOT_PRIVATE}: the noise follows a seed. Anyone who knows the seed can remove the noise."
        if not math.isfinite(self.epsilon) or not self.delta < 1:
            return f"{NOT_PRIVATE} at delta {self.delta:.3g}: no finite epsilon holds there."
        change = "adding or removing" if self.adjacency == ADD_REMOVE else "replacing"
        what = "patient" if self.with_all_rows else "record"
        unit = "one record" if self.unit == UNIT else f"one record ({self.unit})"
        summed = f", the sum of {self.stages} stages" if self.stages > 1 else ""
        return (
            f"({round_up(self.epsilon)}, {round_up(self.delta)})-differentially private for {change} "
            f"{self.unit if self.with_all_rows else unit}{summed}. Every test of whether a {what} is in the "
            f"table has a true positive rate of at most its false positive rate plus {round_up(self.tv)}."
        )

    def write_warning(self, path: Path) -> None:
        """Write a void guarantee beside an output, because tables and arrays have no place for it."""
        if not self.private:
            write_text(path, f"{self}\n", shared=True)

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON can hold (an infinite epsilon is null), with status and sentence."""
        record = asdict(self) | {"status": self.status, "sentence": str(self)}
        return record | {
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
            "bare": list(self.bare),
            "excluded": list(self.excluded),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Guarantee:
        """Read the record of :meth:`to_dict`.

        Raises DataError if a field is missing or unknown, or status or sentence are not those of the other
        fields.
        """
        try:
            fields = {key: value for key, value in record.items() if key not in ("status", "sentence")}
            fields["epsilon"] = math.inf if fields["epsilon"] is None else float(fields["epsilon"])
            fields |= {name: tuple(fields[name]) for name in ("bare", "excluded")}
            guarantee = cls(**fields)
            same = (record["status"], record["sentence"]) == (guarantee.status, str(guarantee))
        except (KeyError, TypeError, ValueError) as problem:
            raise DataError(f"not the record of a guarantee: {problem}") from None
        if not same:
            raise DataError(f"the guarantee says {record['sentence']!r}, but its numbers say {guarantee}")
        return guarantee


def about_schema(excluded: Iterable[str]) -> tuple[str, ...]:
    """The exceptions that are not known to be about anything but the schema."""
    return tuple(reason for reason in excluded if reason not in (STRATIFIED, RESAMPLE))


def is_of_patients(unit: str) -> bool:
    """Whether neighbouring tables differ in a patient: with all rows, or with the one row that each has.

    Examples
    --------
    >>> is_of_patients("one row = one patient: the first stay"), is_of_patients("one row = one stay")
    (True, False)
    """
    return unit.startswith(PATIENT) or unit.removeprefix(f"{UNIT} = ").split(":")[0] == "one patient"


def round_up(value: float, figures: int = 4) -> str:
    """Round to significant figures, never below the value: a guarantee is not rounded in its own favour.

    Examples
    --------
    >>> round_up(1.00041), round_up(1.0049e-05), round_up(-0.0)
    ('1.001', '1.005e-05', '0')
    """
    if value == 0.0 or math.isinf(value):
        return f"{abs(value):.4g}"
    places = figures - 1 - math.floor(math.log10(value))
    text = f"{value:.{figures}g}"
    if float(text) < value * (1 - 1e-13):  # a sum of floats may be off in its last digit
        text = f"{round(value, places) + 10.0**-places:.{figures}g}"
    return text
