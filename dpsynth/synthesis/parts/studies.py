"""Pre-specified regressions: each is read for its coefficients and their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pandas as pd

from dpsynth.checks import Counted
from dpsynth.errors import ConfigError, InputError, PrivacyError
from dpsynth.studies.fitted_study import FittedStudy, StudyReleases
from dpsynth.studies.study import Study, read_studies
from dpsynth.synthesis.fit import check_also, planned_parts
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.parts.part import Part, Reading, Redrawing, Statistic
from dpsynth.synthesis.study_forecast import (
    MOST_WIDENING,
    cautions,
    check_studies,
    expected_widening,
    may_lack,
    smallest_subgroup,
    study_draws,
)
from dpsynth.table.schema import Schema, TableSchema

if TYPE_CHECKING:
    from dpsynth.synthesis.synthesizer import Synthesizer


@dataclass(frozen=True)
class Studies(Part[tuple[FittedStudy, ...]]):
    """Pre-specified regressions of a fit: part of its budget estimates their effects with valid intervals.

    Given to :meth:`dpsynth.DPMarginals.fit` with ``also=``. Afterwards the model has ``estimates_``.

    Parameters
    ----------
    studies : sequence of Study, str or dict
        Such as ``"logistic: died ~ age + sex"``. Each gets an equal part of the share.
    share : float, default 0.3
        Fraction of the budget (of mu^2). The generator has the rest.
    schema, n, noise, stage
        Given by the fit.

    Raises
    ------
    InputError
        If a study cannot be read, two have one name, or there is none.

    Examples
    --------
    >>> import dpsynth, numpy as np, pandas as pd
    >>> from dpsynth import Column, Schema
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=90),
    ...                          Column(name="died", kind="binary", categories=("no", "yes"))), n_public=400)
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": rng.integers(18, 91, 400), "died": rng.choice(["no", "yes"], 400)})
    >>> studies = Studies(["died ~ age"], share=0.5)
    >>> model = dpsynth.DPMarginals(epsilon=3.0, delta=1e-5).fit(frame, schema=schema, also=[studies])
    >>> model.estimates_[0].terms
    ('age',)
    """

    needs_associations: ClassVar[bool] = True

    studies: tuple[Study, ...]
    schema: Schema | TableSchema | None = None  # a file names the class of another than the first
    n: float | None = None
    share: float | None = field(default=0.3, kw_only=True)

    if TYPE_CHECKING:

        def __init__(
            self,
            studies: Sequence[Study | str | Mapping[str, Any]],
            schema: TableSchema | None = None,
            n: float | None = None,
            *,
            share: float | None = 0.3,
            noise: float | None = None,
            stage: Any = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        try:
            found = read_studies(self.studies)
        except InputError as problem:
            said = str(problem)
            raise InputError(said if said.startswith("studies ") else f"studies: {said}") from None
        if not found:
            raise InputError("studies: give at least one study")
        object.__setattr__(self, "studies", found)

    def at(self, schema: TableSchema, n: float | None) -> Self:
        """The studies of a fit. Raises InputError for a study that does not fit the schema."""
        check_studies(self.studies, schema)
        return replace(self, schema=schema, n=n)

    @property
    def _bound(self) -> tuple[TableSchema, float]:
        """The schema and the number of records."""
        if self.schema is None or self.n is None:
            raise ConfigError("studies are planned for a schema and a number of records: see Studies.at")
        return self.schema, self.n

    def expected_widening(self, schema: TableSchema, generator: Synthesizer) -> dict[str, float]:
        """Return the expected width of the studies' intervals, from public numbers and without budget.

        Parameters
        ----------
        schema : TableSchema
            With ``n_public`` of the records for ``fit``: for a training part, its own number.
        generator : DPMarginals
            The estimator, which need not be fitted.

        Returns
        -------
        dict of str to float
            For each study, the width of its intervals over their width without noise, as in a benchmark. Rare
            outcomes and correlated or heavy-tailed predictors increase it. So does a subgroup, which is taken
            to have all records here. :func:`dpsynth.plan` says how many it needs.

        Raises
        ------
        InputError
            If an argument of the estimator is wrong, a study does not fit the schema, or the schema has no
            ``n_public``.
        PrivacyError
            If the budget is too small for a study, as in ``fit``.

        Examples
        --------
        >>> import dpsynth
        >>> from dpsynth import Column, Schema
        >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=90),
        ...                          Column(name="died", kind="binary", categories=("no", "yes"))),
        ...                 n_public=300)
        >>> found = Studies(["died ~ age"]).expected_widening(schema, dpsynth.DPMarginals(epsilon=1.0))
        >>> {name: round(wide, 1) for name, wide in found.items()}
        {'died': 2.0}
        """
        options = generator.validate()
        check_also(schema, options, [self])
        if schema.n_public is None:
            raise InputError(
                f"schema has no n_public. The width of intervals depends on the number of {schema.counted}, "
                "which a fit then counts privately, before anything else"
            )
        found = planned_parts(schema, float(schema.n_public), options, also=[self]).of(Studies)
        assert found is not None  # it was given
        found.check()
        return found.widenings

    @property
    def multiplier(self) -> float | None:
        """Noise multiplier of one Gaussian mechanism that costs what one regression does."""
        return None if self.noise is None else self.noise * math.sqrt(len(self.studies))

    def release(self, study: Study) -> StudyReleases:
        """The statistics of one regression with their noise."""
        return StudyReleases.plan(
            study.label, noise_multiplier=self.multiplier, stage=self.stage, survival=study.is_survival
        )

    @property
    def widenings(self) -> dict[str, float]:
        """Expected width of each regression's intervals over that without noise.

        A subgroup is taken to have all n records, because its size is not public.
        """
        schema, n = self._bound
        return {study.label: expected_widening(study, schema, n, self.multiplier) for study in self.studies}

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """One entry a regression."""
        return tuple(
            self._statistic(study, wide)
            for study, wide in zip(self.studies, self.widenings.values(), strict=True)
        )

    def _statistic(self, study: Study, wide: float) -> Statistic:
        subgroups, (schema, _) = None, self._bound
        if study.where is not None:
            twice, most = (
                smallest_subgroup(study, schema, self.multiplier, most) for most in (2.0, MOST_WIDENING)
            )
            subgroups = twice, most
        return Statistic(
            f"regression {study.label}",
            tuple(self.release(study).events),
            share=1.0 / len(self.studies),
            of=study.label,
            widening=wide,
            subgroups=subgroups,
        )

    @property
    def cautions(self) -> list[str]:
        """Meaning of the estimates where bounded influence matters."""
        assert self.schema is not None  # it is bound
        return [
            f"study {study.label!r}: {caution}"
            for study in self.studies
            for caution in cautions(study, self.schema)
        ]

    @property
    def outlook(self) -> list[str]:
        """The width of each regression's intervals."""
        if self.n is None:
            counted = Counted.RECORDS if self.schema is None else self.schema.counted
            return [
                f"studies: the width of their intervals depends on the number of {counted}, which is "
                "private. The fit counts them first. A study that the budget cannot bear is refused after "
                "that count"
            ]
        schema, _ = self._bound
        said = []
        for study, statistic in zip(self.studies, self.statistics, strict=True):
            text = f"intervals about {statistic.widening:.1f} times as wide as without noise"
            if statistic.subgroups is not None:
                twice, most = statistic.subgroups
                text = (
                    f"intervals about 2 times as wide as without noise if its subgroup has {twice:,} "
                    f"{schema.counted}, and {MOST_WIDENING:g} times if it has {most:,}"
                )
            lack = f", and wider where {schema.counted} lack a value" if may_lack(study, schema) else ""
            said.append(f"study {study.label}: {text}{lack}")
        return said

    def check(self) -> None:
        """Refuse a regression whose intervals would be `MOST_WIDENING` times as wide as without noise."""
        for label, wide in self.widenings.items():
            if wide > MOST_WIDENING:
                raise PrivacyError(
                    f"study {label!r} has more terms than the budget can bear: its intervals would be "
                    f"about {wide:.1f} times as wide as without noise. Declare fewer predictors or studies, "
                    "or raise epsilon or the share of Studies"
                )

    def read(self, reading: Reading) -> tuple[FittedStudy, ...]:
        """Read the records for every regression, in order. Samples of the model stand for them."""
        model, (schema, n) = reading.made, self._bound
        draws: dict[bool, pd.DataFrame] = {}
        fitted = []
        for study in self.studies:
            rows = study.clusters(schema) is not None
            if rows not in draws:
                draws[rows] = study_draws(model, reading.rng, rows=rows)
            fitted.append(
                self.release(study).run(
                    reading.ledger,
                    reading.records,
                    study,
                    model.declared_schema,
                    draws[rows],
                    n,
                    reading.rng,
                )
            )
        return tuple(fitted)

    def redraw(self, reading: Redrawing) -> tuple[FittedStudy, ...]:
        """The released estimates: tables for a regression draw its coefficients from their posterior."""
        return reading.released.studies

    def extend(self, model: GeneratorModel, found: tuple[FittedStudy, ...]) -> GeneratorModel:
        """The model with the estimates."""
        return replace(model, studies=found)
