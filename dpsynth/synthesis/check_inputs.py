"""Check the records of a fit, and write the source of its noise to the ledger."""

from __future__ import annotations

import math
import shutil
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import gettempdir
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.checks import few
from dpsynth.errors import DataError, InputError, OwnerWarning
from dpsynth.marginals.rules import check_possible
from dpsynth.patients.reader import reader_of
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.noise import describe_generator, secure_generator
from dpsynth.privacy.records import IN_MEMORY, FrameRecords, PartitionedRecords, Records
from dpsynth.synthesis.fit import check_also
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.part import Part
from dpsynth.table.encoder import Encoder
from dpsynth.table.frames import pandas_of
from dpsynth.table.grid import Marginals
from dpsynth.table.identity import near, warn_of_near_identities, warn_of_repeated_persons
from dpsynth.table.schema import Schema, TableSchema
from dpsynth.wgan.history import mostly_noise

# Share of n_public by which the number of rows may differ from it.
_N_TOLERANCE = 0.1
# Sums of more records may not be exact: of fractions in steps of 2^-24, or of products in steps of 2^-34.
_MOST_ROWS = 400_000_000
# Noise of a count, as a share of the records of the outcome's rarest class, beyond which the fit warns.
_MOST_OF_OUTCOME = 1 / 3
# Noise of a count, as a share of all records, from which on little of a table is left.
_MOST_NOISE = 0.1


def conformed(schema: Schema, frame: pd.DataFrame | PartitionedRecords) -> Records:
    """The records of a private table, checked. Raises InputError for parts that have another schema."""
    if not isinstance(frame, PartitionedRecords):
        return FrameRecords(schema.conform_modelled(pandas_of(frame)))
    _check_schema(frame, schema)
    frame.check()
    return frame


def _check_schema(records: PartitionedRecords, schema: TableSchema) -> None:
    if records.schema != schema:
        raise InputError("schema is not the one that the records in parts were opened with")


def records_of(
    frame: pd.DataFrame | PartitionedRecords,
    schema: TableSchema,
    options: FitOptions,
    *,
    accept_n_public: bool,
    rng: np.random.Generator | None = None,
) -> tuple[Records, int]:
    """Records after every check, the cheapest first, before any budget is used, and their number.

    The number is exact, so it is for the owner's eyes only.

    Where patients have several rows, ``rng`` chooses rows if the schema asks for random ones, the same of a
    table in memory and in parts.

    Raises InputError for no records, for parts with another schema, or without room for encoded ones. Raises
    DataError if they do not fit the schema or are fewer than two. Warns of a person with several rows.
    """
    seed = int((rng or secure_generator()).integers(2**63)) if schema.several else 0
    if not isinstance(frame, PartitionedRecords):
        frame = pandas_of(frame)
        reader = reader_of(schema, seed)
        own = reader.records(frame)
        records: Records = FrameRecords(own)
        rows = len(own)
        warn_of_near_identities(str(schema.unit), near(reader.persons(frame)))
    else:
        _check_schema(frame, schema)
        records = frame
        # the number of patients is not known before
        rows = frame.check(seed) if schema.several else frame.table.rows
    check_rows(rows, schema, accept=accept_n_public)
    if not schema.several:
        warn_of_repeated_persons(frame if isinstance(frame, pd.DataFrame) else frame.table.persons())
        if isinstance(frame, PartitionedRecords):
            frame.check()
            _check_room(rows, schema, options)
    return records, rows


def _check_room(rows: int, schema: TableSchema, options: FitOptions) -> None:
    """Refuse critic steps on a table in parts if there is no room for the file of its encoded records."""
    if not options.holds_points:
        return
    size = 4 * rows * Encoder(schema.levels, None).layout.dim
    place = gettempdir()
    if size > IN_MEMORY and (free := shutil.disk_usage(place).free) < size:
        raise InputError(
            f"WGAN critic steps keep the encoded records in a file of {size / 1e9:.1f} GB (confidential). "
            f"{place} has room for {free / 1e9:.1f} GB. Set TMPDIR to a folder with room"
        )


def check_options(schema: TableSchema, options: FitOptions, also: Sequence[Part[Any]] = ()) -> None:
    """Raise InputError for constraints and parts that cannot be met, and for rows without a model of them."""
    levels = schema.levels
    if levels.rules:
        check_possible(levels, levels.rules)
    if schema.several and not options.takes_rows:
        raise InputError(
            f"generator {options.generator} takes one row per patient. Use generator marginals (DPMarginals)"
        )
    if levels.groups and not options.takes_groups:
        raise InputError(
            f"generator {options.generator} takes no groups of columns. Use generator marginals "
            "(DPMarginals), or leave groups out of the schema"
        )
    check_also(schema, options, also)


def check_place(options: FitOptions) -> None:
    """Raise InputError if this computer lacks a fit's device, or TensorFlow where a critic is trained."""
    with options.placed():
        pass


def tell_not_private(options: FitOptions) -> None:
    """Warn that a fit without noise protects nobody."""
    if options.epsilon is None:
        warnings.warn(
            "epsilon is None: no noise is added, so the model and its samples are not private. Do not share "
            "them",
            OwnerWarning,
            stacklevel=3,
        )


def tell_cautions(schema: TableSchema, also: Sequence[Part[Any]]) -> None:
    """Warn of what parts say by public facts alone, such as what bounded influence makes of estimates."""
    for part in also:
        for caution in part.at(schema, schema.n_public).cautions:
            warnings.warn(caution, OwnerWarning, stacklevel=3)


