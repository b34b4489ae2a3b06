"""Public health tables for demos, tests and benchmarks, each with a card: origin, licence, checksum, schema.

>>> from dpsynth import datasets
>>> "breast_cancer" in datasets.names()
True
"""

from __future__ import annotations

from dpsynth.datasets.download import fetch
from dpsynth.datasets.registry import card, load, names
from dpsynth.datasets.table import Card, Table, independent_split, open_table, train_test

__all__ = ["Card", "Table", "card", "fetch", "independent_split", "load", "names", "open_table", "train_test"]
