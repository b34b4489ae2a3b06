"""The ledger: what was read from one private table, in stages, and what all of it guarantees."""
