"""What the papers' formulas do not answer; ranges of single numbers are those of `dpsynth.checks`."""

import math

import numpy as np
import pytest

from dpsynth.errors import InputError
from dpsynth.research.papers import ghazi_issa, jia, lowy, lowy_gaussian, mosaicrown

PARENT, OUTPUTS = np.array([0.0, 0.1, 0.3, 0.35, 0.6, 1.0]), np.linspace(0.0, 1.0, 5)


def exponential(
    parent=PARENT, loss=lambda records, outputs: np.abs(records.mean() - outputs), sensitivity=1 / 3
):
    return lowy.exponential_pmp(parent, loss, OUTPUTS, 5.0, sensitivity=sensitivity)


def test_what_has_no_answer_is_refused():
    """A guarantee that does not hold, of arguments that contradict each other; memory or time without end."""
    for call, words in (
        (lambda: ghazi_issa.compose(1.0, 0.2, 0.1, 2), "tv must be at least delta"),
        (lambda: ghazi_issa.compose(1.0, 0.0, 0.5, 2), "tv must be at most 0.4621171573"),
        (lambda: ghazi_issa.compose(math.nan, 0.0, 0.1, 2), "epsilon"),
        (lambda: ghazi_issa.gaussian_limit([0.1, 0.2], [0.01, 0.01, 0.01]), "one shape"),
        (lambda: jia.optimal_composition(0.1, 100_001), "count"),
        (lambda: jia.naive_composition([0.1, 1.1]), "tvs"),
        (lambda: jia.dp_fnr(np.array([0.5, math.nan]), 1.0, 0.0), "fpr"),
        (lambda: mosaicrown.rdp_guarantee(1.0, 0.1, 2.5), "steps"),
        (lambda: exponential(sensitivity=0.01), "this loss changes by more"),
        (lambda: exponential(parent=PARENT[:5]), "parent must have an even number of records"),
        (lambda: exponential(parent=np.linspace(0, 1, 26)), "pass halves="),
        (lambda: exponential(loss=lambda records, outputs: np.full(5, math.nan)), "loss must return finite"),
        (lambda: lowy.mechanism_pmp(np.arange(4), lambda records: [0.5, 0.4]), "probabilities must return"),
        (lambda: lowy_gaussian.gaussian_pmp_sigma(np.ones(4), 1.0, 0.1), "no smallest sigma"),
        (lambda: lowy_gaussian.gaussian_pmp_exact_delta(np.zeros(18), 0.4, 1.0), "18 records, more than 16"),
        (lambda: lowy_gaussian.gaussian_pmp_exact_delta([0.0, 1e300], 1e-300, 1.0), "is too small"),
    ):
        with pytest.raises(InputError, match=words):
            call()
