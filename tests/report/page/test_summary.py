"""What is said first: each sentence follows from its numbers, and says so if they are internal."""

from __future__ import annotations

from dataclasses import replace

import pytest
import report_sources as sources

from dpsynth.attacks.attempt import Attempt
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.results import Evaluation, Findings, Measure
from dpsynth.privacy import Ledger, gaussian_event
from dpsynth.report import privacy, quality
from dpsynth.report.blocks import Facts, Paragraph, Section, Sentence
from dpsynth.report.page import render
from dpsynth.report.run_report import RunReport

pytestmark = pytest.mark.usefixtures("undrawn")


def private(ledger: Ledger, evaluation: Evaluation | None = None) -> RunReport:
    return RunReport(ledger, sources.DELTA, evaluation=evaluation)


def said(section: Section | None) -> list[Sentence]:
    """Sentences of a section that stand in paragraphs and facts."""
    assert section is not None
    paragraphs = [s for block in section.blocks if isinstance(block, Paragraph) for s in block.sentences]
    facts = [s for block in section.blocks if isinstance(block, Facts) for _, s in block.items]
    return [*facts, *paragraphs]


def text_of(section: Section | None) -> str:
    return " ".join(sentence.text for sentence in said(section))


def test_bounds_are_those_of_the_profile_rounded_up():
    """Catches a bound that is smaller on the page than it is, or another number in its place."""
    ledger = sources.ledger_of()
    shown = privacy.guarantee_section(private(ledger))
    text, profile = text_of(shown), ledger.profile()
    for before, bound in (
        ("likely, at most ", profile.attack_accuracy()),
        ("the probability is at most ", float(profile.tpr(0.1))),
        ("It names at most ", float(profile.tpr(0.01))),
    ):
        told = float(text.split(before)[1].split()[0])
        assert 100 * bound <= told < 100 * bound + 0.2, before
    assert "plus at most 1 in 100,000." in text
    assert not any(sentence.internal for sentence in said(shown))


def test_replace_one_is_told_as_such():
    """Catches a sentence about taking part where the guarantee is about another's record in its place."""
    ledger = Ledger()
    ledger.post("release", gaussian_event(4.0), sensitivity="1", adjacency="replace-one")
    text = text_of(privacy.guarantee_section(private(ledger)))
    assert "with another one in its place" in text and "which of two rows" in text and "whether" not in text


def test_a_bound_that_bounds_nothing_is_told_as_such():
    """Catches "at most inf times" and "at most 100 of 100", which tell a patient nothing."""
    ledger = Ledger()
    ledger.post("release", gaussian_event(0.02), sensitivity="1")
    text = text_of(privacy.guarantee_section(private(ledger)))
    assert " inf " not in text and "100 of 100" not in text and "100 %" not in text
    assert "every guess may be correct" in text and "more than a million times" in text
    assert privacy.bars(private(ledger))[0].severity == "bad"


def test_nothing_is_promised_without_a_guarantee():
    """Catches words of comfort about a table without noise, with seeded noise, or of unknown origin."""
    seeded = sources.ledger_of()
    seeded.seeded = True
    for report in (private(sources.bare_ledger()), private(seeded), RunReport()):
        text = text_of(privacy.guarantee_section(report))
        assert text.startswith("Nothing is guaranteed") and "at most" not in text
        line = privacy.bars(report)[0]
        assert line.severity != "good" and "guaranteed for" not in line.text


def test_a_row_that_is_no_person_is_told_first():
    """Catches a page that speaks of patients where one row is one of several years of a person."""
    ledger = Ledger()
    ledger.about("one year of one person")
    ledger.begin_stage(1e-5)
    ledger.post("counts", gaussian_event(5.0), sensitivity="1")
    first, *rest = said(privacy.guarantee_section(private(ledger)))
    assert "One row is one year of one person." in first.text
    assert not any("patient" in sentence.text for sentence in rest)


