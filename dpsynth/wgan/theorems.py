"""The theorems of Pedersen (2022), section 3.1, corrected, from the domain to the gradient penalty.

1. the domain: where records can lie
2. Theorem 3.1.1: bounds of each component of a record's gradient
3. bounds of norms, and all bounds of a layer together
4. Theorem 3.1.2: the noise of each component, and Proposition 3.1.4: with a gradient penalty beside it
5. Theorem 3.1.3: the gradient penalty's share

Equations have the thesis's numbers, ``x^l``, ``s^l`` and ``phi`` are its symbols. Here a layer's matrix W has
the shape (n_in, n_out), so ``s = x W + b``. ``deltas`` are the thesis's gradients with respect to a bias.
What differs from the thesis is listed, with numbers, in the docstring of `dpsynth.wgan.algorithm`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import in_range, one_of
from dpsynth.errors import InputError
from dpsynth.privacy.release import NOISE_SHAPES
from dpsynth.table.encoder import Layout
from dpsynth.wgan.norms import TINY, UNIT, widening

# ------------------------------------------------------------------------------------------------
# The domain of records: the input of every bound, as plain numpy arrays.
#
# A record reaches the critic as a point of a public box. In a one-hot group exactly one entry is 1. Nothing
# here is read off a record.

# The radius is a float64 square root that is compared with float32 points.
_RADIUS_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class Domain:
    """A box of float32 points, with one-hot groups, and the largest norm of a point.

    Parameters
    ----------
    lo, hi : array (dim,)
        Ends of the box. In a group, ``lo`` is the value that stands for 0 and ``hi`` the one for 1.
    groups : tuple of (start, stop)
        One-hot groups: in each, exactly one coordinate is at ``hi`` and the others are at ``lo``.
    radius : float
        Largest Euclidean norm of a point.

    Raises
    ------
    InputError
        If the ends are not finite and ordered, or the groups overlap or leave the box.
    """

    lo: NDArray[np.float32]
    hi: NDArray[np.float32]
    groups: tuple[tuple[int, int], ...]
    radius: float

    def __post_init__(self) -> None:
        lo, hi = np.asarray(self.lo, np.float32), np.asarray(self.hi, np.float32)
        if lo.ndim != 1 or lo.shape != hi.shape or lo.size == 0:
            raise InputError(f"lo and hi must be vectors of one length >= 1, got {lo.shape} and {hi.shape}")
        if not (np.isfinite(lo).all() and np.isfinite(hi).all() and (lo <= hi).all()):
            raise InputError("lo and hi must be finite with lo <= hi in every coordinate")
        end = 0
        for start, stop in sorted(self.groups):
            if not end <= start < stop <= lo.size:
                raise InputError(
                    f"group ({start}, {stop}) is empty, overlaps another or leaves the {lo.size} coordinates"
                )
            end = stop
        in_range("radius", self.radius, 0.0, math.inf, high_open=True)
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)
        object.__setattr__(self, "groups", tuple((int(a), int(b)) for a, b in self.groups))

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return int(self.lo.size)

    @classmethod
    def from_layout(cls, layout: Layout, scale: NDArray[np.float32] | None = None) -> Domain:
        """The domain of encoded records, as the critic sees them: ``(point - layout.center) * scale``.

        ``scale`` (dim,) is public and greater than 0, 1 everywhere by default. The ends are moved outward by
        one float32 step, because the difference may round up or down. So may the product.

        Examples
        --------
        >>> domain = Domain.from_layout(Layout(1, ((1, 3),)), np.float32([1, 3, 3]))
        >>> domain.hi.round(3).tolist(), round(domain.radius**2, 3)  # 1/4 + 9 (1 - 1/2)
        ([0.5, 1.5, 1.5], 4.75)
        """
        center = np.asarray(layout.center, float)
        lo, hi = (0.0 - center).astype(np.float32), (1.0 - center).astype(np.float32)
        lo = np.nextafter(lo, np.float32(-np.inf))
        hi = np.nextafter(hi, np.float32(np.inf))
        if scale is None:
            return cls(lo, hi, tuple(layout.groups), layout.radius * (1.0 + _RADIUS_SLACK))
        factor = np.asarray(scale, np.float32)
        if factor.shape != lo.shape or not (np.isfinite(factor).all() and (factor > 0).all()):
            raise InputError(f"scale must be {lo.size} finite numbers greater than 0, got {scale!r:.80}")
        squares = factor.astype(float) ** 2
        squared = squares[: layout.n_numeric].sum() / 4.0
        for start, stop in layout.groups:
            # One entry of m is at 1 - 1/m and the others at -1/m, so the norm depends on which one it is.
            away = center[start] ** 2 * squares[start:stop]
            squared += (away.sum() - away + (1.0 - center[start]) ** 2 * squares[start:stop]).max()
        lo = np.nextafter(lo * factor, np.float32(-np.inf))
        hi = np.nextafter(hi * factor, np.float32(np.inf))
        return cls(lo, hi, tuple(layout.groups), float(np.sqrt(squared)) * (1.0 + _RADIUS_SLACK))

    @classmethod
    def box(cls, lo: ArrayLike, hi: ArrayLike) -> Domain:
        """A plain box. Its radius is the norm of its farthest corner."""
        low, high = np.asarray(lo, np.float32), np.asarray(hi, np.float32)
        farthest = np.maximum(np.abs(low), np.abs(high)).astype(float)
        return cls(low, high, (), float(np.linalg.norm(farthest)) * (1.0 + _RADIUS_SLACK))


# ------------------------------------------------------------------------------------------------
# Componentwise bounds of the critic's gradient (Pedersen 2022, Theorem 3.1.1), by interval propagation.
#
# The printed equations are corrected (deviations 1 to 3). The product with a matrix is written by midpoint
# and half range, ``W m -+ |W| r``. The positive and negative parts of W give the same interval. One-hot
# groups enter the first layer by the largest and smallest weight of the group instead of the sums of the
# signs.
#
# MaxMin sorts pairs (Anil, Lucas and Grosse 2019, not in Pedersen). It has slope 1 in every direction and
# permutes its inputs. Its derivative is therefore exact wherever the order of a pair is certain. A critic
# must route a tie by *one* comparison for both outputs. TensorFlow's own gradients of ``maximum`` and
# ``minimum`` send both to the same input, which no permutation does.
#
# Rounding. Take a dot product of n terms, in any order, with or without fused multiply-add. Then ``|fl(x.w)
# - x.w| <= gamma_n sum |x_i||w_i|`` with ``gamma_n = n u / (1 - n u)``, ``u = 2^-24`` (Higham 2002,
# *Accuracy and Stability of Numerical Algorithms*, section 3.1). Both the critic and the bound round. Every
# bound is therefore widened outward by ``4 (n + 8) u`` times that sum. The critic needs n of it. The bound's
# own two dot products need up to 2n. The rest covers sums over one-hot groups, the bias, halving, and
# second-order terms (n < 2^16).
#
# Two things are not covered. Products in TF32 or bfloat16 must be switched off on a GPU
# (`dpsynth.wgan.precision.full_precision`). The rounding of the *sum* over a
# batch of a training step is not linear in its records (floating-point attacks, Mironov 2012). The sum is
# taken in float64, in which it stays far below the widening. A float32 sum of 2,000 records moved by five
# times the sensitivity where a component was nearly constant.


Weights = Sequence[tuple[Any, Any]]


class Interval(NamedTuple):
    """Componentwise bounds ``lo <= value <= hi``, tensors of one shape: ``C_0`` and ``C_1`` of (3.8)."""

    lo: Any
    hi: Any

    @property
    def magnitude(self) -> Any:
        """Largest absolute value of each component."""
        return tf.maximum(tf.abs(self.lo), tf.abs(self.hi))


def product(y: Interval, z: Interval) -> Interval:
    """Interval of the elementwise product, with broadcasting, (3.15)-(3.18).

    Rounding is monotone, so the products of the rounded ends also bound the rounded product: no widening.
    """
    corners = (y.lo * z.lo, y.lo * z.hi, y.hi * z.lo, y.hi * z.hi)
    low = tf.minimum(tf.minimum(corners[0], corners[1]), tf.minimum(corners[2], corners[3]))
    high = tf.maximum(tf.maximum(corners[0], corners[1]), tf.maximum(corners[2], corners[3]))
    return Interval(low, high)


@dataclass(frozen=True)
class Activation:
    """A critic's activation and its transposed derivative, of points and of intervals.

    ``relu``, ``leaky_relu``: ``s`` for s > 0, ``slope * s`` elsewhere (3.5), with ``slope`` in [0, 1].
    ``maxmin``: the maxima of neighbouring pairs, then their minima. It keeps norms. The width must be even.

    Raises
    ------
    InputError
        If there is no activation of this name, or the slope is outside its range.
    """

    kind: str
    slope: float = 0.2

    def __post_init__(self) -> None:
        if self.kind not in ("relu", "leaky_relu", "maxmin"):
            raise InputError(f"activation must be 'relu', 'leaky_relu' or 'maxmin', got {self.kind!r}")
        in_range("slope", self.slope, 0.0, 1.0)

    @property
    def below(self) -> float:
        """Slope below 0."""
        return 0.0 if self.kind == "relu" else self.slope

    def forward(self, s: Any) -> tuple[Any, Any]:
        """Outputs (3.7), and the mask that `backward` needs, for ``s`` of shape (n, width)."""
        if self.kind == "maxmin":
            a, b = s[:, 0::2], s[:, 1::2]
            return tf.concat([tf.maximum(a, b), tf.minimum(a, b)], axis=1), a > b
        below = tf.cast(np.float32(self.below), s.dtype)
        mask = tf.where(s > 0, tf.ones_like(s), tf.fill(tf.shape(s), below))
        return s * mask, mask

    def backward(self, upstream: Any, mask: Any) -> Any:
        """Gradient with respect to ``s`` from that with respect to the outputs (3.12), both (n, width)."""
        if self.kind == "maxmin":
            half = mask.shape[1]
            high, low = upstream[:, :half], upstream[:, half:]
            pair = tf.stack([tf.where(mask, high, low), tf.where(mask, low, high)], axis=2)
            return tf.reshape(pair, [-1, 2 * half])
        return upstream * mask

    def interval_forward(self, s: Interval) -> Interval:
        """Bounds of the outputs (3.11), for sums between ``s``: the function is nondecreasing."""
        if self.kind == "maxmin":
            return Interval(
                *(
                    tf.concat([tf.maximum(end[0::2], end[1::2]), tf.minimum(end[0::2], end[1::2])], axis=0)
                    for end in s
                )
            )
        return Interval(*(tf.where(end > 0, end, self.below * end) for end in s))

    def interval_backward(self, s: Interval, upstream: Interval) -> Interval:
        """Bounds of the gradient with respect to ``s``, (3.19) and (3.20).

        ``maxmin`` swaps the gradients back if the order of a pair is certain, else takes the hull of both.
        """
        if self.kind != "maxmin":
            return product(
                Interval(*(tf.where(end > 0, tf.ones_like(end), self.below) for end in s)), upstream
            )
        half = s.lo.shape[0] // 2
        first_above = s.lo[0::2] > s.hi[1::2]
        second_above = s.lo[1::2] > s.hi[0::2]
        ends = []
        for end, widest in zip(upstream, (tf.minimum, tf.maximum), strict=True):
            high, low = end[:half], end[half:]
            hull = widest(high, low)
            first = tf.where(first_above, high, tf.where(second_above, low, hull))
            second = tf.where(first_above, low, tf.where(second_above, high, hull))
            ends.append(tf.reshape(tf.stack([first, second], axis=1), [2 * half]))
        return Interval(*ends)


class GradientBox(NamedTuple):
    """Bounds of ``grad D(x)`` and of its parts for every record x (3.4), as lists over layers.

    ``matrices[l]`` bounds the gradient with respect to W (n_in, n_out), (3.23) and (3.24). ``biases[l]``
    bounds that with respect to b (n_out,), or is None for a layer without bias. ``inputs[l]`` bounds the
    layer's input (n_in,), (3.11), and ``deltas[l]`` the gradient with respect to its sum ``x W + b``
    (n_out,), (3.19) and (3.20).
    """

    matrices: list[Interval]
    biases: list[Interval | None]
    inputs: list[Interval]
    deltas: list[Interval]


def check_weights(weights: Weights, dim: int) -> None:
    """Check that layers fit each other, ``dim`` inputs and one output."""
    width = dim
    if not weights:
        raise InputError("weights must hold at least one layer")
    for layer, (matrix, bias) in enumerate(weights):
        shape = tuple(matrix.shape)
        if len(shape) != 2 or shape[0] != width:
            raise InputError(f"layer {layer} has a matrix of shape {shape}, but {width} inputs")
        width = shape[1]
        if bias is not None and tuple(bias.shape) != (width,):
            raise InputError(f"layer {layer} has {width} outputs, but a bias of shape {tuple(bias.shape)}")
    if width != 1:
        raise InputError(f"the WGAN critic must have one output, but the last layer has {width}")


def _spread(matrix: Any, half_range: Any, magnitude: Any) -> tuple[Any, Any]:
    """``(|W|^T r, |W|^T m)`` for W (n_in, n_out): half range of a linear map, and size of its terms."""
    both = tf.matmul(tf.stack([half_range, magnitude + TINY]), tf.abs(matrix) + TINY)
    return both[0], both[1]


def _affine(x: Interval, matrix: Any, bias: Any) -> Interval:
    """Bounds of ``x W + b``, (3.9) and (3.10) with the bias."""
    middle, half_range = 0.5 * (x.lo + x.hi), 0.5 * (x.hi - x.lo)
    center = tf.linalg.matvec(matrix, middle, transpose_a=True)
    spread, size = _spread(matrix, half_range, x.magnitude)
    if bias is not None:
        center, size = center + bias, size + tf.abs(bias)
    half = spread + widening(matrix.shape[0]) * size
    return Interval(center - half, center + half)


def _first_affine(domain: Domain, matrix: Any, bias: Any) -> Interval:
    """(3.9) and (3.10) for records: a one-hot group contributes ``[min_c W_cj, max_c W_cj]``."""
    lo, hi = domain.lo.astype(float), domain.hi.astype(float)
    middle, half_range = 0.5 * (lo + hi), 0.5 * (hi - lo)
    for start, stop in domain.groups:  # a group is its values for 0, plus one weight times (hi - lo)
        middle[start:stop], half_range[start:stop] = lo[start:stop], 0.0
    magnitude = np.maximum(np.abs(lo), np.abs(hi))
    center = tf.linalg.matvec(matrix, tf.constant(middle, tf.float32), transpose_a=True)
    spread, size = _spread(matrix, tf.constant(half_range, tf.float32), tf.constant(magnitude, tf.float32))
    if domain.groups:
        rows = tf.gather(tf.constant((hi - lo), tf.float32)[:, None] * matrix, _group_rows(domain.groups))
        low, high = tf.reduce_min(rows, axis=1), tf.reduce_max(rows, axis=1)
        center += 0.5 * tf.reduce_sum(high + low, axis=0)
        spread += 0.5 * tf.reduce_sum(high - low, axis=0)
    if bias is not None:
        center, size = center + bias, size + tf.abs(bias)
    half = spread + widening(matrix.shape[0]) * size
    return Interval(center - half, center + half)


def _group_rows(groups: Sequence[tuple[int, int]]) -> np.ndarray:
    """Rows of each group, (groups, longest). Short groups repeat their last row, which moves no extreme."""
    longest = max(stop - start for start, stop in groups)
    return np.array([[min(start + i, stop - 1) for i in range(longest)] for start, stop in groups], np.int32)


def _transposed(matrix: Any, delta: Interval) -> Interval:
    """Bounds of ``W delta`` (3.13): (3.21) and (3.22) with the sum over the outputs."""
    middle, half_range = 0.5 * (delta.lo + delta.hi), 0.5 * (delta.hi - delta.lo)
    center = tf.linalg.matvec(matrix, middle)
    spread, size = _spread(tf.transpose(matrix), half_range, delta.magnitude)
    half = spread + widening(matrix.shape[1]) * size
    return Interval(center - half, center + half)


def _scaled_outward(interval: Interval) -> Interval:
    """Widened by a few roundings, for a gradient that is scaled before it is summed."""
    margin = 8.0 * UNIT * interval.magnitude
    return Interval(interval.lo - margin, interval.hi + margin)


def gradient_box(
    weights: Weights, domain: Domain, *, activation: str = "leaky_relu", slope: float = 0.2
) -> GradientBox:
    """Bounds of every component of ``grad_W D(x)`` that hold for all records of the domain (Theorem 3.1.1).

    Forward by (3.9) to (3.11), backward by (3.19) to (3.24).

    ``weights`` are the critic's, float32 and released. Equal ends of the domain give the gradient itself up
    to the widening for float32. Elsewhere interval arithmetic is loose. The function may stand inside
    ``tf.function(jit_compile=True)``.
    """
    check_weights(weights, domain.dim)
    phi = Activation(activation, slope)
    x = Interval(tf.constant(domain.lo), tf.constant(domain.hi))  # (3.8) of the input
    inputs: list[Interval] = [x]
    sums: list[Interval] = []
    for layer, (matrix, bias) in enumerate(weights[:-1]):
        if activation == "maxmin" and matrix.shape[1] % 2:
            raise InputError(f"layer {layer} has {matrix.shape[1]} outputs, but maxmin needs an even number")
        s = _affine(inputs[-1], matrix, bias) if layer else _first_affine(domain, matrix, bias)
        sums.append(s)  # (3.9), (3.10)
        inputs.append(phi.interval_forward(s))  # (3.11)
    one = tf.ones([1])
    deltas = [Interval(one, one)]
    for layer in range(len(weights) - 1, 0, -1):
        upstream = _transposed(weights[layer][0], deltas[0])  # (3.21), (3.22)
        deltas.insert(0, phi.interval_backward(sums[layer - 1], upstream))  # (3.19), (3.20)
    matrices, biases = [], []
    for x, delta, (_, bias) in zip(inputs, deltas, weights, strict=True):
        column, row = Interval(x.lo[:, None], x.hi[:, None]), Interval(delta.lo[None], delta.hi[None])
        matrices.append(_scaled_outward(product(column, row)))  # (3.23), (3.24) with the activation
        biases.append(None if bias is None else _scaled_outward(delta))
    return GradientBox(matrices, biases, inputs, deltas)


# ------------------------------------------------------------------------------------------------
# Norm bounds of a critic's gradient, and all bounds of a layer together.
#
# Spectral norms are future work in section 3.2 of the thesis. Let every ``||W||_2 <= 1``, and let the
# activation be 1-Lipschitz and map 0 to 0. A layer's gradient block is the rank-one matrix ``x delta^T``
# (``delta`` for the bias), so ``||x|| ||delta||`` bounds it. Compare Bethune et al. (2023), "DP-SGD without
# clipping". The projection needs a *guaranteed* upper bound of ``||W||_2``: Gram iteration, widened for
# float32 (Delattre et al. 2023, "Efficient bound of Lipschitz constant for convolutional layers by Gram
# iteration"). Power iteration is a lower estimate and not safe.


def _norm(interval: Interval) -> Any:
    """Upper bound of the norm of any vector in the interval."""
    magnitude = interval.magnitude
    return tf.norm(magnitude) * (1.0 + widening(int(magnitude.shape[0])))


def layer_radii(
    weights: Weights, norms: Sequence[Any], domain: Domain, box: GradientBox | None = None
) -> list[Any]:
    """Bounds ``s_l`` of the norm of a record's gradient with respect to layer l's matrix and bias together.

    ``s_l^2 = (||x^(l-1)||^2 + 1) ||delta^l||^2`` (without the 1 where there is no bias), with

    * ``||x^l|| <= ||W^l||_2 ||x^(l-1)|| + ||b^l||`` from the domain's radius on,
    * ``||delta^l|| <= ||W^(l+1)||_2 ||delta^(l+1)||`` from ``delta = 1`` at the output.

    The norm of the box replaces either one where it is smaller. ``norms`` are upper bounds of every
    ``||W||_2``: 1 after `project`, else `spectral_norm_bound`. Valid for gradients computed in float32.

    Examples
    --------
    >>> weights = [(tf.eye(2), tf.zeros(2)), (tf.constant([[0.6], [0.8]]), None)]
    >>> radii = layer_radii(weights, [1.0, 1.0], Domain([-1, -1], [1, 1], (), radius=1.0))
    >>> [round(float(r), 3) for r in radii]  # sqrt(1 + 1) and 1
    [1.414, 1.0]
    """
    # A computed product W x is off by widening || |W| |x| ||, and || |W| ||_2 <= ||W||_F <= sqrt(rank)
    # ||W||_2.
    forward = [1.0 + widening(w.shape[0]) * np.sqrt(min(w.shape)) for w, _ in weights]
    backward = [1.0 + widening(w.shape[1]) * np.sqrt(min(w.shape)) for w, _ in weights]
    norms = [tf.cast(norm, tf.float32) for norm in norms]
    x = tf.constant(domain.radius, tf.float32)
    xs = []
    for layer, (matrix, bias) in enumerate(weights):
        if box is not None:
            x = tf.minimum(x, _norm(box.inputs[layer]))
        xs.append(x)
        x = norms[layer] * forward[layer] * x
        if bias is not None:
            x = (x + tf.norm(bias)) * (1.0 + widening(matrix.shape[0] + matrix.shape[1]))
    delta = tf.ones([])
    radii: list[Any] = []
    for layer in range(len(weights) - 1, -1, -1):
        matrix, bias = weights[layer]
        if box is not None:
            delta = tf.minimum(delta, _norm(box.deltas[layer]))
        ones = 0.0 if bias is None else 1.0
        radii.insert(0, tf.sqrt(xs[layer] ** 2 + ones) * delta * (1.0 + widening(8)))
        delta = norms[layer] * backward[layer] * delta
    return radii


@dataclass(frozen=True, eq=False)
class LayerBounds:
    """Bounds of one record's gradient with respect to a layer's arrays: a box, a ball around 0, or both.

    ``shapes`` are those of the layer's arrays, ``(W.shape,)`` or ``(W.shape, b.shape)``. ``lo`` and ``hi``
    bound each array componentwise. ``radius`` bounds the Euclidean norm of all of them together.
    """

    shapes: tuple[tuple[int, ...], ...]
    lo: tuple[Any, ...] | None
    hi: tuple[Any, ...] | None
    radius: Any | None

    def __post_init__(self) -> None:
        if self.lo is None and self.radius is None:
            raise InputError("a layer needs a box (lo, hi) or a radius")

    @property
    def size(self) -> int:
        """Number of entries."""
        return sum(math.prod(shape) for shape in self.shapes)


def gradient_bounds(
    weights: Weights,
    domain: Domain,
    *,
    norms: Sequence[Any] | None = None,
    activation: str = "leaky_relu",
    slope: float = 0.2,
) -> list[LayerBounds]:
    """Bounds of ``grad_W D(x)`` for every record x (3.3), a layer at a time: the box and the ball.

    `allocate` derives from them the sensitivity of the sum of gradients to adding or removing one record. The
    function may stand inside ``tf.function(jit_compile=True)``.

    Parameters
    ----------
    weights : sequence of (W (n_in, n_out), b (n_out,) or None)
        Released weights of the critic, float32. The last layer has one output.
    domain : Domain
        Box that contains every record.
    norms : sequence of scalars, optional
        Upper bounds of every ``||W||_2`` (1 after `project`). Without them there are no balls.
    activation : {"relu", "leaky_relu", "maxmin"}
        Activation between the layers.
    slope : float
        Negative slope of ``leaky_relu``, in [0, 1].

    Raises
    ------
    InputError
        If the weights do not fit each other, the domain or the norms.

    Examples
    --------
    >>> weights = [(tf.eye(2), tf.zeros(2)), (tf.constant([[0.6], [0.8]]), None)]
    >>> bounds = gradient_bounds(weights, Domain.box([-0.5, -0.5], [0.5, 0.5]), norms=[1.0, 1.0])
    >>> [layer.size for layer in bounds]
    [6, 2]
    """
    check_weights(weights, domain.dim)
    if norms is not None and len(norms) != len(weights):
        raise InputError(f"norms has {len(norms)} entries, but there are {len(weights)} layers")
    region = gradient_box(weights, domain, activation=activation, slope=slope)
    radii = [None] * len(weights) if norms is None else layer_radii(weights, norms, domain, region)
    bounds = []
    for layer, (matrix, bias) in enumerate(weights):
        shapes = tuple(tuple(int(n) for n in a.shape) for a in (matrix, bias) if a is not None)
        intervals = [i for i in (region.matrices[layer], region.biases[layer]) if i is not None]
        lo, hi = tuple(i.lo for i in intervals), tuple(i.hi for i in intervals)
        bounds.append(LayerBounds(shapes, lo, hi, radii[layer]))
    return bounds


# ------------------------------------------------------------------------------------------------
# Allocation of the noise to components (Pedersen 2022, Theorem 3.1.2), and the smallest noise.
#
# A diagonal Gaussian with stds ``sigma_k`` is a Gaussian mechanism of multiplier z iff
# ``max_g sum_k g_k^2 / sigma_k^2 <= 1 / z^2`` over a record's contributions g. For z = 1, half ranges r_k:
#
# * ``spherical``: ``sigma_k = ||r||_2``.
# * ``proportional`` (Theorem 3.1.2): ``sigma_k = sqrt(d) r_k``, the same total variance ``d ||r||^2``.
# * ``optimal`` (by Lagrange, not in Pedersen): ``sigma_k^2 = r_k sum_j r_j``, total ``(sum r)^2``, which is
#   at most ``d ||r||^2``.
# * ``layerwise``: the optimal split between layers, spherical within a layer.
#
# Let a ball of radius s bound a layer of n entries. Its stds are then all alike. The theorem's own formula
# for epsilon holds for one use and epsilon < 1 only. Here z is accounted by the privacy-loss distribution.
#
# Proposition 3.1.4 (not in Pedersen): critic and penalty together. A record contributes ``g = c + a + b``. In
# layer l, a is the critic's term, in the box ``|a_k| <= r_k`` or in the ball ``||a|| <= rho_l``. The
# penalty's b is in the ball ``||b|| <= e_l = lambda C_l`` (Theorem 3.1.3). Let s > 0 be any stds and
# ``m_l = min_k s_k`` in layer l. Then
#
#     ``||(g - c) / s||^2 <= N(s) = sum_l (||r_l / s_l|| + e_l / m_l)^2``,                            (3.35)
#
# so ``sigma = s sqrt(N(s))`` has multiplier 1. With a ball, ``rho_l / m_l`` stands for ``||r_l / s_l||``.
# Proof: in a layer ``||(a + b) / s|| <= ||a / s|| + ||b / s||``, where ``|a_k / s_k| <= r_k / s_k`` and
# ``|b_k / s_k| <= |b_k| / m_l``. Squares of layers add. (3.35) has a sum within the layer and not a root of
# squares, since one record may move both terms one way.
#
# The least total variance ``V(s) N(s)``, with ``V(s) = sum_k s_k^2``, is of this form, for one floor f_l in
# each layer:
#
#     ``s_k = t_l max(f_l, sqrt(r_k))``, ``t_l^4 = N_l / V_l``,                                        (3.36)
#
# for which ``V N = (sum_l sqrt(V_l N_l))^2``.
#
# Proof: scaling layer l by t_l gives ``sum_l t_l^2 V_l`` and ``sum_l N_l / t_l^2``, whose product is least at
# this t_l (Cauchy and Schwarz). So each layer has the least ``V_l N_l`` for itself. For a given least std m,
# ``sum s_k^2`` under a limit on ``sum r_k^2 / s_k^2`` and ``s_k >= m`` has the multiplier's condition
# ``s_k^4 = mu r_k^2`` wherever ``s_k > m`` (convex in ``log s``), hence ``max(m, tau sqrt(r_k))``. A factor
# changes nothing, so tau = 1 and one number f = m / tau is left. In it the product has one valley: let m = 1.
# ``log ||r / s||`` is convex in ``log s``, so its least value Phi(v) for ``log V <= v`` is convex in v, as
# then is ``v + 2 log(exp Phi(v) + e)``, and v falls steadily as f grows. So the sign of the derivative shows
# the side of the minimum, and `_floor` halves an interval. f = 0 without a penalty gives ``optimal`` as
# above. f above all ``sqrt(r_k)`` gives ``layerwise``. So ``optimal <= layerwise <= spherical`` with a
# penalty too. ``proportional`` is ``s_k = max(f_l, r_k)`` with one factor for all layers, where a floor may
# lower the total variance by itself.

# Keeps every std positive, also squared in float32, where a component is constant or underflows.
_FLOOR = 2.0**-60

# A layer's stds follow its half ranges to this power, and have a scale of their own or that of all layers.
_POWERS = {"spherical": 0.0, "layerwise": 0.0, "proportional": 1.0, "optimal": 0.5}
_OWN_SCALE = ("layerwise", "optimal")

# The floor is sought between 2^-20 of the largest std and that, to a relative 2^(20 / 2^12) = 1.003.
_FLOOR_RANGE, _HALVINGS = 20.0, 12


class _Stds(NamedTuple):
    """Stds of a layer up to a factor, and how far a record reaches in units of them: the root of N_l.

    ``variance`` is the sum of their squares over all entries, V_l.
    """

    centers: list[Any]
    stds: list[Any]
    variance: Any
    reach: Any


def _half_ranges(lo: Sequence[Any], hi: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Centre and half range of every component of a box."""
    centers = [0.5 * (low + high) for low, high in zip(lo, hi, strict=True)]
    ranges = [tf.maximum(high - c, c - low) + _FLOOR for low, high, c in zip(lo, hi, centers, strict=True)]
    return centers, ranges


