"""What a synthetic table is worth and how close it lies to real records: frames in, records out.

One folder a question: ``similarity``, ``utility``, ``replication``, ``neighbours``, ``disclosure``; they are
listed, and called one after the other, in ``evaluators``. An evaluator knows nothing of generators. It reads
real records and posts no event, so that each of its numbers says whether it is internal.
"""

from dpsynth.evaluation.evaluators import evaluate
from dpsynth.evaluation.neighbours.accuracy import AdversarialAccuracy, adversarial_accuracy
from dpsynth.evaluation.records import Detail, Evaluation, Measure
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Tables

__all__ = [
    "AdversarialAccuracy",
    "Detail",
    "Evaluation",
    "Measure",
    "Settings",
    "Tables",
    "adversarial_accuracy",
    "evaluate",
]
