"""The adversary A_DI against DP-SGD classifiers: rounds of runs, side by side and resumable, and what they
say.

Our own critic is played in :mod:`dpsynth.audits.adversary_critic`. Everything here reads real records without
payment, so that its results are internal.
"""
