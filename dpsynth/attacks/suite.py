"""All attacks that need no generator, on plain tables of any tool, in bounded time.

Large tables are cut to random parts before they are attacked. The real records are the targets, and some
thousands of them give narrow intervals. As many synthetic ones as possible are searched, since a copy is
found only among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpsynth.attacks.attempt import Attempt, passing
from dpsynth.attacks.attribute_inference import infer_columns, known_columns
from dpsynth.attacks.linkability import check_linked, link_people
from dpsynth.attacks.membership import membership_risks
from dpsynth.attacks.risk import Proved, Risk
from dpsynth.attacks.shadow import Shadow
from dpsynth.attacks.singling_out import single_out
from dpsynth.checks import Counted
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate, sure_end
from dpsynth.evaluation.tables import Tables, coordinates, random_rows
from dpsynth.table.schema import Schema

#: receives the name of a risk and the part of the work that is done
Stages = Callable[[str, float], None]
#: how the attack on all columns together is named
MEAN = "mean of the columns"
#: columns of a description of several, as in anonymeter
COLUMNS = 3


@dataclass(frozen=True)
class Effort:
    """Extent of the attacks: descriptions of each kind, records to count them in, records to attack.

    ``work`` is the count of numbers that one attack by distances may compare. It is targets x synthetic
    records x columns, for inference times the columns that are guessed.
    """

    descriptions: int = 500
    counted: int = 100_000
    targets: int = 2_000
    work: float = 1e10


@dataclass(frozen=True)
class Request:
    """What is asked of all attacks, see :func:`attack_tables`."""

    linked: tuple[Sequence[str], Sequence[str]] | None
    sensitive: Sequence[str] | None
    proved: Proved
    level: float
    effort: Effort


@dataclass(frozen=True)
class TableAttack:
    """One way to attack a synthetic table.

    ``risk``: its name. ``question``: what it asks, in a sentence. ``right``: what its rate counts, after a
    number of per cent. ``tried``: attacks with a random stream of its own, None where that cannot be.
    ``no_bound``: why nothing is proved, in a sentence, if nothing is.
    """

    risk: str
    question: str
    right: str
    tried: Callable[[Tables, Request, np.random.Generator], Iterable[Risk | None]]
    no_bound: str = ""


#: what `dpsynth run` can afford: seconds
QUICK = Effort(descriptions=300, counted=50_000, targets=1_000, work=1e9)
#: synthetic records that are searched, and real ones that are attacked, however small the budget
_LEAST, _FEWEST = 500, 100


def check_request(
    schema: Schema,
    linked: tuple[Sequence[str], Sequence[str]] | None,
    sensitive: Sequence[str] | None,
) -> None:
    """Raise InputError, naming the column, unless the request fits the schema. Reads no records."""
    if linked is not None:
        check_linked(linked, schema)
    if sensitive is not None and not sensitive:
        raise InputError("sensitive must name at least one column")
    for name in sensitive or ():
        known_columns(schema, name)


def attack_tables(
    tables: Tables,
    *,
    rng: np.random.Generator,
    linked: tuple[Sequence[str], Sequence[str]] | None = None,
    sensitive: Sequence[str] | None = None,
    proved: Proved | None = None,
    level: float = 0.95,
    effort: Effort | None = None,
    stages: Stages | None = None,
) -> tuple[Risk, ...]:
    """Attack a synthetic table. The result is confidential.

    Parameters
    ----------
    tables : Tables
        With held-out records as ``test``.
    rng : numpy.random.Generator
        For all random choices.
    linked : pair of sequences of str, optional
        Columns of the linking attacker, by default every other one.
    sensitive : sequence of str, optional
        Columns to infer, by default all.
    proved : Proved, optional
        Bounds of the table's ledger. Without it no bound is shown.
    level : float
        Level of the intervals, in (0, 1).
    effort : Effort, optional
        Extent of the attacks.
    stages : callable, optional
        Receives the name of a risk and the part of the work that is done.

    Returns
    -------
    tuple of Risk
        Singling out, linkability, inference, membership, without risks that could not be tried.

    Raises
    ------
    InputError
        If there are no held-out records or a column is unknown.
    """
    if tables.test is None:
        raise InputError("attacks need held-out records: give rows that had no part in the synthetic table")
    check_request(tables.schema, linked, sensitive)
    proved, effort, tell = proved or Proved(), effort or Effort(), stages or (lambda stage, done: None)
    asked = Request(linked, sensitive, proved, level, effort)
    seeds = np.random.SeedSequence(int(rng.integers(2**63))).spawn(len(ATTACKS))
    risks: list[Risk | None] = []
    for attack, seed in zip(ATTACKS, seeds, strict=True):
        tell(attack.risk, 0.0)
        risks += attack.tried(tables, asked, np.random.default_rng(seed))
        tell(attack.risk, 1.0)
    counted = tables.schema.counted
    return tuple(replace(risk, counted=counted) for risk in risks if risk is not None)


def _singling_out(tables: Tables, asked: Request, rng: np.random.Generator) -> list[Risk | None]:
    effort = asked.effort
    counted = part(tables, effort.counted, effort.counted, rng)
    return [
        single_out(counted, columns=width, rng=rng, count=effort.descriptions, level=asked.level)
        for width in ((1, COLUMNS) if len(tables.schema.modelled) > 1 else (1,))
    ]


def _linkability(tables: Tables, asked: Request, rng: np.random.Generator) -> list[Risk | None]:
    near = part(tables, *affordable(tables, 2, asked.effort), rng)
    return [link_people(near, asked.linked, rng=rng, proved=asked.proved.advantage, level=asked.level)]


def _inference(tables: Tables, asked: Request, rng: np.random.Generator) -> Iterable[Risk]:
    columns = len(tables.schema.modelled) if asked.sensitive is None else len(asked.sensitive)
    guessed = part(tables, *affordable(tables, columns, asked.effort), rng)
    return infer_columns(guessed, asked.sensitive, rng=rng, proved=asked.proved.advantage, level=asked.level)


def _membership(tables: Tables, asked: Request, rng: np.random.Generator) -> Iterable[Risk]:
    near = part(tables, *affordable(tables, 0.1, asked.effort), rng)  # matrix products are quicker
    return membership_risks(near, rng=rng, proved=asked.proved, level=asked.level)


#: the questions of WP 216, and that of differential privacy, in the order of the results. The place is that
#: of the random stream.
ATTACKS = (
    TableAttack(
        "singling out",
        "Can one person be described so that nobody else fits?",
        "descriptions that fit exactly one person",
        _singling_out,
        "No bound is proved for singling out.",
    ),
    TableAttack(
        "linkability",
        "Can two files about the same people be joined by way of the table?",
        "people whose two parts are joined",
        _linkability,
    ),
    TableAttack(
        "inference",
        "Can an unknown value of a person be guessed?",
        "guesses that are right",
        _inference,
        "No bound is proved for how often guesses are right. Facts about everybody can be inferred about "
        "people who were never in the table. Differential privacy does not prevent it.",
    ),
    TableAttack(
        "membership",
        "Can an attacker find out whether a person was in the training table?",
        'people of whom "was used" is said',
        _membership,
    ),
)


def quick(
    tables: Tables,
    *,
    rng: np.random.Generator,
    proved: Proved | None = None,
    level: float = 0.95,
    stages: Stages | None = None,
) -> tuple[Attempt, ...]:
    """Attack a table for a report, in seconds: every risk, the columns as a mean. Confidential.

    Without held-out records nothing is attempted.
    """
    if tables.test is None:
        return ()
    return attempts(attack_tables(tables, rng=rng, proved=proved, level=level, effort=QUICK, stages=stages))


def attempts(risks: Sequence[Risk]) -> tuple[Attempt, ...]:
    """Attempts for a report: every risk, and for inference the mean of the columns if there is one."""
    means = {risk.attack for risk in risks if risk.risk == "inference" and risk.attack.startswith(MEAN)}
    shown = [risk for risk in risks if risk.risk != "inference" or not means or risk.attack in means]
    return tuple(attempt for risk in shown for attempt in risk.attempts())


def part(tables: Tables, real: int, synthetic: int, rng: np.random.Generator) -> Tables:
    """Return random parts: at most so many training and as many held-out records, and synthetic ones."""

    def cut(frame: pd.DataFrame, most: int) -> pd.DataFrame:
        return frame.iloc[random_rows(len(frame), most, rng)].reset_index(drop=True)

    assert tables.test is not None
    return replace(
        tables,
        synthetic=cut(tables.synthetic, synthetic),
        train=cut(tables.train, real),
        test=cut(tables.test, real),
    )


def affordable(tables: Tables, searches: float, effort: Effort) -> tuple[int, int]:
    """Return how many real records of each kind can be attacked, and how many synthetic ones searched."""
    pairs = effort.work / (2 * searches * coordinates(tables.schema))
    real = max(min(effort.targets, int(pairs / _LEAST)), _FEWEST)
    return real, max(int(pairs / real), _LEAST)


# ------------------------------------------------------------------------------------------------
# Attacks on a synthetic table in plain words, for the decision whether it may be shared.


def in_words(risks: Sequence[Risk], shadow: Shadow | None = None) -> str:
    """Return the results of the attacks: one paragraph a risk, then the columns as a list.

    Rates are in per cent with their intervals.
    """
    counted = _counted(risks)
    lines = [f"Attacks on the synthetic table (confidential: real {counted} were read without noise)", ""]
    for attack in ATTACKS:
        lines.append(f"{attack.risk.upper()}. {attack.question}")
        of_risk = [risk for risk in risks if risk.risk == attack.risk]
        if not of_risk:
            lines += ["  could not be tried on this table", ""]
            continue
        means = [risk for risk in of_risk if risk.attack.startswith(MEAN)]
        for risk in means or of_risk:
            lines += _paragraph(risk, attack.right, len(risks))
        if attack.risk == "membership" and shadow is not None:
            lines += _shadow(shadow, counted)
        if attack.no_bound:
            lines.append(f"  {attack.no_bound}")
        lines.append("")
        if means:
            lines += [
                *_columns([risk for risk in of_risk if not risk.attack.startswith(MEAN)], len(risks)),
                "",
            ]
    lines.append(verdict(risks, shadow))
    return "\n".join(lines)


def _counted(risks: Sequence[Risk]) -> Counted:
    return next((risk.counted for risk in risks), Counted.RECORDS)


def verdict(risks: Sequence[Risk], shadow: Shadow | None = None) -> str:
    """Return one to three sentences on all attacks together.

    Memorisation is reported if an attack finds it by an interval that is valid for all attacks together.
    """
    tried = [attempt for risk in risks for attempt in risk.attempts()]
    tried += () if shadow is None else shadow.attempts()
    broken = passing(tried)
    if broken:
        only = (
            "This table is an unlucky one, because the bound is on average over tables. Or the"
            if all(attempt.one_table for attempt in broken)
            else "The"
        )
        return (
            f"An attack passed its proved bound ({broken[0].attack}). {only} proof or its code is wrong. "
            "Do not share the table. The option --shadow fits many more times, and shows which."
        )
    said = _of_table(risks)
    if shadow is not None and sure_end(shadow.accuracy, shadow.level, 1) > 0.5:
        most = "" if shadow.proved is None else f", of at most {100 * shadow.proved:.1f} % on average"
        counted = _counted(risks)
        said += (
            f" An attacker with the generator and all other {counted} guesses whether an unusual "
            f"{counted.one} was used, with an accuracy of {_told(shadow.accuracy)}{most}."
        )
    return said


def _of_table(risks: Sequence[Risk]) -> str:
    caught = list(dict.fromkeys(risk.risk for risk in risks if risk.found_among(len(risks))))
    if caught:
        return (
            f"Memorisation of training {_counted(risks)} was found ({', '.join(caught)}): attacks on their "
            "people succeed more often than on people who had no part in the table."
        )
    alone = [f"{risk.risk}, {risk.attack}" for risk in risks if risk.found]
    if alone:
        return (
            f"{len(alone)} of {len(risks)} attacks ({', '.join(alone)}) had more success on the people of "
            "the table than on people who had no part in it. The excess is so small that chance explains it "
            f"among so many. More held-out {_counted(risks)} would decide."
        )
    return (
        "No attack succeeds more often on the people of the table than on people who had no part in it. That "
        "is no proof: other attacks may. The proof is the ledger's, if there is one."
    )


def _shadow(shadow: Shadow, counted: Counted) -> list[str]:
    meaning = f"even for a most unusual {counted.one}, the attacker did no better than guessing"
    if sure_end(shadow.accuracy, shadow.level, 1) > 0.5:
        meaning = f"the attacker finds out better than by guessing whether an unusual {counted.one} was used"
    facts = {
        "attacker holds": f"the generator itself and all other {counted}, and knows the canaries",
        "right": f"{_told(shadow.accuracy)} of {shadow.guesses:,} guesses of who was used",
        "by guessing": "50.0 %",
        "proved": "" if shadow.proved is None else f"at most {100 * shadow.proved:.1f} % on average",
        "meaning": meaning,
    }
    return [f"- shadow models with {shadow.canaries} planted canaries", *_lines(facts)]


def _paragraph(risk: Risk, right: str, together: int) -> list[str]:
    bound = "" if risk.proved is None else f"an excess of at most {100 * risk.proved:.1f} % on average"
    facts = {
        "attacker holds": f"the synthetic table, {risk.holds}",
        "training people": f"{_told(risk.rate)} {right} ({risk.tries[0]:,} attacks)",
        "without table": _told(risk.without),
        "people held out": f"{_told(risk.held_out)} ({risk.tries[1]:,} attacks)",
        "excess": f"{_told(risk.excess)}, of the possible gain {_told(risk.normalised)}",
        "proved": bound,
        "meaning": _meaning(risk, together),
        "note": risk.about,
    }
    return [f"- {risk.attack}", *_lines(facts)]


def _lines(facts: Mapping[str, str]) -> list[str]:
    return [f"    {name:<15}  {said}" for name, said in facts.items() if said]


def _meaning(risk: Risk, together: int) -> str:
    if risk.found_among(together):
        return "the table discloses people it was made from: attacks on them succeed more often"
    if risk.excess.upper < 0:
        return "people of the table are attacked less often with success than others, which is chance"
    if risk.risk == "membership":
        return "people who were used cannot be separated from people who were not"
    if risk.rate.lower > risk.without.upper:
        return "the table informs about people in general, and no more about those it was made from"
    return "the table helps no attacker measurably"


def _columns(risks: Sequence[Risk], together: int) -> list[str]:
    """One line a column, of everybody, and the worst-off if the table discloses them."""
    shown = [risk for risk in risks if not risk.attack.endswith(WORST)]
    width = max(len(risk.attack) for risk in shown)
    return [
        f"  {'column':{width}}  training  held out  without  excess (intervals for all columns together)",
        *(
            f"  {risk.attack:{width}}  {100 * risk.rate.value:6.1f} %  {100 * risk.held_out.value:6.1f} %"
            f"  {100 * risk.without.value:5.1f} %  {_told(risk.excess)}"
            + ("  DISCLOSED" if risk.found_among(together) else "")
            for risk in shown
        ),
        *(
            f"  {risk.attack}: {_told(risk.rate)} of training, {_told(risk.held_out)} of held-out people"
            for risk in risks
            if risk.attack.endswith(WORST) and risk.found_among(together)
        ),
    ]


#: ends the name of an attack on the 5 % of the people of whom the attacker is surest
WORST = ", worst-off"


def _told(estimate: Estimate) -> str:
    value = f"{100 * estimate.value:.1f} %"
    if estimate.lower == estimate.upper:
        return value
    return f"{value} ({100 * estimate.lower:.1f} to {100 * estimate.upper:.1f})"
