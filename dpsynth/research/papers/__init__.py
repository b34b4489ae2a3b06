"""The papers behind the accounting: theory and golden values of each source.

===================  ======================================================================================
`jia`                Jia et al. 2023, "Total variation distance privacy": Theorem 18
`ghazi_issa`         Ghazi and Issa 2024, "Total variation meets differential privacy": composition, training
`ghazi_issa_local`   its section VII: channels of local privacy and what utility they leave
`mosaicrown`         MOSAICrOWN deliverable D5.3, "Identifiability bounds": belief, advantage
`lowy`               Lowy et al. 2024, "Why does DP with large epsilon defend ...?": practical membership
                     privacy of any mechanism and of the exponential mechanism
`lowy_gaussian`      the same of the Gaussian mechanism on a mean
`trade_off`          the trade-off curve that several (epsilon, delta) pairs allow
===================  ======================================================================================

The notebook ``figures.ipynb`` of this folder draws their figures and computes all golden values again. No run
needs anything of this.
"""

__all__ = [
    "ghazi_issa",
    "ghazi_issa_local",
    "jia",
    "lowy",
    "lowy_gaussian",
    "mosaicrown",
    "trade_off",
]
