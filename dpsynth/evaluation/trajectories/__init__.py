"""Rows of patients over time, synthetic beside real: counts, gaps, lags, transitions, mixed models."""
