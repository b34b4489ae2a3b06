"""Figures of a table, the headroom between arms, and the command that writes both."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.ground import arms, command, report
from benchmarks.ground.headroom import MEASURES, measure, sentence, split
from benchmarks.ground.tables import Ground, of_registry, of_structure
from dpsynth.errors import InputError
from dpsynth.evaluation.discriminator import discriminate


@pytest.fixture(scope="module")
def ground() -> Ground:
    return of_structure("xor", 3000, 0)


def figures(**given: float) -> dict[str, float]:
    """Figures of a table that is as good as real records but for what is given."""
    good = {"AUC (boosting)": 0.8, "discriminator": 0.5, "correlation error": 0.01}
    return good | {name.replace("_", " "): value for name, value in given.items()}


def test_the_headroom_of_made_up_arms():
    """A sign turned round, a discriminator below one half that counts as good, parts that do not add up."""
    real = [figures(), figures(discriminator=0.49), figures(discriminator=0.51)]
    free = [figures(discriminator=0.62, correlation_error=0.02) for _ in real]
    base_model = [figures(discriminator=d, correlation_error=0.05) for d in (0.7, 0.28, 0.75)]
    for entry in base_model:
        entry["AUC (boosting)"] = 0.75
    found = {entry.measure: entry for entry in split(real, free, base_model)}
    assert list(found) == ["AUC (boosting)", "discriminator", "correlation error"]
    auc, apart, error = found.values()
    assert (auc.total, auc.noise, auc.model) == pytest.approx((0.05, 0.05, 0.0))
    # distances from one half: .2, .22, .25 against .12 and 0, .01, .01
    assert (apart.total, apart.noise, apart.model) == pytest.approx((0.21, 0.10, 0.11))
    assert (error.total, error.noise, error.model) == pytest.approx((0.04, 0.03, 0.01))
    assert all(entry.sure and entry.notable for entry in found.values())


def test_the_sentence_says_where_and_why():
    """A reason that is the wrong one, or a measure without room that is promised."""
    free = [figures(discriminator=0.62)]
    base_model = [{**figures(discriminator=0.7, correlation_error=0.011), "AUC (boosting)": 0.75}]
    said = sentence(split([figures()], free, base_model))
    assert said == (
        "A refinement can win at most .050 in AUC (boosting) (lost to noise); .200 in discriminator (.120 "
        "lost to the model, .080 to noise). Nothing in correlation error."
    )
    model = sentence(split([figures()], base_model, base_model))
    assert ".050 in AUC (boosting) (lost to the model)" in model
    assert sentence(split([figures()] * 3, free * 3, [figures()] * 3)).startswith(
        "A refinement can win nothing"
    )


def test_room_that_one_seed_does_not_have_is_no_room():
    """A headroom that is the luck of two seeds of three."""
    base_model = [{**figures(), "AUC (boosting)": auc} for auc in (0.7, 0.7, 0.81)]
    found = split([figures()] * 3, base_model, base_model)[0]
    assert found.total == pytest.approx(0.1) and not found.sure and not found.notable


def test_arms_of_other_seeds_are_not_compared():
    """Medians over different tables."""
    with pytest.raises(ValueError, match="2, 1 and 2 seeds"):
        split([figures()] * 2, [figures()], [figures()] * 2)


@pytest.mark.slow
def test_real_records_are_measured_as_real(ground):
    """A test table that is not of the population, or an AUC of the wrong class."""
    found = measure(ground.real, ground, parts=1500)
    assert set(found) == set(MEASURES)
    assert found["structure"] > 0.95 and found["AUC (boosting)"] > 0.8
    assert 0.45 < found["AUC (logistic)"] < 0.55 and 0.45 < found["discriminator"] < 0.55
    assert 0.45 < found["NN accuracy"] < 0.55 and max(found["TVD"], found["correlation error"]) < 0.03
    assert found["outcome error"] < 0.04
    assert found == measure(ground.real, ground, parts=1500)


@pytest.mark.slow
def test_a_table_of_independent_columns_is_measured_as_such(ground):
    """Figures that do not see what is lacking."""
    rng = np.random.default_rng(0)
    made = ground.real.apply(lambda column: rng.permutation(column))
    made["outcome"] = np.where(rng.random(len(made)) < 0.8, "yes", "no")
    found = measure(made, ground, parts=1500)
    assert abs(found["structure"]) < 0.1 and 0.4 < found["AUC (boosting)"] < 0.6
    assert found["discriminator"] > 0.7 and found["NN accuracy"] > 0.55
    assert found["correlation error"] > 0.04
    assert found["outcome error"] == pytest.approx(0.3, abs=0.03)


@pytest.mark.slow
def test_the_discriminator_is_that_of_the_package(ground):
    """Another classifier, or categories that it takes for numbers."""
    made = ground.real.assign(distractor_5=ground.real["distractor_5"].iloc[::-1].to_numpy())
    mine = measure(made, ground, parts=3000)["discriminator"]
    theirs = discriminate(ground.test, made, ground.schema, rng=np.random.default_rng(1), limit=3000)
    assert theirs.auc["hist_gradient_boosting"].value > 0.6
    assert mine == pytest.approx(theirs.auc["hist_gradient_boosting"].value, abs=0.03)


def test_draws_of_a_structure_are_independent_and_repeatable(ground):
    """A test table that holds training records, or another one for each arm."""
    assert not ground.train.head(50).equals(ground.real.head(50))
    assert not ground.train.head(50).equals(ground.test.head(50))
    assert ground.train.equals(of_structure("xor", 3000, 0).train)
    assert ground.schema.n_public == len(ground.train) == len(ground.real) == 3000


def test_a_registry_table_is_its_own_reference():
    """Test records among the reference, or a public number of the whole table."""
    found = of_registry("breast_cancer")
    assert found.real is found.train and found.schema.n_public == len(found.train) == 285
    assert len(found.test) == 284 and found.score is None


def test_what_no_epsilon_touches_runs_once():
    """The noise-free base model fitted anew for every epsilon, or a changed arm that is taken for done."""
    mine = {**arms.ARMS, "mine": {"delta": 1e-5}}
    found = arms.runs(["xor", "flchain"], [100, 200], [1.0, 3.0], 2, mine)
    assert len(found) == 3 * 2 * (2 + 3 * 2)
    free = [run for run in found.values() if run.arm in (arms.REAL, arms.NOISE_FREE)]
    assert len(free) == 12 and all(run.epsilon is None for run in free)
    assert {run.n for run in found.values() if run.table == "flchain"} == {None}
    other = arms.runs(["xor"], [100], [1.0], 1, {"mine": {"delta": 1e-6}})
    assert not set(other) & set(found)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("default: {delta: 1.0e-3}", "'default' is an arm of every comparison"),
        ("mine: {trainingsteps: 3}", "trainingsteps is not a known"),
        ("mine: 3", "a mapping of arms"),
    ],
)
def test_wrong_arms_are_refused_before_anything_runs(tmp_path, text, problem):
    """An arm that fails after an hour of others, or that passes for one of ours."""
    path = tmp_path / "arms.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        arms.read_arms(path)


def _arms(folder, *, delta):
    path = folder / "arms.yaml"
    path.write_text(f"mine: {{delta: {delta}}}")
    return path


def test_the_command_carries_out_what_is_missing(tmp_path, monkeypatch, capsys):
    """A run done twice, or results of an earlier command that are lost."""
    asked = []
    numbers = {arms.REAL: 0.8, arms.NOISE_FREE: 0.75, arms.PRIOR: 0.7, "mine": 0.72}

    def made_up(run):
        asked.append(run.label)
        return {
            **{"table": run.table, "n": run.n, "columns": 8, "epsilon": run.epsilon, "arm": run.arm},
            **{"parameters": run.parameters, "seed": run.seed, "seconds": None if run.arm == "real" else 1.5},
            **{"figures": {"AUC (boosting)": numbers[run.arm]}, "seconds of measuring": 0.5},
        }

    monkeypatch.setattr(command, "carried_out", made_up)
    _arms(tmp_path, delta=0.25)
    first = ["--table", "xor", "--n", "100", "--seeds", "2", "--out", str(tmp_path / "out")]
    first += ["--only", "real", "noise-free base model", "base_model"]
    command.main(first)
    assert len(asked) == 6
    command.main([*first, "mine", "--arms", str(tmp_path / "arms.yaml")])
    assert len(asked) == 8
    text = (tmp_path / "out" / "ground.md").read_text()
    command.main([*first, "mine", "--arms", str(_arms(tmp_path, delta=0.125))])
    assert len(asked) == 10
    again = (tmp_path / "out" / "ground.md").read_text()
    assert all(f'| mine {{"delta": {delta}}} (2) |' in again for delta in (0.25, 0.125))
    assert "- **xor, n = 100, ε = 3**: A refinement can win at most .100 in AUC (boosting) (.050 lost" in text
    row = next(line for line in text.splitlines() if line.startswith("| AUC (boosting)"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:5] == [f"{v:.3f} ({v:.3f} to {v:.3f})" for v in (0.8, 0.75, 0.7, 0.72)]
    assert cells[5:] == ["0.100", "0.050", "0.050"]
    assert str(tmp_path) not in text
    assert (tmp_path / "out" / "ground.csv").read_text().count("\n") == 11
    assert capsys.readouterr().err.count("\n") == 10


@pytest.mark.slow
def test_real_runs_give_what_the_report_reads(tmp_path):
    """A run whose record the report cannot read; nothing is made up here but the size."""
    found = arms.runs(["xor"], [300], [3.0], 1, {k: v for k, v in arms.ARMS.items() if k != arms.DEFAULT})
    records = json.loads(json.dumps([arms.carried_out(run) for run in found.values()]))
    text = report.markdown(records, "made")
    assert "## xor, n = 300, ε = 3" in text and "| structure | " in text and "nan" not in text
    assert [record["seconds"] is None for record in records] == [True, False, False]
    assert len(report.rows(records)) == 3
