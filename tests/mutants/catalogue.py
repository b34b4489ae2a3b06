"""The list of mutants: small named faults in the package and the tests that must notice them.

A room is a TOML file beside this one with a table for each mutant::

    [no-projection]
    promise = "the critic's matrices have spectral norm at most 1 at every step"
    symbol = "CriticStep.__call__"                # a function, method, class or constant of dpsynth
    old = "self.constrain(critic)"                # occurs once in it; a list where several places change
    new = "critic"                                # of the same length
    tests = ["test_norms[relu]"]                  # some of them must fail

Symbols and tests are named without their files and found wherever they stand, so moving them costs nothing.
Where several files have one of that name, the file comes first, as in ``theorems._norm`` and
``test_step.py::test_norms``. Several places in different symbols of one file have a list of symbols.

``old`` and ``new`` are an expression each, or statements. They are compared as syntax: layout, quotes and
comments do not count. ``...`` as the body of a statement is whatever stands there, and stays. Where ``new``
is empty, the statements are left out.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent

HERE = Path(__file__).resolve().parent
KEYS = {"promise", "symbol", "old", "new", "tests"}


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
    edits : tuple of (symbol, old, new)
        Applied in order; each old piece of syntax occurs once in its symbol.
    tests : tuple of str
        Node ids; at least one of them must fail, by an assertion.
    """

    room: str
    name: str
    promise: str
    edits: tuple[tuple[str, str, str], ...]
    tests: tuple[str, ...]

    def file(self, package: Path) -> str:
        """Where its symbols stand, in the package's folder; raise `Stale` unless that is one file."""
        found = {file for symbol, _, _ in self.edits for file in _files(package).get(symbol, ())}
        if len(found) != 1:
            places = ", ".join(sorted(found)) or "no file"
            raise Stale(
                f"{self._named} {', '.join(dict.fromkeys(e[0] for e in self.edits))} stands in {places}; "
                "name a symbol that stands in one, with its module where there are several"
            )
        return found.pop()

    def mutate(self, package: Path) -> tuple[str, str]:
        """Its file and the faulty text of it; raise `Stale` where that cannot be, or a test is gone."""
        if unknown := [test for test in self.tests if "/" not in test]:
            raise Stale(f"{self._named} no single file has the test {', '.join(unknown)}")
        file = self.file(package)
        tree = ast.parse((package / file).read_text(encoding="utf-8"))
        for symbol, old, new in self.edits:
            within = _definition(tree, file, symbol)
            try:
                before, after = _patterns(old, new)
            except SyntaxError as problem:
                raise Stale(f"{self._named} no Python: {problem.text}") from None
            places = list(_places(within, before))
            if len(places) != 1:
                raise Stale(
                    f"{self._named} this occurs {len(places)} times in {symbol} ({file}), and must occur "
                    f"once; mend the mutant so that it breaks the same promise:\n{old}"
                )
            owner, field, start = places[0]
            value = getattr(owner, field)
            if isinstance(value, list):
                part = slice(start, start + len(before))
                put = _with_bodies(after, value[part])
                value[part] = put or ([] if len(value) > len(before) else [ast.Pass()])
            else:
                setattr(owner, field, after[0])
        return file, ast.unparse(ast.fix_missing_locations(tree)) + "\n"

    @property
    def _named(self) -> str:
        return f"{self.room}.toml, [{self.name}]:"


def definitions(body: Sequence[ast.stmt], before: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """What a module defines, with its qualified name: functions, methods, classes, constants and fields."""
    for node in body:
        names = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
        yield from ((before + name, node) for name in names)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = [part for field in ("body", "orelse", "handlers") for part in getattr(node, field, [])]
            within = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
            yield from definitions(inner, before + within)


def _forms(file: str, name: str) -> list[str]:
    """A qualified name, with more and more of its module before it."""
    parts = file.removesuffix(".py").removesuffix("/__init__").split("/")
    return [".".join([*parts[place:], name]) for place in range(len(parts) + 1)]


@cache
def _files(package: Path) -> dict[str, set[str]]:
    """Files of a package that define a symbol, by each form of its name."""
    found: dict[str, set[str]] = {}
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package).as_posix()
        for name, _ in definitions(ast.parse(path.read_text(encoding="utf-8")).body):
            for form in _forms(file, name):
                found.setdefault(form, set()).add(file)
    return found


