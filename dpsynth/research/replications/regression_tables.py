"""Compare a study's real, synthetic and private estimates, with each other and with the paper's conclusions.

Everything is compared with the regression of *all* real records, not with that of the training part. This
part has fewer records and is itself a source that is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import stdev
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.effects import interval_overlap
from dpsynth.research.replications.arms import HEALTHGAN, REAL
from dpsynth.research.replications.protocol import Finding, Reported
from dpsynth.research.replications.results import NOT_PRIVATE, Results, Row, over_seeds, study_sheet
from dpsynth.research.replications.trial import FRAMES, Draw
from dpsynth.research.writing import NOT_KNOWN, Sheet, SheetCell, counted
from dpsynth.studies.study import effect_texts, interval_texts

Side = Literal["real", "synthetic", "declared"]
_SIDES: tuple[Side, ...] = ("real", "synthetic", "declared")
_ENDS = ("estimate", "lower", "upper")
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


@dataclass(frozen=True, eq=False)
class Regression:
    """A regression of the study, counted from 0.

    ``told`` is its row among the regressions of all real records, and ``of_all`` has its rows of effects.
    """

    results: Results
    number: int
    label: str
    told: Mapping[str, Any]
    of_all: Sequence[Mapping[str, Any]]

    @property
    def ratio(self) -> bool:
        """Whether effects are ratios, so that none is 1."""
        return bool(self.told["measure"] != "difference")

    @cached_property
    def real(self) -> pd.DataFrame:
        """Effects in all real records: ``estimate``, ``lower``, ``upper`` by term, NaN if there is none."""
        rows = [row for row in self.of_all if row["side"] == "real"]
        return pd.DataFrame(map(_ends, rows), [row["term"] for row in rows], _ENDS)

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """All estimates of first fits, each beside that of all real records (``real_estimate``, ...).

        A row for each ``arm``, ``draw``, ``seed``, ``side`` and ``term``, NaN where an estimate is lacking.
        ``sign`` and ``decision`` say whether it agrees, ``overlap`` is Karr's, and ``holds`` says whether its
        interval covers the real estimate.
        """
        rows = []
        for trial in (trial for trial in self.results.trials if not trial.task.restart):
            effects = trial.sets[0]["effects"] if trial.sets else ()
            told = {
                (row["term"], row["side"]): row
                for row in effects
                if row["regression"] == self.told["regression"]
            }
            rows += [
                {**vars(trial.task), "term": term, "side": side, **_ends(told.get((term, side)))}
                for term in self.real.index
                for side in _SIDES
            ]
        found = pd.DataFrame(rows, columns=["arm", "draw", "seed", "side", "term", *_ENDS])
        real = self.real.loc[found["term"]].set_axis(found.index)
        known = found["estimate"].notna() & real["estimate"].notna()
        pairs = zip(self._intervals(found), self._intervals(real), strict=True)
        return found.join(real.add_prefix("real_")).assign(
            sign=known & (self.sign(found) == self.sign(real)),
            decision=known & (self.conclusion(found) == self.conclusion(real)),
            overlap=np.array([interval_overlap(*pair) for pair in pairs], dtype=float),
            holds=known & real["estimate"].between(found["lower"], found["upper"]),
        )

    def of(self, source: EstimateSource, term: str | None = None, draw: Draw = "split") -> pd.DataFrame:
        """Rows of :attr:`estimates` of a source and a term, or of all terms, a row a seed."""
        rows = self.estimates.query("arm == @source.arm and side == @source.side and draw == @draw")
        return rows if term is None else rows.query("term == @term")

    def conclusion(self, effects: pd.DataFrame) -> NDArray[np.str_]:
        """Whether intervals lie ``above`` or ``below`` no effect, or cover it (``none``)."""
        none = 1.0 if self.ratio else 0.0
        return np.select([effects["lower"] > none, effects["upper"] < none], ["above", "below"], "none")

    def sign(self, effects: pd.DataFrame) -> NDArray[np.float64]:
        """On which side of no effect estimates lie, 0 for neither."""
        return np.sign(self._additive(effects["estimate"]))

    def _intervals(self, effects: pd.DataFrame) -> Iterator[tuple[float, float]]:
        return zip(*(self._additive(effects[end]).tolist() for end in ("lower", "upper")), strict=True)

    def _additive(self, values: pd.Series) -> NDArray[np.float64]:
        """On the scale on which intervals are symmetric."""
        if not self.ratio:
            return values.to_numpy()
        with np.errstate(divide="ignore"):
            return np.clip(np.log(np.maximum(values.to_numpy(), 0.0)), -_FURTHEST, _FURTHEST)

    def sheet(
        self,
        name: str,
        compared: Sequence[EstimateSource],
        cell: Callable[[pd.DataFrame], SheetCell],
        pooled: Callable[[pd.DataFrame], SheetCell] | None = None,
        *,
        draw: Draw = "split",
        real: bool = False,
        notes: Iterable[str] = (),
    ) -> Sheet:
        """A sheet with a row for each term and a cell for each source's estimates.

        ``pooled`` makes a last row, of all terms. ``real`` puts the effects in all real records first.
        """
        made = {term: [cell(self.of(source, term, draw)) for source in compared] for term in self.real.index}
        rows: list[Row] = [
            [term, *([effect_cell(self.real, term)] if real else []), *cells] for term, cells in made.items()
        ]
        if pooled is not None:
            rows.append([_POOLED, *(pooled(self.of(source, None, draw)) for source in compared)])
        return study_sheet(
            name,
            rows,
            columns=labels(compared),
            notes=notes,
            prefix=f"regression-{self.number + 1}-",
            regression=self.label,
            measure=self.told["measure"],
        )


def _ends(effect: Mapping[str, float] | None) -> dict[str, float]:
    """An effect's estimate and interval, all NaN where one of them is none."""
    ends = {} if effect is None else {name: effect[name] for name in _ENDS if effect[name] is not None}
    return ends if len(ends) == len(_ENDS) else dict.fromkeys(_ENDS, math.nan)


