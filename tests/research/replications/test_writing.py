"""A study's files: whole, closed, escaped, and plain about what is internal."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from itertools import pairwise

import pytest
import study_results as made
from page_outline import Outline, check_self_contained

from dpsynth.privacy import Ledger, gaussian_event
from dpsynth.research.replications.results import Results
from dpsynth.research.replications.trial import Task, Trial
from dpsynth.research.replications.writing import study_page
from dpsynth.research.writing import write_results

HOSTILE = "<script>alert(1)</script> a|b ![x](http://y)"


def hostile() -> Results:
    """Names that would become something, and a fit that was refused."""
    results = made.made_up(title=HOSTILE, citation=HOSTILE, question=HOSTILE)
    refused = Task("ε = 3", "split", 1, 0)
    ledger = Ledger()
    ledger.exclude("the stratified split")
    ledger.post("counts", gaussian_event(2.0), sensitivity="1")
    trials = []
    for trial in results.trials:
        if trial.task == refused:
            trial = Trial(refused, records=1000, columns=3, problem=f"no room for {HOSTILE}")
        elif trial.task == Task("ε = 3", "split", 0, 0):
            trial = replace(trial, ledger=ledger.to_dict())
        trials.append(trial)
    return replace(results, trials=tuple(trials), source=HOSTILE)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("study")
    names = write_results(study_page(hostile()), folder)
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert set(names) == there and len(names) == len(there)
    return {name: (folder / name).read_text(encoding="utf-8") for name in names}


def test_the_page_is_closed(files):
    """Catches scripts, addresses outside the page, and names that become elements."""
    page = files["results.html"]
    check_self_contained(page)
    outline = Outline(page)
    assert not outline.of("b") and HOSTILE in "".join(outline.words)


def test_the_page_has_a_structure(files):
    """Catches headings out of order, dead anchors, tables and images without words, regions of one name."""
    outline = Outline(files["results.html"])
    levels = [int(tag[1]) for tag, _ in outline.tags if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit()]
    assert levels.count(1) == 1 and all(after <= before + 1 for before, after in pairwise(levels))
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert all(attributes["href"][1:] in ids for attributes in outline.of("a"))
    assert outline.of("img") and all(attributes["alt"] for attributes in outline.of("img"))
    regions = [a["aria-label"] for _, a in outline.tags if a.get("role") == "region"]
    assert len(regions) == len(set(regions)) == len(outline.of("table")) > 10


@pytest.mark.parametrize("name", ["results.md", "results.html"])
def test_it_says_what_it_is(files, name):
    """Catches a file that could be taken for one to release, a private baseline, a hidden refusal."""
    text = files[name]
    assert "CONFIDENTIAL: do not share." in text and text.index("CONFIDENTIAL") < text.index("Procedure")
    assert "NOT PRIVATE" in text
    assert "the stratified split" in text
    assert "no room for" in text
    assert "75 %" in text  # three seeds hold their median with a probability of 1 - 1/4
    for sheet in json.loads(files["results.json"])["sheets"]:
        assert sheet["title"] in text


def test_markdown_is_inert(files):
    """Catches a name in the text that a renderer obeys."""
    assert "<script" not in files["results.md"] and "](http" not in files["results.md"]


def test_json_has_everything_but_ledgers(files):
    """Catches a record that cannot be read, an infinite number, and noise that is written twice."""
    record = json.loads(files["results.json"])
    assert record["internal"] is True and record["protocol"]["name"] == "made-up"
    assert not any("ledger" in trial for trial in record["trials"])
    assert len(record["trials"]) == len(hostile().trials)
    assert record["epsilon"]["ε = 3"]["all_restarts"] > record["epsilon"]["ε = 3"]["one_fit"]


def test_tables_can_be_read(files):
    """Catches lines of different lengths, and a table of the page that has no file."""
    sheets = json.loads(files["results.json"])["sheets"]
    assert {f"tables/{sheet['name']}.csv" for sheet in sheets} == {name for name in files if "/" in name}
    for sheet in sheets:
        lines = list(csv.reader(files[f"tables/{sheet['name']}.csv"].splitlines()))
        assert all(len(line) == len(lines[0]) for line in lines)
        assert len(lines) == 1 + len(sheet["rows"]) * (len(sheet["header"]) - 1)


def test_written_again(tmp_path):
    """Catches files that differ each time, and tables of an earlier protocol that stay."""
    write_results(study_page(made.made_up()), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    write_results(study_page(made.made_up()), tmp_path)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    write_results(study_page(made.made_up(findings=None)), tmp_path)
    assert not (tmp_path / "tables" / "findings.csv").exists()
