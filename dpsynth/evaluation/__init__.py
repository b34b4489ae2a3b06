"""What a synthetic table is worth and how close it lies to real records: frames in, records out."""

from dpsynth.evaluation.evaluators import evaluate
from dpsynth.evaluation.neighbours.accuracy import AdversarialAccuracy, adversarial_accuracy
from dpsynth.evaluation.records import Evaluation, Measure

__all__ = ["AdversarialAccuracy", "Evaluation", "Measure", "adversarial_accuracy", "evaluate"]
