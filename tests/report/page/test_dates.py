"""Dates on the page: nowhere a number of days or seconds since 1970."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.report.page import render, to_markdown
from dpsynth.report.run_report import RunReport
from dpsynth.table.column import Column
from dpsynth.table.schema import Schema

SCHEMA = Schema(
    columns=(
        Column(name="came", kind="date", lower="2010-01-01", upper="2019-12-31"),
        Column(name="seen", kind="datetime", lower="2010-01-01", upper="2019-12-31", missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
    ),
    constraints=("came >= '2010-01-02'",),
)


def table(n: int, late: int) -> pd.DataFrame:
    rng = np.random.default_rng(late)
    came = pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.integers(late, 3000, n), unit="D")
    came = came.where(rng.random(n) < 0.9, pd.Timestamp("2015-05-05"))  # a frequent date
    seen = pd.Timestamp("2009-01-01") + pd.to_timedelta(rng.integers(late, 4_000_000, n), unit="min")
    return pd.DataFrame({"came": came, "seen": seen, "sex": rng.choice(["F", "M"], n)})


@pytest.fixture(scope="module")
def report() -> RunReport:
    made = SCHEMA.conform(table(400, 1500)).frame
    found = dpsynth.evaluate(made, train=table(500, 1), test=table(400, 2), schema=SCHEMA, seed=0)
    return RunReport.of_evaluation(found)


@pytest.mark.slow
def test_dates_are_written_as_dates(report):
    """Catches medians, percentiles, bounds, frequent values and axes in days or seconds since 1970."""
    for text in (render(report, "internal"), to_markdown(report)):
        plain = re.sub(
            r"data:[^\"')]+|<svg.*?</svg>|<style.*?</style>|<script.*?</script>", "", text, flags=re.S
        )
        numbers = {float(word.replace(",", "")) for word in re.findall(r"\d[\d,]*(?:\.\d+)?", plain)}
        days = {number for number in numbers if 14_000 < number < 19_000 or 1.2e9 < number < 1.7e9}
        assert not days
        assert "2015-05-05" in plain and re.search(r"20\d\d-\d\d-\d\d \d\d:\d\d", plain)
        assert re.search(r"values of seen lie outside 2010-01-01 00:00 to 2019-12-31 00:00", plain)
        assert re.search(r"[\d,]+ days", plain)  # standard deviations


def test_a_drawing_has_dates_on_its_axis(report):
    """Catches an axis of 14600 to 18200."""
    for name in ("came", "seen"):
        plot = report.plot_of(f"marginal[{name}]")
        figure = plot.draw()
        figure.canvas.draw()
        ticks = [label.get_text() for label in figure.axes[0].get_xticklabels()]
        assert len(ticks) > 2 and all(re.fullmatch(r"20\d\d", tick) for tick in ticks if tick)
        assert re.search(r"Most frequent in [a-z ]+: 20\d\d-\d\d-\d\d to 20\d\d-\d\d-\d\d", plot.alt)
