"""Estimators and options of marginals whose statistics are chosen, not left to the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpsynth.marginals.statistics import Kind
from dpsynth.synthesis.marginals import DPMarginals, MarginalsOptions, Statistics
from dpsynth.synthesis.parts.studies import Studies


def marginals_options(
    *,
    base_model: Kind | None = None,
    pairwise_statistics: bool | None = None,
    rounds: int | None = None,
    **options: Any,
) -> MarginalsOptions:
    """Options with these statistics. None leaves one to its rule."""
    chosen = Statistics(base_model, pairwise_statistics, rounds)
    return MarginalsOptions.of(**options, statistics=chosen)


def dp_marginals(
    epsilon: float | None = 3.0,
    delta: float | None = None,
    *,
    base_model: Kind | None = None,
    pairwise_statistics: bool | None = None,
    rounds: int | None = None,
    **options: Any,
) -> DPMarginals:
    """An estimator with these statistics. None leaves one to its rule."""
    model = DPMarginals(epsilon, delta, **options)
    model._statistics = Statistics(base_model, pairwise_statistics, rounds)
    return model


def beside(studies: Sequence[Any] = (), share: float = 0.3) -> tuple[Studies, ...]:
    """The parts beside a generator's own: the studies, if there are any."""
    return (Studies(studies, share=share),) if studies else ()
