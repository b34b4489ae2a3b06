"""Pages of tables in which patients have several rows: every sentence is about patients."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import report_sources as sources
from matplotlib.text import Text
from visits import VISITS

from dpsynth.report import blocks
from dpsynth.report.page import folds_of, parts_of, render, to_markdown
from dpsynth.report.run_report import RunReport

pytestmark = pytest.mark.usefixtures("undrawn")
SPLIT = {"split": {"method": "independent", "test_fraction": 0.5}}


def report(method: str = "independent", unit: str | None = VISITS.levels.unit) -> RunReport:
    """A report with a sentence of every kind, and a ledger about this unit."""
    ledger = sources.ledger_of()
    ledger._contents = replace(ledger._contents, unit=unit or "one row")
    shown, _ = sources.full_report(hostile=False)
    config = {**shown.config, "split": {"method": method, "test_fraction": 0.5}}
    table = {**shown.table, "synthetic_rows": 4321}
    return replace(shown, ledger=ledger, delta=sources.DELTA, config=config, table=table)


@pytest.mark.parametrize("method", ["independent", "stratified"])
def test_no_sentence_speaks_of_records_or_of_one_row(method):
    """Catches a sentence that calls a row or a record what is a patient with all rows."""
    told = report(method)
    for text in (to_markdown(told), repr(told), *(render(told, mode) for mode in ("internal", "release"))):
        found = re.findall(r".{50}\b(?:[Rr]ecords?|one row =|[Oo]ne row is|[Ee]ach row)\b.{30}", text)
        assert not found
        assert "one patient with all rows (id, at most 6 rows are used)" in text


def test_the_page_says_who_is_covered_and_how_they_were_divided():
    """Catches a guarantee for rows, a division by rows, and sizes without the number of rows."""
    text = " ".join(to_markdown(report()).split())
    for said in (
        "For whom: Each patient with all rows (id, at most 6 rows are used) in the training table.",
        "A person’s rows are not in the data",
        "A hash of the identifier assigned each patient, with all rows, to training or test.",
        "The guarantee is for each training patient with all rows.",
        "two tables that differ by one patient more or less",
        "Their rows: 4,321",
        "roughness: The mean absolute change",
    ):
        assert said in text
    assert "Privacy unit: The ledger says: one patient with all rows" in text.split("Handled")[1]


def test_a_table_of_records_keeps_its_words():
    """Catches words about patients on pages of tables with one row per record."""
    text = to_markdown(report(unit=None))
    assert "real records" in text and "roughness" not in text and "The ledger does not say" in text


def test_what_programs_read_stays_as_it_is():
    """Catches anchors, keys of a configuration and names of measures that are changed with the words."""
    plain, about = (
        [*parts_of(each), *folds_of(each, internal=True)] for each in (report(unit=None), report())
    )
    assert {part.anchor for part in about} == {part.anchor for part in plain}
    code = blocks.Code("Keys", "records: all")
    assert blocks.reworded((code,), str.upper) == (code,)
    assert "train_records" in report().measured and "synthetic_records" in report().to_dict()["table"]


@pytest.mark.slow
def test_figures_speak_of_patients():
    """Catches a legend or an axis about records."""
    told = report()
    texts = [text.get_text() for name in told.plots for text in told.plot(name).findobj(Text)]
    assert any("patients" in text for text in texts) and not any("record" in text for text in texts)
