"""Declared studies on the command line: `study fit`, `study show`, and `--study` of `fit` and `run`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.accounting import Ledger, gaussian_event
from dpsynth.accounting.journal import journal_file
from dpsynth.cli import main
from dpsynth.files import storage
from dpsynth.runs.private_estimates import study_schema
from dpsynth.studies.estimates import Estimates
from dpsynth.studies.study import Study
from dpsynth.synthesis.synthesizer import DPWGANGP
from dpsynth.table.schema import Schema

SCHEMA = """\
name: cohort
n_public: 500
outcome: sex
columns:
  - {name: age, kind: integer, lower: 18, upper: 90}
  - {name: months, kind: integer, lower: 216, upper: 1080, derived: age * 12}
  - {name: crea, kind: continuous, lower: 0.1, upper: 10, decimals: 1, missing: true}
  - {name: sex, kind: binary, categories: [F, M]}
  - {name: ward, kind: categorical, categories: [a, b, c]}
  - {name: died, kind: binary, categories: [0, 1]}
constraints: [age >= 18, ward = a or age >= 18]
"""
STUDY = "logistic: died ~ age + crea"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_draws: None) -> Path:
    """A working folder with a table of 500 records, of which one has a ward that the schema does not know."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    age = rng.integers(20, 90, 500)
    frame = pd.DataFrame(
        {
            "age": age,
            "crea": np.where(rng.random(500) < 0.1, np.nan, rng.uniform(0.5, 3, 500).round(1)),
            "sex": rng.choice(["F", "M"], 500),
            "ward": ["elsewhere", *rng.choice(["a", "b", "c"], 499)],
            "died": (rng.random(500) < 1 / (1 + np.exp(-(age - 55) / 10))).astype(int),
        }
    )
    frame.to_csv("all.csv", index=False)
    frame.assign(ward=frame["ward"].replace("elsewhere", "a")).to_csv("good.csv", index=False)
    Path("s.yaml").write_text(SCHEMA)
    return tmp_path


def fit(*words: str, data: str = "all.csv", epsilon: str = "3", out: str = "st") -> list[str]:
    options = ["--data", data, "--schema", "s.yaml", "--epsilon", epsilon, "--delta", "1e-5", "--out", out]
    return ["study", "fit", *options, *words]


