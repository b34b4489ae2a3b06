"""Numbers and sentences for people, one way each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from dpsynth.attacks.attempt import Attempt
from dpsynth.attacks.attempt import Measure as AttackMeasure
from dpsynth.checks import Counted
from dpsynth.evaluation.estimates import FALSE_ALARMS, Estimate
from dpsynth.evaluation.results import Measure, shown
from dpsynth.evaluation.results import shown_interval as shown_interval
from dpsynth.evaluation.results import shown_with_interval as shown_with_interval
from dpsynth.files.text import shipped_yaml
from dpsynth.privacy.guarantee import round_up
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.profile import percent as percent
from dpsynth.studies.estimation import SurvivalCurve
from dpsynth.studies.study import Estimates, effect_texts, interval_texts
from dpsynth.table.kinds import kind_of_unit


@cache
def _words() -> Any:
    return shipped_yaml("dpsynth.report.templates", "words.yaml")


def wording(name: str, counted: Counted = Counted.RECORDS, /, **values: object) -> Any:
    """Return an entry of ``templates/words.yaml``, a text or several, with nouns and values filled in.

    Examples
    --------
    >>> wording("models of real", Counted.PATIENTS, real="0.812")
    ' With real patients to learn from, they reach 0.812.'
    """

    def filled(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: filled(each) for key, each in part.items()}
        if isinstance(part, list):
            return [*map(filled, part)]
        return counted.fill(part, **values) if isinstance(part, str) else part

    return filled(_words()[name])


def first_case(cases: Sequence[Mapping[str, str]], facts: Mapping[str, Any]) -> tuple[str, str]:
    """The first of several cases that holds: what it is, and its sentence with the facts filled in.

    ``if`` names a fact. A case without it holds always. If none does, both texts are empty.

    Examples
    --------
    >>> cases = [{"if": "seeded", "open": "There is a seed."}, {"handled": "{name} drew it."}]
    >>> first_case(cases, {"seeded": False, "name": "AES"})
    ('handled', 'AES drew it.')
    """
    for case in cases:
        if "if" not in case or facts[case["if"]]:
            kind, text = next((kind, text) for kind, text in case.items() if kind != "if")
            return kind, text.format(**facts).strip()
    return "", ""


# ------------------------------------------------------------------------------------------------
# How numbers are written for people, on pages, in Markdown, in drawings and in sentences.
#
# Bounds of a guarantee are rounded up. Measured numbers are rounded to the nearest.


def bound(value: float) -> str:
    """A bound, rounded up to four figures, or ∞.

    Examples
    --------
    >>> bound(1.00041), bound(math.inf)
    ('1.001', '∞')
    """
    return "∞" if math.isinf(value) else round_up(value)


def once_in(probability: float) -> str:
    """A small probability, rounded up.

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


def plain(value: float, figures: int = 6) -> str:
    """A number with as few digits as it needs: a setting, a bound of a column, a tick of an axis."""
    return f"{value:.{figures}g}"


def decimals(value: float, places: int = 3) -> str:
    """So many decimals, without a minus before zero.

    Examples
    --------
    >>> decimals(-0.0002), decimals(0.81234, 2)
    ('0.000', '0.81')
    """
    return f"{value:z.{places}f}"


def between(
    value: float, lower: float, upper: float, *, say: Callable[[float], str] = decimals, to: str = " to "
) -> str:
    """A number with its interval, or with other ends, each as ``say`` writes it.

    Examples
    --------
    >>> between(0.81234, 0.75, 0.9), between(0.4, 0.38, 0.42, say=in_percent)
    ('0.812 (0.750 to 0.900)', '40.0 % (38.0 % to 42.0 %)')
    """
    return f"{say(value)} ({say(lower)}{to}{say(upper)})"


def estimate_text(found: Estimate, places: int) -> str:
    """The same in tables of columns, where a minus before zero says to which side a number was rounded."""
    return between(found.value, found.lower, found.upper, say=lambda end: f"{end:.{places}f}")


def measured(measure: Measure) -> str:
    """A measure in a sentence: three decimals, with its interval if it has one.

    Examples
    --------
    >>> measured(Measure("Utility", "auc", 0.81234, True, lower=0.75, upper=0.85))
    '0.812 (0.750 to 0.850)'
    >>> measured(Measure("Neighbours", "privacy_loss", -0.0002, True, lower=-0.1, upper=-0.0001))
    '0.000 (-0.100 to 0.000)'
    """
    if isinstance(measure.value, int):
        return shown(measure.value)
    value = float(measure.value or 0.0)
    if measure.lower is None or measure.upper is None:
        return decimals(value)
    return between(value, measure.lower, measure.upper)


