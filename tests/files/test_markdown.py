"""Text of others in Markdown, by the renderer that rich brings along: all is there, nothing is live."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dpsynth.files.text import code_block, inert

LIVE = {"html_inline", "html_block", "link_open", "image"}
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![pixel](http://example.org/p.png)",
    "[click](javascript:alert(1))",
    "[x]: http://example.org",
    "<http://example.org>",
    "&lt;script&gt;",
    "line\n\n<script>alert(1)</script>",
    "```\n<script>alert(1)</script>",
    "a|b \\| c \\\\| d",
)
# every sign that begins something
signs = st.text(alphabet="<>[]()!|\\`&:*_#/ ab\n", max_size=30)


def kinds(text: str) -> set[str]:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return {child.type for token in tokens for child in [token, *(token.children or [])]}


@given(signs | st.sampled_from(HOSTILE))
def test_nothing_is_live(text: str) -> None:
    """A script, a picture that is fetched or a link that somebody planted in a category."""
    for around in ("{}", "# {}", "- {}", "> **{}**", "| a | b |\n|---|---|\n| {} | c |"):
        assert not kinds(around.format(inert(text))) & LIVE


@given(signs | st.sampled_from(HOSTILE))
def test_a_cell_stays_a_cell(text: str) -> None:
    """A bar in a name that shifts the numbers of a row under the headings of others."""
    table = f"| a | b |\n|---|---|\n| x{inert(text)}x | end |"
    tokens = MarkdownIt("commonmark").enable("table").parse(table)
    cells = [token.content for token in tokens if token.type == "inline"]
    assert len(cells) == 4 and cells[3] == "end"


def test_it_reads_as_it_was_written() -> None:
    """Text that is lost or changed on the way to its reader."""
    for text in ("age <= 90 & sex = 'F'", "[a] (b): c", "<script>alert(1)</script>"):
        html = MarkdownIt("commonmark").renderInline(inert(text))
        shown = html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")
        assert shown == text


@given(signs | st.sampled_from(HOSTILE))
def test_nothing_ends_a_block_of_code(text: str) -> None:
    """A configuration whose description closes the block that it is shown in."""
    lines = "\n".join(["before", "", *code_block(text, "yaml"), "", "after"])
    tokens = MarkdownIt("commonmark").parse(lines)
    assert [token.type for token in tokens if token.type in ("fence", "html_block")] == ["fence"]
    assert not kinds(lines) & LIVE
