"""Runs: a configuration file in, a folder with table, ledger, model and report out.

They are started on the command line. :class:`~dpsynth.runs.folder.RunFolder` reads what a run left.
"""
