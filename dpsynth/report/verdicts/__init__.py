"""Verdicts: what written rules make of an evaluation and of a guarantee, in one sentence each."""
