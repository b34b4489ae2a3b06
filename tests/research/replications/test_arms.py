"""What restarts cost together, against closed forms and dp_accounting."""

from __future__ import annotations

import math

import pytest
from dp_accounting import dp_event, pld
from scipy import optimize, stats

from dpsynth.privacy.events import gaussian_event
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.profile import Profile
from dpsynth.research.replications.arms import HEALTHGAN, REAL, arms_of, composed, epsilon_of_each
from dpsynth.research.replications.protocol import Protocol

DELTA = 1e-5


def ledger(*multipliers: float) -> Ledger:
    book = Ledger()
    book.begin_stage(DELTA)
    for number, multiplier in enumerate(multipliers):
        book.post(f"count {number}", gaussian_event(multiplier), sensitivity="1", adjacency="add/remove")
    book.end_stage()
    return book


def test_restarts_of_one_plan_are_composed() -> None:
    """A cost that is that of the fit which was kept (the thesis), or that adds epsilons up."""
    accountant = pld.PLDAccountant()
    accountant.compose(dp_event.GaussianDpEvent(2.0), 3)
    expected = accountant.get_epsilon(DELTA)
    assert composed([ledger(2.0)] * 3, DELTA) == pytest.approx(expected, rel=1e-3)
    assert composed([ledger(2.0)] * 3, DELTA) == pytest.approx(
        Profile([gaussian_event(2.0 / math.sqrt(3))]).epsilon(DELTA), rel=1e-6
    )
    assert composed([ledger(2.0, 5.0)] * 2, DELTA) > composed([ledger(2.0)] * 2, DELTA)


def test_restarts_whose_noise_differs_add_up() -> None:
    """Composing on one curve what was chosen after looking at an earlier restart."""
    told = composed([ledger(2.0), ledger(2.1)], DELTA)
    one, other = (Profile([gaussian_event(m)]).epsilon(DELTA / 2) for m in (2.0, 2.1))
    assert told == pytest.approx(one + other, rel=1e-9)
    assert told > composed([ledger(2.0)] * 2, DELTA)


def test_noise_that_followed_from_a_count_is_not_composed_on_one_curve() -> None:
    """A cost below what a ledger of two stages says of itself, where the events are the same by chance."""

    def counted() -> Ledger:
        book = Ledger()
        book.begin_stage(DELTA / 10)
        book.post("count", gaussian_event(5.0), sensitivity="1")
        book.begin_stage(DELTA * 9 / 10)
        book.post("tables", gaussian_event(2.0), sensitivity="1")
        book.end_stage()
        return book

    assert composed([counted()], DELTA) == pytest.approx(counted().epsilon(DELTA), rel=1e-12)
    assert composed([counted()] * 2, 2 * DELTA) == pytest.approx(2 * counted().epsilon(DELTA), rel=1e-12)


def test_one_fit_without_noise_has_no_epsilon() -> None:
    """A cost that leaves out the restart which has no guarantee."""
    bare = ledger(2.0)
    bare.post("steps", dp_event.NonPrivateDpEvent(), sensitivity="1", adjacency="add/remove")
    assert math.isinf(composed([ledger(2.0), bare], DELTA))


def gaussian_epsilon(mu: float) -> float:
    """The epsilon at DELTA of a Gaussian mechanism, from its curve (Balle and Wang 2018, theorem 8)."""

    def excess(epsilon: float) -> float:
        far, near = stats.norm.cdf(mu / 2 - epsilon / mu), stats.norm.cdf(-mu / 2 - epsilon / mu)
        return float(far - math.exp(epsilon) * near) - DELTA

    return float(optimize.brentq(excess, 0.0, 50.0))


@pytest.mark.parametrize("restarts", [1, 2, 10])
def test_shared_epsilon_is_spent_wholly(restarts: int) -> None:
    """Restarts that together have more than what the arm states, or much less."""
    each = epsilon_of_each(3.0, DELTA, restarts)
    mu = optimize.brentq(lambda mu: gaussian_epsilon(mu) - each, 0.05, 3.0)
    assert gaussian_epsilon(mu * math.sqrt(restarts)) == pytest.approx(3.0, rel=1e-6)


def test_arms_of_a_thesis_study(small: Protocol) -> None:
    """Restarts that are not compared both ways, or a HealthGAN that claims a budget."""
    told = Protocol.from_dict({**small.to_dict(), "restarts": 10, "epsilons": [1, 3], "baseline": {}})
    found = {arm.name: arm for arm in arms_of(told, DELTA)}
    assert list(found) == [REAL, HEALTHGAN, "ε = 1", "ε = 1 shared", "ε = 3", "ε = 3 shared"]
    assert found[REAL].restarts == 1 and all(found[name].restarts == 10 for name in list(found)[1:])
    assert found[HEALTHGAN].options is not None and found[HEALTHGAN].options.epsilon is None
    whole, shared = found["ε = 3"].options, found["ε = 3 shared"].options
    assert whole is not None and shared is not None and shared.epsilon is not None
    assert whole.epsilon == 3.0 and shared.epsilon < 1.0
    assert whole.model_copy(update={"epsilon": 0.0}) == shared.model_copy(update={"epsilon": 0.0})
