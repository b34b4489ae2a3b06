"""Every reading of the records stands in the ledger before it is made, and n is never a length."""

from __future__ import annotations

from dataclasses import replace
from shutil import copytree

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import dp_marginals

from dpsynth import DPWGANGP, Column, DPCriticMatching, DPMarginals, Schema, TrainingSettings
from dpsynth.files.codec import apart
from dpsynth.marginals.statistics import MarginalsRelease
from dpsynth.privacy import Ledger
from dpsynth.privacy.noise import generator_state, secure_generator
from dpsynth.privacy.records import FrameRecords
from dpsynth.privacy.release import Plan
from dpsynth.synthesis import training as critic
from dpsynth.wgan.history import TrainingHistory

pytestmark = pytest.mark.usefixtures("projected")
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="group", kind="categorical", categories=("a", "b", "c")),
        Column(name="stage", kind="ordinal", categories=(1, 2, 3)),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    outcome="died",
    n_public=300,
)
SMALL = TrainingSettings(
    critic_hidden=(4,), generator_hidden=(4,), latent=2, activation="leaky_relu", bjorck_steps=0
)


def table(n=300):
    rng = np.random.default_rng(n)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 91, n),
            "group": rng.choice(list("abc"), n),
            "stage": rng.integers(1, 4, n),
            "died": rng.choice(["no", "yes"], n),
        }
    )


class Stopped(Exception):
    """Raised in place of a reading."""


#: What a fit with everything reads, in order.
READINGS = [
    "number of records",
    "single-column counts",
    "base model edges",
    "base model tables",
    "pairwise statistics",
]
#: What a training of the WGAN reads.
OF_WGAN = ["number of records", "single-column counts", "WGAN critic steps"]


@pytest.mark.parametrize(
    ("model", "readings"),
    [
        (dp_marginals(1.0, 1e-5, pairwise_statistics=True), READINGS),
        (DPWGANGP(1.0, 1e-5, steps=4, training=SMALL), OF_WGAN),
        (DPCriticMatching(1.0, 1e-5, critics=2), OF_WGAN),
    ],
    ids=["marginals", "wgan-gp", "matching"],
)
def test_nothing_is_read_before_it_is_posted(monkeypatch, unrefined, model, readings):
    """Catches a reading that a crash, or a look at its result, could keep out of the ledger."""
    ledger, posted = Ledger(), []
    for name in ("_size", "_counts", "_sums", "_rows", "_frame"):
        read = getattr(FrameRecords, name)

        def watched(self, *args, read=read):
            posted.append([entry.name for entry in ledger.entries])
            if len(posted) == len(readings):
                raise Stopped
            return read(self, *args)

        monkeypatch.setattr(FrameRecords, name, watched)
    with pytest.raises(Stopped):
        model.fit(table(), schema=SCHEMA.with_n_public(None), ledger=ledger)
    assert posted == [readings[: k + 1] for k in range(len(readings))]
    assert [entry.name for entry in model.ledger_.entries] == readings


class Watched(Ledger):
    """A ledger that keeps what it runs."""

    def __init__(self):
        super().__init__()
        self.ran = {}

    def run(self, release, records, rng):
        released = super().run(release, records, rng)
        self.ran[release.name] = (release, released, rng)
        return released


def test_releases_use_the_public_number_of_records(monkeypatch, unrefined):
    """Catches the frame's length where the public or noisy number belongs, in any release or in training."""
    monkeypatch.setattr(
        critic,
        "train_generator",
        lambda records, plan, rng, training, state: (training.model, TrainingHistory()),
    )
    trains = DPWGANGP(epsilon=2.0, steps=4, batch_size=60, training=SMALL)
    for model in (DPMarginals(epsilon=2.0), trains):
        ledger = Watched()
        model.fit(table(270), schema=SCHEMA, ledger=ledger)
        assert (
            model.n_ == ledger.ran["single-column counts"][0].n == model.model_.encoder.marginals.n == 300.0
        )
        if model is trains:
            plan = ledger.ran["WGAN critic steps"][0].plan
            assert (plan.expected_batch, plan.sampling_prob * 300) == (60.0, 60.0)
        else:
            assert ledger.ran["base model edges"][0].given.n == 300.0


class Told(Watched):
    """A ledger that gives numbers released before, and reads nothing."""

    def __init__(self, ran):
        super().__init__()
        self.told = ran

    def run(self, release, records, rng):
        return self.told[release.name][1]


@pytest.mark.slow
@pytest.mark.parametrize("refined", [True, False])
def test_rules_and_places_within_bins_read_no_records(refined):
    """Catches rules, factors of rules or couplings that look at the table: all follow from noisy numbers."""
    rules = ("age <= 60 or died = yes", "group = a implies stage = 1")
    schema = SCHEMA.model_copy(update={"constraints": rules})
    whole = table()
    lawful = whole[~np.logical_or.reduce([rule.broken(schema.conform(whole).frame) for rule in schema.rules])]
    first = Watched()
    dp_marginals(2.0, 1e-5, random_state=0, pairwise_statistics=refined).fit(
        whole, schema=schema, ledger=first
    )
    states = []
    for records in (whole, lawful.sample(300, replace=True, random_state=0)):
        model = dp_marginals(2.0, 1e-5, random_state=0, pairwise_statistics=refined)
        model.fit(records, schema=schema, ledger=Told(first.ran))
        states.append((apart(model.model_), model.sample(500, random_state=0)))
    ((record, arrays), sample), ((other, others), again) = states
    assert record == other and record["sampler"]["records"]["ruled"] and arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name])
    pd.testing.assert_frame_equal(sample, again)


