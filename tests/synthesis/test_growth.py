"""Further tables: what they bring, what they cost, and that nothing else reads the records."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import dp_marginals, marginals_options

import dpsynth
from dpsynth.files.codec import apart
from dpsynth.marginals.chain import Chain
from dpsynth.marginals.chain_fit import ChainFit
from dpsynth.marginals.growth import TableChoiceRelease
from dpsynth.marginals.statistics import TablesRelease
from dpsynth.privacy import Ledger
from dpsynth.privacy.events import event_to_dict
from dpsynth.privacy.records import FrameRecords
from dpsynth.synthesis.fit import plan_fit, planned_parts, read_parts
from dpsynth.synthesis.many_tables import redraw
from dpsynth.synthesis.parts.base_model import BaseModel
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.growth import Growth
from dpsynth.synthesis.parts.pairwise import Pairwise
from dpsynth.synthesis.parts.part import Reading, Redrawing
from dpsynth.table.schema import Column, Schema

N = 20_000
CODES = tuple(f"c{k:03d}" for k in range(100))
NESTED = Schema(
    columns=(
        Column(name="code", kind="categorical", categories=CODES),
        Column(name="age", kind="integer", lower=18, upper=89),
        Column(name="chapter", kind="categorical", categories=tuple("abcdefghij")),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    outcome="died",
    n_public=N,
)


def nested(n: int = N, seed: int = 0) -> pd.DataFrame:
    """Codes, of which most are rare, and the chapter of each."""
    rng = np.random.default_rng(seed)
    law = 1.0 / np.arange(1, len(CODES) + 1)
    code = rng.choice(len(CODES), n, p=law / law.sum())
    return pd.DataFrame(
        {
            "code": np.array(CODES)[code],
            "age": rng.integers(18, 90, n),
            "chapter": np.array(list("abcdefghij"))[code % 10],
            "died": np.where(rng.random(n) < 0.05 + 0.02 * (code % 10), "yes", "no"),
        }
    )


def impossible(frame: pd.DataFrame) -> float:
    """Share of records whose code is of another chapter."""
    code = frame["code"].astype(str).str[1:].astype(int)
    return float((frame["chapter"].astype(str) != code.mod(10).map(dict(enumerate("abcdefghij")))).mean())


@pytest.mark.slow
def test_codes_keep_their_chapter() -> None:
    """Chapters drawn apart from rare codes, which share a bin of the first tables."""
    assert impossible(dp_marginals(3.0, 1e-5).fit(nested(), schema=NESTED).sample(N)) < 0.03


RARE = Schema(
    columns=(
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="dx", kind="categorical", categories=(*(f"d{i:02d}" for i in range(40)), "prostate")),
        Column(name="age", kind="integer", lower=18, upper=89),
    ),
    n_public=N,
)


def rare(n: int = N, seed: int = 0) -> pd.DataFrame:
    """A diagnosis of eight in a thousand, all of them men over 60."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    law = 1.0 / np.arange(1, 41)
    dx = np.array([f"d{i:02d}" for i in range(40)])[rng.choice(40, n, p=law / law.sum())]
    dx = np.where((sex == "M") & (rng.random(n) < 0.016), "prostate", dx)
    age = np.where(dx == "prostate", rng.integers(60, 90, n), rng.integers(18, 90, n))
    return pd.DataFrame({"sex": sex, "dx": dx, "age": age})


@pytest.mark.slow
def test_a_rare_diagnosis_keeps_its_sex_and_age() -> None:
    """Rare categories that share one bin: half of them women, and half under 60, at any budget."""
    drawn = dp_marginals(10.0, 1e-5).fit(rare(), schema=RARE).sample(N)
    found = drawn[drawn["dx"] == "prostate"]
    assert 120 < len(found) < 200
    assert (found["sex"] == "F").mean() < 0.05 and (found["age"].astype(float) < 60).mean() < 0.15


PARITY = Schema(
    columns=tuple(Column(name=name, kind="binary", categories=(0, 1)) for name in "abcd"), n_public=N
)