def _definition(tree: ast.Module, file: str, symbol: str) -> ast.stmt:
    """The last one of that name, so that overloads do not stand for their function."""
    nodes = dict(definitions(tree.body))
    return next(node for name, node in nodes.items() if symbol in _forms(file, name))


def _patterns(old: str, new: str) -> tuple[list[ast.AST], list[ast.AST]]:
    """Both as one expression each, or as statements."""
    parsed = [list[ast.AST](ast.parse(dedent(text.strip("\n"))).body) for text in (old, new)]
    if all(len(body) == 1 and isinstance(body[0], ast.Expr) for body in parsed):
        return tuple([body[0].value] for body in parsed)  # type: ignore[attr-defined, return-value]
    return parsed[0], parsed[1]


def _places(within: ast.AST, pattern: list[ast.AST]) -> Iterator[tuple[ast.AST, str, int]]:
    """Where a pattern stands: the node, its field, and the place in it if it is a list."""
    for owner in ast.walk(within):
        for field, value in ast.iter_fields(owner):
            nodes = value if isinstance(value, list) else [value]
            for start in range(len(nodes) - len(pattern) + 1):
                if all(map(_same, nodes[start : start + len(pattern)], pattern)):
                    yield owner, field, start


def _open(node: object) -> bool:
    """Whether a statement of a pattern has any body."""
    body = getattr(node, "body", None)
    return isinstance(body, list) and [ast.unparse(part) for part in body] == ["..."]


def _same(node: object, pattern: object) -> bool:
    """Equal as syntax, be it read or assigned to."""
    if isinstance(pattern, list):
        return isinstance(node, list) and len(node) == len(pattern) and all(map(_same, node, pattern))
    if not isinstance(pattern, ast.AST):
        return type(node) is type(pattern) and node == pattern
    if isinstance(pattern, ast.expr_context):
        return isinstance(node, ast.expr_context)
    if type(node) is not type(pattern):
        return False
    kept = {"body", "orelse"} if _open(pattern) else set()
    return all(
        _same(getattr(node, field, None), value)
        for field, value in ast.iter_fields(pattern)
        if field not in kept
    )


def _with_bodies(new: list[ast.AST], old: list[ast.AST]) -> list[ast.AST]:
    """Fill the open statements of a replacement, in order, with what stood there."""
    bodies = (node for node in old if isinstance(getattr(node, "body", None), list))
    for node in filter(_open, new):
        found = next(bodies)
        for field in ("body", "orelse"):
            if hasattr(found, field) and hasattr(node, field):
                setattr(node, field, getattr(found, field))
    return new


@cache
def _tests(folder: Path) -> dict[str, list[str]]:
    """Files below a folder that have a test, by its name."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.setdefault(name, []).append(path.relative_to(folder.parent).as_posix())
    return found


def _node_id(test: str, folder: Path) -> str:
    """A test with its file; as it is where no file has it, or several."""
    file, _, name = test.rpartition("::")
    standing = _tests(folder).get(name.split("[")[0], [])
    found = [path for path in standing if f"/{path}".endswith(f"/{file}" if file else path)]
    return f"{found[0]}::{name}" if len(found) == 1 else test


def read_room(path: Path, tests: Path) -> list[Mutant]:
    """The mutants of one file, in its order, whose tests stand somewhere in a folder."""
    found = []
    for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
        if set(table) != KEYS:
            raise Stale(f"{path.name}, [{name}]: a mutant has {', '.join(sorted(KEYS))}")
        old, new = (v if isinstance(v, list) else [v] for v in (table["old"], table["new"]))
        symbols = table["symbol"] if isinstance(table["symbol"], list) else [table["symbol"]] * len(old)
        edits = tuple(zip(symbols, old, new, strict=True))
        named = tuple(_node_id(test, tests) for test in table["tests"])
        found.append(Mutant(path.stem, name, table["promise"], edits, named))
    return found


def read_rooms(folder: Path = HERE, tests: Path = HERE.parent) -> list[Mutant]:
    """All mutants, room by room."""
    return [mutant for path in sorted(folder.glob("*.toml")) for mutant in read_room(path, tests)]
