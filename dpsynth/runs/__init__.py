"""A run, from a configuration file to a folder with the table, the ledger, the model and the report.

Its way in is the command line; :class:`~dpsynth.runs.run_folder.RunFolder` reads what a run left.
"""
