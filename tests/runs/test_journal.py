"""What was released from a folder's table goes on into its next ledger, whatever became of the run."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cohort import SCHEMA, config, folder, model
from visits import VISITS, visits

from dpsynth import DPMarginals
from dpsynth.cli import main
from dpsynth.errors import DataError, DpsynthError, InputError, RunError
from dpsynth.privacy import Ledger, Profile, gaussian_event
from dpsynth.privacy.records import FrameRecords
from dpsynth.runs import pipeline
from dpsynth.runs.folder import RunFolder
from dpsynth.synthesis import fit
from dpsynth.synthesis.parts import columns
from dpsynth.synthesis.wgan_gp import DPWGANGP

__all__ = ["folder"]
QUICK = {"evaluate": {"enabled": False}}
FIT = "fit --data cohort.csv --schema half.yaml --epsilon 2 --delta 1e-6 --out m"

#: of tests of small tables that are about something else
FEW = pytest.mark.filterwarnings("ignore:epsilon .* leaves little:dpsynth.errors.OwnerWarning")


def stages(path: str) -> int:
    return len(Ledger.load(path).stages)


def abandoned(out: str, ledger: Ledger, configuration: Any) -> None:
    """What an interrupt during training leaves."""
    left = RunFolder(Path(out)).checkpoint
    left.mkdir()
    (left / "checkpoint.json").write_text(json.dumps({"ledger": ledger.to_dict()}))
    (left / "run.json").write_text(json.dumps(configuration.to_dict()))


def earlier_ledger() -> Ledger:
    ledger = Ledger()
    ledger.begin_stage(1e-5)
    ledger.post("WGAN critic steps", gaussian_event(5.0), sensitivity="1")
    return ledger


def test_the_journal_is_written_before_the_records_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch a reading that no file tells of when kill -9 ends the process in it."""
    seen: list[tuple[str, ...]] = []
    counts = FrameRecords._counts

    def look(*args: Any) -> Any:
        seen.append(tuple(entry.name for entry in Ledger.load(".out.journal.json").entries))
        return counts(*args)

    monkeypatch.setattr(FrameRecords, "_counts", look)
    pipeline.run(config(**QUICK), "out")
    names = ("single-column counts", "base model tables")
    assert seen == [names[:1], names]
    assert not Path(".out.journal.json").exists() and stages("out/ledger.json") == 1


@pytest.mark.parametrize("raised", [RunError("training diverged"), KeyboardInterrupt()])
def test_a_run_that_failed_counts_in_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    """Would catch a run given up after it had read the table, and a second one that knows nothing of it."""

    def fail(*args: Any, **kwargs: Any) -> None:
        raise raised

    said: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(DPMarginals, "_finish", fail)
        with pytest.raises(type(raised)):
            pipeline.run(config(**QUICK), "out", log=said.append)
    assert said == [
        "the run stopped after 2 noisy statistics (single-column counts and base model tables), which cost "
        "epsilon 2.999 at delta 1e-05. The next run of out counts this cost, which stands in "
        ".out.journal.json"
    ]
    done = pipeline.run(config(**QUICK), "out", log=said.append)
    assert "2 earlier noisy statistics taken over from .out.journal.json" in said[1]
    assert stages("out/ledger.json") == 2 and 5.9 < done.report.guarantee.epsilon <= 6.0
    assert done.report.delta == 2e-5 and "the sum of 2 stages" in str(done.report.guarantee)
    assert not Path(".out.journal.json").exists()


def test_a_run_that_failed_says_its_cost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch a message that states less than the next run counts, or leaves out a posted statistic."""
    SCHEMA.with_n_public(None).to_yaml("cohort.yaml")
    wanted, said = config(**QUICK), list[str]()

    def fail(*args: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(columns, "estimate_marginals", fail)
        with pytest.raises(MemoryError):
            pipeline.run(wanted, "out", log=said.append)
    assert "2 noisy statistics (number of records and single-column counts)" in said[-1]
    cost = float(said[-1].split("which cost epsilon ")[1].split()[0])
    alone = pipeline.run(wanted, "other").report.guarantee.epsilon
    assert alone == pytest.approx(3.0) and cost == pytest.approx(3.0)
    assert pipeline.run(wanted, "out").report.guarantee.epsilon == pytest.approx(alone + cost)


@pytest.mark.slow
def test_a_replaced_run_counts_unless_it_is_forgotten_in_so_many_words(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch --force that makes a table, unread, and a ledger that forgets in silence."""
    config(**QUICK).to_yaml("run.yaml")
    command = ["run", "run.yaml", "--out", "out"]
    assert main([*command, "--forget-earlier"]) == 0  # nothing earlier: harmless
    assert Ledger.load("out/ledger.json").excluded == ()
    assert main([*command, "--force"]) == 0
    assert "2 earlier noisy statistics taken over from out/ledger.json" in capsys.readouterr().err
    assert stages("out/ledger.json") == 2
    assert main([*command, "--force", "--forget-earlier"]) == 0
    said = capsys.readouterr().out
    assert "does not cover: earlier noisy statistics from the same folder, left out on request" in said
    ledger = Ledger.load("out/ledger.json")
    assert len(ledger.stages) == 1 and len(ledger.excluded) == 1
    assert json.loads(Path("out/report.json").read_text())["private"] is False
    assert main([*command, "--force"]) == 0  # what was forgotten stays said
    assert Ledger.load("out/ledger.json").excluded == ledger.excluded


