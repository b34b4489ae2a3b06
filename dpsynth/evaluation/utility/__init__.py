"""Models that learn from synthetic records and are tested on real ones."""
