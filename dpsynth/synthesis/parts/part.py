"""What a part of a fit is, how it is redrawn, and how the noise of all parts is chosen together.

A part has a share of the budget, a fraction of the squared Gaussian-DP parameter mu^2, which adds up over
Gaussian mechanisms (Dong, Roth and Su 2022, corollary 3.3). :meth:`Parts.with_noise` gives each part its
noise before any record is read. Shares are starting points: the noise is solved on the composed privacy-loss
distribution of all events, which ends at the target and never above it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ConfigError, InputError, PrivacyError
from dpsynth.files.codec import record
from dpsynth.privacy.calibration import EpsilonTarget, PromiseTarget, Target, calibrate
from dpsynth.privacy.conversions import tv_of_mu
from dpsynth.privacy.gaussian_loss import analytic_sigma
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.loss import DELTA_FLOOR
from dpsynth.privacy.records import Records
from dpsynth.privacy.stages import Stage
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.table.grid import Marginals
from dpsynth.table.schema import TableSchema

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

Result = TypeVar("Result")
P = TypeVar("P", bound="Part[Any]")

#: Promised total variation as a multiple of that of Gaussian noise: the choice of edges has a little more.
_ALLOWANCE = 1.002


def promised_tv(mu: float) -> float:
    """The total variation that the parts after a private count promise for every count."""
    return min(_ALLOWANCE * tv_of_mu(mu), 1.0)


@dataclass(frozen=True)
class Statistic:
    """A noisy statistic of a part as a plan shows it, from public numbers alone.

    Attributes
    ----------
    share : float
        Fraction of the part's share.
    noise_std : float, optional
        Standard deviation of the noise on each count, as the ledger states it.
    column_std, pair_std, outcome_std : float, optional
        That in the count of one value of a column, of values of two columns, and of two of which one is the
        outcome.
    means : mapping of str to float
        By column of numbers, about the standard deviation that the noise adds to its mean.
    of : str
        Label of a regression.
    widening : float, optional
        Expected width of a regression's intervals over that without noise.
    subgroups : tuple of float, optional
        For a regression within a subgroup, whose size is private: the fewest records of the subgroup for
        which the widening is at most 2, and at most the largest that is not refused.
    """

    name: str
    events: tuple[DpEvent, ...]
    share: float = 1.0
    noise_std: float | None = None
    column_std: float | None = None
    pair_std: float | None = None
    outcome_std: float | None = None
    means: Mapping[str, float] = field(default_factory=dict)
    of: str = ""
    widening: float | None = None
    subgroups: tuple[int, int] | None = None


@dataclass
class Reading:
    """What parts read with, and what the earlier ones found.

    ``n`` is the public or privately counted number of records, ``rng`` the secret source of noise, ``model``
    what the generator made of its own parts, None while these are read. ``refine=False`` leaves out
    post-processing that no later part needs, for an audit of the readings. ``results`` holds what each part
    found, ``shared`` what several parts make of that.
    """

    ledger: Ledger
    records: Records
    rng: np.random.Generator
    n: float
    model: GeneratorModel | None = None
    refine: bool = True
    results: dict[type[Part[Any]], Any] = field(default_factory=dict)
    shared: dict[type[Any], Any] = field(default_factory=dict)

    @property
    def made(self) -> GeneratorModel:
        """The generator's model. Raises ConfigError while its own parts are read."""
        if self.model is None:
            raise ConfigError("this part is read with samples: it comes after the generator's own parts")
        return self.model

    def run(self, release: Any) -> Any:
        """Post a release to the ledger and read the records."""
        return self.ledger.run(release, self.records, self.rng)

    def of(self, part: type[Part[Result]]) -> Result | None:
        """What a part of this class found, None if there was none."""
        return cast("Result | None", self.results.get(part))

    def read(self, part: Part[Any]) -> Any:
        """Read a part, and keep what it found."""
        self.results[type(part)] = found = self.find(part)
        return found

    def find(self, part: Part[Any]) -> Any:
        """What a part finds."""
        return part.read(self)


