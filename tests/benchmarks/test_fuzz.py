"""Some damaged files for every reader. ``benchmarks/fuzz.py`` tries many more."""

from __future__ import annotations

import importlib
import random
import signal
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsynth.errors import DataError

fuzz = importlib.import_module("benchmarks.fuzz")


@pytest.fixture(autouse=True)
def _alarm():
    before = signal.signal(signal.SIGALRM, fuzz.late)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
@pytest.mark.parametrize("name", fuzz.TARGETS)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.integers(0, 2**32))
def test_a_damaged_file_is_read_or_refused_in_one_sentence(tmp_path, name, seed):
    """An exception of Python, a message that cannot be printed, or a reader that does not end."""
    target, rng = fuzz.TARGETS[name], random.Random(seed)
    data = rng.choice(target.seeds())
    for _ in range(rng.choice((1, 2, 5))):
        data = target.damage(data, rng)
    assert fuzz.fault(target, data, tmp_path) is None


def _raise(problem):
    raise problem


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda data, folder: _raise(KeyError("a")), "KeyError"),
        (lambda data, folder: _raise(MemoryError()), "MemoryError"),
        (lambda data, folder: _raise(DataError()), "a message of 0 characters"),
        (lambda data, folder: all(n >= 0 for n in count()), "TooSlow"),
    ],
)
def test_a_fault_is_found(tmp_path, monkeypatch, read, said):
    """A search that finds nothing whatever a reader does."""
    monkeypatch.setattr(fuzz, "SECONDS", 0.1)
    found = fuzz.fault(replace(fuzz.TARGETS["csv"], read=read), b"", tmp_path)
    assert found is not None
    assert found[0].startswith(said)
