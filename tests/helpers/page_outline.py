"""A page's tags and words, and the rules that every page keeps."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

VOID = {"meta", "img", "wbr", "br", "link"}


class Outline(HTMLParser):
    """Tags, attributes and words of a page; fails on tags that do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def check_self_contained(page: str) -> None:
    """Fail on scripts, handlers, and addresses outside the page."""
    outline = Outline(page)
    assert not outline.of("script") and not outline.of("link") and not outline.of("iframe")
    (policy,) = [a["content"] for a in outline.of("meta") if "http-equiv" in a]
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    for _, attributes in outline.tags:
        assert not any(name.startswith("on") for name in attributes)
        assert str(attributes.get("src", "data:")).startswith("data:")
    assert "url(http" not in page and "@import" not in page


def prose(page: str) -> str:
    """Paragraphs of a page, folded ones too, with a blank line between; names for programs are left out."""
    body = _body(page)
    body = re.sub(r"</?(?:wbr|strong|a|time)\b[^>]*>", "", body)
    found = re.findall(r"<(?:p|li|dd|figcaption)\b[^>]*>(.*?)(?=</|<(?:p|ul|details)\b)", body, re.DOTALL)
    return "\n\n".join(unescape(re.sub(r"<[^>]*>", " ", text)).strip() for text in found)


def labels(page: str) -> str:
    """The same of cells, captions, headings and descriptions of figures."""
    body = re.sub(r'<td class="quiet">.*?</td>', "", _body(page))
    found = re.findall(r"<(th|td|caption|h\d|dt|summary)\b[^>]*>(.*?)</\1>", body, re.DOTALL)
    found += re.findall(r' (alt|aria-label)="([^"]*)"', body)
    return "\n\n".join(unescape(re.sub(r"<[^>]*>", " ", text)).strip() for _, text in found)


def _body(page: str) -> str:
    body = re.sub(r"<nav.*?</nav>|<pre.*?</pre>", "", page.split("<body>")[1], flags=re.DOTALL)
    body = re.sub(r' <span class="badge">confidential</span>|Rule \w+, from [^<]*', "", body)
    return re.sub(r"<code>.*?</code>|\brelease\.html\b|dpsynth report --mode release", "`file`", body)
