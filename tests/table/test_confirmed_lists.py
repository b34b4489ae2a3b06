"""Lists of categories: copied from a draft they stay the owner's decision until each is confirmed by name."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import report_sources as sources
from modes import mode, usual_umask

from dpsynth.errors import SchemaError
from dpsynth.evaluation.resemblance import rare_categories
from dpsynth.evaluation.results import Evaluation
from dpsynth.evaluation.tables import Tables
from dpsynth.patients.inference import infer_patient_schema
from dpsynth.report.run_report import RunReport
from dpsynth.runs.pipeline import Origin
from dpsynth.table.files import read_table
from dpsynth.table.inference import infer_schema
from dpsynth.table.schema import Column, Schema

__all__ = ["usual_umask"]
pytestmark = pytest.mark.usefixtures("usual_umask")
CLINICS = [f"Clinic of Dr {name}" for name in "ABCDEFGH"]


def clinics(n: int = 400) -> pd.DataFrame:
    """Five clinics of many rows, one of nine, and two of one row each."""
    often = [CLINICS[i % 5] for i in range(n - 11)]
    clinic = [*often, *[CLINICS[5]] * 9, CLINICS[6], CLINICS[7]]
    return pd.DataFrame(
        {"clinic": clinic, "died": [i % 2 for i in range(n)], "age": [20 + i % 70 for i in range(n)]}
    )


def test_a_draft_asks_for_each_list_and_counts_its_rare_values() -> None:
    """Catches a draft that is silent about clinics of one row each, or asks about 0 and 1."""
    drafted = infer_schema(clinics())
    asked = {
        remark.column: remark.detail for remark in drafted.questions if "is this list public" in remark.text
    }
    assert asked == {"clinic": "8 categories, 3 of them in fewer than 10 rows"}
    assert "reviewed: true" in drafted.to_yaml() and "3 of them" in drafted.to_yaml()


def test_deleting_unreviewed_confirms_no_list() -> None:
    """Catches lists called confirmed because one word was deleted, or all at once."""
    text = infer_schema(clinics()).schema.to_yaml()
    deleted = "\n".join(line for line in text.splitlines() if "unreviewed" not in line) + "\n"
    for schema in (Schema.from_yaml(deleted), infer_schema(clinics()).schema.mark_reviewed()):
        assert not schema.unreviewed and schema["clinic"].unconfirmed and not schema["died"].unconfirmed
    named = infer_schema(clinics()).schema.mark_reviewed(["clinic", "age"])
    assert not named["clinic"].unconfirmed and set(named.unreviewed) == {"died"}
    assert Schema.from_yaml(named.to_yaml()) == named and "reviewed: true" in named.to_yaml()


def test_patients_lists_are_asked_for_as_well() -> None:
    """Catches a draft of patients with several rows that confirms by silence."""
    rows = clinics().assign(patient=[f"p{i // 2}" for i in range(400)])
    drafted = infer_patient_schema(rows, unit="patient")
    assert any("is this list public" in remark.text for remark in drafted.questions)
    assert drafted.schema.table["clinic"].unconfirmed


def test_codes_are_confirmed_as_lists_are() -> None:
    """Catches a code of one real row, read from a file or a frame, that counts as public unasked."""
    frame = clinics().assign(lab=[-999.0] * 3 + [20.0 + i % 50 for i in range(397)]).drop(columns="clinic")
    for given in (frame, frame.astype(str)):
        drafted = infer_schema(given)
        assert drafted.schema["lab"].special == (-999,)
        asked = {remark.column: remark.detail for remark in drafted.questions if "list public" in remark.text}
        assert asked == {"lab": "1 code, 1 of them in fewer than 10 rows"}
        plain = drafted.schema.mark_reviewed()
        assert plain.unconfirmed == plain.undecided == ("lab",) and not plain.unreviewed
        (found,) = rare_categories(Tables.of(frame.head(20), train=frame, test=None, schema=plain))
        assert found.value == 1 and found.internal
        named = drafted.schema.mark_reviewed(plain.names)
        assert named["lab"].reviewed and named.undecided == ()
        assert Schema.from_yaml(named.to_yaml()) == named
    missing = Column(name="x", kind="integer", lower=0, upper=9, missing=True, missing_codes=(-7,))
    assert missing.unconfirmed and not missing.model_copy(update={"reviewed": True}).unconfirmed


def test_nobody_else_reads_a_patients_schema_that_is_undecided(tmp_path: Path) -> None:
    """Catches clinics of single rows, or a largest number of rows, in a file that everybody can read."""
    rows = clinics().assign(patient=[f"p{i // 2}" for i in range(400)])
    drafted = infer_patient_schema(rows, unit="patient").schema
    columns = tuple(column.mark_reviewed(named=False) for column in drafted.columns)
    known = tuple(column.mark_reviewed(named=True) for column in drafted.columns)
    for changes, undecided in (
        ({}, ("rows", *drafted.names)),
        ({"columns": known}, ("rows",)),
        ({"columns": columns, "rows_unreviewed": ()}, ("clinic",)),
        ({"columns": known, "rows_unreviewed": ()}, ()),
    ):
        made = drafted.model_copy(update=changes)
        assert set(made.undecided) == set(undecided)
        made.to_yaml(tmp_path / "schema.yaml")
        assert bool(mode(tmp_path / "schema.yaml") & 0o077) == (not undecided)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"kind": "integer", "lower": 0, "upper": 9}, "has none"),
        (
            {"kind": "categorical", "categories": ("a", "b"), "unreviewed": ("categories",)},
            "unreviewed still",
        ),
    ],
)
def test_a_confirmation_that_confirms_nothing_is_refused(fields: dict, why: str) -> None:
    """Catches reviewed: true beside fields that are marked as read off the records."""
    with pytest.raises(
        SchemaError, match=f"column 'x': reviewed confirms a list of categories or codes, but .*{why}"
    ):
        Column(name="x", reviewed=True, **fields)


def schema(reviewed: bool = False) -> Schema:
    categories = tuple(CLINICS)
    return Schema(
        columns=(
            Column(name="clinic", kind="categorical", categories=categories, reviewed=reviewed),
            Column(name="died", kind="binary", categories=(0, 1)),
            Column(name="age", kind="integer", lower=0, upper=120),
        )
    )


def test_the_count_of_rare_values_is_for_the_owner_alone() -> None:
    """Catches a number of real rows in what may be shared, of training rows alone, or of confirmed lists."""
    real = clinics()
    train, test = real.iloc[::2], real.iloc[1::2]
    (found,) = rare_categories(Tables.of(real.head(20), train=train, test=test, schema=schema()))
    assert found.name == "rare_categories[clinic]" and found.value == 3 and found.internal
    assert list(rare_categories(Tables.of(real.head(20), train=train, test=test, schema=schema(True)))) == []
    report = RunReport(evaluation=Evaluation((found,)), table={"unconfirmed": "clinic"})
    assert "rare_categories" in json.dumps(report.to_dict())
    assert "rare" not in json.dumps(report.released().to_dict()) and "fewer" not in str(report.released())
    assert report.released().table["unconfirmed"] == "clinic"


def test_a_report_names_the_lists_that_nobody_confirmed() -> None:
    """Catches a run whose report leaves out which lists are unconfirmed, and so calls them handled."""
    origin = Origin(sources.ledger_of(), sources.DELTA)
    facts = {"name": "x", "size": {}, "outcome": None, "config": {}, "seconds": {}}
    for confirmed, named in ((False, "clinic"), (True, "")):
        assert origin.report(schema(confirmed), **facts).table["unconfirmed"] == named


def _readers(frame: pd.DataFrame, folder: Path) -> dict[str, pd.DataFrame]:
    """One table as every reader gives it."""
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    return {
        "frame": frame,
        "text": frame.astype(str),
        "objects": frame.astype(object),
        "CSV": read_table(folder / "t.csv"),
        "pandas' CSV": pd.read_csv(folder / "t.csv"),
        "Parquet": read_table(folder / "t.parquet"),
        "Parquet without a schema": pd.read_parquet(folder / "t.parquet", dtype_backend="pyarrow"),
        "categories": frame.astype("category"),
    }


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ((1, 2, 7, 9), ["4 categories, 2 of them in fewer than 10 rows"]),
        (("a", "b", "7", "?"), ["4 categories, 2 of them in fewer than 10 rows"]),
        ((2.0, 3.0, 7.0, 9.0), ["4 categories, 2 of them in fewer than 10 rows"]),
        ((5, 6), ["2 categories, 1 of them in fewer than 10 rows"]),
        ((True, False), []),
    ],
    ids=str,
)
def test_rare_values_are_counted_alike_whoever_reads_the_table(
    codes: tuple, said: list, tmp_path: Path
) -> None:
    """Catches codes from a file that were looked up as numbers among words: no category was called rare."""
    few = 3 if len(codes) == 2 else 300
    frame = pd.DataFrame({"stage": [codes[0]] * 300 + [codes[1]] * few + [*codes[2:]] * 2})
    for reader, table in _readers(frame, tmp_path).items():
        asked = [r.detail for r in infer_schema(table).questions if "is this list public" in r.text]
        assert (reader, asked) == (reader, said)
