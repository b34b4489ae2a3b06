"""DPCriticMatching: points that match noisy gradients of random WGAN critics."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import Field

from dpsynth.files.codec import record
from dpsynth.privacy.release import NoiseShape, Plan
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.outcome_law import OutcomeLaw
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.critic import Critic
from dpsynth.synthesis.parts.part import Parts
from dpsynth.synthesis.resuming import TrainedSynthesizer
from dpsynth.synthesis.sampler import Sampler
from dpsynth.synthesis.sampling import Codes, Places, calibrated_records
from dpsynth.synthesis.training import Course, CriticTrainer, Progress, last_row
from dpsynth.table.encoder import Encoder
from dpsynth.table.schema import TableSchema
from dpsynth.wgan.device import Device, on_device
from dpsynth.wgan.networks import MatchedPoints, coordinate_scale
from dpsynth.wgan.settings import MatchingSettings
from dpsynth.wgan.state import TrainingState

# Records whose gradients are summed at once.
_BLOCK = 50_000


@record
@dataclass(frozen=True)
class Matched(Sampler):
    """Records that matched points stand for (`dpsynth.wgan.matching`).

    ``law``: of a categorical outcome, given the other columns.
    """

    points: MatchedPoints
    law: OutcomeLaw | None = None

    def draw(self, encoder: Encoder, n: int, rng: np.random.Generator) -> tuple[list[Codes], list[Places]]:
        """Fine cells of n records and places within them."""
        points = self.points.sample(n, encoder.layout.n_numeric, rng)
        if self.law is not None:
            points = self.law.redrawn(points, encoder, rng)
        return calibrated_records(points, encoder, rng)


@record
@dataclass(frozen=True)
class Matcher(CriticTrainer):
    """One release of gradients at random critics, and points that match it."""

    settings: MatchingSettings

    def sensitivity(self, noise_shape: str) -> str:
        """Proved from the critics' weights."""
        bounds = "Theorem 3.1.1 and Lipschitz bounds"
        how = f"proved for each random critic from its public weights ({bounds})"
        return f"{how}, {noise_shape}, exact noise"

    def start(self, encoder: Encoder, plan: Plan, rng: np.random.Generator) -> TrainingState:
        """Random critics, and the points to start from."""
        from dpsynth.wgan.matching import starting_state

        return starting_state(plan.steps, encoder.layout, encoder.group_probabilities(), self.settings, rng)

    def run(self, state: TrainingState, course: Course) -> TrainingState:
        """Release the gradients, if that is still to be done, and move the points."""
        from dpsynth.wgan.matching import GradientRelease, critics_of, matched, with_released

        layout = course.encoder.layout
        scale = coordinate_scale(course.encoder, self.settings.outcome_scale)
        if state.awaits_noise:
            release = GradientRelease(critics_of(state), layout, scale, course.plan)
            points = course.points()
            blocks = (points[i : i + _BLOCK] for i in range(0, len(points), _BLOCK))
            state = with_released(state, release(blocks, course.rng))
            course.keep(state)
        return matched(state, layout, scale, self.settings, course.on_chunk, course.keep)

    def sampler(self, state: TrainingState, encoder: Encoder) -> Sampler:
        """The points, and the law of their outcome."""
        from dpsynth.wgan.matching import points_of

        points = points_of(state, encoder.layout, self.settings)
        return Matched(points, OutcomeLaw.of(points, encoder))

    def progress(self, state: TrainingState, plan: Plan) -> Progress:
        """Random critics, in proportion to the iterations."""
        done = plan.steps * state.step // self.settings.iterations
        return Progress(done, plan.steps, last_row(state.history))


@record
class MatchingOptions(FitOptions):
    """The options of `DPCriticMatching`."""

    generator: ClassVar[str] = "matching"
    associates: ClassVar[bool] = False

    critics: int = Field(default=default_rules.CRITICS, ge=1, le=default_rules.MOST_CRITICS)
    noise_shape: NoiseShape = "optimal"
    device: Device | None = None

    def placed(self) -> AbstractContextManager[None]:
        """On the device."""
        return on_device(self.device)

    def settings(self, n: float) -> MatchingSettings:
        """The public constants of the matching."""
        return MatchingSettings()

    def parts(
        self, described: TableSchema, n: float, delta: float, n_std: float = 0.0, *, every: bool = False
    ) -> Parts:
        """Single-column counts, and a gradient of every record at each critic."""
        plan = Plan(
            sampling_prob=1.0,
            expected_batch=n,
            steps=self.critics,
            noise_multiplier=None,
            noise_shape=self.noise_shape,
        )
        columns = Columns(described.levels.modelled, n, n_std, share=self.division.marginals)
        return Parts((columns, Critic(plan, Matcher(self.settings(n)), share=None)), (), delta)


class DPCriticMatching(TrainedSynthesizer):
    """Differentially private tables from points that match noisy gradients of random WGAN critics.

    Nothing is trained against an adversary (`dpsynth.wgan.matching`). Random critics are drawn
    from public randomness. The gradient of each, summed over all records, is released once with noise. Points
    are moved until their gradients match. A categorical outcome is drawn from a logistic regression on the
    points' other columns.

    Parameters
    ----------
    epsilon : float or None, default 3.0
        Total budget of ``fit``. None fits without noise and marks every output NOT PRIVATE.
    delta : float, optional
        Default: n_public^-1.5 (at most 1e-3), or 1e-6 if the schema has no public number of records.
    critics : int, default 32
        Number of random critics, at most 128.
    noise_shape : {"optimal", "layerwise", "spherical", "proportional"}
        Covariance of the noise.
    device : str, optional
        ``"GPU:0"`` or ``"CPU:0"``: where points are matched. The processor sums the gradients of records.
        Default: the first GPU, or the processor without one. Another device rounds otherwise, so results
        differ.
    accept_unreviewed : bool
        Fit although the schema holds fields read from the data. The ledger then excludes them.
    random_state : int, optional
        As in :class:`dpsynth.DPMarginals`.

    Examples
    --------
    >>> DPCriticMatching(critics=500).validate()
    Traceback (most recent call last):
    dpsynth.errors.InputError: critics must be less than or equal to 128, got 500
    """

    options = MatchingOptions

    def __init__(
        self,
        epsilon: float | None = 3.0,
        delta: float | None = None,
        *,
        critics: int = default_rules.CRITICS,
        noise_shape: NoiseShape = "optimal",
        device: str | None = None,
        accept_unreviewed: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.critics = critics
        self.noise_shape = noise_shape
        self.device = device
        self.accept_unreviewed = accept_unreviewed
        self.random_state = random_state
