"""One run from a configuration to a folder: everything or nothing, private or said not to be."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partialmethod
from pathlib import Path
from typing import Any

import plain_words
import pytest
import report_sources as sources
from cohort import SCHEMA, config, folder, model

from dpsynth import DPWGANGP, DPMarginals
from dpsynth.checks import together
from dpsynth.cli import main
from dpsynth.errors import ConfigError, DataError, InputError, PrivacyError, RunError
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Tables
from dpsynth.files.codec import to_plain
from dpsynth.files.storage import locked
from dpsynth.privacy import Ledger
from dpsynth.report.page import Mode, render
from dpsynth.runs import evaluation, pipeline
from dpsynth.runs import forecast as tables_of
from dpsynth.runs.config import RunConfig
from dpsynth.runs.folder import RunFolder
from dpsynth.synthesis.generators import load
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.wgan_gp import WganOptions
from dpsynth.table.files import read_table, write_table
from dpsynth.table.schema import Schema
from dpsynth.wgan.settings import MatchingSettings

__all__ = ["folder"]
ATTACKED = {"enabled": True}


def failing(problem: BaseException) -> Any:
    """A function that raises, whatever it is given."""

    def fail(*args: Any, **kwargs: Any) -> None:
        raise problem

    return fail


def measured_at_once(*args: Any, **kwargs: Any) -> Evaluation:
    """In place of an evaluation, which takes seconds."""
    return Evaluation((Measure("Records", "synthetic_records", 40, False, "rows"),), {"outcome": "died"})


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


@pytest.mark.slow
def test_a_run_writes_everything(folder: Path) -> None:
    """Would catch a missing file, a budget overspent, or files that tell different stories."""
    lines: list[str] = []
    asked = config(sample={"n": 50}, attack=ATTACKED)
    done = pipeline.run(asked, "runs/first", log=lines.append)
    assert (
        names(done.out)
        == {"croissant.json", "synthetic.csv", "model", "ledger.json"}
        | {"report.json", "report.md", "report.html"}
        == set(done.folder.files)
    )
    ledger = Ledger.load(done.out / "ledger.json")
    assert 2.5 < ledger.epsilon(1e-5) <= 3.0
    report = json.loads((done.out / "report.json").read_text())
    assert report["ledger"]["epsilon"] == pytest.approx(ledger.epsilon(1e-5))
    assert report["guarantee"] == str(ledger.guarantee(1e-5)) and report["private"] is True
    assert report["guarantee"] in (done.out / "report.md").read_text()
    assert RunConfig.from_dict(report["config"]) == asked
    assert report["table"]["schema_sha256"] == SCHEMA.with_n_public(40).digest()
    synthetic = read_table(done.out / "synthetic.csv", SCHEMA)
    assert len(synthetic) == 50 and SCHEMA.conform(synthetic).clipped == {"age": 0, "crea": 0}
    assert str(DPMarginals.load(done.out / "model").guarantee()) == report["guarantee"]
    assert len(lines) == 6 and report["attempts"]
    assert all(attempt["internal"] for attempt in report["attempts"])
    assert names(folder / "runs") == {"first", "first.ledger"}


@pytest.mark.filterwarnings("ignore::dpsynth.errors.OwnerWarning")
def test_the_page_to_share_names_the_columns_that_are_mostly_noise(folder: Path) -> None:
    """Would catch a page that is silent about them, or that names columns which the counts show well."""
    for epsilon, noisy in ((0.1, True), (1000.0, False)):
        done = pipeline.run(config(model=model(epsilon=epsilon)), f"runs/{epsilon:g}", evaluate=False)
        columns = DPMarginals.load(done.out / "model").model_.encoder.marginals.flattened
        named = f"{together(columns)}." if columns else "nothing"
        page = render(done.folder.read_report(), "release")
        assert bool(columns) == noisy == (f"by their released counts: {named}" in page)
        assert noisy == ("Noise has left little" in page)


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (MemoryError("no room"), 1, "the evaluation failed (MemoryError: no room)"),
        (KeyboardInterrupt(), 130, "the evaluation was interrupted"),
    ],
)
def test_what_was_paid_for_outlives_a_failing_evaluation(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: BaseException,
    status: int,
    said: str,
) -> None:
    """Would catch a budget spent on a model that is thrown away because a measure or a plot fails."""
    config().to_yaml("run.yaml")
    with monkeypatch.context() as patched:
        patched.setattr("dpsynth.runs.evaluation.evaluate_tables", failing(raised))
        assert main(["run", "run.yaml", "--out", "out"]) == status
    last = capsys.readouterr().err.splitlines()[-1]
    assert said in last and "The table, the model and the ledger are in out" in last
    assert {"synthetic.csv", "model", "ledger.json", "report.json"} <= names(folder / "out")
    assert json.loads((folder / "out/report.json").read_text())["evaluation"] is None
    assert DPMarginals.load(folder / "out/model").guarantee()
    assert "`dpsynth evaluate out`" in last
    monkeypatch.setattr("dpsynth.runs.evaluation.evaluate_tables", measured_at_once)
    assert main(["evaluate", "out"]) == 0
    assert json.loads((folder / "out/report.json").read_text())["evaluation"] is not None


@pytest.mark.slow
@pytest.mark.parametrize(("raised", "status"), [(MemoryError("no room"), 1), (KeyboardInterrupt(), 130)])
def test_what_was_measured_outlives_a_failing_attack(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: BaseException,
    status: int,
) -> None:
    """Would catch an evaluation lost with the attack, an attack nobody asked for, and words hard to read."""
    config(attack=ATTACKED).to_yaml("run.yaml")
    monkeypatch.setattr("dpsynth.runs.evaluation.evaluate_tables", measured_at_once)
    with monkeypatch.context() as patched:
        patched.setattr("dpsynth.runs.evaluation.attempts_on", failing(raised))
        assert main(["run", "run.yaml", "--out", "out"]) == status
        config().to_yaml("without.yaml")
        assert main(["run", "without.yaml", "--out", "without"]) == 0
    printed, said = capsys.readouterr()
    assert plain_words.printed(printed) + plain_words.printed(said) == []
    assert "the attack" in said and f"open {Path('without/report.html')} in a browser" in printed
    report = json.loads((folder / "out/report.json").read_text())
    assert report["evaluation"] is not None and report["attempts"] == []
    page = (folder / "out/report.html").read_text()
    assert page == render(RunFolder(folder / "out").read_report(), "internal")
    assert main(["evaluate", "out", "--force"]) == 0
    assert json.loads((folder / "out/report.json").read_text())["attempts"]


@pytest.mark.parametrize(("raised", "status"), [(OSError("disk full"), 1), (KeyboardInterrupt(), 130)])
def test_what_was_paid_for_outlives_failing_sampling(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: BaseException,
    status: int,
) -> None:
    """Would catch a model thrown away by Ctrl-C while records are drawn, and advice that does not work."""
    config().to_yaml("run.yaml")
    monkeypatch.setattr("dpsynth.runs.evaluation.evaluate_tables", measured_at_once)
    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "_sample_to", failing(raised))
        assert main(["run", "run.yaml", "--out", "out"]) == status
    last = capsys.readouterr().err.splitlines()[-1]
    assert "sampling" in last and not (folder / "out/synthetic.csv").exists()
    assert main(["evaluate", "out"]) == 2
    assert "holds no synthetic.csv" in capsys.readouterr().err
    advised = [command.split()[1:] for command in re.findall("`([^`]+)`", last)]
    assert [command[0] for command in advised] == ["sample", "evaluate"]
    for command in advised:
        assert main([word.replace("N", "40") for word in command]) == 0
    report = json.loads((folder / "out/report.json").read_text())
    assert report["evaluation"] is not None and report["table"]["synthetic_records"] == 40


@pytest.mark.slow
def test_a_run_evaluated_again_measures_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch another split or table, a changed model or ledger, and options that are not kept."""
    first = pipeline.run(config(), "out")
    before = {
        path: path.read_bytes()
        for path in first.out.rglob("*")
        if path.is_file() and "report" not in path.name
    }
    old = json.loads((folder / "out/report.json").read_text())
    assert main(["evaluate", "out"]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["evaluate", "out", "--force"]) == 0
    new = json.loads((folder / "out/report.json").read_text())
    del old["seconds"], new["seconds"], old["sha256"], new["sha256"]
    assert new == old
    effects = "logistic: died ~ age"
    Path("asked.yaml").write_text(f"effects: ['{effects}']\nconstraints: [age >= 30]\n")
    words = ["evaluate", "out", "--force", "--config", "asked.yaml", "--seed", "3"]
    given: list[Settings] = []
    monkeypatch.setattr(
        "dpsynth.runs.evaluation.evaluate_tables",
        lambda tables, settings, progress: given.append(settings) or measured_at_once(),
    )
    assert main(words) == 0
    new = json.loads((folder / "out/report.json").read_text())
    assert (given[0].effects, given[0].constraints, given[0].seed) == ((effects,), ("age >= 30",), 3)
    assert new["config"]["evaluate"]["effects"] == [effects]
    assert new["config"]["evaluate"]["seed"] == 3 and new["ledger"] == old["ledger"]
    assert effects in (folder / "out/report.html").read_text()
    assert before == {path: path.read_bytes() for path in before}


