"""Each run tries the same examples: one that chance finds would fail somebody else's change."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROPERTY = """
from hypothesis import given, strategies as st

@given(st.floats(0, 1))
def test_tried(x):
    with open({path!r}, "a") as file:
        file.write(f"{{x}}\\n")
"""


def tried(folder, fresh):
    """The examples of one run of a property beside the suite's own configuration."""
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    (folder / "test_one.py").write_text(PROPERTY.format(path=str(folder / "seen")))
    (folder / "seen").unlink(missing_ok=True)
    environ = {key: value for key, value in os.environ.items() if not key.startswith("DPSYNTH_TEST")}
    environ |= {"DPSYNTH_TEST_RANDOMNESS": "fresh"} if fresh else {}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    subprocess.run(command, cwd=folder, env=environ, check=True, capture_output=True)
    return (folder / "seen").read_text().split()


@pytest.mark.slow
def test_examples_are_the_same_in_each_run_and_new_in_a_search(tmp_path):
    """Catches a property whose examples depend on chance, and a search that tries the old ones."""
    usual = tried(tmp_path, fresh=False)
    assert usual == tried(tmp_path, fresh=False)
    searched = tried(tmp_path, fresh=True)
    assert len(searched) > 2 * len(usual) and len({*searched} & {*usual}) < len(usual)
