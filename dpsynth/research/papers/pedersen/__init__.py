"""Pedersen 2022, the thesis: what only its argument needs.

`overflow` has what batches of fixed capacity would cost. This package's batches are never cut, so no run pays
it. The thesis' own theorems are in :mod:`dpsynth.mechanism.bounds` and :mod:`dpsynth.mechanism`.
"""
