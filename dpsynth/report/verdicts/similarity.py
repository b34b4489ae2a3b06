"""What rules about similarity read: can records be separated from real ones, and do associations remain?

Single columns should be plausible to somebody who knows the patients. Read are tails, point masses, cells
that are missing together, habits of recording, and digits beyond the declared steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from dpsynth.checks import Counted, few, together
from dpsynth.evaluation.results import Evaluation, Measure, any_confidential, frame_rows
from dpsynth.evaluation.tails import MASS_AIM, MEAN_AIM, PERCENTILE_AIM, SPREAD_AIM
from dpsynth.report.verdicts import (
    Evidence,
    Named,
    Rule,
    column_of,
    get,
    least,
    most,
    number_of,
    of_columns,
    otherwise,
)
from dpsynth.report.words import (
    column_value,
    column_width,
    decimals,
    hundredths,
    measured,
    plain,
    shown,
    thousandths,
)
from dpsynth.table.kinds import kind_of_unit

#: AUC or nearest-neighbour accuracy that separates the tables, and one that does so easily
DISTINGUISHABLE, OBVIOUS = 0.65, 0.85
#: loss of the classifier's AUC that names the column whose shuffling costs it
GIVES_AWAY = 0.01
#: part of the strength of associations whose loss is reported, and one that leaves next to nothing
PARTLY_LOST, ALL_LOST = 0.5, 0.8


def told_apart(evaluation: Evaluation) -> Iterator[Evidence]:
    """Can synthetic records be separated from real ones?"""
    accuracy = get(evaluation, "nn_accuracy_train")
    discriminators = of_columns(evaluation, "discriminator_auc")
    best = max(discriminators, key=number_of, default=None)
    known = [measure for measure in (best, accuracy) if measure is not None]
    if not known:
        return
    said = {"nn_accuracy_train": "The nearest-neighbour accuracy (0.5 is best) is"}
    words = f"A classifier separates synthetic from real {evaluation.counted} with an AUC of"
    by, columns = _given_away(evaluation)
    worst = max(least(m) for m in [*discriminators, *known])
    easily = " easily" if worst > OBVIOUS else ""
    yield Evidence(
        basis=known,
        columns=columns,
        worst=worst,
        value=max(number_of(m) for m in known),
        beyond_chance=any(number_of(m) > DISTINGUISHABLE and least(m) > 0.5 for m in known),
        alone=any(separating(frame) for frame in evaluation.groups("single_columns")),
        easily=easily,
        always="" if worst > DISTINGUISHABLE else ", if not always",
        reasons=" ".join(f"{said.get(m.name, words)} {measured(m)}." for m in known),
        by=by,
    )


def _given_away(evaluation: Evaluation) -> tuple[str, list[Measure]]:
    """Which columns give synthetic records away, in a sentence, and the measures that it rests on."""
    losses = sorted(of_columns(evaluation, "discriminator_loss["), key=number_of, reverse=True)
    if not losses:
        return "", []
    sure = [m for m in losses if number_of(m) >= GIVES_AWAY and least(m) > 0][:3]
    if not sure:
        most_of_all = decimals(max(number_of(losses[0]), 0.0))
        text = (
            f" No single column explains it: shuffling one of them lowers the AUC by at most {most_of_all}."
        )
        return text, losses[:1]
    named = [f"{column_of(m)} (by {decimals(number_of(m))})" for m in sure]
    return f" Shuffling these columns lowers the AUC most: {together(named)}.", sure


def associations(evaluation: Evaluation) -> Iterator[Evidence]:
    """Do associations remain? Judged only if held-out records show the effect of chance."""
    lost, chance = (get(evaluation, f"association_lost{end}") for end in ("", "_baseline"))
    if lost is not None and chance is not None and number_of(chance) <= PARTLY_LOST / 2:
        yield Evidence(
            basis=[lost, chance],
            part=number_of(lost),
            lost=hundredths(number_of(lost)),
            chance=hundredths(number_of(chance)),
        )


@dataclass(frozen=True)
class RuleShares:
    """Shares of synthetic rows, and of real ones if they are known, that break a rule."""

    text: str
    suggested: bool
    synthetic: Measure
    real: Measure | None

    @property
    def more_often(self) -> bool:
        """Whether synthetic rows break the rule, and surely more often than real ones as far as is known."""
        broken = number_of(self.synthetic)
        return broken > 0 and (self.real is None or not self.real.value or broken > most(self.real))


def rule_shares(evaluation: Evaluation) -> list[RuleShares]:
    """Every rule with its shares. The one that most synthetic rows break comes first."""
    found = []
    for measure in evaluation.measures:
        kind, _, text = measure.name.partition("_violations_synthetic[")
        if text and measure.value is not None:
            real = get(evaluation, f"{kind}_violations_train[{text}")
            found.append(RuleShares(text.removesuffix("]"), kind == "suggestion", measure, real))
    return sorted(found, key=lambda rule: -number_of(rule.synthetic))


def constraints(evaluation: Evaluation) -> Iterator[Evidence]:
    """Which rules do synthetic rows break more often than real ones?"""
    broken = [rule for rule in rule_shares(evaluation) if rule.more_often]
    if broken:
        said = [
            f"{thousandths(rule.synthetic)} of 1,000 synthetic rows break {rule.text}"
            + (f", and {thousandths(rule.real)} of 1,000 real rows" if rule.real is not None else "")
            for rule in broken
        ]
        unsure = any(rule.suggested and rule.real is None for rule in broken)
        yield Evidence(
            basis=[m for rule in broken[:_NAMED] for m in (rule.synthetic, rule.real) if m is not None],
            said=_first(said),
            suggested="Names and units suggest rules that real rows may break too. " if unsure else "",
        )


#: part of a column's values outside its declared bounds that is reported
_CUT = 0.01
#: columns that one sentence names, and with the steps of their values
_NAMED, _NAMED_STEPS = 3, 2
#: tails and shares that are not plausible: so many times beyond the limit
_FAR = 4.0
#: AUC of one column above which it is named, and one that gives records away by itself
ALONE, ALONE_OBVIOUS = 0.55, 0.85
#: part of a column's AUC above 1/2 that last digits must reach to be named as the reason
_BY_DIGITS = 0.7


def clipped(evaluation: Evaluation) -> Iterator[Evidence]:
    """Do the declared bounds cut the real table, so that no other measure can see what was lost?"""
    for frame in evaluation.groups("outside_bounds", "table"):
        rows = [row for row in frame_rows(frame) if row.count > _CUT * row.of]
        if rows and rows[0].table == "train":
            named = [
                f"{row.count:,} of {row.of:,} values of {row.column} lie outside "
                f"{_bound(row.lower, row.unit)} to {_bound(row.upper, row.unit)}"
                for row in sorted(rows, key=lambda row: -row.count / row.of)
            ]
            yield Evidence(basis=_frame("outside_bounds", frame), said=_first(named))


def _bound(value: float, unit: str | None) -> str:
    return plain(value) if kind_of_unit(unit) is None else column_value(value, unit)


class Fault(NamedTuple):
    """A difference of a column, with its size in multiples of the aim.

    ``least`` is the end of its interval that lies nearest to no difference, or 0 if that lies inside.
    """

    column: str
    what: str
    size: float
    least: float

    @classmethod
    def of(cls, column: str, what: str, found: Any, aim: float | tuple[float, float]) -> Fault:
        """The fault of a row's difference that should stay within ``aim``, or of a ratio between two ends."""
        # Without an interval, nothing is sure.
        own = (found.lower, found.upper) if found.lower is not None else (-math.inf, math.inf)
        ends = (found.value, *own)
        value, lower, upper = ends if isinstance(aim, float) else (_in_logs(end, *aim) for end in ends)
        scale = aim if isinstance(aim, float) else 1.0
        return cls(column, what, abs(value) / scale, max(lower, -upper, 0.0) / scale)


