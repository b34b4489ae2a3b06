"""What a fit takes in: records that are seen to fit, and a ledger that is told what draws the noise."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd

from dpsynth.accounting.ledger.ledger import Ledger
from dpsynth.checks import few
from dpsynth.errors import DataError, InputError, OwnerWarning
from dpsynth.mechanism.noise import describe_generator
from dpsynth.releases.partitioned import PartitionedRecords
from dpsynth.releases.records import FrameRecords, Records
from dpsynth.synthesis.options import FitOptions
from dpsynth.table.schema import Schema

# Share of n_public by which the number of rows may differ from it.
_N_TOLERANCE = 0.1


def conformed(schema: Schema, frame: pd.DataFrame) -> pd.DataFrame:
    """The part of a private table that is modelled; derived columns are never read."""
    derived = {column.name for column, _ in schema.formulas}
    own = frame[[name for name in frame.columns if str(name) not in derived]] if derived else frame
    return schema.modelled.conform(own).frame


def records_of(
    frame: pd.DataFrame | PartitionedRecords, schema: Schema, options: FitOptions, *, accept_n_public: bool
) -> Records:
    """Records of which everything has been seen to fit, the cheapest first, before anything is spent.

    Raises
    ------
    InputError
        If they are no records, or in parts and the options ask for critic steps or another schema.
    DataError
        If they do not fit the schema or its public number of records.
    """
    if isinstance(frame, pd.DataFrame):
        own = conformed(schema, frame)
        check_n_public(len(own), schema, accept=accept_n_public)
        return FrameRecords(own)
    if not isinstance(frame, PartitionedRecords):
        raise InputError(
            f"frame must be a pandas DataFrame or PartitionedRecords, got {type(frame).__name__}"
        )
    if not options.certainly_no_steps:
        raise frame.not_in_memory()
    if frame.schema != schema:
        raise InputError("schema is not the one that the records in parts were opened with")
    check_n_public(frame.table.rows, schema, accept=accept_n_public)
    frame.check()
    return frame


def check_n_public(rows: int, schema: Schema, *, accept: bool) -> None:
    """Compare the public number of records with the table, for its owner only and before anything is spent.

    Everything is scaled to ``n_public``. A part of a table that is drawn record by record differs from its
    expected number n by at most 4 sqrt(n), but for 1 case in 10,000; a tenth leaves room for a registry that
    grows. The whole table's number given for a half of it is beyond both, from 64 records on.

    Warns
    -----
    OwnerWarning
        If they differ by more than half of that.

    Raises
    ------
    DataError
        If they differ by more than that, and ``accept`` is not set.
    """
    if schema.n_public is None:
        return
    n = schema.n_public
    tolerance = max(_N_TOLERANCE * n, 4 * math.sqrt(n))
    if abs(rows - n) <= tolerance / 2:
        return
    said = f"n_public is {n:,}, but the table to fit has {rows:,} rows (internal: not for release)"
    if abs(rows - n) > tolerance and not accept:
        raise DataError(
            f"{said}, and every count is scaled to n_public; give the number for these rows (of a training "
            "part: its own), or go on all the same with accept_n_public (--accept-n-public)"
        )
    warnings.warn(f"{said}; every count is scaled to n_public", OwnerWarning, stacklevel=4)


def confess(
    ledger: Ledger,
    schema: Schema,
    options: FitOptions,
    rng: np.random.Generator,
    unreviewed: dict[str, tuple[str, ...]],
) -> None:
    """Tell the ledger what a row is, what draws the noise, who knows its seed, what was read off the data."""
    ledger.about(schema.unit)
    if options.random_state is not None:
        ledger.seeded = True
    if options.epsilon is not None:
        ledger.drawn_by(describe_generator(rng))
    if unreviewed:
        fields = few((f"{name}: {', '.join(which)}" for name, which in unreviewed.items()), separator="; ")
        # A draft chose these in view of the data as well.
        chosen = [name for name in ("ignored", "missing_words") if getattr(schema, name)]
        fields += "".join(f"; the table's {name}" for name in chosen)
        ledger.exclude(f"schema fields read off the private data and not reviewed ({fields})")
