"""Drawings of what an adversary came to believe."""

from __future__ import annotations

import adversary_figures as drawing
import numpy as np
import pytest

from dpsynth.attacks.trials import Game
from dpsynth.privacy.events import training_event
from dpsynth.privacy.profile import Profile
from dpsynth.report.plots import styled
from dpsynth.research.adversary.playing import draw_beliefs

RNG = np.random.default_rng(0)
GAME = Game(np.arange(200) % 2, np.where(np.arange(200) % 2 == 0, 1, -1) * RNG.normal(0.5, 1.0, 200))
PROFILE = Profile([training_event(1.0, 1.0, 1)])


def labels(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_a_histogram_holds_every_run():
    """Catches bins that leave runs out, or beliefs in D in place of beliefs in the table that was used."""
    with styled():
        figure = draw_beliefs({"NOT PRIVATE, a": GAME}, 0.9)
    heights = figure.axes[0].patches[0].get_data().values
    assert heights.sum() == pytest.approx(1.0)
    assert heights[20:].sum() == pytest.approx((GAME.beliefs >= 0.5).mean())
    assert labels(figure) == ["NOT PRIVATE, a"]


def test_bounds_are_drawn_beside_what_was_reached():
    """Catches an exceedance drawn without its exact curve, or exact and bound exchanged."""
    points = {"a": [drawing.Point(e, GAME.advantage(), PROFILE.tv() * e) for e in (0.5, 1.0)]}
    with styled():
        figure = drawing.draw_bounds(points, {"b": GAME}, PROFILE, 0.9)
    lines = {line.get_label(): line for line in figure.axes[1].get_lines()}
    exact, most = (
        lines[name].get_ydata() for name in ("exact, record at the bound", "passed by no observer")
    )
    assert (np.asarray(most) >= np.asarray(exact)).all() and exact[0] == pytest.approx(
        PROFILE.exceedance(0.0)
    )
    assert {"a", "b"} <= set(labels(figure))


def test_steps_and_accuracies_keep_their_labels():
    """Catches a curve or a box that loses the label which says that it is not private."""
    names = ["global", "local, NOT PRIVATE"]
    with styled():
        curves = drawing.draw_steps(dict.fromkeys(names, np.ones(5)), "moved")
        boxes = drawing.draw_accuracies({name: RNG.random(20) for name in names})
    assert labels(curves) == names
    assert [tick.get_text() for tick in boxes.axes[0].get_yticklabels()] == names
