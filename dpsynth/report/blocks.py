"""Blocks of a page, as plain frozen records: paragraphs, tables and figures, and tables of measures.

The builders of the sections make these from numbers. The template turns them into HTML. Everything that came
from real records is marked, and the template shows the mark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from dpsynth.checks import Counted
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.privacy.guarantee import NOT_PRIVATE, STRATIFIED, UNIT, Guarantee
from dpsynth.privacy.loss import ADD_REMOVE
from dpsynth.privacy.profile import Profile, percent
from dpsynth.report.figure import Plot
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts.verdict import ORDER, Severity, Verdict, get, number_of, worst
from dpsynth.report.words import (
    bounds_in_words,
    hundredths,
    once_in,
    round_up,
    shown,
    shown_interval,
    shown_with_interval,
    wording,
)


@dataclass(frozen=True)
class Sentence:
    """One sentence in plain words, and whether a number in it was computed from real records."""

    text: str
    internal: bool = False


@dataclass(frozen=True)
class Paragraph:
    """Sentences that belong together."""

    kind: ClassVar[str] = "paragraph"
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    kind: ClassVar[str] = "heading"
    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    kind: ClassVar[str] = "bullets"
    items: tuple[Sentence, ...]


@dataclass(frozen=True)
class Item:
    """A line that unfolds: its title is always seen, its sentences are seen on demand and on paper.

    ``kind`` is its colour: ``good``, ``caution`` or ``bad``. ``label`` says the same in words.
    """

    kind: str
    label: str
    title: str
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True)
class Items:
    """Lines that unfold, under a heading if it is not empty."""

    kind: ClassVar[str] = "items"
    items: tuple[Item, ...]
    heading: str = ""


@dataclass(frozen=True)
class Lists:
    """Lists of lines that unfold, side by side where there is room."""

    kind: ClassVar[str] = "columns"
    lists: tuple[Items, ...]


@dataclass(frozen=True)
class Facts:
    """Names and their values, such as the lines of a model card."""

    kind: ClassVar[str] = "facts"
    items: tuple[tuple[str, Sentence], ...]


@dataclass(frozen=True)
class Code:
    """Text that is shown as it is, such as a configuration."""

    kind: ClassVar[str] = "code"
    label: str
    text: str


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    A ``number`` is set flush right. ``internal`` gives it the badge. ``quiet`` text is for programs rather
    than readers, such as the name of a measure.
    """

    text: str
    number: bool = False
    internal: bool = False
    quiet: bool = False


@dataclass(frozen=True)
class TableBlock:
    """A table.

    ``caption`` is unique on the page, since it also names the region that scrolls. The first cell of each row
    names it. A ``folded`` table is shown only on demand. A ``narrow`` one fits a phone. ``internal`` marks
    all of its numbers at once.
    """

    kind: ClassVar[str] = "grid"
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    folded: bool = False
    narrow: bool = False
    internal: bool = False


@dataclass(frozen=True)
class Plots:
    """Figures side by side, as many in a row as there is room for.

    If ``folded`` is not empty, they are shown only on demand, under these words.
    """

    kind: ClassVar[str] = "plots"
    plots: tuple[Plot, ...]
    folded: str = ""


Block = Paragraph | Heading | Bullets | Facts | Code | TableBlock | Plots | Items | Lists


@dataclass(frozen=True)
class Section:
    """A part of the page with a line in its table of contents, or a folded one.

    ``more`` are the anchors of folded parts that say more. Those that the page lacks are left out.
    """

    anchor: str
    title: str
    blocks: tuple[Block, ...] = field(default=())
    more: tuple[str, ...] = ()


def divided(section: Section | None) -> tuple[Section | None, Section | None]:
    """Return the visible and the folded part of a section, both None for None.

    At once are its findings and its first table, which unfolds. Findings are the first list, else the first
    paragraph with a confidential sentence, else the first paragraph.
    """
    if section is None:
        return None, None
    said = [block for block in section.blocks if isinstance(block, Paragraph)]
    lists: list[Block] = [block for block in section.blocks if isinstance(block, Bullets)]
    marked: list[Block] = [block for block in said if any(sentence.internal for sentence in block.sentences)]
    grids = [block for block in section.blocks if isinstance(block, TableBlock)]
    first = (*(lists or marked or said)[:1], *grids[:1])
    at_once = tuple(
        replace(block, folded=True) if isinstance(block, TableBlock) else block for block in first
    )
    rest = tuple(block for block in section.blocks if block not in first)
    more = f"{section.anchor}-full"
    full = Section(more, f"{section.title} in full", rest)
    return replace(section, blocks=at_once, more=(more,)), full


