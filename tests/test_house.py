"""The guide to the house is true."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from collections import defaultdict
from pathlib import Path

import dpsynth

ROOT = Path(dpsynth.__file__).parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
THEMES = re.findall(r"^\| (.+?) \| `(dpsynth/\S+)` \|$", GUIDE, flags=re.MULTILINE)


def test_a_theme_is_where_the_guide_says():
    """A module that was moved or renamed, or no longer speaks of its theme; a table that nobody reads."""
    lost = []
    for theme, file in THEMES:
        text = (ROOT / file).read_text(encoding="utf-8").lower() if (ROOT / file).exists() else ""
        words = re.findall(r"theorem \d\.\d\.\d|[a-zö–-]{4,}", theme.lower())
        if not any(word.replace("–", " and ").split(" and ")[0] in text for word in words):
            lost.append((theme, file))
    assert not lost and len(THEMES) >= 20


#: Still to be marked; tables that anybody can download; rows of a matrix.
UNMARKED = {"preparations.py", "ghazi_issa_local.py"}


def test_an_error_that_names_a_row_is_marked():
    """An error that shows a private row, line or cell and does not say that it is for the owner alone."""
    found = []
    for path in (ROOT / "dpsynth").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text if re.search(r"(row|line) \{", text) else "")):
            called = getattr(getattr(node, "func", None), "id", "")
            if called.endswith("Error") and re.search(r"\b(row|line) \{", ast.unparse(node)):
                found.append(path.name)
    assert set(found) <= UNMARKED, "raise dpsynth.errors.of_records(message) in its place"


def test_the_guide_lists_every_folder():
    """A folder that the guide's layout does not name, or a name in it that is gone."""
    layout = GUIDE.split("## How the code is laid out")[1].split("\n## ")[0]
    for name in re.findall(r"`([\w./]+(?:/|\.py))`", layout):
        inside = (ROOT / "dpsynth").rglob(name.rstrip("/"))
        assert (ROOT / name).exists() or any(inside), name
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "dpsynth").rglob("*.py")} - {Path("dpsynth")}
    missing = [str(folder) for folder in folders if f"{folder.name}/`" not in layout]
    assert not missing


def rooms() -> list[str]:
    """Packages whose ``__init__`` says what users may import."""
    found = [path.parent.relative_to(ROOT) for path in sorted((ROOT / "dpsynth").rglob("__init__.py"))]
    return [".".join(path.parts) for path in found if "__all__" in (ROOT / path / "__init__.py").read_text()]


def test_the_reference_shows_every_room():
    """Catches a package that the page of public names leaves out, or one on it that is not public.

    That each of their names is shown is checked while the site is built (mkdocs_hooks.py).
    """
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    papers = importlib.import_module("dpsynth.research.papers")
    modules = {"dpsynth.errors", *(f"{papers.__name__}.{name}" for name in papers.__all__)}
    shown = re.findall(r"^::: (\S+)$", page, flags=re.MULTILINE)
    assert sorted(shown) == sorted({*rooms(), *modules})


def test_every_public_name_is_there():
    """Catches a name that moved while its package still looks for it in the old place."""
    for room in rooms():
        package = importlib.import_module(room)
        for name in package.__all__:
            assert hasattr(package, name) or importlib.util.find_spec(f"{room}.{name}"), (room, name)


def test_one_name_has_one_meaning():
    """Catches a class or function whose public name means something else in another module.

    ``dpsynth.load`` reads a model and ``dpsynth.datasets.load`` a data set: users write the package as well.
    """
    places = defaultdict(set)
    for path in sorted((ROOT / "dpsynth").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                places[node.name].add(path.relative_to(ROOT).as_posix())
    assert {name: files for name, files in places.items() if len(files) > 1}.keys() <= {"load"}


def test_guides_import_public_names_alone():
    """A guide that teaches a module which may move tomorrow, and does not say so."""
    public = {f"{room}.{name}" for room in rooms() for name in importlib.import_module(room).__all__}
    public |= {"dpsynth", "dpsynth.parallel.connected", *rooms()}
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = page.read_text(encoding="utf-8")
        if "they may move in any version of dpsynth" in text:  # a page for those who extend it
            assert page.name == "own-generator.md"
            continue
        for home, names in re.findall(r"^\s*from (dpsynth[\w.]*) import (.+)$", text, flags=re.MULTILINE):
            for name in re.findall(r"\w+", names.split("#")[0]):
                assert f"{home}.{name}" in public, f"{page.name}: {home}.{name}"
        for home in re.findall(r"^\s*import (dpsynth[\w.]*)", text, flags=re.MULTILINE):
            assert home in public, f"{page.name}: {home}"


#: Who runs releases: the count of a fit, its parts by their reading, and two parts of several releases.
RUNNERS = {"fit.py", "part.py", "network.py", "fitted_study.py"}


def test_releases_are_ordered_in_one_place():
    """A second place that writes a fit's releases in order, and drifts from the first."""
    found = {}
    for path in (ROOT / "dpsynth").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "ledger" not in text:
            continue
        calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        names = [ast.unparse(call) for call in calls]
        if count := sum(name.endswith("ledger.run") or name.endswith("ledger_.run") for name in names):
            found[path.name] = count
    assert found.keys() == RUNNERS
    assert found["fit.py"] == found["part.py"] == 1
