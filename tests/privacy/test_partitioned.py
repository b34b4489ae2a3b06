"""A table in parts answers what the same table in memory answers, whatever happens to its workers."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from dataclasses import replace
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pytest
from dask_workers import DyingAxis, process, threads
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table_strategies import random_frame, schemas
from visits import STAYS, VISITS, WARDS, stays, visits, wards

from dpsynth import parallel as cluster
from dpsynth.errors import DataError, InputError, PrivacyError, RunError
from dpsynth.marginals.statistics import make_grids
from dpsynth.patients.reader import reader_of
from dpsynth.privacy.records import FrameRecords, GridAxis, MissingAxis, PartitionedRecords, ResidueAxis
from dpsynth.table import parquet
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=99),
        Column(name="crea", kind="continuous", lower=0.1, upper=20, scale="log", missing=True),
        Column(name="sex", kind="binary", categories=("F", "M"), missing=True),
    ),
    outcome="sex",
)


@pytest.fixture(scope="module")
def client():
    with threads() as client:
        yield client


@pytest.fixture(scope="module")
def processes():
    with cluster.connected(workers=2, memory="1GB") as client:
        yield client


def write_parts(frame, folder, ends, row_group_size=None):
    """Files that hold the frame's records from each end to the next."""
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    for i, (start, stop) in enumerate(itertools.pairwise([0, *sorted(ends), len(frame)])):
        frame.iloc[start:stop].to_parquet(
            folder / f"{i:03d}.parquet", index=False, row_group_size=row_group_size
        )
    return folder


