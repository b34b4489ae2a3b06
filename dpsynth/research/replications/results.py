"""All trials of a study, and the numbers of its tables: medians over seeds, selections, costs.

Synthetic tables are those of one fit, or chosen among restarts, with their cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import median
from typing import Any

import pandas as pd

from dpsynth.files.text import shipped_yaml
from dpsynth.research.replications.arms import HEALTHGAN, REAL, Arm, composed
from dpsynth.research.replications.protocol import Protocol
from dpsynth.research.replications.trial import Draw, Trial, measure_names
from dpsynth.research.writing import NOT_KNOWN, Sheet, SheetCell
from dpsynth.table.schema import Schema

#: beside everything that HealthGAN made
NOT_PRIVATE = "NOT PRIVATE"
#: of a synthetic table
RATE = "positive_rate_synthetic"


@dataclass(frozen=True, eq=False)
class Results:
    """A study that was run: all trials that are complete, of splits and of resamples.

    ``source`` says where the records are from, and ``unit`` what one row is. ``remarks`` say what was changed
    after the first trials, a sentence each. The schema is public.
    """

    protocol: Protocol
    arms: tuple[Arm, ...]
    trials: tuple[Trial, ...]
    source: str
    unit: str
    schema: Schema
    remarks: tuple[str, ...] = ()

    @property
    def seeds(self) -> int:
        """Number of splits with trials."""
        return len({trial.task.seed for trial in self.trials if trial.task.draw == "split"})

    def of(self, arm: str, draw: Draw = "split") -> dict[int, list[Trial]]:
        """Trials of an arm by seed, restarts in order."""
        found: dict[int, list[Trial]] = {}
        chosen = [trial for trial in self.trials if (trial.task.arm, trial.task.draw) == (arm, draw)]
        for trial in sorted(chosen, key=lambda trial: (trial.task.seed, trial.task.restart)):
            found.setdefault(trial.task.seed, []).append(trial)
        return found

    @cached_property
    def tables(self) -> pd.DataFrame:
        """A row for each synthetic table of a split, restarts in order.

        Columns are ``arm``, ``seed``, ``restart``, ``number`` (of the table of one fit) and the measures, NaN
        where one is not defined.
        """
        keys = ["arm", "seed", "restart", "number"]
        rows = [
            {**vars(trial.task), "number": number, **table["measures"]}
            for trial in self.trials
            if trial.task.draw == "split"
            for number, table in enumerate(trial.sets)
        ]
        measures = measure_names(self.protocol)
        found = pd.DataFrame(rows, columns=[*keys, *measures])
        return found.astype(dict.fromkeys(measures, float)).sort_values(keys)

    def first(self, arm: str) -> pd.DataFrame:
        """For each seed the first table of the first fit."""
        return self.tables.query("arm == @arm and restart == 0 and number == 0")

    def most_positive(self, arm: str) -> pd.DataFrame:
        """For each seed the table with the most positive records of all fits (Pedersen 2022).

        The selection looks at synthetic tables alone, so it costs no more than all fits do.
        """
        rated = self.tables.query("arm == @arm").dropna(subset=[RATE])
        return rated.loc[rated.groupby("seed")[RATE].idxmax()]

    def cost(self, arm: str, *, restarts: bool) -> float | None:
        """The largest epsilon over seeds, of the first fit or of all restarts together. None if none ran."""
        costs = []
        for trials in self.of(arm).values():
            fitted = [trial for trial in trials if trial.ledger is not None]
            if fitted:
                chosen = fitted if restarts else fitted[:1]
                delta = chosen[0].delta
                assert delta is not None
                costs.append(composed([trial.read_ledger() for trial in chosen], delta))
        return max(costs, default=None)

    def measured(self, chosen: pd.DataFrame, *names: str) -> list[SheetCell]:
        """Measures of the tables that were kept, over seeds."""
        return [over_seeds(chosen[name], self.seeds) for name in names]

    def rates(self, chosen: pd.DataFrame, measure: str = RATE) -> SheetCell:
        """A share of the tables that were kept, over seeds, in per cent as Pedersen (2022) prints it."""
        return over_seeds(100 * chosen[measure], self.seeds, to_decimals(2))

    def problems(self) -> list[str]:
        """Why fits were refused, each sentence once with the arm, in order."""
        told = (f"{trial.task.arm}: {trial.problem}" for trial in self.trials if trial.problem)
        return list(dict.fromkeys(told))


@cache
def _words() -> Any:
    return shipped_yaml("dpsynth.research.replications", "tables.yaml")


#: a row of a sheet, its first entry its name
Row = list[str | SheetCell]


def study_sheet(
    name: str,
    rows: Sequence[Row],
    *,
    columns: Iterable[str] = (),
    notes: Iterable[str] = (),
    prefix: str = "",
    **values: str,
) -> Sheet:
    """Return a sheet with the words of ``tables.yaml`` under its name.

    ``columns`` go on with the header. ``notes`` come first. ``prefix`` is of the sheet's own name. ``values``
    fill the fields of the words.
    """
    words = _words()[name]
    told = (*notes, *(note.format(**values) for note in words["notes"]))
    title = words["title"].format(**values)
    return Sheet.of(f"{prefix}{name}", title, (*words["header"], *columns), rows, *told)


def to_decimals(places: int) -> Callable[..., Sequence[str]]:
    """Texts of numbers with so many decimals, and never a negative zero.

    Examples
    --------
    >>> to_decimals(2)(-0.001, 1)
    ('0.00', '1.00')
    """
    return lambda *values: tuple(f"{value:z.{places}f}" for value in values)


_MEASURED = to_decimals(3)


def over_seeds(
    values: Iterable[float], seeds: int, texts: Callable[..., Sequence[str]] = _MEASURED
) -> SheetCell:
    """A number over seeds: the median, and in parentheses the lowest and the highest.

    Numbers that are not defined are NaN. The cell says of how many ``seeds`` it is, unless it is of all. The
    lowest and the highest of k independent numbers cover the median of their distribution with probability
    1 - 2**(1 - k): 94 % for five, whatever the distribution. Splits of one table are independent samples
    given that table. They say nothing of other records. For example, take a mean over one half each, in five
    splits of a table. It covers the mean of the table's population for 2 of 3 tables.

    Examples
    --------
    >>> over_seeds([0.7, 0.9, 0.8], 3).text, over_seeds([0.7, math.nan], 2).text
    ('0.800 (0.700 to 0.900)', '0.700 [1 of 2 seeds]')
    """
    known = [float(value) for value in values if not math.isnan(value)]
    if not known:
        return SheetCell(NOT_KNOWN)
    numbers = {"median": median(known), "lowest": min(known), "highest": max(known)}
    middle, lowest, highest = texts(*numbers.values())
    text = f"{middle} ({lowest} to {highest})" if len(known) > 1 else middle
    if len(known) < seeds:
        text += f" [{len(known)} of {seeds} seeds]"
    return SheetCell(text, {**numbers, "seeds": len(known)})


@dataclass(frozen=True, eq=False)
class Way:
    """One table a seed, and how it was chosen. The label is unique in a study.

    ``chosen`` are rows of :attr:`Results.tables`. ``stated`` is the epsilon that one fit states, infinite for
    HealthGAN. ``spent`` is that of all fits that were looked at, None if none ran.
    """

    label: str
    arm: Arm
    chosen: pd.DataFrame
    stated: float
    spent: float | None


def ways(results: Results) -> tuple[Way, ...]:
    """Return the compared ways, without the records themselves: HealthGAN first, then each epsilon.

    Each epsilon has three. The first is one fit. The second is the best of all restarts, each with the whole
    epsilon, as Pedersen (2022) selects. The third is the best of restarts that share epsilon.
    """
    return tuple(way for arm in results.arms if arm.name != REAL for way in _of(results, arm))


def _of(results: Results, arm: Arm) -> list[Way]:
    private = arm.name != HEALTHGAN
    one_fit, all_fits = (
        (results.cost(arm.name, restarts=restarts) if private else math.inf) for restarts in (False, True)
    )
    stated = math.inf if arm.epsilon is None else arm.epsilon
    name = arm.name.removesuffix(" shared") if private else f"{arm.name} ({NOT_PRIVATE})"
    several = arm.restarts * results.protocol.sets > 1
    fits = f"{arm.restarts} fits" if arm.restarts > 1 else f"{results.protocol.sets} tables of one fit"
    best = results.most_positive(arm.name)
    if arm.shared:
        return [Way(f"{name}, best of {fits} that share it (paid)", arm, best, stated, all_fits)]
    found = [Way(f"{name}, one fit", arm, results.first(arm.name), stated, one_fit)]
    if several:
        unpaid = " (unpaid)" if private and arm.restarts > 1 else ""
        found.append(Way(f"{name}, best of {fits}{unpaid}", arm, best, stated, all_fits))
    return found
