"""The summary in plain words: who is covered, what a patient risks, and what an analyst may trust.

Every sentence is generated from numbers. Bounds of the guarantee are rounded against it; measured numbers
come with their intervals. Sentences that state a number of real records say that they are internal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dpsynth.accounting.guarantee import UNIT
from dpsynth.accounting.measures import points_more_probable, right_at_most
from dpsynth.accounting.normal_form import ADD_REMOVE
from dpsynth.accounting.profile import Profile
from dpsynth.evaluation.details import Effects, FinerThanDeclared
from dpsynth.evaluation.records import Evaluation, any_internal
from dpsynth.evaluation.tables import sampled
from dpsynth.report.formats import hundredths, measured, once_in, percent, round_up, shown
from dpsynth.report.page.blocks import Sentence
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts.privacy import judge_attempts, judge_guarantee
from dpsynth.report.verdicts.rules import judge
from dpsynth.report.verdicts.similarity import between_steps
from dpsynth.report.verdicts.utility import judge_studies, judged
from dpsynth.report.verdicts.verdict import Verdict, get, number_of


def covered(report: RunReport) -> tuple[Sentence, ...]:
    """Return who is covered, in sentences; the first one is for the summary. Empty where nothing is known.

    Examples
    --------
    >>> print(covered(RunReport(config={"split": {"method": "independent", "test_fraction": 0.5}}))[0].text)
    About 50 in 100 records of the real table trained the model; nothing was released of the others, which
    were held out.
    """
    trained, held_out = (get(report.measured, name) for name in ("train_records", "test_records"))
    split = report.config.get("split")
    split = split if isinstance(split, Mapping) else {}
    fraction = split.get("test_fraction")
    internal = any(measure is not None and measure.internal for measure in (trained, held_out))
    if trained is not None:
        of = "" if held_out is None else f" of {shown(int(number_of(trained) + number_of(held_out)))}"
        text = f"{shown(trained.value)}{of} real records trained the model"
        if held_out is not None and split:
            text += (
                f"; nothing was released of the other {shown(held_out.value)}, which were held out to test it"
            )
        elif held_out is not None:
            text += f", as far as is known, and the other {shown(held_out.value)} had no part in it"
        first = Sentence(f"{text}.", internal)
    elif isinstance(fraction, int | float):
        first = Sentence(
            f"About {hundredths(1 - fraction)} in 100 records of the real table trained the model; nothing "
            "was released of the others, which were held out."
        )
    else:
        return ()
    return (first, *_more(report, split, measured=internal))


def _more(report: RunReport, split: Mapping[str, object], *, measured: bool) -> list[Sentence]:
    sentences: list[str] = []
    if split.get("method") == "independent":
        sentences.append(
            "Each record was assigned by itself, by a hash of its values and, of equal records, of its "
            "number among them: one record more in the table is at most one more in training."
        )
    elif split.get("method") == "stratified":
        sentences.append(
            "The records were divided in exact numbers and in proportion to the outcome, so that one "
            "record more can move others from one part to the other: the guarantee is about the training "
            "part as it is."
        )
    if report.guarantee is not None and report.guarantee.private:
        sentences.append(
            "The guarantee is for each training record. It is for each person only if nobody has more "
            "than one: several records of one person are covered at a much weaker level."
        )
    if measured:
        sentences.append(
            "The numbers on this page that are marked internal were computed from the training records "
            "and from the held-out ones. No guarantee covers these numbers, for either."
        )
    return [Sentence(text) for text in sentences]


@dataclass(frozen=True)
class Box:
    """One half of the summary."""

    anchor: str
    title: str
    sentences: tuple[Sentence, ...]
    verdicts: tuple[Verdict, ...]


def boxes(report: RunReport) -> tuple[Box, Box]:
    """Return both halves, each with its verdicts, the worst first."""
    order = {"bad": 0, "caution": 1, "good": 2}
    verdicts = [
        *judge_guarantee(report.guarantee, report.profile),
        *judge_attempts(report.attempts),
        *judge_studies(report.studies, internal=bool(report.withheld)),
        *judge(report.measured),
    ]
    verdicts.sort(key=lambda verdict: order[verdict.severity])

    def about(anchor: str) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in verdicts if verdict.about == anchor)

    return (
        Box("risk", "What a patient risks", risk(report), about("risk")),
        Box("trust", "What an analyst may trust", trust(report), about("trust")),
    )


def risk(report: RunReport) -> tuple[Sentence, ...]:
    """What a patient risks, from the ledger; and what attacks that were tried have found."""
    below = Sentence(
        "What this says about singling out, linkability and inference, the three risks of anonymisation, "
        "is told below."
    )
    return (*covered(report)[:1], *_promised(report), *_attacks(report), below)


def _promised(report: RunReport) -> list[Sentence]:
    guarantee, profile = report.guarantee, report.profile
    if guarantee is None or profile is None:
        return [
            Sentence("Nothing is promised to the patients in the training table: no record of how it was "
                     "made is known.")
        ]  # fmt: skip
    if not guarantee.private:
        return [
            Sentence("Nothing is promised to the patients in the training table."),
            Sentence(
                "Treat the synthetic table, and everything beside it, as you would treat their records."
            ),
        ]
    tv, epsilon, delta = guarantee.tv, guarantee.epsilon, guarantee.delta
    added = guarantee.adjacency == ADD_REMOVE
    change = "took part" if added else "is the one in the table"
    pair = "with a patient as without" if added else "with a patient's record as with another's in its place"
    sentences = []
    if guarantee.unit != UNIT:
        sentences.append(f"A patient, in what follows, is one row of the table ({guarantee.unit}).")
    if guarantee.excluded:
        sentences.append(
            f"What follows is promised but for this: {'; '.join(guarantee.excluded)}. What that gives "
            "away is not counted."
        )
    right = right_at_most(profile.attack_accuracy())
    sentences += [
        f"Whoever guesses, from even odds, whether a given patient {change} {right}, even if they know all "
        f"other records; a coin is right 50 times. That is an average: {unluckiest(profile, delta)}.",
        f"{points_more_probable(tv, 'a patient', 'this release', 'the training table').removesuffix('.')} "
        f"(total variation {round_up(tv)}).",
    ]
    if math.isfinite(epsilon):
        many = epsilon > math.log(1e6)
        times = "perhaps more than a million" if many else f"at most {round_up(math.exp(epsilon), 3)}"
        sentences.append(
            f"Any event is {times} times as probable {pair} (ε = {round_up(epsilon)}), plus at most "
            f"{round_up(delta)} (δ)."
        )
    return [Sentence(text) for text in sentences]


def unluckiest(profile: Profile, delta: float) -> str:
    """Say how the accuracy of guesses, which is an average, goes with the belief after one release.

    Examples
    --------
    >>> from dpsynth.accounting import gaussian_event
    >>> print(unluckiest(Profile([gaussian_event(1.6)]), 1e-5))
    after the unluckiest of all releases that could have come out, a guesser may be up to 92.9 % sure, and
    surer only once in 12,900 times or less often
    """
    belief = percent(profile.belief(delta))
    beyond = profile.exceedance(profile.epsilon(delta))
    rarely = f"surer only {once_in(beyond)}" if beyond else "never surer"
    if beyond > 0.1:  # of stages that add up, only a weak bound is known
        rarely = "how rarely surer is not proved"
    sure = "all but certain" if float(belief) >= 100 else f"up to {belief} % sure, and {rarely}"
    return f"after the unluckiest of all releases that could have come out, a guesser may be {sure}"


def _attacks(report: RunReport) -> list[Sentence]:
    allowed = ""
    if report.profile is not None and report.guarantee is not None and report.guarantee.private:
        allowed = f"; the guarantee allows any attack {round_up(float(report.profile.tpr(0.01)), 3)}"
    sentences = (
        (
            "membership_auc",
            "An attack that was tried, by distances, tells training records from held-out ones with an "
            "AUC of {}; 0.5 is a coin.",
        ),
        (
            "membership_tpr_at_1pct",
            "Where it suspects 1 in 100 held-out records wrongly, that attack names a share of "
            f"{{}} of the training records{allowed}.",
        ),
        (
            "copies_excess",
            "The share of synthetic records that copy a training record is {} above the "
            "share that copy a new record by chance; 0 or less is best.",
        ),
        (
            "privacy_loss",
            "Synthetic records are nearer to training records than to new ones by "
            "{} in nearest-neighbour accuracy; 0 or less is best.",
        ),
    )
    known = [(get(report.measured, name), text) for name, text in sentences]
    return [Sentence(text.format(measured(m)), m.internal) for m, text in known if m is not None]


def trust(report: RunReport) -> tuple[Sentence, ...]:
    """What an analyst may trust: prediction, effects and distributions, against real records."""
    evaluation = report.measured
    told_below = _prediction(evaluation) + _effects(evaluation) + _distributions(evaluation)
    told_below += _rounded(evaluation)
    if sampled(evaluation):
        told_below.append(
            Sentence(
                "Some of these numbers come from a random part of the records. The model card below says how "
                "many records, and what that adds to the error.",
                True,
            )
        )
    nothing = Sentence(
        "This page holds no number on how useful the table is: such numbers are measured on real "
        "records, and none of them is shown here."
    )
    matters = "whatever else matters" if report.studies and not report.withheld else "whatever matters"
    repeat = Sentence(f"Repeat {matters} on real records before relying on it.")
    return (*_declared(report), *(told_below or [nothing]), repeat)


def _prediction(evaluation: Evaluation) -> list[Sentence]:
    outcome = evaluation.settings.get("outcome") or "the outcome"
    sentences = []
    for name, real_name, what, best in (
        ("auc_mean", "auc_real_mean", "an AUC", "0.5 is blind guessing, 1 is perfect"),
        ("r2_mean", "r2_real_mean", "a share of explained variance", "0 is blind guessing, 1 is perfect"),
    ):
        synthetic, real = get(evaluation, name), get(evaluation, real_name)
        if synthetic is None:
            continue
        text = f"Models that learn to predict {outcome} from the synthetic table reach {what} "
        text += f"of {measured(synthetic)} on real records that they have not seen"
        text += f"; trained on real records, they reach {measured(real)}" if real is not None else ""
        internal = synthetic.internal or (real is not None and real.internal)
        sentences.append(Sentence(f"{text} ({best}).", internal))
    return sentences


def _declared(report: RunReport) -> list[Sentence]:
    if not report.studies:
        return []
    if report.withheld:
        return [Sentence(f"Estimates of declared studies are told below. {report.withheld}", True)]
    named = ", ".join(told.study for told in report.studies)
    text = (
        f"Of the studies declared beforehand ({named}), the effects told below come with intervals that hold "
        "the noise for privacy, and can be quoted."
    )
    return [Sentence(text)]


def _effects(evaluation: Evaluation) -> list[Sentence]:
    sentences = []
    for detail in evaluation.of(Effects):
        sides = [side for row in detail.data.rows if (side := judged(row, detail.data)) is not None]
        signs = [side.same_sign for side in sides if side.same_sign is not None]
        if signs:
            study = detail.data.study
            found = f"A {detail.data.model} regression of {detail.data.outcome} finds"
            if study is not None:
                found = f"The private estimates of the declared study {study} have"
            text = (
                f"{found} {sum(signs)} of {len(signs)} effects in the direction that they have in real "
                "records."
            )
            sentences.append(Sentence(text, detail.internal))
    return sentences


def _distributions(evaluation: Evaluation) -> list[Sentence]:
    tvd = get(evaluation, "tvd_mean")
    if tvd is None:
        return []
    text = (
        f"Column by column, a share of {measured(tvd)} of the records would have to change to give the real "
        "distribution, on average; associations between columns are told below."
    )
    return [Sentence(text, tvd.internal)]


def _rounded(evaluation: Evaluation) -> list[Sentence]:
    """Which columns of the real files hold digits beyond the declared steps; no fault of any table."""
    real = [detail for detail in evaluation.of(FinerThanDeclared) if not detail.name.endswith(".synthetic")]
    if not real:
        return []
    text = (
        f"The real tables are finer than the schema declares ({'; '.join(between_steps(real))}): they were "
        "rounded before any comparison, as they are before fitting."
    )
    return [Sentence(text, any_internal(real))]
