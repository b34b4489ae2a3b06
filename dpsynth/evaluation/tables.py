"""Progress of one step of a work, told as progress of the whole.

What is compared: a synthetic table, the real records it stands for, and real records it never saw.

Every table is brought to the schema once: clipped to its bounds and rounded to its declared steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from dpsynth.errors import DataError, of_records
from dpsynth.studies.estimates import Estimates
from dpsynth.table.conform import round_frame
from dpsynth.table.schema import Schema

#: is told the part of the work that is done, in [0, 1]
Progress = Callable[[float], None]


def silent(done: float) -> None:
    """Tell nobody."""


def within(progress: Progress, start: float, stop: float) -> Progress:
    """Return a progress callable for the part of the work from ``start`` to ``stop``.

    Examples
    --------
    >>> within(print, 0.5, 1.0)(0.5)
    0.75
    """
    return lambda done: progress(start + done * (stop - start))


@dataclass(frozen=True)
class Tables:
    """Tables of one schema, conformed to it and rounded to its steps; at least two records each.

    Attributes
    ----------
    synthetic : pandas.DataFrame of shape (m, columns)
        From any generator.
    train : pandas.DataFrame of shape (n, columns)
        The real records the synthetic ones were made from. Private.
    test : pandas.DataFrame of shape (k, columns) or None
        Real records that had no part in the synthetic table. Private.
    schema : Schema
    raw : mapping of str to pandas.DataFrame
        The tables as they came, ``"synthetic"``, ``"train"`` and, if given, ``"test"``.
    declared : tuple of Estimates
        Private estimates of the studies that were declared before the fit. Paid for.
    """

    synthetic: pd.DataFrame
    train: pd.DataFrame
    test: pd.DataFrame | None
    schema: Schema
    raw: Mapping[str, pd.DataFrame]
    declared: tuple[Estimates, ...] = ()

    @classmethod
    def of(
        cls,
        synthetic: pd.DataFrame,
        *,
        train: pd.DataFrame,
        test: pd.DataFrame | None = None,
        schema: Schema,
        declared: Sequence[Estimates] = (),
    ) -> Tables:
        """Conform tables as they came.

        Examples
        --------
        >>> from dpsynth.table.schema import Column
        >>> schema = Schema(columns=(Column(name="age", kind="continuous", lower=0, upper=99, step=1),))
        >>> real, made = pd.DataFrame({"age": [30.2, 40.0]}), pd.DataFrame({"age": [31.0, 120.0]})
        >>> tables = Tables.of(made, train=real, schema=schema)
        >>> tables.train["age"].tolist(), tables.synthetic["age"].tolist()
        ([30.0, 40.0], [31.0, 99.0])
        """
        raw = {"synthetic": synthetic, "train": train} | ({} if test is None else {"test": test})
        frames = {name: _conformed(name, frame, schema) for name, frame in raw.items()}
        return cls(frames["synthetic"], frames["train"], frames.get("test"), schema, raw, tuple(declared))


def _conformed(name: str, frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    if len(frame) < 2:
        raise of_records(f"the {name} table must have at least 2 records, got {len(frame)}")
    try:
        return round_frame(schema.columns, schema.conform(frame).frame)
    except DataError as problem:
        raise DataError(f"{name} table: {problem}") from None
