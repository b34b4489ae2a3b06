"""One training step against a naive NumPy transcription of the corrected Algorithm 1."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy import stats

from dpsynth.privacy.release import Plan
from dpsynth.table.encoder import Layout
from dpsynth.wgan import algorithm
from dpsynth.wgan.algorithm import METRICS, critic_pass, noise_scales, squared_gradient_norms, starting_from
from dpsynth.wgan.networks import ArrayOps, generator_pass, unflatten
from dpsynth.wgan.settings import TrainingSettings
from dpsynth.wgan.training import TrainingRun, generator_of, initial_state

LAYOUT = Layout(2, ((2, 5),))
CASES = {
    "spectral": (dict(activation="leaky_relu"), "optimal"),
    "boxes": (dict(activation="leaky_relu", critic_constraint="none"), "proportional"),
    "maxmin": (dict(), "layerwise"),
    "penalty at records": (dict(critic_constraint="none", penalty="data", penalty_weight=0.5), "spherical"),
    "penalty at records, leaky": (
        dict(activation="leaky_relu", critic_constraint="none", penalty="data", penalty_weight=0.5),
        "spherical",
    ),
    "penalty at records, optimal": (dict(penalty="data", penalty_weight=0.5), "optimal"),
    "penalty at public points": (dict(critic_constraint="none", penalty="public"), "optimal"),
    "clipping": (dict(clip_norm=0.3, critic_constraint="none"), "spherical"),
}


def records(n, seed=0):
    rng = np.random.default_rng(seed)
    points = np.zeros((n, LAYOUT.dim), np.float32)
    points[:, :2] = rng.random((n, 2))
    points[np.arange(n), 2 + rng.integers(0, 3, n)] = 1
    return points


def trainer_of(case, *, steps=2, n=60, multiplier=1.0, points=None, **more):
    options, shape = CASES[case]
    small = dict(critic_hidden=(8, 6), generator_hidden=(5,), latent=3, critic_steps=1, penalty="none")
    settings = TrainingSettings(**small | options | more)
    plan = Plan(
        sampling_prob=0.5, expected_batch=n / 2, steps=steps, noise_multiplier=multiplier, noise_shape=shape
    )
    points = records(n) if points is None else points
    bank = records(30, seed=5) if settings.penalty == "public" else None
    return TrainingRun(points, LAYOUT, settings, plan, bank=bank), settings, plan


def take_step(trainer, arrays, chunk):
    """State and metrics after one generator iteration."""
    tensors = {name: tf.constant(a) for name, a in chunk.items()}
    tensors["noise_multiplier"] = tf.constant(trainer.noise_multiplier, tf.float32)
    arrays = tf.nest.map_structure(tf.constant, arrays)
    return trainer.step(arrays, trainer._data, trainer._bank, tensors, tf.constant(0))


def one_critic_gradient(trainer, arrays, chunk):
    """The released gradient, read off Adam's first moment after one step from zero moments."""
    after, _ = take_step(trainer, arrays, chunk)
    first = after["critic_adam"]["first"]
    return [m.numpy() / (1 - trainer.settings.beta_1) for m in first], after


def started(trainer, rng):
    """The state in which a run begins."""
    arrays = initial_state(LAYOUT, trainer.settings, rng).arrays
    return {**arrays, "critic": trainer.step.constrain([tf.constant(a) for a in arrays["critic"]])}


def updated(trainer, rng):
    """A state with an update of the critic behind it, and Adam's moments as they are at the start."""
    first = started(trainer, rng)
    after, _ = take_step(trainer, first, trainer.step.draws.draw(rng))
    return {**after, "critic_adam": first["critic_adam"]}


@pytest.mark.parametrize("case", CASES)
def test_one_record_moves_the_release_by_at_most_the_sensitivity(case):
    """Catches a sensitivity that is too small anywhere from record to optimiser: the privacy claim itself.

    The weights are those after an update so large that only a projection keeps them where they must be.
    """
    trainer, settings, plan = trainer_of(case, critic_learning_rate=0.5)
    rng = np.random.default_rng(3)
    arrays = updated(trainer, rng)
    moved = moves(trainer, settings, plan, arrays, trainer.step.draws.draw(rng))
    assert 1e-3 < moved.max() <= 1.0 + 5e-4


