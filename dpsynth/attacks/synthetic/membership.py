"""Membership: was this person's record used? By distance, and by the ratio of two densities.

The attacker holds a whole record and says "was used" where it looks like the synthetic table. By *distance*:
minus the distance to the closest synthetic record. By *density ratio*: how much denser the synthetic table
lies around the record than other records of the population do, which tells a copied record from one in a
crowd (van Breugel et al. 2023, DOMIAS). Both densities are sums of Gaussian kernels over the package's record
distance, of one width, at which the synthetic records predict one another best (leave one out); where DOMIAS
has a neural density estimator, this works at any size and in seconds. Half of the held-out records are the
attacker's knowledge of the population, the other half the people who were not used.

Distances, areas under ROC curves and true positive rates are those of :mod:`dpsynth.evaluation.disclosure`.
An attacker who has to decide says "was used" of the upper half of all records that she can choose from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpsynth.attacks.attempt import Attempt
from dpsynth.attacks.synthetic.proved import Proved
from dpsynth.attacks.synthetic.risk import Risk, compared
from dpsynth.evaluation.disclosure.distances import record_distance
from dpsynth.evaluation.disclosure.membership_distance import Membership, membership
from dpsynth.evaluation.estimates import Estimate, share
from dpsynth.evaluation.neighbours.metrics import Metric
from dpsynth.evaluation.neighbours.search import nearest, over_tiles
from dpsynth.evaluation.tables import Tables

Floats = NDArray[np.float64]

#: widths tried, in medians of the distance to the closest other synthetic record
_WIDTHS = 2.0 ** np.arange(-3.0, 3.0)
#: synthetic records by which the width is chosen
_CHOOSING = 1000
_HALF = Estimate(0.5, 0.5, 0.5)
_CLOSER = (
    "the table would have to repeat single records; the bound allows for an attacker who sees every noisy "
    "number and knows all other records"
)


def membership_risks(
    tables: Tables, *, rng: np.random.Generator, proved: Proved | None = None, level: float = 0.95
) -> tuple[Risk, ...]:
    """Attack by distance and, where there are four held-out records, by the ratio of densities.

    Parameters
    ----------
    tables : Tables
        With held-out records. All records are attacked.
    proved : Proved, optional
        What the table's ledger allows.

    Returns
    -------
    tuple of Risk
        ``rate`` is the share of the training records that are called used, ``held_out`` that of the held-out
        ones, ``excess`` the advantage. ``more`` holds the accuracy on pairs (the area under the ROC curve)
        and the true positive rate at the smallest false positive rate that can be measured.
    """
    assert tables.test is not None
    proved = proved or Proved()
    schema = tables.schema.modelled
    metric = record_distance(schema)
    made, used, others = (metric.encode(f, schema) for f in (tables.synthetic, tables.train, tables.test))
    others = others[rng.permutation(len(others))]
    scores = [-np.sqrt(nearest(points, made, metric, 1).distance[:, 0]) for points in (used, others)]
    risks = [_risk("distance", "a person's whole record", scores[0], scores[1], proved, level)]
    half = len(others) // 2
    if half >= 2:
        known, rest = others[:half], others[half:]
        width = kernel_width(made, metric, rng)
        scores = [density_ratio(points, made, known, metric, width) for points in (used, rest)]
        holds = f"a person's whole record, and {half:,} other records of the population"
        risks.append(_risk("density ratio", holds, scores[0], scores[1], proved, level))
    return tuple(risks)


def density_ratio(points: Floats, made: Floats, known: Floats, metric: Metric, width: float) -> Floats:
    """Return the logarithm of synthetic over population density at each point, shape (n,)."""
    return log_density(points, made, metric, width) - log_density(points, known, metric, width)


def log_density(
    points: Floats, others: Floats, metric: Metric, width: float, *, itself: NDArray[np.int64] | None = None
) -> Floats:
    """Logarithm of a sum of Gaussian kernels, up to a constant; a block of distances at a time.

    Parameters
    ----------
    points, others : ndarray of shape (n, d), (m, d)
    metric : Metric
        Whose tiles hold squared distances.
    itself : ndarray of int of shape (n,), optional
        The position of each point among the others, which is left out.
    """
    parts = over_tiles(
        lambda _, tile: np.asarray(logsumexp(tile / (-2.0 * width**2), axis=1)), points, others, metric, itself
    )
    members = len(others) - (itself is not None)
    return np.concatenate(parts) - float(np.log(members))


def kernel_width(made: Floats, metric: Metric, rng: np.random.Generator) -> float:
    """Width at which synthetic records predict one another best: what the attacker can choose by herself."""
    place = np.sort(rng.permutation(len(made))[:_CHOOSING])
    own = place.astype(np.int64)
    gaps = np.sqrt(nearest(made[place], made, metric, 1, itself=own).distance[:, 0])
    typical = float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 1.0
    tried = typical * _WIDTHS
    # the kernel's constant depends on the width: width**-d, d the number of varying coordinates
    coordinates = max(int((made.std(axis=0) > 0).sum()), 1)
    fit = [
        float(np.mean(np.maximum(log_density(made[place], made, metric, w, itself=own), -1e3)))
        - coordinates * float(np.log(w))
        for w in tried
    ]
    return float(tried[int(np.argmax(fit))])


def called_used(used: Floats, others: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return who is called used: the upper half of all scores, ties included unless they are everybody's.

    Examples
    --------
    >>> [calls.tolist() for calls in called_used(np.array([3.0, 2.0]), np.array([1.0, 2.0]))]
    [[True, True], [False, True]]
    """
    middle = float(np.median(np.concatenate([used, others])))
    return used >= middle, others >= middle


def _risk(name: str, holds: str, used: Floats, others: Floats, proved: Proved, level: float) -> Risk:
    calls = called_used(used, others)
    found = compared(*calls, level)
    attack = membership(-used, -others, rates=(0.1, 0.01, 0.001), level=level)
    return Risk(
        "membership",
        name,
        holds,
        found.rate,
        _HALF,
        found.held_out,
        found.excess,
        found.normalised,
        (len(used), len(others)),
        proved.advantage,
        level,
        f'"was used" is said of the upper half of {len(used) + len(others):,} records',
        tuple(_more(name, attack, others, proved, level)),
    )


def _more(name: str, attack: Membership, others: Floats, proved: Proved, level: float) -> list[Attempt]:
    tried = f"{attack.n_members:,} training, {attack.n_non_members:,} held-out records"
    pairs = Attempt(
        f"membership, {name}, one of two",
        "accuracy",
        attack.auc,
        proved.pairs,
        _HALF,
        f"area under the ROC curve: which of two records was used; {tried}",
        _CLOSER if proved.pairs is not None else "",
        level,
    )
    measured = [rate for rate, found in attack.tpr.items() if found is not None]
    if not measured:
        return [pairs]
    rate = min(measured)
    found, chance = attack.tpr[rate], attack.tpr_by_chance[rate]
    assert found is not None and chance is not None
    m = len(others)
    # the threshold was set by few records: its rate may be as high as this
    highest = share(int(np.floor(rate * m + 1e-9)), m, level).upper
    tpr = Attempt(
        f"membership, {name}, at a false positive rate of {100 * rate:g} %",
        "tpr",
        found,
        proved.tpr(highest),
        Estimate(rate, 0.0, chance),
        f"{tried}; the rate itself is known to be at most {100 * highest:.2g} %",
        _CLOSER if proved.pairs is not None else "",
        level,
    )
    return [pairs, tpr]
