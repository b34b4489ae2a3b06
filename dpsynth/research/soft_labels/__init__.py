"""Optimally soft labels: train on predictions of models without a record, not on its label alone.

=====================  ====================================================================================
`targets`              the labels themselves: equations (5.14) and (5.15), smoothing, one alpha a record
`procedure`            models on random halves, soft labels and the final model, which the attacker is given
`estimators`           the procedure as a scikit-learn classifier; the same for numbers in place of classes
`dp_sgd`               TensorFlow Privacy's network, trained in a process of its own
`attack`               the Bayes attack whose shadow models run the whole procedure
=====================  ====================================================================================

A defence without a formal guarantee. An attack measures its effect, and a better attack may find more.

References
----------
Pedersen (2022), thesis, sections 5.3 to 5.5.
"""

from dpsynth.research.soft_labels.attack import Attacked, LabelledFeatures, attack_procedure
from dpsynth.research.soft_labels.dp_sgd import DPSGDNetwork, reference_ledger
from dpsynth.research.soft_labels.estimators import SoftLabelClassifier, SoftTargetRegressor
from dpsynth.research.soft_labels.procedure import Procedure, WeightedCopies, leave_out
from dpsynth.research.soft_labels.targets import (
    Hard,
    Interpolated,
    LeaveOut,
    OptimallySoft,
    PerRecord,
    Smoothed,
)

__all__ = [
    "Attacked",
    "DPSGDNetwork",
    "Hard",
    "Interpolated",
    "LabelledFeatures",
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
    "reference_ledger",
]
