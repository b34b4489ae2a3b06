"""Noisy mean gradients of random critics, and the points that match them."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import dpsynth
from dpsynth.errors import InputError, RunError
from dpsynth.privacy.release import NOISE_SHAPES, Plan
from dpsynth.synthesis import matching as generator
from dpsynth.synthesis.matching import Matched
from dpsynth.table import Column, Schema
from dpsynth.table.encoder import Encoder, Layout
from dpsynth.wgan import matching as gradient_matching
from dpsynth.wgan.matching import (
    Critics,
    GradientRelease,
    matched,
    points_of,
    starting_state,
    with_released,
)
from dpsynth.wgan.networks import MatchedPoints, coordinate_scale
from dpsynth.wgan.settings import MatchingSettings
from dpsynth.wgan.theorems import Domain, gradient_bounds

LAYOUT = Layout(2, ((2, 5), (5, 7)))
SCALE = np.float32([1, 1, 1, 1, 1, 3, 3])
SMALL = MatchingSettings(critic_width=8)
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="ward", kind="categorical", categories=("a", "b", "c")),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    outcome="died",
    n_public=600,
)


def records(n, rng):
    """Encoded records: numbers anywhere or at a bound, one category of each group."""
    points = np.zeros((n, LAYOUT.dim), np.float32)
    numbers = rng.random((n, 2))
    points[:, :2] = np.where(rng.random((n, 1)) < 0.5, np.round(numbers), numbers)
    for start, stop in LAYOUT.groups:
        points[np.arange(n), rng.integers(start, stop, n)] = 1
    return points


def release_of(critics=3, *, seed=0, settings=SMALL, scale=SCALE, layout=LAYOUT, **changes):
    """A release of so many random critics."""
    values = dict(sampling_prob=1.0, expected_batch=40.0, steps=critics, noise_multiplier=2.0) | changes
    made = Critics.draw(critics, layout.dim, settings, np.random.default_rng(seed))
    return GradientRelease(made, layout, scale, Plan(**values))


def silent(**changes):
    """Noise that adds nothing to float64 sums, with the multiplier of a private plan."""
    return release_of(noise_multiplier=1e-12, **changes)


@pytest.mark.parametrize(("place", "value"), [((3, 0), 1.01), ((9, 1), np.nan), ((0, slice(2, 5)), 1)])
def test_no_record_leaves_the_domain_of_the_bounds(place, value):
    """Catches a point, as of a damaged file, that moves the sums by more than the noise is made for."""
    points = records(10, np.random.default_rng(0))
    points[place] = value
    with pytest.raises(RunError, match="leave the domain"):
        silent().query([points])


def table(n=600):
    rng = np.random.default_rng(0)
    age = rng.integers(18, 91, n)
    died = rng.random(n) < 1 / (1 + np.exp(-(age - 60) / 8))
    ward = np.where(died, rng.choice(["a", "b"], n), rng.choice(["b", "c"], n))
    return pd.DataFrame({"age": age, "ward": ward, "died": np.where(died, "yes", "no")})


def rounded(points):
    """The points as the critics see them: centred, scaled, and cut off after 12 binary digits."""
    x = (points.astype(np.float64) - LAYOUT.center) * SCALE
    return (np.sign(x) * np.floor(abs(x) * 4096) / 4096).astype(np.float32)


def naive_gradient(critics, t, x):
    """Gradient of critic t at one scaled point by automatic differentiation."""
    flat = [tf.constant(a[t]) for a in (critics.matrices, critics.biases, critics.outputs)]
    with tf.GradientTape() as tape:
        tape.watch(flat)
        s = tf.linalg.matvec(flat[0], tf.constant(x), transpose_a=True) + flat[1]
        pairs = tf.reshape(s, [-1, 2])
        hidden = tf.concat([tf.reduce_max(pairs, axis=1), tf.reduce_min(pairs, axis=1)], axis=0)
        score = tf.reduce_sum(hidden * flat[2])
    return np.concatenate([g.numpy().ravel() for g in tape.gradient(score, flat)])


def test_the_release_is_the_transcription():
    """Catches gradients of another critic or another order, a wrong centre, scale or batch, a lost record."""
    release, points = silent(), records(25, np.random.default_rng(1))
    centres, _ = release.centres_and_stds
    x = rounded(points)
    blocks = [points[:7], points[7:7], points[7:]]
    found = release(blocks, np.random.default_rng(2)).means
    for t in range(3):
        each = np.array([naive_gradient(release.critics, t, row) for row in x])
        expected = ((each - centres[t]).sum(axis=0) + 40.0 * centres[t]) / 40.0
        np.testing.assert_allclose(found[t], expected, atol=2e-6)


def test_a_record_adds_the_same_in_any_company(monkeypatch):
    """Catches sums that round: in another order, in blocks, or alone, records would add something else.

    It also catches rows that fill a block and count as records, and a block that is left out.
    """
    release, points = release_of(), records(50, np.random.default_rng(1))
    whole, count = release.sums([points])
    alone = np.sum([release.sums([row[None]])[0] for row in points], axis=0)
    assert count == 50 and whole.dtype == np.int64
    assert (whole == alone).all() and (whole == release.sums([points[::-1]])[0]).all()
    monkeypatch.setattr(gradient_matching, "BLOCK", 16)
    assert (whole == release.sums([points[:17], points[17:17], points[17:]])[0]).all()


@pytest.mark.parametrize("shape", NOISE_SHAPES)
def test_one_record_moves_the_release_by_at_most_the_sensitivity(shape):
    """Catches noise too small for the scaled outcome or for the centre: the privacy claim itself.

    Each of 40 records is added to a table, at 12 random critics. The bound must not be idle either: some
    record comes near to it. A ball is farther from the gradients there are.
    """
    release, rng = release_of(critics=12, noise_shape=shape), np.random.default_rng(3)
    base = records(5, rng)
    without = release.query([base])
    moved = [
        np.linalg.norm((release.query([base, extra[None]]) - without) * 2.0**-32, axis=1)
        for extra in records(40, rng)
    ]
    assert np.max(moved) <= 1.0
    assert np.max(moved) >= 0.5


def test_no_record_is_longer_when_it_is_rounded():
    """Catches coordinates rounded to the nearest step or up: out of the box, or beyond its radius."""
    release, rng = release_of(scale=np.float32([1, 7, 0.3, 2, 5, 3, 3])), np.random.default_rng(7)
    points = records(500, rng)
    exact = (points.astype(float) - LAYOUT.center) * release.scale
    x = release.coordinates(points)
    assert (abs(x) <= abs(exact)).all() and (abs(x) > abs(exact) - 2.0**-12).all()
    assert (x * 2**12 == np.rint(x * 2**12)).all()
    assert (x >= release.domain.lo).all() and (x <= release.domain.hi).all()
    for start, stop in LAYOUT.groups:  # one entry of a group is high, all others are low
        high = x[:, start:stop] == release.domain.hi[start:stop]
        low = x[:, start:stop] == release.domain.lo[start:stop]
        assert (high.sum(axis=1) == 1).all() and (high ^ low).all()


def test_sums_that_float64_would_round_are_refused(monkeypatch):
    """Catches critics of other steps, records too long, or too many: a record would move others' digits."""
    made = release_of()
    finer = dataclasses.replace(made.critics, biases=made.critics.biases + np.float32(2.0**-13))
    with pytest.raises(RunError, match="whole numbers of 2\\^-12"):
        dataclasses.replace(made, critics=finer)
    with pytest.raises(RunError, match="may be at most 2048 long"):
        release_of(scale=np.full(7, 2000, np.float32))
    points = records(6, np.random.default_rng(1))
    monkeypatch.setattr(gradient_matching, "_MOST", 5)
    assert made.query([points[:5]]).shape == made.query([]).shape
    with pytest.raises(RunError, match="at most 5 records are summed exactly"):
        made.query([points])


