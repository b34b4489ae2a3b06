"""The picture of a survival curve."""

from __future__ import annotations

import numpy as np
from matplotlib.collections import PolyCollection

from dpsynth.report.drawing.prediction_curves import draw, plot_survival
from dpsynth.studies.life_table import SurvivalCurve

CURVE = SurvivalCurve(
    *np.array([[90.0, 180.0, 365.0], [0.9, 0.81, 0.7], [0.85, 0.74, 0.6], [0.93, 0.86, 0.78]]), unit="days"
)


def value_at(line, time: float) -> float:
    """What a step line shows at a time."""
    x, y = line.get_xdata(), line.get_ydata()
    assert line.get_drawstyle() == "steps-post"
    return float(y[np.searchsorted(x, time, side="right") - 1])


def test_the_steps_are_the_curves() -> None:
    """Slanted lines that promise more than is told, steps an interval too early, a last one cut off."""
    (axis,) = draw(CURVE).axes
    lower, upper, curve = axis.lines
    for time, told in ((0, 1.0), (89, 1.0), (90, 0.9), (179, 0.9), (180, 0.81), (365, 0.7)):
        assert value_at(curve, time) == told
    assert [value_at(line, 200) for line in (lower, upper)] == [0.74, 0.86]
    assert axis.get_xlim()[1] > 365 and axis.get_ylim()[0] <= 0 and axis.get_xlabel() == "time (days)"
    (band,) = [part for part in axis.collections if isinstance(part, PolyCollection)]
    corners = band.get_paths()[0].vertices
    at = corners[(corners[:, 0] >= 180) & (corners[:, 0] < 365), 1]
    assert {0.74, 0.86} <= set(at.round(9)) and at.min() >= 0.74 and at.max() <= 0.93


def test_the_picture_in_words() -> None:
    """A picture that a screen reader cannot tell, or one of a paid curve that is marked as internal."""
    plot = plot_survival(CURVE, "ward", internal=False)
    assert "Survival at 180 days: 0.81 (0.74 to 0.86)" in plot.alt and "ward" in plot.alt
    assert plot.wide and not plot.internal and plot_survival(CURVE, "ward", internal=True).internal
