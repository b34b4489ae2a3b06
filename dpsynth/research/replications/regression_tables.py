"""Compare a study's real, synthetic and private estimates, with each other and with the paper's conclusions.

Everything is compared with the regression of *all* real records, not with that of the training part. This
part has fewer records and is itself a source that is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from dpsynth.evaluation.details import Effect, Effects
from dpsynth.evaluation.replication.evaluator import interval_overlap
from dpsynth.research.replications.arms import HEALTHGAN, REAL
from dpsynth.research.replications.protocol import Finding, Reported
from dpsynth.research.replications.results import NOT_PRIVATE, OverSeeds, Results
from dpsynth.research.replications.sheets import (
    NOT_KNOWN,
    Entry,
    Sheet,
    counted,
    decimals,
    effect,
    effects_over_seeds,
    measured,
    over_seeds,
)
from dpsynth.research.replications.trial import Draw, Trial

Side = Literal["real", "synthetic", "declared"]
Conclusion = Literal["above", "below", "none"]
#: in a row of its own under the terms
_POOLED = "all terms"
#: of logarithms: beyond exp(700) there is no float
_FURTHEST = 700.0


@dataclass(frozen=True)
class Source:
    """Compared estimates: of an arm's first table, or the private ones of its first fit."""

    label: str
    arm: str
    side: Side


@dataclass(frozen=True)
class Regression:
    """A regression of the study, counted from 0, and its result on all real records.

    ``told`` are effects of the records themselves. ``real`` are those in all real records by term, None if
    there is none.
    """

    number: int
    label: str
    told: Effects
    real: dict[str, Effect | None]

    @property
    def ratio(self) -> bool:
        """Whether effects are ratios, so that none is 1."""
        return self.told.measure != "difference"

    def conclusion(self, told: Effect) -> Conclusion:
        """Whether an interval lies above or below no effect, or covers it."""
        none = 1.0 if self.ratio else 0.0
        return "above" if told.lower > none else "below" if told.upper < none else "none"

    def additive(self, value: float) -> float:
        """On the scale on which intervals are symmetric."""
        if not self.ratio:
            return value
        return min(max(math.log(value), -_FURTHEST), _FURTHEST) if value > 0 else -_FURTHEST

    def overlap(self, told: Effect, real: Effect) -> float | None:
        """Karr's overlap of two intervals."""
        first, second = ((self.additive(each.lower), self.additive(each.upper)) for each in (told, real))
        return interval_overlap(first, second)


def regressions(results: Results) -> tuple[Regression, ...]:
    """Return the protocol's regressions. Those that no record was read for are left out."""
    trials = [trial for found in results.of(REAL).values() for trial in found if trial.sets]
    if not trials:
        return ()
    details = trials[0].sets[0].effects
    labels = [study.label for study in results.protocol.studies]
    found = []
    for number, (label, told) in enumerate(zip(labels, details, strict=True)):
        real = {row.term: _defined(row.real) for row in told.rows}
        found.append(Regression(number, label, told, real))
    return tuple(found)


def sources(results: Results) -> tuple[Source, ...]:
    """Return the compared sources: training part, HealthGAN, and both kinds of estimates at each epsilon."""
    found = [Source("training part", REAL, "synthetic")]
    for arm in results.arms:
        if arm.name == HEALTHGAN:
            found.append(Source(f"HealthGAN naive ({NOT_PRIVATE})", arm.name, "synthetic"))
        elif arm.whole:
            found.append(Source(f"{arm.name} naive", arm.name, "synthetic"))
            found.append(Source(f"{arm.name} declared", arm.name, "declared"))
    return tuple(found)


def effect_of(trial: Trial, number: int, term: str, side: Side) -> Effect | None:
    """Return an effect in the first table of a trial, or None if it has none."""
    if not trial.sets or number >= len(trial.sets[0].effects):
        return None
    rows = trial.sets[0].effects[number].rows
    return next((_defined(getattr(row, side)) for row in rows if row.term == term), None)


def _defined(told: Effect | None) -> Effect | None:
    """None as well where a number is none."""
    if told is None:
        return None
    return None if any(map(math.isnan, (told.estimate, told.lower, told.upper))) else told


