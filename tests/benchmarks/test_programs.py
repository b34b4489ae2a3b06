"""Every program of the benchmarks starts with the package as it is."""

import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
# Those that need an accelerator or an environment of their own say so before they read their options.
PROGRAMS = sorted(path.name for path in FOLDER.glob("*.py") if "add_argument" in path.read_text())


def test_the_programs_are_found():
    assert "growth.py" in PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_shows_its_options(program, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [str(FOLDER), str(FOLDER.parent), *sys.path])
    monkeypatch.setattr(sys, "argv", [program, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(FOLDER / program), run_name="__main__")
    assert ended.value.code in (0, None)
    assert "--" in capsys.readouterr().out
