"""A fit of a table in parts is the fit of the same table in memory."""

from __future__ import annotations

import errno
import json
import os
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import dp_marginals
from dask_workers import threads
from visits import VISITS, visits

import dpsynth
from dpsynth.errors import DataError, InputError, OwnerWarning, PrivacyError, RunError
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.records import PartitionedRecords
from dpsynth.synthesis.check_inputs import records_of
from dpsynth.table.parquet import ParquetTable
from dpsynth.table.schema import Column, Schema
from dpsynth.wgan.settings import TrainingSettings

SMALL = TrainingSettings(critic_hidden=(8,), generator_hidden=(8,), latent=3)
pytestmark = pytest.mark.usefixtures("projected")
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="months", kind="integer", lower=216, upper=1080, derived="age * 12"),
        Column(name="crea", kind="continuous", lower=0.1, upper=20, scale="log", missing=True),
        Column(name="hb", kind="continuous", lower=3, upper=22, decimals=1, missing=True),
        Column(name="stage", kind="categorical", categories=("I", "II", "III"), missing=True),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    outcome="died",
    n_public=600,
    constraints=("age >= 20",),
)


@pytest.fixture(scope="module")
def client():
    with threads() as client:
        yield client


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(10, 99, 600),
            "crea": np.where(rng.random(600) < 0.2, np.nan, rng.lognormal(0, 1, 600)),
            "hb": np.where(rng.random(600) < 0.2, np.nan, rng.normal(13, 2, 600).round(1)),
            "stage": rng.choice(np.array(["I", "II", "III", None], dtype=object), 600),
            "died": rng.choice(["no", "yes"], 600),
        }
    )


@pytest.fixture
def folder(frame, tmp_path):
    path = tmp_path / "parts"
    path.mkdir()
    for i, (start, stop) in enumerate([(0, 1), (1, 1), (1, 400), (400, 600)]):
        frame.iloc[start:stop].to_parquet(path / f"{i}.parquet", index=False, row_group_size=150)
    return path


def opened(folder, client, schema=SCHEMA):
    return PartitionedRecords(ParquetTable(folder), schema, client)


def estimator(**options):
    return dp_marginals(1.0, 1e-5, **{"pairwise_statistics": False, "random_state": 5, **options})


def trained(**options):
    return dpsynth.DPWGANGP(1.0, 1e-5, training=SMALL, random_state=5, **options)


@pytest.mark.slow
@pytest.mark.parametrize(("base_model", "n_public"), [("tan", None), ("tree", 600)])
def test_the_same_noise_gives_the_same_bytes(base_model, n_public, frame, folder, client, tmp_path):
    """Catches counts, noise or postings that differ between a table in memory and one in parts."""
    schema = SCHEMA.with_n_public(n_public)
    estimator(base_model=base_model).fit(frame, schema=schema).save(tmp_path / "memory")
    parts = opened(folder, client, schema)
    estimator(base_model=base_model).fit(parts, schema=schema).save(tmp_path / "dask")
    texts = [(tmp_path / name / "model.json").read_text() for name in ("memory", "dask")]
    # keys are drawn at random, and the record's checksum is of them too
    keys = [re.sub(r'"[0-9a-f]{16}"|"sha256": "[0-9a-f]{64}"', "", text) for text in texts]
    assert keys[0] == keys[1]
    assert (tmp_path / "memory/model.npz").read_bytes() == (tmp_path / "dask/model.npz").read_bytes()
    entries = json.loads(texts[1])["ledger"]["entries"]
    assert len(entries) == 3 + (n_public is None)


