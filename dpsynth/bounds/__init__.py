"""How much one record can move the critic's gradient, proved from its weights (Pedersen 2022, 3.1)."""
