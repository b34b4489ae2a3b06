"""Every measure of what a profile gives away, as one record of plain numbers."""

from __future__ import annotations

import math
from typing import TypedDict

from dpsynth.accounting.conversions import posterior_belief
from dpsynth.accounting.events.events import training_event
from dpsynth.accounting.events.normal_form import ADD_REMOVE
from dpsynth.accounting.profile import Profile
from dpsynth.checks import in_range, inside, whole


class Measures(TypedDict):
    """What a profile gives away; see :func:`measures_of`."""

    adjacency: str
    delta: float
    prior: float
    fpr: float
    epsilon: float
    tv: float
    advantage: float
    attack_accuracy_bound: float
    mu: float
    advantage_at_fpr: float
    tpr_at_fpr: float
    ppv_at_fpr: float
    belief_bound: float
    belief_exceedance: float


class TrainingMeasures(Measures):
    """:class:`Measures` of a training run, with its parameters."""

    noise_multiplier: float
    sampling_prob: float
    steps: int


def from_parameters(
    noise_multiplier: float,
    sampling_prob: float,
    steps: int,
    delta: float,
    *,
    adjacency: str = ADD_REMOVE,
    prior: float = 0.5,
    fpr: float = 0.01,
) -> TrainingMeasures:
    """Privacy of a training run of noisy sums over Poisson batches.

    Parameters
    ----------
    noise_multiplier : float
        Noise std over add/remove sensitivity, greater than 0 and finite.
    sampling_prob : float
        Probability with which each record joins a batch, in (0, 1].
    steps : int
        Number of noisy sums, at least 1.
    delta : float
        In [0, 1); at 0, epsilon is infinite.
    adjacency : {"add/remove", "replace-one"}
        See :class:`Profile`.
    prior, fpr : float
        See :func:`measures_of`.

    Returns
    -------
    dict
        The parameters, and the measures of :func:`measures_of`.

    Raises
    ------
    InputError
        If a parameter is out of range or NaN, naming it.

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
    """Return what a profile gives away, in every measure of this package.

    Parameters
    ----------
    profile : Profile
        What was composed.
    delta : float
        At which epsilon and the belief are told, in [0, 1).
    prior : float
        Share of members among those whom an attacker tests, or an observer's belief beforehand, in (0, 1).
    fpr : float
        False positive rate at which a membership test is told, in [0, 1].

    Returns
    -------
    dict
        :class:`Measures`: ``attack_accuracy_bound`` is for the prior, ``belief_exceedance`` the probability
        that ``belief_bound`` is exceeded.

    Raises
    ------
    InputError
        If an argument is out of range or NaN, naming it.
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
        "belief_bound": posterior_belief(epsilon, prior),
        "belief_exceedance": profile.exceedance(epsilon),
    }
