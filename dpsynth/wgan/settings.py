"""How critics and generators are built and fitted, as frozen records without TensorFlow."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from dpsynth.files.codec import options_record, record

Penalty = Literal["none", "public", "data"]


# Iterations of the replay.
_REPLAY = 600
#: Widths of hidden layers, at least one.
Widths = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)]


@record
@options_record
class TrainingSettings:
    """Architecture and optimiser of one training run.

    Parameters
    ----------
    critic_hidden, generator_hidden : tuple of int
        Widths of the hidden layers. A generator may have none: it is then linear up to its last functions,
        and learns mainly how columns depend on a few latent numbers.
    activation : {"maxmin", "leaky_relu", "relu"}
        Activation of the critic. ``maxmin`` needs even widths.
    slope : float
        Negative slope of ``leaky_relu``.
    critic_constraint : {"spectral", "none"}
        ``spectral`` projects every matrix to spectral norm at most 1 after each update (theory: Lipschitz
        critic, sensitivity 2 to 5 instead of hundreds).
    bjorck_steps : int
        Orthonormalising steps before the projection, which keep a ``maxmin`` critic expressive.
    penalty : {"none", "public", "data"}
        Gradient penalty at no points, at points made without private records (sensitivity 0, the default), or
        at points between records and generated ones. The last is Algorithm 1, bounded by Theorem 3.1.3, tight
        form.
    penalty_weight : float
        The coefficient lambda.
    clip_norm : float or None
        Clipping of each gradient at this norm instead of the proved bounds, for comparison. Gradients of
        generated points are clipped as those of records.
    critic_steps : int
        Critic updates for each generator update (n_c of Algorithm 1).
    critic_learning_rate, generator_learning_rate, beta_1, beta_2 : float
        Adam's parameters.
    average : float
        Decay of the exponential moving average of the generator that is kept. 0 keeps the last one.
    latent : int
        Width of the latent input.
    latent_law : {"normal", "uniform"}
        ``uniform`` is U(0, 1) as in Pedersen (2022).
    outcome_scale : float
        Public factor of the outcome's coordinates before the critic sees them. The domain of the bounds is
        multiplied likewise. More than 1 gives associations with the outcome more weight.
    replay : int or None
        Iterations at the end in which the generator is fitted to the noisy mean gradients of the last 256
        critics together (`dpsynth.wgan.replay`), at no cost. 0 keeps the average of the alternating training.
        None: 600, and 0 where a released gradient is not that of a mean score (``clip_norm``, penalty
        ``data``).
    patience : int or None
        Stop after so many generator iterations in which no estimate of the Wasserstein distance was beyond
        twice its standard error. The rule reads noisy statistics alone. The cost stays that of all steps.

    Raises
    ------
    InputError
        If a value is outside its range, naming it.
    """

    critic_hidden: Widths = (32,)
    generator_hidden: tuple[Annotated[int, Field(ge=1)], ...] = ()
    activation: Literal["leaky_relu", "relu", "maxmin"] = "maxmin"
    slope: float = Field(default=0.2, ge=0, le=1)
    critic_constraint: Literal["spectral", "none"] = "spectral"
    bjorck_steps: int = Field(default=3, ge=0)
    penalty: Penalty = "public"
    penalty_weight: float = Field(default=10.0, ge=0)
    clip_norm: float | None = Field(default=None, gt=0)
    critic_steps: int = Field(default=2, ge=1)
    critic_learning_rate: float = Field(default=1e-2, gt=0)
    generator_learning_rate: float = Field(default=2e-2, gt=0)
    beta_1: float = Field(default=0.5, ge=0, lt=1)
    beta_2: float = Field(default=0.9, ge=0, lt=1)
    average: float = Field(default=0.99, ge=0, lt=1)
    latent: int = Field(default=32, ge=1)
    latent_law: Literal["normal", "uniform"] = "normal"
    outcome_scale: float = Field(default=3.0, gt=0)
    replay: int | None = Field(default=None, ge=0)
    patience: int | None = Field(default=None, ge=1)

    @field_validator("critic_hidden", "generator_hidden", mode="before")
    @classmethod
    def _tuple(cls, widths: Any) -> Any:
        return tuple(widths) if isinstance(widths, list) else widths  # as YAML and JSON have them

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.activation == "maxmin" and any(width % 2 for width in self.critic_hidden):
            raise ValueError(
                f"`critic_hidden` must be even for activation 'maxmin', not {self.critic_hidden!r}"
            )
        if self.clip_norm is not None and self.penalty == "data":
            raise ValueError("penalty must be 'none' or 'public' with clip_norm, got 'data'")
        if self.patience is not None and (self.clip_norm is not None or self.penalty == "data"):
            raise ValueError(
                "patience needs the estimate of the Wasserstein distance, which clip_norm and penalty 'data' "
                "do not leave"
            )
        if self.replay and not self._of_a_mean_score:
            raise ValueError("replay must be 0 with clip_norm and with penalty 'data', or left out")
        return self

    @property
    def _of_a_mean_score(self) -> bool:
        return self.clip_norm is None and self.penalty != "data"

    @property
    def replays(self) -> int:
        """Iterations of the replay."""
        if self.replay is None:
            return _REPLAY if self._of_a_mean_score else 0
        return self.replay


@record
@options_record
class MatchingSettings:
    """Random critics, and the points that match their noisy mean gradients.

    These are the settings of `dpsynth.wgan.matching`. All of them are public constants.

    Parameters
    ----------
    critic_width : int
        Width of each critic's only hidden layer, even.
    bias_std : float
        Standard deviation of the hidden layer's random biases.
    outcome_scale : float
        Factor by which the outcome's coordinates are multiplied before a critic sees them.
    points : int
        Number of points that are moved.
    jitter : float
        Standard deviation of the reflected normal noise on numeric coordinates, in matching and sampling.
    iterations : int
        Adam's iterations.
    learning_rate : float
        Adam's first rate.

    Raises
    ------
    InputError
        If a value is outside its range, naming it.
    """

    critic_width: int = Field(default=32, ge=2, multiple_of=2)
    bias_std: float = Field(default=0.2, ge=0)
    outcome_scale: float = Field(default=3.0, gt=0)
    points: int = Field(default=2000, ge=1)
    jitter: float = Field(default=0.1, ge=0)
    iterations: int = Field(default=500, ge=1)
    learning_rate: float = Field(default=0.05, gt=0)
