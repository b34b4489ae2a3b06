"""The checklist: no entry contradicts the run's facts, and none is called handled without a guarantee."""

from __future__ import annotations

from dataclasses import replace

import pytest
import report_sources as sources

from dpsynth.attacks.attempt import Attempt
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.privacy import Ledger, gaussian_event
from dpsynth.privacy.guarantee import RESAMPLE, STRATIFIED
from dpsynth.report import page as html
from dpsynth.report.blocks import Section
from dpsynth.report.privacy import Hazard, hazards
from dpsynth.report.run_report import RunReport

pytestmark = pytest.mark.usefixtures("undrawn")

CRYPTOGRAPHIC = "AES-128 in counter mode"
DIVISION = "Training and held-out records"
BOUNDS, RANDOM, CODE = "Bounds, categories and schema", "Random numbers", "Errors in proof or code"


def ledger_of(row: str | None = "one patient: the first stay", generator: str = CRYPTOGRAPHIC) -> Ledger:
    ledger = Ledger()
    ledger.about(row)
    ledger.drawn_by(generator)
    ledger.begin_stage(1e-5)
    ledger.post("counts", gaussian_event(4.0), sensitivity="1")
    return ledger


def listed(report: RunReport, *shown: str) -> dict[str, Hazard]:
    found = list(hazards(report, shown))
    assert len({hazard.name for hazard in found}) == len(found)
    return {hazard.name: hazard for hazard in found}


def run(ledger: Ledger | None = None, **changes: object) -> RunReport:
    attempt = Attempt("audit: counts", "tv", Estimate(0.1, 0.0, 0.2), 0.3, internal=False)
    table = {"name": "cohort", "unconfirmed": ""}
    report = RunReport(ledger or ledger_of(), 1e-5, table=table, attempts=(attempt,))
    return replace(report, **changes)


def test_a_run_in_order_is_handled() -> None:
    """Catches an entry that is always open, whatever the run did."""
    found = listed(run())
    for name in (BOUNDS, RANDOM, "Privacy unit", "Neighbouring datasets", "Outliers", "This page"):
        assert found[name].status == "handled", name
    assert found[CODE].status == "yours"  # attacks find large errors alone
    assert CRYPTOGRAPHIC in found[RANDOM].said and "one patient: the first stay" in found["Privacy unit"].said


def test_nothing_of_a_guarantee_is_handled_that_it_excludes() -> None:
    """Catches outliers "clipped" at bounds that were read off them, and neighbours that a split redefines."""
    excluding = ledger_of()
    excluding.exclude("schema fields read off the private data and not reviewed (age)")
    found = listed(run(excluding))
    handled = {name for name, hazard in found.items() if hazard.status == "handled"}
    assert handled == {RANDOM, "Floating-point noise"}


def test_nothing_is_handled_without_a_guarantee() -> None:
    """Catches comfort about a table without noise, with a known seed, or of unknown origin."""
    seeded = ledger_of()
    seeded.seeded = True
    for report in (RunReport(), run(sources.bare_ledger(), attempts=()), run(seeded, attempts=())):
        found = listed(report)
        handled = {name for name, hazard in found.items() if hazard.status == "handled"}
        assert handled == set()
        assert set(found) >= {BOUNDS, RANDOM, "Privacy unit"}


def excluding(*reasons: str) -> Ledger:
    ledger = ledger_of()
    for reason in reasons:
        ledger.exclude(reason)
    return ledger


def seeded() -> Ledger:
    ledger = ledger_of()
    ledger.seeded = True
    return ledger


def stepping(sensitivity: str) -> Ledger:
    ledger = ledger_of()
    ledger.post("WGAN critic steps", gaussian_event(20.0), sensitivity=sensitivity)
    return ledger


def weak() -> Ledger:
    ledger = Ledger()
    ledger.post("counts", gaussian_event(0.2), sensitivity="1")
    return ledger


