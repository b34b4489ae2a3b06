"""Damaged and hostile files for every reader: each must end in a result or in one sentence of an error.

    python benchmarks/fuzz.py --runs 15000 --out DIR            # all targets
    python benchmarks/fuzz.py --runs 500 --out DIR csv ledger

A case is a valid file with some values or bytes exchanged. Where atheris is installed, it keeps the cases
that reach new lines of the package and goes on from them. Otherwise each case begins at a valid file. A case
fails if it raises another exception than the package's, if its message is empty, long or cannot be printed,
if it takes ten seconds, or if it needs 2 GB. ``DIR/TARGET.jsonl`` holds one line for each place in the code
where a case failed.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import yaml

from dpsynth import DPMarginals

try:
    import atheris
except ImportError:
    atheris = None
with nullcontext() if atheris is None else atheris.instrument_imports(include=["dpsynth"]):
    from dpsynth.errors import DpsynthError
    from dpsynth.files.codec import arrays_digest
    from dpsynth.patients.schema import read_schema
    from dpsynth.privacy.events import gaussian_event
    from dpsynth.privacy.ledger import Ledger
    from dpsynth.runs.config import RunConfig
    from dpsynth.table.dictionaries import read_dictionary
    from dpsynth.table.files import read_table
    from dpsynth.table.inference import infer_schema
    from dpsynth.table.parquet import ParquetTable, read_part
    from dpsynth.table.reader import Reader
    from dpsynth.table.schema import Schema

SECONDS, BYTES, MESSAGE = 10, 2 << 30, 6_000

TABLE = """
name: clinic
unit: one patient
outcome: died
ignored: [id]
missing_words: ['?']
constraints: [low <= age, 'sex = F implies weight < 190']
columns:
  - {name: age, kind: integer, lower: 0, upper: 120, missing: true, missing_codes: [-9]}
  - {name: low, kind: integer, lower: 0, upper: 120}
  - {name: weight, kind: continuous, lower: 1, upper: 200, decimals: 1, scale: log, special: [999]}
  - {name: height, kind: continuous, lower: 0.5, upper: 2.5, unit: m}
  - {name: bmi, kind: continuous, lower: 0, upper: 900, derived: weight / height ** 2, missing: true}
  - {name: sex, kind: binary, categories: [F, M]}
  - {name: ward, kind: categorical, categories: [Öst, West, '010'], missing: true}
  - {name: stage, kind: ordinal, categories: [1, 2, 3], missing: true}
  - {name: born, kind: date, lower: '1900-01-01', upper: '2020-12-31', format: '%d/%m/%Y', cycles: [month]}
  - {name: seen, kind: datetime, lower: '2000-01-01', upper: '2020-12-31 23:59', missing: true}
  - {name: died, kind: binary, categories: [false, true]}
"""
PATIENTS = """
unit: id
rows: {most: 5, order: day}
n_public: 200
files:
  stays.csv: {columns: [ward, dead]}
  tests.csv: {columns: [value], order: time}
  people.csv: {columns: [age]}
columns:
  - {name: day, kind: integer, lower: 0, upper: 365}
  - {name: age, kind: integer, lower: 18, upper: 99, per: patient}
  - {name: ward, kind: binary, categories: [A, B], missing: true}
  - {name: value, kind: continuous, lower: 0, upper: 9, missing: true}
  - {name: dead, kind: binary, categories: [no, yes], over_time: terminal}
