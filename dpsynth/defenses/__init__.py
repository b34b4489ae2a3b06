"""Defences that promise nothing formally, with the attacks that try them."""
