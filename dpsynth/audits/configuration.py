"""Every release of a fit, audited with its own noise on made-up tables: a test of a configuration.

The releases are those of a fit of this schema with these options, in the same order. They read records that
are made up from the schema. Each is then audited by itself. No private record is read, so results may be
shared.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.audits.releases import (
    OTHERS,
    TRIED,
    WatchingLedger,
    audit_choices,
    audit_release,
    typical_records,
    uniform_records,
)
from dpsynth.audits.trials import Audited, Declared
from dpsynth.checks import Counted, whole
from dpsynth.errors import InputError
from dpsynth.files.codec import to_plain
from dpsynth.files.storage import OnRound, carry_out, print_nothing
from dpsynth.lazy import load_tensorflow_quietly
from dpsynth.marginals.statistics import TablesRelease
from dpsynth.patients.schema import schema_of
from dpsynth.privacy.profile import Profile
from dpsynth.privacy.records import FrameRecords
from dpsynth.privacy.release import ChoiceRelease, GaussianRelease, Plan
from dpsynth.synthesis.fit import plan_fit, read_parts
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.critic import Critic
from dpsynth.synthesis.parts.part import Part, Reading
from dpsynth.table.encoder import Layout
from dpsynth.table.schema import TableSchema
from dpsynth.wgan.networks import coordinate_scale
from dpsynth.wgan.settings import MatchingSettings, TrainingSettings

#: Their mechanism is the same whatever they choose or count. Others have points or weights of their own.
_ALIKE = (ChoiceRelease, TablesRelease)
#: Number of records that a schema without a public one is given.
UNKNOWN_N = 1000
#: Made-up records of a fit, at most: no audit looks at their number.
_MOST_RECORDS = 2000
#: Trials of an audit of a few seconds, and steps of a run of the critic and their noise at most.
QUICK, QUICK_STEPS, QUICK_NOISE = 2000, 4, 2.0


@dataclass(frozen=True, eq=False)
class Releases:
    """Releases of a fit.

    Attributes
    ----------
    releases : tuple
        Those that a ledger ran, with their bins and points.
    made_up : DataFrame
        Records for neighbours, farther out than those of the releases.
    scale : array (dim,)
        Public factor of each coordinate before critics of matched points see it, 1 for other critics.
    counted : {"records", "patients"}
        What the releases count (:class:`dpsynth.checks.Counted`).
    """

    releases: tuple[Any, ...]
    made_up: pd.DataFrame
    delta: float
    layout: Layout
    training: TrainingSettings | MatchingSettings | None
    plan: Plan | None
    scale: NDArray[np.float32]
    counted: Counted = Counted.RECORDS

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the audited releases, numbered if they repeat, like the scores of a study."""
        names = [release.name for release in self.releases]
        told = [
            f"{name} ({names[: i + 1].count(name)})" if names.count(name) > 1 else name
            for i, name in enumerate(names)
        ]
        return (*told, "WGAN critic steps") if self.plan is not None else tuple(told)

    @property
    def mechanisms(self) -> dict[str, int]:
        """Name and place of each to audit. Choices and tables of equal cost and sensitivity are one."""
        found: dict[tuple[Any, ...], list[int]] = {}
        for place, release in enumerate(self.releases):
            own = None if isinstance(release, _ALIKE) else place
            key = type(release), release.name, str(release.event), release.sensitivity, own
            found.setdefault(key, []).append(place)
        names = self.names
        told = {
            names[same[0]] if len(same) == 1 else f"{key[1]}, {len(same)} times": same[0]
            for key, same in found.items()
        }
        return told | {names[place]: place for place in range(len(self.releases), len(names))}


def releases_of(
    schema: TableSchema, options: FitOptions, rng: np.random.Generator, *, also: Sequence[Part[Any]] = ()
) -> Releases:
    """The releases of a fit, run once on records that are made up from its schema."""
    if options.epsilon is None:
        raise InputError(
            "epsilon is null: a fit without noise promises nothing that an audit could contradict"
        )
    typical = typical_records(schema, min(schema.n_public or UNKNOWN_N, _MOST_RECORDS), rng)
    ledger, records = WatchingLedger(), FrameRecords(typical)
    # a fit chooses by its noisy count: everything that it could read
    plan = plan_fit(records, schema, options, rng, ledger, also=also, every=schema.n_public is None)
    # without further parts nothing more is read, and a chain takes time
    model = read_parts(plan, Reading(ledger, records, rng, plan.n, refine=bool(also)))
    critic = plan.parts.of(Critic)
    training = None if critic is None else critic.trainer.settings
    factor = training.outcome_scale if isinstance(training, MatchingSettings) else 1.0
    return Releases(
        tuple(ledger.releases),
        uniform_records(schema, OTHERS + TRIED, rng),
        plan.parts.delta,
        model.encoder.layout,
        training,
        None if critic is None else critic.plan,
        coordinate_scale(model.encoder, factor),
        schema.counted,
    )


