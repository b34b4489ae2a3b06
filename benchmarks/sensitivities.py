"""The largest change that one record makes in each noisy statistic, beside the sensitivity in the ledger.

    python benchmarks/sensitivities.py [--seed 0] [--only tiny ward ...]

Fits of all three generators run on made-up tables of small public domains. Every release that a ledger runs
is kept with its entry: of generators, studies, counts, rows of patients, and of the tables of `sample_many`.
Then each release's own query reads tables with and without one record, and without noise. Each difference is
divided by the noise of the same number, as it reaches the sampler of noise, times the event's multiplier. It
is 1 where the record moves the statistic as far as the ledger says, in any weighting of its parts.

- rows: every record of the domain, added to every table of up to two records (tiny), or to no record and to
  sampled tables. Records have missing values, special codes, extremes, and values beyond the bounds.
- patients: every sequence of row kinds, in every order, up to one row beyond those that are used. Kinds are
  at one time or another, equal, missing, extreme or beyond the bounds. All are read with and without.
- edges of a base model: the range of the log probabilities of each choice, over the event's epsilon.
- WGAN critics: the step's own gradient with and without a record, in units of the noise that the step adds.
  Components of Theorem 3.1.1 and norms of Theorem 3.1.3 are compared with gradients computed here.

A self-check breaks three releases, and must find each. Writes the page that --out names. Exits
with 1 if anything moves farther than posted, or if the self-check misses a fault.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from inspect import isabstract
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from dpsynth import DPWGANGP, DPCriticMatching, DPMarginals, Studies
from dpsynth.patients.files import PatientFile
from dpsynth.patients.reader import reader_of
from dpsynth.patients.schema import PatientSchema
from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.privacy.release import ChoiceRelease, CriticRelease, GaussianRelease
from dpsynth.studies.study import Study
from dpsynth.synthesis.marginals import Statistics
from dpsynth.table import Column, Schema
from dpsynth.table.schema import TableSchema

EPSILON, DELTA = 10.0, 1e-5
#: What may be found above what is posted: exact sums, and sums in float32 of a critic's step.
EXACT, SINGLE = 1e-9, 5e-4
#: A ratio below this is explained.
TIGHT = 0.9
Floats = np.ndarray[Any, np.dtype[np.float64]]


# --- what is posted ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Posted:
    """A release with what the ledger says of it."""

    release: Any
    name: str
    sensitivity: str
    event: Any
    of: str

    @property
    def bound(self) -> float:
        """The posted number, first of the ledger's words. 1 for a critic, in units of its noise."""
        found = re.match(r"(sqrt\((?P<root>[^)]*)\)|(?P<plain>\d+(\.\d+)?)) ?", self.sensitivity)
        if found is None:
            return 1.0
        if found["plain"]:
            return float(found["plain"])
        terms = (term.split("/") for term in found["root"].split("+"))
        return float(np.sqrt(sum(float(term[0]) / float(term[1] if len(term) > 1 else 1) for term in terms)))


@contextmanager
def posting(of: str) -> Iterator[list[Posted]]:
    """Keep every release that any ledger runs."""
    kept: list[Posted] = []
    run = Ledger.run

    def keeping(self: Ledger, release: Any, records: Any, rng: Any) -> Any:
        at = len(self.entries)
        made = run(self, release, records, rng)
        entry = self.entries[at]
        kept.append(Posted(release, entry.name, entry.sensitivity, entry.event, of))
        return made

    with mock.patch.object(Ledger, "run", keeping):
        yield kept


# --- one record's change, in units of what is posted ------------------------------------------------


class Meter:
    """Vectors of a release's query, in which one record may be 1 away in length."""

    def __init__(self, posted: Posted) -> None:
        self.posted = posted

    def vector(self, records: FrameRecords) -> Floats:
        raise NotImplementedError

    def distance(self, more: Floats, less: Floats) -> float:
        return float(np.linalg.norm(more - less))


class GaussianMeter(Meter):
    """The query over the noise that its numbers get, times the event's multiplier."""

    def __init__(self, posted: Posted, nobody: pd.DataFrame) -> None:
        super().__init__(posted)
        scales: list[Floats] = []

        def with_noise(exact: Sequence[Any], step: float, std: float, rng: Any) -> list[Floats]:
            scales.extend(np.full(np.size(array), step / std) for array in exact)
            return [array * step for array in exact]

        with mock.patch("dpsynth.privacy.release.with_noise", with_noise):
            self._measure(FrameRecords(nobody))
        self.scale = np.concatenate(scales) * posted.event.noise_multiplier

    def _measure(self, records: FrameRecords) -> None:
        with records.opened():
            self.posted.release.measure(records, np.random.default_rng(0))

    def vector(self, records: FrameRecords) -> Floats:
        with records.opened():
            arrays = self.posted.release.query(records)
        return self.scale * np.concatenate([np.ravel(array) for array in arrays])


class ChoiceMeter(Meter):
    """Log probabilities of each choice of a fixed sequence, over the event's epsilon."""

    def __init__(self, posted: Posted) -> None:
        super().__init__(posted)
        several = hasattr(posted.event, "count")
        self.epsilon = (posted.event.event if several else posted.event).epsilon
        self.count = posted.event.count if several else 1
        self.sizes: list[int] = []
        self._last: tuple[Any, Any] = (None, None)

    def vector(self, records: FrameRecords) -> Floats:
        if self._last[0] is records:  # the scores have been read already
            return self._last[1]
        choices: list[Floats] = []
        order = np.random.default_rng(0)

        def choose(scores: Any, epsilon: float, rng: Any) -> int:
            choices.append(np.asarray(scores) * epsilon / 2)  # up to a constant, which a range does not see
            return int(order.integers(len(scores)))

        with mock.patch(f"{type(self.posted.release).__module__}.choose", choose), records.opened():
            self.posted.release(records, order)
        self.sizes = [len(choice) for choice in choices]
        if len(self.sizes) > self.count:
            raise SystemExit(f"{self.posted.name}: {len(self.sizes)} choices, but {self.count} are posted")
        self._last = records, np.concatenate(choices) / self.epsilon
        return self._last[1]

    def distance(self, more: Floats, less: Floats) -> float:
        parts = np.split(more - less, np.cumsum(self.sizes)[:-1])
        return max(float(np.ptp(part)) for part in parts)


class ScoreMeter(Meter):
    """The scores of the same choices, each of which may change by 1."""

    def __init__(self, posted: Posted, choices: ChoiceMeter) -> None:
        super().__init__(posted)
        self.choices = choices

    def vector(self, records: FrameRecords) -> Floats:
        return 2.0 * self.choices.vector(records)

    def distance(self, more: Floats, less: Floats) -> float:
        return float(np.abs(more - less).max())


def multiplier_of(event: Any) -> float:
    """Noise multiplier of the Gaussian mechanism that is sampled, or made several times."""
    while not hasattr(event, "noise_multiplier"):
        event = event.event
    return float(event.noise_multiplier)


