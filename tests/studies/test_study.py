"""A study declared before a fit: what it becomes for a schema, and one sentence for each that cannot be."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dpsynth
from dpsynth.errors import InputError
from dpsynth.studies import study as study_module
from dpsynth.studies.model import model_terms
from dpsynth.studies.study import Study, read_studies
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=99, unit="years"),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="creatinine", kind="continuous", lower=0.1, upper=20, scale="log"),
        Column(name="crp", kind="continuous", lower=0.1, upper=500, decimals=1, scale="log"),
        Column(name="change", kind="continuous", lower=-5, upper=5),
        Column(name="days", kind="integer", lower=0, upper=2000),
        Column(name="death", kind="binary", categories=(0, 1)),
        Column(name="one", kind="categorical", categories=("only",)),
        Column(name="ward", kind="categorical", categories=tuple(f"w{k}" for k in range(300))),
        Column(name="twice", kind="integer", lower=36, upper=198, derived="2 * age"),
        Column(name="half", kind="continuous", lower=9, upper=50, decimals=1, derived="twice / 4"),
    )
)


def names(study: Study) -> list[str]:
    return [term.name for term in model_terms(SCHEMA, study.effects(SCHEMA))]


def test_the_scale_of_the_schema_decides() -> None:
    """A skewed laboratory value that enters as it is, or one that somebody wanted linear as a logarithm."""
    text = "death ~ age + creatinine + crp"
    assert names(Study(model=text)) == ["age (years)", "creatinine (per doubling)", "crp (per doubling)"]
    chosen = Study(
        model=text,
        units={"creatinine": 10, "crp": 50, "age": 2},
        transforms={"crp": "linear", "age": "log", "creatinine": "log"},
    )
    assert names(chosen) == ["age (per doubling)", "creatinine (per 10-fold)", "crp (per 50)"]
    assert chosen.effects(SCHEMA).formula(SCHEMA) == "logistic: death ~ log(age) + log(creatinine) + crp"


def test_a_logarithm_of_one_more_in_the_text_or_in_the_transforms() -> None:
    """A count that enters by the scale's logarithm, where somebody asked for that of 1 + x."""
    written = Study(model="death ~ log1p(crp) + log1p(days)")
    assert names(written) == ["1 + crp (per doubling)", "1 + days (per doubling)"]
    asked = Study(model="death ~ crp + days", transforms={"crp": "log1p", "days": "log1p"}, units={"crp": 10})
    assert names(asked) == ["1 + crp (per 10-fold)", "1 + days (per doubling)"]
    formula = asked.effects(SCHEMA).formula(SCHEMA)
    assert formula == "logistic: death ~ log1p(crp) + log1p(days)"
    assert Study(model=formula, units={"crp": 10}).effects(SCHEMA) == asked.effects(SCHEMA)


def test_the_outcome_is_logged_only_where_the_text_says_so() -> None:
    """A linear outcome that turns into its logarithm because of its histogram's scale."""
    assert Study(model="creatinine ~ age").effects(SCHEMA).logs == {}
    assert Study(model="log(creatinine) ~ age + crp").effects(SCHEMA).logs == {
        "creatinine": "log",
        "crp": "log",
    }


def test_all_other_columns() -> None:
    """A point that takes derived columns, or a study that may drop predictors by itself."""
    schema = SCHEMA.select(["age", "creatinine", "death", "twice"])
    found = Study(model="death ~ .").effects(schema)
    assert found.formula(schema) == "logistic: death ~ age + log(creatinine)" and not found.sparing


@pytest.mark.parametrize(
    "given",
    [
        "death ~ age",
        {"model": "death ~ age"},
        {
            "model": "cox: (days, death) ~ age",
            "intervals": [365, 730.5],
            "name": "survival",
            "units": {"age": 5},
        },
        {"model": "death ~ age + crp", "transforms": {"age": "log"}, "units": {"crp": np.float64(10)}},
    ],
)
def test_a_study_is_read_back_from_its_record(given) -> None:
    """A declaration that a file loses a part of."""
    study = Study.read(given)
    assert Study.read(study) is study
    assert Study.read(json.loads(study.model_dump_json())) == study
    assert Study.read(study.model_dump()) == study
    assert dpsynth.Study is Study


