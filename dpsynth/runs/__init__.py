"""A run, from a configuration file to a folder with the table, the ledger, the model and the report."""
