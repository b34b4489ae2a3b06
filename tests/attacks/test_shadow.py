"""Shadow models with planted canaries, on generators whose answer is known."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from attacked_tables import MIXED, patients
from visits import VISITS, visits

from dpsynth.attacks import shadow
from dpsynth.attacks.risk import Proved
from dpsynth.attacks.shadow import plant, shadow_attack, shared_values
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import share
from dpsynth.patients.schema import PatientSchema
from dpsynth.privacy.profile import Profile
from dpsynth.table.schema import Column, Schema

BASE = MIXED.conform(patients(60, np.random.default_rng(0))).frame
WARDS = Schema(
    columns=(Column(name="ward", kind="categorical", categories=tuple(f"w{i}" for i in range(21))),)
)


def copy(frame, rng):
    return frame


def ignore(frame, rng):
    return patients(60, rng)


def noisy_counts(frame, rng, epsilon=1.0):
    """An epsilon-DP generator for adding or removing one record: Laplace noise on every count."""
    counts = frame["ward"].value_counts().reindex(WARDS.columns[0].categories, fill_value=0).to_numpy()
    noisy = np.maximum(counts + rng.laplace(0, 1 / epsilon, len(counts)), 0)
    return pd.DataFrame({"ward": rng.choice(WARDS.columns[0].categories, 2000, p=noisy / noisy.sum())})


def test_a_generator_that_copies_is_caught():
    """An attack that does not see its own canaries in the table."""
    found = shadow_attack(copy, BASE, MIXED, rounds=12, canaries=10, seed=0)
    assert found.guesses == 60
    assert found.accuracy.value > 0.98


def test_a_generator_that_ignores_its_data_is_guessed_by_coins():
    """Coins that leak into the features, or a model that is tried on what it learned from."""
    found = shadow_attack(ignore, BASE, MIXED, rounds=24, canaries=20, seed=1)
    assert found.accuracy.lower < 0.5 < found.accuracy.upper
    assert abs(found.accuracy.value - 0.5) < 0.1


def test_what_is_guessed_is_not_what_was_learned_from(monkeypatch):
    """Guesses about the very tables whose coins were shown: a null of few rounds would not tell."""
    shown = {}
    honest = shadow.learned_guesses

    def spy(coins, looks, seen):
        shown.update(coins=coins, looks=looks, seen=seen)
        return honest(coins, looks, seen)

    monkeypatch.setattr(shadow, "learned_guesses", spy)
    found = shadow_attack(ignore, BASE, MIXED, rounds=12, canaries=5, seed=1)
    assert found.guesses == shown["seen"].shape[0] * 5 and len(shown["coins"]) + len(shown["seen"]) == 12
    for asked in shown["seen"]:
        assert not any(np.array_equal(asked, known) for known in shown["looks"])


def test_a_private_generator_stays_below_its_bound_and_is_still_noticed():
    """A bound of another quantity, or an attack too weak to say anything."""
    base = pd.DataFrame({"ward": ["w0"] * 50})
    canaries = pd.DataFrame({"ward": [f"w{i}" for i in range(1, 21)]})
    proved = Proved(Profile.promised(1.0, 0.0, 1.0))
    found = shadow_attack(noisy_counts, base, WARDS, rounds=60, canaries=canaries, seed=2, proved=proved)
    assert found.proved == pytest.approx(np.e / (1 + np.e))
    assert 0.55 < found.accuracy.value < found.proved
    assert not found.attempts()[0].contradicts


def test_an_interrupted_attack_goes_on(tmp_path):
    """Rounds carried out again, or other coins after an interruption."""
    calls = []

    def counted(frame, rng):
        calls.append(len(frame))
        if len(calls) == 5:
            raise KeyboardInterrupt
        return frame

    options = {"rounds": 8, "canaries": 4, "seed": 3, "folder": tmp_path / "rounds"}
    with pytest.raises(KeyboardInterrupt):
        shadow_attack(counted, BASE, MIXED, **options)
    found = shadow_attack(counted, BASE, MIXED, **options)
    assert len(calls) == 9
    whole = shadow_attack(copy, BASE, MIXED, rounds=8, canaries=4, seed=3)
    assert found == whole
    with pytest.raises(InputError, match="other settings"):
        shadow_attack(copy, BASE, MIXED, **{**options, "seed": 4})


def test_what_is_kept_holds_no_record(tmp_path):
    """A synthetic table or a canary in the folder of rounds, for which no ledger has paid."""
    shadow_attack(copy, BASE, MIXED, rounds=4, canaries=3, seed=0, folder=tmp_path / "rounds")
    for path in (tmp_path / "rounds").rglob("round-*.json"):
        assert set(json.loads(path.read_text())) == {"used", "looks"}


def test_canaries_obey_the_schema():
    """Canaries that the generator's intake would refuse: broken rules, formulas, values off their steps."""
    schema = Schema(
        columns=(
            Column(name="low", kind="integer", lower=0, upper=100),
            Column(name="high", kind="continuous", lower=0, upper=100, decimals=1),
            Column(name="gap", kind="continuous", lower=-100, upper=100, decimals=1, derived="high - low"),
        ),
        constraints=("low <= high",),
    )
    planted = plant(schema, 50, np.random.default_rng(0))
    assert len(planted.drop_duplicates()) == 50
    schema.check(planted)
    assert (planted["low"] <= planted["high"]).all()
    assert np.allclose(planted["gap"], planted["high"] - planted["low"])
    narrow = Schema(columns=(Column(name="sex", kind="binary", categories=("F", "M")),))
    with pytest.raises(InputError, match="canar"):
        plant(narrow, 3, np.random.default_rng(0))


