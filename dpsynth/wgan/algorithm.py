"""Algorithm 1 of Pedersen (2022), section 3.2, corrected: critic, noise scales, random numbers, the step.

Comments such as "line 12" name the printed lines. Lines 4 to 19 are one call of `Step`. The loop around it
(lines 1 and 3, and what is returned) is `dpsynth.wgan.training.TrainingRun`. Line 2 is a `Plan`, made before.

All deviations from chapter 3 of the thesis, with the reason and the place. Other modules cite their numbers.

Theorem 3.1.1, in `dpsynth.wgan.theorems`:

1. (3.9) and (3.10) omit the bias of (3.6). They have it: `_affine`, `_first_affine`.
2. (3.14), (3.23) and (3.24) print the gradient with respect to ``x^(l-1)`` where the activation ``x^(l-1)``
   belongs: `gradient_box`, `weighted_gradient`.
3. (3.21) and (3.22) sum over the inputs of a layer. The sum is over its outputs: `_transposed`.
4. The thesis covers rounding by output gradients between -0.999999 and -1.000001. Margins for float32 are
   proved instead, product by product, and the gradient of D at its output is 1: `widening`.
5. Records are centred, not in [0, 1]^d. The radius, and with it the noise, about halves: `Domain`. A category
   is a one-hot group, not an interval of [0, 1]. Exactly one entry is 1, so a group contributes its extreme
   weights: `_first_affine`. The generator has a softmax for each: `dpsynth.wgan.networks.unit_cube`.
6. MaxMin is an activation too. It keeps norms where a projected critic with LeakyReLU loses them:
   `Activation`.
7. A ball from spectral norms stands beside each layer's box, and the smaller bound counts: `layer_radii`,
   `_choose`. Section 3.2 names spectral normalisation as future work. Norms of a critic that is not projected
   are found once a generator iteration, and widened by how far it moved: `norm_bound_nearby`.

Theorem 3.1.2, in `dpsynth.wgan.theorems`:

8. Its epsilon, from ``sigma = sqrt(2 ln(1.25 / delta)) / epsilon``, holds for one use and epsilon < 1 only.
   Stds are for noise multiplier z = 1, and z is accounted by the privacy-loss distribution: `allocate`.
9. Neighbours differ by one record more, not by another record in its place. Each record's gradient is
   centred, so its half range counts in place of ``C_1 - C_0``: `allocate`.
10. Noise shapes ``optimal`` and ``layerwise`` have at most the theorem's total variance: `allocate`. With the
    penalty at records every shape has a floor in each layer (Proposition 3.1.4).

Theorem 3.1.3, in `dpsynth.wgan.theorems`:

11. (3.27) omits the factor ``2 (||grad_x D|| - 1)`` of (3.25), which (3.34) has: `published_penalty_radii`.
12. Spectral norms in place of Frobenius norms, which are larger by four orders of magnitude: `penalty_radii`.

Algorithm 1:

13. Line 2 is one use's epsilon, with no regard to line 3. z is solved for all steps and for the sampling,
    before the first step: `dpsynth.privacy.calibration`.
14. Line 3's ``n_g`` is the plan's number of critic steps over ``n_c``, rounded down: no more steps than the
    ledger has: `dpsynth.wgan.training.TrainingRun`.
15. Line 7 is a root of squares. One record moves both terms together, so their bounds add: in units of the
    stds, whatever their shape (Proposition 3.1.4): `allocate`.
16. Gradients may be clipped in place of lines 5 to 7, for comparison: `Clipped`.
17. Lines 8 and 9 draw m records. A Poisson sample is drawn, which the accounting needs: `HostDraws._batches`.
    Sums are divided by the public B = q n, as the realised size is private: `Step.coefficients`.
18. Lines 9 and 10 draw one generated point for each record. B of them are drawn, at most 2,048, whatever the
    sample, so they are post-processing: `Step.noisy_gradient`. A penalty at records has partners of its own
    for each record. By position in the batch, one record would shift those of all others:
    `Step._data_penalty`.
19. Lines 6 and 12 take the penalty at the generated point. (2.10) has it at line 11's point between a record
    and a generated one, as is done: `Step._data_penalty`.
20. Line 12's penalty is one of three. Its bound makes much noise, so by default it is taken at points made
    without records, at no cost: `TrainingSettings.penalty`, `Step.noisy_gradient`.
    The norm is ``sqrt(sum of squares + 1e-12)``, which has a gradient at 0: `Step._penalty_gradient`.
21. Line 14's noise is the same at every step. It is z times the step's sensitivity, so that z is one number
    for the whole run: `Step.noisy_gradient`.
22. Line 15 adds noise to the mean of all terms. What is released is a centred sum over records alone, to
    which functions of released quantities are added: `Step`.
23. The critic's output has no bias. Its gradient would be 1 for every record, and carry no information:
    `critic_pass`.
24. Matrices are projected to spectral norm 1 after line 16 and before the first step, where asked for (the
    default): `Step.constrain`, `dpsynth.wgan.training.TrainingRun.run`.
25. Lines 16 and 19 have one learning rate alpha. There are two: `TrainingSettings`.
26. The returned Theta is that of a replay of the last critics with their noisy mean gradients
    (`dpsynth.wgan.replay`). Without one it is an exponential moving average over generator steps, which noise
    moves less, unless ``average`` is 0: `Step.updated_generator`. W is not published, and no ``l_2`` is
    returned. The cost was posted before the first step.
27. Section 3.3's architecture and latent distribution are not the defaults: `TrainingSettings`,
    `dpsynth.DPWGANGP.healthgan`. By default the generator has no hidden layer, and the outcome's coordinates
    have a public factor before the critic sees them. The domain of the bounds has it too: `ProvedScales`.
28. Section 3.4.1 keeps the best of several restarts by their rates of positives. Each restart is a run of its
    own in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import tensorflow as tf

from dpsynth.privacy.noise import standard_normals
from dpsynth.privacy.release import Plan
from dpsynth.privacy.sampling import poisson_batches
from dpsynth.table.encoder import Layout
from dpsynth.wgan.networks import Weights, flatten, generator_pass, unflatten
from dpsynth.wgan.norms import norm_bound_nearby, project, spectral_norm_bound
from dpsynth.wgan.settings import TrainingSettings
from dpsynth.wgan.theorems import Activation, Domain, LayerBounds, allocate, gradient_bounds, penalty_radii

# ------------------------------------------------------------------------------------------------
# The critic of Algorithm 1 (Pedersen 2022, section 3.3) and the gradients it needs.
#
# The last layer has one output and no bias (deviation 23). Every function can stand inside
# ``tf.function(jit_compile=True)``.


def critic_pass(weights: Weights, x: Any, activation: Activation) -> tuple[Any, list[Any], list[Any]]:
    """Scores, layer inputs and layer deltas of a batch, from which every gradient follows.

    Forward by (3.6) and (3.7), backward by (3.12) and (3.13), from the gradient 1 of D at its output.

    For record i and layer l the gradient is the outer product ``inputs[l][i] deltas[l][i]^T`` for the matrix
    and ``deltas[l][i]`` for the bias. So a weighted sum over records is one matrix product, without any
    per-record gradient.
    """
    inputs, masks = [x], []
    s = x
    for layer, (matrix, bias) in enumerate(weights):
        s = tf.matmul(inputs[-1], matrix)
        if bias is not None:
            s = s + bias
        if layer < len(weights) - 1:
            out, mask = activation.forward(s)
            inputs.append(out)
            masks.append(mask)
    deltas = [tf.ones_like(s)]
    for layer in range(len(weights) - 1, 0, -1):
        upstream = tf.matmul(deltas[0], weights[layer][0], transpose_b=True)
        deltas.insert(0, activation.backward(upstream, masks[layer - 1]))
    return s[:, 0], inputs, deltas


def weighted_gradient(inputs: list[Any], deltas: list[Any], coefficients: Any, weights: Weights) -> list[Any]:
    """``sum_i coefficients[i] * grad D(x_i)``, flat order, one matrix product a layer, coefficients (n,).

    It is (3.14), corrected (deviation 2), summed over records.
    """
    gradient = []
    for x, delta, (_, bias) in zip(inputs, deltas, weights, strict=True):
        scaled = delta * coefficients[:, None]
        gradient.append(tf.matmul(x, scaled, transpose_a=True))
        if bias is not None:
            gradient.append(tf.reduce_sum(scaled, axis=0))
    return gradient


def squared_gradient_norms(inputs: list[Any], deltas: list[Any], weights: Weights) -> Any:
    """Squared norm of every record's gradient without forming it ("ghost norms"), shape (n,)."""
    total = 0.0
    for x, delta, (_, bias) in zip(inputs, deltas, weights, strict=True):
        ones = 0.0 if bias is None else 1.0
        total += (tf.reduce_sum(x * x, axis=1) + ones) * tf.reduce_sum(delta * delta, axis=1)
    return total