def test_bounds_are_not_computed_in_tf32(monkeypatch):
    """Catches products of a GPU that round at 1e-3, for which no bound is widened.

    And a setting of the user's process that stays changed.
    """
    enabled, seen = tf.config.experimental.tensor_float_32_execution_enabled, []

    def watched(*values, **named):
        seen.append(enabled())
        return gradient_bounds(*values, **named)

    monkeypatch.setattr(gradient_matching, "gradient_bounds", watched)
    tf.config.experimental.enable_tensor_float_32_execution(True)
    assert release_of().centres_and_stds[1].shape == (3, 72)
    assert seen == [False] * 3 and enabled()


def test_the_bound_is_attained():
    """Catches a sensitivity that is needlessly large: with one coordinate and no bias it is exact.

    The gradient with respect to the last layer is ``[max, min](x W)``, with ``|x|`` at most 1/2.
    """
    release = silent(
        critics=20,
        settings=MatchingSettings(critic_width=2, bias_std=0.0),
        scale=np.float32([3.0]),
        layout=Layout(1),
        noise_shape="spherical",
    )
    _, stds = release.centres_and_stds
    rng = np.random.default_rng(4)
    empty = release([], rng).means
    moved = [
        np.linalg.norm((release([np.float32([[u]])], rng).means - empty) * 40.0 / stds, axis=1)
        for u in (0.0, 1.0)
    ]
    assert np.max(moved) <= 1.0 + 1e-5
    assert np.max(moved) >= 0.95