def regressions(results: Results) -> tuple[Regression, ...]:
    """Return the protocol's regressions. Those that no record was read for are left out."""
    trials = [trial for found in results.of(REAL).values() for trial in found if trial.sets]
    if not trials:
        return ()
    told, effects = (trials[0].sets[0][name] for name in FRAMES)
    pairs = zip(results.protocol.studies, told, strict=True)
    return tuple(
        Regression(
            results, i, study.label, each, [e for e in effects if e["regression"] == each["regression"]]
        )
        for i, (study, each) in enumerate(pairs)
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


def regression_sheets(results: Results) -> tuple[Sheet, ...]:
    """Return the sheets of each regression: estimates, signs, decisions, overlaps, coverage."""
    return tuple(sheet for each in regressions(results) for sheet in _of_regression(each))


def _of_regression(each: Regression) -> Iterator[Sheet]:
    compared, seeds = sources(each.results), each.results.seeds
    reasons = (
        f"No estimate from {'all real' if side == 'real' else 'training'} records: {why}."
        for side in ("real", "synthetic")
        if (why := each.told[f"problem_{side}"])
    )
    formula = f"{each.told['formula']} (all {each.told['n_real']:,} real records).".strip()
    yield each.sheet(
        "estimates",
        compared,
        lambda found: over_seeds(found["estimate"], seeds, interval_texts),
        real=True,
        notes=(formula, *reasons),
    )
    yield each.sheet("sign", compared, _agreeing("sign"), _agreeing("sign"))
    yield each.sheet("decision", compared, _agreeing("decision"), _agreeing("decision"))
    yield each.sheet(
        "overlap",
        compared,
        lambda found: over_seeds(found["overlap"], seeds),
        # apart counts as 0
        lambda found: over_seeds(found["overlap"].clip(lower=0.0).groupby(found["seed"]).mean(), seeds),
    )
    if any(trial.task.draw == "resample" for trial in each.results.trials):
        private = _private(each.results)
        records = [EstimateSource("records of the resample", source.arm, "real") for source in private[:1]]
        yield each.sheet("coverage", [*records, *private], _covering, _share_covering, draw="resample")


def _agreeing(name: str) -> Callable[[pd.DataFrame], SheetCell]:
    """In how many seeds estimates agree with all real records. A term that these lack has no seed."""

    def cell(found: pd.DataFrame) -> SheetCell:
        agree = found.loc[found["real_estimate"].notna(), name]
        return counted(int(agree.sum()), len(agree))

    return cell


def effect_cell(effects: pd.DataFrame, term: str, rest: str = "") -> SheetCell:
    """A term's estimate with its interval, and a remark."""
    numbers = {name: float(effects[name].get(term, math.nan)) for name in _ENDS}
    if math.isnan(numbers["estimate"]):
        return SheetCell(NOT_KNOWN)
    estimate, lower, upper = effect_texts(numbers)
    return SheetCell(f"{estimate} ({lower} to {upper}){rest}", numbers)


def _both_known(found: pd.DataFrame) -> pd.DataFrame:
    return found.dropna(subset=["estimate", "real_estimate"])


def _covering(found: pd.DataFrame) -> SheetCell:
    """How many intervals cover the effect in all records."""
    known = _both_known(found)
    return counted(int(known["holds"].sum()), len(known))


def _share_covering(found: pd.DataFrame) -> SheetCell:
    """The share of intervals that cover, a mean over resamples with its standard error."""
    shares = _both_known(found).groupby("seed")["holds"].mean().tolist()
    if not shares:
        return SheetCell(NOT_KNOWN)
    numbers = {"share": float(np.mean(shares)), "resamples": float(len(shares))}
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
    rows: list[Row] = []
    for finding in results.protocol.findings:
        each, number = found[finding.study], finding.reported
        kept = _kept(each, finding, each.real).get(finding.term, False)
        here = effect_cell(each.real, finding.term, ", kept" if kept else ", lost")
        rows.append(
            [
                _concluded(finding, each),
                "no number" if number is None else _reported(number, f", {number.where}"),
                here if here.numbers else "no estimate",
                *(_kept_in(each, finding, source) for source in compared),
            ]
        )
    return study_sheet("findings", rows, columns=labels(compared))


def _concluded(finding: Finding, each: Regression) -> str:
    none = "1" if each.ratio else "0"
    where = f"{finding.effect} {none}" if finding.effect != "none" else f"{none} not excluded"
    return f"{finding.text} [{finding.term}: {where}]"


def _reported(told: Reported, where: str = "") -> SheetCell:
    if told.lower is None or told.upper is None:
        return SheetCell(f"{told.value:g}{where}", {"value": told.value})
    numbers = {"value": told.value, "lower": told.lower, "upper": told.upper}
    return SheetCell(f"{told.value:g} ({told.lower:g} to {told.upper:g}){where}", numbers)


def _kept(each: Regression, finding: Finding, effects: pd.DataFrame) -> pd.Series:
    """Whether each estimate's interval says what the paper concluded."""
    return effects["estimate"].notna() & (each.conclusion(effects) == finding.effect)


def _kept_in(each: Regression, finding: Finding, source: EstimateSource) -> SheetCell:
    found = each.of(source, finding.term)
    if found.empty:
        return SheetCell("no fit")
    count = counted(int(_kept(each, finding, found).sum()), len(found))
    estimates = over_seeds(found["estimate"], len(found), interval_texts)
    return SheetCell(f"{count.text}; {estimates.text}", {**count.numbers, **estimates.numbers})


def _aucs(results: Results) -> Sheet:
    """Reported by the paper, of real data here, and of synthetic tables."""
    classifiers = results.protocol.classifiers
    names = [f"auc_{name}" for name in ("mean", *classifiers)]
    rows: list[Row] = [
        [f"paper: {told.model}, {told.where}", _reported(told), *[""] * len(names)]
        for told in results.protocol.aucs
    ]
    names_of = {REAL: "real training records", HEALTHGAN: f"{HEALTHGAN} ({NOT_PRIVATE})"}
    for arm in results.arms:
        if not arm.shared:
            found = results.measured(results.first(arm.name), *names)
            rows.append([names_of.get(arm.name, arm.name), "", *found])
    return study_sheet("aucs", rows, columns=(name.replace("_", " ") for name in classifiers))
