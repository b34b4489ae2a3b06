"""Which regression is meant: text and arguments, and one sentence for each that cannot be."""

from __future__ import annotations

import pandas as pd
import pytest

from dpsynth.errors import InputError, SchemaError
from dpsynth.studies.model import EffectsModel, ModelText
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=99),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="sample.yr", kind="integer", lower=1995, upper=2003),
        Column(name="a+b:c~ (x)", kind="continuous", lower=0, upper=1),
        Column(name="change", kind="continuous", lower=-5, upper=5),
        Column(name="race", kind="categorical", categories=("a", "b", "c")),
        Column(name="days", kind="integer", lower=0, upper=9999),
        Column(name="death", kind="binary", categories=(0, 1)),
        Column(name="creatinine", kind="continuous", lower=0.1, upper=20, scale="log"),
        Column(name="c+rp", kind="continuous", lower=0.5, upper=500, step=0.5),
        Column(name="log", kind="integer", lower=1, upper=9),
        Column(name="flag", kind="integer", lower=0, upper=1),
        Column(name="a where b", kind="integer", lower=0, upper=1),
        Column(name="older", kind="integer", lower=0, upper=1, derived="floor(age / 60)"),
    )
)


def test_parse() -> None:
    """A name with signs that is cut, the duration and the event exchanged, or a kind that is not found."""
    for text, kind, outcome, duration, predictors in [
        ("logistic: death ~ age + sex", "logistic", "death", None, ("age", "sex")),
        (" logistic:death~age+sample.yr ", "logistic", "death", None, ("age", "sample.yr")),
        ("linear: age ~ .", "linear", "age", None, None),
        ("cox: (days, death) ~ age", "cox", "death", "days", ("age",)),
        ("(days,death)~age", "cox", "death", "days", ("age",)),
        ("cox: ( `days` , `death` ) ~ age", "cox", "death", "days", ("age",)),
        ("death ~ `a+b:c~ (x)` + age", "logistic", "death", None, ("a+b:c~ (x)", "age")),
        ("`a+b:c~ (x)` ~ age", "linear", "a+b:c~ (x)", None, ("age",)),
        ("death ~ log + age", "logistic", "death", None, ("log", "age")),
        ("death ~ 1", "logistic", "death", None, ()),
        ("age ~ 1 where sex == 'F'", "linear", "age", None, ()),
    ]:
        model = EffectsModel.parse(text, SCHEMA)
        assert (model.kind, model.outcome, model.duration, model.predictors) == (
            kind,
            outcome,
            duration,
            predictors,
        )


@pytest.mark.parametrize(
    "text",
    [
        "logistic: death ~ .",
        "cox: (days, death) ~ age + `a+b:c~ (x)`",
        "linear: `a+b:c~ (x)` ~ sex",
        "death ~ `a where b` + age where race in (a, 'b') and `a+b:c~ (x)` < 0.5",
        "age ~ 1",
    ],
)
def test_formula_is_read_back(text) -> None:
    """A formula shown in a report that another run cannot repeat."""
    model = EffectsModel.parse(text, SCHEMA)
    again = EffectsModel.parse(model.formula(SCHEMA), SCHEMA)
    assert again.columns(SCHEMA) == model.columns(SCHEMA)
    assert (again.kind, again.outcome, again.duration) == (model.kind, model.outcome, model.duration)
    assert again.where == model.where and (model.where is None) == (" where race" not in text)


