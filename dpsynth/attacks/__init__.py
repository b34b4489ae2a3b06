"""Attacks on models, on training runs and on synthetic tables, each beside the bound that it tries to reach.

Attacks read real records without payment: what they find is internal. None of them knows how a table or a
model was made: a generator is a function ``fit_sample(frame, rng) -> frame``, a classifier a function of data
and seed, a training run a :class:`~dpsynth.releases.critic.Transcript`.
"""
