"""All privacy measures of a profile: as one record of numbers, and in words for one patient."""

from __future__ import annotations

import math
from typing import Any

from dpsynth.accounting.events import training_event
from dpsynth.accounting.guarantee import round_up
from dpsynth.accounting.normal_form import ADD_REMOVE
from dpsynth.accounting.profile import Profile
from dpsynth.checks import in_range, inside, whole

#: numbers by name, as :func:`measures_of` lists them
Measures = dict[str, Any]


def from_parameters(
    noise_multiplier: float,
    sampling_prob: float,
    steps: int,
    delta: float,
    *,
    adjacency: str = ADD_REMOVE,
    prior: float = 0.5,
    fpr: float = 0.01,
) -> Measures:
    """Privacy of a training run of noisy sums over Poisson batches.

    ``noise_multiplier`` is finite, ``sampling_prob`` in (0, 1] and ``delta`` in [0, 1). At 0, epsilon is
    infinite. Returns the parameters, and the measures of :func:`measures_of`.

    Examples
    --------
    >>> cost = from_parameters(2.0, 1.0, 4, 1e-5)
    >>> round(cost["epsilon"], 4), round(cost["tv"], 5)
    (4.3772, 0.38292)
    """
    multiplier = inside("noise_multiplier", noise_multiplier, 0.0, math.inf)
    profile = Profile([training_event(multiplier, sampling_prob, steps)], adjacency=adjacency)
    return {
        "noise_multiplier": multiplier,
        "sampling_prob": float(sampling_prob),
        "steps": whole("steps", steps),
        **measures_of(profile, delta, prior=prior, fpr=fpr),
    }


def measures_of(profile: Profile, delta: float, *, prior: float = 0.5, fpr: float = 0.01) -> Measures:
    """Return all privacy measures of a profile.

    ``delta``, in [0, 1), is for epsilon and the belief. ``prior``, in (0, 1), is the share of members among
    those whom an attacker tests, or an observer's belief beforehand. ``fpr`` is the false positive rate of a
    membership test. InputError names an argument that is out of range.

    Returns
    -------
    dict
        ``adjacency``, ``delta``, ``prior``, ``fpr``, ``epsilon``, ``tv``, ``advantage``,
        ``attack_accuracy_bound`` (for ``prior``), ``mu``, ``advantage_at_fpr``, ``tpr_at_fpr``,
        ``ppv_at_fpr``, ``belief_bound`` and ``belief_exceedance`` (the probability that this is exceeded).
    """
    delta = in_range("delta", delta, 0.0, 1.0, high_open=True)
    prior = inside("prior", prior, 0.0, 1.0)
    epsilon = profile.epsilon(delta)
    return {
        "adjacency": profile.adjacency,
        "delta": delta,
        "prior": prior,
        "fpr": in_range("fpr", fpr, 0.0, 1.0),
        "epsilon": epsilon,
        "tv": profile.tv(),
        "advantage": profile.advantage(),
        "attack_accuracy_bound": profile.attack_accuracy(prior),
        "mu": profile.mu(),
        "advantage_at_fpr": profile.advantage(fpr),
        "tpr_at_fpr": float(profile.tpr(fpr)),
        "ppv_at_fpr": profile.ppv(fpr, prior),
        "belief_bound": profile.belief(delta, prior),
        "belief_exceedance": profile.belief_exceedance(delta),
    }