def moves(trainer, settings, plan, arrays, chunk):
    """How far each of the first six sampled records moves the release, in units of its stds."""
    weights = unflatten([np.asarray(a) for a in arrays["critic"]], output_bias=False)
    _, stds = noise_scales(LAYOUT, settings, plan)(weights)
    with_all, _ = one_critic_gradient(trainer, arrays, chunk)
    lengths = []
    for place in np.flatnonzero(chunk["records"][0, 0] >= 0)[:6]:
        without = {name: a.copy() for name, a in chunk.items()}
        without["records"][0, 0, place] = -1
        less, _ = one_critic_gradient(trainer, arrays, without)
        moved = [trainer.step.expected_batch * (a - b) for a, b in zip(with_all, less, strict=True)]
        squares = [float(((m / s.numpy()) ** 2).sum()) for m, s in zip(moved, stds, strict=True)]
        lengths.append(np.sqrt(sum(squares)))
    return np.array(lengths)


@pytest.mark.parametrize("clip", [0.4, 1.5])
def test_a_clipped_record_has_the_length_it_is_clipped_to(clip):
    """Catches clipping by the square of a length, which cuts too little between the clip norm and 1."""
    lengths = []
    for norm in (clip, 1e3):
        trainer, settings, plan = trainer_of("clipping", clip_norm=norm)
        rng = np.random.default_rng(3)
        arrays = started(trainer, rng)
        arrays["critic"] = [0.6 * a for a in arrays["critic"]]
        lengths.append(norm * moves(trainer, settings, plan, arrays, trainer.step.draws.draw(rng)))
    assert lengths[1].min() < 1 < lengths[1].max()
    np.testing.assert_allclose(lengths[0], np.minimum(lengths[1], clip), rtol=5e-3)


def test_clipping_leaves_the_critic_of_equal_distributions_where_it_is():
    """Catches clipping of records alone, which moves the critic where records equal generated points."""
    trainer, _, _ = trainer_of("clipping", clip_norm=0.1)
    weights = unflatten(started(trainer, np.random.default_rng(3))["critic"], output_bias=False)
    rows = tf.constant(np.tile(records(30) - LAYOUT.center.astype(np.float32), (2, 1)))
    _, inputs, deltas = critic_pass(weights, rows, trainer.step.activation)
    assert np.sqrt(squared_gradient_norms(inputs, deltas, weights)).min() > 0.1
    coefficients = trainer.step.coefficients(weights, inputs, deltas, tf.ones([30]))
    total = trainer.step.sum_of_gradients(weights, inputs, deltas, coefficients, None)
    assert max(float(tf.reduce_max(tf.abs(g))) for g in total) < 1e-6


@pytest.mark.parametrize("shape", ["proportional", "layerwise"])
def test_the_rounding_of_a_large_batch_stays_within_the_noise(shape):
    """Catches a float32 sum, which one of 2,000 records moves by several times what is proved.

    With large biases every unit is on. A component then varies between records by its rounding alone.
    """
    n, layout = 2000, Layout(6)
    small = dict(critic_hidden=(32, 32), generator_hidden=(5,), latent=3, penalty="none")
    settings = TrainingSettings(activation="leaky_relu", **small)
    plan = Plan(sampling_prob=1.0, expected_batch=n, steps=5, noise_multiplier=1.0, noise_shape=shape)
    points = np.random.default_rng(0).random((n, 6)).astype(np.float32)
    trainer = TrainingRun(points, layout, settings, plan, bank=None)
    flat = trainer.step.constrain(initial_state(layout, settings, np.random.default_rng(1)).arrays["critic"])
    weights = [(w, None if b is None else b + 3.0) for w, b in unflatten(flat, output_bias=False)]
    centers, stds = trainer.step.noise_scales(weights)
    rows = tf.constant(trainer._centred(np.vstack([points, points[:1]])))  # the last one is generated
    _, inputs, deltas = critic_pass(weights, rows, trainer.step.activation)

    def query(sampled):
        coefficients = trainer.step.coefficients(weights, inputs, deltas, tf.constant(sampled, tf.float32))
        sums = trainer.step.sum_of_gradients(weights, inputs, deltas, coefficients, None)
        of_centers = [sampled.sum() * c.numpy().astype(float) for c in centers]
        return [n * g.numpy() + c for g, c in zip(sums, of_centers, strict=True)]

    everyone = query(np.ones(n))
    for record in range(0, n, 400):
        others = query((np.arange(n) != record).astype(float))
        moved = [(a - b) / s.numpy() for a, b, s in zip(everyone, others, stds, strict=True)]
        assert np.sqrt(sum((part**2).sum() for part in moved)) <= 1.0


