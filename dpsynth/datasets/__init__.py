"""Public health tables for demos, tests and benchmarks, each with a card: origin, licence, checksum, schema.

>>> from dpsynth import datasets
>>> "breast_cancer" in datasets.names()
True
"""

from __future__ import annotations

from dpsynth.datasets.data_cards import Card, card, names
from dpsynth.datasets.files import fetch, load
from dpsynth.datasets.table import Table, independent_split, open_table, train_test

__all__ = ["Card", "Table", "card", "fetch", "independent_split", "load", "names", "open_table", "train_test"]