def test_adding_a_record_shows_nothing_but_its_gradient():
    """Catches the private number of records in place of the public one, in the centre's term or the mean."""
    release, rng = silent(), np.random.default_rng(5)
    centres, _ = release.centres_and_stds
    points = records(31, rng)
    more, less = release([points], rng).means, release([points[1:]], rng).means
    x = rounded(points[0])
    own = np.stack([naive_gradient(release.critics, t, x) for t in range(3)])
    np.testing.assert_allclose(40.0 * (more - less), own - centres, atol=1e-5)


def test_noise_has_its_stds_and_never_comes_twice():
    """Catches noise of one critic in the next, of one call in the next, or of another size."""
    release = release_of(critics=8, seed=1, noise_multiplier=3.0)
    _, stds = release.centres_and_stds
    rng = np.random.default_rng(6)
    twice = [release([], rng) for _ in range(2)]
    quiet = dataclasses.replace(release, plan=dataclasses.replace(release.plan, noise_multiplier=1e-12))
    means = quiet([], rng).means
    noise = np.stack([(found.means - means) * 40.0 / (3.0 * stds) for found in twice])
    assert noise.std() == pytest.approx(1.0, abs=0.05)
    assert (noise[0] != noise[1]).all()  # in each component
    np.testing.assert_allclose(twice[0].stds, 3.0 * stds / 40.0)
    flat = noise.reshape(-1, noise.shape[-1])
    correlation = np.corrcoef(flat) - np.eye(len(flat))
    assert np.abs(correlation).max() < 0.5


def test_critics_do_not_come_from_the_noise(monkeypatch):
    """Catches public critics that show outputs of the generator that draws the noise."""
    drawn, seen = [], []
    draw, noisy = Critics.draw.__func__, gradient_matching.with_noise

    def watched(cls, count, dim, settings, rng):
        drawn.append(rng)
        return draw(cls, count, dim, settings, rng)

    def noise(exact, step, std, rng):
        seen.append(rng)
        return noisy(exact, step, std, rng)

    monkeypatch.setattr(gradient_matching, "matched", lambda state, *_: state)
    monkeypatch.setattr(Critics, "draw", classmethod(watched))
    monkeypatch.setattr(gradient_matching, "with_noise", noise)
    fitted(critics=2)
    assert drawn and seen and drawn[0] is not seen[0]


def test_a_plan_of_another_release_is_refused():
    """Catches more critics than the ledger pays for, and a sampled batch that none of them has."""
    for changes in (dict(steps=2), dict(sampling_prob=0.5)):
        with pytest.raises(RunError, match="3 WGAN critics on every record"):
            release_of(**changes)


def test_the_outcome_is_scaled():
    """Catches a factor on another column, or on one of an outcome's two parts."""
    stage = Column(name="stage", kind="ordinal", categories=("I", "II", "III"), missing=True)
    columns = (*SCHEMA.columns, stage)
    for outcome, expected in (("died", [1, 1, 1, 1, 1, 3, 3, 1, 1]), ("stage", [1, 3, 1, 1, 1, 1, 1, 3, 3])):
        encoder = Encoder(Schema(columns=columns, outcome=outcome), None)
        assert coordinate_scale(encoder, 3.0).tolist() == expected
    assert coordinate_scale(Encoder(Schema(columns=columns), None), 3.0).max() == 1


def test_a_scaled_domain_holds_every_scaled_record():
    """Catches a box or a radius without the scale, and a radius for the wrong entry of a group."""
    rng = np.random.default_rng(7)
    scale = np.float32([1, 7, 0.3, 2, 5, 3, 3])
    domain = Domain.from_layout(LAYOUT, scale)
    x = (records(2000, rng) - LAYOUT.center.astype(np.float32)) * scale
    assert (x >= domain.lo).all() and (x <= domain.hi).all()
    lengths = np.linalg.norm(x.astype(float), axis=1)
    assert 0.999 * domain.radius <= lengths.max() <= domain.radius
    for wrong in (np.ones(3), np.zeros(7), np.full(7, np.inf)):
        with pytest.raises(InputError, match="scale must be 7 finite numbers greater than 0"):
            Domain.from_layout(LAYOUT, wrong)


