"""Tables whose patients have several rows: their schema, files, drafts and histories."""