def paragraph(*sentences: str | Sentence) -> Paragraph:
    """Return a paragraph of sentences that are not internal unless they say so."""
    return Paragraph(tuple(s if isinstance(s, Sentence) else Sentence(s) for s in sentences))


def number_cell(text: str, internal: bool = False) -> Cell:
    """Return a cell that holds a number."""
    return Cell(text, number=True, internal=internal)


#: the last cell of a row of confidential numbers
MARK = Cell("", internal=True)


def table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str | Cell]],
    *,
    status: Cell | None = MARK,
    folded: bool | None = None,
) -> TableBlock:
    """Return a table whose rows are a name and numbers. Whatever is no number is a cell.

    ``status`` ends each row, in a column of that name. A table of more than 15 rows is folded by default.
    """
    ends = () if status is None else (status,)
    cells = tuple(
        (Cell(str(name)), *(cell if isinstance(cell, Cell) else number_cell(cell) for cell in row), *ends)
        for name, *row in rows
    )
    return TableBlock(
        caption,
        (*header, *(["status"] if ends else [])),
        cells,
        len(cells) > 15 if folded is None else folded,
    )


#: a measure of one column, such as ``tvd[age]``
OF_COLUMN = re.compile(r"(?P<name>[^\[]+)\[(?P<column>.*)\]", re.DOTALL)
#: the sections, and the words with which a group of theirs may begin
HOMES = {
    "utility": ("utility",),
    "replication": ("replication",),
    "similarity": ("similarity", "association", "constraint", "discriminat", "rare"),
    "columns": ("tails", "single"),
    "closeness": ("nearest", "disclosure"),
    "records": ("records",),
    "patients": ("patients",),
}
# What is shown of a long table without unfolding.
_MAIN = re.compile(
    r".*_mean|discriminator_auc.*|(correlation|association)_error|copies_(train|expected|excess)"
    r"|dcr_closer_to_train|membership_.*"
)
# Rows that are shown without unfolding.
_MOST_MEASURES, _MOST_COLUMNS = 15, 12


def home(group: str) -> str | None:
    """Return the section of a group of measures, or None if it is unknown."""
    words = group.casefold()
    return next((name for name, starts in HOMES.items() if words.startswith(starts)), None)


def section_measures(evaluation: Evaluation, name: str) -> list[Measure]:
    """Return the measures of one section, in order."""
    return [measure for measure in evaluation.measures if home(measure.group) == name]


def measure_grid(caption: str, measures: Iterable[Measure], *, folded: bool = False) -> TableBlock:
    """Return a table of measures: what it is, value, interval where one has any, and name in the files."""
    measures = list(measures)
    intervals = any(shown_interval(measure) for measure in measures)
    rows = tuple(
        (
            Cell(measure.detail or measure.name.replace("_", " ")),
            number_cell(shown(measure.value), measure.internal),
            *((number_cell(shown_interval(measure)),) if intervals else ()),
            Cell(measure.name, quiet=True),
        )
        for measure in measures
    )
    header = ("what it is", "value", *(("interval",) if intervals else ()), "name")
    return TableBlock(caption, header, rows, folded)


def measure_tables(measures: Sequence[Measure]) -> list[Block]:
    """Return one table a group, without measures of single columns. A long one has the main rows first.

    Measures without a value come last and folded, each with its reason.
    """
    blocks: list[Block] = []
    for group in dict.fromkeys(m.group for m in measures):
        every = [m for m in measures if m.group == group and OF_COLUMN.fullmatch(m.name) is None]
        plain = [m for m in every if m.value is not None]
        main = [m for m in plain if _MAIN.fullmatch(m.name)]
        if len(plain) > _MOST_MEASURES and main:
            rest = [m for m in plain if m not in main]
            blocks.append(measure_grid(f"{group}: main measures", main))
            blocks.append(measure_grid(f"{group}: further measures", rest, folded=True))
        elif plain:
            blocks.append(measure_grid(f"{group}: measures", plain, folded=len(plain) > 2 * _MOST_MEASURES))
        if lacking := [m for m in every if m.value is None]:
            rows = tuple((Cell(m.detail, internal=m.internal), Cell(m.name, quiet=True)) for m in lacking)
            blocks.append(
                TableBlock(f"{group}: not computed", ("what, and why not", "name"), rows, folded=True)
            )
    return blocks


