"""Files from real records without noise: no other user of the computer reads them, or lists their folder."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cohort import SCHEMA, config, folder, model
from modes import mode, open_to_others, usual_umask

from dpsynth import DPMarginals
from dpsynth.cli import main
from dpsynth.errors import RunError
from dpsynth.files.storage import locked, replaced, write_text
from dpsynth.privacy import LedgerFile
from dpsynth.runs import pipeline
from dpsynth.runs.folder import RunFolder
from dpsynth.table.schema import Schema

__all__ = ["folder", "usual_umask"]
QUICK: dict[str, Any] = {"evaluate": {"enabled": False}}
MODEL = {"model", "model/model.json", "model/model.npz"}
CONFIDENTIAL = {"report.html", "report.json", "report.md"}
pytestmark = pytest.mark.usefixtures("usual_umask")


def call(*lines: str) -> None:
    for line in lines:
        assert main(line.split()) == 0


def test_the_folder_of_a_run(folder: Path) -> None:
    """Catches a file of real numbers that everybody can read, and a table to share that nobody can."""
    pipeline.run(config(**QUICK), "out")
    call("report out --mode release", "report out --force")
    run, modes = RunFolder(folder / "out"), {}
    for path in run.path.rglob("*"):
        wanted = 0o600 if path.name in CONFIDENTIAL else 0o755 if path.is_dir() else 0o644
        modes[path.relative_to(run.path)] = (oct(mode(path)), oct(wanted))
    assert [name for name, (real, wanted) in modes.items() if real != wanted] == []
    assert mode("out") == 0o700
    shared = {"synthetic.csv", "croissant.json", "ledger.json", "release.html"} | MODEL
    assert open_to_others(run.path) == shared


def undecided_cohort(**changes: object) -> Schema:
    """The cohort with words for an outcome, whose list is confirmed unless ``changes`` say otherwise."""
    with open("cohort.csv", newline="") as file:
        rows = [(*row[:2], {"0": "no", "1": "Mr Smith"}.get(row[2], row[2])) for row in csv.reader(file)]
    Path("cohort.csv").write_text("\n".join(map(",".join, rows)) + "\n")
    fields = SCHEMA.with_n_public(80).to_dict()
    fields["columns"][2] |= {"categories": ["no", "Mr Smith"], "reviewed": True} | changes
    schema = Schema.from_dict(fields)
    schema.to_yaml("cohort.yaml")
    return schema


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "accept", "open_files"),
    [
        ({"reviewed": False, "unreviewed": ["categories"]}, True, set()),
        ({"reviewed": False}, False, {"ledger.json"}),
        ({}, False, None),
    ],
    ids=["unreviewed", "unconfirmed", "confirmed"],
)
def test_values_that_nobody_confirmed_are_for_the_owner(
    folder: Path, changes: dict[str, object], accept: bool, open_files: set[str] | None
) -> None:
    """Catches a name of a real row, in a list that nobody confirmed, in a file that everybody can read.

    The lists of a schema that somebody wrote by hand count as those of a draft.
    """
    schema = undecided_cohort(**changes)
    yaml = mode("cohort.yaml")
    data = {"path": "cohort.csv", "schema": "cohort.yaml", "accept_unreviewed": accept}
    config(data=data, **QUICK).to_yaml("run.yaml")
    before = {entry.name for entry in folder.iterdir()}
    call(
        "run run.yaml --out out",
        "report out --mode release",
        "report out --mode registry --out registry.json",
        "sample out -n 9 --out drawn.csv",
        "sample out -n 9 --out drawn.parquet",
        "sample out -n 9 --tables 2 --out tables",
        "plan run.yaml --records 80 --out planned",
    )
    model = DPMarginals(2.0, accept_unreviewed=accept)
    model.fit(schema.check(pd.read_csv("cohort.csv", dtype=str)), schema=schema).save("m")
    seen = {name for name in open_to_others(folder) if name.split("/")[0] not in before}
    holding = {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".npz" and b"Mr Smith" in path.read_bytes()
    }
    assert {"out/model/model.json", "m/model.json", "drawn.csv", "drawn.parquet"} <= holding
    if open_files is None:
        assert {"out/model/model.json", "m/model.json", "planned/plan.json"} <= seen
        assert {"drawn.csv", "out/release.html", "out/croissant.json", "registry.json"} <= seen
        assert yaml == 0o644
    else:
        assert {name.split("/")[-1] for name in seen} == open_files
        assert yaml == 0o600
        assert b"Mr Smith" not in Path("out/croissant.json").read_bytes()


@pytest.mark.slow
def test_all_that_is_made_of_a_run(folder: Path) -> None:
    """Catches a command whose numbers of real records everybody can read."""
    config(attack={"enabled": True}).to_yaml("run.yaml")
    data = {"path": "cohort.csv", "schema": "draft.yaml", "accept_unreviewed": True}
    config(data=data).to_yaml("unreviewed.yaml")
    before = {entry.name for entry in folder.iterdir()}
    for name in ("attacked", "audited"):  # by whoever wants to see what comes into them
        Path(name).mkdir()
        Path(name).chmod(0o777)
    call("run run.yaml --out out")
    call(
        "sample out -n 20 --out drawn.csv",
        "sample out -n 20 --out drawn.parquet",
        "sample out -n 20 --tables 2 --out tables",
        "report out --mode registry --out registry.json",
        "report out --out copied.html",
        "evaluate --synthetic drawn.csv --train cohort.csv --schema cohort.yaml --ledger out --out judged",
        "attack synthetic out --out attacked",
        "attack audit run.yaml --trials 100 --out audited",
        "plan cohort.yaml --out planned",
        "schema infer cohort.csv --out draft.yaml",
        "plan unreviewed.yaml --records 80 --out privately",
    )
    made = {name for name in open_to_others(folder) if name.split("/")[0] not in before | {"out"}}
    assert made == {
        "drawn.csv",
        "drawn.csv.croissant.json",
        "drawn.parquet",
        "drawn.parquet.croissant.json",
        "judged/ledger.json",
        "planned",
        "planned/plan.json",
        "planned/plan.svg",
        "planned/plan.txt",
        "registry.json",
        "tables",
        "tables/table-01.csv",
        "tables/table-02.csv",
    }
    closed = ("judged", "attacked", "audited", "audited/releases", "privately")
    assert {mode(name) for name in closed} == {0o700} and open_to_others(Path("privately")) == set()


def test_a_model(folder: Path) -> None:
    """Catches a model that nobody else can read although it may be shared."""
    SCHEMA.with_n_public(80).to_yaml("cohort.yaml")
    data = "--data cohort.csv --schema cohort.yaml --epsilon 2"
    call(f"fit {data} --out m")
    LedgerFile("clinic.ledger").set_cap(3.0, 0.01)
    shared = open_to_others(folder) - {"cohort.csv", "cohort.yaml"}
    assert shared == {"m", "m/model.json", "m/model.npz"}


def test_what_has_no_guarantee_is_for_its_owner(folder: Path) -> None:
    """Catches a table or a model without noise, as confidential as the records, that everybody can read."""
    SCHEMA.with_n_public(80).to_yaml("cohort.yaml")
    config(model=model(epsilon=None), **QUICK).to_yaml("run.yaml")
    data = "--data cohort.csv --schema cohort.yaml --not-private"
    call(
        "run run.yaml --out out",
        "sample out -n 9 --out drawn.csv",
        "sample out -n 9 --tables 2 --out tables",
        f"fit {data} --out m",
    )
    shared = open_to_others(folder) - {"cohort.csv", "cohort.yaml", "run.yaml"}
    assert {name.split("/")[-1] for name in shared} == {
        "ledger.json",
        "NOT_PRIVATE.txt",
        "drawn.csv.NOT_PRIVATE.txt",
    }


def test_what_a_stopped_run_leaves(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a ledger, a checkpoint or a half-written folder that everybody can read, at any time."""
    seen: list[int] = []

    def fail(*args: Any, **kwargs: Any) -> None:
        seen.extend(mode(path) for path in folder.glob(".out.*.tmp"))
        raise RunError("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(DPMarginals, "_finish", fail)
        with pytest.raises(RunError):
            pipeline.run(config(**QUICK), "out")
    assert mode("out.ledger") == 0o600
    monkeypatch.setattr(RunFolder, "write_croissant", fail)  # while the folder is written
    pipeline.run(config(**QUICK), "out")
    assert seen == [0o700]
    assert json.loads(Path("out/report.json").read_text())["private"] is True


@pytest.mark.slow
def test_a_checkpoint(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a file of the training's state that everybody can read once the folder is opened or moved."""
    monkeypatch.setattr("dpsynth.wgan.training._CHUNK_STEPS", 5)
    small = {"critic_hidden": [4, 4], "generator_hidden": [4], "latent": 2}

    def interrupt(progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pipeline.run(
            config(model=model(generator="wgan-gp", steps=40, training=small), **QUICK),
            "out",
            progress=interrupt,
        )
    assert {path.name for path in Path("out.checkpoint").iterdir()} == {
        "README.txt",
        "checkpoint.json",
        "checkpoint.npz",
        "run.json",
    }
    assert open_to_others(folder) == {"cohort.csv", "cohort.yaml"}


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_one_writer_decides(tmp_path: Path, umask: int) -> None:
    """Catches a file that is open to others until it is complete, and a shared one that defies the umask."""
    os.umask(umask)  # `usual_umask` sets it back
    kept, given = tmp_path / "kept.json", tmp_path / "given.json"
    kept.write_text("an earlier version wrote it")
    kept.chmod(0o644)
    with replaced(kept) as temporary:
        assert mode(temporary) == 0o600
        temporary.write_text("{}")
    write_text(given, "{}", shared=True)
    with locked(tmp_path / "folder"):
        pass
    assert (mode(kept), mode(given)) == (0o600, 0o666 & ~umask)
