"""Simulation check of a pre-specified regression: do its intervals cover the truth in simulated tables?

A parametric bootstrap over the released numbers (Efron and Tibshirani 1993, "An introduction to the
bootstrap", section 6.5). The released coefficients are taken as the truth. Simulated tables have as many
records as the real one. Predictors come from the base model, weighted and mapped to the released information
(`dpsynth.model.study_samples.calibration`). Outcomes come from the study's regression. The study's own
releases read each table with the same noise multipliers and fresh noise. The same code estimates it.

Simulated tables hold no real records, so their readings go to a temporary ledger. The check is
post-processing and free. It shows the effect of noise, bounds and the base model for a table *such as this
one*. It cannot detect errors of the released numbers themselves.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from dpsynth.accounting.ledger import Ledger
from dpsynth.checks import together
from dpsynth.errors import InputError
from dpsynth.model.generator import GeneratorModel
from dpsynth.model.study_samples.study_releases import FittedStudy, StudyReleases, begin, near
from dpsynth.releases.records import FrameRecords
from dpsynth.studies.design import StudyDesign
from dpsynth.studies.digits import aligned, effect_texts
from dpsynth.studies.estimates import Estimates
from dpsynth.studies.newton import mode
from dpsynth.studies.outcomes import RECORDS, last_seen
from dpsynth.synthesis.studies import study_draws

Floats = NDArray[np.float64]

#: cautions for a reader
_SCOPE = (
    "Simulated tables are like this one: drawn from what was released, with fresh noise and the same budget.",
    "They cannot show errors of the released numbers: predictors that correlate more than the released",
    "information shows, or a regression that does not hold.",
)
#: coverage of the counted intervals, and their half-length in standard errors
_LEVEL = 0.95
_HALF = float(stats.norm.ppf(0.5 + _LEVEL / 2))
#: intervals that are so many times as long or as short as the released ones are others
_OTHER_WIDTH = 2.0
#: synthetic records that stand for the real ones in a simulation
_STAND_IN = 10_000


@dataclass(frozen=True, eq=False)
class Coverage:
    """Coverage of a study's intervals in tables simulated from its own estimates.

    Attributes
    ----------
    estimates : Estimates
        The released estimates, taken as the truth.
    repetitions : int
        Number of tables.
    held : ndarray of shape (p,)
        Share of the tables in which a term's 95 % interval covered the truth.
    squared, bias : ndarray of shape (p,)
        Means of z^2 and z, for z the error in its own standard errors: about 1 and 0 for valid intervals.
    width : ndarray of shape (p,)
        Median length of the intervals over the length of the released one.

    Examples
    --------
    >>> found = Estimates("mortality", "logistic", "logistic: died ~ age", "died", ("age (per 10 years)",),
    ...                   np.array([0.5]), np.array([[0.01]]), 1.2)
    >>> print(Coverage(found, 200, *np.array([[0.94], [1.1], [-0.12], [1.02]])))
    mortality: logistic: died ~ age
    term                odds ratio  covered  mean z²   bias  width
    age (per 10 years)        1.65     94 %     1.10  -0.12   1.02
    95 % intervals covered the truth in 94 % of 200 simulated tables.
    If a term's intervals are valid, its share is 92 to 98 % by chance alone.
    Simulated tables are like this one: drawn from what was released, with fresh noise and the same budget.
    They cannot show errors of the released numbers: predictors that correlate more than the released
    information shows, or a regression that does not hold.
    """

    estimates: Estimates
    repetitions: int
    held: Floats
    squared: Floats
    bias: Floats
    width: Floats

    @property
    def share(self) -> float:
        """Share of all intervals that covered the truth, all terms together."""
        return float(self.held.mean())

    @property
    def chance(self) -> tuple[float, float]:
        """Range of one term's share, 95 times of 100, if its intervals are valid."""
        ends = stats.binom.ppf([(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], self.repetitions, _LEVEL)
        low, high = ends / self.repetitions
        return float(low), float(high)

    @property
    def sentence(self) -> str:
        """The result in words."""
        terms = ", all terms together" if len(self.held) > 1 else ""
        share = f"{100 * self.share:.0f} %"
        return f"95 % intervals covered the truth in {share} of {self.repetitions} simulated tables{terms}."

    @property
    def remarks(self) -> tuple[str, ...]:
        """Terms whose simulated intervals differ from the released ones in length."""
        widths = zip(self.estimates.terms, self.width, strict=True)
        names = [term for term, width in widths if not 1 / _OTHER_WIDTH < width < _OTHER_WIDTH]
        if not names:
            return ()
        return (
            f"Intervals of {together(names)} had another length in simulated tables than the released ones. "
            "Their share says little about these.",
        )

    def __str__(self) -> str:
        rows = [("term", self.estimates.measure, "covered", "mean z²", "bias", "width")]
        numbers = zip(self.held, self.squared, self.bias, self.width, strict=True)
        for effect, (held, squared, bias, width) in zip(self.estimates.effects(), numbers, strict=True):
            told = effect_texts(effect)[0]
            shown = (f"{100 * held:.0f} %", f"{squared:.2f}", f"{bias:+.2f}", f"{width:.2f}")
            rows.append((effect["term"], told, *shown))
        lines = [f"{self.estimates.study}: {self.estimates.formula}", *aligned(rows, "<>>>>>")]
        low, high = (f"{100 * end:.0f}" for end in self.chance)
        chance = f"If a term's intervals are valid, its share is {low} to {high} % by chance alone."
        return "\n".join([*lines, self.sentence, chance, *self.remarks, *_SCOPE])

    def to_dict(self) -> dict[str, Any]:
        """JSON-able record. The tables were simulated from ``coefficients``."""
        arrays = {name: getattr(self, name).tolist() for name in ("held", "squared", "bias", "width")}
        return {
            "study": self.estimates.study,
            "formula": self.estimates.formula,
            "terms": list(self.estimates.terms),
            "coefficients": self.estimates.coefficients.tolist(),
            "repetitions": self.repetitions,
            "level": _LEVEL,
            **arrays,
            "share": self.share,
            "chance": list(self.chance),
            "sentence": self.sentence,
            "remarks": list(self.remarks),
        }


def simulate_coverage(
    model: GeneratorModel, study: FittedStudy, n: float, repetitions: int, seed: int | None = None
) -> Coverage:
    """Simulate ``repetitions`` tables, read and estimate each, and count how often intervals cover the truth.

    Table k depends on ``seed`` and k alone. Raises InputError if the study was saved without its readings, or
    is of patients' rows. Also if no sample of the model has a value in all columns of the study.
    """
    study.check_records("coverage")
    streams = np.random.SeedSequence(seed).spawn(repetitions + 1)
    rng = np.random.default_rng(streams[0])
    base_model = dataclasses.replace(model, weights=None, studies=())
    population = Population.of(study, study_draws(base_model, rng), rng)
    draws = study_draws(base_model, rng)
    x, y = study.design.read(draws.iloc[rng.permutation(len(draws))[:_STAND_IN]])
    start, stand_in = begin(population.design, x, y, n / min(len(draws), _STAND_IN))

    released = study.estimates.std_errors
    errors, widths = np.empty((2, repetitions, len(released)))
    for k, stream in enumerate(streams[1:]):
        rng = np.random.default_rng(stream)
        records = FrameRecords(population.table(max(round(n), 1), rng))
        releases = StudyReleases.again(study.estimates.study, study.noise_multipliers)
        # a ledger of its own: no real records are read, and no budget is used
        beta, covariance, found, _ = releases.read(Ledger(), records, stand_in, start, rng)
        values, reported = study.design.reported(beta, found.opened(covariance))
        widths[k] = np.sqrt(np.diag(reported))
        errors[k] = (values - study.estimates.coefficients) / widths[k]
    held, squared = (np.abs(errors) <= _HALF).mean(axis=0), (errors**2).mean(axis=0)
    width = np.median(widths, axis=0) / released
    return Coverage(study.estimates, repetitions, held, squared, errors.mean(axis=0), width)


class StandardisedDesign(StudyDesign):
    """The design of a frame of standardised terms and the outcome, in this order."""

    def all(self, frame: pd.DataFrame) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return terms and outcome unchanged, and which records lack no value."""
        numbers = frame.to_numpy(dtype=np.float64)
        return numbers[:, :-1], numbers[:, -1], np.isfinite(numbers).all(axis=1)


@dataclass(frozen=True, eq=False)
class Population:
    """Source of the simulated tables: calibrated samples, and the regression at the released coefficients.

    Attributes
    ----------
    x : ndarray of shape (k, p)
        Predictors of calibrated samples without missing values.
    complete : float
        Share of the samples without missing values.
    residuals : ndarray
        Residuals of a linear model's samples around their fitted line. Empty otherwise, or if too few.
    last_seen : ndarray
        Ends of observation of a survival model, in intervals of time. Empty for other models.
    """

    design: StandardisedDesign
    beta: Floats
    x: Floats
    complete: float
    residuals: Floats
    last_seen: Floats

    @classmethod
    def of(cls, study: FittedStudy, draws: pd.DataFrame, rng: np.random.Generator) -> Population:
        """The population of a study, from samples of the base model."""
        design = StandardisedDesign(
            **{f.name: getattr(study.design, f.name) for f in dataclasses.fields(study.design)}
        )
        x, y = study.design.read(draws)
        complete = len(x) / len(draws)
        kept = near(study.design, x)
        x, y = x[kept], y[kept]
        if not len(x):
            raise InputError(
                f"study {study.estimates.study!r} cannot be simulated: no synthetic record has a value in "
                "all of its columns"
            )
        residuals = ends = np.empty(0)
        if design.model.kind == "linear" and len(x) >= RECORDS * design.size:
            residuals = y - design.rows(x)[:, 0] @ mode(design, x, y, 1.0)[0]
        if design.model.kind == "cox":
            ends = last_seen(np.abs(y), ~np.signbit(y), rng)
        return cls(design, study.beta, study.correction(x), complete, residuals, ends)

    def table(self, n: int, rng: np.random.Generator) -> pd.DataFrame:
        """``n`` records less those that lack a value: standardised terms and the outcome."""
        size = rng.binomial(n, self.complete)
        x = self.x[rng.integers(len(self.x), size=size)]
        y = self.outcomes(self.design.rows(x) @ self.beta, rng)
        return pd.DataFrame(np.column_stack([x, y]))

    def outcomes(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """Outcomes of records with linear predictors ``eta`` (k, J), shape (k,)."""
        if len(self.residuals):
            return np.asarray(eta[:, 0] + rng.choice(self.residuals, len(eta)))
        drawn = self.design.family.draw(eta, rng)
        if not len(self.last_seen):
            return drawn
        events = np.where(np.signbit(drawn), -drawn, np.inf)
        ends = rng.choice(self.last_seen, len(eta))
        return np.where(events <= ends, -np.maximum(events, 1e-9), ends)
