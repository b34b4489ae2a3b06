"""Audit of the base model's structure: an exponential mechanism, with its scores moved the farthest.

The worst case is made up. Without the record all pairs of columns score alike. With it the pairs of one
column lose 1 and all others gain 1. This column is then chosen e^epsilon times less often, less a part for
the number of candidates. The auditor uses the first choice. Its distribution on both tables follows from the
definition, and not from the mechanism's code.

A choice's own epsilon is a few hundredths in most runs. No number of trials shows anything then, and the same
code is audited at epsilon 1.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pandas as pd

from dpsynth.accounting.events import exponential_mechanism_event
from dpsynth.accounting.profile import Profile
from dpsynth.attacks.trials import Audited, Declared, judge
from dpsynth.audits.releases import Remembered
from dpsynth.errors import InputError
from dpsynth.releases.bins import Binning, Bins
from dpsynth.releases.structure import EdgesRelease
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Column, Schema

#: Columns of the made-up table; the tree grows from the first, so that its first choice has one less.
COLUMNS = 8
#: The column whose pairs lose where all others gain.
LOSING = 5
#: Epsilon of a choice at which the mechanism is audited if its own is smaller.
LEAST_EPSILON = 1.0
# Released number of records, and how many of them are expected in cell (0, 0) of a losing pair: more than the
# one that comes. In other pairs as good as nobody is.
_N, _EXPECTED, _SHARE = 1e6, 3.0, 0.9


def worst_case(release: EdgesRelease) -> EdgesRelease:
    """Release on the made-up table's schema and bins, at its own epsilon or at `LEAST_EPSILON`."""
    if release.epsilon is None:
        raise InputError(
            "the choice of edges has no noise: nothing is declared that an audit could contradict"
        )
    columns = tuple(Column(name=f"c{j}", kind="binary", categories=(0, 1)) for j in range(COLUMNS))
    rare = _EXPECTED / (_SHARE * _N)
    first = [_SHARE if j == LOSING else rare for j in range(COLUMNS)]
    binnings = tuple(Binning(np.arange(2), np.array([p, 1.0 - p])) for p in first)
    bins = Bins(tuple(Grid.from_column(column) for column in columns), binnings, _N)
    epsilon = max(release.epsilon, LEAST_EPSILON)
    schema, std = Schema(columns=columns), release.table_std
    return EdgesRelease(schema=schema, kind="tree", epsilon=epsilon, table_std=std).at(bins)


def rarely(epsilon: float) -> tuple[float, float]:
    """Probability that the losing column is the first choice, without and with the record.

    McSherry and Talwar (2007): proportional to exp(epsilon score / 2), with scores of +1 and -1.

    Examples
    --------
    >>> without, present = rarely(1.0)
    >>> round(without, 4), round(present, 4), round(without / present, 3)
    (0.1429, 0.0578, 2.473)
    """
    others = COLUMNS - 2
    return 1.0 / (others + 1), 1.0 / (others * math.exp(epsilon) + 1)


def audit_choices(release: EdgesRelease, *, delta: float, trials: int, rng: np.random.Generator) -> Audited:
    """Audit the choice of edges, by so many choices. The release's own schema and bins do not matter."""
    start = time.perf_counter()
    worst = worst_case(release)
    epsilon = worst.epsilon or 0.0
    without, present = rarely(epsilon)
    names = worst.schema.names
    empty = pd.DataFrame({name: pd.Series([], dtype="int64") for name in names})
    one = pd.DataFrame({name: [0] for name in names})
    tables = [Remembered(worst.schema.conform(frame).frame) for frame in (empty, one)]
    coins = rng.random(trials) < 0.5
    scores = np.empty(trials)
    with tables[0].opened(), tables[1].opened():
        for trial, coin in enumerate(coins):
            lost = worst(tables[int(coin)], rng)[0][-1] == LOSING
            scores[trial] = math.log(present / without) if lost else math.log((1 - present) / (1 - without))
    own = "" if release.epsilon == worst.epsilon else f", not its own {release.epsilon:.3g}"
    audited = judge(
        "base model edges",
        scores,
        coins,
        Declared(Profile([exponential_mechanism_event(epsilon)]), delta),
        about=f"the first choice, with none and one made-up record of {COLUMNS} columns, at epsilon "
        f"{epsilon:g} a choice{own}",
        expected=(1.0 - without, present),
        gaussian=False,
        seconds=time.perf_counter() - start,
    )
    return replace(audited, own_noise=not own)
