"""Run configurations."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth import DPMarginals
from dpsynth.datasets import names
from dpsynth.errors import ConfigError
from dpsynth.files.text import load_yaml
from dpsynth.runs.config import (
    AttackConfig,
    DataConfig,
    EvaluateConfig,
    RunConfig,
    SampleConfig,
    SplitConfig,
)
from dpsynth.studies.study import Study

CONFIGS = sorted((Path(__file__).resolve().parents[2] / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_shipped_configs(path: Path, tmp_path: Path) -> None:
    """A shipped configuration that does not load, names no data set, or changes when it is saved."""
    config = RunConfig.from_yaml(path)
    assert config.dataset in names()
    config.to_yaml(tmp_path / "again.yaml")
    assert RunConfig.from_yaml(tmp_path / "again.yaml") == config


def test_shipped_configs_are_there() -> None:
    """An empty folder would make the test above pass without looking."""
    stems = {path.stem for path in CONFIGS}
    assert {"breast_cancer", "flchain", "support2", "healthgan_baseline"} <= stems


def test_shipped_configs_have_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a name that only the checkout knows, one that hides a file, and an error that lists no name."""
    monkeypatch.chdir(tmp_path)
    for path in CONFIGS:
        assert RunConfig.from_yaml(Path(path.stem)) == RunConfig.from_yaml(path)
    Path("randhie").write_text("{dataset: flchain, model: {epsilon: 1}}")
    assert RunConfig.from_yaml("randhie").dataset == "flchain"
    with pytest.raises(ConfigError, match=r"^rand\.yaml: no such file or .*breast_cancer, .*support2_study"):
        RunConfig.from_yaml("rand.yaml")


@settings(deadline=None)
@given(
    epsilon=st.none() | st.floats(1e-6, 1e6),
    delta=st.none() | st.floats(1e-300, 0.5),
    n=st.none() | st.integers(1, 10**9),
    seed=st.integers(0, 2**40),
    fraction=st.floats(0.01, 0.99),
    encoding=st.sampled_from(["copula", "minmax", "sdv"]),
    training=st.fixed_dictionaries(
        {},
        optional={
            "penalty_weight": st.floats(0, 1e9),
            "clip_norm": st.none() | st.floats(1e-300, 1e300),
            "latent": st.integers(1, 10**6),
            "critic_hidden": st.lists(st.integers(1, 50).map(lambda half: 2 * half), min_size=1),
            "critic_constraint": st.sampled_from(["none", "spectral"]),
        },
    ),
)
def test_yaml_round_trip(epsilon, delta, n, seed, fraction, encoding, training) -> None:
    """A delta of 1e-300, or an option called `no`, that the saved copy gives back as something else."""
    config = RunConfig.from_dict(
        {
            "dataset": "flchain",
            "split": {"test_fraction": fraction, "seed": seed},
            "model": {
                "generator": "wgan-gp",
                "epsilon": epsilon,
                "delta": delta,
                "noise_shape": "spherical",
                "encoding": encoding,
                "training": training,
            },
            "sample": {"n": n},
        }
    )
    assert RunConfig.from_dict(load_yaml(config.to_yaml())) == config


STUDIES = """\
dataset: flchain
model: {epsilon: 3}
studies:
  - "death ~ age + log(creatinine)"
  - model: "cox: (futime, death) ~ age"
    name: survival
    units: {age: 10}
    transforms: {age: linear}
    intervals: [365, 730.5]
"""


