"""Privacy losses: Gaussian in closed form, others on a grid (PLD), and what a promise alone implies."""
