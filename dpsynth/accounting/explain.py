"""What each measure means for one patient, in one sentence of plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpsynth.accounting.statement import round_up


def explain(cost: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each number of :func:`~dpsynth.accounting.measures.measures`.

    Values are rounded up: a bound is not rounded in its own favour.

    Examples
    --------
    >>> from dpsynth.accounting import from_parameters
    >>> for name, value, meaning in explain(from_parameters(2.0, 1.0, 4, 1e-5))[:2]:
    ...     print(f"{name}: {value}. {meaning}")
    epsilon: 4.37718 at delta 1e-05. Any event is at most 79.62 times as probable with this patient as ...
    total variation: 0.382925. Nothing that can happen to this patient because of the release becomes more ...
    """
    replaced = cost["adjacency"] != "add/remove"
    change = "this patient's record rather than another's" if replaced else "this patient as without"
    delta, prior, fpr = cost["delta"], cost["prior"], cost["fpr"]
    factor = math.exp(cost["epsilon"]) if cost["epsilon"] < 700 else math.inf
    blind = max(prior, 1 - prior)
    return [
        (
            "epsilon",
            f"{round_up(cost['epsilon'], 6)} at delta {round_up(delta)}",
            f"Any event is at most {round_up(factor)} times as probable with {change}, plus at most "
            f"{round_up(delta)}.",
        ),
        (
            "total variation",
            round_up(cost["tv"], 6),
            "Nothing that can happen to this patient because of the release becomes more probable by more "
            f"than {_percent(cost['tv'])} points in 100 through being in the table.",
        ),
        (
            "attack advantage",
            round_up(cost["advantage"], 6),
            "A test of whether this patient is in the table finds members at most "
            f"{_percent(cost['advantage'])} times in 100 more often than it suspects non-members.",
        ),
        (
            "attack accuracy",
            f"{round_up(cost['attack_accuracy_bound'], 6)} at prior {prior:g}",
            f"Whoever guesses whether this patient is in the table is right at most "
            f"{_percent(cost['attack_accuracy_bound'])} times in 100; without the release, "
            f"{_percent(blind)} times.",
        ),
        (
            "TPR at FPR",
            f"{round_up(cost['tpr_at_fpr'], 6)} at FPR {fpr:g}",
            f"A test that suspects {_percent(fpr)} in 100 non-members wrongly finds this patient, a member, "
            f"with a probability of at most {round_up(cost['tpr_at_fpr'])}.",
        ),
        (
            "advantage at FPR",
            f"{round_up(cost['advantage_at_fpr'], 6)} at FPR {fpr:g}",
            "That is at most so much more than such a test would find by chance.",
        ),
        (
            "precision at FPR",
            f"{round_up(cost['ppv_at_fpr'], 6)} at FPR {fpr:g}, prior {prior:g}",
            f"If {_percent(prior)} in 100 of those tested are members, a patient whom such a test names is "
            f"one with a probability of at most {round_up(cost['ppv_at_fpr'])}.",
        ),
        (
            "posterior belief",
            f"{round_up(cost['belief_bound'], 6)} from prior {prior:g}",
            f"Who knows all other records and believes with {prior:g} that this patient is in the table ends "
            f"up believing it with at most {round_up(cost['belief_bound'])}, but for the probability that "
            "follows.",
        ),
        (
            "belief exceeded",
            round_up(cost["belief_exceedance"], 6),
            "This is the probability that the belief goes beyond that bound; it can be more than delta.",
        ),
        (
            "Gaussian mu",
            round_up(cost["mu"], 6),
            "To tell whether this patient is in the table is at least as hard as to tell from one draw of a "
            f"normal distribution with std 1 whether its mean is 0 or {round_up(cost['mu'])} (but for tests "
            "with an error rate below 1e-6).",
        ),
    ]


def _percent(share: float) -> str:
    return round_up(100 * share, 3)
