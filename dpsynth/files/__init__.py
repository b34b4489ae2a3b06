"""Files and folders that are wholly there or not at all, one writer at a time; JSON, arrays and YAML."""
