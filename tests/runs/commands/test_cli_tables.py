"""Many tables on the command line: `dpsynth sample MODEL --tables 20`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import beside, dp_marginals

from dpsynth import DPMarginals
from dpsynth.cli import main
from dpsynth.table.column import Column
from dpsynth.table.files import read_table
from dpsynth.table.schema import Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="died", kind="binary", categories=(0, 1)),
    ),
    n_public=300,
)
NAMES = ["table-01.csv", "table-02.csv", "table-03.csv"]
Sample = Callable[..., int]


def fitted(epsilon: float | None) -> DPMarginals:
    rng = np.random.default_rng(0)
    age = rng.integers(18, 91, 300)
    died = (rng.random(300) < 1 / (1 + np.exp(-(age - 55) / 10))).astype(int)
    frame = pd.DataFrame({"age": age, "sex": rng.choice(["F", "M"], 300), "died": died})
    model = dp_marginals(epsilon, 1e-4, pairwise_statistics=False)
    return model.fit(frame, schema=SCHEMA, also=beside(["died ~ age"]))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fitted(3.0).save(tmp_path_factory.mktemp("models") / "model")


@pytest.fixture
def sample(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sample:
    monkeypatch.chdir(tmp_path)

    def command(*words: str) -> int:
        return main(["sample", str(model), "-n", "40", "--seed", "1", *words])

    return command


@pytest.mark.slow
@pytest.mark.parametrize("study", [None, "died"])
def test_the_folder_holds_the_tables_of_sample_many(study, model, sample, capsys):
    """A study, a seed, a condition or a number of records that the command loses on the way."""
    words = [] if study is None else ["--study", study]
    assert sample("--tables", "3", "--out", "many", "--where", "age >= 40", *words, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["tables"], told["records"], told["study"]) == (3, 40, study)
    assert sorted(entry.name for entry in Path("many").iterdir()) == NAMES
    expected = DPMarginals.load(model).sample_many(3, 40, study=study, where="age >= 40", random_state=1)
    for name, table in zip(NAMES, expected, strict=True):
        pd.testing.assert_frame_equal(read_table(Path("many") / name, SCHEMA), table)


def test_an_earlier_folder_is_replaced_as_a_whole_and_only_if_it_is_asked_for(sample, capsys):
    """Tables of two draws in one folder, or somebody's files that --force deletes."""
    assert sample("--tables", "3", "--out", "many") == 0
    assert "wrote 3 tables of 40 records to many" in capsys.readouterr().out
    assert sample("--tables", "2", "--out", "many") == 2
    assert "many exists and is not empty" in capsys.readouterr().err
    assert sample("--tables", "2", "--out", "many", "--force") == 0
    assert sorted(entry.name for entry in Path("many").iterdir()) == NAMES[:2]
    Path("home").mkdir()
    Path("home/letter.txt").write_text("dear")
    assert sample("--tables", "2", "--out", "home", "--force") == 2
    assert Path("home/letter.txt").exists() and "no earlier result" in capsys.readouterr().err


def test_tables_without_a_guarantee_say_so(tmp_path):
    """A folder of tables from a model without noise that looks like one that may be shared."""
    folder = fitted(None).sample_many_to(tmp_path / "many", 2, 10)
    (warning,) = [entry for entry in folder.iterdir() if entry.suffix != ".csv"]
    assert "NOT PRIVATE" in warning.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--study", "died"], "--study needs --tables"),
        (["--tables", "2", "--partitions", "2"], "Leave out --partitions and --workers"),
        (["--tables", "1"], "--tables"),
        (["--tables", "2", "--study", "bled"], "not declared before the fit (declared were: died"),
        (["--tables", "2", "--where", "age >= 99"], "condition 'age >= 99'"),
    ],
    ids=str,
)
def test_what_cannot_be_is_one_sentence_and_leaves_nothing(words, said, sample, capsys):
    """A traceback, an option that is passed over in silence, or half a folder."""
    assert sample("--out", "many", *words) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
    assert not list(Path.cwd().iterdir())