def _squares(arrays: Sequence[Any]) -> Any:
    """Sum of the squares of all entries. Never joined into one array, which costs more than the sums."""
    return tf.add_n([tf.reduce_sum(tf.square(a)) for a in arrays])


def _floor(ranges: Any, wanted: Any, extra: Any) -> Any:
    """The floor of (3.36) for stds ``max(floor, wanted)``, and a ball of radius ``extra`` beside the box.

    Any positive number is valid. This one makes little noise.
    """
    highest = tf.reduce_max(wanted)

    def halve(low: Any, high: Any) -> tuple[Any, Any]:
        middle = 0.5 * (low + high)
        floor = highest * tf.pow(2.0, middle)
        stds = tf.maximum(floor, wanted)
        raised = tf.cast(wanted < floor, tf.float32)
        shares = tf.square(ranges / stds)
        norm = tf.sqrt(tf.reduce_sum(shares))
        # d log V against -d log N, both for a relative change of the floor and divided by two
        more = tf.reduce_sum(raised) * floor**2 / tf.reduce_sum(tf.square(stds))
        less = (tf.reduce_sum(raised * shares) / norm + extra / floor) / (norm + extra / floor)
        return tf.where(more < less, middle, low), tf.where(more < less, high, middle)

    ends = (tf.constant(-_FLOOR_RANGE), tf.constant(0.0))
    low, high = tf.while_loop(lambda *_: True, halve, ends, maximum_iterations=_HALVINGS)
    return highest * tf.pow(2.0, 0.5 * (low + high))


