"""Imports run one way, the public names are pinned, and the light parts stay light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import dpsynth

ROOT = Path(dpsynth.__file__).parent
# From the first that may be imported to the last; a module may import its own layer and those before it.
LAYERS = [
    ("version", "errors", "lazy", "checks", "parallel", "progress", "files"),
    ("table",),
    ("patients",),
    ("privacy",),
    ("studies",),
    ("marginals", "wgan"),
    ("synthesis",),
    ("datasets",),
    ("evaluation",),
    ("attacks",),
    ("report",),
    ("audits",),
    ("runs", "cli"),
    ("research",),
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


@cache
def imports(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """All imports of a module, parsed once for all tests."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))


def imported(path: Path) -> set[str]:
    names = set()
    for node in imports(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dpsynth"):
            parts = node.module.split(".")
            names |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {a.name.split(".")[1] for a in node.names if a.name.startswith("dpsynth.")}
    return names & RANK.keys()


def test_imports_run_one_way():
    """Catches an import from a later layer, such as privacy that looks into training."""
    late = {}
    for path in sorted(ROOT.rglob("*.py")):
        home = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if home == "__init__":
            continue
        assert home in RANK, f"{home} has no layer"
        if names := sorted(name for name in imported(path) if RANK[name] > RANK[home]):
            late[str(path.relative_to(ROOT))] = names
    assert not late


def test_evaluators_and_privacy_never_import_a_generator():
    """Catches an evaluator that knows our own generator."""
    for home in ("evaluation", "attacks", "datasets", "privacy", "report"):
        for path in (ROOT / home).rglob("*.py"):
            assert not imported(path) & {"marginals", "wgan", "synthesis"}, path


@pytest.mark.slow
def test_import_loads_neither_tensorflow_nor_dask_nor_a_paper():
    """Catches an import that waits for TensorFlow, Dask, a downloader, a paper, or what draws a page."""
    modules = ("", ".report.page", ".privacy", ".datasets", ".cli", ".synthesis.synthesizer")
    code = "".join(
        f"import sys, dpsynth{module}; loaded = sys.modules.keys() & "
        "{'tensorflow', 'distributed', 'dpsynth.research.papers', 'pooch', 'matplotlib', 'jinja2'}; "
        f"assert not loaded, f'dpsynth{module} loads {{loaded}}'\n"
        for module in (*modules, ".runs.pipeline")
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_function_hides_a_module():
    """Catches a function that hides a module of its name: `import a.b as m` must give the module."""
    for path in ROOT.rglob("*.py"):
        assert path.stem not in re.findall(r"^def (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE), (
            path
        )
        if path.name == "__init__.py":
            package = ".".join(("dpsynth", *path.parent.relative_to(ROOT).parts))
            top = [n for n in imports(path) if isinstance(n, ast.ImportFrom) and n.col_offset == 0]
            taken = [node for node in top if node.module != package]
            names = {alias.name for node in taken for alias in node.names}
            assert not names & {module.stem for module in path.parent.glob("*.py")}, path


@pytest.mark.slow
def test_a_default_fit_loads_no_tensorflow():
    """Catches a fit without critic steps, its samples or its evaluation that wait for TensorFlow."""
    code = (
        "import sys, warnings; warnings.simplefilter('ignore'); import dpsynth; "
        "t = dpsynth.datasets.load('breast_cancer'); "
        "s = t.schema.select([*t.schema.names[:4], 'diagnosis']); t = t.frame[list(s.names)]; "
        "f = dpsynth.DPMarginals(epsilon=3.0, delta=1e-5).fit(t, schema=s).sample(50); "
        "dpsynth.evaluate(f, train=t, schema=s); "
        "assert not any(name.startswith('tensorflow') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_is_quick():
    """Catches heavy work at import time: the public promise is half a second."""
    code = "import time; t = time.perf_counter(); import dpsynth; print(time.perf_counter() - t)"
    best = min(
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
        for _ in range(3)
    )
    assert best < 0.5


def test_public_names():
    """Catches a public name that disappears or appears unnoticed."""
    assert sorted(dpsynth.__all__) == [
        "Column",
        "DPCriticMatching",
        "DPMarginals",
        "DPWGANGP",
        "PatientSchema",
        "Schema",
        "Studies",
        "Study",
        "TrainingSettings",
        "__version__",
        "combine",
        "datasets",
        "errors",
        "evaluate",
        "evaluation",
        "infer_schema",
        "load",
        "plan",
        "privacy",
        "report",
        "table",
    ]
    assert all(hasattr(dpsynth, name) for name in dpsynth.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = dpsynth.nonsense


def test_no_path_of_a_machine_in_the_project():
    """Catches an absolute path of the machine the code was written on."""
    for path in [*ROOT.rglob("*.py"), *(ROOT.parent / "configs").glob("*.yaml")]:
        text = path.read_text()
        assert "/work" not in text and "/home/" not in text, path


def test_no_module_imports_in_a_circle():
    """Catches modules that need each other, for types only as well: neither can be read without the other."""
    modules = {}
    for path in ROOT.rglob("*.py"):
        parts = ("dpsynth", *path.relative_to(ROOT).with_suffix("").parts)
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    needs = {}
    for module, path in modules.items():
        froms = [node for node in imports(path) if isinstance(node, ast.ImportFrom)]
        pairs = [(node.module or "", alias.name) for node in froms for alias in node.names]
        wanted = {f"{home}.{name}" if f"{home}.{name}" in modules else home for home, name in pairs}
        # a package's own header names what its modules make
        needs[module] = set() if path.name == "__init__.py" else wanted & modules.keys() - {module}
    left = dict(needs)
    while free := {module for module, wanted in left.items() if not wanted & left.keys()}:
        left = {module: wanted for module, wanted in left.items() if module not in free}
    circles = {module: sorted(wanted & left.keys()) for module, wanted in left.items()}
    assert not circles


def test_any_module_may_be_imported_first():
    """Catches a circle of imports that one order of them hides."""
    names = {".".join(p.relative_to(ROOT.parent).with_suffix("").parts): p for p in ROOT.rglob("*.py")}
    needs: dict[str, set[str]] = {}
    for name, path in names.items():
        top = [n for n in imports(path) if isinstance(n, ast.ImportFrom) and n.module and n.col_offset == 0]
        needs[name] = {n.module for n in top} | {f"{n.module}.{a.name}" for n in top for a in n.names}
        needs[name] &= names.keys()
    while free := {name for name, needed in needs.items() if not needed & needs.keys()}:
        needs = {name: needed for name, needed in needs.items() if name not in free}
    assert not needs, "these import one another, or what does"
