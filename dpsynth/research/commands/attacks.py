"""Published attacks on trainings, each described by a YAML file: ``dpsynth replication FILE.yaml``.

``attacker: adversary`` is A_DI of MOSAICrOWN D5.3 on a training run, ``attacker: ltu`` the
leave-two-unlabeled attacker of Pedersen (2022) on a classifier.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from dpsynth import progress
from dpsynth.checks import one_of
from dpsynth.errors import ConfigError, InputError
from dpsynth.files.codec import OptionGroup
from dpsynth.files.storage import OnRound
from dpsynth.runs.commands import console
from dpsynth.runs.config import DataConfig

if TYPE_CHECKING:
    from dpsynth.audits.adversary import Setting
    from dpsynth.datasets.table import Table
    from dpsynth.research.adversary.playing import Played, Subject
    from dpsynth.research.writing import ResultsPage

#: a log gets a line on the rounds this often
_LOG_SECONDS = 30.0


class Attack(OptionGroup):
    """What every attack has: a table, by the name of a data set or with its schema, a seed and a level.

    ``level`` is that of the confidence intervals.
    """

    attacker: ClassVar[str]

    dataset: str | None = None
    data: DataConfig | None = None
    seed: int = Field(default=0, ge=0)
    level: float = Field(default=0.95, gt=0, lt=1)

    def table(self) -> Table:
        """Read the table, or raise InputError if there is none, or two."""
        from dpsynth.datasets import load, open_table

        if (self.dataset is None) == (self.data is None):
            raise InputError("one of dataset and data is required, with path and schema")
        if self.data is None:
            return load(str(self.dataset))
        return open_table(self.data.path, self.data.schema_path)

    def run(self, out: Path | None, jobs: int) -> None:
        """Attack, keep rounds in ``out``, and print what was found."""
        raise NotImplementedError


class Adversary(Attack):
    """Guess from every noisy sum of a training whether one record is in the table.

    The adversary A_DI of MOSAICrOWN D5.3 knows all other records, sees every step and updates its belief.
    Half of the table trains. A replacement comes from the other half, on which classifiers are measured.
    With all records in every step, the noise is that of the document (Renyi composition). With sampling, it
    is the smallest that keeps the belief except with probability delta. Results are about real records.

    Parameters
    ----------
    model : {"dp-sgd", "critic"}
        A classifier, or the critic of our own WGAN.
    belief, delta : float
        rho_beta, the belief that the noise is meant to prevent, but for probability delta.
    steps, sampling_prob : int, float
        Noisy sums of one training, and the probability of each record in each.
    runs : int
        Number of trainings. Half are on the neighbouring dataset.
    neighbour : {"removed", "replaced"}
        The other dataset lacks the record, or has another one in its place.
    worst_case : bool
        With a record made up within the public bounds.
    local_noise : bool
        **Not private**: noise in proportion to the two records, to see the belief. For dp-sgd alone.
    hidden, learning_rate : int, float
        Of dp-sgd: hidden units (0 for softmax regression) and its learning rate.
    """

    attacker: ClassVar[str] = "adversary"

    model: Literal["dp-sgd", "critic"] = "dp-sgd"
    belief: float = Field(default=0.9, gt=0.5, lt=1)
    delta: float = Field(default=0.01, gt=0, lt=1)
    steps: int = Field(default=30, ge=1)
    sampling_prob: float = Field(default=1.0, gt=0, le=1)
    runs: int = Field(default=1000, ge=2)
    neighbour: Literal["removed", "replaced"] = "removed"
    worst_case: bool = False
    local_noise: bool = False
    hidden: int = Field(default=0, ge=0)
    learning_rate: float = 0.5

    def run(self, out: Path | None, jobs: int) -> None:
        """Play the game, and print and write what the adversary believes."""
        from dpsynth.audits.adversary import Setting
        from dpsynth.datasets import train_test
        from dpsynth.research.adversary.playing import play

        if self.model == "critic" and (self.local_noise or self.hidden or self.learning_rate != 0.5):
            raise InputError("local_noise, hidden and learning_rate go with model dp-sgd")
        replaced = self.neighbour == "replaced"
        multiplier, rho_a = _noise(self.belief, self.delta, self.steps, self.sampling_prob, replaced=replaced)
        setting = Setting(
            steps=self.steps,
            noise_multiplier=multiplier,
            sampling_prob=self.sampling_prob,
            neighbour=self.neighbour,
            choice="worst-case" if self.worst_case else "dataset",
            noise="local" if self.local_noise else "global",
        )
        train, test = train_test(self.table(), seed=self.seed)
        subject = _subject(self.model, train, test, setting, self.hidden, self.learning_rate)
        with _rounds("the adversary's trainings", "rounds of trainings", out) as on_round:
            played = play(
                subject,
                belief=self.belief,
                runs=self.runs,
                seed=self.seed,
                jobs=jobs,
                folder=out,
                on_round=on_round,
            )
        page = played.page(self.level)
        page = replace(page, facts=(("Noise", _noise_told(played, self.delta, rho_a)), *page.facts))
        _emit(page, out, delta=self.delta, rho_a=rho_a)


class LeaveTwoUnlabeled(Attack):
    """Guess which of two records a classifier was trained on, with all other records known.

    The leave-two-unlabeled attacker of Pedersen (2022), sections 4.2 and 5, with its strategies: scores of
    the model, a bounded loss, retraining on both, Bayes.

    Parameters
    ----------
    model : str
        logistic_regression, ridge, naive_bayes, svc, nearest_neighbours, sgd, perceptron, linear_svc, mlp or
        random_forest.
    records : int
        On each side: trained on, kept aside.
    rounds : int
        Pairs to show the attacker.
    scenario : {"original", "random", "unseeded"}
        The attacker knows order and seed of the training, the seed, or neither.
    retrainings : int
        How often the attacker trains with each of the two. From 2 on also the Bayes attack.
    shadows : int
        Shadow models on random halves, an even number. 0 for none.
    anew : bool
        The defender trains anew in each round, with a seed of its own.
    record : int, optional
        Show this one of the records that were trained on in every round.
    """

    attacker: ClassVar[str] = "ltu"

    model: str = "logistic_regression"
    records: int = Field(default=400, ge=2)
    rounds: int = Field(default=100, ge=1)
    scenario: Literal["original", "random", "unseeded"] = "original"
    retrainings: int = Field(default=1, ge=0)
    shadows: int = Field(default=0, ge=0)
    anew: bool = False
    record: int | None = Field(default=None, ge=0)

    def run(self, out: Path | None, jobs: int) -> None:
        """Attack each round, and print and write how often each strategy is right."""
        from dpsynth.research.ltu.experiment import attack_trainer
        from dpsynth.research.ltu.results import ltu_page
        from dpsynth.research.ltu.rounds import Design
        from dpsynth.research.ltu.trainers import classifier, sides_of_table

        if self.shadows % 2:
            raise InputError(f"shadows must be even, one on each half of the records, got {self.shadows}")
        if self.shadows and self.anew:
            raise InputError("shadows does not go with anew: shadow models are compared with one model")
        trainer = classifier(self.model)
        design = Design(
            scenario=self.scenario,
            defender="anew" if self.anew else "once",
            retrainings=self.retrainings,
            splits=self.shadows // 2,
            record=self.record,
            seed=self.seed,
        )
        sides = sides_of_table(self.table(), self.records, self.seed)
        with _rounds(f"rounds of {self.model}", "rounds", out) as on_round:
            result = attack_trainer(
                trainer,
                sides,
                design,
                rounds=self.rounds,
                name=f"{self.model}: {trainer.description}",
                folder=out,
                jobs=jobs,
                on_round=on_round,
                level=self.level,
            )
        _emit(ltu_page(result), out)


#: the attacks that a file may describe
ATTACKS: dict[str, type[Attack]] = {kind.attacker: kind for kind in (Adversary, LeaveTwoUnlabeled)}


def attack_of(record: Any, folder: Path) -> Attack | None:
    """The attack that a YAML file of this folder describes, or None if it has no key ``attacker``.

    Raises ConfigError if a key or a value is wrong.
    """
    if not isinstance(record, Mapping) or "attacker" not in record:
        return None
    try:
        one_of("attacker", str(record["attacker"]), ATTACKS)
        kind = ATTACKS[str(record["attacker"])]
        attack = kind.of(**{str(name): value for name, value in record.items() if name != "attacker"})
    except InputError as problem:
        raise ConfigError(str(problem)) from None
    if attack.data is None:
        return attack
    return attack.model_copy(update={"data": attack.data.located(folder)})


def _noise(
    belief: float, delta: float, steps: int, sampling_prob: float, *, replaced: bool
) -> tuple[float, float | None]:
    """Noise multiplier that keeps the belief, and the document's bound rho_a where it has one."""
    if sampling_prob == 1.0:
        from dpsynth.research.papers.mosaicrown import noise_for_belief_rdp, rdp_guarantee

        multiplier = noise_for_belief_rdp(belief, delta, steps)
        rho_a = rdp_guarantee(multiplier, delta, steps).advantage
        # the sensitivity of a replaced record is twice that of one record more or less
        return multiplier * (2 if replaced else 1), rho_a
    from dpsynth.privacy.calibration import BeliefTarget, calibrate_training

    adjacency = "replace-one" if replaced else "add/remove"
    return calibrate_training(BeliefTarget(belief, delta), sampling_prob, steps, adjacency=adjacency), None


