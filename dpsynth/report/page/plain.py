"""The summary in plain words: what a patient risks, and what an analyst may trust.

Every sentence is generated from numbers. Bounds of the guarantee are rounded against it; measured numbers
come with their intervals. Sentences that state a number of real records say that they are internal.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpsynth.accounting.events.normal_form import ADD_REMOVE
from dpsynth.accounting.explain import points_more_probable, right_at_most
from dpsynth.accounting.ledger.guarantee import round_up
from dpsynth.accounting.profile import Profile
from dpsynth.evaluation.records import Evaluation
from dpsynth.report.findings import believable
from dpsynth.report.findings.verdict import get, told
from dpsynth.report.page.blocks import Sentence
from dpsynth.report.page.coverage import covered

if TYPE_CHECKING:
    from dpsynth.report.load import ReportSource


def risk(source: ReportSource) -> tuple[Sentence, ...]:
    """What a patient risks, from the ledger; and what attacks that were tried have found.

    Examples
    --------
    >>> from dpsynth.report.load import ReportSource
    >>> print(risk(ReportSource("A table of unknown origin"))[0].text)
    Nothing is promised to the patients in the training table: no record of how it was made is known.
    """
    made = [*covered(source)[:1], *_promised(source)]
    if source.evaluation is not None:
        made += _attacks(source.evaluation, source)
    made.append(
        Sentence(
            "What this says about singling out, linkability and inference, the three risks of anonymisation, "
            "is told below."
        )
    )
    return tuple(made)


def _promised(source: ReportSource) -> list[Sentence]:
    if source.guarantee is None or source.profile is None or source.delta is None:
        return [
            Sentence("Nothing is promised to the patients in the training table: no record of how it was "
                     "made is known.")
        ]  # fmt: skip
    if not source.guarantee.private:
        return [
            Sentence("Nothing is promised to the patients in the training table."),
            Sentence(
                "Treat the synthetic table, and everything beside it, as you would treat their records."
            ),
        ]
    profile = source.profile
    tv, accuracy, epsilon = profile.tv(), profile.attack_accuracy(), profile.epsilon(source.delta)
    added = profile.adjacency == ADD_REMOVE
    change = "took part" if added else "is the one in the table"
    pair = "with a patient as without" if added else "with a patient's record as with another's in its place"
    made = []
    if source.ledger is not None and source.ledger.excluded:
        made.append(
            f"What follows is promised but for this: {'; '.join(source.ledger.excluded)}. What that gives "
            "away is not counted."
        )
    made += [
        f"Whoever guesses, from even odds, whether a given patient {change} {right_at_most(accuracy)}, even "
        "if they know all other records; a coin is right 50 times. That is an average: "
        f"{unluckiest(profile, source.delta)}.",
        f"{points_more_probable(tv, 'a patient', 'this release', 'the training table').removesuffix('.')} "
        f"(total variation {round_up(tv)}).",
    ]
    if math.isfinite(epsilon):
        many = epsilon > math.log(1e6)
        times = "perhaps more than a million" if many else f"at most {round_up(math.exp(epsilon), 3)}"
        made.append(
            f"Any event is {times} times as probable {pair} (ε = {round_up(epsilon)}), plus at most "
            f"{round_up(source.delta)} (δ)."
        )
    return [Sentence(text) for text in made]


def unluckiest(profile: Profile, delta: float) -> str:
    """Say how the accuracy of guesses, which is an average, goes with the belief after one release.

    Examples
    --------
    >>> from dpsynth.accounting import gaussian_event
    >>> print(unluckiest(Profile([gaussian_event(1.6)]), 1e-5))
    after the unluckiest of all releases that could have come out, a guesser may be up to 92.9 % sure, and
    surer only once in 12,900 times or less often
    """
    belief = round_up(100 * profile.belief(delta), 3)
    beyond = profile.exceedance(profile.epsilon(delta))
    rarely = f"surer only {once_in(beyond)}" if beyond else "never surer"
    if beyond > 0.1:  # of stages that add up, only a weak bound is known
        rarely = "how rarely surer is not proved"
    sure = "all but certain" if float(belief) >= 100 else f"up to {belief} % sure, and {rarely}"
    return f"after the unluckiest of all releases that could have come out, a guesser may be {sure}"


def once_in(probability: float) -> str:
    """A small probability as people read it, rounded up.

    Examples
    --------
    >>> once_in(7.779e-05), once_in(1e-12)
    ('once in 12,800 times or less often', 'less than once in a billion times')
    """
    if probability < 1e-9:
        return "less than once in a billion times"
    times = math.floor(1 / probability * (1 + 1e-12))
    figures = max(len(str(times)) - 3, 0)
    return f"once in {times // 10**figures * 10**figures:,} times or less often"


def _attacks(evaluation: Evaluation, source: ReportSource) -> list[Sentence]:
    made = []
    membership = get(evaluation, "membership_auc")
    if membership is not None:
        made.append(
            Sentence(
                "An attack that was tried, by distances, tells training records from held-out ones with an "
                f"AUC of {told(membership)}; 0.5 is a coin.",
                membership.internal,
            )
        )
    found = get(evaluation, "membership_tpr_at_1pct")
    if found is not None:
        text = (
            "Where it suspects 1 in 100 held-out records wrongly, that attack names a share of "
            f"{told(found)} of the training records"
        )
        if source.profile is not None and source.guarantee is not None and source.guarantee.private:
            text += f"; the guarantee allows any attack {round_up(float(source.profile.tpr(0.01)), 3)}"
        made.append(Sentence(f"{text}.", found.internal))
    copies = get(evaluation, "copies_excess")
    if copies is not None:
        made.append(
            Sentence(
                f"The share of synthetic records that copy a training record is {told(copies)} above the "
                "share that copy a new record by chance; 0 or less is best.",
                copies.internal,
            )
        )
    loss = get(evaluation, "privacy_loss")
    if loss is not None:
        made.append(
            Sentence(
                "Synthetic records are nearer to training records than to new ones by "
                f"{told(loss)} in nearest-neighbour accuracy; 0 or less is best.",
                loss.internal,
            )
        )
    return made


def trust(source: ReportSource) -> tuple[Sentence, ...]:
    """What an analyst may trust: prediction, effects and distributions, against real records.

    Examples
    --------
    >>> from dpsynth.report.load import ReportSource
    >>> print(trust(ReportSource("Unmeasured"))[-1].text)
    Repeat whatever matters on real records before relying on it.
    """
    evaluation = source.evaluation or Evaluation(())
    made = _prediction(evaluation) + _effects(evaluation) + _distributions(evaluation)
    made += believable.rounded(evaluation)
    if not made:
        made.append(
            Sentence(
                "This page holds no number on how useful the table is: such numbers are measured on real "
                "records, and none of them is shown here."
            )
        )
    made.append(Sentence("Repeat whatever matters on real records before relying on it."))
    return tuple(made)


def _prediction(evaluation: Evaluation) -> list[Sentence]:
    made = []
    for name, real_name, what, best in (
        ("auc_mean", "auc_real_mean", "an AUC", "0.5 is blind guessing, 1 is perfect"),
        ("r2_mean", "r2_real_mean", "a share of explained variance", "0 is blind guessing, 1 is perfect"),
    ):
        made_there, real = get(evaluation, name), get(evaluation, real_name)
        if made_there is None:
            continue
        outcome = evaluation.settings.get("outcome")
        text = (
            f"Models that learn to predict {outcome or 'the outcome'} from the synthetic table reach {what} "
        )
        text += f"of {told(made_there)} on real records that they have not seen"
        text += f"; trained on real records, they reach {told(real)}" if real is not None else ""
        internal = made_there.internal or (real is not None and real.internal)
        made.append(Sentence(f"{text} ({best}).", internal))
    return made


def _effects(evaluation: Evaluation) -> list[Sentence]:
    made = []
    for detail in evaluation.of_kind("effects"):
        rows = detail.data.get("rows", ())
        signs = [row["same_sign"] for row in rows if row.get("same_sign") is not None]
        if signs:
            text = (
                f"A {detail.data.get('model', 'regression')} regression of {detail.data.get('outcome')} "
                f"finds {sum(signs)} of {len(signs)} effects in the direction that they have in real records."
            )
            made.append(Sentence(text, detail.internal))
    return made


def _distributions(evaluation: Evaluation) -> list[Sentence]:
    made = []
    tvd = get(evaluation, "tvd_mean")
    if tvd is not None:
        text = (
            f"Column by column, a share of {told(tvd)} of the records would have to change to give the real "
            "distribution, on average; associations between columns are told below."
        )
        made.append(Sentence(text, tvd.internal))
    return made