def test_what_is_no_study() -> None:
    """A slip that is read as another study, or an error that does not say where it is."""
    for given, message in [
        (3, "a study must be a text, a mapping of keys or a Study, got 3"),
        (None, "a study must be a text, a mapping of keys or a Study, got None"),
        ({1: "death ~ age"}, "a study must be a text, a mapping of keys"),
        ({}, "model is required"),
        ({"model": None}, "model must be a valid string, got None"),
        ("death", "model: a model is written 'kind: outcome ~ predictors', got 'death'"),
        ("poisson: death ~ age", "model: the kind of a model must be one of"),
        ("cox: death ~ age", "model: the left side of a cox model is written '(duration, event)'"),
        ({"model": "death ~ age", "unit": {}}, "unit is not a known key (known keys: model, name, units"),
        ({"model": "death ~ age", "units": {"age": 0}}, "units.age must be greater than 0, got 0"),
        ({"model": "death ~ age", "units": {"age": "10"}}, "units.age must be a valid number, got '10'"),
        ({"model": "death ~ age", "units": {"age": True}}, "units.age must be a valid number, got True"),
        ({"model": "death ~ age", "units": {"age": float("inf")}}, "units.age must be a finite number"),
        ({"model": "death ~ age", "units": {"age": -1}}, "units.age must be greater than 0, got -1"),
        ({"model": "death ~ age", "units": {"age": float("nan")}}, "units.age must be a finite number"),
        ("death ~ (age + sex) * sex", "or '.', got '(age + sex) * sex'. Interactions and other"),
        ("death ~ I(age**2)", "got 'I(age**2)'. Interactions and other functions are not"),
        (
            {"model": "death ~ age", "transforms": {"age": "sqrt"}},
            "transforms.age must be 'log', 'log1p' or 'linear'",
        ),
        ({"model": "death ~ age", "name": ""}, "name: must be one line of text"),
        ({"model": "death ~ age", "name": "a\nb"}, "name: must be one line of text"),
        (
            {"model": "death ~ age", "intervals": list(range(1, 22))},
            "intervals: there are at most 20 boundaries",
        ),
        ({"model": "death ~ age", "intervals": []}, "intervals: at least one boundary of time is needed"),
        ({"model": "death ~ age", "intervals": 365}, "intervals must be a list, got 365"),
        ({"model": "death ~ age", "intervals": [0, 5]}, "must be greater than 0 and increase, got 0, 5"),
        ({"model": "death ~ age", "intervals": [9, 5]}, "must be greater than 0 and increase, got 9, 5"),
        ({"model": "death ~ age", "intervals": [5, 5]}, "must be greater than 0 and increase, got 5, 5"),
    ]:
        with pytest.raises(InputError) as caught:
            Study.read(given)
        assert message in str(caught.value) and "\n" not in str(caught.value)


COX = "cox: (days, death) ~ age"


