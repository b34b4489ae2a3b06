"""Tables as plain text and as HTML for a notebook, with text from outside escaped."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from html import escape

#: where a notebook says that what it shows must not be shared
PRIVATE = "Confidential: read off the records. Clear this output before you share the notebook."


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose columns stand under each other.

    Examples
    --------
    >>> print(text_table(("column", "kind"), [("age", "integer"), ("sex", "binary")]))
    column  kind
    age     integer
    sex     binary
    """
    lines = [[" ".join(cell.split()) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as HTML, every cell escaped.

    Examples
    --------
    >>> "<b>" in html_table(("column",), [("<b>",)])
    False
    """
    head = "".join(f'<th style="text-align: left">{escape(name)}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align: left">{escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_folded(summary: str, inside: str) -> str:
    """Return HTML that is shown on demand."""
    return f"<details><summary>{escape(summary)}</summary>{inside}</details>"


def html_lines(lines: Iterable[str], kind: str = "p") -> str:
    """Return each line as an element of HTML, escaped.

    Examples
    --------
    >>> html_lines(["a < b"])
    '<p>a &lt; b</p>'
    """
    return "".join(f"<{kind}>{escape(line)}</{kind}>" for line in lines)


def show_figures() -> None:
    """Let a notebook show figures that a function returns, as it does once pyplot has drawn one."""
    if "IPython" in sys.modules:
        import matplotlib as mpl

        if "inline" in mpl.get_backend():
            importlib.import_module("matplotlib_inline.backend_inline")
