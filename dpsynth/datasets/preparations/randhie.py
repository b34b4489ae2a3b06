"""RAND Health Insurance Experiment as statsmodels ships it: logarithms become the amounts again.

Row by row: ``ln(coinsurance + 1)`` and ``ln(max(1, dollars))`` are undone and rounded to whole percent and
dollars, where a logarithm of 0 stands for 0 dollars. The index of diseases has one decimal. The three flags
of health become one column. A limitation that is a fraction is a mean that stands for an unknown answer, and
is missing.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth.datasets.preparations.cells import numbers, require

_HEALTH = {"hlthg": "good", "hlthf": "fair", "hlthp": "poor"}
_LOGARITHMS = ("lncoins", "lpi", "fmde")


def prepare(raw: pd.DataFrame) -> pd.DataFrame:
    """See :func:`dpsynth.datasets.preparations.prepared`.

    Examples
    --------
    >>> row = dict.fromkeys((*_HEALTH, *_LOGARITHMS, "idp", "physlm", "mdvis", "disea"), 0.0)
    >>> row |= {"lncoins": 3.258096, "fmde": 8.006368, "hlthf": 1.0, "physlm": 0.1442925}
    >>> print(*prepare(pd.DataFrame([row])).loc[0, ["coinsurance", "expense_limit", "health"]])
    25 3000.0 fair
    """
    require(raw, (*_HEALTH, *_LOGARITHMS, "idp", "physlm", "mdvis", "disea"))
    known = {name: numbers(raw[name]) for name in raw.columns}
    health = pd.Series("excellent", index=raw.index, dtype=object)
    for flag, word in _HEALTH.items():
        health[known[flag] == 1] = word
    return pd.DataFrame(
        {
            "coinsurance": (np.exp(known["lncoins"]) - 1).round().map("{:.0f}".format),
            "deductible": np.where(known["idp"] == 1, "yes", "no"),
            "incentive": _dollars(known["lpi"]),
            "expense_limit": _dollars(known["fmde"]),
            "diseases": known["disea"].round(1),
            "health": health,
            "visits": known["mdvis"],
            "limitation": known["physlm"].map({0.0: "no", 1.0: "yes"}),
        }
    )


def _dollars(logarithm: pd.Series) -> pd.Series:
    return np.exp(logarithm).round().where(logarithm > 0, 0.0)
