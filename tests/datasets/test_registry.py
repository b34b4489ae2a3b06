"""Data cards, and the files behind them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from dpsynth import datasets
from dpsynth.datasets import files
from dpsynth.datasets.data_cards import Card
from dpsynth.datasets.files import table_of
from dpsynth.errors import DataError
from dpsynth.files.storage import sha256
from dpsynth.table import require_reviewed

FILES = (
    "diabetes130",
    "diabetes130_hba1c",
    "flchain",
    "flchain_followed",
    "heart_failure_299",
    "mimic3_heart_failure",
    "physionet2012",
)
#: whose file takes seconds to read
LARGE = ("diabetes130", "diabetes130_hba1c")
Loader = Callable[[str], datasets.Table]


def test_names() -> None:
    """A card that is not found, or a file that is no card, would be missed or crash the list."""
    assert datasets.names() == tuple(sorted(("breast_cancer", "randhie", "support2", *FILES)))


def test_cards_are_complete() -> None:
    """A card without a reviewed schema, n_public or outcome cannot start a private run."""
    for name in datasets.names():
        card = datasets.card(name)
        assert card.table.name == card.name == name
        assert require_reviewed(card.table) == {}
        assert card.table.n_public is not None
        assert card.table.outcome == card.table.names[-1]
        for column in card.table.columns:
            if column.is_numeric:
                # a declared grid is of a size that a histogram can pay for; others follow a rule
                assert column.cells is None or column.cells <= 128, column.name
        assert card.table.unit is not None and len(card.one_row) > 80 and card.licence_page
        assert card.source != "file" or (card.origin.address and card.leaking)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in FILES]
)
def test_load_files(name: str, loaded: Loader) -> None:
    """A card whose checksum, columns, categories or n_public are not those of the published file."""
    table = loaded(name)
    assert tuple(table.frame.columns) == table.schema.names
    assert len(table.frame) == table.schema.n_public
    clipped = table.schema.conform(table.frame).clipped
    assert max(clipped.values()) < 0.02 * len(table.frame)
    assert table.frame[table.outcome].nunique() == 2


def test_load_support2_fills_vital_signs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant in place of a laboratory value would hide that it was not measured. It needs no folder."""
    monkeypatch.delenv("DPSYNTH_DATA_DIR", raising=False)
    table = datasets.load("support2")
    assert table.frame.shape == (9_105, 21) and table.frame["hospdead"].value_counts()[1] == 2_360
    missing = table.frame.isna().sum()
    assert missing["temp"] == missing["sod"] == missing["scoma"] == 0
    assert missing["ph"] == 2284
    assert missing["race"] == 42
    assert (table.frame["temp"] * 10 % 1 > 0.01).any()  # noisy decimals are rounded by the encoder, not here


def test_the_shipped_table_is_that_of_the_published_file(data_dir: Path) -> None:
    """A shipped cell that differs from the file of the study, whose checksum its publisher's copy has."""
    path = data_dir / "support2.csv"
    assert sha256(path) == "4f7dfcfb0d702401adfd0fa47702ed18fdd4dfe37acd0bcf1055acb7df007a1b"
    card = datasets.card("support2")
    raw = pd.read_csv(path, dtype=str, keep_default_na=False).map(str.strip)
    assert set(raw.columns) > set(card.leaking)
    pd.testing.assert_frame_equal(
        table_of(card, raw[list(card.table.names)].replace("", None)).frame, datasets.load("support2").frame
    )


def test_load_breast_cancer_needs_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo must run without any data folder, and with the target's meaning the right way round."""
    monkeypatch.delenv("DPSYNTH_DATA_DIR", raising=False)
    table = datasets.load("breast_cancer")
    assert table.frame.shape == (569, 31)
    assert table.frame["diagnosis"].value_counts().to_dict() == {"benign": 357, "malignant": 212}
    means = table.frame.groupby("diagnosis")["mean_radius"].mean()
    assert means["malignant"] > means["benign"]


def test_the_demos_table_holds_amounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logarithms left in, a 0 that becomes 1 dollar, means passed off as answers, or a rule that is false."""
    monkeypatch.delenv("DPSYNTH_DATA_DIR", raising=False)
    table = datasets.load("randhie")
    frame = table.frame
    assert frame.shape == (20_190, 8) and "not one person" in str(table.schema.unit)
    assert frame["coinsurance"].value_counts().to_dict() == {
        0: 10997,
        25: 4065,
        95: 2653,
        50: 1401,
        100: 1074,
    }
    assert (frame["expense_limit"] == 0).sum() == 8379 and (frame["expense_limit"] == 474).sum() == 2734
    assert (frame["incentive"] == 1).sum() == 0 and frame["incentive"].max() == 1292
    assert frame["visits"].sum() == 57_752 and frame["limitation"].isna().sum() == 1052
    free = (frame["coinsurance"] == 0) & (frame["deductible"] == "no")
    assert (frame.loc[free, "expense_limit"] == 0).all() and free.sum() > 6000


def test_breast_cancer_bounds_are_not_the_datas() -> None:
    """Bounds equal to the smallest or largest value would have been read off the records."""
    table = datasets.load("breast_cancer")
    for column in table.schema.columns:
        if column.is_numeric:
            values = table.frame[column.name]
            assert column.upper > 1.05 * values.max()
            assert column.lower < 0.95 * values.min() or column.lower == 0


def test_folder_not_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the folder or the file, the error must say which variable to set, and how to fetch it."""
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("DPSYNTH_DATA_DIR", raising=False)
    with pytest.raises(DataError, match=r"flchain\.csv: set the environment variable DPSYNTH_DATA_DIR"):
        datasets.load("flchain")
    monkeypatch.setenv("DPSYNTH_DATA_DIR", str(tmp_path))
    with pytest.raises(DataError, match="or run dpsynth data flchain --fetch"):
        datasets.load("flchain")
    with pytest.raises(DataError, match=re.escape(f"{tmp_path / 'flchain.csv'} is not there")):
        datasets.load("flchain", data_dir=tmp_path)