#: in multiples of the aim, for a column that does not vary at all
_MOST = 1e6


def _in_logs(ratio: float, low: float, high: float) -> float:
    """A ratio on a scale where 1 is 0, ``low`` is -1 and ``high`` is 1."""
    if ratio <= 0.0:
        return -_MOST
    return math.log(ratio) / math.log(high) if ratio > 1.0 else -math.log(ratio) / math.log(low)


def _wrong(faults: Iterable[Fault]) -> list[Fault]:
    """The worst fault of each column beyond its aim, if its interval excludes no difference, worst first."""
    worst: dict[str, Fault] = {}
    for fault in sorted(faults, key=lambda fault: -fault.least):
        if fault.size > 1.0 and fault.least > 0.0:
            worst.setdefault(fault.column, fault)
    return [*worst.values()]


def _frame(name: str, frame: pd.DataFrame) -> Named:
    return Named(name, any_confidential(frame))


def _faulty(frame: pd.DataFrame, faults: Sequence[Fault], of: int, **more: object) -> Evidence:
    """The worst columns with their faults, and the names of all others."""
    wrong = _wrong(faults)
    said = [f"In {fault.column}, {fault.what}" for fault in wrong[:_NAMED]]
    said += [f"Also in {', '.join(fault.column for fault in wrong[_NAMED:])}"] * (len(wrong) > _NAMED)
    return Evidence(
        basis=_frame("tails", frame),
        wrong=len(wrong),
        of=of,
        far=bool(wrong) and wrong[0].least > _FAR,
        within=all(fault.size <= 1.0 for fault in faults),
        whose=whose_tails(frame),
        said=". ".join(said),
        **more,
    )