def straight_through(points: Any, u: Any, layout: Layout) -> Any:
    """Points whose categories are drawn from their probabilities, through which gradients pass unchanged.

    ``u``: uniform numbers, shape (n, groups). Source: Bengio, Léonard and Courville (2013).
    """
    if not layout.groups:
        return points
    k, sizes = layout.n_numeric, [stop - start for start, stop in layout.groups]
    member = np.repeat(np.eye(len(sizes), dtype=np.float32), sizes, axis=0)
    # Sum of the probabilities of a group up to each category, by one product for all groups.
    upto, p = np.triu(member @ member.T), points[:, k:]
    above, below = tf.matmul(p, upto), tf.matmul(p, upto - np.eye(len(upto), dtype=np.float32))
    u = tf.matmul(u, member, transpose_b=True)
    hard = tf.cast((u <= above) & (u > below), tf.float32)
    return tf.concat([points[:, :k], p + tf.stop_gradient(hard - p)], axis=1)


def centred(points: Any, layout: Layout, scale: tuple[float, ...] | None) -> Any:
    """``(points - layout.center) * scale``, of arrays or tensors: the points of `Domain.from_layout`."""
    moved = points - layout.center.astype(np.float32)
    return moved if scale is None else moved * np.array(scale, np.float32)


# ------------------------------------------------------------------------------------------------
# Lines 5 to 7: from a critic's weights to the centre and the noise of its gradient sum, for a run's settings.

