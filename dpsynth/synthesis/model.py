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
from numpy.typing import NDArray

from dpsynth.errors import InputError, RunError
from dpsynth.files.codec import numbers, record
from dpsynth.marginals.network import BayesianNetwork
from dpsynth.parallel import in_blocks
from dpsynth.patients.schema import TableSchema
from dpsynth.studies.private import FittedStudy
from dpsynth.synthesis.row_rules import rules_of_model
from dpsynth.synthesis.rows import Trajectories, draw_rows
from dpsynth.synthesis.sampling import Acceptance, calibrate, fulfilling, matched_draws, obeying, placed
from dpsynth.table.column import EXACT_INTEGERS, Column
from dpsynth.table.derived import add_derived
from dpsynth.table.encoder import Encoder
from dpsynth.table.expressions import Expression
from dpsynth.table.schema import Schema
from dpsynth.wgan.networks import ArrayOps, MatchedPoints, generator_pass

Floats = NDArray[np.float32]

# Rows of a block when sampling: calibrated against the released marginals together.
BLOCK = 100_000
# Marginals of fewer rows than this are matched on a larger block, of which a random part is kept.
SMALLEST_BLOCK = 2_000
# Rows that go through the generator at once: its layers then stay in the processor's cache.
_ROWS = 4_096
# Arrays from which records are drawn in proportion, or by which they are weighed.
_MASS = re.compile(
    r"encoder/marginals/(probabilities/\d+|missing_law)|base_model/(factors/\d+/2|cells/\d+|missing_law)"
    r"|base_model/weighting/(weights|columns/\d+|missing)"
)


@record
@dataclass(frozen=True)
class GeneratorModel:
    """The released parts of a fitted synthesizer. Samples agree with the marginals of its encoder.

    ``schema``: of the released table, with its derived columns and constraints.
    ``weights``: matrix and bias of each layer of the generator. None samples the base model, or independent
        columns if there is none.
    ``matched``: points that take the generator's place (`dpsynth.wgan.matching`).
    ``trajectories``: where patients have several rows. The schema is then that of their levels.
    """

    schema: Schema
    encoder: Encoder
    base_model: BayesianNetwork | None
    weights: list[tuple[Floats, Floats]] | None
    latent: int
    latent_law: str
    studies: tuple[FittedStudy, ...] = ()
    matched: MatchedPoints | None = None
    trajectories: Trajectories | None = None

    def __post_init__(self) -> None:
        for name, value in numbers(self):
            if not np.isfinite(value).all() or (_MASS.fullmatch(name) and (value < 0).any()):
                raise RunError(
                    f"the model cannot be sampled and is not kept: {name} holds a number that is negative or "
                    "not finite. The spent budget stays in the ledger. Please report this with the schema"
                )

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

    def points(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Generated points: numeric coordinates in [0, 1] and group probabilities, shape (n, dim)."""
        if self.matched is not None:
            return self.matched.sample(n, self.encoder.layout.n_numeric, rng)
        weights, layout = self.weights, self.encoder.layout
        assert weights is not None  # nothing else makes points
        made = np.empty((n, layout.dim), np.float32)

        def fill(part: slice, own: np.random.Generator) -> None:
            draw = own.random if self.latent_law == "uniform" else own.standard_normal
            latent = draw((part.stop - part.start, self.latent), dtype=np.float32)
            made[part] = generator_pass(weights, latent, layout, ArrayOps)

        in_blocks(fill, n, _ROWS, rng)
        return made

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
        patients = None if self.trajectories is None else self.trajectories.schema
        rules, formulas = rules_of_model(self.schema, patients), self.schema.formulas
        found = Acceptance() if record is None else record

        def made(size: int, least: int = SMALLEST_BLOCK) -> pd.DataFrame:
            frame = self._made(size, rng, least, rules)
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

    def _made(
        self, size: int, rng: np.random.Generator, least: int, rules: Sequence[Expression]
    ) -> pd.DataFrame:
        """``size`` records of the modelled columns, a part of at least ``least`` that are made together."""
        made = max(size, least)
        kept = rng.permutation(made)[:size] if made > size else slice(None)
        codes, places = self._drawn(made, rng)
        codes, places = [code[kept] for code in codes], [place[kept] for place in places]
        frame = self.encoder.decode(codes, places)
        if self.base_model is None or not self.base_model.rules or not rules or not size:
            return frame
        binnings = zip(self.encoder.grids, self.base_model.binnings, codes, strict=True)
        cells = {grid.column.name: (code, binning.labels) for grid, binning, code in binnings}
        return placed(frame, cells, rules, self.schema, rng)

    def _drawn(self, n: int, rng: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Fine cells of n records and places within them, one of each a column."""
        if self.weights is None and self.matched is None:
            return matched_draws(self.base_model, self.encoder, n, rng)
        return calibrate(self.points(n, rng), self.encoder, rng)

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
