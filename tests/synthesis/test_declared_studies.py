"""Studies declared at an estimator: what is refused before a record is read, and what is kept afterwards."""

from __future__ import annotations

import math
import re
import warnings
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import dp_marginals
from sklearn.base import clone

import dpsynth
from dpsynth import Column, Schema, Shares, Study, TrainingSettings
from dpsynth.errors import InputError, OwnerWarning, PrivacyError
from dpsynth.files.codec import to_plain
from dpsynth.privacy import Ledger
from dpsynth.studies.study import Estimates
from dpsynth.synthesis.fit import planned_parts, widening_lines
from dpsynth.synthesis.parts.regressions import Regressions

pytestmark = pytest.mark.usefixtures("few_draws", "projected")
SMALL = TrainingSettings(
    critic_hidden=(4,), generator_hidden=(4,), latent=2, activation="leaky_relu", bjorck_steps=0
)
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="crea", kind="continuous", lower=0.1, upper=20, decimals=2, scale="log", missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="months", kind="integer", lower=216, upper=1080, derived="age * 12"),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    outcome="died",
    n_public=600,
)
STUDIES = ["died ~ age + crea", {"model": "linear: age ~ sex", "name": "ages", "units": {}}]


def table(n=600, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, n)
    crea = np.where(rng.random(n) < 0.1, np.nan, np.exp(rng.normal(0, 0.5, n)).round(2))
    died = rng.random(n) < 1 / (1 + np.exp(-(age - 60) / 15))
    return pd.DataFrame(
        {"age": age, "crea": crea, "sex": rng.choice(["F", "M"], n), "died": np.where(died, "yes", "no")}
    )


def estimator(**options):
    return dp_marginals(
        **{
            "epsilon": 2.0,
            "delta": 1e-5,
            "pairwise_statistics": False,
            "studies": STUDIES,
            **options,
        }
    )


def same(a: tuple[Estimates, ...], b: tuple[Estimates, ...]) -> bool:
    return [*map(to_plain, a)] == [*map(to_plain, b)]


def unread(monkeypatch) -> None:
    """Nothing of the private table may be looked at from here on."""

    def refuse(*args, **kwargs):
        pytest.fail("the records were read")

    monkeypatch.setattr("dpsynth.synthesis.synthesizer.records_of", refuse)


