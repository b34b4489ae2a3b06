"""The kinds of encoders that a generator's options name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.files.codec import apart, rejoined
from dpsynth.marginals.columns import estimate_marginals
from dpsynth.marginals.statistics import MarginalsRelease
from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.table.coded import CodedTable
from dpsynth.table.column import Column
from dpsynth.table.encoder import Encoder
from dpsynth.table.encodings import ENCODINGS, IntervalEncoder
from dpsynth.table.schema import Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=100),
        Column(name="dose", kind="continuous", lower=0, upper=8, missing=True),
        Column(name="ward", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="stage", kind="ordinal", categories=("I", "II", "III")),
    )
)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "age": rng.integers(0, 101, 400),
            "dose": np.where(rng.random(400) < 0.25, np.nan, 8 * rng.random(400)),
            "ward": rng.choice(["a", "b", "c", None], 400, p=[0.1, 0.5, 0.1, 0.3]),
            "stage": rng.choice(["I", "II", "III"], 400, p=[0.2, 0.2, 0.6]),
        }
    )
    return SCHEMA.conform(made).frame


@pytest.fixture(scope="module")
def marginals(frame):
    release = MarginalsRelease(schema=SCHEMA, n=400, noise_multiplier=None)
    rng = np.random.default_rng(0)
    return estimate_marginals(release, Ledger().run(release, FrameRecords(frame), rng))


@pytest.mark.parametrize("name", ENCODINGS)
def test_records_come_back_and_lie_in_the_domain(name, frame, marginals):
    """Catches an encoding that loses a value, or whose points leave what the noise is proved for."""
    encoding = ENCODINGS[name]
    encoder = encoding.encoder(SCHEMA, marginals if encoding.counts else None)
    points = encoder.transform(CodedTable(frame), np.random.default_rng(1))
    encoder.layout.check(points)
    again = encoder.inverse_transform(points, np.random.default_rng(2))
    whole = ["age", "ward", "stage"]
    pd.testing.assert_frame_equal(again[whole], frame[whole])
    assert (again["dose"].isna() == frame["dose"].isna()).all()
    # a number through its distribution is drawn anew within its cell
    assert (again["dose"] - frame["dose"]).abs().max() <= (0.5 if name == "copula" else 1e-4)


def test_categories_lie_on_intervals_as_long_as_their_frequencies(frame, marginals):
    """Catches intervals in the order of the schema, of equal length, or with the missing ones apart."""
    encoder = IntervalEncoder(SCHEMA, marginals)
    points = encoder.transform(CodedTable(frame), np.random.default_rng(1))
    assert encoder.layout.n_numeric == 4 and len(encoder.layout.groups) == 1  # dose may be missing
    ward, at = frame["ward"].fillna("missing"), points[:, encoder.coordinate[2]]
    shares = ward.value_counts(normalize=True)
    end = 0.0
    for category, share in shares.items():
        here = at[ward == category]
        # two categories of about one frequency may come in either order
        assert end - 0.03 <= here.min() and here.max() <= end + share + 0.03, category
        end += share
    age = points[:, encoder.coordinate[0]]
    np.testing.assert_allclose(age, frame["age"] / 100, atol=1e-6)


def test_public_bounds_need_no_counts(frame):
    """Catches an encoding by bounds that depends on the records of others."""
    encoder = ENCODINGS["minmax"].encoder(SCHEMA, None)
    rng = np.random.default_rng
    few = encoder.transform(CodedTable(frame.iloc[:5]), rng(0))
    np.testing.assert_allclose(few[:, encoder.coordinate[0]], frame["age"][:5] / 100, atol=1e-6)
    assert not encoder.calibrated


@pytest.mark.parametrize("kind", [Encoder, IntervalEncoder])
def test_a_stored_encoder_stays_what_it_is(kind, marginals):
    """Catches a saved model that is read with another encoding."""
    plain, arrays = apart(kind(SCHEMA, marginals))
    again = rejoined(kind, plain, arrays)
    assert type(again) is kind and again.layout == kind(SCHEMA, marginals).layout
