"""What privacy costs: events, their composed profile, calibration of noise to a target, and the ledger.

The papers' own measures and closed forms are in the modules ``tvd``, ``membership``, ``approx_tv``,
``local``, ``identifiability`` and ``pmp``. Nothing here loads TensorFlow, and dp_accounting is loaded when
the first event is made.
"""

from dpsynth.accounting.calibration.search import calibrate, calibrate_training
from dpsynth.accounting.events.events import (
    approx_tv_event,
    epsilon_delta_event,
    gaussian_event,
    laplace_event,
    non_private_event,
    training_event,
)
from dpsynth.accounting.events.normal_form import ADD_REMOVE, REPLACE_ONE
from dpsynth.accounting.ledger.entries import Entry
from dpsynth.accounting.ledger.ledger import Ledger
from dpsynth.accounting.measures import from_parameters, measures
from dpsynth.accounting.profile import Profile
from dpsynth.papers.ghazi_issa import approx_tv, local
from dpsynth.papers.jia import membership, tvd
from dpsynth.papers.lowy import pmp
from dpsynth.papers.mosaicrown import identifiability
from dpsynth.papers.pedersen.overflow import capacity_for, overflow_delta, overflow_probability

__all__ = [
    "ADD_REMOVE",
    "REPLACE_ONE",
    "Entry",
    "Ledger",
    "Profile",
    "approx_tv",
    "approx_tv_event",
    "calibrate",
    "calibrate_training",
    "capacity_for",
    "epsilon_delta_event",
    "from_parameters",
    "gaussian_event",
    "identifiability",
    "laplace_event",
    "local",
    "measures",
    "membership",
    "non_private_event",
    "overflow_delta",
    "overflow_probability",
    "pmp",
    "training_event",
    "tvd",
]
