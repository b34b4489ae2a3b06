"""An audit that uses synthetic tables only: planted canaries, and guesses about their coins.

A canary is a made-up record that comes into a training table by a coin. The auditor knows all other records
and fits the generator many times. He guesses each coin from the synthetic table alone: how often the canary's
values stand together in it, two columns at a time. Models of low-order cross-tabulations show a record there
or nowhere.

The result of such a test for a correct generator is unknown, so there is no pass mark. Only a bound above the
ledger's would be a verdict.

References
----------
Annamalai, Ganev, De Cristofaro (2024), "What do you want from theory alone? Experimenting with tight auditing
of differentially private synthetic data generation" (audits of generators from their tables); Steinke, Nasr,
Jagielski (2023) for the bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.attacks.attempt import COIN, NOTHING, Attempt, passing
from dpsynth.attacks.lower_bounds import epsilon_lower, right_guesses
from dpsynth.attacks.synthetic.shadow import FitSample, planted_rounds
from dpsynth.checks import whole
from dpsynth.evaluation.estimates import Estimate, share
from dpsynth.files.rounds import OnRound, silent
from dpsynth.table.grid import Grid
from dpsynth.table.patients import TableSchema
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]
#: Cells of a number whose schema does not say, and how far two ordered values that agree lie apart, as a part
#: of all cells.
_CELLS, _NEAR = 20, 0.05


@dataclass(frozen=True)
class BlackBox:
    """Result from tables alone, beside the ledger's bounds (None if nothing is proved). Confidential."""

    right: int
    guesses: int
    delta: float
    epsilon_lower: float
    epsilon: float | None
    accuracy: float | None
    fits: int
    canaries: int
    level: float = 0.95

    @property
    def contradicted(self) -> bool:
        """Whether more was found than is proved."""
        return bool(passing(self.attempts()))

    def attempts(self) -> tuple[Attempt, ...]:
        """Return accuracy and epsilon beside their bounds."""
        found = share(self.right, self.guesses, self.level)
        odds = [np.log(max(p, 0.5) / (1 - p)) if p < 1 else np.inf for p in (found.value, found.upper)]
        about = f"{self.fits} fits, {self.canaries} canaries each, seen through the table alone"
        closer = "more fits, or an auditor who sees the noisy numbers behind the table"
        name = "audit of the table, planted canaries"
        epsilon = Estimate(max(float(odds[0]), self.epsilon_lower), self.epsilon_lower, float(odds[1]))
        return (
            Attempt(name, "accuracy", found, self.accuracy, COIN, about, closer, self.level),
            Attempt(name, "epsilon", epsilon, self.epsilon, NOTHING, about, closer, self.level),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "internal": True}


def audit_table(
    fit_sample: FitSample,
    base: pd.DataFrame,
    schema: TableSchema,
    *,
    fits: int,
    canaries: int | pd.DataFrame = 1,
    delta: float,
    epsilon: float | None = None,
    accuracy: float | None = None,
    seed: int,
    level: float = 0.95,
    jobs: int = 1,
    folder: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    on_round: OnRound = silent,
) -> BlackBox:
    """Audit a generator from its tables.

    Parameters
    ----------
    fit_sample : callable
        ``fit_sample(frame, rng) -> frame``, picklable if there are several jobs.
    base : DataFrame of shape (n, columns)
        Records that every training table has, or rows of patients.
    schema : Schema or PatientSchema
        Columns of the records, or of the rows. A canary is then a patient with all rows.
    fits : int
        At least 2.
    canaries : int or DataFrame
        Number to draw, uniformly over the public values of each column, or the records themselves.
    delta : float
        At which epsilon is bounded.
    epsilon, accuracy : float, optional
        Proved bounds.
    seed : int
        For canaries, coins and fits.
    level : float
        Level of the bounds, in (0, 1).
    jobs, folder, settings, on_round
        See :func:`dpsynth.files.rounds.carry_out`.

    Raises
    ------
    InputError
        If a number is too small, or the folder holds rounds of other settings.
    RunError
        If a fit fails, naming it.

    Examples
    --------
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=0, upper=99),
    ...                          Column(name="sex", kind="binary", categories=("f", "m"))))
    >>> base = pd.DataFrame({"age": [50] * 20, "sex": ["f"] * 20})
    >>> odd = pd.DataFrame({"age": [3], "sex": ["m"]})
    >>> found = audit_table(lambda frame, rng: frame, base, schema, fits=20, canaries=odd, delta=0.0, seed=1)
    >>> found.guesses, found.right >= 16, found.epsilon_lower > 0.5  # half are guessed "in"
    (20, True, True)
    """
    whole("fits", fits, 2)
    coins, scores = planted_rounds(
        fit_sample, base, schema, standing_together, canaries, seed, [f"fit-{i:04d}" for i in range(fits)],
        folder=folder, settings=settings, jobs=jobs, on_round=on_round,
    )  # fmt: skip
    # canaries differ in how rare they are; their middle over the fits tells nothing of a coin by itself
    scores = scores - np.median(scores, axis=0)
    guesses, planted = scores.size, coins.shape[1]
    right = right_guesses(scores.ravel(), coins.ravel(), guesses)
    lower = epsilon_lower(guesses, guesses, right, delta, level)
    return BlackBox(right, guesses, delta, lower, epsilon, accuracy, fits, planted, level)


def standing_together(canaries: pd.DataFrame, table: pd.DataFrame, schema: Schema) -> Floats:
    """Mean log share of records that have two of a canary's values at once, over all pairs of columns.

    It is higher if a canary's values are found. A share is (count + 1/2) / (n + 1).
    """
    grids = [Grid.from_column(column, _CELLS, _CELLS) for column in schema.modelled.columns]
    codes = [grid.encode(table[grid.column.name]) for grid in grids]
    pairs = np.triu_indices(len(grids), k=1 if len(grids) > 1 else 0)
    scores = []
    for record in zip(*(grid.encode(canaries[grid.column.name]) for grid in grids), strict=True):
        agree = np.stack(list(map(_agrees, grids, codes, record)), axis=1)
        together = agree.astype(np.float64).T @ agree
        scores.append(np.log((together[pairs] + 0.5) / (len(table) + 1.0)).mean())
    return np.array(scores)


def _agrees(grid: Grid, codes: NDArray[np.int64], own: int) -> NDArray[np.bool_]:
    if not grid.ordered or own >= grid.present:
        return codes == own
    return (np.abs(codes - own) <= _NEAR * grid.present) & (codes < grid.present)
