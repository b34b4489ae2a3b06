"""What a synthetic table keeps of the associations between the columns of a real one."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth.errors import InputError
from dpsynth.evaluation.records import Detail, Findings, Measure
from dpsynth.evaluation.similarity.associations import Association, association
from dpsynth.table.schema import Schema

_WORST = 10


def association_error(real: Association, synthetic: Association) -> float | None:
    """Mean absolute difference of associations over all pairs of different columns.

    An association that is not defined (a constant column) counts as 0: such a column tells nothing about any
    other. None where there is a single column.
    """
    if real.columns != synthetic.columns:
        raise InputError("real and synthetic associations are of different columns")
    upper = np.triu_indices(len(real.columns), k=1)
    if not len(upper[0]):
        return None
    gap = np.nan_to_num(real.matrix, nan=0.0) - np.nan_to_num(synthetic.matrix, nan=0.0)
    return float(np.abs(gap[upper]).mean())


def association_lost(real: Association, synthetic: Association) -> float | None:
    """Part of the strength of the real associations that is not there: about 0 if all is, 1 if nothing is.

    What is missing of each pair's real association r, weighed by it: ``sum min(max(r - s, 0), r) r / sum
    r^2``, where a synthetic association s of the opposite direction counts as negative, and one that is too
    strong loses nothing. Independent columns have 1 but for chance, whatever the strength of the real
    associations. None where no pair of real columns is associated.
    """
    upper = np.triu_indices(len(real.columns), k=1)
    r, s = (np.nan_to_num(found.matrix, nan=0.0)[upper] for found in (real, synthetic))
    for found in (real, synthetic):
        if found.signs is not None:
            s = s * found.signs[upper]
    total = float((r**2).sum())
    return float((np.clip(r - s, 0.0, r) * r).sum()) / total if total > 0.0 else None


def association_findings(
    synthetic: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame | None, schema: Schema, *, group: str
) -> Findings:
    """Compare the associations of a synthetic and a real table, and of held-out records for the baseline.

    ``association_error`` and ``association_lost`` (``_baseline`` of each), both matrices, and the ten pairs
    that differ most. All tables are conformed.
    """
    made, real = association(synthetic, schema), association(train, schema)
    error = association_error(real, made)
    what = "mean |difference| of associations (Pearson, Cramér's V, correlation ratio), all pairs of columns"
    measures = [
        Measure(group, "association_error", error, True, what if error is not None else "a single column")
    ]
    lost = association_lost(real, made)
    what = "part of the strength of associations that is lost or reversed; 1 for independent columns"
    measures.append(
        Measure(
            group,
            "association_lost",
            lost,
            True,
            what if lost is not None else "not defined: nothing is associated",
        )
    )
    if test is not None and error is not None:
        fresh = association(test, schema)
        what = "the same between training and held-out records"
        measures += [
            Measure(group, "association_error_baseline", association_error(real, fresh), True, what),
            Measure(
                group,
                "association_lost_baseline",
                association_lost(real, fresh),
                True,
                what if lost is not None else "not defined: nothing is associated",
            ),
        ]
    details = [_matrix(made, "synthetic"), _matrix(real, "train")]
    i, j = np.triu_indices(len(schema), k=1)
    gaps = np.abs(np.nan_to_num(real.matrix) - np.nan_to_num(made.matrix))[i, j]
    rows = [
        {
            "columns": [real.columns[i[k]], real.columns[j[k]]],
            "kind": real.kinds[i[k]][j[k]],
            "train": _number(real.matrix[i[k], j[k]]),
            "synthetic": _number(made.matrix[i[k], j[k]]),
            "difference": float(gaps[k]),
        }
        for k in np.argsort(-gaps, kind="stable")[:_WORST]
    ]
    details.append(Detail("association_worst", "association_worst", True, {"rows": rows}))
    return Findings(tuple(measures), tuple(details))


def _matrix(found: Association, table: str) -> Detail:
    data = {
        "table": table,
        "columns": list(found.columns),
        "matrix": [[_number(value) for value in row] for row in found.matrix],
        "kinds": [list(row) for row in found.kinds],
    }
    return Detail("association", f"association.{table}", table != "synthetic", data)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