def column_tables(measures: Sequence[Measure], name: str) -> list[Block]:
    """Return one table with a line for each column or category. Empty if no measure is of one."""
    table: dict[str, dict[str, Measure]] = {}
    for measure in measures:
        match = OF_COLUMN.fullmatch(measure.name)
        if match is not None:
            table.setdefault(match["column"], {})[match["name"]] = measure
    if not table:
        return []
    names = tuple(dict.fromkeys(base for row in table.values() for base in row))
    everything = [measure for row in table.values() for measure in row.values()]
    # one badge a line where all of it is internal, else one beside each number that is
    whole = all(measure.internal for measure in everything)
    rows = tuple(
        (
            Cell(column),
            *(_measured(row.get(base), badge=not whole) for base in names),
            *((Cell("", internal=True),) if whole else ()),
        )
        for column, row in table.items()
    )
    header = ("column or category", *names, *(("status",) if whole else ()))
    grid = TableBlock(f"{name}, column by column", header, rows, folded=len(rows) > _MOST_COLUMNS)
    legend = []
    for base in names:
        said = {row[base].detail for row in table.values() if base in row}
        internal = any(row[base].internal for row in table.values() if base in row)
        if len(said) == 1 and (text := said.pop()):
            legend.append(Sentence(f"{base}: {text.rstrip('.')}.", internal))
    return [*([Bullets(tuple(legend))] if legend else []), grid]


def _measured(measure: Measure | None, *, badge: bool) -> Cell:
    if measure is None:
        return Cell("")
    return number_cell(shown_with_interval(measure), internal=badge and measure.internal)


# ------------------------------------------------------------------------------------------------
# The first lines of a page: both verdicts, who is covered, and examples of the guarantee.
#
# Every sentence is generated from numbers. Bounds of the guarantee are rounded up. Measured numbers come
# with their intervals. Sentences that state a number of real records say that they are internal.

#: how each severity is marked in a list, and in a bar
LABELS: dict[Severity, str] = {
    "bad": "✕ Bad:",
    "caution": "! Caution:",
    "open": "? No verdict:",
    "good": "✓ Good:",
}


def items(verdicts: Iterable[Verdict]) -> tuple[Item, ...]:
    """Return verdicts as lines that unfold: the headline first, then the sentence and what it rests on."""
    return tuple(
        Item(
            verdict.severity,
            LABELS[verdict.severity],
            verdict.headline,
            (
                Sentence(verdict.sentence, verdict.internal),
                Sentence(f"Rule {verdict.code}, from {', '.join(verdict.rests_on)}."),
            )
            if verdict.rests_on
            else (Sentence(verdict.sentence, verdict.internal),),
        )
        for verdict in verdicts
    )


@dataclass(frozen=True)
class Bar:
    """The verdict on one matter in one line. ``anchor`` is its place on the page."""

    anchor: str
    severity: Severity
    text: str
    internal: bool

    @property
    def mark(self) -> str:
        """Its mark and severity, such as ``✓ Good``."""
        return LABELS[self.severity].rstrip(":")


def bars(report: RunReport) -> tuple[Bar, Bar]:
    """Return the verdict on privacy and the verdict on quality, each as bad as its worst finding.

    Findings without a verdict count only if there is no other.

    Examples
    --------
    >>> for bar in bars(RunReport()):
    ...     print(bar.mark, bar.text)
    ! Caution Privacy: no guarantee is known. No attack is on this page.
    ? No verdict Quality: not measured.
    """
    risks, trust = ([v for v in report.findings if v.about == about] for about in ("risk", "trust"))
    texts = (f"{_promise(report.guarantee)} {_attacked(report, risks)}", _quality(trust))
    first, second = texts
    return (
        Bar("verdict", worst(risks), f"Privacy: {first}", any(v.internal for v in risks)),
        Bar("quality-verdict", worst(trust), f"Quality: {second}", any(v.internal for v in trust)),
    )


