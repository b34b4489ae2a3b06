"""Studies declared before a fit: what is refused before a record is read, and what is kept afterwards."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import warnings
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import beside, dp_marginals
from sklearn.base import clone

import dpsynth
from dpsynth import Column, Schema, Studies
from dpsynth.errors import InputError, OwnerWarning, PrivacyError
from dpsynth.files.codec import to_plain
from dpsynth.privacy import Ledger
from dpsynth.studies.study import Estimates
from dpsynth.synthesis.fit import outlook, planned_parts

pytestmark = pytest.mark.usefixtures("few_draws", "projected")
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
    return dp_marginals(**{"epsilon": 2.0, "delta": 1e-5, "pairwise_statistics": False, **options})


def fitted(studies=STUDIES, frame=None, schema=SCHEMA, **options):
    frame = table() if frame is None else frame
    return estimator(**options).fit(frame, schema=schema, also=beside(studies))


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
    ("studies", "message"),
    [
        (["died ~ dose"], "study 'died': 'dose' is not a column"),
        (["logistic: age ~ sex"], "study 'age': the outcome 'age' of a logistic model must have"),
        (["died ~ age", "died ~ sex"], "studies: two studies are called 'died'. Give one"),
        (["died ~ age + sex + age"], "study 'died': the predictor 'age' is given twice"),
        (["months ~ sex"], "study 'months': 'months' is a derived column, which can only be a"),
        (
            [{"model": "died ~ age", "intervals": [365]}],
            "study 'died': intervals are for cox models only, got a logistic model",
        ),
        ("died ~ age", "studies must be a list of studies, got 'died ~ age'"),
        (["died ~ age", 3], "studies: study 2: a study must be a text, a mapping of keys"),
        ([], "studies: give at least one study"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_in_a_sentence_before_anything_is_read(studies, message, monkeypatch):
    """A study that fails in the middle of a fit, or a sentence that does not say which."""
    unread(monkeypatch)
    ledger = Ledger()
    for refused in (
        lambda part: estimator().fit(table(), schema=SCHEMA, ledger=ledger, also=[part]),
        lambda part: estimator().fit(table(), schema=SCHEMA.with_n_public(None), ledger=ledger, also=[part]),
        lambda part: part.expected_widening(SCHEMA, estimator()),
    ):
        with pytest.raises(InputError) as caught:
            refused(Studies(studies))
        assert message in str(caught.value) and "\n" not in str(caught.value)
    assert not ledger.entries


@pytest.mark.parametrize("generator", [dpsynth.DPWGANGP, dpsynth.DPCriticMatching])
def test_a_model_without_associations_takes_no_studies(generator, monkeypatch):
    """Estimates that stand on samples of independent columns."""
    unread(monkeypatch)
    model, ledger = generator(epsilon=2.0), Ledger()
    with pytest.raises(InputError, match="Studies needs a model with the columns' associations"):
        model.fit(table(), schema=SCHEMA, ledger=ledger, also=beside(STUDIES))
    with pytest.raises(InputError, match="Use generator marginals"):
        Studies(STUDIES).expected_widening(SCHEMA, model)
    assert not ledger.entries


def test_parts_that_leave_nothing_are_refused_before_the_records_are_counted(monkeypatch):
    """Budget for a private count that a fit spends although its parts can never be read."""
    unread(monkeypatch)
    ledger, schema = Ledger(), SCHEMA.with_n_public(None)
    with pytest.raises(InputError, match="leave something for the generator, got 1 in all"):
        estimator().fit(table(), schema=schema, ledger=ledger, also=beside(STUDIES, 1.0))
    assert not ledger.entries


def test_too_many_terms_for_the_budget():
    """A study whose intervals say nothing, found out after the budget was spent."""
    model, studies = dp_marginals(0.3, 1e-5, pairwise_statistics=False), Studies([WIDE])
    frame = pd.DataFrame({f"x{k}": np.linspace(0, 1, 200) for k in range(40)}).assign(
        died=["no", "yes"] * 100
    )
    ledger = Ledger()
    with pytest.raises(PrivacyError, match="study 'died' has more terms than the budget can bear"):
        studies.expected_widening(WIDE_SCHEMA, model)
    with pytest.raises(PrivacyError, match="study 'died' has more terms than the budget can bear"):
        model.fit(frame, schema=WIDE_SCHEMA, ledger=ledger, also=[studies])
    assert not ledger.entries


def test_a_private_count_is_the_only_thing_paid_for_when_a_study_is_refused():
    """A refusal that cannot be known beforehand, and that costs more than the count."""
    ledger = Ledger()
    with pytest.raises(PrivacyError, match="more terms than the budget can bear"):
        estimator(epsilon=0.02, delta=1e-4).fit(
            table(), schema=SCHEMA.with_n_public(None), ledger=ledger, also=beside(STUDIES)
        )
    assert [entry.name for entry in ledger.entries] == ["number of records"]


def test_expected_widening_is_that_of_the_planned_noise():
    """A widening of another budget, share or number of records than the fit's."""
    model, studies = estimator(), Studies(STUDIES)
    found = studies.expected_widening(SCHEMA, model)
    assert list(found) == ["died", "ages"]
    options = model.validate()
    planned = planned_parts(SCHEMA, 600.0, options, also=[studies]).of(Studies)
    multiplier = planned.multiplier
    assert found["died"] == pytest.approx(math.sqrt(1 + 16 * multiplier**2 * 3 / 600))
    assert found["ages"] == pytest.approx(math.sqrt(1 + 16 * multiplier**2 * 2 / 600))
    fitted = model.fit(table(), schema=SCHEMA, also=[studies])
    # the event in the ledger is the one that was planned
    scores = [entry for entry in fitted.ledger_.entries if entry.name == "score of study died"]
    assert len(scores) == 2 and all(
        entry.event == planned.release(planned.studies[0]).first.event for entry in scores
    )
    assert Studies(STUDIES, share=0.6).expected_widening(SCHEMA, model)["died"] < found["died"]
    assert studies.expected_widening(SCHEMA.with_n_public(300), model)["died"] > found["died"]
    assert studies.expected_widening(SCHEMA, estimator(epsilon=None)) == {"died": 1.0, "ages": 1.0}


