"""Estimators whose fit keeps a private checkpoint of its training, from which it goes on."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

import pandas as pd

from dpsynth.errors import DataError, InputError
from dpsynth.files.storage import locked, mend
from dpsynth.lazy import load_tensorflow_quietly
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.noise import generator_at
from dpsynth.privacy.records import PartitionedRecords, Records
from dpsynth.progress import shown_progress, training_bar
from dpsynth.synthesis.check_inputs import conformed, warn_of_noise
from dpsynth.synthesis.fit import cost_of
from dpsynth.synthesis.parts.critic import Critic
from dpsynth.synthesis.saved_fit import SavedFit
from dpsynth.synthesis.synthesizer import Synthesizer
from dpsynth.synthesis.training import CriticTrainer, Progress, Training, with_generator


class TrainedSynthesizer(Synthesizer, ABC):
    """A generator that learns from noisy gradients of critics, by a :class:`CriticTrainer`."""

    @classmethod
    def resume(
        cls,
        checkpoint: str | Path,
        frame: pd.DataFrame | PartitionedRecords,
        *,
        ledger: Ledger | str | Path | None = None,
        progress: Callable[[Progress], None] | None = None,
        log_dir: str | Path | None = None,
    ) -> Self:
        """Continue a ``fit`` that was stopped, on the same table. The ledger already holds its whole cost.

        On the computer on which it ran, the result is that of a fit without a stop, bit for bit: the noise
        goes on where it was. While a fit goes on, nobody else can use its checkpoint. A checkpoint from
        another computer, or from other threads of TensorFlow, goes on with other noise, since sums that are
        rounded differently must not get the same. So does a copy of a checkpoint that has gone on, which pays
        again. A checkpoint after the last step gives the fit again. Gradients at random critics that were
        released are kept: no noise follows.

        Parameters
        ----------
        checkpoint : path
            The folder that ``fit`` wrote. Checkpoints of this fit replace it.
        frame : DataFrame or PartitionedRecords
            The same private table.
        ledger : Ledger or path, optional
            Ledger's file in which the interrupted fit posted, by default where it was then. The fit has paid
            there. A copy of its checkpoint pays now.
        progress, log_dir
            As for `fit`.

        Raises
        ------
        DataError
            If the folder holds no checkpoint, a damaged one, one that was given up or one of another table.
        InputError, PrivacyError
            As `fit` does for the ledger's file, or if that does not hold the interrupted fit. If the fit is
            still going on, or is one of another generator.
        """
        load_tensorflow_quietly()
        from dpsynth.wgan.checkpoint import read_checkpoint, take_checkpoint, this_computer

        def conform(saved: SavedFit) -> Records:
            return conformed(saved.model.schema, frame)

        mend(Path(checkpoint))
        saved, left = read_checkpoint(checkpoint, SavedFit)
        trainer = cls._trainer_of(saved, checkpoint)
        if left.ended:  # so nothing is read and nothing posted
            state = left.state_with(saved.history)
            model, _ = with_generator(saved.model, trainer, state)
            return cls._of(saved)._finish(model, saved.history, saved.parts)
        named = Ledger.named(ledger or left.ledger)
        ledger = saved.ledger if named is None or named.file is None else named
        cost = cost_of(saved.model.schema, saved.params)
        with (
            saved.params.placed(),
            locked(checkpoint),
            ledger.reserved(cost, "resumed in Python", resumed=saved.ledger),
        ):
            saved, left, records = take_checkpoint(checkpoint, SavedFit, conform)
            self, state = cls._of(saved), left.state_with(saved.history)
            self.ledger_ = ledger
            if left.start is None or ledger.pays_again or left.computer != this_computer():
                rng = self._generator(len(ledger.entries), left.step + 1)
                state = replace(state, noise=None)
            else:
                rng = generator_at(left.start)
            with shown_progress(progress, training_bar) as tell:
                training = Training(
                    saved.model,
                    trainer,
                    self._public_generator(),
                    partial(self._saved, saved.parts),
                    checkpoint,
                    tell,
                    log_dir,
                )
                steps = training.release(left.plan, state=state)
                model, history = ledger.resume(steps, records, rng)
            warn_of_noise(history.frame)
        return self._finish(model, history, saved.parts)

    @classmethod
    def _trainer_of(cls, saved: SavedFit, checkpoint: str | Path) -> CriticTrainer:
        """The trainer of a checkpoint of this generator."""
        generator, critic = saved.params.generator, saved.parts.of(Critic)
        if generator != cls.options.generator:
            raise InputError(f"{checkpoint} is a checkpoint of generator {generator}: go on with its class")
        if critic is None:
            raise DataError(f"{checkpoint} holds a checkpoint of a fit without steps of a WGAN critic")
        return critic.trainer