def test_privacy_and_quality_have_a_bar_each():
    """Catches a verdict without guarantee, attacks or quality, and one that speaks for the other."""
    report = sources.full_report(2, hostile=False)[0]
    risk, trust = privacy.bars(report)
    assert risk.text.startswith("Privacy: guaranteed for each row: ε = ") and risk.internal
    assert trust.text.startswith("Quality: ") and "caution" in trust.text
    released, _ = privacy.bars(report.released())
    assert not released.internal and "memorisation" not in released.text
    first, second = privacy.bars(private(sources.ledger_of()))
    assert (first.severity, second.severity, second.text) == ("good", "open", "Quality: not measured.")


def test_five_cautions_are_no_green_bar():
    """Catches "Quality: 5 caution" under the colour of the guarantee, and a quality that colours privacy."""
    weak = (
        Measure("g", "association_lost", 0.6, True),
        Measure("g", "association_lost_baseline", 0.1, True),
        Measure("g", "nn_accuracy_train", 0.5, True, lower=0.47, upper=0.53),
    )
    risk, trust = privacy.bars(private(sources.ledger_of(), Evaluation(weak)))
    assert (risk.severity, trust.severity) == ("good", "caution")
    assert trust.text == "Quality: 1 caution, 1 good." and trust.mark == "! Caution"
    page = render(private(sources.ledger_of(), Evaluation(weak)), "internal")
    assert (
        'id="verdict" class="verdict good"' in page and 'id="quality-verdict" class="verdict caution"' in page
    )
    # what nobody can say is no caution: it counts if there is nothing else
    open_ones = Evaluation((), {"outcome": "stage", "effects": []})
    assert privacy.bars(private(sources.ledger_of(), open_ones))[1].severity == "open"
    both = privacy.bars(private(sources.ledger_of(), Evaluation(weak, {"outcome": "stage", "effects": []})))[
        1
    ]
    assert both.severity == "caution" and both.text.endswith("1 caution, 1 without a verdict, 1 good.")


def test_a_result_above_its_bound_is_not_called_good():
    """Catches "Good: no attack passed" beside .12 of at most .09, which chance explains."""
    made_up = Attempt("audit: counts", "tv", Estimate(0.12, 0.04, 0.20), 0.09, internal=False)
    for attempt, line in (
        (made_up, "1 of 1 test of the noise code on made-up records"),
        (replace(made_up, internal=True), "1 of 1 attack"),
    ):
        report = replace(private(sources.ledger_of()), attempts=(attempt,))
        page = render(report, "internal")
        said = f"{line} is above its bound, by no more than chance explains."
        assert privacy.bars(report)[0].text.endswith(said)
        (found,) = [v for v in report.findings if v.code.startswith("bounds_")]
        assert (found.code, found.severity) == ("bounds_open", "open")
        assert "an interval that holds for all attacks together" in page.split('id="attempts"')[1]
    below = replace(private(sources.ledger_of()), attempts=(replace(made_up, proved=0.13),))
    assert [v.severity for v in below.findings if v.code == "bounds_held"] == ["good"]
    assert "chance" not in privacy.bars(below)[0].text


def test_many_attacks_share_one_error():
    """Catches one of forty results that passes its bound by its own interval, as one of forty does."""
    just = Attempt("audit: counts", "tv", Estimate(0.13, 0.10, 0.16), 0.09, internal=False)
    others = [replace(just, attack=f"other {k}", found=Estimate(0.0, 0.0, 0.1)) for k in range(39)]
    report = replace(private(sources.ledger_of()), attempts=(just, *others))
    assert not [v for v in report.findings if v.severity == "bad"]
    far = replace(just, found=Estimate(0.5, 0.45, 0.55))
    report = replace(report, attempts=(far, *others))
    assert [v.code for v in report.findings if v.severity == "bad"] == ["bound_passed"]


def test_attacks_on_fewer_than_30_records_are_no_verdict():
    """Catches an attack on 20 real records that is called held or passed. Simulated records are many."""
    real = Attempt("membership", "advantage", Estimate(0.05, 0.0, 0.1), 0.3, one_table=True)
    sizes = Evaluation(tuple(Measure("g", f"{t}_records", 20, True) for t in ("synthetic", "train", "test")))
    for attempt, severity in ((real, "open"), (replace(real, internal=False), "good")):
        report = replace(private(sources.ledger_of(), sizes), attempts=(attempt,))
        assert [v.severity for v in report.findings if v.code == "bounds_held"] == [severity]