def test_no_record_is_a_public_point(monkeypatch):
    """Catches records as the public points of the penalty: used without noise."""
    settings = replace(SMALL, penalty="public", critic_constraint="none")
    model = DPMarginals(epsilon=1.0, delta=1e-5)
    model = model.fit(table(), schema=SCHEMA)
    training = critic.Training(model.model_, critic.Alternating(settings), np.random.default_rng(0), dict)
    plan = Plan(sampling_prob=0.5, expected_batch=150.0, steps=2, noise_multiplier=1.0)
    given = []

    def look(points, layout, settings, plan, *, bank, scale):
        given.append((points, bank))
        raise Stopped

    monkeypatch.setattr("dpsynth.wgan.training.TrainingRun", look)
    for records in (table(300), table(20)):
        own = FrameRecords(SCHEMA.conform(records).frame)
        with pytest.raises(Stopped), own.opened():
            critic.trained_state(own, plan, np.random.default_rng(1), training)
    (points, bank), (others, again) = given
    assert len(points) == 300 and len(others) == 20  # another table, and the same public points
    np.testing.assert_array_equal(bank, again)


def test_noise_comes_from_the_operating_system(unrefined):
    """Catches a fit whose noise has a seed although none was given, or is drawn by a generator of its own."""
    first, second = (
        dp_marginals(epsilon=1.0, delta=1e-5, pairwise_statistics=every).fit(
            table(), schema=SCHEMA.with_n_public(None), ledger=Watched()
        )
        for every in (True, False)
    )
    assert list(first.ledger_.ran) == READINGS
    kinds = {type(rng.bit_generator) for _, _, rng in first.ledger_.ran.values()}
    assert kinds == {type(secure_generator().bit_generator)}
    a, b = (model.model_.encoder.marginals.probabilities[-1] for model in (first, second))
    assert not np.allclose(a, b)
    assert not first.ledger_.seeded


def test_a_resumed_run_goes_on_with_its_noise(tmp_path, monkeypatch):
    """Catches records that are encoded otherwise than before, or two runs that cannot be told apart.

    `test_resume` compares the models.
    """
    drawn = []

    def train(records, plan, rng, training, state):
        model, settings = training.model, training.trainer.settings
        start = generator_state(rng)
        drawn.append(rng.random(4).tolist())
        if len(drawn) > 1:
            return model, TrainingHistory()
        from dpsynth.wgan.checkpoint import Interrupted, recognised, write_checkpoint
        from dpsynth.wgan.state import TrainingState
        from dpsynth.wgan.training import initial_state

        arrays = initial_state(model.encoder.layout, settings, rng=rng).arrays
        left = Interrupted.of(TrainingState(arrays, 10), plan, recognised(records), start)
        write_checkpoint(training.checkpoint, training.saved(model, TrainingHistory(), left))
        raise KeyboardInterrupt

    monkeypatch.setattr(critic, "train_generator", train)
    model = DPWGANGP(1.0, 1e-5, steps=40, training=SMALL)
    with pytest.raises(KeyboardInterrupt):
        model.fit(table(), schema=SCHEMA, checkpoint=tmp_path / "c")
    copytree(tmp_path / "c", tmp_path / "copied")
    resumed = DPWGANGP.resume(tmp_path / "c", table())
    assert drawn[0] == drawn[1]
    assert resumed.ledger_.counts(model.ledger_)
    assert resumed.ledger_.epsilon(1e-5) == model.ledger_.epsilon(1e-5)  # one continuation costs nothing more
    other = DPWGANGP.resume(tmp_path / "copied", table())
    assert other.ledger_.entries[-1].keys != resumed.ledger_.entries[-1].keys


def test_a_fit_without_noise_is_posted_as_what_it_is():
    """Catches exact counts that no entry of the ledger tells of: an empty ledger promises everything."""
    model = dp_marginals(epsilon=None).fit(table(), schema=SCHEMA)
    assert model.ledger_.entries and model.ledger_.not_private
    assert str(model.guarantee()).startswith("NOT PRIVATE")
    further = ["choice of further tables", "further tables"]
    assert [entry.name for entry in model.ledger_.entries] == [*READINGS[1:], *3 * further]


def test_the_ledger_tells_the_noise_that_was_drawn():
    """Catches words about other noise than that drawn: a column that is counted twice adds to it."""
    column = Column(name="k", kind="integer", lower=0, upper=5000)
    schema = Schema(columns=(column, Column(name="y", kind="binary", categories=(0, 1))), n_public=20_000)
    release = MarginalsRelease(schema=schema, n=20_000, noise_multiplier=5.0)
    assert release.by_value[0].present == 5001 > release.grids[0].present
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"k": rng.integers(0, 5001, 500), "y": rng.integers(0, 2, 500)})
    records = FrameRecords(schema.conform(frame).frame)
    with records.opened():
        noise = [a - b for a, b in zip(release.measure(records, rng), release.query(records), strict=True)]
    std = float(release.detail.split("about ")[1].split(" of")[0])
    assert np.concatenate(noise).std() == pytest.approx(std, rel=0.1)
    assert "of 20,000" in release.detail
