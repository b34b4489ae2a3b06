"""Samples of the model, adjusted to the noisy estimates of a pre-specified regression."""