def every_table(schema):
    """One table a column, its residues, one of all pairs, one of coarse bins, one of missing values."""
    grids = make_grids(schema)
    axes = [GridAxis(grid) for grid in grids]
    coarse = [GridAxis(grid, np.arange(grid.size) // 3) for grid in grids]
    missing = MissingAxis(schema.columns)
    steps = [column for column in schema.columns if column.is_numeric and column.resolution]
    axes += [ResidueAxis(column, width, 10) for column in steps for width in (1, 3)]
    pairs = list(itertools.combinations(coarse, 2))
    return [*((axis,) for axis in axes), *pairs, (missing,), (coarse[0], missing)]


def counts(records, tables):
    with records.opened():
        return records.size(), records.counts(tables)


def assert_same(a, b):
    assert a[0] == b[0] and len(a[1]) == len(b[1])
    for x, y in zip(a[1], b[1], strict=True):
        assert x.dtype == y.dtype and np.array_equal(x, y)


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_counts_are_those_of_the_frame(data, tmp_path, client, monkeypatch):
    """Catches a record that is lost, counted twice or read otherwise in a part than in the whole table."""
    schema = data.draw(schemas())
    n = data.draw(st.integers(0, 40))
    frame = random_frame(schema, n, data.draw(st.integers(0, 2**32 - 1)))
    ends = data.draw(st.lists(st.integers(0, n), max_size=5))
    folder = write_parts(frame, tmp_path / "table", ends, data.draw(st.none() | st.integers(1, 9)))
    monkeypatch.setattr(parquet, "PART_ROWS", data.draw(st.sampled_from([1, 5, 500])))
    monkeypatch.setattr(parquet, "BATCH_ROWS", data.draw(st.sampled_from([1, 7, 500])))
    records = PartitionedRecords(parquet.ParquetTable(folder), schema, client)
    records.check()
    tables = every_table(schema)
    assert_same(counts(records, tables), counts(FrameRecords(schema.conform(frame).frame), tables))


def write_patients(frame, folder, file_of, row_group_size=None):
    """Files of whole patients: the one with number k in the file with number ``file_of[k]``."""
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    place = np.asarray(file_of)[frame["id"]]
    for k in np.unique(place):
        frame[place == k].to_parquet(folder / f"{k:03d}.parquet", index=False, row_group_size=row_group_size)
    return parquet.ParquetTable(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "frame"),
    [
        pytest.param(VISITS, visits(30, seed=2), id="first"),
        pytest.param(VISITS.model_copy(update={"keep": "random"}), visits(30, seed=2), id="random"),
        pytest.param(STAYS.model_copy(update={"keep": "last"}), stays(30, seed=2), id="terminal"),
        pytest.param(WARDS, wards(30, seed=2), id="words"),
    ],
)
@given(data=st.data())
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_counts_of_patients_are_those_in_memory(schema, frame, data, tmp_path, client, monkeypatch):
    """Catches a patient who is cut at a row group, and rows that another reading chooses anew."""
    file_of = data.draw(st.lists(st.integers(0, 3), min_size=30, max_size=30))
    size, seed = data.draw(st.integers(3, 50)), data.draw(st.integers(0, 2**63 - 1))
    monkeypatch.setattr(parquet, "PART_ROWS", data.draw(st.sampled_from([1, 60, 500])))
    monkeypatch.setattr(parquet, "BATCH_ROWS", 7)
    records = PartitionedRecords(write_patients(frame, tmp_path / "table", file_of, size), schema, client)
    tables = every_table(schema.levels)
    # as a fit reads records in memory
    whole = counts(FrameRecords(reader_of(schema, seed).records(frame)), tables)
    assert records.check(seed) == whole[0] == 30
    assert_same(counts(records, tables), whole)


def test_patients_without_a_row_that_is_used(tmp_path, client):
    """Catches a number of patients in files, or of rows, in place of those who are counted."""
    columns = tuple(c.model_copy(update={"missing": c.name != "day"}) for c in VISITS.columns)
    schema = VISITS.model_copy(update={"columns": columns})
    frame = visits(20, seed=3)
    frame.loc[frame["id"] < 7, ["lab", "grade", "weight"]] = None
    records = PartitionedRecords(write_patients(frame, tmp_path / "t", [0] * 7 + [1] * 13), schema, client)
    assert counts(records, [])[0] == 13


@pytest.mark.filterwarnings("ignore::dpsynth.errors.OwnerWarning")  # of whoever would count twice
@pytest.mark.parametrize("kind", [int, str, float, Decimal, lambda number: f" {number} "])
def test_a_patient_in_two_files_is_refused(kind, tmp_path, client):
    """Catches a patient who counts twice in every release, also under another type of identifier."""
    frame = visits(20, seed=3)
    table = write_patients(frame, tmp_path / "t", np.arange(20) % 4)
    PartitionedRecords(table, VISITS, client).check()
    more = pd.read_parquet(tmp_path / "t" / "003.parquet")
    more["id"] = more["id"].map(kind)
    more.loc[len(more)] = more.iloc[0].to_dict() | {"id": kind(12)}
    more.to_parquet(tmp_path / "t" / "003.parquet", index=False)
    said = r"000\.parquet and \S*003\.parquet hold rows of one patient. Write all rows of each patient into"
    with pytest.raises(DataError, match=said + r" one file \(confidential\)$"):
        PartitionedRecords(parquet.ParquetTable(tmp_path / "t"), VISITS, client).check()


def test_records_are_opened_for_one_thread():
    """Catches a thread that reads behind another's posting, and records that stay open after both."""
    records, opened, done = FrameRecords(sample_frame(9)), threading.Event(), threading.Event()

    def other() -> None:
        with records.opened():
            opened.set()
            done.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    opened.wait(10)
    with pytest.raises(PrivacyError, match=r"only be read through Ledger\.run"):
        records.size()
    with records.opened():
        done.set()
        thread.join()
        assert records.size() == 9
    with pytest.raises(PrivacyError, match=r"only be read through Ledger\.run"):
        records.size()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": None}, r"row 4: 'id' is missing, but identifies patients \(confidential\)"),
        ({"grade": "d"}, r"column 'grade', row 4: 'd' is not one of the declared categories"),
    ],
)
def test_a_wrong_row_of_a_patient_is_named_by_the_check(change, message, tmp_path, client):
    """Catches a fit that spends its budget before it meets the row that stops it, and rows of nobody."""
    frame = visits(20, seed=3)
    write_patients(frame, tmp_path / "t", np.arange(20) % 2)
    one = pd.read_parquet(tmp_path / "t" / "001.parquet").astype({"id": object})
    for name, value in change.items():
        one.loc[3, name] = value
    one.to_parquet(tmp_path / "t" / "001.parquet", index=False)
    records = PartitionedRecords(parquet.ParquetTable(tmp_path / "t"), VISITS, client)
    with pytest.raises(DataError, match=rf"001\.parquet, counted within rows 1 to {len(one)}: {message}"):
        records.check()
    one.drop(columns="id").to_parquet(tmp_path / "t" / "001.parquet", index=False)
    with pytest.raises(DataError, match=r"001\.parquet: the table lacks the column 'id', which identifies"):
        PartitionedRecords(parquet.ParquetTable(tmp_path / "t"), VISITS, client)


