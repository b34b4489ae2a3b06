"""The versions that decide a result, for the foot of a report."""

from __future__ import annotations

import platform
from importlib import metadata

_PACKAGES = ("dpsynth", "dp-accounting", "numpy", "pandas", "scikit-learn", "scipy", "tensorflow")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that are installed.

    Examples
    --------
    >>> sorted(versions())[0:2]
    ['dp-accounting', 'dpsynth']
    """
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