def over_trials(
    results: Results, each: Regression, term: str, source: Source, draw: Draw = "split"
) -> list[Effect | None]:
    """An effect of each seed's first fit."""
    return [
        effect_of(trials[0], each.number, term, source.side)
        for trials in results.of(source.arm, draw).values()
    ]


def regression_sheets(results: Results) -> tuple[Sheet, ...]:
    """Return the sheets of each regression: estimates, signs, decisions, overlaps, coverage."""
    return tuple(sheet for each in regressions(results) for sheet in _of_regression(results, each))


def _of_regression(results: Results, each: Regression) -> Iterator[Sheet]:
    compared = sources(results)
    rows = [
        (
            Entry(term),
            effect(real),
            *(
                effects_over_seeds(
                    OverSeeds.of(told.estimate for told in over_trials(results, each, term, source) if told),
                    results.seeds,
                )
                for source in compared
            ),
        )
        for term, real in each.real.items()
    ]
    name, measure = f"regression-{each.number + 1}", each.told.measure
    reasons = each.told.problems
    yield Sheet(
        f"{name}-estimates",
        f"Regression {each.label}: {measure} of each term",
        ("term", "all real records (95 % interval)", *(source.label for source in compared)),
        tuple(rows),
        (
            f"{each.told.formula} (all {each.told.n_real:,} real records).".strip(),
            *(f"No estimate from {'all real' if side == 'real' else 'training'} records: {why}." for
              side, why in reasons.items()),
            "In the first column the parentheses hold the 95 % interval. In all others they hold the "
            "lowest and the highest of the estimates over seeds, which is no confidence interval.",
            "Training part: the same regression on the real records that the generators were fitted to, as "
            "the best that any of them could do. Naive: on a synthetic table as if it were a sample of "
            "patients, which is not valid as inference. Declared: the private estimates, paid for out of ε.",
        ),
    )  # fmt: skip
    yield _agreement(
        results, each, compared, "sign", "seeds with an estimate on the same side of no effect",
        lambda told, real: _sign(each, told) == _sign(each, real),
        "An estimate that is lacking, or a fit that was refused, counts as a sign that is lost.",
    )  # fmt: skip
    yield _agreement(
        results, each, compared, "decision", "seeds with the same decision as all real records",
        lambda told, real: each.conclusion(told) == each.conclusion(real),
        "A decision is what the 95 % interval says: an effect above, an effect below, or none shown. An "
        "interval that is wide enough shows nothing, and agrees wherever the real records show nothing "
        "either. An estimate that is lacking counts as disagreement.",
    )  # fmt: skip
    yield _overlaps(results, each, compared)
    if any(trial.task.draw == "resample" for trial in results.trials):
        yield _coverage(results, each)


def _sign(each: Regression, told: Effect) -> int:
    value = each.additive(told.estimate)
    return 0 if value == 0 else int(math.copysign(1, value))


def _agreement(
    results: Results,
    each: Regression,
    compared: Sequence[Source],
    name: str,
    what: str,
    agree: Callable[[Effect, Effect], bool],
    note: str,
) -> Sheet:
    """Number of seeds in which each source agrees with all real records, by term and in all."""
    rows, totals = [], [[0, 0] for _ in compared]
    for term, real in each.real.items():
        row = [Entry(term)]
        for place, source in enumerate(compared):
            told = [] if real is None else over_trials(results, each, term, source)
            agreed = sum(effect is not None and real is not None and agree(effect, real) for effect in told)
            row.append(counted(agreed, len(told)))
            totals[place][0] += agreed
            totals[place][1] += len(told)
        rows.append(tuple(row))
    rows.append((Entry(_POOLED), *(counted(*total) for total in totals)))
    return Sheet(
        f"regression-{each.number + 1}-{name}",
        f"Regression {each.label}: {what}",
        ("term", *(source.label for source in compared)),
        tuple(rows),
        (note,),
    )


