"""Critic, generator, one training step, and the loop that repeats it."""
