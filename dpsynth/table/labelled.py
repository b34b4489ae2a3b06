"""Files of SPSS, Stata and SAS, whose cells are codes with labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpsynth.errors import DataError

#: ends of the names of files, and the function of pyreadstat that reads them
SUFFIXES = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}


def open_file(path: Path, **options: Any) -> tuple[Any, Any]:
    """Frame and metadata of a file, its codes as they stand. DataError says how to install what reads it."""
    try:
        import pyreadstat
    except ImportError:
        raise DataError(
            f"{path}: files of SPSS, Stata and SAS need pyreadstat. Install dpsynth-health[dictionaries]"
        ) from None
    reader = getattr(pyreadstat, SUFFIXES[path.suffix.lower()])
    if path.suffix.lower() in (".sav", ".zsav", ".dta", ".sas7bdat"):
        options["user_missing"] = True
    try:
        return reader(str(path), **options)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, OSError, UnicodeError) as problem:
        raise DataError(f"{path}: cannot be read ({' '.join(str(problem).split())})") from None
