"""The ledger: what it adds up, what one row is, and files that are refused."""

from __future__ import annotations

import json
import math
import os

import dp_accounting
import numpy as np
import pandas as pd
import pytest

from dpsynth import Column, DPMarginals, Schema
from dpsynth.errors import DataError, InputError, PrivacyError, SchemaError
from dpsynth.privacy import REPLACE_ONE, Cost, Ledger, LedgerFile, Profile
from dpsynth.privacy.events import (
    epsilon_delta_event,
    gaussian_event,
    non_private_event,
    training_event,
)
from dpsynth.privacy.guarantee import Guarantee


def full_ledger():
    ledger = Ledger()
    ledger.begin_stage(1e-5)
    ledger.post("count", gaussian_event(10.0), sensitivity="1")
    ledger.post("selection", epsilon_delta_event(0.05, count=10), sensitivity="1", detail="tree edges")
    ledger.post("critic", training_event(3.0, 0.02, 200), sensitivity="proved each step")
    ledger.exclude("bounds of 'age' were read off the data")
    ledger.drawn_by("a die")
    ledger.seeded = True
    return ledger


def state(ledger):
    return ledger.entries, ledger.excluded, ledger.generators, ledger.seeded, ledger.stages


def test_file_round_trip(tmp_path):
    """A field that is not written, or not read back, or a file left behind by the atomic write."""
    ledger, path = full_ledger(), tmp_path / "ledger.json"
    # without totals, which would tell that an entry is lost before anybody compares the entries
    assert state(Ledger.from_dict(ledger.to_dict(total=False))) == state(ledger)
    ledger.save(path)
    again = Ledger.load(path)
    assert state(again) == state(ledger)
    assert again.epsilon(1e-5) == ledger.epsilon(1e-5)
    assert os.listdir(tmp_path) == ["ledger.json"]
    assert state(Ledger.from_dict(Ledger().to_dict())) == ((), (), (), False, ())


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    """A ledger destroyed by a crash half-way through writing."""
    path = tmp_path / "ledger.json"
    full_ledger().save(path)
    before = path.read_text()
    monkeypatch.setattr(os, "fsync", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        Ledger().save(path)
    assert path.read_text() == before
    assert os.listdir(tmp_path) == ["ledger.json"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[: len(text) // 2], "not JSON"),
        (lambda text: "", "not JSON"),
        (lambda text: "\x00\x01", "not JSON"),
        (lambda text: "[1, 2]", "format"),
        (lambda text: "{}", "format"),
        (lambda text: text.replace('"version": 3', '"version": 4'), "newer dpsynth"),
        (lambda text: text.replace('"version": 3', '"version": 2'), "does not read"),
        (lambda text: text.replace('"unit": "one row"', '"unit": "one patient"'), "one patient"),
        (lambda text: text.replace('"delta": 1e-05', '"delta": 1e-04', 1), "its entries cost"),
        (
            lambda text: text.replace('"noise_multiplier": 10.0', '"noise_multiplier": 5.0'),
            "its entries cost",
        ),
        (lambda text: json.dumps(json.loads(text) | {"epsilon": 0.1}), "its entries cost"),
        (lambda text: json.dumps(json.loads(text) | {"tv": 0.9}), "its entries cost"),
        (lambda text: json.dumps(json.loads(text) | {"tv": None}), "its entries cost"),
        (lambda text: json.dumps(json.loads(text) | {"stages": 2 * json.loads(text)["stages"]}), "one key"),
        (
            lambda text: text.replace('"name": "count",', '"name": "count", "more": 1,', 1),
            "must have the fields",
        ),
        (lambda text: json.dumps(json.loads(text) | {"tv": "small"}), "number or null"),
        (lambda text: text.replace('"stage": 1', '"stage": 2', 1), "stage 2 is not one of 1 to 1"),
        (lambda text: json.dumps(Ledger().to_dict()), "it is empty"),
        (lambda text: text.replace('"seeded": true', '"seeded": "no"'), "seeded"),
        (lambda text: text.replace('"excluded"', '"exclude"'), "fields"),
        (lambda text: text.replace('"sensitivity": "1"', '"sensitivity": 1', 1), "sensitivity"),
        (lambda text: text.replace('"name": "count",', "", 1), "name"),
        (lambda text: text.replace('"noise_multiplier": 10.0', '"noise_multiplier": -10.0'), "-10"),
        (
            lambda text: text.replace('"adjacency": "add/remove"', '"adjacency": "none"', 1),
            "neighbouring datasets",
        ),
        (lambda text: json.dumps(json.loads(text) | {"entries": [3]}), "faulty entry"),
        (lambda text: json.dumps(json.loads(text) | {"epsilon": 10**400}), "faulty entry"),
        (lambda text: json.dumps(json.loads(text) | {"overflows": []}), "fields"),
    ],
)
def test_corrupt_files_give_one_sentence(tmp_path, damage, words):
    """A traceback, or a ledger with fewer costs than were written, from a damaged file."""
    path = tmp_path / "ledger.json"
    path.write_text(damage(json.dumps(full_ledger().to_dict(), indent=2)))  # without a checksum
    with pytest.raises(DataError, match=words) as caught:
        Ledger.load(path)
    assert "ledger.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", ["larger noise", "an entry less", "no doubt"])
