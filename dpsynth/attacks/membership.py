"""Membership: was this person's record used? By distance, and by the ratio of two densities.

The attacker holds a whole record and says "was used" if it looks like the synthetic table. The *distance*
score is minus the distance to the closest synthetic record. The *density ratio* compares the density of
the synthetic table around the record with that of other records of the population. It separates a copied
record from one among many similar ones. DOMIAS (van Breugel et al. 2023) estimates both densities by a
network or by kernels. Here the nearest neighbour does. Its width follows the density. Half of the held-out
records are the attacker's knowledge of the population. The other half are the people who were not used. An
attacker who expects both kinds equally often says "was used" of the upper half.
"""

from __future__ import annotations

import numpy as np

from dpsynth.attacks.attempt import COIN, Attempt, Floats
from dpsynth.attacks.risk import CLOSER, Bools, Proved, Risk, rate_of
from dpsynth.checks import Counted
from dpsynth.evaluation.distances import Membership, density_ratio, membership, record_distance
from dpsynth.evaluation.estimates import Estimate, share
from dpsynth.evaluation.neighbours import nearest
from dpsynth.evaluation.tables import Tables


def membership_risks(
    tables: Tables, *, rng: np.random.Generator, proved: Proved | None = None, level: float = 0.95
) -> tuple[Risk, ...]:
    """Attack all records by distance and, if there are four held-out ones, by the ratio of densities.

    ``rate`` is the share of the training records that are called used, ``held_out`` that of the held-out
    ones, ``excess`` the advantage. ``more`` holds the accuracy on pairs (the area under the ROC curve). It
    also holds the true positive rate at the smallest false positive rate that can be measured.
    """
    assert tables.test is not None
    proved = proved or Proved()
    schema, counted = tables.schema.modelled, tables.schema.counted
    metric = record_distance(schema)
    made, used, others = (metric.encode(f, schema) for f in (tables.synthetic, tables.train, tables.test))
    others = others[rng.permutation(len(others))]
    scores = [-np.sqrt(nearest(points, made, metric, 1).distance[:, 0]) for points in (used, others)]
    holds = f"all values of a person's {counted.own}"
    risks = [_risk("distance", holds, scores[0], scores[1], proved, level, counted)]
    half = len(others) // 2
    if half >= 2:
        ratios = [
            density_ratio(-score, np.sqrt(nearest(points, others[:half], metric, 1).distance[:, 0]))
            for points, score in ((used, scores[0]), (others[half:], scores[1][half:]))
        ]
        holds += f", and {half:,} other {counted} of the population"
        risks.append(_risk("density ratio", holds, ratios[0], ratios[1], proved, level, counted))
    return tuple(risks)


def called_used(used: Floats, others: Floats) -> tuple[Bools, Bools]:
    """Return who is called used: those at or above the median, to which both kinds contribute equally.

    Examples
    --------
    >>> [calls.tolist() for calls in called_used(np.array([4.0, 3.0, 3.0, 2.0]), np.array([1.0, 2.0]))]
    [[True, True, True, True], [False, True]]
    """
    scores = np.concatenate([used, others])
    weights = np.concatenate([np.full(len(used), 0.5 / len(used)), np.full(len(others), 0.5 / len(others))])
    order = np.argsort(-scores, kind="stable")
    threshold = scores[order][np.searchsorted(np.cumsum(weights[order]), 0.5 - 1e-9)]
    return used >= threshold, others >= threshold


def _risk(
    name: str, holds: str, used: Floats, others: Floats, proved: Proved, level: float, counted: Counted
) -> Risk:
    first, second = (rate_of(calls, level) for calls in called_used(used, others))
    attack = membership(-used, -others, rates=(0.1, 0.01, 0.001), level=level)
    return Risk.of(
        "membership",
        name,
        holds,
        (first, COIN, second),
        (len(used), len(others)),
        proved=proved.advantage,
        level=level,
        about="of the half that looks most like the synthetic table the attacker says that it was used",
        more=tuple(_more(name, attack, others, proved, level, counted)),
    )


def _more(
    name: str, attack: Membership, others: Floats, proved: Proved, level: float, counted: Counted
) -> list[Attempt]:
    tried = f"{attack.n_members:,} training, {attack.n_non_members:,} held-out {counted}"
    closer = counted.fill(CLOSER) if proved.pairs is not None else ""
    pairs = Attempt(
        f"membership, {name}, one of two",
        "accuracy",
        attack.auc,
        proved.pairs,
        COIN,
        f"area under the ROC curve for the question of which of two {counted} was used, {tried}",
        closer,
        level,
        one_table=True,
    )
    measured = [rate for rate, found in attack.tpr.items() if found is not None]
    if not measured:
        return [pairs]
    rate = min(measured)
    found, chance = attack.tpr[rate], attack.tpr_by_chance[rate]
    assert found is not None and chance is not None
    m = len(others)
    # the threshold was set by few records: its rate is higher than this once in 1,000 tables
    highest = share(int(np.floor(rate * m + 1e-9)), m, 0.998).upper
    tpr = Attempt(
        f"membership, {name}, at a false positive rate of {100 * rate:g} %",
        "tpr",
        found,
        proved.tpr(highest),
        Estimate(rate, 0.0, chance),
        f"{tried}. The rate itself is known to be at most {100 * highest:.2g} %",
        closer,
        level,
        one_table=True,
    )
    return [pairs, tpr]
