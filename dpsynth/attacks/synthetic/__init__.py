"""Attacks on a synthetic table alone, one module for each risk that European guidance names.

The source is the Article 29 Working Party's opinion 05/2014 on anonymisation techniques (WP 216). It asks
three questions. Can a person be *singled out*? Can records about the same person be *linked*? Can something
about a person be *inferred*? Differential privacy answers a fourth, *membership*: was a person's record used?
Each attack is made on the people of the training table, and on people who had no part in it (held out). It is
also made by an attacker without the table.
"""
