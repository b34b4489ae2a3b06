"""How many values a record lacks: missing values of many columns come together.

Laboratory panels are taken or not taken as a whole. Tables of two or three columns tie a column's missing
values to those of one other column only, and ten missing values in one record are then nearly impossible.
Their number has a released distribution. So a record is thought to have a number M of that distribution, and
a column to be missing with the probability that it has among records which lack M values, if columns are
missing independently of each other but for M. With odds w of the columns and e_k the elementary symmetric
polynomial of degree k this is w_j e_(M-1)(without j) / e_M(all) (conditional Bernoulli sampling, Chen,
Dempster and Liu 1994).

M is not drawn. What the earlier columns of a record lack makes some M likelier than others (Bayes), and the
column is missing with the mean probability. Tables and products are fitted on top of that. Given the outcome,
the mean of M is that of the columns' shares in their tables with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logit, softmax

from dpsynth.files.codec import record
from dpsynth.marginals.terms import ALL, ChainTerm, DrawnColumns, Floats, Ints

Doubles = NDArray[np.float64]

#: Rounds of the fit of odds, and of numbers by outcome.
_ROUNDS = 200
#: Odds, either way, and log odds of a missing value given the number.
_LARGEST, _FAR = 1e9, 12.0
_LEAST, _RAREST = 1e-12, 1e-6


@record
@dataclass(frozen=True, eq=False)
class Lacking(ChainTerm):
    """The effect of what earlier columns lack on a column's missing value.

    ``root``: the first column. ``law``, shape (its states, numbers): distribution of the number given it.
    ``columns``: earlier columns whose missing values are counted. ``states``, shape (columns,): of these.
    ``odds``, shape (columns + 1, numbers): log odds of missing values given the number, the column's last.
    ``alone``: the column's share of missing values. ``state``: of its missing value. ``size``: its states.
    """

    root: int
    law: Doubles
    columns: tuple[int, ...]
    states: Ints
    odds: Doubles
    alone: float
    state: int
    size: int

    def logits(self, rows: DrawnColumns, states: Ints | slice = ALL) -> Floats:
        """Of these states, shape (states, n)."""
        logs = np.log(np.maximum(self.law, _LEAST))[rows.states[self.root]]
        for column, state, odds in zip(self.columns, self.states, self.odds, strict=False):
            lacks = (rows.states[column] == state).astype(np.int64)
            logs += np.stack([log_expit(-odds), log_expit(odds)])[lacks]
        share = softmax(logs, axis=1) @ expit(self.odds[-1])
        found = np.zeros((self.size, len(share)), np.float32)
        found[self.state] = logit(np.clip(share, _RAREST, 1.0 - _RAREST)) - logit(self.alone)
        return found[states]

    def alike(self) -> Doubles:
        """Missing or not."""
        return (np.arange(self.size) == self.state).astype(np.float64)[:, None]


def _polynomial(odds: Doubles) -> Doubles:
    """Logarithms of elementary symmetric polynomials of all degrees from 0."""
    found, scale = np.ones(1), 0.0
    for one in odds:
        found = np.convolve(found, [1.0, one])
        largest = found.max()
        found, scale = found / largest, scale + np.log(largest)
    return np.log(np.maximum(found, np.finfo(float).tiny)) + scale


def _with_mean(law: Doubles, mean: float) -> Doubles:
    """The distribution of a number that has this mean and is nearest to another one (Csiszar 1975).

    A noisy distribution's mean adds up the noise of its cells times their number. Columns' shares give a more
    precise one. A mean beyond the numbers that the distribution has becomes the nearest that it can have.
    """
    numbers, logs = np.arange(len(law)), np.log(np.maximum(law, _LEAST))

    def tilted(slope: float) -> Doubles:
        return np.asarray(softmax(logs + slope * numbers))

    if not tilted(-_FAR) @ numbers < mean < tilted(_FAR) @ numbers:
        return tilted(float(np.copysign(_FAR, mean - law @ numbers)))
    return tilted(brentq(lambda slope: float(tilted(slope) @ numbers) - mean, -_FAR, _FAR))


def missing_odds(law: Doubles, shares: Doubles) -> Doubles:
    """Log odds of each column's missing value given their number, shape (columns, columns + 1).

    ``law``, shape (columns + 1,): probabilities of 0, 1, ... missing values.
    ``shares``, shape (columns,): probability of each column to be missing.

    Examples
    --------
    >>> odds = missing_odds(np.array([0.5, 0.0, 0.5]), np.array([0.5, 0.5]))
    >>> odds.round(1).tolist()
    [[-12.0, 0.0, 12.0], [-12.0, 0.0, 12.0]]
    """
    shares = np.clip(shares, _RAREST, 1.0 - _RAREST)
    law = _with_mean(law, float(shares.sum()))
    odds = shares / (1.0 - shares)
    for _ in range(_ROUNDS):
        given = _given(odds)
        odds = np.clip(odds * shares / np.maximum(given @ law, _LEAST), 1 / _LARGEST, _LARGEST)
        odds /= np.exp(np.log(odds).mean())
    given = _given(odds)
    return np.clip(np.log(np.maximum(given, _LEAST) / np.maximum(1.0 - given, _LEAST)), -_FAR, _FAR)


def _given(odds: Doubles) -> Doubles:
    """Probability of each column to be missing given their number, shape (columns, columns + 1)."""
    every = _polynomial(odds)
    others = np.stack([_polynomial(np.delete(odds, j)) for j in range(len(odds))])
    found = np.zeros((len(odds), len(every)))
    found[:, 1:] = np.exp(np.minimum(np.log(odds)[:, None] + others - every[1:], 0.0))
    return found


def number_given(law: Doubles, root: Doubles, means: Doubles) -> Doubles:
    """Distribution of the number of missing values given the root, shape (root's states, numbers).

    It is the one nearest to independence (Csiszar 1975) that has a mean for each state of the root.

    ``law``, ``root``: probabilities of numbers, and of the root's states. The law is brought to the mean of
        ``means``.
    ``means``, shape (root's states,).

    Examples
    --------
    >>> number_given(np.array([0.5, 0.5]), np.array([0.5, 0.5]), np.array([0.2, 0.8])).round(2).tolist()
    [[0.8, 0.2], [0.2, 0.8]]
    """
    law = _with_mean(law, float(means @ root))
    numbers, slope = np.arange(len(law)), np.zeros(len(root))
    rows, columns = np.log(np.maximum(root, _LEAST)), np.log(np.maximum(law, _LEAST))
    a, b = rows.copy(), columns.copy()

    def joint() -> Doubles:
        logs = a[:, None] + b + slope[:, None] * numbers
        return np.exp(logs - logs.max())

    for _ in range(_ROUNDS):
        now = joint()
        a += rows - np.log(np.maximum(now.sum(axis=1) / now.sum(), _LEAST))
        now = joint()
        b += columns - np.log(np.maximum(now.sum(axis=0) / now.sum(), _LEAST))
        given = joint()
        given /= given.sum(axis=1, keepdims=True)
        mean = given @ numbers
        variance = given @ numbers**2 - mean**2
        slope += np.clip((means - mean) / (2 * np.maximum(variance, 0.05)), -0.2, 0.2)
    now = joint()
    return np.asarray(now / now.sum(axis=1, keepdims=True))
