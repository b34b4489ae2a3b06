"""The section *Training*: the estimated distance, signal and noise, columns on the way, bounds of the layers.

All of it was released with the model, so it is confidential only where no guarantee holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsynth.report.blocks import Block, Cell, Plots, Section, Sentence, TableBlock, number_cell, paragraph
from dpsynth.report.plots import Plot, draw_snapshots, finished, line, panels
from dpsynth.report.run_report import RunReport
from dpsynth.report.words import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIGNAL = "Signal and noise in the noisy gradients from which the WGAN critic learns"


def training_section(report: RunReport) -> Section | None:
    """Return the section. None for a table that no WGAN critic trained."""
    told = read_training(report.training)
    if not told:
        return None
    internal, rows = not report.holds, told["rows"]
    columns = told["columns"]
    blocks: list[Block] = [paragraph(Sentence(_steps(told), internal), *_meaning(report, rows, internal))]
    if warning := told["warning"]:
        blocks.append(paragraph(Sentence(f"{warning[0].upper()}{warning[1:]}.", internal)))
    noisy = _noise_words(rows)
    drawn = [_noise(report, rows, internal)] if noisy else []
    if "wasserstein" in rows:
        what = (
            f"{'Estimated ' if noisy else ''}Wasserstein distance between real and generated {report.counted}"
        )
        drawn.insert(0, _distance(rows, what, internal))
    blocks.append(Plots(tuple(drawn)))
    if columns:
        counts = "noisy counts" if noisy else "exact counts"
        said = [report.say("columns in training")]
        said += [report.say("line of counts", counts=counts)] if columns[0]["released"] else []
        said += [report.say("columns adjusted", counts=counts)] if told["adjusted"] else []
        blocks.append(paragraph(*said))
        # bars show limits and categories
        shown = internal or report.schema_of_records
        blocks.append(Plots(tuple(_column(column, told["snapshots"], counts, shown) for column in columns)))
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
        drawn = all(_is_column(column, record["snapshots"]) for column in record["columns"])
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"its training cannot be read ({problem})") from None
    if not (needed and alike and numbers and layers and whole and text and drawn):
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


def _noise_words(rows: Mapping[str, Any]) -> bool:
    """Whether the gradients have noise: without, nobody is protected."""
    return max(rows["noise_std"], default=0.0) > 0


def _meaning(report: RunReport, rows: Mapping[str, Any], internal: bool) -> list[Sentence]:
    if "wasserstein" not in rows:
        return [Sentence("These settings leave no estimate of the distance.")]
    last, error = rows["wasserstein"][-1], rows["wasserstein_error"][-1]
    if not _noise_words(rows):
        return [
            Sentence(report.say("exact distance")),
            Sentence(f"At the end it is {last:.3f}.", internal),
        ]
    return [
        Sentence(report.say("estimated distance")),
        Sentence(f"At the end it is {last:.3f}, with a standard error of {error:.3f} by noise.", internal),
    ]


def _distance(rows: Mapping[str, Any], what: str, internal: bool) -> Plot:
    values, errors = np.asarray(rows["wasserstein"]), np.asarray(rows["wasserstein_error"])
    first, last = plain(values[0], 2), plain(values[-1], 2)
    alt = f"{what}, over the critic's steps: {first} at first, {last} at last."
    caption = what
    if _noise_words(rows):
        caption += ". The band is twice the standard error by noise to either side"

    def draw() -> Figure:
        (axis,) = panels()
        axis.axhline(0.0, color="black", linewidth=0.8, linestyle=":")
        look = line(0)
        axis.plot(rows["step"], values, label="estimate", **look)
        band = (values - 2 * errors, values + 2 * errors)
        axis.fill_between(rows["step"], *band, color=look["color"], alpha=0.2, linewidth=0, label="band")
        return finished(axis, xlabel="steps of the WGAN critic", ylabel="distance", xlim=(0, None))

    return Plot(draw, alt, caption, internal)


def _noise(report: RunReport, rows: Mapping[str, Any], internal: bool) -> Plot:
    signal, noise = (plain(rows[name][-1], 2) for name in ("signal", "noise_std"))
    alt = f"{_SIGNAL}, over the critic's steps: at last a norm of {signal} for signal, {noise} for noise."
    caption = f"{_SIGNAL}, as norms. The noise protects the real {report.counted}, and is usually larger"
    return Plot(partial(_signal_and_noise, rows), alt, caption, internal)


def _signal_and_noise(rows: Mapping[str, Any]) -> Figure:
    (axis,) = panels()
    for number, (name, words) in enumerate((("signal", "signal"), ("noise_std", "noise"))):
        axis.plot(rows["step"], rows[name], label=words, **line(number))
    settings: dict[str, Any] = {"xlim": (0, None), "ylim": (0, None)}
    return finished(axis, legend=2, xlabel="steps of the WGAN critic", ylabel="norm", **settings)


def _is_column(column: Mapping[str, Any], steps: list[Any]) -> bool:
    """Whether a column has shares of each of its bars at each of these steps. Raises as `read_training`."""
    edges, labels = np.asarray(column["edges"], dtype=float), column["labels"]
    bars = len(labels) or len(edges) - 1
    shares = [
        np.asarray(part, dtype=float) for part in (*column["generated"], column["released"] or [0.0] * bars)
    ]
    words = (column["column"], column["scale"], *labels)
    return (
        bars > 0
        and (not labels or not len(edges))
        and bool((np.diff(edges) > 0).all())
        and len(column["generated"]) == len(steps) > 0
        and all(isinstance(step, int) for step in steps)
        and all(part.shape == (bars,) and np.isfinite(part).all() and (part >= 0).all() for part in shares)
        and np.isfinite(edges).all()
        and all(isinstance(word, str) for word in words)
        and isinstance(column["unit"], str | None)
    )


def _column(column: Mapping[str, Any], steps: list[int], counts: str, internal: bool) -> Plot:
    name = column["column"]
    titles = ["before the first step", *(f"after {step:,} steps" for step in steps[1:])]
    beside = f", and its {counts}" if column["released"] else ""
    parts = [f"{name} as generated {titles[0]} and {titles[-1]}{beside}."]
    if column["released"]:
        far = [
            plain(_distance_of(part, column["released"]), 2)
            for part in (column["generated"][0], column["generated"][-1])
        ]
        parts.append(f"Total variation distance from them: {far[0]} at first, {far[1]} at last.")
    return Plot(partial(draw_snapshots, column, titles, counts), " ".join(parts), name, internal)


def _distance_of(one: list[float], other: list[float]) -> float:
    return float(0.5 * np.abs(np.asarray(one) - np.asarray(other)).sum())


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
