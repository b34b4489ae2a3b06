"""How numbers are written for people, on pages, in Markdown, in drawings and in sentences.

Bounds of a guarantee are rounded up. Measured numbers are rounded to the nearest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from dpsynth.accounting.guarantee import round_up
from dpsynth.accounting.measures import percent as percent
from dpsynth.evaluation.details import Effect
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.records import Measure, shown
from dpsynth.evaluation.records import shown_interval as shown_interval
from dpsynth.evaluation.records import shown_with_interval as shown_with_interval
from dpsynth.studies.digits import interval_texts
from dpsynth.table.dates import SECONDS, moment_text


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


def between(value: float, lower: float, upper: float) -> str:
    """Three decimals, with the interval."""
    return f"{decimals(value)} ({decimals(lower)} to {decimals(upper)})"


def estimate_text(found: Estimate, places: int) -> str:
    """The same in tables of columns, where a minus before zero says to which side a number was rounded."""
    value, lower, upper = (f"{end:.{places}f}" for end in (found.value, found.lower, found.upper))
    return f"{value} ({lower} to {upper})"


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


def effect_text(effect: Effect | None) -> str:
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
    if unit in SECONDS:
        return moment_text(value // 1 if unit == "date" else value // 60 * 60, unit)
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def column_width(value: float | None, unit: str | None) -> str:
    """A difference of values of a column. Differences of dates are days.

    Examples
    --------
    >>> column_width(11.873, "mg"), column_width(129_600, "datetime")
    ('11.9 mg', '1.5 days')
    """
    if value is not None and unit in SECONDS:
        value, unit = value * SECONDS[unit] / SECONDS["date"], "days"
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


def p_value(value: float | None) -> str:
    """A p-value in a table of effects, empty if there is none."""
    if value is None:
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def seconds_text(seconds: Mapping[str, float]) -> str:
    """How long each stage took."""
    return ", ".join(f"{stage} {value:.1f} s" for stage, value in seconds.items())
