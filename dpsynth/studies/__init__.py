"""Regressions that studies fit: what they are, declared beforehand, and what is known of their effects."""
