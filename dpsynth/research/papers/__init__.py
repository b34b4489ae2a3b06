"""The papers behind the accounting: theory, figures and golden values of each source.

===================  ======================================================================================
`jia`                Jia et al. 2023, "Total variation distance privacy": Theorem 18, figures
`ghazi_issa`         Ghazi and Issa 2024, "Total variation meets differential privacy": composition
`mosaicrown`         MOSAICrOWN deliverable D5.3, "Identifiability bounds": belief, advantage, figure 4.1
`lowy`               Lowy et al. 2024, "Why does DP with large epsilon defend ...?": practical membership
                     privacy of any mechanism and of the exponential mechanism
`lowy_gaussian`      the same of the Gaussian mechanism on a mean
`trade_off`          trade-off curves of several (epsilon, delta) pairs, of Gaussian and Laplace noise
===================  ======================================================================================

``figures`` draws those figures of `jia` and `mosaicrown` whose parameters our texts give. ``golden`` computes
all golden values again. No run needs anything of this: ``dpsynth account`` does, to draw and to verify.
"""

__all__ = [
    "figures",
    "ghazi_issa",
    "golden",
    "jia",
    "lowy",
    "lowy_gaussian",
    "mosaicrown",
    "trade_off",
]
