"""One resample at one epsilon: the real fit, and what each method says of the same study.

A method takes a `Trial` and returns `Told`. The fitted models are shared by the methods of a trial, so that
one that combines several synthetic tables of the declared model costs no second fit: add it to `METHODS`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from study_cases import CASES, NULLS, Case, seed

import dpsynth
from dpsynth.errors import DpsynthError, PrivacyError
from dpsynth.evaluation.regression import Fit, design, fit_regression, slope_priors
from dpsynth.studies.estimation import StudyDesign, mode
from dpsynth.studies.model import model_terms
from dpsynth.studies.study import Study
from dpsynth.synthesis.fit import planned_parts
from dpsynth.synthesis.parts.studies import Studies
from dpsynth.table.schema import Schema

#: of a normal 95 % interval
Z = 1.959964
FIELDS = ("values", "std_errors", "lower", "upper")


@dataclass(frozen=True)
class Told:
    """Estimates of every term with the ends of their 95 % intervals, NaN where there is none."""

    values: np.ndarray
    std_errors: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    remark: str = ""
    widening: float | None = None
    remarked: bool | None = None

    def record(self) -> dict[str, Any]:
        """JSON-able."""
        found: dict[str, Any] = {
            field: [None if np.isnan(v) else float(f"{v:.8g}") for v in getattr(self, field)]
            for field in FIELDS
        }
        return (
            found
            | ({"remark": self.remark} if self.remark else {})
            | ({"widening": self.widening} if self.widening is not None else {})
            | ({"remarked": self.remarked} if self.remarked is not None else {})
        )


def told_by_fit(found: Fit, terms: Sequence[str], remark: str = "") -> Told:
    """A maximum likelihood fit, term by term."""
    known = [found.coefficients.get(term) for term in terms]
    columns = [
        np.array([np.nan if c is None else getattr(c, field) for c in known])
        for field in ("value", "std_error", "lower", "upper")
    ]
    return Told(*columns, remark=found.problem or remark)


def fitted(frame: pd.DataFrame, schema: Schema, study: Study, priors: dict[str, float] | None) -> Told:
    """The study fitted to a table; by ridge if ``priors`` are given, or if the outcome separates."""
    model = study.effects(schema)
    data = design(frame, schema, model)
    terms = [term.name for term in model_terms(schema, model)]
    rng = np.random.default_rng(0)
    found = fit_regression(data, model.kind, rng=rng, priors=priors)
    if not found.separated:
        return told_by_fit(found, terms)
    return told_by_fit(fit_regression(data, model.kind, rng=rng, priors=slope_priors(data)), terms, "ridge")


@dataclass(frozen=True)
class Truth:
    """A case's population.

    ``values`` are the coefficients that a reader would find in it, ``target`` those that the package finds
    with the likelihood of a declared study (residuals clipped, time in intervals) and the records in memory,
    ``exact`` what a model estimates without noise.
    """

    terms: tuple[str, ...]
    values: np.ndarray
    target: np.ndarray
    exact: np.ndarray
    records: int
    events: float | None
    remark: str
    priors: dict[str, float] | None


def _target(frame: pd.DataFrame, schema: Schema, study: Study) -> np.ndarray:
    own = StudyDesign.of(schema, study.effects(schema), frame, study.intervals)
    beta, own = mode(own, *own.read(frame), 1.0)
    return own.reported(beta, np.eye(own.size))[0]


@lru_cache
def truth(name: str) -> Truth:
    """The population's fit, by ridge where its outcome separates; null covariates have 0."""
    case = CASES[name]
    frame, schema = case.population()
    study = case.study(nulls=False)
    model = study.effects(schema)
    data = design(frame, schema, model)
    told, priors = fitted(frame, schema, study, None), None
    if told.remark == "ridge":
        priors = slope_priors(data)
    elif told.remark:
        raise RuntimeError(f"{name}: {told.remark}")
    whole = dpsynth.DPMarginals(epsilon=None, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole.fit(frame, schema=schema.with_n_public(len(frame)), also=[Studies([study])])
    terms = [term.name for term in model_terms(schema, model)]
    nothing = np.zeros(0)
    if case.nulls:
        wider = Schema(columns=(*schema.columns, *NULLS), outcome=schema.outcome)
        every = [term.name for term in model_terms(wider, case.study().effects(wider))]
        nothing = np.zeros(len(every) - len(terms))
        terms = every
    return Truth(
        tuple(terms),
        np.concatenate([told.values, nothing]),  # noqa: PD011
        np.concatenate([_target(frame, schema, study), nothing]),
        np.concatenate([whole.estimates_[0].coefficients, nothing]),
        len(data.y),
        None if model.kind == "linear" else float((data.y > 0).mean()),
        told.remark,
        priors,
    )


class Trial:
    """A resample, and the models that the methods need, each fitted once."""

    def __init__(self, case: Case, epsilon: float, repetition: int) -> None:
        self.case, self.epsilon, self.repetition = case, epsilon, repetition
        # every epsilon meets the same resamples
        rng = np.random.default_rng(seed(case.name, repetition, "resample"))
        self.frame, self.schema = case.resample(rng)
        self.study = case.study()
        self.truth = truth(case.name)

    def _model(self, what: str, studies: list[Study]) -> dpsynth.DPMarginals:
        own = seed(self.case.name, self.epsilon, self.repetition, what)
        model = dpsynth.DPMarginals(epsilon=self.epsilon, random_state=own)
        return model.fit(self.frame, schema=self.schema, also=[Studies(studies)] if studies else [])

    @cached_property
    def plain(self) -> dpsynth.DPMarginals:
        """The whole budget for the synthetic table."""
        return self._model("plain", [])

    @cached_property
    def declared(self) -> dpsynth.DPMarginals:
        """The same budget with the study declared, default shares."""
        return self._model("declared", [self.study])

    @cached_property
    def tables(self) -> list[Told]:
        """Twenty tables for the study, each fitted."""
        own = seed(self.case.name, self.epsilon, self.repetition, "tables")
        return [
            self.fitted(table) for table in self.declared.sample_many(20, study="study", random_state=own)
        ]

    def fitted(self, frame: pd.DataFrame) -> Told:
        """The study fitted to a table of this trial."""
        return fitted(frame, self.schema, self.study, self.truth.priors)


def naive(trial: Trial) -> Told:
    """One synthetic table of n records, fitted as if it were real."""
    own = seed(trial.case.name, trial.epsilon, trial.repetition, "sample")
    return trial.fitted(trial.plain.sample(trial.case.n, random_state=own))


def declared(trial: Trial) -> Told:
    """The private estimates that the model holds."""
    found = trial.declared.estimates_[0]
    if found.terms != trial.truth.terms:
        raise RuntimeError(f"terms differ: {found.terms} and {trial.truth.terms}")
    values, errors = found.coefficients, found.std_errors
    ends = values - Z * errors, values + Z * errors
    return Told(values, errors, *ends, widening=found.widening, remarked=bool(found.remarks))


def combined(m: int) -> Callable[[Trial], Told]:
    """The first m of twenty tables for the study, each fitted, and combined as an analyst does."""

    def told(trial: Trial) -> Told:
        fits = trial.tables[:m]
        estimates, errors = (
            np.array([getattr(fit, field) for fit in fits]) for field in ("values", "std_errors")
        )
        told_by_all = np.isfinite(estimates).all(axis=0)  # a term that some table cannot tell is not combined
        values, stds, lower, upper = (np.full(len(told_by_all), np.nan) for _ in range(4))
        found = dpsynth.combine(estimates[:, told_by_all], errors[:, told_by_all] ** 2)
        values[told_by_all], stds[told_by_all] = found.estimate, found.std_error
        lower[told_by_all], upper[told_by_all] = found.lower, found.upper
        ridge = sum(fit.remark == "ridge" for fit in fits)
        return Told(values, stds, lower, upper, remark=f"{ridge} of {m} tables by ridge" if ridge else "")

    return told


METHODS: dict[str, Callable[[Trial], Told]] = {"naive": naive, "declared": declared}
METHODS |= {f"{m} tables": combined(m) for m in (5, 10, 20)}


def expected(case: Case, epsilon: float) -> float:
    """The widening that is told beforehand, from public values alone."""
    _, schema = case.resample(np.random.default_rng(0))
    study = case.study()
    options = dpsynth.DPMarginals(epsilon=epsilon).validate()
    planned = planned_parts(schema.with_n_public(case.n), case.n, options, also=[Studies([study])]).of(
        Studies
    )
    assert planned is not None
    return planned.widenings[study.label]


def run(case: Case, epsilon: float, repetition: int, methods: Sequence[str]) -> dict[str, Any]:
    """One line of results; a method that the package refuses or that fails says why."""
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trial = Trial(case, epsilon, repetition)
        told: dict[str, Any] = {"real": trial.fitted(trial.frame).record()}
        for name in methods:
            try:
                told[name] = METHODS[name](trial).record()
            except PrivacyError as problem:
                told[name] = {"refused": str(problem)}
            except (DpsynthError, np.linalg.LinAlgError) as problem:
                told[name] = {"failed": f"{type(problem).__name__}: {problem}"}
    seconds = round(time.perf_counter() - start, 2)
    return {"case": case.name, "epsilon": epsilon, "repetition": repetition, "seconds": seconds, "told": told}
