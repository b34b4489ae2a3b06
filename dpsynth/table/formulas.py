"""Text cells that a spreadsheet would execute, and the apostrophe that keeps them text.

A category ``=HYPERLINK("http://…")`` comes into the table from whoever could type into the records; a
spreadsheet that opens the synthetic CSV file would run it.

References
----------
OWASP, *CSV Injection*: cells that begin with = + - @ tab or carriage return get an apostrophe in front.
"""

from __future__ import annotations

import re

# also the full-width signs, which some spreadsheets take for the ASCII ones; signs alone ("-", "++", the
# results of tests) and plain numbers are no formulas
_FORMULA = re.compile(r"'*(?![+-]*(?:\d+\.?\d*|\.\d+)?\Z)[=+\-@\t\r\uff1d\uff0b\uff0d\uff20].*", re.DOTALL)


def escape(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet takes for a formula.

    Text that already has apostrophes there gets one more, so that :func:`unescape` gives every text back.

    Examples
    --------
    >>> [escape(text) for text in ("=1+1", "@sum", "'=1+1", "-", "-1.5", "F", "'F")]
    ["'=1+1", "'@sum", "''=1+1", '-', '-1.5', 'F', "'F"]
    """
    return "'" + text if _FORMULA.fullmatch(text) else text


def unescape(text: str) -> str:
    """Take away the apostrophe that :func:`escape` put in.

    Examples
    --------
    >>> [unescape(text) for text in ("'=1+1", "''=1+1", "=1+1", "'F")]
    ['=1+1', "'=1+1", '=1+1', "'F"]
    """
    return text[1:] if text.startswith("'") and _FORMULA.fullmatch(text) else text
