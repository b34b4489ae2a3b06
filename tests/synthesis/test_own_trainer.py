"""A third way to learn from noisy gradients: its own file, and no change of any other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from dpsynth.files.codec import record
from dpsynth.privacy.noise import generator_at, generator_state
from dpsynth.privacy.release import Plan
from dpsynth.synthesis.matching import Matched
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.critic import Critic
from dpsynth.synthesis.parts.part import Parts
from dpsynth.synthesis.resuming import TrainedSynthesizer
from dpsynth.synthesis.sampler import Sampler
from dpsynth.synthesis.training import Course, CriticTrainer, Progress, last_row
from dpsynth.table import Column, Schema
from dpsynth.table.encoder import Encoder
from dpsynth.table.schema import TableSchema
from dpsynth.wgan.networks import MatchedPoints
from dpsynth.wgan.state import TrainingState, handed_over

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    n_public=200,
)


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(18, 91, 200), "died": rng.choice(["no", "yes"], 200)})


@record
@dataclass(frozen=True)
class Walker(CriticTrainer):
    """Critics that score by one coordinate: their gradients are the records' centred means."""

    settings: float = 0.1

    def sensitivity(self, noise_shape: str) -> str:
        return "the radius of a centred record"

    def start(self, encoder: Encoder, plan: Plan, rng: np.random.Generator) -> TrainingState:
        return TrainingState({"points": [rng.random(encoder.layout.dim).astype(np.float32)]})

    def run(self, state: TrainingState, course: Course) -> TrainingState:
        plan, layout = course.plan, course.encoder.layout
        sums = (course.points() - layout.center).sum(axis=0)
        rng = course.rng if state.noise is None else generator_at(state.noise)
        with handed_over(lambda: state, course.keep):
            while state.step < plan.steps:
                noise = (plan.noise_multiplier or 0.0) * layout.radius * rng.standard_normal(layout.dim)
                mean = layout.center + (sums + noise) / plan.expected_batch
                (point,) = state.arrays["points"]
                moved = (point + self.settings * (mean - point)).clip(0.01, 0.99).astype(np.float32)
                row = pd.DataFrame({"step": [state.step + 1], "first": [float(moved[0])]})
                state = replace(
                    state,
                    arrays={"points": [moved]},
                    step=state.step + 1,
                    history=pd.concat([state.history, row], ignore_index=True),
                    noise=generator_state(rng),
                )
                course.on_chunk(state)
        return replace(state, awaits_noise=False)

    def sampler(self, state: TrainingState, encoder: Encoder) -> Sampler:
        return Matched(MatchedPoints(np.stack(state.arrays["points"]), 0.1))

    def progress(self, state: TrainingState, plan: Plan) -> Progress:
        return Progress(state.step, plan.steps, last_row(state.history))


@record
class WalkingOptions(FitOptions):
    """The options of `Walking`."""

    generator: ClassVar[str] = "walking"
    associates: ClassVar[bool] = False

    def parts(
        self, described: TableSchema, n: float, delta: float, n_std: float = 0.0, *, every: bool = False
    ) -> Parts:
        columns = Columns(described.levels.modelled, n, n_std, share=self.division.marginals)
        plan = Plan(sampling_prob=1.0, expected_batch=n, steps=6, noise_multiplier=None)
        return Parts((columns, Critic(plan, Walker(), share=None)), (), delta)


class Walking(TrainedSynthesizer):
    """The estimator."""

    options = WalkingOptions

    def __init__(
        self,
        epsilon: float | None = 3.0,
        delta: float | None = None,
        *,
        accept_unreviewed: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.accept_unreviewed = accept_unreviewed
        self.random_state = random_state


def test_it_is_trained_watched_and_resumed(tmp_path: Path) -> None:
    """Catches a trainer that common code knows by name: for checkpoint, progress, cost or resuming."""
    whole = Walking(random_state=3).fit(table(), schema=SCHEMA)
    assert whole.history_["step"].tolist() == [1, 2, 3, 4, 5, 6]
    assert whole.ledger_.entries[-1].sensitivity == "the radius of a centred record"
    assert whole.ledger_.epsilon(whole.delta_) <= 3.0

    def stop(progress: Progress) -> None:
        if progress.step == 4:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Walking(random_state=3).fit(table(), schema=SCHEMA, checkpoint=tmp_path / "c", progress=stop)
    seen: list[int] = []
    resumed = Walking.resume(tmp_path / "c", table(), progress=lambda p: seen.append(p.step))
    assert seen == [5, 6]
    pd.testing.assert_frame_equal(resumed.history_, whole.history_, check_exact=True)
    pd.testing.assert_frame_equal(resumed.sample(50, random_state=1), whole.sample(50, random_state=1))
    whole.save(tmp_path / "m")
    again = Walking.load(tmp_path / "m")
    pd.testing.assert_frame_equal(again.sample(50, random_state=1), whole.sample(50, random_state=1))
