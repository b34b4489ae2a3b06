"""What every release promises: its event describes the noise that is drawn, its sensitivity bounds every
neighbour, and nothing is read that is not posted before.

The noise and the sensitivity of the critic's steps, which need TensorFlow, are tested in the same way in
``tests/wgan/test_step.py``.
"""

from __future__ import annotations

import itertools
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path

import dp_accounting
import numpy as np
import pandas as pd
import pytest
from releases import release_marginals
from scipy import stats
from visits import (
    CAREERS,
    DIAGNOSES,
    FILED,
    KEPT,
    STAYS,
    VISITS,
    WARD_HOURS,
    WARDS,
    careers,
    diagnoses,
    filed,
    stays,
    visits,
    ward_hours,
    wards,
)

import dpsynth
from dpsynth.checks import Counted
from dpsynth.errors import PrivacyError
from dpsynth.marginals import statistics as structure
from dpsynth.marginals.binning import Bins
from dpsynth.marginals.features import PairFeatures
from dpsynth.marginals.groups import Beside, GroupsRelease, OtherColumns
from dpsynth.marginals.growth import Candidate, Resolution, TableChoiceRelease
from dpsynth.marginals.network import BaseModelReleases
from dpsynth.marginals.statistics import (
    MarginalsRelease,
    PairwiseStatisticsRelease,
    TablesRelease,
)
from dpsynth.patients.reader import reader_of
from dpsynth.patients.schema import MOST_ROWS, PatientSchema
from dpsynth.privacy import Ledger
from dpsynth.privacy.events import event_to_dict, gaussian_event
from dpsynth.privacy.records import _BLOCK as BLOCK
from dpsynth.privacy.records import FrameRecords
from dpsynth.privacy.release import (
    ChoiceRelease,
    CountRelease,
    CriticRelease,
    GaussianRelease,
    Plan,
    Release,
)
from dpsynth.privacy.stages import Stage
from dpsynth.studies.estimation import Linear, StudyDesign
from dpsynth.studies.statistics import (
    InformationRelease,
    LifeTable,
    LifeTableRelease,
    ScorePoint,
    ScoreRelease,
    StudyRelease,
)
from dpsynth.studies.study import Study
from dpsynth.synthesis.parts.rows import VisitsRelease
from dpsynth.table.grid import Counting
from dpsynth.table.schema import Column, Schema
from dpsynth.wgan.matching import GradientRelease

ROOT = Path(dpsynth.__file__).parents[1]
#: Modules that define a release of a fit. Audits plant records of their own.
HOMES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "dpsynth").rglob("*.py")
    if path.parent.name != "audits"
    and re.search(r"^class \w*Release\b", path.read_text(encoding="utf-8"), re.MULTILINE)
]
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=99, missing=True),
        Column(name="lab", kind="continuous", lower=0.1, upper=50, scale="log", cells=200, missing=True),
        Column(name="group", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="died", kind="binary", categories=(0, 1)),
        Column(name="stage", kind="ordinal", categories=(1, 2, 3, 4)),
    ),
    outcome="died",
)
_LAB = SCHEMA.columns[1].model_copy(update={"cells": None, "decimals": 1, "special": (-1.0, 99.0)})
#: Columns of many values are counted in intervals and value by value: two, where there are few records.
TWICE = SCHEMA.model_copy(update={"columns": (SCHEMA.columns[0], _LAB, *SCHEMA.columns[2:])})
Z = 1.7


def table(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 100, n)),
            "lab": np.where(rng.random(n) < 0.2, np.nan, np.exp(rng.normal(1, 1, n)).clip(0.1, 50)),
            "group": np.array(["a", "b", "c", None], dtype=object)[rng.integers(0, 4, n)],
            "died": rng.integers(0, 2, n),
            "stage": rng.integers(1, 5, n),
        }
    )
    return SCHEMA.conform(frame).frame


DATES = Schema(
    columns=(
        Column(name="day", kind="date", lower="2020-01-01", upper="2020-03-09", cycles=("weekday", "month")),
        Column(
            name="seen",
            kind="datetime",
            lower="2020-01-01",
            upper="2020-01-09",
            step=3600,
            missing=True,
            cycles=("hour",),
        ),
    )
)


