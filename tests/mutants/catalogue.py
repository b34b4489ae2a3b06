"""The list of mutants: small named faults in the package's source and the tests that must notice them.

A room is a TOML file beside this one with a table for each mutant::

    [no-projection]
    promise = "the critic's matrices have spectral norm at most 1 at every step"
    file = "gan/step.py"                          # in dpsynth/
    old = '''self.constrain(critic),'''           # occurs once; a list where several places change
    new = '''critic,'''                           # of the same length
    tests = ["gan/test_step.py::test_norms"]      # in tests/; some of them must fail
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Stale(Exception):
    """A mutant that no longer applies."""


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Parameters
    ----------
    room, name : str
    promise : str
        What the fault breaks, in one line.
    file : str
        In the package's folder.
    edits : tuple of (old, new)
        Applied in order; each old text occurs exactly once.
    tests : tuple of str
        Node ids; at least one of them must fail, by an assertion.
    """

    room: str
    name: str
    promise: str
    file: str
    edits: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]

    def mutate(self, package: Path) -> str:
        """The faulty text of the file; raise `Stale` where the fault cannot be put in."""
        path = package / self.file
        if not path.is_file():
            raise Stale(f"{self.room}.toml, [{self.name}]: there is no file {self.file}")
        text = path.read_text(encoding="utf-8")
        for old, new in self.edits:
            if (found := text.count(old)) != 1:
                raise Stale(
                    f"{self.room}.toml, [{self.name}]: this text occurs {found} times in {self.file}, and "
                    f"must occur once; mend the mutant so that it breaks the same promise:\n{old}"
                )
            text = text.replace(old, new)
        return text


def read_room(path: Path) -> list[Mutant]:
    """The mutants of one file, in its order."""
    found = []
    for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
        if set(table) != {"promise", "file", "old", "new", "tests"}:
            raise Stale(f"{path.name}, [{name}]: a mutant has promise, file, old, new and tests")
        old, new = (v if isinstance(v, list) else [v] for v in (table["old"], table["new"]))
        edits = tuple(zip(old, new, strict=True))
        tests = tuple(f"tests/{test}" for test in table["tests"])
        found.append(Mutant(path.stem, name, table["promise"], table["file"], edits, tests))
    return found


def read_rooms(folder: Path = HERE) -> list[Mutant]:
    """All mutants, room by room."""
    return [mutant for path in sorted(folder.glob("*.toml")) for mutant in read_room(path)]
