"""Membership by shadow models: canaries are planted or not, and the attacker has the generator itself.

Canaries are records unlike all others, planted into a training table to see whether they leave a trace. If
patients have several rows, a canary is a patient with all rows, and tables are compared by levels. Each
round puts every canary into the table by a coin of its own, and the generator makes a synthetic table. The
attacker measures the distances of the closest records to each canary. She counts records that share one or
two of its values: a generator that samples from counts shows a record there, and nowhere else. From half of
the rounds (the shadow models) she learns the effect of a canary. In the other half (the targets) she guesses
each coin. Differential privacy is about this attacker: she knows all other records.

Against a generator that ignores its data the guesses are coins themselves. Under epsilon-DP the number of
right guesses is at most, in distribution, that of as many coins with probability ``e^epsilon / (1 +
e^epsilon)`` (Steinke et al. 2023). This is so although canaries of one round share a model. Clopper and
Pearson's interval over all guesses therefore never claims too much. If the rounds differ by more than coins
do, the interval over rounds is taken.

References
----------
Stadler, Oprisanu, Troncoso (2022), "Synthetic data: anonymisation groundhog day"; Steinke, Nasr, Jagielski
(2023), "Privacy auditing with one (1) training run"; Houssiau et al. (2022), "TAPAS: a toolbox for
adversarial
privacy auditing of synthetic data", for counts of records that share values with a target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.attacks.attempt import COIN, NOTHING, Attempt, passing
from dpsynth.attacks.lower_bounds import epsilon_lower, right_guesses
from dpsynth.attacks.risk import Proved, mean_rate
from dpsynth.checks import whole
from dpsynth.errors import InputError
from dpsynth.evaluation.distances import record_distance
from dpsynth.evaluation.estimates import Estimate, share
from dpsynth.evaluation.neighbours import nearest
from dpsynth.evaluation.tables import unit_values
from dpsynth.files.storage import OnRound, carry_out, print_nothing
from dpsynth.patients.reader import reader_of
from dpsynth.patients.schema import patients_of
from dpsynth.table.column import Column
from dpsynth.table.conform import round_frame
from dpsynth.table.derived import add_derived
from dpsynth.table.grid import Grid
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.kinds.number import step_values
from dpsynth.table.schema import Schema, TableSchema

Floats = NDArray[np.float64]


#: what rounds that were kept by another version would not have
VERSION = 2
#: how close the closest and the fifth closest synthetic record lie
_NEIGHBOURS = (1, 5)
#: two numbers are alike within this part of the public range
_ALIKE = 0.02
#: stands for the logarithm of distance 0
_COPY = -30.0


def look_around(canaries: pd.DataFrame, made: pd.DataFrame, schema: Schema) -> Floats:
    """Return four features of a conformed table around each of k canaries, shape (k, 4).

    The first two are logarithms of the distances of the closest and the fifth closest record. The others are
    minus mean logarithms of the number of records that share one value with the canary, and two. They are
    larger if records are far or rare.
    """
    made = round_frame(schema.columns, made)
    schema = schema.modelled
    metric = record_distance(schema)
    points, others = (metric.encode(frame, schema) for frame in (canaries, made))
    far = np.sqrt(nearest(points, others, metric, max(_NEIGHBOURS)).distance)
    columns = [far[:, min(k, far.shape[1]) - 1] for k in _NEIGHBOURS]
    with np.errstate(divide="ignore"):
        distances = np.maximum(np.log(np.stack(columns, axis=1)), _COPY)
    return np.hstack([distances, shared_values(canaries, made, schema)])


def shared_values(canaries: pd.DataFrame, made: pd.DataFrame, schema: Schema) -> Floats:
    """Rarity of synthetic records that share one value with a canary, or two: minus mean log counts.

    Shape (k, 2): over the columns, and over the pairs of columns (0 where there is one column alone).
    """
    codes = [_units(frame, schema) for frame in (canaries, made)]
    within = np.array([0.0 if column.is_categorical else _ALIKE for column in schema.columns])
    pairs = ~np.eye(len(schema), dtype=bool)
    found = np.zeros((len(canaries), 2))
    for row, record in zip(found, codes[0], strict=True):
        alike = (np.abs(codes[1] - record) <= within).astype(np.float32)
        both = alike.T @ alike
        row[0] = -float(np.log1p(np.diag(both)).mean())
        row[1] = -float(np.log1p(both[pairs]).mean()) if pairs.any() else 0.0
    return found


def _units(frame: pd.DataFrame, schema: Schema) -> Floats:
    """Numbers scaled by their public range, codes of categories, NaN (equal to nothing) if missing."""
    columns = []
    for column in schema.columns:
        if column.is_categorical:
            codes = category_codes(column, frame[column.name]).astype(np.float64)
            columns.append(np.where(codes < 0, np.nan, codes))
        else:
            columns.append(unit_values(column, frame[column.name]))
    return np.stack(columns, axis=1)


#: draws for each canary that is wanted, where rules refuse some
_DRAWS = 100


def plant(schema: TableSchema, count: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw canaries: records with every column drawn by itself, uniformly over its public values.

    Such records are unlike real ones, and so the easiest to notice. They read no real record, obey the
    schema's rules, and their derived columns are computed. Patients with several rows have as many as may be.
    """
    return schema.grouped(_planted(schema.table, count * schema.most_rows, rng))