def test_studies_round_trip(tmp_path: Path) -> None:
    """A declaration of which the saved copy, or the record in a report, has lost a part."""
    config = RunConfig.from_dict(load_yaml(STUDIES))
    survival = Study(
        model="cox: (futime, death) ~ age",
        name="survival",
        units={"age": 10.0},
        transforms={"age": "linear"},
        intervals=(365.0, 730.5),
    )
    assert config.studies == (Study(model="death ~ age + log(creatinine)"), survival)
    config.to_yaml(tmp_path / "again.yaml")
    assert RunConfig.from_yaml(tmp_path / "again.yaml") == config
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert config.to_dict()["studies"][0] == {"model": "death ~ age + log(creatinine)"}
    assert "studies" not in RunConfig.from_dict({"dataset": "a", "model": {"epsilon": 1}}).to_dict()
    half = RunConfig.from_dict({**config.to_dict(), "studies_share": 0.5})
    assert (half.also[0].share, config.also[0].share) == (0.5, 0.3) and half.of_fit() != config.of_fit()
    with pytest.raises(ConfigError, match="studies_share must be less than 1"):
        RunConfig.from_dict({**config.to_dict(), "studies_share": 1})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("studies: death ~ age", "studies must be a list of studies, got 'death ~ age'"),
        ("studies:", "studies must be a list of studies, got None"),
        ("studies: [death ~ age, death]", "studies: study 2: model: a model is written"),
        ("studies: [{model: death ~ age, unit: {}}]", "studies: study 1: unit is not a known key"),
        ("studies: [{name: x}]", "studies: study 1: model is required"),
        ("studies: [death ~ age, death ~ sex]", "studies: two studies are called 'death'"),
        (
            "studies: [{model: death ~ age, units: {age: 0}}]",
            "studies: study 1: units.age must be greater than 0, got 0",
        ),
        ("studies: [death ~ age]\nstudies: []", "the key 'studies' is given twice"),
        (
            "study: death ~ age",
            "study is not a known key (known keys: description, dataset, data, split, model",
        ),
    ],
)
def test_studies_that_are_none(text: str, words: str, tmp_path: Path) -> None:
    """A slip that does not name the key and the study, or a text that is read letter by letter."""
    path = tmp_path / "x.yaml"
    path.write_text(f"dataset: a\nmodel: {{epsilon: 1}}\n{text}\n")
    with pytest.raises(ConfigError, match=re.escape(words)) as caught:
        RunConfig.from_yaml(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dataset: a\nmodel: {epsilon: -1}", "model.epsilon must be greater than 0, got -1"),
        ("dataset: a\nmodel: {epsilon: .nan}", "model.epsilon must be a finite number, got nan"),
        ("dataset: a\nmodel: {epsilon: '3'}", "model.epsilon must be a valid number, got '3'"),
        ("dataset: a\nmodel: {delta: 1}", "model.delta must be less than 1, got 1"),
        (
            "dataset: a\nmodel: {epsilon: 1, generator: forest}",
            "model: generator must be one of marginals, wgan-gp, matching, got 'forest'",
        ),
        (
            "dataset: a\nmodel: {epsilon: 1, generator: wgan-gp, training: {lr: 3}}",
            "model.training: lr is not a known key",
        ),
        (
            "dataset: a\nmodel: {epsilon: 1, steps: 3}",
            "model: steps is an option of generator wgan-gp, not of marginals",
        ),
        (
            "dataset: a\nmodel: {epsilon: 1, shares: {count: 2}}",
            "model.shares: shares.count must be greater than 0 and less than 1, got 2",
        ),
        ("dataset: a\nmodel: 3", "model must be a mapping of keys, got 3"),
        ("dataset: a\nmodle: {}", "modle is not a known key (known keys: description, dataset, data, split"),
        ("dataset: a\nsplit: {seed: true}", "split.seed must be a valid integer, got True"),
        ("data: {path: a.csv}\nmodel: {epsilon: 1}", "data.schema is required"),
        (
            "dataset: a\nmodel: {epsilon: 1}\ndata: {path: a.csv, schema: a.yaml}",
            "one of dataset and data is required, and both",
        ),
        ('dataset: "a\\0.yaml"\nmodel: {epsilon: 1}', "dataset: it must not hold a zero byte"),
        (
            'data: {path: "a\\0.csv", schema: b.yaml}\nmodel: {epsilon: 1}',
            "data.path: it must not hold a zero byte",
        ),
        ("{}", "model is required"),
        ("", "a mapping of keys is required, got None"),
        ("1: 2", "a mapping of keys is required"),
        ("dataset: [", "not valid YAML"),
        ("dataset: a\ndataset: b", "the key 'dataset' is given twice"),
    ],
)
def test_errors_name_file_and_key(text: str, words: str, tmp_path: Path) -> None:
    """A mistake that is not named by file and key in one sentence, or that passes unseen."""
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(words)) as caught:
        RunConfig.from_yaml(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_own_data_is_found_from_the_configs_folder(tmp_path: Path) -> None:
    """Paths taken from the current folder, or lost when the copy is saved elsewhere."""
    (tmp_path / "x.yaml").write_text("model: {epsilon: 1}\ndata: {path: a.csv, schema: ../s.yaml}")
    config = RunConfig.from_yaml(tmp_path / "x.yaml")
    assert config.data is not None
    assert config.data.path == str(tmp_path.resolve() / "a.csv")
    assert config.data.schema_path == str(tmp_path.resolve().parent / "s.yaml")
    (tmp_path / "run").mkdir()
    config.to_yaml(tmp_path / "run" / "x.yaml")
    assert RunConfig.from_yaml(tmp_path / "run" / "x.yaml") == config


def test_frozen() -> None:
    """A configuration changed after validation is not the one that was checked."""
    config = RunConfig(dataset="flchain", model={"epsilon": 1.0})
    with pytest.raises(Exception, match="frozen"):
        config.model.epsilon = -1  # type: ignore[misc]


def test_defaults_are_the_synthesizers() -> None:
    """A default that the configuration and the class give differently."""
    config = RunConfig.from_dict({"dataset": "a", "model": {"epsilon": 3.0}})
    assert config.model.arguments() == DPMarginals(epsilon=3.0).get_params()


def test_a_card_of_ones_own_is_found_from_the_configs_folder(tmp_path: Path) -> None:
    """A card's path that means another file where the configuration is saved beside its results."""
    path = tmp_path / "run.yaml"
    path.write_text("dataset: cards/mine.yaml\nmodel: {epsilon: 1}\n")
    assert RunConfig.from_yaml(path).dataset == str((tmp_path / "cards" / "mine.yaml").resolve())
    path.write_text("dataset: flchain\nmodel: {epsilon: 1}\n")
    assert RunConfig.from_yaml(path).dataset == "flchain"


def test_the_page_of_fields_names_them_all(tmp_path):
    """Catches a field that no page explains, and an example that is no configuration."""
    page = (Path(__file__).parents[2] / "docs/reference/run-fields.md").read_text(encoding="utf-8")
    example = page.split("```")[1].partition("\n")[2]
    (tmp_path / "run.yaml").write_text(example, encoding="utf-8")
    assert RunConfig.from_yaml(tmp_path / "run.yaml").sample.n == 5000
    sections = {name: field.annotation for name, field in RunConfig.model_fields.items()}
    names = {*sections, "schema", "epsilon"}
    for section in (DataConfig, SplitConfig, SampleConfig, EvaluateConfig, AttackConfig):
        names |= {field.alias or name for name, field in section.model_fields.items()}
    assert not [name for name in names if f"`{name}`" not in page]
