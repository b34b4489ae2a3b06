"""How far a float32 result may lie from the exact one, so that bounds can be widened by that much.

For a dot product of n terms, in any order and with or without fused multiply-add,
``|fl(x.w) - x.w| <= gamma_n sum |x_i||w_i|`` with ``gamma_n = n u / (1 - n u)``, ``u = 2^-24`` (Higham 2002,
*Accuracy and Stability of Numerical Algorithms*, section 3.1). The critic that sees the records and the
bound itself both round, so every bound here is widened by ``4 (n + 8) u`` times that sum: n for the critic,
up to 2n for the bound's own two dot products, the rest for sums over one-hot groups, the bias, halving,
and second-order terms (n < 2^16).

Two things lie outside: products in TF32 or bfloat16 (switch them off on a GPU:
``tf.config.experimental.enable_tensor_float_32_execution(False)``), and the rounding of the *sum* over a
batch, which is not linear in its records; floating-point attacks (Mironov 2012) are not covered.
"""

from __future__ import annotations

#: Unit roundoff of float32.
UNIT = 2.0**-24
#: Added to magnitudes so that products which underflow (and are flushed to zero) stay covered.
TINY = 2.0**-50


def gamma(terms: int) -> float:
    """Relative widening of a bound that goes through dot products of ``terms`` terms."""
    return 4.0 * (terms + 8) * UNIT
