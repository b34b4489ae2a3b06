"""Ghazi and Issa 2024, "Total variation meets differential privacy"."""