@pytest.mark.slow
def test_a_pattern_of_three_columns_is_kept() -> None:
    """Tables of two columns alone, in which a column that is the parity of two others depends on neither."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (N, 4)), columns=list("abcd"))
    frame["d"] = (frame["a"] + frame["c"]) % 2
    drawn = dp_marginals(3.0, 1e-5).fit(frame, schema=PARITY).sample(N).astype(int)
    assert ((drawn["a"] + drawn["c"] + drawn["d"]) % 2 == 0).mean() > 0.95


def some(n: int = 400, seed: int = 0) -> pd.DataFrame:
    return nested(n, seed)


def small(**options: Any) -> dpsynth.DPMarginals:
    return dp_marginals(
        **{"epsilon": 1.0, "delta": 1e-5, "rounds": 2, "pairwise_statistics": False, **options}
    )


SMALL = NESTED.with_n_public(400)


@pytest.mark.usefixtures("unrefined")
def test_a_fit_posts_what_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """More choices or tables than the noise was planned for, or rounds that the ledger does not see."""
    options = marginals_options(epsilon=1.0, delta=1e-5, rounds=2, pairwise_statistics=False)
    growth = planned_parts(SMALL, 400.0, options).of(Growth)
    assert growth is not None
    calls: list[float] = []
    picked = dpsynth.marginals.growth.choose

    def watched(scores: Any, epsilon: float, rng: np.random.Generator) -> int:
        calls.append(epsilon)
        return picked(scores, epsilon, rng)

    given: list[int] = []
    made = TableChoiceRelease.at

    def at(release: TableChoiceRelease, candidates: Any) -> TableChoiceRelease:
        given.extend(len(each) > 1 for each in candidates)
        return made(release, candidates)

    stds: list[float] = []
    grow = ChainFit.grow

    def growing(fit: ChainFit, chosen: Any, noisy: Any, noise_std: float) -> None:
        stds.append(noise_std)
        grow(fit, chosen, noisy, noise_std)

    monkeypatch.setattr("dpsynth.marginals.growth.choose", watched)
    monkeypatch.setattr(TableChoiceRelease, "at", at)
    monkeypatch.setattr(ChainFit, "grow", growing)
    model = small().fit(some(), schema=SMALL)
    entries = model.ledger_.entries[-4:]
    assert [entry.name for entry in entries] == ["choice of further tables", "further tables"] * 2
    assert [str(entry.event) for entry in entries[::2]] == [str(growth.choice.event)] * 2
    assert [str(entry.event) for entry in entries[1::2]] == [str(growth.tables(k).event) for k in range(2)]
    choices = event_to_dict(entries[0].event)
    assert choices.get("count") == 2 and set(calls) == {choices["event"]["epsilon"]}
    # each column that has several candidates is chosen for once, and the tables are fitted with their noise
    assert len(calls) == len(given) == sum(given) == 2 * 2
    assert stds == pytest.approx([growth.tables(0).noise_std] * 2) and stds[0] > 0
    assert 0.98 < model.ledger_.epsilon(1e-5) <= 1.0
    grown = model.model_.chain.grown
    assert [len(tables) for tables in grown] == [3, 2]
    families = [cells.columns for tables in grown for cells in tables]
    assert len(set(families)) == len(families)


def test_a_tenth_of_the_share_is_for_the_choices() -> None:
    """A part that spends most of its share on which tables are counted, and leaves them noise."""
    growth = Growth(SMALL, 2, share=0.3, noise=5.0)
    noise = [growth.tables(turn).noise_multiplier or 0.0 for turn in range(2)]
    # mu^2 of all rounds over that of the part
    tables = sum(one**-2 for one in noise)
    choices = 2 * 2 * (growth.choice.epsilon or 0.0) ** 2 / 3
    assert tables * 25.0 == pytest.approx(0.9) and choices * 25.0 == pytest.approx(0.1)
    assert [each.share for each in growth.statistics] == pytest.approx([0.1, 0.9])


class Replayed(Ledger):
    """A ledger that repeats what another one released, and reads nothing."""

    def __init__(self, released: list[Any]) -> None:
        super().__init__()
        self.released = list(released)

    def run(self, release: Any, records: Any, rng: np.random.Generator) -> Any:
        found = self.released.pop(0)
        if isinstance(release, TableChoiceRelease):  # the chosen tables, with what this model expects in them
            families = [one.cells.columns for one in found]
            return [one for each in release.given for one in each if one.cells.columns in families]
        return found


class Recording(Ledger):
    """A ledger that keeps what it released."""

    def __init__(self) -> None:
        super().__init__()
        self.released: list[Any] = []

    def run(self, release: Any, records: Any, rng: np.random.Generator) -> Any:
        self.released.append(super().run(release, records, rng))
        return self.released[-1]


def chain_of(ledger: Ledger, frame: pd.DataFrame) -> Chain:
    options = marginals_options(epsilon=1.0, delta=1e-5, rounds=2, pairwise_statistics=False)
    records, rng = FrameRecords(SMALL.conform(frame).frame), np.random.default_rng(1)
    plan = plan_fit(records, SMALL, options, rng, ledger)
    rng = np.random.default_rng(2)
    # noise of its own, so that both fits draw the same pool
    reading = Reading(ledger, records, rng, plan.n)
    run = ledger.run
    ledger.run = lambda release, records, _: run(release, records, np.random.default_rng(3))  # type: ignore[method-assign]
    chain = read_parts(plan, reading).chain
    assert chain is not None
    return chain


@pytest.mark.usefixtures("unrefined")
def test_nothing_but_releases_reads_the_records() -> None:
    """Candidates, resolutions, expectations or fits that look at the table beside what was released."""
    first = Recording()
    one = chain_of(first, some())
    other = chain_of(Replayed(first.released), some(300, seed=9))
    plain, arrays = apart(one)
    again, same = apart(other)
    assert json.dumps(plain) == json.dumps(again) and arrays.keys() == same.keys() and one.grown
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, same[name])


@pytest.mark.usefixtures("unrefined")
def test_choices_and_states_stay_in_redraws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redraws that choose anew, or whose tables are counted in other cells than those that were chosen."""
    counted: list[dict[Any, list[Any]]] = []
    made = TablesRelease.at

    def at(release: TablesRelease, tables: Any) -> TablesRelease:
        if release.name == "further tables":
            counted.append({family: [axis.labels for axis in axes] for family, axes in tables.items()})
        return made(release, tables)

    monkeypatch.setattr(TablesRelease, "at", at)
    fit = small(epsilon=None).fit(some(), schema=SMALL)
    released, first = fit.model_.chain, list(counted)
    counted.clear()
    again = redraw(fit._plan, fit.model_, np.random.default_rng(0)).chain
    assert released is not None and again is not None and len(first) == len(counted) == 2
    for tables, redrawn in zip(first, counted, strict=True):
        assert list(tables) == list(redrawn)
        for family, axes in tables.items():
            for labels, same in zip(axes, redrawn[family], strict=True):
                np.testing.assert_array_equal(labels, same)
    assert [[cells.columns for cells in one] for one in again.grown] == [list(one) for one in first]
    for states, same in zip(released.binnings, again.binnings, strict=True):
        np.testing.assert_array_equal(states.labels, same.labels)
    assert not np.array_equal(released.binnings[0].probabilities, again.binnings[0].probabilities)


