"""A table's whole way: fit, save, load, sample, conform, evaluate and report; nothing may fail on it.

Two answers may come in place of a synthetic table. The options ask for what cannot be, which is said before a
budget is spent; or the schema's rules refuse nearly every record.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from chosen_statistics import beside, dp_marginals
from table_strategies import Case

import dpsynth
from dpsynth.errors import InputError, OwnerWarning, PrivacyError, RejectionError
from dpsynth.evaluation.evaluators import evaluate
from dpsynth.evaluation.settings import Settings
from dpsynth.privacy import Ledger
from dpsynth.report.page import Mode, render
from dpsynth.runs.folder import RunFolder
from dpsynth.runs.pipeline import Origin
from dpsynth.table.values import numeric_values

#: of the evaluation, which is not what is searched here
_QUICK = {"seed": 0, "records": 200}
_MOST_SAMPLED = 300


def go(case: Case, *, evaluated: bool = True, page: Mode | None = "internal") -> str:
    """Go the whole way; "made", "refused: why" or "rejected", and anything else is raised.

    Warnings are errors, but for those that the owner of a table is meant to read. Evaluation and page take
    most of the time, and may be left out.
    """
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("error", FutureWarning)
        warnings.simplefilter("ignore", OwnerWarning)
        return _go(case, Path(name), evaluated, page)


def _go(case: Case, folder: Path, evaluated: bool, page: Mode | None) -> str:
    options = dict(case.options)
    also = beside(options.pop("studies", ()))
    model = (dpsynth.DPWGANGP if "steps" in options else dp_marginals)(**options)
    judged = Settings.of(**_QUICK)
    try:
        judged.check(case.schema)
        model.fit(case.frame, schema=case.schema, also=also)
    except (InputError, PrivacyError) as problem:
        spent = [entry.name for entry in getattr(model, "ledger_", Ledger()).entries]
        # what a study costs depends on the number of records
        if spent and not (spent == ["number of records"] and "study" in str(problem)):
            raise AssertionError(f"refused after {spent} had been paid for: {problem}") from problem
        return f"refused: {problem}"
    except RejectionError:  # of records that stand for the real ones in a study
        return "rejected"
    if case.options["epsilon"] is not None:
        assert model.ledger_.epsilon(model.ledger_.delta) <= case.options["epsilon"] * (1 + 1e-9)
    model.save(folder / "m")
    again = dpsynth.load(folder / "m")
    n = min(len(case.frame), _MOST_SAMPLED)
    try:
        made = again.sample(n, random_state=1)
    except RejectionError:
        if not case.schema.constraints:
            raise
        return "rejected"
    pd.testing.assert_frame_equal(made, model.sample(n, random_state=1))
    _check_table(made, case, n)
    if not evaluated:
        return "made"
    measured = evaluate(made, train=case.frame, test=case.test, schema=case.schema, **_QUICK)
    assert measured.to_markdown() and measured.to_json()
    report = Origin.of_model(model).report(
        case.schema,
        name="search",
        outcome=case.schema.outcome,
        size={"synthetic_records": n},
        config={},
        evaluation=measured,
        seconds={},
    )
    RunFolder(folder).write_report(report)
    if page is not None:
        assert render(report, page)
    return "made"


def _check_table(made: pd.DataFrame, case: Case, n: int) -> None:
    schema = case.schema
    assert made.shape == (n, len(schema)) and tuple(made.columns) == schema.names
    conformed = schema.conform(made)
    assert not any(conformed.clipped.values()), conformed.clipped
    pd.testing.assert_frame_equal(conformed.frame, made)
    for rule in schema.rules:
        assert not rule.broken(made).any(), rule.text
    for column in schema.columns:
        if column.is_numeric and column.resolution is not None and column.derived is None:
            numbers = pd.Series(numeric_values(column, made[column.name])).dropna()
            steps = (numbers - column.lower) / column.resolution
            assert np.allclose(
                steps, steps.round(), atol=1e-6 * max(1.0, steps.abs().max() if len(steps) else 0)
            )