def _overlaps(results: Results, each: Regression, compared: Sequence[Source]) -> Sheet:
    """Karr's overlap with the interval of all real records, by term. Also the mean over terms, 0 if apart."""
    overlaps: dict[str, list[list[float | None]]] = {
        term: [
            [None if told is None or real is None else each.overlap(told, real) for told in found]
            for found in (over_trials(results, each, term, source) for source in compared)
        ]
        for term, real in each.real.items()
    }
    rows = [
        (Entry(term), *(over_seeds(OverSeeds.of(found), decimals, results.seeds) for found in by_source))
        for term, by_source in overlaps.items()
    ]
    pooled = [Entry(_POOLED)]
    for place in range(len(compared)):
        by_seed = zip(*(by_source[place] for by_source in overlaps.values()), strict=True)
        known = [[max(value, 0.0) for value in values if value is not None] for values in by_seed]
        means = OverSeeds.of(fmean(values) for values in known if values)
        pooled.append(over_seeds(means, decimals, results.seeds))
    return Sheet(
        f"regression-{each.number + 1}-overlap",
        f"Regression {each.label}: overlap of the 95 % interval with that of all real records",
        ("term", *(source.label for source in compared)),
        (*rows, tuple(pooled)),
        (
            "Karr's overlap: 1 for the same interval, below 0 for intervals that are apart. An interval that "
            "holds the other one has at least 0.5, however wide it is. The last row is the overlap's "
            "mean over the terms with an estimate, apart counting as 0. The training part has "
            "fewer records than all, so that its intervals are wider, and its overlap is what can be hoped "
            "for.",
        ),
    )


def _coverage(results: Results, each: Regression) -> Sheet:
    """How many intervals cover the effect in all records, over resamples."""
    private = [arm for arm in results.arms if arm.whole]
    compared = [Source("records of the resample", arm.name, "real") for arm in private[:1]]
    for arm in private:
        compared.append(Source(f"{arm.name} naive", arm.name, "synthetic"))
        compared.append(Source(f"{arm.name} declared", arm.name, "declared"))
    rows: list[list[Entry]] = [[Entry(term)] for term in each.real]
    pooled = [Entry(_POOLED)]
    for source in compared:
        held: list[list[bool | None]] = []  # by term, of each resample
        for row, (term, real) in zip(rows, each.real.items(), strict=True):
            told = [] if real is None else over_trials(results, each, term, source, "resample")
            held.append([None if t is None or real is None else _holds(t, real) for t in told])
            known = [value for value in held[-1] if value is not None]
            row.append(counted(sum(known), len(known)))
        shares = []
        for values in zip(*(each_term for each_term in held if each_term), strict=True):
            defined = [value for value in values if value is not None]
            shares += [fmean(defined)] if defined else []
        pooled.append(_share(shares))
    return Sheet(
        f"regression-{each.number + 1}-coverage",
        f"Regression {each.label}: 95 % intervals that hold the estimate of all real records",
        ("term", *(source.label for source in compared)),
        tuple(tuple(row) for row in (*rows, pooled)),
        (
            "Over resamples of the records with replacement, each as large as a training part, with one fit "
            "each. The last row is the share over all terms, with its standard error over resamples (0 "
            "says nothing where all hold); an honest "
            "interval has 95 %. An interval without an end holds everything. Estimates that are lacking "
            "are not counted.",
        ),
    )


def _holds(told: Effect, real: Effect) -> bool:
    return told.lower <= real.estimate <= told.upper


def _share(shares: Sequence[float]) -> Entry:
    """A mean over resamples with its standard error."""
    if not shares:
        return Entry(NOT_KNOWN)
    numbers = {"share": fmean(shares), "resamples": float(len(shares))}
    text = f"{100 * numbers['share']:.1f} %"
    if len(shares) > 1:
        numbers["standard_error"] = stdev(shares) / math.sqrt(len(shares))
        text += f" (s.e. {100 * numbers['standard_error']:.1f})"
    return Entry(text, numbers)


def paper_sheets(results: Results) -> tuple[Sheet, ...]:
    """Return the sheets of the paper's findings and of its areas under the curve."""
    found = {each.label: each for each in regressions(results)}
    sheets = []
    if results.protocol.findings and found:
        sheets.append(_findings(results, found))
    if results.protocol.aucs:
        sheets.append(_aucs(results))
    return tuple(sheets)


