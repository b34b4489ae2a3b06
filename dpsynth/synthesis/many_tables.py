"""Sample tables from redrawn releases, whose differences show the size of the privacy noise.

All samples of one released model share its noise. Here every table comes from a model of its own, whose
releases are redrawn (a parametric bootstrap, Efron and Tibshirani 1993, section 6.5). The released model
generates as many records as the real table has. The parts of the fit read them as they read the real ones
(:meth:`dpsynth.synthesis.parts.part.Part.redraw`), with noise of the same scale, and the same code makes a
model of what they find. The tables differ as another sample of the population with other noise would, and
`dpsynth.combine` makes an interval of that. Räisä, Jälkö, Kaski and Honkela (2023), "Noise-aware statistical
inference with differentially private synthetic data", draw from a Bayesian posterior.

This is post-processing of released numbers, without privacy cost. The base model's edges and bins are *not*
redrawn. Neither are features of pairwise statistics, a noisy number of records, and a trained generator's
weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.marginals.chain import Chain
from dpsynth.parallel import each
from dpsynth.patients.histories import Histories
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.studies.estimation import redrawn
from dpsynth.studies.fitted_study import FittedStudy
from dpsynth.synthesis.fit import FitPlan, read_parts
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.parts.part import Redrawing
from dpsynth.synthesis.rows import draw_rows
from dpsynth.synthesis.sampling import Acceptance
from dpsynth.table.derived import Where, parse_where
from dpsynth.table.expressions import Expression
from dpsynth.table.files import write_table
from dpsynth.table.grid import Marginals

if TYPE_CHECKING:
    from distributed import Client

#: Evenly drawn records of the base model for each one that is taken from among them, with replacement.
_POOL = 4
#: Records that agree with the redrawn marginals together, for each one of a table. A table's own sampling
#: noise falls short of that of independent records by one part in so many.
_AMONG = 20


def redraw(plan: FitPlan, model: GeneratorModel, rng: np.random.Generator) -> GeneratorModel:
    """Return another model of the same population, as from another sample and other noise.

    All parts of the fit are redrawn together, from one sample of records (`Part.redraw`).
    """
    encoder, chain, trajectories = model.encoder, model.chain, model.trajectories
    if encoder.marginals is None:
        raise InputError(
            "this model has no single-column counts to redraw (encoding 'minmax'). Use encoding 'copula' for "
            "tables to combine"
        )
    pool = None if chain is None else chain.sample(_POOL * _number(encoder.marginals), rng)
    frame = _records(encoder.marginals, chain, pool, rng)
    frame = model.completed(frame, rng, even=False)
    if trajectories is not None:
        schema = trajectories.schema
        rows = schema.in_order(draw_rows(trajectories, frame, rng))
        frame = Histories.of(rows, schema, rng).to_frame(schema)
    # nobody's records: what reads them costs nothing
    reading = Redrawing(Ledger(), FrameRecords(frame), rng, plan.n, released=model, pool=pool)
    again, rest = read_parts(plan, reading), plan.parts.rest
    return again if rest is None else rest.extend(again, reading.read(rest))


def redrawn_tables(
    plan: FitPlan,
    model: GeneratorModel,
    m: int,
    n: int,
    seed: int | None,
    *,
    study: FittedStudy | None = None,
    where: Sequence[Expression] = (),
    record: Acceptance | None = None,
) -> Iterator[pd.DataFrame]:
    """``m`` tables of ``n`` records, each from a redrawn model of its own, or for a pre-specified regression.

    The records of a table are nearly independent samples of its model. (Tables of
    :meth:`GeneratorModel.sample` agree with the released numbers more closely, and the rule for combining
    would subtract too much.)

    For a study the released model generates the predictors. The outcome follows the study's regression.
    Each table's coefficients come from their normal posterior: a posterior predictive distribution.

    Table k depends on ``seed`` and k alone. Other parameters are those of :meth:`GeneratorModel.blocks`.
    """
    if study is not None:
        study.check_records("sample_many")
    for stream in np.random.SeedSequence(seed).spawn(m):
        rng = np.random.default_rng(stream)
        if study is None:
            blocks = redraw(plan, model, rng).blocks(n, rng, among=_AMONG, where=where, record=record)
        else:
            beta = rng.multivariate_normal(study.beta, study.covariance)
            answer = partial(redrawn, study.design, beta, rng=rng)
            blocks = model.blocks(n, rng, where=where, record=record, redrawn=answer)
        yield pd.concat(list(blocks), ignore_index=True)


def _number(marginals: Marginals) -> int:
    return max(round(marginals.n), 1)


def _records(
    marginals: Marginals,
    chain: Chain | None,
    pool: NDArray[np.int64] | None,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """As many records as the real table has, independent samples of the released model, from its ``pool``."""
    n = _number(marginals)
    if chain is None or pool is None:
        cells = np.stack([rng.choice(len(p), size=n, p=p) for p in marginals.probabilities], axis=1)
    else:
        # Draws of the base model are more even than independent ones; a choice with replacement undoes that.
        cells = chain.cells_of(pool[rng.integers(len(pool), size=n)], rng)
    # Anywhere in their cells: columns of many values are also counted value by value.
    columns = zip(marginals.grids, cells.T, rng.random(cells.T.shape), strict=True)
    return pd.DataFrame({grid.column.name: grid.decode(code, place) for grid, code, place in columns})


# ------------------------------------------------------------------------------------------------
# Draw samples larger than memory: Dask workers write parts, each into a Parquet file of its own.
#
# Sampling is post-processing of a released model: it reads no records and costs nothing. Each part has a
# random stream of its own, spawned from one seed. A sample depends on seed and number of parts only, even if
# a worker fails and its part is drawn again.

#: Rows of a part, at most, where nobody says how many parts there are.
PART_ROWS = 1_000_000
_NAME = "part-{:05d}.parquet"
#: The file that every folder of parts holds.
FIRST = _NAME.format(0)


@dataclass(frozen=True)
class PartFile:
    """A file to be drawn, of ``records`` records after the first ``start``."""

    name: str
    start: int
    records: int
    seed: np.random.SeedSequence


def part_files(n: int, partitions: int | None, seed: int | None, rows: int = 1) -> Iterator[PartFile]:
    """The parts of a sample of ``n`` records, of about equal size. Default: one for each million rows.

    ``rows``: of a record, at most.

    >>> [(part.name, part.records) for part in part_files(5, 2, 0)]
    [('part-00000.parquet', 2), ('part-00001.parquet', 3)]
    """
    count = partitions or max(-(-n * rows // PART_ROWS), 1)
    ends = [n * i // count for i in range(count + 1)]
    for i, stream in enumerate(np.random.SeedSequence(seed).spawn(count)):
        yield PartFile(_NAME.format(i), ends[i], ends[i + 1] - ends[i], stream)


def sample_parts(
    model: GeneratorModel,
    folder: Path,
    parts: Iterator[PartFile],
    client: Client,
    *,
    where: Where | None = None,
    shared: bool = False,
) -> Acceptance:
    """Draw parts into files of a folder that all workers see, each with one block of records in memory.

    Raises DataError if a worker cannot write, RejectionError if a constraint or condition is nearly
    impossible.
    """
    record = Acceptance()
    draw = partial(draw_part, model=model, folder=folder, where=where, shared=shared)
    for drawn in each(client, draw, list(parts)):
        record.add(drawn)
    for rest in folder.glob(".*"):  # of workers that died while they wrote
        rest.unlink()
    return record


def draw_part(
    part: PartFile, model: GeneratorModel, folder: Path, where: Where | None, shared: bool
) -> Acceptance:
    """Draw one part into its file, and count the candidates that it took."""
    record = Acceptance()
    rng = np.random.default_rng(part.seed)
    # Rules hold functions, which do not travel; their text does.
    conditions = parse_where(where, model.schema.columns)
    blocks = model.blocks(part.records, rng, where=conditions, record=record, before=part.start)
    write_table(blocks, folder / part.name, shared=shared)
    return record