def _promise(guarantee: Guarantee | None) -> str:
    if guarantee is None:
        return "no guarantee is known."
    if not guarantee.private:
        return f"{NOT_PRIVATE}: nothing is guaranteed."
    but = ", with exceptions" if guarantee.excluded else ""
    return f"guaranteed for each {guarantee.who}{but}: ε = {round_up(guarantee.epsilon)}."


def _attacked(report: RunReport, risks: Iterable[Verdict]) -> str:
    codes = {verdict.code for verdict in risks if verdict.severity != "open"}
    signs = {
        "memorises": "There are signs of memorisation.",
        "too_close": f"{report.counted.capitalize()} are too close to real ones.",
    }
    signs |= {"other_people": f"Held-out {report.counted} are no control."}
    warned = "".join(f" {text}" for code, text in signs.items() if code in codes)
    if codes & {"bound_passed", "average_passed"}:
        return f"An attack passed a proved bound.{warned}"
    bounded = [attempt for attempt in report.attempts if attempt.proved is not None]
    if not bounded:
        return f"{'No bound is known' if report.attempts else 'No attack is on this page'}.{warned}"
    return f"{bounds_in_words(bounded, report.counted)}.{warned}"


def _quality(found: Iterable[Verdict]) -> str:
    grades = [verdict.severity for verdict in found]
    if not grades:
        return "not measured."
    named = {"open": "without a verdict"}
    counts = ((grades.count(grade), named.get(grade, grade)) for grade in ORDER)
    return f"{', '.join(f'{number} {grade}' for number, grade in counts if number)}."


def covered(report: RunReport) -> tuple[Sentence, ...]:
    """Return who is covered, in sentences. The first one is for the summary. Empty where nothing is known.

    Examples
    --------
    >>> for sentence in covered(RunReport(config={"split": {"method": "none", "test_fraction": 0.5}})):
    ...     print(sentence.text)
    About 50 in 100 real records trained the model. The others were held out, and nothing was published ...
    """
    trained, held_out = (get(report.measured, name) for name in ("train_records", "test_records"))
    split = _split_of(report)
    fraction, others = split.get("test_fraction"), "and nothing was published about them"
    if is_stratified(report):
        others = "and their outcomes took part in the division"
    internal = any(measure is not None and measure.internal for measure in (trained, held_out))
    if trained is not None:
        of = "" if held_out is None else f" of {shown(int(number_of(trained) + number_of(held_out)))}"
        text = f"{shown(trained.value)}{of} real {report.counted} trained the model"
        if held_out is not None and split:
            text += f". The other {shown(held_out.value)} tested it, {others}"
        elif held_out is not None:
            text += f". As far as is known, the other {shown(held_out.value)} had no part in it"
        first = Sentence(f"{text}.", internal)
    elif isinstance(fraction, int | float):
        first = Sentence(
            f"About {hundredths(1 - fraction)} in 100 real {report.counted} trained the model. "
            f"The others were held out, {others}."
        )
    else:
        return ()
    return (first, *_more(report, measured=internal))


def is_stratified(report: RunReport) -> bool:
    """Whether a stratified split divided the records, by the run's configuration or by its ledger."""
    by_ledger = report.guarantee is not None and STRATIFIED in report.guarantee.of_division
    return by_ledger or _split_of(report).get("method") == "stratified"


def division(report: RunReport) -> list[str]:
    """Return how the records were divided, and what follows for the guarantee. Empty if nothing says how."""
    words = wording(f"division of {report.counted}", report.counted)
    if is_stratified(report):
        said = report.say("stratified", read=words["read"]).splitlines()
        return [*said, report.say("stratified guarantee")] if report.holds else said
    if _split_of(report).get("method") != "independent":
        return []
    return report.say("independent", **words).splitlines()


def _split_of(report: RunReport) -> Mapping[str, object]:
    split = report.config.get("split")
    return split if isinstance(split, Mapping) else {}


def _more(report: RunReport, *, measured: bool) -> list[Sentence]:
    sentences = division(report)
    if report.guarantee is not None and report.holds:
        sentences.append(report.say(f"for each {'patient' if report.guarantee.with_all_rows else 'row'}"))
    sentences += [report.say("for nobody")] if measured else []
    return [Sentence(text) for text in sentences]


