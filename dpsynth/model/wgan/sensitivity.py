"""From a critic's weights to the centre and the noise of its gradient sum, for one run's settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from dpsynth.mechanism.allocation import allocate
from dpsynth.mechanism.bounds import (
    gradient_bounds,
    norm_bound_nearby,
    penalty_radii,
    spectral_norm_bound,
)
from dpsynth.mechanism.domain import Domain
from dpsynth.mechanism.plan import Plan
from dpsynth.model.wgan.networks import Weights, flatten
from dpsynth.model.wgan.settings import TrainingSettings
from dpsynth.table.layout import Layout

# Weights -> (centres, stds for z = 1), flat lists shaped like the critic's arrays.
NoiseScales = Callable[[Weights], tuple[list[Any], list[Any]]]


def noise_scales(layout: Layout, settings: TrainingSettings, plan: Plan) -> NoiseScales:
    """The function that bounds one record's gradient and shapes the noise, for noise multiplier 1.

    The result maps released critic weights to (centres, stds), flat lists, and can stand inside an XLA
    program. The plan gives the noise shape.

    Examples
    --------
    >>> from dpsynth.model.wgan.networks import glorot
    >>> plan = Plan(sampling_prob=0.1, expected_batch=9, steps=2, noise_multiplier=1, noise_shape="spherical")
    >>> scales = noise_scales(Layout(2), TrainingSettings(clip_norm=0.5), plan)
    >>> centers, stds = scales(glorot(np.random.default_rng(0), (2, 4, 1), output_bias=False))
    >>> [round(float(s), 4) for s in stds]
    [0.5, 0.5, 0.5]
    """
    if settings.clip_norm is not None:
        return Clipped(settings.clip_norm)
    return Proved(layout, settings, plan.noise_shape)


@dataclass(frozen=True)
class Clipped:
    """Scales of per-record clipping: one std for all entries, no centre."""

    clip_norm: float

    def __call__(self, weights: Weights) -> tuple[list[Any], list[Any]]:
        """Centres and stds, flat lists."""
        arrays = flatten(weights)
        # Norms and quotients round in float32; a clipped gradient may pass the bound by a few roundings.
        clip = np.float32(self.clip_norm * (1.0 + 1e-5))
        return [tf.zeros(a.shape) for a in arrays], [tf.constant(clip) for _ in arrays]


@dataclass(frozen=True)
class Proved:
    """Scales from the bounds on the gradient at the given weights.

    ``start``: matrices near those that will be asked for, and upper bounds of their spectral norms.
    """

    layout: Layout
    settings: TrainingSettings
    noise_shape: str
    start: Sequence[tuple[Any, Any]] | None = None

    def __call__(self, weights: Weights) -> tuple[list[Any], list[Any]]:
        """Centres and stds, flat lists."""
        settings = self.settings
        domain = Domain.from_layout(self.layout)
        norms = self.norms(weights)
        bounds = gradient_bounds(
            weights, domain, norms=norms, activation=settings.activation, slope=settings.slope
        )
        extra = None
        if settings.penalty == "data":
            extra = [settings.penalty_weight * c for c in penalty_radii(weights, norms)]
        return allocate(bounds, self.noise_shape, extra_radii=extra)

    def norms(self, weights: Weights) -> list[Any]:
        """Upper bounds of the spectral norms of the critic's matrices."""
        if self.settings.critic_constraint == "spectral":
            return [tf.constant(1.0) for _ in weights]
        if self.start is None:
            return [spectral_norm_bound(w) for w, _ in weights]
        return [norm_bound_nearby(w, v, b) for (w, _), (v, b) in zip(weights, self.start, strict=True)]


def starting_from(scales: NoiseScales | None, weights: Weights) -> NoiseScales | None:
    """The same scales, with the norms of these matrices found once for all critics near them."""
    if not isinstance(scales, Proved):
        return scales
    norms = replace(scales, start=None).norms(weights)
    return replace(scales, start=[(w, norm) for (w, _), norm in zip(weights, norms, strict=True)])
