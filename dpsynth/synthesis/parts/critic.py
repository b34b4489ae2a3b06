"""Steps of a WGAN critic, or gradients at random critics: the generator learns from these alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dpsynth.errors import ConfigError
from dpsynth.privacy.release import CriticRelease, Plan
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.parts.part import Part, Reading, Redrawing, Statistic
from dpsynth.synthesis.training import CriticTrainer, Trained, Training
from dpsynth.wgan.history import TrainingHistory


@dataclass(frozen=True)
class Critic(Part[Trained]):
    """All private steps of a training run.

    ``steps``: sampling and number of steps. :attr:`plan` has the noise as well.
    ``trainer``: makes the steps.
    ``training``: makes the training of a model. A fit gives it, and a plan needs none.
    """

    steps: Plan
    trainer: CriticTrainer
    training: Callable[[GeneratorModel, CriticTrainer], Training] | None = None

    @property
    def plan(self) -> Plan:
        """Sampling, number and noise of the steps."""
        return replace(self.steps, noise_multiplier=self.noise)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """All steps together."""
        return (Statistic(CriticRelease.name, (self.plan.event,)),)

    def read(self, reading: Reading) -> Trained:
        """Train."""
        if self.training is None:
            raise ConfigError("a training is read by the fit that watches it")
        trained: Trained = reading.run(
            self.training(reading.made, self.trainer).release(self.plan, stage=self.stage)
        )
        return trained

    def redraw(self, reading: Redrawing) -> Trained:
        """The released weights or points: a training is not repeated."""
        return replace(reading.made, sampler=reading.released.sampler), TrainingHistory()

    def extend(self, model: GeneratorModel, found: Trained) -> GeneratorModel:
        """The trained model."""
        return found[0]
