"""What every page shares: the frame of HTML around its sections, and the styles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Literal

from dpsynth.report.page.blocks import Section

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


@dataclass(frozen=True)
class Banner:
    """What stands in a box above a page: its first words in bold, and the rest."""

    kind: Literal["internal", "release", "void", "unknown"]
    first: str
    rest: str


def render_sections(
    title: str, parts: Sequence[Section], banners: Sequence[Banner], *, mode: str, day: str | None = None
) -> str:
    """Return a page of sections as HTML: no script, no address outside itself, everything escaped.

    Examples
    --------
    >>> banner = Banner("void", "NOT PRIVATE.", "")
    >>> page = render_sections("<b>", [Section("a", "A")], [banner], mode="internal")
    >>> "<b>" in page, "<title>&lt;b&gt; (internal)</title>" in page, "<script" in page
    (False, True, False)
    """
    entries = [(part.anchor, part.title) for part in parts]
    return render_template(
        "sections.html",
        title=title,
        day=day,
        mode=mode,
        banners=list(banners),
        parts=list(parts),
        entries=entries,
    )


def render_template(name: str, **values: object) -> str:
    """Return a template of this folder, filled; it extends ``frame.html``, which says what it needs."""
    return _environment().get_template(name).render(**values)


def _breakable(text: str) -> Markup:
    """Escaped text that may break after an underscore: names of measures are long for a phone."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(escape(part) for part in text.split("_"))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = resources.files("dpsynth.report.page")
    environment = Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    return environment
