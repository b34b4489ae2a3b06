"""The papers behind the accounting: theory, figures and golden values of each source.

===================  ======================================================================================
`jia`                Jia et al. 2023, "Total variation distance privacy": Theorem 18, figures
`ghazi_issa`         Ghazi and Issa 2024, "Total variation meets differential privacy": composition, training
`ghazi_issa_local`   its section VII: channels of local privacy and what utility they leave
`mosaicrown`         MOSAICrOWN deliverable D5.3, "Identifiability bounds": belief, advantage, figures
`lowy`               Lowy et al. 2024, "Why does DP with large epsilon defend ...?": practical membership
                     privacy of any mechanism and of the exponential mechanism
`lowy_gaussian`      the same of the Gaussian mechanism on a mean
`trade_off`          trade-off curves of several (epsilon, delta) pairs, of Gaussian and Laplace noise
===================  ======================================================================================

``figures`` draws the figures of all of them (those not above are in ``ghazi_issa_figures`` and
``lowy_figures``), ``golden`` computes all golden values again. No run needs anything of this: ``dpsynth
account`` does, to draw and to verify.
"""

__all__ = [
    "figures",
    "ghazi_issa",
    "ghazi_issa_local",
    "golden",
    "jia",
    "lowy",
    "lowy_gaussian",
    "mosaicrown",
    "trade_off",
]
