"""The distribution of a numeric column, from its noisy counts."""
