"""What a study's regressions say of real, synthetic and private estimates: term by term.

Everything is compared with the regression of *all* real records, not with that of the training part, which
has fewer records and is itself a source that is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean, stdev

from dpsynth.evaluation.details import Effect
from dpsynth.research.replications.effects import Regression, Source, over_trials, regressions, sources
from dpsynth.research.replications.results import OverSeeds, Results
from dpsynth.research.replications.sheets import (
    NOT_KNOWN,
    Entry,
    Sheet,
    counted,
    decimals,
    effect,
    effects_over_seeds,
    over_seeds,
)

#: in a row of its own under the terms
_POOLED = "all terms"


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
    """In how many seeds each source agrees with all real records, by term and in all."""
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
    """Karr's overlap with the interval of all real records, by term; the mean over terms, 0 where apart."""
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
    """How many intervals hold the effect in all records, over resamples."""
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
