"""Values that one real person alone has: does the synthetic table repeat those of its training records?

A column on a fine scale, such as a time of admission, or a rare code may single a person out by itself,
whatever the other columns are. Of the real records, as many training as held-out ones, each value that occurs
once is looked up in the synthetic table. If that table owes nothing to the particular training records, what
it repeats is as often the value of a held-out record as of a training one; the spread of that share is the
one of an exchange of the two tables' labels (:mod:`dpsynth.evaluation.disclosure.exchange`), here by its
exact mean and variance and the normal distribution.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.estimates import Estimate

#: the normal distribution holds for so many values that count alike
ENOUGH = 30


def lone_value_shares(
    synthetic: pd.DataFrame,
    train: pd.DataFrame,
    test: pd.DataFrame,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
) -> dict[str, Estimate]:
    """Share of the synthetic records with a lone real value whose value is a training record's, by column.

    Parameters
    ----------
    synthetic, train, test : pandas.DataFrame of shape (m, columns), (n, columns), (h, columns)
        Conformed to one schema, at least one record each.
    rng : numpy.random.Generator
        Draws ``min(n, h)`` records of the larger real table.
    level : float
        Of all intervals together, by Bonferroni's inequality.

    Returns
    -------
    dict of str to Estimate
        1/2 by chance. Columns without 30 such values, that is most categories and coarse numbers, are absent.
    """
    size = min(len(train), len(test))
    parts = [frame.iloc[np.sort(rng.permutation(len(frame))[:size])] for frame in (train, test)]
    known = {name: _column(synthetic[name], *(part[name] for part in parts)) for name in train.columns}
    known = {name: weights for name, weights in known.items() if weights is not None}
    from scipy import stats

    reach = float(stats.norm.ppf(0.5 + 0.5 * (1.0 - (1.0 - level) / max(len(known), 1))))
    found = {}
    for name, weights in known.items():
        if weights is None:
            continue
        value = float(weights[:size].sum())
        # of the sum over a random half of 2 size records, of which those without a weight are some
        error = math.sqrt(len(weights) / 4 * float(weights.var(ddof=1)))
        found[name] = Estimate(value, max(value - reach * error, 0.0), min(value + reach * error, 1.0))
    return found


def _column(made: pd.Series, train: pd.Series, test: pd.Series) -> NDArray[np.float64] | None:
    """Part of each real record, training ones first, in the synthetic values that one real record has."""
    real = pd.concat([train, test], ignore_index=True)
    lone = (~real.duplicated(keep=False) & real.notna()).to_numpy()
    times = made.value_counts()
    weights = np.where(lone, real.map(times).fillna(0).to_numpy(dtype=np.float64), 0.0)
    total = float(weights.sum())
    if total == 0 or total**2 < ENOUGH * float((weights**2).sum()):
        return None
    return np.asarray(weights / total)
