"""The statistics of the default generator, and the Bayesian network that is inferred from them."""
