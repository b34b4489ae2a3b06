"""DPMarginals: a Bayesian network of noisy marginals, reweighted to further noisy statistics. The default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import Field, field_validator

from dpsynth.files.codec import record
from dpsynth.marginals.statistics import Kind
from dpsynth.patients.schema import PatientSchema, TableSchema
from dpsynth.studies.study import Study, read_studies
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.fit import planned_widening
from dpsynth.synthesis.options import FitOptions, Shares
from dpsynth.synthesis.parts.base_model import BaseModel
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.histogram import Histogram
from dpsynth.synthesis.parts.pairwise import Pairwise
from dpsynth.synthesis.parts.part import Part, Parts
from dpsynth.synthesis.parts.regressions import Regressions
from dpsynth.synthesis.parts.rows import Rows
from dpsynth.synthesis.synthesizer import Synthesizer
from dpsynth.table.schema import Schema

#: So many records that every rule reads its statistic.
_MANY = 1e12


@dataclass(frozen=True)
class Statistics:
    """The noisy statistics of a fit beside single-column counts. None leaves the choice to a rule.

    No argument of an estimator, a configuration or a command sets them. Fits of regressions alone, tests and
    measurements do.

    ``base_model``: edges with (``tan``) or without (``tree``) the outcome as a second parent. By rule
        ``tan`` if the schema has an outcome.
    ``pairwise_statistics``: by rule if their noise is small (`default_rules.has_pairwise_statistics`).
    ``neighbour_histogram``: by rule beside pairwise statistics and with enough records
        (`default_rules.has_neighbour_histogram`).
    """

    base_model: Kind | None = None
    pairwise_statistics: bool | None = None
    neighbour_histogram: bool | None = None


@record
class MarginalsOptions(FitOptions):
    """The options of `DPMarginals`."""

    generator: ClassVar[str] = "marginals"
    takes_rows: ClassVar[bool] = True
    holds_points: ClassVar[bool] = False

    shares: Shares | None = None
    studies: tuple[Study, ...] = ()
    statistics: Statistics = Field(default=Statistics(), exclude=True)

    @field_validator("shares", mode="before")
    @classmethod
    def _shares(cls, given: Any) -> Any:
        return Shares(**given) if isinstance(given, dict) else given

    @field_validator("studies", mode="before")
    @classmethod
    def _studies(cls, given: Any) -> Any:
        return read_studies(given)

    @field_validator("statistics", mode="before")
    @classmethod
    def _chosen(cls, given: Any) -> Any:
        return Statistics(**given) if isinstance(given, dict) else given

    @property
    def declared(self) -> tuple[Study, ...]:
        """The pre-specified regressions."""
        return self.studies

    @property
    def division(self) -> Shares:
        """The shares that were given, or the default ones."""
        return self.shares or Shares()

    def parts(
        self, described: TableSchema, n: float, delta: float, n_std: float = 0.0, *, every: bool = False
    ) -> Parts:
        """Counts, base model, what rules add to them, rows and regressions."""
        schema, share = described.levels.modelled, self.division
        usual: Kind = "tan" if schema.outcome is not None else "tree"
        base = share.selection + share.tables
        own: list[Part[Any]] = [
            Columns(schema, n, n_std, share=share.marginals),
            BaseModel(schema, self.statistics.base_model or usual, share.selection / base, share=base),
        ]
        pairs, histogram = self._beside(schema, _MANY if every else n, delta)
        if pairs:
            own.append(Pairwise(schema, share=share.pairwise_statistics))
        if histogram:
            own.append(Histogram(share=share.neighbour_histogram))
        also: list[Part[Any]] = []
        if isinstance(described, PatientSchema):
            also.append(Rows(described, share=share.visits))
        if self.studies:
            also.append(Regressions(described, self.studies, n, share=share.studies))
        return Parts(tuple(own), tuple(also), delta)

    def _beside(self, schema: Schema, n: float, delta: float) -> tuple[bool, bool]:
        """Whether there are pairwise statistics and a histogram: as chosen, or by rule if noise is small."""
        if len(schema) < 3:
            return False, False
        chosen, share = self.statistics, self.division
        pairs, histogram = chosen.pairwise_statistics, chosen.neighbour_histogram
        if pairs is None:
            pairs = default_rules.has_pairwise_statistics(
                schema, n, self.epsilon, delta, share.pairwise_statistics
            )
        if histogram is None:
            histogram = pairs and default_rules.has_neighbour_histogram(
                n, self.epsilon, delta, share.neighbour_histogram
            )
        return pairs, histogram


class DPMarginals(Synthesizer):
    """Differentially private tables from noisy marginals: a Bayesian network, reweighted where it pays.

    A fit releases single-column counts and a tree of two-column tables with noise. If the schema has an
    outcome, it is a second parent of each column. Rules add pairwise statistics and a nearest-neighbour
    histogram (:mod:`dpsynth.synthesis.default_rules`).

    Parameters
    ----------
    epsilon : float or None, default 3.0
        Total budget of ``fit``. None fits without noise and marks every output NOT PRIVATE.
    delta : float, optional
        Default: n_public^-1.5 (at most 1e-3), or 1e-6 if the schema has no public number of records.
    shares : Shares
        Division of the budget.
    accept_unreviewed : bool
        Fit although the schema holds fields read from the data. The ledger then excludes them.
    studies : sequence of Study, str or dict
        Pre-specified regressions, such as ``"logistic: death ~ age + sex"``. Part of the budget
        (``shares.studies``) estimates their effects with valid intervals, see ``estimates_``.
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
        shares: Shares | None = None,
        accept_unreviewed: bool = False,
        studies: Sequence[Study | str | dict[str, Any]] = (),
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.shares = shares
        self.accept_unreviewed = accept_unreviewed
        self.studies = studies
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

    def expected_widening(self, schema: TableSchema) -> dict[str, float]:
        """Return the expected width of the studies' intervals, from public numbers and without budget.

        Parameters
        ----------
        schema : Schema or PatientSchema
            With ``n_public`` of the records for ``fit``: for a training part, its own number.

        Returns
        -------
        dict of str to float
            For each study, the width of its intervals over their width without noise, as in a benchmark. Rare
            outcomes and correlated or heavy-tailed predictors increase it. So does a subgroup, which is taken
            to have all records here. :func:`dpsynth.plan` says how many it needs.

        Raises
        ------
        InputError
            If an argument of the constructor is wrong, a study does not fit the schema, or the schema has no
            ``n_public``.
        PrivacyError
            If the budget is too small for a study, as in ``fit``.

        Examples
        --------
        >>> from dpsynth import Column, Schema
        >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=90),
        ...                          Column(name="died", kind="binary", categories=("no", "yes"))),
        ...                 n_public=300)
        >>> model = DPMarginals(epsilon=1.0, studies=["died ~ age"])
        >>> {name: round(wide, 1) for name, wide in model.expected_widening(schema).items()}
        {'died': 2.0}
        """
        return planned_widening(self.validate(), schema)
