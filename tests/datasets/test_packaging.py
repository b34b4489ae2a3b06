"""What an installation carries."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from dpsynth.datasets import card, names
from dpsynth.datasets.card import cards_folder

ROOT = Path(__file__).resolve().parents[2]


def test_every_package_is_listed() -> None:
    """A package that pyproject.toml does not name is left out of the wheel."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    found = {".".join(p.parent.relative_to(ROOT).parts) for p in (ROOT / "dpsynth").rglob("__init__.py")}
    assert set(listed["packages"]) == found | {"dpsynth.datasets.cards"}
    assert listed["package-dir"]["dpsynth.datasets.cards"] == "datasets"


def test_cards_are_those_of_the_checkout() -> None:
    """A stale installed copy of the cards, or none, would be used instead of the project's."""
    own = sorted((ROOT / "datasets").glob("*.yaml"))
    assert names() == tuple(path.stem for path in own)
    for path in own:
        assert (cards_folder() / path.name).read_text(encoding="utf-8") == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", names())
def test_cards_name_no_machine(name: str) -> None:
    """A path of somebody's machine in a card helps nobody else."""
    found = card(name)
    assert "/" not in found.file
    assert not re.search(r'"(/|~/|[A-Z]:)', found.model_dump_json())
