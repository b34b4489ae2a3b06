"""Slow tests by turns: in CI each commit runs a half of them, another commit another half."""

from __future__ import annotations

import hashlib


def has_turn(test: str, commit: str) -> bool:
    """Whether a slow test is run at a commit. Without a commit every test is.

    One in two, by the digest of both: at k commits a test has not been run with a probability of 2^-k.

    Examples
    --------
    >>> [has_turn("tests/test_a.py::test_b", commit) for commit in ("", "a1", "b2", "c3", "d4")]
    [True, True, False, False, False]
    """
    return not commit or hashlib.sha256(f"{commit} {test}".encode()).digest()[0] % 2 == 0
