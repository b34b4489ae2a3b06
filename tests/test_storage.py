"""Folders are written whole or not at all."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth import storage
from dpsynth.errors import DataError, InputError


def fail_midway(folder):
    (folder / "half.txt").write_text("half")
    raise RuntimeError("disk full")


def test_a_failure_leaves_the_old_folder_and_no_rest(tmp_path):
    """Catches a half-written result, or an old one lost to a failed new one."""
    target = tmp_path / "run"
    storage.write_folder(target, lambda f: (f / "old.txt").write_text("old") and None)
    with pytest.raises(RuntimeError):
        storage.write_folder(target, fail_midway, replace=True)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    assert (target / "old.txt").read_text() == "old"


def test_replacing_is_asked_for(tmp_path):
    """Catches an earlier result overwritten without a word."""
    target = tmp_path / "run"
    storage.write_folder(target, lambda f: (f / "a").write_text("1") and None)
    with pytest.raises(InputError, match="not empty"):
        storage.write_folder(target, lambda f: None)
    storage.write_folder(target, lambda f: (f / "b").write_text("2") and None, replace=True)
    assert [p.name for p in target.iterdir()] == ["b"] and len(list(tmp_path.iterdir())) == 1
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file"):
        storage.write_folder(tmp_path / "file", lambda f: None, replace=True)


def test_state_round_trip_and_no_pickle(tmp_path):
    """Catches arrays that change type, and a loader that would unpickle what it is given."""
    storage.write_state(tmp_path, "s", {"a": [1, None]}, {"x/y": np.arange(3, dtype=np.int32)})
    record, arrays = storage.read_state(tmp_path, "s")
    assert record == {"a": [1, None]} and arrays["x/y"].dtype == np.int32
    assert list(storage.under("x", arrays)) == ["y"]
    np.savez(tmp_path / "s.npz", evil=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="damaged s"):
        storage.read_state(tmp_path, "s")


def test_infinite_numbers_are_not_written(tmp_path):
    """Catches JSON that other readers refuse."""
    with pytest.raises(ValueError, match="JSON"):
        storage.write_state(tmp_path, "s", {"a": float("inf")}, {})
