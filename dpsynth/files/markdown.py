"""Text of users and of data in Markdown, unchanged but without effect on a renderer.

Names of columns, categories, configurations and ledger entries come from outside. Markdown passes HTML
through. Without escaping, ``<script>`` in a category would run wherever the report is rendered. A picture's
address would be fetched.
"""

from __future__ import annotations

import re


def inert(text: str) -> str:
    """Return one line of text that is neither HTML, nor a link, a picture or the end of a table's cell.

    Examples
    --------
    >>> print(inert("<b>a|b</b> ![x](http://y)"))
    &lt;b>a\\|b&lt;/b> ![x]\\(http://y)
    >>> print(inert("age >= 90 & bmi < 18"))
    age >= 90 & bmi < 18
    """
    text = " ".join(text.split())
    # Only these begin HTML, an address or a sign by name. A formula stays readable on a console.
    text = re.sub(r"&(?=[#\w]|$)", "&amp;", text)
    text = re.sub(r"<(?=[A-Za-z/!?]|$)", "&lt;", text)
    text = re.sub(r"^>", "&gt;", text)
    # a link needs "](" or, where it is defined elsewhere, "]:"
    text = re.sub(r"\](?=[(:])", r"]\\", text)
    return re.sub(r"(?<!\\)((?:\\\\)*)\|", r"\1\\|", text)


def code_block(text: str, language: str = "") -> list[str]:
    """Return the lines of a block of code that nothing in the text can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", text, fence]
