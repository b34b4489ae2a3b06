"""The critic's private sum as a TensorFlow Privacy ``DPQuery``, for loops written against that interface.

Nothing is clipped: the bounds are proved from the weights (`dpsynth.bounds`), each record is centred, and
the noise has the stds of `dpsynth.mechanism.allocation`. Since the bounds change with the weights, they live
in the global state, which the caller makes anew after every update.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from dpsynth.bounds.combine import LayerBounds
from dpsynth.checks import inside, one_of
from dpsynth.errors import InputError
from dpsynth.mechanism._tf_privacy import sum_query_base
from dpsynth.mechanism.allocation import allocate
from dpsynth.mechanism.plan import NOISE_SHAPES


class BoundedSumState(NamedTuple):
    """Centre and unit std of every array for the weights of one step, flat; both are public."""

    centers: list[Any]
    unit_stds: list[Any]


class BoundedSumQuery(sum_query_base()):  # type: ignore[misc]
    """Noisy sum of per-record gradients that are known to lie within `LayerBounds`.

    Adjacency: add or remove one record. The event of one call is ``GaussianDpEvent(noise_multiplier)``;
    Poisson sampling is the caller's, who posts it (`dpsynth.mechanism.plan.Plan.event`).

    Parameters
    ----------
    noise_multiplier : float
        z > 0.
    expected_batch : float
        Public number of records expected in the sum; ``expected_batch * centre`` is added back.
    noise_shape : {"spherical", "layerwise", "proportional", "optimal"}
    centred : bool
    bounds : sequence of LayerBounds, optional
        For `initial_global_state`; otherwise use `make_global_state` for every step.

    Raises
    ------
    InputError
        If an argument is out of range.
    RunError
        If TensorFlow Privacy is not installed.

    Notes
    -----
    Records must be structures that flatten to W1, b1, W2, ...; the noise is drawn in float64 from Philox
    with counter and key from the operating system.
    """

    def __init__(
        self,
        noise_multiplier: float,
        expected_batch: float,
        *,
        noise_shape: str = "optimal",
        centred: bool = True,
        bounds: Sequence[LayerBounds] | None = None,
    ) -> None:
        super().__init__()
        self._noise_multiplier = inside("noise_multiplier", noise_multiplier, 0.0, math.inf)
        self._expected_batch = inside("expected_batch", expected_batch, 0.0, math.inf)
        one_of("noise_shape", noise_shape, NOISE_SHAPES)
        self._noise_shape, self._centred, self._bounds = noise_shape, centred, bounds
        words = [secrets.randbits(64) - 2**63 for _ in range(3)]
        self._generator = tf.random.Generator.from_state(tf.constant(words, tf.int64), alg="philox")

    def make_global_state(self, bounds: Sequence[LayerBounds]) -> BoundedSumState:
        """State for a step whose gradients lie within ``bounds``."""
        return BoundedSumState(*allocate(bounds, self._noise_shape, centred=self._centred))

    def initial_global_state(self) -> BoundedSumState:
        """State for the bounds given to the constructor.

        Raises
        ------
        InputError
            If none were given.
        """
        if self._bounds is None:
            raise InputError("bounds were not given: call make_global_state with the bounds of each step")
        return self.make_global_state(self._bounds)

    def derive_sample_params(self, global_state: BoundedSumState) -> list[Any]:
        """The centres, which every record needs."""
        return global_state.centers

    def preprocess_record(self, params: list[Any], record: Any) -> Any:
        """The record minus the centre; there is nothing to clip."""
        flat = tf.nest.flatten(record)
        return tf.nest.pack_sequence_as(record, [g - c for g, c in zip(flat, params, strict=True)])

    def get_noised_result(
        self, sample_state: Any, global_state: BoundedSumState
    ) -> tuple[Any, BoundedSumState, Any]:
        """Noisy sum with the centre added back, the same state, and the event."""
        from dpsynth.accounting.events.events import gaussian_event

        noisy = []
        for total, center, std in zip(tf.nest.flatten(sample_state), *global_state, strict=True):
            normal = tf.cast(self._generator.normal(tf.shape(total), dtype=tf.float64), total.dtype)
            noisy.append(total + self._expected_batch * center + self._noise_multiplier * std * normal)
        result = tf.nest.pack_sequence_as(sample_state, noisy)
        return result, global_state, gaussian_event(self._noise_multiplier)
