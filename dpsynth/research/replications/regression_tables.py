"""Compare a study's real, synthetic and private estimates, with each other and with the paper's conclusions.

Everything is compared with the regression of *all* real records, not with that of the training part. This
part has fewer records and is itself a source that is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean, stdev
from typing import Any, Literal

from dpsynth.evaluation.effects import interval_overlap
from dpsynth.research.replications.arms import HEALTHGAN, REAL
from dpsynth.research.replications.protocol import Finding, Reported
from dpsynth.research.replications.results import NOT_PRIVATE, OverSeeds, Results
from dpsynth.research.replications.sheets import (
    NOT_KNOWN,
    Sheet,
    SheetCell,
    counted,
    effect,
    effects_over_seeds,
    measured_over_seeds,
    over_seeds,
    three_decimals,
)
from dpsynth.research.replications.trial import Draw, Trial

Side = Literal["real", "synthetic", "declared"]
Conclusion = Literal["above", "below", "none"]
Rows = Sequence[Sequence[SheetCell]]
#: in a row of its own under the terms
_POOLED = "all terms"
#: of logarithms: beyond exp(700) there is no float
_FURTHEST = 700.0


@dataclass(frozen=True)
class EstimateSource:
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

    results: Results
    number: int
    label: str
    told: Any
    real: dict[str, Any]

    @property
    def ratio(self) -> bool:
        """Whether effects are ratios, so that none is 1."""
        return self.told.measure != "difference"

    def conclusion(self, told: Any) -> Conclusion:
        """Whether an interval lies above or below no effect, or covers it."""
        none = 1.0 if self.ratio else 0.0
        return "above" if told.lower > none else "below" if told.upper < none else "none"

    def sign(self, told: Any) -> int:
        """On which side of no effect an estimate lies, 0 for neither."""
        value = self._additive(told.estimate)
        return 0 if value == 0 else int(math.copysign(1, value))

    def _additive(self, value: float) -> float:
        """On the scale on which intervals are symmetric."""
        if not self.ratio:
            return value
        return min(max(math.log(value), -_FURTHEST), _FURTHEST) if value > 0 else -_FURTHEST

    def overlap(self, told: Any, real: Any) -> float | None:
        """Karr's overlap of two intervals."""
        first, second = ((self._additive(each.lower), self._additive(each.upper)) for each in (told, real))
        return interval_overlap(first, second)

    def found(self, term: str, source: EstimateSource, draw: Draw = "split") -> list[Any]:
        """An effect of each seed's first fit."""
        trials = self.results.of(source.arm, draw).values()
        return [effect_of(of_seed[0], self.number, term, source.side) for of_seed in trials]

    def beside_real(
        self, compared: Sequence[EstimateSource], value: Callable[[Any, Any], Any], draw: Draw = "split"
    ) -> dict[str, list[list[Any]]]:
        """Compare each estimate with that of all real records: by term, by source, of each seed.

        None where an estimate is lacking. A term that all real records lack has no seed.
        """
        return {
            term: [
                []
                if real is None
                else [told and value(told, real) for told in self.found(term, source, draw)]
                for source in compared
            ]
            for term, real in self.real.items()
        }

    def sheet(
        self,
        name: str,
        title: str,
        columns: Iterable[EstimateSource | str],
        rows: Sequence[Sequence[SheetCell]],
        *notes: str,
    ) -> Sheet:
        """A sheet of this regression, a row a term."""
        header = ("term", *(column if isinstance(column, str) else column.label for column in columns))
        title = f"Regression {self.label}: {title}"
        return Sheet(f"regression-{self.number + 1}-{name}", title, header, tuple(map(tuple, rows)), notes)


def regressions(results: Results) -> tuple[Regression, ...]:
    """Return the protocol's regressions. Those that no record was read for are left out."""
    trials = [trial for found in results.of(REAL).values() for trial in found if trial.sets]
    if not trials:
        return ()
    labels = [study.label for study in results.protocol.studies]
    return tuple(
        Regression(
            results, number, label, told, {term: _defined(of["real"]) for term, of in told.terms.items()}
        )
        for number, (label, told) in enumerate(zip(labels, trials[0].sets[0].regressions, strict=True))
    )


