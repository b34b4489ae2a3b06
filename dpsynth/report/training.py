"""The section *Training*: the estimated Wasserstein distance, signal and noise, and the bound of each layer.

All of it was released with the model, so it is confidential only where no guarantee holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsynth.report.blocks import Block, Cell, Plots, Section, Sentence, TableBlock, number_cell, paragraph
from dpsynth.report.plots import Plot, finished, line, panels
from dpsynth.report.run_report import RunReport
from dpsynth.report.words import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIGNAL = "Signal and noise in the released gradients"


def training_section(report: RunReport) -> Section | None:
    """Return the section. None for a table that no WGAN critic trained."""
    told = read_training(report.training)
    if not told:
        return None
    internal, rows = not report.holds, told["rows"]
    blocks: list[Block] = [paragraph(Sentence(_steps(told), internal), *_meaning(rows, internal))]
    if warning := told["warning"]:
        blocks.append(paragraph(Sentence(f"{warning[0].upper()}{warning[1:]}.", internal)))
    drawn = [_noise(rows, internal)]
    if "wasserstein" in rows:
        what = f"Estimated Wasserstein distance between real and generated {report.counted}"
        drawn.insert(0, _distance(rows, what, internal))
    blocks.append(Plots(tuple(drawn)))
    if told["layers"]:
        blocks += [paragraph(report.say("bounds of layers")), _layers(told["layers"], internal)]
    return Section("training", "Training", tuple(blocks))


def read_training(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """A training as `RunReport` has it, or ValueError if somebody changed the file that it was read from."""
    if not record:
        return {}
    try:
        columns = [np.asarray(column, dtype=float) for column in record["rows"].values()]
        needed = {"step", "noise_std", "signal"} <= set(record["rows"])
        needed &= ("wasserstein" in record["rows"]) == ("wasserstein_error" in record["rows"])
        alike = len({column.shape for column in columns}) == 1 and columns[0].ndim == 1
        numbers = all(np.isfinite(column).all() for column in columns)
        layers = all({"size", "box", "ball", "used", "reached"} == set(layer) for layer in record["layers"])
        whole = int(record["made"]) <= int(record["planned"])
        text = isinstance(record["warning"], str | None)
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"its training cannot be read ({problem})") from None
    if not (needed and alike and numbers and layers and whole and text):
        raise ValueError("its training is not that of a report")
    return record


def _steps(told: Mapping[str, Any]) -> str:
    made, planned = int(told["made"]), int(told["planned"])
    if made < planned:
        return (
            f"The WGAN critic made {made:,} of {planned:,} steps. Noisy statistics ended the training. "
            f"The cost is that of all {planned:,}."
        )
    return f"The WGAN critic made {made:,} steps."


def _meaning(rows: Mapping[str, Any], internal: bool) -> list[Sentence]:
    if "wasserstein" not in rows:
        return [Sentence("These settings leave no estimate of the distance.")]
    last, error = rows["wasserstein"][-1], rows["wasserstein_error"][-1]
    return [
        Sentence("The estimate costs no privacy budget, because the released gradients hold it."),
        Sentence(f"At the end it is {last:.3f}, with a standard error of {error:.3f} by noise.", internal),
    ]


def _distance(rows: Mapping[str, Any], what: str, internal: bool) -> Plot:
    values, errors = np.asarray(rows["wasserstein"]), np.asarray(rows["wasserstein_error"])
    first, last = plain(values[0], 2), plain(values[-1], 2)
    alt = f"{what}, over the critic's steps: {first} at first, {last} at last."
    caption = f"{what}. The band is twice the standard error by noise to either side"

    def draw() -> Figure:
        (axis,) = panels(width=5.6)
        axis.axhline(0.0, color="black", linewidth=0.8, linestyle=":")
        look = line(0)
        axis.plot(rows["step"], values, label="estimate", **look)
        band = (values - 2 * errors, values + 2 * errors)
        axis.fill_between(rows["step"], *band, color=look["color"], alpha=0.2, linewidth=0, label="band")
        return finished(axis, xlabel="steps of the WGAN critic", ylabel="distance", xlim=(0, None))

    return Plot(draw, alt, caption, internal)


def _noise(rows: Mapping[str, Any], internal: bool) -> Plot:
    signal, noise = (plain(rows[name][-1], 2) for name in ("signal", "noise_std"))
    alt = f"{_SIGNAL}, over the critic's steps: at last a norm of {signal} for signal, {noise} for noise."
    return Plot(partial(_signal_and_noise, rows), alt, f"{_SIGNAL}, as norms", internal)


def _signal_and_noise(rows: Mapping[str, Any]) -> Figure:
    (axis,) = panels(width=5.6)
    for number, (name, words) in enumerate((("signal", "signal"), ("noise_std", "noise"))):
        axis.plot(rows["step"], rows[name], label=words, **line(number))
    settings: dict[str, Any] = {"xlim": (0, None), "ylim": (0, None)}
    return finished(axis, legend=2, xlabel="steps of the WGAN critic", ylabel="norm", **settings)


def _layers(layers: list[Mapping[str, Any]], internal: bool) -> TableBlock:
    rows = tuple(
        (
            Cell(f"{number}"),
            number_cell(f"{layer['size']:,}"),
            number_cell(plain(layer["box"], 3)),
            number_cell("none" if layer["ball"] < 0 else plain(layer["ball"], 3)),
            Cell(str(layer["used"])),
            number_cell(f"{layer['reached']:.0%}"),
        )
        for number, layer in enumerate(layers, 1)
    )
    header = ("layer", "entries", "radius of the box", "radius of the ball", "bound used", "reached")
    return TableBlock("Bounds of one record's gradient, by layer", header, rows, internal=internal)
