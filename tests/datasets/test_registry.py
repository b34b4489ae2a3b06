"""Data cards, and the files behind them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpsynth import datasets
from dpsynth.datasets.card import Card
from dpsynth.errors import DataError
from dpsynth.table import require_reviewed

FILES = ("diabetes130", "flchain", "heart_failure_299", "mimic3_heart_failure", "physionet2012", "support2")


def test_names() -> None:
    """A card that is not found, or a file that is no card, would be missed or crash the list."""
    assert datasets.names() == ("breast_cancer", *FILES)


@pytest.mark.parametrize("name", datasets.names())
def test_cards_are_complete(name: str) -> None:
    """A card without a reviewed schema, n_public or outcome cannot start a private run."""
    card = datasets.card(name)
    assert card.table.name == card.name == name
    assert require_reviewed(card.table) == {}
    assert card.table.n_public is not None
    assert card.table.outcome == card.table.names[-1]
    for column in card.table.columns:
        if column.is_numeric:
            # a declared grid is of a size that a histogram can pay for; others follow a rule
            assert column.cells is None or column.cells <= 128, column.name


@pytest.mark.parametrize("name", FILES)
def test_load_files(name: str, data_dir: Path) -> None:
    """A card whose checksum, columns, categories or n_public are not those of the published file."""
    table = datasets.load(name, data_dir=data_dir)
    assert tuple(table.frame.columns) == table.schema.names
    assert len(table.frame) == table.schema.n_public
    clipped = table.schema.conform(table.frame).clipped
    assert max(clipped.values()) < 0.02 * len(table.frame)
    assert table.frame[table.outcome].nunique() == 2


def test_load_support2_fills_vital_signs_only(data_dir: Path) -> None:
    """A constant in place of a laboratory value would hide that it was not measured."""
    table = datasets.load("support2", data_dir=data_dir)
    missing = table.frame.isna().sum()
    assert missing["temp"] == missing["sod"] == missing["scoma"] == 0
    assert missing["ph"] == 2284
    assert missing["race"] == 42
    assert (table.frame["temp"] * 10 % 1 > 0.01).any()  # noisy decimals are rounded by the encoder, not here


def test_load_breast_cancer_needs_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo must run without any data folder, and with the target's meaning the right way round."""
    monkeypatch.delenv("DPSYNTH_DATA_DIR", raising=False)
    table = datasets.load("breast_cancer")
    assert table.frame.shape == (569, 31)
    assert table.frame["diagnosis"].value_counts().to_dict() == {"benign": 357, "malignant": 212}
    means = table.frame.groupby("diagnosis")["mean_radius"].mean()
    assert means["malignant"] > means["benign"]


def test_breast_cancer_bounds_are_not_the_datas() -> None:
    """Bounds equal to the smallest or largest value would have been read off the records."""
    table = datasets.load("breast_cancer")
    for column in table.schema.columns:
        if column.is_numeric:
            values = table.frame[column.name]
            assert column.upper > 1.05 * values.max()
            assert column.lower < 0.95 * values.min() or column.lower == 0


def test_unknown_name() -> None:
    """A slip in the name must list the names there are, and no path may pass for a name."""
    with pytest.raises(DataError, match=r"no data set 'flchian' \(data sets: breast_cancer, flchain"):
        datasets.load("flchian")
    with pytest.raises(DataError, match="there is no data set"):
        datasets.load("../datasets/flchain")


def test_folder_not_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the folder or the file, the error must say which variable to set."""
    monkeypatch.delenv("DPSYNTH_DATA_DIR", raising=False)
    with pytest.raises(DataError, match=r"flchain\.csv: set the environment variable DPSYNTH_DATA_DIR"):
        datasets.load("flchain")
    monkeypatch.setenv("DPSYNTH_DATA_DIR", str(tmp_path))
    with pytest.raises(
        DataError, match=re.escape(f"{tmp_path / 'flchain.csv'} is not there; DPSYNTH_DATA_DIR")
    ):
        datasets.load("flchain")


def test_environment_variable_is_used(monkeypatch: pytest.MonkeyPatch, data_dir: Path) -> None:
    """The variable, not only the argument, must lead to the file."""
    monkeypatch.setenv("DPSYNTH_DATA_DIR", str(data_dir))
    assert len(datasets.load("heart_failure_299").frame) == 299


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
schema:
  n_public: 4
  outcome: b
  columns:
  - {name: a, kind: integer, lower: 0, upper: 9}
  - {name: b, kind: binary, categories: [no, yes]}
""" % ("0" * 64)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("licence: CC0", "", "tiny.yaml: licence is required"),
        ("licence: CC0", "license: CC0", "tiny.yaml: "),
        ("n_public: 4", "", "needs n_public and outcome"),
        ("upper: 9", "upper: -1", "column 'a': lower must be less than upper"),
        ("upper: 9", "upper: 9, unreviewed: [upper]", "the schema of a data card must be reviewed: a"),
        ("bounds: made up", "bounds: made up\nfill: {c: 1}", "fill names 'c'"),
        ("bounds: made up", "bounds: made up\ncolumns: {c: C}", "columns names 'c'"),
        ('"' + "0" * 64 + '"', "12", "sha256 must be a valid string"),
        ("name: tiny\n", "name: Tiny One\n", "name"),
    ],
)
def test_card_errors(before: str, after: str, words: str) -> None:
    """A card that lacks its licence, its bounds' review or its right columns must not be used."""
    assert Card.from_yaml(GOOD).table["b"].categories == ("no", "yes")
    with pytest.raises(DataError, match=re.escape(words)) as caught:
        Card.from_yaml(GOOD.replace(before, after, 1), origin="tiny.yaml")
    assert str(caught.value).startswith("tiny.yaml")
    assert "\n" not in str(caught.value)


def test_card_of_another_shape() -> None:
    """A list in place of a mapping must be one sentence and no traceback."""
    with pytest.raises(DataError, match="a mapping is required, got list"):
        Card.from_yaml("[1, 2]")
