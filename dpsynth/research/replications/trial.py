"""Fit one generator to one training part, and measure its synthetic tables.

The record of a trial holds numbers and the ledger, no table. It is confidential: nearly everything in it was
computed from real records without using privacy budget.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from dpsynth.datasets.table import Table, train_test
from dpsynth.errors import OwnerWarning, PrivacyError
from dpsynth.evaluation.effects import replication
from dpsynth.evaluation.models import CLASSIFIERS
from dpsynth.evaluation.neighbour_inference import neighbours
from dpsynth.evaluation.prediction import utility
from dpsynth.evaluation.results import Findings
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Tables
from dpsynth.privacy.guarantee import RESAMPLE, STRATIFIED
from dpsynth.privacy.ledger import Ledger
from dpsynth.research.replications.arms import HEALTHGAN, Arm
from dpsynth.research.replications.protocol import Protocol
from dpsynth.studies.model import ModelText
from dpsynth.synthesis.generators import unfitted
from dpsynth.synthesis.synthesizer import Synthesizer
from dpsynth.synthesis.training import Generated
from dpsynth.synthesis.wgan_gp import DPWGANGP, WganOptions

#: a split of the records into training and test part, or records drawn from all of them with replacement
Draw = Literal["split", "resample"]
#: that are kept of the evaluators' measures
_MEASURES = (
    "positive_rate_synthetic",
    "positive_rate_train",
    "positive_rate_test",
    "auc_mean",
    "nn_accuracy_train",
    "nn_accuracy_test",
    "privacy_loss",
    "nn_copies_p",
    "nn_apart_p",
)


#: that are kept of their frames: a row for each regression, and for each of its estimates
FRAMES = ("regressions", "effects")


def measure_names(protocol: Protocol) -> list[str]:
    """Names of the measures of a trial's tables, those of each classifier last."""
    return [*_MEASURES, *(f"auc_{name}" for name in protocol.classifiers)]


#: for the ledger: between the table and what a generator is fitted to
_NOT_COVERED: dict[Draw, str] = {"split": STRATIFIED, "resample": RESAMPLE}


@dataclass(frozen=True)
class Task:
    """Key of a trial: a generator, a sample of the records with its seed, and a restart of the generator."""

    arm: str
    draw: Draw
    seed: int
    restart: int = 0

    @property
    def label(self) -> str:
        """Name of the trial's file.

        Examples
        --------
        >>> Task("ε = 0.5 shared", "split", 3, 1).label
        'epsilon-0.5-shared.split-3.restart-1'
        """
        arm = self.arm.replace("ε", "epsilon").replace(" = ", "-").replace(" ", "-").lower()
        return f"{arm}.{self.draw}-{self.seed}.restart-{self.restart}"


@dataclass(frozen=True)
class Trial:
    """A trial that was carried out, with one entry of ``sets`` for each synthetic table.

    An entry is plain data: ``measures`` by name, None where one is not defined, and the rows of the frames
    ``regressions`` and ``effects`` of :mod:`dpsynth.evaluation.effects`. ``records`` and ``columns`` are
    those of the training part. ``ledger`` is None for the records themselves.
    ``delta`` is that of the fit's epsilon. ``architecture`` has the widths of the networks' layers, the batch
    and the critic's steps. It is empty if none was trained. ``problem`` says in one sentence why there are no
    tables.
    """

    task: Task
    sets: tuple[Mapping[str, Any], ...] = ()
    records: int = 0
    columns: int = 0
    ledger: Mapping[str, Any] | None = None
    delta: float | None = None
    architecture: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    problem: str = ""

    def read_ledger(self) -> Ledger:
        """Return the ledger of the fit. Its totals are computed again."""
        assert self.ledger is not None
        return Ledger.from_dict(self.ledger)

    @property
    def excluded(self) -> tuple[str, ...]:
        """Exclusions of the fit's ledger, without computing its totals."""
        return () if self.ledger is None else tuple(self.ledger["excluded"])

    def to_dict(self) -> dict[str, Any]:
        """JSON-able record, the inverse of :meth:`from_dict`."""
        return {"internal": True, **asdict(self)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Trial:
        """Rebuild what :meth:`to_dict` described."""
        fields = {name: value for name, value in record.items() if name != "internal"}
        return cls(**{**fields, "task": Task(**record["task"]), "sets": tuple(record["sets"])})


def run_trial(protocol: Protocol, arm: Arm, task: Task, table: Table) -> Trial:
    """Fit a generator, generate its tables and measure them.

    Notes
    -----
    Privacy: the fit posts every noisy statistic to the trial's ledger (add/remove one record of the training
    part as it is). Measures read real records without using privacy budget, so they are confidential. Noise
    is fresh in each trial. The seed is that of the split or resample, which protects nobody.
    """
    train, test = _drawn(protocol, task, table)
    held_out = None if test is None else test.frame
    start = time.perf_counter()
    if arm.options is None:
        tables = (Tables.of(train.frame, train=table.frame, test=held_out, schema=table.schema),)
        (whole,) = _measure(protocol, tables, task, neighbours_too=False)
        # of all records, where everybody else's is of the training part
        whole["measures"].pop("positive_rate_train", None)
        return Trial(task, (whole,), *train.frame.shape, seconds={"evaluate": time.perf_counter() - start})
    model = unfitted(arm.options)
    if arm.name == HEALTHGAN:
        thesis = DPWGANGP.healthgan(train.schema.with_n_public(len(train.frame)))
        model.set_params(training=thesis.training, batch_size=thesis.batch_size)
    ledger = Ledger()
    ledger.exclude(_NOT_COVERED[task.draw])
    if table.card is None:
        ledger.exclude("the number of records, which a study prints")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OwnerWarning)  # the tables tell what they warn of
        try:
            model.fit(train.frame, schema=train.schema, ledger=ledger, also=arm.also)
        except PrivacyError as problem:
            return Trial(task, (), *train.frame.shape, problem=str(problem))
        seconds = {"fit": time.perf_counter() - start}
        start = time.perf_counter()
        drawn = [model.sample(len(train.frame)) for _ in range(protocol.sets if test else 1)]
    seconds["sample"] = time.perf_counter() - start
    start = time.perf_counter()
    made = [
        Tables.of(frame, train=train.frame, test=held_out, schema=train.schema, declared=model.estimates_)
        for frame in drawn
    ]
    sets = _measure(protocol, made, task, neighbours_too=True)
    seconds["evaluate"] = time.perf_counter() - start
    return Trial(
        task,
        sets,
        *train.frame.shape,
        ledger=model.ledger_.to_dict(),
        delta=model.guarantee().delta,
        architecture=_architecture(model),
        seconds=seconds,
    )