@pytest.mark.parametrize("command", ["run", FIT, FIT.replace("cohort", "visits")])
@pytest.mark.parametrize("problem", ["a value", "no table", "the reading", "Ctrl-C"])
def test_a_run_refused_before_its_first_statistic_keeps_the_journal_of_a_killed_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, problem: str
) -> None:
    """Catches a refused run that deletes what a killed one had released, in any command, also of patients."""
    out, table = ("out", "cohort.csv") if command == "run" else ("m", command.split()[2])
    several = table == "visits.csv"
    (VISITS if several else SCHEMA).with_n_public(80).to_yaml("half.yaml")
    visits(80).to_csv("visits.csv", index=False)
    config(**QUICK).to_yaml("run.yaml")
    journal = Path(f".{out}.journal.json")
    earlier_ledger().save(journal)
    before = journal.read_bytes()
    if problem == "a value":
        text = Path(table).read_text().splitlines()
        text[3] = ",".join("?" for _ in text[0].split(","))
        Path(table).write_text("\n".join(text) + "\n")
    elif problem == "no table":
        Path(table).unlink()
    else:
        raised = KeyboardInterrupt() if problem == "Ctrl-C" else MemoryError()

        def stop(*args: Any, **kwargs: Any) -> None:
            raise raised

        monkeypatch.setattr("dpsynth.synthesis.synthesizer.records_of", stop)
    words = ["run", "run.yaml", "--out", "out"] if command == "run" else command.split()
    with contextlib.suppress(MemoryError):
        assert main(words) != 0
    assert not Path(out).exists() and journal.is_file() and journal.read_bytes() == before


@pytest.mark.parametrize("name", ["checkpoint.json", "checkpoint.used.json"])
def test_folder_journal_and_checkpoint_all_count(folder: Path, name: str) -> None:
    """Catches a ledger of the next run without what stands in one of them, where all three are there."""
    pipeline.run(config(**QUICK), "out")
    of_folder, killed, abandoned_one = Ledger.load("out/ledger.json"), earlier_ledger(), earlier_ledger()
    killed.save(".out.journal.json")
    abandoned("out", abandoned_one, config(**QUICK))
    os.rename("out.checkpoint/checkpoint.json", f"out.checkpoint/{name}")
    said: list[str] = []
    pipeline.run(config(**QUICK), "out", force=True, log=said.append)
    written = Ledger.load("out/ledger.json")
    assert [written.holds(each) for each in (of_folder, killed, abandoned_one)] == [True, True, True]
    assert len(written.stages) == 4 and sum("taken over" in line for line in said) == 3
    assert DPMarginals.load("out/model").ledger_.to_dict() == written.to_dict()


def test_model_and_journal_of_a_fit_both_count(folder: Path) -> None:
    """Catches a fit that goes on from its folder alone, or from the journal of a killed one alone."""
    VISITS.with_n_public(80).to_yaml("half.yaml")
    visits(80).to_csv("visits.csv", index=False)
    command = FIT.replace("cohort", "visits").replace("", "").split()
    assert main(command) == 0
    of_folder, killed = DPMarginals.load("m").ledger_, Ledger()
    killed.about(of_folder.unit)
    killed.begin_stage(1e-5)
    killed.post("first", gaussian_event(5.0), sensitivity="1")
    killed.save(".m.journal.json")
    assert main([*command, "--force"]) == 0
    written = DPMarginals.load("m").ledger_
    assert written.holds(of_folder) and written.holds(killed)


def test_a_given_up_checkpoint_counts(folder: Path) -> None:
    """Would catch --force that throws the ledger away with the checkpoint."""
    abandoned("out", earlier_ledger(), config(**QUICK))
    pipeline.run(config(**QUICK), "out", force=True)
    assert [entry.name for entry in Ledger.load("out/ledger.json").entries] == [
        "WGAN critic steps",
        "single-column counts",
        "base model tables",
    ]


