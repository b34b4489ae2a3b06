"""Attacks on models, on training runs and on synthetic tables, each beside the bound that it tries to reach.

Attacks read real records without noise: their results are confidential. They do not depend on how a table or
model was made. A generator is a function ``fit_sample(frame, rng) -> frame``, a classifier a function of data
and seed. A training run is a :class:`~dpsynth.releases.critic.Transcript`. The names below are loaded when
first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth.lazy import first_used

if TYPE_CHECKING:
    from dpsynth.attacks.adversary import Game, log_odds
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
    "Attempt": "dpsynth.attacks.attempt",
    "Errors": "dpsynth.attacks.lower_bounds",
    "Game": "dpsynth.attacks.adversary",
    "Proved": "dpsynth.attacks.synthetic.risk",
    "Risk": "dpsynth.attacks.synthetic.risk",
    "Tables": "dpsynth.evaluation.tables",
    "attack_tables": "dpsynth.attacks.synthetic.suite",
    "audit_table": "dpsynth.attacks.synthetic.black_box",
    "by_epsilon": "dpsynth.attacks.lower_bounds",
    "epsilon_lower": "dpsynth.attacks.lower_bounds",
    "errors_at": "dpsynth.attacks.lower_bounds",
    "in_words": "dpsynth.attacks.synthetic.words",
    "log_odds": "dpsynth.attacks.adversary",
    "right_guesses": "dpsynth.attacks.lower_bounds",
    "shadow_attack": "dpsynth.attacks.synthetic.shadow",
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
