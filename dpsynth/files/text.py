"""Texts: YAML, Markdown, and tables as plain text and HTML."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from html import escape
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from dpsynth.errors import DataError

# ------------------------------------------------------------------------------------------------
# YAML text in and out, the YAML files that come with the package, and validation errors as one sentence.
#
# Schemas, data cards and run configurations are YAML files written by hand. All are read here by one set of
# rules, those of YAML 1.2. PyYAML's own rules (YAML 1.1) read ``no`` as false, ``1e-5`` as text, ``010`` as
# eight and ``12:30`` as 750. In a table of health records each of these is a real category or a real
# ``delta``.

T = TypeVar("T")
#: values that the aliases of a file may repeat
MOST_REPEATED = 100_000
#: lists and mappings within each other: some versions of the parser end the process where these are many
_DEEPEST = 100
_INT = re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$")
_FLOAT = re.compile(
    r"""^(?:[-+]?(?:0|[1-9][0-9]*)?\.[0-9]+(?:[eE][-+]?[0-9]+)?
         |[-+]?(?:0|[1-9][0-9]*)\.?(?:[eE][-+]?[0-9]+)
         |[-+]?(?:0|[1-9][0-9]*)\.
         |[-+]?\.(?:inf|Inf|INF)
         |\.(?:nan|NaN|NAN))$""",
    re.VERBOSE,
)
_RULES: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    ("tag:yaml.org,2002:int", _INT, "-+0123456789"),
    ("tag:yaml.org,2002:float", _FLOAT, "-+.0123456789"),
    ("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), "~nN\0"),
)


# What reads some other way elsewhere: PyYAML's rules, which the dumper inherits, and those of other readers.
_ELSEWHERE: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("tag:yaml.org,2002:bool", re.compile(r"^[yYnN]$"), "yYnN"),
    ("tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]+$|^0o[0-7]+$|^0x[0-9a-fA-F]+$"), "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"),
        "-+.0123456789",
    ),
)


# The parser and emitter in C where PyYAML has them: a column may have 300,000 categories.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 (PyYAML's own class attribute)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


for _tag, _pattern, _first in _RULES:
    _characters = ["" if character == "\0" else character for character in _first]
    _Loader.add_implicit_resolver(_tag, _pattern, _characters)
    _Dumper.add_implicit_resolver(_tag, _pattern, _characters)
for _tag, _pattern, _first in _ELSEWHERE:
    _Dumper.add_implicit_resolver(_tag, _pattern, list(_first))


# Other tags, such as !!timestamp, stand for nothing that a file of ours holds.
_PLAIN = ("bool", "float", "int", "map", "null", "seq", "str")
_Loader.yaml_constructors = {
    tag: construct
    for tag, construct in _Loader.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] in _PLAIN
}


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    known = set[Hashable]()
    for i, key in enumerate(keys):
        if not isinstance(key, Hashable):
            raise yaml.constructor.ConstructorError(
                None, None, "a key is a list or a mapping", node.start_mark
            )
        if key in known:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key!r} is given twice", node.value[i][0].start_mark
            )
        known.add(key)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _represent_sequence(dumper: _Dumper, data: Sequence[Any]) -> yaml.Node:
    # a list of words or numbers on one line, a list of columns one below the other
    inline = not any(isinstance(entry, list | tuple | dict) for entry in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=inline)


def _represent_text(dumper: _Dumper, data: str) -> yaml.Node:
    # PyYAML folds these as line breaks unless they are escaped, which only double quotes allow
    style = '"' if any(character in data for character in "\x85\u2028\u2029") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(list, _represent_sequence)
_Dumper.add_representer(tuple, _represent_sequence)


def load_yaml(text: str, *, origin: str = "YAML text", error: type[Exception] = ValueError) -> Any:
    """Read one YAML document. Otherwise raise ``error`` with one sentence that starts with ``origin``.

    Examples
    --------
    >>> load_yaml("{answer: no, delta: 1e-5, code: 010}")
    {'answer': 'no', 'delta': 1e-05, 'code': '010'}
    """
    try:
        _check_depth(text)
        if "*" in text:
            _check_aliases(yaml.compose(text, Loader=_Loader))
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        what = getattr(problem, "problem", None) or " ".join(str(problem).split())
        raise error(f"{origin}{line}: not valid YAML: {what}") from None
    except (ValueError, LookupError) as problem:  # such as of `!!int x`
        raise error(f"{origin}: not valid YAML: {problem}") from None


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise ValueError("its lists and mappings are nested too deeply")


def _check_aliases(root: yaml.Node | None) -> None:
    """Refuse a text that its aliases (``*a``) make far longer, or that is a part of itself."""
    sizes = dict[yaml.Node, int]()

    def size(node: yaml.Node) -> int:
        if node not in sizes:
            sizes[node] = sys.maxsize  # which stands if the node is met again within itself
            parts = chain.from_iterable(node.value) if isinstance(node, yaml.MappingNode) else node.value
            sizes[node] = 1 + (sum(map(size, parts)) if isinstance(node, yaml.CollectionNode) else 0)
        return sizes[node]

    if root is not None and size(root) - len(sizes) >= MOST_REPEATED:
        raise ValueError(
            f"its aliases (*) repeat {MOST_REPEATED:,} values or more. Write out what they stand for"
        )


def dump_yaml(data: Any) -> str:
    """Write lists, mappings, text, numbers, booleans and None as YAML that :func:`load_yaml` reads back.

    Text that any YAML reader would take for a number, a date or true/false is quoted.

    Examples
    --------
    >>> print(dump_yaml(["no", "y", "01", "12:30", "2019-03-01", "pain", 1, 1e-5]), end="")
    ['no', 'y', '01', '12:30', '2019-03-01', pain, 1, 1.0e-05]
    """
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def read_text(path: str | Path, *, error: type[Exception] = ValueError) -> str:
    """Read a UTF-8 text file. Raise ``error`` with one sentence if that fails."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise error(f"{path}: not UTF-8 text (byte {problem.start})") from None
    except (OSError, ValueError) as problem:  # ValueError: a zero byte in its name
        reason = getattr(problem, "strerror", None) or problem
        raise error(f"{path}: cannot be read ({reason})") from None


