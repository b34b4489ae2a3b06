"""A sample in parts is one sample: whole, repeatable, and the same whoever drew which part."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import dp_marginals
from dask_workers import process, threads
from modes import mode, open_to_others, usual_umask
from pyarrow import parquet

import dpsynth
from dpsynth import parallel as cluster
from dpsynth.errors import InputError, RejectionError
from dpsynth.synthesis import many_tables as partitioned
from dpsynth.table.schema import Column, Schema

__all__ = ["usual_umask"]
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="crea", kind="continuous", lower=0.1, upper=20, scale="log", missing=True),
        Column(name="sex", kind="binary", categories=("F", "M"), reviewed=True),
        Column(name="stage", kind="categorical", categories=("I", "II", "III"), missing=True, reviewed=True),
    ),
    outcome="sex",
    n_public=500,
)


def fitted(schema=SCHEMA, epsilon=1.0):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 91, 500),
            "crea": np.where(rng.random(500) < 0.2, np.nan, rng.lognormal(0, 1, 500)),
            "sex": rng.choice(["F", "M"], 500),
            "stage": rng.choice(np.array(["I", "II", "III", None], dtype=object), 500),
        }
    )
    return dp_marginals(epsilon, 1e-5, pairwise_statistics=False).fit(frame, schema=schema)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture(scope="module")
def client():
    with threads() as client:
        yield client


def test_parts_hold_the_sample(model, client, tmp_path):
    """Catches parts that are lost, or that are all drawn from one stream."""
    folder = model.sample_to_parts(tmp_path / "s", 3001, partitions=3, client=client, random_state=1)
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == [f"part-0000{i}.parquet" for i in range(3)]
    parts = [pd.read_parquet(file) for file in files]
    assert [len(part) for part in parts] == [1000, 1000, 1001]
    assert len({parquet.read_schema(file).remove_metadata() for file in files}) == 1
    assert list(parts[0].columns) == list(SCHEMA.names)
    assert not parts[0].head(50).equals(parts[1].head(50))
    SCHEMA.check(pd.concat(parts))


def test_a_seed_repeats_the_parts_and_a_saved_model_draws_them_too(model, client, tmp_path):
    """Catches streams that owe something to which worker drew a part, or to the order of drawing."""
    one = model.sample_to_parts(tmp_path / "a", 900, partitions=4, client=client, random_state=7)
    model.save(tmp_path / "model")
    again = dpsynth.load(tmp_path / "model")
    two = again.sample_to_parts(tmp_path / "b", 900, partitions=4, client=client, random_state=7)
    for i in range(4):
        name = f"part-0000{i}.parquet"
        assert (one / name).read_bytes() == (two / name).read_bytes()
    unseeded = [pd.read_parquet(model.sample_to_parts(tmp_path / name, 50, client=client)) for name in "cd"]
    assert not unseeded[0].equals(unseeded[1])


@pytest.mark.parametrize(("n", "partitions", "rows"), [(0, 2, [0, 0]), (1, 3, [0, 0, 1]), (5, None, [5])])
def test_few_records(model, client, tmp_path, n, partitions, rows):
    folder = model.sample_to_parts(tmp_path / "s", n, partitions=partitions, client=client)
    assert [parquet.read_metadata(file).num_rows for file in sorted(folder.iterdir())] == rows
    assert len(SCHEMA.check(pd.read_parquet(folder))) == n


@pytest.mark.slow
def test_conditions_and_constraints_hold_in_every_part(client, tmp_path):
    """Catches parts that forget the rules, and an acceptance that counts one part only."""
    ruled = fitted(Schema(**{**dict(SCHEMA), "constraints": ("age >= 30",)}))
    folder = ruled.sample_to_parts(
        tmp_path / "s", 4000, partitions=2, client=client, where={"sex": "F"}, random_state=0
    )
    frame = pd.read_parquet(folder)
    assert (frame["age"] >= 30).all() and (frame["sex"] == "F").all() and len(frame) == 4000
    taken = ruled.acceptance_
    assert taken.selected >= 4000 and taken.candidates >= taken.obey_all >= 4000 and taken.moved is not None
    assert taken.lines()[-2].endswith("fulfil sex == 'F'")
    never = "crea > 19 and crea < 19.01 and age = 33 and stage is missing"
    with pytest.raises(RejectionError, match="nearly impossible under the model"):
        ruled.sample_to_parts(tmp_path / "t", 400_000, client=client, where=never)
    assert not (tmp_path / "t").exists()


def test_what_is_refused(model, client, tmp_path):
    with pytest.raises(InputError, match="n_samples must be a whole number of at least 0, not -1"):
        model.sample_to_parts(tmp_path / "s", -1, client=client)
    with pytest.raises(InputError, match="partitions must be a whole number of at least 1, not 0"):
        model.sample_to_parts(tmp_path / "s", 1, partitions=0, client=client)
    with pytest.raises(InputError, match="no declared values fulfil it"):
        model.sample_to_parts(tmp_path / "s", 1, client=client, where="age > 90")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "mine.txt").touch()
    with pytest.raises(InputError, match="exists and is not empty"):
        model.sample_to_parts(tmp_path / "s", 1, client=client)
    assert [file.name for file in tmp_path.iterdir()] == ["s"]


def test_a_void_guarantee_lies_in_the_folder(client, tmp_path):
    folder = fitted(epsilon=None).sample_to_parts(tmp_path / "s", 10, client=client)
    assert (folder / "NOT_PRIVATE.txt").read_text().startswith("NOT PRIVATE")


def test_parts_may_be_read_by_others_under_a_guarantee(model, client, tmp_path, usual_umask):
    """Catches parts to share that nobody else can read, or parts as confidential as the records."""
    model.sample_to_parts(tmp_path / "s", 10, client=client)
    assert open_to_others(tmp_path) == {"s", "s/part-00000.parquet"}
    fitted(epsilon=None).sample_to_parts(tmp_path / "t", 10, client=client)
    assert open_to_others(tmp_path / "t") == {"NOT_PRIVATE.txt"} and mode(tmp_path / "t") == 0o700


@pytest.mark.slow
def test_a_worker_killed_while_it_draws_is_survived(model, client, tmp_path):
    """Catches a part that is lost or torn with its worker, and another draw in its place."""
    whole = model.sample_to_parts(tmp_path / "a", 60_000, partitions=6, client=client, random_state=3)
    with cluster.connected(workers=2, memory="1GB") as workers:
        victim = next(iter(workers.run(process).values()))

        def kill():
            while not list(tmp_path.glob(".b.*.tmp/part-*.parquet")):
                time.sleep(0.01)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        parts = model.sample_to_parts(tmp_path / "b", 60_000, partitions=6, client=workers, random_state=3)
        killer.join()
        assert victim not in workers.run(process).values()
    assert sorted(file.name for file in parts.iterdir()) == sorted(file.name for file in whole.iterdir())
    for file in whole.iterdir():
        assert file.read_bytes() == (parts / file.name).read_bytes()


def test_default_number_of_parts():
    assert [sum(1 for _ in partitioned.part_files(n, None, 0)) for n in (0, 1, 10**6, 10**6 + 1)] == [
        1,
        1,
        1,
        2,
    ]
