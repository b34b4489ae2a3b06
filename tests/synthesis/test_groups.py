"""Tables with groups of yes/no columns, from the fit to the samples."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from dask_workers import threads

import dpsynth
from dpsynth.errors import InputError
from dpsynth.privacy import Ledger
from dpsynth.privacy.records import PartitionedRecords
from dpsynth.synthesis.parts.groups import Groups
from dpsynth.table import Column, Schema
from dpsynth.table.parquet import ParquetTable

pytestmark = pytest.mark.usefixtures("unrefined")
CODES = [f"icd_{k}" for k in range(12)]
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        *(Column(name=name, kind="binary", categories=("no", "yes")) for name in CODES[:6]),
        Column(name="died", kind="binary", categories=(0, 1)),
        *(Column(name=name, kind="binary", categories=(False, True)) for name in CODES[6:]),
        Column(name="months", kind="integer", lower=216, upper=1080, derived="age * 12"),
    ),
    outcome="died",
    n_public=4_000,
    constraints=("age >= 20",),
    groups=({"columns": "icd_*", "at_most": 5},),
)


def made(n: int = 4_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age, sick = rng.integers(20, 91, n), rng.normal(size=n)
    latent = (
        0.7 * sick[:, None] * (np.arange(12) < 4)
        + rng.normal(size=(n, 12))
        - 1.2
        + 0.01 * (age[:, None] - 50)
    )
    ones = latent > 0
    frame = pd.DataFrame({"age": age, "died": (sick + rng.normal(size=n) > 1).astype(int)})
    return frame.assign(
        **{name: np.where(ones[:, k], "yes", "no") if k < 6 else ones[:, k] for k, name in enumerate(CODES)}
    )


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return made()


@pytest.fixture(scope="module")
def model(frame):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpsynth.marginals.chain_fit._POOL", 500)
        return dpsynth.DPMarginals(3.0, 1e-5).fit(frame, schema=SCHEMA, ledger=Ledger())


def numbers(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["age", "died", *CODES]].replace({"no": 0, "yes": 1}).astype(float)


def test_samples_have_the_codes_of_the_table(model, frame):
    """Codes that are left out, of other types or prevalences, or without their links."""
    drawn = model.sample(4_000)
    assert tuple(drawn.columns) == SCHEMA.names
    pd.testing.assert_frame_equal(SCHEMA.conform(drawn).frame, drawn)
    real, synthetic = numbers(frame), numbers(drawn)
    np.testing.assert_allclose(synthetic[CODES].mean(), real[CODES].mean(), atol=0.03)
    for one, other in (("icd_0", "icd_1"), ("icd_0", "died"), ("icd_7", "icd_8")):
        assert synthetic[one].corr(synthetic[other]) == pytest.approx(real[one].corr(real[other]), abs=0.1)
    assert synthetic["age"].corr(synthetic["icd_9"]) > 0.05


def test_all_that_is_read_is_in_the_ledger(model):
    """Codes that a part of the chain counts too, or that the budget does not hold."""
    assert model.ledger_.epsilon(1e-5) <= 3.0
    names = [entry.name for entry in model.ledger_.entries]
    assert names.count("counts of codes and of pairs of codes") == 1 and names[-1].startswith(
        "counts of codes"
    )
    assert model.model_.encoder.schema.names == ("age", "died")
    # ten pairs, and five codes that count sqrt(2), 1 and sqrt(2)
    assert "sqrt(10 + 25) for at most 5 codes of a record" in model.ledger_.entries[-1].sensitivity


def test_a_saved_model_is_the_same(model, tmp_path):
    """A model whose codes are lost in its file."""
    again = dpsynth.load(model.save(tmp_path / "model"))
    drawn = again.sample(300, random_state=3)
    pd.testing.assert_frame_equal(drawn, model.sample(300, random_state=3))
    with_code = again.sample(50, where={"icd_3": "yes", "icd_7": True, "age": (30, 80)}, random_state=1)
    assert len(with_code) == 50 and (with_code["icd_3"] == "yes").all() and with_code["icd_7"].all()
    assert [len(again.sample(n)) for n in (0, 1)] == [0, 1]


@pytest.mark.slow
def test_tables_to_combine_differ_by_sample_and_noise(model, frame):
    """Redrawn tables without codes, or with prevalences that differ less than those of samples."""
    tables = [numbers(table) for table in model.sample_many(12, 1_000, random_state=0)]
    shares = np.array([table[CODES].mean() for table in tables])
    p = numbers(frame)[CODES].mean().to_numpy()
    assert (shares.std(axis=0) / np.sqrt(p * (1 - p) / 1_000)).mean() > 0.9
    np.testing.assert_allclose(shares.mean(axis=0), p, atol=0.04)


def test_further_parts_leave_codes_their_share(frame):
    """A regression of a code, whose share and that of the codes are more than all."""
    regression = dpsynth.Studies(["died ~ age + icd_0"], share=0.5)
    found = dpsynth.DPMarginals(3.0, 1e-5).fit(frame, schema=SCHEMA, ledger=Ledger(), also=[regression])
    shares = found._parts.shares
    assert sum(shares.values()) == pytest.approx(1.0) and shares[dpsynth.Studies] == 0.5
    assert 0.2 < shares[Groups] < 0.5
    (estimates,) = found.estimates_
    assert dict(zip(estimates.terms, estimates.coefficients, strict=True))["icd_0: yes vs no"] > 0


@pytest.mark.parametrize("of", [dpsynth.DPWGANGP, dpsynth.DPCriticMatching])
def test_other_generators_take_no_groups(of, frame, readings):
    """A limit on codes that is accepted and has no effect."""
    with pytest.raises(InputError, match=r"takes no groups of columns\. Use generator marginals"):
        of(3.0, 1e-5).fit(frame, schema=SCHEMA, ledger=Ledger())
    assert not readings


def test_a_plan_has_the_codes():
    """A plan whose noise is not that of the fit, or advice for columns that are counted together."""
    found = dpsynth.plan(SCHEMA)
    planned = {each.name: each for each in found.statistics}["counts of codes and of pairs of codes"]
    assert planned.share > 0.3 and planned.noise_std > 1
    assert not found.advice


@pytest.mark.slow
def test_a_table_in_parts_gives_the_same_model(frame, tmp_path):
    """Sums of parts that are not those of the whole table."""
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, (start, stop) in enumerate([(0, 1_500), (1_500, 1_501), (1_501, 4_000)]):
        frame.iloc[start:stop].to_parquet(folder / f"{i}.parquet", index=False)
    with threads() as client:
        records = PartitionedRecords(ParquetTable(folder), SCHEMA, client)
        models = [
            dpsynth.DPMarginals(3.0, 1e-5, random_state=5).fit(data, schema=SCHEMA, ledger=Ledger())
            for data in (frame, records)
        ]
    one, other = (model.sample(500, random_state=1) for model in models)
    pd.testing.assert_frame_equal(one, other)
