"""Who is covered, and the three risks: each bound is the profile's, each measured number is marked."""

from __future__ import annotations

from dataclasses import replace

import pytest
import report_sources as sources

from dpsynth.attacks.attempt import Attempt
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.privacy import Ledger, Profile, gaussian_event
from dpsynth.report import privacy as risks
from dpsynth.report.blocks import Facts, Heading
from dpsynth.report.page import render
from dpsynth.report.privacy import covered, promises, unluckiest
from dpsynth.report.run_report import RunReport

pytestmark = pytest.mark.usefixtures("undrawn")

SPLIT = {"split": {"method": "independent", "test_fraction": 0.3}}
SIZES = Evaluation(
    (
        Measure("Records", "train_records", 700, True),
        Measure("Records", "test_records", 310, True),
        Measure("Disclosure", "copies_excess", 0.012, True, "", 0.001, 0.023),
        Measure("Disclosure", "membership_auc", 0.523, True, "", 0.501, 0.545),
        Measure("Disclosure", "membership_auc_calibrated", None, True),
        Measure("Utility", "auc_mean", 0.81, True, "", 0.79, 0.83),
    ),
    {"outcome": "death"},
)


def run(**changes) -> RunReport:
    ledger = sources.ledger_of()
    made = RunReport(ledger, sources.DELTA, config=SPLIT, evaluation=SIZES)
    return replace(made, **changes)


def told(report: RunReport) -> str:
    return " ".join(sentence.text for sentence in covered(report))


def test_who_is_covered() -> None:
    """Catches a page that keeps silent about those who are in no synthetic record but in its numbers."""
    first, *more = covered(run())
    assert first.text.startswith("700 of 1,010 real records trained") and "other 310" in first.text
    assert first.internal and not any(sentence.internal for sentence in more)
    assert first.text in render(run(), "internal").split('id="attempts"')[0]
    text = told(run())
    assert "A hash of its values" in text and "each training record" in text and "adds no secrecy" in text
    assert "computed from the training records and from the held-out ones" in text


def test_numbers_of_records_are_not_released() -> None:
    """Catches a release page that tells how many records there are, or says nothing of the split."""
    released = run().released()
    text = told(released)
    assert text.startswith("About 70 in 100 real records") and "700" not in text and "310" not in text
    assert not any(sentence.internal for sentence in covered(released))
    assert "computed from the training records and" not in text


@pytest.mark.parametrize(
    ("changes", "words", "silent"),
    [
        ({"config": {"split": {"method": "stratified", "test_fraction": 0.5}}}, "exact numbers", "A hash"),
        ({"config": {}}, "As far as is known", "nothing was published"),
        (
            {"config": {}, "ledger": None, "delta": None},
            "700 of 1,010",
            "guarantee is for",
        ),
    ],
)
def test_nothing_is_said_that_is_not_known(changes, words, silent) -> None:
    """Catches a promise to held-out records of a table whose making nobody knows."""
    text = told(run(**changes))
    assert words in text and silent not in text


def test_nothing_known_nothing_said() -> None:
    """Catches an empty heading on the page of a table of unknown origin."""
    assert covered(RunReport()) == ()
    assert "Who is covered" not in render(RunReport(), "internal")


def facts_of(report: RunReport) -> dict[str, dict[str, str]]:
    blocks = risks.risks_section(report).blocks
    titles = [block.text for block in blocks if isinstance(block, Heading)]
    facts = [block for block in blocks if isinstance(block, Facts)]
    return {
        title: {name: sentence.text for name, sentence in block.items}
        for title, block in zip(titles, facts, strict=True)
    }


def test_three_risks_are_named_with_what_the_guarantee_says() -> None:
    """Catches a bound that is told smaller than it is, or one of another measure."""
    report = run()
    found = facts_of(report)
    assert list(found) == ["Singling out", "Linkability", "Inference"]
    profile = report.profile
    for title, word, bound in (
        ("Singling out", "at most ", profile.tv()),
        ("Linkability", "even odds, at most ", profile.attack_accuracy()),
        ("Linkability", "finds at most ", float(profile.tpr(0.01))),
        ("Inference", "by more than ", profile.tv()),
    ):
        value = float(found[title]["The guarantee"].split(word)[1].split()[0])
        assert 100 * bound <= value < 100 * bound + 0.2, (title, word)
    assert all("Not tried" in facts for facts in found.values())


@pytest.mark.parametrize(("row", "who"), [("one stay", "row"), ("one patient", "patient")])
def test_the_risks_are_of_what_the_guarantee_covers(row: str, who: str) -> None:
    """Catches a promise to a patient where each row of a patient is covered by itself."""
    ledger = Ledger()
    ledger.about(row)
    ledger.begin_stage(1e-5)
    ledger.post("counts", gaussian_event(2.0), sensitivity="1")
    said = " ".join(facts["The guarantee"] for facts in facts_of(RunReport(ledger, 1e-5)).values())
    assert f"singles a {who} out" in said and ("a person may have several" in said) == (who == "row")
    assert ("patient" in said) == (who == "patient")
    assert f"for one {who}" in render(RunReport(ledger, 1e-5), "internal")


