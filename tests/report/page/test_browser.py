"""The page in a real browser: drawn, quiet, accessible, and fit for a phone and for paper."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import report_sources as sources

from dpsynth.report.page import MODES, write_page

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_BROWSER = next((path for name in _NAMES if (path := shutil.which(name))), None)
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SCREENS = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 375, "height": 667}}
#: that the page may be long before the folds
MOST_SCREENS = 7

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_BROWSER is None, reason="there is no chromium on this machine"),
]


@dataclass
class Opened:
    """A page in the browser, with what it complained about and asked for."""

    tab: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    # Playwright warns on standard error, not by warnings; its driver must not look for updates
    os.environ.setdefault("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=_BROWSER, args=list(_FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    report, _ = sources.full_report()
    folder = tmp_path_factory.mktemp("pages")
    for mode in MODES:
        write_page(report, folder / f"{mode}.html", mode)
    return {mode: folder / f"{mode}.html" for mode in MODES}


@pytest.fixture(scope="module", params=[(mode, screen) for mode in MODES for screen in SCREENS], ids="-".join)
def opened(request, browser, files) -> Iterator[Opened]:
    mode, screen = request.param
    tab = browser.new_page(viewport=SCREENS[screen])
    made = Opened(tab)
    tab.on("console", lambda message: made.complaints.append(message.text))
    tab.on("pageerror", lambda error: made.complaints.append(str(error)))
    tab.on("requestfailed", lambda asked: made.complaints.append(f"failed: {asked.url[:80]}"))
    tab.on("request", lambda asked: made.requests.append(asked.url[:80]))
    tab.goto(files[mode].as_uri())
    yield made
    tab.close()


def test_quiet_and_offline(opened):
    """Catches console errors, breaches of the page's own policy, and requests for anything outside it."""
    assert opened.complaints == []
    asked = [url for url in opened.requests if not url.startswith("data:")]
    assert len(asked) == 1 and asked[0].startswith("file:")


def test_all_plots_are_drawn(opened):
    """Catches an SVG that the browser refuses, and one of no size."""
    images = opened.tab.evaluate(
        "[...document.images].map(i => [i.complete, i.naturalWidth, i.naturalHeight, i.alt])"
    )
    assert len(images) >= 10
    assert all(complete and width > 100 and height > 50 and alt for complete, width, height, alt in images)


def test_no_sideways_scrolling(opened):
    """Catches a table, a long name or a figure that makes the whole page scroll sideways."""
    wide = opened.tab.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide[0] <= wide[1]
    # unfolded too
    opened.tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    wide = opened.tab.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide[0] <= wide[1]


def test_contents_lead_somewhere(opened):
    """Catches a line in the table of contents that leads nowhere."""
    dead = opened.tab.evaluate(
        "[...document.querySelectorAll('a[href^=\"#\"]')]"
        ".filter(a => !document.getElementById(a.getAttribute('href').slice(1))).map(a => a.href)"
    )
    assert dead == []
    opened.tab.click("nav a >> nth=0")
    assert opened.tab.url.endswith("#overview")
    opened.tab.click("p.more a >> nth=0")
    assert opened.tab.url.endswith("#ledger")
    assert opened.tab.evaluate("document.getElementById('ledger').closest('details').open")
    opened.tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")


@pytest.mark.parametrize("mode", MODES)
def test_seven_phone_screens(browser, tmp_path, mode):
    """Catches a page that is too long for a phone before the folds, of a run with as much as the demo's."""
    report, _ = sources.full_report(hostile=False)
    # the demo's patients have one row each
    over_time = ("rows_per_patient", "gaps", "lags", "events", "paths")
    details = {name: frame for name, frame in report.measured.details.items() if name not in over_time}
    report = replace(report, evaluation=replace(report.measured, details=details))
    ledger = sources.ledger_of()
    ledger.drawn_by("AES-128 in counter mode, key from the operating system's randomness")
    write_page(
        replace(report, ledger=ledger, attempts=sources.attempts_like_a_run()), tmp_path / "page.html", mode
    )
    tab = browser.new_page(viewport=SCREENS["phone"])
    try:
        tab.goto((tmp_path / "page.html").as_uri())
        length = tab.evaluate("document.querySelector('.folds').getBoundingClientRect().top + scrollY")
        assert 2 < length / SCREENS["phone"]["height"] <= MOST_SCREENS
    finally:
        tab.close()


def test_names_do_nothing(opened):
    """Catches a column's name that becomes an element."""
    assert opened.tab.evaluate("document.querySelectorAll('script, main b').length") == 0


def test_accessible(opened):
    """Catches what axe-core finds: contrast, names, roles, landmarks, headings, scrolling regions."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    opened.tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    result = axe.Axe().run(opened.tab)
    assert result.violations_count == 0, result.generate_report()


def test_badges(opened):
    """Catches an internal page without badges, and a release page with one."""
    badges = opened.tab.evaluate("document.querySelectorAll('.badge').length")
    mode = opened.tab.evaluate("document.title").rsplit("(", 1)[1].rstrip(")")
    assert badges == 0 if mode == "release" else badges > 50


@pytest.mark.parametrize("mode", MODES)
def test_print(browser, files, mode):
    """Catches lines that paper does not show, parts that nobody opened, and tables cut off at the margin."""
    # the width between the margins of A4
    tab = browser.new_page(viewport={"width": 688, "height": 1000})
    try:
        tab.goto(files[mode].as_uri())
        assert tab.evaluate("[...document.querySelectorAll('details')].every(d => !d.open)")
        tab.emulate_media(media="print")
        heights = """name => [...document.querySelectorAll(name)]
            .map(e => e.checkVisibility() ? e.getBoundingClientRect().height : 0)"""
        lines, folds = "main > section .items details > p", ".fold > section"
        assert tab.evaluate(heights, lines) and all(height > 0 for height in tab.evaluate(heights, lines))
        assert tab.evaluate(heights, folds) and not any(tab.evaluate(heights, folds))
        paper = tab.pdf(prefer_css_page_size=True)
        tab.evaluate("document.querySelectorAll('.fold').forEach(d => d.open = true)")
        inside = tab.evaluate(heights, "details > :not(summary)")
        assert inside and all(height > 0 for height in inside)
        cut = tab.evaluate(
            "[...document.querySelectorAll('img, table, pre')]"
            ".filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)"
            ".map(e => e.tagName + ' ' + (e.alt || e.innerText).slice(0, 60))"
        )
        assert cut == []
        assert paper.startswith(b"%PDF") and 20_000 < len(paper) < len(tab.pdf(prefer_css_page_size=True))
    finally:
        tab.close()
