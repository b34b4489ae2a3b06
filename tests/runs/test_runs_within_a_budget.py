"""Runs and fits whose data set has a budget over all of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from chosen_statistics import dp_marginals
from cohort import SCHEMA, config, folder, model
from visits import VISITS, visits

from dpsynth import DPMarginals
from dpsynth.cli import main
from dpsynth.errors import ConfigError, DataError, InputError, PrivacyError
from dpsynth.files.text import dump_yaml
from dpsynth.privacy import Budget, Cost, Ledger
from dpsynth.runs import pipeline
from dpsynth.runs.config import RunConfig
from dpsynth.synthesis.wgan_gp import DPWGANGP
from dpsynth.table.files import read_table
from dpsynth.wgan.settings import TrainingSettings

__all__ = ["folder"]
DATA = "--data cohort.csv --schema cohort.yaml --epsilon 2"
COMMANDS = {
    "run": f"run {DATA} --no-evaluate --out out --budget clinic",
    "fit": f"fit {DATA} --out out --budget clinic",
}
QUICK: dict[str, Any] = {"evaluate": {"enabled": False}, "budget": {"path": "b.db", "name": "clinic"}}


@pytest.fixture
def budget(folder: Path, monkeypatch: pytest.MonkeyPatch, few_draws: None) -> Budget:
    """A budget of epsilon 3 at delta 0.01, which the environment names."""
    made = Budget("b.db", "clinic")
    made.set(3.0, 0.01)
    monkeypatch.setenv("DPSYNTH_BUDGET", "b.db")
    return made


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_beyond_the_budget_reads_no_record(
    budget: Budget, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Catches a command that opens the table before its cost is reserved, or leaves something behind."""
    opened: list[object] = []
    monkeypatch.setattr("dpsynth.datasets.open_table", lambda *args, **kwargs: opened.append(args))
    budget.reserve(Cost(1.5, 1e-6), "earlier")
    before = set(Path().iterdir())
    assert main(COMMANDS[command].split()) == 2
    assert "this one needs epsilon 2" in capsys.readouterr().err
    assert not opened and set(Path().iterdir()) == before
    assert budget.standing().used == (1.5, 1e-6)


@pytest.mark.parametrize("n_public", [400, None])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.filterwarnings("ignore::dpsynth.errors.OwnerWarning")
def test_a_command_pays_what_its_ledger_says(budget: Budget, command: str, n_public: int | None) -> None:
    """Catches a reservation below the ledger's cost, of another unit, or of the whole table's delta."""
    header, *rows = Path("cohort.csv").read_text().splitlines()
    Path("cohort.csv").write_text("\n".join([header, *rows * 5]))
    SCHEMA.with_n_public(n_public).model_copy(update={"unit": "one patient"}).to_yaml("cohort.yaml")
    assert main(COMMANDS[command].split()) == 0
    (use,) = budget.standing().uses
    path = Path("out/ledger.json")
    ledger = Ledger.load(path) if path.is_file() else DPMarginals.load("out").ledger_
    assert use.cost == Cost(2.0, ledger.delta, ledger.unit) and ledger.unit == "one row = one patient"
    assert 1.9 < ledger.summary()["epsilon"] <= 2.0 and use.state == "complete"
    assert use.run == str(Path("out").absolute())


