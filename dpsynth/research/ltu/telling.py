"""What came out, as text that a person reads at a terminal."""

from __future__ import annotations

from dpsynth.evaluation.estimates import Estimate
from dpsynth.research.ltu.outcomes import PairsResult
from dpsynth.research.ltu.results import LtuResult

#: beyond it log-odds are those of a Gaussian's far tail, of which few models say nothing
_MOST = 20
_KNOWS = {
    "original": "knows the order of the records and the seed",
    "random": "knows the seed, but not the order of the records",
    "unseeded": "knows neither the order of the records nor the seed",
}
_WORDS = {
    "loss": "the model's loss",
    "confidence": "the model's confidence",
    "entropy": "entropy",
    "modified_entropy": "modified entropy",
    "learned": "scores combined by what is known of the others",
    "bounded_loss": "a guess in proportion to the loss",
    "retraining_predictions": "retraining on both, all predictions compared",
    "retraining_pair": "retraining on both, predictions of the two compared",
    "retraining_parameters": "retraining on both, parameters compared",
    "bayes_pair": "Bayes, retraining on both many times",
    "bayes_shadow": "Bayes, shadow models on random halves",
}


def percent(estimate: Estimate) -> str:
    """A share with its interval.

    Examples
    --------
    >>> percent(Estimate(0.75, 0.7, 0.8))
    '75.0 % (70.0 to 80.0)'
    """
    return f"{100 * estimate.value:.1f} % ({100 * estimate.lower:.1f} to {100 * estimate.upper:.1f})"


def sentence(result: LtuResult) -> str:
    """The strongest strategy in one plain sentence."""
    best = result.strongest
    if best.accuracy.lower <= 0.5:
        verdict = "no strategy is clearly better than a coin, which is right in 50 %"
    elif best.accuracy.value == 1.0:
        verdict = "the model gives away who it was trained on; a coin is right in 50 %"
    else:
        verdict = "a coin is right in 50 %"
    return (
        f"An attacker who {_KNOWS[result.design.scenario]}, and everything but two labels, names the record "
        f"that was trained on in {percent(best.accuracy)} of {best.rounds} pairs by "
        f"{_WORDS[best.strategy]}: {verdict}."
    )


def told(result: LtuResult) -> str:
    """Everything, a line a strategy."""
    lines = [f"Leave-two-unlabeled attack on {result.trainer}"]
    sizes = f"{result.n_defender:,} records trained on, {result.n_reserve:,} kept aside"
    if result.utility is None:
        lines.append(f"{sizes}; the defender trains anew in each round")
    else:
        worth = result.utility
        lines.append(
            f"{sizes}; the model classifies {100 * worth.trained.value:.1f} % of its own records right and "
            f"{100 * worth.reserved.value:.1f} % of the others "
            f"(the commonest class: {100 * worth.commonest:.1f} %)"
        )
    if result.design.record is not None:
        lines.append(f"every pair holds record {result.design.record}: its individual score")
    lines += ["", f"{'strategy':<52} {'right':<24} {'privacy (4.9)':<14} ties"]
    for one in result.rounds:
        hidden = f"{one.privacy.value:.2f} ± {one.privacy.error:.2f}"
        lines.append(f"{_WORDS[one.strategy]:<52} {percent(one.accuracy):<24} {hidden:<14} {one.tied}")
    if result.pairs:
        lines += ["", "The same model, all pairs and single records:"]
        lines += [_pairs_line(one) for one in result.pairs]
    best = result.strongest_pairs
    if best is not None:
        lines += ["", _worst_off(best), *_low_lines(best)]
    if result.loss is not None:
        loss = result.loss
        largest = f"{loss.largest:.2f}" if loss.largest <= _MOST else f"over {_MOST}"
        lines.append(
            f"Effective privacy loss of the records trained on: median {loss.median:.2f}, 95th percentile "
            f"{loss.upper:.2f}, largest {largest} (median of the others {loss.reserve_median:.2f}); "
            "no guarantee follows from it."
        )
    if result.proved is not None:
        lines.append(f"Proved: no attack is right in more than {100 * result.proved:.1f} %.")
    return "\n".join([*lines, "", sentence(result), "These results are internal: not for release."])


def _pairs_line(one: PairsResult) -> str:
    pairs, single = percent(one.pairwise), percent(one.per_record)
    return f"{_WORDS[one.strategy]:<52} pairs {pairs:<24} single records {single}"


def _worst_off(best: PairsResult) -> str:
    scores = sorted(best.individual, reverse=True)
    exposed = sum(score >= 0.9 for score in scores)
    return (
        f"By {_WORDS[best.strategy]}, {exposed} of {len(scores)} records are told from the others in at "
        f"least 90 % of their pairs; the most exposed in {100 * scores[0]:.1f} %, the median in "
        f"{100 * scores[len(scores) // 2]:.1f} %."
    )


def _low_lines(best: PairsResult) -> list[str]:
    if not best.low_rates:
        return ["Too few records to say how many are named at a low false positive rate."]
    return [
        f"At a false positive rate of {100 * low.fpr:g} % it names {percent(low.tpr)} of them "
        f"(by chance at most {100 * low.chance:.1f} %)."
        for low in best.low_rates
    ]
