"""What a command shows while it works: a bar on a terminal, lines in a log."""

from __future__ import annotations

import io
import sys
import time

import numpy as np
import pytest

from dpsynth.accounting.ledger import Ledger
from dpsynth.checks import together
from dpsynth.runs.commands import console
from dpsynth.synthesis.check_inputs import record_provenance
from dpsynth.synthesis.fit import Progress
from dpsynth.synthesis.options import FitOptions
from dpsynth.table.schema import Column, Schema


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(pause: float = 0.0) -> None:
    with console.run_bars() as (training, stages):
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
    monkeypatch.setattr(console, "_LOG_SECONDS", 0.0)
    work()
    captured = capsys.readouterr()
    assert "training: 100 of 200 critic steps\n" in captured.err and captured.out == ""


def test_a_table_of_a_thousand_columns_does_not_fill_the_screen() -> None:
    """Would catch a guarantee that names every unreviewed column: `sample` printed 28 KB."""
    columns = tuple(Column(name=f"laboratory_{i}", kind="integer", lower=0, upper=9) for i in range(843))
    ledger, rng = Ledger(), np.random.default_rng(0)
    unreviewed = {column.name: ("lower", "upper") for column in columns}
    record_provenance(ledger, Schema(columns=columns), FitOptions(), rng, unreviewed)
    (said,) = ledger.excluded
    assert "laboratory_9: lower, upper and 833 more" in said and "laboratory_10" not in said
    assert together([column.name for column in columns]).endswith("laboratory_9 and 833 more")
