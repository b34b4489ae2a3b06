"""Single columns as a generator makes them, at five points of its training.

They are functions of the generator's weights and of public random numbers: post-processing, free of cost. The
training's own random numbers are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.files.codec import record
from dpsynth.table.bars import bar_edges, bar_grid
from dpsynth.table.column import Column
from dpsynth.table.encoder import Encoder
from dpsynth.table.schema import Schema
from dpsynth.wgan.networks import ArrayOps, Weights, generator_pass
from dpsynth.wgan.settings import TrainingSettings

#: Rows that are made for a snapshot, and columns that it has at most.
_ROWS, _COLUMNS = 2_000, 6
#: Snapshots are taken at the start and after each of so many equal parts of the iterations.
_PARTS = 4


@record
@dataclass(frozen=True, eq=False)
class Snapshot:
    """Single columns of rows that the generator made at one point of its training.

    ``step``: critic steps before it.
    ``shares``: of rows in each bar of `bar_grid`, for each of `watched_columns`, shapes (grid.size,).
    """

    step: int
    shares: tuple[NDArray[np.float64], ...]


def snapshot_iterations(iterations: int) -> tuple[int, ...]:
    """Generator iterations after which there is a snapshot.

    Examples
    --------
    >>> snapshot_iterations(500), snapshot_iterations(2)
    ((0, 125, 250, 375, 500), (0, 1, 2))
    """
    return tuple(sorted({-(-iterations * k // _PARTS) for k in range(_PARTS + 1)}))


def watched_columns(schema: Schema) -> tuple[Column, ...]:
    """The outcome and the first others in the schema's order, which is public.

    Examples
    --------
    >>> columns = [Column(name=name, kind="binary", categories=("no", "yes")) for name in "abcdefgh"]
    >>> [column.name for column in watched_columns(Schema(columns=tuple(columns), outcome="h"))]
    ['h', 'a', 'b', 'c', 'd', 'e']
    """
    first = [column for column in schema.columns if column.name == schema.outcome]
    others = [column for column in schema.columns if column.name != schema.outcome]
    return (*first, *others)[:_COLUMNS]


def take_snapshot(step: int, weights: Weights, settings: TrainingSettings, encoder: Encoder) -> Snapshot:
    """The columns of the generator with these weights, after so many critic steps.

    Rows are decoded as they are, before samples are made to agree with released counts.
    """
    rng = np.random.default_rng(0)  # public, and the same for all snapshots
    draw = rng.random if settings.latent_law == "uniform" else rng.standard_normal
    latent = draw((_ROWS, settings.latent), dtype=np.float32)
    codes, places = encoder.cells(generator_pass(weights, latent, encoder.layout, ArrayOps), rng)
    shares = []
    for column in watched_columns(encoder.schema):
        j, grid = encoder.schema.names.index(column.name), bar_grid(column)
        cells = grid.encode(encoder.grids[j].decode(codes[j], places[j]))
        shares.append(np.bincount(cells, minlength=grid.size) / _ROWS)
    return Snapshot(step, tuple(shares))


def snapshots_fit(snapshots: Sequence[Snapshot], encoder: Encoder) -> bool:
    """Whether snapshots are of this encoder's columns."""
    shapes = [(bar_grid(column).size,) for column in watched_columns(encoder.schema)]
    return all([share.shape for share in snapshot.shares] == shapes for snapshot in snapshots)


def snapshot_columns(snapshots: Sequence[Snapshot], encoder: Encoder) -> list[dict[str, Any]]:
    """The columns of snapshots as a report shows them, each beside its released counts.

    Numbers have ``edges`` of bars and categories ``labels``. ``released``: shares by the released counts,
    empty if there are none. ``generated``: shares at each snapshot. All shares are of all rows, so those of a
    column with missing values or special codes do not sum to 1.
    """
    found: list[dict[str, Any]] = []
    marginals = encoder.marginals
    for k, column in enumerate(watched_columns(encoder.schema) if snapshots else ()):
        j, grid = encoder.schema.names.index(column.name), bar_grid(column)
        shown = slice(grid.present)
        numeric, released = column.is_numeric, np.zeros(0)
        if marginals is not None:
            released = encoder.grids[j].summed(marginals.probabilities[j], grid)
        found.append(
            {
                "column": column.name,
                "unit": column.shown_unit,
                "scale": column.scale,
                "edges": bar_edges(grid).tolist() if numeric else [],
                "labels": [] if numeric else [str(category) for category in column.categories],
                "released": released[shown].tolist(),
                "generated": [snapshot.shares[k][shown].tolist() for snapshot in snapshots],
            }
        )
    return found
