"""A generator of one's own is one file: options that list its parts and build a model, and an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.audits.configuration import releases_of
from dpsynth.errors import InputError
from dpsynth.files.codec import record
from dpsynth.marginals.binning import Bins
from dpsynth.marginals.chain_fit import ChainFit
from dpsynth.marginals.factors import fit_factors
from dpsynth.marginals.network import BayesianNetwork
from dpsynth.patients.schema import PatientSchema
from dpsynth.privacy import Ledger, Profile
from dpsynth.privacy.records import Records
from dpsynth.privacy.release import Adaptive, Array, GaussianRelease, Ints
from dpsynth.synthesis.marginals import Chained
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.part import Part, Parts, Reading, Statistic
from dpsynth.synthesis.synthesizer import Synthesizer
from dpsynth.table import Column, Schema
from dpsynth.table.schema import TableSchema

N = 4000
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="weight", kind="continuous", lower=30, upper=150, decimals=1),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    n_public=N,
)


def table(n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.integers(18, 91, n)
    weight = np.round(np.clip(40 + 0.7 * age + 8 * rng.standard_normal(n), 30, 150), 1)
    died = np.where(rng.random(n) < 1 / (1 + np.exp(8 - weight / 10)), "yes", "no")
    return pd.DataFrame({"age": age, "weight": weight, "died": died})


@dataclass(frozen=True, kw_only=True)
class ChainRelease(Adaptive[Bins], GaussianRelease[list[Array]]):
    """Counts of each column with the next one."""

    columns: int
    name = "chain of tables"

    @property
    def l2_sensitivity(self) -> float:
        return float(np.sqrt(self.columns - 1))

    @property
    def sensitivity(self) -> str:
        return f"sqrt({self.columns - 1}): one record moves one cell of each table"

    def query(self, records: Records) -> Sequence[Ints]:
        return records.counts(list(zip(self.given.axes[:-1], self.given.axes[1:], strict=True)))

    def finish(self, noisy: Sequence[Array]) -> list[Array]:
        return [np.maximum(counts, 0.0) for counts in noisy]


@dataclass(frozen=True)
class Linked(Part[BayesianNetwork]):
    """The tables, as a network in which each column depends on the one before."""

    columns: int

    @property
    def release(self) -> ChainRelease:
        return ChainRelease(noise_multiplier=self.noise, stage=self.stage, columns=self.columns)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        return (Statistic(ChainRelease.name, (self.release.event,), noise_std=self.release.noise_std),)

    def read(self, reading: Reading) -> BayesianNetwork:
        marginals, release = reading.of(Columns), self.release
        assert marginals is not None
        bins = Bins.of(marginals, root=None, classes=1, noise_std=release.noise_std)
        counts = reading.run(release.at(bins))
        families = [(j, j + 1) for j in range(len(counts))]
        tables = dict(zip(families, counts, strict=True))
        factors = fit_factors(families, tables, bins, release.noise_std)
        return BayesianNetwork(
            "chain", 0, bins.binnings, marginals.probabilities, factors, noise_std=release.noise_std
        )


@record
class ChainOptions(FitOptions):
    """Its options: those of every generator, and one of its own."""

    generator: ClassVar[str] = "chain"
    columns_share: float = 0.3

    def parts(
        self, described: TableSchema, n: float, delta: float, n_std: float = 0.0, *, every: bool = False
    ) -> Parts:
        schema = described.levels.modelled
        own = (
            Columns(schema, n, n_std, share=self.columns_share),
            Linked(len(schema), share=1.0 - self.columns_share),
        )
        return Parts(own, (), delta)

    def build(self, described: TableSchema, reading: Reading) -> GeneratorModel:
        model = super().build(described, reading)
        fitted = ChainFit(reading.of(Linked), reading.of(Columns), None, reading.rng, model.schema).chain
        return replace(model, sampler=Chained(fitted))


class DPChain(Synthesizer):
    """The estimator."""

    options = ChainOptions

    def __init__(
        self,
        epsilon: float | None = 3.0,
        delta: float | None = None,
        *,
        columns_share: float = 0.3,
        accept_unreviewed: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.columns_share = columns_share
        self.accept_unreviewed = accept_unreviewed
        self.random_state = random_state


def correlations(frame: pd.DataFrame) -> Array:
    return np.asarray(frame.assign(died=frame["died"] == "yes").corr()[["age", "weight"]].loc["died"])


@pytest.fixture(scope="module")
def model() -> DPChain:
    return DPChain(epsilon=3.0, delta=1e-5).fit(table(), schema=SCHEMA)


def test_it_is_fitted_within_the_budget(model: DPChain) -> None:
    """Catches a part that a ledger or an audit lacks, and associations that are lost on the way."""
    assert [entry.name for entry in model.ledger_.entries] == ["single-column counts", ChainRelease.name]
    assert 2.9 < model.ledger_.epsilon(1e-5) <= 3.0 and model.guarantee().private
    made = model.sample(N, random_state=0)
    assert np.abs(correlations(made) - correlations(table())).max() < 0.08
    audited = releases_of(SCHEMA, model.validate(), np.random.default_rng(0))
    assert audited.names == tuple(entry.name for entry in model.ledger_.entries)
    assert Profile([each.event for each in audited.releases]).epsilon(1e-5) <= 3.0


@pytest.mark.slow
def test_it_is_saved_and_sampled_many_times(model: DPChain, tmp_path: Path) -> None:
    """Catches a saved generator that its class cannot read, and tables to combine of independent columns."""
    again = DPChain.load(model.save(tmp_path / "model"))
    assert again.get_params() == model.get_params()
    many = again.sample_many(3, 1000, random_state=0)
    # noise in tables of 484 cells weakens them twice; of independent columns the distance is 0.59
    assert all(np.abs(correlations(made) - correlations(table())).max() < 0.3 for made in many)
    with pytest.raises(InputError, match="generator chain"):
        dpsynth.load(tmp_path / "model")


def test_it_takes_studies_and_a_private_count() -> None:
    """Catches parts beside it that only our own generators take."""
    frame, ledger = table(), Ledger()
    model = DPChain(epsilon=3.0, delta=1e-5).fit(
        frame,
        schema=SCHEMA.with_n_public(None),
        ledger=ledger,
        also=[dpsynth.Studies(["died ~ weight"], share=0.4)],
    )
    assert ledger.entries[0].name == "number of records" and ledger.epsilon(ledger.delta) < 3.0 + 1e-9
    (effect,) = model.study("died").effects()
    assert effect["lower"] > 1.0


def test_rows_of_patients_need_a_part_for_them() -> None:
    """Catches patients whose rows a generator without a part for them drops."""
    visits = PatientSchema.from_yaml(
        "unit: id\nrows: {most: 3, order: day}\nn_public: 100\ncolumns:\n"
        "- {name: day, kind: integer, lower: 0, upper: 9}\n- {name: hdl, kind: integer, lower: 0, upper: 9}"
    )
    with pytest.raises(InputError, match="generator chain takes one row per patient"):
        DPChain().fit(pd.DataFrame({"id": [1], "day": [0], "hdl": [1]}), schema=visits)