"""
CSV = """id,age,low,weight,height,sex,ward,stage,born,seen,died
7,40,3,70.5,1.75,F,Öst,1,03/02/1960,2010-01-31 13:05,false
8,,4,999,1.8,M,,3,31/12/1999,,true
9,-9,0,88.1,1.6,F,010,,1970-01-02,2011-05-05T10:00:00Z,1
"""
SDV = {
    "METADATA_SPEC_VERSION": "V1",
    "tables": {
        "clinic": {
            "primary_key": "id",
            "columns": {
                "id": {"sdtype": "id", "regex_format": "[0-9]"},
                "age": {
                    "sdtype": "numerical",
                    "computer_representation": "Int64",
                    "range_min": 0,
                    "range_max": 99,
                },
                "weight": {"sdtype": "numerical", "decimal_places": 1, "range_min": 1, "range_max": 200.5},
                "sex": {"sdtype": "categorical", "order": ["F", "M"]},
                "ward": {"sdtype": "categorical", "range_values": ["A", "B", "C"], "range_is_nullable": True},
                "born": {"sdtype": "datetime", "datetime_format": "%d/%m/%Y", "range_min": "1900-01-01"},
                "died": {"sdtype": "boolean"},
            },
        }
    },
}


@dataclass(frozen=True)
class Target:
    """A reader: valid files, the way in which they are damaged, and what reads them in a folder."""

    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes, Path], object]
    damage: Callable[[bytes, random.Random], bytes]


class TooSlow(BaseException):
    """A case has not ended."""


# ---------------------------------------------------------------- damage

HOSTILE: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3.5, -0.0, 1e308, 5e-324, 10**18, 2**63, -(2**63) - 1, 10**400,
    float("nan"), float("inf"), -float("inf"), "", " ", "a", "nan", "1e5", "\0", "\n", "\ud800", "﻿", "é" * 9,
    "x" * 5000, "9" * 5000, "=1+1", "%", "%Y", "%d/%m/%Y", "9999-12-31", "0000-00-00", "10000-01-01",
    "1677-09-20 00:00", "../..", "/dev/zero", "a <= b", "((((", "1 / 0", "age ** 999", [], {}, [[]], [None],
    [1, "a"], {"a": 1}, {"": {}}, {"name": "a"}, ["a"] * 50, list(range(300)),
]  # fmt: skip
CELLS = [
    b"", b" ", b"-1", b"1e999", b"9" * 400, b"nan", b"inf", b"1_000", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf",
    b'"', b'""', b"\r", b"\n", b"\r\n", b",", b";", b"\t", b"1,5", b"1.5", b"=A1", b"'=A1", b"'010",
    b"31/12/99999", b"0001-01-01", b"9999-12-31", b"10000-01-01", b"2010-02-30", b"\xe2\x80\xa8", b"\xc3",
    b"x" * 140_000, "１２".encode(), b"True", b"&a ", b"*a ", b"<<: ", b"!!int ", b"? ", b"- ", b"{", b"}",
    b"[", b"]", b": ", b"NaN", b"-Infinity", b"\\ud800", b"---\n", b"!!timestamp ", b"!!set ", b"!!binary ",
    b"#", b"|", b"\\",
]  # fmt: skip


def bytes_damaged(data: bytes, rng: random.Random) -> bytes:
    """Some bytes exchanged, lost, doubled or put in."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, length = rng.randrange(len(found) + 1), rng.choice((0, 1, 1, 2, 8, 40))
        kind = rng.randrange(5)
        if kind == 0:
            found[at : at + length] = bytes(rng.randrange(256) for _ in range(length))
        elif kind == 1:
            del found[at : at + length]
        elif kind == 2:
            found[at:at] = found[at : at + length] * rng.choice((1, 3, 50))
        else:
            found[at : at + (kind == 3) * length] = rng.choice(CELLS)
    return bytes(found)


def tree_damaged(tree: Any, rng: random.Random) -> Any:
    """The same lists and mappings with one to three entries exchanged, lost, moved or renamed."""
    holder = [json.loads(json.dumps(tree))]
    for _ in range(rng.choice((1, 1, 2, 3))):
        places: list[tuple[Any, Any]] = []
        left: list[Any] = [holder]
        while left:
            node = left.pop()
            entries = list(node) if isinstance(node, dict) else list(range(len(node)))
            places += [(node, key) for key in entries]
            left += [node[key] for key in entries if isinstance(node[key], list | dict)]
        node, key = rng.choice(places)
        kind = rng.randrange(6)
        if kind == 0:
            del node[key]
            if node is holder:
                holder.append(None)
        elif kind == 1:
            other, there = rng.choice(places)
            if isinstance(other, dict) and there not in other:
                continue
            node[key] = json.loads(json.dumps(other[there if isinstance(other, dict) else 0])) if other else 0
        elif kind == 2 and isinstance(node, dict):
            node[str(rng.choice(HOSTILE))[:50]] = node.pop(key)
        elif kind == 3 and isinstance(node[key], int | float) and not isinstance(node[key], bool):
            node[key] = rng.choice(
                (-node[key], node[key] * 10, node[key] + 0.5, str(node[key]), node[key] * 1e300)
            )
        else:
            node[key] = deepcopy(rng.choice(HOSTILE))
    return holder[0]