FAST = MatchingSettings(critic_width=8, points=800, iterations=80)


def fitted(**options):
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr("dpsynth.synthesis.matching.MatchingOptions.settings", lambda self, n: FAST)
        model = dpsynth.DPCriticMatching(**{"epsilon": 3.0} | options, random_state=0)
        return model.fit(table(), schema=SCHEMA)


@pytest.fixture(scope="module")
def model():
    return fitted(critics=16)


@pytest.mark.slow
def test_points_match_the_released_gradients():
    """Catches a solver that stops far from the released numbers: 1 is what their noise explains."""
    rng = np.random.default_rng(8)
    release = release_of(8, expected_batch=400.0, noise_multiplier=3.0)
    points = records(400, rng)
    released = release([points], rng)
    even = [np.full(stop - start, 1 / (stop - start)) for start, stop in LAYOUT.groups]
    settings = dataclasses.replace(FAST, points=2000, iterations=200)
    start = starting_state(8, LAYOUT, even, settings, np.random.default_rng(9))
    made = release.critics
    start.arrays["critics"] = [made.matrices, made.biases, made.outputs]
    state = matched(with_released(start, released), LAYOUT, SCALE, settings)
    assert state.history["difference"].iloc[-1] < 1.2
    again = points_of(state, LAYOUT, settings).sample(5000, 2, np.random.default_rng(10))
    codes = np.concatenate(
        [
            np.eye(b - a)[
                [
                    np.searchsorted(np.cumsum(p), u)
                    for p, u in zip(
                        again[:, a:b], np.random.default_rng(11).random(5000) * 0.9999, strict=True
                    )
                ]
            ]
            for a, b in LAYOUT.groups
        ],
        axis=1,
    )
    assert (
        np.abs(np.concatenate([again[:, :2], codes], axis=1).mean(axis=0) - points.mean(axis=0)).max() < 0.12
    )


def test_the_variance_of_a_draw_is_no_difference():
    """Catches the square of one draw: its variance is least for points without jitter and associations."""
    settings = dataclasses.replace(SMALL, points=20, jitter=0.3)
    even = [np.full(stop - start, 1 / (stop - start)) for start, stop in LAYOUT.groups]
    state = starting_state(3, LAYOUT, even, settings, np.random.default_rng(14))
    critics = gradient_matching.critics_of(state)
    targets = {"scale": tf.constant(SCALE), "wide": [tf.constant(a) for a in critics.wide()]}
    targets |= {"means": tf.constant(0.0), "stds": tf.constant(1.0)}
    matching = gradient_matching._Matching(LAYOUT, settings, 3)
    logits = tf.constant(state.arrays["points"])
    points = gradient_matching._points(logits, LAYOUT)
    seeds = [tf.constant([15, i]) for i in range(400)]
    from_targets, difference = tf.function(matching._from_targets), tf.function(matching._difference)
    drawn = np.stack([from_targets(points, targets, seed) for seed in seeds])
    exact = np.mean(drawn.mean(axis=0) ** 2) - np.mean(drawn.var(axis=0)) / len(seeds)
    found = np.mean([difference(logits, targets, seed) for seed in seeds])
    assert abs(found - exact) < 0.2 * np.mean(drawn.var(axis=0))


@pytest.mark.slow
def test_a_fit_without_a_base_model_keeps_associations(model):
    """Catches points that do not reach the samples, or lose the outcome: ward a is for the dead."""
    assert isinstance(model.model_.sampler, Matched)
    assert model.history_["step"].iloc[-1] == 80 and model.history_["difference"].iloc[-1] < 1.5
    frame = model.sample(2000, random_state=1)
    died = frame["died"] == "yes"
    assert frame.loc[died, "age"].mean() > frame.loc[~died, "age"].mean() + 8
    assert (frame.loc[died, "ward"] == "a").mean() > (frame.loc[~died, "ward"] == "a").mean() + 0.15


def test_the_ledger_has_the_critics_as_steps(model):
    """Catches a cost of other steps than those that were made, and words of another training."""
    entry = model.ledger_.entries[-1]
    assert entry.event.count == 16 and "Poisson" not in entry.detail
    assert entry.sensitivity.startswith("proved for each random critic")
    assert model.ledger_.epsilon(model.delta_) <= 3.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": None},
        {"noise_shape": "spherical"},
    ],
    ids=str,
)
def test_every_noise_is_matched(options):
    """Catches a fit without noise, and other noise."""
    model = fitted(**options)
    differences = model.history_["difference"].tolist()
    assert differences[-1] < 1.5 or model.ledger_.not_private
    assert set(model.sample(300, random_state=0)["died"]) == {"no", "yes"}


