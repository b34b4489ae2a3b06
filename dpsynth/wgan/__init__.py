"""The mechanism of a training run: what is sampled, what noise is added, and the event that describes both.

==================  ==================================================================================
`plan`              joins sampler, sensitivity, noise and event in one frozen object
`sampling`          Poisson batches
`domain`            where records can lie
`gradient_boxes`    componentwise bounds of the critic's gradient (Theorem 3.1.1)
`bounds`            norm bounds (Björck), the penalty's share (Theorem 3.1.3), and all bounds of a layer
`allocation`        the noise of each component, from its bounds (Theorem 3.1.2)
`noise`             the random numbers that a guarantee rests on
`tf_privacy_query`  the same mechanism for loops written against TensorFlow Privacy
==================  ==================================================================================

The theorems are Pedersen's (2022). A bound is a function of released weights and of the schema, so it costs
nothing. Nothing here depends on a model. :mod:`dpsynth.model.wgan` trains one with it. The names below are
loaded when first used, because some load TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth.lazy import first_used

if TYPE_CHECKING:
    from dpsynth.privacy.noise import poisson_batches, secure_generator
    from dpsynth.privacy.release import Plan
    from dpsynth.wgan.tf_privacy_query import BoundedSumQuery
    from dpsynth.wgan.theorems import Domain, gradient_bounds

_HOMES = {
    "BoundedSumQuery": "dpsynth.wgan.tf_privacy_query",
    "Domain": "dpsynth.wgan.theorems",
    "Plan": "dpsynth.privacy.release",
    "gradient_bounds": "dpsynth.wgan.theorems",
    "poisson_batches": "dpsynth.privacy.noise",
    "secure_generator": "dpsynth.privacy.noise",
}

__all__ = ["BoundedSumQuery", "Domain", "Plan", "gradient_bounds", "poisson_batches", "secure_generator"]

__getattr__ = first_used(__name__, _HOMES)
