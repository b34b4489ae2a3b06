"""The noisy statistics of a pre-specified regression: scores, information and life tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.privacy.noise import STEP, in_steps
from dpsynth.privacy.records import Records
from dpsynth.privacy.release import Adaptive, Array, GaussianRelease, Given, Ints
from dpsynth.studies.estimation import ENDS, StudyDesign
from dpsynth.studies.model import EffectsModel, column_values
from dpsynth.table.coded import CodedTable
from dpsynth.table.schema import Schema

# ------------------------------------------------------------------------------------------------
# Private statistics of a pre-specified regression: bounded scores, and their information.
#
# The gradient of a log likelihood is a sum over records, and so is its information. This is our own
# technique with a critic of one neuron. Adjacency is add/remove one record. At a point beta a record's
# gradient is ``g = sum_j r_j x_j`` (`dpsynth.studies.estimation`). It is whitened by a matrix A made from
# synthetic samples. Spherical noise is then in every direction in proportion to the records' information
# there. It is weighted by
#
#     w(x) = min(1, C / reach(x)),   reach(x) = max over every outcome of |A g|.
#
# The weight depends on the predictors alone. The sum therefore stays unbiased where the model holds, and
# ``|w A g| <= C`` for any outcome. The information ``w A sum_j v_j x_j x_j' A`` is scaled down to Frobenius
# norm K. Both are divided by their bounds: the sensitivity is 1.
#
# A patient with several rows adds the mean over the rows. The mean of vectors of norm C at most has norm C
# at most. So the sensitivity under adding or removing one patient is that of one row. The sum is the
# estimating equation of Williamson, Datta and Satten (2003), "Marginal analyses of clustered data when
# cluster size is informative", Biometrics 59.

Floats = NDArray[np.float64]

#: Records whose informations are held at once.
_BLOCK = 1000


@dataclass(frozen=True, eq=False)
class ScorePoint:
    """Point and bounds of a score, made of noisy statistics.

    ``whitening``, shape (d, d): A, symmetric.
    ``bound``: C, on a record's whitened and weighted score.
    ``cap``: K, on the Frobenius norm of its information.
    """

    design: StudyDesign
    beta: Floats
    whitening: Floats
    bound: float = np.inf
    cap: float = np.inf

    def rows(self, x: Floats) -> tuple[Floats, Floats]:
        """Whitened rows (k, J, d), and linear predictors (k, J)."""
        rows = self.design.rows(x)
        return rows @ self.whitening, rows @ self.beta

    def reach(self, x: Floats) -> Floats:
        """How far a record's whitened score can lie from 0, whatever its outcome, shape (k,)."""
        rows, eta = self.rows(x)
        extremes = self.design.family.extremes(eta)
        # |sum_j r_j z_j|^2 = r' (z z') r
        squares = np.einsum("koi,kij,koj->ko", extremes, _gram(rows), extremes, optimize=True)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0).max(axis=1)))

    def weights(self, x: Floats, reach: Floats | None = None) -> Floats:
        """``min(1, C / reach)``, shape (k,), and 0 for a record whose reach is no number.

        ``reach`` is that of ``x``, if it is known already.
        """
        reach = self.reach(x) if reach is None else reach
        with np.errstate(divide="ignore"):
            return np.where(np.isfinite(reach), np.minimum(1.0, self.bound / reach), 0.0)

    def scores(self, x: Floats, y: Floats) -> Floats:
        """Each record's weighted whitened score, shape (k, d): of norm C at most."""
        rows, eta = self.rows(x)
        gradients = np.einsum("kj,kjd->kd", self.design.family.residuals(eta, y), rows)
        return _finite(gradients * self.weights(x)[:, None])

    def curvatures(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Whitened rows (k, J, d), and each one's information (k, J), at most K for a record."""
        rows, eta = self.rows(x)
        curvature = self.weights(x)[:, None] * self.design.family.curvature(eta, y)
        norms = _norms(rows, curvature)
        kept = np.isfinite(norms)
        capped = curvature / np.maximum(norms / self.cap, 1.0)[:, None]
        return np.where(kept[:, None, None], rows, 0.0), np.where(kept[:, None], capped, 0.0)

    def information(self, x: Floats, y: Floats, weight: Floats | None = None) -> Floats:
        """Sum of the records' whitened informations, weighted and capped, shape (d, d).

        ``weight``, shape (k,): of each row, 1 by default.
        """
        rows, curvature = self.curvatures(x, y)
        curvature = curvature if weight is None else curvature * weight[:, None]
        flat = rows.reshape(-1, self.design.size)
        return np.asarray((flat * curvature.reshape(-1, 1)).T @ flat)

    def norms(self, x: Floats, y: Floats) -> Floats:
        """Frobenius norms of the records' informations, shape (k,)."""
        return _norms(*self.curvatures(x, y))

    def total_score(self, table: CodedTable) -> list[Ints]:
        """Sum of the records' scores over C, shape (d,), in steps."""
        with np.errstate(all="ignore"):  # of what overflows, which counts for nothing
            x, y, weight = self.design.weighted(table.frame)
            return [in_steps(self.scores(x, y) * (weight[:, None] / self.bound)).sum(axis=0)]

    def total_information(self, table: CodedTable) -> list[Ints]:
        """Sum of their informations over K, as a vector of the same norm, in steps.

        Shape (d (d + 1) / 2,).
        """
        with np.errstate(all="ignore"):
            x, y, weight = self.design.weighted(table.frame)
            rows, curvature = self.curvatures(x, y)
        total = np.zeros(self.design.size * (self.design.size + 1) // 2, np.int64)
        for start in range(0, len(x), _BLOCK):
            part = slice(start, start + _BLOCK)
            weighted = rows[part] * (curvature[part] * weight[part, None])[:, :, None]
            own = triangle(np.einsum("kjd,kje->kde", weighted, rows[part]))
            total += in_steps(own / self.cap).sum(axis=0)
        return [total]


def _gram(rows: Floats) -> Floats:
    return np.asarray(rows @ rows.transpose(0, 2, 1))


def _norms(rows: Floats, curvature: Floats) -> Floats:
    # |sum_j v_j z_j z_j'|^2 = v' (z z')^2 v, entry by entry
    squares = np.einsum("ki,kij,kj->k", curvature, _gram(rows) ** 2, curvature, optimize=True)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def _finite(contributions: Floats) -> Floats:
    """A record that overflows contributes nothing: one NaN in a sum would reveal it."""
    whole = np.isfinite(contributions).all(axis=1)
    return np.where(whole[:, None], contributions, 0.0)


def triangle(matrix: Floats) -> Floats:
    """Symmetric matrices (..., d, d) as vectors of the same norm, shape (..., d (d + 1) / 2)."""
    rows, columns = np.triu_indices(matrix.shape[-1])
    return np.asarray(matrix[..., rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0)))


def symmetric(vector: Floats) -> Floats:
    """Inverse of `triangle`."""
    size = int((np.sqrt(8 * len(vector) + 1) - 1) / 2)
    rows, columns = np.triu_indices(size)
    matrix = np.zeros((size, size))
    matrix[rows, columns] = matrix[columns, rows] = vector / np.where(rows == columns, 1.0, np.sqrt(2.0))
    return matrix


@dataclass(frozen=True, kw_only=True)
class StudyRelease(Adaptive[Given], GaussianRelease[Array], Generic[Given]):
    """A sum over the records of a pre-specified regression, one contribution of length 1 each."""

    study: str
    kind: ClassVar[str]
    #: What is bounded and how, in words.
    bounded: ClassVar[str]
    l2_sensitivity = 1.0

    #: Value of 1 in the sum.
    step: ClassVar[float] = STEP

    @property
    def steps(self) -> Iterable[float]:
        """Step of the sum."""
        return [self.step]

    @property
    def name(self) -> str:
        """The kind of sum, and its study."""
        return f"{self.kind} of study {self.study}"

    @property
    def sensitivity(self) -> str:
        """In words, for the ledger."""
        given = self.read_with
        several = isinstance(given, ScorePoint) and given.design.patients is not None
        of = "one patient with all rows: the mean of each row's" if several else "a {record}'s"
        return f"1 ({of} {self.bounded})"


@dataclass(frozen=True, kw_only=True)
class ScoreRelease(StudyRelease[ScorePoint]):
    """The whitened score of a regression at a point, shape (d,)."""

    kind = "score"
    bounded = "whitened score, weighted by its predictors, over its bound"

    def query(self, records: Records) -> list[Ints]:
        """The exact sum."""
        return records.sums(self.given.total_score, self.given.design.inputs)

    def finish(self, noisy: Sequence[Array]) -> Array:
        """The noisy sum, times its bound: the whitened score."""
        return noisy[0] * self.given.bound


@dataclass(frozen=True, kw_only=True)
class InformationRelease(StudyRelease[ScorePoint]):
    """The information of a regression at a point, shape (d, d)."""

    kind = "information"
    bounded = "whitened information, scaled down to Frobenius norm 1"

    def query(self, records: Records) -> list[Ints]:
        """The exact sum, as a vector of the same norm."""
        return records.sums(self.given.total_information, self.given.design.inputs)

    def finish(self, noisy: Sequence[Array]) -> Array:
        """The noisy sum as a symmetric matrix, times its cap: the whitened information, capped."""
        return symmetric(noisy[0]) * self.given.cap


# ------------------------------------------------------------------------------------------------
# How many records of a survival study ended in each interval of time, and how.
#
# A record lies in exactly one cell. Each interval of time has three: ended by the event, last seen within
# the interval, and last seen at its very end. One more cell holds records outside the study's subgroup, or
# with unknown time or event. The L2 sensitivity is 1 under add/remove one record.
# `dpsynth.studies.estimation` makes a survival curve of it.

#: intervals of time, about; the declared ones come on top
INTERVALS = 20


@dataclass(frozen=True, eq=False)
class LifeTable:
    """Columns and intervals of time to count, public or made of noisy statistics.

    ``model``: with the columns of the times and the event, the last of its two categories.
    ``boundaries``, shape (J,): ends of the intervals, each with its end. The last is the duration's upper
        bound.
    """

    schema: Schema
    model: EffectsModel
    boundaries: Floats

    @classmethod
    def of(
        cls,
        schema: Schema,
        model: EffectsModel,
        draws: pd.DataFrame,
        intervals: Sequence[float] | None = None,
    ) -> LifeTable:
        """Intervals with about equally many of the samples' times, which include the declared ends."""
        duration = str(model.duration)
        times = column_values(schema, duration, draws[model.included(draws, schema)])
        known = times[np.isfinite(times)]
        parts = np.arange(1, INTERVALS) / INTERVALS
        # values of the draws, so that an interval of whole days ends on a day
        quantiles = np.quantile(known, parts, method="inverted_cdf") if len(known) else np.empty(0)
        last = float(schema.column(duration).upper or 1.0)
        ends = np.unique([*quantiles, *(intervals or ())])
        return cls(schema, model, np.r_[ends[(ends > 0) & (ends < last)], last])

    def counts(self, table: CodedTable) -> list[Ints]:
        """Records in each cell, shape (3 J + 1,)."""
        frame = table.frame
        times = column_values(self.schema, str(self.model.duration), frame)
        events = column_values(self.schema, self.model.outcome, frame)
        size = len(self.boundaries)
        beyond = times > self.boundaries[-1]
        interval = np.minimum(np.searchsorted(self.boundaries, times), size - 1)
        at_end = np.where(beyond | (times == self.boundaries[interval]), 2, 1)
        cell = ENDS * interval + np.where((events > 0) & ~beyond, 0, at_end)
        known = ~np.isnan(times) & ~np.isnan(events) & self.model.included(frame, self.schema)
        cell = np.where(known, cell, ENDS * size)
        return [np.bincount(cell, minlength=ENDS * size + 1)]


@dataclass(frozen=True, kw_only=True)
class LifeTableRelease(StudyRelease[LifeTable]):
    """Counts of a survival study's records by interval and end, shape (3 J + 1,)."""

    kind = "life table"
    sensitivity = "1 (a {record} lies in one cell)"
    step = 1.0

    def query(self, records: Records) -> list[Ints]:
        """The exact counts."""
        return records.sums(self.given.counts, self.given.model.inputs(self.given.schema))

    def finish(self, noisy: Sequence[Array]) -> Array:
        """The noisy counts."""
        return noisy[0]