# Weights -> (centres, stds for z = 1), flat lists shaped like the critic's arrays.
NoiseScales = Callable[[Weights], tuple[list[Any], list[Any]]]


def noise_scales(
    layout: Layout, settings: TrainingSettings, plan: Plan, scale: tuple[float, ...] | None = None
) -> NoiseScales:
    """The function that bounds one record's gradient and shapes the noise, for noise multiplier 1.

    The result maps released critic weights to (centres, stds), flat lists, and can stand inside an XLA
    program. The plan gives the noise shape, ``scale`` the public factor of each coordinate of a record.

    Examples
    --------
    >>> from dpsynth.wgan.networks import glorot
    >>> plan = Plan(sampling_prob=0.1, expected_batch=9, steps=2, noise_multiplier=1, noise_shape="spherical")
    >>> scales = noise_scales(Layout(2), TrainingSettings(clip_norm=0.5), plan)
    >>> centers, stds = scales(glorot(np.random.default_rng(0), (2, 4, 1), output_bias=False))
    >>> [round(float(s), 4) for s in stds]
    [0.5, 0.5, 0.5]
    """
    if settings.clip_norm is not None:
        return Clipped(settings.clip_norm)
    return ProvedScales(layout, settings, plan.noise_shape, scale)


@dataclass(frozen=True)
class Clipped:
    """Scales of per-record clipping: one std for all entries, no centre."""

    clip_norm: float

    def __call__(self, weights: Weights) -> tuple[list[Any], list[Any]]:
        """Centres and stds, flat lists."""
        arrays = flatten(weights)
        # Norms and quotients round in float32; a clipped gradient may pass the bound by a few roundings.
        clip = np.float32(self.clip_norm * (1.0 + 1e-5))
        return [tf.zeros(a.shape) for a in arrays], [tf.constant(clip) for _ in arrays]


@dataclass(frozen=True)
class ProvedScales:
    """Scales from the bounds on the gradient at the given weights.

    ``scale``: public factor of each coordinate of a record, 1 everywhere by default. The domain is multiplied
        by it.
    ``start``: matrices near those that will be asked for, and upper bounds of their spectral norms.
    """

    layout: Layout
    settings: TrainingSettings
    noise_shape: str
    scale: tuple[float, ...] | None = None
    start: Sequence[tuple[Any, Any]] | None = None

    def __call__(self, weights: Weights) -> tuple[list[Any], list[Any]]:
        """Centres and stds, flat lists."""
        settings, norms = self.settings, self.norms(weights)
        bounds = self.bounds(weights, norms)  # line 5
        extra = None
        if settings.penalty == "data":
            extra = [settings.penalty_weight * c for c in penalty_radii(weights, norms)]  # line 6
        return allocate(bounds, self.noise_shape, extra_radii=extra)  # line 7, where bounds add

    def bounds(self, weights: Weights, norms: list[Any]) -> list[LayerBounds]:
        """Box and ball of each layer."""
        settings, scale = self.settings, None if self.scale is None else np.array(self.scale, np.float32)
        domain = Domain.from_layout(self.layout, scale)
        return gradient_bounds(
            weights, domain, norms=norms, activation=settings.activation, slope=settings.slope
        )

    def norms(self, weights: Weights) -> list[Any]:
        """Upper bounds of the spectral norms of the critic's matrices."""
        if self.settings.critic_constraint == "spectral":
            return [tf.constant(1.0) for _ in weights]
        if self.start is None:
            return [spectral_norm_bound(w) for w, _ in weights]
        return [norm_bound_nearby(w, v, b) for (w, _), (v, b) in zip(weights, self.start, strict=True)]


def starting_from(scales: NoiseScales | None, weights: Weights) -> NoiseScales | None:
    """The same scales, with the norms of these matrices found once for all critics near them."""
    if not isinstance(scales, ProvedScales):
        return scales
    norms = replace(scales, start=None).norms(weights)
    return replace(scales, start=[(w, norm) for (w, _), norm in zip(weights, norms, strict=True)])


# ------------------------------------------------------------------------------------------------
# Sources of the random numbers of a training program: lines 9, 14 and 18.
#
# On the host (default without an accelerator): NumPy draws normals in float64 from a generator seeded by the
# operating system. It draws a chunk of steps ahead in a background thread and feeds them to the program. In
# the program (on an accelerator): stateless Philox draws in float64 from 128-bit seeds that the same host
# generator supplies. Poisson samples always come from the host. Latent inputs and interpolation weights are
# not secret, they only follow the same route.

