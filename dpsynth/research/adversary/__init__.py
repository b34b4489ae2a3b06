"""The adversary of DP training against classifiers; results are internal."""
