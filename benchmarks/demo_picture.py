"""README's picture of the demo: the first pictures of its page.

    make demo
    python -m benchmarks.demo_picture runs/demo docs/figures/demo.png

It shows real records without noise. The demo's table is public.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import matplotlib.image
import matplotlib.pyplot as plt

from dpsynth.report.blocks import Plots
from dpsynth.report.overview import overview_section
from dpsynth.runs.folder import RunFolder


def main(run: str, out: str) -> None:
    section = overview_section(RunFolder(Path(run)).read_report())
    plots = [plot for block in section.blocks if isinstance(block, Plots) for plot in block.plots]
    figure, axes = plt.subplots(1, len(plots), figsize=(3.4 * len(plots), 3.7), layout="constrained")
    for axis, plot in zip(axes, plots, strict=True):
        pixels = io.BytesIO()
        plot.figure().savefig(pixels, format="png", dpi=200)
        pixels.seek(0)
        axis.imshow(matplotlib.image.imread(pixels), interpolation="lanczos")
        axis.set_axis_off()
        axis.set_anchor("N")
        axis.set_title(re.split(r"[.:(]", plot.caption)[0], fontsize=9, wrap=True)
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
