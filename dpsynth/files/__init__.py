"""Files and folders that are complete or absent, with one writer at a time."""