@pytest.mark.parametrize("case", ["spectral", "maxmin"])
def test_no_update_leaves_the_constraint(case):
    """Catches a critic that is projected before training only, against singular values by LAPACK."""
    trainer, _, _ = trainer_of(case, critic_steps=2, critic_learning_rate=0.5)
    rng = np.random.default_rng(8)
    arrays, _ = take_step(trainer, started(trainer, rng), trainer.step.draws.draw(rng))
    for matrix in arrays["critic"][0::2]:
        assert np.linalg.svd(matrix.numpy().astype(float), compute_uv=False)[0] <= 1.0


@pytest.mark.slow
def test_every_cell_has_noise_of_the_stated_scale():
    """Catches noise of 2/3 or 3/2 of the stated size, a cell without noise, and cells that share a draw.

    Each cell by itself: among all cells pooled a single one without noise would not be seen.
    """
    trainer, settings, plan = trainer_of("boxes", multiplier=2.0)
    rng = np.random.default_rng(4)
    arrays = started(trainer, rng)
    weights = unflatten([np.asarray(a) for a in arrays["critic"]], output_bias=False)
    _, stds = noise_scales(LAYOUT, settings, plan)(weights)
    base, draws = trainer.step.draws.draw(rng), 30
    reference, _ = one_critic_gradient(trainer, arrays, {**base, "noise": np.zeros_like(base["noise"])})
    seen = []
    for _ in range(draws):
        chunk = {**base, "noise": trainer.step.draws.draw(rng)["noise"]}
        gradient, _ = one_critic_gradient(trainer, arrays, chunk)
        scaled = [
            (g - r) * trainer.step.expected_batch / (2.0 * s.numpy())
            for g, r, s in zip(gradient, reference, stds, strict=True)
        ]
        seen.append(np.concatenate([np.ravel(cells) for cells in scaled]))
    normals = np.stack(seen)
    assert stats.kstest(normals.ravel(), "norm").pvalue > 1e-3
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(wrong * normals.ravel(), "norm").pvalue < 1e-6
    squares = (normals**2).sum(axis=0)
    assert min(stats.chi2(draws).cdf(squares).min(), stats.chi2(draws).sf(squares).min()) > 1e-6
    assert np.abs(np.corrcoef(normals.T) - np.eye(len(squares))).max() < 0.9


def test_a_critic_that_has_moved_has_no_less_noise_than_it_needs():
    """Catches norms that are found once an iteration and not widened by how far the critic has moved."""
    trainer, settings, plan = trainer_of("penalty at records")
    rng = np.random.default_rng(5)
    arrays = [np.asarray(a) for a in started(trainer, rng)["critic"]]
    start = unflatten(arrays, output_bias=False)
    moved = unflatten([a + 0.3 * rng.random(a.shape, np.float32) for a in arrays], output_bias=False)
    scales = noise_scales(LAYOUT, settings, plan)
    near = starting_from(scales, start)
    (here, exact), (there, least) = ([float(f(w)[1][0]) for f in (near, scales)] for w in (start, moved))
    assert here == pytest.approx(exact, rel=1e-5)
    assert there >= least > 1.05 * here


