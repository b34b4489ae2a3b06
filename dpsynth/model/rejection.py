"""Records that obey rules: drawn, refused and weighted. Post-processing, free of cost.

Candidates come from the model as it samples anyway. Those that break a constraint are refused, which leaves
the model's distribution given the constraints but moves the single-column counts. So some more are drawn
than are wanted. Raking (iterative proportional fitting, Deming and Stephan 1940) gives probabilities of
choice that restore the released marginals. Among all distributions that obey the constraints and have these
marginals, the result is nearest to that of the candidates in Kullback-Leibler divergence (Csiszar 1975). If
constraints hold in the real table its marginals allow them, and so, up to noise, do the released ones.
Exchanges then take the sampling noise out of the chosen records' marginals. Every record is one of the
candidates: none is repaired, and none is chosen twice.

Raking may want some records more than once. More candidates are drawn if these are many. They are not if they
would bring the marginals nearer by less than the noise of the counts.

A condition of conditional sampling refuses as well, but no marginal is restored: the distribution is the one
above, given the condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import RejectionError
from dpsynth.model.postprocess import exact_counts
from dpsynth.releases.bins import make_binning
from dpsynth.table.encoder import Encoder
from dpsynth.table.expressions import Expression
from dpsynth.table.grid import Grid
from dpsynth.table.values import numbers_of

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

    def lines(self) -> list[str]:
        """The same in words."""
        words = [f"{rate:.2%} of the model's records obey {text}" for text, rate in self.rates.items()]
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
    pool: list[pd.DataFrame] = []
    drawn = held = 0
    targeted = encoder is not None and encoder.marginals is not None
    wanted, spare = size, _SPARE if targeted else 1.0
    while True:
        while held < wanted:
            rate = max(held, 1) / max(drawn, 1) if drawn else 1.0
            frame = make(int(np.clip((spare * wanted - held) / rate, *at_once)))
            kept = _obey(frame, rules, record)
            drawn, held = drawn + len(frame), held + int(kept.sum())
            pool.append(frame[kept])
            _refuse_rare(record, record.obey_all, record.candidates, _rarest(record))
        frame = pd.concat(pool, ignore_index=True)
        if encoder is None or encoder.marginals is None:
            return frame.iloc[rng.permutation(len(frame))[:size]].reset_index(drop=True)
        margins = list(map(margin, encoder.grids, encoder.marginals.probabilities))
        cells = [
            labels[grid.encode(frame[grid.column.name])]
            for grid, (labels, _) in zip(encoder.grids, margins, strict=True)
        ]
        targets = [target for _, target in margins]
        even = np.full(held, size / held)
        free, least = _raked(even, cells, targets, size, capped=False)
        shares, gap = _raked(free, cells, targets, size, capped=True)
        # More candidates help where many would be taken twice, unless the noise of the counts hides it.
        twice = np.maximum(free - 1.0, 0.0).sum() / size
        if twice <= _TWICE or gap - least <= encoder.marginals.noise_share or held >= _POOL * size:
            break
        pool, wanted = [frame], min(int(1.25 * held), _POOL * size)
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
