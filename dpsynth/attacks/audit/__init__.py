"""Empirical lower bounds of what a mechanism gives away, beside what is proved of it.

An audit runs a mechanism many times on two neighbouring tables and lets a test say which it was
(:mod:`~dpsynth.attacks.audit.rates`, :mod:`~dpsynth.attacks.audit.trials`), or runs it once on a table with
many canaries (:mod:`~dpsynth.attacks.audit.one_run`). Nothing here knows how a mechanism is made.
"""
