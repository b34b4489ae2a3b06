"""All evaluators of a synthetic table in one call.

Does it look like the real one, is it as useful, does it remember anyone? Each question has a module of its
own; here their findings are gathered as records that say of each number whether it may be released. Real
records are read and nothing is paid for, so nearly every number is internal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.errors import DataError, InputError
from dpsynth.evaluation.disclosure.memorisation import memorisation
from dpsynth.evaluation.estimates import check_level
from dpsynth.evaluation.neighbours.closeness import closeness
from dpsynth.evaluation.neighbours.distances import metric_named
from dpsynth.evaluation.records import Evaluation, Findings, Measure
from dpsynth.evaluation.replication.effects import effects as compare_effects
from dpsynth.evaluation.replication.effects_model import EffectsModel
from dpsynth.evaluation.similarity.believable import believable
from dpsynth.evaluation.similarity.conformity import finer_than_declared, outside_bounds
from dpsynth.evaluation.similarity.likeness import likeness
from dpsynth.evaluation.utility.usefulness import usefulness
from dpsynth.evaluation.utility.utility import check_outcome
from dpsynth.table.conform import round_frame
from dpsynth.table.rules import parse_rule
from dpsynth.table.schema import Schema

#: Called with the name of a stage and the part of it that is done, in [0, 1].
Progress = Callable[[str, float], None]


def evaluate(
    synthetic: pd.DataFrame,
    *,
    train: pd.DataFrame,
    schema: Schema,
    test: pd.DataFrame | None = None,
    outcome: str | None = None,
    effects: Sequence[str | EffectsModel] | None = None,
    models: Mapping[str, Any] | None = None,
    constraints: Sequence[str] = (),
    metric: str = "euclidean",
    seed: int | None = None,
    reference: bool = True,
    neighbour_records: int = 10_000,
    utility_records: int = 50_000,
    level: float = 0.95,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure a synthetic table against the real records it stands for.

    Every table is first brought to the schema: clipped to its bounds and rounded to its declared steps.

    Parameters
    ----------
    synthetic : pandas.DataFrame of shape (m, columns)
        From any generator.
    train : pandas.DataFrame of shape (n, columns)
        The real records the synthetic ones were made from.
    schema : Schema
        Of all tables.
    test : pandas.DataFrame of shape (k, columns), optional
        Real records that had no part in the synthetic table. Without them utility is not measured, and
        nothing tells memory from coincidence.
    outcome : str, optional
        What models predict; the schema's own outcome by default, no utility where there is none.
    effects : sequence of str or EffectsModel, optional
        Regressions to fit on real and on synthetic records, such as ``"logistic: death ~ age + sex"``. By
        default one of the outcome on all other columns: logistic if it is binary, linear if it is numeric.
        An empty sequence asks for none.
    models : dict of str to scikit-learn estimator, optional
        Predictors in place of the three built-in ones.
    constraints : sequence of str, optional
        Rules that records should obey beside the schema's own, such as ``"diastolic <= systolic"``;
        violations are counted.
    metric : {"euclidean", "gower", "hamming"}
        Distance of nearest-neighbour accuracy.
    seed : int, optional
        Of subsampling, resampling and of the models; drawn from the operating system if not given, and kept
        in ``settings`` either way.
    reference : bool
        Whether the models are trained on the real training records as well.
    neighbour_records : int
        Neighbours are compared at equal sizes: a random part of each table, as large as the smaller of the
        two and at most this large.
    utility_records : int
        Models are trained on a random part at most this large.
    level : float
        Of all confidence intervals, in (0, 1).
    progress : callable, optional
        Receives the name of a stage and the part of it that is done, in [0, 1].

    Returns
    -------
    Evaluation
        Measures with intervals, and the details that a report draws.

    Raises
    ------
    DataError
        If a table does not fit the schema; the message names the table, the column and the row.
    InputError
        If an argument is wrong, or a table has fewer than two records.

    Notes
    -----
    Privacy: reads ``train`` and ``test`` and posts no event. Measures of real records are marked internal; so
    is everything where the schema has unreviewed fields, which were read off records.
    ``privacy_loss`` is nearest-neighbour accuracy against test minus against training records (thesis,
    section 2.4): above 0 the synthetic records lie closer to the training records than to new ones.

    Examples
    --------
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=0, upper=99),))
    >>> real, made = pd.DataFrame({"age": [30, 40, 50]}), pd.DataFrame({"age": [31, 41, 90]})
    >>> result = evaluate(made, train=real, schema=schema, seed=0)
    >>> result["synthetic_records"].value, result["nn_accuracy_train"].internal
    (3, True)
    """
    chosen, studies = check_settings(
        schema,
        outcome=outcome,
        effects=effects,
        constraints=constraints,
        metric=metric,
        level=level,
        neighbour_records=neighbour_records,
        utility_records=utility_records,
    )
    made = _conform("synthetic", synthetic, schema)
    real = _conform("train", train, schema)
    held_out = _conform("test", test, schema) if test is not None else None
    entropy = np.random.SeedSequence().entropy if seed is None else seed
    if not isinstance(entropy, int) or entropy < 0:
        raise InputError(f"seed must be a non-negative integer, got {seed!r}")
    # One stream each, so that a change in one evaluator leaves the others' numbers as they are.
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(entropy).spawn(6)]
    say = progress or (lambda stage, done: None)

    def stage(name: str) -> Callable[[float], None]:
        say(name, 0.0)
        return lambda done: say(name, done)

    found = [Findings(tuple(_sizes(made, real, held_out)))]
    found += [
        finer_than_declared(frame, schema, name)
        for name, frame in (("synthetic", synthetic), ("train", train), ("test", test))
        if frame is not None
    ]
    real_tables = (("train", train), ("test", test))
    found += [outside_bounds(frame, schema, name) for name, frame in real_tables if frame is not None]
    if chosen is not None:
        found.append(
            usefulness(
                made,
                real,
                held_out,
                schema,
                chosen,
                rng=streams[0],
                reference=reference,
                limit=utility_records,
                models=models,
                level=level,
                progress=stage("utility"),
            )
        )
    for number, study in enumerate(studies):
        with np.errstate(all="ignore"):  # of numbers near the ends of their range; the fit says what failed
            fitted = compare_effects(
                made, real, schema, study, level=level, rng=streams[1], progress=stage("study replication")
            )
        found.append(_numbered(fitted, number))
    found.append(
        likeness(
            made,
            real,
            held_out,
            schema,
            rng=streams[2],
            limit=neighbour_records,
            level=level,
            constraints=constraints,
            raw=synthetic,
            progress=stage("resemblance"),
        )
    )
    found.append(
        believable(
            made,
            real,
            held_out,
            schema,
            rng=streams[5],
            limit=neighbour_records,
            level=level,
            progress=stage("single columns"),
        )
    )
    found.append(
        closeness(
            made,
            real,
            held_out,
            schema,
            rng=streams[3],
            limit=neighbour_records,
            metric=metric,
            level=level,
            progress=stage("nearest neighbours"),
        )
    )
    found.append(
        memorisation(
            made,
            real,
            held_out,
            schema,
            rng=streams[4],
            limit=neighbour_records,
            level=level,
            progress=stage("memorisation"),
        )
    )
    settings: dict[str, Any] = {
        "outcome": chosen,
        "effects": [study.formula(schema) for study in studies],
        "constraints": list(dict.fromkeys((*schema.constraints, *constraints))),
        "metric": metric,
        "seed": entropy,
        "level": level,
        "neighbour_records": neighbour_records,
        "utility_records": utility_records,
    }
    measures = tuple(measure for part in found for measure in part.measures)
    details = tuple(detail for part in found for detail in part.details)
    if schema.unreviewed:
        # bins, ranges and lists of categories would show what was read off the records
        settings["unreviewed"] = sorted(schema.unreviewed)
        measures = tuple(replace(measure, internal=True) for measure in measures)
        details = tuple(replace(detail, internal=True) for detail in details)
    return Evaluation(measures, settings, details)