def dates(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    start = pd.Timestamp("2020-01-01")
    seen = start + pd.to_timedelta(rng.integers(0, 8 * 24, n), unit="h")
    days = start + pd.to_timedelta(rng.integers(0, 69, n), unit="D")
    return DATES.conform(pd.DataFrame({"day": days, "seen": seen.where(rng.random(n) < 0.9)})).frame


@dataclass(frozen=True, eq=False)
class Patients:
    """Records of patients with several rows, as a fit reads them."""

    schema: PatientSchema
    rows: Callable[..., pd.DataFrame]

    def read(self, rows: pd.DataFrame) -> pd.DataFrame:
        return reader_of(self.schema, seed=7).records(rows)

    @cache  # no test changes a frame  # noqa: B019
    def __call__(self, n: int, seed: int = 0) -> pd.DataFrame:
        return self.read(self.rows(n, seed))

    @cached_property
    def spelled(self) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
        """Records whose identifiers are spelled in several ways, and those without each patient's rows."""
        rows = self.rows(6, seed=3).sort_values("id", kind="stable", ignore_index=True)
        ids = rows["id"].astype(str).str.cat(np.resize(["", " ", "\u200b", ".0"], len(rows)))
        spelled, own = rows.assign(id=ids), rows["id"]
        return self.read(spelled), [self.read(spelled[own != k]) for k in own.unique()]


def long_visits(n: int, seed: int = 0) -> pd.DataFrame:
    """As many rows as are used at most, and more. One patient has them all alike, one all but the time."""
    frame = visits(n, seed, most=MOST_ROWS + 50)
    alike = [pd.DataFrame({**frame.iloc[k], "id": n + k}, index=range(MOST_ROWS + 1)) for k in (0, 1)]
    alike[1]["day"] = range(MOST_ROWS + 1)
    return pd.concat([frame, *(rows.assign(lab=50.0, grade="b") for rows in alike)], ignore_index=True)


LONG = VISITS.model_copy(update={"most": MOST_ROWS})
#: Records with an outcome: rows, or the levels of patients.
LEVELS = Patients(STAYS.model_copy(update={"outcome": "died"}), stays)
SOURCES: dict[str, tuple[Schema, Callable[..., pd.DataFrame]]] = {
    "rows": (SCHEMA, table),
    "levels": (LEVELS.schema.levels.modelled, LEVELS),
}

WIDE = Schema(
    columns=(
        Column(
            name="cost",
            kind="continuous",
            lower=0,
            upper=150,
            decimals=1,
            missing=True,
            special=(-1.0,),
        ),
        Column(name="seen", kind="datetime", lower="2020-01-01", upper="2020-03-10", step=3600),
    )
)
#: Columns of more than a thousand values are counted in blocks, and by the places and last digits of values.
FEW = Counting(cells=8, values=20, twice=100, blocks=200, digits=40, wide=1000)


def wide(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    cost = np.where(
        rng.random(n) < 0.3, [12.3, -1.0, np.nan] * (n // 3) + [5.0] * (n % 3), 150 * rng.random(n)
    )
    seen = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 69 * 24, n), unit="h")
    return WIDE.conform(pd.DataFrame({"cost": cost, "seen": seen})).frame


@cache
def released_marginals(of: str = "rows"):
    schema, made = SOURCES[of]
    return release_marginals(made(300), schema, n=300, noise_multiplier=4.0, rng=np.random.default_rng(0))


def bins_of(kind: str, of: str = "rows") -> Bins:
    classes = 2 if kind == "tan" else 1
    root = SOURCES[of][0].names.index("died")
    return Bins.of(released_marginals(of), root=root, classes=classes, noise_std=3.0)


def marginals(schema: Schema = SCHEMA, n: int = 30_000) -> MarginalsRelease:
    return MarginalsRelease(schema=schema, n=n, noise_multiplier=Z)


def base_model(kind: str, of: str = "rows") -> BaseModelReleases:
    return BaseModelReleases.plan(SOURCES[of][0], kind, noise_multiplier=Z, epsilon=0.7)


def tables(kind: str, of: str = "rows") -> GaussianRelease:
    bins, releases = bins_of(kind, of), base_model(kind, of)
    records = FrameRecords(SOURCES[of][1](300))
    families = Ledger().run(replace(releases.edges, epsilon=None).at(bins), records, np.random.default_rng(0))
    return releases.tables.of(bins, families)


def edges(kind: str, of: str = "rows") -> structure.EdgesRelease:
    return base_model(kind, of).edges.at(bins_of(kind, of))


@cache
def candidates(of: str = "rows") -> list[list[Candidate]]:
    """All tables of each column with one or two before it, and what some model expects in them."""
    bins, rng = bins_of("tree", of), np.random.default_rng(5)
    laws = [binning.probabilities for binning in bins.binnings]
    resolution = Resolution(bins.grids, bins.binnings, laws, bins.n, 3.0)

    def some(family: tuple[int, ...]) -> Candidate:
        cells = resolution.cells(family)
        expected = bins.n * rng.dirichlet(np.ones(np.prod(cells.shape))).reshape(cells.shape)
        return Candidate(cells, resolution.axes(cells), expected, 33.3)

    number = len(laws) if of == "rows" else 4
    before = [[(i,) for i in range(j)] + list(itertools.combinations(range(j), 2)) for j in range(1, number)]
    return [[some((*parents, j)) for parents in each] for j, each in enumerate(before, 1)]


def choice(of: str = "rows") -> TableChoiceRelease:
    return TableChoiceRelease(count=4, epsilon=0.7, noise_std=3.0).at(candidates(of))


def further_tables(of: str = "rows") -> TablesRelease:
    axes = {each[-1].cells.columns: each[-1].axes for each in candidates(of)}
    return TablesRelease(count=len(axes), noise_multiplier=Z, name="further tables").at(axes)


CODES = [f"{group}{k}" for group in "cd" for k in range(5)]
CODED = Schema(
    columns=(*SCHEMA.columns, *(Column(name=name, kind="binary", categories=(0, 1)) for name in CODES)),
    outcome="died",
    groups=({"columns": "c*", "at_most": 3}, {"columns": CODES[5:], "at_most": 2}),
)


def coded(n: int, seed: int = 0) -> pd.DataFrame:
    """Records with codes, every other one with more of each group than it may have."""
    rng = np.random.default_rng(seed)
    ones = rng.random((n, len(CODES))) < np.resize([0.9, 0.3], n)[:, None]
    codes = pd.DataFrame(ones.astype(int), columns=CODES)
    return CODED.conform(pd.concat([table(n, seed), codes], axis=1)).frame


def groups(*columns: str) -> GroupsRelease:
    """Counts of both groups beside these columns."""
    schema, rng = CODED.select([*columns, *CODES]), np.random.default_rng(5)
    others = schema.ungrouped.modelled
    marginals = release_marginals(coded(300), others, n=300, noise_multiplier=4.0, rng=rng)
    bins = Bins.of(marginals, root=None, classes=1, noise_std=3.0)
    draws = np.stack([rng.integers(0, binning.size, 400) for binning in bins.binnings], axis=1)
    outcome = None if others.outcome is None else others.names.index(others.outcome)
    beside = Beside(bins.grids, OtherColumns.of(bins, draws, outcome), 300.0)
    return GroupsRelease(noise_multiplier=Z, schema=schema).at(beside)


STUDIES = {
    "logistic": Study(model="logistic: died ~ age + log(lab) + group + stage"),
    "linear": Study(model="linear: age ~ lab + died"),
    "of 1 + x": Study(model="logistic: died ~ log1p(age) + log1p(lab) + group"),
    "cox": Study(model="cox: (lab, died) ~ stage + group", intervals=(2.0, 4.0, 8.0)),
    "subgroup": Study(model="logistic: died ~ age + group where stage >= 3 and lab > 1"),
    "share": Study(model="logistic: died ~ 1 where group == 'a'"),
}
LEVEL_STUDIES = {
    "logistic": Study(model="logistic: died ~ first_age + sex + sbp mean + dose rise"),
    "cox": Study(model="cox: (end, died) ~ first_age + sex", intervals=(1000.0, 2000.0)),
}


def point(kind: str, of: str = "rows") -> ScorePoint:
    """A point whose whitening is no multiple of the identity, and where most records reach their bounds."""
    schema, made = SOURCES[of]
    study, draws = (STUDIES if of == "rows" else LEVEL_STUDIES)[kind], made(300, seed=7)
    design = StudyDesign.of(schema, study.effects(schema), draws, study.intervals)
    if kind == "linear":
        design = replace(design, family=Linear(0.05))
    rng = np.random.default_rng(5)
    root = rng.normal(size=(design.size, design.size))
    return ScorePoint(design, rng.normal(size=design.size) / 2, root @ root.T + np.eye(design.size), 0.2, 0.1)


def pairwise_statistics(outcome: int | None, of: str = "rows") -> PairwiseStatisticsRelease:
    bins, rng = bins_of("tan", of), np.random.default_rng(5)
    draws = np.stack([rng.integers(0, binning.size, 400) for binning in bins.binnings], axis=1)
    return PairwiseStatisticsRelease(noise_multiplier=Z).at((bins, PairFeatures.of(bins, draws, outcome)))


def score(kind: str, of: str = "rows") -> ScoreRelease:
    return ScoreRelease(study="a", noise_multiplier=Z).at(point(kind, of))


def information(kind: str, of: str = "rows") -> InformationRelease:
    return InformationRelease(study="a", noise_multiplier=Z).at(point(kind, of))


def rows_point(model: str, schema: PatientSchema) -> ScorePoint:
    """A point of a regression of patients' rows, where most rows reach their bounds."""
    study, draws = Study(model=model), VISITS.table.conform(visits(300, seed=7).drop(columns="id")).frame
    design = StudyDesign.of(study.table(schema), study.effects(schema), draws, None, study.clusters(schema))
    if study.model.startswith("linear"):
        design = replace(design, family=Linear(0.05))
    root = np.random.default_rng(5).normal(size=(design.size, design.size))
    return ScorePoint(design, np.ones(design.size) / 2, root @ root.T + np.eye(design.size), 0.2, 0.1)


def of_rows(kind: type[StudyRelease], model: str, schema: PatientSchema = VISITS) -> StudyRelease:
    return kind(study="a", noise_multiplier=Z).at(rows_point(model, schema))


def life_table(model: str, of: str = "rows") -> LifeTableRelease:
    schema, made = SOURCES[of]
    intervals = LifeTable.of(schema, Study(model=model).effects(schema), made(300, seed=7), (2.0, 4.0))
    return LifeTableRelease(study="a", noise_multiplier=Z).at(intervals)


def critic() -> CriticRelease:
    plan = Plan(sampling_prob=0.1, expected_batch=30.0, steps=20, noise_multiplier=Z)
    return CriticRelease(
        plan=plan, sensitivity="proved each step", train=lambda records, plan, rng: (records.size(), plan)
    )


@dataclass(frozen=True)
class Case:
    make: Callable[[], object]
    sensitivity: float | None = None  # independently known; None where the release is no Gaussian query
    slack: float = 1e-6  # of the record that is farthest, where no record can be drawn that is as far as any
    table: Callable[..., pd.DataFrame] = table


patients = Patients(VISITS, visits)
CASES = {
    "count": Case(lambda: CountRelease(noise_multiplier=Z), 1.0),
    "marginals": Case(marginals, np.sqrt(5 + 1)),
    "counted twice": Case(lambda: marginals(TWICE, 320), np.sqrt(5 + 2 + 2 + 1)),  # and two last digits
    "blocks": Case(lambda: replace(marginals(WIDE), counted=FEW), np.sqrt(2 + 2 + 2 + 2), table=wide),
    "without panel": Case(lambda: marginals(SCHEMA.select(["group", "died"])), np.sqrt(2)),
    "cycles": Case(lambda: marginals(DATES), np.sqrt(2 + 3), table=dates),
    "tree tables": Case(lambda: tables("tree"), np.sqrt(4)),
    "tan tables": Case(lambda: tables("tan"), np.sqrt(3 + 4 / 3)),  # and four of the outcome with one column
    "pairwise statistics": Case(lambda: pairwise_statistics(None), 1.0, slack=0.01),
    "pairwise statistics with the outcome": Case(lambda: pairwise_statistics(3), 1.0, slack=0.01),
    "pairwise statistics with an ordinal outcome": Case(lambda: pairwise_statistics(4), 1.0, slack=0.01),
    "choice of further tables": Case(choice),
    "further tables": Case(further_tables, np.sqrt(4)),
    # ten pairs, and five codes that count sqrt(2), 1 beside the outcome and sqrt(2) beside other columns
    "groups": Case(lambda: groups(*SCHEMA.names), np.sqrt(10 + (2 + 1 + 2) * 5), slack=1e-3, table=coded),
    "groups beside the outcome": Case(
        lambda: groups("died"), np.sqrt(10 + (2 + 1) * 5), slack=1e-3, table=coded
    ),
    "groups without outcome": Case(
        lambda: groups("age", "group"), np.sqrt(10 + (2 + 2) * 5), slack=1e-3, table=coded
    ),
    "tree edges": Case(lambda: edges("tree")),
    "tan edges": Case(lambda: edges("tan")),
    "logistic score": Case(lambda: score("logistic"), 1.0),
    "linear score": Case(lambda: score("linear"), 1.0),
    "score of logarithms of 1 + x": Case(lambda: score("of 1 + x"), 1.0),
    "cox score": Case(lambda: score("cox"), 1.0, slack=0.6),
    "score of a subgroup": Case(lambda: score("subgroup"), 1.0),
    "score of a share": Case(lambda: score("share"), 1.0),
    "logistic information": Case(lambda: information("logistic"), 1.0),
    "cox information": Case(lambda: information("cox"), 1.0),
    "information of a subgroup": Case(lambda: information("subgroup"), 1.0),
    "logistic score of rows": Case(
        lambda: of_rows(ScoreRelease, "logistic: sex ~ lab + weight"), 1.0, table=patients
    ),
    "linear score of rows": Case(
        lambda: of_rows(ScoreRelease, "linear: weight ~ lab + sex"), 1.0, table=patients
    ),
    "linear information of rows": Case(
        lambda: of_rows(InformationRelease, "linear: weight ~ lab + sex"), 1.0, table=patients
    ),
    "life table": Case(lambda: life_table("cox: (lab, died) ~ age where stage >= 2"), 1.0),
    "count of patients": Case(lambda: CountRelease(noise_multiplier=Z), 1.0, table=LEVELS),
    "marginals of levels": Case(lambda: marginals(SOURCES["levels"][0]), np.sqrt(22 + 5 + 1), table=LEVELS),
    "tree tables of levels": Case(lambda: tables("tree", "levels"), np.sqrt(21), table=LEVELS),
    "tan tables of levels": Case(lambda: tables("tan", "levels"), np.sqrt(20 + 21 / 3), table=LEVELS),
    "choice of further tables of levels": Case(lambda: choice("levels"), table=LEVELS),
    "further tables of levels": Case(lambda: further_tables("levels"), np.sqrt(3), table=LEVELS),
    "tan edges of levels": Case(lambda: edges("tan", "levels"), table=LEVELS),
    "pairwise statistics of levels": Case(
        lambda: pairwise_statistics(None, "levels"), 1.0, slack=0.05, table=LEVELS
    ),
    "logistic score of levels": Case(lambda: score("logistic", "levels"), 1.0, table=LEVELS),
    "cox score of levels": Case(lambda: score("cox", "levels"), 1.0, slack=0.6, table=LEVELS),
    "cox information of levels": Case(lambda: information("cox", "levels"), 1.0, table=LEVELS),
    "life table of levels": Case(lambda: life_table("cox: (end, died) ~ sex", "levels"), 1.0, table=LEVELS),
    "tables of rows": Case(
        lambda: VisitsRelease(noise_multiplier=Z, schema=VISITS), np.sqrt(10), table=patients
    ),
    "tables of random rows": Case(
        lambda: VisitsRelease(noise_multiplier=Z, schema=VISITS),
        np.sqrt(10),
        table=Patients(VISITS.model_copy(update={"keep": "random"}), visits),
    ),
    "tables of long histories": Case(
        lambda: VisitsRelease(noise_multiplier=Z, schema=LONG), np.sqrt(10), table=Patients(LONG, long_visits)
    ),
    "score of long histories": Case(
        lambda: of_rows(ScoreRelease, "linear: weight ~ lab + sex", LONG),
        1.0,
        slack=0.2,
        table=Patients(LONG, long_visits),
    ),
    "information of long histories": Case(
        lambda: of_rows(InformationRelease, "linear: weight ~ lab + sex", LONG),
        1.0,
        slack=1e-4,
        table=Patients(LONG, long_visits),
    ),
    "tables of rows of several files": Case(
        lambda: VisitsRelease(noise_multiplier=Z, schema=FILED), np.sqrt(11), table=Patients(FILED, filed)
    ),
    "tables of rows with courses": Case(
        lambda: VisitsRelease(noise_multiplier=Z, schema=STAYS), np.sqrt(12), table=Patients(STAYS, stays)
    ),
    "tables of rows with events that happen once": Case(
        lambda: VisitsRelease(noise_multiplier=Z, schema=DIAGNOSES),
        np.sqrt(7),
        table=Patients(DIAGNOSES, diagnoses),
    ),
    "tables of rows with categories that are kept": Case(
        lambda: VisitsRelease(noise_multiplier=Z, schema=KEPT),
        np.sqrt(7),
        table=Patients(KEPT, diagnoses),
    ),
    "tables of rows with rates": Case(
        lambda: VisitsRelease(noise_multiplier=Z, schema=CAREERS),
        np.sqrt(8),
        table=Patients(CAREERS, careers),
    ),
    "tables of rows within stays": Case(
        lambda: VisitsRelease(noise_multiplier=Z, schema=WARD_HOURS),
        np.sqrt(18),
        table=Patients(WARD_HOURS, ward_hours),
    ),
    "tables of rows with categories": Case(
        lambda: VisitsRelease(noise_multiplier=Z, schema=WARDS), np.sqrt(14), table=Patients(WARDS, wards)
    ),
    "critic": Case(critic),
}
# a release is frozen, and a test that changes one makes a copy
CASES = {name: replace(case, make=cache(case.make)) for name, case in CASES.items()}
GAUSSIAN = [name for name, case in CASES.items() if case.sensitivity is not None]
#: releases of which a test takes seconds
SLOW = ("marginals of levels", "tables of rows with courses")


def cases(names):
    return [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in names]


def cells(arrays) -> np.ndarray:
    return np.concatenate([np.ravel(array) for array in arrays])


def weighted(release: GaussianRelease, arrays) -> np.ndarray:
    """Arrays in the units of the sensitivity, as one vector."""
    return cells(array * weight for array, weight in zip(arrays, release.weights, strict=False))


def exact(release: GaussianRelease, steps) -> np.ndarray:
    return weighted(release, (array * step for array, step in zip(steps, release.steps, strict=False)))


def read(release: GaussianRelease, frame: pd.DataFrame) -> np.ndarray:
    records = FrameRecords(frame)
    with records.opened():
        return exact(release, release.query(records))


def noises(release: GaussianRelease, frame: pd.DataFrame, rng: np.random.Generator, times: int) -> np.ndarray:
    """Noise of each cell in each of so many runs."""
    records = FrameRecords(frame)
    with records.opened(), pytest.MonkeyPatch.context() as patch:
        counts = release.query(records)
        # the same numbers in every run, which take longer than their noise
        patch.setattr(type(release), "query", lambda self, records: [np.copy(array) for array in counts])
        true = exact(release, counts)
        return np.stack([weighted(release, release.measure(records, rng)) - true for _ in range(times)])


@pytest.mark.parametrize("name", cases(GAUSSIAN))
def test_sensitivity_bounds_every_neighbour(name):
    """A sensitivity below what one record does to the counts; by brute force, and tight."""
    release, frame = CASES[name].make(), CASES[name].table(40, seed=1)
    full = read(release, frame)
    moved = [np.linalg.norm(full - read(release, frame.drop(index=row))) for row in frame.index]
    case = CASES[name]
    assert max(moved) <= release.l2_sensitivity * (1 + 1e-12) and release.l2_sensitivity == pytest.approx(
        case.sensitivity
    )
    assert max(moved) >= release.l2_sensitivity * (1 - case.slack)


@pytest.mark.parametrize(
    "name", cases([name for name in GAUSSIAN if isinstance(CASES[name].table, Patients)])
)
def test_a_patient_with_all_rows_in_any_spelling_is_one_neighbour(name):
    """A patient who moves a release as two do, since their identifier is spelled in several ways, or whose
    rows, more than may be used, change what is read of another patient.
    """
    release, patients = CASES[name].make(), CASES[name].table
    full, neighbours = patients.spelled
    moved = [np.linalg.norm(read(release, full) - read(release, less)) for less in neighbours]
    assert max(moved) <= release.l2_sensitivity * (1 + 1e-12)
    assert {len(full) - len(less) for less in neighbours} == {1}
    assert full["rows"].max() <= patients.schema.most


@pytest.mark.slow
@pytest.mark.parametrize("name", cases([name for name in GAUSSIAN if "long" not in name]))
def test_what_a_record_adds_depends_on_no_number_of_records(name):
    """A sum that changes from so many records on: where a block ends, or a number of patients repeats.

    One step beyond each block. Sums are whole numbers, so those over copies are multiples.
    """
    release, frame, times = CASES[name].make(), CASES[name].table(41, seed=4), 500
    many = pd.concat([frame] * times, ignore_index=True)
    assert len(many) > BLOCK + 1
    for once, all_times in zip(arrays_of(release, frame), arrays_of(release, many), strict=True):
        np.testing.assert_array_equal(all_times, times * once)


@pytest.mark.parametrize("name", cases(GAUSSIAN))
def test_the_event_describes_the_noise(name):
    """Noise of another scale than the event's multiplier times the sensitivity, or a cell without noise.

    The sensitivity is the independently known one. Each cell by itself: pooled with all others, the cell of
    missing values would not be missed.
    """
    release, frame, rng = CASES[name].make(), CASES[name].table(300), np.random.default_rng(1)
    times = max(40, 2000 // len(read(release, frame)))
    scale = release.event.noise_multiplier * CASES[name].sensitivity
    draws = noises(release, frame, rng, times) / scale
    assert release.event == dp_accounting.GaussianDpEvent(Z)
    assert draws.shape[1] == len(read(release, frame))
    assert stats.kstest(draws.ravel(), "norm").pvalue > 1e-3
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(wrong * draws.ravel(), "norm").pvalue < 1e-6
    squares, law = (draws**2).sum(axis=0), stats.chi2(len(draws))
    assert min(law.cdf(squares).min(), law.sf(squares).min()) > 1e-7
    if draws.shape[1] > 1:
        assert np.abs(np.corrcoef(draws.T) - np.eye(draws.shape[1])).max() < 0.85


@pytest.mark.parametrize("name", cases(GAUSSIAN))
def test_noise_is_the_generators_own_and_not_cut(name, monkeypatch):
    """Noise of a seed that nobody gave, or that ends at 3.5 standard deviations, which excludes a table."""
    release, frame, rng = CASES[name].make(), CASES[name].table(50), np.random.default_rng(12)
    tails, scales = (3.6, -3.6, 5.2, -5.2, 9.0, -9.0), []
    following = itertools.cycle(tails)

    def far(scale, size, given):
        assert given is rng
        scales.append(scale)
        return np.array([next(following) * scale for _ in range(size)], dtype=np.int64)

    monkeypatch.setattr("dpsynth.privacy.noise.discrete_gaussian", far)
    (drawn,) = noises(release, frame, rng, 1)
    expected = np.resize(tails, drawn.shape)
    np.testing.assert_allclose(drawn / (Z * release.l2_sensitivity), expected, rtol=2e-6)
    assert min(scales) >= 2**30


def arrays_of(release: GaussianRelease, frame: pd.DataFrame) -> list[np.ndarray]:
    records = FrameRecords(frame)
    with records.opened():
        return list(release.query(records))


@pytest.mark.parametrize("name", cases(GAUSSIAN))
def test_sums_are_exact_in_any_order_and_in_any_parts(name):
    """Sums that depend on the order of records, or on their block: then one record moves all others'."""
    release, frame = CASES[name].make(), CASES[name].table(15, seed=2)
    whole = arrays_of(release, frame)
    assert all(array.dtype == np.int64 for array in whole)
    shuffled = frame.sample(frac=1.0, random_state=3)
    one_by_one = [arrays_of(release, frame.iloc[[row]]) for row in range(len(frame))]
    for k, array in enumerate(whole):
        np.testing.assert_array_equal(array, arrays_of(release, shuffled)[k])
        np.testing.assert_array_equal(array, sum(own[k] for own in one_by_one))


BLOCKS = (
    "privacy.records._BLOCK",
    "studies.statistics._BLOCK",
    "marginals.features._EXACT",
    "marginals.groups._BLOCK",
)


@pytest.mark.parametrize("name", cases(GAUSSIAN))
def test_sums_are_exact_in_any_blocks(name, monkeypatch):
    """A fault that begins with the second block of records, or the third: records lost or counted twice."""
    release, frame = CASES[name].make(), CASES[name].table(40, seed=2)
    whole = arrays_of(release, frame)
    for blocks in (BLOCKS[:1], BLOCKS[1:]):  # of the table, and blocks within them
        with monkeypatch.context() as patch:
            for block in blocks:
                patch.setattr(f"dpsynth.{block}", 4)
            for array, parts in zip(whole, arrays_of(release, frame), strict=True):
                np.testing.assert_array_equal(array, parts)


@pytest.mark.slow
@pytest.mark.parametrize("name", cases(GAUSSIAN))
def test_many_records_add_what_each_adds(name):
    """A fault that begins at a size: one record more than the longest block, each as often as 15 others."""
    release, frame = CASES[name].make(), CASES[name].table(15, seed=2)
    one_by_one = [arrays_of(release, frame.iloc[[row]]) for row in range(len(frame))]
    longest = max(pkgutil.resolve_name(f"dpsynth.{block}") for block in BLOCKS)
    place = np.random.default_rng(3).integers(0, len(frame), longest + 1)
    times = np.bincount(place, minlength=len(frame))
    many = arrays_of(release, frame.iloc[place].reset_index(drop=True))
    for k, array in enumerate(many):
        np.testing.assert_array_equal(
            array, sum(n * own[k] for n, own in zip(times, one_by_one, strict=True))
        )


@pytest.mark.parametrize("name", cases(GAUSSIAN))
def test_released_numbers_are_multiples_of_a_public_step(name):
    """Noise in floating point: its last digits tell which exact numbers it can have been added to."""
    release, frame = CASES[name].make(), CASES[name].table(50)
    records = FrameRecords(frame)
    with records.opened():
        noisy = release.measure(records, np.random.default_rng(5))
    for array, step, weight in zip(noisy, release.steps, release.weights, strict=False):
        finest = min(step, 2.0 ** np.floor(np.log2(release.noise_std / weight) - 30))
        whole = array / finest
        np.testing.assert_array_equal(whole, np.rint(whole))
        assert abs(whole).max() < 2**53


@pytest.mark.parametrize("name", cases(GAUSSIAN))
def test_what_is_released_is_made_of_noisy_counts(name, monkeypatch):
    """A release that looks at the records once more, or that is made of counts without noise."""
    release, records = CASES[name].make(), FrameRecords(CASES[name].table(50))
    reads, finished = [], []
    for reading in ("_counts", "_size", "_sums", "_frame"):
        read_it = getattr(FrameRecords, reading)
        watched = lambda self, *a, read_it=read_it: reads.append(1) or read_it(self, *a)  # noqa: E731
        monkeypatch.setattr(FrameRecords, reading, watched)
    kind = type(release)
    finish = kind.finish
    monkeypatch.setattr(kind, "finish", lambda self, counts: finished.append(counts) or finish(self, counts))
    Ledger().run(release, records, np.random.default_rng(3))
    assert len(reads) == len(finished) == 1
    with records.opened():
        expected = release.measure(records, np.random.default_rng(3))
    np.testing.assert_array_equal(cells(finished[0]), cells(expected))


def test_every_release_is_here():
    """A new release that nobody holds to the contract."""
    modules = [import_module(name) for name in HOMES]
    known = {thing for module in modules for thing in vars(module).values() if isinstance(thing, type)}
    releases = {kind for kind in known if kind.__name__.endswith("Release") and kind.__module__ in HOMES}
    # the critics of matched points are held to it in tests/wgan/test_gradient_matching.py
    abstract = {ChoiceRelease, GaussianRelease, StudyRelease, Release, GradientRelease}
    assert releases - abstract == {type(case.make()) for case in CASES.values()}


def test_the_critic_is_trained_under_the_posted_plan():
    """More steps, or less noise, than the ledger says."""
    ledger = Ledger()
    _, plan = ledger.run(critic(), FrameRecords(table(60)), np.random.default_rng(0))
    assert plan == critic().plan and event_to_dict(ledger.entries[0].event) == event_to_dict(plan.event)


def test_no_more_tables_than_planned():
    """Tables that no noise was planned for."""
    release = tables("tree")
    with pytest.raises(PrivacyError, match="planned"):
        replace(release, count=2)
    with pytest.raises(PrivacyError, match="planned"):
        replace(choice(), count=3)
    with pytest.raises(PrivacyError, match="give them with at"):
        read(replace(release, read_with=None), table(5))


def test_releases_of_one_stage_stand_in_one():
    """A stage that is never begun, so that dependent noise is composed on one distribution."""
    ledger, records, rng = Ledger(), FrameRecords(table(60)), np.random.default_rng(0)
    first, second = Stage.begin(1e-6), Stage.begin(1e-6)
    for stage in (first, first, second):
        ledger.run(CountRelease(noise_multiplier=Z, stage=stage), records, rng)
    assert [entry.stage for entry in ledger.entries] == [1, 1, 2]


@pytest.mark.parametrize("name", cases(CASES))
def test_no_noise_is_no_privacy(name):
    """Exact numbers that are posted as private ones."""
    release = CASES[name].make()
    if isinstance(release, CriticRelease):
        bare = replace(release, plan=replace(release.plan, noise_multiplier=None))
    else:
        field = "noise_multiplier" if isinstance(release, GaussianRelease) else "epsilon"
        bare = replace(release, **{field: None})
    assert isinstance(bare.event, dp_accounting.NonPrivateDpEvent)


class Stopped(Exception):
    """In place of a reading."""


class Silent(FrameRecords):
    """Records that stop whoever reads them."""

    def _size(self):
        raise Stopped

    def _counts(self, tables):
        raise Stopped

    def _sums(self, of, columns):
        raise Stopped

    def _frame(self):
        raise Stopped


@pytest.mark.parametrize("name", cases(CASES))
def test_nothing_is_read_that_is_not_posted(name):
    """A reading before its entry, or without one; and records that stay open after the release."""
    release, records = CASES[name].make(), FrameRecords(CASES[name].table(60))
    with pytest.raises(PrivacyError, match=r"can only be read through Ledger\.run"):
        release(records, np.random.default_rng(0))
    ledger = Ledger()
    silent = Silent(CASES[name].table(60))
    with pytest.raises(Stopped):
        ledger.run(release, silent, np.random.default_rng(0))
    assert not silent._readers
    assert len(ledger.entries) == 1
    entry = ledger.entries[0]
    assert (entry.name, entry.sensitivity, entry.detail) == (
        release.name,
        Counted.RECORDS.fill(release.sensitivity),
        Counted.RECORDS.fill(release.detail),
    )
    assert event_to_dict(entry.event) == event_to_dict(release.event)
    ledger.run(release, records, np.random.default_rng(0))
    assert len(ledger.entries) == 2
    with pytest.raises(PrivacyError):
        records.size()


@pytest.mark.parametrize("name", cases(CASES))
def test_what_cannot_be_posted_is_not_read(name):
    """A release whose stage is complete, or whose adjacency is another, that reads all the same."""
    stage = Stage.begin(1e-6)
    release = replace(CASES[name].make(), stage=stage)
    ledger = Ledger()
    ledger.run(release, FrameRecords(CASES[name].table(60)), np.random.default_rng(0))
    ledger.end_stage()
    with pytest.raises((PrivacyError, Stopped)) as refused:
        ledger.run(release, Silent(table(60)), np.random.default_rng(0))
    assert refused.type is PrivacyError and "complete" in str(refused.value)
    other = Ledger()
    other.post("x", release.event, sensitivity="1", adjacency="replace-one")
    with pytest.raises((PrivacyError, Stopped)) as refused:
        other.run(replace(release, stage=None), Silent(table(60)), np.random.default_rng(0))
    assert refused.type is PrivacyError and "add/remove" in str(refused.value)
    assert len(ledger.entries) == len(other.entries) == 1


def test_only_what_was_posted_goes_on():
    """An interrupted release that is resumed on another ledger, where nobody has paid for it."""
    records, rng, rest = FrameRecords(table(60)), np.random.default_rng(0), replace(critic(), resumed=True)
    with pytest.raises(PrivacyError, match="does not hold it"):
        Ledger().resume(rest, records, rng)
    posted = {"event": rest.event, "sensitivity": rest.sensitivity}
    (ledger := Ledger()).post(rest.name, **posted)
    assert ledger.resume(rest, records, rng) == (60, critic().plan) and len(ledger.entries) == 1
    (ledger := Ledger()).post(rest.name, **{**posted, "event": gaussian_event(2 * Z)})
    with pytest.raises(PrivacyError, match="does not hold it"):
        ledger.resume(rest, Silent(table(60)), rng)


def test_what_is_finished_is_not_computed_again():
    """Catches a release that is made again and again under one entry, each time with fresh noise."""
    records, rng, rest = FrameRecords(table(60)), np.random.default_rng(0), replace(critic(), resumed=True)

    def refused(ledger, release):
        with pytest.raises((PrivacyError, Stopped)) as problem:
            ledger.resume(release, Silent(table(60)), rng)
        assert problem.type is PrivacyError
        return str(problem.value).split(" cannot go on: ")[1]

    for release in (CountRelease(noise_multiplier=5.0), critic()):
        (ledger := Ledger()).run(release, records, rng)
        assert refused(ledger, release) == "it has no unfinished state"
    (ledger := Ledger()).run(rest, records, rng)
    assert refused(ledger, rest) == refused(ledger, rest) == "it is finished, or goes on already"
    (ledger := Ledger()).post(rest.name, rest.event, sensitivity="1")
    ledger.resume(rest, records, rng)
    assert refused(ledger, rest).startswith("it is finished")
    (ledger := Ledger()).post(rest.name, rest.event, sensitivity="1")
    within = replace(rest, train=lambda *_: refused(ledger, rest))  # while it goes on already
    assert ledger.resume(within, records, rng) == "it is finished, or goes on already"
    fails = replace(rest, train=lambda *_: 1 / 0)
    (ledger := Ledger()).post(rest.name, rest.event, sensitivity="1")
    for _ in range(2):  # what failed may go on
        with pytest.raises(ZeroDivisionError):
            ledger.resume(fails, records, rng)
    ledger.resume(rest, records, rng)


def scores_of(release: structure.EdgesRelease | TableChoiceRelease, records: FrameRecords) -> np.ndarray:
    with records.opened():
        if isinstance(release, structure.EdgesRelease):
            return release.scores(records)
        return np.concatenate([release.scores(records, each) for each in release.given])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.sensitivity is None][:-1])
