import numpy as np
import pytest
import tensorflow as tf
from critics import cube, glorot

from dpsynth.errors import InputError
from dpsynth.mechanism.bounds import LayerBounds, gradient_bounds, layer_radii
from dpsynth.mechanism.gradient_boxes import gradient_box


def test_layers_carry_their_arrays_in_order():
    """Catches bounds of one layer handed to another."""
    weights = glorot(np.random.default_rng(0), (3, 4, 2, 1))
    bounds = gradient_bounds(weights, cube(3), norms=[2.0, 2.0, 2.0])
    box = gradient_box(weights, cube(3))
    assert [layer.shapes for layer in bounds] == [((3, 4), (4,)), ((4, 2), (2,)), ((2, 1),)]
    assert [layer.size for layer in bounds] == [16, 10, 2]
    radii = layer_radii(weights, [2.0, 2.0, 2.0], cube(3), box)
    assert len({float(radius) for radius in radii}) == 3
    for layer, matrix, radius in zip(bounds, box.matrices, radii, strict=True):
        np.testing.assert_array_equal(layer.lo[0], matrix.lo)
        np.testing.assert_array_equal(layer.hi[0], matrix.hi)
        assert float(layer.radius) == float(radius)


def test_box_or_ball_can_be_left_out():
    """Catches a layer that claims a bound nobody computed."""
    weights = glorot(np.random.default_rng(0), (3, 4, 1))
    assert all(layer.radius is None for layer in gradient_bounds(weights, cube(3)))
    balls = gradient_bounds(weights, cube(3), norms=[1.0, 1.0], box=False)
    assert all(layer.lo is None and layer.radius is not None for layer in balls)
    with pytest.raises(InputError, match="needs a box"):
        gradient_bounds(weights, cube(3), box=False)
    with pytest.raises(InputError, match="norms has 1 entries"):
        gradient_bounds(weights, cube(3), norms=[1.0])
    with pytest.raises(InputError, match="needs a box"):
        LayerBounds(((1, 1),), None, None, None)


@pytest.mark.slow
def test_works_in_a_compiled_function():
    """Catches bounds that only exist eagerly."""
    weights = glorot(np.random.default_rng(0), (3, 4, 1))

    @tf.function(jit_compile=True)
    def radii(matrix):
        return [b.radius for b in gradient_bounds([(matrix, None), weights[1]], cube(3), norms=[1.0, 1.0])]

    assert all(np.isfinite(r) for r in radii(weights[0][0]))