def read_yaml(path: str | Path, build: Callable[[Any], T], *, error: type[Exception]) -> T:
    """Build a record from a YAML file. Every ``error`` then starts with the file's name."""
    data = load_yaml(read_text(path, error=error), origin=str(path), error=error)
    try:
        return build(data)
    except error as problem:
        raise error(f"{path}: {problem}") from None


def one_sentence(problem: ValidationError, known: Sequence[str] = ()) -> str:
    """Say the first of pydantic's complaints as ``dotted.key message, got value``.

    ``known`` are the keys that would have been right, named when an unknown key was given at the top level.
    """
    found = problem.errors(include_url=False)
    # A misspelt key is also a missing one; the key that was written says more.
    first = next((e for e in found if e["type"] != "missing"), found[0])
    # pydantic appends the branch of a union that it tried to the location; readers need the key only
    branches = {"str", "int", "bool", "float", "is-instance"}
    location = [str(part) for part in first["loc"] if part not in branches and "[" not in str(part)]
    where = ".".join(location)
    kind, given = first["type"], first.get("input")
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        choices = f" (known keys: {', '.join(known)})" if known and len(location) == 1 else ""
        return f"{where} is not a known key{choices}"
    if kind == "missing":
        return f"{where} is required"
    message = first["msg"].removeprefix("Value error, ")
    if kind == "literal_error":
        # of a union with a word: the other branch says what else may be there
        others = [
            e for e in found if e["loc"][: len(location)] == first["loc"][: len(location)] and e is not first
        ]
        if others:
            message = f"{others[0]['msg']} or {first['ctx']['expected']}"
    if kind == "value_error":
        # a column within a schema: its name says more than its position
        if message.startswith(("column ", f"{where} ")):
            return message
        return f"{where}: {message}" if where else message
    message = message[:1].lower() + message[1:]
    for before, after in (("input should be ", "must be "), ("input should have ", "must have ")):
        message = message.replace(before, after)
    message = re.sub(
        r"a valid dictionary( or instance of \w+)?|a valid mapping", "a mapping of keys", message
    )
    return f"{where} {message}, got {_short(given)}" if where else f"{message}, got {_short(given)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def shipped_yaml(package: str, name: str) -> Any:
    """Return the content of a YAML file that is part of a package.

    Examples
    --------
    >>> sorted(shipped_yaml("dpsynth.report.templates", "words.yaml")["glossary"])
    ['effects', 'guarantees', 'levels', 'measures', 'studies']
    """
    text = resources.files(package).joinpath(name).read_text(encoding="utf-8")
    return load_yaml(text, origin=name)


