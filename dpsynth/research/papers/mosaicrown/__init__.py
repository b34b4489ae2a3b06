"""MOSAICrOWN deliverable D5.3, "Identifiability bounds" (Bernau et al.).

==================  ==================================================================================
`identifiability`   the adversary A_DI and the advantage rho_a: Theorem 3; the noise of formula (2.1)
`rdp`               both bounds from the Renyi divergence: sections 2.1 and 4.3
`figures`           figures 3.2, 4.1 and 4.2
==================  ==================================================================================

Theorem 2, the belief rho_beta and its inverse, is in :mod:`dpsynth.accounting.conversions`.
"""
