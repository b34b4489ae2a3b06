"""All attacks that need no generator, on plain tables of any tool, in bounded time.

Large tables are cut to random parts before they are attacked. The real records are the targets, and some
thousands of them give narrow intervals. As many synthetic ones as possible are searched, since a copy is
found only among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpsynth.attacks.attempt import Attempt
from dpsynth.attacks.synthetic.inference import infer_columns, known_columns
from dpsynth.attacks.synthetic.linkability import check_linked, link_people
from dpsynth.attacks.synthetic.membership import membership_risks
from dpsynth.attacks.synthetic.risk import Proved, Risk
from dpsynth.attacks.synthetic.singling_out import single_out
from dpsynth.errors import InputError
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
    seeds = np.random.SeedSequence(int(rng.integers(2**63))).spawn(4)
    streams = [np.random.default_rng(seed) for seed in seeds]

    tell("singling out", 0.0)
    counted = part(tables, effort.counted, effort.counted, streams[0])
    risks = [
        single_out(counted, columns=width, rng=streams[0], count=effort.descriptions, level=level)
        for width in ((1, COLUMNS) if len(tables.schema.modelled) > 1 else (1,))
    ]
    tell("linkability", 0.0)
    near = part(tables, *affordable(tables, 2, effort), streams[1])
    risks.append(link_people(near, linked, rng=streams[1], proved=proved.advantage, level=level))
    tell("inference", 0.0)
    columns = len(tables.schema.modelled) if sensitive is None else len(sensitive)
    guessed = part(tables, *affordable(tables, columns, effort), streams[2])
    risks += infer_columns(guessed, sensitive, rng=streams[2], proved=proved.advantage, level=level)
    tell("membership", 0.0)
    near = part(tables, *affordable(tables, 0.1, effort), streams[3])  # matrix products are quicker
    risks += membership_risks(near, rng=streams[3], proved=proved, level=level)
    tell("membership", 1.0)
    return tuple(risk for risk in risks if risk is not None)


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
