"""Ours, in the driver's own environment: the options are parameters of DPWGANGP."""

import harness
import numpy as np
import pandas as pd

import dpsynth


def fit(train, task):
    schema = dpsynth.Schema.from_dict(task["schema"])
    names = [column["name"] for column in task["columns"]]
    options = dict(task["options"])
    if "shares" in options:
        options["shares"] = dpsynth.Shares(**options["shares"])
    if "training" in options:
        options["training"] = dpsynth.TrainingSettings(**options["training"])
    frame = pd.DataFrame()
    for name, column in zip(names, schema.columns, strict=True):
        frame[column.name] = train[name] if column.is_numeric else _words(train[name], column.categories)
    model = dpsynth.DPWGANGP(task["epsilon"], task["delta"], random_state=task["seed"], **options)
    model.fit(frame, schema=schema)
    made = model.sample(task["rows"], random_state=task["seed"])
    spent = model.ledger_.epsilon(model.delta_)
    if not spent <= task["epsilon"] * (1 + 1e-9):
        raise AssertionError(f"spent epsilon {spent}, asked for {task['epsilon']}")
    coded = {
        name: made[column.name].astype(float) if column.is_numeric else _codes(made[column.name], column)
        for name, column in zip(names, schema.columns, strict=True)
    }
    return pd.DataFrame(coded)


def _words(codes, categories):
    known = np.array(categories, dtype=object)[codes.fillna(0).astype(int)]
    return pd.Series(known, index=codes.index, dtype=object).where(codes.notna(), None)


def _codes(words, column):
    place = {word: code for code, word in enumerate(column.categories)}
    return words.astype(object).map(place).astype(float)


if __name__ == "__main__":
    harness.carry_out(fit, ["dpsynth", "tensorflow", "numpy"])