def whose_tails(frame: pd.DataFrame) -> str:
    """Words after a noun where patients have several rows."""
    return {"levels": " of patients' levels", "rows": " of rows"}.get(frame["of"].iloc[0], "")


def by_column(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of each column by measure, but for point masses, which are several."""
    numbers = frame[frame["measure"] != "point_mass_error"]
    return [{row.measure: row for row in frame_rows(own)} for _, own in numbers.groupby("column", sort=False)]


def frequent(at: object) -> str:
    """A value that holds many records, in words.

    Examples
    --------
    >>> frequent(36.0), frequent(36.6), frequent("08:30")
    ('36', '36.6', '08:30')
    """
    return str(int(at) if isinstance(at, float) and at.is_integer() else at)


def _each(frame: pd.DataFrame, counted: Counted) -> str:
    return "rows" if frame["of"].iloc[0] == "rows" else counted


def tails(evaluation: Evaluation) -> Iterator[Evidence]:
    """Are the standard deviations and the extreme values of numbers those of the real table?"""
    counted = evaluation.counted
    for frame in evaluation.groups("tails", "of"):
        numeric = [rows for rows in by_column(frame) if _value(rows, "spread_ratio") is not None]
        each = _each(frame, counted)
        faults = [fault for rows in numeric for fault in faults_of_tails(rows, each)]
        numbers = whose_tails(frame) or " of numbers"
        yield _faulty(frame, faults, len(numeric), numbers=numbers)


def _value(rows: Mapping[str, Any], measure: str) -> float | None:
    return rows[measure].value if measure in rows else None


def faults_of_tails(rows: Mapping[str, Any], each: str = "records") -> Iterator[Fault]:
    """Percentiles and the standard deviation of a column."""
    for where, measure in (("below", "percentile_1_error"), ("above", "percentile_99_error")):
        if _value(rows, measure) is not None:
            end = rows[measure]
            unit = f" {end.unit}" if end.unit and kind_of_unit(end.unit) is None else ""
            made, real = (column_value(percentile, end.unit) for percentile in (end.synthetic, end.real))
            what = f"1 in 100 {each} lies {where} {made}{unit}, and {where} {real} in the real table"
            yield Fault.of(end.column, what, end, PERCENTILE_AIM)
    if _value(rows, "spread_ratio") is not None:
        spread = rows["spread_ratio"]
        made, real = (column_width(d, spread.unit) for d in (spread.synthetic, spread.real))
        what = f"the standard deviation is {made}, and {real} in the real table"
        yield Fault.of(spread.column, what, spread, SPREAD_AIM)


def means(evaluation: Evaluation) -> Iterator[Evidence]:
    """Are the means of counts, costs and other numbers without negative values those of the real table?"""
    for frame in evaluation.groups("tails", "of"):
        faults = [fault for rows in by_column(frame) for fault in faults_of_means(rows)]
        yield _faulty(frame, faults, len(faults))


def faults_of_means(rows: Mapping[str, Any]) -> Iterator[Fault]:
    """The mean of a column that has one."""
    if "mean_ratio" in rows:
        row = rows["mean_ratio"]
        made, real = (column_value(mean, row.unit) for mean in (row.synthetic, row.real))
        yield Fault.of(row.column, f"the mean is {made}, and {real} in the real table", row, MEAN_AIM)


def point_masses(evaluation: Evaluation) -> Iterator[Evidence]:
    """Do values that hold many records hold as many in the synthetic table?"""
    counted = evaluation.counted
    for frame in evaluation.groups("tails", "of"):
        each = _each(frame, counted)
        masses = frame_rows(frame[frame["measure"] == "point_mass_error"])
        yield _faulty(frame, [_fault_of_mass(row, each) for row in masses], len(masses))


def _fault_of_mass(row: Any, each: str) -> Fault:
    made, real = hundredths(row.synthetic), hundredths(row.real)
    value = frequent(row.at)
    if isinstance(row.at, float) and not row.at.is_integer():
        value = plain(row.at)
    what = f"{made} of 100 {each} are exactly {value}, and {real} in the real table"
    return Fault.of(row.column, what, row, MASS_AIM)


def missing_together(evaluation: Evaluation) -> Iterator[Evidence]:
    """Are values missing together as in the real table?"""
    for frame in evaluation.groups("missing_cells"):
        for ratio in frame_rows(frame):
            yield Evidence(
                basis=Named("missing_cells", ratio.confidential),
                apart=ratio.upper < SPREAD_AIM[0],
                gathered=ratio.lower > SPREAD_AIM[1],
                synthetic=column_value(ratio.synthetic),
                real=column_value(ratio.train),
            )


def single_columns(evaluation: Evaluation) -> Iterator[Evidence]:
    """Which columns separate synthetic from real records by themselves?"""
    for frame in evaluation.groups("single_columns"):
        rows = separating(frame)
        if not rows:
            continue
        digits = [row.column for row in rows if _by_digits(row)]
        columns = "the column" if len(digits) == 1 else "the columns"
        yield Evidence(
            basis=_frame("single_columns", frame),
            some="One column alone separates"
            if len(rows) == 1
            else f"{len(rows)} columns, each alone, separate",
            named=few([f"{row.column} ({decimals(row.auc, 2)})" for row in rows], 5),
            habits=f". Last digits explain most of it in {columns} {few(digits, 5)}. Real values may often "
            "be tens, fives or halves"
            if digits
            else "",
            surely=max(row.lower for row in rows),
            people=min(row.size for row in rows),
        )


def separating(frame: pd.DataFrame) -> list[Any]:
    """The columns that surely separate synthetic from real records by themselves, the clearest first."""
    rows = [row for row in frame_rows(frame) if row.auc > ALONE and row.lower > 0.5]
    return sorted(rows, key=lambda row: -row.auc)


def _by_digits(row: Any) -> bool:
    digits = row.last_digits
    return digits is not None and digits - 0.5 > _BY_DIGITS * (row.auc - 0.5)


def finer_than_declared(evaluation: Evaluation) -> Iterator[Evidence]:
    """Does the synthetic table hold digits beyond the declared steps, which nobody compared?"""
    for frame in evaluation.groups("finer_than_declared", "table"):
        rows = frame_rows(frame)
        if rows[0].table == "synthetic":
            columns = ", ".join(between_steps(rows))
            yield Evidence(basis=_frame("finer_than_declared", frame), columns=columns)


def between_steps(rows: Sequence[Any]) -> list[str]:
    """Columns with the numbers of their values between steps, in all tables together, most first."""
    totals: dict[str, int] = {}
    steps: dict[str, str] = {}
    for row in rows:
        totals[row.column] = totals.get(row.column, 0) + row.count
        kind = kind_of_unit(row.unit)
        unit = row.unit if kind is None else kind.number_unit
        steps[row.column] = plain(row.step) + (f" {unit}" if unit else "")
    order = sorted(totals, key=lambda name: -totals[name])
    said = [f"{shown(totals[name])} values of {name} in steps of {steps[name]}" for name in order]
    more = len(said) - _NAMED_STEPS
    columns = "one more column" if more == 1 else f"{more} more columns"
    return [*said[:_NAMED_STEPS], f"and of {columns}"] if more > 0 else said


def _first(faults: Sequence[str]) -> str:
    more = len(faults) - _NAMED
    return ". ".join(faults[:_NAMED]) + (f". And {more} more" if more > 0 else "")


#: part of the synthetic rows that a comparison leaves out, above which the table cannot be used as it is
_MANY_LEFT_OUT = 0.01


def not_allowed(evaluation: Evaluation) -> Iterator[Evidence]:
    """Does the synthetic table hold values that the schema does not allow, and that cannot be compared?"""
    kept = get(evaluation, "synthetic_rows") or get(evaluation, "synthetic_records")
    left = get(evaluation, "rows_left_out")
    if left is None or kept is None or not number_of(left):
        return
    kinds = [get(evaluation, f"values_{kind}") for kind in ("undeclared", "missing")]
    values = [measure for measure in kinds if measure is not None and number_of(measure)]
    said = ", and ".join(f"{shown(m.value)} {m.detail.removeprefix('synthetic ')}" for m in values)
    yield Evidence(
        basis=[left, *values],
        left=shown(left.value),
        hold="row holds" if number_of(left) == 1 else "rows hold",
        said=f" ({said})" if said else "",
        many=number_of(left) > _MANY_LEFT_OUT * (number_of(left) + number_of(kept)),
    )


# ------------------------------------------------------------------------------------------------
# Patients with several rows: rows, gaps, correlations over time, whole patients.

#: distance of the numbers of rows, or of the gaps, that is small, and one that is large
CLOSE, FAR = 0.05, 0.1
#: difference of a correlation over time that is small, and one that is large
LAG_CLOSE, LAG_FAR = 0.05, 0.2


def whole_patients(evaluation: Evaluation) -> Iterator[Evidence]:
    """Can synthetic patients be separated from real ones by their rows?"""
    scores = [m for m in of_columns(evaluation, "patient_auc_") if "[" not in m.name]
    if not scores:
        return
    best = max(scores, key=number_of)
    losses = of_columns(evaluation, "patient_auc_loss[")
    losses = [m for m in losses if number_of(m) >= GIVES_AWAY and least(m) > 0]
    losses = sorted(losses, key=number_of, reverse=True)[:3]
    surely = max(map(least, scores))
    yield Evidence(
        basis=scores,
        losses=losses,
        best=best,
        value=number_of(best),
        surely=surely,
        easily=" easily" if surely > OBVIOUS else "",
        given=f". Shuffling lowers it most for {few(map(column_of, losses))}" if losses else "",
    )


def rows_and_gaps(evaluation: Evaluation) -> Iterator[Evidence]:
    """Have patients as many rows as real ones, as far apart?"""
    words = {"rows_tvd": "number of rows", "gap_ks": "times between rows"}
    known = [m for name in words if (m := get(evaluation, name)) is not None]
    beyond = [m for m in known if least(m) > CLOSE]
    if known:
        yield Evidence(
            basis=known,
            beyond=beyond,
            surely=max(map(least, known)),
            value=max(map(number_of, known)),
            said=", ".join(f"{words[m.name]} {measured(m)}" for m in beyond or known),
        )


def over_time(evaluation: Evaluation) -> Iterator[Evidence]:
    """Do the values of a patient belong together as those of a real one?"""
    known = [m for m in of_columns(evaluation, "lag") if "_difference[" in m.name]
    if not known:
        return
    beyond = sorted((m for m in known if _surely(m) > LAG_CLOSE), key=_surely, reverse=True)
    worst = max(known, key=lambda m: abs(number_of(m)))
    yield Evidence(
        basis=known,
        beyond=beyond,
        surely=max(map(_surely, known)),
        size=abs(number_of(worst)),
        named=few((f"{_lag(m)} {number_of(m):+.2f}" for m in beyond), 3),
        largest=f"{decimals(abs(number_of(worst)), 2)} ({_lag(worst)})",
    )


def _lag(measure: Measure) -> str:
    return f"{column_of(measure)}, {measure.name.split('_')[0].removeprefix('lag')} later"


def _surely(measure: Measure) -> float:
    """The least size of a difference within its interval."""
    return max(least(measure), -most(measure), 0.0)


#: rules on similarity
SIMILARITY = (
    Rule("distinguishable", told_apart, bad=lambda f: f.worst > OBVIOUS,
         caution=lambda f: f.worst > DISTINGUISHABLE or f.beyond_chance, rests_on=("basis", "columns")),
    Rule("uncertain", told_apart, open=lambda f: f.value > DISTINGUISHABLE,
         said="uncertain, distinguishable or not"),
    Rule("resembles", told_apart, good=lambda f: not f.alone),
    Rule("clipped", clipped, caution=otherwise, tables=("train",)),
    Rule("tails", tails, bad=lambda f: f.far, caution=lambda f: f.wrong),
    Rule("tails_hold", tails, good=lambda f: f.of and f.within),
    Rule("means", means, bad=lambda f: f.far, caution=lambda f: f.wrong),
    Rule("point_masses", point_masses, bad=lambda f: f.far, caution=lambda f: f.wrong),
    Rule("missing_together", missing_together, caution=lambda f: f.apart, said="missing_together, apart"),
    Rule("missing_together", missing_together, caution=lambda f: f.gathered,
         said="missing_together, gathered"),
    Rule("single_columns", single_columns, bad=lambda f: f.surely > ALONE_OBVIOUS, caution=otherwise),
    Rule("associations_lost", associations, bad=lambda f: f.part > ALL_LOST),
    Rule("associations_weak", associations, caution=lambda f: f.part > PARTLY_LOST),
    Rule("violates_constraints", constraints, caution=otherwise),
    Rule("finer_than_declared", finer_than_declared, caution=otherwise),
    Rule("not_allowed", not_allowed, bad=lambda f: f.many, caution=otherwise),
    Rule("patients_distinguishable", whole_patients, bad=lambda f: f.surely > OBVIOUS,
         caution=lambda f: f.surely > DISTINGUISHABLE, rests_on=("basis", "losses")),
    Rule("patients_resemble", whole_patients, good=lambda f: f.value <= DISTINGUISHABLE),
    Rule("lags_differ", over_time, bad=lambda f: f.surely > LAG_FAR, caution=lambda f: f.surely > LAG_CLOSE,
         rests_on=("beyond",)),
    Rule("lags_hold", over_time, good=lambda f: f.size <= LAG_CLOSE),
    Rule("rows_differ", rows_and_gaps, bad=lambda f: f.surely > FAR, caution=lambda f: f.surely > CLOSE,
         rests_on=("beyond",)),
    Rule("rows_hold", rows_and_gaps, good=lambda f: f.value <= CLOSE),
)  # fmt: skip