def _shaped(layer: LayerBounds, extra: Any | None, shape: str) -> _Stds:
    """Stds of a layer by its box or its ball, whichever needs less noise, with a ball ``extra`` added."""
    power, size = _POWERS[shape], float(layer.size)
    added = tf.zeros([]) if extra is None else tf.cast(extra, tf.float32)
    alike = [tf.ones([]) for _ in layer.shapes]
    ball = None if layer.radius is None else tf.cast(layer.radius, tf.float32) + _FLOOR
    if layer.lo is None or layer.hi is None:
        return _Stds([tf.zeros(s) for s in layer.shapes], alike, size, ball + added)
    centers, arrays = _half_ranges(layer.lo, layer.hi)
    radius, boxed = tf.sqrt(_squares(arrays)), tf.constant(True)
    if ball is not None and shape != "proportional":
        radius, boxed = tf.minimum(radius, ball), radius <= ball
    whole = radius + added
    if power == 0.0:
        return _Stds([tf.where(boxed, c, 0.0) for c in centers], alike, size, whole)
    stds = [tf.sqrt(r) if power == 0.5 else r for r in arrays]
    reach = tf.zeros([])
    if extra is not None:
        ranges, wanted = (tf.concat([tf.reshape(a, [-1]) for a in each], axis=0) for each in (arrays, stds))
        floor = _floor(ranges, wanted, added)
        stds, reach = [tf.maximum(floor, s) for s in stds], added / floor
    shares = [r / s for r, s in zip(arrays, stds, strict=True)]
    variance, reach = _squares(stds), reach + tf.sqrt(_squares(shares))
    if shape in _OWN_SCALE:  # stds that are all alike may do better, by the box or by the ball
        better = tf.sqrt(variance) * reach <= math.sqrt(size) * whole
        stds = [tf.where(better, s, 1.0) for s in stds]
        variance, reach = tf.where(better, variance, size), tf.where(better, reach, whole)
        centers = [tf.where(better | boxed, c, 0.0) for c in centers]
    return _Stds(centers, stds, variance, reach)


