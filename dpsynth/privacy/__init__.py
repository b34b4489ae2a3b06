"""What reads private records and what that costs: events, their privacy loss, noise, records and the ledger.

In the order in which to read them:

- `conversions`: formulas between epsilon, delta, total variation, mu and belief
- `events`: what a mechanism is, as a frozen record (`epsilon_delta` has those of our own)
- `gaussian_loss`: the privacy loss of unsampled Gaussian noise, exact
- `atoms`: the privacy loss of one mechanism of any kind
- `loss`: events read under an adjacency, and the composed loss: on a grid, or from epsilon, delta and total
  variation alone, with its trade-off curves
- `profile`: every measure of that loss, in one class and in words for one patient
- `calibration`: the least noise that meets a target
- `guarantee`: what a ledger proves, as a sentence
- `stages`: what a ledger has posted, and what it costs
- `ledger_file`: what all runs of a data set may cost, and have cost, in a file that they share
- `records`: private records, locked to all but the ledger; the axes on which they are counted
- `noise`, `sampling`, `exponential_mechanism`: random numbers that a guarantee rests on: exact noise,
  Poisson samples, private choices
- `release`: a noisy statistic: what is read, its sensitivity, noise and event in one object
- `ledger`: posts releases and runs them: nothing else opens the records

Nothing loads TensorFlow, and dp_accounting is loaded when the first event is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth.lazy import first_used
from dpsynth.privacy.calibration import (
    AdvantageTarget,
    AttackAccuracyTarget,
    BeliefTarget,
    EpsilonTarget,
    TvTarget,
    calibrate,
    calibrate_training,
    parse_target,
)
from dpsynth.privacy.events import (
    approx_tv_event,
    epsilon_delta_event,
    exponential_mechanism_event,
    gaussian_event,
    laplace_event,
    non_private_event,
    training_event,
)
from dpsynth.privacy.guarantee import Guarantee
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.ledger_file import Cost, LedgerFile
from dpsynth.privacy.loss import ADD_REMOVE, REPLACE_ONE
from dpsynth.privacy.profile import Profile, from_parameters, measures_of
from dpsynth.privacy.stages import Entry

if TYPE_CHECKING:
    from dpsynth.privacy.noise import secure_generator
    from dpsynth.privacy.records import PartitionedRecords
    from dpsynth.privacy.release import Plan
    from dpsynth.privacy.sampling import poisson_batches

__all__ = [
    "ADD_REMOVE",
    "REPLACE_ONE",
    "AdvantageTarget",
    "AttackAccuracyTarget",
    "BeliefTarget",
    "Cost",
    "Entry",
    "EpsilonTarget",
    "Guarantee",
    "Ledger",
    "LedgerFile",
    "PartitionedRecords",
    "Plan",
    "Profile",
    "TvTarget",
    "approx_tv_event",
    "calibrate",
    "calibrate_training",
    "epsilon_delta_event",
    "exponential_mechanism_event",
    "from_parameters",
    "gaussian_event",
    "laplace_event",
    "measures_of",
    "non_private_event",
    "parse_target",
    "poisson_batches",
    "secure_generator",
    "training_event",
]

#: what reads records is loaded when first used: it needs pandas
_HOMES = {
    "PartitionedRecords": "dpsynth.privacy.records",
    "Plan": "dpsynth.privacy.release",
    "poisson_batches": "dpsynth.privacy.sampling",
    "secure_generator": "dpsynth.privacy.noise",
}

__getattr__ = first_used(__name__, _HOMES)