WIDE = "died ~ " + " + ".join(f"x{k}" for k in range(40))
WIDE_SCHEMA = Schema(
    columns=(
        *(Column(name=f"x{k}", kind="continuous", lower=0, upper=1) for k in range(40)),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    n_public=200,
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"studies": ["died ~ dose"]}, "study 'died': 'dose' is not a column"),
        (
            {"studies": ["logistic: age ~ sex"]},
            "study 'age': the outcome 'age' of a logistic model must have",
        ),
        ({"studies": ["died ~ age", "died ~ sex"]}, "studies: two studies are called 'died'. Give one"),
        ({"studies": ["died ~ age + sex + age"]}, "study 'died': the predictor 'age' is given twice"),
        ({"studies": ["months ~ sex"]}, "study 'months': 'months' is a derived column, which can only be a"),
        (
            {"studies": [{"model": "died ~ age", "intervals": [365]}]},
            "study 'died': intervals are for cox models only, got a logistic model",
        ),
        ({"studies": "died ~ age"}, "studies must be a list of studies, got 'died ~ age'"),
        ({"studies": ["died ~ age", 3]}, "studies: study 2: a study must be a text, a mapping of keys"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_in_a_sentence_before_anything_is_read(options, message, monkeypatch):
    """A study that fails in the middle of a fit, or a sentence that does not say which."""
    unread(monkeypatch)
    ledger = Ledger()
    for refused in (
        lambda model: model.fit(table(), schema=SCHEMA, ledger=ledger),
        lambda model: model.expected_widening(SCHEMA),
    ):
        with pytest.raises(InputError) as caught:
            refused(estimator(**options))
        assert message in str(caught.value) and "\n" not in str(caught.value)
    assert not ledger.entries


def test_too_many_terms_for_the_budget():
    """A study whose intervals say nothing, found out after the budget was spent."""
    model = dp_marginals(0.3, 1e-5, pairwise_statistics=False, studies=[WIDE])
    frame = pd.DataFrame({f"x{k}": np.linspace(0, 1, 200) for k in range(40)}).assign(
        died=["no", "yes"] * 100
    )
    ledger = Ledger()
    with pytest.raises(PrivacyError, match="study 'died' has more terms than the budget can bear"):
        model.expected_widening(WIDE_SCHEMA)
    with pytest.raises(PrivacyError, match="study 'died' has more terms than the budget can bear"):
        model.fit(frame, schema=WIDE_SCHEMA, ledger=ledger)
    assert not ledger.entries


def test_a_private_count_is_the_only_thing_paid_for_when_a_study_is_refused():
    """A refusal that cannot be known beforehand, and that costs more than the count."""
    ledger = Ledger()
    with pytest.raises(PrivacyError, match="more terms than the budget can bear"):
        estimator(epsilon=0.02, delta=1e-4).fit(table(), schema=SCHEMA.with_n_public(None), ledger=ledger)
    assert [entry.name for entry in ledger.entries] == ["number of records"]


def test_expected_widening_is_that_of_the_planned_noise():
    """A widening of another budget, share or number of records than the fit's."""
    model = estimator()
    found = model.expected_widening(SCHEMA)
    assert list(found) == ["died", "ages"]
    options = model.validate()
    planned = planned_parts(SCHEMA.modelled, 600.0, options).of(Regressions)
    multiplier = planned.multiplier
    assert found["died"] == pytest.approx(math.sqrt(1 + 16 * multiplier**2 * 3 / 600))
    assert found["ages"] == pytest.approx(math.sqrt(1 + 16 * multiplier**2 * 2 / 600))
    fitted = model.fit(table(), schema=SCHEMA)
    # the event in the ledger is the one that was planned
    scores = [entry for entry in fitted.ledger_.entries if entry.name == "score of study died"]
    assert len(scores) == 2 and all(
        entry.event == planned.release(planned.studies[0]).first.event for entry in scores
    )
    assert estimator(shares=Shares(studies=0.6)).expected_widening(SCHEMA)["died"] < found["died"]
    assert estimator().expected_widening(SCHEMA.with_n_public(300))["died"] > found["died"]
    assert estimator(epsilon=None).expected_widening(SCHEMA) == {"died": 1.0, "ages": 1.0}
    assert estimator(studies=()).expected_widening(SCHEMA) == {}


def test_widening_is_told_or_it_is_said_why_not():
    """A width that the private count decides, a study passed over, effects taken for least squares."""
    private = SCHEMA.with_n_public(None)
    with pytest.raises(InputError, match="schema has no n_public"):
        estimator().expected_widening(private)
    options = estimator().validate()
    (line,) = widening_lines(options, private)
    assert "which is private" in line
    lines = widening_lines(options, SCHEMA)
    told = r"study \w+: intervals about \d\.\d times as wide as without noise"
    assert re.fullmatch(told + ", and wider where records lack a value", lines[0])
    assert re.fullmatch(told, lines[1])
    assert len(lines) == 2 and widening_lines(estimator(studies=()).validate(), private) == []


@pytest.mark.parametrize("n_public", [None, 600])
def test_long_tails_are_told_before_a_record_is_read(monkeypatch, n_public) -> None:
    """An effect of the middle taken for that of all: nothing was said in Python, nor without n_public."""
    count = Column(name="nodes", kind="integer", lower=0, upper=50)
    change = Column(name="change", kind="continuous", lower=-90, upper=90)
    schema = SCHEMA.model_copy(update={"columns": (count, change, *SCHEMA.columns), "n_public": n_public})
    monkeypatch.setattr("dpsynth.synthesis.synthesizer.records_of", Mock(side_effect=InterruptedError))

    def told(model: str) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with pytest.raises(InterruptedError):
                estimator(studies=[model]).fit(table(), schema=schema)
        return [str(warning.message) for warning in caught if warning.category is OwnerWarning]

    assert told("died ~ nodes + age + sex") == [
        "study 'died': A record far out in nodes counts less. If nodes has a long tail, its effect is that "
        "of the middle. log1p(nodes) or narrower bounds shorten the tail."
    ]
    assert told("died ~ nodes + change where sex == 'F'") == [
        "study 'died': A record far out in nodes and change counts less. If nodes and change have long "
        "tails, their effects are those of the middle. log1p(nodes) or narrower bounds shorten the tails."
    ]
    (linear,) = told("linear: age ~ sex")
    assert re.fullmatch(r"study 'age': A residual counts .* If age has a long tail, .* the tail\.", linear)
    for model in ("died ~ log1p(nodes) + age + sex", "died ~ age + crea", "died ~ 1"):
        assert told(model) == []


def test_a_saved_model_keeps_its_studies(tmp_path):
    """Estimates, declarations or parameters that a file loses or changes."""
    survival = {"model": "cox: (crea, died) ~ age", "name": "cox", "intervals": [1.0]}
    model = estimator(studies=[*STUDIES, survival]).fit(table(), schema=SCHEMA)
    model.save(tmp_path / "m")
    again = dpsynth.load(tmp_path / "m")
    assert same(again.estimates_, model.estimates_) and len(again.estimates_) == 3
    assert str(again.study("ages")) == str(model.study("ages"))
    assert again.studies == tuple(Study.read(given) for given in model.studies)
    for a, b in zip(again.model_.studies, model.model_.studies, strict=True):
        np.testing.assert_array_equal(a.beta, b.beta)
        np.testing.assert_array_equal(a.covariance, b.covariance)
        assert to_plain(a.design) == to_plain(b.design) and a.declared == b.declared
    again.save(tmp_path / "n")
    assert (tmp_path / "n/model.json").read_text() == (tmp_path / "m/model.json").read_text()
    copied = clone(again)
    assert copied.get_params() == again.get_params()


def test_a_study_asked_for_after_the_fit():
    """A study that is read from the records later, unpaid, or a KeyError."""
    model = estimator(studies=["died ~ age"]).fit(table(), schema=SCHEMA)
    with pytest.raises(
        InputError, match=r"study 'sex' was not declared before the fit \(declared were: died\)"
    ):
        model.study("sex")
    with pytest.raises(InputError, match="none was declared"):
        estimator(studies=()).fit(table(), schema=SCHEMA).study("died")


def test_studies_stand_in_the_ledger():
    """A reading that is not posted, or a budget that studies exceed."""
    model = estimator().fit(table(), schema=SCHEMA)
    names = [entry.name for entry in model.ledger_.entries if "study" in entry.name]
    assert names == [
        f"{what} of study {name}" for name in ("died", "ages") for what in ("information", "score", "score")
    ]
    assert 1.9 < model.ledger_.epsilon(1e-5) <= 2.0


def test_what_is_remarked_on_a_study_is_said_of_its_tables():
    """Tables analysed without a word of predictors that the estimates say cannot be told apart."""
    twice = Schema(
        columns=(*SCHEMA.columns, Column(name="weeks", kind="integer", lower=900, upper=4700)),
        outcome="died",
        n_public=600,
    )
    frame = table().assign(weeks=lambda t: t["age"] * 52)
    studies = ["died ~ age + weeks", {"model": "died ~ age", "name": "age"}]
    models = [
        estimator(epsilon=8.0, studies=studies, random_state=seed).fit(frame, schema=twice)
        for seed in range(4)
    ]
    assert not any(model.study("age").remarks for model in models)
    # of thirty-two seeds two have draws that know too little of it
    told = [model for model in models if model.study("died").remarks]
    assert len(told) >= 2
    model = told[0]
    assert "know of age and weeks (per 100): " in model.study("died").remarks[0]
    with pytest.warns(UserWarning, match="'died', and so these tables: Noise hides how much"):
        model.sample_many(2, study="died", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.sample_many(2, study="age", random_state=0)


def test_a_derived_predictor_is_computed_and_never_read():
    """What the private table holds under a derived column's name, or another effect than its input has."""
    frame = table()
    garbage = frame.assign(months=np.arange(len(frame)))
    tried = (("died ~ months", frame), ("died ~ months", garbage), ("died ~ age", frame))
    fits = [estimator(studies=[text], random_state=0).fit(given, schema=SCHEMA) for text, given in tried]
    computed, read, own = (fit.estimates_[0] for fit in fits)
    assert to_plain(computed) == to_plain(read) and computed.terms == ("months (per 10)",)
    # the same study in another unit: 10 months are 10 / 12 years
    np.testing.assert_allclose(computed.coefficients, own.coefficients * 10 / 12, rtol=1e-6)
    again, _ = fits[0].sample_many(2, 300, study="died", random_state=1)
    assert (again["months"] == 12 * again["age"]).all()


def test_a_derived_predictor_without_a_value_is_no_error():
    """A message that tells of a private record whose input is missing."""
    ratio = Column(
        name="ratio", kind="continuous", lower=0, upper=900, decimals=1, derived="age / crea", missing=True
    )
    schema = Schema(columns=(*SCHEMA.columns[:3], ratio, SCHEMA.columns[4]), outcome="died", n_public=600)
    model = estimator(studies=["died ~ ratio"], random_state=0).fit(table(), schema=schema)
    assert np.isfinite(model.estimates_[0].std_errors).all()
