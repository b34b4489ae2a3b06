"""What is sampled, what noise is added, and the event that describes both."""
