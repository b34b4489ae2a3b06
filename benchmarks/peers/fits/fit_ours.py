"""Ours, in the driver's own environment: the options are a generator's."""

import harness
import numpy as np
import pandas as pd

import dpsynth
from dpsynth.synthesis.generators import options_of, unfitted


def fit(train, task):
    schema, frame = read(train, task)
    own = {"epsilon": task["epsilon"], "delta": task["delta"], "random_state": task["seed"]}
    model = unfitted(options_of(**task["options"], **own))
    model.fit(frame, schema=schema)
    check(model.ledger_, task)
    return coded(model.sample(task["rows"], random_state=task["seed"]), schema, task)


def read(train, task):
    """The schema, and the records with their categories in words."""
    schema = dpsynth.Schema.from_dict(task["schema"])
    frame = pd.DataFrame()
    for told, column in zip(task["columns"], schema.columns, strict=True):
        values = train[told["name"]]
        frame[column.name] = values if column.is_numeric else _words(values, column.categories)
    return schema, frame


def check(cost, task):
    """Raise an error if more than the task's epsilon was spent, by a ledger or a profile."""
    spent = cost.epsilon(task["delta"])
    if not spent <= task["epsilon"] * (1 + 1e-9):
        raise AssertionError(f"spent epsilon {spent}, asked for {task['epsilon']}")


def coded(made, schema, task):
    """Synthetic records with their categories as whole numbers."""
    return pd.DataFrame(
        {
            told["name"]: made[column.name].astype(float)
            if column.is_numeric
            else _codes(made[column.name], column)
            for told, column in zip(task["columns"], schema.columns, strict=True)
        }
    )


def _words(codes, categories):
    known = np.array(categories, dtype=object)[codes.fillna(0).astype(int)]
    return pd.Series(known, index=codes.index, dtype=object).where(codes.notna(), None)


def _codes(words, column):
    place = {word: code for code, word in enumerate(column.categories)}
    return words.astype(object).map(place).astype(float)


if __name__ == "__main__":
    harness.carry_out(fit, ["dpsynth", "tensorflow", "numpy"])