def test_a_ledger_that_was_damaged_is_not_believed(tmp_path, damage):
    """A ledger from which a changed byte takes some of the cost, or something that it does not cover."""
    path = tmp_path / "ledger.json"
    full_ledger().save(path)
    record = json.loads(path.read_text())
    if damage == "larger noise":
        record["entries"][-1]["event"]["noise_multiplier"] = 90.0
    elif damage == "an entry less":
        del record["entries"][-1]
    else:
        record["excluded"] = []
    path.write_text(json.dumps(record))
    with pytest.raises(DataError, match=r"ledger\.json: its sha256 is not that of its contents"):
        Ledger.load(path)


def test_an_unknown_event_in_a_file_is_refused_by_name(tmp_path):
    """An event of a later version that is passed over, so that the cost is too low."""
    path = tmp_path / "ledger.json"
    text = json.dumps(full_ledger().to_dict())
    path.write_text(text.replace("EpsilonDeltaDpEvent", "TruncatedDpEvent"))
    with pytest.raises(PrivacyError, match="TruncatedDpEvent"):
        Ledger.load(path)


def test_summary_is_a_waterfall():
    """Entries that do not add up to the whole, or an order other than that of posting."""
    ledger = full_ledger()
    summary = ledger.summary(1e-5)
    alone = [entry["epsilon_alone"] for entry in summary["entries"]]
    cumulative = [entry["epsilon_cumulative"] for entry in summary["entries"]]
    assert [entry["name"] for entry in summary["entries"]] == ["count", "selection", "critic"]
    assert cumulative == sorted(cumulative)
    assert cumulative[-1] == summary["epsilon"] == ledger.epsilon(1e-5)
    assert alone[0] == Profile([gaussian_event(10.0)]).epsilon(1e-5) <= cumulative[0]
    assert all(a < c for a, c in zip(alone[1:], cumulative[1:], strict=True))
    assert summary["tv"] == summary["advantage"] == pytest.approx(2 * summary["attack_accuracy_bound"] - 1)
    assert summary["guarantee"] == str(ledger.guarantee(1e-5))
    assert (summary["seeded"], summary["not_private"]) == (True, False)
    json.dumps(summary)


def test_a_second_fit_adds_to_the_cost():
    """A second reading of the same table that starts from nothing."""
    ledger = Ledger()
    ledger.post("critic", training_event(3.0, 0.02, 200), sensitivity="1")
    once = ledger.epsilon(1e-5)
    ledger.post("critic", training_event(3.0, 0.02, 200), sensitivity="1")
    assert ledger.epsilon(1e-5) == pytest.approx(
        Profile([training_event(3.0, 0.02, 400)]).epsilon(1e-5), rel=1e-3
    )
    assert ledger.epsilon(1e-5) > once
    assert len(ledger.entries) == 2