def check_settings(
    schema: Schema,
    *,
    outcome: str | None = None,
    effects: Sequence[str | EffectsModel] | None = None,
    constraints: Sequence[str] = (),
    metric: str = "euclidean",
    level: float = 0.95,
    neighbour_records: int = 10_000,
    utility_records: int = 50_000,
) -> tuple[str | None, list[EffectsModel]]:
    """Check the arguments of :func:`evaluate` against a schema; needs no records.

    Parameters
    ----------
    schema, outcome, effects, constraints, metric, level, neighbour_records, utility_records
        See :func:`evaluate`.

    Returns
    -------
    outcome : str or None
        The column that models predict.
    studies : list of EffectsModel

    Raises
    ------
    InputError
        If an argument is wrong, naming it.
    """
    chosen = outcome if outcome is not None else schema.outcome
    if chosen is not None:
        check_outcome(schema, chosen)
    for name, value in (("neighbour_records", neighbour_records), ("utility_records", utility_records)):
        if value < 2:
            raise InputError(f"{name} must be at least 2, got {value!r}")
    check_level(level)
    metric_named(metric)
    studies = _studies(effects, schema, chosen)
    for rule in constraints:
        parse_rule(rule, schema)
    return chosen, studies


def _studies(
    effects: Sequence[str | EffectsModel] | None, schema: Schema, outcome: str | None
) -> list[EffectsModel]:
    if effects is None:
        usual = EffectsModel.default(schema, outcome) if outcome is not None else None
        return [] if usual is None else [usual]
    if isinstance(effects, str):
        raise InputError(f"effects must be a list of models, got the text {effects!r}")
    return [_parsed(study, schema) if isinstance(study, str) else study for study in effects]


def _parsed(study: str, schema: Schema) -> EffectsModel:
    try:
        return EffectsModel.parse(study, schema)
    except InputError as problem:
        raise InputError(f"effects {study!r}: {problem}") from None


def _numbered(found: Findings, number: int) -> Findings:
    """Keep names apart where several studies are replicated; the first keeps its plain names."""
    if number == 0:
        return found
    return Findings(
        tuple(replace(measure, name=f"{measure.name}[{number + 1}]") for measure in found.measures),
        tuple(replace(detail, name=f"{detail.name}[{number + 1}]") for detail in found.details),
    )


def _sizes(made: pd.DataFrame, real: pd.DataFrame, held_out: pd.DataFrame | None) -> Iterator[Measure]:
    yield Measure("Records", "synthetic_records", len(made), False, "rows of the synthetic table")
    yield Measure("Records", "train_records", len(real), True, "real rows it was made from")
    if held_out is not None:
        yield Measure("Records", "test_records", len(held_out), True, "real rows held out")


def _conform(name: str, frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    if len(frame) < 2:
        raise DataError(f"the {name} table must have at least 2 records, got {len(frame)}")
    try:
        return round_frame(schema.columns, schema.conform(frame).frame)
    except DataError as problem:
        raise DataError(f"{name} table: {problem}") from None
