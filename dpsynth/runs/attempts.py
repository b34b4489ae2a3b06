"""What attackers reach against a run, for its report: in seconds, beside what its ledger proves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from dpsynth.accounting.ledger import Ledger
from dpsynth.attacks.attempt import Attempt
from dpsynth.attacks.synthetic.risk import Proved
from dpsynth.attacks.synthetic.suite import quick
from dpsynth.evaluation.tables import Tables
from dpsynth.runs.config import RunConfig
from dpsynth.synthesis.synthesizer import DPWGANGP


def attempts_on(
    config: RunConfig,
    tables: Tables,
    model: DPWGANGP,
    progress: Callable[[str, float], None] | None = None,
) -> tuple[Attempt, ...]:
    """Attack the synthetic table of a run, and audit the releases that it was made with.

    Parameters
    ----------
    config : RunConfig
    tables : Tables
        Synthetic table, training part, held-out part.
    model : DPWGANGP
        Fitted, with its ledger.
    progress : callable, optional
        Receives the stage's name and the part of it that is done.

    Returns
    -------
    tuple of Attempt
        Those on the table are internal: real records are read without payment. Audits are not, unless the
        schema has fields that were read off the records.
    """
    tell = progress or (lambda stage, done: None)
    # An audit is released: random numbers that follow those spent on real records would tell of them.
    on_table, on_releases = np.random.SeedSequence(config.evaluate.seed).spawn(2)
    coins = config.split.method == "independent"
    proved = proved_by(model.ledger_, coins=coins)
    rng = np.random.default_rng(on_table)
    level = config.evaluate.level
    risks = quick(
        tables, rng=rng, proved=proved, level=level, stages=lambda name, _: tell(f"attack by {name}", 0.0)
    )
    found = list(risks)
    if proved.profile is not None:
        tell("audit of the releases", 0.0)
        found += attempts_on_releases(
            tables, model, on_releases, lambda done: tell("audit of the releases", done)
        )
        tell("audit of the releases", 1.0)
    if tables.schema.unreviewed:
        found = [replace(attempt, internal=True) for attempt in found]
    return tuple(found)


def attempts_on_releases(
    tables: Tables, model: DPWGANGP, seeds: np.random.SeedSequence, progress: Callable[[float], None]
) -> Iterator[Attempt]:
    """Audit each release of a fit, and set the adversary on the critic's steps.

    But for the last attempt, of the adversary against a real record, nothing here depends on a record. The
    adversary is left out where the number of records is not public: the plan is then another one.
    """
    from dpsynth.audits.configuration import QUICK, QUICK_NOISE, QUICK_STEPS, audit_one, releases_of

    rng, on_records = (np.random.default_rng(child) for child in seeds.spawn(2))
    options = model.validate()
    if options.epsilon is None:
        return
    found = releases_of(tables.schema, options, rng)
    played = found.plan is not None and tables.schema.n_public is not None
    steps = len(found.names) + played
    for place in range(len(found.names)):
        audited = audit_one(found, place, trials=QUICK, steps=QUICK_STEPS, rng=rng, most_noise=QUICK_NOISE)
        yield from audited.attempts()
        progress((place + 1) / steps)
    if played and found.plan is not None:
        from dpsynth.audits.adversary_critic import quick_attempts

        records = tables.train.head(_most_watched(found.layout.dim))
        points = model.model_.encoder.transform(records, on_records).astype(np.float64)
        name = tables.schema.name or "the training records"
        seed = int(rng.integers(2**63))
        yield from quick_attempts(found.plan, found.training, found.layout, points, name=name, seed=seed)


def _most_watched(dim: int) -> int:
    """Records whose distances to one another are taken, and which are watched in training."""
    return min(2000, max(int(math.sqrt(2e8 / dim)), 2))


def proved_by(ledger: Ledger, *, coins: bool) -> Proved:
    """Return the bounds of a ledger, and none where its guarantee is void.

    Parameters
    ----------
    coins : bool
        Whether each record came into the training part by a coin of its own.
    """
    void = ledger.delta is None or not ledger.guarantee().private
    return Proved() if void else Proved(ledger.profile(), coins)