def test_guarantee_states_a_bound_that_holds():
    """Figures rounded in the guarantee's own favour."""
    ledger = Ledger()
    ledger.post("count", gaussian_event(3.0), sensitivity="1")
    text = str(ledger.guarantee(1e-5))
    epsilon = float(text[1:].split(",")[0])
    tv = float(text.rstrip(".").split()[-1])
    assert 0 <= epsilon - ledger.epsilon(1e-5) < 2e-3
    assert 0 <= tv - ledger.profile().tv() < 2e-4
    assert "NOT PRIVATE" not in text
    assert str(Ledger().guarantee(1e-5)).startswith("NOT PRIVATE: this ledger has no entry")


def test_guarantee_says_when_there_is_none():
    """A reassuring sentence for a ledger with a bare release, a known seed, or an uncovered reading."""
    seeded = Ledger()
    seeded.post("count", gaussian_event(3.0), sensitivity="1")
    seeded.seeded = True
    assert seeded.guarantee(1e-5).status == "void"
    assert str(seeded.guarantee(1e-5)).startswith("NOT PRIVATE: the noise follows a seed")
    excluded = Ledger()
    excluded.post("count", gaussian_event(3.0), sensitivity="1")
    excluded.exclude("bounds of 'age'")
    excluded.exclude("bounds of 'age'")
    assert (excluded.guarantee(1e-5).status, excluded.guarantee(1e-5).private) == ("excludes", True)
    assert str(excluded.guarantee(1e-5)).endswith("does not cover: bounds of 'age'.")
    assert Ledger().not_private is False
    assert Guarantee(math.nan, 1e-5, 0.5).status == Guarantee(1.0, 1.0, 1.0).status == "void"
    assert str(Guarantee(math.nan, 1e-5, 0.5)).startswith("NOT PRIVATE at delta")
    zero = full_ledger()
    zero.seeded = False
    assert str(zero.guarantee(0.0)).startswith("NOT PRIVATE at delta 0")
    bare = full_ledger()
    bare.seeded = False
    bare.post("raw means", non_private_event(), sensitivity="unbounded")
    assert bare.not_private and zero.guarantee(0.0).status == bare.guarantee(1e-5).status == "void"
    for ledger in (seeded, excluded, zero, bare):
        record = json.loads(json.dumps(ledger.guarantee(1e-5).to_dict()))
        assert Guarantee.from_dict(record) == ledger.guarantee(1e-5)
        with pytest.raises(DataError, match="says"):
            Guarantee.from_dict(record | {"status": "private", "sentence": "(1, 1e-05)-private"})
    assert str(bare.guarantee(1e-5)).startswith("NOT PRIVATE: raw means was computed without any guarantee")
    summary = bare.summary(1e-5)
    assert (summary["epsilon"], summary["tv"]) == (math.inf, 1.0)
    assert math.isfinite(summary["entries"][2]["epsilon_cumulative"])


def test_posted_events_cannot_change_afterwards():
    """A list inside an event that the caller goes on changing after it was posted."""
    parts = [gaussian_event(1.0)]
    ledger = Ledger()
    ledger.post("two", dp_accounting.ComposedDpEvent(parts), sensitivity="1")
    before = ledger.epsilon(1e-5)
    parts.clear()
    assert ledger.epsilon(1e-5) == before > 1.0