@dataclass
class Redrawing(Reading):
    """Parts read once more, with samples of the released model in the place of records.

    ``pool``: even samples of its base model, in bins, shape (samples, columns).
    """

    released: GeneratorModel = field(kw_only=True)
    pool: NDArray[np.int64] | None = field(kw_only=True, default=None)

    def find(self, part: Part[Any]) -> Any:
        """What a part finds in another sample with other noise."""
        return part.redraw(self)

    @property
    def marginals(self) -> Marginals:
        """The released single-column counts."""
        found = self.released.encoder.marginals
        assert found is not None  # every fit releases them
        return found


@record
@dataclass(frozen=True, kw_only=True)
class Part(ABC, Generic[Result]):
    """Something that reads records under the budget of a fit. A saved model keeps its parts.

    Parameters
    ----------
    share : float or None
        Fraction of mu^2. None takes what the others leave, and is read last.
    noise : float, optional
        Noise multiplier of one Gaussian mechanism that costs what the part does, chosen together with that
        of all parts. None reads without noise: **not private**.
    stage : Stage, optional
        Part of the ledger that the entries belong to.
    """

    #: whether the samples that it reads with must have the columns' associations
    needs_associations: ClassVar[bool] = False
    #: whether its share is of what the parts leave that a caller gives
    of_rest: ClassVar[bool] = False

    share: float | None
    noise: float | None = None
    stage: Stage | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        record(cls)

    @property
    @abstractmethod
    def statistics(self) -> tuple[Statistic, ...]:
        """The noisy statistics, in the order in which they are read."""

    @abstractmethod
    def read(self, reading: Reading) -> Result:
        """Read the records by ``reading.run``, which posts the cost, and return what was found."""

    def redraw(self, reading: Redrawing) -> Result:
        """What the part would find in another sample of the population, with other noise.

        By default it is read once more, with samples of the released model in the place of records. A part
        that chooses what it counts says here that the choice stays.
        """
        return self.read(reading)

    def extend(self, model: GeneratorModel, found: Result) -> GeneratorModel:
        """The generator's model with what this part found, if it is read beside the generator's own parts."""
        return model

    def at(self, schema: TableSchema, n: float | None) -> Self:
        """The part of a fit of ``n`` records with this schema. None: a fit will count them privately.

        Raises InputError if the part does not fit the schema. Nothing has been read then.
        """
        return self

    @property
    def cautions(self) -> list[str]:
        """What the owner should know of it by public facts alone: a sentence or more each."""
        return []

    @property
    def outlook(self) -> list[str]:
        """What its noise will do, or why that is not known beforehand: a sentence each."""
        return []

    def check(self) -> None:
        """Raise PrivacyError if the noise would make the part useless. Nothing has been read then."""

    @property
    def events(self) -> list[DpEvent]:
        """Its cost."""
        return [event for statistic in self.statistics for event in statistic.events]

    def with_noise(self, noise: float | None, stage: Stage | None) -> Self:
        """The part with this noise."""
        return replace(self, noise=noise, stage=stage)


