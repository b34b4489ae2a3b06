"""Attacks on models, on training runs and on synthetic tables, each beside the bound that it tries to reach.

Attacks read real records without noise: their results are confidential. They do not depend on how a table or
model was made. A generator is a function ``fit_sample(frame, rng) -> frame``, a classifier a function of data
and seed. A training run is a :class:`~dpsynth.attacks.beliefs.Transcript`. The names below are loaded when
first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth.lazy import first_used

if TYPE_CHECKING:
    from dpsynth.attacks.attempt import Attempt
    from dpsynth.attacks.beliefs import Game, log_odds
    from dpsynth.attacks.lower_bounds import (
        Errors,
        by_epsilon,
        epsilon_lower,
        errors_at,
        right_guesses,
        split,
    )
    from dpsynth.attacks.risk import Proved, Risk
    from dpsynth.attacks.shadow import audit_table, shadow_attack
    from dpsynth.attacks.suite import attack_tables, in_words
    from dpsynth.evaluation.tables import Tables

_HOMES = {
    "Attempt": "dpsynth.attacks.attempt",
    "Errors": "dpsynth.attacks.lower_bounds",
    "Game": "dpsynth.attacks.beliefs",
    "Proved": "dpsynth.attacks.risk",
    "Risk": "dpsynth.attacks.risk",
    "Tables": "dpsynth.evaluation.tables",
    "attack_tables": "dpsynth.attacks.suite",
    "audit_table": "dpsynth.attacks.shadow",
    "by_epsilon": "dpsynth.attacks.lower_bounds",
    "epsilon_lower": "dpsynth.attacks.lower_bounds",
    "errors_at": "dpsynth.attacks.lower_bounds",
    "in_words": "dpsynth.attacks.suite",
    "log_odds": "dpsynth.attacks.beliefs",
    "right_guesses": "dpsynth.attacks.lower_bounds",
    "shadow_attack": "dpsynth.attacks.shadow",
    "split": "dpsynth.attacks.lower_bounds",
}

__all__ = [
    "Attempt",
    "Errors",
    "Game",
    "Proved",
    "Risk",
    "Tables",
    "attack_tables",
    "audit_table",
    "by_epsilon",
    "epsilon_lower",
    "errors_at",
    "in_words",
    "log_odds",
    "right_guesses",
    "shadow_attack",
    "split",
]

__getattr__ = first_used(__name__, _HOMES)
