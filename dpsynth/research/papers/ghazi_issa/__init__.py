"""Ghazi and Issa 2024, "Total variation meets differential privacy".

=============  =======================================================================================
`regions`      several (epsilon, delta) pairs at once: Theorem 1, Corollary 1
`approx_tv`    composition, subsampling and the Gaussian limit: Theorems 2 and 3, Proposition 1
`training`     noisy gradient descent (section VI-D), and six analyses of one training run, for figure 5
`channels`     channels of local privacy: Definitions 6 and 7, Theorem 7
`local`        what utility they leave: Proposition 2, Theorems 4 to 6
`figures`      figures 1 to 7
=============  =======================================================================================

Remark 1, the largest total variation, is :func:`dpsynth.accounting.conversions.largest_tv`. The
staircase mechanism (section VI-C, appendix K) is :mod:`dpsynth.accounting.tv_bounds`.
"""