def test_a_private_number_of_records_sets_the_batch():
    """Catches the table's length in place of the noisy count, which is all that a fit may know."""
    with pytest.MonkeyPatch.context() as patch:
        seen = []
        call = GradientRelease.__call__

        def watched(self, blocks, rng):
            seen.append(self.plan.expected_batch)
            return call(self, blocks, rng)

        patch.setattr(gradient_matching, "matched", lambda state, *_: state)
        patch.setattr(GradientRelease, "__call__", watched)
        schema = Schema(columns=SCHEMA.columns, outcome="died")
        model = dpsynth.DPCriticMatching(epsilon=1.0, critics=2, random_state=0)
        model.fit(table(), schema=schema)
    assert seen == [model.n_] and model.n_ != 600


def test_every_record_reaches_the_critics_once(monkeypatch):
    """Catches records of a block that are left out or come twice, from the second or third block on."""
    seen = []

    def watched(self, blocks):
        seen.append(np.concatenate(list(blocks)))
        return np.zeros(self.centres_and_stds[1].shape, np.int64), 600

    monkeypatch.setattr(gradient_matching, "matched", lambda state, *_: state)
    monkeypatch.setattr(GradientRelease, "sums", watched)
    for block in (generator._BLOCK, 170):
        monkeypatch.setattr(generator, "_BLOCK", block)
        fitted(critics=2)
    np.testing.assert_array_equal(seen[0], seen[1])
    assert len(seen[0]) == 600


@pytest.mark.parametrize("n", [0, 1, 799, 2500])
def test_any_number_is_sampled(model, n):
    """Catches a number of records that is bound to the number of points."""
    assert model.sample(n, random_state=0).shape == (n, 3)


def test_points_stay_in_the_cube(model):
    """Catches jitter that leaves the unit cube, and jitter on probabilities."""
    wild = MatchedPoints(model.model_.sampler.points.points, 0.9)
    points = wild.sample(3000, 1, np.random.default_rng(0))
    assert points.min() >= 0 and points.max() <= 1 and points.dtype == np.float32
    np.testing.assert_allclose(points[:, 1:4].sum(axis=1), 1.0, atol=1e-5)


WITHOUT_TENSORFLOW = """
import sys
sys.modules["tensorflow"] = None  # an import of it fails
import dpsynth
dpsynth.load(sys.argv[1]).sample(50, random_state=3).to_pickle(sys.argv[2])
"""


@pytest.mark.slow
def test_a_saved_model_samples_the_same_without_tensorflow(model, tmp_path):
    """Catches points that are not saved, and sampling that waits for TensorFlow."""
    model.save(tmp_path / "m")
    command = [sys.executable, "-c", WITHOUT_TENSORFLOW, str(tmp_path / "m"), str(tmp_path / "sample")]
    subprocess.run(command, check=True, cwd=tmp_path)
    pd.testing.assert_frame_equal(pd.read_pickle(tmp_path / "sample"), model.sample(50, random_state=3))


@pytest.mark.parametrize("critics", [0, 1000])
def test_too_many_critics_are_refused(critics):
    """Catches a thousand critics in memory at once, or none that anything is matched to."""
    with pytest.raises(InputError, match=r"^critics must be "):
        fitted(critics=critics)


def float32_share(values):
    """Share of numbers that are float32 numbers, up to the rounding of a float64 sum."""
    near = values.astype(np.float32).astype(np.float64)
    return float((abs(values - near) < 2.0**-36 * abs(values)).mean())


def test_last_digits_reveal_no_table():
    """Catches noise in floating point: digits of (R - sum) / std tell which of two tables was read.

    The noise is so large that the size of the numbers tells nothing. Of 40 guesses at random, 33 are right
    with a probability of 2e-5.
    """
    release = release_of(critics=4, noise_multiplier=400.0)
    rng = np.random.default_rng(12)
    points = records(30, rng)
    tables = (points, points[1:])
    quiet = dataclasses.replace(release, plan=dataclasses.replace(release.plan, noise_multiplier=None))
    exact = [quiet([table], rng).means for table in tables]
    right = 0
    for read in rng.integers(0, 2, 40):
        found = release([tables[read]], rng)
        noises = [gradient_matching._SMALLER * (found.means - sums) / found.stds for sums in exact]
        shares = [float32_share(noise) for noise in noises]
        guess = rng.integers(0, 2) if shares[0] == shares[1] else int(shares[1] > shares[0])
        right += guess == read
    assert right <= 32
