"""What attacks and audits of a run may be shared."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from cohort import SCHEMA, config

from dpsynth.attacks.attempt import Attempt
from dpsynth.evaluation.estimates import Estimate
from dpsynth.privacy import Ledger, gaussian_event
from dpsynth.report.run_report import RunReport
from dpsynth.runs import evaluation
from dpsynth.table.schema import Schema


@pytest.mark.parametrize(("upper", "shared"), [((), 1), (("upper",), 0)])
def test_audits_of_an_unreviewed_schema_are_internal(
    monkeypatch: pytest.MonkeyPatch, upper: tuple[str, ...], shared: int
) -> None:
    """Would catch an audit on the page for release whose made-up records show bounds read off the records."""
    age, *others = SCHEMA.columns
    schema = Schema(columns=(age.model_copy(update={"unreviewed": upper}), *others), n_public=80)
    ledger = Ledger()
    ledger.begin_stage(1e-5)
    ledger.post("single-column counts", gaussian_event(5.0), sensitivity="1")
    audit = Attempt("audit: single-column counts", "epsilon", Estimate(0.1, 0.0, 0.2), internal=False)
    monkeypatch.setattr(
        evaluation, "quick", lambda *args, **options: iter([Attempt("guess", "tv", audit.found)])
    )
    monkeypatch.setattr(evaluation, "attempts_on_releases", lambda *args: iter([audit]))
    tables, model = SimpleNamespace(schema=schema), SimpleNamespace(ledger_=ledger)
    found = evaluation.attempts_on(config(), tables, model)
    assert len(found) == 2
    assert len(RunReport(attempts=found).released().attempts) == shared