def naive_steps(trainer, arrays, chunk, settings, plan, center):
    """The corrected Algorithm 1, lines 5 to 19, record by record in float64 (LeakyReLU, no penalty)."""
    critic = [np.array(a, float) for a in arrays["critic"]]
    generator = [np.array(a, float) for a in arrays["generator"]]
    batch = trainer.step.expected_batch

    def generate(z):
        h = np.maximum(z @ generator[0] + generator[1], 0)
        out = h @ generator[2] + generator[3]
        e = np.exp(out[2:] - out[2:].max())
        return np.concatenate([1 / (1 + np.exp(-out[:2])), e / e.sum()]) - center

    def gradient(x):
        w1, b1, w2, b2, w3 = critic
        s1 = x @ w1 + b1
        x1 = np.where(s1 > 0, s1, 0.2 * s1)
        s2 = x1 @ w2 + b2
        x2 = np.where(s2 > 0, s2, 0.2 * s2)
        d2 = w3[:, 0] * np.where(s2 > 0, 1, 0.2)
        d1 = (w2 @ d2) * np.where(s1 > 0, 1, 0.2)
        return [np.outer(x, d1), d1, np.outer(x1, d2), d2, x2[:, None]]

    first = [np.zeros_like(a) for a in critic]
    second = [np.zeros_like(a) for a in critic]
    for j in range(settings.critic_steps):
        weights = unflatten([np.float32(a) for a in critic], output_bias=False)
        centers, stds = noise_scales(LAYOUT, settings, plan)(weights)
        centers = [c.numpy() * np.ones_like(a) for c, a in zip(centers, critic, strict=True)]
        stds = [s.numpy() * np.ones_like(a) for s, a in zip(stds, critic, strict=True)]
        released = [batch * c for c in centers]
        for i in chunk["records"][0, j]:
            if i >= 0:
                g = gradient(records(60)[i] - center)
                released = [r + gi - c for r, gi, c in zip(released, g, centers, strict=True)]
        at = 0
        for k, s in enumerate(stds):
            noise = chunk["noise"][0, j, at : at + s.size].reshape(s.shape)
            released[k] = released[k] - plan.noise_multiplier * s * noise
            at += s.size
        fakes = [generate(z) for z in chunk["latent"][0, j]]
        mean_fake = [np.mean(gs, axis=0) for gs in zip(*(gradient(f) for f in fakes), strict=True)]
        total = [m - r / batch for m, r in zip(mean_fake, released, strict=True)]
        # Kingma and Ba (2015), algorithm 1
        b1, b2 = settings.beta_1, settings.beta_2
        first = [b1 * m + (1 - b1) * g for m, g in zip(first, total, strict=True)]
        second = [b2 * v + (1 - b2) * g**2 for v, g in zip(second, total, strict=True)]
        critic = [
            c
            - settings.critic_learning_rate
            * (m / (1 - b1 ** (j + 1)))
            / (np.sqrt(v / (1 - b2 ** (j + 1))) + 1e-8)
            for c, m, v in zip(critic, first, second, strict=True)
        ]
    return critic


@pytest.mark.parametrize(("critic_steps", "rate"), [(1, 1e-2), (2, 0.2)])
def test_step_matches_the_transcription(critic_steps, rate):
    """Catches a wrong sign, a wrong divisor, a centre not added back, or Adam without its corrections.

    With two critic steps also noise, records or noise scales of the first one in the second, which the large
    learning rate keeps apart.
    """
    trainer, settings, plan = trainer_of("boxes", critic_steps=critic_steps, critic_learning_rate=rate)
    rng = np.random.default_rng(6)
    arrays = started(trainer, rng)
    chunk = trainer.step.draws.draw(rng)
    after, _ = take_step(trainer, arrays, chunk)
    expected = naive_steps(trainer, arrays, chunk, settings, plan, LAYOUT.center)
    for ours, theirs in zip(after["critic"], expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, atol=2e-2 * rate)


@pytest.mark.parametrize("case", ["maxmin", "clipping", "penalty at records", "penalty at public points"])
def test_blocks_of_a_sample_add_up(case, monkeypatch):
    """Catches a block left out, one that comes twice, padding of the last one, and records without partners.

    Samples end one record before, at and after the end of a block. Blocks are not compared with each other
    alone: a sample of one block has the numbers of the transcription above.
    """
    trainer, _, _ = trainer_of(case)
    arrays = started(trainer, np.random.default_rng(3))
    for width in (19, 20, 21, 29, 30, 31, 43):
        chunk = trainer.step.draws.draw(np.random.default_rng(width))
        if trainer.settings.penalty == "data":
            chunk |= {name: chunk[name][:, :, :width] for name in ("mix", "pair_latent")}
        chunk["records"] = np.random.default_rng(width).permutation(60)[None, None, :width].astype(np.int32)
        found = []
        for block in (1 << 14, 10):
            monkeypatch.setattr(algorithm, "BLOCK", block)
            found.append(one_critic_gradient(trainer, arrays, chunk)[0])
        for whole, sums in zip(*found, strict=True):
            np.testing.assert_allclose(sums, whole, rtol=1e-5, atol=1e-6 * np.abs(whole).max())


