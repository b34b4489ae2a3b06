"""The notebook with the figures of the papers."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pytest
from plain_words import complaints

import dpsynth.research.papers

NOTEBOOK = Path(dpsynth.research.papers.__file__).with_name("figures.ipynb")


def test_every_cell_runs_and_its_golden_values_hold():
    """Catches a formula that a golden value contradicts, a lost figure, outputs of somebody's machine."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    mpl.use("Agg")
    from matplotlib import pyplot

    book = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(book)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells)
    scope: dict[str, object] = {}
    before, asserted = len(pyplot.get_fignums()), 0
    for cell in cells:
        exec(compile(cell.source, cell.id, "exec"), scope)
        asserted += cell.source.count("assert ")
    assert len(pyplot.get_fignums()) - before == 5 and asserted >= 8
    pyplot.close("all")


def test_its_text_is_plain_english():
    """Catches text that is hard to read."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    book = nbformat.read(NOTEBOOK, as_version=4)
    assert not complaints("\n\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown"))
