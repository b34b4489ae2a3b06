"""A survival curve with pointwise bands: what is told of a declared survival study beside its effects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SurvivalCurve:
    """Share of the population without the event by each time, with pointwise bands.

    Attributes
    ----------
    times : ndarray of shape (J,)
        In the duration's unit, increasing.
    survival, lower, upper : ndarray of shape (J,)
        In [0, 1], never increasing. ``lower`` is 0 from where too few records are left to tell.
    level : float
        Of the bands.
    unit : str
        Of the times; empty where the schema names none.

    Examples
    --------
    >>> curve = SurvivalCurve(*np.array([[30, 90], [0.9, 0.8], [0.85, 0.7], [0.93, 0.88]]), unit="days")
    >>> print(curve)
    Survival at 30 days: 0.90 (0.85 to 0.93)
    Survival at 90 days: 0.80 (0.70 to 0.88)
    """

    times: Floats
    survival: Floats
    lower: Floats
    upper: Floats
    level: float = 0.95
    unit: str = ""

    def quarters(self) -> list[int]:
        """Places of three boundaries, about the quartiles of follow-up where boundaries are its quantiles."""
        size = len(self.times)
        return sorted({min(round(size * part), size) - 1 for part in (0.25, 0.5, 0.75) if round(size * part)})

    def rows(self) -> list[tuple[str, str, str]]:
        """Time, survival and band at every boundary, as text."""
        return [
            (f"{time:g}", f"{told:.2f}", f"{low:.2f} to {high:.2f}")
            for time, told, low, high in zip(self.times, self.survival, self.lower, self.upper, strict=True)
        ]

    def __str__(self) -> str:
        unit, rows = f" {self.unit}" if self.unit else "", self.rows()
        shown = self.quarters() or list(range(len(rows)))
        return "\n".join(f"Survival at {rows[j][0]}{unit}: {rows[j][1]} ({rows[j][2]})" for j in shown)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able record; :meth:`from_dict` is its inverse."""
        arrays = {name: getattr(self, name).tolist() for name in ("times", "survival", "lower", "upper")}
        return {**arrays, "level": self.level, "unit": self.unit}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> SurvivalCurve:
        """Rebuild what :meth:`to_dict` described."""
        times, survival, lower, upper = (
            np.array(record[name], dtype=float) for name in ("times", "survival", "lower", "upper")
        )
        return cls(times, survival, lower, upper, float(record["level"]), str(record["unit"]))