@record
@dataclass(frozen=True)
class Parts:
    """The parts of a fit in the order of reading.

    Attributes
    ----------
    own : tuple of Part
        Of the generator. Their shares are of what ``also`` leaves, in proportion.
    also : tuple of Part
        Beside the generator, read when its model is there. Their shares are of all.
    delta : float
        Of the fit.
    stage : Stage, optional
        That of all entries, when the noise is chosen.
    """

    own: tuple[Part[Any], ...]
    also: tuple[Part[Any], ...]
    delta: float
    stage: Stage | None = None

    def __iter__(self) -> Iterator[Part[Any]]:
        rest = self.rest
        yield from (part for part in chain(self.own, self.also) if part is not rest)
        if rest is not None:
            yield rest

    @property
    def rest(self) -> Part[Any] | None:
        """The part that takes what the others leave, if there is one."""
        return next((part for part in self.own if part.share is None), None)

    @property
    def readings(self) -> tuple[Part[Any], ...]:
        """All parts but that which takes what the others leave."""
        return tuple(part for part in self if part is not self.rest)

    def of(self, part: type[P]) -> P | None:
        """The part of this class, None if there is none."""
        return next((one for one in self if isinstance(one, part)), None)

    @property
    def shares(self) -> dict[type[Part[Any]], float]:
        """Fraction of mu^2 of each part, with sum 1. Empty if the generator reads nothing.

        >>> from dpsynth.synthesis.parts.columns import Columns
        >>> from dpsynth.table import Column, Schema
        >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=99),))
        >>> list(Parts((Columns(schema, 4000.0, share=0.2),), (), 1e-5).shares.values())
        [1.0]
        """
        given = {type(part): part.share for part in self.own if part.share is not None}
        total = sum(given.values())
        if (rest := self.rest) is not None:
            given[type(rest)], total = 1.0 - total, 1.0
        left = 1.0 - sum(part.share or 0.0 for part in self.also)
        found = {part: left * share / total for part, share in given.items()}
        return found | {type(part): part.share or 0.0 for part in self.also} if found else {}

    def beside(self, also: Sequence[Part[Any]]) -> Parts:
        """With further parts, of whose classes there is none yet. Raises InputError for another one.

        Their shares are of all: with those of ``also`` they must leave something for the generator.
        """
        left = 1.0 - sum(part.share or 0.0 for part in also)
        before = (
            replace(part, share=left * (part.share or 0.0)) if part.of_rest else part for part in self.also
        )
        found = replace(self, also=(*before, *also))
        names = [type(part).__name__ for part in found]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"also: a fit has one part of a class, and there are two {twice}")
        total = sum(part.share or 0.0 for part in found.also)
        if any(not part.share or part.share < 0 for part in found.also) or total >= 1:
            raise InputError(
                "also: each part needs a share greater than 0, and all together must leave something for the "
                f"generator, got {total:g} in all"
            )
        return found

    @property
    def events(self) -> list[DpEvent]:
        """Cost of all parts."""
        return [event for part in self for event in part.events]

    def without_noise(self, delta: float) -> Parts:
        """The parts as a fit without a budget reads them: **not private**."""
        return self._each({}, Stage.begin(delta))

    def with_noise(self, epsilon: float, delta: float, *, counted: bool = False) -> Parts:
        """The parts with noise for a total cost of at most (epsilon, delta).

        The mu for which mu-Gaussian-DP has exactly this (epsilon, delta) is divided by squares (Dong, Roth
        and Su 2022, corollary 2.13). Its inverse is the least noise of Balle and Wang (2018).

        Parameters
        ----------
        counted : bool
            Whether the parts come from a private count, which chose them and their noise. Epsilon, delta and
            a total variation computed from these two then bound the fit for every count. The stage promises
            them.

        Raises
        ------
        PrivacyError
            If nothing would be read, or if the budget is too small, for all together or for one part.
        """
        if delta < DELTA_FLOOR:
            raise PrivacyError(
                f"delta {delta:.3g} is smaller than the accounting can resolve ({DELTA_FLOOR:g}). "
                "Give a larger one"
            )
        shares = self.shares
        if not shares:
            raise PrivacyError("the fit would read nothing: the generator has no part")
        mu = 1 / analytic_sigma(epsilon, delta)
        target: Target = EpsilonTarget(epsilon, delta)
        stage = Stage.begin(delta)
        if counted:
            tv = promised_tv(mu)
            stage = Stage.begin(delta, epsilon=epsilon, tv=tv)
            target = PromiseTarget(epsilon, delta, tv) if tv < 1.0 else target
        rest = self.rest

        def scaled(scale: float) -> Parts:
            noise = {part: scale / (mu * math.sqrt(share)) for part, share in shares.items()}
            return self._each(noise, stage)

        if rest is None:
            # what is left when the parts carry no information is nothing
            scale = calibrate(lambda s: [] if math.isinf(s) else scaled(s).events, target)
            return scaled(scale)
        fixed = scaled(1.0)
        before = [event for part in fixed.readings for event in part.events]

        def with_rest(noise: float) -> list[DpEvent]:
            own = [] if math.isinf(noise) else rest.with_noise(noise, stage).events
            return [*before, *own]

        z = calibrate(with_rest, target)
        return replace(
            fixed, own=tuple(replace(p, noise=z) if type(p) is type(rest) else p for p in fixed.own)
        )

    def _each(self, noise: dict[type[Part[Any]], float], stage: Stage) -> Parts:
        def noisy(parts: Sequence[Part[Any]]) -> tuple[Part[Any], ...]:
            return tuple(part.with_noise(noise.get(type(part)), stage) for part in parts)

        return replace(self, own=noisy(self.own), also=noisy(self.also), stage=stage)

    def check(self) -> None:
        """Raise PrivacyError for a part that its noise makes useless."""
        for part in self:
            part.check()
