"""The critic of our own synthesizer as a score of records (Pedersen 2022, section 6.2; `ltu.py critic`).

A critic was trained to separate real from generated records, and may have learned its training records. Its
weights are made from noisy sums alone: publishing them costs nothing beyond the ledger. Its scores of *real*
records read these without using privacy budget. They are confidential.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.lazy import load_tensorflow_quietly
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.records import Records
from dpsynth.privacy.release import CriticRelease, Plan
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.check_inputs import record_provenance, records_of
from dpsynth.synthesis.fit import plan_fit, read_parts
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.parts.critic import Critic
from dpsynth.synthesis.parts.part import Reading
from dpsynth.synthesis.training import Generated, Training, trained_state
from dpsynth.synthesis.wgan_gp import DPWGANGP, WganOptions
from dpsynth.table.coded import CodedTable
from dpsynth.table.schema import Schema
from dpsynth.wgan.networks import Weights, unflatten
from dpsynth.wgan.settings import TrainingSettings


@dataclass(frozen=True, eq=False)
class CriticScore:
    """A trained critic, larger for records that it takes for real.

    ``model`` is what `DPWGANGP.fit` would have published, ``critic`` a list of (W, b), ``ledger`` that of the
    training.
    """

    model: GeneratorModel
    critic: Weights
    settings: TrainingSettings
    ledger: Ledger

    def __call__(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Scores of records of the schema, shape (n,). Confidential if the records are real."""
        load_tensorflow_quietly()
        import tensorflow as tf

        from dpsynth.wgan.algorithm import critic_pass
        from dpsynth.wgan.theorems import Activation

        records = CodedTable(self.model.encoder.schema.conform_modelled(frame))
        # where a value lies in its cell is drawn; the same for every call
        points = self.model.encoder.transform(records, np.random.default_rng(0))
        centred = points - self.model.encoder.layout.center.astype(np.float32)
        activation = Activation(self.settings.activation, self.settings.slope)
        weights = [(tf.constant(w), None if b is None else tf.constant(b)) for w, b in self.critic]
        scores, _, _ = critic_pass(weights, tf.constant(centred, tf.float32), activation)
        return np.asarray(scores, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class CriticTrainer:
    """Train a synthesizer and keep its critic.

    Parameters
    ----------
    estimator : DPWGANGP
        Not fitted.
    schema : Schema
        Its public number of records is set to that of the frame that is trained on.
    """

    estimator: DPWGANGP
    schema: Schema

    def __call__(self, frame: pd.DataFrame, seed: int) -> CriticScore:
        """Train on a frame as ``fit`` does with this ``random_state``.

        Raises
        ------
        InputError
            If the synthesizer trains no WGAN critic.
        """
        own = type(self.estimator)(**{**self.estimator.get_params(deep=False), "random_state": seed})
        options = own.validate()
        if not isinstance(options, WganOptions):
            raise InputError(
                f"the synthesizer must train a WGAN critic: use DPWGANGP, not {type(own).__name__}"
            )
        schema = self.schema.with_n_public(len(frame))
        records, _ = records_of(frame, schema, options, accept_n_public=True)
        ledger = Ledger()
        # the streams of DPWGANGP's own fit, so that it is the same synthesizer that is attacked
        rng = np.random.Generator(np.random.PCG64DXSM([seed, 0]))
        record_provenance(ledger, schema, options, rng, {})
        plan = plan_fit(records, schema, options, rng, ledger)
        released = read_parts(plan, Reading(ledger, records, rng, plan.n))
        part = plan.parts.of(Critic)
        assert part is not None and isinstance(part.settings, TrainingSettings)  # others are refused above
        settings = part.settings
        training = Training(released, settings, np.random.default_rng([seed]), dict)

        def train(own: Records, plan: Plan, noise: np.random.Generator) -> CriticScore:
            state = trained_state(own, plan, noise, training)
            critic = unflatten([np.asarray(a) for a in state.arrays["critic"]], output_bias=False)
            made = Generated(state.generator, settings.latent, settings.latent_law)
            whole = dataclasses.replace(released, sampler=made)
            return CriticScore(whole, critic, settings, ledger)

        words = default_rules.describe_sensitivity(settings, part.plan.noise_shape)
        steps: CriticRelease[CriticScore] = CriticRelease(
            plan=part.plan, sensitivity=words, train=train, stage=part.stage
        )
        score = ledger.run(steps, records, rng)
        ledger.end_stage()
        return score
