"""The order of the tests, and what stands in for the operating system's randomness while they run.

Every run tries the same examples, so that it fails for a change of the code alone. ``make search`` tries
fresh ones, and more of them. What it finds becomes a fixed case (``@example``) beside the mend.
"""

from __future__ import annotations

import os
import random
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

_default_rng = np.random.default_rng
FRESH = os.environ.get("DPSYNTH_TEST_RANDOMNESS") == "fresh"
#: times as many examples of each property where randomness is fresh
_MORE = 3
_FOUND = pytest.StashKey[set[str]]()
# A busy computer is no fault of the code. What a mutants' run has set besides stays; but hypothesis itself
# derandomizes where it finds a CI, which no search may inherit.
_kept = {"derandomize": False} if FRESH else {"derandomize": True, "database": None}
settings.register_profile("dpsynth", settings.default, deadline=None, **_kept)
settings.load_profile("dpsynth")


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without the lines of their figures, which take nine tenths of the time."""
    monkeypatch.setattr("dpsynth.report.plots.Plot._drawn", ("data:image/svg+xml;base64,", False))


@pytest.fixture
def projected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns without a fitted density, which takes a third of a small fit's time."""
    monkeypatch.setattr("dpsynth.marginals.density._FEWEST_CELLS", 10**6)


@pytest.fixture
def unaudited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs whose noisy statistics are not audited, which takes seconds."""
    monkeypatch.setattr("dpsynth.runs.evaluation.attempts_on_releases", lambda *args: iter(()))


@pytest.fixture
def few_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits and simulated attacks of a run with a tenth of their trials, which tests/audits judges."""
    monkeypatch.setattr("dpsynth.audits.configuration.QUICK", 200)
    monkeypatch.setattr("dpsynth.audits.configuration.TRIED", 20)
    monkeypatch.setattr("dpsynth.audits.adversary.SIMULATED", 100)
    monkeypatch.setattr("dpsynth.audits.adversary.WATCHED", 2)


@pytest.fixture(autouse=True)
def _what_takes_seconds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave what takes time out of the many runs whose tests are about something else."""
    if request.path.parent.name not in ("runs", "commands"):
        return
    if "slow" not in request.keywords:
        request.getfixturevalue("projected")
        monkeypatch.setattr("dpsynth.synthesis.default_rules.has_pairwise_statistics", lambda *args: False)
    request.getfixturevalue("few_trials" if "audited" in request.keywords else "unaudited")
    if "drawn" not in request.keywords:
        request.getfixturevalue("undrawn")


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies of small tables, compared with a fifth of the samples."""
    monkeypatch.setattr("dpsynth.synthesis.study_forecast.DRAWS", 4000)


@pytest.fixture
def eager_steps() -> Iterator[None]:
    """Critic steps without XLA: few of them take less time than to compile any; slow tests compile."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def found(request: pytest.FixtureRequest) -> set[str]:
    """The node ids of all tests in the files of this run, those that it leaves out among them."""
    return request.config.stash[_FOUND]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """README and docs, the longest tests, first: at the end they would be left to one of two processes."""
    config.stash[_FOUND] = {item.nodeid for item in items}
    items.sort(key=lambda item: item.path.name not in ("test_readme.py", "test_docs.py"))
    properties = {item.obj for item in items if FRESH and hasattr(item.obj, "hypothesis")}
    for test in properties:
        own = test._hypothesis_internal_use_settings
        test._hypothesis_internal_use_settings = settings(own, max_examples=_MORE * own.max_examples)


@contextmanager
def _replayed(name: str) -> Iterator[None]:
    """Draw what is asked of the operating system from a stream that the name of a test or fixture fixes.

    Noise is drawn from a fresh key where no seed is given. With thousands of tests, and a few whose figures
    noise moves far in one fit of a hundred, some test would fail in every run. The stream is nobody's
    choice; with ``DPSYNTH_TEST_RANDOMNESS=fresh`` nothing is replaced.
    """
    stream = random.Random(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "randbits", stream.getrandbits)
        patch.setattr(
            np.random,
            "default_rng",
            lambda seed=None: _default_rng(stream.getrandbits(128) if seed is None else seed),
        )
        np.random.seed(zlib.crc32(name.encode()))  # noqa: NPY002 - of scikit-learn without a seed
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    with nullcontext() if FRESH else _replayed(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[Any]:
    """What several tests share must not depend on which of them asks first."""
    name = f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param', '')}]"
    with nullcontext() if FRESH or fixturedef.scope == "function" else _replayed(name):
        return (yield)