@pytest.mark.parametrize("few", [0, 8], ids=["by pair", "at once"])
def test_scores_have_sensitivity_one(name, few, monkeypatch):
    """A score that one record moves by more than 1, by brute force over neighbours."""
    monkeypatch.setattr(structure, "_FEW_CELLS", few)  # columns of which all pairs are counted at once
    release, largest = CASES[name].make(), 0.0
    for seed in range(3):
        frame = CASES[name].table(12, seed)
        full = scores_of(release, FrameRecords(frame))
        less = (scores_of(release, FrameRecords(frame.drop(index=row))) for row in frame.index)
        moved = [np.abs(full - scores).max() for scores in less]
        largest = max(largest, *moved)
    assert 0.99 < largest <= 1 + 1e-9


@pytest.mark.parametrize("kind", ["tree", "tan"])
@pytest.mark.parametrize("names", [SCHEMA.names, ("age", "group", "died"), ("age", "died")])
def test_every_choice_is_paid_for(names, kind, monkeypatch):
    """More exponential mechanisms than the event says, or of another epsilon."""
    calls = []
    pick = structure.choose
    monkeypatch.setattr(
        structure, "choose", lambda s, epsilon, rng: calls.append(epsilon) or pick(s, epsilon, rng)
    )
    schema = SCHEMA.select(names)
    frame = table(200)[list(names)]
    records = FrameRecords(frame)
    rng, ledger = np.random.default_rng(0), Ledger()
    exact = release_marginals(frame, schema, n=200, noise_multiplier=None, rng=rng)
    releases = BaseModelReleases.plan(schema, kind, noise_multiplier=2.0, epsilon=0.25)
    releases.run(ledger, records, exact, rng)
    posted = [event_to_dict(entry.event) for entry in ledger.entries]
    assert posted == [event_to_dict(event) for event in releases.events]
    chosen = [event for event in posted if event["type"] == "SelfComposedDpEvent"]
    assert [event["count"] for event in chosen] == ([len(calls)] if calls else [])
    assert set(calls) <= {0.25} and all(event["event"]["epsilon"] == 0.25 for event in chosen)
    assert [structure.n_choices(m) for m in (1, 2, 5)] == [0, 0, 4]