def test_posts_that_cannot_be_accounted_for_are_refused():
    """A refusal that comes only when epsilon is asked for, after the data were read."""
    ledger = Ledger()
    for event, error, words in (
        (dp_accounting.UnsupportedDpEvent(), PrivacyError, "UnsupportedDpEvent"),
        (gaussian_event(math.inf), InputError, "finite"),
        (dp_accounting.GaussianDpEvent(math.nan), InputError, "noise_multiplier"),
    ):
        with pytest.raises(error, match=words):
            ledger.post("x", event, sensitivity="1")
    for texts, words in (
        ({"name": "", "sensitivity": "1"}, "name"),
        ({"name": "x", "sensitivity": ""}, "sensitivity"),
        ({"name": "x", "sensitivity": 1.0}, "sensitivity"),
        ({"name": "x", "sensitivity": "1", "detail": None}, "detail"),
    ):
        with pytest.raises(InputError, match=words):
            ledger.post(texts.pop("name"), gaussian_event(1.0), **texts)
    with pytest.raises(InputError, match="adjacency"):
        ledger.post("x", training_event(1.0, 0.1, 5), sensitivity="1", adjacency="replace")
    assert ledger.entries == ()


def test_adjacencies_do_not_mix():
    """An add/remove figure summed with a replace-one figure."""
    ledger = Ledger()
    ledger.post("a", gaussian_event(2.0), sensitivity="1", adjacency=REPLACE_ONE)
    assert ledger.epsilon(1e-5) == pytest.approx(4.377, abs=1e-3)
    assert "replacing one record" in str(ledger.guarantee(1e-5))
    with pytest.raises(PrivacyError, match="add/remove"):
        ledger.post("b", gaussian_event(2.0), sensitivity="1")


PATIENT = "one patient: the first encounter"


def ledger_about(row: str | None) -> Ledger:
    ledger = Ledger()
    ledger.about(row)
    ledger.begin_stage(1e-6)
    ledger.post("count", gaussian_event(5.0), sensitivity="1")
    return ledger


def test_a_fit_says_what_a_row_is() -> None:
    """A guarantee that leaves out whether a row is a patient or a stay, after saving and loading as well."""
    schema = Schema(
        columns=(Column(name="died", kind="binary", categories=(0, 1)),), n_public=50, unit=PATIENT
    )
    frame = pd.DataFrame({"died": np.arange(50) % 2})
    ledger = DPMarginals(epsilon=1.0).fit(frame, schema=schema).ledger_
    again = Ledger.from_dict(json.loads(json.dumps(ledger.to_dict())))
    for told in (ledger, again):
        assert told.unit == told.guarantee().unit == told.summary()["unit"] == f"one row = {PATIENT}"
        assert f"adding or removing one record (one row = {PATIENT}). Every test" in str(told.guarantee())
    assert Guarantee.from_dict(ledger.guarantee().to_dict()) == ledger.guarantee()


def test_without_a_unit_nothing_is_claimed() -> None:
    """A sentence that promises something about patients although nobody said what a row is."""
    ledger = ledger_about(None)
    assert ledger.unit == "one row" and "(one row" not in str(ledger.guarantee())


@pytest.mark.parametrize("other", [None, "one stay in intensive care"])
def test_ledgers_about_other_rows_claim_only_a_row(other: str | None) -> None:
    """A release about stays counted as one about patients: the sum would promise what nobody has shown."""
    later = ledger_about(PATIENT)
    later.about(other)
    assert later.unit == "one row"
    later.about(PATIENT)  # what was lost does not come back
    assert later.unit == "one row"


def test_runs_about_the_same_rows_keep_the_unit(tmp_path) -> None:
    """A unit that gets lost in the ledger's file, or where nobody says it again."""
    file = LedgerFile(tmp_path / "clinic.ledger", make=True)
    for run in range(2):
        ledger = Ledger.open(file.path, make=True)
        with ledger.reserved(Cost(1.0, 1e-6, f"one row = {PATIENT}"), f"run {run}"):
            ledger.about(PATIENT)
            ledger.begin_stage(1e-6)
            ledger.post("counts", gaussian_event(5.0), sensitivity="1")
    ledger = Ledger.open(file.path)
    ledger.post("more", gaussian_event(5.0), sensitivity="1")
    for each in (ledger, Ledger.open(file.path)):
        assert each.unit == f"one row = {PATIENT}" and len(each.entries) == 3


ALL_ROWS = "one patient with all rows (id, at most 6 rows are used)"


