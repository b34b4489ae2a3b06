"""The base model's whole path audited as one mechanism: every fit from the first count to the last table.

One release at a time shows each mechanism; a path also shows that later releases rest on nothing but what
earlier ones released, and that each noise is drawn anew: ratios that add up over releases assume both.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from dpsynth.accounting.ledger import Ledger
from dpsynth.accounting.profile import Profile
from dpsynth.attacks.audit.trials import Declared, judge
from dpsynth.attacks.audit.verdict import Audited
from dpsynth.audits.recording_ledger import WatchingLedger
from dpsynth.audits.releases import OTHERS, cells, exact, uniform_records
from dpsynth.errors import InputError
from dpsynth.releases.gaussian import GaussianRelease
from dpsynth.releases.records import FrameRecords
from dpsynth.synthesis.fit import plan_fit, release_statistics
from dpsynth.synthesis.options import FitOptions
from dpsynth.table.schema import Schema


class ScoringLedger(WatchingLedger):
    """A ledger that adds up the log-likelihood ratios of the Gaussian releases that it runs.

    Parameters
    ----------
    without, with_record : DataFrame
        The two tables; a fit reads one of them.
    """

    def __init__(self, without: Any, with_record: Any) -> None:
        super().__init__()
        self.tables = (without, with_record)
        self.score = 0.0

    def run(self, release: Any, records: Any, rng: np.random.Generator) -> Any:
        """Post and run; a Gaussian release is scored between its noise and what is made of it."""
        if not isinstance(release, GaussianRelease):
            return super().run(release, records, rng)
        self.post(release.name, release.event, sensitivity=release.sensitivity)
        with records.opened():
            noisy = release.measure(records, rng)
        base = exact(release, self.tables[0])
        apart = exact(release, self.tables[1]) - base
        std = release.event.noise_multiplier * release.l2_sensitivity
        self.score += float((cells(noisy) - base - 0.5 * apart) @ apart) / std**2
        return release.finish(noisy)


def audit_path(schema: Schema, options: FitOptions, *, trials: int, rng: np.random.Generator) -> Audited:
    """Audit the releases before studies and critic's steps as one mechanism.

    Parameters
    ----------
    schema : Schema
        With a public number of records.
    options : FitOptions
    trials : int
        Fits of the base model, to one table or the other by a coin.
    rng : numpy.random.Generator

    Raises
    ------
    InputError
        If the number of records is not public: a fit's plan would depend on its first release.
    """
    if schema.n_public is None:
        raise InputError("schema has no n_public: the plan of a path depends on its first release")
    start = time.perf_counter()
    options = options.model_copy(update={"studies": ()})
    made_up = uniform_records(schema, OTHERS + 1, rng)
    without = made_up.iloc[:OTHERS]
    plan = plan_fit(FrameRecords(without), schema, options, rng, Ledger())
    coins = rng.random(trials) < 0.5
    scores = np.empty(trials)
    for trial, coin in enumerate(coins):
        ledger = ScoringLedger(without, made_up)
        records = FrameRecords(made_up if coin else without)
        release_statistics(records, plan, rng, ledger)
        scores[trial] = ledger.score
    return judge(
        "base model's path",
        scores,
        coins,
        Declared(Profile(plan.releases.fixed_events), plan.blueprint.delta),
        about=f"tables of {OTHERS} and {OTHERS + 1} made-up records, all noisy counts of a fit together",
        seconds=time.perf_counter() - start,
    )
