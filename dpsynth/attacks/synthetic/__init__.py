"""Attacks on a synthetic table alone, one module for each risk that European guidance names.

The Article 29 Working Party's opinion 05/2014 on anonymisation techniques (WP 216) asks three questions of a
table: can a person be *singled out*, can records about the same person be *linked*, can something about a
person be *inferred*? *Membership*, whether a person's record was used at all, is the question that
differential privacy answers. Each attack is made three times: on the people of the training table, on people
who had no part in it (held out), and by an attacker without the table.
"""
