"""Jia et al. 2023, "Total variation distance privacy"."""
