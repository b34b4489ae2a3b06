"""Released numbers of a pre-specified regression, and how they were read from the records.

With the noise of each statistic, a simulated table can be read in the same way
(`dpsynth.synthesis.coverage`). The noise is public. The map that corrects samples is made of the released
information. Neither adds to the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.model.study_samples.calibration import Correction
from dpsynth.studies.design import StudyDesign
from dpsynth.studies.estimates import Estimates
from dpsynth.studies.study import Study
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Readings:
    """How a study's records were read.

    ``noise_multipliers``: of the information, the first and the second score, None if one was exact.
    ``correction``: the map of samples to the records' noisy information.
    """

    noise_multipliers: tuple[float | None, ...]
    correction: Correction

    def to_dict(self) -> dict[str, Any]:
        """JSON-able record."""
        return {
            "noise_multipliers": list(self.noise_multipliers),
            "tilt": self.correction.tilt.tolist(),
            "matrix": self.correction.matrix.tolist(),
            "shift": self.correction.shift.tolist(),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Readings:
        """Inverse of `to_dict`."""
        matrix, shift = (np.array(record[name], dtype=np.float64) for name in ("matrix", "shift"))
        multipliers = tuple(None if z is None else float(z) for z in record["noise_multipliers"])
        tilt = np.array(record["tilt"], dtype=np.float64)
        return cls(multipliers, Correction(tilt, matrix, shift))


@dataclass(frozen=True, eq=False)
class FittedStudy:
    """A released study.

    ``beta``, shape (d,): of standardised terms, intercepts first.
    ``covariance``, shape (d, d).
    """

    declared: Study
    design: StudyDesign
    beta: Floats
    covariance: Floats
    estimates: Estimates
    readings: Readings

    def to_dict(self) -> dict[str, Any]:
        """JSON-able record, without the schema, which is stored elsewhere."""
        return {
            "declared": self.declared.model_dump(mode="json"),
            "design": self.design.to_dict(),
            "beta": self.beta.tolist(),
            "covariance": self.covariance.tolist(),
            "estimates": self.estimates.to_dict(),
            "readings": self.readings.to_dict(),
        }

    @classmethod
    def from_dict(cls, schema: Schema, record: dict[str, Any]) -> FittedStudy:
        """Inverse of `to_dict`."""
        declared = Study.read(record["declared"])
        return cls(
            declared,
            StudyDesign.from_dict(schema, declared.effects(schema), record["design"]),
            np.array(record["beta"], dtype=np.float64),
            np.array(record["covariance"], dtype=np.float64),
            Estimates.from_dict(record["estimates"]),
            Readings.from_dict(record["readings"]),
        )