def test_checksum(tmp_path: Path) -> None:
    """One changed byte makes it another data set, for which no figure of ours holds."""
    (tmp_path / "flchain.csv").write_bytes(b"rownames,age\n1,97\n")
    with pytest.raises(DataError, match=r"checksum of .*flchain\.csv is not the card's"):
        datasets.load("flchain", data_dir=tmp_path)


GOOD = """
name: tiny
title: Tiny
description: Two columns.
origin: {citation: Nobody}
licence: CC0
file: tiny.csv
sha256: "%s"
bounds: made up
one_row: each row somebody else
schema:
  unit: one made-up person
  n_public: 4
  outcome: b
  columns:
  - {name: a, kind: integer, lower: 0, upper: 9}
  - {name: b, kind: binary, categories: [no, yes]}
""" % ("0" * 64)


def test_card_errors() -> None:
    """A card that lacks its licence, its bounds' review or its right columns must not be used."""
    for before, after, words in [
        ("licence: CC0", "", "tiny.yaml: licence is required"),
        ("licence: CC0", "license: CC0", "tiny.yaml: "),
        ("n_public: 4", "", "needs n_public and outcome"),
        ("upper: 9", "upper: -1", "column 'a': lower must be less than upper"),
        ("upper: 9", "upper: 9, unreviewed: [upper]", "the schema of a data card must be reviewed: a"),
        ("bounds: made up", "bounds: made up\nfill: {c: 1}", "fill names 'c'"),
        ("bounds: made up", "bounds: made up\ncolumns: {c: C}", "columns names 'c'"),
        ("file: tiny.csv", "file: ../tiny.csv", "is not the name of a file on every computer"),
        ("one_row: each row somebody else", "", "tiny.yaml: one_row is required"),
        ("  unit: one made-up person\n", "", "needs a unit: what is one row?"),
        ("bounds: made up", "bounds: made up\nrecode: {c: {x: y}}", "recode names 'c'"),
        ("bounds: made up", "bounds: made up\nrequired: [c]", "required names 'c'"),
        ("bounds: made up", "bounds: made up\nleaking: {a: why}", "'a' is both leaking and taken"),
        ("bounds: made up", "bounds: made up\npreparation: os", "preparation must be one of diabetes130"),
        ("bounds: made up", "bounds: made up\ncredentials: true", "credentials need the licence_page"),
        ("Nobody", "Nobody, commit: abc", "repository, commit and path belong together"),
        ("Nobody", "Nobody, member: a.csv", "member and archive_sha256 belong together"),
        (
            "Nobody",
            "Nobody, download: x, repository: a/b, commit: c, path: d",
            "give either download, or repository, commit and path",
        ),
        ('"' + "0" * 64 + '"', "12", "sha256 must be a valid string"),
        ("name: tiny\n", "name: Tiny One\n", "name"),
    ]:
        assert Card.from_yaml(GOOD).table["b"].categories == ("no", "yes")
        with pytest.raises(DataError, match=re.escape(words)) as caught:
            Card.from_yaml(GOOD.replace(before, after, 1), origin="tiny.yaml")
        assert str(caught.value).startswith("tiny.yaml")
        assert "\n" not in str(caught.value)


def test_what_a_card_does_to_the_cells() -> None:
    """A recode that misses, a record kept without its outcome, a constant in place of it."""
    more = "bounds: made up\ncolumns: {a: A}\nrequired: [b]\nfill: {a: 5}\n"
    more += "recode: {b: {'0': no, '1': yes, '-1': null}}"
    card = Card.from_yaml(GOOD.replace("bounds: made up", more))
    raw = pd.DataFrame(
        {"A": ["1", None, "3", "4"], "b": ["0", "1", "-1", None], "id": list("wxyz")}, dtype=object
    )
    table = table_of(card, raw)
    assert table.frame["a"].tolist() == [1, 5] and table.frame["b"].tolist() == ["no", "yes"]
    with pytest.raises(DataError, match=r"tiny\.csv: the column 'A' that data set 'tiny' needs is absent"):
        table_of(card, raw.drop(columns="A"))
    assert [cell for cell in raw["A"]] == ["1", None, "3", "4"]


def test_a_word_that_looks_absent_is_read_where_it_is_declared(tmp_path: Path) -> None:
    """A renamed column's category NA (no alcohol) that is read as a missing value."""
    text = "A,b\n1,NA\n2,yes\n3,yes\n4,NA\n"
    (tmp_path / "tiny.csv").write_text(text)
    card = GOOD.replace("0" * 64, hashlib.sha256(text.encode()).hexdigest())
    card = (
        card.replace("[no, yes]", "['NA', yes]")
        .replace("name: b", "name: drinks")
        .replace("outcome: b", "outcome: drinks")
    )
    card = card.replace("bounds: made up", "bounds: made up\ncolumns: {a: A, drinks: b}")
    (tmp_path / "tiny.yaml").write_text(card)
    frame = datasets.load(str(tmp_path / "tiny.yaml"), data_dir=tmp_path).frame
    assert frame["drinks"].tolist() == ["NA", "yes", "yes", "NA"]


def test_a_fit_is_told_what_a_row_is() -> None:
    """A split of the table whose schema has lost what a row is."""
    for name in FILES:
        schema = datasets.card(name).table
        assert schema.with_n_public(10).unit == schema.modelled.unit == schema.unit
