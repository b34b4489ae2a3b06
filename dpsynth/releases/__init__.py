"""Every reading of private records, one module a release, with the post-processing that belongs to it."""
