"""The page of a report: its sections in order, each built from records, and the template that shows them."""