def labels(compared: Iterable[EstimateSource]) -> list[str]:
    """Headers of sources' columns."""
    return [source.label for source in compared]


def sources(results: Results) -> tuple[EstimateSource, ...]:
    """Return the compared sources: training part, HealthGAN, and both kinds of estimates at each epsilon."""
    found = [EstimateSource("training part", REAL, "synthetic")]
    if any(arm.name == HEALTHGAN for arm in results.arms):
        found.append(EstimateSource(f"HealthGAN naive ({NOT_PRIVATE})", HEALTHGAN, "synthetic"))
    return (*found, *_private(results))


def _private(results: Results) -> list[EstimateSource]:
    sides: tuple[tuple[str, Side], ...] = (("naive", "synthetic"), ("declared", "declared"))
    return [
        EstimateSource(f"{arm.name} {kind}", arm.name, side)
        for arm in results.arms
        if arm.whole
        for kind, side in sides
    ]


def effect_of(trial: Trial, number: int, term: str, side: Side) -> Any:
    """Return an effect in the first table of a trial, or None if it has none."""
    if not trial.sets or number >= len(trial.sets[0].regressions):
        return None
    of = trial.sets[0].regressions[number].terms.get(term)
    return None if of is None else _defined(of[side])


def _defined(told: Any) -> Any:
    """None as well where a number is none."""
    if told is None:
        return None
    return None if any(map(math.isnan, (told.estimate, told.lower, told.upper))) else told


def regression_sheets(results: Results) -> tuple[Sheet, ...]:
    """Return the sheets of each regression: estimates, signs, decisions, overlaps, coverage."""
    return tuple(sheet for each in regressions(results) for sheet in _of_regression(each))


def _of_regression(each: Regression) -> Iterator[Sheet]:
    compared = sources(each.results)
    yield _estimates(each, compared)
    yield _agreement(
        each, compared, "sign", "seeds with an estimate on the same side of no effect",
        lambda told, real: each.sign(told) == each.sign(real),
        "An estimate that is lacking, or a fit that was refused, counts as a sign that is lost.",
    )  # fmt: skip
    yield _agreement(
        each, compared, "decision", "seeds with the same decision as all real records",
        lambda told, real: each.conclusion(told) == each.conclusion(real),
        "A decision is what the 95 % interval says: an effect above, an effect below, or none shown. An "
        "interval that is wide enough shows nothing, and agrees wherever the real records show nothing "
        "either. An estimate that is lacking counts as disagreement.",
    )  # fmt: skip
    yield _overlaps(each, compared)
    if any(trial.task.draw == "resample" for trial in each.results.trials):
        yield _coverage(each)


def _estimates(each: Regression, compared: Sequence[EstimateSource]) -> Sheet:
    def over(found: Iterable[Any]) -> SheetCell:
        return effects_over_seeds(OverSeeds.of(told.estimate for told in found if told), each.results.seeds)

    rows = [
        [SheetCell(term), effect(real), *(over(each.found(term, source)) for source in compared)]
        for term, real in each.real.items()
    ]
    reasons = (
        f"No estimate from {'all real' if side == 'real' else 'training'} records: {why}."
        for side, why in (("real", each.told.problem_real), ("synthetic", each.told.problem_synthetic))
        if why
    )
    return each.sheet(
        "estimates",
        f"{each.told.measure} of each term",
        ("all real records (95 % interval)", *labels(compared)),
        rows,
        f"{each.told.formula} (all {each.told.n_real:,} real records).".strip(),
        *reasons,
        "In the first column the parentheses hold the 95 % interval. In all others they hold the "
        "lowest and the highest of the estimates over seeds, which is no confidence interval.",
        "Training part: the same regression on the real records that the generators were fitted to, as "
        "the best that any of them could do. Naive: on a synthetic table as if it were a sample of "
        "patients, which is not valid as inference. Declared: the private estimates, paid for out of ε.",
    )