def sample_frame(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(-5, 110, n),
            "crea": np.where(rng.random(n) < 0.2, np.nan, rng.lognormal(0, 1, n)),
            "sex": rng.choice(np.array(["F", "M", None], dtype=object), n),
        }
    )


def test_values_beyond_the_bounds_missing_words_and_other_columns(tmp_path, client):
    """Catches parts that are not clipped, or a folder's ignored and derived columns that are read."""
    schema = Schema(
        columns=(*SCHEMA.columns, Column(name="old", kind="integer", lower=0, upper=198, derived="age * 2")),
        ignored=("id", "seen"),
        missing_words=("?", "-9"),
        constraints=("age > 3",),
    )
    frame = sample_frame(300).assign(id=range(300), seen=pd.Timestamp("2020-01-01"), old="not read")
    frame["sex"] = frame["sex"].fillna("?")
    frame["crea"] = frame["crea"].fillna(-9)
    table = parquet.ParquetTable(write_parts(frame, tmp_path / "t", [0, 7, 7, 150]))
    records = PartitionedRecords(table, schema, client)
    whole = FrameRecords(schema.modelled.conform(frame.drop(columns="old")).frame)
    tables = every_table(schema.modelled)
    assert_same(counts(records, tables), counts(whole, tables))
    assert counts(records, [(MissingAxis((schema.column("crea"), schema.column("sex"))),)])[1][0][0] < 300


def test_one_file_is_a_table_in_parts_too(tmp_path, client):
    frame = sample_frame(50)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=20)
    records = PartitionedRecords(parquet.ParquetTable(tmp_path / "t.parquet"), SCHEMA, client)
    tables = every_table(SCHEMA)
    assert_same(counts(records, tables), counts(FrameRecords(SCHEMA.conform(frame).frame), tables))


def test_each_pass_opens_a_part_once(tmp_path, client, monkeypatch):
    """Catches a pass over the data for every table."""
    table = parquet.ParquetTable(write_parts(sample_frame(60), tmp_path / "t", [20, 40]))
    opened = []
    batches = parquet._batches
    monkeypatch.setattr(parquet, "_batches", lambda group, s: opened.append(group) or batches(group, s))
    records = PartitionedRecords(table, SCHEMA, client)
    with records.opened():
        records.counts(every_table(SCHEMA))
    assert sorted(group.file.name for group in opened) == ["000.parquet", "001.parquet", "002.parquet"]