def test_study_fit_and_show(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files that differ from what is printed, columns that were modelled for nothing, an overspent budget."""
    assert main(fit("--study", STUDY)) == 0
    printed, said = capsys.readouterr()
    assert said.splitlines()[0].startswith("study died: intervals about 1.")
    assert "died: logistic: died ~ age + crea" in printed and "odds ratio" in printed
    assert {path.name for path in Path("st").iterdir()} == {"estimates.json", "estimates.md", "ledger.json"}
    ledger = Ledger.load("st/ledger.json")
    assert 2.9 < ledger.epsilon(1e-5) <= 3.0 and str(ledger.guarantee()) in printed
    assert [entry.name for entry in ledger.entries] == [
        "single-column counts",
        "base model edges",
        "base model tables",
        "information of study died",
        "score of study died",
        "score of study died",
    ]
    record = json.loads(Path("st/estimates.json").read_text())
    (estimates,) = map(Estimates.from_dict, record["estimates"])
    assert str(estimates) in printed and record["guarantee"]["sentence"] == str(ledger.guarantee())
    assert record["ledger"]["epsilon"] == pytest.approx(ledger.epsilon(1e-5))
    assert record["studies"] == [{"model": STUDY}] and record["records"] == 500
    assert record["effects"]["died"][0]["estimate"] == pytest.approx(estimates.effects()[0]["estimate"])
    text = Path("st/estimates.md").read_text()
    assert "| age | " in text and str(ledger.guarantee()) in text and "| score of study died |" in text
    # the odds of death rise by exp(0.1) = 1.105 a year in the records
    row = estimates.effects()[0]
    assert row["term"] == "age" and 1.05 < row["estimate"] < 1.2

    assert main(["study", "show", "st", "--name", "died"]) == 0
    assert capsys.readouterr().out == "\n".join([f"{estimates}\n", str(ledger.guarantee())]) + "\n"
    assert main(["study", "show", "st", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["estimates"] == record["estimates"] and shown["guarantee"] == record["guarantee"]


def test_only_what_studies_name_is_modelled() -> None:
    """Columns that take budget from the study, another outcome than its own, a table that is refused."""
    schema = Schema.from_yaml(SCHEMA)
    part = study_schema(schema, [Study(model=STUDY), Study(model="linear: crea ~ sex", name="crea")])
    assert part.names == ("age", "crea", "sex", "died") and part.outcome == "died"
    assert part.ignored == ("months", "ward") and part.constraints == ("age >= 18",)
    assert part.n_public == 500 and part["crea"] == schema["crea"]
    assert study_schema(schema, [Study(model="linear: crea ~ age")]).outcome is None
    everything = study_schema(schema, [Study(model="died ~ .")])
    assert everything.names == ("age", "crea", "sex", "ward", "died") and everything.ignored == ("months",)
    cox = study_schema(schema, [Study(model="cox: (crea, sex) ~ age")])
    assert cox.names == ("age", "crea", "sex") and cox.outcome == "sex"
    assert study_schema(schema, [Study(model="died ~ 1 where age > 60")]).names == ("age", "died")


@pytest.mark.slow
def test_studies_of_a_file_and_more(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A study that is lost between the file and the options, or a share that changes nothing."""
    Path("run.yaml").write_text(
        f"data: {{path: all.csv, schema: s.yaml}}\nmodel: {{epsilon: 9}}\n"
        f"studies: [{{model: '{STUDY}', units: {{age: 10}}, name: main}}]\n"
    )
    more = ("--studies", "run.yaml", "--study", "linear: crea ~ age", "--json")
    records = []
    for share, out in (("0.2", "a"), ("0.8", "b")):
        assert main(fit(*more, "--share", share, out=out)) == 0
        records.append(json.loads(capsys.readouterr().out))
    assert [e["study"] for e in records[0]["estimates"]] == ["main", "crea"]
    assert records[0]["estimates"][0]["terms"] == ["age (per 10)", "crea"]
    of_score = [record["ledger"]["entries"][3]["epsilon_alone"] for record in records]
    assert of_score[1] > 1.5 * of_score[0]
    assert json.loads(Path("a/estimates.json").read_text())["estimates"] == records[0]["estimates"]


def test_a_second_study_of_the_folder_counts_the_first(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A study that is replaced and whose cost is forgotten, or a ledger that was named and is left out."""
    assert main(fit("--study", STUDY, epsilon="1")) == 0
    assert main(fit("--study", STUDY, epsilon="1")) == 2
    assert "st exists and is not empty" in capsys.readouterr().err
    assert main(fit("--study", STUDY, "--force", epsilon="1")) == 0
    assert "6 earlier noisy statistics taken over from st/ledger.json" in capsys.readouterr().err
    assert len(Ledger.load("st/ledger.json").entries) == 12
    assert not journal_file(Path("st")).exists()
    assert main(fit("--study", STUDY, "--ledger", "st", epsilon="1", out="other")) == 0
    assert len(Ledger.load("other/ledger.json").entries) == 18
    assert main(fit("--study", STUDY, "--force", "--forget-earlier", epsilon="1")) == 0
    forgotten = Ledger.load("st/ledger.json")
    assert len(forgotten.entries) == 6 and "--forget-earlier" in forgotten.excluded[0]
    Path("notes").mkdir()
    Path("notes/mine.txt").write_text("mine")
    assert main(fit("--study", STUDY, "--force", out="notes")) == 2
    assert "holds no estimates.json" in capsys.readouterr().err


def test_what_a_failed_study_posted_stands_in_its_journal(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Estimates that were paid for and whose cost nobody knows, because the disk was full."""

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("dpsynth.runs.private_estimates.write_estimates", full)
        assert main(fit("--study", STUDY)) == 1
    assert not Path("st").exists() and "counts this cost, which stands in" in capsys.readouterr().err
    assert main(fit("--study", STUDY)) == 0
    assert len(Ledger.load("st/ledger.json").entries) == 12


def test_what_a_killed_study_had_paid_for_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Estimates in a hidden folder that are deleted as rubbish."""
    rest = Path(".st.abcdefgh.tmp")
    rest.mkdir()
    (rest / "estimates.json").write_text("{}")
    assert storage.leftovers(folder / "st") == [folder / rest]
    assert main(fit("--study", STUDY)) == 2
    assert "an earlier command was killed" in capsys.readouterr().err and rest.exists()


def test_estimates_without_noise_say_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exact estimates that could be taken for private ones."""
    words = ["study", "fit", "--data", "all.csv", "--schema", "s.yaml", "--study", STUDY, "--out", "st"]
    assert main(words) == 2
    assert "--not-private" in capsys.readouterr().err
    assert main([*words, "--not-private"]) == 0
    assert "NOT PRIVATE" in capsys.readouterr().out
    assert Path("st/NOT_PRIVATE.txt").exists() and "NOT PRIVATE" in Path("st/estimates.md").read_text()
    assert main(["study", "show", "st"]) == 0
    assert "NOT PRIVATE" in capsys.readouterr().out


def test_a_private_number_of_records(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A widening that is told although the number of records is private, or silence about why it is not."""
    Path("s.yaml").write_text(SCHEMA.replace("n_public: 500\n", ""))
    assert main(fit("--study", STUDY, "--json")) == 0
    printed, said = capsys.readouterr()
    assert "depends on the number of records, which is private" in said.splitlines()[0]
    assert json.loads(printed)["ledger"]["entries"][0]["name"] == "number of records"


def test_a_simulation_check_stands_below_the_estimates(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A number of tables or a seed that is lost on the way, or a check of another study."""
    words = ["--data", "good.csv", "--schema", "s.yaml", "--epsilon", "1", "--steps", "0", "--out", "m"]
    assert main(["fit", *words, "--study", STUDY, "--study", "linear: crea ~ sex"]) == 0
    capsys.readouterr()
    show = ["study", "show", "m", "--name", "crea", "--coverage", "2", "--seed", "4"]
    expected = DPWGANGP.load("m").coverage("crea", repetitions=2, random_state=4)
    assert main(show) == 0
    printed = capsys.readouterr().out
    assert printed.endswith(f"coverage:\n{expected}\n")
    assert main([*show, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["coverage"] == [expected.to_dict()]


@pytest.mark.slow
def test_fit_and_run_buy_studies(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option that is lost on the way to the model, or a widening of the whole table's number in a run."""
    words = ["--data", "good.csv", "--schema", "s.yaml", "--epsilon", "1", "--steps", "0"]
    studies = ["--study", STUDY, "--study", "linear: crea ~ sex"]
    assert main(["fit", *words, *studies, "--out", "m"]) == 0
    printed, said = capsys.readouterr()
    starts = [re.split(": [AIi]", line)[0] for line in said.splitlines()]
    told = ["dpsynth: study 'died'", "dpsynth: study 'crea'"]  # a tail of a predictor and of an outcome
    assert starts == ["study died", "study crea", *told]
    model = DPWGANGP.load("m")
    assert all(str(estimates) in printed for estimates in model.estimates_)
    assert [estimates.study for estimates in model.estimates_] == ["died", "crea"]
    assert main(["study", "show", "m", "--name", "crea"]) == 0
    assert capsys.readouterr().out.startswith(f"{model.study('crea')}\n")

    monkeypatch.setattr(
        "dpsynth.runs.evaluation.evaluate_tables", lambda *args: pytest.fail("nothing is to be evaluated")
    )
    Path("run.yaml").write_text(
        "data: {path: good.csv, schema: s.yaml}\nevaluate: {enabled: false}\n"
        f"model: {{epsilon: 1, training_steps: 0}}\nstudies: ['{STUDY}']\n"
    )
    assert main(["run", "run.yaml", "--out", "r"]) == 0
    printed, said = capsys.readouterr()
    half = Schema.from_yaml(SCHEMA).with_n_public(250)
    expected = DPWGANGP(1.0, training_steps=0, studies=[STUDY]).expected_widening(half)["died"]
    whole = DPWGANGP(1.0, training_steps=0, studies=[STUDY]).expected_widening(Schema.from_yaml(SCHEMA))[
        "died"
    ]
    assert f"{expected:.1f}" != f"{whole:.1f}"
    assert said.splitlines()[0].startswith(
        f"study died: intervals about {expected:.1f} times as wide as without noise, and wider where records "
        "lack a value"
    )
    assert said.count("dpsynth: study 'died': A record far out in crea counts less") == 1
    assert "`dpsynth study show r`" in printed
    assert main(["study", "show", "r"]) == 0
    assert str(DPWGANGP.load("r/model").study("died")) in capsys.readouterr().out
    assert json.loads(Path("r/report.json").read_text())["config"]["studies"] == [{"model": STUDY}]
    assert main(["run", "run.yaml", "--study", STUDY, "--out", "q"]) == 2
    assert "--study does not go with run.yaml" in capsys.readouterr().err


@pytest.mark.slow
def test_a_table_in_parts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns beside the studies' that stop a table in parts."""
    Path("parts").mkdir()
    frame = pd.read_csv("all.csv")
    frame[:200].to_parquet("parts/a.parquet")
    frame[200:].to_parquet("parts/b.parquet")
    assert main(fit("--study", STUDY, "--workers", "1", data="parts")) == 0
    assert "odds ratio" in capsys.readouterr().out


def nothing() -> None: ...


FITTED: dict[str, bytes] = {}


def fitted() -> None:
    """Estimates in `st`, fitted once for all cases."""
    if not FITTED:
        assert main(fit("--study", STUDY)) == 0
        FITTED.update({path.name: path.read_bytes() for path in Path("st").iterdir()})
    Path("st").mkdir(exist_ok=True)
    for name, content in FITTED.items():
        Path("st", name).write_bytes(content)


def without_ledger() -> None:
    fitted()
    Path("st/ledger.json").unlink()


def another_ledger() -> None:
    fitted()
    ledger = Ledger.load("st/ledger.json")
    ledger.post("another", gaussian_event(9.0), sensitivity="1")
    ledger.save("st/ledger.json")


def damaged_estimates() -> None:
    Path("st").mkdir()
    Path("st/estimates.json").write_text('{"format": 2}')


def model_without() -> None:
    words = ["--data", "good.csv", "--schema", "s.yaml", "--epsilon", "1", "--steps", "0", "--out", "m"]
    assert main(["fit", *words, "--base-model", "none"]) == 0


RUN = ["run", "--data", "good.csv", "--schema", "s.yaml", "--epsilon", "1", "--out", "r", "--study"]
FIT = ["fit", *RUN[1:]]
REFUSED: dict[str, tuple[Callable[[], None], list[str], str]] = {
    "no study": (nothing, fit(), "give a --study such as"),
    "no model": (nothing, fit("--study", "died"), "--study: study 1: model: a model is written"),
    "unknown column": (nothing, fit("--study", "died ~ dose"), "study 'died': 'dose' is not a column"),
    "derived": (nothing, fit("--study", "months ~ sex"), "study 'months': 'months' is a derived column"),
    "numeric outcome": (nothing, fit("--study", "logistic: age ~ sex"), "study 'age': the outcome 'age' of"),
    "twice": (nothing, fit("--study", STUDY, "--study", "died ~ sex"), "two studies are called 'died'"),
    "predictor twice": (nothing, fit("--study", "died ~ age + age"), "the predictor 'age' is given twice"),
    "share": (nothing, fit("--study", STUDY, "--share", "1"), "--share must be greater than 0 and less"),
    "no file": (nothing, fit("--studies", "absent.yaml"), "absent.yaml: cannot be read"),
    "no studies": (nothing, fit("--studies", "s.yaml"), "s.yaml: the key studies, with a list of studies"),
    "budget": (nothing, fit("--study", "died ~ .", epsilon="0.05"), "more terms than the budget can bear"),
    "table": (nothing, fit("--study", STUDY, data="absent.csv"), "absent.csv: there is no such file"),
    "fit": (nothing, [*FIT, "died ~ dose", "--steps", "0"], "study 'died': 'dose' is not a column"),
    "fit prior": (nothing, [*FIT, STUDY, "--base-model", "none"], "studies need a base model"),
    "fit no model": (nothing, [*FIT, "died"], "studies: study 1: model: a model is written"),
    "run": (nothing, [*RUN, "died ~ dose"], "studies: study 'died': 'dose' is not a column"),
    "run no model": (nothing, [*RUN, "died"], "--study: study 1: model: a model is written"),
    "run prior": (nothing, [*RUN, STUDY, "--base-model", "none"], "studies need a base model"),
    "run budget": (nothing, [*RUN[:-1], "--study", "died ~ .", "--delta", "1e-9", "--epsilon", "0.02"],
                   "more terms than the budget can bear"),
    "show nothing": (nothing, ["study", "show", "."], ". holds neither estimates.json nor a model"),
    "show no study": (model_without, ["study", "show", "m"], "the model in m holds no study"),
    "show damaged": (damaged_estimates, ["study", "show", "st"], "st holds a damaged record of estimates"),
    "show without ledger": (without_ledger, ["study", "show", "st"], "ledger.json"),
    "show other ledger": (another_ledger, ["study", "show", "st"], "is not the ledger of st/estimates.json"),
    "coverage no model": (fitted, ["study", "show", "st", "--coverage", "3"],
                          "st holds estimates alone, and simulated tables need a fitted model"),
    "show another": (fitted, ["study", "show", "st", "--name", "x"],
                     "study 'x' was not pre-specified in the fit of st. It has: died"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback, a second line, a wrong exit status, or a file that was written or read for nothing."""
    prepare, words, said = REFUSED[case]
    prepare()
    before = sorted(folder.rglob("*"))
    capsys.readouterr()
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and said in captured.err
    assert captured.err.count("\n") == 1 and captured.err.startswith("dpsynth: ")
    assert sorted(folder.rglob("*")) == before
