"""One frozen object that joins sampler, sensitivity, noise and the event that describes them.

A training run reads its sampling probability, noise and number of steps from the plan. The ledger posts the
plan's event. The two therefore cannot disagree. No TensorFlow is loaded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from dpsynth.accounting.events import non_private_event, training_event
from dpsynth.checks import in_range, inside, one_of, whole
from dpsynth.errors import ConfigError, InputError
from dpsynth.files.codec import record

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

NoiseShape = Literal["spherical", "layerwise", "proportional", "optimal"]
#: The noise shapes by name, explained in `dpsynth.mechanism.allocation`.
NOISE_SHAPES: tuple[str, ...] = get_args(NoiseShape)


@record
@dataclass(frozen=True)
class Plan:
    """Sampling, noise and cost of the private steps of one training run.

    Each step takes every record independently with probability ``sampling_prob``. It releases
    ``sum_i (g_i - c) + expected_batch * c + noise_multiplier * std * N(0, 1)``. Centre and std come from
    `dpsynth.mechanism.allocation.allocate`. In units of the stds, one record's contribution has norm at most
    1. Adding ``expected_batch * c`` back is post-processing because it is public.

    Parameters
    ----------
    sampling_prob : float
        q in (0, 1].
    expected_batch : float
        Public B = q * n with the public or privately counted n, never with the length of the table.
    steps : int
        Number of noisy sums T, at least 1.
    noise_multiplier : float or None
        z > 0: noise std over the sensitivity to adding or removing one record. None adds no noise, and the
        event then says that nothing is private.
    noise_shape : {"spherical", "layerwise", "proportional", "optimal"}
        See `dpsynth.mechanism.allocation`.

    Raises
    ------
    ConfigError
        If a field is out of range. The message names it and its value.

    Examples
    --------
    >>> plan = Plan(sampling_prob=0.05, expected_batch=100.0, steps=500, noise_multiplier=2.0)
    >>> plan.event.count, plan.event.event.event
    (500, GaussianDpEvent(noise_multiplier=2.0))
    """

    sampling_prob: float
    expected_batch: float
    steps: int
    noise_multiplier: float | None
    noise_shape: NoiseShape = "optimal"

    def __post_init__(self) -> None:
        try:
            checked: dict[str, float] = {
                "sampling_prob": in_range("sampling_prob", self.sampling_prob, 0.0, 1.0, low_open=True),
                "expected_batch": inside("expected_batch", self.expected_batch, 0.0, math.inf),
                "steps": whole("steps", self.steps),
            }
            if self.noise_multiplier is not None:
                checked["noise_multiplier"] = inside("noise_multiplier", self.noise_multiplier, 0.0, math.inf)
            one_of("noise_shape", self.noise_shape, NOISE_SHAPES)
        except InputError as problem:
            raise ConfigError(f"{problem}") from None
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def event(self) -> DpEvent:
        """Cost of the whole run, for the ledger."""
        if self.noise_multiplier is None:
            return non_private_event()
        return training_event(self.noise_multiplier, self.sampling_prob, self.steps)
