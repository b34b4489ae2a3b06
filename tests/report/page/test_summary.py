"""The summary in words: each sentence follows from its numbers, and says so if they are internal."""

from __future__ import annotations

import numpy as np
import report_sources as sources

from dpsynth.accounting import Ledger, gaussian_event
from dpsynth.evaluation.records import Evaluation, Measure
from dpsynth.report.page import summary
from dpsynth.report.run_report import RunReport


def private(ledger: Ledger, evaluation: Evaluation | None = None) -> RunReport:
    return RunReport(ledger, sources.DELTA, evaluation=evaluation)


def test_bounds_are_those_of_the_profile_rounded_up():
    """Catches a bound that is told smaller than it is, or another number in its place."""
    ledger = sources.ledger_of()
    report = private(ledger)
    text = " ".join(sentence.text for sentence in summary.risk(report))
    profile = ledger.profile()
    told = float(text.split("right at most ")[1].split()[0])
    assert 100 * profile.attack_accuracy() <= told < 100 * profile.attack_accuracy() + 0.2
    told = float(text.split("by more than ")[1].split()[0])
    assert 100 * profile.tv() <= told < 100 * profile.tv() + 0.2
    assert f"plus at most {sources.DELTA:g} (δ)" in text
    assert not any(sentence.internal for sentence in summary.risk(report))


def test_replace_one_is_told_as_such():
    """Catches a sentence about taking part where the guarantee is about another's record in its place."""
    ledger = Ledger()
    ledger.post("release", gaussian_event(4.0), sensitivity="1", adjacency="replace-one")
    text = " ".join(sentence.text for sentence in summary.risk(private(ledger)))
    assert "another's in its place" in text and "took part" not in text


def test_a_bound_that_bounds_nothing_is_told_as_such():
    """Catches "at most inf times" and "right at most 100 times in 100", which tell a patient nothing."""
    ledger = Ledger()
    ledger.post("release", gaussian_event(0.02), sensitivity="1")
    assert 700 < ledger.epsilon(sources.DELTA) < np.inf
    text = " ".join(sentence.text for sentence in summary.risk(private(ledger)))
    assert " inf " not in text and "100 times in 100" not in text and "100 points" not in text
    assert "may be right every time" in text and "more than a million times" in text
    assert "may depend wholly on whether a patient is in the training table (total variation 1)" in text


def test_nothing_is_promised_without_a_guarantee():
    """Catches words of comfort about a table without noise, with seeded noise, or of unknown origin."""
    seeded = sources.ledger_of()
    seeded.seeded = True
    for report in (private(sources.bare_ledger()), private(seeded), RunReport()):
        text = " ".join(sentence.text for sentence in summary.risk(report))
        assert text.startswith("Nothing is promised") and "at most" not in text


def test_a_row_that_is_no_person_is_told_first():
    """Catches a page that speaks of patients where one row is one of several years of a person."""
    ledger = Ledger()
    ledger.about("one year of one person")
    ledger.begin_stage(1e-5)
    ledger.post("counts", gaussian_event(5.0), sensitivity="1")
    assert "is one row of the table (one row = one year" in summary.risk(private(ledger))[0].text
    assert "is one row" not in " ".join(s.text for s in summary.risk(private(sources.ledger_of())))


def test_measured_numbers_carry_their_interval_and_mark():
    """Catches a number of real records without its interval or without the mark, and a made-up one."""
    evaluation = Evaluation(
        (
            Measure("Disclosure", "membership_auc", 0.523, True, lower=0.501, upper=0.545),
            Measure("Disclosure", "membership_tpr_at_1pct", 0.012, True, lower=0.0, upper=0.03),
            Measure("Disclosure", "copies_excess", None, True),
            Measure("Utility", "auc_mean", 0.81, True, lower=0.79, upper=0.83),
            Measure("Utility", "auc_real_mean", 0.84, True),
        ),
        {"outcome": "death"},
    )
    report = private(sources.ledger_of(), evaluation)
    risk, trust = summary.risk(report), summary.trust(report)
    membership = next(s for s in risk if "0.523 (0.501 to 0.545)" in s.text)
    assert membership.internal
    rate = next(s for s in risk if "0.012 (0.000 to 0.030)" in s.text)
    assert rate.internal and "the guarantee allows any attack 0.0" in rate.text
    assert not any("copy" in sentence.text for sentence in risk)
    prediction = trust[0]
    assert prediction.internal and "predict death" in prediction.text
    assert "0.810 (0.790 to 0.830)" in prediction.text and "they reach 0.840" in prediction.text


def test_no_numbers_are_said_to_be_absent():
    """Catches a page for release that is silent about what it does not show."""
    text = " ".join(sentence.text for sentence in summary.trust(RunReport()))
    assert "no number on how useful" in text


def test_declared_studies_are_told_first_and_only_as_far_as_they_may():
    """Catches a summary that is silent about what can be quoted, or that lets it be where it cannot."""
    report = RunReport(sources.ledger_of(), sources.DELTA, studies=(sources.study_of(),))
    first, second, last = summary.trust(report)
    assert "(mortality)" in first.text and "can be quoted" in first.text and not first.internal
    assert "no number on how useful" in second.text and "whatever else matters" in last.text
    assert [v.code for v in summary.boxes(report.released())[1].verdicts] == ["declared_effects"]
    void = RunReport(sources.bare_ledger(), sources.DELTA, studies=(sources.study_of(),))
    first, _, last = summary.trust(void)
    assert "NOT PRIVATE" in first.text and "quoted" not in first.text and first.internal
    assert "whatever matters" in last.text and summary.boxes(void)[1].verdicts[0].internal
    assert summary.boxes(void.released())[1].verdicts == ()


def test_the_summary_counts_the_signs_of_the_private_estimates():
    """Catches a count over the synthetic table's fit under the name of the declared study."""
    detail = sources.compared_study(sources.study_of(), sources.Numbers())
    signs = [row.declared.same_sign for row in detail.data.rows if row.declared]
    told = summary.trust(RunReport(evaluation=Evaluation((), {}, (detail,))))[0]
    assert (
        f"declared study mortality have {sum(signs)} of {len(signs)} effects" in told.text and told.internal
    )
