"""Verdicts of written rules on an evaluation and a guarantee: their form, and what readers of facts need.

The rules are tables of :class:`Rule`, one beside the readers of their facts in each module here. A new
verdict is one entry there, with a reader if nobody reads its facts yet.

If a measure has an interval, the rule uses the end that contradicts the verdict. So the noise of a small
table alone gives no verdict. A verdict is internal if one source it rests on is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import groupby
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

from dpsynth.checks import Counted
from dpsynth.evaluation.estimates import FEWEST
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.report.words import measured, wording

#: what a finding says of the table. ``open`` is no verdict: the records at hand cannot say
Severity = Literal["good", "caution", "bad", "open"]
#: the order in which findings are listed
ORDER: tuple[Severity, ...] = ("bad", "caution", "open", "good")
TABLES = ("synthetic", "train", "test")


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
    tables: tuple[str, ...] = TABLES

    @property
    def headline(self) -> str:
        """The finding without its numbers: the sentence up to its first colon, bracket or stop.

        Examples
        --------
        >>> Verdict("useful", "good", "Models learn nearly as well: AUC 0.800.").headline
        'Models learn nearly as well'
        """
        return re.split(r": | \(|; |\. |\.$", self.sentence, maxsplit=1)[0]


class Named(NamedTuple):
    """A source that is neither a measure nor a detail, such as the ledger. An empty name is not listed."""

    name: str
    internal: bool = False


#: something that a verdict rests on, with a name in the files and a mark
Basis = Measure | Named


class Evidence(SimpleNamespace):
    """What a reader found out on one matter, by name: numbers and words for a rule, and what it rests on.

    ``people`` is the number of real records, if it is smaller than the tables.
    """

    def __getattr__(self, name: str) -> Any:
        if name == "people":
            return None
        raise AttributeError(name)


Condition = Callable[[Evidence], object]


def otherwise(facts: Evidence) -> bool:
    """The condition of a rule that speaks where those above it do not."""
    return True


@dataclass(frozen=True)
class Rule:
    """One line of a table of rules, such as those of `dpsynth.report.verdicts.rules`.

    Parameters
    ----------
    code : str
        Stands in files and on the page of rules.
    of : callable
        The reader: it takes an evaluation (or what else the table is about) and yields :class:`Evidence`.
        Lines of one reader stand together. The first one that holds is said.
    said : str, optional
        Which sentence of ``verdicts`` in ``words.yaml`` is said, by default that of the code.
    bad, caution, open, good : callable, optional
        Conditions on the facts. The first that holds, in this order, is the severity.
    rests_on : tuple of str
        Names of the facts that are sources, or lists of them: ``basis``, unless others are named.
    about, tables
        As of the :class:`Verdict`.
    """

    code: str
    of: Callable[..., Iterable[Evidence]]
    _: KW_ONLY
    said: str = ""
    bad: Condition | None = None
    caution: Condition | None = None
    open: Condition | None = None
    good: Condition | None = None
    rests_on: tuple[str, ...] = ("basis",)
    about: Literal["risk", "trust"] = "trust"
    tables: tuple[str, ...] = TABLES

    def verdict(self, facts: Evidence, counted: Counted) -> Verdict | None:
        """The verdict on these facts, or None if no condition holds."""
        conditions: dict[Severity, Condition | None] = {
            "bad": self.bad, "caution": self.caution, "open": self.open, "good": self.good
        }  # fmt: skip
        severity = next((grade for grade, holds in conditions.items() if holds and holds(facts)), None)
        if severity is None:
            return None
        sources = [source for name in self.rests_on for source in _sources(getattr(facts, name))]
        shown = {n: measured(v) if isinstance(v, Measure) else v for n, v in vars(facts).items()}
        return Verdict(
            self.code,
            severity,
            wording("verdicts", counted)[self.said or self.code].format(**shown),
            tuple(source.name for source in sources if source.name),
            any(source.internal for source in sources),
            self.about,
            facts.people,
            self.tables,
        )


#: a rule about the risk for patients
risk = partial(Rule, about="risk")


def verdicts(rules: Sequence[Rule], *given: object, counted: Counted = Counted.RECORDS) -> Iterator[Verdict]:
    """Read each matter of a table of rules, and say the first rule on it that holds."""
    for reader, group in groupby(rules, key=lambda rule: rule.of):
        lines = tuple(group)
        for facts in reader(*given):
            said = (rule.verdict(facts, counted) for rule in lines)
            first = next((verdict for verdict in said if verdict is not None), None)
            if first is not None:
                yield first


def _sources(entry: Basis | list[Basis] | None) -> list[Basis]:
    if entry is None:
        return []
    return list(entry) if isinstance(entry, list) else [entry]


def get(evaluation: Evaluation, name: str) -> Measure | None:
    """The measure of that name, if it is there and defined."""
    if name not in evaluation or evaluation[name].value is None:
        return None
    return evaluation[name]


def of_columns(evaluation: Evaluation, start: str) -> list[Measure]:
    """The defined measures whose names begin so, such as those of all columns."""
    return [m for m in evaluation.measures if m.name.startswith(start) and m.value is not None]


def column_of(measure: Measure) -> str:
    """The column, or whatever else stands in brackets after its name."""
    return measure.name[measure.name.index("[") + 1 : -1]


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
    grades = {verdict.severity for verdict in verdicts}
    return next((grade for grade in ("bad", "caution", "good") if grade in grades), "open")


def within_few(verdict: Verdict, people: int | None, counted: Counted = Counted.RECORDS) -> Verdict:
    """A finding that rests on fewer than 30 people, as no verdict. ``people``: the smallest table."""
    counts = [count for count in (verdict.people, people) if count is not None]
    if not counts or min(counts) >= FEWEST or verdict.severity == "open":
        return verdict
    why = f"This rests on {min(counts)} {counted}, fewer than {FEWEST}, and is no verdict."
    return replace(verdict, severity="open", sentence=f"{verdict.sentence} {why}")
