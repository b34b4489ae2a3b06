"""One setting of the whole process, which several fits need."""

from __future__ import annotations

import gc
import threading

import pytest
import tensorflow as tf

from dpsynth.wgan.precision import full_precision, full_precision_for

enabled = tf.config.experimental.tensor_float_32_execution_enabled


@pytest.fixture(autouse=True, params=[True, False])
def before(request):
    """What the process was set to."""
    tf.config.experimental.enable_tensor_float_32_execution(request.param)
    yield request.param
    tf.config.experimental.enable_tensor_float_32_execution(True)


def test_the_setting_comes_back_after_a_failure(before):
    """Catches a fit that fails and leaves the user's process changed."""
    with pytest.raises(ZeroDivisionError), full_precision():
        assert not enabled()
        raise ZeroDivisionError
    assert enabled() == before


def test_it_stays_off_while_another_thread_needs_it(before):
    """Catches a fit that ends and switches TF32 on beneath one that goes on, whose bounds are then wrong."""
    begun, ended = threading.Event(), threading.Event()

    def other():
        with full_precision():
            begun.set()
            ended.wait(60)

    thread = threading.Thread(target=other)
    with full_precision():
        thread.start()
        assert begun.wait(60)
    assert not enabled()
    ended.set()
    thread.join()
    assert enabled() == before


def test_it_is_off_while_an_owner_lives(before):
    """Catches an object whose methods other code calls, the second of which turns TF32 on for the first."""

    class Owner:
        pass

    owners = [Owner(), Owner()]
    for owner in owners:
        full_precision_for(owner)
    del owner
    assert not enabled()
    owners.pop()
    gc.collect()
    assert not enabled()
    owners.pop()
    gc.collect()
    assert enabled() == before
