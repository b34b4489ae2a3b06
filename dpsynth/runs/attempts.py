"""What attackers reach against a run, for its report: in seconds, beside what its ledger proves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpsynth.accounting.ledger.ledger import Ledger
from dpsynth.attacks.attempt import Attempt
from dpsynth.attacks.synthetic.proved import Proved
from dpsynth.attacks.synthetic.suite import quick
from dpsynth.evaluation.tables import Tables
from dpsynth.runs.config import RunConfig


def attempts_on(
    config: RunConfig,
    tables: Tables,
    ledger: Ledger,
    progress: Callable[[str, float], None] | None = None,
) -> tuple[Attempt, ...]:
    """Attack the synthetic table of a run.

    Parameters
    ----------
    config : RunConfig
    tables : Tables
        Synthetic table, training part, held-out part.
    ledger : Ledger
        Of the run.
    progress : callable, optional
        Receives the stage's name and the part of it that is done.

    Returns
    -------
    tuple of Attempt
        Internal: real records are read without payment.
    """
    tell = progress or (lambda stage, done: None)
    tell("attacks", 0.0)
    coins = config.split.method == "independent"
    found = quick(
        tables,
        rng=np.random.default_rng(config.evaluate.seed),
        proved=proved_by(ledger, coins=coins),
        level=config.evaluate.level,
    )
    tell("attacks", 1.0)
    return found


def proved_by(ledger: Ledger, *, coins: bool) -> Proved:
    """Return the bounds of a ledger, and none where its guarantee is void.

    Parameters
    ----------
    coins : bool
        Whether each record came into the training part by a coin of its own.
    """
    void = ledger.delta is None or not ledger.guarantee().private
    return Proved() if void else Proved(ledger.profile(), coins)
