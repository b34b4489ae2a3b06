"""A generator network that solves our released statistics (as GEM, Liu, Vietri and Wu 2021, does marginals).

The statistics are those of the default fit with the same seed: single-column counts, the base model's tables,
pairwise statistics, nearest-neighbour histogram and Fourier features. A network maps noise to the bins of all
columns. It is trained until the statistics of its records are the released ones, in units of their noise:
post-processing, which costs no privacy. Bins are drawn in the forward pass and relaxed in the backward one
(straight-through Gumbel-softmax, Jang et al. 2017).
"""

import dataclasses

import fit_ours
import harness
import numpy as np

import dpsynth
from dpsynth.marginals.features import OUTCOME_WEIGHT
from dpsynth.marginals.network import BayesianNetwork
from dpsynth.privacy import Ledger
from dpsynth.synthesis.check_inputs import records_of
from dpsynth.synthesis.fit import plan_fit
from dpsynth.synthesis.marginals import Networked
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.histogram import Histogram
from dpsynth.synthesis.parts.pairwise import Pairwise
from dpsynth.synthesis.parts.part import Reading

#: records of a step and of a draw, steps, learning rate, widths of the hidden layers and of the input
BATCH, BLOCK, STEPS, RATE, WIDTHS, LATENT = 2_000, 10_000, 1_500, 1e-3, (256, 256), 64
#: of the relaxation, and of distances to the centres of groups
TEMPERATURE, NEARNESS = 0.5, 2.0


class Solved(BayesianNetwork):
    """A base model whose bins a network draws."""

    def sample(self, n, rng):
        import tensorflow as tf

        tf.random.set_seed(int(rng.integers(2**31 - 1)))
        parts = (relaxed(self.network, self.binnings, min(BLOCK, n - at)) for at in range(0, n, BLOCK))
        return np.vstack([np.stack([hot.numpy().argmax(1) for hot in part], axis=1) for part in parts])


def relaxed(network, binnings, n):
    """One-hot bins of n records, column by column, with gradients of their probabilities."""
    import tensorflow as tf

    logits = network(tf.random.normal((n, LATENT)))
    shaken = logits - tf.math.log(-tf.math.log(tf.random.uniform(tf.shape(logits), 1e-9, 1.0)))
    return [straight(part / TEMPERATURE) for part in tf.split(shaken, [b.size for b in binnings], axis=1)]


def straight(scores):
    """The largest score as one-hot, with the gradient of the softmax."""
    import tensorflow as tf

    soft = tf.nn.softmax(scores)
    return tf.stop_gradient(tf.one_hot(tf.argmax(scores, 1), scores.shape[1]) - soft) + soft


def trained(base, loss, seed):
    """A network of the least loss."""
    import tensorflow as tf

    tf.keras.utils.set_random_seed(seed)
    layers = [tf.keras.layers.Dense(width, activation="leaky_relu") for width in WIDTHS]
    last = tf.keras.layers.Dense(sum(binning.size for binning in base.binnings))
    network = tf.keras.Sequential([tf.keras.Input((LATENT,)), *layers, last])
    optimizer = tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.CosineDecay(RATE, STEPS))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            value = loss(relaxed(network, base.binnings, BATCH))
        variables = network.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))

    for _ in range(STEPS):
        step()
    return network


def misfit(base, refinements, marginals_std, n):
    """The loss: squared errors of the released numbers over their variance, of noise and of sampling."""
    import tensorflow as tf

    pairs, histogram = refinements

    def error(found, released, std):
        released = np.asarray(released, np.float32)
        variance = std**2 + np.clip(np.abs(released), 1 / n, 1) / n
        return tf.reduce_sum((found - released) ** 2 / variance.astype(np.float32))

    def read(hot, tables):
        return tf.concat([h @ table for h, table in zip(hot, tables, strict=True)], 1)

    def products(hot, of):
        values, halves = read(hot, of.tables), read(hot, of.halves)
        squares = [h @ s.T for h, s in zip(hot, of.squares, strict=True)]
        outcome = 0.0 if of.outcome is None else squares.pop(of.outcome)[:, 0]
        total = tf.add_n(squares)
        both = (total**2 - tf.add_n([s**2 for s in squares])) / 2
        square = both[:, 0] + outcome * (OUTCOME_WEIGHT**2 * (both[:, 0] + both[:, 1]) + total[:, 0])
        scale = tf.minimum(1.0, of.cap / tf.sqrt(tf.maximum(square, 1e-6)))[:, None]
        blocks = [(values, values)]
        if of.outcome is not None:
            y = OUTCOME_WEIGHT * values[:, of.ends[of.outcome] : of.ends[of.outcome] + 1]
            blocks += [(values, y * values), (halves, y * halves)]
        sums = [tf.matmul(one * scale, other, transpose_a=True) for one, other in blocks]
        return tf.gather_nd(tf.concat(sums, 1), np.stack(of.places, axis=1)) / len(values)

    def loss(hot):
        value = 0.0
        for h, binning in zip(hot, base.binnings, strict=True):
            value += error(tf.reduce_mean(h, 0), binning.probabilities, marginals_std)
        for parents, child, table in base.factors:
            axes = "abc"[: len(parents) + 1]
            rule = ",".join(f"z{axis}" for axis in axes) + f"->{axes}"
            counts = tf.einsum(rule, *(hot[j] for j in (*parents, child)))
            value += error(counts / len(hot[0]), table / table.sum(), base.noise_std / n)
        if pairs is not None:
            released = pairs.mean[pairs.features.places]
            value += error(products(hot, pairs.features), released, pairs.noise_std)
        if histogram is not None:
            std, numbers = histogram.noise_std / n, read(hot, histogram.groups.tables)
            centres = histogram.groups.centres
            near = straight(NEARNESS * (numbers @ centres.T - (centres**2).sum(1) / 2))
            value += error(tf.reduce_mean(near, 0), histogram.counts / n, std)
            angles = numbers @ histogram.features.frequencies
            waves = tf.concat([tf.cos(angles), tf.sin(angles)], 1) / np.sqrt(histogram.features.size / 2)
            value += error(tf.reduce_mean(waves, 0), histogram.fourier / n, std)
        return value

    return loss


def statistics(plan, records, rng, ledger):
    """The model before refinement, its pairwise statistics and its histogram."""
    reading = Reading(ledger, records, rng, plan.n)
    for part in plan.parts.own:
        reading.read(part)
    return plan.options.build(plan.schema, reading, refine=False), reading.of(Pairwise), reading.of(Histogram)


def fit(train, task):
    schema, frame = fit_ours.read(train, task)
    options = dpsynth.DPMarginals(task["epsilon"], task["delta"]).validate()
    ledger, rng = Ledger(), np.random.Generator(np.random.PCG64DXSM([task["seed"], 0]))
    records, _ = records_of(frame, schema, options, accept_n_public=False)
    plan = plan_fit(records, schema, options, rng, ledger)
    model, *refinements = statistics(plan, records, rng, ledger)
    fit_ours.check(ledger, task)
    base = model.base_model
    loss = misfit(base, refinements, plan.parts.of(Columns).release.noise_std / plan.n, plan.n)
    solved = Solved(**{field.name: getattr(base, field.name) for field in dataclasses.fields(base)})
    object.__setattr__(solved, "network", trained(base, loss, task["seed"]))
    made = dataclasses.replace(model, sampler=Networked(solved), schema=plan.schema).sample(task["rows"], rng)
    return fit_ours.coded(made, schema, task)


if __name__ == "__main__":
    harness.carry_out(fit, ["dpsynth", "tensorflow", "numpy"])
