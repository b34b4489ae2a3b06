"""Pedersen 2022, the thesis: what its experiments need and a run does not."""
