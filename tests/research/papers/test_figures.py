"""The notebook with the figures of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from plain_words import complaints

import dpsynth.research.papers

NOTEBOOK = Path(dpsynth.research.papers.__file__).with_name("figures.ipynb")


def _code_cells() -> list[Any]:
    """The cells of code, which keep no outputs."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    book = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(book)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells)
    return cells


def _run(cells: list[Any]) -> None:
    scope: dict[str, object] = {}
    for cell in cells:
        exec(compile(cell.source, cell.id, "exec"), scope)


def test_every_cell_runs_and_its_golden_values_hold(capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a formula that a golden value contradicts, a lost figure, outputs of somebody's machine."""
    mpl.use("Agg")
    from matplotlib import pyplot

    cells = _code_cells()
    before = len(pyplot.get_fignums())
    _run(cells)
    assert len(pyplot.get_fignums()) - before == 5
    assert sum(cell.source.count("assert ") for cell in cells) >= 8
    assert len(capsys.readouterr().out.splitlines()) == 57
    pyplot.close("all")


def test_a_golden_value_that_differs_stops_the_notebook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Catches a check that cannot fail."""
    monkeypatch.setattr("dpsynth.research.papers.jia.laplace_tv", lambda scale: 0.3935)
    with pytest.raises(AssertionError):
        _run(_code_cells()[:2])
    assert "0.39347         0.3935  DIFFERS" in capsys.readouterr().out


def test_its_text_is_plain_english():
    """Catches text that is hard to read."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    book = nbformat.read(NOTEBOOK, as_version=4)
    assert not complaints("\n\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown"))
