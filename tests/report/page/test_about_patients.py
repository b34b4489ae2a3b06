"""Pages of tables in which patients have several rows: every sentence is about patients."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
import report_sources as sources
from matplotlib.text import Text
from plain_words import complaints
from visits import VISITS, visits

from dpsynth.checks import Counted
from dpsynth.evaluation import evaluate
from dpsynth.files.text import shipped_yaml
from dpsynth.report import blocks
from dpsynth.report.page import folds_of, parts_of, render, to_markdown
from dpsynth.report.run_report import RunReport
from dpsynth.report.words import wording
from dpsynth.table.schema import Column

pytestmark = pytest.mark.usefixtures("undrawn")
SPLIT = {"split": {"method": "independent", "test_fraction": 0.5}}


@cache
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


def test_meanings_of_subgroups_are_about_patients():
    """Catches a frame of measures that speaks of records."""
    frame = report().measured.to_dataframe()
    meanings = "; ".join(set(frame.query("group == 'Subgroups'")["meaning"]))
    assert "share of synthetic patients" in meanings and "auc among held-out patients" in meanings
    assert "record" not in meanings


def test_what_programs_read_stays_as_it_is():
    """Catches anchors, keys of a configuration and names of measures that are changed with the words."""
    plain, about = (
        [*parts_of(each), *folds_of(each, internal=True)] for each in (report(unit=None), report())
    )
    assert {part.anchor for part in about} == {part.anchor for part in plain}
    named = replace(report(), config={"records": "all records"})
    assert "records: all records" in to_markdown(named) and "records: all records" in render(
        named, "internal"
    )
    assert "train_records" in report().measured and "synthetic_records" in report().to_dict()["table"]


#: a column called records, with a category of that word, of patients with several rows
NAMED = VISITS.model_copy(
    update={
        "columns": (
            VISITS.table.column("day"),
            Column(name="records", kind="binary", categories=("No record", "hospital record")),
            VISITS.table.column("weight"),
        ),
        "per_patient": ("records",),
    }
)


def named(n: int, seed: int) -> pd.DataFrame:
    rows = visits(n, seed)[["id", "day", "sex", "weight"]].rename(columns={"sex": "records"})
    return rows.assign(records=rows["records"].map({"F": "No record", "M": "hospital record"}))


@pytest.mark.slow
def test_data_are_never_reworded():
    """Catches a page of patients that calls a category "No patient", or a column by another name."""
    tables = [named(n, seed) for seed, n in enumerate((60, 60, 60))]
    found = evaluate(tables[0], train=tables[1], test=tables[2], schema=NAMED, outcome="records", seed=0)
    told = RunReport.of_evaluation(found)
    words = [text.get_text() for name in told.plots for text in told.plot(name).findobj(Text)]
    plots = [line for name in told.plots for line in (told._plots[name].alt, told._plots[name].caption)]
    for text in (to_markdown(told), render(told, "internal"), "\n".join([*words, *plots])):
        assert "No record" in text and "real patients" in text
        assert not re.search(r"[Nn]o patient\b|hospital patient|predicting patients", text)
    page = to_markdown(told)
    assert "| records: hospital record, n (%) |" in page and "marginal[records]" in told.plots
    assert "Models that learn records from the synthetic table" in page


def test_every_entry_has_both_nouns_and_is_used():
    """Catches an entry that no section asks for, a noun that is not filled in, and hard sentences."""
    said = shipped_yaml("dpsynth.report.templates", "words.yaml")
    code = "".join(path.read_text() for path in Path(blocks.__file__).parent.rglob("*.py"))
    computed = r"(mean|median|counts) of columns|bounds of a (patient|row)|division of (records|patients)"
    computed += r"|for each (patient|row)|add/remove|replace-one"
    unused = {name for name in said if not re.search(f"[\"']{re.escape(name)}[\"']", code)}
    assert not [name for name in unused if not re.fullmatch(computed, name)]
    texts = [text for counted in Counted for name in said for text in _texts(wording(name, counted))]
    assert len(texts) > 200 and not [text for text in texts if re.search(r"\{(R?r?ecords?|own)\}", text)]
    assert not [one for text in texts for one in complaints(text, glossary=False) if "average" not in one]


def _texts(part: object) -> list[str]:
    if isinstance(part, str):
        return [part]
    parts = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return [text for each in parts for text in _texts(each)]


@pytest.mark.slow
def test_figures_speak_of_patients():
    """Catches a legend or an axis about records."""
    told = report()
    texts = [text.get_text() for name in told.plots for text in told.plot(name).findobj(Text)]
    assert any("patients" in text for text in texts) and not any("record" in text for text in texts)