class MatchingMeter(Meter):
    """Sums of gradients at random critics, each critic a mechanism of its own."""

    def __init__(self, posted: Posted, release: Any, encoder: Any) -> None:
        super().__init__(posted)
        self.release, self.encoder = release, encoder
        scales: list[float] = []

        def with_noise(exact: Sequence[Any], step: float, std: float, rng: Any) -> list[Floats]:
            scales.append(step / std)
            return [array * step for array in exact]

        with mock.patch("dpsynth.wgan.matching.with_noise", with_noise):
            release([np.zeros((0, encoder.layout.dim), np.float32)], np.random.default_rng(0))
        self.scale = scales[0] * multiplier_of(posted.event)

    def points(self, points: Floats) -> Floats:
        return self.release.query([points]) * self.scale

    def vector(self, records: FrameRecords) -> Floats:
        with records.opened():
            points = records.rows(lambda table, first: self.encoder.transform_rows(table, first, 7))
        return self.points(points)

    def distance(self, more: Floats, less: Floats) -> float:
        return float(np.linalg.norm(more - less, axis=1).max())


def meters_of(posted: Posted, nobody: pd.DataFrame) -> list[Meter]:
    """How a release is measured. A critic's steps need more than the release, see `critic_rows`."""
    if isinstance(posted.release, GaussianRelease):
        return [GaussianMeter(posted, nobody)]
    if isinstance(posted.release, ChoiceRelease):
        choices = ChoiceMeter(replace(posted, name=f"{posted.name}: range of the loss over ε"))
        return [ScoreMeter(replace(posted, name=f"{posted.name}: score"), choices), choices]
    if isinstance(posted.release, CriticRelease):
        return []
    raise SystemExit(f"{posted.name}: nothing here measures such a release")


def unread(found: Sequence[Found]) -> set[str]:
    """Kinds of Gaussian releases of the package that no fit here has posted."""
    kinds, waiting = set(), [GaussianRelease]
    while waiting:
        waiting += (own := waiting.pop().__subclasses__())
        kinds |= {kind.__name__ for kind in own if not isabstract(kind) and "audits" not in kind.__module__}
    return kinds - {type(one.posted.release).__name__ for one in found}


@dataclass
class Found:
    """The largest change of one release over a domain."""

    posted: Posted
    unit: str
    domain: str
    ratio: float = 0.0
    record: str = ""
    tolerance: float = EXACT

    def see(self, ratio: float, record: Callable[[], str]) -> None:
        # a change that is no number is kept, and lies within no bound
        if not (math.isnan(self.ratio) or ratio <= self.ratio):
            self.ratio, self.record = ratio, record()

    @property
    def too_far(self) -> bool:
        return not self.ratio <= 1.0 + self.tolerance

    def cells(self) -> list[str]:
        """What the table says of it."""
        bound = self.posted.bound
        return [
            self.posted.name,
            self.posted.of,
            self.unit,
            self.domain,
            f"{bound * self.ratio:.5f}",
            f"{bound:.5f}",
            f"{self.ratio:.4f}",
            self.record,
        ]


#: A table, and one with a record more: as read with the record, and the record's name.
Pair = tuple[FrameRecords, FrameRecords, Callable[[], str]]


@dataclass
class Domain:
    """Neighbouring tables: those of one table one after another."""

    name: str
    unit: str
    nobody: pd.DataFrame
    pairs: Callable[[], Iterable[Pair]]
    words: str
    kinds: tuple[str, ...] = ()  # of rows, which a patient's label counts from 1


def largest(posted: Sequence[Posted], domain: Domain, first: int | None = None) -> list[Found]:
    """The largest change of every release that can be read on frames alone."""
    meters = [meter for one in posted for meter in meters_of(one, domain.nobody)]
    return changes(meters, domain, first)


def changes(meters: Sequence[Meter], domain: Domain, first: int | None = None) -> list[Found]:
    """The largest change that each meter sees, in all of the domain's pairs or in the first."""
    found = [Found(meter.posted, domain.unit, domain.words) for meter in meters]
    last, before = None, []
    for less, more, label in itertools.islice(domain.pairs(), first):
        if less is not last:
            last, before = less, [meter.vector(less) for meter in meters]
        for meter, one, own in zip(meters, before, found, strict=True):
            own.see(meter.distance(meter.vector(more), one), label)
    return found


# --- domains of rows ---------------------------------------------------------------------------------


def every_record(values: dict[str, Sequence[object]]) -> pd.DataFrame:
    """Each combination of values."""
    made = list(itertools.product(*values.values()))
    return pd.DataFrame(
        {name: pd.Series(of, dtype=object) for name, of in zip(values, zip(*made, strict=True), strict=True)}
    )


def label_of(row: pd.Series) -> str:
    return ", ".join(f"{name} {'missing' if pd.isna(value) else value}" for name, value in row.items())


def row_tables(
    name: str,
    schema: Schema,
    raw: pd.DataFrame,
    rng: np.random.Generator,
    *,
    most: int = 0,
    sizes: Sequence[int] = (),
    every: bool = True,
    again: int = 40,
) -> Domain:
    """Every record, at any place of every table of up to ``most`` records and of sampled tables of ``sizes``.

    Records are read once. ``again`` of them are also read together with each sampled table. With
    ``every=False`` sampled tables have these alone.
    """
    read = schema.conform_modelled(raw)
    different = np.flatnonzero(~read.duplicated().to_numpy())

    def with_one(less: FrameRecords, chosen: Sequence[int], added: int) -> Pair:
        order = rng.permutation([*chosen, added])
        return less, FrameRecords(read.iloc[order]), lambda: label_of(raw.iloc[added])

    def pairs() -> Iterator[Pair]:
        for size in range(most + 1):
            for chosen in itertools.combinations_with_replacement(different, size):
                less = FrameRecords(read.iloc[list(chosen)])
                yield from (with_one(less, chosen, added) for added in different)
        for size in sizes:
            chosen = list(table_of(pd.DataFrame({"at": np.arange(len(raw))}), size, rng)["at"])
            less = FrameRecords(read.iloc[chosen])
            yield from (with_one(less, chosen, added) for added in different if every)
            whole = FrameRecords(schema.conform_modelled(raw.iloc[chosen]))
            for added in rng.choice(len(raw), min(again, len(raw)), replace=False):
                more = schema.conform_modelled(raw.iloc[[*chosen, added]])
                yield whole, FrameRecords(more), lambda added=added: label_of(raw.iloc[added])

    tables = sum(math.comb(len(different) + size - 1, size) for size in range(most + 1))
    words = f"all {tables:,} tables of up to {most}" if most else "no record"
    if every and sizes:
        words += f", {len(sizes)} tables of up to {max(sizes):,}"
    words += f" × all {len(different):,} records"
    words += "" if every else f"; {len(sizes)} of {max(sizes):,} × {again} records"
    return Domain(name, "row", read.iloc[:0], pairs, f"{name}: {words}")


