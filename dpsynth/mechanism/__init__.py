"""The mechanism of a training run: what is sampled, what noise is added, and the event that describes both.

==================  ==================================================================================
`plan`              joins sampler, sensitivity, noise and event in one frozen object
`sampling`          Poisson batches
`allocation`        the noise of each component, from its bounds (Theorem 3.1.2)
`noise`             the random numbers that a guarantee rests on
`tf_privacy_query`  the same mechanism for loops written against TensorFlow Privacy
==================  ==================================================================================

Nothing here knows a model; :mod:`dpsynth.model.wgan` trains one with it.
"""
