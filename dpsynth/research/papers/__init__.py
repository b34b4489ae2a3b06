"""The papers behind the accounting: theory, figures and golden values of one source side by side.

=============  ============================================================================================
`jia`          Jia et al. 2023, "Total variation distance privacy"
`ghazi_issa`   Ghazi and Issa 2024, "Total variation meets differential privacy"
`mosaicrown`   MOSAICrOWN deliverable D5.3, "Identifiability bounds"
`lowy`         Lowy et al. 2024, "Why does differential privacy with large epsilon defend ...?"
`overflow`     Pedersen 2022: what batches of fixed capacity would cost
=============  ============================================================================================

``figures`` draws the figures of all of them, ``golden`` computes all golden values again, ``curves`` has the
trade-off curves that several of them show. No run needs anything of this: ``dpsynth account`` does, to say
what the papers' closed forms give beside the exact numbers, to draw and to verify.
"""