#: probability of a decision, without a person's row, in the example of the page
_DECISION = 0.1


def promises(guarantee: Guarantee, profile: Profile) -> tuple[tuple[str, Sentence], ...]:
    """Return what a guarantee means, as names and sentences: to whom, ε and δ, an attacker, two examples."""
    who, added = guarantee.who, guarantee.adjacency == ADD_REMOVE
    facts = [
        ("For whom", _unit(guarantee)),
        ("ε and δ", _parameters(guarantee, who, added)),
        ("Attack accuracy", _accuracy(profile.attack_accuracy(), guarantee, added)),
    ]
    decision, named = percent(float(profile.tpr(_DECISION))), percent(float(profile.tpr(0.01)))
    if decision != "100":
        rows, be = ("rows", "are") if guarantee.with_all_rows else ("row", "is")
        absent = f"{be} not in the data" if added else f"{be} replaced by another one"
        facts.append(
            (
                "Example: a decision",
                f"A person’s {rows} {absent}, and an insurer refuses the person with a probability of "
                f"{percent(_DECISION)} %. With the {rows} in the data, the probability is at most {decision} "
                "%.",
            )
        )
    if named != "100":
        facts.append(
            (
                "Example: a search",
                f"A test names 1 of 100 {who}s that were not in the data. It names at most {named} of 100 "
                "that were.",
            )
        )
    facts.append(("Worst case", unluckiest(profile, guarantee.delta)))
    return tuple((name, Sentence(text)) for name, text in facts)


def _unit(guarantee: Guarantee) -> str:
    if guarantee.unit == UNIT:
        return (
            "Each row of the training table. The ledger does not say what a row is. A person is protected "
            "only if nobody has more than one row."
        )
    if guarantee.with_all_rows:
        unit = guarantee.unit.removeprefix("one ")
        return f"Each {unit} in the training table. A person is protected if nobody has two identifiers."
    what = guarantee.unit.removeprefix(f"{UNIT} = ")
    return f"Each row of the training table. One row is {what}."


def _parameters(guarantee: Guarantee, who: str, added: bool) -> str:
    others = "without it" if added else "with another one in its place"
    epsilon, delta = guarantee.epsilon, guarantee.delta
    rarely = f"1 in {math.floor((1 + 1e-12) / delta):,}" if delta else "0"
    many = epsilon > math.log(1e6)
    times = "perhaps more than a million" if many else f"at most {round_up(math.exp(epsilon), 3)}"
    return (
        f"ε = {round_up(epsilon)}, δ = {round_up(delta)}. With one {who} in the data, any event is {times} "
        f"times as probable as {others}, plus at most {rarely}."
    )


def _accuracy(accuracy: float, guarantee: Guarantee, added: bool) -> str:
    who, counted = guarantee.who, Counted.of(guarantee.unit)
    question = f"whether a {who} was in the data" if added else f"which of two {who}s was in the data"
    right = percent(accuracy)
    most = "every guess may be correct" if right == "100" else f"at most {right} of 100 guesses are correct"
    return (
        f"An attacker guesses {question}. If both answers are equally likely, {most}. Random guessing gives "
        f"50. This holds even if the attacker knows all other {counted}."
    )


def unluckiest(profile: Profile, delta: float) -> str:
    """Say how sure an attacker may become after one output: a proved bound for every record.

    Examples
    --------
    >>> from dpsynth.privacy import gaussian_event
    >>> print(unluckiest(Profile([gaussian_event(1.6)]), 1e-5))
    Attack accuracy (62.3 of 100) is an average over all possible outputs. After a single one, an attacker is
    at most 92.9 % sure. Greater certainty: once in 5,200 times or less often.
    """
    belief = percent(profile.belief(delta))
    beyond = profile.belief_exceedance(delta)
    rarely = once_in(beyond) if beyond else "never"
    if float(belief) >= 100:
        sure = "After a single one, an attacker may be almost certain."
    elif beyond > 0.5:
        sure = "No limit is proved for how sure an attacker is after a single one."
    else:
        sure = f"After a single one, an attacker is at most {belief} % sure. Greater certainty: {rarely}."
    right = percent(profile.attack_accuracy())
    accuracy = "Attack accuracy" if right == "100" else f"Attack accuracy ({right} of 100)"
    return f"{accuracy} is an average over all possible outputs. {sure}"
