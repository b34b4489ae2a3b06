"""The smallest noise that keeps a list of events within a target."""