def _planted(schema: Schema, count: int, rng: np.random.Generator) -> pd.DataFrame:
    kept = pd.DataFrame()
    for _ in range(_DRAWS):
        drawn = pd.DataFrame({c.name: _uniform(c, 4 * count, rng) for c in schema.modelled.columns})
        drawn = schema.modelled.conform(drawn).frame
        frame = add_derived(drawn, schema.formulas, schema.columns) if schema.formulas else drawn
        for rule in schema.rules:
            frame = frame[~rule.broken(frame)]
        kept = pd.concat([kept, frame], ignore_index=True).drop_duplicates(ignore_index=True)
        if len(kept) >= count:
            return kept.head(count)[list(schema.names)]
    raise InputError(f"the schema's rules refuse nearly every canary: {count} could not be drawn")


def _uniform(column: Column, n: int, rng: np.random.Generator) -> Any:
    if not column.is_numeric:
        return [column.categories[i] for i in rng.integers(len(column.categories), size=n)]
    if column.n_values is not None:
        return column.series(step_values(column, rng.integers(column.n_values, size=n)))
    assert column.lower is not None and column.upper is not None
    return rng.uniform(column.lower, column.upper, size=n)


#: makes a synthetic table from a frame; any generator
FitSample = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]
#: how a table of records lies around canaries, a row a canary
Look = Callable[[pd.DataFrame, pd.DataFrame, Schema], Floats]


