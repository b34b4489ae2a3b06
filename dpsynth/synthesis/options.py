"""The checked options that every generator takes. Each generator adds its own in its own file."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from dpsynth.files.codec import record
from dpsynth.files.options import Section
from dpsynth.model.wgan.settings import MatchingSettings, TrainingSettings
from dpsynth.studies.study import Study
from dpsynth.synthesis.budget import Shares
from dpsynth.synthesis.parts.part import Parts
from dpsynth.table.patients import TableSchema


@record
class FitOptions(Section):
    """The arguments of an estimator. :meth:`of` raises InputError or PrivacyError that name the argument."""

    #: name of the generator in configurations and commands
    generator: ClassVar[str]
    #: whether patients may have several rows
    takes_rows: ClassVar[bool] = False
    #: whether a fit holds a private point of each record
    holds_points: ClassVar[bool] = True

    epsilon: float | None = Field(default=3.0, gt=0)
    delta: float | None = Field(default=None, gt=0, lt=1)
    accept_unreviewed: bool = False
    random_state: int | None = Field(default=None, ge=0)

    @property
    def declared(self) -> tuple[Study, ...]:
        """Regressions that part of the budget estimates."""
        return ()

    @property
    def division(self) -> Shares:
        """How the budget is divided."""
        return Shares()

    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments of the estimator."""
        return {
            name: getattr(self, name) for name, field in type(self).model_fields.items() if not field.exclude
        }

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
