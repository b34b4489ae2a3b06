"""The leave-two-unlabeled (LTU) attacker: the most knowing attacker of membership, on any trainer.

The defender trains a model on records D and keeps records R aside. In each round the attacker sees one record
of each without its label. It is given the labels of all others, the trained model and the trainer. Which of
the two was trained on? (Pedersen 2022, sections 4.2 and 5.1.)

=============  ======================================================================================
`trainers`     the records of both sides; any scikit-learn classifier as a trainer; ten of them
`scores`       Theorems 4.2.1 and 4.2.2: scores of records, also learned ones; bounded loss
`retraining`   Theorem 4.2.4: train with each of the two and compare; the Bayes attack (5.8), (5.13)
`rounds`       one round, with every strategy
`results`      privacy (4.9), pairs against single records, low false positive rates; as a page too
`experiment`   many rounds on one trainer, kept in a folder
=============  ======================================================================================

A generator is attacked through any score of records, such as its critic's (section 6.2): train it on one
side, and give the score of both sides to :func:`dpsynth.research.ltu.results.pairs_result`.
"""

from dpsynth.research.ltu.experiment import attack_trainer
from dpsynth.research.ltu.results import LtuResult
from dpsynth.research.ltu.rounds import Design
from dpsynth.research.ltu.trainers import Sides, Trainer, classifier, classifiers, sides_of_table

__all__ = [
    "Design",
    "LtuResult",
    "Sides",
    "Trainer",
    "attack_trainer",
    "classifier",
    "classifiers",
    "sides_of_table",
]
