"""The base model, reweighted to match further noisy statistics."""