def test_a_command_names_its_data_set(budget: Budget, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a command that is not counted because it names no data set, or a name that is ignored."""
    for command in COMMANDS.values():
        assert main(command.replace("--budget clinic", "").split()) == 2
        assert "must name its data set" in capsys.readouterr().err
    config(evaluate={"enabled": False}).to_yaml("run.yaml")
    assert main(["run", "run.yaml", "--out", "out", "--budget", "clinic"]) == 2
    assert "write it into that file" in capsys.readouterr().err
    assert not budget.standing().uses


def test_a_configuration_names_file_and_data_set(budget: Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a file that is looked for elsewhere, and a run that pays nothing in a new folder."""
    monkeypatch.delenv("DPSYNTH_BUDGET")
    config(**QUICK).to_yaml("run.yaml")
    run = RunConfig.from_yaml("run.yaml")
    assert run.budget is not None and run.budget.path == str(Path("b.db").absolute())
    assert run.of_fit() == config(budget=None).located(".").of_fit()
    with pytest.raises(ConfigError, match=r"budget\.name is required"):
        config(budget={"path": "b.db"})
    budget.set(5.0, 0.01)
    pipeline.run(run, "one")
    with pytest.raises(PrivacyError, match="Earlier runs used epsilon 3 at delta 1e-05"):
        pipeline.run(run, "two")
    assert not Path("two").exists()


def test_a_fit_in_python_pays_beforehand(budget: Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a fit that ignores the budget, reads before it pays, or has a seed, which protects nobody."""
    table = read_table("cohort.csv", SCHEMA)
    options = model(epsilon=2.0)
    fitted = dp_marginals(**options).fit(table, schema=SCHEMA, budget=budget)
    assert budget.standing().used == (2.0, 1e-5) and len(fitted.ledger_.stages) == 1
    monkeypatch.setattr(
        "dpsynth.synthesis.synthesizer.records_of", lambda *args, **kwargs: pytest.fail("read")
    )
    with pytest.raises(PrivacyError, match="this one needs epsilon 2"):
        fitted.fit(table, schema=SCHEMA, budget=budget)
    for without in ({"random_state": 1}, {"epsilon": None}):
        with pytest.raises(PrivacyError, match="covers no run without a guarantee"):
            dp_marginals(**{**options, **without}).fit(table, schema=SCHEMA, budget=budget)


@pytest.mark.parametrize("patients", [False, True])
def test_a_fit_in_python_names_its_data_set(
    budget: Budget, monkeypatch: pytest.MonkeyPatch, patients: bool
) -> None:
    """Catches a fit that is left out of the budget in silence, although a file of budgets is named."""
    table, schema = read_table("cohort.csv", SCHEMA), SCHEMA
    options = model(epsilon=2.0)
    if patients:
        table, schema = visits(80), VISITS.with_n_public(80)
    said = r"DPSYNTH_BUDGET names a file .* budget=Budget\('b.db', NAME\)"
    with monkeypatch.context() as patch:
        patch.setattr("dpsynth.synthesis.synthesizer.records_of", lambda *a, **k: pytest.fail("read"))
        with pytest.raises(InputError, match=said):
            dp_marginals(**options).fit(table, schema=schema)
        with pytest.raises(InputError, match="must be a Budget or None, got str"):
            dp_marginals(**options).fit(table, schema=schema, budget="clinic")
        with pytest.raises(InputError, match=said):
            DPWGANGP.resume("absent", table)
    dp_marginals(**options).fit(table, schema=schema, budget=None)
    assert not budget.standing().uses
    monkeypatch.delenv("DPSYNTH_BUDGET")
    dp_marginals(**options).fit(table, schema=schema)


@pytest.mark.slow
@pytest.mark.usefixtures("eager_steps")
def test_an_interrupted_fit_in_python_pays_once_and_its_copy_again(
    budget: Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a checkpoint that is copied and resumed in Python as often as anybody likes, for nothing."""
    small = TrainingSettings(critic_hidden=(4, 4), generator_hidden=(4,), latent=2)
    monkeypatch.setattr("dpsynth.wgan.training._CHUNK_STEPS", 5)
    table, options = read_table("cohort.csv", SCHEMA), model(steps=40, training=small)

    def interrupt(progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        DPWGANGP(**options).fit(
            table, schema=SCHEMA, budget=budget, checkpoint="mine.checkpoint", progress=interrupt
        )
    assert [(use.state, use.cost.epsilon) for use in budget.standing().uses] == [("interrupted", 3.0)]
    shutil.copytree("mine.checkpoint", "copy.checkpoint")
    DPWGANGP.resume("mine.checkpoint", table, budget=budget)
    assert [use.state for use in budget.standing().uses] == ["complete"]
    with pytest.raises(DataError, match="has been resumed before"):
        DPWGANGP.resume("mine.checkpoint", table, budget=budget)
    with pytest.raises(PrivacyError, match="Earlier runs used epsilon 3"):
        DPWGANGP.resume("copy.checkpoint", table, budget=budget)
    budget.set(6.0, 0.01)
    DPWGANGP.resume("copy.checkpoint", table, budget=budget)
    assert budget.standing().used == (6.0, 2e-5)


def test_rows_are_not_added_to_patients(budget: Budget, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches the table of a patient's rows in the same sum as a table of rows."""
    visits(80).to_csv("visits.csv", index=False)
    Path("visits.yaml").write_text(dump_yaml(VISITS.with_n_public(80).to_dict()))
    budget.reserve(Cost(0.5, 1e-6), "rows")
    command = COMMANDS["fit"].replace("cohort", "visits")
    assert main(command.split()) == 2
    assert "protects one row, and this run protects one patient (one pat" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("eager_steps")
def test_an_interrupted_run_pays_once_and_its_copy_again(
    budget: Budget, monkeypatch: pytest.MonkeyPatch
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
        assert [(use.state, use.cost.epsilon) for use in budget.standing().uses] == [("interrupted", 3.0)]
        shutil.copytree("out.checkpoint", f"copy-{resume}.checkpoint")
    pipeline.run(run, "out", resume=True)
    assert [use.state for use in budget.standing().uses] == ["complete"]
    for resume in (False, True):
        with pytest.raises(PrivacyError, match="Earlier runs used epsilon 3"):
            pipeline.run(run, f"copy-{resume}", resume=True)


def test_what_is_used_is_listed(budget: Budget, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a listing without a data set or a cost, and a history without its changes."""
    assert main(["budget", "set", "lab", "--epsilon", "1", "--delta", "1e-6"]) == 0
    budget.reserve(Cost(1.0001, 1e-6, "one row = one patient"), "out")
    budget.set(2.0, 0.01)
    capsys.readouterr()
    assert main(["budget"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "data set  epsilon used  of  delta used  of     unit     runs",
        "clinic    1.001         2   1e-06       0.01   patient  1",
        "lab       0             1   0           1e-06           0",
    ]
    assert main(["budget", "show", "clinic"]) == 0
    said, _, *lines = capsys.readouterr().out.splitlines()
    assert (
        said == "clinic: epsilon 1.001 of 2 and delta 1e-06 of 0.01 used, for adding or removing one patient"
    )
    assert sorted(line.split()[2:] for line in lines) == [
        ["1.001", "1e-06", "out", "running", "or", "killed"],
        ["2", "0.01", "budget", "set"],
        ["3", "0.01", "budget", "set"],
    ]
    assert main(["budget", "show", "clinic", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["epsilon_used"], record["epsilon"], record["runs"][0]["run"]) == (1.0001, 2.0, "out")


def test_a_list_needs_a_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Catches a traceback where no file is named, and a listing that makes one."""
    monkeypatch.delenv("DPSYNTH_BUDGET", raising=False)
    assert main(["budget"]) == 2 and "give --file, or set DPSYNTH_BUDGET" in capsys.readouterr().err
    assert main(["budget", "--file", "absent.db"]) == 2 and not Path("absent.db").exists()
    assert "`dpsynth budget set` makes one" in capsys.readouterr().err
