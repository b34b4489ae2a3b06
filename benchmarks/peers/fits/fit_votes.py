"""An outcome by votes, on records of ours without an outcome (as in PATE, Papernot et al. 2018).

A part of epsilon fits the default model to all columns but the outcome. Disjoint random parts of the records
train one classifier (teacher) each. The teachers give the outcome of some synthetic records, and the sum of
their answers is released with Gaussian noise. A student learns from these records and labels all others.

One record is in one part, and so moves one of the teachers' answers to each query by 1 at most: the sums
have L2 sensitivity sqrt(queries). Each record's part is drawn by itself, whatever other records there are.
"""

from dataclasses import dataclass

import fit_ours
import harness
import numpy as np
import pandas as pd

import dpsynth
from dpsynth.evaluation.models import CLASSIFIERS, learn_and_predict
from dpsynth.privacy import ADD_REMOVE, EpsilonTarget, Ledger, Profile, calibrate, gaussian_event
from dpsynth.privacy.records import FrameRecords
from dpsynth.table import Schema

#: copies of each labelled record that the student learns from, each with a label drawn by its share of votes
COPIES = 20


@dataclass(frozen=True)
class Votes:
    """The sum of the teachers' answers to each query, with noise."""

    schema: Schema
    queries: pd.DataFrame
    teachers: int
    noise_multiplier: float
    majority: bool
    name = "votes on the outcome"
    adjacency = ADD_REMOVE
    stage = None
    sensitivity = "sqrt(queries): a record moves one teacher's answer to each query by at most 1"
    detail = ""

    @property
    def event(self):
        return gaussian_event(self.noise_multiplier)

    def __call__(self, records, rng):
        frame = records.frame()
        part = rng.integers(self.teachers, size=len(frame))
        total = np.zeros(len(self.queries))
        for teacher in range(self.teachers):
            answer = positive(frame[part == teacher], self.queries, self.schema, rng)
            total += answer > 0.5 if self.majority else answer
        deviation = self.noise_multiplier * np.sqrt(len(self.queries))
        return total + deviation * rng.standard_normal(len(total))


def positive(train, records, schema, rng):
    """Probability of a positive outcome, by logistic regression; 0 where there is nothing to learn from."""
    models = {"logistic_regression": CLASSIFIERS["logistic_regression"]}
    learned = learn_and_predict(train, records, schema, schema.outcome, models=models, rng=rng)
    scores = learned.predictions["logistic_regression"].predicted
    return np.zeros(len(records)) if scores is None else scores[:, 1]


def fit(train, task):
    schema, frame = fit_ours.read(train, task)
    outcome, options = schema.column(schema.outcome), task["options"]
    others = [column for column in schema.columns if column is not outcome]
    causes = Schema(columns=tuple(others), n_public=schema.n_public, name=schema.name)
    ledger, rng = Ledger(), np.random.default_rng([task["seed"], 1])
    model = dpsynth.DPMarginals(options["fit"] * task["epsilon"], task["delta"], random_state=task["seed"])
    model.fit(frame[list(causes.names)], schema=causes, ledger=ledger)
    made = model.sample(task["rows"], random_state=task["seed"])

    earlier = [entry.event for entry in ledger.entries]
    target = EpsilonTarget(task["epsilon"], task["delta"])
    noise = calibrate(lambda z: [*earlier, gaussian_event(z)], target)
    queries, majority = made.iloc[: options["queries"]], options["majority"]
    votes = Votes(schema, queries, options["teachers"], noise, majority)
    share = ledger.run(votes, FrameRecords(schema.conform(frame).frame), rng) / options["teachers"]
    # public numbers alone decided about all noise: one stage, though the fit has closed its own
    fit_ours.check(Profile([entry.event for entry in ledger.entries]), task)

    labelled = pd.concat([queries] * COPIES, ignore_index=True)
    share = np.tile(share, COPIES)
    yes = share > (0.5 if majority else rng.random(len(share)))
    categories = np.array(outcome.categories, dtype=object)
    labelled[outcome.name] = categories[yes.astype(int)]
    probability = positive(labelled, made, schema, rng)
    yes = probability > (0.5 if majority else rng.random(len(made)))
    made[outcome.name] = categories[yes.astype(int)]
    return fit_ours.coded(made, schema, task)


if __name__ == "__main__":
    harness.carry_out(fit, ["dpsynth", "scikit-learn", "numpy"])
