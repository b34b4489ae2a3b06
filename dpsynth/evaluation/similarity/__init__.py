"""Columns, pairs of columns, rules and whole tables, synthetic beside real."""