def allocate(
    bounds: Sequence[LayerBounds],
    shape: str,
    *,
    extra_radii: Sequence[Any] | None = None,
) -> tuple[list[Any], list[Any]]:
    """Centre and std for noise multiplier 1 of every array, so that the noise is ``z * std * N(0, 1)``.

    Adjacency: add or remove one record. The query is ``sum_i (g_i - c)``. Every record's ``sum_k (g_k -
    c_k)^2 / std_k^2`` is at most 1, rounding included. Under replace-one the sensitivity is twice that. Both
    outputs depend on released weights only. They come in the order W1, b1, W2 and so on. The centre is 0
    where a layer's ball is the smaller bound. A std is a scalar if a whole array has one.

    ``extra_radii`` bound, for each layer, the norm of a term added to a record's gradient beside the critic's
    term: lambda times `penalty_radii`. The bounds add, since both terms move together (Proposition 3.1.4).

    Raises InputError for an unknown shape, radii for another number of layers, and ``proportional`` for a
    layer without a box.

    Examples
    --------
    Pedersen (2022), section 3.1.3: 98 <= g_1 <= 100 and -50 <= g_2 <= 50.

    >>> box = LayerBounds(((2,),), (tf.constant([98.0, -50.0]),), (tf.constant([100.0, 50.0]),), None)
    >>> for shape in ("spherical", "proportional", "optimal"):
    ...     centers, stds = allocate([box], shape)
    ...     print(shape, *(f"{s:.2f}" for s in (stds[0] * tf.ones(2)).numpy()))
    spherical 50.01 50.01
    proportional 1.41 70.71
    optimal 7.14 50.50
    >>> centers[0].numpy().tolist()
    [99.0, 0.0]

    A penalty whose gradient has norm 1 at most raises the smaller std:

    >>> [round(float(s), 2) for s in allocate([box], "optimal", extra_radii=[1.0])[1][0]]
    [14.92, 53.73]
    """
    one_of("noise_shape", shape, NOISE_SHAPES)
    if extra_radii is not None and len(extra_radii) != len(bounds):
        raise InputError(f"extra_radii has {len(extra_radii)} entries, but there are {len(bounds)} layers")
    if shape == "proportional" and any(layer.lo is None for layer in bounds):
        raise InputError("noise shape 'proportional' needs the box of every layer")
    extras = [None] * len(bounds) if extra_radii is None else list(extra_radii)
    layers = [_shaped(layer, extra, shape) for layer, extra in zip(bounds, extras, strict=True)]
    # The squared scale t_l^2 of each layer.
    scales = [each.reach / tf.sqrt(each.variance) if shape in _OWN_SCALE else 1.0 for each in layers]
    # Sums of `total` nonnegative float32 terms are off by a relative total * 2^-24 at most.
    total = sum(layer.size for layer in bounds)
    reach = tf.sqrt(tf.add_n([each.reach**2 / scale for each, scale in zip(layers, scales, strict=True)]))
    reach *= 1.0 + (total + 64) * UNIT
    centers = [center for each in layers for center in each.centers]
    return centers, [
        std * (tf.sqrt(scale) * reach)
        for each, scale in zip(layers, scales, strict=True)
        for std in each.stds
    ]


