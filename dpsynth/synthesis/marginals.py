"""DPMarginals: a chain of conditionals fitted to noisy marginals. The default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from dpsynth.files.codec import record
from dpsynth.marginals.chain import Chain
from dpsynth.marginals.statistics import Kind, TablesRelease
from dpsynth.progress import STAGES
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.options import FitOptions, Shares
from dpsynth.synthesis.parts.base_model import BaseModel
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.groups import Groups
from dpsynth.synthesis.parts.growth import Growth, fit_of, further_tables
from dpsynth.synthesis.parts.pairwise import Pairwise
from dpsynth.synthesis.parts.part import Part, Parts, Reading
from dpsynth.synthesis.parts.rows import Rows
from dpsynth.synthesis.sampler import Sampler
from dpsynth.synthesis.sampling import Codes, Places, matched_draws
from dpsynth.synthesis.synthesizer import Synthesizer
from dpsynth.table.encoder import Encoder
from dpsynth.table.schema import Schema, TableSchema

#: So many records that every rule reads its statistic.
_MANY = 1e12


@record
@dataclass(frozen=True)
class Chained(Sampler):
    """Records of a chain, with the released marginals of their encoder.

    ``records``: the chain.
    """

    records: Chain

    @property
    def chain(self) -> Chain:
        """The chain."""
        return self.records

    def draw(self, encoder: Encoder, n: int, rng: np.random.Generator) -> tuple[list[Codes], list[Places]]:
        """Fine cells of n records and places within them."""
        return matched_draws(self.records, encoder, n, rng)

    def bins(self) -> Mapping[int, NDArray[np.int64]]:
        """Those of every column, if rules are factors of the chain."""
        binnings = self.records.binnings if self.records.ruled else ()
        return {j: binning.labels for j, binning in enumerate(binnings)}


@dataclass(frozen=True)
class Statistics:
    """The noisy statistics of a fit beside single-column counts. None leaves the choice to a rule.

    No argument of an estimator, a configuration or a command sets them. Fits of regressions alone, tests and
    measurements do.

    ``base_model``: edges with (``tan``) or without (``tree``) the outcome as a second parent. By rule
        ``tan`` if the schema has an outcome.
    ``pairwise_statistics``: by rule if their noise is small (`default_rules.has_pairwise_statistics`).
    ``rounds``: of further tables, by rule as many as keep the noise small (`default_rules.rounds_of_growth`).
    """

    base_model: Kind | None = None
    pairwise_statistics: bool | None = None
    rounds: int | None = None


@record
class MarginalsOptions(FitOptions):
    """The options of `DPMarginals`."""

    generator: ClassVar[str] = "marginals"
    takes_rows: ClassVar[bool] = True
    takes_groups: ClassVar[bool] = True
    holds_points: ClassVar[bool] = False

    shares: dict[str, float] | None = None
    statistics: Statistics = Field(default=Statistics(), exclude=True)

    @field_validator("shares", mode="before")
    @classmethod
    def _shares(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        checked = Shares(**given)
        return {name: getattr(checked, name) for name in given}

    @field_validator("statistics", mode="before")
    @classmethod
    def _chosen(cls, given: Any) -> Any:
        return Statistics(**given) if isinstance(given, dict) else given

    @property
    def division(self) -> Shares:
        """The shares that were given, or the default ones."""
        return Shares(**(self.shares or {}))

    def parts(
        self, described: TableSchema, n: float, delta: float, n_std: float = 0.0, *, every: bool = False
    ) -> Parts:
        """Counts, base model, what rules add to them, rows of patients, and groups of codes."""
        whole, described = described, described.ungrouped
        schema, share = described.levels.modelled, self.division
        kind: Kind = self.statistics.base_model or ("tan" if schema.outcome is not None else "tree")
        enough = _MANY if every else n
        pairs = share.pairwise_statistics if self._has_pairs(schema, enough, delta) else 0.0
        columns, rounds = len(schema) - 1, self.statistics.rounds
        first = (
            TablesRelease.plan(columns, three_way=kind == "tan", noise_multiplier=None).l2_sensitivity ** 2
        )
        part = share.tables / (share.marginals + share.selection + share.tables + pairs)
        also: tuple[Part[Any], ...] = (
            *Rows.of(described, share.visits),
            *Groups.of(whole, max(first, 1.0) / part),
        )
        part *= 1.0 - sum(each.share or 0.0 for each in also)
        if rounds is None:
            rounds = default_rules.rounds_of_growth(first, columns - 1, enough, self.epsilon, delta, part)
        further, tables = further_tables(columns, rounds), share.tables
        if further:
            tables *= first / (first + default_rules.FURTHER * further)
        base = share.selection + tables
        own: list[Part[Any]] = [
            Columns(schema, n, n_std, share=share.marginals),
            BaseModel(schema, kind, share.selection / base, share=base),
        ]
        if pairs:
            own.append(Pairwise(schema, share=pairs))
        if further:
            own.append(Growth(described, rounds, share=share.tables - tables))
        return Parts(tuple(own), also, delta)

    def build(self, described: TableSchema, reading: Reading) -> GeneratorModel:
        """A chain fitted to all that was read, with rules as factors."""
        described = described.ungrouped
        # checks that the tables can be drawn from, before anything draws
        model = super().build(described, reading)
        if reading.of(BaseModel) is None or not reading.refine:
            return model
        STAGES.info("fit: the columns in their order")
        return replace(model, sampler=Chained(reading.of(Growth) or fit_of(described, reading).chain))

    def _has_pairs(self, schema: Schema, n: float, delta: float) -> bool:
        """Whether there are pairwise statistics: as chosen, or by rule if their noise is small."""
        chosen = self.statistics.pairwise_statistics
        if chosen is None:
            return default_rules.has_pairwise_statistics(
                schema, n, self.epsilon, delta, self.division.pairwise_statistics
            )
        return chosen and len(schema) >= 3


class DPMarginals(Synthesizer):
    """Differentially private tables from noisy marginals: a chain of conditionals that is fitted to them.

    A fit releases single-column counts and a tree of two-column tables with noise. If the schema has an
    outcome, it is a second parent of each column. A rule adds pairwise statistics
    (:mod:`dpsynth.synthesis.default_rules`). Groups of yes/no columns have counts and a model of their own
    (:mod:`dpsynth.marginals.latent`).

    Parameters
    ----------
    epsilon : float or None, default 3.0
        Total budget of ``fit``. None fits without noise and marks every output NOT PRIVATE.
    delta : float, optional
        Default: n_public^-1.5 (at most 1e-3), or 1e-6 if the schema has no public number of records.
    shares : dict of str to float, optional
        Division of the budget: fractions of mu^2 (of epsilon and delta for ``count``). The default is
        ``{"count": 0.02, "marginals": 0.2, "selection": 0.05, "tables": 0.6, "pairwise_statistics": 0.1,
        "visits": 0.3}``, and only what differs need be given.
    accept_unreviewed : bool
        Fit although the schema holds fields read from the data. The ledger then excludes them.
    random_state : int, optional
        Seed of everything, the noise and later samples too. Each call of `sample` gives other records. The
        same calls after the same fit give the same ones. A fit with a seed is not private, and its ledger
        says so. A saved model keeps no seed. By default all randomness comes from the operating system.

    Examples
    --------
    >>> import dpsynth, numpy as np, pandas as pd
    >>> from dpsynth.table import Column, Schema
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=90),
    ...                          Column(name="died", kind="binary", categories=("no", "yes"))),
    ...                 outcome="died", n_public=400)
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": rng.integers(18, 91, 400), "died": rng.choice(["no", "yes"], 400)})
    >>> model = dpsynth.DPMarginals(epsilon=1.0, delta=1e-5).fit(frame, schema=schema)
    >>> bool(model.ledger_.epsilon(1e-5) <= 1.0), model.sample(5).shape
    (True, (5, 2))
    """

    options = MarginalsOptions
    _statistics = Statistics()

    def __init__(
        self,
        epsilon: float | None = 3.0,
        delta: float | None = None,
        *,
        shares: Mapping[str, float] | None = None,
        accept_unreviewed: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.shares = shares
        self.accept_unreviewed = accept_unreviewed
        self.random_state = random_state

    @classmethod
    def of(cls, options: FitOptions) -> Self:
        """The estimator with these options, and with statistics that they choose."""
        self = super().of(options)
        if isinstance(options, MarginalsOptions):
            self._statistics = options.statistics
        return self

    def validate(self) -> MarginalsOptions:
        """Check the constructor's arguments, as ``fit`` does first. An error names the wrong one."""
        return MarginalsOptions.of(**self.get_params(deep=False), statistics=self._statistics)
