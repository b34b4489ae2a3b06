"""One verdict on a synthetic table, and how its rules read measures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from dpsynth.evaluation.estimates import FEWEST
from dpsynth.evaluation.results import Evaluation, Measure

#: what a finding says of the table. ``open`` is no verdict: the records at hand cannot say
Severity = Literal["good", "caution", "bad", "open"]
#: the order in which findings are listed
ORDER: tuple[Severity, ...] = ("bad", "caution", "open", "good")


@dataclass(frozen=True)
class Verdict:
    """The finding of a rule about one matter.

    ``code`` is for programs, ``sentence`` for people. ``rests_on`` names measures or details. One of them is
    internal if the verdict is. ``about`` is ``risk`` for patients, or ``trust`` for analysts. ``people`` is
    the number of real records that it rests on, if that is smaller than the ``tables`` that it is about.
    """

    code: str
    severity: Severity
    sentence: str
    rests_on: tuple[str, ...] = ()
    internal: bool = False
    about: Literal["risk", "trust"] = "trust"
    people: int | None = None
    tables: tuple[str, ...] = ("synthetic", "train", "test")

    @property
    def headline(self) -> str:
        """The finding without its numbers: the sentence up to its first colon, bracket or stop.

        Examples
        --------
        >>> Verdict("useful", "good", "Models learn nearly as well: AUC 0.800.").headline
        'Models learn nearly as well'
        """
        return re.split(r": | \(|; |\. |\.$", self.sentence, maxsplit=1)[0]


def basis(measures: Iterable[Measure]) -> tuple[tuple[str, ...], bool]:
    """Names of the measures that a verdict rests on, and whether one of them is internal."""
    measures = list(measures)
    return tuple(m.name for m in measures), any(m.internal for m in measures)


def get(evaluation: Evaluation, name: str) -> Measure | None:
    """The measure of that name, if it is there and defined."""
    if name not in evaluation or evaluation[name].value is None:
        return None
    return evaluation[name]


def number_of(measure: Measure) -> float:
    """The value of a measure as a float, or 0."""
    return float(measure.value or 0.0)


def least(measure: Measure) -> float:
    """The lower end of its interval, or the value itself."""
    return number_of(measure) if measure.lower is None else measure.lower


def most(measure: Measure) -> float:
    """The upper end of its interval, or the value itself."""
    return number_of(measure) if measure.upper is None else measure.upper


def worst(verdicts: Iterable[Verdict]) -> Severity:
    """The severity of several findings together: the worst one. Open ones count only if there is no other."""
    found = {verdict.severity for verdict in verdicts}
    return next((grade for grade in ("bad", "caution", "good") if grade in found), "open")


def within_few(verdict: Verdict, people: int | None) -> Verdict:
    """A finding that rests on fewer than 30 people, as no verdict. ``people``: the smallest table."""
    counts = [count for count in (verdict.people, people) if count is not None]
    if not counts or min(counts) >= FEWEST or verdict.severity == "open":
        return verdict
    sentence = (
        f"{verdict.sentence} This rests on {min(counts)} records, fewer than {FEWEST}, and is no verdict."
    )
    return replace(verdict, severity="open", sentence=sentence)
