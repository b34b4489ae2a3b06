"""google/dpsynth, which imports under our name: its own environment, and its own private quantile cells.

It needs dp-accounting from its public source too: the published 0.6.0 lacks an event that it uses. Codes are
drawn as bytes, and code 0 of a column with missing values less 1 is then 255 ("index 255 is out of bounds"):
they are made whole numbers here before they are decoded.
"""

import harness
import numpy as np
import pandas as pd
from dpsynth.local_mode import vectorized_transformations

import dpsynth
from dpsynth import discrete_mechanisms

MECHANISMS = {
    "mst": discrete_mechanisms.MSTConfig,
    "aim": discrete_mechanisms.AIMConfig,
    "swift": discrete_mechanisms.SWIFTConfig,
}

undiscretize = vectorized_transformations.undiscretize
vectorized_transformations.undiscretize = lambda codes, *facts, **options: undiscretize(
    np.asarray(codes, dtype=int), *facts, **options
)


def encoded(train, columns):
    """The columns as the library reads them, and their public attributes."""
    frame, domains = pd.DataFrame(index=train.index), {}
    for column in columns:
        name, values = column["name"], train[column["name"]]
        if column.get("size"):
            # whole numbers: values are looked up by their text, and "1.0" is no category
            frame[name] = values.fillna(column["size"]).astype(int)
            codes = list(range(column["size"] + bool(column.get("missing"))))
            domains[name] = dpsynth.CategoricalAttribute(codes)
            continue
        missing, step = bool(column.get("missing")), column.get("step")
        if step:
            # whole steps above the lower bound: private quantiles of heaped numbers crowd around a heap
            # otherwise, cells are empty that are taken to be full, and MST's tree is a star at that column
            values = ((values - column["lower"]) / step).round()
        # a missing value lies outside the bounds and so has the cell that the library keeps for those
        frame[name] = values if missing or not step else values.astype(int)
        domains[name] = dpsynth.NumericalAttribute(
            min_value=0 if step else column["lower"],
            max_value=round((column["upper"] - column["lower"]) / step) if step else column["upper"],
            clip_to_range=not missing,
            dtype="int" if step else "float",
            interval_handling="sample",
        )
    return frame, domains


def decoded(made, columns):
    """The inverse of :func:`encoded`."""
    made = made.copy()
    for column in columns:
        made[column["name"]] = made[column["name"]].astype(float)
        if column.get("step"):
            made[column["name"]] = column["lower"] + made[column["name"]] * column["step"]
        if column.get("size") and column.get("missing"):
            made[column["name"]] = made[column["name"]].where(made[column["name"]] < column["size"])
    return made


def fit(train, task):
    frame, domains = encoded(train, task["columns"])
    config = dpsynth.TabularConfig(
        domains=domains, discrete_mechanism=MECHANISMS[task["options"]["method"]]()
    )
    mechanism = config.calibrate(epsilon=task["epsilon"], delta=task["delta"])
    made = mechanism(np.random.default_rng(task["seed"]), frame).synthetic_data
    rng = np.random.default_rng(task["seed"])
    # its size is its noisy count: as many rows as asked for, at random
    made = made.iloc[rng.permutation(np.resize(np.arange(len(made)), task["rows"]))].reset_index(drop=True)
    return decoded(made, task["columns"])


if __name__ == "__main__":
    harness.carry_out(fit, ["dpsynth", "mbi", "jax", "dp-accounting"])