def test_guesses_that_hang_together_have_a_wider_interval():
    """An interval that counts the canaries of one table as independent where they are not."""

    def all_or_nothing(frame, rng):
        return frame if rng.random() < 0.5 else patients(60, rng)

    found = shadow_attack(all_or_nothing, BASE, MIXED, rounds=24, canaries=20, seed=5)
    alone = share(round(found.accuracy.value * found.guesses), found.guesses)
    assert found.accuracy.lower < alone.lower


def test_traces_are_those_of_a_naive_count():
    """Counts of other pairs of values, a number that is like a missing one, or another scale."""
    canaries, made = (MIXED.conform(patients(size, np.random.default_rng(size))).frame for size in (8, 70))
    found = shared_values(canaries, made, MIXED)
    for i, record in canaries.iterrows():
        alike = []
        for column in MIXED.columns:
            values, value = made[column.name], record[column.name]
            if pd.isna(value):
                alike.append(np.zeros(len(made), dtype=bool))
            elif column.is_numeric:
                near = (values.astype(float) - value).abs() <= 0.02 * (column.upper - column.lower) + 1e-9
                alike.append(near.fillna(False).to_numpy(dtype=bool))
            else:
                alike.append((values == value).fillna(False).to_numpy(dtype=bool))
        one = np.mean([np.log1p(a.sum()) for a in alike])
        two = np.mean([np.log1p((a & b).sum()) for a, b in combinations(alike, 2)])
        assert found[i] == pytest.approx([-one, -two], abs=1e-5)


def test_a_generator_that_draws_from_counts_is_noticed():
    """An attack that sees copies alone: here every column is drawn by itself, so that no record is near."""

    def columns_apart(frame, rng):
        drawn = {name: rng.permutation(frame[name].to_numpy(dtype=object)) for name in frame.columns}
        return pd.DataFrame(drawn)

    found = shadow_attack(columns_apart, BASE, MIXED, rounds=24, canaries=10, seed=0)
    assert found.accuracy.lower > 0.5


def rows_that_vary(frame, rng):
    """A generator that ignores its data, and draws patients with several rows."""
    return visits(60, int(rng.integers(2**31)))


def test_a_canary_is_a_patient_with_all_rows():
    """Canaries that are rows: an attack on a row would be reported as one on a patient."""
    planted = plant(VISITS, 8, np.random.default_rng(0))
    assert planted.groupby("id").size().tolist() == [VISITS.most] * 8
    fitted = []

    def watch(frame, rng):
        fitted.append(frame)
        return frame

    found = shadow_attack(watch, visits(30), VISITS, rounds=12, canaries=planted, seed=0)
    assert found.canaries == 8 and found.accuracy.value > 0.95
    for frame in fitted:
        new = frame[frame["id"] >= 30].groupby("id").size()
        assert (new == VISITS.most).all() and len(frame) - new.sum() == len(visits(30))
    assert len({len(frame) for frame in fitted}) > 1


def test_patients_of_a_generator_that_ignores_them_are_guessed_by_coins():
    """Coins that leak through identifiers or numbers of rows."""
    found = shadow_attack(rows_that_vary, visits(30), VISITS, rounds=20, canaries=12, seed=1)
    assert found.accuracy.lower < 0.5 < found.accuracy.upper


def test_patients_whose_order_is_no_column_are_attacked():
    """Catches an attack that needs the order in synthetic rows, or loses it from the real ones."""
    columns = tuple(column for column in VISITS.columns if column.name != "day")
    schema = PatientSchema(unit="id", order="day", most=6, columns=columns, per_patient=("sex",))

    def shown(frame, rng):
        return frame.sort_values(["id", "day"]).drop(columns="day")

    found = shadow_attack(shown, visits(30), schema, rounds=12, canaries=8, seed=0)
    assert found.accuracy.value > 0.95
