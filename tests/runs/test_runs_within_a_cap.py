"""Runs and fits of a data set whose ledger has a cap over all of them."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from cohort import SCHEMA, config, folder, model
from visits import VISITS, visits

from dpsynth import DPMarginals
from dpsynth.cli import main
from dpsynth.errors import InputError, PrivacyError
from dpsynth.files.text import dump_yaml
from dpsynth.privacy import Cost, Ledger, LedgerFile, gaussian_event
from dpsynth.runs import pipeline
from dpsynth.runs.config import RunConfig
from dpsynth.synthesis.wgan_gp import DPWGANGP
from dpsynth.table.files import read_table
from dpsynth.wgan.settings import TrainingSettings

__all__ = ["folder"]
DATA = "--data cohort.csv --schema cohort.yaml --epsilon 2"
COMMANDS = {
    "run": f"run {DATA} --no-evaluate --out out",
    "fit": f"fit {DATA} --out out",
}
QUICK: dict[str, Any] = {"evaluate": {"enabled": False}, "ledger": "clinic.ledger"}


@pytest.fixture
def file(folder: Path, monkeypatch: pytest.MonkeyPatch, few_draws: None) -> LedgerFile:
    """A ledger with a cap of epsilon 3 at delta 0.01, which the environment names."""
    made = LedgerFile("clinic.ledger")
    made.set_cap(3.0, 0.01)
    monkeypatch.setenv("DPSYNTH_LEDGER", "clinic.ledger")
    return made


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_beyond_the_cap_reads_no_record(
    file: LedgerFile, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Catches a command that opens the table before its cost is reserved, or leaves something behind."""
    opened: list[object] = []
    monkeypatch.setattr("dpsynth.datasets.open_table", lambda *args, **kwargs: opened.append(args))
    file.begin(Cost(1.5, 1e-6), "earlier")
    before = set(Path().iterdir())
    assert main(COMMANDS[command].split()) == 2
    assert "this one needs epsilon 2" in capsys.readouterr().err
    assert not opened and set(Path().iterdir()) == before
    assert file.history().used == (1.5, 1e-6)


@pytest.mark.parametrize("n_public", [400, None])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.filterwarnings("ignore::dpsynth.errors.OwnerWarning")
def test_a_command_pays_what_its_ledger_says(file: LedgerFile, command: str, n_public: int | None) -> None:
    """Catches a reservation below the ledger's cost, of another unit, or of the whole table's delta."""
    header, *rows = Path("cohort.csv").read_text().splitlines()
    Path("cohort.csv").write_text("\n".join([header, *rows * 5]))
    SCHEMA.with_n_public(n_public).model_copy(update={"unit": "one patient"}).to_yaml("cohort.yaml")
    assert main(COMMANDS[command].split()) == 0
    runs = file.history().runs
    assert len(runs) == 1
    use = runs[0]
    path = Path("out/ledger.json")
    ledger = Ledger.load(path) if path.is_file() else DPMarginals.load("out").ledger_
    assert use.cost == Cost(2.0, ledger.delta, ledger.unit) and ledger.unit == "one row = one patient"
    assert 1.9 < ledger.summary()["epsilon"] <= 2.0 and use.state == "complete"
    assert use.folder == str(Path("out").absolute())