# ------------------------------------------------------------------------------------------------
# The gradient penalty's share of a record's gradient (Pedersen 2022, Theorem 3.1.3).
#
# ``grad_x D`` is a product of the matrices and of diagonal 0/slope/1 matrices (3.31). Its gradient with
# respect to one matrix is therefore a rank-one matrix (3.32). Pedersen bounds the factors by Frobenius norms
# (3.33), with ``||phi'||_F = sqrt(width)``. Spectral norms (1 for phi') hold as well. They are smaller by
# four orders of magnitude for that architecture. Gradients with respect to biases are 0, because phi'' is 0.
# For one record the critic's term and the penalty's move together, so their bounds *add*: `allocate` takes
# the penalty's as ``extra_radii`` (deviation 15).


def _product_without(factors: Sequence[Any], left_out: int) -> Any:
    """``prod_{k != l}`` of (3.33) and (3.34)."""
    total = tf.ones([])
    for layer, factor in enumerate(factors):
        if layer != left_out:
            total = total * factor
    return total


def published_penalty_radii(weights: Weights, input_gradient_norm: float) -> list[Any]:
    """The bound as printed, ``2 max(||grad_x D|| - 1, 1) prod_{k != l} ||W^k||_F prod ||phi'^k||_F`` (3.34).

    It bounds the gradient of ``(||grad_x D|| - 1)^2`` with respect to each matrix. It is right but far too
    large, and kept for comparison. ``input_gradient_norm`` is an upper bound of ``||grad_x D(x)||``.

    Examples
    --------
    >>> weights = [(tf.ones([2, 4]), None), (tf.ones([4, 1]), None)]
    >>> [round(float(r), 3) for r in published_penalty_radii(weights, 1.0)]  # 2 * 2 * 2, 2 * sqrt(8) * 2
    [8.0, 11.314]
    """
    frobenius = [tf.norm(matrix) for matrix, _ in weights]
    derivative = math.sqrt(math.prod(matrix.shape[1] for matrix, _ in weights[:-1]))
    factor = 2.0 * max(input_gradient_norm - 1.0, 1.0) * derivative
    return [factor * _product_without(frobenius, layer) for layer in range(len(weights))]


def penalty_radii(weights: Weights, norms: Sequence[Any]) -> list[Any]:
    """(3.34) by spectral norms: ``C_l = 2 max(prod ||W||_2 - 1, 1) prod_{k != l} ||W^k||_2``, for float32.

    It bounds the gradient with respect to each matrix. Multiply it by lambda. ``norms`` are upper bounds of
    every ``||W||_2``. If all are at most 1, so is half of every C_l. It holds for one interpolated point per
    record and for penalties written with ``sqrt(sum of squares + small)``.
    """
    norms = [tf.cast(norm, tf.float32) for norm in norms]
    # Four passes through every matrix: two to reach grad_x D, two to differentiate its norm.
    outward = 1.0
    for matrix, _ in weights:
        outward *= (1.0 + widening(max(matrix.shape)) * float(np.sqrt(min(matrix.shape)))) ** 4
    whole = _product_without(norms, -1)
    # The factor of (3.25) is 2 | ||grad_x D|| - 1 |, and ||grad_x D|| lies between 0 and the product of all
    # norms.
    factor = 2.0 * tf.maximum(whole * outward - 1.0, 1.0) * outward
    return [factor * _product_without(norms, layer) for layer in range(len(weights))]
