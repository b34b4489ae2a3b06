"""Verdicts of written rules on an evaluation and a guarantee, in a few sentences each."""
