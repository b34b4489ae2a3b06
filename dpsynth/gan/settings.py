"""How a critic and a generator are built and trained; a frozen record without TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Literal, Self

from dpsynth.errors import InputError

Penalty = Literal["none", "public", "data"]


@dataclass(frozen=True)
class TrainingSettings:
    """Architecture and optimiser of one training run.

    Parameters
    ----------
    critic_hidden, generator_hidden : tuple of int
        Widths of the hidden layers.
    activation : {"maxmin", "leaky_relu", "relu"}
        Of the critic; ``maxmin`` needs even widths.
    slope : float
        Negative slope of ``leaky_relu``.
    critic_constraint : {"spectral", "none"}
        ``spectral`` projects every matrix to spectral norm at most 1 after each update (theory: Lipschitz
        critic, sensitivity 2 to 5 instead of hundreds).
    bjorck_steps : int
        Orthonormalising steps before the projection; keeps a ``maxmin`` critic expressive.
    penalty : {"none", "public", "data"}
        Gradient penalty at no points, at points made without private records (sensitivity 0), or at points
        between records and generated points (Algorithm 1; bounded by Theorem 3.1.3, tight form).
    penalty_weight : float
        The coefficient lambda.
    clip_norm : float or None
        Per-record clipping at this norm instead of the proved bounds; a comparison mode.
    critic_steps : int
        Critic updates for each generator update (n_c of Algorithm 1).
    critic_learning_rate, generator_learning_rate, beta_1, beta_2
        Adam's parameters.
    average : float
        Decay of the exponential moving average of the generator that is kept; 0 keeps the last one.
    latent : int
        Width of the latent input.
    latent_law : {"normal", "uniform"}
        ``uniform`` is U(0, 1) as in the thesis.

    Raises
    ------
    InputError
        If a value is outside its range, naming it.

    Examples
    --------
    >>> TrainingSettings(critic_hidden=(16, 16)).critic_steps
    2
    """

    critic_hidden: tuple[int, ...] = (32, 32)
    generator_hidden: tuple[int, ...] = (64, 64)
    activation: Literal["leaky_relu", "relu", "maxmin"] = "maxmin"
    slope: float = 0.2
    critic_constraint: Literal["spectral", "none"] = "spectral"
    bjorck_steps: int = 3
    penalty: Penalty = "none"
    penalty_weight: float = 10.0
    clip_norm: float | None = None
    critic_steps: int = 2
    critic_learning_rate: float = 1e-2
    generator_learning_rate: float = 1e-3
    beta_1: float = 0.5
    beta_2: float = 0.9
    average: float = 0.99
    latent: int = 32
    latent_law: Literal["normal", "uniform"] = "normal"

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type in ("int", "float") and (isinstance(value, bool) or not isinstance(value, Real)):
                raise InputError(f"{field.name} must be a number, got {value!r}")
            if field.type == "int" and value != int(value):
                raise InputError(f"{field.name} must be a whole number, got {value!r}")
        for name in ("critic_hidden", "generator_hidden"):
            widths = getattr(self, name)
            if not isinstance(widths, tuple) or not widths or any(not _is_width(w) for w in widths):
                raise InputError(f"{name} must be a non-empty tuple of positive integers, got {widths!r}")
        if self.activation == "maxmin" and any(w % 2 for w in self.critic_hidden):
            raise InputError(
                f"critic_hidden must be even for activation 'maxmin', got {self.critic_hidden!r}"
            )
        choices = {
            "activation": ("leaky_relu", "relu", "maxmin"),
            "critic_constraint": ("spectral", "none"),
            "penalty": ("none", "public", "data"),
            "latent_law": ("normal", "uniform"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        ranges = {
            "slope": (0.0, 1.0),
            "average": (0.0, 1.0 - 1e-9),
            "beta_1": (0.0, 1.0 - 1e-9),
            "beta_2": (0.0, 1.0 - 1e-9),
        }
        for name, (low, high) in ranges.items():
            if not low <= getattr(self, name) <= high:
                raise InputError(f"{name} must lie in [{low:g}, {high:g}], got {getattr(self, name)!r}")
        for name in ("critic_learning_rate", "generator_learning_rate"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be greater than 0, got {getattr(self, name)!r}")
        for name in ("penalty_weight", "bjorck_steps"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)!r}")
        for name in ("critic_steps", "latent"):
            if not getattr(self, name) >= 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)!r}")
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise InputError(f"clip_norm must be greater than 0, got {self.clip_norm!r}")
        if self.clip_norm is not None and self.penalty == "data":
            raise InputError("penalty must be 'none' or 'public' with clip_norm, got 'data'")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Settings from plain values (YAML, JSON), where tuples are lists.

        Raises
        ------
        InputError
            For an unknown name or a value outside its range.

        Examples
        --------
        >>> TrainingSettings.from_dict({"critic_hidden": [8, 8]}).critic_hidden
        (8, 8)
        """
        known = {field.name for field in fields(cls)}
        for name in values:
            if name not in known:
                raise InputError(f"{name} is not a training setting (settings: {', '.join(sorted(known))})")
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**given)


def _is_width(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
