"""A fitted generator, which may be published and sampled without the data, and without TensorFlow.

Everything here is a function of noisy statistics that are in the ledger. Sampling any number of records is
post-processing and costs nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth.errors import InputError, RunError
from dpsynth.files.codec import numbers, record
from dpsynth.marginals.chain import Chain
from dpsynth.marginals.latent import LatentGaussian
from dpsynth.marginals.network import BayesianNetwork
from dpsynth.studies.fitted_study import FittedStudy
from dpsynth.synthesis.row_rules import rules_of_model
from dpsynth.synthesis.rows import Trajectories, draw_rows
from dpsynth.synthesis.sampler import Sampler
from dpsynth.synthesis.sampling import (
    Acceptance,
    Codes,
    Places,
    fulfilling,
    matched_draws,
    obeying,
    placed,
)
from dpsynth.table.column import Column
from dpsynth.table.derived import add_derived
from dpsynth.table.encoder import Encoder
from dpsynth.table.expressions import Expression
from dpsynth.table.kinds.number import EXACT_INTEGERS
from dpsynth.table.schema import Schema, TableSchema

# Rows of a block when sampling: calibrated against the released marginals together.
BLOCK = 100_000
# Marginals of fewer rows than this are matched on a larger block, of which a random part is kept.
SMALLEST_BLOCK = 2_000
# Arrays from which records are drawn in proportion, or by which they are weighed.
_CHAIN = "sampler/records"
_MASS = re.compile(
    rf"encoder/marginals/(probabilities/\d+|missing_law)|{_CHAIN}/cells/\d+"
    rf"|{_CHAIN}/network/(factors/\d+/2|cells/\d+|missing_law)"
)


@record
@dataclass(frozen=True)
class Independent(Sampler):
    """Columns by themselves, each by its released distribution."""

    def draw(self, encoder: Encoder, n: int, rng: np.random.Generator) -> tuple[list[Codes], list[Places]]:
        """Fine cells of n records and places within them."""
        return matched_draws(None, encoder, n, rng)


@record
@dataclass(frozen=True)
class GeneratorModel:
    """The released parts of a fitted synthesizer. Samples agree with the marginals of its encoder.

    ``schema``: of the released table, with its derived columns and constraints.
    ``trajectories``: where patients have several rows. The schema is then that of their levels.
    ``codes``: where the schema has groups. The encoder is that of the other columns.
    """

    schema: Schema
    encoder: Encoder
    sampler: Sampler = Independent()
    studies: tuple[FittedStudy, ...] = ()
    trajectories: Trajectories | None = None
    codes: LatentGaussian | None = None

    def __post_init__(self) -> None:
        for name, value in numbers(self):
            if not np.isfinite(value).all() or (_MASS.fullmatch(name) and (value < 0).any()):
                raise RunError(
                    f"the model cannot be sampled and is not kept: {name} holds a number that is negative or "
                    "not finite. The spent budget stays in the ledger. Please report this with the schema"
                )

    @property
    def base_model(self) -> BayesianNetwork | None:
        """The Bayesian network of the released tables, if there is one."""
        return None if self.chain is None else self.chain.network

    @property
    def chain(self) -> Chain | None:
        """The chain that records are drawn from, if they are."""
        return self.sampler.chain

    @property
    def declared_schema(self) -> TableSchema:
        """The schema that the owner declared: of records, or of patients with several rows."""
        return self.schema if self.trajectories is None else self.trajectories.schema

    @property
    def released_schema(self) -> Schema:
        """The schema of samples.

        Patients with several rows have their number before the columns, and that of the row if no column
        orders the rows.
        """
        if self.trajectories is None:
            return self.schema
        patients = self.trajectories.schema
        before = {patients.unit: EXACT_INTEGERS} | ({} if patients.timed else {patients.order: patients.most})
        numbers = (Column(name=name, kind="integer", lower=1, upper=upper) for name, upper in before.items())
        return Schema(columns=(*numbers, *patients.columns), name=patients.name, unit=self.schema.unit)

    def study(self, name: str) -> FittedStudy:
        """The pre-specified regression of this name."""
        if not isinstance(name, str):
            raise InputError(
                f"study must be the name of one pre-specified regression, not {type(name).__name__}"
            )
        found = {study.estimates.study: study for study in self.studies}
        if name not in found:
            declared = f"declared were: {', '.join(found)}" if found else "none was declared"
            raise InputError(
                f"study {name!r} was not declared before the fit ({declared}): its score was never read from "
                "the records. Reading it now costs budget: fit again with it among the studies"
            )
        return found[name]

    def blocks(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        block: int = BLOCK,
        among: int = 1,
        where: Sequence[Expression] = (),
        record: Acceptance | None = None,
        redrawn: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
        before: int = 0,
    ) -> Iterator[pd.DataFrame]:
        """Frames that together hold ``n`` synthetic records, with memory bounded by ``block`` rows.

        Every record obeys the schema's constraints, and fulfils the conditions of ``where``
        (`dpsynth.synthesis.sampling`). ``record`` counts how many candidates that took.

        The records of a block agree with the released marginals more closely than independent samples would.
        With ``among`` greater than 1 they are a random part of so many times as many records that do. The
        greater it is, the nearer is their sampling noise to that of independent samples.

        ``redrawn`` gives records of the modelled columns other values, before constraints are looked at.
        Patients with several rows are numbered from ``before + 1`` on.
        """
        most = max(block // among, 1)
        count = max(-(-n // most), 1)
        sizes = [int(size) for size in np.diff(np.linspace(0, n, count + 1).astype(int))]
        rules, formulas = rules_of_model(self.declared_schema), self.schema.formulas
        found = Acceptance() if record is None else record

        def made(size: int, least: int = SMALLEST_BLOCK) -> pd.DataFrame:
            frame = self.completed(self._made(size, rng, least, rules), rng, even=size >= least)
            frame = frame if redrawn is None else redrawn(frame)
            return add_derived(frame, formulas, self.schema.columns) if formulas else frame

        def constrained(size: int) -> pd.DataFrame:
            least = max(among * size, SMALLEST_BLOCK)
            if not rules or not size:
                return made(size, least)
            kept = self.encoder if redrawn is None else None
            at_once = min(SMALLEST_BLOCK, block), block
            return obeying(made, least, rules, kept, rng, found, at_once).iloc[:size]

        if where:
            at_once = min(SMALLEST_BLOCK, most), most
            frames = fulfilling(constrained, sizes, where, rng, found, at_once)
        else:
            frames = map(constrained, sizes)
        done = before
        for frame in frames:
            yield frame if self.trajectories is None else draw_rows(self.trajectories, frame, rng, done)
            done += len(frame)

    def completed(self, frame: pd.DataFrame, rng: np.random.Generator, *, even: bool) -> pd.DataFrame:
        """Records of the encoder's columns with their codes. ``even``: see `LatentGaussian.draw`."""
        if self.codes is None:
            return frame
        return self.codes.beside(frame, self.schema, self.encoder.grids, rng, even=even)

    def _made(
        self, size: int, rng: np.random.Generator, least: int, rules: Sequence[Expression]
    ) -> pd.DataFrame:
        """``size`` records of the modelled columns, a part of at least ``least`` that are made together."""
        made = max(size, least)
        kept = rng.permutation(made)[:size] if made > size else slice(None)
        codes, places = self.sampler.draw(self.encoder, made, rng)
        codes, places = [code[kept] for code in codes], [place[kept] for place in places]
        frame, bins = self.encoder.decode(codes, places), self.sampler.bins()
        if not bins or not rules or not size:
            return frame
        names = [grid.column.name for grid in self.encoder.grids]
        cells = {names[j]: (codes[j], labels) for j, labels in bins.items()}
        return placed(frame, cells, rules, self.schema, rng)

    def sample(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        where: Sequence[Expression] = (),
        record: Acceptance | None = None,
    ) -> pd.DataFrame:
        """``n`` synthetic records in the schema's dtypes."""
        return pd.concat(list(self.blocks(n, rng, where=where, record=record)), ignore_index=True)


def independent_points(encoder: Encoder, n: int, rng: np.random.Generator) -> np.ndarray:
    """Points with independent coordinates: uniform numbers, categories by their released probabilities.

    Made without private records beyond the released marginals (uniform categories where there are none).
    """
    layout = encoder.layout
    points = np.zeros((n, layout.dim), np.float32)
    points[:, : layout.n_numeric] = rng.random((n, layout.n_numeric))
    for (start, stop), p in zip(layout.groups, encoder.group_probabilities(), strict=True):
        points[np.arange(n), start + rng.choice(stop - start, size=n, p=p)] = 1.0
    return points
