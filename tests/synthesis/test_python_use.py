"""What users of Python meet: seeds, sizes, a draft in place of a schema, and a fit without noise."""

import time

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import dp_marginals

import dpsynth
from dpsynth.errors import InputError, OwnerWarning
from dpsynth.table.inference import infer_schema
from dpsynth.table.schema import Schema

SCHEMA = Schema(
    columns=(
        dpsynth.Column(name="age", kind="integer", lower=18, upper=90),
        dpsynth.Column(name="sex", kind="binary", categories=("F", "M")),
    ),
    n_public=300,
)
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame({"age": RNG.integers(18, 91, 300), "sex": RNG.choice(["F", "M"], 300)})


def fitted(**options):
    return dp_marginals(epsilon=2.0, delta=1e-4, **options).fit(FRAME, schema=SCHEMA)


def calls(model, folder):
    """Every kind of sample, in one order."""
    model.sample_to(folder / "table.csv", 20)
    model.sample_many_to(folder / "many", 2, 20, replace=True)
    paths = (folder / "table.csv", *sorted((folder / "many").glob("*.csv")))
    return [model.sample(20), model.sample(20), *model.sample_many(2, 20), *map(pd.read_csv, paths)]


@pytest.mark.slow
def test_a_seeded_model_gives_the_same_samples_after_the_same_fit(tmp_path):
    """Catches random_state that fixes the fit alone, and a second sample that is the first."""
    one, other = (calls(fitted(random_state=1), tmp_path) for _ in range(2))
    for first, second in zip(one, other, strict=True):
        pd.testing.assert_frame_equal(first, second)
    assert not one[0].equals(one[1])
    assert not any(a.equals(b) for a, b in zip(one, calls(fitted(random_state=2), tmp_path), strict=True))


def test_a_seed_of_one_call_counts_alone():
    """Catches a call's own seed that moves, or is moved by, the seeds of other calls."""
    model, unseeded = fitted(random_state=1), fitted()
    first = model.sample(20, random_state=5)
    second = model.sample(20)
    assert model.sample(20, random_state=5).equals(first)
    assert fitted(random_state=1).sample(20).equals(second)
    assert not unseeded.sample(20).equals(unseeded.sample(20))


def test_a_saved_model_keeps_no_seed(tmp_path):
    """Catches a seed of the noise beside the model, by which a reader could remove the noise."""
    model = fitted(random_state=1)
    model.save(tmp_path / "model")
    again = dpsynth.load(tmp_path / "model")
    assert again.random_state is None and not again.sample(20).equals(again.sample(20))


def test_samples_beyond_memory_are_refused_at_once():
    """Catches a typing error (10**12) that runs for minutes and then ends the process."""
    model, start = fitted(), time.perf_counter()
    for call in (lambda: model.sample(10**12), lambda: model.sample_many(2, 10**12)):
        with pytest.raises(
            InputError, match=r"1,000,000,000,000 samples of 2 columns need 16,000 GB of memory"
        ):
            call()
    assert time.perf_counter() - start < 5.0


def test_a_draft_in_place_of_a_schema_is_told_what_to_do():
    """Catches "got Draft" without the way on, here and in a plan."""
    draft = infer_schema(FRAME)
    for call in (
        lambda: dpsynth.DPMarginals().fit(FRAME, schema=draft),
        lambda: dpsynth.plan(draft, n=300),
    ):
        with pytest.raises(
            InputError, match=r"got a Draft.*to_yaml.*from_yaml.*draft\.schema.*accept_unreviewed"
        ):
            call()
    with pytest.raises(InputError, match=r"must be a Schema .*got dict"):
        dpsynth.DPMarginals().fit(FRAME, schema={})


def test_a_fit_without_noise_warns():
    """Catches epsilon=None without a word: a table to share that protects nobody."""
    with pytest.warns(OwnerWarning, match=r"epsilon is None.*not private.*Do not share"):
        dpsynth.DPMarginals(epsilon=None).fit(FRAME, schema=SCHEMA)
