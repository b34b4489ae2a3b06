"""Nearest-neighbour adversarial accuracy: is a record nearer to its own table or to the other?"""