def _subject(
    model: str, train: Table, test: Table, setting: Setting, hidden: int, learning_rate: float
) -> Subject:
    if model == "critic":
        from dpsynth.audits import adversary as critic
        from dpsynth.wgan.settings import TrainingSettings

        points, pool, layout = critic.encoded(train, test)
        return critic.critic_subject(train.name, points, pool, layout, TrainingSettings(), setting)
    from dpsynth.research.adversary import dp_sgd

    records, held_out, classes = dp_sgd.labelled_points(train, test)
    training = dp_sgd.DpSgd(learning_rate=learning_rate, hidden=hidden)
    return dp_sgd.classifier_subject(train.name, records, held_out, classes, training, setting)


def _noise_told(played: Played, delta: float, rho_a: float | None) -> str:
    setting = played.subject.setting
    over = setting.noise_multiplier / (1 if setting.neighbour == "removed" else 2)
    moved = "what one record can move a sum" if played.private else "what these two records move a sum"
    known = "" if rho_a is None else f"; rho_a = {rho_a:.4f}"
    return (
        f"{over:.4g} times {moved}, for beliefs up to {played.belief:g} but for probability {delta:g}{known}"
    )


def _emit(page: ResultsPage, out: Path | None, **facts: float | None) -> None:
    """Print a page, and write it. ``facts`` are added to its record."""
    from dpsynth.research.writing import write_results

    page = replace(page, record={**page.record, **facts, "out": out and str(out)})
    wrote = "" if out is None else f"\nwrote {', '.join(write_results(page, out))} to {out}"
    console.emit(dict(page.record), page.to_text() + wrote)


@contextmanager
def _rounds(stage: str, counted: str, out: Path | None) -> Iterator[OnRound]:
    """Show how many rounds are done, and say what an interrupt leaves."""
    try:
        with progress.stage_bar() as stages:
            last = time.monotonic()

            def on_round(done: int, total: int, label: str, seconds: float) -> None:
                nonlocal last
                stages(stage, done / total)
                if time.monotonic() - last >= _LOG_SECONDS:
                    last = time.monotonic()
                    console.say(f"attacking: {done:,} of {total:,} {counted}")

            yield on_round
    except KeyboardInterrupt:
        kept = "nothing is kept; name a folder with --out"
        if out is not None:
            kept = f"finished rounds are kept in {out}; the same command goes on with the others"
        raise console.InterruptedCommand(f"interrupted: {kept}") from None