@FEW
def test_a_given_up_checkpoint_is_resumed_by_nobody_and_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch another run's checkpoint, of another epsilon, resumed as this one's, or forgotten.

    The second run is interrupted twice before it trains; the third is carried out.
    """
    abandoned("out", earlier_ledger(), config(model=model(epsilon=8.0), **QUICK))
    mine = config(model=model(epsilon=1.0), **QUICK)

    def interrupt(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    reached: list[str] = []
    for place in (pipeline, "load_table"), (fit, "_count"):
        with monkeypatch.context() as patch:
            patch.setattr(*place, interrupt)
            with pytest.raises(KeyboardInterrupt):
                pipeline.run(mine, "out", force=True)
        with monkeypatch.context() as patch:
            patch.setattr(DPWGANGP, "resume", lambda *a, **k: interrupt(reached.append("resumed")))
            with pytest.raises((DpsynthError, KeyboardInterrupt)) as refusal:
                pipeline.run(mine, "out", resume=True)
        assert reached == [] and "no checkpoint to resume" in str(refusal.value)
    pipeline.run(mine, "out")
    entries = [entry.name for entry in Ledger.load("out/ledger.json").entries]
    assert entries == ["WGAN critic steps", "single-column counts", "base model tables"]


def test_a_resumed_run_counts_all_that_its_folder_released(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch --resume that writes the checkpoint's ledger and drops what stands in the journal."""
    abandoned("out", earlier_ledger(), config(**QUICK))
    other = earlier_ledger()
    other.save(".out.journal.json")

    def resumed(checkpoint: Path, frame: Any, **kwargs: Any) -> DPMarginals:
        ledger = Ledger.from_dict(json.loads((checkpoint / "checkpoint.json").read_text())["ledger"])
        return pipeline.build_model(config(**QUICK)).fit(
            frame, schema=SCHEMA.with_n_public(len(frame)), ledger=ledger
        )

    monkeypatch.setattr(DPWGANGP, "resume", resumed)
    pipeline.run(config(**QUICK), "out", resume=True)
    written = Ledger.load("out/ledger.json")
    assert len(written.stages) == 3 and written.holds(other)
    assert DPMarginals.load("out/model").ledger_.to_dict() == written.to_dict()


