"""Optimally soft labels: train on what models without a record say of it, not on its label alone.

=====================  ====================================================================================
`targets`              the labels themselves: equations (5.14) and (5.15), smoothing, one alpha a record
`classifiers`          what a classifier is here, and scikit-learn's as such
`dp_sgd`               TensorFlow Privacy's network, trained in a process of its own (`keras_worker`)
`label_models`         models on random halves, and what they say of the records that they have not seen
`procedure`            all of it as one training procedure, which the attacker is given
`estimator`            the procedure as a scikit-learn classifier; alpha by validation
`attacked`             the Bayes attack whose shadow models run the whole procedure
`regression`           the same for numbers in place of classes
=====================  ====================================================================================

A defence without a formal guarantee: what it does is measured by an attack, and a better one may find more.

References
----------
Pedersen (2022), thesis, sections 5.3 to 5.5.
"""

from dpsynth.research.soft_labels.attack import Attacked, attack_procedure
from dpsynth.research.soft_labels.dp_sgd import DPSGDNetwork
from dpsynth.research.soft_labels.estimators import SoftLabelClassifier, SoftTargetRegressor
from dpsynth.research.soft_labels.procedure import LeaveOut, Procedure, WeightedCopies, leave_out
from dpsynth.research.soft_labels.targets import Hard, Interpolated, OptimallySoft, PerRecord, Smoothed

__all__ = [
    "Attacked",
    "DPSGDNetwork",
    "Hard",
    "Interpolated",
    "LeaveOut",
    "OptimallySoft",
    "PerRecord",
    "Procedure",
    "Smoothed",
    "SoftLabelClassifier",
    "SoftTargetRegressor",
    "WeightedCopies",
    "attack_procedure",
    "leave_out",
]
