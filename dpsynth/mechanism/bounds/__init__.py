"""How much one record can move the critic's gradient, proved from its weights (Pedersen 2022, section 3.1).

================  ====================================================================================
`domain`          where records can lie
`gradient_boxes`  componentwise bounds (Theorem 3.1.1); `activations` has what they need of each layer
`lipschitz`       norm bounds, for a critic whose matrices are projected to spectral norm 1 (Björck)
`combine`         both together, layer by layer
`penalty`         the gradient penalty's share (Theorem 3.1.3)
`rounding`        how much wider a bound must be for gradients in float32
================  ====================================================================================

A bound is a function of released weights and of the schema, so it costs nothing. What is made of it, centre
and noise, is in :mod:`dpsynth.mechanism`.
"""
