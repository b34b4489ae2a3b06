"""Rounds of an experiment, kept in a folder."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpsynth.errors import DataError, InputError, RunError
from dpsynth.files.storage import carry_out


def square(task):
    if task < 0:
        raise ValueError("negative")
    return {"square": task * task, "drawn": float(np.random.default_rng(task).random())}


def recording(seen):
    def work(task):
        seen.append(task)
        return square(task)

    return work


def test_kept_rounds_are_not_carried_out_again(tmp_path):
    """Catches rounds that are repeated, or lost, when more of them are asked for."""
    seen, told = [], []
    first = carry_out(recording(seen), {"a": 1, "b": 2}, folder=tmp_path / "x", settings={"k": 1})
    more = carry_out(
        recording(seen),
        {"a": 1, "b": 2, "c": 3},
        folder=tmp_path / "x",
        settings={"k": 1},
        on_round=lambda *args: told.append(args[:3]),
    )
    assert seen == [1, 2, 3]
    assert told == [(3, 3, "c")]
    assert list(more) == ["a", "b", "c"]
    assert {label: more[label] for label in first} == first


def test_two_processes_find_the_same_as_one():
    """Catches results in the order of their end, or numbers that lose digits on the way."""
    tasks = {f"round-{i}": i for i in range(5)}
    assert list(carry_out(square, tasks, jobs=2).items()) == list(carry_out(square, tasks).items())


def test_processes_of_an_earlier_call_write_to_the_folder_of_this_one(tmp_path, monkeypatch):
    """Catches rounds that a process kept from an earlier call seeks in that call's working folder."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        tasks = {str(number): number for number in range(4)}
        assert carry_out(square, tasks, folder="out", jobs=2) == carry_out(square, tasks)
        assert len([*(tmp_path / name / "out" / "rounds").iterdir()]) == 4


def test_other_settings_are_refused(tmp_path):
    """Catches rounds of two experiments in one table."""
    carry_out(square, {"a": 1}, folder=tmp_path / "x", settings={"records": "one"})
    with pytest.raises(InputError, match="other settings"):
        carry_out(square, {"b": 1}, folder=tmp_path / "x", settings={"records": "two"})


def test_a_folder_of_something_else_is_refused(tmp_path):
    """Catches files written among a user's own."""
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError):
        carry_out(square, {"a": 1}, folder=tmp_path / "x")
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["thesis.txt"]


def test_a_failed_round_is_named_and_the_others_stay(tmp_path):
    """Catches a failure that loses what was finished before it."""
    with pytest.raises(RunError, match="bad failed"):
        carry_out(square, {"good": 1, "bad": -1}, folder=tmp_path / "x")
    assert [path.name for path in (tmp_path / "x" / "rounds").iterdir()] == ["good.json"]


def test_a_damaged_round_is_named(tmp_path):
    """Catches a broken file that is counted as a round."""
    carry_out(square, {"a": 1}, folder=tmp_path / "x")
    path = tmp_path / "x" / "rounds" / "a.json"
    path.write_text(json.dumps([1]))
    with pytest.raises(DataError, match=r"a\.json"):
        carry_out(square, {"a": 1}, folder=tmp_path / "x")
