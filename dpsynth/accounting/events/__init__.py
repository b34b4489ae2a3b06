"""What a mechanism is: events, their records, and the normal form in which they compose."""
