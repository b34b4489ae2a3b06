"""Golden cases of thesis 4.2 and theorems 5.2.1 and 5.2.2, by counting."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import enumeration
import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from dpsynth.attacks.closed_forms import dp_accuracy
from dpsynth.errors import InputError
from dpsynth.research.ltu import scores
from dpsynth.research.ltu.results import privacy
from dpsynth.research.ltu.scores import best_threshold


@pytest.mark.parametrize(("c", "right"), [(0.6, 8), (0.8, 7), (0.95, 6)])
def test_pairs_are_no_function_of_single_records(c, right):
    """Catches a pairwise accuracy that is computed from single records (section 4.2.1): 8/9, 7/9, 6/9."""
    defender, reserve = [0.1, 0.3, c], [0.4, 0.7, 0.9]
    assert scores.favours(defender, reserve).accuracy == pytest.approx(right / 9, abs=1e-12)
    assert scores.pair_accuracy(defender, reserve).value == pytest.approx(right / 9, abs=1e-12)
    assert np.mean(scores.individual_accuracy(defender, reserve)) == pytest.approx(right / 9, abs=1e-12)
    single = [f < 0.5 for f in defender] + [f >= 0.5 for f in reserve]
    assert np.mean(single) == pytest.approx(2 / 3)


def test_bounded_loss_beats_the_best_score():
    """Catches strategies 1 and 2 exchanged (Theorem 4.2.3, example 1): gains 0 and 0.1."""
    defender, reserve = [0.0, 0.5], [0.3, 0.4]
    found = scores.favours(defender, reserve)
    assert found.p_reserve - found.p_defender == 0
    assert scores.gap(defender, reserve) == pytest.approx(0.1, abs=1e-12)
    assert scores.accuracy(defender, reserve) == pytest.approx(0.55, abs=1e-12)


def test_the_best_score_beats_bounded_loss():
    """Catches the caption of Table 4.1, which names the strategies the wrong way round: .22 against .15."""
    joint = [[0.24, 0.24, 0.12], [0.12, 0.12, 0.06], [0.04, 0.04, 0.02]]
    found = scores.joint_favours(joint)
    assert found.p_reserve - found.p_defender == pytest.approx(0.22, abs=1e-12)
    assert scores.joint_gap(joint, [0, 0.5, 1]) == pytest.approx(0.15, abs=1e-12)


def test_favours_agree_with_scipy_and_a_loop():
    """Catches a wrong side of a tie in the fast count."""
    rng = np.random.default_rng(1)
    d, r = rng.integers(0, 6, 31).astype(float), rng.integers(0, 8, 17).astype(float)
    d[0], r[0] = -np.inf, np.inf
    found = scores.favours(d, r)
    pairs = list(itertools.product(d, r))
    assert found.p_reserve == pytest.approx(np.mean([b > a for a, b in pairs]))
    assert found.p_defender == pytest.approx(np.mean([b < a for a, b in pairs]))
    assert found.accuracy == pytest.approx(mannwhitneyu(r, d).statistic / len(pairs))
    naive = [np.mean([(b > a) + 0.5 * (b == a) for b in r]) for a in d]
    assert scores.individual_accuracy(d, r) == pytest.approx(naive)


def test_bounded_loss_guesses_as_the_theorem_says():
    """Catches a guess that does not follow the loss: simulated pairs reach 1/2 + (e_R - e_D) / 2."""
    rng = np.random.default_rng(2)
    defender, reserve = rng.beta(1, 6, 50), rng.beta(3, 3, 50)
    right = []
    for _ in range(8000):
        first = rng.integers(2)
        value = reserve[rng.integers(50)] if first else defender[rng.integers(50)]
        right.append(scores.guess_reserved(value, rng) == bool(first))
    wanted = scores.accuracy(defender, reserve)
    assert wanted > 0.6
    assert np.mean(right) == pytest.approx(wanted, abs=4 * math.sqrt(0.25 / 8000))


def test_scores_of_a_record():
    """Catches a score with a wrong sign or label, against the formulas written out for one record."""
    p, y = np.array([[0.7, 0.2, 0.1]]), np.array([1])
    assert scores.loss(p, y)[0] == pytest.approx(-math.log(0.2))
    assert scores.confidence(p, y)[0] == pytest.approx(0.3)
    assert scores.entropy(p, y)[0] == pytest.approx(-sum(q * math.log(q) for q in p[0]))
    wanted = -0.8 * math.log(0.2) - 0.7 * math.log(0.3) - 0.1 * math.log(0.9)
    assert scores.modified_entropy(p, y)[0] == pytest.approx(wanted)
    sure = scores.all_scores(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 0]))
    assert np.isfinite(sure).all() and (sure[1] >= sure[0]).all()


def test_a_score_that_is_no_number_is_refused():
    """Catches NaN that counts as a guess."""
    with pytest.raises(InputError, match="not a number"):
        scores.favours([0.1, np.nan], [0.2])
    with pytest.raises(InputError, match="both sides"):
        scores.favours([], [0.2])


def test_privacy_and_its_error():
    """Catches (4.9) with the error of A in place of that of 2 (1 - A), or a privacy above 1."""
    assert privacy(0.5, 100).error == pytest.approx(0.1)
    assert privacy(0.9, 100).value == pytest.approx(0.2)
    assert privacy(0.4, 100).value == 1.0


def test_best_threshold_takes_all_tied_scores_or_none():
    """Catches a threshold between tied scores, which no attacker can use."""
    values = np.array([0.0, 1.0, 1.0, 1.0, 2.0])
    members = np.array([True, True, False, False, False])
    assert best_threshold(values, members) == 0.0
    assert best_threshold(np.array([1.0, 0.0]), np.array([True, False])) == -np.inf


# Trainers with finitely many outcomes.

HALF, NONE = Fraction(1, 2), Fraction(0)


def laws_over(models, steps):
    """Every law over so many models with probabilities in multiples of 1 / steps."""
    for counts in itertools.product(range(steps + 1), repeat=models):
        if sum(counts) == steps:
            yield {m: Fraction(c, steps) for m, c in enumerate(counts) if c}


def test_no_learning_without_risk():
    """Catches an error in the risk of Theorem 5.2.1: over every trainer of three records and three models.

    The risk is counted over (partner, model, Bayes-optimal attack), without `risk`'s own condition.
    """
    everything = list(laws_over(3, 2))
    assert len(everything) == 6
    weights = {1: Fraction(2, 3), 2: Fraction(1, 3)}
    zero = positive = 0
    for trained, second, third in itertools.product(everything, repeat=3):
        others = [(second, weights[1]), (third, weights[2])]
        counted = sum(
            (
                weight * p
                for law, weight in others
                for model, p in trained.items()
                if enumeration.posterior(trained, law, model) > HALF
            ),
            NONE,
        )
        found = enumeration.risk(trained, others)
        assert found == counted
        learned = second != trained or third != trained
        assert (found > 0) == learned
        zero, positive = zero + (found == 0), positive + (found > 0)
    assert zero == 6 and positive == 210


def test_a_partner_of_probability_zero_is_no_risk():
    """Catches Theorem 5.2.1 without its condition Pr(u_i) > 0."""
    assert (
        enumeration.risk({0: Fraction(1)}, [({1: Fraction(1)}, NONE), ({0: Fraction(1)}, Fraction(1))]) == 0
    )


def test_masked_record_has_no_risk():
    """Catches a risk where the other records determine the model (the example after Theorem 5.2.1)."""

    def majority(records, seed):
        return sum(records) * 2 > len(records)

    laws = {u: enumeration.law(majority, [1, 1, 1, u], range(3)) for u in (0, 1)}
    assert enumeration.risk(laws[1], [(laws[0], Fraction(1))]) == 0
    exposed = {u: enumeration.law(majority, [1, 0, u], range(3)) for u in (0, 1)}
    assert enumeration.risk(exposed[1], [(exposed[0], Fraction(1))]) == 1


def randomised_sum(records, seed):
    """The number of ones, told truly for three seeds of four, else one of the next; a model is (a, b)."""
    told = sum(records) + (0, 0, 1, -1)[seed]
    return ("line", told)


def answer(model, x):
    return model[1] * x


def test_black_box_is_as_good_as_the_model():
    """Catches Theorem 5.2.2 failing where models are one-to-one with functions: same optimal attack."""
    laws = [enumeration.law(randomised_sum, [1, 0, u], range(4)) for u in (0, 1)]
    outside = [enumeration.seen_from_outside(one, answer, (0, 1, 2)) for one in laws]
    assert enumeration.optimal_accuracy(*laws) == enumeration.optimal_accuracy(*outside) == Fraction(3, 4)
    for model in laws[0]:
        said = tuple(answer(model, x) for x in (0, 1, 2))
        assert enumeration.posterior(*laws, model) == enumeration.posterior(*outside, said)
        assert enumeration.log_odds(*laws, model) == enumeration.log_odds(*outside, said)


def test_black_box_needs_one_code_a_function():
    """Catches Theorem 5.2.2 without its condition: a model that stores its records gives more away inside."""

    def stores(records, seed):
        return (*randomised_sum(records, seed), tuple(records))

    laws = [enumeration.law(stores, [1, 0, u], range(4)) for u in (0, 1)]
    outside = [enumeration.seen_from_outside(one, answer, (0, 1, 2)) for one in laws]
    assert enumeration.optimal_accuracy(*laws) == 1
    assert enumeration.optimal_accuracy(*outside) == Fraction(3, 4)


def test_too_few_questions_lose_evidence():
    """Catches an attack on a black box that was not asked everything: at x = 0 all lines agree."""
    laws = [enumeration.law(randomised_sum, [1, 0, u], range(4)) for u in (0, 1)]
    outside = [enumeration.seen_from_outside(one, answer, (0,)) for one in laws]
    assert enumeration.optimal_accuracy(*outside) == HALF


def test_randomised_response_has_its_epsilon():
    """Catches (5.9) and (5.10): randomised response at log 3 has posterior at most 3/4, and reaches it."""

    def response(records, seed):
        return sum(records) % 2 ^ (seed == 0)

    laws = [enumeration.law(response, [1, u], range(4)) for u in (0, 1)]
    assert enumeration.privacy_parameter(laws) == pytest.approx(math.log(3))
    largest = max(enumeration.posterior(*laws, m) for m in (0, 1))
    assert largest == enumeration.optimal_accuracy(*laws) == Fraction(3, 4)
    assert float(largest) == pytest.approx(dp_accuracy(math.log(3), 0.0))


def test_evidence_is_a_difference_of_privacy_losses():
    """Catches (5.11): gamma(u1, u2) = gamma(u1) - gamma(u2) against the average model."""
    laws = [enumeration.law(randomised_sum, [1, u], range(4)) for u in (0, 1)]
    mean = enumeration.average_law([(laws[0], Fraction(1, 3)), (laws[1], Fraction(2, 3))])
    assert sum(mean.values()) == 1
    for model in set(laws[0]) & set(laws[1]):
        each = [enumeration.log_odds(one, mean, model) for one in laws]
        assert enumeration.log_odds(*laws, model) == pytest.approx(each[0] - each[1])