def _agreement(
    each: Regression,
    compared: Sequence[EstimateSource],
    name: str,
    title: str,
    agree: Callable[[Any, Any], bool],
    note: str,
) -> Sheet:
    """Number of seeds in which each source agrees with all real records, by term and in all."""
    found = each.beside_real(compared, agree)
    found[_POOLED] = [list(chain(*by_term)) for by_term in zip(*found.values(), strict=True)]
    rows = [
        [SheetCell(term), *(counted(sum(map(bool, seeds)), len(seeds)) for seeds in by_source)]
        for term, by_source in found.items()
    ]
    return each.sheet(name, title, labels(compared), rows, note)


def _overlaps(each: Regression, compared: Sequence[EstimateSource]) -> Sheet:
    """Karr's overlap with the interval of all real records, by term. Also the mean over terms, 0 if apart."""

    def over(seeds: Iterable[float | None]) -> SheetCell:
        return over_seeds(OverSeeds.of(seeds), three_decimals, each.results.seeds)

    found = each.beside_real(compared, each.overlap)
    rows = [[SheetCell(term), *map(over, by_source)] for term, by_source in found.items()]
    pooled = [SheetCell(_POOLED)]
    for by_seed in _by_seed(found):
        pooled.append(over(fmean(max(one, 0.0) for one in overlaps) for overlaps in by_seed))
    return each.sheet(
        "overlap",
        "overlap of the 95 % interval with that of all real records",
        labels(compared),
        [*rows, pooled],
        "Karr's overlap: 1 for the same interval, below 0 for intervals that are apart. An interval that "
        "holds the other one has at least 0.5, however wide it is. The last row is the overlap's "
        "mean over the terms with an estimate, apart counting as 0. The training part has "
        "fewer records than all, so that its intervals are wider, and its overlap is what can be hoped "
        "for.",
    )


def _by_seed(found: Mapping[str, Sequence[Sequence[Any]]]) -> Iterator[list[list[Any]]]:
    """For each source and each of its seeds what is known of the terms, seeds without anything left out."""
    for by_term in zip(*found.values(), strict=True):
        by_seed = zip(*(seeds for seeds in by_term if seeds), strict=True)
        known = [[one for one in terms if one is not None] for terms in by_seed]
        yield [terms for terms in known if terms]


def _coverage(each: Regression) -> Sheet:
    """How many intervals cover the effect in all records, over resamples."""
    private = _private(each.results)
    compared = [
        EstimateSource("records of the resample", source.arm, "real") for source in private[:1]
    ] + private
    held = each.beside_real(compared, _holds, "resample")
    rows = []
    for term, by_source in held.items():
        known = [[one for one in seeds if one is not None] for seeds in by_source]
        rows.append([SheetCell(term), *(counted(sum(seeds), len(seeds)) for seeds in known)])
    pooled = [
        SheetCell(_POOLED),
        *(_share([fmean(terms) for terms in by_seed]) for by_seed in _by_seed(held)),
    ]
    return each.sheet(
        "coverage",
        "95 % intervals that hold the estimate of all real records",
        labels(compared),
        [*rows, pooled],
        "Over resamples of the records with replacement, each as large as a training part, with one fit "
        "each. The last row is the share over all terms, with its standard error over resamples (0 "
        "says nothing where all hold); an honest "
        "interval has 95 %. An interval without an end holds everything. Estimates that are lacking "
        "are not counted.",
    )


def _holds(told: Any, real: Any) -> bool:
    return told.lower <= real.estimate <= told.upper