@pytest.mark.slow
def test_estimates_of_declared_studies_go_through_a_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch estimates that were paid for and are lost by a run, or by an evaluation of it later on."""
    study = replace(sources.study_of("mortality", ("age",)), formula="logistic: died ~ age", outcome="died")
    monkeypatch.setattr(DPMarginals, "estimates_", (study,))
    run = config()
    done = pipeline.run(run, "out")
    assert "Pre-specified regression" in (done.out / "report.md").read_text()
    assert main([*by_hand(done, run), "--model", "out", "--out", "hand"]) == 0
    assert main(["evaluate", "out", "--force"]) == 0
    for where in ("out", "hand"):
        report = RunFolder(folder / where).read_report()
        assert [*map(to_plain, report.studies)] == [to_plain(study)]
        assert report.evaluation["declared_same_sign"].value in (0.0, 1.0)
        (row,) = report.evaluation.details["regressions"].to_dict("records")
        assert row["study"] == "mortality" and row["confidential"]
        assert "Pre-specified regression mortality: private estimates" in render(report, "release")
        assert "effects" not in report.released().evaluation.details


def test_what_cannot_be_evaluated_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch a table measured against another split, or against bounds that are not its own."""
    pipeline.run(config(evaluate={"enabled": False}), "out")
    (folder / "half.checkpoint").mkdir()
    (folder / "half.checkpoint/checkpoint.json").write_text("{}")
    (folder / "metric.yaml").write_text("metric: manhattan\n")
    (folder / "weight.yaml").write_text("constraints: [weight >= 3]\n")
    SCHEMA.with_n_public(90).to_yaml("cohort.yaml")
    for words, said in (
        ("evaluate half", "Continue with `dpsynth run --resume`"),
        ("evaluate .", "not the folder of a run"),
        ("evaluate out --train cohort.csv", "--train does not go with the folder of a run"),
        ("evaluate out --config metric.yaml", "metric.yaml: metric must be 'euclidean'"),
        ("evaluate out --config weight.yaml", "'weight'"),
        ("evaluate out", "another schema"),
    ):
        assert main(words.split()) == 2
        assert said in capsys.readouterr().err
    assert json.loads((folder / "out/report.json").read_text())["evaluation"] is None


