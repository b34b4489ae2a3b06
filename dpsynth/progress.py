"""Progress of long work: bars on a terminal and in a notebook, lines in a log, nothing in a script.

Commands always show it. A function of Python shows it where somebody watches: in a notebook, or at a prompt.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeVar

# A log file gets a line on training this often.
_LOG_SECONDS = 30.0
# A notebook's bar is drawn again this often at most.
_NOTEBOOK_SECONDS = 0.2

#: Gets a line when a stage of a fit begins. Commands print it, and Python asks for it.
STAGES = logging.getLogger("dpsynth.stages")
STAGES.addHandler(logging.NullHandler())

Told = TypeVar("Told", bound=Callable[..., None])


class Steps(Protocol):
    """Steps of a training that are made, of those to be made."""

    @property
    def step(self) -> int:
        """Made."""

    @property
    def total(self) -> int:
        """To be made."""

    @property
    def estimate(self) -> tuple[float, float] | None:
        """Distance that is left between records and generated points, and its standard error, if known."""


@contextmanager
def shown_progress(
    given: Told | None, bar: Callable[[], AbstractContextManager[Told]]
) -> Iterator[Told | None]:
    """Give the caller's callback. If there is none, give a bar's if somebody watches, else None."""
    if given is not None or not watched():
        yield given
        return
    with bar() as draw:
        yield draw


def watched() -> bool:
    """Whether somebody sees what is drawn now: in a notebook, or at Python's prompt on a terminal."""
    if "IPython" not in sys.modules and not hasattr(sys, "ps1"):
        return False
    from rich.console import Console

    console = Console(stderr=True)
    return console.is_jupyter or (hasattr(sys, "ps1") and console.is_terminal)


class _Lines(logging.Handler):
    """Prints stages on stderr, wherever that is now."""

    def emit(self, record: logging.LogRecord) -> None:
        _say(record.getMessage())


@contextmanager
def stage_lines() -> Iterator[None]:
    """Print a line on stderr when a stage of a fit begins."""
    handler, level = _Lines(), STAGES.level
    STAGES.addHandler(handler)
    STAGES.setLevel(logging.INFO)
    try:
        yield
    finally:
        STAGES.setLevel(level)
        STAGES.removeHandler(handler)


def training_bar() -> AbstractContextManager[Callable[[Steps], None]]:
    """Give a callback that draws training progress on stderr, or writes lines if that is no terminal."""
    return _one_bar(_training)


def column_bar() -> AbstractContextManager[Callable[[int, int], None]]:
    """Give a callback that shows how many columns have been looked at, in the same way."""
    return _one_bar(lambda bar: _counted(bar, "reading", "drafting", "columns"))


def stage_bar() -> AbstractContextManager[Callable[[str, float], None]]:
    """Give a callback that shows the stages of an evaluation, in the same way."""
    return _one_bar(_stages)


def run_bars() -> AbstractContextManager[tuple[Callable[[Steps], None], Callable[[str, float], None]]]:
    """Give both callbacks. A terminal shows one set of bars at a time."""
    return _one_bar(lambda bar: (_training(bar), _stages(bar)))


@contextmanager
def _one_bar(callback: Callable[[Any], Any]) -> Iterator[Any]:
    with _bars() as bar:
        yield callback(bar)


@contextmanager
def _bars() -> Iterator[Any]:
    """Bars in a notebook or on stderr. None if that is no terminal."""
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    times = (rich.TaskProgressColumn(), rich.TimeElapsedColumn(), rich.TimeRemainingColumn())
    columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), *times)
    if console.is_jupyter:
        bars = rich.Progress(*columns, console=console, auto_refresh=False)
        with _in_notebook(bars):
            yield bars
    elif console.is_terminal:
        with rich.Progress(*columns, console=console, transient=True) as bars:
            yield bars
    else:
        yield None


@contextmanager
def _in_notebook(bars: Any) -> Iterator[None]:
    """Draw bars in one output of a cell, and leave it empty: rich itself leaves a widget in the notebook."""
    from IPython.display import HTML, display

    output = display(HTML(""), display_id=True)
    drawn = -_NOTEBOOK_SECONDS

    def draw() -> None:
        nonlocal drawn
        if time.monotonic() - drawn >= _NOTEBOOK_SECONDS:
            drawn = time.monotonic()
            output.update(bars)

    bars.refresh = draw
    try:
        yield
    finally:
        output.update(HTML(""))


def _training(bar: Any) -> Callable[[Steps], None]:
    # from the start: the first steps take seconds to compile
    count = _counted(bar, "fitting", "training", "WGAN critic steps")

    def show(progress: Steps) -> None:
        found = progress.estimate
        more = "" if found is None else f", Wasserstein distance {found[0]:.3f} ± {found[1]:.3f}"
        count(progress.step, progress.total, more)

    return show


def _counted(bar: Any, first: str, then: str, unit: str) -> Callable[..., None]:
    task = bar.add_task(first, total=None) if bar is not None else None
    told = time.monotonic()

    def draw(done: int, total: int, more: str = "") -> None:
        bar.update(task, description=then + more, total=total, completed=done, refresh=bar.console.is_jupyter)

    def tell(done: int, total: int, more: str = "") -> None:
        nonlocal told
        if time.monotonic() - told >= _LOG_SECONDS:
            told = time.monotonic()
            _say(f"{then}: {done:,} of {total:,} {unit}{more}")

    return tell if bar is None else draw


def _stages(bar: Any) -> Callable[[str, float], None]:
    tasks: dict[str, Any] = {}

    def draw(stage: str, done: float) -> None:
        if stage not in tasks:
            for earlier in bar.task_ids:
                bar.update(earlier, total=1.0, completed=1.0)
            tasks[stage] = bar.add_task(stage, total=1.0)
        bar.update(tasks[stage], completed=done, refresh=bar.console.is_jupyter)

    def tell(stage: str, done: float) -> None:
        if stage not in tasks:
            tasks[stage] = None
            _say(f"evaluating: {stage}")

    return tell if bar is None else draw


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
