"""Without TensorFlow: all but the generators that train a critic, and one sentence where one is asked for."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: what only critics need
TENSORFLOW = ("tensorflow", "tensorflow-privacy")
BLOCKED = """
import sys, warnings
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0].startswith("tensorflow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

sys.meta_path.insert(0, Blocked())
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "tensorflow" else real(name, package)
"""


def test_the_light_list_is_that_of_the_package() -> None:
    """Catches a dependency that is absent, or of another version, where TensorFlow is left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def named(lines: list[str]) -> dict[str, str]:
        plain = [line.partition("#")[0].partition(";")[0].strip() for line in lines]
        split = [re.fullmatch(r"([\w-]+)(.*)", line) for line in plain if line]
        return {match[1]: match[2].partition(",")[0] for match in split if match is not None}

    whole = named(project["dependencies"])
    light = named((ROOT / "requirements-light.txt").read_text(encoding="utf-8").splitlines())
    assert light == {name: version for name, version in whole.items() if name not in TENSORFLOW}


@pytest.mark.slow
def test_what_works_without_tensorflow(tmp_path: Path) -> None:
    """Catches an import of TensorFlow on the way of a run, and a budget that is spent before it is missed."""
    code = (
        BLOCKED
        + """
import dpsynth
from dpsynth.cli import main
warnings.simplefilter("ignore")
columns = ["sex", "age", "meanbp", "hospdead"]
table = dpsynth.datasets.load("support2")
table.frame[columns].head(800).to_csv("t.csv", index=False)
schema = table.schema.select(columns).with_n_public(800)
schema.to_yaml("s.yaml")
own = ["--data", "t.csv", "--schema", "s.yaml", "--epsilon", "3", "--out"]
assert main(["run", *own, "runs"]) == 0
for generator in ("wgan-gp", "matching"):
    assert main(["fit", *own, "model", "--generator", generator]) == 2
    assert main(["run", *own, "other", "--generator", generator]) == 2
    assert main(["plan", "s.yaml"]) == 0
assert not any(name.startswith("tensorflow") for name in sys.modules)
"""
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr.count("need TensorFlow, which is not installed: pip install tensorflow") == 4
    assert {"report.html", "synthetic.csv"} <= {path.name for path in (tmp_path / "runs").iterdir()}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(("model", "other"))]
