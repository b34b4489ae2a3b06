"""Every measure of what a profile gives away, as one record of plain numbers."""

from __future__ import annotations

import math

from dpsynth.accounting.events.events import training_event
from dpsynth.accounting.events.normal_form import ADD_REMOVE
from dpsynth.accounting.profile import Profile
from dpsynth.checks import in_range, positive, whole
from dpsynth.papers.mosaicrown.identifiability import posterior_belief


def from_parameters(
    noise_multiplier: float,
    sampling_prob: float,
    steps: int,
    delta: float,
    *,
    adjacency: str = ADD_REMOVE,
    prior: float = 0.5,
    fpr: float = 0.01,
) -> dict[str, float | str]:
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
        See :func:`measures`.

    Returns
    -------
    dict
        The parameters, ``adjacency``, and the numbers of :func:`measures`.

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
    multiplier = in_range(
        "noise_multiplier", positive("noise_multiplier", noise_multiplier), 0.0, math.inf, high_open=True
    )
    profile = Profile([training_event(multiplier, sampling_prob, steps)], adjacency=adjacency)
    parameters: dict[str, float | str] = {
        "noise_multiplier": multiplier,
        "sampling_prob": float(sampling_prob),
        "steps": whole("steps", steps),
    }
    return parameters | measures(profile, delta, prior=prior, fpr=fpr)


def measures(
    profile: Profile, delta: float, *, prior: float = 0.5, fpr: float = 0.01
) -> dict[str, float | str]:
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
        ``adjacency``, ``delta``, ``prior``, ``fpr``, ``epsilon``, ``tv``, ``advantage``,
        ``attack_accuracy_bound`` (for the prior), ``mu``, ``advantage_at_fpr``, ``tpr_at_fpr``,
        ``ppv_at_fpr``, ``belief_bound`` and ``belief_exceedance`` (probability that the bound is exceeded).

    Raises
    ------
    InputError
        If an argument is out of range or NaN, naming it.
    """
    delta = in_range("delta", delta, 0.0, 1.0, high_open=True)
    prior = in_range("prior", prior, 0.0, 1.0, low_open=True, high_open=True)
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