def effect_text(effect: Any) -> str:
    """An effect with its interval, in as many decimals as the interval deserves."""
    if effect is None:
        return "n/a"
    estimate, lower, upper = interval_texts(effect.estimate, effect.lower, effect.upper)
    return f"{estimate} ({lower} to {upper})"


def column_value(value: float | None, unit: str | None = None) -> str:
    """A value of a column: three significant digits, no exponent where it can be. Dates in ISO form.

    Examples
    --------
    >>> column_value(11.873), column_value(0.0123), column_value(180.0), column_value(12345.6)
    ('11.9', '0.0123', '180', '12,346')
    >>> column_value(14610.0, "date")
    '2010-01-01'
    """
    if value is None:
        return "n/a"
    if (kind := kind_of_unit(unit)) is not None:
        return kind.rounded(value)
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def column_width(value: float | None, unit: str | None) -> str:
    """A difference of values of a column. Differences of dates are days.

    Examples
    --------
    >>> column_width(11.873, "mg"), column_width(129_600, "datetime")
    ('11.9 mg', '1.5 days')
    """
    if value is not None and (kind := kind_of_unit(unit)) is not None:
        value, unit = kind.difference(value), kind.difference_unit
    return column_value(value) + (f" {unit}" if unit and value is not None else "")


def hundredths(share: float) -> str:
    """A share, in whole hundredths."""
    return f"{100 * share:.0f}"


def thousandths(measure: Measure) -> str:
    """A share, in thousandths with three digits.

    Examples
    --------
    >>> thousandths(Measure("Constraints", "broken", 0.63251, False))
    '633'
    """
    return column_value(1000 * float(measure.value or 0.0))


def in_percent(share: float) -> str:
    """A share of records."""
    return f"{100 * share:.1f} %"


def level_text(level: float) -> str:
    """The level of an interval."""
    return f"{100 * level:g} %"


def levels_text(levels: Iterable[float]) -> str:
    """The levels of several intervals, each once."""
    return " and ".join(map(level_text, sorted(set(levels))))


def p_value_text(value: float | None) -> str:
    """A p-value in a table of effects, empty if there is none."""
    if value is None:
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def seconds_text(seconds: Mapping[str, float]) -> str:
    """How long each stage took."""
    return ", ".join(f"{stage} {value:.1f} s" for stage, value in seconds.items())


# ------------------------------------------------------------------------------------------------
# Rows and sentences about attempts and pre-specified regressions.
#
# A regression is named before the fit, and part of the budget goes into its score. The intervals of its
# estimates include sampling error and privacy noise.


def has_floating_noise(ledger: Ledger) -> bool:
    """Whether some noise is in floating point, so that its last digits can be attacked (Mironov 2012).

    Noise of gradients at random critics is exact, and their entry says so. Entries of earlier versions do
    not.
    """
    steps = (entry for entry in ledger.entries if entry.name.endswith("critic steps"))
    return not all(entry.sensitivity.endswith("exact noise") for entry in steps)


#: what each measure is called, what it says, and its axis
WORDS: dict[AttackMeasure, tuple[str, str]] = {
    "accuracy": ("Right guesses", "share of right guesses from even odds: 0.5 is random, 1 is certainty"),
    "advantage": ("Advantage", "true positive minus false positive rate: 0 is random, 1 is certainty"),
    "tpr": ("Members named", "share of members named at a small share of others wrongly suspected"),
    "tv": ("Total variation", "how much more often one table's outcomes come out than its neighbour's"),
    "epsilon": ("Epsilon", "how many times as probable an event is with a patient as without: e to the ε"),
    "belief": ("Belief", "how sure the adversary became, from even odds"),
    "exceedance": ("Beliefs beyond the limit", "share of runs after which the adversary is surer than that"),
    "rate": ("Attacks on the table", "share of attacks that were right"),
}


def by_measure(attempts: Sequence[Attempt]) -> list[tuple[AttackMeasure, list[Attempt]]]:
    """Attempts by measure, in the order of :data:`WORDS`."""
    groups = [(measure, [a for a in attempts if a.measure == measure]) for measure in WORDS]
    return [(measure, group) for measure, group in groups if group]