def test_a_configuration_names_its_ledger(file: LedgerFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a file that is looked for elsewhere, and a run that pays nothing in a new folder."""
    monkeypatch.delenv("DPSYNTH_LEDGER")
    config(**QUICK).to_yaml("run.yaml")
    run = RunConfig.from_yaml("run.yaml")
    assert run.ledger == str(Path("clinic.ledger").absolute())
    assert run.of_fit() == config(ledger=None).located(".").of_fit()
    file.set_cap(5.0, 0.01)
    pipeline.run(run, "one")
    with pytest.raises(PrivacyError, match="Earlier runs used epsilon 3 at delta 1e-05"):
        pipeline.run(run, "two")
    assert not Path("two").exists() and not Path("one.ledger").exists()


def test_a_fit_in_python_pays_beforehand(file: LedgerFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a fit that ignores its ledger, reads before it pays, or has a seed, which protects nobody."""
    table = read_table("cohort.csv", SCHEMA)
    options = model(epsilon=2.0)
    try:
        fitted = DPMarginals(**options).fit(table, schema=SCHEMA, ledger="clinic.ledger")
    except PrivacyError as problem:
        pytest.fail(f"its cost was not reserved as a whole: {problem}")
    assert file.history().used == (2.0, 1e-5) and len(fitted.ledger_.stages) == 1
    monkeypatch.setattr(
        "dpsynth.synthesis.synthesizer.records_of", lambda *args, **kwargs: pytest.fail("read")
    )
    with pytest.raises(PrivacyError, match="this one needs epsilon 2"):
        fitted.fit(table, schema=SCHEMA, ledger="clinic.ledger")
    for without in ({"random_state": 1}, {"epsilon": None}):
        with pytest.raises(PrivacyError, match="covers no run without a guarantee"):
            DPMarginals(**{**options, **without}).fit(table, schema=SCHEMA, ledger="clinic.ledger")


@pytest.mark.parametrize("patients", [False, True])
def test_a_fit_in_python_posts_where_the_environment_says(
    file: LedgerFile, monkeypatch: pytest.MonkeyPatch, patients: bool
) -> None:
    """Catches a fit that is left out of the ledger in silence, although its file is named."""
    table, schema = read_table("cohort.csv", SCHEMA), SCHEMA
    options = model(epsilon=2.0)
    if patients:
        table, schema = visits(80), VISITS.with_n_public(80)
    fitted = DPMarginals(**options).fit(table, schema=schema, ledger=Ledger())  # records of nobody
    assert not file.history().runs
    with monkeypatch.context() as patch:
        patch.setattr("dpsynth.synthesis.synthesizer.records_of", lambda *a, **k: pytest.fail("read"))
        with pytest.raises(PrivacyError, match="does not count the earlier fit of this object"):
            fitted.fit(table, schema=schema)
        with pytest.raises(InputError, match="ledger must be a Ledger or the path of its file, got int"):
            fitted.fit(table, schema=schema, ledger=3)
    again = DPMarginals(**options).fit(table, schema=schema)
    assert file.history().used[0] == 2.0 and Ledger.open(file.path).counts(again.ledger_)
    with pytest.raises(PrivacyError, match="this one needs epsilon 2"):
        again.fit(table, schema=schema)
    with pytest.raises(PrivacyError, match="needs epsilon"):
        again.ledger_.post("deaths", gaussian_event(1.0), sensitivity="1")


@pytest.mark.slow
@pytest.mark.usefixtures("eager_steps")
def test_an_interrupted_fit_in_python_pays_once_and_its_copy_again(
    file: LedgerFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a checkpoint that is copied and resumed in Python as often as anybody likes, for nothing."""
    small = TrainingSettings(critic_hidden=(4, 4), generator_hidden=(4,), latent=2)
    monkeypatch.setattr("dpsynth.wgan.training._CHUNK_STEPS", 5)
    table, options = read_table("cohort.csv", SCHEMA), model(steps=40, training=small)

    def interrupt(progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        DPWGANGP(**options).fit(table, schema=SCHEMA, checkpoint="mine.checkpoint", progress=interrupt)
    monkeypatch.delenv("DPSYNTH_LEDGER")  # the checkpoint names the file
    assert [(use.state, use.cost.epsilon) for use in file.history().runs] == [("interrupted", 3.0)]
    shutil.copytree("mine.checkpoint", "copy.checkpoint")
    DPWGANGP.resume("mine.checkpoint", table)
    assert [use.state for use in file.history().runs] == ["complete"]
    for _ in range(3):  # a finished training is read from its checkpoint
        DPWGANGP.resume("mine.checkpoint", table)
    assert file.history().used == (3.0, 1e-5)
    with pytest.raises(PrivacyError, match="Earlier runs used epsilon 3"):
        DPWGANGP.resume("copy.checkpoint", table)
    file.set_cap(6.0, 0.01)
    DPWGANGP.resume("copy.checkpoint", table)
    assert file.history().used == (6.0, 2e-5)


def test_rows_are_not_added_to_patients(file: LedgerFile, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches the table of a patient's rows in the same sum as a table of rows."""
    visits(80).to_csv("visits.csv", index=False)
    Path("visits.yaml").write_text(dump_yaml(VISITS.with_n_public(80).to_dict()))
    file.begin(Cost(0.5, 1e-6), "rows")
    command = COMMANDS["fit"].replace("cohort", "visits")
    assert main(command.split()) == 2
    assert "protects one row, and this run protects one patient (one pat" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("eager_steps")
def test_an_interrupted_run_pays_once_and_its_copy_again(
    file: LedgerFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a resumed run that pays twice, and a copied checkpoint that goes on without payment."""
    small = {"critic_hidden": [4, 4], "generator_hidden": [4], "latent": 2}
    monkeypatch.setattr("dpsynth.wgan.training._CHUNK_STEPS", 5)
    run = config(**QUICK, model=model(generator="wgan-gp", steps=40, training=small))

    def interrupt(progress: Any) -> None:
        raise KeyboardInterrupt

    for resume in (False, True):
        with pytest.raises(KeyboardInterrupt):
            pipeline.run(run, "out", progress=interrupt, resume=resume)
        assert [(use.state, use.cost.epsilon) for use in file.history().runs] == [("interrupted", 3.0)]
        shutil.copytree("out.checkpoint", f"copy-{resume}.checkpoint")
    pipeline.run(run, "out", resume=True)
    assert [use.state for use in file.history().runs] == ["complete"]
    for resume in (False, True):
        with pytest.raises(PrivacyError, match="Earlier runs used epsilon 3"):
            pipeline.run(run, f"copy-{resume}", resume=True)


def test_what_was_spent_is_shown(file: LedgerFile, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a history without a cost, a statistic, or a change of its cap."""
    ledger = Ledger.open(file.path)
    with ledger.reserved(Cost(1.0001, 1e-6, "one row = one patient"), "out"):
        ledger.about("one patient")
        ledger.begin_stage(1e-6)
        ledger.post("counts", gaussian_event(9.0), sensitivity="1")
    assert main(["ledger", "clinic.ledger", "--epsilon", "2", "--delta", "0.01"]) == 0
    capsys.readouterr()
    assert main(["ledger"]) == 0
    said, _, *lines = capsys.readouterr().out.splitlines()
    assert said == (
        "clinic.ledger: epsilon 1.001 of 2 and delta 1e-06 of 0.01 used, for adding or removing one patient"
    )
    process = f"{os.getpid()}@{socket.gethostname()}"
    assert sorted(line.split()[2:] for line in lines) == [
        ["1.001", "1e-06", "1", "out", process, "complete"],
        ["2", "0.01", "cap", "set"],
        ["3", "0.01", "cap", "set"],
    ]
    Path("out").mkdir()
    Path("clinic.ledger").rename("out.ledger")
    assert main(["ledger", "out", "--json"]) == 0  # that of a folder
    record = json.loads(capsys.readouterr().out)
    assert (record["epsilon_used"], record["epsilon"], record["runs"][0]["folder"]) == (1.0001, 2.0, "out")
    assert record["runs"][0]["entries"][0]["name"] == "counts" and len(record["caps"]) == 2
