"""The leave-two-unlabeled (LTU) attacker: the most knowing attacker of membership, on any trainer.

The defender trains a model on records D and keeps records R aside. In each round the attacker sees one record
of each without its label. It is given the labels of all others, the trained model and the trainer. Which of
the two was trained on? (Pedersen 2022, sections 4.2 and 5.1.)

=============  ======================================================================================
`trainers`     the records of both sides; any scikit-learn classifier as a trainer; ten of them
`scores`       Theorems 4.2.1 and 4.2.2: scores of records, also learned ones; bounded loss
`retraining`   Theorem 4.2.4: train with each of the two and compare; the Bayes attack (5.8), (5.13)
`rounds`       one round, with every strategy
`results`      privacy (4.9), pairs against single records, low false positive rates; as text too
`experiment`   many rounds on one trainer, kept in a folder
`generators`   generators, attacked through any score such as a critic's
=============  ======================================================================================
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
