"""What was released from a folder's table goes on into its next ledger, whatever became of the run."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cohort import SCHEMA, config, folder, model
from visits import VISITS, visits

from dpsynth import DPMarginals
from dpsynth.cli import main
from dpsynth.errors import DataError, DpsynthError, OwnerWarning, PrivacyError, RunError
from dpsynth.privacy import Cost, Ledger, LedgerFile, Profile, gaussian_event
from dpsynth.privacy.records import FrameRecords
from dpsynth.runs import pipeline
from dpsynth.runs.folder import RunFolder
from dpsynth.synthesis import fit
from dpsynth.synthesis.parts import columns
from dpsynth.synthesis.wgan_gp import DPWGANGP

__all__ = ["folder"]
QUICK = {"evaluate": {"enabled": False}}
#: noisy statistics of one run
OWN = ["single-column counts", "base model tables"]
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


def killed(path: str, name: str = "WGAN critic steps", unit: str | None = None) -> Ledger:
    """A ledger's file in which a run that was killed had posted something, and that run's ledger."""
    ledger = Ledger.open(path, make=True)
    ledger.about(unit)
    with contextlib.suppress(RunError), ledger.reserved(Cost(2.0, 1e-5, ledger.unit), "killed"):
        ledger.begin_stage(1e-5)
        ledger.post(name, gaussian_event(5.0), sensitivity="1")
        raise RunError("killed")
    return ledger


def names(path: str) -> list[str]:
    return [entry.name for entry in Ledger.load(path).entries]


def test_a_statistic_is_posted_before_the_records_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch a reading that no file tells of when kill -9 ends the process in it."""
    seen: list[tuple[str, ...]] = []
    counts = FrameRecords._counts

    def look(*args: Any) -> Any:
        seen.append(tuple(entry.name for entry in Ledger.open("out.ledger").entries))
        return counts(*args)

    monkeypatch.setattr(FrameRecords, "_counts", look)
    pipeline.run(config(**QUICK), "out")
    assert seen == [tuple(OWN[:1]), tuple(OWN)]
    assert Ledger.open("out.ledger").to_dict() == Ledger.load("out/ledger.json").to_dict()
    (run,) = LedgerFile("out.ledger").history().runs
    assert (run.folder, run.state) == (str(Path("out").absolute()), "complete")
    assert run.process.startswith(f"{os.getpid()}@")


@pytest.mark.parametrize("raised", [RunError("training diverged"), KeyboardInterrupt()])
def test_a_run_that_failed_counts_in_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    """Would catch a run given up after it had read the table, and a second one that knows nothing of it."""

    def fail(*args: Any, **kwargs: Any) -> None:
        raise raised

    said: list[str] = []
    ledger = Path("out.ledger").absolute()
    with monkeypatch.context() as patch:
        patch.setattr(DPMarginals, "_finish", fail)
        with pytest.raises(type(raised)):
            pipeline.run(config(**QUICK), "out", log=said.append)
    assert said[1:] == [
        "the run stopped after 2 noisy statistics (single-column counts and base model tables), which cost "
        f"epsilon 3 at delta 1e-05. Later runs count this cost, which stands in {ledger}"
    ]
    done = pipeline.run(config(**QUICK), "out", log=said.append)
    assert said[2] == f"the ledger {ledger} holds 2 earlier noisy statistics. They count as well"
    assert stages("out/ledger.json") == 2 and 5.9 < done.report.guarantee.epsilon <= 6.0
    assert done.report.delta == 2e-5 and "the sum of 2 stages" in str(done.report.guarantee)
    states = ["interrupted" if isinstance(raised, KeyboardInterrupt) else "stopped", "complete"]
    assert [run.state for run in LedgerFile("out.ledger").history().runs] == states