def test_what_a_run_records_is_released():
    """Catches a history that tells of real records: their scores, or the gradient's norm before the noise.

    Every number is found again from the released gradient, the weights and what does not depend on records.
    """
    trainer, settings, plan = trainer_of("boxes", multiplier=1.5)
    rng = np.random.default_rng(9)
    arrays, chunk = started(trainer, rng), trainer.step.draws.draw(rng)
    gradient, _ = one_critic_gradient(trainer, arrays, chunk)
    _, metrics = take_step(trainer, arrays, chunk)
    _, nobody = take_step(trainer, arrays, {**chunk, "records": np.full_like(chunk["records"], -1)})
    shown, without = (dict(zip(METRICS, m.numpy(), strict=True)) for m in (metrics, nobody))
    weights = unflatten([np.asarray(a) for a in arrays["critic"]], output_bias=False)
    _, stds = noise_scales(LAYOUT, settings, plan)(weights)
    stds = [1.5 / 30.0 * s.numpy() * np.ones(g.shape) for s, g in zip(stds, gradient, strict=True)]
    last, square = np.asarray(arrays["critic"][-1]), sum((g**2).sum() for g in gradient)
    noise = sum((s**2).sum() for s in stds)
    expected = {
        "noise_std": np.sqrt(noise),
        "noise_share": noise / square,
        "gradient_norm": np.sqrt(square),
        "penalty": 0.0,
        "score_generated": without["score_generated"],
        "wasserstein": -(last * gradient[-1]).sum(),
        "wasserstein_error": np.linalg.norm(stds[-1] * last),
    }
    assert shown == pytest.approx(expected, rel=1e-4, abs=1e-6) and list(expected) == list(METRICS)
    for name in ("noise_std", "wasserstein_error", "penalty"):
        assert shown[name] == without[name]


def scores(critic, x):
    """Scores of points by a LeakyReLU critic, in float64 and by hand."""
    w1, b1, w2, b2, w3 = (np.asarray(a, float) for a in critic)
    s1 = x @ w1 + b1
    s2 = np.where(s1 > 0, s1, 0.2 * s1) @ w2 + b2
    return (np.where(s2 > 0, s2, 0.2 * s2) @ w3)[:, 0]


def one_step(multiplier, n_sampled):
    """A trainer, a start, a chunk that samples the first records, their scores and the mean generated one."""
    trainer, _, _ = trainer_of("boxes", multiplier=multiplier)
    rng = np.random.default_rng(3)
    arrays = started(trainer, rng)
    chunk = trainer.step.draws.draw(rng)
    chunk["records"] = np.where(np.arange(60) < n_sampled, np.arange(60), -1).astype(np.int32)[None, None]
    if multiplier is not None:
        chunk["noise"] = np.zeros_like(chunk["noise"])
    generator = unflatten([np.asarray(a) for a in arrays["generator"]], output_bias=True)
    fake = generator_pass(generator, chunk["latent"][0, 0], LAYOUT, ArrayOps) - LAYOUT.center
    real = records(60)[:n_sampled] - LAYOUT.center
    return trainer, arrays, chunk, scores(arrays["critic"], real), scores(arrays["critic"], fake).mean()


def recorded(trainer, arrays, chunk):
    return dict(zip(METRICS, take_step(trainer, arrays, chunk)[1].numpy(), strict=True))


def test_the_estimate_without_noise_is_the_difference_of_mean_scores():
    """Catches a wrong sign, a wrong layer, or a divisor other than the public batch."""
    trainer, arrays, chunk, real, fake = one_step(None, 30)
    row = recorded(trainer, arrays, chunk)
    assert row["wasserstein"] == pytest.approx(real.mean() - fake, abs=1e-5)
    assert row["wasserstein_error"] == 0 and abs(real.mean() - fake) > 1e-3
    # the score of generated points stands for itself
    assert row["score_generated"] == pytest.approx(fake, abs=1e-5)


@pytest.mark.parametrize("n_sampled", [17, 30, 41])
def test_the_estimate_has_the_stated_error(n_sampled):
    """Catches an error that forgets the multiplier, or divides by the realised batch: a leak.

    The noise has the stated standard deviation around the sample's centred sum over the public batch.
    """
    trainer, arrays, chunk, real, fake = one_step(2.0, n_sampled)
    weights = unflatten([np.asarray(a) for a in arrays["critic"]], output_bias=False)
    centres, _ = trainer.step.noise_scales(weights)
    middle = float((np.asarray(arrays["critic"][-1]) * centres[-1].numpy()).sum())
    exact = (real - middle).sum() / 30.0 + middle - fake  # B = 30, whatever the sample
    rng, seen = np.random.default_rng(5), []
    tensors = {name: tf.constant(a) for name, a in chunk.items()} | {"noise_multiplier": tf.constant(2.0)}
    state = tf.nest.map_structure(tf.constant, arrays)

    @tf.function
    def metrics(noise):
        return trainer.step.noisy_gradient(state, trainer._data, None, {**tensors, "noise": noise}, 0, 0)[1]

    for _ in range(600):
        seen.append(metrics(tf.constant(rng.standard_normal(chunk["noise"].shape, np.float32))).numpy())
    rows = pd.DataFrame(seen, columns=METRICS)
    error = np.sqrt(rows["wasserstein_error"].iloc[0])  # a step has the square, for means over steps
    assert (rows["wasserstein_error"] == rows["wasserstein_error"].iloc[0]).all()
    assert abs(rows["wasserstein"].mean() - exact) < 5 * error / np.sqrt(600)
    square = ((rows["wasserstein"] - exact) ** 2).sum()
    chance = [stats.chi2(600).cdf(square / (factor * error) ** 2) for factor in (1.0, 0.8, 1.25)]
    assert 1e-6 < chance[0] < 1 - 1e-6 and chance[1] > 1 - 1e-6 and chance[2] < 1e-6