@pytest.mark.parametrize("file", ["kilos", "grams"])
def test_sums_of_some_columns_read_these_alone(file, tmp_path, client, monkeypatch):
    """Catches a pass that reads columns which nobody asked for, or lacks what a column is computed from."""
    columns = (
        *SCHEMA.columns,
        Column(name="kg", kind="continuous", lower=0, upper=200),
        Column(name="grams", kind="integer", lower=0, upper=200_000, read_as="kilos * 1000"),
        Column(name="kilos", kind="continuous", lower=0, upper=200, derived="kg * 1"),
    )
    schema, frame = Schema(columns=columns), sample_frame(60)
    frame["kg"] = np.arange(60.0)
    frame[file] = frame["kg"] + 1
    records = PartitionedRecords(
        parquet.ParquetTable(write_parts(frame, tmp_path / "t", [20])), schema, client
    )
    read, batches = set(), parquet._batches

    def noted(group, reader):
        for frame in batches(group, reader):
            read.update(frame.columns)
            yield frame

    monkeypatch.setattr(parquet, "_batches", noted)
    for asked in ({"age"}, {"crea", "grams"}):
        answers = []
        for own in (records, FrameRecords(schema.conform_modelled(frame))):
            with own.opened():
                answers.append(own.sums(partial(totals, columns=sorted(asked)), asked))
        np.testing.assert_array_equal(*answers)
        assert read == (asked if asked == {"age"} else {"age", "crea", "kg", file})


@pytest.mark.parametrize("file", ["stay", "finish"])
def test_columns_that_are_computed_from_each_other_are_read(file, tmp_path, client):
    """Catches a search for the inputs of a column that never ends, as of a stay and the day of discharge."""
    schema = Schema(
        columns=(
            Column(name="start", kind="integer", lower=0, upper=100),
            Column(name="stay", kind="integer", lower=0, upper=90, read_as="finish - start"),
            Column(name="finish", kind="integer", lower=0, upper=190, derived="start + stay"),
        )
    )
    frame = pd.DataFrame({"start": np.arange(40), file: np.arange(40) + 7})
    table = parquet.ParquetTable(write_parts(frame, tmp_path / "t", [20]))
    answers = []
    for own in (
        PartitionedRecords(table, schema, client),
        FrameRecords(schema.conform_modelled(frame)),
    ):
        with own.opened():
            answers.append(own.sums(partial(totals, columns=["stay"]), {"stay"}))
    np.testing.assert_array_equal(*answers)


def totals(table, columns):
    """Whole numbers that depend on each value of these columns."""
    return [np.nan_to_num(table.frame[columns].to_numpy(dtype=float) * 1000).astype(np.int64).sum(axis=0)]


def test_small_row_groups_share_a_part(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "PART_ROWS", 30)
    table = parquet.ParquetTable(write_parts(sample_frame(100), tmp_path / "t", [45], row_group_size=10))
    assert [sum(group.rows for group in part) for part in table.parts] == [30, 25, 30, 15]
    assert table.rows == 100


def test_the_gate_is_closed_outside_a_release(tmp_path, client):
    """Catches a table in parts that answers without a posting, or that hands out its records."""
    records = PartitionedRecords(
        parquet.ParquetTable(write_parts(sample_frame(9), tmp_path / "t", [])), SCHEMA, client
    )
    numbers = partial(records.rows, lambda table, first: table.frame.index.to_numpy())
    for read in (records.size, partial(records.counts, []), records.frame, numbers):
        with pytest.raises(PrivacyError, match=r"only be read through Ledger\.run"):
            read()
    with records.opened(), pytest.raises(InputError, match=r"cannot be read into memory"):
        records.frame()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="crea"), r"002\.parquet: the table lacks the column\(s\) 'crea'"),
        (lambda f: f.assign(name="x"), r"002\.parquet: the table has the column\(s\) 'name' that"),
    ],
)
def test_columns_are_checked_in_every_file_before_any_is_read(change, message, tmp_path, client):
    folder = write_parts(sample_frame(90), tmp_path / "t", [30, 60])
    change(sample_frame(5)).to_parquet(folder / "002.parquet")
    with pytest.raises(DataError, match=message):
        PartitionedRecords(parquet.ParquetTable(folder), SCHEMA, client)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("sex", "X", r"'sex', row 3: 'X' is not one of the declared categories 'F', 'M'"),
        ("age", None, r"'age', row 3: the value is missing, and the schema does not allow that"),
        ("crea", np.inf, r"'crea', row 3: inf is infinite"),
    ],
)
def test_a_wrong_record_is_named_by_the_check(column, value, message, tmp_path, client, monkeypatch):
    """Catches a fit that spends its budget before it meets the record that stops it."""
    monkeypatch.setattr(parquet, "BATCH_ROWS", 20)
    frame = sample_frame(90)
    frame[column] = frame[column].astype(object)
    frame.loc[52, column] = value
    folder = write_parts(frame, tmp_path / "t", [30])
    records = PartitionedRecords(parquet.ParquetTable(folder), SCHEMA, client)
    with pytest.raises(DataError, match=r"001\.parquet, counted within rows 21 to 40: column " + message):
        records.check()