@pytest.mark.slow
def test_the_same_noise_gives_the_same_statistics(frame, folder, client):
    """Statistics of one part alone, by which tables are chosen, or whose noise is drawn part by part."""
    odd = (frame["age"] > 54) ^ (frame["crea"] > 1) ^ (frame["hb"] > 13)
    linked = frame.assign(died=np.where(odd, "yes", "no"))
    for k, (start, stop) in enumerate([(0, 1), (1, 1), (1, 400), (400, 600)]):
        linked.iloc[start:stop].to_parquet(folder / f"{k}.parquet", index=False, row_group_size=150)
    options = {"epsilon": 40.0, "pairwise_statistics": True}
    memory = dp_marginals(delta=1e-5, random_state=5, **options).fit(linked, schema=SCHEMA)
    parts = dp_marginals(delta=1e-5, random_state=5, **options).fit(opened(folder, client), schema=SCHEMA)
    chains = [model.model_.chain for model in (memory, parts)]
    np.testing.assert_array_equal(chains[0].pairs.mean, chains[1].pairs.mean)
    for one, other in zip(*(chain.conditionals for chain in chains), strict=True):
        np.testing.assert_array_equal(one.base, other.base)
    assert [str(entry) for entry in parts.ledger_.entries] == [str(entry) for entry in memory.ledger_.entries]
    further = ["choice of further tables", "further tables"]
    assert [entry.name for entry in parts.ledger_.entries[3:]] == ["pairwise statistics", *3 * further]


@pytest.mark.slow
def test_the_same_noise_gives_the_same_estimates(frame, folder, client, few_draws):
    """Scores that lack parts or columns that they need, or whose noise is drawn part by part."""
    studies = [
        {"name": "death", "model": "died ~ months + crea where stage != 'I'"},
        {"name": "blood", "model": "linear: hb ~ age"},
        {"name": "time", "model": "cox: (age, died) ~ hb + log(crea)", "intervals": [60]},
    ]
    also = [dpsynth.Studies(studies)]
    memory = estimator().fit(frame, schema=SCHEMA, also=also)
    parts = estimator().fit(opened(folder, client), schema=SCHEMA, also=also)
    for a, b in zip(memory.estimates_, parts.estimates_, strict=True):
        assert a.terms == b.terms and a.formula == b.formula
        np.testing.assert_array_equal(b.coefficients, a.coefficients)
        np.testing.assert_array_equal(b.covariance, a.covariance)
    assert [str(entry) for entry in parts.ledger_.entries] == [str(entry) for entry in memory.ledger_.entries]


@pytest.mark.slow
@pytest.mark.usefixtures("eager_steps")
def test_the_same_noise_gives_the_same_critic_steps(frame, folder, client, tmp_path, monkeypatch):
    """Catches records encoded otherwise, in another order or sampled otherwise where they lie in parts.

    Also a run on parts that an interrupt loses, or that goes on with other records.
    """
    monkeypatch.setattr("dpsynth.wgan.training._CHUNK_STEPS", 2)
    memory = trained(steps=8).fit(frame, schema=SCHEMA)
    monkeypatch.setattr("dpsynth.wgan.training._HELD", 0)
    monkeypatch.setattr("dpsynth.privacy.records.IN_MEMORY", 0)
    parts = trained(steps=8).fit(opened(folder, client), schema=SCHEMA)
    for own, other in zip(memory.model_.sampler.weights, parts.model_.sampler.weights, strict=True):
        np.testing.assert_array_equal(own[0], other[0])
        np.testing.assert_array_equal(own[1], other[1])
    assert [str(entry) for entry in parts.ledger_.entries] == [str(entry) for entry in memory.ledger_.entries]

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        left = trained(steps=8)
        left.fit(opened(folder, client), schema=SCHEMA, checkpoint=tmp_path / "c", progress=stop)
    with pytest.raises(InputError, match="opened with"):
        dpsynth.DPWGANGP.resume(tmp_path / "c", opened(folder, client, SCHEMA.with_n_public(601)))
    again = dpsynth.DPWGANGP.resume(tmp_path / "c", opened(folder, client))
    assert [entry.event for entry in again.ledger_.entries] == [
        entry.event for entry in parts.ledger_.entries
    ]


