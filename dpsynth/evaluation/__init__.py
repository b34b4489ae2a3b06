"""Evaluation of a synthetic table: its quality, and how close it lies to real records.

One folder a question: ``similarity``, ``utility``, ``replication``, ``neighbours``, ``disclosure``, and
``trajectories`` for patients with several rows. The module ``evaluators`` lists and calls them. An evaluator
does not depend on the generator. It reads real records and posts no event. Each of its numbers therefore says
whether it is confidential (``internal``).
"""

from dpsynth.evaluation.evaluators import evaluate
from dpsynth.evaluation.neighbours import AdversarialAccuracy, adversarial_accuracy
from dpsynth.evaluation.results import Evaluation, Findings, Measure
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Tables

__all__ = [
    "AdversarialAccuracy",
    "Evaluation",
    "Findings",
    "Measure",
    "Settings",
    "Tables",
    "adversarial_accuracy",
    "evaluate",
]