def _share(shares: Sequence[float]) -> SheetCell:
    """A mean over resamples with its standard error."""
    if not shares:
        return SheetCell(NOT_KNOWN)
    numbers = {"share": fmean(shares), "resamples": float(len(shares))}
    text = f"{100 * numbers['share']:.1f} %"
    if len(shares) > 1:
        numbers["standard_error"] = stdev(shares) / math.sqrt(len(shares))
        text += f" (s.e. {100 * numbers['standard_error']:.1f})"
    return SheetCell(text, numbers)


def paper_sheets(results: Results) -> tuple[Sheet, ...]:
    """Return the sheets of the paper's findings and of its areas under the curve."""
    found = {each.label: each for each in regressions(results)}
    sheets = []
    if results.protocol.findings and found:
        sheets.append(_findings(results, found))
    if results.protocol.aucs:
        sheets.append(_aucs(results))
    return tuple(sheets)


def finding_lines(results: Results) -> list[str]:
    """Return the findings as lines for a terminal: the conclusion, and in how many seeds it is kept."""
    lines = []
    for sheet in (sheet for sheet in paper_sheets(results) if sheet.name == "findings"):
        for finding, reported, real, *counts in sheet.rows:
            kept = [entry.text.partition(";")[0] for entry in counts]
            told = ", ".join(map(" ".join, zip(sheet.header[3:], kept, strict=True)))
            lines.append(finding.text)
            lines += [f"  reported {reported.text}; all real records {real.text}", f"  kept: {told}"]
    return lines


def _findings(results: Results, found: Mapping[str, Regression]) -> Sheet:
    """For each finding the paper's number, that of all real records, and how often each source keeps it."""
    compared = [source for source in sources(results) if source.arm not in (REAL, HEALTHGAN)]
    rows = []
    for finding in results.protocol.findings:
        each = found[finding.study]
        real = each.real.get(finding.term)
        kept = "no estimate" if real is None else "kept" if _kept(each, finding, real) else "lost"
        number = finding.reported
        reported = SheetCell("no number") if number is None else _reported(number, f", {number.where}")
        here = SheetCell(kept) if real is None else effect(real, f", {kept}")
        found_in = (_kept_in(each, finding, source) for source in compared)
        rows.append((SheetCell(_concluded(finding, each)), reported, here, *found_in))
    return Sheet(
        "findings",
        "What the paper concluded, and in how many seeds it is still concluded",
        ("finding", "reported", "all real records here", *labels(compared)),
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


def _reported(told: Reported, where: str = "") -> SheetCell:
    if told.lower is None or told.upper is None:
        return SheetCell(f"{told.value:g}{where}", {"value": told.value})
    numbers = {"value": told.value, "lower": told.lower, "upper": told.upper}
    return SheetCell(f"{told.value:g} ({told.lower:g} to {told.upper:g}){where}", numbers)


def _kept(each: Regression, finding: Finding, told: Any) -> bool:
    return told is not None and each.conclusion(told) == finding.effect


def _kept_in(each: Regression, finding: Finding, source: EstimateSource) -> SheetCell:
    told = each.found(finding.term, source)
    count = counted(sum(_kept(each, finding, one) for one in told), len(told))
    estimates = effects_over_seeds(OverSeeds.of(one.estimate for one in told if one), len(told))
    if not told:
        return SheetCell("no fit")
    return SheetCell(f"{count.text}; {estimates.text}", {**count.numbers, **estimates.numbers})


def _aucs(results: Results) -> Sheet:
    """Reported by the paper, of real data here, and of synthetic tables."""
    classifiers = results.protocol.classifiers
    names = [f"auc_{name}" for name in ("mean", *classifiers)]
    rows = [
        (SheetCell(f"paper: {told.model}, {told.where}"), _reported(told), *[SheetCell("")] * len(names))
        for told in results.protocol.aucs
    ]
    names_of = {REAL: "real training records", HEALTHGAN: f"{HEALTHGAN} ({NOT_PRIVATE})"}
    for arm in results.arms:
        if not arm.shared:
            found = measured_over_seeds(results, results.first(arm.name), names)
            rows.append((SheetCell(names_of.get(arm.name, arm.name)), SheetCell(""), *found))
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
