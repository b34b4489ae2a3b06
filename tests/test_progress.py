"""What long work shows: a bar on a terminal and in a notebook, lines in a log, nothing in a script."""

from __future__ import annotations

import io
import sys
import time
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest

from dpsynth import infer_schema, progress
from dpsynth.synthesis.training import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(pause: float = 0.0) -> None:
    with progress.run_bars() as (training, stages):
        for step in (50, 100):
            time.sleep(pause)
            training(Progress(step, 200, {"step": step, "noise_std": 42.3, "score_generated": -0.1}))
        time.sleep(pause)
        for stage in ("utility", "similarity"):
            for done in (0.0, 0.5, 1.0):
                stages(stage, done)


def test_a_terminal_shows_bars_without_internals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch `noise_std 42.3` shown to whoever asked for a table."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    work(pause=0.3)  # bars are drawn ten times a second
    text = shown.getvalue()
    assert "fitting" in text and "training" in text and "50%" in text and "similarity" in text
    assert "noise" not in text and "score" not in text and "42" not in text


def test_a_log_has_a_line_a_stage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch an evaluation of an hour that writes nothing into its log, or a line for every step."""
    work()
    assert capsys.readouterr().err == "evaluating: utility\nevaluating: similarity\n"
    monkeypatch.setattr(progress, "_LOG_SECONDS", 0.0)
    work()
    captured = capsys.readouterr()
    assert "training: 100 of 200 WGAN critic steps\n" in captured.err and captured.out == ""


def test_an_estimate_stands_beside_its_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a training that shows its steps alone, or a distance without its error."""
    monkeypatch.setattr(progress, "_LOG_SECONDS", 0.0)
    with progress.training_bar() as show:
        show(Progress(50, 200, {"step": 50}, (0.6123, 0.0178)))
        show(Progress(100, 200, {"step": 100}))
    first, second = capsys.readouterr().err.splitlines()
    assert first == "training: 50 of 200 WGAN critic steps, Wasserstein distance 0.612 ± 0.018"
    assert second == "training: 100 of 200 WGAN critic steps"


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A notebook's kernel, and what its cell showed, one after the other."""
    shown: list[str] = []

    def update(drawn) -> None:
        shown.append(drawn if isinstance(drawn, str) else drawn._repr_mimebundle_([], [])["text/html"])

    def display(drawn: str, display_id: bool):
        shown.append(drawn)
        return SimpleNamespace(update=update)

    kernel = ModuleType("IPython")
    module = ModuleType("IPython.display")
    module.HTML, module.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(progress, "_NOTEBOOK_SECONDS", 0.0)
    return shown


def test_a_notebook_shows_bars_and_keeps_none(outputs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch a fit in a notebook without a bar, a bar that is saved with it, or internals in it."""
    work()
    text = " ".join(outputs)
    assert "fitting" in text and "training" in text and "50%" in text and "similarity" in text
    assert "noise" not in text and outputs[0] == outputs[-1] == "" and capsys.readouterr().err == ""
    with pytest.raises(KeyboardInterrupt), progress.training_bar():
        raise KeyboardInterrupt
    assert outputs[-1] == ""


def test_python_shows_a_bar_where_somebody_watches(
    outputs: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a bar beside the caller's own, or one in a script, in a log, or without a terminal."""
    frame, told = pd.DataFrame({"age": [31, 58, 44]}), []
    infer_schema(frame)
    assert any("drafting" in shown or "reading" in shown for shown in outputs)
    outputs.clear()
    infer_schema(frame, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 1)] and not outputs
    monkeypatch.setattr("rich.console._is_jupyter", lambda: False)
    monkeypatch.delattr(sys, "ps1", raising=False)
    infer_schema(frame)
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)  # a prompt whose stderr is a file
    infer_schema(frame)
    captured = capsys.readouterr()
    assert not outputs and captured.out == captured.err == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    assert progress.watched()
    monkeypatch.delattr(sys, "ps1")
    assert not progress.watched()
