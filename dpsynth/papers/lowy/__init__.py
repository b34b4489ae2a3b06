"""Lowy et al. 2024: practical membership privacy (PMP)."""