@pytest.mark.parametrize("n_public", [80, None])
def test_a_run_that_failed_says_its_cost(
    folder: Path, monkeypatch: pytest.MonkeyPatch, n_public: int | None
) -> None:
    """Would catch a message that states less than the next run counts, or leaves out a posted statistic.

    All that was reserved counts, since when a run stops may depend on what it has drawn.
    """
    SCHEMA.with_n_public(n_public).to_yaml("cohort.yaml")
    wanted, said = config(**QUICK), list[str]()

    def fail(*args: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(columns, "estimate_marginals", fail)
        with pytest.raises(MemoryError):
            pipeline.run(wanted, "out", log=said.append)
    posted = "2 noisy statistics (number of records and" if n_public is None else "1 noisy statistic ("
    assert f"{posted}{' ' * (n_public is None)}single-column counts)" in said[-1]
    cost = float(said[-1].split("which cost epsilon ")[1].split()[0])
    alone = pipeline.run(wanted, "other").report.guarantee.epsilon
    assert alone == pytest.approx(3.0, rel=1e-3) and cost == pytest.approx(3.0)
    assert LedgerFile("out.ledger").history().used[0] == pytest.approx(cost)
    again = pipeline.run(wanted, "out").report.guarantee.epsilon
    assert again == pytest.approx(alone + cost) if n_public is None else alone < again <= alone + cost


@pytest.mark.slow
def test_a_replaced_run_counts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch --force that makes a table, unread, and a ledger that forgets in silence."""
    config(**QUICK).to_yaml("run.yaml")
    command = ["run", "run.yaml", "--out", "out"]
    assert main(command) == 0
    assert main([*command, "--force"]) == 0
    assert "out.ledger holds 2 earlier noisy statistics" in capsys.readouterr().err
    assert stages("out/ledger.json") == 2


@pytest.mark.parametrize(
    "how", ["no file", "an older copy", "another file", "a checkpoint", "a used checkpoint"]
)
def test_a_folder_that_the_ledger_does_not_count_is_not_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Would catch a ledger without what the replaced folder released, in any way that it can get lost."""
    monkeypatch.setattr(pipeline, "load_table", lambda *args: pytest.fail("the table was read"))
    named = {"ledger": "other.ledger"} if how == "another file" else {}
    killed("other.ledger")
    if "checkpoint" in how:
        abandoned("out", killed("of_checkpoint.ledger"), config(**QUICK))
        if how == "a used checkpoint":
            os.rename("out.checkpoint/checkpoint.json", "out.checkpoint/checkpoint.used.json")
    else:
        Path("out").mkdir()
        killed("out.ledger", "first")
        older = Path("out.ledger").read_bytes()
        killed("out.ledger", "second").save("out/ledger.json")
        Path("out/report.json").write_text("{}")
        if how == "no file":
            Path("out.ledger").unlink()
        elif how == "an older copy":
            Path("out.ledger").write_bytes(older)
    with pytest.raises(
        PrivacyError, match=r"holds noisy statistics that the ledger .*\.ledger does not count"
    ):
        pipeline.run(config(**QUICK, **named), "out", force=True)
    assert Path("out.checkpoint" if "checkpoint" in how else "out/ledger.json").exists()


@pytest.mark.parametrize("command", ["run", FIT, FIT.replace("cohort", "visits")])
@pytest.mark.parametrize("problem", ["a value", "no table", "the reading", "Ctrl-C"])
def test_a_run_refused_before_its_first_statistic_keeps_what_a_killed_one_posted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, problem: str
) -> None:
    """Catches a refused run that deletes what a killed one had released, in any command, also of patients."""
    out, table = ("out", "cohort.csv") if command == "run" else ("m", command.split()[2])
    several = table == "visits.csv"
    (VISITS if several else SCHEMA).with_n_public(80).to_yaml("half.yaml")
    visits(80).to_csv("visits.csv", index=False)
    config(**QUICK).to_yaml("run.yaml")
    before = killed(f"{out}.ledger", unit=(VISITS if several else SCHEMA).levels.unit).to_dict()
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
    assert not Path(out).exists() and Ledger.open(f"{out}.ledger").to_dict() == before
    states = ["stopped"] if problem == "no table" else ["stopped", "nothing used"]
    assert [run.state for run in LedgerFile(f"{out}.ledger").history().runs] == states


@pytest.mark.parametrize("name", ["checkpoint.json", "checkpoint.used.json"])
def test_folder_killed_run_and_checkpoint_all_count(folder: Path, name: str) -> None:
    """Catches a ledger of the next run without what one of them released, where all three are there."""
    pipeline.run(config(**QUICK), "out")
    abandoned("out", killed("out.ledger", "of a killed run"), config(**QUICK))
    os.rename("out.checkpoint/checkpoint.json", f"out.checkpoint/{name}")
    said: list[str] = []
    pipeline.run(config(**QUICK), "out", force=True, log=said.append)
    assert names("out/ledger.json") == [*OWN, "of a killed run", *OWN]
    assert "holds 3 earlier noisy statistics" in said[0] and stages("out/ledger.json") == 3
    assert DPMarginals.load("out/model").ledger_.to_dict() == Ledger.load("out/ledger.json").to_dict()


@FEW
def test_a_given_up_checkpoint_is_resumed_by_nobody_and_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch another run's checkpoint, of another epsilon, resumed as this one's, or forgotten.

    The second run is interrupted twice before it trains; the third is carried out.
    """
    abandoned("out", killed("out.ledger"), config(model=model(epsilon=8.0), **QUICK))
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
    assert entries == ["WGAN critic steps", *OWN]


def test_a_resumed_run_counts_all_that_its_data_set_released(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch --resume that writes the checkpoint's ledger and drops what others posted since."""
    # of which the checkpoint's run has posted a part
    mine = config(model=model(generator="wgan-gp", delta=3e-5), **QUICK)
    rest = config(model=model(epsilon=1.0), **QUICK)
    abandoned("out", killed("out.ledger"), mine)
    killed("out.ledger", "another run")

    def resumed(checkpoint: Path, frame: Any, *, ledger: Ledger, **kwargs: Any) -> DPMarginals:
        return pipeline.build_model(rest).fit(frame, schema=SCHEMA.with_n_public(len(frame)), ledger=ledger)

    monkeypatch.setattr(DPWGANGP, "resume", resumed)
    pipeline.run(mine, "out", resume=True)
    assert names("out/ledger.json") == ["another run", "WGAN critic steps", *OWN]
    assert DPMarginals.load("out/model").ledger_.counts(Ledger.open("out.ledger"))
    assert [run.state for run in LedgerFile("out.ledger").history().runs] == ["complete", "stopped"]


