"""``dpsynth attack audit``: what it prints, what it reads, and how it ends."""

from __future__ import annotations

import json

import plain_words
import pytest
from cohort import folder

from dpsynth.cli import main
from dpsynth.privacy.release import GaussianRelease
from dpsynth.runs import attack_inputs, pipeline

__all__ = ["folder"]
MODEL = "{epsilon: 3.0, delta: 1.0e-5}"


@pytest.fixture
def config(folder):
    path = folder / "demo.yaml"
    path.write_text(
        f"data: {{path: cohort.csv, schema: cohort.yaml}}\nmodel: {MODEL}\nevaluate: {{enabled: false}}\n"
        "attack: {enabled: false}\n"
    )
    return path


def audit(capsys, *words: object) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(["attack", "audit", *map(str, words), "--jobs", "1"])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


@pytest.mark.slow
def test_a_configuration_is_audited_without_its_records(config, tmp_path, capsys, monkeypatch):
    """Catches an audit that reads private records, that forgets a release, or that cannot go on."""

    def refuse(*_: object) -> None:
        raise AssertionError("records were read")

    monkeypatch.setattr(pipeline, "load_table", refuse)
    monkeypatch.setattr(attack_inputs, "load_table", refuse)
    out = tmp_path / "audit"
    status, text, _ = audit(capsys, config, "--trials", 600, "--out", out)
    assert status == 0 and "this may be shared" in text and "base model tables" in text
    assert plain_words.printed(text) == []
    status, text, told = audit(capsys, config, "--trials", 600, "--out", out, "--json")
    record = json.loads(text)
    released = [entry["release"] for entry in record["releases"]]
    assert released == ["single-column counts", "base model tables"]  # two columns beside the outcome
    assert "audited" not in told  # what is finished is not made again
    assert record["failed"] == [] and record["internal"] is False
    assert not any(attempt["internal"] for attempt in record["attempts"])
    assert {attempt["measure"] for attempt in record["attempts"]} == {"tv", "epsilon"}
    assert all(entry["lower"] <= entry["declared"]["epsilon"] for entry in record["releases"])
    assert audit(capsys, config, "--trials", 700, "--out", out)[0] == 2  # another audit's folder


@pytest.mark.slow
def test_a_lie_ends_with_status_1(config, capsys, monkeypatch):
    """Catches a contradiction that a script does not hear of."""
    half = property(lambda self: 0.3 * self.noise_multiplier * self.l2_sensitivity)
    monkeypatch.setattr(GaussianRelease, "noise_std", half)
    status, text, _ = audit(capsys, config, "--trials", 500, "--json")
    assert status == 1 and json.loads(text)["failed"] == ["single-column counts", "base model tables"]


def test_bad_input_is_one_sentence(config, tmp_path, capsys):
    """Catches a traceback, or work that begins before a mistake is found."""
    free = tmp_path / "free.yaml"
    free.write_text("dataset: breast_cancer\nmodel: {epsilon: null}\n")
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("")
    for words, sentence in (
        ((tmp_path / "absent.yaml",), "absent.yaml"),
        ((free,), "promises nothing to audit"),
        ((full,), "not the folder of a run"),
        ((config, "--out", full), "mine.txt"),
        ((config, "--out", config), "is a file"),
        ((config, "--trials", 10), "100"),
    ):
        status, text, told = audit(capsys, *words)
        assert status == 2 and text == "" and sentence in told and len(told.strip().splitlines()) == 1, told


@pytest.mark.parametrize("unreviewed", [True, False])
def test_fields_read_off_the_records_make_it_internal(tmp_path, capsys, unreviewed):
    """Catches bounds or an unconfirmed list of private records that go out in the shape of made-up ones."""
    import pandas as pd

    from dpsynth.table.inference import infer_schema

    frame = pd.DataFrame({"age": [20, 30, 41, 52, 63, 75] * 10, "sex": ["f", "m"] * 30})
    frame.to_csv(tmp_path / "mine.csv", index=False)
    schema = infer_schema(frame).schema
    (schema if unreviewed else schema.mark_reviewed()).to_yaml(tmp_path / "mine-schema.yaml")
    config = tmp_path / "mine.yaml"
    config.write_text(
        "data: {path: mine.csv, schema: mine-schema.yaml, accept_unreviewed: true}\n"
        f"model: {MODEL}\nevaluate: {{enabled: false}}\n"
        "attack: {enabled: false}\n"
    )
    status, text, _ = audit(capsys, config, "--trials", 200, "--json")
    record = json.loads(text)
    assert status == 0 and record["internal"] and all(attempt["internal"] for attempt in record["attempts"])
