"""The comparison with peers, with scripts of our own in the place of the peers' packages."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.datasets import Table
from dpsynth.errors import InputError
from dpsynth.synthesis.generators import options_of, unfitted
from dpsynth.table import Column, Schema

ROOT = str(Path(dpsynth.__file__).parents[1])
if ROOT not in sys.path:  # the door of the benchmarks, `python -m benchmarks`, is run from here
    sys.path.append(ROOT)
sys.path.append(f"{ROOT}/benchmarks/peers/fits")

cells = importlib.import_module("cells")
accounting, arms, environments, measures, processes, summaries, tables, utility = (
    importlib.import_module(f"benchmarks.peers.{name}")
    for name in (
        "accounting",
        "arms",
        "environments",
        "measures",
        "processes",
        "summaries",
        "tables",
        "utility",
    )
)

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=99),
        Column(name="visits", kind="integer", lower=0, upper=4, missing=True),
        Column(name="crea", kind="continuous", lower=0.1, upper=20, decimals=1, scale="log", missing=True),
        Column(name="weight", kind="continuous", lower=30, upper=200),
        Column(name="sex", kind="binary", categories=("F", "M"), missing=True),
        Column(name="died", kind="binary", categories=(False, True)),
    ),
    outcome="died",
    n_public=400,
)
COPY = "train.sample(task['rows'], replace=True, random_state=task['seed'])"


def patients(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    age = rng.integers(18, 100, n)
    frame = pd.DataFrame(
        {
            "age": age,
            "visits": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 5, n)),
            "crea": np.where(rng.random(n) < 0.2, np.nan, np.round(rng.uniform(0.1, 20, n), 1)),
            "weight": rng.uniform(30, 200, n),
            "sex": np.where(rng.random(n) < 0.1, None, rng.choice(["F", "M"], n)),
            "died": rng.random(n) < 1 / (1 + np.exp(-(age - 60) / 10)),
        }
    )
    return SCHEMA.conform(frame).frame


@pytest.fixture
def made(monkeypatch, tmp_path):
    """A table that this module makes, and a folder for scripts of fits."""
    monkeypatch.setitem(tables.MADE, "made", lambda: Table(patients(), SCHEMA, "made"))
    tables.split.cache_clear()
    fits = tmp_path / "fits"
    fits.mkdir()
    harness = Path(ROOT) / "benchmarks" / "peers" / "fits" / "harness.py"
    (fits / "harness.py").write_text(harness.read_text())
    monkeypatch.setattr(utility, "FITS", fits)
    yield fits
    tables.split.cache_clear()


def script(fits: Path, name: str, body: str) -> object:
    text = f"import harness, time\ndef fit(train, task):\n    {body}\nharness.carry_out(fit, ['pandas'])\n"
    (fits / f"fit_{name}.py").write_text(text)
    return arms.Arm(name, "fake", f"fit_{name}.py", {"method": name})


def suite(folder: Path, chosen: list, **options):
    known = environments.Environments(folder / "environments", {"fake": sys.executable})
    settings = {"tables": ["made"], "epsilons": [3.0], "seeds": 1, "limit": 60.0, **options}
    return utility.suite(folder / "rounds", known, arms=chosen, **settings)


def test_numbers_of_a_table_and_back():
    """A category under another code, a missing value that becomes a category, a value that is moved."""
    frame = patients()
    numbers = tables.as_numbers(frame, SCHEMA)
    assert numbers.dtypes.eq(float).all() and list(numbers.columns[:2]) == ["c00", "c01"]
    assert numbers["c04"].isna().sum() == frame["sex"].isna().sum() > 0
    back = SCHEMA.conform(tables.from_numbers(numbers, SCHEMA)).frame
    pd.testing.assert_frame_equal(back, frame)


@pytest.mark.parametrize(
    ("column", "value", "said"), [("c05", 2, "2 is no category"), ("c00", np.nan, "missing")]
)
def test_tables_that_do_not_fit_are_refused(column, value, said):
    """A peer that invents a category, or leaves out a value that must be there, is not evaluated silently."""
    numbers = tables.as_numbers(patients(), SCHEMA)
    numbers.loc[0, column] = value
    with pytest.raises(ValueError, match=said):
        tables.from_numbers(numbers, SCHEMA)


def test_public_cells_and_back():
    """Cells that depend on the records; a value drawn into the neighbouring cell, off its step or bounds."""
    facts = tables.public_facts(SCHEMA)
    numbers = tables.as_numbers(patients(), SCHEMA)
    coded = cells.to_codes(numbers, facts)
    sizes = [cells.size(column) for column in facts]
    assert sizes[1] == 6 and sizes[3:] == [32, 3, 2] and max(sizes) <= 33
    assert (coded >= 0).all().all() and (coded.max().to_numpy() < sizes).all()
    drawn = cells.from_codes(coded, facts, np.random.default_rng(0))
    pd.testing.assert_frame_equal(cells.to_codes(drawn, facts), coded)
    steps = drawn["c02"].dropna() / 0.1
    assert np.allclose(steps, steps.round()) and steps.min() >= 1
    # the same row among other records has the same codes
    pd.testing.assert_frame_equal(cells.to_codes(numbers.iloc[:1], facts), coded.iloc[:1])


@pytest.mark.slow
def test_fits_are_measured_and_kept(made, tmp_path):
    """An arm that is fitted again although its round is there; a wrong seed; measures of other records."""
    counted = tmp_path / "counted"
    copy = script(made, "copy", f"open({str(counted)!r}, 'a').write('x'); return {COPY}")
    rows = suite(tmp_path, [copy], seeds=2)
    assert counted.read_text() == "xx" and list(rows["arm"]) == ["real records", "copy", "copy"]
    fitted = rows[rows["arm"] == "copy"]
    assert fitted["failed"].isna().all() and list(fitted["seed"]) == [0, 1]
    assert (fitted["tvd"] < 0.1).all() and (
        fitted["nn"] < 0.4
    ).all()  # copies lie nearer than real records do
    assert (fitted["seconds"] > 0).all() and (fitted["peak_mib"] > 10).all()
    again = suite(tmp_path, [copy], seeds=2)
    assert counted.read_text() == "xx"
    pd.testing.assert_frame_equal(again, rows)
    summary = summaries.write(tmp_path / "rounds", rows, "Title", ["Note."])
    median = summary[summary["arm"] == "copy"].iloc[0]
    assert median["seeds"] == 2 and median["auc"] == pytest.approx(fitted["auc"].mean())
    assert median["auc_low"] == fitted["auc"].min() and median["auc_high"] == fitted["auc"].max()
    with pytest.raises(InputError, match="other options of 'copy'"):
        suite(tmp_path, [arms.Arm("copy", "fake", "fit_copy.py", {"method": "other"})])


@pytest.mark.slow
def test_what_fails_is_a_row_and_the_others_go_on(made, tmp_path, monkeypatch):
    """A peer that fails, hangs, dies or has no environment ends the run, or its row says nothing."""
    monkeypatch.setattr(utility, "measured", lambda *_: dict.fromkeys(measures.MEASURES, 0.5))
    monkeypatch.setattr(utility, "real", lambda *_: dict.fromkeys(measures.MEASURES, 0.5))

    def run(command, *, limit, **options):
        # a short limit for the one that hangs: a busy machine may take longer for the others
        return processes.run(command, limit=2.5 if "fit_hangs" in str(command) else limit, **options)

    monkeypatch.setattr(utility, "run", run)
    hang = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    chosen = [
        script(made, "fails", "raise ValueError('no such edge in /home/me/x.csv')"),
        script(made, "hangs", f"{hang}; time.sleep(60)"),
        script(made, "dies", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
        script(made, "invents", "return train.assign(c05=7)"),
        arms.Arm("absent", "nobody", "fit_absent.py"),
        script(made, "copy", f"return {COPY}"),
    ]
    rows = suite(tmp_path, chosen, seeds=2).query("arm != 'real records'")
    said = rows.groupby("arm")["failed"].apply(list).to_dict()
    assert said["fails"] == ["ValueError: no such edge in x.csv"] * 2
    assert said["hangs"] == ["stopped after 10 s by the clock"]  # and no second seed
    assert said["dies"] == ["killed by SIGKILL"] * 2
    assert said["invents"] == ["its table cannot be evaluated: died: 7 is no category"] * 2
    assert said["absent"] == ["no registry has it: name its Python, --python nobody=PATH"]
    assert rows.query("arm == 'copy'")["failed"].isna().all()
    text = "\n".join(summaries.as_markdown(summaries.medians(rows)))
    assert "| hangs | 0 |" in text and "- hangs: 1 failed, stopped after 10 s by the clock" in text
    told = summaries.medians(rows).set_index("arm")
    assert told.loc["fails", "failures"] == 2 and told.loc["copy", "failures"] == 0


@pytest.mark.slow
def test_processor_time_is_limited(tmp_path, monkeypatch):
    """A fit that computes for ever, on a machine whose clock says little."""
    monkeypatch.setattr(processes, "PATIENCE", 100)
    code = "while True: pass"
    ended = processes.run([sys.executable, "-c", code], folder=tmp_path, limit=1.0)
    assert ended.failed == "stopped after 1 s of processor time" and ended.timed_out


def test_peers_see_nothing_of_ours(tmp_path, monkeypatch):
    """google/dpsynth imports under our name: with our PYTHONPATH it would be ours that is measured."""
    monkeypatch.setenv("PYTHONPATH", ROOT)
    code = "import os; print(os.environ.get('PYTHONPATH'), os.environ['OMP_NUM_THREADS'])"
    assert processes.run([sys.executable, "-c", code], folder=tmp_path, limit=30).stdout.split() == [
        "None",
        "1",
    ]


def test_task_holds_public_facts_and_the_paid_for_parameters(made, tmp_path):
    """Another delta or number of records for one arm than for the others."""
    train, _ = tables.split("made")
    utility.write_task(utility.Task("made", script(made, "copy", ""), 1.0, 4), train, tmp_path)
    told = json.loads((tmp_path / "task.json").read_text())
    assert told["delta"] == pytest.approx(200**-1.5) and told["epsilon"] == 1.0 and told["seed"] == 4
    assert told["n"] == told["rows"] == len(pd.read_csv(tmp_path / "train.csv")) == 200
    assert told["columns"] == tables.public_facts(SCHEMA) and "schema" not in told
    assert told["outcome"] == "c05"


@pytest.mark.slow
def test_accountants_of_ours_and_dp_accounting_agree(tmp_path):
    """A case that is built of other events for one library than for the other."""
    script = Path(ROOT) / "benchmarks" / "peers" / "fits" / "account.py"
    parts = [["gaussian", 4.0, 3], ["laplace", 2.0, 1], ["training", 2.0, 0.05, 20]]
    (tmp_path / "cases.json").write_text(json.dumps({"case": parts}))
    told = {}
    for library in ("ours", "dp_accounting"):
        command = [sys.executable, str(script), library, "cases.json"]
        ended = processes.run(command, folder=tmp_path, limit=120, python_path=ROOT)
        told[library] = json.loads(ended.stdout.splitlines()[-1])["case"]
    for question in ("epsilon", "delta", "advantage", "accuracy"):
        assert told["ours"][question] == pytest.approx(told["dp_accounting"][question], rel=1e-3)


def test_our_arms_are_options_of_a_generator():
    """A misspelt option of an arm that is found only after hours of other fits."""
    for options in arms.OURS.values():
        unfitted(options_of(**options, epsilon=3.0, delta=1e-5)).validate()
    assert len({arm.name for arm in arms.ARMS.values()}) == len(arms.ARMS)


@pytest.mark.slow
def test_tables_of_known_structure_are_measured_by_fresh_records(monkeypatch):
    """A score of another table, or none: peers would look as if they kept what nobody measured."""
    monkeypatch.setattr(tables, "GROUND_RECORDS", 1000)
    tables.ground.cache_clear(), tables.split.cache_clear()
    train, test = tables.split("parity1")
    found = measures.measured(train.frame, train, test)
    assert found["structure"] == pytest.approx(1, abs=0.1) and found["auc"] > 0.85
    assert found["nn"] == pytest.approx(0.5, abs=0.05) and found["correlation"] < 0.05
    lost = train.frame.assign(outcome=np.random.default_rng(0).permutation(train.frame["outcome"]))
    found = measures.measured(lost, train, test)
    assert abs(found["structure"]) < 0.1 and abs(found["auc"] - 0.5) < 0.1
    tables.ground.cache_clear(), tables.split.cache_clear()
