"""The cost of privacy: events, their composed privacy loss, measures, noise and the ledger.

====================  =====================================================================================
`events`              what a mechanism is, as a frozen record (`epsilon_delta` has those of our own)
`normal_form`         events read under an adjacency, and merged
`atoms`, `gaussian`   the privacy loss of one mechanism
`pld`, `promise`      the composed loss: on a grid, or from epsilon, delta and total variation alone
`profile`             every measure of that loss, in one class, and in `tradeoff` its trade-off curves
`measures`            all answers as one record, and in words for one patient
`calibration`         the least noise that meets a target
`ledger`              noisy statistics of one table: `contents`, `guarantee`, `record`, `journal`
`budget_file`         what all runs of a data set may cost, and have cost, in a file that they share
`conversions`         formulas between epsilon, delta, total variation, mu and belief
`tv_bounds`           closed forms beside the exact total variation, and `membership_bounds` of attacks
====================  =====================================================================================

Nothing loads TensorFlow, and dp_accounting is loaded when the first event is made.
"""

from dpsynth.privacy.budget_file import Budget, Cost
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
from dpsynth.privacy.contents import Entry
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
from dpsynth.privacy.loss import ADD_REMOVE, REPLACE_ONE
from dpsynth.privacy.profile import Profile, from_parameters, measures_of

__all__ = [
    "ADD_REMOVE",
    "REPLACE_ONE",
    "AdvantageTarget",
    "AttackAccuracyTarget",
    "BeliefTarget",
    "Budget",
    "Cost",
    "Entry",
    "EpsilonTarget",
    "Guarantee",
    "Ledger",
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
    "training_event",
]