def audit_one(
    found: Releases,
    name: str,
    *,
    trials: int,
    steps: int,
    rng: np.random.Generator,
    most_noise: float = math.inf,
) -> Audited:
    """Audit one of :attr:`Releases.mechanisms`.

    ``most_noise`` lowers the noise multiplier of the critic's steps if theirs is larger.
    """
    place = found.mechanisms[name]
    if place == len(found.releases):
        load_tensorflow_quietly()
        from dpsynth.audits.critic_training import audit_critic, audit_matching

        assert found.plan is not None and found.plan.noise_multiplier is not None  # its name is there
        assert found.training is not None
        own = found.plan.noise_multiplier
        plan = replace(found.plan, noise_multiplier=min(own, most_noise))
        layout, training = found.layout, found.training
        options: dict[str, Any] = {"delta": found.delta, "trials": trials, "rng": rng, "steps": steps}
        if isinstance(training, MatchingSettings):
            audited = audit_matching(layout, found.scale, training, plan, **options)
        else:
            audited = audit_critic(layout, training, plan, **options)
        if own <= most_noise:
            return audited
        return replace(audited, about=f"{audited.about}, not its own {own:.4g}", own_noise=False)
    release, counted = found.releases[place], found.counted
    asked: dict[str, Any] = {"delta": found.delta, "trials": trials, "rng": rng, "counted": counted}
    if isinstance(release, GaussianRelease):
        audited = audit_release(release, found.made_up, **asked)
    else:
        audited = audit_choices(release, **asked)
    return replace(audited, name=name)


def _work(
    task: tuple[dict[str, Any], FitOptions, tuple[Part[Any], ...], str, int, int, int],
) -> Mapping[str, Any]:
    """Carry out a round of one release. All else is made again from the schema, in any process."""
    schema, options, also, name, trials, steps, seed = task
    rng = np.random.default_rng(seed)
    found = releases_of(schema_of(schema), options, rng, also=also)
    return audit_one(found, name, trials=trials, steps=steps, rng=rng).to_record()


def audit_fit(
    schema: TableSchema,
    options: FitOptions,
    *,
    also: Sequence[Part[Any]] = (),
    trials: int = 10_000,
    steps: int = 8,
    jobs: int = 1,
    folder: str | Path | None = None,
    on_round: OnRound = print_nothing,
    seed: int | None = None,
) -> tuple[Audited, ...]:
    """Audit every release of a fit, and those that are one mechanism once.

    Parameters
    ----------
    schema : TableSchema
        Columns of the fit's table. No record of the table is read.
    options : FitOptions
        Options of the fit, with a privacy budget.
    also : sequence of Part
        Further statistics of the fit, such as :class:`dpsynth.Studies`.
    trials : int
        Number for each release, on either of two neighbouring tables by a coin.
    steps : int
        Number of the critic's steps in a run.
    jobs : int
        Releases at a time.
    folder : path, optional
        Folder of each release's audit. The same call continues after an interruption.
    on_round : callable, optional
        See :func:`dpsynth.files.storage.carry_out`.
    seed : int, optional
        For the noise, which protects nobody here. The default comes from the operating system.

    Returns
    -------
    tuple of Audited
        In the order of the releases.

    Raises
    ------
    InputError
        If ``trials`` or ``steps`` is too small, the options promise nothing, or the folder is another
        audit's.
    PrivacyError
        If the budget is too small for the fit.
    """
    whole("trials", trials, 100)
    whole("steps", steps)
    first = secrets.randbits(64) if seed is None else seed
    parts = tuple(also)
    names = releases_of(schema, options, np.random.default_rng(first), also=parts).mechanisms
    record = schema.to_dict()
    tasks = {
        f"{place + 1:02d}_{name.replace(' ', '_')}": (
            record,
            options,
            parts,
            name,
            trials,
            steps,
            first + place,
        )
        for place, name in enumerate(names)
    }
    chosen = options.model_dump(mode="json")
    further = [{"class": type(part).__name__, **to_plain(part)} for part in parts]
    settings = {"schema": record, "options": chosen, "also": further, "trials": trials, "steps": steps}
    done = carry_out(_work, tasks, folder=folder, settings=settings, jobs=jobs, on_round=on_round)
    return tuple(Audited.from_record(entry) for entry in done.values())


def declared_of(schema: TableSchema, options: FitOptions, also: Sequence[Part[Any]] = ()) -> Declared:
    """Declared guarantee of a whole fit, by the events of its releases, without reading records."""
    found = releases_of(schema, options, np.random.default_rng(0), also=also)
    events = [release.event for release in found.releases]
    events += [] if found.plan is None else [found.plan.event]
    return Declared(Profile(events), found.delta)