def test_measures_stand_with_the_risk_that_they_speak_to() -> None:
    """Catches a measured number without its interval or mark, under another risk, or without a value."""
    found = facts_of(run())
    assert "0.012 (0.001 to 0.023)" in found["Singling out"]["Tried on this table"]
    assert "0.523 (0.501 to 0.545)" in found["Linkability"]["Tried on this table"]
    assert "0.810 (0.790 to 0.830)" in found["Inference"]["Tried on this table"]
    assert "n/a" not in str(found) and "compared distances" not in str(found)
    for block in risks.risks_section(run()).blocks:
        if isinstance(block, Facts):
            for name, sentence in block.items:
                assert sentence.internal == (name == "Tried on this table")
    # a page for release tells of no attack, and so of none that is lacking either
    assert not any({"Tried on this table", "Not tried"} & set(f) for f in facts_of(run().released()).values())


def test_no_promise_without_a_guarantee() -> None:
    """Catches bounds of a ledger that is void or unknown, and a hole that is passed over."""
    for report in (RunReport(), run(ledger=None, delta=None)):
        assert {facts["The guarantee"] for facts in facts_of(report).values()} == {"None is known."}
    bare = sources.bare_ledger()
    void = run(ledger=bare)
    assert all("void" in facts["The guarantee"] for facts in facts_of(void).values())
    ledger = sources.ledger_of()
    ledger.exclude("bounds of age")
    hole = run(ledger=ledger)
    assert all("exceptions" in facts["The guarantee"] for facts in facts_of(hole).values())


def test_average_and_unluckiest_are_told_together() -> None:
    """Catches 64 % and 95 % on one page that seem to contradict each other, or a belief told too small."""
    report = run()
    text = unluckiest(report.profile, sources.DELTA)
    belief = float(text.split("at most ")[1].split()[0])
    allowed = 100 * report.profile.belief(sources.DELTA)
    assert allowed <= belief < allowed + 0.1
    times = int(text.split("once in ")[1].split()[0].replace(",", ""))
    exceeded = report.profile.belief_exceedance(sources.DELTA)
    assert exceeded <= 1 / times < 1.02 * exceeded
    assert exceeded > 1.5 * report.profile.exceedance(report.profile.epsilon(sources.DELTA))
    # the same number as a line above, in a sentence that says how it differs from the certainty
    accuracy = promises(report.guarantee, report.profile)[2][1].text.split("at most ")[1].split(" guesses")[0]
    average = f"Attack accuracy ({accuracy}) is an average over all possible outputs."
    assert text.startswith(f"{average} After a single one, an attacker is at most ")
    page = render(report, "release")
    assert page.index("Random guessing gives 50") < page.index("is an average over all possible outputs")


def test_a_belief_that_half_of_the_outputs_may_pass_is_no_limit() -> None:
    """Catches a limit where the sum of two fits proves nothing about most of them."""
    text = unluckiest(Profile.promised(3.0, 1e-5, 0.9), 1e-5)
    assert "at most" not in text and "once in" not in text
    assert "No limit is proved" in text


@pytest.mark.parametrize("multiplier", [0.3, 0.1, 0.02])
def test_a_guarantee_of_nothing_is_no_number(multiplier) -> None:
    """Catches "right at most 100 times in 100", "at most inf times" and "100 % sure"."""
    ledger = Ledger()
    ledger.post("release", gaussian_event(multiplier), sensitivity="1")
    report = run(ledger=ledger)
    text = render(report, "release").split('id="attempts"')[0].split("<header>")[1]
    assert not any(
        word in text for word in ("inf ", "100 times in 100", "100 of 100", "100 % sure", " 100 %")
    )


def test_attacks_stand_beside_their_risk() -> None:
    """Catches an attack that was made and is told as not tried, under another risk, or without its mark."""
    found, control = Estimate(0.2, 0.1, 0.3), Estimate(0.05, 0.0, 0.1)
    report = run(attempts=(Attempt("singling out, one column", "rate", found, None, control),))
    told_of = facts_of(report)
    assert "0.200 (0.100 to 0.300) right, 0.050 for the baseline attack" in told_of["Singling out"]["Attacks"]
    assert "Not tried" not in told_of["Singling out"] and "Attacks" not in told_of["Linkability"]
    assert "Not tried" in told_of["Linkability"]
    for block in risks.risks_section(report).blocks:
        if isinstance(block, Facts):
            assert all(s.internal == (n in ("Attacks", "Tried on this table")) for n, s in block.items)
    assert not any("Attacks" in facts for facts in facts_of(report.released()).values())