def test_a_wrong_record_is_in_no_log_of_the_cluster(tmp_path, client):
    """Catches a private value in logs that whoever reaches the scheduler can read."""
    frame = sample_frame(90)
    frame["sex"] = frame["sex"].astype(object)
    frame.loc[52, "sex"] = "seventy-seven"
    folder = write_parts(frame, tmp_path / "t", [30])
    records = PartitionedRecords(parquet.ParquetTable(folder), SCHEMA, client)
    with pytest.raises(DataError, match="seventy-seven"):
        records.check()
    assert "seventy-seven" not in str(client.get_worker_logs())


def test_folders_that_hold_no_table(tmp_path):
    with pytest.raises(DataError, match=r"nothing: cannot be read \(No such file or directory\)"):
        parquet.ParquetTable(tmp_path / "nothing")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv").touch()
    with pytest.raises(DataError, match=r"t holds no file that ends with \.parquet"):
        parquet.ParquetTable(tmp_path / "t")
    (tmp_path / "t" / "a.parquet").write_text("age\n" + "40\n" * 9)
    with pytest.raises(DataError, match=r"a\.parquet: not a table: Parquet magic bytes not found"):
        parquet.ParquetTable(tmp_path / "t")
    (tmp_path / "t" / "sex=F").mkdir()
    with pytest.raises(DataError, match=r"sex=F is a folder. The Parquet files of a table must lie in one"):
        parquet.ParquetTable(tmp_path / "t")


def test_a_file_that_changes_between_two_readings_is_refused(tmp_path, client):
    """Catches releases of one ledger that are about two tables."""
    folder = write_parts(sample_frame(90), tmp_path / "t", [30])
    records = PartitionedRecords(parquet.ParquetTable(folder), SCHEMA, client)
    records.check()
    sample_frame(60).to_parquet(folder / "001.parquet")  # as many rows
    with records.opened(), pytest.raises(DataError, match=r"001\.parquet has changed since the table was"):
        records.counts(every_table(SCHEMA))


@pytest.mark.parametrize("more", [-1, 1])
def test_a_file_with_other_rows_than_it_said_is_refused(more, tmp_path):
    """Catches counts and places of records of a file that has changed and kept its size."""
    table = parquet.ParquetTable(write_parts(sample_frame(90), tmp_path / "t", [30]))
    (group,) = table.parts[0][:1]
    part = (replace(group, rows=group.rows + more),)
    with pytest.raises(DataError, match=r"000\.parquet has changed since the table was opened"):
        list(parquet.read_part(part, reader_of(SCHEMA)))


@pytest.mark.slow
def test_a_scheduler_that_runs_already(tmp_path, processes):
    """Catches a client that starts workers of its own, or ends those of others."""
    frame = sample_frame(40)
    table = parquet.ParquetTable(write_parts(frame, tmp_path / "t", [10]))
    tables = every_table(SCHEMA)
    with cluster.connected(processes.scheduler.address) as client:
        answer = counts(PartitionedRecords(table, SCHEMA, client), tables)
        assert client.ncores() == processes.ncores()
    assert_same(answer, counts(FrameRecords(SCHEMA.conform(frame).frame), tables))
    assert len(processes.run(process)) == 2


