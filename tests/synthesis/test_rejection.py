"""Rules and conditions hold in every sampled record, and what was paid for is kept."""

from __future__ import annotations

import hashlib
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import dp_marginals
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsynth
from dpsynth import Column, DPMarginals, Schema
from dpsynth.errors import RejectionError
from dpsynth.marginals.statistics import MarginalsRelease
from dpsynth.synthesis.model import BLOCK, GeneratorModel
from dpsynth.synthesis.sampling import Acceptance, margin
from dpsynth.table.derived import parse_where
from dpsynth.table.encoder import Encoder
from dpsynth.table.expressions import parse_rule
from dpsynth.table.grid import Counting, Marginals, make_grids

COLUMNS = (
    Column(name="age", kind="integer", lower=18, upper=90),
    Column(name="sex", kind="binary", categories=("F", "M")),
    Column(name="pregnant", kind="binary", categories=("no", "yes")),
    Column(name="sbp", kind="integer", lower=70, upper=240),
    Column(name="dbp", kind="integer", lower=30, upper=150),
    Column(name="treated", kind="binary", categories=("no", "yes")),
    Column(name="dose", kind="continuous", lower=0, upper=20, step=0.5),
    Column(name="weight", kind="continuous", lower=35, upper=200, decimals=1),
    Column(name="height", kind="continuous", lower=1.3, upper=2.1, decimals=2),
    Column(name="psa", kind="continuous", lower=0.1, upper=50, decimals=1, scale="log", missing=True),
    Column(name="bmi", kind="continuous", lower=8, upper=80, decimals=1, derived="weight / height ** 2"),
    Column(name="surface", kind="continuous", lower=0, upper=9, derived="sqrt(weight * height / 36)"),
    Column(name="died", kind="binary", categories=("no", "yes")),
)
RULES = (
    "dbp < sbp",
    "pregnant = yes implies sex = F and age < 56",
    "treated = no implies dose = 0",
    "treated = yes implies dose > 0",
    "sex = F implies psa is missing",
    "bmi >= 12",
)
SCHEMA = Schema(columns=COLUMNS, outcome="died", n_public=2000, constraints=RULES)


