"""SmartNoise: MST and AIM on the public cells, the GANs on numbers between the public bounds.

Its transformers learn categories and bounds from the table that they are fitted to: here a made-up table that
holds every code once, so that nothing is read off the records unpaid.

It needs mbi 1.1 (with 2.0 it fails: "'numpy.ndarray' object has no attribute 'items'"), whose rounding
sampler hands out ranks in row order: rows come out sorted within a parent's value, and a correlation of 0
becomes .5. So rows are drawn here by mbi's own independent sampling, ``method="sample"``.
"""

import random
import warnings

import cells
import harness
import mbi
import numpy as np
import pandas as pd
from snsynth import Synthesizer
from snsynth.transform import MinMaxTransformer, TableTransformer

MARGINAL_BASED = ("mst", "aim")


def independently():
    """Make fitted models sample rows independently of each other."""
    whole = mbi.MarkovRandomField.synthetic_data

    def synthetic_data(self, rows=None, method="sample"):
        return whole(self, rows=rows, method=method)

    mbi.MarkovRandomField.synthetic_data = synthetic_data


def marginal_based(train, task):
    columns = task["columns"]
    names = [column["name"] for column in columns]
    coded = cells.to_codes(train, columns)
    sizes = {column["name"]: cells.size(column) for column in columns}
    transformer = _fitted(sizes, {}, {}, style="cube")
    model = Synthesizer.create(task["options"]["method"], epsilon=task["epsilon"], delta=task["delta"])
    independently()
    model.fit(coded, transformer=transformer)
    made = pd.DataFrame(model.sample(task["rows"]), columns=names).astype(int)
    return cells.from_codes(made, columns, np.random.default_rng(task["seed"]))


def gan(train, task):
    columns = task["columns"]
    names = [column["name"] for column in columns]
    sizes = {c["name"]: c["size"] + bool(c["missing"]) for c in columns if c.get("size")}
    bounds = {c["name"]: (c["lower"], c["upper"]) for c in columns if not c.get("size")}
    missing = {c["name"]: bool(c["missing"]) for c in columns}
    frame = train.copy()
    for name, size in sizes.items():
        frame[name] = train[name].fillna(size - 1).astype(int)
    transformer = _fitted(sizes, bounds, missing, style="gan")
    options = {"delta": task["delta"], "cuda": False, "verbose": False}
    model = Synthesizer.create(task["options"]["method"], epsilon=task["epsilon"], **options)
    model.fit(frame, transformer=transformer)
    made = pd.DataFrame(model.sample(task["rows"]), columns=names).astype(float)
    for column in columns:
        name = column["name"]
        if name in sizes and missing[name]:
            made[name] = made[name].where(made[name] < column["size"])
        elif name in bounds:
            made[name] = cells.at_steps(made[name].to_numpy(), column)
    return made


def _fitted(sizes, bounds, missing, *, style):
    """A transformer of public facts alone."""
    rows = np.arange(max([2, *sizes.values()]))
    made_up = {name: rows % size for name, size in sizes.items()}
    made_up |= {name: np.where(rows % 2, high, low).astype(float) for name, (low, high) in bounds.items()}
    ordered = pd.DataFrame({name: made_up[name] for name in sorted(made_up)})
    constraints = {
        name: MinMaxTransformer(lower=low, upper=high, nullable=missing[name])
        for name, (low, high) in bounds.items()
    }
    transformer = TableTransformer.create(
        ordered,
        style=style,
        categorical_columns=list(sizes),
        continuous_columns=list(bounds),
        constraints=constraints,
    )
    transformer.fit(ordered)
    return transformer


def fit(train, task):
    warnings.simplefilter("ignore")
    np.random.seed(task["seed"])  # noqa: NPY002  (what the libraries draw from)
    random.seed(task["seed"])
    return (marginal_based if task["options"]["method"] in MARGINAL_BASED else gan)(train, task)


if __name__ == "__main__":
    harness.carry_out(fit, ["smartnoise-synth", "mbi", "opacus"])
