"""What privacy costs: from events over their composed privacy loss to measures, noise and the ledger.

===================  ======================================================================================
`events`             what a mechanism is, as a frozen record; the normal form in which events compose
`loss`               the composed privacy loss: exact for Gaussians, on a grid for all else; what follows from
                     epsilon, delta and TV alone; trade-off curves
`profile`            every question to that loss, in one class
`measures`           all its answers as one record, which `explain` tells one patient in words
`conversions`        the formulas between epsilon, delta, TV, mu and belief
`calibration`        the least noise that meets a target
`ledger`             what was read from one private table, and what all of it guarantees
===================  ======================================================================================

Only what a run needs is here; theory, figures and golden values of the papers are in
:mod:`dpsynth.research.papers`. Nothing loads TensorFlow, and dp_accounting is loaded when the first event is
made.
"""

from dpsynth.accounting.calibration import calibrate, calibrate_training
from dpsynth.accounting.contents import Entry
from dpsynth.accounting.events import (
    approx_tv_event,
    epsilon_delta_event,
    exponential_mechanism_event,
    gaussian_event,
    laplace_event,
    non_private_event,
    training_event,
)
from dpsynth.accounting.ledger import Ledger
from dpsynth.accounting.measures import from_parameters, measures_of
from dpsynth.accounting.normal_form import ADD_REMOVE, REPLACE_ONE
from dpsynth.accounting.profile import Profile

__all__ = [
    "ADD_REMOVE",
    "REPLACE_ONE",
    "Entry",
    "Ledger",
    "Profile",
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
    "training_event",
]
