"""Parts of a fit: each reads the records for one kind of noisy statistic, under one budget."""
