"""Play the adversary A_DI against DP-SGD classifiers, in resumable rounds of runs side by side.

Our own critic is played in :mod:`dpsynth.audits.adversary`. Everything here reads real records without
using privacy budget, so its results are confidential.
"""
