"""Draw samples larger than memory: Dask workers write parts, each into a Parquet file of its own.

Sampling is post-processing of a released model: it reads no records and costs nothing. Each part has a random
stream of its own, spawned from one seed. A sample depends on seed and number of parts only, even if a worker
fails and its part is drawn again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpsynth.cluster import each
from dpsynth.model.generator import GeneratorModel
from dpsynth.model.rejection import Acceptance
from dpsynth.table.io import write_table
from dpsynth.table.where import Where, parse_where

if TYPE_CHECKING:
    from distributed import Client

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
