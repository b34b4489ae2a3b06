"""The limits of the table, and a checklist of what may go wrong with a guarantee.

The list follows the hazards of NIST SP 800-226, "Guidelines for Evaluating Differential Privacy Guarantees"
(2025). Each entry is *handled*, *yours to decide* or *not covered*, by the facts of this run alone. These are
its ledger, options, schema and attacks, and the parts of the page. Nothing is called handled where no
guarantee holds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from dpsynth.accounting.guarantee import UNIT, Guarantee, round_up
from dpsynth.attacks.attempt import passing
from dpsynth.checks import together
from dpsynth.report.formats import plain
from dpsynth.report.page.blocks import Bullets, Columns, Item, Items, Section, Sentence, paragraph
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts.privacy import WEAK_EPSILON
from dpsynth.report.wording import REPEATED, division, has_floating_noise, is_stratified, none_passed

Status = Literal["open", "yours", "handled"]

#: heading, colour and mark of each status, in the order of the page
_STATUS: dict[Status, tuple[str, str, str]] = {
    "open": ("Not covered", "bad", "✕"),
    "yours": ("Yours to decide", "caution", "?"),
    "handled": ("Handled", "good", "✓"),
}


_SCHEMA = "Bounds, categories and schema"
_DIVISION = "Training and held-out records"
#: entries that exceptions about the division of the records concern
_DIVIDED = ("Neighbouring datasets", "Prior knowledge of attackers")
#: entries that only a guarantee can handle
_PROMISED = (
    "Privacy unit",
    "Neighbouring datasets",
    _DIVISION,
    "Size of ε and δ",
    "Intermediate results",
    "Prior knowledge of attackers",
    "Outliers",
    _SCHEMA,
)


@dataclass(frozen=True)
class Hazard:
    """One entry of the checklist: what may go wrong, whether it is handled, and what shows it."""

    name: str
    status: Status
    said: str
    #: numbers of real records, for the owner alone
    confidential: Sentence | None = None

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """All sentences, the last of which may be for the owner alone."""
        first = Sentence(self.said)
        return (first,) if self.confidential is None else (first, self.confidential)


def limits_section(report: RunReport) -> Section:
    """Return what no synthetic table of this kind gives."""
    sentences = [
        "Conclusions about people in general are not hidden. If smoking harms, the table may show it.",
        "A single record may be implausible. A small group may be absent.",
        "Intervals and p-values of this table alone are too small, unless pre-specified.",
        "Repeat important results on real records.",
    ]
    if noisy := report.table.get("mostly_noise"):
        sentences.append(f"Noise has left little of these columns, by their released counts: {noisy}.")
    if rare := report.table.get("outcome_noise"):
        sentences.append(f"{str(rare)[:1].upper()}{str(rare)[1:]}.")
    return Section("limits", "Limits", (Bullets(tuple(map(Sentence, sentences))),))


def section(report: RunReport, shown: Collection[str] = ()) -> Section:
    """Return the checklist. ``shown`` are the anchors of the other sections on the page."""
    found = tuple(hazards(report, shown))
    lists = tuple(
        Items(
            tuple(
                Item(colour, mark, hazard.name, hazard.sentences)
                for hazard in found
                if hazard.status == status
            ),
            heading,
        )
        for status, (heading, colour, mark) in _STATUS.items()
        if any(hazard.status == status for hazard in found)
    )
    intro = paragraph("Hazards of NIST SP 800-226, as in this run.")
    return Section("checklist", "Checklist", (intro, Columns(lists)))


def hazards(report: RunReport, shown: Collection[str] = ()) -> Iterator[Hazard]:
    """Return every entry, in a fixed order.

    Examples
    --------
    >>> {hazard.status for hazard in hazards(RunReport())} <= {"open", "yours"}
    True
    """
    guarantee = report.guarantee
    holds = guarantee is not None and guarantee.private
    if guarantee is None or not holds:
        said = "No privacy ledger is known." if guarantee is None else "The guarantee is void."
        for name in _PROMISED:
            yield Hazard(name, "open", said)
    else:
        for hazard in _of_guarantee(report, guarantee):
            yield _with_exceptions(hazard, guarantee)
    yield _randomness(report)
    yield _proof(report)
    yield _budget(report, holds)
    yield Hazard(
        "Choice of options",
        "yours",
        "Rules from public facts or the noisy count chose the noisy statistics. "
        "A choice of options, or of the best of several fits, uses privacy budget too.",
    )
    yield Hazard(
        "Access to the real table",
        "yours",
        "dpsynth reads the real table without noise. Protect the machine, the files and the logs.",
    )
    yield _page(report)
    yield _subgroups(shown)
    yield _rounding(report, holds)
    yield Hazard(
        "Side channels",
        "open",
        "Time, memory and power use while the table was made are not covered.",
    )


def _with_exceptions(hazard: Hazard, guarantee: Guarantee) -> Hazard:
    """A handled entry is open if an exception of the guarantee concerns it."""
    if hazard.status != "handled" or hazard.name in (_DIVISION, _SCHEMA):
        return hazard  # these two look at their own exceptions
    about = guarantee.excluded
    if hazard.name not in _DIVIDED:
        about = tuple(reason for reason in about if reason not in guarantee.of_division)
    if not about:
        return hazard
    return Hazard(hazard.name, "open", f"The guarantee does not cover: {together(about)}.")


def _of_guarantee(report: RunReport, guarantee: Guarantee) -> Iterator[Hazard]:
    entries = guarantee.entries
    if guarantee.unit == UNIT:
        unit = "The ledger does not say what a row is. Check that nobody has more than one row."
        yield Hazard("Privacy unit", "yours", unit)
    elif guarantee.who == "patient":
        yield Hazard("Privacy unit", "handled", f"The ledger says: {guarantee.unit}.")
    else:
        unit = f"The ledger says: {guarantee.unit}. Decide whether this protects the person you mean."
        yield Hazard("Privacy unit", "yours", unit)
    n = report.table.get("n_public")
    public = "" if n is None else f" The number of training records ({n}) is treated as public."
    yield Hazard(
        "Neighbouring datasets",
        "handled" if n is None else "yours",
        f"All {entries} entries of the ledger use {guarantee.adjacency}.{public}",
    )
    yield _division(report, guarantee)
    yield _parameters(guarantee, n)
    yield Hazard(
        "Intermediate results",
        "handled",
        f"All {entries} noisy statistics count in full. Each one may be seen, with the model and the ledger.",
    )
    yield Hazard(
        "Prior knowledge of attackers",
        "handled",
        "The bounds hold even if the attacker knows all other records. The table of measures shows them.",
    )
    yield _related(guarantee)
    yield Hazard(
        "Outliers",
        "handled",
        "Values outside the schema's bounds are clipped. The ledger's sensitivity holds for every record.",
    )
    yield _schema(report, guarantee)


def _schema(report: RunReport, guarantee: Guarantee) -> Hazard:
    """Bounds and categories: handled only if the owner confirmed each list of categories or codes by name."""
    unreviewed, unconfirmed = report.fact("unreviewed"), report.fact("unconfirmed")
    marker = "rare_categories["
    rare = [m for m in report.measured.measures if m.name.startswith(marker) and m.value is not None]
    counted = ". ".join(f"{m.name[len(marker) : -1]}: {m.detail}" for m in rare)
    more = Sentence(f"{counted}.", True) if rare else None
    if guarantee.of_schema or unreviewed:
        reasons = together(guarantee.of_schema or ("schema fields that nobody reviewed",))
        return Hazard(_SCHEMA, "open", f"The guarantee does not cover: {reasons}. {REPEATED}", more)
    if unconfirmed:
        said = (
            f"Nobody confirmed the lists of categories or codes of these columns: {unconfirmed}. A list that "
            "was copied from a draft repeats values of real records. Write reviewed: true in the column if "
            "it is public. Until then only you can read the files of this run."
        )
        return Hazard(_SCHEMA, "yours", said, more)
    if unconfirmed is None:
        said = "Nothing here says whether lists of categories or codes are public. A draft copies them."
        return Hazard(_SCHEMA, "yours", said, more)
    said = "The owner declared the schema reviewed, and confirmed each list of categories or codes."
    return Hazard(_SCHEMA, "handled", f"{said} The ledger excludes nothing of it.")


def _division(report: RunReport, guarantee: Guarantee) -> Hazard:
    said = " ".join(division(report))
    if reasons := guarantee.of_division:
        said = f"The guarantee does not cover: {together(reasons)}. {said}".strip()
        return Hazard(_DIVISION, "open", said)
    if is_stratified(report):
        return Hazard(_DIVISION, "open", said)
    if said:
        return Hazard(_DIVISION, "handled", said)
    said = "Nothing here says how the training records were chosen. The guarantee is about these records."
    return Hazard(_DIVISION, "yours", said)


def _parameters(guarantee: Guarantee, n: object) -> Hazard:
    said = f"ε = {round_up(guarantee.epsilon)} and δ = {round_up(guarantee.delta)}."
    if isinstance(n, int):
        said += f" δ times {n} records is {plain(guarantee.delta * n, 2)}. It should be far below 1."
    if guarantee.epsilon > WEAK_EPSILON:
        return Hazard("Size of ε and δ", "open", f"{said} An ε above {WEAK_EPSILON:g} promises little.")
    return Hazard("Size of ε and δ", "yours", f"{said} Decide whether the attack accuracy is acceptable.")


def _related(guarantee: Guarantee) -> Hazard:
    said = "Records of relatives, or several records of one person, can reveal more together."
    if guarantee.with_all_rows:
        said = "Rows of relatives can reveal more together."
    if guarantee.epsilon < math.log(1e6):
        delta = (1 + math.exp(guarantee.epsilon)) * guarantee.delta
        said += f" For two records, ε is {round_up(2 * guarantee.epsilon)} and δ is {round_up(delta)}."
    return Hazard("Related people", "open", said)


def _randomness(report: RunReport) -> Hazard:
    name, ledger = "Random numbers", report.ledger
    if ledger is not None and ledger.seeded:
        return Hazard(name, "open", "The noise follows a seed. Anyone who knows the seed can remove it.")
    if ledger is None or not ledger.generators:
        return Hazard(name, "open", "Nothing says which generator made the noise.")
    drawn = together(ledger.generators)
    if any("not cryptographic" in generator for generator in ledger.generators):
        return Hazard(name, "open", f"The ledger says: {drawn}.")
    return Hazard(name, "handled", f"The ledger says: {drawn}. The key was not kept.")


def _rounding(report: RunReport, holds: bool) -> Hazard:
    name, ledger = "Floating-point noise", report.ledger
    if ledger is None or not holds:
        return Hazard(name, "open", "No guarantee says how much noise there is.")
    if has_floating_noise(ledger):
        return Hazard(
            name,
            "open",
            "Attacks on the rounding of WGAN critic steps (Mironov 2012) are not covered. "
            "Other noise is exact.",
        )
    return Hazard(
        name, "handled", "This version's noise on counts and sums is whole numbers of a public step."
    )


def _proof(report: RunReport) -> Hazard:
    name = "Errors in proof or code"
    bounded = [attempt for attempt in report.attempts if attempt.proved is not None]
    passed = passing(bounded)
    if passed:
        return Hazard(name, "open", f"An attack passed its bound: {passed[0].attack}.")
    if not bounded:
        return Hazard(name, "open", "No attack with a proved bound is on this page.")
    return Hazard(name, "yours", f"{none_passed(bounded)}. This finds large errors alone.")


def _budget(report: RunReport, holds: bool) -> Hazard:
    name = "Other tables from the same records"
    if report.ledger is None or not holds:
        return Hazard(name, "open", "No guarantee adds up over tables.")
    stages = len(report.ledger.stages)
    said = f"This ledger has {len(report.ledger.entries)} entries in {stages} stage{'s' * (stages != 1)}."
    return Hazard(name, "yours", f"{said} Add the ε of every other table from the same records.")


def _page(report: RunReport) -> Hazard:
    measured = report.measured
    marks = [m.internal for m in measured.measures] + [d.internal for d in measured.details]
    if report.seconds or any(marks) or any(attempt.internal for attempt in report.attempts):
        said = (
            "This page has numbers from real records without noise. Share release.html instead, made by "
            "dpsynth report --mode release."
        )
        return Hazard("This page", "yours", said)
    guarantee = report.guarantee
    if guarantee is not None and not guarantee.private:
        return Hazard("This page", "open", "The table was made without protection. So was this page.")
    whole = guarantee is not None and guarantee.status == "private" and not guarantee.excluded
    said = "No number on this page comes from real records without noise."
    if not whole:
        said += " It may show what the guarantee does not cover."
    return Hazard("This page", "handled" if whole else "yours", said)


def _subgroups(shown: Collection[str]) -> Hazard:
    name = "Errors by subgroup"
    if "subgroups" in shown:
        return Hazard(name, "yours", "See the table of subgroups. Decide whether the errors are acceptable.")
    return Hazard(name, "open", "This page does not show errors by sex, age or other groups.")
