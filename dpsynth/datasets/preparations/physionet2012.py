"""PhysioNet/Computing in Cardiology Challenge 2012, set A: one row a stay, as it is in the file.

Row by row: the flags of the unit become one column, the start of a ventilation a yes or no, and values with
which nobody is alive (negative ones among them: the challenge writes -1 for unknown) are taken for missing.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth.datasets.preparations.cells import numbers, require

_UNITS = {"CCU": "coronary", "CSRU": "cardiac surgery", "SICU": "surgical"}
_MEASURED = (
    "GCS_lowest",
    "HR_median",
    "Temp_median",
    "NISysABP_lowest",
    "Glucose_median",
    "BUN_last",
    "Creatinine_last",
    "Na_last",
    "K_last",
    "HCO3_last",
    "HCT_last",
    "WBC_last",
    "Platelets_last",
    "Lactate_last",
)
# degrees Celsius and mmHg below which a value is a fault of the measurement
_LEAST = {"Temp_median": 25.0, "NISysABP_lowest": 20.0}


def prepare(raw: pd.DataFrame) -> pd.DataFrame:
    """See :func:`dpsynth.datasets.preparations.prepared`.

    Examples
    --------
    >>> cells = dict.fromkeys((*_UNITS, *_MEASURED, "MechVentStartTime"), "0")
    >>> made = prepare(pd.DataFrame([cells | {"SICU": "1", "Temp_median": "17.8", "HR_median": "-1"}]))
    >>> made.loc[0, ["icu", "ventilated"]].tolist(), made[["Temp_median", "HR_median"]].count().tolist()
    (['surgical', 'yes'], [0, 0])
    """
    require(raw, (*_UNITS, *_MEASURED, "MechVentStartTime"))
    made = raw.copy()
    icu = pd.Series("medical", index=raw.index, dtype=object)
    for flag, name in _UNITS.items():
        icu[numbers(raw[flag]) == 1] = name
    made["icu"] = icu
    for name in _MEASURED:
        values = numbers(raw[name])
        made[name] = values.where(values >= _LEAST.get(name, 0.0))
    made["ventilated"] = np.where(raw["MechVentStartTime"].notna(), "yes", "no")
    return made