def test_widening_is_told_or_it_is_said_why_not():
    """A width that the private count decides, a study passed over, effects taken for least squares."""
    private = SCHEMA.with_n_public(None)
    with pytest.raises(InputError, match="schema has no n_public"):
        Studies(STUDIES).expected_widening(private, estimator())
    options = estimator().validate()
    (line,) = outlook(private, options, beside(STUDIES))
    assert "which is private" in line
    lines = outlook(SCHEMA, options, beside(STUDIES))
    told = r"study \w+: intervals about \d\.\d times as wide as without noise"
    assert re.fullmatch(told + ", and wider where records lack a value", lines[0])
    assert re.fullmatch(told, lines[1])
    assert len(lines) == 2 and outlook(private, options, ()) == []


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
                estimator().fit(table(), schema=schema, also=beside([model]))
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


@pytest.mark.slow
def test_a_saved_model_keeps_its_studies(tmp_path):
    """Estimates, declarations or parameters that a file loses or changes."""
    survival = {"model": "cox: (crea, died) ~ age", "name": "cox", "intervals": [1.0]}
    model = fitted([*STUDIES, survival])
    model.save(tmp_path / "m")
    fresh = "import sys, dpsynth; print(len(dpsynth.load(sys.argv[1]).estimates_))"  # which knows no part yet
    told = subprocess.run([sys.executable, "-c", fresh, tmp_path / "m"], capture_output=True, cwd=tmp_path)
    assert told.stdout.decode().split() == ["3"], told.stderr.decode()
    again = dpsynth.load(tmp_path / "m")
    assert same(again.estimates_, model.estimates_) and len(again.estimates_) == 3
    assert str(again.study("ages")) == str(model.study("ages"))
    assert again._parts.of(Studies) == model._parts.of(Studies)
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
    model = fitted(["died ~ age"])
    with pytest.raises(
        InputError, match=r"study 'sex' was not declared before the fit \(declared were: died\)"
    ):
        model.study("sex")
    with pytest.raises(InputError, match="none was declared"):
        fitted(()).study("died")


def test_studies_stand_in_the_ledger():
    """A reading that is not posted, or a budget that studies exceed."""
    model = fitted()
    names = [entry.name for entry in model.ledger_.entries if "study" in entry.name]
    assert names == [
        f"{what} of study {name}" for name in ("died", "ages") for what in ("information", "score", "score")
    ]
    assert 1.9 < model.ledger_.epsilon(1e-5) <= 2.0


@pytest.mark.slow
def test_what_is_remarked_on_a_study_is_said_of_its_tables():
    """Tables analysed without a word of predictors that the estimates say cannot be told apart."""
    twice = Schema(
        columns=(*SCHEMA.columns, Column(name="weeks", kind="integer", lower=900, upper=4700)),
        outcome="died",
        n_public=600,
    )
    frame = table().assign(weeks=lambda t: t["age"] * 52)
    studies = ["died ~ age + weeks", {"model": "died ~ age", "name": "age"}]
    models = [fitted(studies, frame, twice, epsilon=8.0, random_state=seed) for seed in range(4)]
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
    fits = [fitted([text], given, random_state=0) for text, given in tried]
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
    model = fitted(["died ~ ratio"], schema=schema, random_state=0)
    assert np.isfinite(model.estimates_[0].std_errors).all()
