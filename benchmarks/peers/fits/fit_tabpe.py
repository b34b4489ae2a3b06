"""Tab-PE (microsoft/DPSDA, private-evolution): votes of nearest neighbours on random records that evolve.

Its settings are those of its examples (30 iterations for more than 1,000 records, 20 otherwise), and so is
the number of its records, about a third of the private ones and at most 1,000. The outcome is its label,
whose shares it reads off the records unpaid; here they are paid for, by Laplace noise for a twentieth of
epsilon. A number that may be missing has a category beside it that says so, and the middle of its bounds in
its place.
"""

# ruff: noqa: E402

import sys
from unittest.mock import MagicMock

# of pictures: its package imports them, no registry has them, and nothing here uses them
PICTURES = ("features", "features.InceptionFeatureExtractor", "metrics", "metrics.PrecisionRecall")
for module in ("clip", "fld", *(f"fld.{part}" for part in PICTURES)):
    sys.modules.setdefault(module, MagicMock())

import harness
import numpy as np
import pandas as pd
from pe.api import TabularAPI
from pe.constant.data import LABEL_ID_COLUMN_NAME, TABULAR_DATA_COLUMN_NAME
from pe.data import Data, TabularColumnType
from pe.embedding import TabularEmbedding
from pe.histogram import NearestNeighbors
from pe.population import CompositePopulation, PEPopulation
from pe.runner import PE


def fit(train, task):
    np.random.seed(task["seed"])  # noqa: NPY002  (what the library draws from)
    outcome = next(column for column in task["columns"] if column["name"] == task["outcome"])
    others = [column for column in task["columns"] if column is not outcome]
    frame, info, kinds = _features(train, others)
    order = kinds["cat_columns"] + kinds["int_columns"] + kinds["float_columns"]
    info = {name: info[name] for name in order}
    labels = [{"name": str(code), "column_values": {"label": code}} for code in range(outcome["size"])]
    metadata = {"label_columns": ["label"], "label_info": labels, "feature_columns": order, **kinds}
    private = Data(
        data_frame=pd.DataFrame(
            {
                TABULAR_DATA_COLUMN_NAME: frame[order].to_numpy().tolist(),
                LABEL_ID_COLUMN_NAME: train[outcome["name"]].astype(int).tolist(),
            }
        ),
        metadata=metadata,
    )
    iterations = 30 if task["n"] > 1000 else 20
    api = TabularAPI(info=info, num_iterations=iterations)
    first = {"initial_variation_api_fold": 0, "next_variation_api_fold": 1, "keep_selected": False}
    later = {"initial_variation_api_fold": 3, "next_variation_api_fold": 3, "keep_selected": True}
    early = PEPopulation(api=api, selection_mode="sample", histogram_threshold=0, **first)
    late = PEPopulation(api=api, selection_mode="rank", **later)
    voting = NearestNeighbors(
        embedding=TabularEmbedding(info=info), mode="L2", lookahead_degree=0, backend="torch"
    )
    runner = PE(
        priv_data=private,
        population=CompositePopulation(populations=[early] * 5 + [late] * (iterations - 5)),
        histogram=voting,
        callbacks=[],
        loggers=[],
    )
    share = task["epsilon"] / 20
    counts = np.bincount(train[outcome["name"]].astype(int), minlength=outcome["size"])
    noisy = np.maximum(counts + np.random.laplace(0, 1 / share, len(counts)), 1.0)  # noqa: NPY002
    size = min(1000, task["n"] // 3)
    made = runner.run(
        num_samples_schedule=[size] * iterations,
        delta=task["delta"],
        epsilon=task["epsilon"] - share,
        fraction_per_label_id=noisy.tolist(),
        save_checkpoint=False,
    )
    return _table(made, order, others, outcome)


def _features(train, columns):
    frame, info = pd.DataFrame(index=train.index), {}
    kinds = {"cat_columns": [], "int_columns": [], "float_columns": []}
    for column in columns:
        name, values, missing = column["name"], train[column["name"]], bool(column.get("missing"))
        if column.get("size"):
            frame[name] = values.fillna(column["size"]).astype(float)
            codes = [float(code) for code in range(column["size"] + missing)]
            info[name] = {"categories": codes, "type": TabularColumnType.CATEGORICAL}
            kinds["cat_columns"].append(name)
            continue
        whole = column["kind"] == "integer"
        middle = (column["lower"] + column["upper"]) / 2
        frame[name] = values.fillna(round(middle) if whole else middle)
        kind = TabularColumnType.INTEGER if whole else TabularColumnType.FLOAT
        info[name] = {"min": column["lower"], "max": column["upper"], "type": kind}
        kinds["int_columns" if whole else "float_columns"].append(name)
        if missing:
            frame[f"{name} missing"] = values.isna().astype(float)
            info[f"{name} missing"] = {"categories": [0.0, 1.0], "type": TabularColumnType.CATEGORICAL}
            kinds["cat_columns"].append(f"{name} missing")
    return frame, info, kinds


def _table(made, order, columns, outcome):
    last = made.data_frame
    if "PE.VARIATION_API_FOLD_ID" in last:
        last = last[last["PE.VARIATION_API_FOLD_ID"] == -1]
    rows = pd.DataFrame(last[TABULAR_DATA_COLUMN_NAME].tolist(), columns=order).astype(float)
    table = pd.DataFrame({outcome["name"]: last[LABEL_ID_COLUMN_NAME].to_numpy(dtype=float)})
    for column in columns:
        name, values = column["name"], rows[column["name"]]
        if column.get("missing"):
            absent = values == column["size"] if column.get("size") else rows[f"{name} missing"] == 1
            values = values.mask(absent)
        table[name] = values.to_numpy()
    return table


if __name__ == "__main__":
    harness.carry_out(fit, ["torch"])
