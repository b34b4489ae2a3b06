# The scripts that make stored values run in environments of their own.
collect_ignore_glob = ["*/make_*.py", "make_*.py"]
