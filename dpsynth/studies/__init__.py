"""Pre-specified regressions: models, declarations and estimates of their effects."""
