"""Curves of one classifier, trained on the synthetic and on the real table: ROC and calibration.

The survival curve of a declared study, as steps with its bands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpsynth.evaluation.details import Calibration, Roc
from dpsynth.evaluation.records import Detail, any_internal
from dpsynth.report.drawing import style
from dpsynth.report.drawing.svg import Plot, to_plot
from dpsynth.report.formats import level_text, shown
from dpsynth.studies.life_table import SurvivalCurve

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_roc(details: Sequence[Detail[Roc]]) -> Plot:
    """Draw the receiver operating characteristic of one classifier on held-out records."""
    curves = [detail.data for detail in details]

    def draw() -> Figure:
        axes = ("false positive rate", "true positive rate")
        return _unit_square(curves, [(c.fpr, c.tpr) for c in curves], axes, marker="")

    model = _words(curves[0])
    said = ", ".join(f"{shown(c.auc)} trained on {style.NAMES[c.trained_on]}" for c in curves)
    alt = f"ROC of the {model} on held-out real records. AUC {said}."
    return to_plot(draw, alt, f"{model}: AUC {said}", internal=any_internal(details))


def plot_calibration(details: Sequence[Detail[Calibration]]) -> Plot:
    """Draw observed over predicted risks of one classifier."""
    curves = [detail.data for detail in details]

    def draw() -> Figure:
        axes = ("predicted risk", "observed share")
        return _unit_square(curves, [(c.predicted, c.observed) for c in curves], axes, marker="o")

    model = _words(curves[0])
    alt = f"Calibration of the {model}: observed share of the outcome over the predicted risk. " + " ".join(
        f"Trained on {style.NAMES[c.trained_on]}: "
        + ", ".join(f"{shown(p)} to {shown(o)}" for p, o in zip(c.predicted, c.observed, strict=False))
        + "."
        for c in curves
    )
    return to_plot(draw, alt, f"{model}: calibration", internal=any_internal(details))


def _unit_square(
    curves: Sequence[Roc | Calibration],
    points: Sequence[tuple[Sequence[float], Sequence[float]]],
    axes: tuple[str, str],
    marker: str,
) -> Figure:
    """Draw the points of each curve beside the diagonal."""
    figure, (axis,) = style.panels(height=3.0)
    axis.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":")
    for curve, (across, up) in zip(curves, points, strict=True):
        table = curve.trained_on
        label = f"trained on {style.NAMES[table]}"
        axis.plot(across, up, label=label, marker=marker, markersize=4, **style.TABLES[table])
    axis.set(xlabel=axes[0], ylabel=axes[1], aspect="equal")
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    style.legend_of_curves(figure, axis, 2, columns=1)
    return figure


def _words(curve: Roc | Calibration) -> str:
    return curve.model.replace("_", " ")


def plot_survival(curve: SurvivalCurve, study: str, *, internal: bool) -> Plot:
    """Draw a survival curve for a page, with a few of its times in words."""
    band = f"{level_text(curve.level)} band"
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