def test_text_that_is_no_model() -> None:
    """A slip that is read as another model, or an error that does not say where it is."""
    for text, message in [
        ("logistic: death", "'kind: outcome ~ predictors', got 'logistic: death'"),
        ("poisson: death ~ age", "one of logistic, linear, cox, got 'poisson'"),
        ("logistic: death ~ dose", "'dose' is not a column"),
        ("logistic: dead ~ age", "'dead' is not a column"),
        ("logistic: death ~ age + + sex", "a predictor is missing"),
        ("logistic: death ~ age +", "a predictor is missing"),
        ("logistic: death ~ + age", "a predictor is missing"),
        ("logistic: death ~ ", "a predictor is missing"),
        ("logistic: death ~ age + .", "'.' is not a column"),
        ("logistic: death ~ age + age", "the predictor 'age' is given twice"),
        ("logistic: death ~ death", "'death' is the outcome and cannot be a predictor"),
        ("cox: (days, death) ~ days", "'days' is the duration and cannot be a predictor"),
        ("cox: (days, days) ~ age", "the outcome 'days' of a cox model must have two categories"),
        ("cox: death ~ age", "written '(duration, event)', got 'death'"),
        ("logistic: (days, death) ~ age", "outcome of a logistic model is one column"),
        ("cox: (sex, death) ~ age", "the duration 'sex' must be numeric, got kind 'binary'"),
        ("cox: (change, death) ~ age", "'change' must not be negative, got lower bound -5"),
        ("logistic: race ~ age", "'race' of a logistic model must have two categories, got 3"),
        ("logistic: age ~ sex", "'age' of a logistic model must have two categories, got kind 'integer'"),
        ("linear: sex ~ age", "'sex' of a linear model must be numeric, got kind 'binary'"),
        ("race ~ age", "no model fits the outcome 'race'"),
        ("death ~ age ~ sex", "'kind: outcome ~ predictors', got 'death ~ age ~ sex'"),
        ("a: b: death ~ age", "has one colon"),
        (
            "death ~ (age)",
            "the right side of a model is 'column + log(column) + log1p(column)' or '.', got '(age)'",
        ),
        ("death sex, ~ age", "the left side of a model"),
        ("death ~ log()", "'column + log(column) + log1p(column)' or '.', got 'log()'"),
        ("death ~ exp(age)", "'column + log(column) + log1p(column)' or '.', got 'exp(age)'"),
        ("death ~ log(c+rp)", "'column + log(column) + log1p(column)' or '.', got 'log(c+rp)'"),
        ("death ~ log(.)", "'.' is not a column"),
        ("death ~ log(dose)", "'dose' is not a column"),
        ("death ~ age + log(age)", "the predictor 'age' is given twice"),
        ("death ~ log(sex)", "'sex' cannot enter as its logarithm: it is neither a numeric predictor nor"),
        ("log(death) ~ age", "'death' cannot enter as its logarithm: it is neither"),
        ("cox: (log(days), death) ~ age", "written '(duration, event)', got '(log(days), death)'"),
        ("death ~ log(change)", "'change' cannot enter as its logarithm: its lower bound is -5, below 0"),
        ("log(change) ~ age", "'change' cannot enter as its logarithm: its lower bound is -5, below 0"),
        ("death ~ log(`a+b:c~ (x)`)", "its lower bound is 0, and 0 has none. Write log1p(`a+b:c~ (x)`)"),
        ("death ~ log(days)", "Write log1p(days), or declare a lower bound above 0"),
        ("log(days) ~ age", "'days' cannot enter as its logarithm: its lower bound is 0, and 0 has none"),
        ("death ~ 1 + age", "'1' is no column: a model has an intercept always"),
        ("cox: (days, death) ~ 1", "no predictor is left for the outcome 'death'"),
        ("death ~ age where dose > 1", "condition 'dose > 1': 'dose' is not a column"),
        (
            "death ~ age where sex",
            "condition 'sex': 'sex' holds text, not numbers. Compare it, as in (sex == 'F')",
        ),
        ("death ~ age where death == 1", "condition 'death == 1': 'death' is what the model explains"),
        ("cox: (days, death) ~ sex where days > 9", "condition 'days > 9': 'days' is what the model"),
        ("age ~ sex where older == 1", "'older' is what the model explains, or is computed from it"),
        ("death ~ sex where age > 99", "condition 'age > 99': no declared values fulfil it"),
        ("death ~ sex where sex == 'F'", "it leaves 'F' of the predictor 'sex' alone. Name predictors"),
        ("death ~ race where race != 'a'", "it leaves 'b', 'c' of the predictor 'race' alone"),
        ("death ~ age where age == 40", "it leaves 40 of the predictor 'age' alone"),
    ]:
        with pytest.raises(InputError) as caught:
            EffectsModel.parse(text, SCHEMA)
        assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("units", [{"sex": 2.0}, {"death": 1.0}, {"days": 10.0}])
def test_units_are_of_numeric_predictors(units) -> None:
    """An increment that would silently do nothing."""
    with pytest.raises(InputError, match=f"units name '{next(iter(units))}'"):
        EffectsModel("logistic", "death", ["age", "sex"], units=units).check(SCHEMA)


@pytest.mark.parametrize(
    ("text", "logs"),
    [
        ("logistic: death ~ age + log(creatinine)", {"creatinine"}),
        ("cox: (days, death) ~ log( `c+rp` ) + log (age) + creatinine", {"c+rp", "age"}),
        ("linear: log(creatinine) ~ age + log(log)", {"creatinine", "log"}),
        ("log(`c+rp`)~log", {"c+rp"}),
        ("death ~ .", set()),
    ],
)
def test_logarithms_are_read_and_written(text, logs) -> None:
    """A logarithm that is lost on either side, one of a bare name, or a formula that is not read back."""
    model = EffectsModel.parse(text, SCHEMA)
    assert set(model.logs) == logs
    again = EffectsModel.parse(model.formula(SCHEMA), SCHEMA)
    assert again.logs == model.logs and again.columns(SCHEMA) == model.columns(SCHEMA)
    assert again.formula(SCHEMA) == model.formula(SCHEMA)