def _drawn(protocol: Protocol, task: Task, table: Table) -> tuple[Table, Table | None]:
    """The training part, and the test part of a split."""
    if task.draw == "split":
        return train_test(table, protocol.test_fraction, task.seed)
    n = len(table.frame) - round(protocol.test_fraction * len(table.frame))
    rows = np.random.default_rng((task.seed, 1)).integers(0, len(table.frame), n)
    frame = table.frame.iloc[rows].reset_index(drop=True)
    return Table(frame, table.schema.with_n_public(n), table.name, table.card), None


def _measure(
    protocol: Protocol, tables: Sequence[Tables], task: Task, *, neighbours_too: bool
) -> tuple[dict[str, Any], ...]:
    """The study's measures of each table, or only its regressions for a resample."""
    schema = tables[0].schema
    settings = Settings.of(
        reference=False,
        effects=[study.effects(schema) for study in protocol.studies],
        models={name: CLASSIFIERS[name] for name in protocol.classifiers},
    )
    wanted, measured = measure_names(protocol), []
    for number, each in enumerate(tables):
        rng = np.random.default_rng((task.seed, task.restart, number))
        parts = [replication(each, settings, rng)]
        if task.draw == "split":
            parts.append(utility(_without_durations(each, protocol), settings, rng))
        if task.draw == "split" and neighbours_too:
            parts.append(neighbours(each, settings, rng))
        measures = {m.name: m.value for part in parts for m in part.measures if m.name in wanted}
        frames = Findings().join(*parts).details
        measured.append({"measures": measures} | {name: frames.get(name, []) for name in FRAMES})
    return tuple(measured)


def _without_durations(tables: Tables, protocol: Protocol) -> Tables:
    """Tables without the lengths of follow-up, which say when somebody died: no predictor may be one."""
    durations = {ModelText.read(study.model).duration for study in protocol.studies} - {None}
    if not durations:
        return tables
    schema = tables.schema.select(name for name in tables.schema.names if name not in durations)
    kept = list(schema.names)
    held_out = None if tables.test is None else tables.test[kept]
    return Tables.of(tables.synthetic[kept], train=tables.train[kept], test=held_out, schema=schema)


def _architecture(model: Synthesizer) -> dict[str, Any]:
    """Widths from the first layer's input to the last one's output, as Pedersen (2022) counts them."""
    options, sampler = model.validate(), model.model_.sampler
    if not isinstance(options, WganOptions) or not isinstance(sampler, Generated):
        return {}
    weights = sampler.weights
    widths = [weights[0][0].shape[0], *(matrix.shape[1] for matrix, _ in weights)]
    return {
        "generator": [int(width) for width in widths],
        "critic": [int(widths[-1]), *options.settings(model.n_).critic_hidden, 1],
        "batch": int(options.batch(model.model_.declared_schema, model.n_)),
        "steps": options.steps,
    }
