"""The critic's private sum as a TensorFlow Privacy ``DPQuery``, for loops written against that interface.

Nothing is clipped. The bounds are proved from the weights (`dpsynth.wgan.theorems`), each record is
centred, and the noise has the stds of `dpsynth.wgan.theorems`. The bounds belong to the weights at
which the gradients are taken. They are computed again in every step, and no state outlives an update.
Keras 3 refuses TensorFlow Privacy's Keras optimizers. Its queries work.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from dpsynth.checks import tf_privacy_module
from dpsynth.errors import InputError, RunError
from dpsynth.privacy.events import gaussian_event
from dpsynth.privacy.release import Plan
from dpsynth.wgan.precision import full_precision_for
from dpsynth.wgan.theorems import LayerBounds, allocate

_ABSENT = (
    "tensorflow_privacy is not installed, so the DPQuery interface is not available: use Python 3.11. "
    "Everything else in dpsynth works without it"
)


class _Absent:
    """Stands in for the base class, so that the module which derives from it can be imported."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RunError(_ABSENT)


def sum_query_base() -> Any:
    """TensorFlow Privacy's ``SumAggregationDPQuery``, or a class that says on use that it is absent."""
    try:
        return tf_privacy_module("dp_query.dp_query").SumAggregationDPQuery
    except ImportError:
        return _Absent


class BoundedSumQuery(sum_query_base()):  # type: ignore[misc]
    """Noisy sum of per-record gradients that are known to lie within `LayerBounds`.

    Adjacency: add or remove one record. The event of one call is ``GaussianDpEvent(noise_multiplier)``. The
    loop samples with ``plan.sampling_prob``, and `Plan.event` describes the whole run.

    Parameters
    ----------
    plan : Plan
        Noise multiplier, shape and centring, and the public number of records expected in a sum.
    bounds : callable
        Returns the bounds of one record's gradient at the current weights. It is called at the beginning and
        at the end of every sample. Weights must not change in between.

    Raises
    ------
    InputError
        If the plan adds no noise.
    RunError
        If TensorFlow Privacy is not installed.

    Notes
    -----
    Records must be structures that flatten to W1, b1, W2, ... The noise is drawn in float64 from Philox with
    counter and key from the operating system. ``docs/how-to/tensorflow-privacy.md`` trains a Keras model.
    """

    def __init__(self, plan: Plan, bounds: Callable[[], Sequence[LayerBounds]]) -> None:
        super().__init__()
        full_precision_for(self)  # the caller's gradients too
        if plan.noise_multiplier is None:
            raise InputError("noise_multiplier must be > 0, got None: the plan adds no noise")
        self._plan, self._noise_multiplier, self._bounds = plan, plan.noise_multiplier, bounds
        words = [secrets.randbits(64) - 2**63 for _ in range(3)]
        self._generator = tf.random.Generator.from_state(tf.constant(words, tf.int64), alg="philox")

    def _scales(self) -> tuple[list[Any], list[Any]]:
        """Centre and std for noise multiplier 1 of every array, at the present weights."""
        return allocate(self._bounds(), self._plan.noise_shape)

    def derive_sample_params(self, global_state: Any) -> list[Any]:
        """The centres, which every record needs. There is no global state."""
        return self._scales()[0]

    def preprocess_record(self, params: list[Any], record: Any) -> Any:
        """The record minus the centre. Nothing is clipped."""
        flat = tf.nest.flatten(record)
        return tf.nest.pack_sequence_as(record, [g - c for g, c in zip(flat, params, strict=True)])

    def get_noised_result(self, sample_state: Any, global_state: Any) -> tuple[Any, Any, Any]:
        """Noisy sum with the centre added back, the state as it was, and the event."""
        noisy = []
        for total, center, std in zip(tf.nest.flatten(sample_state), *self._scales(), strict=True):
            normal = tf.cast(self._generator.normal(tf.shape(total), dtype=tf.float64), total.dtype)
            # Noise first: a float32 sum with the centres of a whole batch rounds by more than a record moves.
            noisy.append(total + self._noise_multiplier * std * normal + self._plan.expected_batch * center)
        result = tf.nest.pack_sequence_as(sample_state, noisy)
        return result, global_state, gaussian_event(self._noise_multiplier)
