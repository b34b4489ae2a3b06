"""Lowy et al. 2024, "Why does DP with large epsilon defend against practical membership inference attacks?"

Practical membership privacy (PMP): what an attacker can tell who knows only the parent set.

==============  ======================================================================================
`definition`    Definition 2 for any mechanism with finitely many outputs; Lemmas 3, 6 and 14
`halves`        the halves of a parent set, enumerated or drawn
`exponential`   the exponential mechanism: Definition 7, Proposition 9
`gaussian`      the Gaussian mechanism on a mean, bound and calibration: Proposition 12; beside it
                epsilon_X and DP: Lemma 10
`mixture`       its exact delta, for small parent sets: Lemma 11
`figures`       figures 1 to 6
==============  ======================================================================================
"""
