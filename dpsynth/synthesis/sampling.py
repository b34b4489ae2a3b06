"""Records that obey rules: placed in cells, drawn, refused and weighted. Post-processing, free of cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import Counted
from dpsynth.errors import DataError, RejectionError
from dpsynth.marginals.binning import make_binning
from dpsynth.marginals.chain import Chain
from dpsynth.marginals.rules import obeyed
from dpsynth.parallel import in_blocks
from dpsynth.table.derived import modelled_inputs
from dpsynth.table.draws import draw_entry, grouped
from dpsynth.table.encoder import Encoder
from dpsynth.table.expressions import Expression
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Schema
from dpsynth.table.values import numbers_of

# ------------------------------------------------------------------------------------------------
# Records that obey rules by where their values lie: two records exchange a value.
#
# The base model's bins allow every rule that has a factor (`dpsynth.marginals.rules`). But
# values are placed in a bin without regard to rules, and the exact counts move some records to other bins.
# So a record that breaks a rule exchanges its value of a column with a record of the same bin. Only records
# that break a rule after that exchange values with records of any bin. Near values are tried first. An
# exchange stays if fewer rules are broken than before. All columns keep their values, so released counts are
# met as before. Post-processing, free of cost.

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Rounds of exchanges at most, in each of which every rule's columns take turns. Partners are sought so many
#: times further away than in the round before.
_PLACEMENT_ROUNDS, _WIDER = 30, 4
#: After so many rounds, one that leaves more than this share of the broken rules is the last.
_FIRST, _WORTH = 6, 0.98
#: Exchanges that are tried at once, if each record may try no more than so many.
_AT_ONCE, _EACH = 1000, 32


def placed(
    frame: pd.DataFrame,
    cells: Mapping[str, tuple[Ints, Ints]],
    rules: Sequence[Expression],
    schema: Schema,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Records of the modelled columns, with values exchanged within bins, and then beyond.

    ``cells``, shapes (n,) and (grid.size,): fine cells of each column whose values may be exchanged, in the
        order of its values, and the bin of each cell.
    ``schema``: with the derived columns that rules read.
    """
    read = [(rule, modelled_inputs(rule.columns, schema.formulas)) for rule in rules]
    read = [(rule, names) for rule, names in read if not cells.keys().isdisjoint(names)]
    if not read:
        return frame
    names = [name for name in frame.columns if any(name in inputs for _, inputs in read)]
    numbers = {name: schema.column(name).code(frame[name]).copy() for name in names}

    def broken(chosen: Iterable[int], now: Mapping[str, Floats]) -> NDArray[np.bool_]:
        """By rule and record of these numbers."""
        return np.stack([~obeyed(read[j][0], lambda column: now[column.name], schema) for j in chosen])

    wrong = broken(range(len(read)), numbers)
    orders = {name: _Order(*cells[name]) for name in names if name in cells}
    #: the record whose value of a column a record has
    source = {name: np.arange(len(frame)) for name in orders}

    def exchange(name: str, width: int) -> None:
        """Exchange a column's values between records, where this helps."""
        own = [j for j, (_, inputs) in enumerate(read) if name in inputs]
        rows = np.flatnonzero(wrong[own].any(axis=0))
        if not len(rows):
            return
        rows = np.repeat(rows, min(max(_AT_ONCE // len(rows), 1), _EACH))
        pairs = orders[name].pairs(rows, width, rng)
        both = pairs.ravel()
        now = {part: numbers[part][both] for part in set().union(*(read[j][1] for j in own))}
        now[name] = numbers[name][pairs[::-1].ravel()]
        found = broken(own, now).reshape(len(own), *pairs.shape)
        better = np.flatnonzero(found.sum(axis=(0, 1)) < wrong[own][:, pairs].sum(axis=(0, 1)))
        better = better[_placed_apart(pairs[:, better], len(frame))]
        one, other = pairs[:, better]
        for values in (numbers[name], source[name]):
            values[one], values[other] = values[other], values[one]
        orders[name].exchange(one, other)
        for k, rows in enumerate((one, other)):
            wrong[np.ix_(own, rows)] = found[:, k, better]

    for beyond in (False, True):
        for turn in range(_PLACEMENT_ROUNDS):
            before = wrong.sum()
            for name, order in orders.items():
                if beyond and not turn:
                    order.join()
                exchange(name, _WIDER ** min(turn + 1, 15))
            if turn >= _FIRST and wrong.sum() >= _WORTH * before:
                break
    return frame.assign(**{name: frame[name].array[rows] for name, rows in source.items()})


class _Order:
    """Records in the order of one column's values, and their bins."""

    def __init__(self, cells: Ints, labels: Ints) -> None:
        self.bins = labels[cells]
        self.order = np.lexsort((cells, self.bins))  # rare categories share a bin, but are not neighbours
        self.place = np.argsort(self.order)
        self.counts = np.bincount(self.bins)
        self.starts = np.cumsum(self.counts) - self.counts

    def join(self) -> None:
        """Let all values exchange, whatever their bins."""
        self.bins[:] = 0
        self.counts, self.starts = np.array([len(self.bins)]), np.zeros(1, np.int64)

    def pairs(self, rows: Ints, width: int, rng: np.random.Generator) -> Ints:
        """``rows`` in random order, and for each another record of its bin, at most ``width`` places away.

        The first follows the last of a bin. Shape (2, pairs).
        """
        rows = rng.permutation(rows)
        own = self.bins[rows]
        start, count = self.starts[own], self.counts[own]
        away = rng.integers(-np.minimum(width, count), np.minimum(width, count) + 1)
        other = self.order[start + (self.place[rows] - start + away) % count]
        return np.stack([rows, other])[:, rows != other]

    def exchange(self, one: Ints, other: Ints) -> None:
        """Let records stand where the others stood."""
        self.place[one], self.place[other] = self.place[other], self.place[one]
        self.order[self.place[one]], self.order[self.place[other]] = one, other


def _placed_apart(pairs: Ints, n: int) -> NDArray[np.bool_]:
    """Which pairs share no record with an earlier one. ``pairs``, shape (2, pairs): of n records."""
    first, turn = np.full(n, pairs.shape[1]), np.arange(pairs.shape[1])
    for records in pairs:
        np.minimum.at(first, records, turn)
    return np.asarray((first[pairs] == turn).all(axis=0))


# ------------------------------------------------------------------------------------------------
# Make generated records agree with the released single-column counts: post-processing, free of cost.
#
# `calibrated_records` takes points. Numbers are replaced by their ranks, spread uniformly and read through
# the private distribution. Category probabilities are re-weighted until their means are the released ones,
# and categories are then drawn in exact numbers. The *dependence* of the columns is kept. Their own
# distributions are replaced.
#
# `matched_draws` does the same for samples of a base model, from their bins. A bin of an ordered column is a
# range of cells, in which a record's place was drawn at random. So its rank is that of its bin, and random
# within it.
#
# Ranks and exact numbers need many records: a single one would be an independent sample of every column. A
# caller who wants few records generates some thousands, calibrates, and keeps a random part.

Codes = NDArray[np.int64]
Places = NDArray[np.float64]
#: Probability that even a certain category leaves to each other one, so that re-weighting can reach it.
_SMALLEST = 1e-6
#: Re-weighting is fitted on at most this many rows.
_FIT_ROWS = 20_000
#: Columns that a core takes at once, at most.
_COLUMNS = 8


def calibrated_records(
    points: ArrayLike, encoder: Encoder, rng: np.random.Generator
) -> tuple[list[Codes], list[Places]]:
    """Records that points stand for, with the released marginals of their encoder, if it calibrates them.

    ``points``, shape (n, layout.dim): numeric coordinates of any size (only their order counts), and one-hot
        groups as weights.

    Returns codes, places : lists of arrays, shape (n,): fine cells and places within them, one of each a
    column, as `Encoder.decode` takes them. Counts of categories and of missing values differ from n times
    the released probability by less than 1. Numbers are spread evenly over the released distribution, among
    the records where they are not missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpsynth.privacy import Ledger
    >>> from dpsynth.marginals.columns import estimate_marginals
    >>> from dpsynth.marginals.statistics import MarginalsRelease
    >>> from dpsynth.privacy.records import FrameRecords
    >>> from dpsynth.table.schema import Column, Schema
    >>> schema = Schema(columns=(Column(name="sex", kind="binary", categories=("F", "M")),))
    >>> frame = schema.conform(pd.DataFrame({"sex": ["F"] * 30 + ["M"] * 10})).frame
    >>> rng = np.random.default_rng(0)
    >>> release = MarginalsRelease(schema=schema, n=40, noise_multiplier=None)
    >>> released = estimate_marginals(release, Ledger().run(release, FrameRecords(frame), rng))
    >>> codes, _ = calibrated_records(np.full((8, 2), 0.5), Encoder(schema, released), rng)
    >>> np.bincount(codes[0])
    array([6, 2])
    """
    layout = encoder.layout
    array = np.asarray(points)
    if array.ndim != 2 or array.shape[1] != layout.dim:
        raise DataError(f"points has shape {array.shape}, but must be (n, {layout.dim})")
    if not np.isfinite(array).all():
        raise DataError("points has a coordinate that is not a finite number")
    if not encoder.calibrated:
        return encoder.cells(array, rng)
    n, codes, places = len(array), [], []
    for j, (grid, at, group) in enumerate(zip(encoder.grids, encoder.coordinate, encoder.group, strict=True)):
        code, place, present = np.full(n, grid.present), np.zeros(n), np.arange(n)
        if group is not None:
            label = exact_categories(array[:, group[0] : group[1]], encoder.released(j), rng)
            code = label if at is None else grid.present - 1 + label
            present = present if at is None else np.flatnonzero(label == 0)
        if at is not None:
            rows = present[ascending(array[present, at], rng)]
            code[rows], place[rows] = evenly_spread(encoder, j, len(rows), rng)
        codes.append(code)
        places.append(place)
    return codes, places


def evenly_spread(encoder: Encoder, j: int, n: int, rng: np.random.Generator) -> tuple[Codes, Places]:
    """Cells of column j and places within them, ascending, one in each n-th part of what was released.

    The k-th is a uniform draw from the ranks ``[k / n, (k + 1) / n)`` of the present values.
    """
    return encoder.quantiles(j, (np.arange(n) + rng.random(n)) / max(n, 1))


def ascending(values: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
    """Places of n numbers in ascending order, with ties in random order.

    Examples
    --------
    >>> ascending([7.0, -2.0, 9.0], np.random.default_rng(0))
    array([1, 0, 2])
    """
    array = np.asarray(values)
    order = np.argsort(array)
    found = array[order]
    follows = np.concatenate([[False], found[1:] == found[:-1], [False]])
    tied = np.flatnonzero(follows[1:] | follows[:-1])
    if tied.size:
        run = np.cumsum(~follows[:-1])[tied]
        run -= run[0]
        # The sort leaves ties in an order of its own, which differs from machine to machine.
        rows = np.sort(run * len(array) + order[tied]) - run * len(array)
        order[tied] = rows[grouped(run, int(run[-1]) + 1, rng)]
    return order


def exact_counts(n: int, probabilities: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
    """Whole numbers of mean ``n * probabilities``, each within 1 of it, that sum to n (systematic rounding).

    Examples
    --------
    >>> exact_counts(8, [0.75, 0.25], np.random.default_rng(0))
    array([6, 2])
    """
    share = np.asarray(probabilities, dtype=np.float64)
    ends = np.cumsum(share / share.sum()) * n
    ends[-1] = n
    marks = np.floor(np.concatenate([[0.0], ends]) + rng.random() * (1.0 - 1e-9) + 1e-9).astype(np.int64)
    return np.diff(marks)


def exact_categories(
    weights: NDArray[np.float64], probabilities: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """One category a row, in exact numbers, leaning to each row's own weights.

    ``weights``, shape (n, m): a row's weights of the categories, of which negative ones count as zero.
    ``probabilities``, shape (m,): released probabilities, sum 1.
    """
    n, size = weights.shape
    # Category by category: sums along short rows are many times slower than whole columns.
    own = np.maximum(weights.T, 0.0, dtype=np.float64, order="C")
    own /= np.maximum(own.sum(axis=0), 1e-300)
    np.maximum(own, _SMALLEST, out=own)
    # Categories that are certain already have no lean to re-weight; only surplus records change theirs.
    if n and own.max(axis=0).min() <= 1.0 - 1e-3:
        fitted = own if n <= _FIT_ROWS else own[:, rng.integers(0, n, _FIT_ROWS)]
        own *= _reweight(fitted, probabilities)[:, None]
    own /= own.sum(axis=0)
    reweighted = own.T
    label = draw_entry(reweighted, rng)
    wanted = exact_counts(n, probabilities, rng)
    surplus = np.bincount(label, minlength=size) - wanted
    freed = []
    for category in np.flatnonzero(surplus > 0):
        rows = np.flatnonzero(label == category)
        freed.append(rows[_heaviest(1.0 - reweighted[rows, category], int(surplus[category]), rng)])
    pool = np.concatenate([np.zeros(0, dtype=np.int64), *freed])
    for category in np.flatnonzero(surplus < 0):
        taken = _heaviest(reweighted[pool, category], int(-surplus[category]), rng)
        label[pool[taken]] = category
        pool = np.delete(pool, taken)
    return label


def _reweight(own: NDArray[np.float64], probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Factors of the m categories that bring the mean of ``own``, shape (m, n), to the released one."""
    factor = np.ones(len(own))
    for _ in range(100):
        mean = factor * (own @ (1.0 / (factor @ own))) / own.shape[1]
        # Factors stay within float range where a released probability is zero.
        factor = np.clip(factor * probabilities / np.maximum(mean, 1e-12), 1e-12, 1e12)
        if np.abs(mean - probabilities).max() < 1e-4:
            break
    return factor


def _heaviest(weights: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw ``count`` different rows in proportion to their weights (Gumbel top-k)."""
    keys = np.log(np.maximum(weights, 1e-300)) + rng.gumbel(size=len(weights))
    return np.argpartition(-keys, count - 1)[:count] if count < len(keys) else np.arange(len(keys))


def matched_draws(
    chain: Chain | None, encoder: Encoder, n: int, rng: np.random.Generator
) -> tuple[list[Codes], list[Places]]:
    """Fine cells of n records and places within them, as `Encoder.decode` takes them.

    Returns codes, places : lists of arrays, shape (n,): one a column. Counts of categories and of missing
    values differ from n times the released probability by less than 1.
    """
    grids = encoder.grids
    states, scores = np.zeros((n, len(grids)), np.int64), np.zeros((n, len(grids)), np.float32)
    if chain is not None:
        states, scores = chain.scored(n, rng)
    codes, places = list(states.T), [np.zeros(n) for _ in grids]
    #: bins or categories, and what is apart
    columns = [(drawn, np.zeros(n, np.int64)) for drawn in states.T]

    def label(part: slice, rng: np.random.Generator) -> None:
        for j, grid in list(enumerate(grids))[part]:
            drawn, apart = columns[j]
            if chain is None:
                labels = np.zeros(grid.size, np.int64)
            elif grid.ordered:
                labels = chain.binnings[j].labels
            else:
                drawn, labels = chain.column_cells(j, drawn, rng), np.arange(grid.size)
            if encoder.coordinate[j] is None:
                drawn = exact_labels(drawn, encoder.released(j), rng)
            elif encoder.group[j] is not None:
                drawn, apart = _apart(encoder, j, drawn, labels, rng)
            columns[j] = drawn, apart

    in_blocks(label, len(grids), _COLUMNS, rng)

    def spread(part: slice, rng: np.random.Generator) -> None:
        for j, (drawn, apart) in list(enumerate(columns))[part]:
            codes[j] = drawn
            if encoder.coordinate[j] is None:
                continue
            codes[j], present = grids[j].present - 1 + apart, np.flatnonzero(apart == 0)
            rows = present[_in_order(drawn[present], scores[present, j], rng)]
            codes[j][rows], places[j][rows] = evenly_spread(encoder, j, len(rows), rng)

    in_blocks(spread, len(grids), _COLUMNS, rng)
    return codes, places


def _in_order(drawn: Codes, scores: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.int64]:
    """Places of records in the order of their bins, and of their scores within them, equal ones at random."""
    order = grouped(drawn, int(drawn.max(initial=0)) + 1, rng)
    return order[np.lexsort((scores[order], drawn[order]))]


def _apart(
    encoder: Encoder, j: int, drawn: Codes, labels: Codes, rng: np.random.Generator
) -> tuple[Codes, Codes]:
    """Cells drawn, changed where a value is found, and the code or missing value of each record.

    The code is 0 for a value in its order, as `Encoder.released` counts them.
    """
    released = encoder.released(j)
    if labels[-1] == labels[0]:
        apart = rng.choice(len(released), size=len(drawn), p=released)
    else:
        kinds = np.zeros(int(labels.max()) + 1, dtype=np.int64)
        kinds[labels[encoder.grids[j].present :]] = np.arange(1, len(released))
        apart = kinds[drawn]
    exact = exact_labels(apart, released, rng)
    found = (apart > 0) & (exact == 0)
    if found.any():
        # A value that was missing has no rank: any is as good.
        drawn = drawn.copy()
        drawn[found] = labels[encoder.quantiles(j, rng.random(int(found.sum())))[0]]
    return drawn, exact


def exact_labels(drawn: Codes, probabilities: NDArray[np.float64], rng: np.random.Generator) -> Codes:
    """Labels in exact numbers, of which as few as possible differ from those drawn.

    ``drawn``, shape (n,), from 0 to k - 1.
    ``probabilities``, shape (k,): released, sum 1.

    Returns int array, shape (n,): with counts by `exact_counts`. Surplus records, chosen at random, get the
    labels that are too few.

    Examples
    --------
    >>> label = exact_labels(np.zeros(8, dtype=np.int64), np.array([0.75, 0.25]), np.random.default_rng(0))
    >>> np.bincount(label)
    array([6, 2])
    """
    size = len(probabilities)
    counts = np.bincount(drawn, minlength=size)
    surplus = counts - exact_counts(len(drawn), probabilities, rng)
    if not surplus.any():
        return drawn
    rows = np.argsort(drawn.astype(np.uint16) if size <= 2**16 else drawn, kind="stable")
    first = np.concatenate([[0], np.cumsum(counts)])
    freed = [
        rng.choice(rows[first[k] : first[k + 1]], surplus[k], replace=False)
        for k in np.flatnonzero(surplus > 0)
    ]
    label = drawn.copy()
    label[rng.permutation(np.concatenate(freed))] = np.repeat(np.arange(size), np.maximum(-surplus, 0))
    return label


# ------------------------------------------------------------------------------------------------
# Records that obey rules: drawn, refused and weighted. Post-processing, free of cost.
#
# Candidates come from the model as it samples anyway. Those that break a constraint are refused, which
# leaves the model's distribution given the constraints but moves the single-column counts. So some more are
# drawn than are wanted. Raking (iterative proportional fitting, Deming and Stephan 1940) gives probabilities
# of choice that restore the released marginals. Among all distributions that obey the constraints and have
# these marginals, the result is nearest to that of the candidates in Kullback-Leibler divergence (Csiszar
# 1975). If constraints hold in the real table its marginals allow them, and so, up to noise, do the released
# ones. Exchanges then take the sampling noise out of the chosen records' marginals. Every record is one of
# the candidates: none is repaired, and none is chosen twice.
#
# Raking may want some records more than once. More candidates are drawn if these are many. They are not if
# they would bring the marginals nearer by less than the noise of the counts.
#
# A condition of conditional sampling refuses as well, but no marginal is restored: the distribution is the
# one above, given the condition.

#: Drawing is given up after this many candidates of which fewer than one in a thousand was taken, and after a
#: fifth of them of which none was.
CANDIDATES, RAREST = 1_000_000, 1e-3
#: Candidates that obey for each record that is wanted: so many are asked for at once, and taken at most.
_SPARE, _POOL = 1.2, 4
#: Sweeps of the raking at most. It ends at this total variation distance from the released marginals, or
#: after a sweep that leaves more than this share of it.
_SWEEPS, _NEAR, _HELPS = 25, 5e-4, 0.99
#: Share of the sample that would be taken again, if records could be, that asks for no more candidates.
_TWICE = 0.02
#: Rounds of exchanges.
_ROUNDS = 100
#: Ranges of a number whose released shares are kept.
_RANGES = 100

Cells = NDArray[np.int64]
Shares = NDArray[np.float64]
#: Makes this many records, calibrated together.
Make = Callable[[int], pd.DataFrame]


@dataclass
class Acceptance:
    """How many candidates were drawn to make a sample, and how many of them were taken.

    ``candidates``: records drawn from the model, 0 if there is no rule to test.
    ``obey_all``: how many obey all constraints.
    ``offered``, ``selected``: records that obey the constraints, and how many of them fulfil the conditions
        of ``where``.
    ``moved``: the largest total variation distance of a column from its released marginal after weighting,
        in any block of the sample, and the column.
    """

    candidates: int = 0
    obey: dict[str, int] = field(default_factory=dict)
    obey_all: int = 0
    offered: int = 0
    selected: int = 0
    conditions: str = ""
    moved: tuple[float, str] | None = None

    @property
    def rates(self) -> dict[str, float]:
        """Share of the candidates that obeys each constraint, by its text."""
        return {text: count / max(self.candidates, 1) for text, count in self.obey.items()}

    def add(self, part: Acceptance) -> None:
        """Count what was drawn for a part of the same sample."""
        for text, count in part.obey.items():
            self.obey[text] = self.obey.get(text, 0) + count
        self.candidates += part.candidates
        self.obey_all += part.obey_all
        self.offered += part.offered
        self.selected += part.selected
        self.conditions = part.conditions
        self.moved = max(filter(None, (self.moved, part.moved)), default=None)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able rates, empty if there was no rule."""
        found: dict[str, Any] = {}
        if self.obey:
            found |= {"constraints": self.rates, "all": self.obey_all / max(self.candidates, 1)}
        if self.conditions:
            found["where"] = self.selected / max(self.offered, 1)
        if self.moved is not None:
            found["marginals_moved"] = {"tvd": self.moved[0], "column": self.moved[1]}
        return found

    def lines(self, counted: Counted = Counted.RECORDS) -> list[str]:
        """The same in words."""
        words = [f"{rate:.2%} of the model's {counted} obey {text}" for text, rate in self.rates.items()]
        if len(words) > 1:
            words.append(f"{self.obey_all / max(self.candidates, 1):.2%} obey all {len(words)} constraints")
        if self.conditions:
            words.append(f"{self.selected / max(self.offered, 1):.2%} fulfil {self.conditions}")
        if self.moved is not None:
            words.append(
                f"weighted back to the noisy counts: at most {self.moved[0]:.4f} off in total "
                f"variation ({self.moved[1]})"
            )
        return words


def obeying(
    make: Make,
    size: int,
    rules: Sequence[Expression],
    encoder: Encoder | None,
    rng: np.random.Generator,
    record: Acceptance,
    at_once: tuple[int, int],
) -> pd.DataFrame:
    """Draw records that obey all rules, at their released marginals.

    ``encoder``: with released marginals to keep, or None to keep none.
    ``at_once``: least and greatest number of records that ``make`` is asked for.
    """
    margins = []
    if encoder is not None and encoder.marginals is not None:
        released = zip(encoder.grids, encoder.marginals.probabilities, strict=True)
        margins = [(grid, *margin(grid, probabilities)) for grid, probabilities in released]
    pool: list[pd.DataFrame] = []
    coded: list[list[Cells]] = []  # labels of the same records, column by column
    drawn = held = 0
    wanted, spare = size, _SPARE if margins else 1.0
    while True:
        while held < wanted:
            rate = max(held, 1) / max(drawn, 1) if drawn else 1.0
            frame = make(int(np.clip((spare * wanted - held) / rate, *at_once)))
            kept = _obey(frame, rules, record)
            drawn, held = drawn + len(frame), held + int(kept.sum())
            pool.append(frame[kept])
            coded.append([labels[grid.encode(pool[-1][grid.column.name])] for grid, labels, _ in margins])
            _refuse_rare(record, record.obey_all, record.candidates, _rarest(record))
        frame = pd.concat(pool, ignore_index=True)
        if encoder is None or encoder.marginals is None:
            return frame.iloc[rng.permutation(len(frame))[:size]].reset_index(drop=True)
        cells = [np.concatenate(own) for own in zip(*coded, strict=True)]
        targets = [target for _, _, target in margins]
        even = np.full(held, size / held)
        free, least = _raked(even, cells, targets, size, capped=False)
        shares, gap = _raked(free, cells, targets, size, capped=True)
        # More candidates help where many would be taken twice, unless the noise of the counts hides it.
        twice = np.maximum(free - 1.0, 0.0).sum() / size
        if twice <= _TWICE or gap - least <= encoder.marginals.noise_share or held >= _POOL * size:
            break
        pool, coded, wanted = [frame], [cells], min(int(1.25 * held), _POOL * size)
    order = rng.permutation(len(frame))
    first = exact_counts(size, shares[order], rng) > 0
    # A share of 1 is drawn twice where it is rounded up: another record then takes the second place.
    chosen = np.concatenate([order[first], order[~first][: size - int(first.sum())]])
    chosen = _evened(chosen, cells, targets, rng)
    moved = (
        (_distance(cell[chosen], p, None, len(chosen)), grid.column.name)
        for cell, p, grid in zip(cells, targets, encoder.grids, strict=True)
    )
    record.moved = max(filter(None, [record.moved, *moved]))
    return frame.iloc[rng.permutation(chosen)].reset_index(drop=True)


def fulfilling(
    make: Make,
    sizes: Sequence[int],
    conditions: Sequence[Expression],
    rng: np.random.Generator,
    record: Acceptance,
    at_once: tuple[int, int],
) -> Iterator[pd.DataFrame]:
    """Yield frames of these sizes in which all conditions are true.

    ``at_once``: least and greatest number of records that ``make`` is asked for.
    """
    record.conditions = " and ".join(rule.text for rule in conditions)
    waiting = make(0)
    for size in sizes:
        pool = [waiting]
        held = len(waiting)
        while held < size:
            rate = max(record.selected, 1) / max(record.offered, 1) if record.offered else 1.0
            frame = make(int(np.clip((size - held) / rate, *at_once)))
            kept = np.logical_and.reduce([rule.selected(frame) for rule in conditions])
            record.candidates += 0 if record.obey else len(frame)
            record.offered += len(frame)
            record.selected += int(kept.sum())
            _refuse_rare(record, record.selected, record.offered, f"the condition {record.conditions}")
            pool.append(frame[kept])
            held += int(kept.sum())
        frame = pd.concat(pool, ignore_index=True)
        order = rng.permutation(held)
        yield frame.iloc[order[:size]].reset_index(drop=True)
        waiting = frame.iloc[order[size:]]


def _obey(frame: pd.DataFrame, rules: Sequence[Expression], record: Acceptance) -> NDArray[np.bool_]:
    """Which records obey all rules, counted in the record."""
    kept, numbers = np.ones(len(frame), dtype=bool), numbers_of(frame)
    for rule in rules:
        broken = rule.truth(numbers)[1]
        record.obey[rule.text] = record.obey.get(rule.text, 0) + int((~broken).sum())
        kept &= ~broken
    record.candidates += len(frame)
    record.obey_all += int(kept.sum())
    return kept


def _rarest(record: Acceptance) -> str:
    text = min(record.obey, key=lambda rule: record.obey[rule])
    if record.obey[text] > 2 * record.obey_all:
        listed = "; ".join(f"{rule} ({rate:.2%})" for rule, rate in record.rates.items())
        return f"obeying all constraints together ({listed})"
    return f"the constraint {text}"


def _refuse_rare(record: Acceptance, taken: int, of: int, what: str) -> None:
    enough = CANDIDATES if taken else CANDIDATES // 5
    if record.candidates >= enough and taken < RAREST * of:
        raise RejectionError(
            f"{what} is nearly impossible under the model: {taken:,} of {of:,} records drawn. Correct it "
            "if it is not true of the real table, or ask for less"
        )


def _raked(
    shares: Shares, cells: Sequence[Cells], targets: Sequence[Shares], size: int, *, capped: bool
) -> tuple[Shares, float]:
    """How often to take each record, sum ``size``, so that all marginals are near their targets.

    ``shares``, shape (n,): to begin with. ``capped``: whether no record is taken more than once.

    Also the largest total variation distance that is left.
    """
    gap = np.inf
    for _ in range(_SWEEPS):
        last = gap
        for cell, target in zip(cells, targets, strict=True):
            current = np.bincount(cell, shares, len(target)) / size
            # A cell of which no record obeys cannot be filled, and takes no part.
            shares = shares * (target / np.where(current > 0, current, 1.0))[cell]
            shares = shares * (size / max(shares.sum(), 1e-300))
        shares = _capped(shares, size) if capped else shares
        gap = max(_distance(cell, target, shares, size) for cell, target in zip(cells, targets, strict=True))
        if gap <= _NEAR or gap > _HELPS * last:
            break
    return shares, gap


def _capped(shares: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Shares in proportion, none above 1, of sum ``size`` (at most as many as there are records)."""
    floor = 1e-12  # keeps a record that no marginal needs in reach of the number wanted
    shares = np.maximum(shares, floor)
    full = np.zeros(len(shares), dtype=bool)
    while True:
        rest = size - full.sum()
        free = ~full
        scaled = np.where(full, 1.0, shares * (rest / max(shares[free].sum(), 1e-300)))
        over = free & (scaled > 1.0)
        if not over.any():
            return scaled
        full |= over


def _evened(
    chosen: Cells, cells: Sequence[Cells], targets: Sequence[Shares], rng: np.random.Generator
) -> Cells:
    """Exchange chosen records for others until the marginals' sampling noise is gone, as far as it goes.

    Each round draws a random half of all records. It removes those whose cells hold most above their released
    shares, and adds those whose cells hold least. A round that does not help is undone and made smaller.
    """
    starts = np.concatenate([[0], np.cumsum([len(target) for target in targets])])
    places = np.stack([cell + start for cell, start in zip(cells, starts, strict=False)], axis=1)
    taken = np.zeros(len(places), dtype=bool)
    taken[chosen] = True
    wanted = len(chosen) * np.concatenate(targets)
    weight = 1.0 / np.sqrt(np.maximum(wanted, 1.0))
    gap = np.bincount(places[taken].ravel(), minlength=len(wanted)) - wanted
    count = float(max(len(chosen) // 50, 1))
    for _ in range(_ROUNDS):
        score = (weight * gap)[places].sum(axis=1)
        half = rng.random(len(taken)) < 0.5
        inside, outside = np.flatnonzero(taken & half), np.flatnonzero(~taken & half)
        k = min(int(count), len(inside), len(outside))
        if k < 1:
            break
        out = inside[np.argpartition(-score[inside], k - 1)[:k]]
        into = outside[np.argpartition(score[outside], k - 1)[:k]]
        won, lost = (np.bincount(places[rows].ravel(), minlength=len(wanted)) for rows in (into, out))
        change = won - lost
        if (weight * (gap + change) ** 2).sum() < (weight * gap**2).sum():
            gap = gap + change
            taken[out], taken[into] = False, True
            count *= 1.2
        else:
            count /= 2
    return np.flatnonzero(taken)


def margin(grid: Grid, probabilities: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Label of each cell and probability of each label: of a number, at most 100 ranges of about equal mass.

    Records of a block are too few for more.
    """
    binning = make_binning(grid, probabilities, _RANGES, keep=not grid.ordered)
    return binning.labels, binning.probabilities


def _distance(cells: Cells, target: Shares, shares: Shares | None, size: int) -> float:
    """Total variation distance from a marginal of ``size`` records, all or taken with probabilities."""
    return 0.5 * float(np.abs(np.bincount(cells, shares, len(target)) / size - target).sum())
