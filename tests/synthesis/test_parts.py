"""A further statistic is one part: the ledger, plans and audits have it, within the common budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import dp_marginals

import dpsynth
from dpsynth import DPMarginals
from dpsynth.audits.configuration import releases_of
from dpsynth.errors import InputError
from dpsynth.files.codec import record
from dpsynth.privacy import Profile
from dpsynth.privacy.records import Records
from dpsynth.privacy.release import Array, GaussianRelease, Ints
from dpsynth.synthesis.many_tables import redraw
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.part import Part, Reading, Statistic
from dpsynth.synthesis.sampler import Sampler
from dpsynth.table import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="died", kind="binary", categories=("no", "yes")),
        Column(name="ward", kind="categorical", categories=("a", "b", "c")),
    ),
    n_public=400,
)


@dataclass(frozen=True, kw_only=True)
class OldRelease(GaussianRelease[float]):
    """How many records are over 65."""

    name = "records over 65"
    l2_sensitivity = 1.0
    sensitivity = "1"

    def query(self, records: Records) -> Sequence[Ints]:
        return records.sums(lambda table: [np.array((table.frame["age"] > 65).sum(), dtype=np.int64)])

    def finish(self, noisy: Sequence[Array]) -> float:
        return float(noisy[0])


@record
@dataclass(frozen=True)
class Counted(Sampler):
    """A sampler and the number."""

    of: Sampler
    number: int

    @property
    def chain(self):
        return self.of.chain

    def draw(self, encoder, n, rng):
        return self.of.draw(encoder, n, rng)


@dataclass(frozen=True)
class Old(Part[float]):
    """A part of one's own."""

    @property
    def release(self) -> OldRelease:
        return OldRelease(noise_multiplier=self.noise, stage=self.stage)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        release = self.release
        return (Statistic(OldRelease.name, (release.event,), noise_std=release.noise_std),)

    def read(self, reading: Reading) -> float:
        assert reading.made.sample(3, np.random.default_rng(0)).shape == (3, 3)
        return float(reading.run(self.release))

    def extend(self, model: GeneratorModel, found: float) -> GeneratorModel:
        """The model with the number."""
        return replace(model, sampler=Counted(model.sampler, round(found)))


def table(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(18, 91, n), "died": rng.choice(["no", "yes"], n), "ward": "a"})


@pytest.mark.slow
def test_a_part_of_ones_own_is_everywhere() -> None:
    """Catches a statistic that a plan, an audit or the ledger lacks, or that costs more than is told."""
    also = [Old(share=0.25)]
    model = DPMarginals(epsilon=3.0, delta=1e-5).fit(table(), schema=SCHEMA, also=also)
    assert abs(model.results_[Old] - (table()["age"] > 65).sum()) < 30
    entry = model.ledger_.entries[-1]
    assert entry.name == OldRelease.name
    assert 2.9 < model.ledger_.epsilon(1e-5) <= 3.0
    planned = {
        each.name: each for each in dpsynth.plan(SCHEMA, epsilon=3.0, delta=1e-5, also=also).statistics
    }
    assert planned[OldRelease.name].share == pytest.approx(0.25)
    assert planned[OldRelease.name].noise_std == entry.event.noise_multiplier
    options = DPMarginals(epsilon=3.0, delta=1e-5).validate()
    audited = releases_of(SCHEMA, options, np.random.default_rng(0), also=also)
    assert audited.names[-1] == OldRelease.name
    assert Profile([each.event for each in audited.releases]).epsilon(1e-5) <= 3.0


@pytest.mark.slow
def test_a_part_of_ones_own_is_redrawn(tmp_path: Path) -> None:
    """Catches tables to combine, or a saved model's, that all have one noise in a further statistic."""
    fitted = dp_marginals(epsilon=1.0, delta=1e-5, pairwise_statistics=False)
    fitted.fit(table(), schema=SCHEMA, also=[Old(share=0.25)]).save(tmp_path / "model")
    model = dpsynth.load(tmp_path / "model")
    rng, part = np.random.default_rng(0), model._parts.of(Old)
    assert part == fitted._parts.of(Old)
    counts = [redraw(model._plan, model.model_, rng).sampler.number for _ in range(40)]
    share = (table()["age"] > 65).mean()
    assert np.std(counts, ddof=1) == pytest.approx(
        np.hypot(part.noise, 20 * np.sqrt(share - share**2)), rel=0.5
    )
    assert abs(np.mean(counts) - 400 * share) < 10 * part.noise
    assert len(model.sample_many(2, 10)[1]) == 10
    assert [entry.name for entry in model.ledger_.entries].count(OldRelease.name) == 1


@pytest.mark.parametrize(
    ("also", "said"),
    [
        ([Old(share=0.5), Old(share=0.1)], "there are two Old"),
        ([Columns(SCHEMA, 400.0, share=0.1)], "there are two Columns"),
        ([Old(share=1.0)], "leave something for the generator, got 1 in all"),
        ([Old(share=None)], "needs a share greater than 0"),
        ([Old(share=-0.5)], "needs a share greater than 0"),
    ],
)
def test_parts_that_do_not_fit_are_refused(also: list[Part[float]], said: str) -> None:
    """Catches a part that takes the generator's budget, or two of which one is lost."""
    with pytest.raises(InputError, match=said):
        DPMarginals(epsilon=3.0).fit(table(), schema=SCHEMA, also=also)