# --- domains of patients -----------------------------------------------------------------------------


def patient_tables(
    name: str,
    schema: PatientSchema,
    kinds: pd.DataFrame,
    fixed: pd.DataFrame,
    rng: np.random.Generator,
    *,
    sampled: int | None = None,
    tables: int = 2,
    large: int = 250,
    again: int = 30,
) -> Domain:
    """Patients with every sequence of row kinds, or a sample of them, up to one row beyond ``most``.

    ``fixed``: values of columns per patient, of which each patient has one after another.
    ``tables``: number of tables with other patients, whose rows stand among those of the patient.
    """
    most = schema.most + 1
    if sampled is None:
        rows = [s for size in range(1, most + 1) for s in itertools.product(range(len(kinds)), repeat=size)]
    else:
        sizes = rng.integers(1, most + 1, sampled)
        rows = [tuple(rng.integers(len(kinds), size=size)) for size in sizes]
        rows += [(kind,) * size for kind in range(len(kinds)) for size in (schema.most, most)]  # all equal
    reader = reader_of(schema, seed=7)

    def of(patient: int, unit: str) -> pd.DataFrame:
        own = kinds.iloc[list(rows[patient])].reset_index(drop=True)
        values = fixed.iloc[patient % len(fixed)]
        return own.assign(**values.to_dict(), **{schema.unit: unit})

    def label(patient: int) -> str:
        places = ", ".join(str(kind + 1) for kind in rows[patient])
        values = label_of(fixed.iloc[patient % len(fixed)])
        return f"rows {places}" + (f" ({values})" if values else "")

    def pairs() -> Iterator[Pair]:
        everybody = pd.concat([of(k, f"p{k}") for k in range(len(rows))], ignore_index=True)
        read = reader.records(everybody)
        nobody = FrameRecords(read.iloc[:0])
        if len(read) != len(rows):
            raise SystemExit("a patient has no record: give each kind of row a value")
        for k in range(len(rows)):
            yield nobody, FrameRecords(read.iloc[[k]]), lambda k=k: label(k)
        for _ in range(tables):
            others = [of(int(k), f"q{at}") for at, k in enumerate(rng.integers(len(rows), size=4))]
            less = FrameRecords(reader.records(pd.concat(others, ignore_index=True)))
            for k in rng.integers(len(rows), size=10):
                both = pd.concat([*others, of(int(k), "p")], ignore_index=True)
                spelled = both[schema.unit].where(both[schema.unit] != "p", rng.choice(["p", " p", "p "]))
                both = both.assign(**{schema.unit: spelled})
                # a patient's rows keep their order: `order` and their place decide which are used
                place = np.argsort(rng.random(len(both)))
                place = _keeping(both[schema.unit].str.strip().to_numpy(), place)
                whole = reader.records(both.iloc[place].reset_index(drop=True))
                yield less, FrameRecords(whole), lambda k=int(k): label(k)
        some = rng.integers(len(read), size=large)
        less = FrameRecords(read.iloc[some])
        for k in rng.choice(len(read), min(again, len(read)), replace=False):
            yield less, FrameRecords(read.iloc[rng.permutation([*some, k])]), lambda k=int(k): label(k)

    first = reader.records(of(0, "p0"))
    kind = f"{len(rows):,} sampled" if sampled else f"all {len(rows):,}"
    words = f"nobody, {tables} tables of 4 and one of {large} × {kind} histories of up to {most} rows"
    return Domain(
        name, "patient", first.iloc[:0], pairs, f"{name}: {words}", tuple(map(label_of, kinds.iloc))
    )


def _keeping(units: Any, place: Any) -> Any:
    """A random order in which the rows of each unit keep theirs."""
    found = np.empty_like(place)
    for unit in set(units):
        own = np.flatnonzero(units == unit)
        found[np.sort(np.flatnonzero(np.isin(place, own)))] = own
    return found


# --- the domains, and the fits whose releases are read on them ---------------------------------------


