"""The checked options of a fit, declared once for the estimator, the configuration and the command line."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from dpsynth.errors import PrivacyError
from dpsynth.files.options import Section
from dpsynth.mechanism.plan import NoiseShape
from dpsynth.model.wgan.settings import TrainingSettings
from dpsynth.studies.study import Study, read_studies
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.budget import Shares


class ModelOptions(Section):
    """Options of a generator, documented at `DPWGANGP`."""

    epsilon: float | None = Field(default=3.0, gt=0)
    delta: float | None = Field(default=None, gt=0, lt=1)
    base_model: Literal["auto", "tan", "tree", "none"] = "auto"
    pairwise_statistics: Literal["auto"] | bool = "auto"
    neighbour_histogram: Literal["auto"] | bool = "auto"
    training_steps: Literal["auto"] | Annotated[int, Field(ge=0)] = "auto"
    batch_size: int | None = Field(default=None, ge=1)
    noise_shape: NoiseShape = "optimal"
    training: TrainingSettings | None = None
    shares: Shares | None = None
    random_state: int | None = Field(default=None, ge=0)

    @property
    def has_matching(self) -> bool:
        """Whether the critics' steps are gradients at random critics, which points match: by rule.

        It is true without a base model, unless the settings of an alternating training are given.
        """
        return not self.has_base_model and self.training is None

    @property
    def steps(self) -> int:
        """Critic steps, or random critics. There are none beside a base model."""
        if self.has_base_model:
            return 0
        if self.training_steps != "auto":
            return self.training_steps
        return default_rules.CRITICS if self.has_matching else default_rules.STEPS

    @property
    def has_base_model(self) -> bool:
        """Whether the generator's input is a tree of marginals."""
        return self.base_model != "none"

    @field_validator("training", mode="before")
    @classmethod
    def _training(cls, given: Any) -> Any:
        return TrainingSettings.from_dict(given) if isinstance(given, dict) else given

    @field_validator("shares", mode="before")
    @classmethod
    def _shares(cls, given: Any) -> Any:
        return Shares.from_dict(given) if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _trains_alone(self) -> Self:
        given = [name for name in ("training", "batch_size") if getattr(self, name) is not None]
        given += ["training_steps"] if self.training_steps not in ("auto", 0) else []
        if given and self.has_base_model:
            raise ValueError(f"{given[0]} needs base_model='none': beside a base model no WGAN is trained")
        return self

    @model_validator(mode="after")
    def _noise_has_a_proof(self) -> Self:
        if self.epsilon is None:
            return self
        training = self.training or TrainingSettings()
        if training.penalty == "data" and self.noise_shape not in ("spherical", "layerwise"):
            raise PrivacyError(
                "noise_shape must be 'spherical' or 'layerwise' with penalty 'data', which has no "
                f"componentwise bound, got {self.noise_shape!r}"
            )
        if training.clip_norm is not None and self.noise_shape != "spherical":
            raise PrivacyError(f"noise_shape must be 'spherical' with clip_norm, got {self.noise_shape!r}")
        return self


class FitOptions(ModelOptions):
    """The arguments of `DPWGANGP`. :meth:`of` raises InputError or PrivacyError that name the argument."""

    accept_unreviewed: bool = False
    studies: tuple[Study, ...] = ()

    @field_validator("studies", mode="before")
    @classmethod
    def _studies(cls, given: Any) -> Any:
        return read_studies(given)

    @model_validator(mode="after")
    def _studies_have_draws(self) -> Self:
        if self.studies and not self.has_base_model:
            raise ValueError(
                "studies need a base model, whose samples stand for the records in expectations. Leave "
                "base_model at 'auto'"
            )
        return self
