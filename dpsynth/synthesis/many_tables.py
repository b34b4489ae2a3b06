"""Sample tables from redrawn releases, whose differences show the size of the privacy noise.

All samples of one released model share its noise. Here every table comes from a model of its own, whose
releases are redrawn (a parametric bootstrap, Efron and Tibshirani 1993, section 6.5). The released model
generates as many records as the real table has. They are counted as the real ones were, with noise of the
same scale, and the same code fits the counts. Pairwise statistics of columns that no table holds together are
redrawn around the released ones. Around the model's own, fits would shrink associations twice. The tables
differ as another sample of the population with other noise would, and `dpsynth.combine` makes an interval of
that. Räisä, Jälkö, Kaski and Honkela (2023), "Noise-aware statistical inference with differentially private
synthetic data", draw from a Bayesian posterior.

This is post-processing of released numbers, without privacy cost. The base model's edges and bins are *not*
redrawn. Neither are features of pairwise statistics, groups of the nearest-neighbour histogram, a noisy
number of records, and a trained generator's weights.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.marginals.columns import estimate_marginals
from dpsynth.marginals.factors import fit_factors
from dpsynth.marginals.gibbs import Reweighting
from dpsynth.marginals.network import BayesianNetwork
from dpsynth.marginals.reweighting import reweighted, weighted
from dpsynth.marginals.statistics import (
    Family,
    MarginalsRelease,
    NeighbourHistogramRelease,
    PairwiseStatisticsRelease,
    TablesRelease,
)
from dpsynth.parallel import each
from dpsynth.patients.histories import Histories, in_order
from dpsynth.privacy.records import Binning, Bins, FrameRecords
from dpsynth.studies.estimation import redrawn
from dpsynth.studies.private import FittedStudy
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.parts.rows import VisitsRelease
from dpsynth.synthesis.rows import Trajectories, draw_rows
from dpsynth.synthesis.sampling import Acceptance
from dpsynth.table.derived import Where, parse_where
from dpsynth.table.encoder import Encoder
from dpsynth.table.expressions import Expression
from dpsynth.table.files import write_table
from dpsynth.table.grid import Marginals

if TYPE_CHECKING:
    from distributed import Client

Floats = NDArray[np.float64]

#: Evenly drawn records of the base model for each one that is taken from among them, with replacement.
_POOL = 4
#: Records that agree with the redrawn marginals together, for each one of a table. A table's own sampling
#: noise falls short of that of independent records by one part in so many.
_AMONG = 20


def redraw(model: GeneratorModel, rng: np.random.Generator) -> GeneratorModel:
    """Return another model of the same population, as from another sample and other noise.

    Marginals, the base model's tables, pairwise statistics, the nearest-neighbour histogram and the tables of
    rows are redrawn together, from one sample of records. A model without useful random Fourier features is
    redrawn without them. Raises InputError if the model was saved by a version that did not keep the noise of
    its marginals.
    """
    encoder, base_model, marginals = model.encoder, model.base_model, model.encoder.marginals
    assert marginals is not None  # every fit releases them
    pool = None if base_model is None else base_model.sample(_POOL * _number(marginals), rng)
    frame, trajectories = _records(marginals, base_model, pool, rng), model.trajectories
    if trajectories is not None:
        schema = trajectories.schema
        rows = in_order(draw_rows(trajectories, frame, rng), schema)
        frame = Histories.of(rows, schema, rng).to_frame(schema)
    records = FrameRecords(frame)
    release = MarginalsRelease(
        schema=encoder.schema,
        n=marginals.n,
        noise_multiplier=marginals.noise_multiplier,
        counted=marginals.counting,
    )
    with records.opened():  # nobody's records
        again = estimate_marginals(release, release(records, rng), marginals.grids)
        if base_model is not None and pool is not None:
            base_model = _base_model(base_model, again, records, pool, rng)
        if trajectories is not None:
            trajectories = _trajectories(trajectories, records, rng)
    encoder = Encoder(encoder.schema, again)
    return dataclasses.replace(model, encoder=encoder, base_model=base_model, trajectories=trajectories)


def redrawn_tables(
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
            blocks = redraw(model, rng).blocks(n, rng, among=_AMONG, where=where, record=record)
        else:
            beta = rng.multivariate_normal(study.beta, study.covariance)
            answer = partial(redrawn, study.design, beta, rng=rng)
            blocks = model.blocks(n, rng, where=where, record=record, redrawn=answer)
        yield pd.concat(list(blocks), ignore_index=True)


def _number(marginals: Marginals) -> int:
    return max(round(marginals.n), 1)


def _records(
    marginals: Marginals,
    base_model: BayesianNetwork | None,
    pool: NDArray[np.int64] | None,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """As many records as the real table has, independent samples of the released model, from its ``pool``."""
    n = _number(marginals)
    if base_model is None or pool is None:
        cells = np.stack([rng.choice(len(p), size=n, p=p) for p in marginals.probabilities], axis=1)
    else:
        # Draws of the base model are more even than independent ones; a choice with replacement undoes that.
        cells = base_model.cells_of(pool[rng.integers(len(pool), size=n)], rng)
    # Anywhere in their cells: columns of many values are also counted value by value.
    columns = zip(marginals.grids, cells.T, rng.random(cells.T.shape), strict=True)
    return pd.DataFrame({grid.column.name: grid.decode(code, place) for grid, code, place in columns})


def _shrunk(reweighting: Reweighting, families: Sequence[Family], pool: NDArray[np.int64]) -> Floats:
    """Released pairwise statistics less those of the model, of pairs of columns that no table holds.

    Records of the model lack what its fit has shrunk. A table is redrawn around the model, and so its pairs.
    """
    features, mean = reweighting.features, reweighting.mean
    counted = np.zeros((len(features.tables),) * 2, dtype=bool)
    for family in families:
        counted[np.ix_(family, family)] = True
    column = np.repeat(np.arange(len(features.tables)), np.diff(features.ends))
    outside = np.tile(~counted[np.ix_(column, column)], features.products.shape[1] // features.size)
    return np.where(outside, mean - features.mean_and_variance(pool)[0], 0.0)


def _trajectories(
    trajectories: Trajectories, records: FrameRecords, rng: np.random.Generator
) -> Trajectories:
    schema, std, parents = trajectories.schema, trajectories.noise_std, trajectories.parents
    release = VisitsRelease(schema=schema, noise_multiplier=None, parents=tuple(parents.items()))
    release = dataclasses.replace(release, noise_multiplier=std / release.l2_sensitivity or None)
    return Trajectories.of(schema, release(records, rng), std, parents)


def _base_model(
    base_model: BayesianNetwork,
    again: Marginals,
    records: FrameRecords,
    pool: NDArray[np.int64],
    rng: np.random.Generator,
) -> BayesianNetwork:
    binnings = tuple(
        Binning.from_labels(binning.labels, p)
        for binning, p in zip(base_model.binnings, again.probabilities, strict=True)
    )
    bins = Bins(again.grids, binnings, again.n)
    std, columns = base_model.noise_std, len(base_model.factors)
    plan = partial(TablesRelease.plan, columns, three_way=base_model.kind == "tan")
    sensitivity = plan(noise_multiplier=None).l2_sensitivity
    tables = plan(noise_multiplier=std / sensitivity if std else None).of(bins, base_model.families)
    counts = tables(records, rng) if columns else {}
    refined = dataclasses.replace(
        base_model,
        binnings=binnings,
        cells=again.probabilities,
        factors=fit_factors(base_model.families, counts, bins, std),
        missing_law=again.missing_law,
        weighting=None,
    )
    if base_model.reweighting is not None:
        features = base_model.reweighting.features
        # the deviation of a mean's noise as a multiple of what one record of the cap's length moves it
        multiplier = base_model.reweighting.noise_std * bins.n / features.cap
        pairs = PairwiseStatisticsRelease(noise_multiplier=multiplier or None).at((bins, features))
        statistics = pairs(records, rng) if features.size else None
        if statistics is not None:
            shrunk = _shrunk(base_model.reweighting, base_model.families, pool)
            statistics = dataclasses.replace(statistics, mean=statistics.mean + shrunk)
        refined = reweighted(refined, statistics, rng)
    if base_model.weighting is not None:
        weighting, fourier = base_model.weighting, base_model.weighting.fourier
        multiplier = weighting.noise_std / NeighbourHistogramRelease.l2_sensitivity
        release = NeighbourHistogramRelease(noise_multiplier=multiplier or None)
        histogram = release.at((bins, weighting.groups, None if fourier is None else fourier.features))
        refined = weighted(refined, histogram(records, rng), rng)
    return refined if refined.copula is None else refined.coupled(again.grids, again.n, rng)


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
