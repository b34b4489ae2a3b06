"""What an installation carries."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from dpsynth.datasets import names
from dpsynth.datasets.data_cards import cards_folder

ROOT = Path(__file__).resolve().parents[2]


def test_every_package_is_listed() -> None:
    """A package that pyproject.toml does not name is left out of the wheel."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    found = {".".join(p.parent.relative_to(ROOT).parts) for p in (ROOT / "dpsynth").rglob("__init__.py")}
    of_yaml = {
        "dpsynth.datasets.cards": "datasets",
        "dpsynth.research.replications.protocols": "configs/studies",
        "dpsynth.runs.configs": "configs",
    }
    assert set(listed["packages"]) == found | set(of_yaml)
    assert listed["package-dir"] == {"dpsynth": "dpsynth", **of_yaml}
    assert all("*.yaml" in listed["package-data"][package] for package in of_yaml)


def test_every_file_beside_the_code_is_installed() -> None:
    """A template, a query or a definition that package-data does not name is left out of the wheel."""
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"][
        "package-data"
    ]
    packed = {
        path
        for package, patterns in data.items()
        for pattern in patterns
        for path in ROOT.joinpath(*package.split(".")).glob(pattern)
    }
    beside = {p for p in (ROOT / "dpsynth").rglob("*") if p.is_file() and p.suffix not in (".py", ".pyc")}
    assert beside == packed


def test_the_set_without_tensorflow_privacy_is_whole() -> None:
    """A dependency that is not in the list of `make test-numpy2`, or a list that has gone back to numpy 1."""
    lines = (ROOT / "tests/constraints-numpy2.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.lower().split("==") for line in lines if not line.startswith("#"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {re.split(r"[^\w-]", text)[0].lower() for text in project["dependencies"]}
    assert needed - set(pinned) == {"tensorflow-privacy"}
    assert int(pinned["numpy"].split(".")[0]) >= 2 and pinned["dp-accounting"] == "0.6.0"


def test_cards_are_those_of_the_checkout() -> None:
    """A stale installed copy of the cards, or none, would be used instead of the project's."""
    own = sorted((ROOT / "datasets").glob("*.yaml"))
    assert names() == tuple(path.stem for path in own)
    for path in own:
        assert (cards_folder() / path.name).read_text(encoding="utf-8") == path.read_text(encoding="utf-8")
