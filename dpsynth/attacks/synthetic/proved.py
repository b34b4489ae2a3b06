"""What differential privacy allows an attack on a synthetic table: membership, and nothing else.

The bounds are about one record that is in the training table or not, all else being the same. A split that
decides each record by a coin of its own puts an attacker before just that question; a split in exact numbers
exchanges one record for another, which is two steps. They hold on average over the split and the noise, and
the intervals of attacks on one table hold that table fixed: a mechanism that publishes every record with
probability TV passes its bound in a share TV of its tables. So one table's number may pass a bound without
disproving it; attacks that fit many times (shadow models, the audit of tables) can disprove it.

* membership: TPR - FPR is at most the total variation (Jia 2023), the accuracy from even odds at most half of
  one plus that, TPR at an FPR at most the trade-off curve;
* linkability and inference: a success on a record is a test of its membership, so the *excess* over held-out
  records is at most the total variation as well. The rate itself has no bound: what a table says of everybody
  it says of people who were never in it;
* singling out: predicates are made from the whole table, and whether one matches exactly one record depends
  on all of them. Differential privacy bounds it for predicates of small weight w in the population only, by
  ``n (e^epsilon w + delta)`` (Cohen and Nissim 2020); weights are unknown here, so nothing is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth.accounting.profile import Profile


@dataclass(frozen=True)
class Proved:
    """Bounds that follow from a privacy profile.

    Parameters
    ----------
    profile : Profile or None
        Of everything that the synthetic table was made with; None where nothing is known, and then every
        bound is None.
    coins : bool
        Whether each record was put into the training part by a coin of its own.

    Examples
    --------
    >>> proved = Proved(Profile.promised(1.0, 0.0, 1.0), coins=True)
    >>> round(proved.advantage, 4), round(proved.accuracy, 4), Proved().advantage
    (0.4621, 0.7311, None)
    """

    profile: Profile | None = None
    coins: bool = True

    @property
    def advantage(self) -> float | None:
        """Upper bound on TPR - FPR."""
        if self.profile is None:
            return None
        return min(1.0, self.profile.tv() * (1 if self.coins else 2))

    @property
    def accuracy(self) -> float | None:
        """Upper bound on the accuracy of naming members among records that are in or out by a coin."""
        return None if self.profile is None else self.profile.attack_accuracy()

    @property
    def pairs(self) -> float | None:
        """Upper bound on the accuracy of naming the member of a pair: one record exchanged for another."""
        return None if self.profile is None else min(1.0, 0.5 + self.profile.tv())

    def tpr(self, fpr: float) -> float | None:
        """Upper bound on the true positive rate at a false positive rate."""
        if self.profile is None:
            return None
        if self.coins:
            return float(self.profile.tpr(fpr))
        assert self.advantage is not None
        return min(1.0, fpr + self.advantage)
