"""Disclosure: information that a synthetic table gives about its training records."""
