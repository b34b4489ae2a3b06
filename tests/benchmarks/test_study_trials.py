"""Cases, trials and the results file of the benchmark of declared studies."""

from __future__ import annotations

import json
import os

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import studies
from study_cases import CASES, NULLS, Case
from study_trials import METHODS, Told, Trial, run, truth

from dpsynth.table import Column, Schema


def population():
    """1,500 patients whose deaths depend on age and, not at all, on sex."""
    rng = np.random.default_rng(5)
    age = rng.integers(30, 90, 1500)
    died = rng.random(1500) < 1 / (1 + np.exp(-(age - 65) / 12))
    frame = pd.DataFrame({"age": age, "sex": rng.choice(["F", "M"], 1500), "died": died.astype(int)})
    columns = (
        Column(name="age", kind="integer", lower=18, upper=99),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="died", kind="binary", categories=(0, 1)),
    )
    return frame, Schema(columns=columns, outcome="died", n_public=1500)


MADE = Case("made", population, "died ~ age + sex", 800)
MADE_NULLS = Case("made, nulls", population, "died ~ age + sex", 800, nulls=True)


@pytest.fixture(autouse=True)
def _made_cases(monkeypatch):
    monkeypatch.setitem(CASES, MADE.name, MADE)
    monkeypatch.setitem(CASES, MADE_NULLS.name, MADE_NULLS)


@pytest.mark.slow
def test_the_truth_is_the_population_fit():
    """Coefficients of a part of the population, in other units, or not of maximum likelihood."""
    frame, _ = population()
    x = sm.add_constant(np.column_stack([frame["age"], frame["sex"] == "M"]).astype(float))
    model = sm.Logit(frame["died"].to_numpy(float), x).fit(disp=0)
    found = truth("made")
    assert found.terms == ("age", "sex: M vs F") and found.records == 1500
    assert np.asarray(found.values) == pytest.approx(np.asarray(model.params)[1:], rel=1e-6)
    # the weak base model of a study moves them little, and so does what is lost without noise
    assert found.target == pytest.approx(found.values, abs=0.01)
    assert found.exact == pytest.approx(found.values, abs=0.05)


@pytest.mark.slow
def test_null_covariates_have_no_effect_in_the_population_and_are_drawn_anew():
    """A noise column that is drawn once: by chance it has an effect in that population."""
    found = truth("made, nulls")
    assert found.terms[-2:] == ("null_binary: 1 vs 0", "null_normal")
    assert np.array_equal(np.asarray(found.values), [*np.asarray(truth("made").values), 0.0, 0.0])
    first, second = (MADE_NULLS.resample(np.random.default_rng(seed)) for seed in (0, 1))
    assert first[1].names[-2:] == tuple(column.name for column in NULLS)
    assert abs(np.corrcoef(first[0]["null_normal"], second[0]["null_normal"])[0, 1]) < 0.15


def test_every_epsilon_meets_the_same_resamples():
    """Differences between budgets that are differences between resamples."""
    one, other, next_one = Trial(MADE, 1.0, 0), Trial(MADE, 3.0, 0), Trial(MADE, 1.0, 1)
    pd.testing.assert_frame_equal(one.frame, other.frame)
    assert len(one.frame) == 800 and not one.frame.equals(next_one.frame)
    assert one.schema.n_public == 800


@pytest.mark.slow
def test_a_trial_tells_every_method_and_the_same_again():
    """A line without a method, with terms in another order, or that another run does not repeat."""
    line = run(MADE, 3.0, 0, ("naive", "declared"))
    assert set(line["told"]) == {"real", "naive", "declared"}
    assert json.loads(json.dumps(line)) == line
    declared = line["told"]["declared"]
    half = np.array(declared["upper"]) - np.array(declared["values"])
    assert half == pytest.approx(1.959964 * np.array(declared["std_errors"]), rel=1e-5)
    again = run(MADE, 3.0, 0, ("declared",))
    assert again["told"]["declared"] == declared and again["told"]["real"] == line["told"]["real"]
    # age is known well, whatever the method
    assert all(told["values"][0] > 0.05 for told in line["told"].values())


def test_a_method_can_be_added_and_shares_the_fitted_model(monkeypatch):
    """A third method that costs a second fit of the same model."""
    fits = []
    own = Trial._model
    monkeypatch.setattr(Trial, "_model", lambda self, *a: fits.append(a[0]) or own(self, *a))

    def doubled(trial):
        found = trial.declared.estimates_[0]
        nothing = np.zeros(2)
        return Told(2 * found.coefficients, found.std_errors, nothing, nothing)

    monkeypatch.setitem(METHODS, "doubled", doubled)
    told = run(MADE, 3.0, 0, ("declared", "doubled"))["told"]
    assert fits == ["declared"]
    assert told["doubled"]["values"] == pytest.approx(2 * np.array(told["declared"]["values"]), rel=1e-6)


def test_what_is_done_is_not_done_again():
    """A resumed run that repeats lines, or that skips a method that was added."""
    lines = [{"case": "made", "epsilon": 1.0, "repetition": 0, "told": {"real": {}, "naive": {}}}]
    left = studies.missing(lines, ["made"], [1, 3.0], ["naive", "declared"], 1)
    assert left == [("made", 1, 0, ("declared",)), ("made", 3.0, 0, ("naive", "declared"))]
    assert not studies.missing(lines, ["made"], [1.0], ["naive"], 1)


def test_results_survive_a_line_that_was_cut_off(tmp_path, capsys):
    """A results file that an interrupt makes unreadable, or whose cut line swallows the next one."""
    path = tmp_path / "trials.jsonl"
    path.write_text('{"case": "made"}\n{"case": "ma')
    assert list(studies.read_lines(path)) == [{"case": "made"}]
    assert "cut off" in capsys.readouterr().err
    studies.work([("made", 3.0, 0, ("naive",))], path, jobs=1)
    found = list(studies.read_lines(path))
    assert len(found) == 2 and found[1]["told"]["naive"]["values"]


@pytest.mark.slow
def test_the_report_tells_every_table():
    """A table that is empty, has a nan, or loses the case of nulls."""
    lines = [run(case, 3.0, r, ("naive", "declared")) for case in (MADE, MADE_NULLS) for r in range(2)]
    lines.append(run(MADE, 0.02, 0, ("declared",)))
    text = studies.report(lines, 10, "two cores", below=1.1)
    main, nulls, terms, populations = text.split("\n## ")
    assert "| made | | real |" in main and "| | 3 | declared |" in main and "refused" in main
    assert "made, nulls" not in main and "| made, nulls | 3 | declared |" in nulls
    assert "| made | 3 | sex: M vs F |" in terms
    assert "`logistic: died ~ age + sex`" in populations and "nan" not in text


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("breast_cancer")])
def test_a_case_fits_its_schema(name):
    """A study that names a column that its table lacks."""
    case = CASES[name]
    frame, schema = case.population()
    assert case.study(nulls=False).effects(schema).columns(schema)
    assert len(frame) >= 500 and schema.n_public == case.n


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("breast_cancer")])
def test_a_case_with_a_file_fits_its_schema(name):
    """A study or a schema of the benchmark that does not fit the file."""
    if not os.environ.get("DPSYNTH_DATA_DIR"):
        pytest.skip("needs a data set: set DPSYNTH_DATA_DIR")
    case = CASES[name]
    frame, schema = case.resample(np.random.default_rng(0))
    assert len(frame) == case.n == schema.n_public
    assert case.study().effects(schema).columns(schema)
