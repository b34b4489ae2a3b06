"""The checked options that every generator takes. Each generator adds its own in its own file."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from dpsynth.files.codec import OptionGroup, options_record, record
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.part import Parts, Reading
from dpsynth.table.encoder import Encoder
from dpsynth.table.schema import TableSchema
from dpsynth.wgan.settings import MatchingSettings, TrainingSettings

# ------------------------------------------------------------------------------------------------
# Shares of a fit's budget that a user may set, as a mapping.
#
# Shares are fractions of the target's squared Gaussian-DP parameter mu^2
# (:mod:`dpsynth.synthesis.parts.part`).


@options_record
class Shares:
    """Fractions of mu^2. Training receives the rest.

    Parameters
    ----------
    count : float
        Fraction of epsilon and of delta (not of mu^2), for the number of records if it is not public.
    marginals, selection, tables, pairwise_statistics : float
        For single-column counts, the choice of the base model's edges, its tables, and the pairwise
        statistics.
    visits : float
        For the tables of rows, where patients have several rows. The others share the rest.

    Raises
    ------
    InputError
        If one lies outside (0, 1), or all but ``visits`` leave nothing for training.
    """

    count: float = 0.02
    marginals: float = 0.2
    selection: float = 0.05
    tables: float = 0.6
    pairwise_statistics: float = 0.1
    visits: float = 0.3

    @model_validator(mode="after")
    def _leave_something(self) -> Self:
        for name, share in vars(self).items():
            if not 0 < share < 1:
                raise ValueError(f"shares.{name} must be greater than 0 and less than 1, got {share:g}")
        if self.total >= 1:
            raise ValueError(f"shares must add to less than 1, got {self.total:g}")
        return self

    @property
    def total(self) -> float:
        """Sum of all but rows."""
        return self.count + self.marginals + self.selection + self.tables + self.pairwise_statistics


@record
class FitOptions(OptionGroup):
    """The arguments of an estimator. :meth:`of` raises InputError or PrivacyError that name the argument."""

    #: name of the generator in configurations and commands
    generator: ClassVar[str]
    #: whether patients may have several rows
    takes_rows: ClassVar[bool] = False
    #: whether the columns of groups have a model of their own
    takes_groups: ClassVar[bool] = False
    #: whether a fit holds a private point of each record
    holds_points: ClassVar[bool] = True
    #: whether `build` gives a model with the columns' associations, with which further parts may read
    associates: ClassVar[bool] = True

    epsilon: float | None = Field(default=3.0, gt=0)
    delta: float | None = Field(default=None, gt=0, lt=1)
    accept_unreviewed: bool = False
    random_state: int | None = Field(default=None, ge=0)

    @property
    def division(self) -> Shares:
        """How the budget is divided."""
        return Shares()

    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments of the estimator."""
        return {
            name: getattr(self, name) for name, field in type(self).model_fields.items() if not field.exclude
        }

    def placed(self) -> AbstractContextManager[None]:
        """Where a fit computes. InputError if this computer has no such place. Here there is no choice."""
        return nullcontext()

    def settings(self, n: float) -> TrainingSettings | MatchingSettings | None:
        """Settings of the critic steps of a fit of ``n`` records. None: there are no steps."""
        return None

    def parts(
        self, described: TableSchema, n: float, delta: float, n_std: float = 0.0, *, every: bool = False
    ) -> Parts:
        """The parts of a fit of ``n`` records with their shares, before their noise is chosen.

        ``n`` is public or a noisy count, ``n_std`` the noise of the count, ``delta`` that of the whole fit.
        ``every`` has each part that some number of records would bring.
        """
        raise NotImplementedError

    def build(self, described: TableSchema, reading: Reading) -> GeneratorModel:
        """The model of what the generator's parts found: post-processing. Here columns are independent."""
        schema = described.levels
        encoder = Encoder(schema.modelled, reading.of(Columns))
        return GeneratorModel(schema if reading.refine else schema.modelled, encoder)