def test_what_was_paid_for_outlives_rules_that_refuse_everything(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a budget spent on a model that is thrown away because a rule was written wrongly."""
    monkeypatch.setattr("dpsynth.synthesis.sampling.CANDIDATES", 10_000)
    monkeypatch.setattr("dpsynth.synthesis.sampling.RAREST", 2.0)
    Schema(**{**dict(SCHEMA), "constraints": ("age > 80",)}).to_yaml("cohort.yaml")
    config().to_yaml("run.yaml")
    assert main(["run", "run.yaml", "--out", "out"]) == 1
    said = capsys.readouterr().err
    assert "age > 80 is nearly impossible" in said and ". The model and the ledger are in out" in said
    assert {"model", "ledger.json", "report.json", "report.md", "report.html"} == names(folder / "out")
    assert json.loads((folder / "out/report.json").read_text())["table"]["synthetic_records"] == 0
    assert (
        DPMarginals.load(folder / "out/model").ledger_.to_dict()
        == Ledger.load(folder / "out/ledger.json").to_dict()
    )


@pytest.mark.slow
def test_a_run_under_rules_says_how_many_records_obey(folder: Path) -> None:
    """Would catch a run that forgets its schema's constraints when sampling or when evaluating."""
    Schema(**{**dict(SCHEMA), "constraints": ("age < 70 or died = 1",)}).to_yaml("cohort.yaml")
    lines: list[str] = []
    done = pipeline.run(
        config(evaluate={"seed": 0, "reference": False, "effects": []}), "out", log=lines.append
    )
    assert any("of the model's records obey age < 70 or died = 1" in line for line in lines)
    evaluation = done.report.evaluation
    assert evaluation is not None
    assert evaluation["constraint_violations_synthetic[age < 70 or died = 1]"].value == 0
    assert evaluation["constraint_violations_train[age < 70 or died = 1]"].internal
    assert evaluation.settings["constraints"] == ["age < 70 or died = 1"]


def test_default_number_of_records_is_the_public_one(folder: Path) -> None:
    """Would catch a synthetic table as long as the private one, whose length is not public."""
    (folder / "cohort.csv").write_text((folder / "cohort.csv").read_text() + "50,1.0,1\n50,1.0,0\n")
    done = pipeline.run(config(evaluate={"enabled": False}), "out")
    assert done.report.table["synthetic_records"] == 40
    assert done.report.evaluation is None


@pytest.mark.slow
def test_a_run_without_epsilon_is_not_private_everywhere(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch an output of an unprotected run that does not say so."""
    config(model=model(epsilon=None)).to_yaml("run.yaml")
    assert main(["run", "run.yaml", "--out", "out"]) == 0
    assert capsys.readouterr().out.startswith("NOT PRIVATE")
    out = folder / "out"
    assert "NOT PRIVATE" in (out / "NOT_PRIVATE.txt").read_text()
    assert "**NOT PRIVATE.**" in (out / "report.md").read_text()
    report = json.loads((out / "report.json").read_text())
    assert report["private"] is False and report["ledger"]["epsilon"] is None
    assert DPMarginals.load(out / "model").guarantee().status == "void"


def test_a_seeded_run_repeats_and_is_not_private(folder: Path) -> None:
    """Would catch randomness outside the seed, and noise that can be drawn again passed off as private."""
    seeded = config(model=model(random_state=5), evaluate={"enabled": False})
    first, second = (pipeline.run(seeded, name) for name in ("a", "b"))
    assert (first.out / "synthetic.csv").read_bytes() == (second.out / "synthetic.csv").read_bytes()
    assert "NOT_PRIVATE.txt" in first.folder.files


@pytest.mark.slow
def test_unreviewed_fields_are_refused_or_excluded(folder: Path) -> None:
    """Would catch bounds read off the data that the guarantee silently covers."""
    text = SCHEMA.to_yaml().replace("upper: 90", "upper: 90\n  unreviewed: [upper]")
    (folder / "cohort.yaml").write_text(text)
    with pytest.raises(PrivacyError, match=r"age \(upper\)"):
        pipeline.run(config(), "out")
    data = {"path": "cohort.csv", "schema": "cohort.yaml", "accept_unreviewed": True}
    done = pipeline.run(config(data=data), "out")
    assert "does not cover" in str(done.report.guarantee)
    assert any("age" in reason for reason in done.report.guarantee.excluded)
    # names of terms would show the bound, evaluated or not
    bare = replace(done.report, evaluation=None, studies=(sources.study_of("mortality", ("age",)),))
    assert bare.table["unreviewed"] == ["age"] and bare.released().studies == ()


def test_a_failure_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch a half-written folder, or a temporary one left behind; what was posted has to stay."""

    def fail(*args: object, **kwargs: object) -> None:
        raise RunError("the disk is full")

    before = names(folder)
    monkeypatch.setattr(DPMarginals, "save", fail)
    with pytest.raises(RunError):
        pipeline.run(config(), "out")
    assert names(folder) - before == {"out.ledger"}
    read = [entry.name for entry in Ledger.open("out.ledger").entries]
    assert read == ["single-column counts", "base model tables"]


def test_force_keeps_the_old_run_until_the_new_one_is_complete(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch --force that deletes first and fails afterwards."""
    quick = config(evaluate={"enabled": False})
    pipeline.run(quick, "out")
    old = (folder / "out" / "synthetic.csv").read_bytes()
    with pytest.raises(InputError, match="exists and is not empty"):
        pipeline.run(quick, "out")
    with monkeypatch.context() as patched:
        patched.setattr(DPMarginals, "save", lambda *a, **k: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            pipeline.run(quick, "out", force=True)
    assert (folder / "out" / "synthetic.csv").read_bytes() == old
    pipeline.run(quick, "out", force=True)
    assert (folder / "out" / "synthetic.csv").read_bytes() != old
    assert "out" in names(folder) and not any(name.startswith(".out") for name in names(folder))


@pytest.mark.slow
@pytest.mark.usefixtures("eager_steps")
@pytest.mark.parametrize(
    "options",
    [{"generator": "wgan-gp", "steps": 40}, {"generator": "matching", "critics": 4}],
    ids=["wgan-gp", "matching"],
)
def test_an_interrupted_run_goes_on_from_its_checkpoint(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: dict[str, Any]
) -> None:
    """Would catch Ctrl-C that leaves a half-written run, loses the work, or lets it be released twice."""
    monkeypatch.setattr("dpsynth.wgan.training._CHUNK_STEPS", 5)
    small = {"training": SMALL} if "steps" in options else {}
    few = MatchingSettings(critic_width=2, points=40, iterations=60)
    monkeypatch.setattr("dpsynth.synthesis.matching.MatchingOptions.settings", lambda self, n: few)
    run = config(model=model(**options, **small), evaluate={"enabled": False})
    run.to_yaml("run.yaml")
    run = RunConfig.from_yaml("run.yaml")

    def interrupt(progress: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pipeline.run(run, "out", progress=interrupt)
    checkpoint = folder / "out.checkpoint"
    assert (checkpoint / "checkpoint.json").exists() and not (folder / "out").exists()

    assert main(["run", "run.yaml", "--out", "out"]) == 2
    assert "--resume" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="another configuration"):
        pipeline.run(config(), "out", resume=True)
    kept = (checkpoint / "run.json").read_text()
    for left, said in (("{", "it is not JSON"), (None, "no run wrote it")):
        (checkpoint / "run.json").unlink() if left is None else (checkpoint / "run.json").write_text(left)
        with pytest.raises(DataError, match=said):
            pipeline.run(run, "out", resume=True)
    (checkpoint / "run.json").write_text(kept)

    assert main(["run", "run.yaml", "--out", "out", "--resume", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ledger"]["epsilon"] <= 3.0
    assert [entry["name"] for entry in report["ledger"]["entries"]][-1] == "WGAN critic steps"
    assert not checkpoint.exists()
    with pytest.raises(DataError, match="no checkpoint to resume"):
        pipeline.run(run, "second", resume=True)


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "effects": (
        {"evaluate": {"effects": ["logistic: died ~ weight"]}},
        "out",
        "~ weight': 'weight' is not a column",
    ),
    "kind of effects": ({"evaluate": {"effects": ["linear: died ~ age"]}}, "out", "must be numeric"),
    "formula": (
        {"evaluate": {"effects": ["died on age"]}},
        "out",
        "evaluate: effects 'died on age': a model is written",
    ),
    "constraint": ({"evaluate": {"constraints": ["weight > 3"]}}, "out", "evaluate: constraint 'weight > 3'"),
    "table": ({"data": {"path": "absent.csv", "schema": "cohort.yaml"}}, "out", "absent.csv: there is no"),
    "table a folder": ({"data": {"path": ".", "schema": "cohort.yaml"}}, "out", " is a folder. Name a CSV"),
    "schema": ({"data": {"path": "cohort.csv", "schema": "absent.yaml"}}, "out", "absent.yaml"),
    "schema a table": ({"data": {"path": "cohort.csv", "schema": "cohort.csv"}}, "out", "cohort.csv"),
    "parent a file": ({}, "cohort.csv/out", "cannot be written"),
    "target a file": ({}, "cohort.csv", "is a file"),
    "target in use": ({}, "held", "in use by process"),
    "left by a kill": ({}, "killed", "was killed while it wrote killed"),
    "checkpoint left by a kill": ({}, "stopped", "was killed while it wrote stopped.checkpoint"),
    "ledger": ({"ledger": "absent.ledger"}, "out", "there is no ledger"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_found_before_a_record_is_read(
    case: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a slip of the pen told after the budget is spent, or a refused run that leaves files."""
    changes, words, said = WRONG[case]
    config(**changes).to_yaml("run.yaml")
    for name in (".killed", ".stopped.checkpoint"):
        (folder / f"{name}.abcdefgh.tmp/model").mkdir(parents=True)
        (folder / f"{name}.abcdefgh.tmp/model/model.json").write_text("{}")
    monkeypatch.setattr("dpsynth.runs.pipeline.load_table", failing(AssertionError("records were read")))
    before = sorted(folder.rglob("*"))
    ready, done = threading.Event(), threading.Event()

    def hold() -> None:
        with locked("held"):
            ready.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        ready.wait()
        assert main(["run", "run.yaml", "--out", *words.split()]) == 2
    finally:
        done.set()
        thread.join()
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1
    assert sorted(folder.rglob("*")) == before


KILLED = """
import os, signal, sys
from dpsynth.runs import evaluation, pipeline
from dpsynth.runs.config import RunConfig

{} = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
pipeline.run(RunConfig.from_yaml("run.yaml"), "out")
"""


@pytest.mark.slow
def test_a_run_killed_in_its_evaluation_leaves_a_complete_table(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a table that is renamed only after its evaluation, and advice that does not go on."""
    config().to_yaml("run.yaml")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED.format("evaluation.evaluate_tables")], capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL
    assert names(folder) - {"out.ledger", ".out.lock"} == {
        "cohort.csv",
        "cohort.yaml",
        "run.yaml",
        "out",
    }
    before = (folder / "out/synthetic.csv").read_bytes()
    assert DPMarginals.load("out/model").ledger_.to_dict() == Ledger.load("out/ledger.json").to_dict()
    assert main(["run", "run.yaml", "--out", "out", "--resume"]) == 2
    assert "`dpsynth evaluate out`" in capsys.readouterr().err
    monkeypatch.setattr("dpsynth.runs.evaluation.evaluate_tables", measured_at_once)
    assert main(["evaluate", "out"]) == 0
    assert (
        RunFolder(Path("out")).read_report().evaluation is not None
        and (folder / "out/synthetic.csv").read_bytes() == before
    )


def test_a_run_without_its_evaluation_says_how_to_go_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch --no-evaluate that evaluates, attacks, or switches both off for later."""
    config(attack=ATTACKED).to_yaml("run.yaml")
    with monkeypatch.context() as patched:
        for name in ("evaluate_tables", "attempts_on"):
            patched.setattr(f"dpsynth.runs.evaluation.{name}", failing(AssertionError("was asked not to")))
        assert main(["run", "run.yaml", "--out", "out", "--no-evaluate"]) == 0
    assert "`dpsynth evaluate out`" in capsys.readouterr().out
    monkeypatch.setattr("dpsynth.runs.evaluation.evaluate_tables", measured_at_once)
    assert main(["evaluate", "out"]) == 0
    assert (
        RunFolder(Path("out")).read_report().evaluation is not None
        and RunFolder(Path("out")).read_report().attempts
    )


@pytest.mark.slow
def test_what_a_killed_run_had_paid_for_is_named_and_can_be_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a model that was paid for and lies unseen in a hidden folder after kill -9."""
    config(evaluate={"seed": 0}).to_yaml("run.yaml")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED.format("evaluation.FinishedRun.write")], capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL and not (folder / "out").exists()
    assert main(["run", "run.yaml", "--out", "out"]) == 2
    told = capsys.readouterr().err
    (rest,) = folder.glob(".out.*.tmp")
    assert rest.name in told and "rename that folder to keep it" in told
    rest.rename(folder / "rescued")
    assert len(read_table("rescued/synthetic.csv", SCHEMA)) == 40
    assert main(["sample", "rescued", "-n", "5", "--out", "s.csv"]) == 0
    assert main(["account", "--ledger", "rescued"]) == 0
    config(evaluate={"enabled": False}).to_yaml("run.yaml")
    assert main(["run", "run.yaml", "--out", "out"]) == 0
    assert not [name for name in names(folder) if name.startswith(".out")]


def test_force_deletes_what_a_killed_run_left(folder: Path) -> None:
    """Would catch private checkpoints and paid-for models that stay in hidden folders for ever."""
    for name in (".out", ".out.checkpoint"):
        (folder / f"{name}.abcdefgh.tmp/model").mkdir(parents=True)
        (folder / f"{name}.abcdefgh.tmp/model/model.json").write_text("{}")
    quick = config(evaluate={"enabled": False})
    before = names(folder)
    with pytest.raises(InputError, match="rename that folder to keep it"):
        pipeline.run(quick, "out")
    assert names(folder) == before
    pipeline.run(quick, "out", force=True)
    assert names(folder) == {"cohort.csv", "cohort.yaml", "out", "out.ledger"}


@pytest.mark.slow
def test_a_run_of_ones_own_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch options that do not reach the run, or a run that only this folder can evaluate again."""
    monkeypatch.setattr("dpsynth.runs.evaluation.evaluate_tables", measured_at_once)
    command = "run --data cohort.csv --schema cohort.yaml --epsilon 2 --delta 1e-6 --out a/b"
    assert main([*command.split(), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ledger"]["epsilon"] <= 2 and report["ledger"]["delta"] == 1e-6
    written = report["config"]
    assert written["data"]["path"] == str(folder / "cohort.csv")
    assert written["model"]["generator"] == "marginals"
    for words, said in (
        ("run --out c", "give a YAML file, or --data"),
        ("run --data cohort.csv --out c", "dpsynth schema infer cohort.csv"),
        ("run --data cohort.csv --schema cohort.yaml --out c", "--epsilon is needed"),
        ("run --data cohort.csv --schema cohort.yaml --epsilon -1 --out c", "--epsilon must be greater"),
        ("run --data cohort.csv --schema cohort.yaml --epsilon 1 --delta 2 --out c", "--delta must be"),
        ("run cohort.yaml --epsilon 1 --out c", "--epsilon does not go with cohort.yaml"),
    ):
        assert main(words.split()) == 2
        told = capsys.readouterr().err
        assert said in told and told.count("\n") == 1
    assert names(folder) == {"cohort.csv", "cohort.yaml", "a"}


def by_hand(done: evaluation.FinishedRun, run: RunConfig) -> list[str]:
    """Writes the parts of a run's table as files; the command that evaluates its synthetic table by hand."""
    train, test = tables_of.split_table(run, tables_of.load_table(run))
    Path("parts").mkdir()
    write_table(train.frame, "parts/cohort.csv")  # of the same name, which a page for release leaves out
    write_table(test.frame, "test.csv")
    train.schema.to_yaml("train.yaml")
    tables = f"--synthetic {done.out}/synthetic.csv --train parts/cohort.csv --test test.csv --seed 0"
    return ["evaluate", *tables.split()]


def page(folder: Path, mode: Mode) -> str:
    """A page but for its times, attempts, the files' places and the split, of which only a run knows."""
    report = RunFolder(folder).read_report()
    shared = {name: report.config[name] for name in ("model", "evaluate")}
    return render(replace(report, config=shared, seconds={}, attempts=()), mode)


@pytest.mark.drawn
@pytest.mark.slow
def test_an_evaluation_by_hand_has_the_page_of_a_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a page without guarantee, curves and card for whoever goes step by step by hand."""
    run = config(model=model(random_state=5), evaluate={"seed": 0})
    done = pipeline.run(run, "out")
    command = by_hand(done, run)
    assert main([*command, "--model", "out", "--out", "hand"]) == 0
    theirs, ours = (json.loads((folder / where / "report.json").read_text()) for where in ("hand", "out"))
    for key in ("guarantee", "private", "ledger", "table", "evaluation", "versions"):
        assert theirs[key] == ours[key], key
    assert theirs["config"]["model"] == ours["config"]["model"]
    assert theirs["config"]["evaluate"] == ours["config"]["evaluate"]
    assert page(folder / "hand", "internal") == page(folder / "out", "internal")
    assert page(folder / "hand", "release") == page(folder / "out", "release")
    assert main(["report", "hand", "--mode", "release"]) == 0
    released = (folder / "hand/release.html").read_text()
    assert "cohort.csv" not in released and str(folder) not in released

    # a ledger tells the same but for the model's options
    monkeypatch.setattr("dpsynth.evaluation.evaluators.evaluate_tables", measured_at_once)
    told = [*command, "--schema", "train.yaml", "--ledger", "out/ledger.json"]
    assert main([*told, "--out", "ledger"]) == 0
    theirs = json.loads((folder / "ledger/report.json").read_text())
    assert theirs["guarantee"] == ours["guarantee"] and "model" not in theirs["config"]
    assert "None is known" not in (folder / "ledger/report.html").read_text()
    capsys.readouterr()
    SCHEMA.select(["age", "died"]).to_yaml("small.yaml")
    Path("weight.yaml").write_text("constraints: [weight > 3]\n")
    for options, said in (
        ("--schema train.yaml --delta 1e-5", "--delta goes with --ledger"),
        ("--schema small.yaml --model out", "small.yaml is not the schema"),
        ("--model out --ledger out/ledger.json", "--ledger does not go with --model"),
        ("--ledger out/ledger.json", "--schema is needed, or --model"),
        ("--model absent", "absent holds no model"),
        ("--schema train.yaml --config weight.yaml", "'weight'"),
    ):
        assert main([*command, *options.split(), "--out", "no"]) == 2
        assert said in capsys.readouterr().err
    assert not (folder / "no").exists()


def test_ctrl_c_exits_130_with_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a traceback at Ctrl-C, or a checkpoint that nobody is told of."""
    config(model=model(generator="wgan-gp")).to_yaml("run.yaml")

    def interrupted(self: DPWGANGP, frame: object, **kwargs: Any) -> None:
        if leaves_checkpoint:
            (kwargs["checkpoint"] / "checkpoint.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr(DPWGANGP, "fit", interrupted)
    leaves_checkpoint = False
    assert main(["run", "run.yaml", "--out", "out"]) == 130
    assert not (folder / "out.checkpoint").exists()
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("about 50 of 100 records train, and the others test the table")
    assert said[1:] == ["dpsynth: interrupted: no table was written"]
    leaves_checkpoint = True
    assert main(["run", "run.yaml", "--out", "out"]) == 130
    said = capsys.readouterr().err.splitlines()[1:]
    assert said == ["dpsynth: interrupted: a private checkpoint is in out.checkpoint. Continue with --resume"]
    assert (folder / "out.checkpoint" / "run.json").exists() and not (folder / "out").exists()


def test_fit_sample_and_account_on_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch commands that do not fit together, or a cost that changes on the way."""
    fit = "fit --data cohort.csv --schema cohort.yaml --epsilon 2 --delta 1e-6"
    fit += " --json --out model"
    assert main(fit.split()) == 0
    fitted = json.loads(capsys.readouterr().out)
    assert fitted["epsilon"] <= 2.0 and fitted["delta"] == 1e-6
    assert main(["account", "--ledger", "model", "--delta", "1e-6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] == pytest.approx(fitted["epsilon"])
    for target in ("s.csv", "s.parquet"):
        assert main(["sample", "model", "-n", "30", "--out", target, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["guarantee"] == fitted["guarantee"]
        assert len(read_table(target, SCHEMA)) == 30
    assert main(["sample", "model", "-n", "30", "--out", "s.csv"]) == 2
    assert main(["sample", "model", "-n", "0", "--out", "s.csv", "--force"]) == 0
    assert len(read_table("s.csv", SCHEMA)) == 0
    assert main(["sample", "model", "-n", "3", "--out", "s.xlsx"]) == 2
    capsys.readouterr()
    assert main(fit.replace("--epsilon 2", "--not-private").replace("--json", "--force").split()) == 0
    assert capsys.readouterr().out.startswith("NOT PRIVATE")
    assert main(["sample", "model", "-n", "3", "--seed", "1", "--out", "t.csv"]) == 0
    assert capsys.readouterr().out.startswith("NOT PRIVATE")


@pytest.mark.slow
def test_a_long_table_is_evaluated_on_its_first_records(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch a table of millions of rows held in memory."""
    monkeypatch.setattr(pipeline, "EVALUATED_ROWS", 60)
    monkeypatch.setattr(GeneratorModel, "blocks", partialmethod(GeneratorModel.blocks, block=50))
    evaluated: list[int] = []
    original = evaluation.evaluate_tables

    def count(tables: Tables, *rest: Any) -> Any:
        evaluated.append(len(tables.synthetic))
        return original(tables, *rest)

    monkeypatch.setattr(evaluation, "evaluate_tables", count)
    done = pipeline.run(config(sample={"n": 200}), "out")
    assert evaluated == [100]
    assert len((done.out / "synthetic.csv").read_text().splitlines()) == 201


WGAN = {"generator": "wgan-gp"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accept_unreviewed": True}, r"accept_unreviewed is not a known key\. Write data\.accept"),
        ({"depth": 3}, r"model\.depth is not a known key"),
        ({"steps": 3}, "model: steps is an option of generator wgan-gp, not of marginals"),
        ({"training": {"depth": 3}, **WGAN}, "depth"),
        ({"training": 3, **WGAN}, r"model\.training"),
        ({"training": {"latent": "wide"}, **WGAN}, "latent must be a valid integer"),
        ({"shares": {"training": 0.5}}, r"training is not a known key \(known keys: count"),
        ({"shares": {"neighbour_histogram": 0.1}}, r"neighbour_histogram is not a known key \(known"),
        ({"shares": {"tables": "many"}}, "many"),
        ({"noise_shape": "round", **WGAN}, r"model\.noise_shape must be"),
        ({"batch_size": "all", **WGAN}, r"model\.batch_size"),
    ],
)
def test_wrong_options_are_configuration_errors(options: dict[str, Any], message: str) -> None:
    """Would catch an option that is ignored, or a TypeError with a traceback after the data is read."""
    with pytest.raises(ConfigError, match=message):
        pipeline.build_model(config(model=model(**options)))


def test_options_reach_the_model() -> None:
    """Would catch an option that is read but not used."""
    options = {"steps": 7, "training": {"critic_hidden": [8, 8]}}
    built = pipeline.build_model(config(model=model(generator="wgan-gp", **options))).validate()
    assert isinstance(built, WganOptions) and built.training is not None
    assert (built.epsilon, built.delta, built.steps, built.training.critic_hidden) == (3.0, 1e-5, 7, (8, 8))
    built = pipeline.build_model(config(model=model(shares={"tables": 0.3}))).validate()
    assert built.division.tables == 0.3


def test_a_stratified_split_is_said_to_be_excluded(folder: Path) -> None:
    """Would catch a guarantee about the whole table where one record can reshuffle the training part."""
    done = pipeline.run(config(split={"method": "stratified"}, evaluate={"enabled": False}), "out")
    assert "stratified split" in str(done.report.guarantee)
    assert json.loads((done.out / "report.json").read_text())["private"] is False
    assert "stratified split" in str(DPMarginals.load(done.out / "model").guarantee())


def test_a_run_goes_on_from_a_ledger(folder: Path) -> None:
    """Would catch a second run on the same table that forgets the first."""
    first = pipeline.run(config(evaluate={"enabled": False}), "a")
    second = pipeline.run(config(evaluate={"enabled": False}, ledger="a.ledger"), "b")
    assert len(second.report.ledger.entries) == 2 * len(first.report.ledger.entries)
    assert second.report.guarantee.epsilon > first.report.guarantee.epsilon


def test_the_seed_of_the_noise_is_nowhere_in_a_run(folder: Path) -> None:
    """Would catch a seed in a file that may be shared: with it the noise can be taken away."""
    done = pipeline.run(config(model=model(random_state=987654321), evaluate={"enabled": False}), "out")
    for path in done.out.rglob("*"):
        assert path.is_dir() or b"987654321" not in path.read_bytes(), path


SMALL = {"critic_hidden": [4, 4], "generator_hidden": [4], "latent": 2}
CRITIC = {"generator": "wgan-gp", "steps": 4, "training": SMALL}


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch, eager_steps: None, few_trials: None) -> None:
    """So few audited steps of a critic that to compile their three programs would take the longest."""
    monkeypatch.setattr("dpsynth.audits.critic_training._CALL", 1)
    monkeypatch.setattr("dpsynth.audits.adversary.WATCHED_STEPS", 5)
    monkeypatch.setattr("dpsynth.audits.configuration.QUICK", 20)


@pytest.mark.slow
@pytest.mark.audited
@pytest.mark.usefixtures("few_steps")
def test_a_run_audits_its_releases(folder: Path) -> None:
    """Would catch a release that is not audited, one whose audit is internal, and a bound of another run."""
    done = pipeline.run(config(model=model(**CRITIC), attack=ATTACKED), "out")
    audited = [attempt for attempt in done.report.attempts if attempt.attack.startswith("audit: ")]
    names = {entry.name for entry in done.report.ledger.entries}
    told = {attempt.attack.removeprefix("audit: ").removesuffix(", at other noise") for attempt in audited}
    assert told == names
    assert all(attempt.proved is not None and not attempt.internal for attempt in audited)
    assert not any(attempt.contradicts for attempt in done.report.attempts)
    adversary = [attempt for attempt in done.report.attempts if attempt.attack.startswith("A_DI")]
    assert {attempt.internal for attempt in adversary} == {True, False}
    assert all(not attempt.internal for attempt in done.report.released().attempts)


@pytest.mark.slow
@pytest.mark.audited
@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("options", [{}, CRITIC], ids=["marginals", "wgan"])
def test_what_an_audit_releases_depends_on_no_record(folder: Path, options: dict[str, Any]) -> None:
    """Would catch random numbers, a plan or a number of trials that tell how many real records there are."""
    off = {"enabled": False}
    run = config(model=model(**options), evaluate={"seed": 0, **off}, attack=off)
    done = pipeline.run(run, "out")
    fitted = load(done.out / "model")
    train, test = tables_of.split_table(run, tables_of.load_table(run))
    made = read_table(done.out / "synthetic.csv", train.schema)
    found = []
    for records in (train, replace(train, frame=train.frame.iloc[5:].reset_index(drop=True))):
        tables = tables_of.compared(made, records, test)
        found.append([a for a in evaluation.attempts_on(run, tables, fitted) if not a.internal])
    assert found[0] == found[1] and len(found[0]) > 2


@pytest.mark.slow
def test_bounds_of_a_stratified_split_are_doubled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch the bound for one record more or less beside a split that exchanges one for another."""
    monkeypatch.setattr("dpsynth.runs.evaluation.evaluate_tables", measured_at_once)
    found = {}
    for method in ("independent", "stratified"):
        done = pipeline.run(config(split={"method": method}, attack=ATTACKED), method)
        told = next(a for a in done.report.attempts if a.attack.startswith("linkability") and a.proved)
        found[method] = told.proved / done.report.profile.tv()
    assert found == {"independent": pytest.approx(1), "stratified": pytest.approx(2)}


def test_a_private_number_of_nobody_makes_a_table_that_can_be_evaluated(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch a run that fails where the noise on the number of few records comes out far below 0."""
    SCHEMA.with_n_public(None).to_yaml("cohort.yaml")
    monkeypatch.setattr("dpsynth.privacy.release.CountRelease.finish", lambda self, noisy: 1.0)
    lines: list[str] = []
    done = pipeline.run(config(), "out", log=lines.append)
    assert not done.problems and len(read_table(done.out / "synthetic.csv", SCHEMA)) == 2
    assert any("noisy number" in line for line in lines)  # whoever has 40 records wonders at 2


def test_the_exact_number_of_records_of_a_run_without_noise_stays_inside(folder: Path) -> None:
    """Would catch a file to share that says how many records trained, and a line that calls it noisy."""
    SCHEMA.with_n_public(None).to_yaml("cohort.yaml")
    lines: list[str] = []
    asked = config(model=model(epsilon=None), evaluate={"enabled": False})
    done = pipeline.run(asked, "out", log=lines.append)
    exact = done.report.table["synthetic_records"]
    assert any("an exact number that is confidential" in line for line in lines)
    assert json.loads((done.out / "croissant.json").read_text())["description"].startswith(
        "Synthetic records,"
    )
    page = render(done.report, "release").split("<body")[1]
    assert f">{exact}<" not in page and f"{exact} synthetic records" not in page


@pytest.mark.parametrize("small", ["train", "test"])
def test_a_part_of_fewer_than_two_rows_is_found_before_anything_is_spent(
    folder: Path, monkeypatch: pytest.MonkeyPatch, small: str
) -> None:
    """Would catch a budget spent on a run that cannot be fitted or evaluated."""
    SCHEMA.with_n_public(None).to_yaml("cohort.yaml")
    split = pipeline.split_table

    def uneven(*args: Any) -> Any:
        return [
            replace(part, frame=part.frame.iloc[: 1 if name == small else None])
            for name, part in zip(("train", "test"), split(*args), strict=True)
        ]

    monkeypatch.setattr(pipeline, "split_table", uneven)
    with pytest.raises(DataError, match=r"at least 2 (test )?rows, got 1.*\(confidential"):
        pipeline.run(config(), "out")
    assert not Ledger.open("out.ledger").entries and not Path("out").exists()