def test_a_patient_with_all_rows_is_a_unit_of_its_own() -> None:
    """A sentence that speaks of records or of one row, and a unit that is lost in a file or in a sum."""
    ledger = Ledger.from_dict(json.loads(json.dumps(ledger_about(ALL_ROWS).to_dict())))
    assert ledger.unit == ALL_ROWS and ledger.guarantee().who == "patient"
    assert f"adding or removing {ALL_ROWS}. Every test of whether a patient is in" in str(ledger.guarantee())
    assert "record" not in str(ledger.guarantee())
    ledger.post(
        "counts", gaussian_event(5.0), sensitivity="1 (a {record} is in one cell)", detail="2 {records}"
    )
    assert (ledger.entries[-1].sensitivity, ledger.entries[-1].detail) == (
        "1 (a patient is in one cell)",
        "2 patients",
    )
    ledger = ledger_about(ALL_ROWS)
    ledger.about(f"{ALL_ROWS[:-1]} of another table)")
    assert ledger.unit == "one patient with all rows" and ledger.guarantee().with_all_rows
    ledger.about(PATIENT)
    assert ledger.unit == "one patient with all rows"


@pytest.mark.parametrize("row", [None, "one stay in intensive care"])
@pytest.mark.parametrize("turned", [False, True])
def test_rows_and_patients_have_no_common_guarantee(row: str | None, turned: bool) -> None:
    """A guarantee for one row from noise for a patient: to change one row can cost more than the patient."""
    first, then = (ALL_ROWS, row) if turned else (row, ALL_ROWS)
    ledger = ledger_about(first)
    with pytest.raises(PrivacyError, match="no guarantee covers both"):
        ledger.about(then)
    with pytest.raises(PrivacyError, match="no guarantee covers both"):
        ledger._contents.then(ledger_about(then)._contents)
    assert len(ledger.entries) == 1


def test_another_unit_than_a_row_is_refused() -> None:
    """A file that promises something about groups, which this package does not account for."""
    record = ledger_about(PATIENT).to_dict() | {"unit": "all rows of one patient"}
    with pytest.raises(DataError, match="accounts for 'one row'"):
        Ledger.from_dict(record)


@pytest.mark.parametrize("unit", ["", " one patient", "one\npatient"])
def test_a_unit_is_one_line(unit: str) -> None:
    """A unit that would break the guarantee's sentence in two."""
    with pytest.raises(SchemaError, match="unit must be one line of text"):
        Schema(columns=(Column(name="died", kind="binary", categories=(0, 1)),), unit=unit)


def test_a_ledger_prints_its_guarantee_costs_and_meaning():
    """A printed ledger without its total cost, a cost rounded down, or HTML that runs."""
    ledger = Ledger()
    assert "no private record" in str(ledger) and "no private record" in ledger._repr_html_()
    ledger.post("<script>counts", gaussian_event(10.0), sensitivity="1", detail="<b>age")
    assert "names no delta" in str(ledger)
    ledger = full_ledger()
    ledger.seeded = False
    ledger.begin_stage(1e-5)
    ledger.post("<script>counts", gaussian_event(10.0), sensitivity="1", detail="<b>age")
    total = ledger.summary()["epsilon"]
    for shown in (str(ledger), ledger._repr_html_()):
        assert str(ledger.guarantee())[:30] in shown and "tree edges" in shown and "attack accuracy" in shown
        assert shown.index("count") < shown.index("selection") < shown.index("critic")
    last = next(line for line in str(ledger).splitlines() if line.startswith("<script>counts")).split()
    assert float(last[2]) >= total == pytest.approx(float(last[2]), rel=1e-3)
    assert "<script>" not in ledger._repr_html_() and "<b>" not in ledger._repr_html_()
    bare = Ledger()
    bare.begin_stage(0.0)
    bare.post("means", non_private_event(), sensitivity="unbounded")
    assert "NOT PRIVATE" in str(bare) and "NOT PRIVATE" in bare._repr_html_() and "accuracy" not in str(bare)
