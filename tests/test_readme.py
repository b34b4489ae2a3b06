"""Every line of the README's tour runs as printed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language, text=README):
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_readme_is_short():
    """Catches a README that grows, or whose first example comes late."""
    assert len(README.split()) <= 900
    assert len(README[: README.index("```python")].split()) <= 250


@pytest.mark.slow
def test_python_example_runs(tmp_path, monkeypatch, capsys):
    """Catches a README whose Python no longer runs, or prints another guarantee than it shows."""
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    (shown,) = blocks("text")
    assert printed.startswith(" ".join(shown.split()) + "\n") and "NOT PRIVATE" not in printed


@pytest.mark.slow
@pytest.mark.usefixtures("few_trials")
def test_shell_commands_run(tmp_path, monkeypatch, capsys):
    """Catches a README whose commands fail or leave something else, on a reader's own table.

    The first is run by the installed program, the rest in this process, which has imported everything.
    """
    from dpsynth.cli import main
    from dpsynth.datasets import load

    monkeypatch.chdir(tmp_path)
    table = load("randhie")
    table.frame.rename(columns={"limitation": "died"}).head(1000).to_csv("patients.csv", index=False)
    commands = [line for part in blocks("shell") for line in part.splitlines() if line.startswith("dpsynth ")]
    assert len(commands) >= 5
    first, *rest = [shlex.split(line, comments=True)[1:] for line in commands]
    program = Path(sys.executable).with_name("dpsynth")
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([str(program), *first], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, f"{first}\n{done.stderr}"
    draft = Path("schema.yaml")
    lines = draft.read_text(encoding="utf-8").splitlines(keepends=True)
    draft.write_text("".join(line for line in lines if "unreviewed:" not in line), encoding="utf-8")
    for words in rest:
        assert main(words) == 0, f"{words}\n{capsys.readouterr().err}"
    written = {path.name for path in Path("runs/patients").iterdir()}
    assert {"synthetic.csv", "model", "ledger.json", "report.html", "release.html"} <= written