def test_the_error_of_an_iteration_is_that_of_the_mean_over_its_steps():
    """Catches a mean of errors, which is larger than the error of a mean of independent estimates."""
    trainer, settings, plan = trainer_of("boxes", steps=3, critic_steps=3, critic_learning_rate=1e-9)
    rng = np.random.default_rng(3)
    arrays = started(trainer, rng)
    row = recorded(trainer, arrays, trainer.step.draws.draw(rng))
    weights = unflatten([np.asarray(a) for a in arrays["critic"]], output_bias=False)
    _, stds = noise_scales(LAYOUT, settings, plan)(weights)
    one = float(np.linalg.norm(stds[-1].numpy() * np.asarray(arrays["critic"][-1]))) / 30.0
    assert row["wasserstein_error"] == pytest.approx(one / np.sqrt(3), rel=1e-4)


@pytest.mark.parametrize(
    ("case", "absent"),
    [
        ("spectral", {"penalty"}),
        ("penalty at public points", set()),
        ("penalty at records", {"wasserstein", "wasserstein_error"}),
        ("clipping", {"penalty", "wasserstein", "wasserstein_error"}),
    ],
)
def test_only_what_means_something_is_recorded(case, absent):
    """Catches an estimate from a gradient that is not that of a mean score, or a penalty of nothing."""
    trainer, _, _ = trainer_of(case)
    assert set(METRICS) - set(trainer.step.recorded) == absent


@pytest.mark.parametrize("case", ["spectral", "maxmin", "boxes", "clipping"])
def test_bounds_of_layers_are_those_of_gradients_one_by_one(case):
    """Catches a radius or a distance that is not that of a gradient, or a bound named that is not used."""
    trainer, settings, plan = trainer_of(case)
    state = initial_state(LAYOUT, settings, np.random.default_rng(2))
    state.arrays["critic"] = [a.numpy() for a in started(trainer, np.random.default_rng(2))["critic"]]
    found = trainer.layer_bounds(state)
    if case == "clipping":
        assert found == ()
        return
    weights = unflatten([tf.constant(a) for a in state.arrays["critic"]], output_bias=False)
    latent = np.random.default_rng(0).standard_normal((1000, settings.latent), dtype=np.float32)
    points = (generator_pass(generator_of(state), latent, LAYOUT, ArrayOps) - LAYOUT.center).astype(
        np.float32
    )
    centres, _ = noise_scales(LAYOUT, settings, plan)(weights)
    centres = [c.numpy() for c in centres]
    reached = np.zeros(3)
    _, inputs, deltas = critic_pass(weights, tf.constant(points), trainer.step.activation)
    for layer, (xs, every) in enumerate(zip(inputs, deltas, strict=True)):
        own = centres[2 * layer : 2 * layer + 2]
        for x, delta in zip(xs.numpy(), every.numpy(), strict=True):
            parts = [np.outer(x, delta), delta][: len(own)]
            square = sum(((g.reshape(c.shape) - c) ** 2).sum() for g, c in zip(parts, own, strict=True))
            reached[layer] = max(reached[layer], np.sqrt(square))
    for layer, bound in enumerate(found):
        radius = bound.box if bound.used == "box" else bound.ball
        assert bound.reached == pytest.approx(reached[layer] / radius, rel=1e-3)
        assert 0 < bound.reached <= 1.0 + 1e-5
        assert (bound.used == "box") == any(c.any() for c in centres[2 * layer : 2 * layer + 2])
    assert [bound.size for bound in found] == [5 * 8 + 8, 8 * 6 + 6, 6]
