"""Slow tests by turns."""

from __future__ import annotations

from turns import has_turn


def test_each_commit_runs_another_half():
    """Catches tests that no commit runs, turns that are the same at each commit, and a whole that is a half.

    Of 1,000 fair coins fewer than 420 or more than 580 are heads once in 3 million times.
    """
    tests = [f"tests/room/test_{k}.py::test_{k}[{k}]" for k in range(1000)]
    assert all(has_turn(test, "") for test in tests)
    first, second = ([has_turn(test, commit) for test in tests] for commit in ("2548553d", "1f2aa6f9"))
    assert 420 < sum(first) < 580 and 420 < sum(a == b for a, b in zip(first, second, strict=True)) < 580
    assert all(any(has_turn(test, str(k)) for k in range(30)) for test in tests)
