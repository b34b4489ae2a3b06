"""The loop: one program, interrupts, divergence, accelerators' random numbers, the thesis's shapes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy import stats

from dpsynth.errors import RunError
from dpsynth.privacy.release import Plan
from dpsynth.synthesis import default_rules
from dpsynth.table.encoder import Layout
from dpsynth.table.schema import Column, Schema
from dpsynth.wgan.algorithm import METRICS, DrawShapes, GraphDraws, HostDraws, Step
from dpsynth.wgan.settings import TrainingSettings
from dpsynth.wgan.training import TrainingRun, build_step, generator_of, has_ended, initial_state

LAYOUT = Layout(2, ((2, 4),))
# As little as there is to compile.
SMALL = {
    "critic_hidden": (8,),
    "generator_hidden": (8,),
    "latent": 3,
    "activation": "leaky_relu",
    "bjorck_steps": 0,
    "penalty": "none",
}


def points(n=80):
    rng = np.random.default_rng(0)
    x = np.zeros((n, 4), np.float32)
    x[:, :2] = rng.random((n, 2))
    x[np.arange(n), 2 + (x[:, 0] > 0.7)] = 1
    return x


def make(steps=40, multiplier=1.0, n=80, in_graph=None, **options):
    settings = TrainingSettings(**(SMALL | options))
    plan = Plan(sampling_prob=0.25, expected_batch=20.0, steps=steps, noise_multiplier=multiplier)
    return TrainingRun(points(n), LAYOUT, settings, plan, bank=None, in_graph=in_graph)


@pytest.mark.slow
def test_many_chunks_are_one_program(monkeypatch):
    """Catches a loop that compiles anew for every chunk or runs Python for every step."""
    monkeypatch.setattr("dpsynth.wgan.training._CHUNK_STEPS", 6)
    trainer = make(steps=40)
    state = trainer.run(np.random.default_rng(1))
    assert state.history["step"].tolist() == list(range(2, 41, 2))  # a row for each iteration
    assert trainer._loop.experimental_get_tracing_count() == 1


@pytest.mark.slow
def test_a_second_run_of_the_same_shape_compiles_nothing():
    """Catches a program built anew for every seed or noise multiplier: 5 s and 45 MB each."""
    first, second = make(multiplier=1.0), make(multiplier=2.0)
    assert first._loop is second._loop
    a, b = (t.run(np.random.default_rng(1)).history["noise_std"].iloc[-1] for t in (first, second))
    assert b > 1.5 * a
    assert second._loop.experimental_get_tracing_count() == 1
    assert make(critic_learning_rate=5e-2)._loop is not first._loop


def test_a_wider_batch_is_not_cut():
    """Catches truncated batches, which the Poisson event does not describe (all 80 records are drawn)."""
    shapes = DrawShapes(2, 20, 10, 80, 1.0, 30, 0)
    chunk = HostDraws(shapes, TrainingSettings(penalty="none"), noisy=True).draw(np.random.default_rng(0))
    assert (chunk["records"] >= 0).sum(axis=2).tolist() == [[80, 80], [80, 80]]


@pytest.mark.slow
@pytest.mark.usefixtures("eager_steps")
def test_points_in_a_file_are_sampled_as_those_that_are_held(monkeypatch, tmp_path):
    """Catches other records, or zeros as records, in the steps on a table larger than memory."""
    held = make(steps=12).run(np.random.default_rng(1), initial_rng=np.random.default_rng(2))
    monkeypatch.setattr("dpsynth.wgan.training._HELD", 0)
    np.save(tmp_path / "points.npy", points())
    monkeypatch.setitem(globals(), "points", lambda n: np.load(tmp_path / "points.npy", mmap_mode="r"))
    trainer = make(steps=12)
    assert trainer._data is None
    filed = trainer.run(np.random.default_rng(1), initial_rng=np.random.default_rng(2))
    for a, b in zip(tf.nest.flatten(held.arrays), tf.nest.flatten(filed.arrays), strict=True):
        np.testing.assert_array_equal(a, b)


def watched(trainer):
    """What a run hands to its program, chunk by chunk, with a program that does nothing."""
    seen = []

    def loop(arrays, data, bank, chunk, limit):
        seen.append(({k: v.numpy() for k, v in chunk.items()}, int(limit), arrays["critic"]))
        return arrays, tf.zeros([len(chunk["records"]), len(METRICS)]), limit

    trainer._loop = loop
    trainer.run(np.random.default_rng(1))
    return seen


#: What ends a chunk: steps, or numbers drawn, of which a step of these networks needs some hundreds.
CHUNKS = [("_CHUNK_STEPS", 5), ("_CHUNK_NUMBERS", 1000)]


@pytest.mark.parametrize(("name", "most"), CHUNKS)
def test_no_noise_comes_twice(monkeypatch, name, most):
    """Catches one chunk of noise for the whole run, and one array for several steps of a chunk."""
    monkeypatch.setattr(f"dpsynth.wgan.training.{name}", most)
    trainer = make(steps=40)
    draws = trainer.step.draws
    noise = [
        draws.noise(chunk, i, j) for chunk, limit, _ in watched(trainer) for i in range(limit) for j in (0, 1)
    ]
    assert len(noise) == 40 and len(np.unique(np.stack(noise))) > 0.999 * np.stack(noise).size


@pytest.mark.parametrize("in_graph", [False, True])
@pytest.mark.parametrize(("name", "most"), CHUNKS)
def test_no_sample_comes_twice(monkeypatch, name, most, in_graph):
    """Catches one Poisson sample for all critic steps of an iteration, for several iterations or chunks."""
    monkeypatch.setattr(f"dpsynth.wgan.training.{name}", most)
    taken = [
        tuple(batch)
        for chunk, limit, _ in watched(make(steps=40, in_graph=in_graph))
        for batch in chunk["records"][:limit].reshape(-1, chunk["records"].shape[-1])
    ]
    assert len(taken) == 40 and len({batch[:15] for batch in taken}) == 40


@pytest.mark.parametrize(("name", "most"), [("_CHUNK_STEPS", 7), ("_CHUNK_NUMBERS", 1000)])
def test_a_run_is_what_its_plan_says(monkeypatch, name, most):
    """Catches more steps, likelier records or another divisor than were paid for.

    The table has 50 records where the plan was made for 80.
    """
    monkeypatch.setattr(f"dpsynth.wgan.training.{name}", most)
    trainer = make(steps=41, n=50)
    assert trainer.step.expected_batch == 20.0
    seen = watched(trainer)
    assert len(seen) > 2 and 0 < seen[-1][1] < seen[0][1]  # of several chunks the last one is shorter
    assert sum(limit for _, limit, _ in seen) * trainer.settings.critic_steps == 40
    taken = sum(int((chunk["records"][:limit] >= 0).sum()) for chunk, limit, _ in seen)
    assert abs(taken - 40 * 50 * 0.25) < 4.5 * np.sqrt(40 * 50 * 0.25 * 0.75)
    assert all(chunk["noise_multiplier"] == 1.0 for chunk, _, _ in seen)


def test_a_run_begins_within_its_constraint():
    """Catches initial weights that are not projected, whose norms the noise takes for granted."""
    ((_, _, critic), *_) = watched(make(critic_hidden=(30, 30)))
    for matrix in critic[0::2]:
        assert np.linalg.svd(matrix.numpy().astype(float), compute_uv=False)[0] <= 1.0


def test_products_are_of_full_precision(monkeypatch):
    """Catches products in TF32, which round a thousand times more than the bounds are widened for.

    And a setting of the user's process that a fit leaves changed.
    """
    trainer, enabled, seen = make(), tf.config.experimental.tensor_float_32_execution_enabled, []
    tf.config.experimental.enable_tensor_float_32_execution(True)

    def loop(arrays, data, bank, chunk, limit):
        seen.append(enabled())
        return arrays, tf.zeros([len(chunk["records"]), len(METRICS)]), limit

    def constrain(step, arrays):
        seen.append(enabled())
        return arrays

    trainer._loop = loop
    monkeypatch.setattr(Step, "constrain", constrain)
    trainer.run(np.random.default_rng(1))
    assert len(seen) > 1 and not any(seen) and enabled()


def test_a_chunk_counts_the_numbers_that_the_host_draws():
    """Catches a call of the program for each iteration, where the device draws all but the samples."""

    def steps(in_graph):
        plan = Plan(sampling_prob=0.1, expected_batch=65_536.0, steps=1000, noise_multiplier=1.0)
        numbers = {"n_records": 655_360, "n_bank": 10, "n_steps": 500}
        return build_step(LAYOUT, TrainingSettings(), plan, in_graph=in_graph, **numbers).draws.shapes.steps

    assert steps(True) > 2 * steps(False) > 2


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize(
    ("place", "value"),
    [((3, 0), 1.0001), ((3, 1), -0.01), ((79, 0), np.nan), ((0, slice(2, 4)), 1), ((0, 2), 0.5)],
)
def test_no_record_leaves_the_domain_of_the_bounds(monkeypatch, held, place, value):
    """Catches a point, as of a damaged file, that moves a step by more than its noise is made for."""
    if not held:
        monkeypatch.setattr("dpsynth.wgan.training._HELD", 0)
    records = points()
    records[place] = value
    settings = TrainingSettings(**SMALL)
    plan = Plan(sampling_prob=1.0, expected_batch=80.0, steps=5, noise_multiplier=1.0)
    with pytest.raises(RunError, match="leave the domain"):
        trainer = TrainingRun(records, LAYOUT, settings, plan, bank=None)
        trainer.run(np.random.default_rng(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "raised",
    [
        KeyboardInterrupt(),
        RuntimeError("pybind11: InvalidArgumentError REPLACED BY KeyboardInterrupt"),
        ZeroDivisionError("division by zero"),
        MemoryError(),
    ],
)
def test_whatever_stops_a_run_leaves_a_state_that_goes_on(monkeypatch, raised):
    """Catches an exception that loses the run, also as TensorFlow tells of it, or a run that starts again.

    The run that goes on ends with the weights of one that was never stopped, bit for bit.
    """
    monkeypatch.setattr("dpsynth.wgan.training._CHUNK_STEPS", 5)
    kept = []

    def stop(state, total):
        if state.step >= 10:
            raise raised

    expected = KeyboardInterrupt if "KeyboardInterrupt" in repr(raised) else type(raised)
    with pytest.raises(expected):
        make().run(
            np.random.default_rng(1), initial_rng=np.random.default_rng(5), on_chunk=stop, on_stop=kept.append
        )
    assert kept[0].step == 10
    final = make().run(np.random.default_rng(2), state=kept[0])
    assert final.step == 20 and final.history["step"].tolist() == list(range(2, 41, 2))
    whole = make().run(np.random.default_rng(1), initial_rng=np.random.default_rng(5))
    for a, b in zip(tf.nest.flatten(final.arrays), tf.nest.flatten(whole.arrays), strict=True):
        np.testing.assert_array_equal(a, b)
    pd.testing.assert_frame_equal(final.history, whole.history, check_exact=True)
    kept[0].arrays["critic"] = [3.0 * array for array in kept[0].arrays["critic"]]
    with pytest.raises(RunError, match="leaves the set for which the noise is proved"):
        make().run(np.random.default_rng(2), state=kept[0])


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [7, 250])
def test_a_run_stops_when_its_estimates_are_noise(monkeypatch, chunk):
    """Catches a rule that waits for the end of a chunk, forgets the last one, or never stops.

    Noise is so large that nearly every estimate is within twice its error, wherever a chunk ends.
    """
    monkeypatch.setattr("dpsynth.wgan.training._CHUNK_STEPS", chunk)
    trainer = make(steps=400, multiplier=1e4, patience=9)
    state = trainer.run(np.random.default_rng(1), initial_rng=np.random.default_rng(2))
    beyond = (state.history["wasserstein"] > 2 * state.history["wasserstein_error"]).to_numpy()
    calm, first = 0, None
    for i, far in enumerate(beyond, 1):
        calm = 0 if far else calm + 1
        first = i if calm == 9 and first is None else first
    assert first == len(beyond) == state.step < 200
    assert has_ended(state, trainer.plan, trainer.settings)
    again = trainer.run(np.random.default_rng(1), state=state)
    assert again.step == state.step


@pytest.mark.slow
def test_divergence_is_reported():
    """Catches a model of NaNs that is saved as a success."""
    with pytest.raises(RunError, match="diverged"):
        make(critic_constraint="none", critic_learning_rate=1e38, multiplier=None).run(
            np.random.default_rng(0)
        )


@pytest.mark.slow
def test_an_empty_table_trains():
    """Catches a crash that would tell an empty table from one with a record."""
    state = make(n=0).run(np.random.default_rng(0))
    assert all(np.isfinite(a).all() for pair in generator_of(state) for a in pair)


@pytest.mark.slow
def test_training_learns_without_noise():
    """Catches a generator trained in the wrong direction: the category must follow x > 0.7."""
    from dpsynth.wgan.networks import ArrayOps, generator_pass

    trainer = make(steps=3000, multiplier=None, generator_learning_rate=5e-3)
    weights = generator_of(trainer.run(np.random.default_rng(3)))
    made = generator_pass(weights, np.random.default_rng(4).standard_normal((4000, 3)), LAYOUT, ArrayOps)
    high, low = made[made[:, 0] > 0.8, 3], made[made[:, 0] < 0.5, 3]
    assert len(high) and len(low) and high.mean() > low.mean() + 0.3


def test_draws_inside_the_program_are_normal_and_differ():
    """Catches in-program noise of the wrong scale, or the same noise in two steps."""
    shapes = DrawShapes(3, 4, 5000, 10, 0.5, 8, 0)
    draws = GraphDraws(shapes, TrainingSettings(penalty="none"), noisy=True)
    chunk = draws.draw(np.random.default_rng(0))
    first, second = draws.noise(chunk, 0, 0).numpy(), draws.noise(chunk, 0, 1).numpy()
    assert stats.kstest(first, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.06
    assert draws.latent(chunk, 0, 2).shape == (4, 32)


def test_draws_inside_the_program_are_made_in_float64():
    """Catches normals made in float32, which end before 6 standard deviations: too far to see in draws."""
    draws = GraphDraws(
        DrawShapes(1, 1, 10, 10, 0.5, 8, 0), TrainingSettings(penalty="none", critic_steps=1), noisy=True
    )
    seeds = tf.constant(draws.draw(np.random.default_rng(0))["noise_seed"])
    program = tf.function(lambda j: draws.noise({"noise_seed": seeds}, 0, j)).get_concrete_function(0)
    made = [op for op in program.graph.get_operations() if "RandomNormal" in op.type]
    assert made and all(op.get_attr("dtype") == tf.float64 for op in made)


def test_every_bit_of_a_seed_inside_the_program_is_random():
    """Catches seeds of 16 bits, all of which an attacker can try.

    No bit stays as it is, none goes with another (as those of a sign do), and no seed of many comes twice.
    """
    draws = GraphDraws(
        DrawShapes(1024, 1, 10, 10, 0.5, 8, 0), TrainingSettings(penalty="none", critic_steps=2), noisy=True
    )
    seeds = draws.draw(np.random.default_rng(0))["noise_seed"].reshape(-1, 2)
    assert len(np.unique(seeds)) == seeds.size == 4096
    bits = np.unpackbits(seeds.view(np.uint8), axis=1)
    assert np.abs(np.corrcoef(bits.T) - np.eye(128)).max() < 0.2


@pytest.mark.slow
def test_tails_of_draws_inside_the_program():
    """Catches a law with shorter or longer tails than the normal, by 2e7 draws."""
    shapes = DrawShapes(1, 1, 5_000_000, 10, 0.5, 8, 0)
    draws = GraphDraws(shapes, TrainingSettings(penalty="none", critic_steps=4), noisy=True)
    seeds = tf.constant(draws.draw(np.random.default_rng(0))["noise_seed"])

    @tf.function(jit_compile=True)
    def beyond(j):
        size = tf.abs(draws.noise({"noise_seed": seeds}, 0, j))
        return tf.reduce_sum(tf.cast(size > 4.0, tf.int32)), tf.reduce_sum(tf.cast(size > 5.0, tf.int32))

    counts = np.sum([[int(c) for c in beyond(tf.constant(j))] for j in range(4)], axis=0)
    expected = 2 * stats.norm.sf([4.0, 5.0]) * 2e7  # 1267 and 11
    assert (np.abs(counts - expected) < 3 * np.sqrt(expected)).all(), (counts, expected)


@pytest.mark.slow
def test_program_with_inner_draws_trains():
    """Catches a program that only works with noise from the host."""
    settings = TrainingSettings(**SMALL)
    plan = Plan(sampling_prob=0.25, expected_batch=20.0, steps=20, noise_multiplier=1.0)
    trainer = TrainingRun(points(), LAYOUT, settings, plan, bank=None, in_graph=True)
    assert trainer.run(np.random.default_rng(0)).history["noise_std"].iloc[-1] > 0


def test_healthgan_is_the_thesis_architecture():
    """Catches an architecture that drifts from section 3.3: table 3.1's nodes and optimiser."""
    for d, nodes in ((12, (24, 18)), (34, (68, 51)), (7, (14, 10))):
        columns = tuple(Column(name=f"x{i}", kind="continuous", lower=0, upper=1) for i in range(d))
        settings = default_rules.healthgan(Schema(columns=columns))
        assert (settings.latent, settings.latent_law) == (100, "uniform")
        assert settings.generator_hidden == nodes and settings.critic_hidden == (64, 128, 256)
        assert (settings.penalty, settings.penalty_weight, settings.critic_steps) == ("data", 10.0, 5)
        assert (settings.critic_learning_rate, settings.beta_1, settings.beta_2) == (1e-4, 0.5, 0.9)
        state = initial_state(Layout(d), settings, np.random.default_rng(0))
        assert [a.shape for a in state.arrays["critic"][0::2]] == [(d, 64), (64, 128), (128, 256), (256, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("in_graph", [False, True])
def test_a_record_that_is_not_sampled_changes_no_bit(in_graph):
    """Catches a mean, a scale or a sum over all records in a step that pays for the sampled ones alone."""
    settings = TrainingSettings(**SMALL)
    plan = Plan(sampling_prob=0.02, expected_batch=1.6, steps=20, noise_multiplier=1.0)

    def trained(rows):
        trainer = TrainingRun(rows, LAYOUT, settings, plan, bank=None, in_graph=in_graph)
        taken = {i for chunk, _, _ in watched_and_run(trainer) for i in np.unique(chunk["records"])}
        return trainer.final, taken - {-1}

    def watched_and_run(trainer):
        seen, program = [], trainer._loop

        def loop(arrays, data, bank, chunk, limit):
            seen.append((({k: v.numpy() for k, v in chunk.items()}), int(limit), None))
            return program(arrays, data, bank, chunk, limit)

        trainer._loop = loop
        trainer.final = trainer.run(np.random.default_rng(1), initial_rng=np.random.default_rng(2)).arrays
        return seen

    rows = points()
    before, taken = trained(rows)
    other = sorted(set(range(len(rows))) - taken)
    assert len(taken) > 5 and len(other) > 5
    for which, same in ((other, True), (sorted(taken), False)):
        changed = rows.copy()
        changed[which] = rows[which][::-1]
        changed[which, :2] *= np.float32(0.5)
        after, again = trained(changed)
        flat = [np.concatenate([np.ravel(a) for a in tf.nest.flatten(arrays)]) for arrays in (before, after)]
        assert again == taken and np.array_equal(*flat) is same