def shipped_folder(package: str, name: str, checkout: str) -> Traversable:
    """Return a folder of the project: its installed copy in a package, or else the checkout's.

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


# ------------------------------------------------------------------------------------------------
# Text of users and of data in Markdown, unchanged but without effect on a renderer.
#
# Names of columns, categories, configurations and ledger entries come from outside. Markdown passes HTML
# through. Without escaping, ``<script>`` in a category would run wherever the report is rendered. A
# picture's address would be fetched.


def inert(text: str) -> str:
    """Return one line of text that is neither HTML, nor a link, a picture or the end of a table's cell.

    Examples
    --------
    >>> print(inert("<b>a|b</b> ![x](http://y)"))
    &lt;b>a\\|b&lt;/b> ![x]\\(http://y)
    >>> print(inert("age >= 90 & bmi < 18"))
    age >= 90 & bmi < 18
    """
    text = " ".join(text.split())
    # Only these begin HTML, an address or a sign by name. A formula stays readable on a console.
    text = re.sub(r"&(?=[#\w]|$)", "&amp;", text)
    text = re.sub(r"<(?=[A-Za-z/!?]|$)", "&lt;", text)
    text = re.sub(r"^>", "&gt;", text)
    # a link needs "](" or, where it is defined elsewhere, "]:"
    text = re.sub(r"\](?=[(:])", r"]\\", text)
    return re.sub(r"(?<!\\)((?:\\\\)*)\|", r"\1\\|", text)


def code_block(text: str, language: str = "") -> list[str]:
    """Return the lines of a block of code that nothing in the text can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", text, fence]


# ------------------------------------------------------------------------------------------------
# Tables as plain text and as HTML for a notebook, with text from outside escaped.

#: where a notebook says that what it shows must not be shared
PRIVATE = "Confidential: read off the records. Clear this output before you share the notebook."


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose columns stand under each other.

    Examples
    --------
    >>> print(text_table(("column", "kind"), [("age", "integer"), ("sex", "binary")]))
    column  kind
    age     integer
    sex     binary
    """
    lines = [[" ".join(cell.split()) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as HTML, every cell escaped.

    Examples
    --------
    >>> "<b>" in html_table(("column",), [("<b>",)])
    False
    """
    head = "".join(f'<th style="text-align: left">{escape(name)}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align: left">{escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_folded(summary: str, inside: str) -> str:
    """Return HTML that is shown on demand."""
    return f"<details><summary>{escape(summary)}</summary>{inside}</details>"


def html_lines(lines: Iterable[str], kind: str = "p") -> str:
    """Return each line as an element of HTML, escaped.

    Examples
    --------
    >>> html_lines(["a < b"])
    '<p>a &lt; b</p>'
    """
    return "".join(f"<{kind}>{escape(line)}</{kind}>" for line in lines)


def show_figures() -> None:
    """Let a notebook show figures that a function returns, as it does once pyplot has drawn one."""
    if "IPython" in sys.modules:
        import matplotlib as mpl

        if "inline" in mpl.get_backend():
            importlib.import_module("matplotlib_inline.backend_inline")
