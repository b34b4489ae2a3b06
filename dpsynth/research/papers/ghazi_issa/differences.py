"""How many more right than wrong answers: the law behind the composition of randomised response with erasure.

Used by :mod:`dpsynth.research.papers.ghazi_issa.approx_tv` for Ghazi and Issa 2024, "Total variation meets
differential privacy", Theorem 2.
"""

from __future__ import annotations

import math

import numpy as np


def difference_law(respond: float, epsilon: float, k: int) -> list[float]:
    """Probabilities of d = 0..k more right than wrong answers among k, each to a relative 1e-12.

    ``respond`` is the probability that an answer is given and not erased: 0, or from 1e-290 to 1.
    ``epsilon``, at least 0 and finite, is the log odds of a right answer among those given. Time and memory
    grow as k.

    Notes
    -----
    With p, q and a the probabilities of right, wrong and erased, the coefficients c_d of (p x + a + q / x)^k
    obey ``a d c_d = p (k - d + 1) c_{d-1} - q (k + d + 1) c_{d+1}`` (differentiate the power, compare
    coefficients). Solved for c_{d-1} and run down from c_k all terms are positive, so nothing cancels and the
    tail keeps its relative accuracy, where a fast Fourier transform would leave noise of 1e-16.

    Examples
    --------
    >>> [round(probability, 4) for probability in difference_law(0.5, math.log(3), 2)]
    [0.3438, 0.375, 0.1406]
    """
    if respond == 0.0:
        return [1.0] + [0.0] * k
    right = 1 / (1 + math.exp(-epsilon))
    odds = math.exp(-epsilon)  # of wrong against right answers
    erased = 1 - respond
    mantissa, exponent = np.zeros(k + 1), np.zeros(k + 1, dtype=np.int32)
    mantissa[k] = value = 0.5
    shift = 0
    if erased == 0.0:  # only every other difference is possible
        for d in range(k, 1, -2):
            value, change = math.frexp(value * (odds * (k + d) / (k - d + 2)))
            shift += change
            mantissa[d - 2], exponent[d - 2] = value, shift
    else:
        p = respond * right
        product = p * p * odds  # p q
        # ratio = p (k - d + 1) c_{d-1} / c_d
        ratio = math.inf
        for d in range(k, 0, -1):
            ratio = erased * d + product * (k + d + 1) * (k - d) / ratio
            value, change = math.frexp(value * (ratio / p) / (k - d + 1))
            shift += change
            mantissa[d - 1], exponent[d - 1] = value, shift
    # An impossible difference has mantissa 0; its exponent must not set the scale.
    scaled = np.ldexp(mantissa, np.where(mantissa > 0, exponent - exponent[mantissa > 0].max(), 0))
    # c_{-d} = e^(-d epsilon) c_d: the law of all differences sums to 1
    mirrored = scaled[1:] * np.exp(-epsilon * np.arange(1, k + 1))
    return (scaled / (scaled[0] + math.fsum(scaled[1:]) + math.fsum(mirrored))).tolist()