def text_damaged(load: Callable[[bytes], Any], dump: Callable[[Any], str]) -> Callable[..., bytes]:
    """Damage the tree that a text describes, or its bytes."""

    def damage(data: bytes, rng: random.Random) -> bytes:
        if rng.random() < 0.7 and b"&" not in data:  # aliases would be written out
            try:
                tree = load(data)
                return dump(tree_damaged(tree, rng)).encode("utf-8", "surrogatepass")
            except Exception:  # no tree any more
                pass
        return bytes_damaged(data, rng)

    return damage


def parquet_damaged(data: bytes, rng: random.Random) -> bytes:
    """One column of another type, with other values, another name or twice, or damaged bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    if rng.random() < 0.4:
        return bytes_damaged(data, rng)
    try:
        table = parquet.read_table(io.BytesIO(data))
        at = rng.randrange(table.num_columns)
        n, name = table.num_rows, table.column_names[at]
        base = rng.choice(([0, 1, -1], [1, None, 3], [None] * 3, ["a", "", None], [2**62, 1, 0]))
        values = (base * (n // 3 + 1))[:n]
        types: list[Any] = [
            pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.bool_(), pa.string(), pa.large_string(),
            pa.binary(), pa.date32(), pa.date64(), pa.time64("ns"), pa.timestamp("s"),
            pa.timestamp("ns", "UTC"), pa.duration("s"), pa.decimal128(38, 10), pa.list_(pa.int64()),
            pa.null(), pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64()),
            pa.dictionary(pa.int8(), pa.string()),
        ]  # fmt: skip
        kind = rng.choice(types)
        nested = {
            pa.list_(pa.int64()): [[1], None],
            types[-3]: [{"a": 1}, None],
            types[-2]: [[("a", 1)], None],
        }
        values = (nested[kind] * n)[:n] if kind in nested else values
        array = pa.array(values) if kind not in nested else pa.array(values, kind)
        column = array.cast(kind) if kind not in nested else array
        names = list(table.column_names)
        names[at] = rng.choice((name, name, name, rng.choice(names), "", "\0", "é", "x" * 300))
        table = table.set_column(at, "made", column).rename_columns(names)
        out = io.BytesIO()
        parquet.write_table(table, out, compression=rng.choice(("none", "snappy", "gzip", "zstd")))
        return out.getvalue()
    except Exception:  # no such type, or no table any more
        return bytes_damaged(data, rng)


def arrays_damaged(data: bytes, rng: random.Random) -> bytes:
    """One array of another shape, type or value, absent or renamed, or damaged bytes."""
    try:
        with np.load(io.BytesIO(data)) as stored:
            arrays = dict(stored)
    except Exception:
        return bytes_damaged(data, rng)
    if rng.random() < 0.15 or not arrays:
        return bytes_damaged(data, rng)
    name = rng.choice(sorted(arrays))
    own = arrays[name]
    changes: list[Callable[[], Any]] = [
        lambda: own[:0], lambda: own[..., None], lambda: own.ravel(), lambda: own.T,
        lambda: own.astype(str), lambda: own.astype(np.float16), lambda: -own, lambda: own * 0,
        lambda: own * 1e300, lambda: own.astype(bool), lambda: own.astype(np.int8),
        lambda: own.astype(complex), lambda: np.array(rng.choice((0, -1, 10**9, 1e308))),
        lambda: np.concatenate([own, own]), lambda: np.zeros((0, 0)), lambda: own[:-1],
        lambda: np.array("a"), lambda: own + 10**6,
    ]  # fmt: skip
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        try:
            arrays[name] = rng.choice(changes)()
        except Exception:
            del arrays[name]
    if rng.random() < 0.1:
        arrays[rng.choice(sorted(arrays)) + rng.choice(("", "x", "/"))] = own
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


# ---------------------------------------------------------------- readers


@cache
def schema() -> Schema:
    return Schema.from_yaml(TABLE)


@cache
def valid_frame() -> pd.DataFrame:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "t.csv").write_text(CSV, encoding="utf-8")
        return read_table(Path(folder) / "t.csv", schema())


@cache
def sdv_frame() -> pd.DataFrame:
    frame = pd.concat([valid_frame()] * 10, ignore_index=True)
    return frame.assign(id=range(30), age=np.arange(30) % 27, ward=["A", "B"] * 15)


@cache
def model_files() -> tuple[bytes, bytes]:
    """The record and the arrays of a small model."""
    rng = np.random.default_rng(1)
    small = Schema.from_yaml(TABLE).select(("age", "sex", "ward", "born"))
    n = 60
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 99, n),
            "sex": rng.choice(["F", "M"], n),
            "ward": rng.choice(["Öst", "West"], n),
            "born": pd.to_datetime(rng.integers(0, 9000, n), unit="D"),
        }
    )
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        path = (
            DPMarginals(epsilon=3.0, delta=1e-5, random_state=1)
            .fit(frame, schema=small)
            .save(Path(folder) / "m")
        )
        return (path / "model.json").read_bytes(), (path / "model.npz").read_bytes()


def read_csv(data: bytes, folder: Path) -> None:
    path = folder / ("t.csv.gz" if data[:2] == b"\x1f\x8b" else "t.csv")
    path.write_bytes(data)
    read_all(path)


def read_all(path: Path) -> None:
    """Read a table with its schema, without one, and draft a schema for it."""
    complaint = None
    for read in (lambda: read_table(path, schema()), lambda: infer_schema(read_table(path))):
        try:
            read()
        except DpsynthError as problem:
            complaint = problem
    if complaint is not None:
        raise complaint


def read_parquet(data: bytes, folder: Path) -> None:
    path = folder / "t.parquet"
    path.write_bytes(data)
    read_all(path)
    table, reader = ParquetTable(path), Reader(schema())
    table.empty(reader)
    for part in table.parts:
        list(read_part(part, reader))


def read_with(name: str, reader: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    def read(data: bytes, folder: Path) -> object:
        (folder / name).write_bytes(data)
        return reader(folder / name)

    return read


def read_model(record: bytes, arrays: bytes, folder: Path) -> DPMarginals:
    (folder / "model.json").write_bytes(record)
    (folder / "model.npz").write_bytes(arrays)
    return DPMarginals.load(folder)


def read_arrays(data: bytes, folder: Path) -> DPMarginals:
    """Read a model whose record has the digest of these arrays, as somebody would write it who wants harm."""
    record = json.loads(model_files()[0])
    try:
        with np.load(io.BytesIO(data)) as stored:
            record["arrays_sha256"] = arrays_digest(dict(stored))
    except Exception:
        pass
    return read_model(json.dumps(record).encode(), data, folder)


def csv_seeds() -> list[bytes]:
    import gzip

    german = CSV.replace(",", ";").replace(".", ",")
    return [CSV.encode(), german.encode("cp1252"), CSV.encode("utf-16"), gzip.compress(CSV.encode(), mtime=0)]


def parquet_seeds() -> list[bytes]:
    out = io.BytesIO()
    valid_frame().drop(columns="bmi").to_parquet(out)
    return [out.getvalue()]


def files(folder: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((Path(__file__).parents[1] / folder).glob("*.yaml"))]


def sdv_seeds() -> list[bytes]:
    (table,) = SDV["tables"].values()  # type: ignore[attr-defined]
    return [json.dumps(SDV).encode(), json.dumps(table).encode()]


def ledger_seeds() -> list[bytes]:
    record = json.loads(model_files()[0])["ledger"]
    staged = Ledger()
    for place in range(2):
        staged.begin_stage(1e-6)
        staged.post(f"counts {place}", gaussian_event(2.0, 3), sensitivity="one record moves it by 1")
    return [json.dumps(record).encode(), json.dumps(staged.to_dict()).encode()]


BY_YAML = text_damaged(
    lambda data: yaml.load(data, Loader=yaml.CSafeLoader),
    lambda tree: yaml.dump(tree, Dumper=yaml.CSafeDumper),
)
BY_JSON = text_damaged(json.loads, json.dumps)
TARGETS: Mapping[str, Target] = {
    "csv": Target(csv_seeds, read_csv, bytes_damaged),
    "parquet": Target(parquet_seeds, read_parquet, parquet_damaged),
    "schema": Target(lambda: [TABLE.encode(), PATIENTS.encode()], read_with("s.yaml", read_schema), BY_YAML),
    "configuration": Target(lambda: files("configs"), read_with("c.yaml", RunConfig.from_yaml), BY_YAML),
    "ledger": Target(ledger_seeds, read_with("ledger.json", Ledger.load), BY_JSON),
    "model record": Target(
        lambda: [model_files()[0]], lambda data, folder: read_model(data, model_files()[1], folder), BY_JSON
    ),
    "model arrays": Target(lambda: [model_files()[1]], read_arrays, arrays_damaged),
    "sdv": Target(
        sdv_seeds,
        read_with("sdv.json", lambda path: infer_schema(sdv_frame(), dictionary=read_dictionary(path))),
        BY_JSON,
    ),
}


# ---------------------------------------------------------------- cases


def fault(target: Target, data: bytes, folder: Path) -> tuple[str, str] | None:
    """What is wrong with how a case ends, and where in the package, or None. Also the outcome otherwise."""
    start = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with warnings.catch_warnings(action="ignore"):
            target.read(data, folder)
    except DpsynthError as problem:
        text = str(problem)
        if not text or len(text) > MESSAGE:
            return f"a message of {len(text):,} characters: {text[:80]}", place(problem)
        try:
            text.encode()
        except UnicodeEncodeError:
            return "a message that cannot be printed", place(problem)
    except (Exception, TooSlow) as problem:
        return f"{type(problem).__name__}: {problem!s:.200}", place(problem)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if time.monotonic() - start > SECONDS:
        return "too slow", "unknown"
    return None


def place(problem: BaseException) -> str:
    """The last line of the package that an exception went through."""
    frames = traceback.extract_tb(problem.__traceback__)
    own = [frame for frame in frames if f"{os.sep}dpsynth{os.sep}" in frame.filename]
    frame = (own or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def late(signum: int, frame: FrameType | None) -> None:
    raise TooSlow(f"{SECONDS} s")


def fuzz(name: str, runs: int, out: Path, seed: int) -> None:
    """Try cases of one target, in a process of its own, and write what fails."""
    target, seen, tried = TARGETS[name], set[str](), 0
    seeds = target.seeds()
    signal.signal(signal.SIGALRM, late)
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    folder, current = Path(tempfile.mkdtemp(dir=out)), out / f"{name}.current"
    for data in seeds:
        target.read(data, folder)
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
    log = open(out / f"{name}.jsonl", "a", encoding="utf-8")  # noqa: SIM115

    def case(data: bytes) -> None:
        nonlocal tried
        tried += 1
        current.write_bytes(data)
        found = fault(target, data, folder)
        if found is not None and found[1] not in seen:
            seen.add(found[1])
            kept = base64.b64encode(data).decode()
            print(json.dumps({"what": found[0], "place": found[1], "case": kept}), file=log, flush=True)
        if tried % 100 == 0:
            (out / f"{name}.count").write_text(str(tried), encoding="ascii")

    if atheris is None:
        rng = random.Random(seed)
        for _ in range(runs):
            case(target.damage(rng.choice(seeds), rng))
    else:
        _guided(target, seeds, case, runs, out / f"{name}.corpus", seed)


def _guided(
    target: Target, seeds: list[bytes], case: Callable[[bytes], None], runs: int, corpus: Path, seed: int
) -> None:
    corpus.mkdir(exist_ok=True)
    for number, data in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(data)

    def damage(data: bytes, max_size: int, number: int) -> bytes:
        rng = random.Random(number)
        if rng.random() < 0.1:
            return bytes(atheris.Mutate(data, max_size))
        return target.damage(data, rng)[:max_size]

    options = [f"-runs={runs}", "-max_len=200000", "-rss_limit_mb=0", "-timeout=60", f"-seed={seed + 1}"]
    atheris.Setup(
        [sys.argv[0], *options, f"-artifact_prefix={corpus.parent}/", str(corpus)],
        case,
        custom_mutator=damage,
    )
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--runs", type=int, default=15_000, help="cases of each target")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.alone:
        fuzz(given.targets[0], given.runs, given.out, given.seed)
        return
    for name in given.targets or TARGETS:
        start = time.monotonic()
        (given.out / f"{name}.count").write_text("0", encoding="ascii")
        alone = [name, "--alone", f"--runs={given.runs}", f"--out={given.out}", f"--seed={given.seed}"]
        with open(given.out / f"{name}.log", "w", encoding="utf-8") as log:
            ended = subprocess.run(
                [sys.executable, __file__, *alone], stdout=subprocess.DEVNULL, stderr=log, check=False
            )
        tried = (given.out / f"{name}.count").read_text(encoding="ascii")
        print(
            f"{name}: {tried} cases, {time.monotonic() - start:.0f} s, exit status {ended.returncode}",
            flush=True,
        )


if __name__ == "__main__":
    main()
