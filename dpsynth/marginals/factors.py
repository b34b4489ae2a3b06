"""From noisy tables to the factors of a base model: post-processing, free of privacy cost.

Tables are made non-negative (norm-sub) and fitted to the released single-column counts. For a table of the
outcome and two columns, two-way tables with the outcome are more precise. They come from tables of their own
and from sums of all that hold the column, weighted by their precision. The three-way table then adds only how
the two columns depend on each other, which is nearly the same in each class. Most of its content beyond the
two-way tables is noise (Bishop, Fienberg and Holland 1975, "Discrete multivariate analysis", section 3.5:
without three-factor interaction). It is kept by the positive-part rule of James and Stein (1961). This is the
part of its sum of squares beyond that of noise and of sampled independent columns. The rule is rough. Noise
of the two-way tables adds up to half as much again if the outcome is rare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize

from dpsynth.marginals.binning import Binning, Bins
from dpsynth.marginals.density import fit_margins, norm_sub
from dpsynth.marginals.statistics import OUTCOME_SHARE, Family
from dpsynth.table.draws import draw_conditional

Array = NDArray[np.float64]
#: Parent columns, child column and the table of counts whose axes are the parents' bins and then the child's.
Factor = tuple[tuple[int, ...], int, Array]

#: Before it is fitted every cell of a table keeps this fraction of an even share, so that fits and draws stay
#: defined.
_LEAST_CELL = 1e-4


def fit_factors(
    families: Sequence[Family], counts: Mapping[Family, Array], bins: Bins, noise_std: float
) -> tuple[Factor, ...]:
    """The factors of a base model.

    ``counts``: noisy tables. With three-way ones also those of the root and each column alone, to which they
        are fitted.
    ``noise_std``: standard deviation of the noise in a cell of a three-way table.
    """
    pairs: dict[int, Array] = {}
    if any(len(family) > 2 for family in families):
        pairs = {
            child: _clean(_with_outcome(root, child, counts), (root, child), bins)
            for root, *_, child in families
        }

    def fitted(family: Family) -> Array:
        if not pairs:
            return _clean(counts[family], family, bins)
        if len(family) == 2:
            return pairs[family[1]]
        return _three_way(counts[family], family, pairs, bins, noise_std)

    return tuple((family[:-1], family[-1], fitted(family)) for family in families)


def _clean(noisy: Array, family: Sequence[int], bins: Bins) -> Array:
    """Project a noisy table on the simplex and fit it to the released single-column counts."""
    margins = [((axis,), bins.n * bins.binnings[j].probabilities) for axis, j in enumerate(family)]
    return fit_margins(_projected(noisy, bins.n), margins)


def _projected(noisy: Array, n: float) -> Array:
    table = norm_sub(noisy.ravel(), n).reshape(noisy.shape)
    return np.maximum(table, _LEAST_CELL * n / table.size)


def _with_outcome(root: int, column: int, counts: Mapping[Family, Array]) -> Array:
    """Noisy counts of the root and one column, from all tables that hold both."""
    precision = OUTCOME_SHARE
    total = precision * counts[root, column]
    for family, table in counts.items():
        if len(family) > 2 and column in family[1:]:
            third = 3 - family.index(column)
            total = total + table.sum(axis=third) / table.shape[third]
            precision += 1.0 / table.shape[third]
    return total / precision


def _three_way(
    noisy: Array, family: Family, pairs: Mapping[int, Array], bins: Bins, noise_std: float
) -> Array:
    """A table of the root and two columns, which keeps the two-way tables of the root."""
    with_root = [((0, 1), pairs[family[1]]), ((0, 2), pairs[family[2]])]
    together = _clean(noisy.sum(axis=0), family[1:], bins)
    without = fit_margins(np.ones_like(noisy), [*with_root, ((1, 2), together)])
    gap = noisy - without
    beyond = gap
    for axis in range(3):
        beyond = beyond - beyond.mean(axis=axis, keepdims=True)
    # one bin holds everything, and rounding may make its probability more than 1
    spread = [max(1.0 - float((bins.binnings[j].probabilities ** 2).sum()), 0.0) for j in family]
    sampled = bins.n * np.prod(spread)
    expected = np.prod([size - 1 for size in noisy.shape]) * noise_std**2 + sampled
    square = float((beyond**2).sum())
    believed = 1.0 - expected / square if square > expected else 0.0
    return fit_margins(_projected(without + believed * gap, bins.n), with_root)


# ------------------------------------------------------------------------------------------------
# A tree of tables whose records have a released number of missing values.
#
# Laboratory panels are taken or not taken as a whole. The tables of a base model tie a column's missing
# values to those of one other column only. Ten missing values in one record are then nearly impossible.
# Their number has a released distribution, from a histogram in whose cells each record lies once. Each
# column has its own share of missing values. With these, the distribution nearest to that of the tables, p,
# is
#
#     q(x)  ~  p(x) g(k(x)) product over missing columns of v_j,
#
# with k the number of missing values (Csiszar 1975, "I-divergence geometry"). The class is the bin of the
# root, if it is a parent of all. Given the class the tables are a forest, on which k is a sum over branches.
# Messages up the tree hold its distribution. Sampling goes down. For each column it first draws how many
# values its branch lacks, and then its bin. This is exact. Weights for samples of p would be useless if no
# sample lacks ten. The factors are the minimum of a convex function, whose gradient the same messages give.
#
# The tables' probabilities of each missing value multiply over ten of them, and so do their errors, though
# the panel is one event. All who lack it would be of one sex and dead. So a number of missing values is
# *loose* if the distribution has it more than ten times as often as the tables. In such records, missing
# values depend on nothing else. Post-processing, free of cost.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Most steps of the fit, and how near each share comes, in standard deviations of one record.
_STEPS, _NEAR = 200, 1e-4
#: Least probability of a bin given others.
_LEAST = 1e-12
#: A column's factor, either way.
_LARGEST = 1e6
#: Numbers of missing values of less probability are none that the tables reach.
_NOTHING = 1e-290
#: What the distribution counts for where it is 0, on the way between numbers that it has.
_SELDOM = 1e-6
#: A distribution's number of missing values is loose from so many times the tables' own on.
_FAR = 10.0
#: The parent of what has no other parent than the class.
_TOP = -1


class CountedTree:
    """The distribution q above, and one of records with loose missing values, fitted when it is made.

    ``first``, shape (root's bins,): its probabilities.
    ``factors``: in the order of drawing. With two parents the root is the first of them, in all tables but
        those whose only parent it is.
    ``panel``: columns whose missing values are counted, and the bin of these.
    ``law``, shape (panel + 1,): probabilities of 0, 1, ... of them.
    ``shares``, shape (panel,): probability of each to be missing. If ``law`` and ``shares`` contradict each
        other, ``law`` holds. The factors then stay within a million of each other, and the fit ends after 200
        steps at the latest.

    ``loose``, shape (panel + 1,): numbers of missing values that are far more frequent than the tables have
        them.
    ``columns``: v_j, whose geometric mean is 1.

    Notes
    -----
    Nothing is raised. Numbers of missing values that the tables have with a probability below 1e-290 are
    left out, and the others are as much more frequent.
    """

    def __init__(
        self,
        root: int,
        first: Floats,
        factors: Sequence[Factor],
        panel: Mapping[int, int],
        law: Floats,
        shares: Floats,
    ) -> None:
        self.law, self.columns = law, dict.fromkeys(panel, 1.0)
        wanted = dict(zip(panel, np.clip(shares, 1e-9, 1 - 1e-9), strict=True))
        tables = _Forest(root, first, factors, panel)
        tables.up(law, self.columns)
        self.loose = np.log(np.maximum(law, _NOTHING)) > np.log(_FAR) + tables.log_total
        self.parts = [tables]
        if self.loose.any():
            independent = [
                (parents, j, _independent(table, panel[j], wanted[j]) if j in panel else table)
                for parents, j, table in factors
            ]
            self.parts.append(_Forest(root, first, independent, panel))
        self._fit(wanted)

    def _fit(self, wanted: Mapping[int, float]) -> None:
        """Minimise the sum of ``law(k) log(weight of k under v)`` less that of ``shares log v``, over log v.

        The gradient is how much more often than wanted each column is missing. A factor that all v have in
        common is g's, so only their differences are fitted.
        """
        shares = np.array(list(wanted.values()))
        scale = np.sqrt(shares * (1 - shares))

        def dual(scaled: Floats) -> tuple[float, Floats]:
            log = scaled / scale
            log -= log.mean()
            self.columns = dict(zip(wanted, np.exp(log).tolist(), strict=True))
            self._up()
            have = [part.shares() for part in self.parts]
            gap = np.array([sum(of[j] for of in have) for j in wanted]) - shares
            value = sum(part.log_weight for part in self.parts) - shares @ log
            return float(value), (gap - gap.mean()) / scale

        far = [(-bound, bound) for bound in np.log(_LARGEST) * scale]
        options = {"maxiter": _STEPS, "gtol": _NEAR, "ftol": 0.0}
        found = minimize(
            dual, np.zeros(len(shares)), jac=True, bounds=far, method="L-BFGS-B", options=options
        )
        dual(found.x)

    def _up(self) -> None:
        for part, own in zip(self.parts, (~self.loose, self.loose), strict=False):
            part.up(np.where(own, self.law, 0.0), self.columns)

    @property
    def log_number(self) -> Floats:
        """Values of log g for sweeps, which can pass through numbers of probability 0, shape (panel + 1,)."""
        log_total = self.parts[0].log_total
        seldom = np.log(np.maximum(np.where(self.loose, 0.0, self.law), _SELDOM))
        return np.where(np.isfinite(log_total), seldom - log_total, np.log(_SELDOM))

    def draw(self, n: int, rng: np.random.Generator) -> Ints:
        """Bins of n records, shape (n, columns)."""
        if len(self.parts) == 1:
            return self.parts[0].draw(n, rng)
        mass = np.array([[part.joint.sum() for part in self.parts]])
        sizes = np.bincount(draw_conditional(mass, np.zeros(n, dtype=np.int64), rng), minlength=2)
        drawn = [part.draw(size, rng) for part, size in zip(self.parts, sizes, strict=True)]
        return np.asfortranarray(np.vstack(drawn)[rng.permutation(n)])


class _Forest:
    """Tables, and messages on them for one distribution of the number of missing values."""

    def __init__(self, root: int, first: Floats, factors: Sequence[Factor], panel: Mapping[int, int]) -> None:
        self.panel, self.width = panel, 1 + len(factors)
        own = conditional(first)[None, None]
        #: root of the classes, or None where there is one class and the root a column like others
        self.root = root if any(len(parents) > 1 for parents, _, _ in factors) else None
        self.classes = own[0, 0] if self.root is not None else np.ones(1)
        #: missing values of each class
        self.lacking = np.zeros(len(self.classes), dtype=np.int64)
        if self.root in panel:
            self.lacking[panel[root]] = 1
        #: of each column, in the order of drawing, parent and distribution: (classes, parent's bins, bins)
        self.given: dict[int, tuple[int, Floats]] = {} if self.root is not None else {root: (_TOP, own)}
        for parents, child, table in factors:
            law = conditional(table)
            if self.root is None:
                self.given[child] = parents[0], law[None]
            else:
                single = len(parents) == 1
                self.given[child] = (_TOP, law[:, None]) if single else (parents[1], law)
        self.branches: dict[int, list[int]] = {_TOP: [], **{column: [] for column in self.given}}
        for column, (parent, _) in self.given.items():
            self.branches[parent].append(column)

    def up(self, law: Floats, columns: Mapping[int, float]) -> None:
        """Messages: for every column the weight of each number of missing values in its branch.

        ``lots``, shapes (classes, bins, numbers): given its own bin. ``messages``, shapes (classes, parent's
        bins, numbers): given its parent's. ``rests``: of what hangs below a column, of the first branch and
        all after it, of all after the first, and so on. Each column's are relative to the largest, so
        products of many columns stay within what numbers hold.
        """
        log_scale = 0.0
        self.lots: dict[int, Floats] = {}
        self.messages: dict[int, Floats] = {}
        self.rests: dict[int, list[Floats]] = {}
        for column in reversed(self.given):
            _, given = self.given[column]
            below = self._rests(column, given.shape[-1])
            if column in self.panel:
                lot = np.zeros((*below.shape[:2], below.shape[2] + 1))
                missing = self.panel[column]
                lot[:, :, :-1] = below
                lot[:, missing] = 0.0
                lot[:, missing, 1:] = below[:, missing] * columns[column]
            else:
                lot = below
            largest = lot.max() or 1.0
            log_scale, lot = log_scale + np.log(largest), lot / largest
            self.lots[column], self.messages[column] = lot, given @ lot
        #: weight of each class and number of missing values, shape (classes, panel + 1)
        self.joint = np.zeros((len(self.classes), len(law)))
        top = self._rests(_TOP, 1)[:, 0]
        for place, lacking in enumerate(self.lacking):
            factor = columns[self.root] if lacking else 1.0  # type: ignore[index]
            self.joint[place, lacking : lacking + top.shape[1]] = self.classes[place] * factor * top[place]
        total = self.joint.sum(axis=0)
        reached = total > _NOTHING
        #: logarithm of the weight of each number of missing values, before the law, shape (panel + 1,)
        self.log_total = np.where(reached, np.log(np.maximum(total, _NOTHING)) + log_scale, -np.inf)
        #: its mean under the distribution
        self.log_weight = float(law[reached] @ self.log_total[reached])
        self.joint = self.joint * np.divide(law, total, out=np.zeros_like(total), where=reached)

    def _rests(self, column: int, bins: int) -> Floats:
        rests = [np.ones((len(self.classes), bins, 1))]
        for branch in reversed(self.branches[column]):
            rests.append(_added(self.messages[branch], rests[-1]))
        self.rests[column] = rests[::-1]
        return rests[-1]

    def shares(self) -> dict[int, float]:
        """How much of the distribution lacks each column of the panel: probabilities go down the tree."""
        shares: dict[int, float] = {}
        most = self.rests[_TOP][0].shape[2]
        at_top = np.stack(
            [row[lacks : lacks + most] for row, lacks in zip(self.joint, self.lacking, strict=True)]
        )
        if self.root is not None and self.root in self.panel:
            shares[self.root] = float(self.joint[self.panel[self.root]].sum())
        given_parent: dict[int, Floats] = {}

        def share_out(column: int, mass: Floats) -> None:
            for branch, both, rest in zip(
                self.branches[column], self.rests[column], self.rests[column][1:], strict=False
            ):
                message = self.messages[branch]
                ratio = np.divide(mass, both, out=np.zeros_like(mass), where=both > 0)
                taken, mass = np.zeros_like(message), np.zeros_like(rest)
                for k in range(message.shape[2]):
                    part = ratio[:, :, k : k + rest.shape[2]]
                    taken[:, :, k] = message[:, :, k] * (part * rest).sum(axis=2)
                    mass += message[:, :, k : k + 1] * part * rest
                given_parent[branch] = taken

        share_out(_TOP, at_top[:, None])
        for column, (_, law) in self.given.items():
            message = self.messages[column]
            ratio = np.divide(
                given_parent.pop(column), message, out=np.zeros_like(message), where=message > 0
            )
            mass = np.swapaxes(law, 1, 2) @ ratio * self.lots[column]
            if column in self.panel:
                missing = self.panel[column]
                shares[column] = float(mass[:, missing].sum())
                below = mass[:, :, :-1].copy()
                below[:, missing] = mass[:, missing, 1:]
                mass = below
            share_out(column, mass)
        return shares

    def draw(self, n: int, rng: np.random.Generator) -> Ints:
        """Bins of n records, shape (n, columns)."""
        bins = np.zeros((n, self.width), dtype=np.int64, order="F")
        everyone = np.zeros(n, dtype=np.int64)
        cell = draw_conditional(self.joint.T.reshape(1, -1), everyone, rng)
        left, classes = np.divmod(cell, len(self.classes))
        numbers: dict[int, Ints] = {}

        def share_out(column: int, at: Ints, left: Ints) -> None:
            """How many of the missing values below a column fall to each of its branches."""
            for branch, rest in zip(self.branches[column], self.rests[column][1:], strict=False):
                message = self.messages[branch]
                if message.shape[2] == 1:  # no column of the panel is in it
                    numbers[branch] = everyone
                    continue
                sizes = (*message.shape[:2], message.shape[2] + rest.shape[2] - 1)
                (c, q, k), group = _groups((classes, at, left), sizes)
                others = k[:, None] - np.arange(message.shape[2])
                fits = (others >= 0) & (others < rest.shape[2])
                of_others = rest[c[:, None], q[:, None], np.where(fits, others, 0)]
                numbers[branch] = draw_conditional(message[c, q] * of_others * fits, group, rng)
                left = left - numbers[branch]

        if self.root is not None:
            bins[:, self.root] = classes
        share_out(_TOP, everyone, left - self.lacking[classes])
        for column, (parent, law) in self.given.items():
            at = everyone if parent == _TOP else bins[:, parent]
            number, lot = numbers.pop(column), self.lots[column]
            (c, q, k), group = _groups((classes, at, number), (*law.shape[:2], lot.shape[2]))
            bins[:, column] = draw_conditional(law[c, q] * lot[c, :, k], group, rng)
            if column in self.panel:
                number = number - (bins[:, column] == self.panel[column])
            share_out(column, bins[:, column], number)
        return bins


def conditional(table: Floats) -> Floats:
    """Distribution of a table's last axis given the others, uniform where the table is empty."""
    total = table.sum(axis=-1, keepdims=True)
    even = np.full(table.shape, 1.0 / table.shape[-1])
    return np.maximum(np.divide(table, total, out=even, where=total > 0), _LEAST)


def _independent(table: Floats, missing: int, share: float) -> Floats:
    """A table whose child is missing as often whatever its parents are."""
    law = conditional(table)
    law[..., missing] = 0.0
    law *= (1 - share) / np.maximum(law.sum(axis=-1, keepdims=True), _LEAST)
    law[..., missing] = share
    return law


def _added(a: Floats, b: Floats) -> Floats:
    """Distribution of a sum of two independent numbers, along the last axis."""
    out = np.zeros((*a.shape[:-1], a.shape[-1] + b.shape[-1] - 1))
    for k in range(a.shape[-1]):
        out[..., k : k + b.shape[-1]] += a[..., k : k + 1] * b
    return out


def _groups(keys: tuple[Ints, ...], sizes: tuple[int, ...]) -> tuple[tuple[Ints, ...], Ints]:
    """Keys of groups of records, one entry a group, and the group of each record."""
    cell = np.ravel_multi_index(keys, sizes)
    if np.prod(sizes) <= len(cell):
        return np.unravel_index(np.arange(np.prod(sizes)), sizes), cell
    cells, group = np.unique(cell, return_inverse=True)
    return np.unravel_index(cells, sizes), group.reshape(-1)


def lacking_bins(binnings: Sequence[Binning]) -> Ints:
    """The bin of each column's last cell, which is that of missing values where there are any.

    It is not always the last bin: rare categories share one that comes after it.

    Examples
    --------
    >>> lacking_bins([Binning(np.array([0, 2, 1]), np.array([0.9, 0.08, 0.02]))])
    array([1])
    """
    return np.array([binning.labels[-1] for binning in binnings])


def missing_values(draws: Ints, panel: Sequence[int], last: Ints) -> Ints:
    """Number of missing values of each record among the panel's columns, shape (n,).

    ``draws``, shape (n, columns): Bins.
    ``last``, shape (columns,): bin of each column's last cell, which is that of missing values in the
        panel's.
    """
    columns = list(panel)
    return np.asarray((draws[:, columns] == last[columns]).sum(axis=1))


def with_mean(law: Floats, mean: float) -> Floats:
    """The distribution of a number 0, 1, ... that has this mean and is nearest to another one, in squares.

    A noisy distribution's mean adds up the noise of its cells times their number. The columns' shares give a
    more precise mean of a panel's missing values. Numbers that the distribution does not have stay without
    probability, unless the mean lies outside of those that it has.

    ``law``, shape (numbers,): not negative, with sum 1.
    ``mean``: brought within the numbers.

    Examples
    --------
    >>> with_mean(np.array([0.5, 0.0, 0.1, 0.4]), 1.2).round(3)
    array([0.571, 0.   , 0.086, 0.343])
    >>> with_mean(np.array([0.97, 0.03, 0.0]), 0.0)
    array([1., 0., 0.])
    """
    numbers = np.flatnonzero(law)
    if not numbers[0] <= mean <= numbers[-1]:
        numbers = np.arange(len(law))
    mean = min(max(mean, numbers[0]), numbers[-1])
    near = np.zeros_like(law)
    if len(numbers) == 1:
        near[numbers] = 1.0
        return near

    def reweighted(slope: float) -> Floats:
        """The nearest distribution of those with its own mean: a straight line is added, and cut at zero."""
        return norm_sub(law[numbers] + slope * numbers, 1.0)

    # from a slope of 2 on, either way, the first or the last number takes all
    slope = brentq(lambda slope: float(reweighted(slope) @ numbers) - mean, -2.0, 2.0, xtol=1e-15)
    near[numbers] = reweighted(slope)
    return near
