"""A JSON file and arrays of numbers beside it in an ``npz`` file, which prove each other by checksums."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpsynth.errors import DataError
from dpsynth.files.atomic import parse_json, replaced, sealed, unsealed, write_text
from dpsynth.files.storage import check_format, damaged

Arrays = dict[str, np.ndarray]


def write_with_arrays(
    folder: Path, name: str, record: Mapping[str, Any], arrays: Arrays, *, shared: bool = False
) -> None:
    """Write ``name.json`` and ``name.npz`` into a folder. The record has a ``format`` and gets checksums."""
    whole = sealed({**record, "arrays_sha256": arrays_digest(arrays)})
    text = json.dumps(whole, indent=1, allow_nan=False, ensure_ascii=False)
    write_text(folder / f"{name}.json", text + "\n", shared=shared)
    with replaced(folder / f"{name}.npz", shared=shared) as temporary:
        np.savez(temporary, **arrays)


def read_with_arrays(folder: str | Path, name: str, known: int) -> tuple[dict[str, Any], Arrays]:
    """Read what :func:`write_with_arrays` wrote, without format and checksums.

    Raises DataError if a file is absent, changed or damaged, or if its format is not the ``known`` one.
    """
    folder = Path(folder)
    path = reading = folder / f"{name}.json"
    try:
        record = parse_json(path.read_text(encoding="utf-8"))
        reading = folder / f"{name}.npz"
        arrays = read_arrays(reading)
    except NotADirectoryError:
        raise DataError(f"{folder} is a file. Name the folder of a {name}") from None
    except FileNotFoundError as problem:
        raise DataError(f"{folder} holds no {name}: {Path(str(problem.filename)).name} is absent") from None
    except Exception as problem:  # a damaged file shows itself as one of many exceptions
        raise damaged(folder, name, f"{reading.name}: {problem or type(problem).__name__}") from None
    if not isinstance(record, dict) or "format" not in record:
        raise damaged(folder, name, f"{path.name} does not hold a record")
    whole = unsealed(record, f"{folder} holds a damaged {name}: {path.name}")
    check_format(folder, name, whole.pop("format"), known)
    if "sha256" not in record:
        raise damaged(folder, name, f"{path.name} has no checksum")
    if whole.pop("arrays_sha256", None) != arrays_digest(arrays):
        raise damaged(folder, name, f"{reading.name} is not the one that {path.name} was written with")
    return whole, arrays


def arrays_digest(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of arrays by name."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return digest.hexdigest()


def read_arrays(path: Path) -> Arrays:
    """The arrays of a file of `numpy.savez`, none of which takes more memory than its part of the file.

    `numpy.load` allocates what an array's header says, and unpacks whatever a compressed one holds. Raises
    ValueError, OSError or `zipfile.BadZipFile` for another file.
    """
    arrays: Arrays = {}
    with path.open("rb") as opened, zipfile.ZipFile(opened) as stored:
        members = stored.infolist()
        packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
        if packed or sum(member.file_size for member in members) > path.stat().st_size:
            raise ValueError("its arrays are larger than the file")
        for member in members:
            name = member.filename.removesuffix(".npy")
            with stored.open(member) as file:
                if np.lib.format.read_magic(file) != (1, 0):
                    raise ValueError(f"the array {name} is of an unknown version")
                shape, _, dtype = np.lib.format.read_array_header_1_0(file)
                size = math.prod(shape) * dtype.itemsize
                if dtype.kind not in "biuf" or min(shape, default=0) < 0:
                    raise ValueError(f"the array {name} does not hold numbers")
                if size != member.file_size - file.tell() or name in arrays:
                    raise ValueError(f"the array {name} does not have its size")
                file.seek(0)
                arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
    return arrays
