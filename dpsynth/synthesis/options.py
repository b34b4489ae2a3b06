"""The checked options of a fit, the same for the estimator, the configuration and the command line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from dpsynth.errors import InputError, PrivacyError
from dpsynth.gan.settings import TrainingSettings
from dpsynth.mechanism.plan import NOISE_SHAPES, NoiseShape
from dpsynth.synthesis.budget import Shares

_CHOICES: dict[str, tuple[Any, ...]] = {
    "prior": ("auto", "tan", "tree", "none"),
    "noise_shape": NOISE_SHAPES,
    "numeric": ("copula", "minmax"),
    "categorical": ("onehot", "sdv"),
    "marginals": ("histogram", "hierarchical", "none"),
    "preset": (None, "healthgan"),
}


@dataclass(frozen=True)
class FitOptions:
    """The arguments of `DPWGANGP`, checked; their meanings and defaults are documented there.

    Raises
    ------
    InputError
        If an argument is of the wrong type, out of range or contradicts another, naming it.
    PrivacyError
        If the arguments contradict the privacy asked for.
    """

    epsilon: float | None
    delta: float | None
    prior: Literal["auto", "tan", "tree", "none"]
    training_steps: int
    batch_size: int | None
    noise_shape: NoiseShape
    centred: bool
    numeric: Literal["copula", "minmax"]
    categorical: Literal["onehot", "sdv"]
    marginals: Literal["histogram", "hierarchical", "none"]
    match_marginals: bool
    training: TrainingSettings | None
    shares: Shares | None
    preset: str | None
    accept_unreviewed: bool
    random_state: int | None

    def __post_init__(self) -> None:
        self._check_values()
        self._check_marginals()
        self._check_privacy()

    def _check_values(self) -> None:
        if self.epsilon is not None and not (is_number(self.epsilon) and 0 < self.epsilon < math.inf):
            raise InputError(f"epsilon must be a number greater than 0 or null, got {self.epsilon!r}")
        if self.delta is not None and not (is_number(self.delta) and 0 < self.delta < 1):
            raise InputError(f"delta must be a number in (0, 1), got {self.delta!r}")
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                options = ", ".join(str(a) for a in allowed)
                raise InputError(f"{name} must be one of {options}, got {getattr(self, name)!r}")
        for name in ("centred", "match_marginals", "accept_unreviewed"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} must be true or false, got {getattr(self, name)!r}")
        for name, kind in (("training", TrainingSettings), ("shares", Shares)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InputError(f"{name} must be a {kind.__name__}, got {value!r}")
        check_count("training_steps", self.training_steps)
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size, low=1)
        if self.random_state is not None:
            check_count("random_state", self.random_state)

    def _check_marginals(self) -> None:
        if self.marginals != "none" or self.preset is not None:
            return
        wanted = {"numeric": "copula", "categorical": "sdv"}
        needs = [f"{name}={value!r}" for name, value in wanted.items() if getattr(self, name) == value]
        needs += [f"prior={self.prior!r}"] if self.prior not in ("none", "auto") else []
        if needs:
            raise InputError(f"marginals must be released for {', '.join(needs)}, got marginals='none'")
        if not self.training_steps:
            raise InputError(
                "training_steps must be greater than 0 where there are neither prior nor marginals"
            )

    def _check_privacy(self) -> None:
        if self.epsilon is None:
            return
        if self.preset == "healthgan":
            raise PrivacyError("preset 'healthgan' trains without noise; set epsilon to null to use it")
        training = self.training or TrainingSettings()
        if training.penalty == "data" and self.noise_shape not in ("spherical", "layerwise"):
            raise PrivacyError(
                "noise_shape must be 'spherical' or 'layerwise' with penalty 'data', which has no "
                f"componentwise bound, got {self.noise_shape!r}"
            )
        if training.clip_norm is not None and self.noise_shape != "spherical":
            raise PrivacyError(f"noise_shape must be 'spherical' with clip_norm, got {self.noise_shape!r}")


def from_plain(options: dict[str, Any]) -> dict[str, Any]:
    """Options read from YAML or JSON, with ``training`` and ``shares`` made into their records."""
    made = dict(options)
    for name, kind in (("training", TrainingSettings), ("shares", Shares)):
        if made[name] is not None:
            made[name] = kind.from_dict(made[name])
    return made


def is_number(value: Any) -> bool:
    """Whether a value is a real number (true and false are not)."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_count(name: str, value: Any, low: int = 0) -> None:
    """Refuse what is not a whole number of at least ``low``.

    Examples
    --------
    >>> check_count("n_samples", -1)
    Traceback (most recent call last):
    dpsynth.errors.InputError: n_samples must be a whole number of at least 0, got -1
    """
    if not is_number(value) or not math.isfinite(value) or int(value) != value or value < low:
        raise InputError(f"{name} must be a whole number of at least {low}, got {value!r}")