def test_the_text_is_written_as_it_was_read() -> None:
    """Backticks that are lost inside a logarithm, or spaces that grow."""
    lines = (
        "linear: log(`c+rp`) ~ log(creatinine) + log1p(`a,b`) + age",
        "cox: (days, `a,b`) ~ age + `.`",
        "a ~ .",
    )
    for text in lines:
        assert str(ModelText.read(text)) == text


def test_logs_are_of_numeric_columns_of_the_model() -> None:
    """A logarithm that would silently do nothing."""
    for name in ("sex", "days", "death", "creatinine"):
        with pytest.raises(InputError, match=f"'{name}' cannot enter as its logarithm"):
            EffectsModel("logistic", "death", ["age", "sex"], logs={name: "log"}).check(SCHEMA)
    EffectsModel("linear", "creatinine", ["age", "sex"], logs={"age": "log", "creatinine": "log"}).check(
        SCHEMA
    )


def test_a_logarithm_of_one_more() -> None:
    """A count with zeros that is refused, or a change whose 1 + x can be negative that is taken."""
    model = EffectsModel.parse("linear: log1p(days) ~ log1p(log) + log(creatinine) + age", SCHEMA)
    assert model.logs == {"days": "log1p", "log": "log1p", "creatinine": "log"}
    assert model.formula(SCHEMA) == "linear: log1p(days) ~ log1p(log) + log(creatinine) + age"
    with pytest.raises(InputError, match="'change' cannot enter as its logarithm: its lower bound is -5"):
        EffectsModel.parse("death ~ log1p(change)", SCHEMA)
    with pytest.raises(InputError, match="logs must map columns to one of log, log1p"):
        EffectsModel("logistic", "death", ["age"], logs={"age": "log2"})
    wide = EffectsModel("logistic", "death", ["days"], logs={"days": "log1p"}, units={"days": 1e300})
    with pytest.raises(InputError, match="out of all proportion"):
        wide.check(SCHEMA)


def test_default() -> None:
    """The wrong regression for an outcome, or one where none fits."""
    assert EffectsModel.default(SCHEMA, "death") == EffectsModel("logistic", "death", sparing=True)
    assert EffectsModel.default(SCHEMA, "age") == EffectsModel("linear", "age", sparing=True)
    assert EffectsModel.default(SCHEMA, "race") is None
    assert EffectsModel.default(SCHEMA.select(["death"]), "death") is None
    with pytest.raises(SchemaError, match="'dead' is not a column"):
        EffectsModel.default(SCHEMA, "dead")
    with pytest.raises(InputError, match="no predictor is left"):
        EffectsModel("logistic", "death").check(SCHEMA.select(["death"]))


def test_the_default_study_leaves_derived_columns_out() -> None:
    """Would catch a sum of predictors beside them: no regression has a solution then."""
    columns = (
        Column(name="a", kind="integer", lower=0, upper=9),
        Column(name="b", kind="integer", lower=0, upper=9),
        Column(name="n", kind="integer", lower=0, upper=18, derived="a + b"),
        Column(name="died", kind="binary", categories=("no", "yes")),
    )
    schema = Schema(columns=columns, outcome="died")
    study = EffectsModel.default(schema, "died")
    assert study is not None and study.formula(schema) == "logistic: died ~ a + b"
    assert EffectsModel.parse("logistic: died ~ n", schema).formula(schema) == "logistic: died ~ n"


def test_a_subgroup_is_where_the_rule_is_true() -> None:
    """Records whose missing value leaves the rule open, or those outside; a derived column that is absent."""
    columns = (
        Column(name="age", kind="integer", lower=18, upper=99, missing=True),
        Column(name="older", kind="integer", lower=0, upper=1, derived="floor(age / 60)", missing=True),
        Column(name="death", kind="binary", categories=(0, 1)),
    )
    schema = Schema(columns=columns)
    frame = schema.modelled.conform(pd.DataFrame({"age": [40, 70, None, 80], "death": [0, 1, 1, 0]})).frame
    found = {
        where: EffectsModel.parse(f"death ~ 1{where}", schema).included(frame, schema).tolist()
        for where in ("", " where age >= 65", " where not age >= 65", " where older == 1 and age < 75")
    }
    assert found == {
        "": [True] * 4,
        " where age >= 65": [False, True, False, True],
        " where not age >= 65": [True, False, False, False],
        " where older == 1 and age < 75": [False, True, False, False],
    }
