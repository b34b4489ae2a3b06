"""Attacks on models, on training runs and on synthetic tables, each beside the bound that it tries to reach.

Attacks read real records without payment: what they find is internal. None of them knows how a table or a
model was made: a generator is a function ``fit_sample(frame, rng) -> frame``, a classifier a function of data
and seed, a training run a :class:`~dpsynth.releases.critic.Transcript`. The names below are loaded when first
used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsynth.attacks.adversary import Game, largest_exceedance, log_odds
    from dpsynth.attacks.attempt import Attempt
    from dpsynth.attacks.lower_bounds import (
        Errors,
        by_epsilon,
        epsilon_lower,
        errors_at,
        right_guesses,
        split,
    )
    from dpsynth.attacks.synthetic.black_box import audit_table
    from dpsynth.attacks.synthetic.risk import Proved, Risk
    from dpsynth.attacks.synthetic.shadow import shadow_attack
    from dpsynth.attacks.synthetic.suite import attack_tables
    from dpsynth.attacks.synthetic.words import in_words
    from dpsynth.evaluation.tables import Tables

_HOMES = {
    "Attempt": "attacks.attempt",
    "Errors": "attacks.lower_bounds",
    "Game": "attacks.adversary",
    "Proved": "attacks.synthetic.risk",
    "Risk": "attacks.synthetic.risk",
    "Tables": "evaluation.tables",
    "attack_tables": "attacks.synthetic.suite",
    "audit_table": "attacks.synthetic.black_box",
    "by_epsilon": "attacks.lower_bounds",
    "epsilon_lower": "attacks.lower_bounds",
    "errors_at": "attacks.lower_bounds",
    "in_words": "attacks.synthetic.words",
    "largest_exceedance": "attacks.adversary",
    "log_odds": "attacks.adversary",
    "right_guesses": "attacks.lower_bounds",
    "shadow_attack": "attacks.synthetic.shadow",
    "split": "attacks.lower_bounds",
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
    "largest_exceedance",
    "log_odds",
    "right_guesses",
    "shadow_attack",
    "split",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"dpsynth.{_HOMES[name]}"), name)
