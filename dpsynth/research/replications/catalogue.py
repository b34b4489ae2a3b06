"""The protocols that come with the package, by name, and those of one's own, by path."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable

from dpsynth.errors import ConfigError
from dpsynth.files.shipped import shipped_folder, stems
from dpsynth.files.yaml_text import read_yaml
from dpsynth.research.replications.protocol import Protocol


def names() -> tuple[str, ...]:
    """Return the names of the protocols that come with the package, in alphabetical order."""
    return stems(_folder())


def find_protocol(name: str) -> Protocol:
    """Return a protocol by its name, or from a YAML file of one's own.

    Raises
    ------
    ConfigError
        If there is none of that name, or the file is not a protocol; the message starts with the file's name.

    Examples
    --------
    >>> find_protocol("no-such-study")
    Traceback (most recent call last):
    dpsynth.errors.ConfigError: there is no study 'no-such-study' (studies: ...)
    """
    if name.endswith(".yaml"):
        return read_yaml(name, Protocol.from_dict, error=ConfigError)
    if name not in names():
        raise ConfigError(f"there is no study {name!r} (studies: {', '.join(names())})")
    with resources.as_file(_folder().joinpath(f"{name}.yaml")) as path:
        return read_yaml(path, Protocol.from_dict, error=ConfigError)


def _folder() -> Traversable:
    return shipped_folder("dpsynth.research.replications", "protocols", "configs/studies")
