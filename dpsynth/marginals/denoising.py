"""What a table with noise says beyond a model's expectation: post-processing, free of cost.

Departures from the expectation are taken to be in proportion to it, with one variance for the table, which is
estimated (empirical Bayes, Efron and Morris 1973). A row whose departures are more than noise has a variance
of its own: a rare category may differ where the others do not. A cell that stands out of all noise keeps
what is beyond the largest noise among so many cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.marginals.density import fit_margins
from dpsynth.marginals.growth import TableCells
from dpsynth.marginals.terms import DrawnColumns, TableTerm
from dpsynth.table.simplex import norm_sub

Array = NDArray[np.float64]

#: Relative variance of departures that is told from noise, at least.
_LEAST_SPREAD = 1e-4
#: A cell keeps at least this share of what is expected, and this number.
_LEAST_CELL, _LEAST_COUNT = 1e-3, 1e-9
#: Rows of so many cells and more are made to add up to what is expected, by the same number less in each.
_LONG = 5
#: A row is clear from so many deviations beyond the largest noise of its cells on. Noise may hide this share
#: of the records at most, and so many may be exceptions.
_CLEAR, _HIDDEN, _EXCEPTIONS = 2.0, 0.04, 0.06
#: Range of the effect of exceptions, and their least share.
_NEVER, _OFTEN, _LEAST_SHARE = -20.0, 2.0, 1e-9
#: Largest start of an effect.
_LARGEST = 9.0
#: Part of an effect's variance that holds it, and draws that stand for what is not known of it.
_HELD, _DRAWS = 0.3, 2.0


@dataclass(frozen=True, eq=False)
class GrownTable:
    """A table that was chosen, without most of its noise.

    ``law``, shape (cells of the parents, cells of the child): distribution of the child given the parents.
    ``start``, of the same shape: effects that lead there from the model against which it was chosen.
    ``ridge``, of the same shape: what departing from them costs.
    ``function``: what the table shows of one column as a function of the other, None if it is none.
    """

    cells: TableCells
    law: Array
    start: NDArray[np.float32]
    ridge: Array
    function: Function | None

    def term(self, effects: NDArray[np.float32]) -> TableTerm:
        """A term of the chain with these effects."""
        return self.cells.term(effects)

    def exceptions(self, rows: DrawnColumns, shares: NDArray[np.float32]) -> TableTerm:
        """A term that makes exceptions from the table's function as frequent as the counts prove.

        ``shares``, shape (states, n): probabilities of the column's states by all other terms, some of which
            hold noise where nothing can be.
        """
        assert self.function is not None  # the table is of one
        beside = ~self.function.cells.reshape(self.start.shape)
        table = self.term(beside.astype(np.float32))
        have = float((shares * table.logits(rows)).sum(axis=0, dtype=np.float64).mean())
        odds = [max(one, _LEAST_SHARE) / max(1.0 - one, _LEAST_SHARE) for one in (self.function.beside, have)]
        effect = float(np.clip(math.log(odds[0] / odds[1]), _NEVER, _OFTEN))
        return self.term(np.where(beside, effect, 0.0).astype(np.float32))

    @classmethod
    def of(
        cls, cells: TableCells, noisy: Array, expected: Array, noise_std: float, draws: int
    ) -> GrownTable | None:
        """The table, or None if it says no more than the model.

        ``noisy``, ``expected``, of the table's shape: counts, and what the model expects.
        ``draws``: those of the model, by which ``expected`` is rough.
        """
        expected = expected + _LEAST_COUNT
        found, spread = expected, 0.0
        for axis in range(len(cells.columns) - 1) if len(cells.columns) > 2 else ():
            # what the child has to do with one parent alone has less noise than the table
            kept = tuple(k for k in range(found.ndim) if k != axis)
            margin, wide = found.sum(axis=axis), noise_std * found.shape[axis] ** 0.5
            better, own = denoised(noisy.sum(axis=axis), margin, wide)
            if own:
                found = fit_margins(found, [(kept, np.maximum(better, _LEAST_CELL * margin))])
                spread = max(spread, own)
        found, own = denoised(noisy, found, noise_std)
        spread = max(spread, own)
        if not spread:
            return None
        found = np.maximum(found, _LEAST_CELL * expected)
        size = found.shape[-1]
        if size >= _LONG:
            found = np.maximum(norm_sub(found, expected.sum(axis=-1)), _LEAST_CELL * expected)
        function = Function.of(noisy, expected, noise_std) if found.ndim == 2 else None
        if function is not None:
            beside = np.where(function.cells, 0.0, found)
            found = np.where(function.cells, found, 0.0) + beside * (
                function.beside * expected.sum() / max(float(beside.sum()), _LEAST_COUNT)
            )
        found, expected = found.reshape(-1, size), expected.reshape(-1, size)
        law, before = (table / table.sum(axis=1, keepdims=True) for table in (found, expected))
        start = np.log((law + _LEAST_COUNT) / (before + _LEAST_COUNT)).clip(-_LARGEST, _LARGEST)
        n = expected.sum()
        noise = (noise_std / n / spread) ** 2 / np.maximum(expected / n, _LEAST_COUNT)
        ridge = _HELD * np.minimum(noise, 1.0) + _DRAWS / draws
        return cls(cells, law, start.astype(np.float32), ridge, function)


def denoised(noisy: Array, expected: Array, noise_std: float) -> tuple[Array, float]:
    """What is left of a table's departures after their noise, and their largest relative spread.

    The spread is 0 if nothing is told from noise, and the table is then what was expected.

    Examples
    --------
    >>> expected = np.full((4, 4), 100.0)
    >>> noisy = expected + 3.0 * np.resize([1.0, -1.0], (4, 4))
    >>> noisy[2, 1] = 160.0
    >>> found, spread = denoised(noisy, expected, 3.0)
    >>> found[2].round(1), round(spread, 2)
    (array([102.6, 152.8, 102.6,  97.4]), 0.28)
    """
    gap = noisy - expected
    noise = noise_std**2 + expected  # records are a sample, too
    variance = _variance(gap, expected, noise, None)
    for axis in range(gap.ndim):
        variance = np.maximum(variance, _variance(gap, expected, noise, axis))
    reach = 2.0 * math.log(max(gap.size, 2)) * noise
    beyond = np.maximum(1.0 - reach / np.maximum(gap**2, _LEAST_COUNT), 0.0) * gap
    if variance.max() <= _LEAST_SPREAD and not beyond.any():
        return expected, 0.0
    variance = np.maximum(variance, _LEAST_SPREAD)
    own = expected**2 * variance
    kept = own / (own + noise) * gap
    found = expected + np.where(np.abs(beyond) > np.abs(kept), beyond, kept)
    return found, float(np.sqrt(variance.max()))


@dataclass(frozen=True, eq=False)
class Function:
    """A pair of which one column is a function of the other, but for exceptions.

    ``cells``, of the table's shape: those that the function allows, and those of which nothing is known.
    ``beside``: share of the records in the others, as far as the counts prove it.
    """

    cells: NDArray[np.bool_]
    beside: float

    @classmethod
    def of(cls, noisy: Array, expected: Array, noise_std: float) -> Function | None:
        """The function in a pair's noisy counts, None if there is none.

        Cells beside the largest of each row hold few records, clearly fewer than the model expects, and
        noise could hide only a small part of the records there. Their sum is what exceptions there are: each
        alone is lost in noise. Rows that noise drowns count for nothing, and cells that stand out of it by
        themselves are no exceptions.

        >>> codes = np.array([[300.0, 2.0, -3.0], [4.0, 500.0, -2.0], [1.0, 400.0, 3.0]])
        >>> found = Function.of(codes, np.full((3, 3), 133.0), 3.0)
        >>> found.cells.astype(int), round(found.beside, 4)
        (array([[1, 0, 0],
               [0, 1, 0],
               [0, 1, 0]]), 0.0041)
        """
        for table, before in ((noisy, expected), (noisy.T, expected.T)):
            cells = table.shape[1]
            # from so many records on the largest cell is hardly another one by noise
            clear = before.sum(axis=1) > (_CLEAR + math.sqrt(2.0 * math.log(cells))) * noise_std
            stands = table > (_CLEAR + math.sqrt(2.0 * math.log(table.size))) * noise_std
            allowed = (np.arange(cells) == table.argmax(axis=1)[:, None]) | stands | ~clear[:, None]
            total = float(table[clear].sum())
            beside, model = (float(each[~allowed].sum()) for each in (table, before))
            hidden = 2.0 * noise_std * math.sqrt((~allowed).sum())
            most = max(beside, hidden)
            if hidden < _HIDDEN * total and beside < _EXCEPTIONS * total and model > 2.0 * most:
                found = max(beside, 0.0) / max(float(table.sum()), 1.0)
                return cls(allowed if table is noisy else allowed.T, found)
        return None


def _variance(gap: Array, expected: Array, noise: Array, axis: int | None) -> Array:
    """Relative variance of departures in the table, or of each row along an axis, 0 where it is noise."""
    others = tuple(k for k in range(gap.ndim) if k != axis)
    excess = (gap**2 - noise).sum(axis=others, keepdims=True)
    if axis is not None:
        # a sum of squares of noise has this deviation, and the largest of so many rows more
        reach = 1.0 + math.sqrt(2.0 * math.log(max(gap.shape[axis], 2)))
        excess = np.where(
            excess > reach * np.sqrt(2.0 * (noise**2).sum(axis=others, keepdims=True)), excess, 0.0
        )
    return np.maximum(excess, 0.0) / np.maximum((expected**2).sum(axis=others, keepdims=True), _LEAST_COUNT)