def test_chosen_tables_have_the_law_of_the_exponential_mechanism(monkeypatch):
    """One noise for all choices, scores scaled on their way to the mechanism, or a look where is no choice.

    Against the score's definition, with what sampling and noise explain written out.
    """
    release, records = replace(choice(), epsilon=0.04), FrameRecords(table(60, seed=3))
    (only,), *several = release.given
    with records.opened():
        counts = [records.counts([one.axes for one in each]) for each in several]
    laws, lost = [], 0.5 * 3.0
    for each, found in zip(several, counts, strict=True):
        scores = []
        for one, count in zip(each, found, strict=True):
            m = one.expected
            sampled = [stats.norm(0.0, np.sqrt(cell * (1 + 1 / 33.3))) for cell in m.ravel() if cell > 0]
            beyond = [2 * law.expect(lambda x: x - lost, lb=lost) for law in sampled]
            scores.append(np.maximum(np.abs(count - m) - lost, 0.0).sum() - np.sum(beyond))
        law = np.exp(0.04 * (np.array(scores) - max(scores)) / 2)
        laws.append(law / law.sum())
    exact = scores_of(replace(release, read_with=several), records)

    def known(self: object, records: object, candidates: list[Candidate]) -> np.ndarray:
        assert only not in candidates  # a single candidate has no score
        return exact.copy()

    monkeypatch.setattr(TableChoiceRelease, "scores", known)
    rng, draws = np.random.default_rng(4), 2000
    with records.opened():
        chosen = [release(records, rng) for _ in range(draws)]
    assert all(found[0] is only for found in chosen)
    for place, (each, law) in enumerate(zip(several, laws, strict=True), 1):
        counted = [sum(found[place] is one for found in chosen) for one in each]
        assert law.min() * draws > 5 and stats.chisquare(counted, law * draws).pvalue > 1e-4


