import subprocess
import sys

import dp_accounting
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored import read_back

from dpsynth.errors import ConfigError
from dpsynth.files.codec import from_plain, to_plain
from dpsynth.privacy.release import Plan

FIELDS = {"sampling_prob": 0.1, "expected_batch": 50.0, "steps": 20, "noise_multiplier": 1.5}


def test_event_is_what_the_fields_say():
    """Catches an event that disagrees with the sampler, the noise or the number of steps."""
    gaussian = dp_accounting.GaussianDpEvent(1.5)
    sampled = dp_accounting.PoissonSampledDpEvent(0.1, gaussian)
    assert Plan(**FIELDS).event == dp_accounting.SelfComposedDpEvent(sampled, 20)
    assert Plan(**FIELDS | {"sampling_prob": 1.0, "steps": 1}).event == gaussian


@given(st.floats(1e-9, 1.0, exclude_max=True))
def test_the_probability_is_posted_as_it_is(q):
    """Catches a probability that is rounded on its way to the ledger: rounded down, records come in free."""
    assert Plan(**FIELDS | {"sampling_prob": q}).event.event.sampling_probability == q


def test_no_noise_is_no_privacy():
    """Catches a noiseless run with a finite epsilon."""
    assert Plan(**FIELDS | {"noise_multiplier": None}).event == dp_accounting.NonPrivateDpEvent()


@pytest.mark.parametrize("multiplier", [1.5, None])
def test_round_trip_through_json(multiplier):
    """Catches a field that is lost or changed when a plan is saved."""
    plan = Plan(
        **FIELDS | {"noise_multiplier": multiplier},
        noise_shape="layerwise",
    )
    assert read_back(plan) == plan


def test_refuses_values_out_of_range():
    """Catches a plan that cannot be accounted for; the message must name the field."""
    for name, value in [
        ("sampling_prob", 0.0),
        ("sampling_prob", 1.1),
        ("sampling_prob", float("nan")),
        ("sampling_prob", "0.1"),
        ("sampling_prob", True),
        ("expected_batch", 0.0),
        ("expected_batch", float("inf")),
        ("steps", 0),
        ("steps", 2.0),
        ("steps", True),
        ("noise_multiplier", 0.0),
        ("noise_multiplier", -1.0),
        ("noise_multiplier", float("inf")),
        ("noise_shape", "round"),
    ]:
        with pytest.raises(ConfigError, match=name):
            Plan(**FIELDS | {name: value})


def test_is_frozen_and_refuses_unknown_fields():
    """Catches a plan changed after its event was posted, and saved plans of another version."""
    plan = Plan(**FIELDS)
    with pytest.raises(AttributeError):
        plan.steps = 1
    with pytest.raises(ValueError, match="must have the fields"):
        from_plain(Plan, to_plain(plan) | {"seed": 1})
    with pytest.raises(ValueError, match="must have the fields"):
        from_plain(Plan, {"steps": 1})


@pytest.mark.slow
def test_loads_no_tensorflow():
    """Catches an import that makes planning and accounting wait for TensorFlow."""
    code = "import sys, dpsynth.privacy.release, dpsynth.privacy.noise, dpsynth.privacy.noise; "
    code += "sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