ABSENT = None
TINY = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=1, missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="died", kind="binary", categories=(0, 1)),
    ),
    outcome="died",
)
TINY_RECORDS = {"age": (-5, 0, 1, 9, ABSENT), "sex": ("F", "M"), "died": (0, 1)}
WARD = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=90, missing=True),
        Column(
            name="lab",
            kind="continuous",
            lower=0.1,
            upper=50,
            decimals=1,
            scale="log",
            missing=True,
            special=(-1,),
        ),
        Column(name="group", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="stage", kind="ordinal", categories=(1, 2, 3)),
        Column(name="died", kind="binary", categories=(0, 1)),
    ),
    outcome="died",
    n_public=400,
)
WARD_RECORDS = {
    "age": (-7, 0, 45, 90, 10**6, ABSENT),
    "lab": (-1, 0, 0.1, 3, 50, 1e9, ABSENT),
    "group": ("a", "b", "c", ABSENT),
    "stage": (1, 3),
    "died": (0, 1),
}
WIDE = Schema(
    columns=(
        Column(
            name="cost", kind="continuous", lower=0, upper=150_000, decimals=2, missing=True, special=(-1,)
        ),
        Column(name="steps", kind="integer", lower=0, upper=9_999, missing=True),
        Column(name="seen", kind="datetime", lower="2020-01-01", upper="2020-03-10", step=3600, missing=True),
        Column(name="born", kind="date", lower="1920-01-01", upper="2019-12-31", cycles=("weekday", "month")),
    ),
    n_public=3_000,
)
WIDE_RECORDS = {
    "cost": (-1, -50, 0, 0.01, 12.34, 75_000, 150_000, 1e12, ABSENT),
    "steps": (-9, 0, 1, 4_999, 5_000, 9_999, 10**9, ABSENT),
    "seen": ("1900-01-01", "2020-01-01", "2020-02-03 04:00", "2020-03-10", "2199-01-01", ABSENT),
    "born": ("1800-01-01", "1920-01-01", "1970-06-15", "2019-12-31"),
}
CODES = Schema(
    columns=(
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="stage", kind="ordinal", categories=(1, 2, 3)),
        Column(name="died", kind="binary", categories=(0, 1)),
        *(Column(name=f"code{k}", kind="binary", categories=(0, 1)) for k in range(5)),
    ),
    outcome="died",
    n_public=400,
    groups=(
        {"columns": ["code0", "code1", "code2"], "at_most": 2},
        {"columns": ["code3", "code4"], "at_most": 1},
    ),
)
CODES_RECORDS = {"sex": ("F", "M"), "stage": (1, 3), "died": (0, 1), **{f"code{k}": (0, 1) for k in range(5)}}
TRIAL = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90, missing=True),
        Column(name="lab", kind="continuous", lower=0, upper=20, decimals=1, missing=True, special=(-1,)),
        Column(name="drug", kind="binary", categories=("no", "yes")),
        Column(name="days", kind="integer", lower=0, upper=365, missing=True),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    outcome="died",
    n_public=2_000,
)
TRIAL_RECORDS = {
    "age": (-1, 18, 55, 90, ABSENT),
    "lab": (-1, 0, 4, 1e9, ABSENT),
    "drug": ("no", "yes"),
    "days": (0, 250, 365, 10**6, ABSENT),
    "died": ("no", "yes"),
}
STUDIES = (
    Study(name="logistic", model="logistic: died ~ age + log1p(lab) + drug"),
    Study(name="linear", model="linear: age ~ lab + drug"),
    Study(name="cox", model="cox: (days, died) ~ age + drug", intervals=(100.0, 250.0)),
    Study(name="subgroup", model="logistic: died ~ age where drug == 'yes' and lab > 1"),
    Study(name="share", model="logistic: died ~ 1 where drug == 'no'"),
)
VISITS = PatientSchema(
    unit="id",
    order="day",
    most=3,
    columns=(
        Column(name="day", kind="integer", lower=0, upper=30),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="age", kind="integer", lower=18, upper=90, missing=True, special=(-1,)),
        Column(name="lab", kind="integer", lower=0, upper=99, missing=True),
        Column(name="grade", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="weight", kind="continuous", lower=30, upper=200),
    ),
    per_patient=("sex", "age"),
    outcome="sex",
    n_public=250,
)
VISIT_ROWS = pd.DataFrame(
    {
        "day": [0, 0, 30, 10**6],
        "lab": [0.0, 99.0, None, 1e9],
        "grade": ["a", "a", None, "c"],
        "weight": [30.0, 200.0, -5.0, 1e9],
    }
)
VISIT_PATIENTS = pd.DataFrame(
    {"sex": ["F", "M", "F", "M", "F"], "age": [18.0, -1.0, None, 10.0**6, 90.0]}, dtype=object
)
VISIT_STUDIES = (
    Study(name="levels", model="logistic: sex ~ age + lab mean"),
    Study(name="logistic of rows", model="logistic: sex ~ lab + weight"),
    Study(name="linear of rows", model="linear: weight ~ lab + sex"),
)
LONG = VISITS.model_copy(update={"most": 6})
COURSES = PatientSchema(
    unit="id",
    order="day",
    most=4,
    columns=(
        Column(name="day", kind="integer", lower=0, upper=400),
        Column(name="end", kind="integer", lower=0, upper=400),
        Column(name="stage", kind="ordinal", categories=("I", "II", "III")),
        Column(name="dose", kind="integer", lower=0, upper=500, missing=True),
        Column(name="sbp", kind="integer", lower=60, upper=260),
        Column(name="dbp", kind="integer", lower=30, upper=160),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    per_patient=("end",),
    increasing=("stage", "dose"),
    terminal=("died",),
    outcome="died",
    n_public=250,
)
COURSE_ROWS = pd.DataFrame(
    {
        "day": [0, 200, 400, 10**6, 0],
        "stage": ["I", "III", "II", "I", "III"],
        "dose": [0.0, 500.0, None, 1e9, 100.0],
        "sbp": [60, 260, 100, 10**6, 261],
        "dbp": [30, 160, 90, -4, 100],
        "died": ["no", "no", "no", "yes", "no"],
    }
)
COURSE_STUDIES = (Study(name="cox of levels", model="cox: (end, died) ~ sbp mean", intervals=(100.0, 250.0)),)
COURSE_PATIENTS = pd.DataFrame({"end": [0, 400, 250, 10**6]})
WARDS = PatientSchema(
    unit="id",
    order="stay",
    most=2,
    keep="last",
    columns=(
        Column(name="ward", kind="categorical", categories=("a", "b", "c")),
        Column(name="drug", kind="categorical", categories=("x", "y", "z"), missing=True),
        Column(name="smoker", kind="binary", categories=("no", "yes"), missing=True),
    ),
    per_patient=("smoker",),
    n_public=250,
)
WARD_ROWS = pd.DataFrame({"stay": [1, 1, 2, 10], "ward": ["a", "b", "a", "c"], "drug": ["x", "y", None, "z"]})
WARD_PATIENTS = pd.DataFrame({"smoker": ["no", None, "yes"]})
FILED = VISITS.model_copy(
    update={
        "most": 2,
        "columns": tuple(
            c.model_copy(update={"missing": c.name in ("age", "grade")}) for c in VISITS.columns
        ),
        "files": (
            PatientFile(name="patients.csv", columns=("sex", "age")),
            PatientFile(name="visits.csv", columns=("grade", "weight")),
            PatientFile(name="labs.csv", item="test", value="value", columns=("lab",)),
        ),
    }
)
FILED_ROWS = VISIT_ROWS.assign(
    lab=[0.0, 99.0, 50.0, None], grade=["a", None, None, "c"], weight=[30.0, 200.0, None, 1e9]
)


def table_of(raw: pd.DataFrame, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of a domain, drawn with unequal weights so that columns go together."""
    weights = rng.exponential(size=len(raw)) ** 2
    return raw.iloc[rng.choice(len(raw), size=n, p=weights / weights.sum())].reset_index(drop=True)


def histories_of(
    schema: PatientSchema, kinds: pd.DataFrame, fixed: pd.DataFrame, rng: np.random.Generator
) -> pd.DataFrame:
    """Rows of as many patients as are public."""
    n = int(schema.n_public or 0)
    patient = np.repeat(np.arange(n), rng.integers(1, schema.most + 2, n))
    own = table_of(kinds, len(patient), rng)
    values = fixed.iloc[rng.integers(len(fixed), size=n)[patient]].reset_index(drop=True)
    return pd.concat([own, values], axis=1).assign(**{schema.unit: [f"u{k}" for k in patient]})


@dataclass
class World:
    """Releases of fits, and the domain on which they are read."""

    domain: Domain
    posted: list[Posted] = field(default_factory=list)
    models: dict[str, Any] = field(default_factory=dict)

    def fit(
        self,
        of: str,
        model: Any,
        frame: pd.DataFrame,
        schema: TableSchema,
        *,
        also: Sequence[Any] = (),
        many: bool = False,
    ) -> None:
        """Fit, and keep what is posted. ``many``: sample tables as well, which post in no ledger."""
        with posting(of) as posted:
            model.fit(frame, schema=schema, ledger=Ledger(), also=also)
        self.posted += posted
        self.models[of] = model
        if many:
            entries = len(model.ledger_.entries)
            with posting(f"many tables after {of}") as posted:
                model.sample_many(2, 30, random_state=0)
            if len(model.ledger_.entries) != entries:
                raise SystemExit("many tables were posted in the ledger of private records")
            self.posted += posted[: len(posted) // 2]  # the other table has the same ones


def default(base_model: Any = None, *, all_parts: bool = True) -> DPMarginals:
    model = DPMarginals(EPSILON, DELTA, random_state=0)
    model._statistics = Statistics(base_model, all_parts, 2 * all_parts)
    return model


def tiny(rng: np.random.Generator) -> World:
    raw = every_record(TINY_RECORDS)
    found = World(row_tables("tiny", TINY, raw, rng, most=2, sizes=(300, 1_000)))
    frame = table_of(raw, 300, rng)
    found.fit("DPMarginals", default(), frame, TINY)
    found.fit("DPMarginals, tree", default("tree"), frame, TINY, many=True)
    return found


def ward(rng: np.random.Generator) -> World:
    raw = every_record(WARD_RECORDS)
    found = World(row_tables("ward", WARD, raw, rng, sizes=(3, 400)))
    frame = table_of(raw, 400, rng)
    found.fit("DPMarginals", default(), frame, WARD)
    return found


def codes(rng: np.random.Generator) -> World:
    raw = every_record(CODES_RECORDS)
    found = World(row_tables("codes", CODES, raw, rng, sizes=(3, 400)))
    found.fit("DPMarginals", default(all_parts=False), table_of(raw, 400, rng), CODES, many=True)
    return found


def wide(rng: np.random.Generator) -> World:
    raw = every_record(WIDE_RECORDS)
    raw = raw.iloc[rng.permutation(len(raw))[:400]].reset_index(drop=True)
    found = World(row_tables("wide", WIDE, raw, rng, sizes=(3, 3_000)))
    found.fit("DPMarginals", default(all_parts=False), table_of(raw, 3_000, rng), WIDE)
    return found


def trial(rng: np.random.Generator) -> World:
    raw = every_record(TRIAL_RECORDS)
    found = World(row_tables("trial", TRIAL, raw, rng, sizes=(50,), every=False))
    frame = table_of(raw, 2_000, rng)
    also = [Studies(list(STUDIES), share=0.6)]
    found.fit("Studies of DPMarginals", default(all_parts=False), frame, TRIAL, also=also)
    found.posted = [one for one in found.posted if " of study " in one.name]
    return found


def visits(rng: np.random.Generator) -> World:
    kinds = VISIT_ROWS.drop(index=1)
    found = World(patient_tables("visits", VISITS, kinds, VISIT_PATIENTS, rng))
    frame = histories_of(VISITS, VISIT_ROWS, VISIT_PATIENTS, rng)
    counted = VISITS.model_copy(update={"n_public": None})
    also = [Studies(list(VISIT_STUDIES), share=0.4)]
    found.fit("DPMarginals", default(), frame, counted, also=also)
    return found


def patients(
    name: str,
    schema: PatientSchema,
    kinds: Any,
    fixed: Any,
    *,
    studies: Sequence[Study] = (),
    **sampling: Any,
) -> Callable[..., World]:
    def made(rng: np.random.Generator) -> World:
        found = World(patient_tables(name, schema, kinds, fixed, rng, **sampling))
        frame, many = histories_of(schema, kinds, fixed, rng), name == "wards"
        also = [Studies(list(studies), share=0.4)] if studies else []
        found.fit("DPMarginals", default(all_parts=False), frame, schema, also=also, many=many)
        return found

    return made


WORLDS: dict[str, Callable[[np.random.Generator], World]] = {
    "tiny": tiny,
    "ward": ward,
    "codes": codes,
    "wide": wide,
    "trial": trial,
    "visits": visits,
    "random rows kept": patients(
        "random rows kept", VISITS.model_copy(update={"keep": "random"}), VISIT_ROWS[1:], VISIT_PATIENTS
    ),
    "long histories": patients("long histories", LONG, VISIT_ROWS, VISIT_PATIENTS, sampled=120),
    "courses": patients(
        "courses", COURSES, COURSE_ROWS, COURSE_PATIENTS, studies=COURSE_STUDIES, sampled=120
    ),
    "wards": patients("wards", WARDS, WARD_ROWS, WARD_PATIENTS),
    "several files": patients("several files", FILED, FILED_ROWS, VISIT_PATIENTS),
}


# --- critics -----------------------------------------------------------------------------------------

#: What a critic is trained with, its noise shape, and the factor by which its weights are drawn anew.
CRITICS: dict[str, tuple[dict[str, Any], str]] = {
    "default": ({}, "optimal"),
    "LeakyReLU, projected": ({"activation": "leaky_relu"}, "optimal"),
    "ReLU, layerwise": ({"activation": "relu"}, "layerwise"),
    "identity, spherical": ({"activation": "leaky_relu", "slope": 1.0}, "spherical"),
    "LeakyReLU, not projected": ({"activation": "leaky_relu", "critic_constraint": "none"}, "proportional"),
    "penalty at records": ({"penalty": "data", "penalty_weight": 0.5}, "spherical"),
    "penalty at records, not projected": (
        {"critic_constraint": "none", "penalty": "data", "activation": "leaky_relu"},
        "layerwise",
    ),
    "penalty at public points": ({"critic_constraint": "none", "penalty": "public"}, "optimal"),
    "clipping": ({"clip_norm": 0.3, "critic_constraint": "none"}, "spherical"),
}
SMALL_NETS = {"critic_hidden": (8, 6), "generator_hidden": (5,), "latent": 3, "critic_steps": 1}


def grid_of(layout: Any, places: int) -> Floats:
    """Points of the unit cube: a grid of all numbers, with every category of each group."""
    numbers = itertools.product(np.linspace(0, 1, places), repeat=layout.n_numeric)
    groups = [np.eye(stop - start) for start, stop in layout.groups]
    ends = [np.concatenate(rows) for rows in itertools.product(*groups)] if groups else [np.zeros(0)]
    return np.array([np.r_[n, g] for n in numbers for g in ends], np.float32)


class StepMeter:
    """The released gradient of a critic's step, over the noise that the step adds, for z = 1."""

    def __init__(self, trainer: Any, table: Floats, rng: np.random.Generator) -> None:
        import tensorflow as tf

        step, self.table = trainer.step, table
        data = tf.constant(trainer._centred(table))
        drawn = step.draws.draw(rng)
        self.shape, self.parameters = drawn["records"].shape, drawn["noise"].shape
        fixed = {k: tf.constant(v) for k, v in drawn.items() if k not in ("records", "noise", "mix")}
        fixed["noise_multiplier"] = tf.constant(1.0)
        self.mix = "mix" in drawn and step.settings.penalty == "data"
        if "mix" in drawn and not self.mix:
            fixed["mix"] = tf.constant(drawn["mix"])

        @tf.function(autograph=False)
        def gradient(state: Any, records: Any, noise: Any, mix: Any) -> Any:
            chunk = fixed | {"records": records, "noise": noise} | ({"mix": mix} if self.mix else {})
            found, *_ = step.noisy_gradient(state, data, trainer._bank, chunk, tf.constant(0), tf.constant(0))
            return step.expected_batch * tf.concat([tf.reshape(g, [-1]) for g in found], axis=0)

        self._gradient = gradient

    def __call__(self, state: Any, index: Sequence[int], *, noise: float = 0.0, mix: float = 0.5) -> Floats:
        records = np.full(self.shape, -1, np.int32)
        records[0, 0, : len(index)] = index
        noises = np.full(self.parameters, noise, np.float32)
        mixes = np.full(self.shape, mix, np.float32)
        return self._gradient(state, records, noises, mixes).numpy().astype(float)

    def found(self, posted: Posted, states: Sequence[Any], names: Callable[[int], str], words: str) -> Found:
        found = Found(posted, "row", words, tolerance=SINGLE)
        for state in states:
            std = np.abs(self(state, [], noise=1.0) - self(state, []))
            others = [0, len(self.table) // 2]
            for mix in (0.0, 0.5, 1.0) if self.mix else (0.5,):
                less = self(state, others, mix=mix)
                for k in range(len(self.table)):
                    moved = self(state, [*others, k], mix=mix) - less
                    found.see(float(np.linalg.norm(moved / std)), lambda k=k: names(k))
        return found


def states_of(trainer: Any, rng: np.random.Generator) -> list[Any]:
    """A critic as training begins, and two after updates so large that only a projection bounds them."""
    import tensorflow as tf

    from dpsynth.wgan.training import initial_state

    start = initial_state(trainer.layout, trainer.settings, rng).arrays
    critics = [start["critic"]]
    for size in (0.5, 2.0):
        critics.append([a + size * rng.standard_normal(a.shape).astype(np.float32) for a in start["critic"]])
    tensors = tf.nest.map_structure(tf.constant, start)
    return [{**tensors, "critic": trainer.step.constrain(list(map(tf.constant, c)))} for c in critics]


def critic_fits(rng: np.random.Generator) -> list[Found]:
    """Fits of both generators with critics, read on every record of the ward."""
    from dpsynth.wgan import matching, training
    from dpsynth.wgan.settings import TrainingSettings

    raw = every_record(WARD_RECORDS)
    domain = row_tables("ward", WARD, raw, rng, sizes=(3,), again=0)
    world, kept = World(domain), []
    frame = table_of(raw, 400, rng)
    run, call = training.TrainingRun.run, matching.GradientRelease.__call__

    def keeping_state(trainer: Any, *given: Any, **more: Any) -> Any:
        kept.append((trainer, run(trainer, *given, **more)))
        return kept[-1][1]

    def keeping_release(release: Any, blocks: Any, own: Any) -> Any:
        kept.append(release)
        return call(release, blocks, own)

    with ExitStack() as patched:
        patched.enter_context(mock.patch.object(training.TrainingRun, "run", keeping_state))
        patched.enter_context(mock.patch.object(matching.GradientRelease, "__call__", keeping_release))
        wgan = DPWGANGP(EPSILON, DELTA, steps=4, training=TrainingSettings(**SMALL_NETS), random_state=0)
        world.fit("DPWGANGP", wgan, frame, WARD)
        world.fit(
            "DPCriticMatching", DPCriticMatching(EPSILON, DELTA, critics=6, random_state=0), frame, WARD
        )
    (trainer, trained), release = kept
    found = largest(world.posted, domain)
    for_wgan, for_matching = (one for one in world.posted if one.name == "WGAN critic steps")

    import tensorflow as tf

    if trainer.noise_multiplier < multiplier_of(for_wgan.event):
        raise SystemExit("a critic is trained with less noise than its event says")
    conformed = WARD.conform_modelled(raw).drop_duplicates()
    records = FrameRecords(conformed)
    encoder = world.models["DPWGANGP"].model_.encoder
    with records.opened():
        points = records.rows(lambda table, first: encoder.transform_rows(table, first, 7))
    state = tf.nest.map_structure(tf.constant, trained.arrays)
    words = f"a table of 2 × all {len(points):,} records, the fit's last critic"
    meter = StepMeter(trainer, points, rng)
    found.append(meter.found(for_wgan, [state], lambda k: label_of(raw.loc[conformed.index[k]]), words))

    with mock.patch("dpsynth.wgan.matching.BLOCK", 64):
        encoder = world.models["DPCriticMatching"].model_.encoder
        found += changes([MatchingMeter(for_matching, release, encoder)], domain)
        grid = grid_of(encoder.layout, 3)
        grid = grid[rng.permutation(len(grid))[:150]]
        for shape in ("layerwise", "spherical", "proportional"):
            other = replace(release, plan=replace(release.plan, noise_shape=shape))
            meter = MatchingMeter(for_matching, other, encoder)
            named = replace(for_matching, name=f"WGAN critic steps, {shape}")
            own = Found(named, "row", f"no record × {len(grid)} points")
            nobody = meter.points(grid[:0])
            for point in grid:
                moved = meter.distance(meter.points(point[None]), nobody)
                own.see(moved, lambda point=point: f"point {np.round(point, 2).tolist()}")
            found.append(own)
    return found


def critic_steps(rng: np.random.Generator) -> list[Found]:
    """Steps of small critics of each kind, on every point of a grid."""
    from dpsynth.privacy.release import Plan
    from dpsynth.table.encoder import Layout
    from dpsynth.wgan.settings import TrainingSettings
    from dpsynth.wgan.training import TrainingRun

    layout = Layout(2, ((2, 5),))
    grid, found = grid_of(layout, 5), []
    for name, (options, shape) in CRITICS.items():
        settings = TrainingSettings(**SMALL_NETS | options)
        plan = Plan(sampling_prob=0.5, expected_batch=10.0, steps=2, noise_multiplier=1.0, noise_shape=shape)
        bank = grid if settings.penalty == "public" else None
        trainer = TrainingRun(grid, layout, settings, plan, bank=bank)
        posted = Posted(None, "WGAN critic step", "1", plan.event, name)
        states = states_of(trainer, rng)
        words = f"a table of 2 × {len(grid)} points, {len(states)} critics"
        if settings.penalty == "data":
            words += ", 3 places between a record and its partner"
        meter = StepMeter(trainer, grid, rng)
        found.append(meter.found(posted, states, lambda k: f"point {grid[k].tolist()}", words))
    return found


def own_pass(weights: Any, x: Floats, activation: str, slope: float) -> tuple[list[Floats], ...]:
    """Inputs and deltas of each layer, and masks, of points x by the chain rule in float64."""
    inputs, masks = [x], []
    for matrix, bias in weights[:-1]:
        s = inputs[-1] @ matrix + bias
        if activation == "maxmin":
            masks.append(s[:, 0::2] > s[:, 1::2])
            pair = s[:, 0::2], s[:, 1::2]
            inputs.append(np.hstack([np.maximum(*pair), np.minimum(*pair)]))
        else:
            masks.append(np.where(s > 0, 1.0, 0.0 if activation == "relu" else slope))
            inputs.append(s * masks[-1])
    deltas = [np.ones((len(x), 1))]
    for (matrix, _), mask in zip(weights[:0:-1], masks[::-1], strict=True):
        above = deltas[0] @ matrix.T
        if activation == "maxmin":
            high, low = np.hsplit(above, 2)
            both = np.where(mask, high, low), np.where(mask, low, high)
            deltas.insert(0, np.stack(both, axis=2).reshape(len(x), -1))
        else:
            deltas.insert(0, above * mask)
    return inputs, deltas, masks


def own_penalties(weights: Any, deltas: Any, masks: Any, activation: str) -> list[float]:
    """Largest norm of the gradient of ``(|grad_x D| - 1)^2`` by each matrix, over the points."""
    slopes = deltas[0] @ weights[0][0].T
    lengths = np.linalg.norm(slopes, axis=1)
    tangent, found = slopes / np.maximum(lengths, 1e-12)[:, None], []
    for layer, delta in enumerate(deltas):
        sizes = np.linalg.norm(tangent, axis=1) * np.linalg.norm(delta, axis=1)
        found.append(float((2 * np.abs(lengths - 1) * sizes).max()))
        if layer < len(masks):
            tangent = tangent @ weights[layer][0]
            if activation == "maxmin":
                one, other = tangent[:, 0::2], tangent[:, 1::2]
                mask = masks[layer]
                tangent = np.hstack([np.where(mask, one, other), np.where(mask, other, one)])
            else:
                tangent = tangent * masks[layer]
    return found


@dataclass(frozen=True)
class Theorems:
    """Largest found over bound of both theorems, for critics of one kind."""

    activation: str
    size: float
    component: float
    middle: float
    layer: float
    penalty: float
    published: float


def theorems(rng: np.random.Generator, critics: int = 5) -> list[Theorems]:
    """Bounds of Theorem 3.1.1 by component and layer, and of 3.1.3 by layer, beside gradients on a grid."""
    import tensorflow as tf

    from dpsynth.table.encoder import Layout
    from dpsynth.wgan.norms import spectral_norm_bound
    from dpsynth.wgan.theorems import (
        Domain as Box,
    )
    from dpsynth.wgan.theorems import gradient_bounds, penalty_radii, published_penalty_radii

    layout = Layout(2, ((2, 5),))
    x = (grid_of(layout, 11) - layout.center).astype(np.float32).astype(float)
    kinds = {"ReLU": ("relu", 0.0), "LeakyReLU": ("leaky_relu", 0.2), "MaxMin": ("maxmin", 0.0)}
    kinds["identity (smooth)"] = ("leaky_relu", 1.0)
    found = []
    for name, (activation, slope) in kinds.items():
        for size in (0.3, 1.0, 3.0):
            parts, layers, penalties, published = [], [], [], []
            for _ in range(critics):
                shapes = [(5, 6), (6, 4), (4, 1)]
                arrays = [(size * rng.standard_normal(s), size * rng.standard_normal(s[1])) for s in shapes]
                weights = [(w.astype(np.float32), b.astype(np.float32)) for w, b in arrays]
                weights[-1] = (weights[-1][0], None)
                norms = [spectral_norm_bound(tf.constant(w)) for w, _ in weights]
                box = gradient_bounds(
                    [(tf.constant(w), None if b is None else tf.constant(b)) for w, b in weights],
                    Box.from_layout(layout),
                    norms=norms,
                    activation=activation,
                    slope=slope,
                )
                wide = [(w.astype(float), None if b is None else b.astype(float)) for w, b in weights]
                inputs, deltas, masks = own_pass(wide, x, activation, slope)
                for layer, bound in enumerate(box):
                    own = [inputs[layer][:, :, None] * deltas[layer][:, None, :]]
                    own += [deltas[layer]] if len(bound.shapes) > 1 else []
                    for array, low, high in zip(own, bound.lo, bound.hi, strict=True):
                        low, high = (end.numpy().astype(float) for end in (low, high))
                        centre, half = (low + high) / 2, np.maximum((high - low) / 2, 1e-30)
                        parts.append((np.abs(array - centre).max(axis=0) / half).ravel())
                    squares = sum((array.reshape(len(x), -1) ** 2).sum(axis=1) for array in own)
                    layers.append(np.sqrt(squares).max() / float(bound.radius))
                own_norms = own_penalties(wide, deltas, masks, activation)
                tensors = [(tf.constant(w), b) for w, b in weights]
                whole = float(np.prod([float(norm) for norm in norms]))
                for one, tight, printed in zip(
                    own_norms,
                    penalty_radii(tensors, norms),
                    published_penalty_radii(tensors, whole),
                    strict=True,
                ):
                    penalties.append(one / float(tight))
                    published.append(one / float(printed))
            every = np.concatenate(parts)
            numbers = every.max(), np.median(every), max(layers), max(penalties), max(published)
            found.append(Theorems(name, size, *map(float, numbers)))
    return found


# --- is the brute force awake? -----------------------------------------------------------------------


def cheaper(release: GaussianRelease, part: float = 0.95) -> mock._patch:
    """Noise for a sensitivity that is 5 % too low."""
    return mock.patch.object(type(release), "l2_sensitivity", part * release.l2_sensitivity)


def doubled(release: GaussianRelease) -> mock._patch:
    """A query in which the first record counts twice."""
    query = type(release).query

    def twice(self: Any, records: FrameRecords) -> list[Any]:
        first = FrameRecords(records.frame().iloc[:1])
        with first.opened():
            again = query(self, first)
        return [one + more for one, more in zip(query(self, records), again, strict=True)]

    return mock.patch.object(type(release), "query", twice)


#: Faults, and the name of the release that each is put into.
FAULTS: tuple[tuple[str, Callable[[GaussianRelease], Any], str], ...] = (
    ("a sensitivity that is 5 % too low", cheaper, "number of records"),
    ("a sensitivity that is 5 % too low", cheaper, "single-column counts"),
    ("a record that counts twice", doubled, "tables of rows"),
)


#: Pairs of tables that the self-check reads.
_CHECKED = 15


def self_check(posted: Sequence[Posted], domain: Domain) -> list[tuple[str, str, float, float]]:
    """Fault, release, and the largest ratio without the fault and with it."""
    found = []
    for fault, put, name in FAULTS:
        one = next(one for one in posted if one.name == name)
        (right,) = largest([one], domain, first=_CHECKED)
        with put(one.release):
            (wrong,) = largest([one], domain, first=_CHECKED)
        found.append((fault, name, right.ratio, wrong.ratio))
    return found


def awake(checked: Iterable[tuple[str, str, float, float]]) -> bool:
    """Whether every fault is reported, and nothing without one."""
    return all(right <= 1 + EXACT < wrong for *_, right, wrong in checked)


# --- the page ----------------------------------------------------------------------------------------

INTRODUCTION = """# Sensitivities by brute force

`python benchmarks/sensitivities.py`, {date}, {seconds:.0f} s on one core.

Each line is a noisy statistic that a fit posted in its ledger. It was read on made-up tables with one
record and without, before noise. *Found* is the largest change. *Posted* is the number at the beginning of
the ledger's words. The change is measured in the noise that each number gets, divided by the noise
multiplier of the posted event. So a ratio of 1 is what the event allows, whatever the weights of a
statistic's parts. Base model edges are not Gaussian. Each score may change by 1, and the log probabilities
of a choice by a range of ε. A step of a WGAN critic has its sensitivity proved from its weights. *Posted*
is then 1, in units of the proved noise.

- Rows have every combination of a few values: extremes, missing values, special codes, and values beyond
  the bounds. Records stand at random places of the tables.
- Patients have every sequence of a few kinds of rows, up to one row more than are used. Kinds have equal or
  different times, missing values, extremes, and values beyond the bounds. Identifiers are spelled in
  several ways. Columns with one value per patient have special codes. A column that changes from row to row
  cannot have them.
- Some sequences are sampled, as the table says. All equal rows are added. Records of "wide" are sampled.
- Encoded records of WGAN critics have a random place in their cell. It is the same with and without the
  record.
- Tables of `sample_many` read samples of the model. Nothing more stood in the ledger of the real records.
- Exact sums may exceed 1 by 1e-9, and those of a step of a WGAN critic, which are float32, by 5e-4.
"""

THEOREMS = """## Theorems 3.1.1 and 3.1.3 by component and by layer

Five random WGAN critics of each kind, with five inputs and layers of 6 and 4, on 363 points. Gradients are
computed here in float64. Weights are normal, times the size. Numbers are found over bound. *Component*:
distance from the centre of the interval over its half range. *Layer*: norm of a layer's gradient over its
ball. *Penalty*: norm of the penalty's gradient by one matrix over the bound by spectral norms. *As
printed*: over the bound of (3.34).

The package has no smooth activation but the identity, which is LeakyReLU of slope 1. So it stands for
smooth ones.
"""

CHECK = """## The brute force is awake

Three faults were put into the code while the script ran.
"""

#: Why a ratio is below 0.9, by a pattern of statistic and part.
REASONS: dict[str, str] = {
    "penalty at records": (
        "The bounds of a record's gradient and of its penalty add up. The largest of both do not meet in one "
        "record. The penalty's bound is a product of norms of matrices, which no single direction reaches."
    ),
    "^WGAN critic": (
        "Intervals bound each component by itself, and norms each layer by itself. No single record reaches "
        "all of them at once. `allocate` takes the norm of the half ranges."
    ),
    "range of the loss": (
        "A record changes each score by 1 at most, up or down. The range is ε only if one candidate rises by "
        "1 and another falls by 1, which depends on the counts of the table."
    ),
    "score of study linear": (
        "A record's weight assumes the worst of all outcomes: a residual of three spreads "
        "(`Linear.extremes`). It does not use that the outcome's own bounds lie closer."
    ),
    "score of study": (
        "The bound is a quantile of how far samples reach, after a correction has moved them (`corrected`). "
        "Here it lies above the reach of every possible record."
    ),
    "information of study": (
        "The cap is a quantile of samples. No record of this domain has an information as large as the cap."
    ),
    "tables of rows": (
        "A patient adds a vector of length 1 to each table that their rows reach. Residuals need five values "
        "and pairs two changes, which these patients lack. Long histories reach the bound."
    ),
}


def reason(found: Found) -> str:
    """Why a bound is not tight, from the code."""
    name = found.posted.name
    known = (
        (pattern, text)
        for pattern, text in REASONS.items()
        if re.search(pattern, f"{name} {found.posted.of}")
    )
    return next((text for _, text in known), "not explained")


def page(
    found: Sequence[Found],
    kinds: dict[str, tuple[str, ...]],
    bounds: Sequence[Theorems],
    checked: Sequence[Any],
    seconds: float,
) -> str:
    loose = [one for one in found if one.ratio < TIGHT]
    over = [one for one in found if one.too_far]
    most = max(found, key=lambda one: one.ratio)
    lines = [
        INTRODUCTION.format(date=date.today(), seconds=seconds, releases=len(found)),
        f"Found above posted: **{len(over)}** of {len(found)}. The largest ratio is {most.ratio:.7f}.",
        f"It is below {TIGHT:g} in {len(loose)} lines, which are explained below.",
        "",
        "| noisy statistic | generator or part | unit | tables × records | found | posted | ratio | record |",
        "|---|---|---|---|---:|---:|---:|---|",
        *("| " + " | ".join(one.cells()) + " |" for one in found),
        "",
        "## Why some bounds are not tight",
        "",
    ]
    for text in dict.fromkeys(reason(one) for one in loose):
        of = [one for one in loose if reason(one) == text]
        named = dict.fromkeys(f"{one.posted.name} ({one.posted.of}, {one.ratio:.2f})" for one in of)
        lines.append(f"- {text}")
        lines += [f"  - {each}" for each in named]
    lines += ["", "## Kinds of rows", ""]
    for name, own in kinds.items():
        lines += [f"- {name}", *(f"  {k}. {kind}" for k, kind in enumerate(own, 1))]
    lines += [
        "",
        THEOREMS,
        "| activation | size | component, largest | component, median | layer | penalty | as printed |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {one.activation} | {one.size:g} | {one.component:.6f} | {one.middle:.6f} | {one.layer:.4f} "
        f"| {one.penalty:.4f} | {one.published:.4f} |"
        for one in bounds
    ]
    lines += [
        "",
        CHECK,
        "| fault | noisy statistic | ratio without it | ratio with it | reported |",
        "|---|---|---:|---:|---|",
    ]
    lines += [
        f"| {fault} | {name} | {right:.4f} | {wrong:.4f} | {'yes' if wrong > 1 + EXACT else 'NO'} |"
        for fault, name, right, wrong in checked
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=[*WORLDS, "critics"], help="print these, write no page")
    parser.add_argument("--out", type=Path, help="Markdown file of all of them")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    begun = time.process_time()
    found: list[Found] = []
    bounds: list[Theorems] = []
    checked: list[tuple[str, str, float, float]] = []
    kinds: dict[str, tuple[str, ...]] = {}
    for name in given.only or (*WORLDS, "critics"):
        rng = np.random.default_rng(given.seed)
        if name == "critics":
            found += (here := [*critic_steps(rng), *critic_fits(rng)])
            bounds = theorems(rng)
        else:
            world = WORLDS[name](rng)
            found += (here := largest(world.posted, world.domain))
            kinds |= {name: world.domain.kinds} if world.domain.kinds else {}
            if name == "visits":
                checked = self_check(world.posted, world.domain)
        for one in here:
            print(" | ".join(one.cells()), flush=True)
        print(f"{name}: {time.process_time() - begun:.0f} s of the processor so far", flush=True)
    for one in checked:
        print(*one, sep=" | ")
    too_far = [one for one in found if one.too_far]
    for one in too_far:
        print("FOUND EXCEEDS POSTED:", " | ".join(one.cells()))
    if not given.only:
        if missing := unread(found):
            sys.exit(f"no fit posts {', '.join(sorted(missing))}")
        text = page(found, kinds, bounds, checked, time.process_time() - begun)
        if given.out is not None:
            given.out.write_text(text, encoding="utf-8")
    return int(bool(too_far) or not awake(checked))


if __name__ == "__main__":
    sys.exit(main())
