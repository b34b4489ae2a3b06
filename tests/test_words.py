"""README and documentation are in plain English."""

from __future__ import annotations

from pathlib import Path

from plain_words import complaints, complaints_of_code, sentences, words

ROOT = Path(__file__).resolve().parent.parent
# Pages whose text stands elsewhere: docstrings and command help.
GENERATED = ("api.md", "commands.md")
PAGES = sorted(
    page
    for page in [
        *ROOT.glob("*.md"),
        ROOT / "benchmarks" / "results" / "README.md",
        *(ROOT / "docs").glob("index.md"),
        *(ROOT / "docs").glob("*/*.md"),
    ]
    if page.name not in GENERATED and page.parent.name != "attacks"
)


def test_pages_are_in_plain_english():
    """Catches long sentences, subjects that come late, and words that have a plainer one in the glossary."""
    found = {}
    for page in PAGES:
        glossary = page.name not in ("glossary.md", "CHANGELOG.md")
        if told := complaints(page.read_text(encoding="utf-8"), glossary=glossary):
            found[str(page.relative_to(ROOT))] = told
    assert not found


def test_messages_are_in_plain_english():
    """Catches an error or a warning that a reader has to read twice."""
    found = {}
    for module in sorted((ROOT / "dpsynth").rglob("*.py")):
        if told := complaints_of_code(module.read_text(encoding="utf-8")):
            found[str(module.relative_to(ROOT))] = told
    assert not found


def test_the_help_of_commands_is_in_plain_english():
    """Catches help that starts with "Of", runs on, or uses a word with a plainer one in the glossary."""
    from typer.main import get_command

    from dpsynth.cli import app

    def texts(command):
        yield command.help or ""
        yield from (getattr(parameter, "help", None) or "" for parameter in command.params)
        for inner in getattr(command, "commands", {}).values():
            yield from texts(inner)

    found = list(texts(get_command(app)))
    assert len(found) > 120
    assert not [one for text in found for one in complaints(text) if "on average" not in one]


def test_the_complaints_are_heard():
    """Catches a check that finds nothing: each fault is in one sentence of its own."""
    faults = {
        " ".join(["word"] * 26) + ".": "26 words",
        "One is here; two is there.": "semicolon",
        "Of each row.": "starts with Of",
        "The records tilt.": "'tilt'",
        "The critic has two layers.": "'critic'",
    }
    for text, said in faults.items():
        assert any(said in complaint for complaint in complaints(text)), text
    assert not complaints(
        "The WGAN critic has two layers. Its `tilts` are off.\n\n```\ntilts\n```\n\n| tilts |\n|-|\n"
    )


def test_sentences_are_counted_as_readers_count():
    """Catches list items, links and code that run together, and so hide long sentences."""
    text = (
        "One [link here](http://x.y/z.html) ends. Two ends e.g. here.\n\n- three `a b c d` (4.5 %)\n- four\n"
    )
    assert [words(s) for s in sentences(text)] == [4, 4, 3, 1]