def cohort(n: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Made-up patients who obey all rules."""
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(18, 91, n), rng.choice(["F", "M"], n, p=[0.55, 0.45])
    pregnant = np.where((sex == "F") & (age < 50) & (rng.random(n) < 0.25), "yes", "no")
    sbp = np.clip(np.round(rng.normal(105 + 0.45 * age, 16)), 70, 240).astype(int)
    dbp = np.minimum(np.clip(np.round(0.6 * sbp + rng.normal(5, 8, n)), 30, 150), sbp - 10).astype(int)
    treated = np.where(rng.random(n) < np.where(sbp > 140, 0.7, 0.25), "yes", "no")
    dose = np.where(treated == "yes", rng.integers(1, 41, n) / 2, 0.0)
    weight = np.round(rng.normal(np.where(sex == "F", 68, 82), 13), 1).clip(45, 160)
    height = np.round(rng.normal(np.where(sex == "F", 1.65, 1.78), 0.07), 2).clip(1.45, 1.9)
    psa = np.where(
        (sex == "F") | (rng.random(n) < 0.2), np.nan, rng.lognormal(0.5, 0.8, n).round(1).clip(0.1)
    )
    died = np.where(rng.random(n) < 1 / (1 + np.exp((75 - age) / 8)), "yes", "no")
    values = (age, sex, pregnant, sbp, dbp, treated, dose, weight, height, psa, died)
    names = [column.name for column in COLUMNS if column.derived is None]
    return pd.DataFrame(dict(zip(names, values, strict=True)))


@pytest.fixture(scope="module")
def fitted() -> DPMarginals:
    model = dp_marginals(3.0, 1e-5, pairwise_statistics=False, random_state=1)
    return model.fit(cohort(), schema=SCHEMA)


def marginal_model(
    schema: Schema, *probabilities: list[float], seed: int = 0, noise: float | None = None
) -> GeneratorModel:
    """Independent columns of these probabilities, random where they are not given."""
    rng = np.random.default_rng(seed)
    grids = make_grids(schema.modelled)
    given = dict(enumerate(probabilities))
    p = tuple(
        np.array(given[j]) if j in given else rng.dirichlet(np.full(grid.size, 2.0))
        for j, grid in enumerate(grids)
    )
    encoder = Encoder(schema.modelled, Marginals(grids, p, 1000.0, noise, Counting()))
    return GeneratorModel(schema, encoder)


def distances(model: GeneratorModel, frame: pd.DataFrame) -> list[float]:
    """Total variation distance of each modelled column from its released marginal."""
    assert model.encoder.marginals is not None
    found = []
    for grid, p in zip(model.encoder.grids, model.encoder.marginals.probabilities, strict=True):
        labels, target = margin(grid, p)
        cells = labels[grid.encode(frame[grid.column.name])]
        share = np.bincount(cells, minlength=len(target)) / len(frame)
        found.append(0.5 * float(np.abs(share - target).sum()))
    return found


conditions = st.sampled_from(
    [
        None,
        "sex = F",
        {"sex": "M", "age": (40, 60)},
        {"psa": None},
        ["age >= 65", "bmi < 30 or died = yes"],
        {"dose": [0, 1, 1.5]},
        "psa > 0.5",
    ]
)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.sampled_from(RULES), unique=True).map(tuple),
    conditions,
    st.sampled_from([1, 37, 400]),
    st.integers(0, 10**6),
)
def test_every_record_obeys(rules, where, n, seed):
    """Catches a record that breaks a rule or a condition, a wrong number of them, or a derived column off."""
    schema = Schema(columns=COLUMNS, outcome="died", constraints=rules)
    model = marginal_model(schema, seed=seed % 7)
    asked = parse_where(where, schema.columns)
    record = Acceptance()
    frame = model.sample(n, np.random.default_rng(seed), where=asked, record=record)
    assert len(frame) == n and list(frame) == list(schema.names)
    pd.testing.assert_frame_equal(schema.conform(frame).frame, frame)
    for text in rules:
        assert not parse_rule(text, schema.columns).broken(frame).any(), text
    for rule in asked:
        assert rule.selected(frame).all(), rule.text
    for weight, height, bmi, surface in frame[["weight", "height", "bmi", "surface"]].itertuples(index=False):
        exact = weight / height**2
        assert bmi == pytest.approx(min(max(exact, 8), 80), abs=0.05 + 1e-9) and round(10 * bmi) / 10 == bmi
        assert surface == math.sqrt(weight * height / 36)
    assert set(record.rates) == set(rules) and (not asked or record.selected >= n)


@pytest.mark.slow
def test_released_marginals_are_kept(fitted):
    """Catches rules that move what was paid for: refusal alone is .01 to .03 off, plain weighting .03."""
    assert fitted.model_.schema.rules
    model = fitted.model_
    frame = fitted.sample(4000, random_state=0)
    assert max(distances(model, frame)) < 0.008
    plain = GeneratorModel(SCHEMA.modelled, model.encoder, model.sampler)
    free = plain.sample(4000, np.random.default_rng(0))
    assert any(rule.broken(SCHEMA.conform(free).frame).any() for rule in SCHEMA.rules)
    assert not frame.duplicated().any()
    moved = fitted.acceptance_.moved
    assert moved is not None and max(distances(model, frame)) == pytest.approx(moved[0])


def test_few_more_records_are_drawn_than_are_kept(fitted):
    """Catches several times as many draws as records, if exchanges let nearly all draws obey."""
    fitted.sample(6000, random_state=0)
    assert fitted.acceptance_.candidates < 1.3 * 6000


def test_counts_that_noise_hides_ask_for_no_more_draws():
    """Catches draws for the sake of noise: counts that are exact are sought with more of them."""
    low, high = (Column(name=name, kind="integer", lower=0, upper=9) for name in ("low", "high"))
    schema = Schema(columns=(low, high), constraints=("low <= high",))
    drawn = []
    for noise in (None, 300.0):
        model = marginal_model(schema, [0.1] * 10, [0.1] * 10, noise=noise)
        record = Acceptance()
        assert len(model.sample(2000, np.random.default_rng(0), record=record)) == 2000
        drawn.append(record.candidates)
    assert drawn[1] < 0.5 * drawn[0]


def test_the_noise_of_a_count_is_not_overrated(fitted):
    """Catches samples that end too far from the counts, since more noise is assumed than was added."""
    marginals = fitted.model_.encoder.marginals
    release = MarginalsRelease(
        schema=SCHEMA.modelled, n=marginals.n, noise_multiplier=marginals.noise_multiplier
    )
    exact = release.noise_std / marginals.n
    assert 0.8 * exact < marginals.noise_share <= exact * (1 + 1e-9)


def test_the_law_is_the_nearest_with_these_marginals():
    """Catches weights that keep the marginals but not the model's dependence: against IPF on the table."""
    columns = tuple(Column(name=n, kind="categorical", categories=("a", "b", "c")) for n in "xyz")
    schema = Schema(columns=columns, constraints=("x = a implies y != b", "not (y = c and z = c)"))
    p = ([0.5, 0.3, 0.2], [0.3, 0.3, 0.4], [0.25, 0.45, 0.3])
    model = marginal_model(schema, *p)
    frame = model.sample(60_000, np.random.default_rng(0))
    law = np.einsum("i,j,k->ijk", *p)
    for x, y, z in itertools.product(range(3), repeat=3):
        if (x == 0 and y == 1) or (y == 2 and z == 2):
            law[x, y, z] = 0
    for _ in range(500):
        for axis, target in enumerate(p):
            others = tuple(a for a in range(3) if a != axis)
            law *= np.expand_dims(np.array(target) / law.sum(axis=others), others)
    codes = [frame[n].map({"a": 0, "b": 1, "c": 2}).to_numpy() for n in "xyz"]
    found = np.zeros((3, 3, 3))
    np.add.at(found, tuple(codes), 1 / len(frame))
    # no candidate is taken twice, which leaves cells up to .006 off, in the mean of many samples too
    assert np.abs(found - law).max() < 0.01


def test_missing_values_break_no_constraint_and_fulfil_no_condition():
    """Catches missing values refused by a constraint, or let in by a condition: CHECK and WHERE of SQL."""
    schema = Schema(columns=(SCHEMA["psa"], SCHEMA["sex"]), constraints=("psa < 40",))
    cells = make_grids(schema)[0].size - 1
    model = marginal_model(schema, [0.5 / cells] * cells + [0.5])
    whole = model.sample(4000, np.random.default_rng(0))
    assert whole["psa"].isna().mean() == pytest.approx(0.5, abs=0.03)
    part = model.sample(500, np.random.default_rng(0), where=parse_where("psa < 5", schema.columns))
    assert part["psa"].notna().all()


@pytest.mark.slow
def test_a_condition_gives_the_conditional_law(fitted):
    """Catches conditional samples drawn back to the whole table's marginals."""
    whole = fitted.sample(12_000, random_state=0)
    part = fitted.sample(6000, where={"age": (65, 80)}, random_state=1)
    reference = whole[whole["age"].between(65, 80)]
    for name, value in (("died", "yes"), ("treated", "yes"), ("sex", "F"), ("pregnant", "yes")):
        found, expected = (part[name] == value).mean(), (reference[name] == value).mean()
        error = np.sqrt(expected * (1 - expected) * (1 / 6000 + 1 / len(reference)))
        assert abs(found - expected) < 4 * error + 1e-3, name
    assert abs(part["sbp"].mean() - reference["sbp"].mean()) < 2.0
    assert 0 < fitted.acceptance_.to_dict()["where"] < 1
    assert (whole["died"] == "yes").mean() < 0.8 * (part["died"] == "yes").mean()


def test_acceptance_is_counted(fitted):
    """Catches rates of another sample, of accepted records only, or a rule that is not named."""
    fitted.sample(3000, random_state=0)
    first = fitted.acceptance_
    assert list(first.rates) == list(RULES)
    assert first.candidates >= 3000 and first.obey_all <= min(first.obey.values()) <= first.candidates
    assert 0.85 < first.obey_all / first.candidates < 1
    assert "of the model's records obey dbp < sbp" in first.lines()[0]
    fitted.sample(10, where="sex = F", random_state=0)
    assert fitted.acceptance_ is not first and fitted.acceptance_.conditions == "sex = F"
    assert 0.45 < fitted.acceptance_.to_dict()["where"] < 0.65
    free = marginal_model(Schema(columns=COLUMNS))
    record = Acceptance()
    free.sample(100, np.random.default_rng(0), record=record)
    assert record == Acceptance() and record.to_dict() == {} and record.lines() == []


RARE = "age = 90 and sbp = 240 and weight = 200 and height = 1.3"


@pytest.mark.parametrize(
    ("rules", "where", "sentence"),
    [
        (
            ("sbp < 241", f"{RARE} or pregnant is missing"),
            None,
            f"the constraint {RARE} or pregnant is missing is nearly impossible",
        ),
        (("age < 20", "age > 80"), None, "obeying all constraints together (age < 20 ("),
        ((), RARE, f"the condition {RARE} is nearly impossible under the model: 0 of"),
        (("dbp < sbp",), ["sex = F", RARE], f"the condition sex = F and {RARE} is nearly impossible"),
    ],
)
def test_what_is_nearly_impossible_is_said(monkeypatch, rules, where, sentence):
    """Catches a search without end, or a sentence that names the wrong rule."""
    monkeypatch.setattr("dpsynth.synthesis.sampling.CANDIDATES", 20_000)
    model = marginal_model(Schema(columns=COLUMNS, constraints=rules))
    record = Acceptance()
    with pytest.raises(RejectionError) as caught:
        model.sample(
            10, np.random.default_rng(0), where=parse_where(where, model.schema.columns), record=record
        )
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
    assert record.candidates < 20_000 + 2 * BLOCK


def test_rare_is_not_impossible():
    """Catches a bound that gives up where patience suffices: one candidate in 300 obeys."""
    yes = Column(name="rare", kind="binary", categories=("no", "yes"))
    model = marginal_model(Schema(columns=(yes, COLUMNS[0])), [299 / 300, 1 / 300])
    asked = parse_where("rare = yes", model.schema.columns)
    frame = model.sample(500, np.random.default_rng(0), where=asked)
    assert len(frame) == 500 and set(frame["rare"]) == {"yes"} and frame["age"].nunique() > 50


@pytest.mark.parametrize("rules", [(), ("dbp < sbp",)])
def test_memory_is_bounded_by_the_block(monkeypatch, rules):
    """Catches a long file that is drawn at once."""
    model = marginal_model(Schema(columns=COLUMNS, constraints=rules))
    asked: list[int] = []
    whole = GeneratorModel._made

    def counted(self, size, *given):
        asked.append(size)
        return whole(self, size, *given)

    monkeypatch.setattr(GeneratorModel, "_made", counted)
    where = parse_where("sex = F", model.schema.columns)
    sizes = [len(frame) for frame in model.blocks(9000, np.random.default_rng(0), block=3000, where=where)]
    assert sizes == [3000, 3000, 3000] and max(asked) <= 3000 and len(asked) > 4


def test_every_block_is_drawn_anew():
    """Catches records that repeat from the second or third block on, and blocks of another length."""
    model = marginal_model(Schema(columns=tuple(c for c in COLUMNS if c.derived is None)))
    blocks = list(model.blocks(1000, np.random.default_rng(5), block=150))
    assert [len(block) for block in blocks] == pytest.approx(np.full(7, 1000 / 7), abs=1)
    assert not pd.concat(blocks).duplicated().any()


def test_without_rules_the_digest_is_the_old_one():
    """Catches a change of seeded samples that its own transcription would follow."""
    columns = (COLUMNS[1], Column(name="grade", kind="ordinal", categories=("I", "II", "III")), COLUMNS[5])
    model = marginal_model(Schema(columns=columns), [0.3, 0.7], [0.2, 0.3, 0.5], [0.9, 0.1])
    text = model.sample(5000, np.random.default_rng(4)).to_csv(index=False, lineterminator="\n")
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "2102ad59143df247"


def test_a_derived_column_costs_nothing_and_is_not_read():
    """Catches a derived column that is counted, modelled, or even looked at in the private table."""
    own = Schema(columns=tuple(c for c in COLUMNS if c.derived is None), outcome="died", n_public=2000)
    options = {"epsilon": 1.0, "delta": 1e-5, "random_state": 2}
    options |= {"pairwise_statistics": False}
    plain = dp_marginals(**options).fit(cohort(), schema=own)
    garbage = cohort().assign(bmi="?", surface=np.inf)
    with_derived = dp_marginals(**options).fit(garbage, schema=Schema(**{**dict(SCHEMA), "constraints": ()}))
    assert str(with_derived.ledger_.entries) == str(plain.ledger_.entries)
    assert with_derived.ledger_.summary() == plain.ledger_.summary()
    both = with_derived.sample(500, random_state=0)
    pd.testing.assert_frame_equal(both[list(own.names)], plain.sample(500, random_state=0))
    assert both["surface"].tolist() == [
        math.sqrt(w * h / 36) for w, h in zip(both["weight"], both["height"], strict=True)
    ]


def test_rules_outlive_saving(fitted, tmp_path):
    """Catches a saved model that forgets its constraints or formulas, or a file that differs from memory."""
    fitted.save(tmp_path / "model")
    again = dpsynth.load(tmp_path / "model")
    assert again.model_.schema == SCHEMA and again.model_.encoder.schema.names == SCHEMA.modelled.names
    frame = again.sample(300, where="sex = F", random_state=5)
    pd.testing.assert_frame_equal(frame, fitted.sample(300, where="sex = F", random_state=5))
    again.sample_to(tmp_path / "part.csv", 300, where="sex = F", random_state=5)
    pd.testing.assert_frame_equal(dpsynth.table.read_table(tmp_path / "part.csv", SCHEMA), frame)
    assert again.acceptance_.conditions == "sex = F"
