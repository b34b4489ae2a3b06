"""What privacy costs: events, their composed profile, calibration of noise to a budget, and the ledger.

Nothing here loads TensorFlow, and dp_accounting is loaded when the first event is made.
"""

from dpsynth.accounting.atoms import ADD_REMOVE, REPLACE_ONE
from dpsynth.accounting.calibrate import calibrate
from dpsynth.accounting.entries import Entry
from dpsynth.accounting.events import (
    epsilon_delta_event,
    gaussian_event,
    non_private_event,
    training_event,
)
from dpsynth.accounting.ledger import Ledger
from dpsynth.accounting.overflow import capacity_for, overflow_delta, overflow_probability
from dpsynth.accounting.profile import Profile, from_parameters

__all__ = [
    "ADD_REMOVE",
    "REPLACE_ONE",
    "Entry",
    "Ledger",
    "Profile",
    "calibrate",
    "capacity_for",
    "epsilon_delta_event",
    "from_parameters",
    "gaussian_event",
    "non_private_event",
    "overflow_delta",
    "overflow_probability",
    "training_event",
]
