"""The adversary A_DI against DP training: rounds of runs, and the classifiers that it is played with.

==============  ======================================================================================
`dp_sgd`        a small DP-SGD classifier that writes transcripts, many runs side by side
`classifier`    those classifiers, trained on one of two neighbouring tables
`playing`       rounds of runs, side by side and resumable, and what they say
==============  ======================================================================================

Our own critic is played in :mod:`dpsynth.audits.adversary_critic`. Everything here reads real records without
payment, so that its results are internal.
"""

from dpsynth.research.adversary.classifier import classifier_subject
from dpsynth.research.adversary.dp_sgd import DpSgd, Records
from dpsynth.research.adversary.playing import Played, play

__all__ = ["DpSgd", "Played", "Records", "classifier_subject", "play"]