@pytest.mark.usefixtures("unrefined")
def test_pairs_of_further_tables_are_redrawn_from_these() -> None:
    """Pairs that a further table holds, redrawn around the released means as those that no table holds."""
    fit = small(epsilon=None, pairwise_statistics=True, rounds=1).fit(some(), schema=SMALL)
    chain = fit.model_.chain
    assert chain is not None and chain.pairs is not None

    class Nothing(Redrawing):
        def run(self, release: Any) -> Any:
            return replace(chain.pairs, mean=np.zeros_like(chain.pairs.mean))

    def moved(model: Any) -> set[tuple[int, int]]:
        pool = np.zeros((50, 4), np.int64)
        reading = Nothing(Ledger(), FrameRecords(some()), np.random.default_rng(0), 400.0, released=model)
        reading.pool, reading.results = (
            pool,
            {Columns: fit.model_.encoder.marginals, BaseModel: chain.network},
        )
        features = chain.pairs.features
        column = np.repeat(np.arange(4), np.diff(features.ends))
        rows, places = np.nonzero(Pairwise(SMALL, share=0.1).redraw(reading).mean)
        return {(int(column[i]), int(column[k % features.size])) for i, k in zip(rows, places, strict=True)}

    held = {pair for cells in chain.grown[0] for pair in itertools.permutations(cells.columns, 2)}
    bare = replace(fit.model_, sampler=replace(fit.model_.sampler, records=replace(chain, grown=())))
    assert moved(fit.model_) == moved(bare) - held < moved(bare)


@pytest.mark.usefixtures("unrefined")
def test_a_saved_model_keeps_its_tables(tmp_path: Any) -> None:
    """Chosen tables that a saved model loses: its redraws then have none."""
    fit = small(random_state=4).fit(some(), schema=SMALL)
    fit.save(tmp_path / "model")
    loaded = dpsynth.load(tmp_path / "model")
    pd.testing.assert_frame_equal(loaded.sample(50, random_state=1), fit.sample(50, random_state=1))
    assert [len(tables) for tables in loaded.model_.chain.grown] == [3, 2]
    assert len(loaded.sample_many(2, 50, random_state=0)) == 2
