"""Attack trainers with finitely many outcomes exactly (Pedersen 2022, sections 5.1 to 5.2.3).

Random bits are a list of equally likely seeds, probabilities are fractions, and nothing is estimated. The
attack is the Bayes-optimal one. Theorems 5.2.1 and 5.2.2 can be checked by enumeration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpsynth.errors import InputError

#: probabilities of a trainer's models
Law = Mapping[Hashable, Fraction]


def law(
    train: Callable[[Sequence[Any], Any], Hashable], records: Sequence[Any], seeds: Iterable[Any]
) -> dict[Hashable, Fraction]:
    """Return the distribution of ``train(records, seed)`` over equally likely seeds: that of M_i in (5.2).

    Examples
    --------
    >>> law(lambda records, seed: (sum(records) + (seed == 0)) % 2, [1, 1], range(4))
    {1: Fraction(1, 4), 0: Fraction(3, 4)}
    """
    models = [train(records, seed) for seed in seeds]
    if not models:
        raise InputError("seeds must hold at least one seed")
    found: dict[Hashable, Fraction] = {}
    for model in models:
        found[model] = found.get(model, Fraction(0)) + Fraction(1, len(models))
    return found


def posterior(first: Law, second: Law, model: Hashable) -> Fraction:
    """``Pr(u_1 was trained on | M = m)`` from the distributions of M_1, M_2, (5.6). 1/2 if impossible."""
    one, two = first.get(model, Fraction(0)), second.get(model, Fraction(0))
    return one / (one + two) if one + two else Fraction(1, 2)


def log_odds(first: Law, second: Law, model: Hashable) -> float:
    """``gamma(u_1, u_2)`` of a model, (5.8): infinite where only one of both can be."""
    one, two = first.get(model, Fraction(0)), second.get(model, Fraction(0))
    if one == two:
        return 0.0
    if not one or not two:
        return math.inf if one else -math.inf
    return math.log(one / two)


def optimal_accuracy(first: Law, second: Law) -> Fraction:
    """Accuracy of the Bayes-optimal attacker on a pair: 1/2 and half the total variation distance."""
    models = set(first) | set(second)
    return sum((max(first.get(m, Fraction(0)), second.get(m, Fraction(0))) for m in models), Fraction(0)) / 2


def average_law(laws: Iterable[tuple[Law, Fraction]]) -> dict[Hashable, Fraction]:
    """Distribution of M in (5.11): of a model that was trained with a record drawn at random."""
    found: dict[Hashable, Fraction] = {}
    for one, weight in laws:
        for model, probability in one.items():
            found[model] = found.get(model, Fraction(0)) + weight * probability
    return found


def risk(trained: Law, others: Iterable[tuple[Law, Fraction]]) -> Fraction:
    """Probability that the attacker is better than a coin against the record that was trained on.

    ``trained`` is the distribution of M_1, with the record. ``others`` are the distribution of M_i and the
    probability of u_i for every record that the partner can be. The risk is ``sum_i Pr(u_i) sum_{m: Pr(M_1 =
    m) > Pr(M_i = m)} Pr(M_1 = m)``. Theorem 5.2.1: it is 0 if and only if every M_i of positive probability
    has the distribution of M_1.
    """
    total = Fraction(0)
    for one, weight in others:
        better = (p for model, p in trained.items() if p > one.get(model, Fraction(0)))
        total += weight * sum(better, Fraction(0))
    return total


def seen_from_outside(
    models: Law, ask: Callable[[Hashable, Any], Hashable], questions: Sequence[Any]
) -> dict[Hashable, Fraction]:
    """Distribution of a black box's answers: models as the tuple of their answers to every question.

    Theorem 5.2.2: if no two models give the same answers everywhere, the attack on the answers is as good as
    that on the models.
    """
    found: dict[Hashable, Fraction] = {}
    for model, probability in models.items():
        answers = tuple(ask(model, question) for question in questions)
        found[answers] = found.get(answers, Fraction(0)) + probability
    return found


def privacy_parameter(laws: Iterable[Law]) -> float:
    """``max |gamma|`` over pairs of distributions and models, (5.9): the epsilon for replacing a record."""
    everything = list(laws)
    models = {model for one in everything for model in one}
    return max(
        (abs(log_odds(a, b, model)) for a in everything for b in everything for model in models), default=0.0
    )
