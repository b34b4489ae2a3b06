"""A page's tags and words, and the rules that every page keeps."""

from __future__ import annotations

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
