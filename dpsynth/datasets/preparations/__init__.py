"""From a published file to a table of one row a patient, for data sets whose file is not one already.

One module a data set, named as the data set, each with ``prepare``: the file's cells as text (None where a
value is absent) in, a frame with the columns that the card names out. What a module does is part of what the
card's unit says: a row of its outcome is a function of one patient's rows of the file and of nothing else,
so that a patient more or less in the file is at most one row more or less in the table. A file that says
nobody's row, as randhie's, has one row a line, and the card's unit says that this is no person.
"""

from __future__ import annotations

from importlib import import_module

import pandas as pd

#: data sets that need more than the card's renames, recodes and constants
NAMES = ("diabetes130", "physionet2012", "randhie")


def prepared(name: str, raw: pd.DataFrame) -> pd.DataFrame:
    """Prepare a data set's file.

    Parameters
    ----------
    name : str
        One of :data:`NAMES`.
    raw : pandas.DataFrame
        Cells as text, None where a value is absent.

    Raises
    ------
    DataError
        If a column that the preparation reads is absent, or what says whose row it is.
    """
    module = import_module(f"dpsynth.datasets.preparations.{name}")
    made: pd.DataFrame = module.prepare(raw)
    return made