def test_a_worker_killed_midway_is_survived(tmp_path, processes, monkeypatch):
    """Catches parts that are lost with their worker, or added twice when they are counted again."""
    monkeypatch.setattr(parquet, "PART_ROWS", 50)
    frame = sample_frame(1000)
    frame["age"] = frame["age"].clip(0, 98)
    frame.loc[620, "age"] = 99
    table = parquet.ParquetTable(write_parts(frame, tmp_path / "t", [], row_group_size=50))
    records = PartitionedRecords(table, SCHEMA, processes)
    (tmp_path / "grave").mkdir()
    dying = DyingAxis(make_grids(SCHEMA)[0], value=99, grave=tmp_path / "grave")
    tables = [*every_table(SCHEMA), (dying,)]
    before = set(processes.run(process).values())
    answer = counts(records, tables)
    killed = {int(file.name) for file in (tmp_path / "grave").iterdir()}
    assert len(killed) == 1 and killed <= before
    assert_same(answer, counts(FrameRecords(SCHEMA.conform(frame).frame), tables))


@pytest.mark.slow
def test_a_worker_killed_midway_changes_no_patient(tmp_path, processes, monkeypatch):
    """Catches patients who are lost, counted twice or cut to other rows when their part is read again."""
    monkeypatch.setattr(parquet, "PART_ROWS", 1)
    schema = VISITS.model_copy(update={"keep": "random"})
    frame = visits(200, seed=5)
    records = PartitionedRecords(write_patients(frame, tmp_path / "t", np.arange(200) % 5), schema, processes)
    (tmp_path / "grave").mkdir()
    tables = every_table(schema.levels)
    rows = make_grids(schema.levels)[schema.levels.names.index("rows")]
    tables.append((DyingAxis(rows, value=schema.most, grave=tmp_path / "grave"),))
    records.check(seed=7)
    answer = counts(records, tables)
    assert len(list((tmp_path / "grave").iterdir())) == 1
    assert_same(answer, counts(FrameRecords(reader_of(schema, 7).records(frame)), tables))


@pytest.mark.slow
def test_a_worker_is_replaced_however_long_that_takes():
    """Catches a fit that waits forever: on a busy machine Dask gives up a worker that starts again late."""
    import dask

    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1ms"}),
        cluster.connected(workers=1, memory="1GB") as client,
    ):
        before = client.submit(process).result()
        os.kill(before, signal.SIGKILL)
        assert client.submit(process, pure=False).result(timeout=60) != before


@pytest.mark.slow
def test_a_part_that_kills_every_worker_ends_in_one_sentence(tmp_path, processes):
    frame = sample_frame(10).assign(age=99)
    table = parquet.ParquetTable(write_parts(frame, tmp_path / "t", []))
    (tmp_path / "grave").mkdir()
    dying = DyingAxis(make_grids(SCHEMA)[0], value=99, grave=tmp_path / "grave", lives=99)
    records = PartitionedRecords(table, SCHEMA, processes)
    with pytest.raises(RunError, match=r"workers died of the same part of the table. Give each more memory"):
        counts(records, [(dying,)])


@pytest.mark.slow
def test_where_the_workers_are(monkeypatch):
    with pytest.raises(
        InputError, match="workers is 2, but the scheduler at tcp://a:1 has workers of its own"
    ):
        cluster.connected("tcp://a:1", workers=2).__enter__()
    with pytest.raises(InputError, match="workers must be a whole number of at least 1, not 0"):
        cluster.connected(workers=0).__enter__()
    monkeypatch.setattr(cluster, "_PATIENCE", 0.2)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        cluster.connected("tcp://127.0.0.1:9").__enter__()
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(InputError, match=r'pip install "dpsynth-health\[distributed\]"'):
        cluster.connected().__enter__()
