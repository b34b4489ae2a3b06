import json
import math
import subprocess
import sys

import dp_accounting
import pytest

from dpsynth.errors import DataError, InputError, PrivacyError
from dpsynth.privacy.epsilon_delta import EpsilonDeltaDpEvent
from dpsynth.privacy.events import (
    check_event,
    epsilon_delta_event,
    event_class,
    event_from_dict,
    event_to_dict,
    gaussian_event,
    non_private_event,
    training_event,
)

EVENTS = [
    gaussian_event(1.25),
    gaussian_event(0.1, count=7),
    epsilon_delta_event(0.3),
    epsilon_delta_event(0.0, 1e-7, count=2),
    training_event(1.1, 256 / 60000, 3525),
    training_event(1.1, 1.0, 3),
    non_private_event(),
    dp_accounting.NoOpDpEvent(),
    dp_accounting.LaplaceDpEvent(2.0),
    dp_accounting.ComposedDpEvent([gaussian_event(2.0), epsilon_delta_event(1.0, 0.5)]),
    dp_accounting.ComposedDpEvent([]),
]


def test_events_survive_a_round_trip():
    """A field lost, rounded or swapped on the way to JSON and back."""
    for event in EVENTS:
        assert event_from_dict(json.loads(json.dumps(event_to_dict(event)))) == event


@pytest.mark.parametrize(
    "event",
    [
        dp_accounting.UnsupportedDpEvent(),
        dp_accounting.SampledWithReplacementDpEvent(100, 10, dp_accounting.GaussianDpEvent(1.0)),
        dp_accounting.SelfComposedDpEvent(dp_accounting.UnsupportedDpEvent(), 3),
        dp_accounting.PoissonSampledDpEvent(0.5, dp_accounting.UnsupportedDpEvent()),
        "an event",
    ],
    ids=str,
)
def test_unknown_events_are_refused_by_name(event):
    """An unknown event, alone or inside a known one, that is passed over."""
    inner = getattr(event, "event", event)
    name = type(inner).__name__ if type(inner).__name__ == "UnsupportedDpEvent" else type(event).__name__
    for use in (check_event, event_to_dict):
        with pytest.raises(PrivacyError, match=name):
            use(event)


def test_a_namesake_of_a_known_event_is_refused():
    """Recognition by class name alone, which a subclass with another meaning would pass."""

    class GaussianDpEvent(dp_accounting.GaussianDpEvent):
        pass

    with pytest.raises(PrivacyError, match="GaussianDpEvent"):
        check_event(GaussianDpEvent(1.0))


def test_faulty_records_are_refused():
    """A damaged or hostile ledger file that yields an event."""
    for record, error, words in [
        ({"type": "ExponentialDpEvent"}, PrivacyError, "ExponentialDpEvent"),
        ({"type": "os.system"}, PrivacyError, "os.system"),
        ({"noise_multiplier": 1.0}, DataError, "type"),
        ({"type": "GaussianDpEvent"}, DataError, "noise_multiplier"),
        ({"type": "GaussianDpEvent", "noise_multiplier": 1.0, "extra": 2}, DataError, "extra"),
        ({"type": "GaussianDpEvent", "noise_multiplier": "1"}, DataError, "noise_multiplier"),
        ({"type": "GaussianDpEvent", "noise_multiplier": float("nan")}, DataError, "nan"),
        ({"type": "EpsilonDeltaDpEvent", "epsilon": -0.1, "delta": 0.0}, DataError, "-0.1"),
        ({"type": "SelfComposedDpEvent", "count": 1.5, "event": {"type": "NoOpDpEvent"}}, DataError, "1.5"),
        ({"type": "ComposedDpEvent", "events": {"type": "NoOpDpEvent"}}, DataError, "list"),
        ([], DataError, "mapping"),
        (None, DataError, "mapping"),
    ]:
        with pytest.raises(error, match=words):
            event_from_dict(record)


def test_bad_parameters_are_named():
    """A parameter out of range that reaches the accountant, or a message that does not name it."""
    for make, words in [
        (lambda: gaussian_event(0.0), "noise_multiplier"),
        (lambda: gaussian_event(-1.0), "noise_multiplier"),
        (lambda: gaussian_event(math.nan), "noise_multiplier"),
        (lambda: gaussian_event(True), "noise_multiplier"),
        (lambda: gaussian_event(1.0, count=0), "count"),
        (lambda: training_event(1.0, 0.0, 10), "sampling_prob"),
        (lambda: training_event(1.0, 1.01, 10), "sampling_prob"),
        (lambda: training_event(1.0, math.nan, 10), "sampling_prob"),
        (lambda: training_event(1.0, 0.5, 10.0), "steps"),
        (lambda: epsilon_delta_event(math.inf), "epsilon"),
        (lambda: epsilon_delta_event(1.0, 1.1), "delta"),
    ]:
        with pytest.raises(InputError, match=words):
            make()


def test_infinite_noise_is_an_event_but_no_record():
    """A ledger file with Infinity in it, which is not JSON."""
    check_event(gaussian_event(math.inf))
    with pytest.raises(InputError, match="finite"):
        event_to_dict(gaussian_event(math.inf))


def test_full_batches_are_plain_gaussians():
    """Sampling with probability 1 posted as sampling, which keeps Gaussians from merging exactly."""
    assert training_event(2.0, 1.0, 1) == dp_accounting.GaussianDpEvent(2.0)
    assert event_class("EpsilonDeltaDpEvent") is EpsilonDeltaDpEvent


def test_importing_accounting_loads_no_heavy_package():
    """TensorFlow, dp_accounting or scipy.stats loaded by an import that should take a tenth of a second."""
    code = (
        "import sys, dpsynth.privacy;"
        "print([m for m in ('tensorflow', 'dp_accounting', 'scipy.stats', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