def meanings(cost: Measures) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each number of :func:`measures_of`, rounded up: never in the bound's favour.

    Examples
    --------
    >>> for name, value, meaning in meanings(from_parameters(2.0, 1.0, 4, 1e-5))[:2]:
    ...     print(f"{name}: {value}. {meaning}")
    epsilon: 4.37718 at delta 1e-05. Any event is at most 79.62 times as probable with this patient as ...
    total variation: 0.382925. Being in the table makes nothing that can happen to this patient more ...
    """
    replaced = cost["adjacency"] != "add/remove"
    change = "this patient's record rather than another's" if replaced else "this patient as without"
    delta, prior, fpr = cost["delta"], cost["prior"], cost["fpr"]
    return [
        (
            "epsilon",
            f"{round_up(cost['epsilon'], 6)} at delta {round_up(delta)}",
            times_as_probable(cost["epsilon"], delta, change),
        ),
        (
            "total variation",
            round_up(cost["tv"], 6),
            points_more_probable(cost["tv"], "this patient", "the table"),
        ),
        (
            "attack advantage",
            round_up(cost["advantage"], 6),
            "A test of whether this patient is in the table finds members at most "
            f"{percent(cost['advantage'])} times in 100 more often than it suspects non-members."
            if percent(cost["advantage"]) != "100"
            else "A test of whether this patient is in the table may find every member and suspect nobody "
            "else.",
        ),
        (
            "attack accuracy",
            f"{round_up(cost['attack_accuracy_bound'], 6)} at prior probability {prior:g}",
            f"A guess of whether this patient is in the table "
            f"{right_at_most(cost['attack_accuracy_bound'])}. Without the output it is right "
            f"{percent(max(prior, 1 - prior))} times in 100.",
        ),
        (
            "TPR at FPR",
            f"{round_up(cost['tpr_at_fpr'], 6)} at FPR {fpr:g}",
            f"A test that suspects {percent(fpr)} in 100 non-members wrongly finds this patient, a member, "
            f"with a probability of at most {round_up(cost['tpr_at_fpr'])}.",
        ),
        (
            "advantage at FPR",
            f"{round_up(cost['advantage_at_fpr'], 6)} at FPR {fpr:g}",
            "Such a test finds at most this much more than it would by chance.",
        ),
        (
            "precision at FPR",
            f"{round_up(cost['ppv_at_fpr'], 6)} at FPR {fpr:g}, prior probability {prior:g}",
            f"If {percent(prior)} in 100 of those tested are members, a patient whom such a test names is "
            f"one with a probability of at most {round_up(cost['ppv_at_fpr'])}.",
        ),
        (
            "posterior belief",
            f"{round_up(cost['belief_bound'], 6)} from prior probability {prior:g}",
            "An attacker who knows all other records sees one output. The probability that this patient is "
            f"in the table is then at most {round_up(cost['belief_bound'])} to them, but for rare outputs.",
        ),
        (
            "belief exceeded",
            round_up(cost["belief_exceedance"], 6),
            "Outputs after which the belief is beyond that bound have at most this probability. It can be "
            "more than delta.",
        ),
        (
            "Gaussian mu",
            round_up(cost["mu"], 6),
            "A test of whether this patient is in the table is at least as hard as the following one. Given "
            "one value from a normal distribution with standard deviation 1, decide whether its mean is 0 or "
            f"{round_up(cost['mu'])}. This leaves out tests with an error rate below 1e-6."
            if math.isfinite(cost["mu"])
            else "Gaussian noise never gives away as much. With a small probability this patient may be "
            "identified with certainty.",
        ),
    ]


def times_as_probable(epsilon: float, delta: float, change: str) -> str:
    """Meaning of epsilon and delta, with ``change`` as the comparison.

    Examples
    --------
    >>> times_as_probable(1.0, 1e-5, "you as without")
    'Any event is at most 2.719 times as probable with you as without, plus at most 1e-05.'
    >>> times_as_probable(float("inf"), 1e-5, "you as without")
    'Nothing bounds how many times as probable an event is with you as without.'
    """
    if not epsilon < 700:  # beyond, the factor is no number that a computer can hold
        return f"Nothing bounds how many times as probable an event is with {change}."
    return (
        f"Any event is at most {round_up(math.exp(epsilon))} times as probable with {change}, plus at most "
        f"{round_up(delta)}."
    )


def points_more_probable(tv: float, whom: str, where: str) -> str:
    """Meaning of a total variation for ``whom``.

    Examples
    --------
    >>> points_more_probable(1.0, "this patient", "the table")
    'Anything that happens to this patient may depend wholly on being in the table.'
    """
    if percent(tv) == "100":
        return f"Anything that happens to {whom} may depend wholly on being in {where}."
    return (
        f"Being in {where} makes nothing that can happen to {whom} more probable by more than "
        f"{percent(tv)} points in 100."
    )


def right_at_most(accuracy: float) -> str:
    """How often a guess is right, after its subject."""
    rounded = percent(accuracy)
    return "may be right every time" if rounded == "100" else f"is right at most {rounded} times in 100"


def percent(share: float) -> str:
    """A share in hundredths, rounded up to three figures.

    Examples
    --------
    >>> percent(0.1135), percent(-0.0), percent(1.0)
    ('11.4', '0', '100')
    """
    return round_up(100 * share, 3)