@pytest.mark.parametrize("kind", ["tree", "tan"])
def test_the_first_edge_has_the_law_of_the_exponential_mechanism(kind, monkeypatch):
    """One noise for all choices, or scores scaled on their way to the mechanism."""
    release, records = edges(kind), FrameRecords(table(60, seed=3))
    binnings = release.given.binnings
    scores = scores_of(release, records) - structure.noise_allowance(
        binnings, release.table_std, 2 if kind == "tan" else 1
    )
    start = release.root if kind == "tree" else release.columns[0]
    others = [c for c in release.columns if c != start]
    law = np.exp(release.epsilon * np.array([scores[start, c] for c in others]) / 2)
    law /= law.sum()
    rng, draws, exact = np.random.default_rng(4), 2000, scores_of(release, records)
    # the same scores in every choice, which take longer than the choice
    monkeypatch.setattr(type(release), "scores", lambda self, records: exact.copy())
    with records.opened():
        families = [release(records, rng) for _ in range(draws)]
    first = [family[0][1] if kind == "tree" else family[1][2] for family in families]
    counts = np.array([first.count(c) for c in others])
    assert stats.chisquare(counts, draws * law).pvalue > 1e-4
    orders = {tuple(itertools.chain.from_iterable(family)) for family in families}
    assert len(orders) > len(others)  # later choices vary as well