def tell_few_records(rows: int, columns: Columns | None, epsilon: float | None, of: str = "rows") -> None:
    """Warn the owner if the noise of a column's count is more than a tenth of all records."""
    if columns is None or epsilon is None or (noise := columns.release.noise_std) <= _MOST_NOISE * rows:
        return
    warnings.warn(
        f"epsilon {epsilon:g} leaves little of so small a table: noise moves each count by about "
        f"{noise:,.0f}, and there are {rows:,} {of} (confidential). Expect rough columns and "
        f"few associations. A larger epsilon, more {of} or fewer columns help",
        OwnerWarning,
        stacklevel=3,
    )


def check_rows(rows: int, schema: TableSchema, *, accept: bool) -> None:
    """Refuse too few or too many rows, or a number far from ``n_public``, before any budget is used.

    Everything is scaled to ``n_public``. A part drawn record by record differs from its expected number n by
    at most 4 sqrt(n), except in 1 case of 10,000. A tenth allows for a registry that grows. The whole table's
    number given for half of it exceeds both, from 64 records on. ``accept`` turns the error into a warning.
    The warning also comes from half of that difference on.
    """
    of = schema.protected
    if rows < 2:
        raise DataError(f"the table to fit must have at least 2 {of}, got {rows} (confidential)")
    if rows > _MOST_ROWS:
        raise DataError(
            f"the table to fit has {rows:,} {of} (confidential), and sums are exact for at most "
            f"{_MOST_ROWS:,}: fit a random part of them"
        )
    if schema.n_public is None:
        return
    n = schema.n_public
    tolerance = max(_N_TOLERANCE * n, 4 * math.sqrt(n))
    if abs(rows - n) <= tolerance / 2:
        return
    said = f"n_public is {n:,}, but the table to fit has {rows:,} {of} (confidential)"
    if abs(rows - n) > tolerance and not accept:
        raise DataError(
            f"{said}, and every count is scaled to n_public. Give the number for these rows (of a training "
            "part: its own), or leave n_public out. In Python, accept_n_public=True goes on all the same"
        )
    warnings.warn(f"{said}. Every count is scaled to n_public", OwnerWarning, stacklevel=4)


def warn_of_flattened(marginals: Marginals | None) -> None:
    """Warn of columns that noise has nearly flattened, from released numbers."""
    if marginals is None or not marginals.flattened:
        return
    names = few(map(repr, marginals.flattened))
    warnings.warn(
        f"noise has left little of the column(s) {names}. Declare fewer or broader categories, drop "
        "columns, or give a larger epsilon or more records",
        OwnerWarning,
        stacklevel=3,
    )


def warn_of_noise(history: pd.DataFrame) -> None:
    """Warn of a training that learned from noise, by its released gradients."""
    if said := mostly_noise(history):
        warnings.warn(said, OwnerWarning, stacklevel=3)


def outcome_in_noise(schema: Schema, marginals: Marginals | None) -> str | None:
    """Say that noise exceeds a third of the outcome's rarest class, or give None, from released numbers.

    Models learn the outcome from that class. The noise is the least that a count has (`noise_share`).
    """
    if marginals is None or schema.outcome not in marginals.names:
        return None
    j = marginals.names.index(schema.outcome)
    column, noise = marginals.grids[j].column, marginals.n * marginals.noise_share
    if column.is_numeric:
        return None
    counts = marginals.n * marginals.probabilities[j][: len(column.categories)]
    rarest = int(counts.argmin())
    if noise <= _MOST_OF_OUTCOME * counts[rarest]:
        return None
    return (
        f"the outcome {column.name!r} is mostly noise where it is {column.categories[rarest]!r}: about "
        f"{counts[rarest]:,.0f} {schema.counted} by the noisy counts, with noise of {noise:,.0f} or more"
    )


def warn_of_outcome(schema: Schema, marginals: Marginals | None) -> None:
    """Warn of an outcome whose rarest class noise hides, from released numbers."""
    if said := outcome_in_noise(schema, marginals):
        warnings.warn(
            f"{said}. Samples may have several times as many, or none. Give a larger epsilon, more "
            f"{schema.counted} or an outcome that is less rare",
            OwnerWarning,
            stacklevel=3,
        )


#: estimators that are being fitted, and the thread that fits each
_FITTED_NOW: dict[int, int] = {}


@contextmanager
def alone(estimator: object) -> Iterator[None]:
    """Refuse a second thread that fits an estimator: a model would end with the ledger of another fit.

    The lock is no part of the estimator, which can be copied and pickled meanwhile.
    """
    key, thread = id(estimator), threading.get_ident()
    calls_itself = _FITTED_NOW.get(key) == thread
    if _FITTED_NOW.setdefault(key, thread) != thread:
        raise InputError(
            f"this {type(estimator).__name__} is being fitted by another thread. Wait for it, or fit a copy"
        )
    try:
        yield
    finally:
        if not calls_itself:
            del _FITTED_NOW[key]


def record_provenance(
    ledger: Ledger,
    schema: TableSchema,
    options: FitOptions,
    rng: np.random.Generator,
    unreviewed: dict[str, tuple[str, ...]],
) -> None:
    """Write to the ledger the privacy unit, the source of the noise, a known seed and unreviewed fields."""
    ledger.about(schema.levels.unit)
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
