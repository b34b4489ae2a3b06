"""Draw figures of the papers behind the accounting from this package's own functions."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dpsynth.errors import InputError
from dpsynth.files.atomic import write_text
from dpsynth.report.drawing.style import Drawing, save
from dpsynth.research.papers import ghazi_issa_figures, jia, lowy_figures, mosaicrown

#: Titles and figures of the sources, by what the names of their figures begin with.
_PAPERS: dict[str, tuple[str, tuple[Drawing, ...]]] = {
    "jia": ('Jia et al. 2023, "Total variation distance privacy"', jia.DRAWINGS),
    "ghazi-issa": (
        'Ghazi and Issa 2024, "Total variation meets differential privacy"',
        ghazi_issa_figures.DRAWINGS,
    ),
    "mosaicrown": ('MOSAICrOWN deliverable D5.3, "Identifiability bounds"', mosaicrown.DRAWINGS),
    "lowy": (
        'Lowy et al. 2024, "Why does differential privacy with large epsilon defend against practical '
        'membership inference attacks?"',
        lowy_figures.DRAWINGS,
    ),
}
_PREFACE = (
    "Drawn by dpsynth from its own accounting functions. Each caption says what the paper does not state and "
    "was chosen here."
)


def drawings() -> tuple[Drawing, ...]:
    """Return every figure that can be drawn, paper by paper."""
    return tuple(drawing for _, figures in _PAPERS.values() for drawing in figures)


def write(
    folder: str | os.PathLike[str],
    only: Sequence[str] = (),
    *,
    progress: Callable[[str], object] | None = None,
) -> list[Path]:
    """Draw figures into a folder as SVG, each file wholly or not at all, and the same bytes each time.

    ``only`` has beginnings of names, such as ``"jia"`` or ``"lowy-01"``. ``progress`` receives a line of text
    after each figure. The folder's ``README.md`` shows all figures in it, with their captions. Returns the
    paths of the figures, then of ``README.md``. InputError if no figure's name begins with one of ``only``,
    if the folder is a file, or without matplotlib.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in write(folder, ["jia-08"])]
    ['jia-08-log-ratio.svg', 'README.md']
    """
    chosen = _chosen((only,) if isinstance(only, str) else only)
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("drawing needs matplotlib: pip install matplotlib")
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder} cannot be made a folder: it is a file, or a folder above it is") from None
    written = []
    for drawing in chosen:
        started = time.perf_counter()
        written.append(_file(folder, drawing))
        save(drawing.figure(), written[-1], drawing.name, shared=True)
        if progress is not None:
            progress(f"{drawing.name}: {time.perf_counter() - started:.1f} s")
    readme = folder / "README.md"
    write_text(readme, _readme(folder), shared=True)
    return [*written, readme]


def _chosen(only: Sequence[str]) -> list[Drawing]:
    every = drawings()
    for prefix in only:
        if not any(drawing.name.startswith(prefix) for drawing in every):
            raise InputError(f"no figure's name begins with {prefix!r}. The papers are {', '.join(_PAPERS)}")
    return [drawing for drawing in every if not only or drawing.name.startswith(tuple(only))]


def _file(folder: Path, drawing: Drawing) -> Path:
    return folder / f"{drawing.name}.svg"


def _readme(folder: Path) -> str:
    parts = ["# Figures", _PREFACE]
    for title, figures in _PAPERS.values():
        there = [drawing for drawing in figures if _file(folder, drawing).is_file()]
        parts += [f"## {title}"] if there else []
        for drawing in there:
            parts += [f"### {drawing.name}", drawing.caption, f"![{drawing.name}]({drawing.name}.svg)"]
    return "\n\n".join(parts) + "\n"
