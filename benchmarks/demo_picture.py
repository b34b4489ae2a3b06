"""README's picture of the demo: four columns of both tables, and both matrices of associations.

    make demo
    python -m benchmarks.demo_picture runs/demo docs/figures/demo.png

It shows real records without noise. The demo's table is public.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import matplotlib.image
import matplotlib.pyplot as plt

from dpsynth.runs.folder import RunFolder


def main(run: str, out: str) -> None:
    report = RunFolder(Path(run)).read_report()
    columns = [name for name in report.plots if name.startswith("marginal[")][:4]
    matrices = ["associations[synthetic]", "associations[train]"]
    figure, axes = plt.subplots(2, 3, figsize=(12, 6.4), layout="constrained")
    places = [*axes[:, 0], *axes[:, 1], *axes[:, 2]]
    for axis, name in zip(places, [*columns, *matrices], strict=True):
        drawn, pixels = report.plot(name), io.BytesIO()
        drawn.savefig(pixels, format="png", dpi=200, bbox_inches="tight")
        pixels.seek(0)
        axis.imshow(matplotlib.image.imread(pixels), interpolation="lanczos")
        axis.set_axis_off()
        title = name.removeprefix("marginal[").removesuffix("]").replace("_", " ")
        if name in matrices:
            title = f"associations, {'synthetic' if name == matrices[0] else 'real'}"
        axis.set_title(title, fontsize=11)
    figure.savefig(out, dpi=130)


if __name__ == "__main__":
    main(*sys.argv[1:])
