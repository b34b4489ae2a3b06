"""Find columns that give the outcome away: known only after it, or another name for it.

This reads private records without noise. The result is confidential, for their owner only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from dpsynth.table.dates import series_moments

#: AUC of one column from which it is named
GIVES_AWAY = 0.95
_MOST_CLASSES = 10
#: records that an outcome's value must have, and not have
_FEWEST = 10
_BINS = 64
# Of so many cells with one outcome by chance.
_CHANCE = math.log(1e-6)


@dataclass(frozen=True)
class Leak:
    """A column that predicts the outcome nearly alone. Confidential."""

    column: str
    auc: float
    only: bool

    def __str__(self) -> str:
        only = "only with one outcome" if self.only else ""
        return ", ".join(filter(None, (f"AUC {self.auc:.2f}" if self.auc >= GIVES_AWAY else "", only)))


def find_leaks(frame: pd.DataFrame, outcome: str) -> tuple[Leak, ...]:
    """Find the columns that give the outcome away.

    ``frame`` holds numbers and words, None or NaN where missing. ``outcome`` is a column of few values. Other
    columns, and outcomes with fewer than 10 records, are skipped.

    Examples
    --------
    >>> died = [0, 1] * 50
    >>> table = pd.DataFrame({"age": range(100), "ward": ["icu", "morgue"] * 50, "died": died})
    >>> [(leak.column, str(leak)) for leak in find_leaks(table, "died")]
    [('ward', 'AUC 1.00')]
    """
    known = frame[frame[outcome].notna()]
    classes, distinct = pd.factorize(known[outcome])
    sizes = np.bincount(classes, minlength=len(distinct))
    if not 2 <= len(distinct) <= _MOST_CLASSES:
        return ()
    told = [c for c, size in enumerate(sizes) if min(size, len(known) - size) >= _FEWEST]
    told = told[:1] if len(distinct) == 2 else told
    found = []
    for name in known.columns:
        if name == outcome:
            continue
        groups, absent = _groups(known[name])
        auc = max((_auc(groups, classes == c) for c in told), default=0.5)
        present = classes[~absent]
        only = bool(absent.any() and len(present) and (present == present[0]).all())
        only = only and len(present) * math.log(sizes[present[0]] / len(known)) < _CHANCE
        if auc >= GIVES_AWAY or only:
            found.append(Leak(str(name), auc, only))
    return tuple(found)


def _groups(values: pd.Series) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The category, or the bin of a number, of each record, missing values as a group of their own."""
    absent = values.isna().to_numpy(dtype=bool)
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        values = pd.Series(series_moments(values, "datetime"))
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, _BINS + 1))) if not absent.all() else []
        groups = np.searchsorted(edges, numbers, side="right")
        groups[absent] = len(edges) + 1
        return groups, absent
    return pd.factorize(values.astype(object))[0] + 1, absent


def _auc(groups: NDArray[np.int64], positive: NDArray[np.bool_]) -> float:
    rate = positive.mean()
    # by chance and the same every time: cases and controls may alternate in a file
    half = np.random.default_rng(0).permutation(len(groups)) % 2 == 1
    score = np.empty(len(groups))
    size = int(groups.max()) + 1
    for read, scored in ((half, ~half), (~half, half)):
        total = np.bincount(groups[read], minlength=size)
        hits = np.bincount(groups[read], weights=positive[read], minlength=size)
        score[scored] = ((hits + rate) / (total + 1))[groups[scored]]
    n = int(positive.sum())
    ranks = float(rankdata(score)[positive].sum())
    return (ranks - n * (n + 1) / 2) / (n * (len(groups) - n))
