"""Files that come with the package, from a folder at the top of the project."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from dpsynth.errors import DataError


def shipped_folder(package: str, name: str, checkout: str) -> Traversable:
    """Return a folder of the project: its installed copy in a package, or else the checkout's.

    Parameters
    ----------
    package, name : str
        Where ``pyproject.toml`` installs it.
    checkout : str
        Its path in the project.

    Raises
    ------
    DataError
        If neither is there.

    Examples
    --------
    >>> shipped_folder("dpsynth.datasets", "cards", "datasets").joinpath("flchain.yaml").is_file()
    True
    """
    installed = resources.files(package).joinpath(name)
    own = Path(__file__).resolve().parents[2] / checkout
    for folder in (installed, own):
        if folder.is_dir():
            return folder
    raise DataError(f"a part of the package is absent: neither {package}.{name} nor {checkout} is there")


def stems(folder: Traversable) -> tuple[str, ...]:
    """Return the names of its YAML files without their suffix, in alphabetical order."""
    found = [entry.name for entry in folder.iterdir()]
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml")))