def test_limits_of_summed_stages_are_called_loose():
    """Catches limits four times too high without a word, or that word where there is one stage."""
    one, two = Ledger(), Ledger()
    one.post("counts", gaussian_event(5.0), sensitivity="1")
    for name in ("number of records", "counts"):
        two.begin_stage(1e-6)
        two.post(name, gaussian_event(5.0), sensitivity="1")
    for ledger, loose in ((one, False), (two, True)):
        for shown in (
            privacy.guarantee_section(private(ledger)),
            privacy.ledger_section(private(ledger)),
        ):
            assert ("n_public" in text_of(shown)) == ("2 stages were added" in text_of(shown)) == loose


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
    signs = quality.closeness_section(RunReport(evaluation=evaluation)).blocks[1].items
    assert [sentence.internal for sentence in signs] == [True, True]
    assert "0.523 (0.501 to 0.545)" in signs[0].text and "0.012 (0.000 to 0.030)" in signs[1].text
    prediction = said(quality.uses_section(report))[0]
    assert prediction.internal and "learn death" in prediction.text
    assert "0.810 (0.790 to 0.830)" in prediction.text and "they reach 0.840" in prediction.text


def test_no_numbers_are_said_to_be_absent():
    """Catches a page for release that is silent about what it does not show."""
    assert "shows no such number" in text_of(quality.uses_section(RunReport()))


def test_a_number_that_is_not_there_has_its_reason():
    """Catches two events of which none was drawn for the test, and a page that says no more than that."""
    why = "AUC, mean of 3 models: every test record has the same ae: not defined"
    measured = Evaluation((Measure("Utility: predicting ae", "auc_mean", None, True, why),))
    (said, *_), *_ = (
        block.sentences for block in quality.uses_section(RunReport(evaluation=measured)).blocks
    )
    assert said.internal and said.text == (
        "Usefulness could not be measured (every test record has the same ae: not defined)."
    )


def test_pre_specified_regressions_are_told_first_and_only_as_far_as_they_may():
    """Catches a page that is silent about what can be quoted, or that lets it be where it cannot."""
    report = RunReport(sources.ledger_of(), sources.DELTA, studies=(sources.study_of(),))
    (first,) = said(quality.uses_section(report))
    assert "(mortality)" in first.text and "can be quoted" in first.text and not first.internal
    assert "declared_effects" in [v.code for v in report.released().findings]
    void = RunReport(sources.bare_ledger(), sources.DELTA, studies=(sources.study_of(),))
    (first,) = said(quality.uses_section(void))
    assert "NOT PRIVATE" in first.text and "quoted" not in first.text and first.internal
    assert all(v.internal for v in void.findings if v.code == "declared_effects")
    assert "declared_effects" not in [v.code for v in void.released().findings]


def test_the_page_counts_the_signs_of_the_private_estimates():
    """Catches a count over the synthetic table's fit under the name of the pre-specified regression."""
    found = Findings()
    sources.compared_study(found, sources.study_of(), sources.Numbers())
    private = (row for row in found.details["effects"] if row["side"] == "declared")
    signs = [row["same_sign"] for row in private if row["estimate"] is not None]
    evaluation = Evaluation((), {}, found.details)
    told = said(quality.replication_section(RunReport(evaluation=evaluation)))[0]
    assert f"regression mortality have {sum(signs)} of {len(signs)} effects" in told.text and told.internal


def test_the_worst_findings_come_first_and_none_is_lost():
    """Catches a bad finding behind a fold while a good one is seen, and one that is nowhere."""
    report = sources.full_report(hostile=False)[0]
    found = [v for v in report.findings if v.about == "trust"]
    seen, more = (
        quality.uses_section(report).blocks[-1].items,
        quality.findings_section(report).blocks[0].items,
    )
    assert [item.title for item in (*seen, *more)] == [verdict.headline for verdict in found]
    order = ["bad", "caution", "good"]
    assert more and order.index(seen[-1].kind) <= order.index(more[0].kind)
