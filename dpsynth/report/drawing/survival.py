"""The survival curve of a declared study, as steps with its bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpsynth.report.drawing import style
from dpsynth.report.drawing.svg import Plot, to_plot
from dpsynth.studies.survival_curve import SurvivalCurve

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_survival(curve: SurvivalCurve, study: str, *, internal: bool) -> Plot:
    """Draw a survival curve for a page, with a few of its times in words."""
    band = f"{100 * curve.level:g} % band"
    alt = f"Survival curve of declared study {study} with its {band}. {'; '.join(str(curve).splitlines())}."
    caption = f"Declared study {study}: survival with its {band} at each time, whatever the predictors"
    return to_plot(lambda: draw(curve), alt, caption, internal=internal)


def draw(curve: SurvivalCurve) -> Figure:
    """Draw a survival curve: all are alive at 0, and what is told of a time holds until the next."""
    figure, (axis,) = style.panels(width=4.5, height=2.8)
    # the last is seen a little longer than its time
    times = np.r_[0.0, curve.times, 1.03 * curve.times[-1]]
    survival, lower, upper = (np.r_[1.0, v, v[-1]] for v in (curve.survival, curve.lower, curve.upper))
    colour = style.COLOURS[6]
    axis.fill_between(times, lower, upper, step="post", color=colour, alpha=0.15, linewidth=0)
    for end in (lower, upper):
        axis.step(times, end, where="post", color=colour, linewidth=0.7, linestyle="--")
    axis.step(times, survival, where="post", color=colour)
    unit = f" ({curve.unit})" if curve.unit else ""
    axis.set(xlabel=f"time{unit}", ylabel="survival", xlim=(0.0, times[-1]), ylim=(-0.02, 1.02))
    return figure
