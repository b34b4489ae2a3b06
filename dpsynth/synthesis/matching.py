"""DPCriticMatching: points that match noisy gradients of random WGAN critics."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import ClassVar

from pydantic import Field

from dpsynth.files.codec import record
from dpsynth.privacy.release import NoiseShape, Plan
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.critic import Critic
from dpsynth.synthesis.parts.part import Parts
from dpsynth.synthesis.synthesizer import Synthesizer
from dpsynth.table.schema import TableSchema
from dpsynth.wgan.device import Device, on_device
from dpsynth.wgan.settings import MatchingSettings


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
        return Parts((columns, Critic(plan, self.settings(n), share=None)), (), delta)


class DPCriticMatching(Synthesizer):
    """Differentially private tables from points that match noisy gradients of random WGAN critics.

    Nothing is trained against an adversary (`dpsynth.wgan.matching`). Random critics are drawn
    from public randomness. The gradient of each, summed over all records, is released once with noise. Points
    are moved until their gradients match.

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