def closers(attempts: Sequence[Attempt]) -> list[tuple[str, bool]]:
    """Return how attempts could come closer, each once, and whether it is internal.

    If this is not about all attempts, one that it is about is named.

    Examples
    --------
    >>> from dpsynth.evaluation.estimates import Estimate
    >>> closers([Attempt(name, "tv", Estimate(0.3, 0.25, 0.35), closer="more trials") for name in "ab"])
    [('To come closer: more trials.', True)]
    """
    found: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.closer:
            found.setdefault(attempt.closer, []).append(attempt)
    told = []
    for closer, among in found.items():
        text = f"To come closer: {closer}."
        if len(among) < len(attempts):
            which = among[0].attack
            some = f"{len(among)} of {len(attempts)} results, such as {which}" if len(among) > 1 else which
            text += f" This concerns {some}."
        told.append((text, any(attempt.internal for attempt in among)))
    return told


#: when an attack passes its bound
PASSED = (
    "An attack passes its bound if an interval that holds for all attacks together lies above it. By chance "
    f"this happens on at most 1 in {2 / FALSE_ALARMS:.0f} pages."
)


def bounds_in_words(attempts: Sequence[Attempt], counted: Counted = Counted.RECORDS) -> str:
    """Say that no bound was passed, and what was attacked. ``attempts`` are those with a bound.

    A result above its bound, within chance, is said: nobody who sees it in a table shall wonder.

    Examples
    --------
    >>> from dataclasses import replace
    >>> counts = Attempt("audit: counts", "tv", Estimate(0.3, 0.25, 0.35), 0.4, internal=False)
    >>> bounds_in_words([counts])
    'No test of the noise code on made-up records passed its bound'
    >>> bounds_in_words([counts, replace(counts, proved=0.29)])
    '1 of 2 tests of the noise code on made-up records is above its bound, by no more than chance explains'
    """
    real = any(attempt.internal for attempt in attempts)
    one, many = "attack", "attacks"
    if not real:
        one, many = (f"test{end} of the noise code on made-up {counted}" for end in ("", "s"))
    above = sum(attempt.proved is not None and attempt.found.value > attempt.proved for attempt in attempts)
    if not above:
        return f"No {one} passed its bound"
    are = "is above its" if above == 1 else "are above their"
    said = f"{above} of {len(attempts)} {one if len(attempts) == 1 else many}"
    return f"{said} {are} bound, by no more than chance explains"


def attempt_in_words(attempt: Attempt) -> str:
    """An attempt in one phrase.

    Examples
    --------
    >>> from dpsynth.evaluation.estimates import Estimate
    >>> attempt_in_words(Attempt("guess", "tv", Estimate(0.3, 0.25, 0.35), proved=0.4))
    'guess: 0.300 (0.250 to 0.350) of at most 0.400'
    """
    bound = "" if attempt.proved is None else f" of at most {decimals(attempt.proved)}"
    control = (
        "" if attempt.control is None else f", {decimals(attempt.control.value)} for the baseline attack"
    )
    return f"{attempt.attack}: {reached(attempt)}{bound}{control}"


def reached(attempt: Attempt) -> str:
    """The value that was found, with its interval."""
    return between(attempt.found.value, attempt.found.lower, attempt.found.upper)


#: of every interval here
LEVEL = 0.95
#: what stands beside an estimate that may be shared
PAID = "covered"


def described(estimates: Estimates) -> str:
    """The formula, the cost of the noise, and remarks for a reader of the intervals."""
    first = f"Formula, named before the fit: {estimates.formula}."
    return " ".join((first, f"{widened(estimates).capitalize()}.", *estimates.remarks))


def surviving(curve: SurvivalCurve) -> str:
    """A survival curve in words."""
    unit = f" ({curve.unit})" if curve.unit else ""
    level = level_text(curve.level)
    return f"Survival by time{unit}, whatever the predictors. Its {level} bands include sampling and noise."


def widened(estimates: Estimates) -> str:
    """How much the noise widens the intervals, in words."""
    return f"intervals are {estimates.widened}"


def rows(estimates: Estimates) -> list[tuple[str, str, str, str]]:
    """Term, effect, interval and p-value of each term, as text."""
    found = []
    for effect in estimates.effects(LEVEL):
        estimate, lower, upper = effect_texts(effect)
        found.append((effect["term"], estimate, f"{lower} to {upper}", p_value_text(effect["p_value"])))
    return found