@dataclass(frozen=True)
class Shadow:
    """Result of the attacker with shadow models: share of right guesses in target rounds. Confidential.

    ``proved`` is an upper bound on the expected accuracy, None if nothing is proved.
    """

    accuracy: Estimate
    guesses: int
    rounds: int
    canaries: int
    proved: float | None = None
    level: float = 0.95

    def attempts(self) -> tuple[Attempt, ...]:
        """Return the accuracy beside its bound."""
        return (
            Attempt(
                "membership, shadow models with planted canaries",
                "accuracy",
                self.accuracy,
                self.proved,
                COIN,
                f"{self.guesses:,} guesses: {self.canaries} canaries in {self.rounds} tables",
                "one canary, more rounds, and an attacker who sees the noisy numbers behind the table",
                self.level,
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "internal": True}


def shadow_attack(
    fit_sample: FitSample,
    base: pd.DataFrame,
    schema: TableSchema,
    *,
    rounds: int,
    canaries: int | pd.DataFrame = 20,
    seed: int,
    proved: Proved | None = None,
    level: float = 0.95,
    folder: str | Path | None = None,
    settings: dict[str, Any] | None = None,
    jobs: int = 1,
    on_round: OnRound = print_nothing,
) -> Shadow:
    """Attack a generator.

    Parameters
    ----------
    fit_sample : callable
        ``fit_sample(frame, rng) -> frame``: any generator, picklable if ``jobs`` is more than 1.
    base : pandas.DataFrame of shape (n, columns)
        Records that are in every training table, conformed to the schema, or rows of patients.
    schema : TableSchema
        Columns of the records, or of the rows.
    rounds : int
        Shadow models and targets together, an even number of at least 4.
    canaries : int or pandas.DataFrame
        Number to draw (:func:`plant`), or the records themselves, of patients with all their rows.
    seed : int
        For coins, canaries and generators.
    proved : Proved, optional
        Bounds of the generator's ledger.
    level : float
        Level of the interval, in (0, 1).
    folder, jobs, on_round
        As for :func:`~dpsynth.files.storage.carry_out`: the same call continues an interrupted one.
    settings : dict, optional
        Other settings that change the rounds, such as the generator's own.

    Raises
    ------
    InputError
        If ``rounds`` is odd or below 4, or the folder holds rounds of other settings.
    RunError
        If the generator fails, naming the round.

    Examples
    --------
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=0, upper=99),))
    >>> base = pd.DataFrame({"age": [50] * 20})
    >>> copied = shadow_attack(lambda frame, rng: frame, base, schema, rounds=8, canaries=4, seed=0)
    >>> copied.accuracy.value, copied.guesses
    (1.0, 16)
    """
    if whole("rounds", rounds, 4) % 2:
        raise InputError(f"rounds must be even, half of them are shadow models, got {rounds}")
    coins, looks = planted_rounds(
        fit_sample, base, schema, look_around, canaries, seed, [f"round-{i:04d}" for i in range(rounds)],
        folder=folder, settings=settings, jobs=jobs, on_round=on_round,
    )  # fmt: skip
    half = rounds // 2
    right = learned_guesses(coins[:half], looks[:half], looks[half:]) == coins[half:]
    bound = None if proved is None else proved.accuracy
    return Shadow(_interval(right, level), right.size, rounds - half, right.shape[1], bound, level)


def planted_rounds(
    fit_sample: FitSample,
    base: pd.DataFrame,
    schema: TableSchema,
    look: Look,
    canaries: int | pd.DataFrame,
    seed: int,
    labels: Sequence[str],
    **kept: Any,
) -> tuple[NDArray[np.bool_], Floats]:
    """Fit a generator once for each label, with some of the canaries, and look at its tables.

    ``kept`` is passed to :func:`~dpsynth.files.storage.carry_out`.
    """
    source = np.random.default_rng([seed, 0])
    planted = plant(schema, whole("canaries", canaries), source) if isinstance(canaries, int) else canaries
    work = _Round.of(fit_sample, base, planted, schema, look)
    settings = {"seed": seed, "canaries": work.canaries, "records": len(base), "looks": VERSION}
    settings |= kept.pop("settings") or {}
    tasks = {label: (seed, number) for number, label in enumerate(labels)}
    done = carry_out(work, tasks, settings=settings, **kept).values()
    coins = np.array([record["used"] for record in done], dtype=bool)
    return coins, np.array([record["looks"] for record in done], dtype=np.float64)


def learned_guesses(coins: NDArray[np.bool_], looks: Floats, seen: Floats) -> NDArray[np.bool_]:
    """Guess coins from features of tables around the canaries, after training on some with their coins.

    Shapes are (shadows, canaries), (shadows, canaries, features) and (targets, canaries, features). Each
    canary's features are differences from their median over the shadow models that did not have it. One
    logistic regression then serves all canaries.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    if coins.all() or not coins.any():
        return np.full(seen.shape[:2], bool(coins.all()))
    without = np.where(coins[:, :, None], np.nan, looks)
    everywhere = np.nanmedian(without, axis=(0, 1))
    always = coins.all(axis=0)  # canaries that no shadow model went without
    without[:, always] = everywhere
    middle = np.nanmedian(without, axis=0)
    known, asked = (part - middle for part in (looks, seen))
    scaler = StandardScaler().fit(known.reshape(-1, known.shape[2]))
    model = LogisticRegression().fit(scaler.transform(known.reshape(-1, known.shape[2])), coins.ravel())
    chance = model.predict_proba(scaler.transform(asked.reshape(-1, asked.shape[2])))[:, 1]
    return np.asarray(chance >= 0.5).reshape(seen.shape[:2])


@dataclass(frozen=True)
class _Round:
    """One table with some of the canaries, sent to other processes.

    ``canary``: the number of each planted row's canary. ``seen``: the canaries as records.
    """

    fit_sample: FitSample
    base: pd.DataFrame
    planted: pd.DataFrame
    canary: NDArray[np.int64]
    seen: pd.DataFrame
    schema: TableSchema
    look: Look

    @classmethod
    def of(
        cls, fit_sample: FitSample, base: pd.DataFrame, planted: pd.DataFrame, schema: TableSchema, look: Look
    ) -> _Round:
        """Number the canaries. Patients get new identifiers, of which no two are alike."""
        reader, patients = reader_of(schema), patients_of(schema)
        others, canary = reader.units(base), reader.units(planted)
        if patients is not None:
            kept = {name: base[name].to_numpy() for name in patients.table.ignored}
            base = patients.table.check(base).assign(**kept | {patients.unit: others})
            planted = planted.assign(**{patients.unit: canary + others.max(initial=-1) + 1})
        return cls(fit_sample, base, planted, canary, reader.levels(planted), schema, look)

    @property
    def canaries(self) -> int:
        """Number of canaries."""
        return len(self.seen)

    def __call__(self, task: tuple[int, int]) -> dict[str, Any]:
        seed, number = task
        rng = np.random.default_rng([seed, 1, number])
        used = rng.random(self.canaries) < 0.5
        frame = pd.concat([self.base, self.planted[used[self.canary]]], ignore_index=True)
        frame = frame.iloc[rng.permutation(len(frame))].reset_index(drop=True)
        made = reader_of(self.schema).levels(self.fit_sample(frame, rng))
        return {"used": used.tolist(), "looks": self.look(self.seen, made, self.schema.levels).tolist()}


def _interval(right: NDArray[np.bool_], level: float) -> Estimate:
    """Interval over all guesses as coins, or over rounds if that is wider."""
    coins = share(int(right.sum()), right.size, level)
    rounds = mean_rate(right.mean(axis=1), level)
    if len(right) < 3 or rounds.upper - rounds.lower < coins.upper - coins.lower or right.all():
        return coins
    return Estimate(coins.value, min(coins.lower, rounds.lower), max(coins.upper, rounds.upper))


# ------------------------------------------------------------------------------------------------
# An audit that uses synthetic tables only: planted canaries, and guesses about their coins.
#
# A canary is a made-up record that comes into a training table by a coin. The auditor knows all other
# records and fits the generator many times. He guesses each coin from the synthetic table alone: how often
# the canary's values stand together in it, two columns at a time. Models of low-order cross-tabulations show
# a record there or nowhere.
#
# The result of such a test for a correct generator is unknown, so there is no pass mark. Only a bound above
# the ledger's would be a verdict.
#
# References ---------- Annamalai, Ganev, De Cristofaro (2024), "What do you want from theory alone?
# Experimenting with tight auditing of differentially private synthetic data generation" (audits of
# generators from their tables); Steinke, Nasr, Jagielski (2023) for the bound.

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
    on_round: OnRound = print_nothing,
) -> BlackBox:
    """Audit a generator from its tables.

    Parameters
    ----------
    fit_sample : callable
        ``fit_sample(frame, rng) -> frame``, picklable if there are several jobs.
    base : DataFrame of shape (n, columns)
        Records that every training table has, or rows of patients.
    schema : TableSchema
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
        See :func:`dpsynth.files.storage.carry_out`.

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
