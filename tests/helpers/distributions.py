"""Distributions over few outcomes, and their total variation by its definition."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st


def distance(p: Sequence[float], q: Sequence[float]) -> float:
    """Total variation of two lists of probabilities."""
    return sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2


def pairs_of_distributions(size: int) -> st.SearchStrategy[tuple[list[float], list[float]]]:
    """Two distributions over ``size`` outcomes."""
    weights = st.lists(st.floats(1e-3, 1.0), min_size=size, max_size=size)
    return st.tuples(*[weights.map(lambda w: [x / sum(w) for x in w])] * 2)
