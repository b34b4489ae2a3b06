"""From records to a synthetic table: options, budget, the order of releases, the model, sampling."""