@pytest.mark.slow
def test_every_block_of_records_is_matched(frame, folder, client, monkeypatch):
    """Catches records of a later block that are left out of the gradients, or those of the first again.

    In memory and in parts, where the last block has one record.
    """
    seen = []

    def stop(state, *rest):
        seen.append(state.arrays["means"])
        raise RunError("enough")

    monkeypatch.setattr("dpsynth.wgan.matching.matched", stop)
    monkeypatch.setattr("dpsynth.privacy.records.IN_MEMORY", 0)
    for block, records in ((600, frame), (599, frame), (599, opened(folder, client))):
        monkeypatch.setattr("dpsynth.synthesis.matching._BLOCK", block)
        with pytest.raises(RunError, match="enough"):
            dpsynth.DPCriticMatching(1.0, 1e-5, critics=20, random_state=5).fit(records, schema=SCHEMA)
    for blocks in seen[1:]:
        np.testing.assert_array_equal(blocks, seen[0])


def test_points_without_room_cost_nothing(folder, client, tmp_path, monkeypatch):
    """Catches a disk that is full after the budget is spent, or that ends the process."""
    monkeypatch.setattr("dpsynth.synthesis.check_inputs.IN_MEMORY", 0)
    monkeypatch.setattr("shutil.disk_usage", lambda place: SimpleNamespace(free=600 * 4 * 8 - 1))
    ledger = Ledger()
    with pytest.raises(InputError, match=r"file of 0\.0 GB \(confidential\)\. .* Set TMPDIR"):
        trained(steps=20).fit(opened(folder, client), schema=SCHEMA, ledger=ledger)
    assert not ledger.entries

    def full(file, start, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.undo()
    monkeypatch.setattr(os, "posix_fallocate", full)
    monkeypatch.setattr("dpsynth.privacy.records.IN_MEMORY", 600 * 8)  # for the checkpoint's hashes
    with pytest.raises(RunError, match=r"need 0\.0 GB \(confidential\) in .*: No space left"):
        model = trained(steps=20)
        model.fit(opened(folder, client), schema=SCHEMA, checkpoint=tmp_path / "c")
    assert json.loads((tmp_path / "c/checkpoint.json").read_text())["interrupted"]["step"] == 0


@pytest.mark.slow
def test_the_same_noise_gives_the_same_patients(client, tmp_path):
    """Catches rows that are counted as patients, other random rows, and regressions of rows by part."""
    schema, frame = VISITS.model_copy(update={"keep": "random"}), visits(300, seed=4)
    for k in range(3):
        frame[frame["id"] % 3 == k].to_parquet(tmp_path / f"{k}.parquet", index=False, row_group_size=90)
    studies = ["linear: weight ~ sex + day", "logistic: sex ~ rows"]
    memory, parts = (
        estimator().fit(table, schema=schema, also=[dpsynth.Studies(studies)])
        for table in (frame, opened(tmp_path, client, schema))
    )
    assert [str(entry) for entry in parts.ledger_.entries] == [str(entry) for entry in memory.ledger_.entries]
    assert parts.n_ == memory.n_ != 300
    for a, b in zip(
        memory.model_.encoder.marginals.probabilities,
        parts.model_.encoder.marginals.probabilities,
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(memory.model_.trajectories.tables, parts.model_.trajectories.tables, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(memory.estimates_, parts.estimates_, strict=True):
        np.testing.assert_array_equal(b.coefficients, a.coefficients)


def test_nothing_is_spent_on_a_patient_in_two_files(client, tmp_path):
    """Catches a budget that is spent before it is seen that a patient would count twice."""
    frame = visits(60, seed=4)
    frame[:100].to_parquet(tmp_path / "0.parquet")
    frame[99:].to_parquet(tmp_path / "1.parquet")
    ledger = Ledger()
    with pytest.raises(DataError, match=r"1\.parquet hold rows of one patient"):
        estimator().fit(opened(tmp_path, client, VISITS), schema=VISITS, ledger=ledger)
    assert not ledger.entries


@pytest.mark.parametrize(("n_public", "message"), [(150, "has 60 patients"), (60, None)])
def test_n_public_is_compared_with_the_patients_of_all_files(n_public, message, client, tmp_path):
    """Catches a number of rows, or of the patients of one file, that is taken for that of patients."""
    frame = visits(60, seed=4)
    for k in range(2):
        frame[frame["id"] % 2 == k].to_parquet(tmp_path / f"{k}.parquet")
    schema = VISITS.with_n_public(n_public)
    parts, options = opened(tmp_path, client, schema), estimator().validate()
    if message is None:
        assert records_of(parts, schema, options, accept_n_public=False)[0] is parts
        return
    with pytest.raises(DataError, match=f"n_public is 150, but the table to fit {message}"):
        records_of(parts, schema, options, accept_n_public=False)


@pytest.mark.slow
def test_noise_is_drawn_afresh_without_a_seed(folder, client):
    models = [estimator(random_state=None).fit(opened(folder, client), schema=SCHEMA) for _ in range(2)]
    a, b = (model.model_.encoder.marginals.probabilities[0] for model in models)
    assert models[0].guarantee().private and not np.array_equal(a, b)


@pytest.mark.parametrize(
    ("options", "schema", "change", "message"),
    [
        ({}, SCHEMA.with_n_public(601), {}, "not the one that the records in parts were opened with"),
        (
            {},
            SCHEMA,
            {"died": "perhaps"},
            r"3\.parquet, counted within rows 151 to 200: column 'died', row 50",
        ),
        ({}, SCHEMA, {"died": None}, r"the value is missing, and the schema does not allow that"),
    ],
)
def test_nothing_is_spent_on_a_fit_that_cannot_be(options, schema, change, message, folder, client):
    """Catches a budget that is spent before it is seen that the table cannot be fitted."""
    last = pd.read_parquet(folder / "3.parquet")
    for column, value in change.items():
        last[column] = last[column].astype(object)
        last.loc[199, column] = value
    last.to_parquet(folder / "3.parquet", index=False, row_group_size=150)
    ledger = Ledger()
    with pytest.raises(InputError, match=message):
        trained(steps=20).fit(opened(folder, client), schema=schema, ledger=ledger)
    assert not ledger.entries


def test_n_public_is_compared_with_what_the_files_say(folder, client):
    far = SCHEMA.with_n_public(1200)
    with pytest.raises(DataError, match=r"n_public is 1,200, but the table to fit has 600 rows"):
        estimator().fit(opened(folder, client, far), schema=far)
    with pytest.warns(OwnerWarning, match="600 rows"):
        estimator().fit(opened(folder, client, far), schema=far, accept_n_public=True)


def test_a_person_in_several_rows_is_said(folder, client):
    """Repeats that are seen in no part by itself."""
    for file in sorted(folder.glob("*.parquet")):
        frame = pd.read_parquet(file)
        frame.assign(MRN=range(len(frame))).to_parquet(file, index=False)
    schema = Schema(**{**dict(SCHEMA), "other_columns": "ignore"})
    with pytest.warns(OwnerWarning, match="MRN: 600 rows have 399 different values, one of them 3 times"):
        estimator().fit(opened(folder, client, schema), schema=schema)


def test_unreviewed_fields_are_refused_before_the_table_is_read(folder, client, monkeypatch):
    columns = (SCHEMA.columns[0].model_copy(update={"unreviewed": ("lower",)}), *SCHEMA.columns[1:])
    drafted = Schema(**{**dict(SCHEMA), "columns": columns})
    records = opened(folder, client, drafted)
    monkeypatch.setattr(records, "check", lambda: pytest.fail("the records were read"))
    with pytest.raises(PrivacyError, match="age"):
        estimator().fit(records, schema=drafted)
