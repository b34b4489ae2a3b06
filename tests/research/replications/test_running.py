"""A study's folder: what is there is kept, what is missing is carried out, and what is other is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from modes import mode, open_to_others, usual_umask
from simulated_mimic3 import simulate

from dpsynth import Column, Schema, datasets
from dpsynth.errors import ConfigError, DataError, InputError, RunError
from dpsynth.research.replications import running, trial
from dpsynth.research.replications.arms import arms_of
from dpsynth.research.replications.protocol import Protocol, find_protocol
from dpsynth.research.replications.running import run_study
from dpsynth.research.replications.trial import Task, Trial

__all__ = ["usual_umask"]
pytestmark = pytest.mark.usefixtures("undrawn")  # test_writing.py looks at what is drawn


def trials(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((out / running.ROUNDS).iterdir())}


def test_the_same_command_goes_on(small: Protocol, finished: Path, usual_umask: None) -> None:
    """A second command that fits again what was there, or that does not see more seeds."""
    out, first = finished, trials(finished)
    assert list(first) == ["epsilon-3.split-0.restart-0.json", "real.split-0.restart-0.json"]
    (out / running.ROUNDS / "real.split-0.restart-0.json").unlink()
    done = run_study(small.changed(seeds=2, coverage=2), out)
    assert (done.kept, done.carried_out) == (1, 5)
    assert trials(out)["epsilon-3.split-0.restart-0.json"] == first["epsilon-3.split-0.restart-0.json"]
    assert sorted(trials(out)) == [
        "epsilon-3.resample-0.restart-0.json",
        "epsilon-3.resample-1.restart-0.json",
        "epsilon-3.split-0.restart-0.json",
        "epsilon-3.split-1.restart-0.json",
        "real.split-0.restart-0.json",
        "real.split-1.restart-0.json",
    ]
    assert run_study(small, out).carried_out == 0
    # trials measure real records
    assert open_to_others(out) == set() and mode(out) == 0o700


def test_a_trial_tells_its_cost_and_its_records(small: Protocol, finished: Path) -> None:
    """A trial without its ledger, without the split's caveat, or measured on what it was fitted to."""
    done = run_study(small, finished)
    assert (done.kept, done.carried_out) == (2, 0)
    real, private = done.results.trials
    assert real.ledger is None and private.ledger is not None
    book = private.read_ledger()
    assert book.epsilon(1e-5) == pytest.approx(3.0, abs=0.01) and book.epsilon(1e-5) <= 3.0
    assert any("stratified split" in reason for reason in book.excluded)
    assert private.records == 285 and real.sets[0]["measures"]["positive_rate_synthetic"] == pytest.approx(
        datasets.train_test(datasets.load("breast_cancer"), 0.5, 0)[0]
        .frame["diagnosis"]
        .eq("malignant")
        .mean()
    )
    effects = {(row["term"], row["side"]): row["estimate"] for row in private.sets[0]["effects"]}
    assert {term for term, _ in effects} == {"mean_texture", "mean_smoothness (per 0.01)"}
    assert all(effects[term, "declared"] is not None for term, _ in effects)
    measures = private.sets[0]["measures"]
    assert 0.7 < measures["auc_logistic_regression"] < 1.0 and 0.4 < measures["nn_accuracy_train"] < 1.0


def test_trials_of_another_protocol_are_not_mixed(small: Protocol, finished: Path) -> None:
    """Tables made of trials of two protocols."""
    other = Protocol.from_dict({**small.to_dict(), "model": {"delta": 1e-6}})
    with pytest.raises(InputError, match="trials of another protocol"):
        run_study(other, finished)


