"""The questions about a synthetic table, each with the evaluator that answers it, and the loop over them.

Is it similar to the real table, is it as useful, does it contain copies of real records? Findings say whether
each number may be shared. Real records are read without noise, so nearly every number is confidential.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpsynth.errors import CONFIDENTIAL
from dpsynth.evaluation.development import trajectories
from dpsynth.evaluation.disclosure_risk import disclosure
from dpsynth.evaluation.effects import replication
from dpsynth.evaluation.neighbour_inference import neighbours
from dpsynth.evaluation.prediction import utility
from dpsynth.evaluation.resemblance import outside_bounds, rare_categories, similarity, undeclared_digits
from dpsynth.evaluation.results import Evaluation, Findings, Measure, tidy
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.subgroups import compare_subgroups
from dpsynth.evaluation.table_one import summarise_tables
from dpsynth.evaluation.tables import Progress, Tables
from dpsynth.evaluation.tails import columns_believed
from dpsynth.progress import shown_progress, stage_bar
from dpsynth.studies.study import Estimates, Study
from dpsynth.table.schema import TableSchema

#: called with a question and the part of the work on it that is done, in [0, 1]
Stages = Callable[[str, float], None]


#: answers one question about tables; all randomness comes from the generator
Evaluator = Callable[[Tables, Settings, np.random.Generator, Progress], Findings]


class Question(NamedTuple):
    """A question, the evaluator that answers it, and the number of the evaluator's random stream.

    One stream each, so that a change in one evaluator leaves the others' numbers as they are. ``of_rows``: it
    is asked only where a patient may have several rows.
    """

    name: str
    evaluator: Evaluator
    stream: int
    of_rows: bool = False


#: in the order of the report
EVALUATORS = (
    Question("utility", utility, 0),
    Question("replication", replication, 1),
    Question("similarity", similarity, 2),
    Question("similarity of single columns", columns_believed, 5),
    Question("neighbours", neighbours, 3),
    Question("disclosure", disclosure, 4),
    Question("Table 1", summarise_tables, 6),
    Question("subgroups", compare_subgroups, 7),
    Question("patients over time", trajectories, 8, of_rows=True),
)


def evaluate(
    synthetic: pd.DataFrame,
    *,
    train: pd.DataFrame,
    schema: TableSchema,
    test: pd.DataFrame | None = None,
    declared: Sequence[Estimates] = (),
    progress: Stages | None = None,
    **options: object,
) -> Evaluation:
    """Measure a synthetic table against the real records it stands for.

    Every table is first brought to the schema: clipped to its bounds and rounded to its declared steps.

    Parameters
    ----------
    synthetic : pandas.DataFrame of shape (m, columns)
        From any generator, with columns in any order. Any dtypes that write the schema's values fit: numbers
        as text, whole numbers as floats, categories as codes. Columns that the schema ignores may be there or
        not.
    train : pandas.DataFrame of shape (n, columns)
        The real records the synthetic ones were made from.
    schema : TableSchema
        Columns of all tables. If patients have several rows, the tables hold rows. Both levels
        (:func:`dpsynth.patients.patient_table`) and rows are compared. A record is then a patient.
    test : pandas.DataFrame of shape (k, columns), optional
        Real records that had no part in the synthetic table. Without them, utility is not measured, and
        memorisation cannot be distinguished from coincidence.
    declared : sequence of Estimates
        Private estimates of pre-specified regressions, such as ``model.estimates_``. By default these are
        replicated, by the text of their formulas. A regression with increments of its own needs its
        EffectsModel in ``effects`` as well.
    progress : callable, optional
        Receives a question and the part of the work on it that is done, in [0, 1]. By default a bar is shown
        in a notebook or at a prompt, and nothing in a script.
    **options
        ``outcome``, ``effects``, ``models``, ``constraints``, ``metric``, ``groups``, ``seed``,
        ``reference``, ``records``, ``level``: see :class:`~dpsynth.evaluation.settings.Settings`.

    Returns
    -------
    Evaluation
        Measures with intervals, and the details that a report draws.

    Raises
    ------
    DataError
        If a table does not fit the schema. The message names the table, the column and the row.
    InputError
        If an option is unknown or wrong, or a table has fewer than two records.

    Notes
    -----
    Privacy: reads ``train`` and ``test`` and posts no event. Measures of real records are marked confidential
    (``internal``). So is everything if the schema has unreviewed fields, which were read from records.
    ``privacy_loss`` is nearest-neighbour accuracy against test minus against training records (Pedersen 2022,
    section 2.4). Above 0, synthetic records lie closer to training records than to new ones.

    Examples
    --------
    >>> from dpsynth.table.schema import Column, Schema
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=0, upper=99),))
    >>> real, made = pd.DataFrame({"age": [30, 40, 50]}), pd.DataFrame({"age": [31, 41, 90]})
    >>> result = evaluate(made, train=real, schema=schema, seed=0)
    >>> result["synthetic_records"].value, result["nn_accuracy_train"].internal
    (3, True)
    """
    settings = Settings.of(**options)
    settings.check(schema.levels)
    tables = Tables.of(synthetic, train=train, test=test, schema=schema, declared=declared)
    with shown_progress(progress, stage_bar) as stages:
        return evaluate_tables(tables, settings, stages)


def evaluate_tables(tables: Tables, settings: Settings, progress: Stages | None = None) -> Evaluation:
    """Answer every question of :data:`EVALUATORS` about the tables (see :func:`evaluate`)."""
    schema, tell = tables.schema, progress or (lambda question, done: None)
    # a regression of patients' rows has no counterpart among the levels, and a share or mean no effect
    formulas = [
        each.formula
        for each in tables.declared
        if each.no_effect is not None and Study(model=each.formula).clusters(tables.described) is None
    ]
    settings = settings.replicating(tuple(dict.fromkeys(formulas)))
    settings.check(schema)
    entropy = secrets.randbits(128) if settings.seed is None else settings.seed
    children = np.random.SeedSequence(entropy).spawn(len(EVALUATORS))
    described = tables.described
    findings = Findings([*_sizes(tables), *rare_categories(tables)])
    for name, frame in tables.raw.items():
        findings.join(undeclared_digits(frame, described.table, name))
        if name != "synthetic":
            findings.join(outside_bounds(frame, described.table, name))
    for question, evaluator, stream, of_rows in EVALUATORS:
        if of_rows and tables.patients is None:
            continue

        def told(done: float, question: str = question) -> None:
            tell(question, done)

        told(0.0)
        findings.join(evaluator(tables, settings, np.random.default_rng(children[stream]), told))
        told(1.0)
    public: dict[str, object] = {
        "outcome": settings.predicted(schema),
        "effects": [study.formula(schema) for study in settings.studies(schema)],
        "constraints": [rule.text for rule in settings.rules(schema)],
        "metric": settings.metric,
        "groups": [grouping.column.name for grouping in settings.grouped(schema)],
        "seed": entropy,
        "level": settings.level,
        "records": settings.records,
    }
    measures, details = findings.measures, findings.details
    if tables.patients is not None:  # a record is then a patient's levels
        public["counted"] = schema.counted
    public["unconfirmed"] = ", ".join(described.unconfirmed)
    if described.unreviewed:
        # bins, ranges and lists of categories would show what was read off the records
        public["unreviewed"] = sorted(described.unreviewed)
        measures = [replace(measure, internal=True) for measure in measures]
        details = {name: [row | {CONFIDENTIAL: True} for row in rows] for name, rows in details.items()}
    return Evaluation(measures, public, {name: tidy(name, rows) for name, rows in details.items()})


def _sizes(tables: Tables) -> Iterator[Measure]:
    what = tables.described.protected
    made = f"{what} of the synthetic table"
    yield Measure("Records", "synthetic_records", len(tables.synthetic), False, made)
    yield Measure("Records", "train_records", len(tables.train), True, f"real {what} it was made from")
    if tables.test is not None:
        yield Measure("Records", "test_records", len(tables.test), True, f"real {what} held out")
    for name, histories in tables.histories.items():
        told = f"rows of the {'synthetic' if name == 'synthetic' else 'real'} patients that are used"
        yield Measure("Records", f"{name}_rows", int(histories.rows.sum()), name != "synthetic", told)
