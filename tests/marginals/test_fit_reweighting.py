"""The fit of a reweighting where many columns go together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import dp_marginals

from dpsynth import Column, Schema

COLUMNS = 25


@pytest.mark.slow
def test_columns_that_are_missing_together_leave_the_fit_of_others_as_it_is():
    """Catches steps along many collinear products that add up, and swing beyond what was released."""
    rng = np.random.default_rng(0)
    common, n = rng.normal(size=5000), 5000
    values = {f"lab{j}": 0.7 * common + 0.7 * rng.normal(size=n) for j in range(5)}
    absent = common + rng.normal(size=n) < 0.3
    values |= {f"x{j}": np.where(absent, np.nan, rng.normal(size=n)) for j in range(COLUMNS)}
    frame = pd.DataFrame(values).clip(-4, 4)
    schema = Schema(
        columns=tuple(
            Column(name=name, kind="continuous", lower=-4, upper=4, cells=32, missing=name.startswith("x"))
            for name in frame
        ),
        n_public=n,
    )
    options = {"pairwise_statistics": True, "random_state": 0}
    made = (
        dp_marginals(epsilon=10.0, delta=1e-5, **options).fit(frame, schema=schema).sample(n, random_state=0)
    )
    labs = list(frame)[:5]
    errors = made[labs].corr("spearman") - frame[labs].corr("spearman")
    assert errors.abs().to_numpy().mean() < 0.05