def test_resume_loses_no_ledger(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch --resume --ledger that drops the ledger, and one that refuses what it already counts."""
    named = earlier_ledger()
    went_on = Ledger.from_dict(named.to_dict())
    went_on.begin_stage(1e-5)
    went_on.post("more", gaussian_event(5.0), sensitivity="1")
    abandoned("out", went_on, config(**QUICK))
    earlier_ledger().save("other.json")
    named.save("named.json")
    read: list[str] = []

    def load(*args: Any) -> None:
        read.append("the table")
        raise RunError("the table is read")

    monkeypatch.setattr(pipeline, "load_table", load)
    with pytest.raises(DpsynthError) as refusal:
        pipeline.run(config(**QUICK), "out", resume=True, ledger="other.json")
    assert "did not begin with the ledger other.json" in str(refusal.value)
    with pytest.raises(InputError, match="--forget-earlier does not go with --resume"):
        pipeline.run(config(**QUICK), "out", resume=True, forget_earlier=True)
    assert read == []
    for ledger in ("named.json", None):
        with pytest.raises(RunError, match="the table is read"):
            pipeline.run(config(**QUICK), "out", resume=True, ledger=ledger)


def test_a_named_ledger_counts_beside_that_of_the_folder(folder: Path) -> None:
    """Would catch --ledger that is passed over where the folder has a ledger, or the other way round."""
    pipeline.run(config(**QUICK), "out")
    of_folder = Ledger.load("out/ledger.json")
    named = earlier_ledger()
    named.save("named.json")
    pipeline.run(config(**QUICK), "out", force=True, ledger="named.json")
    written = Ledger.load("out/ledger.json")
    assert written.holds(named) and written.holds(of_folder) and len(written.stages) == 3


def test_a_replaced_or_failed_fit_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch `fit --force`, or a fit after one that failed, that begins from an empty ledger."""
    SCHEMA.with_n_public(80).to_yaml("half.yaml")
    assert main(FIT.split()) == 0
    assert main([*FIT.split(), "--force"]) == 0
    assert "taken over from m/model.json" in capsys.readouterr().err
    assert len(DPMarginals.load("m").ledger_.stages) == 2
    with monkeypatch.context() as patch:
        patch.setattr(DPMarginals, "save", lambda *a, **k: (_ for _ in ()).throw(RunError("disk full")))
        assert main([*FIT.split(), "--force"]) == 1
    assert main([*FIT.split(), "--force"]) == 0
    assert len(DPMarginals.load("m").ledger_.stages) == 4
    capsys.readouterr()
    assert main([*FIT.split(), "--force", "--forget-earlier"]) == 0
    assert "left out on request" in capsys.readouterr().out


def test_an_earlier_ledger_that_cannot_be_read_is_not_passed_over(folder: Path) -> None:
    """Would catch a damaged ledger taken for an empty one."""
    pipeline.run(config(**QUICK), "out")
    Path("out/ledger.json").write_text("{")
    with pytest.raises(DataError, match=r"out/ledger\.json.*--forget-earlier"):
        pipeline.run(config(**QUICK), "out", force=True)
    done = pipeline.run(config(**QUICK), "out", force=True, forget_earlier=True)
    assert "left out on request" in str(done.report.guarantee)


def test_nothing_is_read_if_the_journal_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a statistic that no file tells of, and a full disk that is not named."""
    SCHEMA.with_n_public(80).to_yaml("half.yaml")

    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(FrameRecords, "_counts", lambda *a, **k: pytest.fail("records were read"))
    assert main(FIT.split()) == 1
    assert ".m.journal.json: No space left on device. Correct this" in capsys.readouterr().err
    assert not [path for path in folder.iterdir() if "m" in path.name and path.name.startswith(".")]


def test_a_changed_model_is_not_taken_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch a new fit that goes on from another cost than the replaced model had."""
    SCHEMA.with_n_public(80).to_yaml("half.yaml")
    assert main(FIT.split()) == 0
    text = Path("m/model.json").read_text()
    Path("m/model.json").write_text(text.replace('"single-column counts"', '"single-column c0unts"'))
    assert main([*FIT.split(), "--force"]) == 2
    assert "m/model.json: its sha256" in capsys.readouterr().err


@FEW
def test_a_ledger_that_is_not_the_models_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch a model shown with a cheaper run's ledger, by any command that reads the folder."""
    pipeline.run(config(**QUICK), "out")
    pipeline.run(config(model=model(epsilon=0.5), **QUICK), "cheap")
    Path("out/ledger.json").write_bytes(Path("cheap/ledger.json").read_bytes())
    for command in ("account --ledger out", "sample out -n 3 --out s.csv", "report out"):
        assert main(command.split()) == 2
        assert "is not the ledger of the model" in capsys.readouterr().err
    with pytest.raises(DataError, match="not the ledger of the model"):
        DPMarginals.load("out/model")


def test_account_reads_a_ledger_at_its_own_delta(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch epsilon told at 1e-5 for a ledger that was paid for at another delta."""
    pipeline.run(config(model=model(delta=1e-7), **QUICK), "out")
    assert main(["account", "--ledger", "out", "--json"]) == 0
    cost = json.loads(capsys.readouterr().out)
    assert cost["delta"] == 1e-7 and 2.9 < cost["epsilon"] <= 3.0


def test_the_owner_is_told_of_n_public_and_nobody_else(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a number of real rows in an output, or a slip that is found in a table nobody can use."""
    SCHEMA.with_n_public(160).to_yaml("half.yaml")
    assert main(FIT.split()) == 2
    assert "n_public is 160, but the table to fit has 80 rows (confidential" in capsys.readouterr().err
    assert not Path("m").exists() and not Path(".m.journal.json").exists()
    assert main([*FIT.split(), "--accept-n-public"]) == 0
    captured = capsys.readouterr()
    assert "has 80 rows (confidential" in captured.err and "80 rows" not in captured.out
    for path in Path("m").iterdir():
        assert b"accept_n_public" not in path.read_bytes()


def test_a_file_of_the_users_beside_the_folder_stays(folder: Path) -> None:
    """Would catch a journal whose name a copy of somebody's ledger has: a run overwrites and deletes it."""
    pipeline.run(config(**QUICK), "out")
    for name in ("out.ledger.json", "out.journal.json", "out.json"):
        Path(name).write_text("mine")
    pipeline.run(config(**QUICK), "out", force=True)
    for name in ("out.ledger.json", "out.journal.json", "out.json"):
        assert Path(name).is_file() and Path(name).read_text() == "mine"


def test_what_is_posted_after_a_fit_is_no_part_of_it(folder: Path) -> None:
    """Would catch a release of the user's that costs nothing beside what the fit had set aside for itself."""
    frame = pd.read_csv("cohort.csv")
    ledger = pipeline.build_model(config()).fit(frame, schema=SCHEMA.with_n_public(80)).ledger_
    before = ledger.epsilon(1e-5)
    ledger.post("deaths", gaussian_event(8.0), sensitivity="1")
    assert [entry.stage for entry in ledger.entries] == [1, 1, 2] and ledger.delta == 2e-5
    alone = Profile([gaussian_event(8.0)]).epsilon(1e-5)
    assert ledger.epsilon(2e-5) == pytest.approx(before + alone)
