"""One self-contained HTML page: no script, no address outside itself, everything from data escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dpsynth.errors import InputError
from dpsynth.files.atomic import write_text
from dpsynth.report.findings import verdicts
from dpsynth.report.findings.verdict import Verdict
from dpsynth.report.load import ReportSource
from dpsynth.report.page import plain
from dpsynth.report.page.blocks import Sentence
from dpsynth.report.page.card import card
from dpsynth.report.page.glossary import glossary
from dpsynth.report.page.sections import sections

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

Mode = Literal["internal", "release"]
MODES: tuple[Mode, ...] = ("internal", "release")


@dataclass(frozen=True)
class Box:
    """One half of the summary."""

    anchor: str
    title: str
    sentences: tuple[Sentence, ...]
    findings: tuple[Verdict, ...]


def render(source: ReportSource, mode: Mode) -> str:
    """Return the page of a source as HTML.

    Parameters
    ----------
    source : ReportSource
    mode : {"internal", "release"}
        ``internal`` shows everything and marks what was computed from real records; ``release`` is made from
        ``source.released()``, so that nothing internal can reach it.

    Returns
    -------
    str
        The same text for the same source.

    Raises
    ------
    InputError
        If the mode is unknown.

    Examples
    --------
    >>> page = render(ReportSource("A table of unknown origin"), "release")
    >>> "No guarantee is known" in page, "<script" in page
    (True, False)
    """
    if mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
    internal = mode == "internal"
    if not internal:
        source = source.released()
    parts = [*sections(source), card(source), glossary(internal=internal)]
    return _template().render(
        title=source.title,
        day=source.day,
        mode=mode,
        state=_state(source),
        shareable=_state(source) == "private",
        excluded="; ".join(source.ledger.excluded) if source.ledger is not None else "",
        boxes=_boxes(source),
        parts=parts,
        entries=[("summary", "In plain words"), *((part.anchor, part.title) for part in parts)],
    )


def write_page(source: ReportSource, path: str | Path, mode: Mode) -> None:
    """Write the page of a source, wholly or not at all.

    Parameters
    ----------
    source : ReportSource
    path : path
        In a folder that exists.
    mode : {"internal", "release"}
        See :func:`render`.

    Raises
    ------
    InputError
        If the mode is unknown.
    OSError
        If the file cannot be written.
    """
    write_text(path, render(source, mode))


def _state(source: ReportSource) -> str:
    """Whether a guarantee is void, unknown, given, or given with exceptions."""
    if source.guarantee is None:
        return "unknown"
    if not source.guarantee.private:
        return "void"
    return "partial" if source.ledger is not None and source.ledger.excluded else "private"


def _boxes(source: ReportSource) -> Sequence[Box]:
    found = list(verdicts.of_guarantee(source))
    if source.evaluation is not None:
        found += verdicts.verdicts(source.evaluation)
    order = {"bad": 0, "caution": 1, "good": 2}
    found.sort(key=lambda verdict: order[verdict.severity])
    halves = (
        ("risk", "What a patient risks", plain.risk(source)),
        ("trust", "What an analyst may trust", plain.trust(source)),
    )
    return [
        Box(about, title, sentences, tuple(verdict for verdict in found if verdict.about == about))
        for about, title, sentences in halves
    ]


def _breakable(text: str) -> Markup:
    """Escaped text that may break after an underscore: names of measures are long for a phone."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(escape(part) for part in text.split("_"))


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["breakable"] = _breakable
    text = resources.files("dpsynth.report.page").joinpath("template.html").read_text(encoding="utf-8")
    return environment.from_string(text)
