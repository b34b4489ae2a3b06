"""Virtual environments, one a peer: made from its file of pinned versions, and kept.

A file ``environments/NAME.txt`` pins every package that the peer ran with. A peer that no registry has
(google/dpsynth, which moreover imports under our name; Tab-PE) has no file: install it from its public source
into an environment of your own and name its Python, ``--python google=PATH --python tabpe=PATH``.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.processes import run

PINS = Path(__file__).parent / "environments"
#: written last, so that an environment without it is made anew
STAMP = "made_from.txt"
#: seconds that an installation may take
INSTALLATION = 3600.0


@dataclass(frozen=True)
class Environment:
    """A Python that can run a peer, or why there is none."""

    python: str | None
    failed: str | None = None
    python_path: str | None = None


class Environments:
    """The environments under one folder, made when they are first asked for.

    Parameters
    ----------
    folder : path
        Where they are kept, one folder each.
    pythons : mapping of str to str
        Pythons that are there already, by environment.
    """

    def __init__(self, folder: Path, pythons: Mapping[str, str], pins: Path = PINS) -> None:
        self._folder, self._pins = folder, pins
        self._known = {name: Environment(path) for name, path in pythons.items()}
        ours = str(Path(__file__).parents[2])
        self._known.setdefault("ours", Environment(sys.executable, python_path=ours))

    def __getitem__(self, name: str) -> Environment:
        if name not in self._known:
            self._known[name] = self._made(name)
        return self._known[name]

    def _made(self, name: str) -> Environment:
        pins = self._pins / f"{name}.txt"
        if not pins.is_file():
            return Environment(None, f"no registry has it: name its Python, --python {name}=PATH")
        place, text = self._folder / name, pins.read_text()
        python = place / "bin" / "python"
        if (place / STAMP).is_file() and (place / STAMP).read_text() == text:
            return Environment(str(python))
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        install = [str(python), "-m", "pip", "install", "-q", "--no-deps", "-r", str(pins)]
        for command in ([sys.executable, "-m", "venv", str(place)], install):
            ended = run(command, folder=place, limit=INSTALLATION)
            if ended.failed:
                return Environment(None, f"not installed: {ended.failed}")
        (place / STAMP).write_text(text)
        return Environment(str(python))