def test_a_checkpoint_is_resumed_in_its_own_ledger(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch --resume that counts a run where it was not paid, or that has read the table by then."""
    abandoned("out", killed("out.ledger"), config(**QUICK))
    killed("other.ledger")
    monkeypatch.setattr(pipeline, "load_table", lambda *args: pytest.fail("the table was read"))
    with pytest.raises(PrivacyError, match=r"that the ledger .*other\.ledger does not count"):
        pipeline.run(config(**QUICK, ledger="other.ledger"), "out", resume=True)


def test_a_named_ledger_is_the_only_one(folder: Path) -> None:
    """Would catch a run that posts beside its folder although a ledger is named, or one that makes it."""
    with pytest.raises(
        DpsynthError, match=r"there is no ledger .*clinic\.ledger. `dpsynth ledger .* makes one"
    ):
        pipeline.run(config(**QUICK, ledger="clinic.ledger"), "one")
    LedgerFile("clinic.ledger").set_cap(9.0, 1e-3)
    for out in ("one", "two"):
        pipeline.run(config(**QUICK, ledger="clinic.ledger"), out)
    assert (stages("one/ledger.json"), stages("two/ledger.json")) == (1, 2)
    assert not list(Path().glob("*/*.ledger")) and [path.name for path in Path().glob("*.ledger")] == [
        "clinic.ledger"
    ]


def test_a_replaced_or_failed_fit_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch `fit --force`, or a fit after one that failed, that begins from an empty ledger."""
    SCHEMA.with_n_public(80).to_yaml("half.yaml")
    assert main(FIT.split()) == 0
    assert main([*FIT.split(), "--force"]) == 0
    assert "m.ledger holds 2 earlier noisy statistics" in capsys.readouterr().err
    assert len(DPMarginals.load("m").ledger_.stages) == 2
    with monkeypatch.context() as patch:
        patch.setattr(DPMarginals, "save", lambda *a, **k: (_ for _ in ()).throw(RunError("disk full")))
        assert main([*FIT.split(), "--force"]) == 1
    assert main([*FIT.split(), "--force"]) == 0
    assert len(DPMarginals.load("m").ledger_.stages) == 4


def test_an_earlier_ledger_that_cannot_be_read_is_not_passed_over(folder: Path) -> None:
    """Would catch a damaged ledger taken for an empty one."""
    pipeline.run(config(**QUICK), "out")
    for name in ("out.ledger", "out/ledger.json"):
        whole = Path(name).read_bytes()
        Path(name).write_text("{")
        with pytest.raises(DataError, match=name.replace(".", r"\.")):
            pipeline.run(config(**QUICK), "out", force=True)
        Path(name).write_bytes(whole)


def test_nothing_is_read_if_nothing_can_be_posted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a statistic that no file tells of, and a full disk that is not named."""
    SCHEMA.with_n_public(80).to_yaml("half.yaml")

    def full(*args: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("dpsynth.privacy.ledger_file._update", full)
    monkeypatch.setattr(FrameRecords, "_counts", lambda *a, **k: pytest.fail("records were read"))
    assert main(FIT.split()) == 2
    assert "m.ledger" in (said := capsys.readouterr().err) and "database or disk is full" in said
    assert not Path("m").exists()


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


@pytest.mark.parametrize(
    ("posted", "said"),
    [
        (1, "1 earlier noisy statistic. It counts as well"),
        (2, "2 earlier noisy statistics. They count as well"),
    ],
)
def test_earlier_statistics_are_said(folder: Path, posted: int, said: str) -> None:
    """Catches a run that goes on from others in silence, or says so in wrong English."""
    for number in range(posted):
        killed("out.ledger", f"statistic {number}")
    told: list[str] = []
    pipeline.run(config(**QUICK), "out", log=told.append)
    assert told[0].endswith(f"out.ledger holds {said}")


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
    assert not Path("m").exists() and not Ledger.open("m.ledger").entries
    frame, half = pd.read_csv("cohort.csv"), SCHEMA.with_n_public(160)
    with pytest.warns(OwnerWarning, match=r"has 80 rows \(confidential"):
        model = DPMarginals(3.0, 1e-5).fit(frame, schema=half, accept_n_public=True)
    model.save("m")
    for path in Path("m").iterdir():
        assert b"accept_n_public" not in path.read_bytes()


def test_a_file_of_the_users_beside_the_folder_stays(folder: Path) -> None:
    """Would catch a ledger whose name a copy of somebody's ledger has: a run overwrites it."""
    pipeline.run(config(**QUICK), "out")
    for name in ("out.ledger.json", "out.json"):
        Path(name).write_text("mine")
    pipeline.run(config(**QUICK), "out", force=True)
    for name in ("out.ledger.json", "out.json"):
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
