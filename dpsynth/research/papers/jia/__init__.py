"""Jia, Tan, Liu, Li, Liu, Lv and Dong 2023, "Total variation distance privacy".

The paper's full title goes on: "Accurately measuring inference attacks and improving utility".

===========  =========================================================================================
`optimal`    how well releases of one total variation can compose: Theorem 18
`figures`    figures 1 to 3 and 5 to 10
===========  =========================================================================================

What runs need stands in :mod:`dpsynth.accounting`: `tv_bounds` has mechanisms, composition and bounds from KL
(Theorems 6 to 13, Definition 5, section 5.1), `membership_bounds` what an attack can reach (Theorems 3, 4 and
14 to 17, Proposition 1, section 4.2).
"""
