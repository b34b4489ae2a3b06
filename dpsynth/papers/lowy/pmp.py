"""Practical membership privacy, in one place (Lowy and others 2024, Definition 2, Propositions 9 and 12).

=========================================  ===========================================================
:mod:`dpsynth.papers.lowy.pmp_definition`   the definition, for any mechanism with finitely many outputs
:mod:`dpsynth.papers.lowy.pmp_exponential`  the exponential mechanism, exact or from random halves
:mod:`dpsynth.papers.lowy.pmp_gaussian`     the Gaussian mechanism on a mean: bound and calibration
:mod:`dpsynth.papers.lowy.pmp_mixture`      its exact delta, for small parent sets
:mod:`dpsynth.papers.lowy.pmp_worst_case`   what it is compared with: epsilon_X and DP
=========================================  ===========================================================
"""

from dpsynth.papers.lowy.pmp_definition import PracticalMembershipPrivacy, attack_accuracy, mechanism_pmp
from dpsynth.papers.lowy.pmp_exponential import MeanLoss, exponential_pmp, exponential_pmp_epsilon
from dpsynth.papers.lowy.pmp_gaussian import (
    gaussian_pmp_delta,
    gaussian_pmp_epsilon,
    gaussian_pmp_sigma,
    values_of,
)
from dpsynth.papers.lowy.pmp_mixture import gaussian_pmp_exact_delta
from dpsynth.papers.lowy.pmp_worst_case import (
    gaussian_dp_delta,
    gaussian_dp_epsilon,
    gaussian_dp_sigma,
    gaussian_parent_delta,
    gaussian_parent_epsilon,
)

__all__ = [
    "MeanLoss",
    "PracticalMembershipPrivacy",
    "attack_accuracy",
    "exponential_pmp",
    "exponential_pmp_epsilon",
    "gaussian_dp_delta",
    "gaussian_dp_epsilon",
    "gaussian_dp_sigma",
    "gaussian_parent_delta",
    "gaussian_parent_epsilon",
    "gaussian_pmp_delta",
    "gaussian_pmp_epsilon",
    "gaussian_pmp_exact_delta",
    "gaussian_pmp_sigma",
    "mechanism_pmp",
    "values_of",
]
