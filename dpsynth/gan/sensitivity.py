"""From a critic's weights to the centre and the noise of its gradient sum, for one run's settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from dpsynth.bounds.combine import gradient_bounds
from dpsynth.bounds.domain import Domain
from dpsynth.bounds.lipschitz import spectral_norm_bound
from dpsynth.bounds.penalty import penalty_radii
from dpsynth.gan.settings import TrainingSettings
from dpsynth.gan.step import NoiseScales
from dpsynth.gan.weights import Weights, flatten
from dpsynth.mechanism.allocation import allocate
from dpsynth.mechanism.plan import Plan
from dpsynth.table.layout import Layout


def noise_scales(layout: Layout, settings: TrainingSettings, plan: Plan) -> NoiseScales:
    """The function that bounds one record's gradient and shapes the noise, for noise multiplier 1.

    Parameters
    ----------
    layout : Layout
    settings : TrainingSettings
    plan : Plan
        Gives the noise shape and whether the sum is centred.

    Returns
    -------
    callable
        Released critic weights -> (centres, stds), flat lists; can stand inside an XLA program.

    Raises
    ------
    PrivacyError
        When called, if the noise shape needs componentwise bounds where the penalty has none.

    Examples
    --------
    >>> from dpsynth.gan.weights import glorot
    >>> plan = Plan(sampling_prob=0.1, expected_batch=9, steps=2, noise_multiplier=1, noise_shape="spherical")
    >>> scales = noise_scales(Layout(2), TrainingSettings(clip_norm=0.5), plan)
    >>> centers, stds = scales(glorot(np.random.default_rng(0), (2, 4, 1), output_bias=False))
    >>> [round(float(s), 4) for s in stds]
    [0.5, 0.5, 0.5]
    """
    if settings.clip_norm is not None:
        # Norms and quotients round in float32; a clipped gradient may pass the bound by a few roundings.
        clip = np.float32(settings.clip_norm * (1.0 + 1e-5))

        def clipped(weights: Weights) -> tuple[list[Any], list[Any]]:
            arrays = flatten(weights)
            return [tf.zeros(a.shape) for a in arrays], [tf.constant(clip) for _ in arrays]

        return clipped

    # The critic always sees centred points; `plan.centred` is about the released sum.
    domain = Domain.from_layout(layout, centred=True)
    spectral = settings.critic_constraint == "spectral"

    def proved(weights: Weights) -> tuple[list[Any], list[Any]]:
        norms = [tf.constant(1.0) if spectral else spectral_norm_bound(w) for w, _ in weights]
        bounds = gradient_bounds(
            weights, domain, norms=norms, activation=settings.activation, slope=settings.slope
        )
        extra = None
        if settings.penalty == "data":
            extra = [settings.penalty_weight * c for c in penalty_radii(weights, norms)]
        return allocate(bounds, plan.noise_shape, centred=plan.centred, extra_radii=extra)

    return proved
