"""The WGAN whose noise follows proved bounds (Pedersen 2022), from the theorems to matched points.

==================  ==================================================================================
`theorems`          where records can lie, bounds of a record's gradient (Theorems 3.1.1 and 3.1.3),
                    and the noise of each component (Theorem 3.1.2)
`settings`          architecture and optimiser
`networks`          the generator and matched points, without TensorFlow
`algorithm`         the step of Algorithm 1
`precision`         no products in TF32 while bounds hold
`training`          its loop, on a `device`, and in `checkpoint` what an interrupted run leaves
`snapshots`         single columns of a generator on its way
`matching`          points that match the noisy mean gradients of random critics
`tf_privacy_query`  the same mechanism for loops written against TensorFlow Privacy
==================  ==================================================================================

A bound is a function of released weights and of the schema, so it costs nothing. The names below are loaded
when first used, because some load TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth.lazy import first_used

if TYPE_CHECKING:
    from dpsynth.wgan.tf_privacy_query import BoundedSumQuery
    from dpsynth.wgan.theorems import Domain, gradient_bounds

_HOMES = {
    "BoundedSumQuery": "dpsynth.wgan.tf_privacy_query",
    "Domain": "dpsynth.wgan.theorems",
    "gradient_bounds": "dpsynth.wgan.theorems",
}

__all__ = ["BoundedSumQuery", "Domain", "gradient_bounds"]

__getattr__ = first_used(__name__, _HOMES)