def test_trials_of_other_records_are_not_mixed(
    small: Protocol, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that changed between two commands."""
    table = datasets.load("breast_cancer")
    table.frame.loc[0, "mean_texture"] += 1
    monkeypatch.setattr(datasets, "load", lambda name: table)
    with pytest.raises(InputError, match="trials of other records"):
        run_study(small.changed(seeds=2), finished)


@pytest.mark.parametrize("raised", [RuntimeError("no memory"), KeyboardInterrupt()])
def test_what_is_complete_stays(
    small: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    """A failure or Ctrl-C that takes the complete trials with it, or leaves half a file."""
    out, carry_out = tmp_path / "study", running.run_trial

    def failing(protocol, arm, task, table) -> Trial:
        if arm.name != "real":
            raise raised
        return carry_out(protocol, arm, task, table)

    monkeypatch.setattr(running, "run_trial", failing)
    with pytest.raises(RunError if isinstance(raised, RuntimeError) else KeyboardInterrupt) as caught:
        run_study(small, out)
    if isinstance(raised, RuntimeError):
        assert str(caught.value) == "epsilon-3.split-0.restart-0 failed (RuntimeError: no memory)"
    assert list(trials(out)) == ["real.split-0.restart-0.json"]
    monkeypatch.setattr(running, "run_trial", carry_out)
    if isinstance(raised, RuntimeError):
        assert run_study(small, out).kept == 1


def test_a_refused_fit_is_told(small: Protocol, tmp_path: Path) -> None:
    """A fit that was refused and is silently left out, or that ends the study."""
    done = run_study(small.changed(epsilons=[0.01]), tmp_path / "study")
    assert len(done.results.problems()) == 1
    assert done.results.problems()[0].startswith("ε = 0.01: study 'diagnosis'")


def test_where_records_are(small: Protocol, tmp_path: Path) -> None:
    """Tables asked for where none are needed, and none where they are: one sentence each, nothing written."""
    cohort = {k: v for k, v in small.to_dict().items() if k not in ("dataset", "studies")}
    on_mimic = Protocol.from_dict({**cohort, "cohort": "aki-mortality"})
    out = tmp_path / "study"
    with pytest.raises(InputError, match=r"--data is for studies on MIMIC-III\. small is on breast_cancer"):
        run_study(small, out, data=tmp_path)
    with pytest.raises(InputError, match="give --data, the folder of its files, or the table that"):
        run_study(on_mimic, out)
    with pytest.raises(InputError, match="'no' is none of diabetes-mortality"):
        run_study(Protocol.from_dict({**cohort, "cohort": "no"}), out, data=tmp_path)
    with pytest.raises(ConfigError, match="sex"):
        run_study(Protocol.from_dict({**small.to_dict(), "studies": ["diagnosis ~ sex"]}), out)
    assert not out.exists()


def test_a_generator_is_fitted_to_the_training_part(
    small: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A generator that has seen the records on which its table is judged."""
    seen, fit = [], trial.Synthesizer.fit

    def watched(self, frame, **options):
        seen.append(frame.copy())
        return fit(self, frame, **options)

    monkeypatch.setattr(trial.Synthesizer, "fit", watched)
    run_study(small.changed(seeds=2), tmp_path / "study")
    for seed, frame in enumerate(seen):
        expected, _ = datasets.train_test(datasets.load("breast_cancer"), 0.5, seed)
        pd.testing.assert_frame_equal(frame, expected.frame)
    assert len(seen) == 2 and not seen[0].equals(seen[1])


def test_no_classifier_knows_the_follow_up(small: Protocol) -> None:
    """Somebody's death foretold by how short the follow-up was."""
    columns = (
        Column(name="age", kind="integer", lower=0, upper=99),
        Column(name="days", kind="integer", lower=0, upper=999),
        Column(name="death", kind="binary", categories=(0, 1)),
    )
    schema = Schema(columns=columns, outcome="death", n_public=400)
    rng = np.random.default_rng(0)
    death = rng.integers(0, 2, 400)
    frame = pd.DataFrame({"age": rng.integers(20, 90, 400), "days": 900 - 800 * death, "death": death})
    table = datasets.table.Table(schema.conform(frame).frame, schema, "ward")
    survival = Protocol.from_dict({**small.to_dict(), "studies": ["cox: (days, death) ~ age"]})
    arm = next(arm for arm in arms_of(survival, 1e-5) if arm.name == "real")
    found = trial.run_trial(survival, arm, Task("real", "split", 0), table)
    assert 0.35 < found.sets[0]["measures"]["auc_logistic_regression"] < 0.65


@pytest.mark.slow
@pytest.mark.usefixtures("eager_steps")
def test_a_study_of_the_thesis_on_simulated_patients(tmp_path: Path) -> None:
    """A cohort that does not reach its study, restarts that are not counted, or a public number unsaid."""
    pytest.importorskip("duckdb")
    simulate(tmp_path / "mimic", "diabetes-mortality", 160, 0.2)
    protocol = find_protocol("diabetes-mortality").changed(seeds=1, epsilons=[3.0], baseline_steps=4)
    done = run_study(protocol, tmp_path / "study", data=tmp_path / "mimic")
    assert (protocol.restarts, protocol.sets) == (2, 2) and done.carried_out == 1 + 3 * 2
    private = done.results.of("ε = 3")[0]
    assert private[0].records == 80 and len(private[0].sets) == 2
    assert "the number of records, which a study prints" in private[0].read_ledger().excluded
    one, both = (done.results.cost("ε = 3", restarts=restarts) for restarts in (False, True))
    shared = done.results.cost("ε = 3 shared", restarts=True)
    assert one is not None and both is not None and shared is not None
    assert 2.9 < one <= 3.0 and 4.0 < both < 6.0 and 2.9 < shared <= 3.0
    assert "thesis, data set 1" in (tmp_path / "study" / "results.md").read_text(encoding="utf-8")


def test_restarts_that_share_a_budget_do_not_exceed_it(
    small: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shares drawn up at the whole table's delta, n**-1.5, where each fit has the training part's."""
    plain = {
        **small.to_dict(),
        "model": {},
        "restarts": 4,
        "studies": [],
    }
    nothing = {"measures": {}, "regressions": [], "effects": []}
    monkeypatch.setattr(trial, "_measure", lambda protocol, tables, *given, **named: (nothing,) * len(tables))
    results = run_study(Protocol.from_dict(plain), tmp_path / "study").results
    spent = results.cost("ε = 3 shared", restarts=True)
    assert spent is not None and 2.97 < spent <= 3.0


def test_a_resample_says_that_its_rows_are_no_patients(small: Protocol, tmp_path: Path) -> None:
    """A ledger that claims a guarantee by record where one may stand several times."""
    done = run_study(small.changed(coverage=2), tmp_path / "study")
    for each in done.results.trials:
        if each.ledger is not None:
            told = each.read_ledger().excluded
            assert len(told) == 1 and told[0].startswith(f"the {'stratified ' * (each.task.draw == 'split')}")
            assert each.task.draw in told[0]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("cut", "it is not JSON"),
        ("other seed", r"is no record of that trial\. Remove it"),
        ("{}", r"is no record of that trial\. Remove it"),
        ("[]", r"is no record of a round\. Remove it"),
    ],
)
def test_a_damaged_trial_is_named(small: Protocol, finished: Path, damage: str, said: str) -> None:
    """A record that is cut off, or another trial's, counted as the one that its file names."""
    path = finished / running.ROUNDS / "real.split-0.restart-0.json"
    whole = path.read_text(encoding="utf-8")
    path.write_text(
        {"cut": whole[:500], "other seed": whole.replace('"seed": 0', '"seed": 1')}.get(damage, damage),
        encoding="utf-8",
    )
    with pytest.raises(DataError, match=rf"real\.split-0\.restart-0\.json:? {said}"):
        run_study(small, finished)


def test_force_replaces_studies_alone(small: Protocol, finished: Path, tmp_path: Path) -> None:
    """A damaged study that --force cannot replace, or somebody's folder that it does."""
    out = finished
    for damaged in ("{", "[1]", '"x"'):
        (out / running.STARTED).write_text(damaged, encoding="utf-8")
        with pytest.raises((DataError, InputError)):
            run_study(small, out)
    assert run_study(small, out, force=True).carried_out == 2
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="--force does not replace it"):
        run_study(small, mine, force=True)
    assert [entry.name for entry in mine.iterdir()] == ["notes.txt"]


def test_findings_that_are_changed_later_are_told(small: Protocol, finished: Path) -> None:
    """A conclusion that is fitted to the results and reads as kept."""
    out = finished
    finding = {"text": "Coarser.", "study": "diagnosis", "term": "mean_texture", "effect": "below"}
    other = Protocol.from_dict({**small.to_dict(), "findings": [{**finding, "effect": "above"}]})
    for _ in range(2):  # nor is it forgotten by the next command
        assert run_study(other, out).carried_out == 0
        assert "The findings are not those that the first trials were begun with" in (
            out / "results.md"
        ).read_text(encoding="utf-8")
    run_study(small, out)
    assert "The findings are not those" not in (out / "results.md").read_text(encoding="utf-8")


def test_force_removes_what_a_study_wrote(small: Protocol, finished: Path, tmp_path: Path) -> None:
    """Somebody's notes in the folder, or a folder behind a link, gone with the old trials."""
    out = tmp_path / "link"
    out.symlink_to(finished)
    (out / "notes.txt").write_text("mine")
    other = Protocol.from_dict({**small.to_dict(), "model": {"delta": 1e-6}})
    assert run_study(other, out, force=True).carried_out == 2
    assert (out / "notes.txt").read_text() == "mine" and out.is_symlink()
