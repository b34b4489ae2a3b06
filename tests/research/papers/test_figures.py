import re
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from dpsynth.errors import InputError
from dpsynth.report.drawing import style
from dpsynth.research.papers import figures, lowy_figures

SLOW = ("jia-03-accuracy", "jia-10-composition")  # they compose numerically
DRAWINGS = [
    pytest.param(drawing, id=drawing.name, marks=[pytest.mark.slow] if drawing.name in SLOW else [])
    for drawing in figures.drawings()
]
QUICK = ("jia-02", "ghazi-issa-01")
NAMES = ["jia-02-testing", "ghazi-issa-01-region"]


def test_drawings_are_all_there_and_named_once():
    """A paper that is forgotten, a name used twice, or one that the error would not lead to."""
    names = [drawing.name for drawing in figures.drawings()]
    assert len(names) == len(set(names)) == 25
    found = {re.match(r"[a-z-]+?(?=-\d)", name)[0] for name in names}
    assert found == {"jia", "ghazi-issa", "mosaicrown", "lowy"}


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_drawings_show_finite_curves_with_labels(drawing, monkeypatch):
    """A drawing that raises, an empty panel, a NaN in a curve, an axis without a label, or no legend."""
    pytest.importorskip("matplotlib")
    along = lowy_figures.along
    monkeypatch.setattr(lowy_figures, "along", lambda *given, **fixed: along(*given, trials=2, **fixed))
    assert len(drawing.caption) > 80 and drawing.caption.endswith(".")
    figure = drawing.figure()
    legends = list(figure.legends)
    for axis in figure.axes:
        assert axis.get_xlabel() and axis.get_ylabel() and axis.lines
        legends += [axis.get_legend()] if axis.get_legend() else []
        for curve in axis.lines:
            assert np.isfinite(np.asarray(curve.get_xydata(), dtype=float)).all()
    assert legends
    assert min(text.get_fontsize() for legend in legends for text in legend.get_texts()) >= 8


def test_write(tmp_path):
    """Files that are missing, not XML or left half-way; a README without a caption or with a dead link."""
    pytest.importorskip("matplotlib")
    lines = []
    paths = figures.write(tmp_path / "new" / "folder", QUICK, progress=lines.append)
    assert [path.name for path in paths] == [*(f"{name}.svg" for name in NAMES), "README.md"]
    assert sorted(paths) == sorted((tmp_path / "new" / "folder").iterdir())
    assert all(re.fullmatch(rf"{name}: \d+\.\d s", line) for name, line in zip(NAMES, lines, strict=True))
    for name, path in zip(NAMES, paths, strict=False):
        root = ElementTree.parse(path).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.find("{http://www.w3.org/2000/svg}title").text == name
        assert sum(1 for _ in root.iter("{http://www.w3.org/2000/svg}path")) > 20
    text = paths[-1].read_text(encoding="utf-8")
    assert text.startswith("# ") and re.findall(r"!\[.*\]\((.*)\)", text) == [f"{name}.svg" for name in NAMES]
    for drawing in figures.drawings():
        assert (drawing.caption in text) == (drawing.name in NAMES)


def test_files_come_out_the_same_whatever_the_users_settings(tmp_path):
    """Dates, random identifiers, or a user's matplotlib settings in the files."""
    mpl = pytest.importorskip("matplotlib")
    first = figures.write(tmp_path / "first", QUICK)
    with mpl.rc_context(
        {"lines.linewidth": 9.0, "font.size": 30.0, "svg.hashsalt": None, "axes.grid": False}
    ):
        second = figures.write(tmp_path / "second", QUICK)
        assert mpl.rcParams["lines.linewidth"] == 9.0  # and they are the user's again afterwards
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_the_style_holds_while_a_figure_is_drawn():
    """Settings that end with the making of the axes: lines and legends would look otherwise."""
    pytest.importorskip("matplotlib")

    def draw():
        figure, (axis, _) = style.panels(1, 2)
        for _ in range(2):
            axis.plot([0, 1], [0, 1], label="twice", **style.line(0))
        style.legend_below(figure, axis)
        return figure

    figure = style.Drawing("name", "caption", draw).figure()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["twice"]
    assert legend.get_texts()[0].get_fontsize() == 8 and not legend.get_frame_on()
    assert figure.axes[0].lines[0].get_linewidth() == 1.6
    assert np.array_equal(figure.get_size_inches(), [6.8, 2.8])


@pytest.mark.slow
def test_a_second_write_adds_to_the_readme_and_replaces_files(tmp_path):
    """A README that forgets the figures of an earlier call, or a figure that stays the old one."""
    pytest.importorskip("matplotlib")
    figures.write(tmp_path, QUICK[:1])
    (tmp_path / f"{NAMES[0]}.svg").write_text("old")
    paths = figures.write(tmp_path, "ghazi-issa-01")  # one beginning alone is a sequence of one
    assert [path.name for path in paths] == [f"{NAMES[1]}.svg", "README.md"]
    assert all(f"({name}.svg)" in paths[-1].read_text(encoding="utf-8") for name in NAMES)
    figures.write(tmp_path, QUICK)
    assert (tmp_path / f"{NAMES[0]}.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_figure_that_fails_leaves_no_half_file(tmp_path, monkeypatch):
    """A broken file in the place of a whole one."""
    pytest.importorskip("matplotlib")
    (path, _) = figures.write(tmp_path, QUICK[:1])
    whole = path.read_bytes()

    def fail(self, file, **_):
        file.write_text("half")
        raise RuntimeError

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
    with pytest.raises(RuntimeError):
        figures.write(tmp_path, QUICK[:1])
    assert path.read_bytes() == whole and len(list(tmp_path.iterdir())) == 2


def test_an_unknown_beginning_is_named_before_anything_is_drawn(tmp_path):
    """A typing error that draws nothing, or the rest, in silence."""
    with pytest.raises(InputError, match=r"'jai'. The papers are jia, ghazi-issa, mosaicrown, lowy"):
        figures.write(tmp_path / "out", ["jia-02", "jai"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("below", ["", "inner"])
def test_a_folder_that_is_a_file(tmp_path, below):
    """A traceback, or a file that is overwritten."""
    pytest.importorskip("matplotlib")
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(InputError, match=r"taken.* cannot be made a folder"):
        figures.write(tmp_path / "taken" / below, QUICK)
    assert (tmp_path / "taken").read_text() == "mine"


def test_without_matplotlib(tmp_path, monkeypatch):
    """An import error that does not say what to do."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match="drawing needs matplotlib: pip install matplotlib"):
        figures.write(tmp_path, QUICK)