HOLE = "schema fields read off the private data and not reviewed (age)"
INDEPENDENT = {"split": {"method": "independent", "test_fraction": 0.5}}
PASSED = Attempt("audit: counts", "tv", Estimate(0.5, 0.4, 0.6), 0.3, internal=False)
MEASURED = Evaluation((Measure("Utility", "auc_mean", 0.8, True),))
NOISE, PAGE = "Floating-point noise", "This page"
#: what the list would get wrong: a report, an entry, its status, and what it says
CASES: dict[str, list[tuple[RunReport, str, str, str]]] = {
    "the caller's seed is praised as a generator": [(run(seeded()), RANDOM, "open", "seed")],
    "noise that can be predicted, or of unknown making, is handled": [
        (run(ledger_of(generator="PCG64, which is not cryptographic")), RANDOM, "open", "PCG64"),
        (run(sources.ledger_of()), RANDOM, "open", ""),
    ],
    "noise in floating point is called exact, or exact noise is not": [
        (run(), NOISE, "handled", ""),
        (run(stepping("1")), NOISE, "open", ""),
        (run(stepping("proved for each random critic, exact noise")), NOISE, "handled", ""),
        (RunReport(), NOISE, "open", ""),
    ],
    "bounds that nobody reviewed are handled, or the model that repeats them is not named": [
        (run(), BOUNDS, "handled", "The owner declared the schema reviewed"),
        (run(excluding(HOLE)), BOUNDS, "open", "model/"),
        (run(excluding(HOLE)).released(), BOUNDS, "open", "(age)"),
        (run(excluding(HOLE)).released(), BOUNDS, "open", "model/"),
        (run(table={"unreviewed": ["age"]}), BOUNDS, "open", "model/"),
        (run(evaluation=Evaluation((), {"unreviewed": ["age"]})), BOUNDS, "open", ""),
    ],
    "a division that nobody knows is handled": [
        (run(config=INDEPENDENT), DIVISION, "handled", ""),
        (run(), DIVISION, "yours", ""),
        (run(excluding(RESAMPLE), config=INDEPENDENT), DIVISION, "open", ""),
    ],
    "code is called checked though an attack passed a bound, or none was made": [
        (run(attempts=(*run().attempts, PASSED)), CODE, "open", "audit: counts"),
        (run(attempts=()), CODE, "open", ""),
    ],
    "a public number of records, rules or a weak epsilon are passed over": [
        (run(table={"n_public": 2850}), "Neighbouring datasets", "yours", "2850"),
        (run(table={"n_public": 2850}), "Size of ε and δ", "yours", "0.029"),
        (run(), "Choice of options", "yours", "or the noisy count chose the noisy statistics"),
        (run(weak()), "Size of ε and δ", "open", ""),
    ],
    "an internal page calls itself free of confidential numbers": [
        (run(evaluation=MEASURED), PAGE, "yours", "from real records"),
        (run(evaluation=MEASURED).released(), PAGE, "handled", "No number"),
    ],
}


@pytest.mark.parametrize("fault", CASES)
def test_what_the_list_says_of_a_run(fault: str) -> None:
    """Catches the fault that each key of CASES names."""
    for report, name, status, words in CASES[fault]:
        found = listed(report)[name]
        assert found.status == status and words in found.said, (name, found)


def test_lists_that_nobody_confirmed_are_yours_to_decide() -> None:
    """Catches 88 clinic names of real rows under "Handled" because the word "unreviewed" was deleted."""
    rare = Measure(
        "Constraints", "rare_categories[clinic]", 18, True, "88 categories, 18 of them in few rows"
    )
    report = run(table={"name": "cohort", "unconfirmed": "clinic, ward"}, evaluation=Evaluation((rare,)))
    found = listed(report)[BOUNDS]
    assert found.status == "yours" and "clinic, ward" in found.said and "18" not in found.said
    assert found.confidential is not None and found.confidential.internal
    assert "18 of them" in found.confidential.text and "18 of them" in html.render(report, "internal")
    # to share: which lists they are, and no number of real rows
    shared = listed(report.released())[BOUNDS]
    assert shared.status == "yours" and shared.confidential is None and "clinic, ward" in shared.said
    assert "18 of them" not in html.render(report, "release")
    # a report that does not say is no confirmation
    assert listed(run(table={"name": "cohort"}))[BOUNDS].status == "yours"
    assert listed(run())[BOUNDS].status == "handled"


def test_a_stratified_split_is_about_the_division_and_not_the_schema() -> None:
    """Catches a split under bounds and categories, and one that is silent about the outcomes it read."""
    divided = ledger_of()
    divided.exclude(STRATIFIED)
    by_config = {"split": {"method": "stratified", "test_fraction": 0.5}}
    for report in (run(divided, config=by_config), run(divided).released(), run(config=by_config)):
        found = listed(report)
        assert (found[BOUNDS].status, found["Outliers"].status) == ("handled", "handled")
        assert "split" not in found[BOUNDS].said
        assert found[DIVISION].status == "open"
        assert "read the outcome of every record without privacy budget" in found[DIVISION].said
        assert "does not hold for two whole tables" in found[DIVISION].said
    assert "the stratified split" in listed(run(divided))["Neighbouring datasets"].said
    assert listed(run(divided))["Prior knowledge of attackers"].status == "open"
    page = html.render(run(divided, config=by_config), "release")
    assert "nothing was published about them" not in page and "without privacy budget" in page


def test_the_unit_is_the_ledgers() -> None:
    """Catches a patient where the ledger says a year of a person, or nothing."""
    for row in ("one year of one person, and not one person", None):
        found = listed(run(ledger_of(row)))["Privacy unit"]
        assert found.status == "yours"
        page = html.render(run(ledger_of(row)), "release")
        assert "guaranteed for each row" in page and "a patient was in the data" not in page
    assert "guaranteed for each patient" in html.render(run(), "release")


def test_subgroups_are_open_until_they_are_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a checklist that knows nothing of the section, or one that praises what is not there."""
    assert listed(run())["Errors by subgroup"].status == "open"
    part = Section("subgroups", "Subgroups")
    monkeypatch.setitem(html.PARTS, "subgroups", lambda report: part)
    assert "See the table of subgroups" in html.render(run(), "internal")