def told(results: Results) -> list[str]:
    """Return the findings as lines for a terminal: the conclusion, and in how many seeds it is kept."""
    lines = []
    for sheet in paper_sheets(results):
        if sheet.name != "findings":
            continue
        for finding, reported, real, *sources_ in sheet.rows:
            kept = (
                f"{name} {entry.text.partition(';')[0]}"
                for name, entry in zip(sheet.header[3:], sources_, strict=True)
            )
            lines += [
                finding.text,
                f"  reported {reported.text}; all real records {real.text}",
                f"  kept: {', '.join(kept)}",
            ]
    return lines


def _findings(results: Results, found: Mapping[str, Regression]) -> Sheet:
    """For each finding the paper's number, that of all real records, and how often each source keeps it."""
    compared = [source for source in sources(results) if source.arm not in (REAL, HEALTHGAN)]
    rows = []
    for finding in results.protocol.findings:
        each = found[finding.study]
        real = each.real.get(finding.term)
        kept = "no estimate" if real is None else "kept" if _kept(each, finding, real) else "lost"
        rows.append(
            (
                Entry(_concluded(finding, each)),
                _reported(number, f", {number.where}")
                if (number := finding.reported)
                else Entry("no number"),
                Entry(kept) if real is None else effect(real, f", {kept}"),
                *(_kept_in(results, each, finding, source) for source in compared),
            )
        )
    return Sheet(
        "findings",
        "What the paper concluded, and in how many seeds it is still concluded",
        ("finding", "reported", "all real records here", *(source.label for source in compared)),
        tuple(rows),
        (
            "Kept: the 95 % interval says what the paper concluded, above or below no effect, or, for a "
            "finding of none, that none is shown. A wide interval keeps a finding of none without showing "
            "anything. Estimates that are lacking and fits that were refused count as lost.",
            "Each source: in how many seeds the finding is kept; then the median estimate, with the lowest "
            "and the highest.",
            "What is lost in all real records as well is no fault of a synthetic table.",
        ),
    )


def _concluded(finding: Finding, each: Regression) -> str:
    none = "1" if each.ratio else "0"
    where = f"{finding.effect} {none}" if finding.effect != "none" else f"{none} not excluded"
    return f"{finding.text} [{finding.term}: {where}]"


def _reported(told: Reported, where: str = "") -> Entry:
    if told.lower is None or told.upper is None:
        return Entry(f"{told.value:g}{where}", {"value": told.value})
    numbers = {"value": told.value, "lower": told.lower, "upper": told.upper}
    return Entry(f"{told.value:g} ({told.lower:g} to {told.upper:g}){where}", numbers)


def _kept(each: Regression, finding: Finding, told: Effect | None) -> bool:
    return told is not None and each.conclusion(told) == finding.effect


def _kept_in(results: Results, each: Regression, finding: Finding, source: Source) -> Entry:
    told = over_trials(results, each, finding.term, source)
    count = counted(sum(_kept(each, finding, one) for one in told), len(told))
    estimates = effects_over_seeds(OverSeeds.of(one.estimate for one in told if one), len(told))
    if not told:
        return Entry("no fit")
    return Entry(f"{count.text}; {estimates.text}", {**count.numbers, **estimates.numbers})


def _aucs(results: Results) -> Sheet:
    """Reported by the paper, of real data here, and of synthetic tables."""
    classifiers = results.protocol.classifiers
    names = [f"auc_{name}" for name in ("mean", *classifiers)]
    rows = [
        (Entry(f"paper: {told.model}, {told.where}"), _reported(told), *[Entry("")] * len(names))
        for told in results.protocol.aucs
    ]
    for arm in results.arms:
        if arm.shared:
            continue
        chosen = results.first(arm.name)
        label = "real training records" if arm.name == REAL else arm.name
        found = measured(results, chosen, names)
        rows.append(
            (Entry(f"{label} ({NOT_PRIVATE})" if arm.name == HEALTHGAN else label), Entry(""), *found)
        )
    return Sheet(
        "aucs",
        "Areas under the ROC curve: reported, with real records here, and with synthetic ones",
        ("trained on", "reported", "mean here", *(name.replace("_", " ") for name in classifiers)),
        tuple(rows),
        (
            "What is trained here predicts from all columns, and is tested on real records that were held "
            "out.",
        ),
    )
