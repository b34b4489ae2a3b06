"""The page of a report: a summary, sections built from records, and the template."""
