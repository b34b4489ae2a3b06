"""The rules: what must be caught is caught, what chance explains is not, and findings know their basis."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import report_sources as sources
from plain_words import complaints

from dpsynth.attacks.attempt import Attempt
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.privacy import gaussian_event
from dpsynth.privacy.guarantee import Guarantee
from dpsynth.report.page import render
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts import rules, utility
from dpsynth.report.verdicts.rules import RULES, judge, judge_attempts, judge_guarantee, judge_studies
from dpsynth.studies.study import Estimates

#: severities in the order of the page
GRADES = ("good", "caution", "bad", "open")


def test_every_rule_is_stated_on_the_page_of_rules():
    """Catches a verdict whose rule no reader can look up, and a rule on the page that is gone.

    Its severities are those of the page as well.
    """
    said: dict[str, set[str]] = {}
    for rule in (*RULES, *rules.GUARANTEE, *rules.ATTEMPTS, *utility.STUDIES):
        grades = {grade for grade in GRADES if getattr(rule, grade) is not None}
        said.setdefault(rule.code, set()).update(grades)
    page = (Path(__file__).parents[3] / "docs/reference/verdicts.md").read_text()
    lines = re.findall(r"^\| ?`(\w+)` ?\|(.*)\|(.*)\|(.*)\|(.*)\|$", page, re.MULTILINE)
    stated = {
        code: {g for g, cell in zip(GRADES, cells, strict=True) if cell.strip()} for code, *cells in lines
    }
    assert stated == said


def test_lines_on_one_matter_stand_together():
    """Catches a line of the table that is parted from the others on its matter, so that two of them speak."""
    for table in (RULES, rules.GUARANTEE, rules.ATTEMPTS, utility.STUDIES):
        readers = [reader for reader, _ in groupby(table, key=lambda rule: rule.of)]
        assert len(readers) == len(set(readers))


def of(*entries: tuple, details: Mapping[str, Any] = MappingProxyType({})) -> dict[str, str]:
    """Codes and severities found for measures given as (name, value[, lower, upper[, internal]]).

    Every sentence that a rule says is checked for plain English on the way.
    """
    measures = []
    for name, value, *rest in entries:
        lower, upper = rest[:2] if len(rest) >= 2 else (None, None)
        internal = rest[2] if len(rest) > 2 else True
        measures.append(Measure("g", name, value, internal, "", lower, upper))
    found = judge(Evaluation(tuple(measures), {}, details))
    assert [one for v in found for one in complaints(v.sentence) if "on average" not in one] == []
    return {v.code: v.severity for v in found}


def beyond_chance(*signs: tuple, p: float = 0.0005) -> list[tuple]:
    """Signs of memorisation, with the p-value of all together and of each."""
    return [("memory_p", p), *signs, *((f"memory_p[{name}]", p) for name, *_ in signs)]


BRIER = (("positive_rate_test", 0.4), ("brier_real_mean", 0.024, 0.014, 0.037))
SIZES = tuple((f"{name}_records", 1000) for name in ("synthetic", "train", "test"))
CLOSE, FAR_OFF = ("nn_accuracy_train", 0.005, 0.0, 0.02), ("nn_accuracy_train", 0.47, 0.44, 0.5)
REAL_AUC, NINE = ("auc_real_mean", 0.82, 0.8, 0.84), ("auc_real_mean", 0.9, 0.85, 0.95)
ATTACK = beyond_chance(("membership_auc", 0.8, 0.75, 0.85))
NEARER = beyond_chance(("dcr_closer_to_train", 0.57, 0.53, 0.61))
SIGNED = (("memory_p", 0.0005), ("memory_p[membership_tpr_at_1pct]", 0.0005))
ORDER = (("auc_mean", 0.8, 0.76, 0.84), ("auc_real_mean", 0.99, 0.98, 0.995), ("positive_rate_test", 0.4))


def brier(value: tuple, difference: tuple) -> tuple:
    return *BRIER, ("brier_mean", *value), ("brier_difference_mean", *difference)


def copied(share: float, *coincidence: float) -> list[tuple]:
    explained = [("copies_expected_share", *coincidence)] if coincidence else []
    return [("copies_train_share", share, share * 0.9, share + 0.01), *explained]


#: what a table of the rules would get wrong: measures, and what is said of them
CASES: dict[str, list[tuple[Sequence[tuple], dict[str, str]]]] = {
    "a bootstrap of the training records passes": [
        (beyond_chance(sign), {"memorises": "bad"})
        for sign in (
            ("copies_excess", 0.4, 0.3, 0.5),
            ("membership_auc", 0.7, 0.65, 0.75),
            ("membership_auc_calibrated", 0.7, 0.65, 0.75),
            ("dcr_closer_to_train", 0.7, 0.65, 0.75),
            ("membership_tpr_at_1pct", 0.057, 0.043, 0.07),
            ("lone_values_train[time]", 0.97, 0.93, 1.0),
        )
    ],
    "a trace is called a proof": [
        (beyond_chance(sign), {"memorises": "caution"})
        for sign in (
            ("copies_excess", 0.005, 0.001, 0.009),
            ("membership_auc", 0.56, 0.54, 0.58),
            ("membership_tpr_at_1pct", 0.02, 0.014, 0.028),
            ("lone_values_train[time]", 0.56, 0.52, 0.6),
        )
    ],
    # the table of 15,524 rows that opened red by one of many intervals of 95 %, .526 to .884
    "an interval of one sign is an alarm": [
        case
        for sign in (
            ("copies_excess", 0.4, 0.3, 0.5),
            ("membership_auc", 0.7, 0.65, 0.75),
            ("lone_values_train[time]", 0.705, 0.526, 0.884),
            ("privacy_loss", 0.2, 0.1, 0.3),
        )
        for case in ((beyond_chance(sign, p=0.006), {"no_memory_found": "good"}), ([sign], {}))
    ],
    # a rate at 1 % needs 100 held-out records
    "a sign without a size is no alarm": [
        (SIGNED, {"memorises": "caution"}),
        ((*SIGNED, ("membership_tpr_at_1pct", None)), {"memorises": "caution"}),
    ],
    "a copy opens amber because new records equal training ones too": [
        ([*NEARER, ("matched_train", 1.0), ("matched_test", 0.7)], {"memorises": "bad"}),
        ([*NEARER, ("matched_train", 1.0), ("matched_test", 1.0)], {"memorises": "caution"}),
    ],
    "memory is seen, or ruled out, by records that cannot tell": [
        ([*ATTACK, ("nn_train_test_p", 0.005)], {"other_people": "caution"}),
        ([*ATTACK, ("nn_train_test_p", 0.4)], {"memorises": "bad"}),
        (
            [*beyond_chance(("copies_excess", 0.6, 0.5, 0.7)), ("nn_train_test_p", 0.005)],
            {"memorises": "bad"},
        ),
        ([("memory_p", 0.5), ("copies_expected_share", 1.0, 0.95, 1.0)], {"no_baseline": "open"}),
        ([("memory_p", 0.5), ("copies_expected_share", 0.1, 0.05, 0.2)], {"no_memory_found": "good"}),
    ],
    "silence about copies without held-out records, or an alarm by chance": [
        ([CLOSE, ("nn_copies_p", 0.005)], {"too_close": "caution", "resembles": "good"}),
        ([CLOSE, ("nn_copies_p", 0.01)], {"resembles": "good"}),
        ([FAR_OFF, ("nn_copies_p", 0.005)], {"resembles": "good"}),
        # held-out records are the better control
        (
            [CLOSE, ("nn_copies_p", 0.005), ("memory_p", 0.5)],
            {"no_memory_found": "good", "resembles": "good"},
        ),
        ([FAR_OFF], {"resembles": "good"}),
        (copied(0.9), {"copies": "open"}),
        (copied(0.9, 0.5, 0.4, 0.6), {"copies": "open"}),
        # as many as coincidence gives among the training records themselves
        (copied(0.9, 0.9, 0.82, 0.95), {}),
        (copied(0.0), {}),
    ],
    "independent columns pass, or a hard outcome is blamed on the table": [
        ([("auc_mean", 0.80, 0.78, 0.82), REAL_AUC], {"useful": "good"}),
        ([("auc_mean", 0.75, 0.73, 0.77), REAL_AUC], {"weaker": "caution"}),
        ([("auc_mean", 0.60, 0.58, 0.62), REAL_AUC], {"useless": "bad"}),
        ([("auc_mean", 0.53, 0.49, 0.57), REAL_AUC], {"useless": "bad"}),
        ([("auc_mean", 0.51), ("auc_real_mean", 0.82)], {"useless": "bad"}),
        ([("auc_mean", 0.52, 0.4, 0.6), ("auc_real_mean", 0.53, 0.4, 0.6)], {"unpredictable": "open"}),
        ([("r2_mean", 0.01, -0.02, 0.04), ("r2_real_mean", 0.4, 0.3, 0.5)], {"useless": "bad"}),
        ([("r2_mean", 0.38, 0.3, 0.45), ("r2_real_mean", 0.4, 0.3, 0.5)], {"useful": "good"}),
    ],
    "one wrong coefficient happens to order records and is praised": [
        ([*ORDER, ("brier_mean", 0.245, 0.225, 0.265)], {"useless": "bad"}),
        ([*ORDER, ("brier_mean", 0.15, 0.13, 0.17)], {"weaker": "caution"}),
    ],
    "1,000 held-out records of which 20 have the event are enough": [
        ([("auc_mean", 0.9, 0.85, 0.95), NINE, ("positive_rate_test", rate), *SIZES], {"useful": severity})
        for rate, severity in ((0.02, "open"), (0.98, "open"), (0.07, "good"))
    ],
    "few records are called useless, useful or alike": [
        ([("auc_mean", 0.8, 0.49, 0.97), ("auc_real_mean", 0.9, 0.6, 0.99)], {"uncertain": "open"}),
        (
            [("auc_mean", 0.86), ("auc_real_mean", 0.9), ("auc_difference_mean", -0.04, -0.2, 0.1)],
            {"uncertain": "open"},
        ),
        ([("nn_accuracy_train", 0.92, 0.45, 0.99)], {"uncertain": "open"}),
        ([("synthetic_records", 500), ("train_records", 20)], {"too_few": "open"}),
        ([("synthetic_records", 500), ("train_records", 200)], {}),
    ],
    "a verdict where the outcome has one class": [
        ([("auc_mean", None), ("auc_real_mean", None)], {}),
        ([("auc_mean", 0.8, 0.7, 0.9)], {}),
    ],
    "a Brier score of .120 beside .024 passes, or one that chance makes does not": [
        (brier((0.120, 0.09, 0.15), (0.096, 0.06, 0.13)), {"probabilities_off": "bad"}),
        (brier((0.045, 0.027, 0.063), (0.020, 0.010, 0.031)), {"probabilities_off": "caution"}),
        (brier((0.029, 0.014, 0.045), (0.004, -0.008, 0.016)), {"probabilities_kept": "good"}),
        (brier((0.045, 0.010, 0.090), (0.020, -0.005, 0.060)), {"uncertain": "open"}),
        (brier((0.045, None, None), (0.020, None, None)), {"uncertain": "open"}),
        # a sum over ten categories, which the base rate of the last one does not bound
        ((*brier((0.9, 0.8, 1.0), (0.2, 0.1, 0.3)), ("accuracy_mean", 0.5)), {}),
    ],
    "a rare outcome is called a lost one": [
        ([("positive_rate_synthetic", 0.0), ("outcome_constant_synthetic", 0)], {}),
        ([("positive_rate_synthetic", 0.01), ("mode_collapse", 0), ("outcome_constant_synthetic", 0)], {}),
    ],
    "columns that are right alone pass without their associations": [
        ([("association_lost", lost), ("association_lost_baseline", chance)], found)
        for lost, chance, found in (
            (0.95, 0.1, {"associations_lost": "bad"}),
            (0.6, 0.1, {"associations_weak": "caution"}),
            (0.2, 0.1, {}),
            (0.95, 0.7, {}),  # chance alone would lose nearly as much
        )
    ],
    "strangers pass because one of several classifiers is blind": [
        ([("nn_accuracy_train", 0.52, 0.49, 0.55)], {"resembles": "good"}),
        ([("nn_accuracy_train", 0.75, 0.72, 0.78)], {"distinguishable": "caution"}),
        (
            [("nn_accuracy_train", 0.5), ("discriminator_auc_forest", 0.95, 0.9, 1.0)],
            {"distinguishable": "bad"},
        ),
        (
            [("discriminator_auc_logistic", 0.5, 0.4, 0.6), ("discriminator_auc_forest", 0.8, 0.7, 0.9)],
            {"distinguishable": "caution"},
        ),
        ([("nn_accuracy_train", 0.75, 0.6, 0.9)], {"distinguishable": "caution"}),
    ],
}


@pytest.mark.parametrize("fault", CASES)
def test_what_the_rules_say_of_measures(fault):
    """Catches the fault that each key of CASES names."""
    for entries, found in CASES[fault]:
        assert of(*entries) == found, entries


@pytest.mark.parametrize(
    ("signs", "beside", "severity"),
    [
        ([("dcr_closer_to_train", 0.523, 0.51, 0.535), ("membership_auc", 0.511, 0.503, 0.519)], [], "good"),
        ([("copies_excess", 0.02, 0.005, 0.035)], [("copies_train_share", 0.33, 0.32, 0.34)], "good"),
        ([("copies_excess", 0.02, 0.015, 0.025)], [("copies_train_share", 0.03, 0.02, 0.04)], "bad"),
        ([("membership_auc", 0.511), ("lone_values_train[time]", 0.54, 0.51, 0.57)], [], "caution"),
        ([("membership_auc", 0.511)], [("matched_train", 1.0), ("matched_test", 0.7)], "bad"),
    ],
)
def test_a_trace_is_no_alarm(signs, beside, severity):
    """Catches the page of a sound table that warned of memorisation by a share of records of .523.

    A model with a guarantee moves a little towards its records. With 20,000 of them this is beyond chance.
    """
    entries = [*beyond_chance(*signs), *beside]
    (verdict,) = judge(
        Evaluation(tuple(Measure("g", n, value, True, "", *ends) for n, value, *ends in entries))
    )
    assert verdict.severity == severity and "1 in 200 tables" in verdict.sentence
    assert ("trace" in verdict.sentence) == (severity == "good") and complaints(verdict.sentence) == []


def test_held_out_records_that_trained_are_no_control():
    """Catches praise by held-out records that are the training ones, and "more, by a share of -0.005"."""
    sign = beyond_chance(("copies_excess", -0.005, -0.016, 0.007))
    copies = (("copies_train_share", 0.3, 0.29, 0.31), ("copies_expected_share", 1.0, 0.99, 1.0))
    assert of(*sign, *copies) == {"no_baseline": "open"}
    measures = (*sign, copies[0], ("copies_expected_share", 0.3, 0.29, 0.31))
    (found,) = judge(Evaluation(tuple(Measure("g", n, v, True, "", *ends) for n, v, *ends in measures)))
    assert (found.code, found.severity) == ("no_memory_found", "good") and "-0.0" not in found.sentence


def test_memorisation_is_told_with_what_the_guarantee_allows():
    """Catches a suspicion without a next step, or comfort where no guarantee or not all of it holds."""
    entries = beyond_chance(("membership_auc", 0.56, 0.54, 0.58))
    measures = tuple(Measure("g", name, value, True, "", *ends) for name, value, *ends in entries)

    def said(guarantee):
        (verdict,) = judge(Evaluation(measures), guarantee)
        assert complaints(verdict.sentence) == []
        return verdict.sentence

    private = Guarantee(3.0, 1e-5, 0.25491)
    assert "1 in 200 tables" in said(None) and "guarantee" not in said(None)
    assert "to 0.255 (" in said(private) and "It covers the sharing of the table." in said(private)
    assert said(private).endswith("No attack here surely passes this limit.")
    assert said(replace(private, seeded=True)) == said(None)
    but = said(replace(private, excluded=("bounds that were read off the data",)))
    assert "bounds that were read off" in but and "sharing" not in but


@pytest.mark.parametrize(
    ("advantage", "tv", "reveals"),
    [
        (("membership_auc", 0.9, 0.85, 0.95), 0.2, True),
        (("membership_auc", 0.9, 0.85, 0.95), 0.4, False),
        (("copies_advantage", 0.6, 0.55, 0.65), 0.2, True),
        (("copies_advantage", 0.6, 0.45, 0.75), 0.2, False),  # above, but not by an interval for all of them
        (("lone_values_advantage", 0.6, 0.55, 0.65), 0.2, True),
        (("lone_values_advantage", 0.6, 0.55, 0.65), 0.28, False),  # an exchange of records is two steps
    ],
)
def test_reveal_needs_an_interval_beyond_the_proved_bound(advantage, tv, reveals):
    """Catches "reveal" said of what the guarantee allows, or of a bound that nobody proved."""
    entries = [*beyond_chance(("dcr_closer_to_train", 0.7, 0.65, 0.75)), advantage]
    measures = tuple(Measure("g", name, value, True, "", *ends) for name, value, *ends in entries)
    (found,) = judge(Evaluation(measures), Guarantee(3.0, 1e-5, tv))
    assert ("reveal" in found.sentence) == ("Share nothing" in found.sentence) == reveals
    assert (advantage[0] in found.rests_on) == reveals and found.severity == "bad"
    (unknown,) = judge(Evaluation(measures))
    assert "reveal" not in unknown.sentence


FEW = (
    ("nn_accuracy_train", 0.95, 0.9, 1.0),
    ("auc_mean", 0.9),
    ("auc_real_mean", 0.9),
    *beyond_chance(("copies_excess", 0.5, 0.4, 0.6)),
)


@pytest.mark.parametrize("table", ["synthetic", "train", "test"])
@pytest.mark.parametrize("size", [29, 30])
def test_a_finding_on_fewer_than_30_is_no_verdict(table, size):
    """Catches 29 rows that are called useful, remembered or unlike real ones, and 30 that are not judged."""
    measures = tuple(Measure("g", name, value, True, "", *ends) for name, value, *ends in FEW)
    sizes = tuple(Measure("g", f"{name}_records", 500, True) for name in ("synthetic", "train", "test"))
    sizes = tuple(replace(m, value=size) if m.name == f"{table}_records" else m for m in sizes)
    found = [v for v in judge(Evaluation((*measures, *sizes))) if v.code != "too_few"]
    assert {v.code for v in found} == {"distinguishable", "useful", "memorises"}
    if size < 30:
        assert {v.severity for v in found} == {"open"}
        assert all("rests on 29 records, fewer than 30, and is no verdict" in v.sentence for v in found)
    else:
        assert {v.severity for v in found} == {"bad", "good"}


@pytest.mark.parametrize(
    ("entry", "internal"),
    [
        (("outcome_constant_synthetic", 1, None, None, False), False),
        (("positive_rate_synthetic", 0.0, None, None, False), False),
        (("positive_rate_synthetic", 1.0, None, None, False), False),
        (("mode_collapse", 1), True),
    ],
)
def test_a_lost_outcome_is_found(entry, internal):
    """Catches a collapsed generator, and a finding from synthetic records alone that is kept back."""
    assert of(entry) == {"mode_collapse": "bad"}
    name, value, *rest = entry
    measure = Measure("g", name, value, rest[2] if rest else True)
    assert judge(Evaluation((measure,)))[0].internal is internal


def test_one_outcome_alone_is_no_verdict_where_the_others_are_rare():
    """Catches a table called collapsed because it lacks two events of 20,000, as a fresh one would."""
    reason = "1 if an outcome got lost: no ae got lost. Absent: ae = 'yes' (2 of 9 training records)"
    measures = [
        Measure("g", "outcome_constant_synthetic", 1, False),
        Measure("g", "mode_collapse", 0, True, reason),
    ]
    (verdict,) = judge(Evaluation(tuple(measures)))
    assert (verdict.code, verdict.severity, verdict.internal) == ("mode_collapse", "open", True)
    assert "ae = 'yes' (2 of 9 training records)" in verdict.sentence


def test_rules_that_synthetic_rows_break_more_often_are_named():
    """Catches a rule that is named though real rows break it as often, and real shares on a page to share."""
    entries = (
        ("constraint_violations_synthetic[age < 90]", 0.01, None, None, False),
        ("constraint_violations_train[age < 90]", 0.0, 0.0, 0.02),
        ("suggestion_violations_synthetic[a <= b]", 0.2, None, None, False),
        ("suggestion_violations_train[a <= b]", 0.1, 0.08, 0.12),
        ("suggestion_violations_synthetic[c <= d]", 0.3, None, None, False),
        ("suggestion_violations_train[c <= d]", 0.29, 0.27, 0.31),
    )
    assert of(*entries) == {"violates_constraints": "caution"}
    measures = (Measure("g", name, value, "train" in name, "", *rest[:2]) for name, value, *rest in entries)
    evaluation = Evaluation(tuple(measures))
    (found,) = judge(evaluation)
    said = "200 of 1,000 synthetic rows break a <= b, and 100 of 1,000 real rows. 10 of"
    assert found.internal and said in found.sentence and "c <= d" not in found.sentence
    (shared,) = judge(evaluation.released())
    assert not shared.internal and "300 of 1,000 synthetic rows break c <= d." in shared.sentence
    assert "1,000 real" not in shared.sentence and "real rows may break too" in shared.sentence
    assert of(("constraint_violations_synthetic[a]", 0.0)) == {}


@pytest.mark.parametrize(
    ("agree", "overlap", "severity", "size"),
    [
        (9, 0.6, "good", "good"),
        (9, -0.5, "good", "caution"),
        (10, 0.2, "good", "caution"),
        (6, 0.6, "caution", None),
        (4, 0.6, "bad", None),
    ],
)
def test_effects_are_counted(agree, overlap, severity, size):
    """Catches a study that turned round and is called replicated, and "10 of 10 signs" as a caution."""
    clear = {"estimate": 0.5, "lower": 0.3, "upper": 0.8}
    rows = [{"term": str(i), "real": clear, "same_sign": i < agree, "overlap": overlap} for i in range(10)]
    rows.append({"term": "absent", "real": clear, "same_sign": None, "overlap": None})
    # a sign that chance decides in the real records says nothing about the synthetic ones
    unclear = {"real": clear | {"upper": 1.2}, "same_sign": agree < 7, "overlap": 0.9}
    rows += [{"term": f"?{k}", **unclear} for k in range(20)]
    details = sources.regression_of(rows, model="cox", outcome="death", measure="hazard ratio")
    found, *sizes = judge(Evaluation((), {}, details))
    code = "effects_agree" if severity == "good" else "effects_differ"
    assert (found.code, found.severity) == (code, severity)
    assert f"{agree} of 10 effects clear in real records have" in found.sentence
    assert found.internal and found.sentence.startswith("Only") == (severity != "good")
    assert [v.severity for v in sizes] == ([] if size is None else [size])
    assert all(f"overlap by {overlap:.2f}" in v.sentence for v in sizes)


@pytest.mark.parametrize(
    ("others", "apart", "size"), [(3, -2.14, "caution"), (30, -2.14, "caution"), (9, -0.2, "good")]
)
def test_a_halved_effect_does_not_hide_among_others(others, apart, size):
    """Catches the demo's halved effect called good: its overlap of -2.14 was clipped to 0 first.

    A gap that chance leaves between two samples of one distribution is no other size.
    """
    clear = {"estimate": 0.5, "lower": 0.3, "upper": 0.8}
    rows = [{"term": f"x{i}", "real": clear, "same_sign": True, "overlap": 0.9} for i in range(others)]
    rows += [{"term": "age", "real": clear, "same_sign": True, "overlap": apart}]
    details = sources.regression_of(rows, outcome="death", measure="odds ratio")
    found, sizes = judge(Evaluation((), {}, details))
    assert (found.severity, sizes.severity) == ("good", size)
    assert (
        sizes.sentence.endswith(f"Those of age lie apart ({apart:.2f}).") and complaints(sizes.sentence) == []
    )


@pytest.mark.usefixtures("undrawn")
def test_results_above_their_bound_are_explained():
    """Catches "none beyond chance" beside "4 of 14 lie above the bound": a reader takes one for a mistake."""
    low, high = Estimate(0.3, 0.2, 0.4), Estimate(0.42, 0.32, 0.52)
    tried = [Attempt(f"audit: {k}", "tv", high if k < 4 else low, 0.4, internal=False) for k in range(14)]
    (found,) = judge_attempts(tried)
    what = "tests of the noise code on made-up records"
    said = f"4 of 14 {what} are above their bound, by no more than chance explains"
    assert (found.code, found.severity, found.headline) == ("bounds_open", "open", said)
    assert complaints(found.sentence) == [] and "No " not in found.sentence
    report = RunReport(attempts=tuple(tried))
    page = render(report, "release")
    assert page.count(said) >= 2 and "passed its bound" not in page and "beyond chance" not in page
    (held,) = judge_attempts(tried[4:])
    assert (held.code, held.headline) == (
        "bounds_held",
        "No test of the noise code on made-up records passed its bound",
    )


def test_the_way_in_which_probabilities_are_off_is_told():
    """Catches the wrong direction, a model that is no better trained on real records, and a sure nothing."""
    made = (("brier_mean", 0.12, 0.09, 0.15), ("brier_difference_mean", 0.096, 0.06, 0.13))
    ways = (
        ("calibration_intercept_mean", 0.4, -0.1, 0.9),  # not sure
        ("calibration_intercept_forest", 1.8, 1.2, 2.4),
        ("calibration_intercept_real_forest", 0.1, -0.5, 0.7),
        ("calibration_slope_forest", 0.5, 0.4, 0.6),
        ("calibration_slope_real_forest", 0.4, 0.3, 0.5),  # worse with real records
        ("calibration_slope_boosting", 0.6, 0.5, 0.7),
        ("calibration_slope_real_boosting", 0.9, 0.8, 1.1),
        ("calibration_slope_difference_boosting", -0.3, -0.4, -0.2),
    )
    measures = tuple(
        Measure("g", name, value, True, "", *ends) for name, value, *ends in (*BRIER, *made, *ways)
    )
    (found,) = judge(Evaluation(measures))
    assert (
        "0.120 (0.090 to 0.150), and 0.024" in found.sentence
        and "the base rate gives 0.240" in found.sentence
    )
    assert "Those of forest are too low (calibration intercept 1.800" in found.sentence
    assert found.sentence.count("is ideal") == 1 and found.internal
    assert "calibration_intercept_forest" in found.rests_on
    only = tuple(measure for measure in measures if "intercept_forest" not in measure.name)
    assert "Those of boosting are too extreme (calibration slope 0.600" in judge(Evaluation(only))[0].sentence
    mean = Measure("g", "calibration_slope_mean", 0.7, True, "", 0.6, 0.8)
    (found,) = judge(Evaluation((*measures, mean)))
    assert "On average they are too extreme (calibration slope 0.700" in found.sentence
    assert found.sentence.count("is ideal") == 1


def study(rows=(), **facts):
    details = sources.regression_of(rows, outcome="death", measure="odds ratio", **facts)
    return of(details=details), Evaluation((), {}, details)


@pytest.mark.parametrize(
    ("problems", "severity"),
    [
        ({"real": "no event is observed"}, "open"),
        ({"real": "x", "synthetic": "y"}, "open"),
        ({"synthetic": "the outcome is the same in every record used"}, "bad"),
        ({}, "open"),
    ],
)
def test_a_study_that_could_not_be_compared_is_told(problems, severity):
    """Catches silence where a study could not be fitted, and synthetic records blamed for a real cause."""
    rows = [{"term": "age", "real": None, "synthetic": None, "same_sign": None, "overlap": None}]
    found, evaluation = study(rows, **{f"problem_{table}": why for table, why in problems.items()})
    assert found == {"effects_unknown": severity}
    (verdict,) = judge(evaluation)
    assert "could not be compared" in verdict.sentence and verdict.internal
    for table, problem in problems.items():
        assert f"in the {table} records, {problem}" in verdict.sentence


def test_no_clear_effect_is_told():
    """Catches silence where all the intervals of the real study hold no effect."""
    effect = {"estimate": 1.1, "lower": 0.8, "upper": 1.5}
    rows = [{"term": "age", "real": effect, "synthetic": effect, "same_sign": True, "overlap": 1.0}]
    assert study(rows)[0] == {"effects_unclear": "open"}


def test_a_prior_is_told():
    """Catches a replication by ridge regression that passes for one by maximum likelihood."""
    effect = {"estimate": 2.0, "lower": 1.5, "upper": 2.5}
    rows = [{"term": "age", "real": effect, "synthetic": effect, "same_sign": True, "overlap": 1.0}]
    for separated in (False, True):
        verdict, _ = judge(study(rows, separated_real=separated)[1])
        assert ("fitted with a prior distribution" in verdict.sentence) == separated
        assert "1 effects" not in verdict.sentence


def test_no_study_is_told():
    """Catches silence where the outcome has no usual study; and words where there is no outcome at all."""
    settings = {"outcome": "stage", "effects": []}
    assert [v.code for v in judge(Evaluation((), settings))] == ["no_study"]
    assert judge(Evaluation((), {"outcome": None, "effects": []})) == ()
    assert judge(Evaluation((), {"outcome": "stage"})) == ()


CLEAR = {"estimate": 0.5, "lower": 0.3, "upper": 0.8}
OPEN = {"estimate": 1.1, "lower": 0.4, "upper": 3.0}
TURNED = {"estimate": 1.6, "lower": 1.2, "upper": 2.0}


def declared_study(private, overlap=0.6, naive_agrees=False, **data):
    """Ten terms that are clear in real records, the last ones with private effects of the other sign."""
    rows = [
        {
            "term": str(place),
            "real": CLEAR,
            "synthetic": CLEAR,
            "same_sign": naive_agrees,
            "overlap": 0.01,
            "declared": None if side is None else side | {"same_sign": side is CLEAR, "overlap": overlap},
        }
        for place, side in enumerate(private)
    ]
    made = {"study": "mortality", "model": "cox", "outcome": "death", "measure": "hazard ratio"} | data
    return judge(Evaluation((), {}, sources.regression_of(rows, **made)))


@pytest.mark.parametrize(
    ("private", "overlap", "severity", "size"),
    [
        ([CLEAR] * 9 + [OPEN], 0.6, "good", "good"),
        ([CLEAR] * 9 + [OPEN], 0.1, "good", "caution"),
        ([CLEAR] * 6 + [TURNED] * 4, 0.6, "caution", None),
        ([CLEAR] * 4 + [OPEN] * 6, 0.6, "caution", None),
        ([CLEAR] * 4 + [OPEN] * 5 + [TURNED], 0.6, "bad", None),
    ],
)
def test_a_declared_study_is_judged_by_its_private_estimates(private, overlap, severity, size):
    """Catches a verdict about the naive fit, and an open interval that is called a wrong answer."""
    found, *sizes = declared_study(private, overlap)
    assert found.severity == severity and found.internal and "pre-specified as mortality" in found.sentence
    same = sum(side is CLEAR for side in private)
    said = f"{same} of 10 effects clear in real records have the same sign in its private estimates"
    assert said in found.sentence and "synthetic" not in found.sentence
    assert [v.severity for v in sizes] == ([] if size is None else [size])
    assert all(f"overlap by {overlap:.2f}" in v.sentence and "mortality" in v.sentence for v in sizes)
    left_open = severity == "caution" and same == 4
    assert ("the interval leaves it open" in found.sentence) == left_open
    # whatever the synthetic table says
    assert declared_study(private, overlap, naive_agrees=True) == (found, *sizes)


def test_a_declared_study_that_cannot_be_compared():
    """Catches a synthetic table that is blamed, or a comparison claimed, where no term is told by both."""
    problems = {"problem_real": "no event is observed", "problem_synthetic": "nothing"}
    (found,) = declared_study([None] * 3, **problems)
    assert (found.code, found.severity) == ("effects_unknown", "open")
    assert "no event is observed" in found.sentence and "synthetic" not in found.sentence
    (found,) = declared_study([None] * 3, problem_synthetic="nothing")
    assert found.severity == "open" and "no term can be estimated from both sides" in found.sentence


def released_study(values, errors, kind="logistic", widening=1.4):
    names = tuple(f"x{place}" for place in range(len(values)))
    told = Estimates(
        "mortality", kind, "f", "death", names, np.array(values), np.diag(np.square(errors)), widening
    )
    return judge_studies((told,), internal=False)[0]


@pytest.mark.parametrize("kind", ["logistic", "linear", "cox"])
@pytest.mark.parametrize(
    ("values", "clear", "severity"),
    [([0.21, -0.21, 0.1], 2, "good"), ([0.19, -0.19, 0.0], 0, "open"), ([0.9, 0.1, 0.1], 1, "good")],
)
def test_clear_effects_are_counted_from_released_numbers(kind, values, clear, severity):
    """Catches a reference of 1 for differences, or one of 0 for ratios, and praise where nothing is clear."""
    found = released_study(values, [0.1] * 3, kind)
    assert found.severity == severity and not found.internal and found.rests_on == ("declared[mortality]",)
    assert f"{clear} of 3 pre-specified effects of mortality {'is' if clear == 1 else 'are'} clear" in (
        found.sentence
    )
    assert "1.4 times as wide as without noise" in found.sentence


def test_noise_that_doubles_intervals_is_no_success():
    """Catches praise of a study whose noise costs as much as three quarters of its records."""
    assert released_study([0.9], [0.1], widening=1.9).severity == "good"
    found = released_study([0.9], [0.1], widening=2.1)
    assert found.severity == "caution" and "1 of 1 pre-specified effect of" in found.sentence
    assert found.headline == "Noise makes these intervals wide"


@pytest.mark.parametrize(
    ("multiplier", "severity", "words"),
    [
        (0.55, "good", "holds against every attack"),
        (0.45, "bad", "ε is 11.4. An event may be 88,"),  # an attack accuracy of .867 only
        (0.3, "bad", "more than a million times as probable"),
        (0.02, "bad", "more than a million times as probable"),
    ],
)
def test_an_epsilon_above_10_is_bad(multiplier, severity, words):
    """Catches an epsilon of 11 that is praised because guesses are right less than 90 times in 100."""
    ledger = sources.Ledger()
    ledger.post("release", gaussian_event(multiplier), sensitivity="1")
    (found,) = judge_guarantee(ledger.guarantee(sources.DELTA), ledger.profile())
    assert found.severity == severity and words in found.sentence and "inf" not in found.sentence


def test_findings_about_the_guarantee():
    """Catches comfort where there is no guarantee, none is known, it is weak, or leaves something out."""

    def codes(ledger):
        return [v.code for v in judge_guarantee(ledger.guarantee(sources.DELTA), ledger.profile())]

    assert [v.code for v in judge_guarantee(None, None)] == ["no_guarantee"]
    assert codes(sources.bare_ledger()) == ["not_private"]
    ledger = sources.ledger_of()
    assert codes(ledger) == ["guaranteed"]
    ledger.exclude("bounds of age")
    assert codes(ledger) == ["excluded"]  # no praise for a guarantee with a hole
    weak = sources.ledger_of(1)
    weak.post("too much", gaussian_event(0.2), sensitivity="1")
    assert codes(weak) == ["weak_guarantee"]


def test_a_release_rests_on_released_numbers_only():
    """Catches a finding on a release page that could only come from real records."""
    report, _ = sources.full_report()
    evaluation = report.evaluation
    internal = {measure.name: measure.internal for measure in evaluation.measures}
    internal |= {name: frame["confidential"].all() for name, frame in evaluation.details.items()}
    for verdict in judge(report.released().evaluation):
        assert not verdict.internal
        assert not any(internal[name] for name in verdict.rests_on)


def test_columns_that_give_records_away_are_named():
    """Catches an AUC of .99 without a word on where it comes from, and a column that chance names."""

    def sentence(*losses):
        entries = (("nn_accuracy_train", 0.6, 0.55, 0.65), ("discriminator_auc_x", 0.95, 0.9, 1.0), *losses)
        measures = tuple(Measure("g", name, value, True, "", *ends) for name, value, *ends in entries)
        (found,) = judge(Evaluation(measures))
        return found.sentence, set(found.rests_on)

    many = [(f"discriminator_loss[c{k}]", 0.02 * k, 0.01 * k, 0.03 * k) for k in range(1, 6)]
    said, basis = sentence(("discriminator_loss[a [b]]", 0.3, -0.1, 0.7), *many)
    assert said.endswith("c5 (by 0.100), c4 (by 0.080) and c3 (by 0.060).")
    assert "discriminator_loss[c5]" in basis and "discriminator_loss[a [b]]" not in basis
    said, _ = sentence(("discriminator_loss[a [b]]", 0.3, 0.1, 0.5))
    assert said.endswith("lowers the AUC most: a [b] (by 0.300).")
    said, _ = sentence(
        ("discriminator_loss[a]", 0.004, -0.01, 0.02), ("discriminator_loss[b]", 0.002, 0, 0.01)
    )
    assert said.endswith(
        "No single column explains it: shuffling one of them lowers the AUC by at most 0.004."
    )
    assert sentence()[0].endswith("(0.550 to 0.650).")


def test_columns_with_values_of_one_training_record_are_named():
    """Catches a table that repeats its training records' times of admission, and no word on which column."""
    signs = [("lone_values_train[time]", 0.97, 0.93, 1.0), ("lone_values_train[cost]", 0.6, 0.55, 0.65)]
    measures = tuple(
        Measure("g", name, value, True, "", *ends) for name, value, *ends in beyond_chance(*signs)
    )
    (found,) = judge(Evaluation(measures))
    assert "Columns: time (0.970 (0.930 to 1.000)), cost (0.600" in found.sentence
    assert found.about == "risk" and found.internal and "reveal" not in found.sentence
    # held-out records that differ from training ones are no baseline
    (other,) = judge(Evaluation((*measures, Measure("g", "nn_train_test_p", 0.001, True))))
    assert (other.code, other.severity) == ("other_people", "caution")


@pytest.mark.parametrize("columns", [10, 11])
def test_columns_that_give_the_outcome_away_are_named_and_counted(columns):
    """Catches the eleventh column in place of a named one, or left out without a word."""
    told = [Measure("g", f"outcome_auc[c{k}]", 0.99, True, "said: AUC 0.99") for k in range(columns)]
    (verdict,) = (v for v in judge(Evaluation(tuple(told))) if v.code == "given_away")
    named = ", ".join(f"c{k} (AUC 0.99)" for k in range(10))
    assert f"{named}{' and 1 more' * (columns == 11)}. " in verdict.sentence