Chunk = dict[str, np.ndarray]

#: Points of the generator in a step, at most. Their number is public, and the mean of more is hardly exacter.
MOST_GENERATED = 2048
#: Records whose gradients are summed at once, so that memory does not grow with the batch.
BLOCK = 1 << 14


@dataclass(frozen=True)
class DrawShapes:
    """Sizes of what one training step draws.

    ``batch``: expected number of records in a sample, public.
    ``n_parameters``: entries of the critic's gradient.
    ``n_records``: rows that may be sampled (secret).
    ``capacity``: initial width of the index array.
    ``n_bank``: rows of the bank of public points, 0 where there is none.
    """

    steps: int
    batch: int
    n_parameters: int
    n_records: int
    sampling_prob: float
    capacity: int
    n_bank: int

    @property
    def generated(self) -> int:
        """Points that the generator makes for a step: as many as records, or 2,048 where these are more."""
        return min(self.batch, MOST_GENERATED)


@dataclass(frozen=True)
class HostDraws:
    """All random numbers drawn by NumPy, a chunk of steps at a time."""

    shapes: DrawShapes
    settings: TrainingSettings
    noisy: bool

    @property
    def numbers(self) -> int:
        """How many the host draws for one generator step, roughly."""
        s, latent = self.shapes, self.settings.latent
        return (
            self._of_batches
            + self.settings.critic_steps * s.n_parameters
            + ((self.settings.critic_steps + 1) * s.generated * latent)
        )

    @property
    def _of_batches(self) -> int:
        each = 1 + (self.settings.latent if self.settings.penalty == "data" else 0)
        return self.settings.critic_steps * self.shapes.batch * each

    def draw(self, rng: np.random.Generator) -> Chunk:
        """Arrays for one chunk, with generator step and critic step as leading axes."""
        s, n_critic = self.shapes, self.settings.critic_steps
        chunk = self._batches(rng)
        if self.noisy:  # line 14
            chunk["noise"] = standard_normals(rng, (s.steps, n_critic, s.n_parameters))
        # lines 9 and 18
        chunk["latent"] = self._latent(rng, (s.steps, n_critic + 1, s.generated, self.settings.latent))
        return chunk

    def _batches(self, rng: np.random.Generator) -> Chunk:
        s, n_critic = self.shapes, self.settings.critic_steps
        # lines 8 and 9
        batches = poisson_batches(rng, s.n_records, s.sampling_prob, s.steps * n_critic, s.capacity)
        chunk: Chunk = {"records": batches.reshape(s.steps, n_critic, -1)}
        if self.settings.penalty == "public":
            chunk["pair"] = rng.integers(0, s.n_bank, (s.steps, n_critic, s.generated), dtype=np.int32)
            chunk["mix"] = rng.random((s.steps, n_critic, s.generated), dtype=np.float32)
        if self.settings.penalty == "data":
            # Every record has partners of its own, so that removing one record moves no other's.
            shape = chunk["records"].shape
            chunk["mix"] = rng.random(shape, dtype=np.float32)
            chunk["pair_latent"] = self._latent(rng, (*shape, self.settings.latent))
        return chunk

    def _latent(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if self.settings.latent_law == "uniform":
            return rng.random(shape, dtype=np.float32)
        return rng.standard_normal(shape, dtype=np.float32)

    def noise(self, chunk: dict[str, Any], step: Any, critic_step: Any) -> Any:
        """Standard normals for one critic step, shape (n_parameters,)."""
        return chunk["noise"][step, critic_step]

    def latent(self, chunk: dict[str, Any], step: Any, slot: Any) -> Any:
        """Latent inputs, shape (generated, n_latent), with the generator step's in the last slot."""
        return chunk["latent"][step, slot]


@dataclass(frozen=True)
class GraphDraws(HostDraws):
    """Noise and latents drawn inside the program from 128-bit seeds, for accelerators."""

    @property
    def numbers(self) -> int:
        """How many the host draws for one generator step, roughly."""
        return self._of_batches

    def draw(self, rng: np.random.Generator) -> Chunk:
        """Index arrays and seeds for one chunk."""
        chunk = self._batches(rng)
        n_critic = self.settings.critic_steps
        high = np.iinfo(np.int64)
        for name, slots in (("noise_seed", n_critic), ("latent_seed", n_critic + 1)):
            size = (self.shapes.steps, slots, 2)
            chunk[name] = rng.integers(high.min, high.max, size, dtype=np.int64, endpoint=True)
        return chunk

    def noise(self, chunk: dict[str, Any], step: Any, critic_step: Any) -> Any:
        """Standard normals for one critic step, drawn in float64 and cast, shape (n_parameters,)."""
        import tensorflow as tf

        seed = chunk["noise_seed"][step, critic_step]
        wide = tf.random.stateless_normal([self.shapes.n_parameters], seed, dtype=tf.float64)
        return tf.cast(wide, tf.float32)

    def latent(self, chunk: dict[str, Any], step: Any, slot: Any) -> Any:
        """Latent inputs, shape (generated, n_latent)."""
        import tensorflow as tf

        seed = chunk["latent_seed"][step, slot]
        shape = [self.shapes.generated, self.settings.latent]
        if self.settings.latent_law == "uniform":
            return tf.random.stateless_uniform(shape, seed)
        return tf.random.stateless_normal(shape, seed)


# ------------------------------------------------------------------------------------------------
# Lines 4 to 19: one generator iteration of Algorithm 1, corrected, as tensor functions.

State = dict[str, Any]
#: What an iteration records, the mean over its critic steps: functions of released quantities alone.
METRICS = (
    "noise_std",
    "noise_share",
    "gradient_norm",
    "penalty",
    "score_generated",
    "wasserstein",
    "wasserstein_error",
)


class TensorOps:
    """The operations that `generator_pass` needs, in TensorFlow."""

    concat = staticmethod(lambda parts: tf.concat(parts, axis=1))
    relu = staticmethod(tf.nn.relu)
    sigmoid = staticmethod(tf.sigmoid)

    @staticmethod
    def softmax(logits: Any, sizes: Sequence[int]) -> Any:
        """Softmax of each of the neighbouring groups of columns.

        Sums of groups are products with a matrix of zeros and ones: a softmax a group would make dozens of
        kernels, each compiled for itself.
        """
        parts = tf.split(tf.stop_gradient(logits), sizes, axis=1)
        largest = tf.stack([tf.reduce_max(part, axis=1) for part in parts], axis=1)
        member = tf.constant(np.repeat(np.eye(len(sizes), dtype=np.float32), sizes, axis=0))
        powers = tf.exp(logits - tf.matmul(largest, member, transpose_b=True))
        return powers / tf.matmul(tf.matmul(powers, member), member, transpose_b=True)


def adam(
    values: list[Any],
    gradient: list[Any],
    moments: State,
    rate: Any,
    betas: tuple[float, float],
    epsilon: float = 1e-8,
) -> tuple[list[Any], State]:
    """One Adam update (Kingma and Ba 2015, algorithm 1) of a flat list of arrays."""
    count = moments["count"] + 1.0
    b1, b2 = betas
    first = [b1 * m + (1 - b1) * g for m, g in zip(moments["first"], gradient, strict=True)]
    second = [b2 * v + (1 - b2) * g * g for v, g in zip(moments["second"], gradient, strict=True)]
    scale_1, scale_2 = 1.0 - tf.pow(b1, count), 1.0 - tf.pow(b2, count)
    values = [
        x - rate * (m / scale_1) / (tf.sqrt(v / scale_2) + epsilon)
        for x, m, v in zip(values, first, second, strict=True)
    ]
    return values, {"count": count, "first": first, "second": second}


def adam_start(values: list[Any]) -> State:
    """Averages of zero for the first update of `adam`, NumPy arrays."""
    zeros = [np.zeros_like(v) for v in values]
    return {"count": np.float32(0.0), "first": zeros, "second": [z.copy() for z in zeros]}


def _slopes(weights: Weights, deltas: Any) -> Any:
    """``||grad_x D||`` (3.31) from the deltas of the first layer, shape (n,)."""
    slope = tf.matmul(deltas, weights[0][0], transpose_b=True)
    return tf.sqrt(tf.reduce_sum(slope * slope, axis=1) + 1e-12)


def _rows(array: Any, start: Any) -> Any:
    """A block of rows, the last one again beyond the end. All rows, if they are one block."""
    n = array.shape[0]
    return array if n <= BLOCK else tf.gather(array, tf.minimum(start + tf.range(BLOCK), n - 1))


@dataclass(frozen=True)
class Step:
    """One generator iteration: `TrainingSettings.critic_steps` critic updates, then one of the generator.

    The only quantity that reads private records is ``sum_i grad_W D(x_i)`` over the Poisson sample (plus its
    penalty term when ``penalty='data'``). It is released as

        ``R = sum_i (g_i - c) + B c + z * std * N(0, 1)``

    with the centre ``c`` and the stds from `noise_scales`, both functions of released weights, and ``B`` the
    public expected batch size. Adam, the projection and the generator step are post-processing.

    ``noise_scales``: centre and unit std of the released sum for given critic weights. None adds no noise.
    ``expected_batch``: public B = q * n.
    ``scale``: public factor of each coordinate before the critic sees it, as in ``noise_scales``.
    """

    layout: Layout
    settings: TrainingSettings
    draws: HostDraws
    noise_scales: NoiseScales | None
    expected_batch: float
    scale: tuple[float, ...] | None = None

    @property
    def activation(self) -> Activation:
        """The critic's activation."""
        return Activation(self.settings.activation, self.settings.slope)

    def __call__(
        self, state: State, data: Any, bank: Any, chunk: dict[str, Any], step: Any
    ) -> tuple[State, Any]:
        """State after one iteration and its `METRICS` (released quantities only), shape (7,)."""

        n_critic = self.settings.critic_steps
        started = self.starting_from(state)

        # A loop rather than n_c copies: the program compiles in a fraction of the time and runs as fast.
        def critic_loop(j: Any, state: State, total: Any) -> Any:
            state, row = started._critic_update(state, data, bank, chunk, step, j)
            return j + 1, state, total + row

        start = (tf.constant(0), state, tf.zeros([len(METRICS)]))
        # line 4
        _, state, total = tf.while_loop(lambda j, *_: j < n_critic, critic_loop, start)
        means = total / n_critic
        error = tf.sqrt(means[-1:] / n_critic)  # of a mean of independent estimates
        return self.updated_generator(state, chunk, step), tf.concat([means[:-1], error], axis=0)

    @property
    def recorded(self) -> tuple[str, ...]:
        """Names of the `METRICS` that these settings have.

        A clipped gradient, and one with a penalty at records in it, is not that of the mean score: there is
        no estimate of the Wasserstein distance.
        """
        settings = self.settings
        without = {"penalty"} if settings.penalty == "none" else set()
        if settings.penalty == "data" or settings.clip_norm is not None:
            without |= {"wasserstein", "wasserstein_error"}
        return tuple(name for name in METRICS if name not in without)

    def starting_from(self, state: State) -> Self:
        """This step with noise scales whose norms of matrices are found once, at the state's critic."""
        weights = unflatten(state["critic"], output_bias=False)
        return replace(self, noise_scales=starting_from(self.noise_scales, weights))

    def generate(self, weights: Weights, chunk: dict[str, Any], step: Any, slot: Any) -> Any:
        """Generated points, centred, shape (generated, dim)."""
        latent = self.draws.latent(chunk, step, slot)
        return self.centred(generator_pass(weights, latent, self.layout, TensorOps))

    def centred(self, points: Any) -> Any:
        """Points of the unit cube as the critic sees them: centred, and multiplied by the public factors."""
        return centred(points, self.layout, self.scale)

    def noisy_gradient(
        self, state: State, data: Any, bank: Any, chunk: dict[str, Any], step: Any, j: Any
    ) -> tuple[list[Any], Any, list[Any]]:
        """Noisy gradient of the critic's step ``j`` (lines 5 to 15): ``-R / B`` with the R of `Step`.

        The gradient at generated and at public points, post-processing, is added to it.

        Returns
        -------
        gradient : list of float32 tensors
            Flat, shaped like the critic's arrays.
        metrics : tensor of shape (7,)
            `METRICS`, with the square of the last one.
        released : list of float32 tensors
            ``R / B``, the noisy mean gradient of the records, for the replay. Empty where there is none.
        """
        settings, batch = self.settings, self.expected_batch
        weights = unflatten(state["critic"], output_bias=False)
        every = chunk["records"][step, j]  # line 9
        index, sampled, real = self._block(data, every, 0)
        fake = self.generate(unflatten(state["generator"], output_bias=True), chunk, step, j)  # line 10

        # line 12 without the penalty, summed over the batch as in line 15
        scores, inputs, deltas = critic_pass(weights, tf.concat([real, fake], axis=0), self.activation)
        n_real, n_fake = index.shape[0], fake.shape[0]
        coefficients = self.coefficients(weights, inputs, deltas, sampled)
        gradient = self.sum_of_gradients(weights, inputs, deltas, coefficients, index)

        noise_std = error = tf.zeros([])
        if settings.penalty == "data":  # the penalty of line 12
            penalty = self._data_penalty(state, weights, real, sampled, chunk, step, j)
            gradient = [g + tf.cast(p / batch, g.dtype) for g, p in zip(gradient, penalty, strict=True)]
        gradient = self._with_further_blocks(gradient, state, weights, data, chunk, step, j)
        count = tf.reduce_sum(tf.cast(every >= 0, tf.float64))
        if self.noise_scales is not None:
            noise = self.draws.noise(chunk, step, j)  # line 14
            centers, stds = self.noise_scales(weights)  # lines 5 to 7
            z = chunk["noise_multiplier"]
            pieces = tf.split(noise, [int(np.prod(g.shape)) for g in gradient])
            # Line 15: -R / B; the sign of the noise does not matter.
            added = [z * s * tf.reshape(e, g.shape) for g, s, e in zip(gradient, stds, pieces, strict=True)]
            gradient = [
                g + ((count - batch) * tf.cast(c, g.dtype) + tf.cast(e, g.dtype)) / batch
                for g, c, e in zip(gradient, centers, added, strict=True)
            ]
            # A scalar std stands for a whole array.
            variance = sum(
                tf.reduce_sum(s * s) * float(np.prod(g.shape) / np.prod(s.shape))
                for s, g in zip(stds, gradient, strict=True)
            )
            noise_std = z * tf.sqrt(variance) / batch
            error = z * tf.norm(stds[-1] * weights[-1][0]) / batch
        gradient = [tf.cast(g, tf.float32) for g in gradient]
        released = self._without_generated(gradient, weights, inputs, deltas, coefficients, n_real)
        square = sum(tf.reduce_sum(g * g) for g in gradient)
        # The last layer has no bias, so its weights times their gradient are the critic's loss.
        estimate = -tf.reduce_sum(weights[-1][0] * gradient[-1])
        loss = tf.zeros([])
        if settings.penalty == "public":  # lines 11 and 12 at points made without records
            mix = chunk["mix"][step, j][:, None]
            public = self.centred(tf.gather(bank, chunk["pair"][step, j]))
            points = mix * fake + (1.0 - mix) * public
            ones = tf.fill([n_fake], np.float32(1.0 / n_fake))
            loss, penalty = self._penalty_gradient(weights, points, ones)
            gradient = [g + p for g, p in zip(gradient, penalty, strict=True)]
        if settings.penalty == "data":  # shown at generated points, since its value at records is private
            loss = settings.penalty_weight * tf.reduce_mean(
                tf.square(_slopes(weights, deltas[0][n_real:]) - 1.0)
            )
        share = noise_std**2 / tf.maximum(square, 1e-30)
        score = tf.reduce_mean(scores[n_real:])
        metrics = tf.stack([noise_std, share, tf.sqrt(square), loss, score, estimate, error**2])
        return gradient, metrics, released

    def _without_generated(
        self,
        gradient: list[Any],
        weights: Weights,
        inputs: list[Any],
        deltas: list[Any],
        coefficients: Any,
        n_real: int,
    ) -> list[Any]:
        """``R / B``: the generated points' part minus the released gradient. Empty without a replay."""
        if not self.settings.replays:
            return []
        made = weighted_gradient(
            [x[n_real:] for x in inputs],
            [delta[n_real:] for delta in deltas],
            tf.cast(coefficients[n_real:], tf.float32),
            weights,
        )
        return [m - g for m, g in zip(made, gradient, strict=True)]

    def _block(self, data: Any, every: Any, start: Any) -> tuple[Any, Any, Any]:
        """Row numbers (-1 beyond the end), whether each is a record, and points of a block of the sample."""
        index = _rows(every, start)
        if every.shape[0] > BLOCK:
            index = tf.where(start + tf.range(BLOCK) < every.shape[0], index, -1)
        return index, tf.cast(index >= 0, tf.float32), tf.gather(data, tf.maximum(index, 0))

    def _with_further_blocks(
        self,
        gradient: list[Any],
        state: State,
        weights: Weights,
        data: Any,
        chunk: dict[str, Any],
        step: Any,
        j: Any,
    ) -> list[Any]:
        """The sum over the first `BLOCK` records of a sample, with those of all others added.

        A block's sum is added to that of the blocks before it, in float64. So the result depends on `BLOCK`
        in its last bits, and is the same at each repetition on one computer.
        """
        every = chunk["records"][step, j]

        def add(start: Any, *total: Any) -> Any:
            index, sampled, real = self._block(data, every, start)
            _, inputs, deltas = critic_pass(weights, real, self.activation)
            coefficients = self.coefficients(weights, inputs, deltas, sampled)
            found = self.sum_of_gradients(weights, inputs, deltas, coefficients, index)
            if self.settings.penalty == "data":
                penalty = self._data_penalty(state, weights, real, sampled, chunk, step, j, start)
                found = [g + p / self.expected_batch for g, p in zip(found, penalty, strict=True)]
            return (start + BLOCK, *(t + g for t, g in zip(total, found, strict=True)))

        if every.shape[0] <= BLOCK:
            return gradient
        return tf.while_loop(lambda start, *_: start < every.shape[0], add, (tf.constant(BLOCK), *gradient))[
            1:
        ]

    def coefficients(self, weights: Weights, inputs: list[Any], deltas: list[Any], sampled: Any) -> Any:
        """Coefficient of each row's gradient: -1 / B for a sampled record, 1 / n for a generated point.

        Clipping shortens both kinds alike. The critic of equal distributions then stays where it is.
        """
        n_fake = inputs[0].shape[0] - sampled.shape[0]
        generated = tf.fill([n_fake], np.float64(1.0 / max(n_fake, 1)))
        plain = tf.concat([-tf.cast(sampled, tf.float64) / self.expected_batch, generated], axis=0)
        if self.settings.clip_norm is None:
            return plain
        norms = squared_gradient_norms(inputs, deltas, weights)
        return plain * tf.cast(tf.minimum(1.0, self.settings.clip_norm / tf.sqrt(norms + 1e-12)), tf.float64)

    def sum_of_gradients(
        self, weights: Weights, inputs: list[Any], deltas: list[Any], coefficients: Any, index: Any
    ) -> list[Any]:
        """Weighted sum over sampled records, whose rows ``index`` names, and then generated ones, in float64.

        A float32 sum rounds in proportion to the whole batch. Where a component hardly varies between
        records, that would exceed its sensitivity. `dpsynth.audits.critic_training` puts a canary into row 0.
        """
        inputs, deltas = ([tf.cast(a, tf.float64) for a in arrays] for arrays in (inputs, deltas))
        return weighted_gradient(inputs, deltas, tf.cast(coefficients, tf.float64), weights)

    def _critic_update(
        self, state: State, data: Any, bank: Any, chunk: dict[str, Any], step: Any, j: Any
    ) -> tuple[State, Any]:
        gradient, metrics, released = self.noisy_gradient(state, data, bank, chunk, step, j)
        if released:
            state = {**state, "replay": self.kept(state, released)}
        return self.updated_critic(state, gradient), metrics

    @staticmethod
    def kept(state: State, released: list[Any]) -> State:
        """The last critics and their noisy mean gradients, with this step's in the place of the oldest."""
        replay = state["replay"]
        place = tf.cast(state["critic_adam"]["count"], tf.int32) % replay["critics"].shape[0]
        rows = {"critics": state["critic"], "means": released}
        kept = {
            name: tf.tensor_scatter_nd_update(
                replay[name], [[place]], tf.concat([tf.reshape(a, [-1]) for a in arrays], axis=0)[None]
            )
            for name, arrays in rows.items()
        }
        return {**replay, **kept}

    def updated_critic(self, state: State, gradient: list[Any]) -> State:
        """State after Adam (line 16) and the projection, which read released quantities only."""
        critic, moments = adam(
            state["critic"],
            gradient,
            state["critic_adam"],
            self.settings.critic_learning_rate,
            (self.settings.beta_1, self.settings.beta_2),
        )
        return {**state, "critic": self.constrain(critic), "critic_adam": moments}

    def constrain(self, critic: list[Any]) -> list[Any]:
        """Critic arrays with every matrix projected to spectral norm at most 1 where that is asked for."""
        if self.settings.critic_constraint == "none":
            return critic
        weights = unflatten(critic, output_bias=False)
        return flatten([(project(w, bjorck_steps=self.settings.bjorck_steps), b) for w, b in weights])

    def _penalty_gradient(self, weights: Weights, points: Any, coefficients: Any) -> tuple[Any, list[Any]]:
        """``lambda * sum_i coefficients_i (||grad_x D(x_i)|| - 1)^2`` (line 12) and its gradient, flat.

        In the type of the coefficients.
        """
        points = tf.cast(points, coefficients.dtype)
        flat = [tf.cast(array, coefficients.dtype) for array in flatten(weights)]
        with tf.GradientTape() as tape:
            tape.watch(flat)
            watched = unflatten(flat, output_bias=False)
            _, _, deltas = critic_pass(watched, points, self.activation)
            norm = _slopes(watched, deltas[0])
            loss = self.settings.penalty_weight * tf.reduce_sum(coefficients * tf.square(norm - 1.0))
        return loss, tape.gradient(loss, flat, unconnected_gradients=tf.UnconnectedGradients.ZERO)

    def _data_penalty(
        self,
        state: State,
        weights: Weights,
        real: Any,
        sampled: Any,
        chunk: dict[str, Any],
        step: Any,
        j: Any,
        start: Any = 0,
    ) -> list[Any]:
        """Gradient of the penalty summed over a block of records, each with a partner of its own."""
        generator = unflatten(state["generator"], output_bias=True)
        latent = _rows(chunk["pair_latent"][step, j], start)
        partner = generator_pass(generator, latent, self.layout, TensorOps)  # line 10
        mix = _rows(chunk["mix"][step, j], start)[:, None]
        points = mix * real + (1.0 - mix) * self.centred(partner)  # line 11
        return self._penalty_gradient(weights, points, tf.cast(sampled, tf.float64))[1]

    def updated_generator(self, state: State, chunk: dict[str, Any], step: Any) -> State:
        """State after a step of the generator against the released critic (lines 18 and 19)."""
        settings = self.settings
        critic = unflatten(state["critic"], output_bias=False)
        flat = state["generator"]
        slot = settings.critic_steps
        with tf.GradientTape() as tape:
            tape.watch(flat)
            points = self.generate(unflatten(flat, output_bias=True), chunk, step, slot)  # line 18
            loss = -tf.reduce_mean(critic_pass(critic, points, self.activation)[0])
        gradient = tape.gradient(loss, flat)  # line 19
        betas = (settings.beta_1, settings.beta_2)
        flat, moments = adam(flat, gradient, state["generator_adam"], settings.generator_learning_rate, betas)
        keep = settings.average
        average = [keep * a + (1.0 - keep) * g for a, g in zip(state["average"], flat, strict=True)]
        return {**state, "generator": flat, "generator_adam": moments, "average": average}