def test_studies_that_do_not_fit_the_schema() -> None:
    """A study that fails in the middle of a fit, after its noise was paid for, or does something else."""
    for given, message in [
        ({"model": "death ~ dose"}, "study 'death': 'dose' is not a column"),
        ({"model": "dead ~ age", "name": "main"}, "study 'main': 'dead' is not a column"),
        ({"model": "death ~ age*sex"}, "'age*sex' is no column, and '*' is not read: a model has no inter"),
        ({"model": "death ~ age + age:sex"}, "'age:sex' is no column, and ':' is not read: a model has no"),
        ({"model": "death ~ age - sex"}, "'age - sex' is no column: leave a predictor out by not naming it"),
        ({"model": "death ~ age + 1"}, "'1' is no column: a model has an intercept always"),
        ({"model": "death ~ age^2"}, "'age^2' is no column, and '^' is not read: a model has no"),
        ({"model": "death ~ age", "units": {"age": 1e-12}}, "units.age is out of all proportion"),
        ({"model": "death ~ age", "units": {"age": 1e300}}, "declared range 18 to 99 of 'age', got 1e+300"),
        ({"model": "death ~ crp", "units": {"crp": 1 + 1e-12}}, "units.crp is out of all proportion"),
        ({"model": "death ~ crp", "units": {"crp": 1e300}}, "units.crp is out of all proportion"),
        ({"model": "ward ~ age"}, "no model fits the outcome 'ward'"),
        ({"model": "death ~ death"}, "'death' is the outcome and cannot be a predictor"),
        (
            {"model": "death ~ log(age)", "transforms": {"age": "linear"}},
            "the model says log(age), and transforms say linear",
        ),
        ({"model": "death ~ age", "transforms": {"crp": "log"}}, "transforms name 'crp', which is not"),
        ({"model": "death ~ sex", "transforms": {"sex": "log"}}, "transforms name 'sex', which is not"),
        ({"model": "crp ~ age", "transforms": {"crp": "log"}}, "transforms name 'crp', which is not"),
        ({"model": "death ~ age", "transforms": {"dose": "log"}}, "'dose' is not a column"),
        ({"model": "death ~ days", "transforms": {"days": "log"}}, "Write log1p(days), or declare a lower"),
        ({"model": "death ~ change", "transforms": {"change": "log"}}, "its lower bound is -5, below 0"),
        ({"model": "death ~ age", "units": {"crp": 10}}, "units name 'crp', which is not"),
        ({"model": "death ~ age", "units": {"dose": 10}}, "'dose' is not a column"),
        ({"model": "death ~ crp", "units": {"crp": 1}}, "'crp' enters as its logarithm"),
        ({"model": "twice ~ sex"}, "'twice' is a derived column, which can only be a predictor. Declare it"),
        ({"model": "cox: (twice, death) ~ sex"}, "'twice' is a derived column, which can only be a"),
        ({"model": "age ~ twice"}, "'twice' is computed from 'age', which the model explains. Leave it out"),
        ({"model": "age ~ sex + half"}, "'half' is computed from 'age', which the model explains"),
        ({"model": "death ~ one"}, "the model must have from 1 to 200 terms, got 0"),
        ({"model": "death ~ ward"}, "the model must have from 1 to 200 terms, got 299"),
        ({"model": "death ~ age", "intervals": [365]}, "intervals are for cox models only, got a logistic"),
        ({"model": COX, "intervals": [365, 2001]}, "the bounds 0 and 2000 of 'days', got 2001"),
        ({"model": COX, "intervals": [2000]}, "the bounds 0 and 2000 of 'days', got 2000"),
    ]:
        study = Study(**given)
        with pytest.raises(InputError) as caught:
            study.effects(SCHEMA)
        assert message in str(caught.value) and "\n" not in str(caught.value)
        assert str(caught.value).startswith(f"study {study.label!r}: ")


def test_a_column_may_be_called_like_an_interaction() -> None:
    """A name with a sign in it that is no longer read."""
    schema = Schema(columns=(*SCHEMA.columns, Column(name="age*sex", kind="integer", lower=0, upper=99)))
    for text in ("death ~ age*sex", "death ~ `age*sex`"):
        assert model_terms(schema, Study(model=text).effects(schema))[0].name == "age*sex"


def test_as_many_terms_as_may_be(monkeypatch) -> None:
    """A limit that is off by one."""
    monkeypatch.setattr(study_module, "MAX_TERMS", 299)
    assert len(names(Study(model="death ~ ward"))) == 299


def test_labels() -> None:
    """Two studies whose estimates would overwrite each other, or a label that needs a schema."""
    found = read_studies(
        ["death ~ age", {"model": "death ~ age + sex", "name": "full"}, Study(model=COX, name="x")]
    )
    assert [study.label for study in found] == ["death", "full", "x"]
    assert Study(model="linear: log(`crp`) ~ age").label == "crp"
    for second in ("cox: (days, death) ~ age", {"model": "crp ~ age", "name": "death"}):
        with pytest.raises(InputError, match="two studies are called 'death'"):
            read_studies(["death ~ age", second])


def test_a_list_of_studies() -> None:
    """A single text that is read letter by letter, or a fault that does not say in which study."""
    assert read_studies([]) == ()
    for given in ("death ~ age", {"model": "death ~ age"}, None):
        with pytest.raises(InputError, match="studies must be a list of studies"):
            read_studies(given)
    with pytest.raises(InputError, match=r"^study 2: model: a model is written"):
        read_studies(["death ~ age", "death"])
    with pytest.raises(InputError, match="study 'crp': 'dose' is not a column"):
        read_studies(["death ~ age", "crp ~ dose"], SCHEMA)
    assert len(read_studies(("death ~ age", "crp ~ dose"))) == 2
