"""A Bayesian network of noisy cross-tabulations, from which samples are drawn."""
