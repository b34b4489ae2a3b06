"""What `make wheel` runs in a clean environment that holds the wheel and its dependencies alone.

Catches a wheel that lacks a module, a dependency, a data card, a configuration or a page's template.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
PROGRAM = Path(sys.executable).with_name("dpsynth")


def program(*words: str, status: int = 0) -> str:
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    assert done.returncode == status, f"{words} ended with {done.returncode}\n{done.stderr}"
    return done.stdout + done.stderr


def main() -> None:
    import dpsynth

    package = Path(dpsynth.__file__).parent
    assert package.is_relative_to(sys.prefix), f"not the installed package: {package}"
    assert (package / "py.typed").is_file()
    assert program("--version").split() == ["dpsynth", version("dpsynth-health")]

    (tour,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(tour, "README.md", "exec"), {})
    assert "differentially private" in printed.getvalue()
    assert find_spec("tensorflow") is None, "this environment was to be without TensorFlow"
    said = program(
        "fit", "--dataset", "support2", "--epsilon", "3", "--generator", "wgan-gp", "--out", "m", status=2
    )
    assert "pip install tensorflow" in said and not Path("m.ledger").exists()

    assert "support2" in program("run", "no_such_name", "--out", "none", status=2)
    assert "breast_cancer" in program("data")
    assert "flchain-mortality" in program("replication")
    program("run", "support2", "--no-evaluate", "--out", "demo")
    assert {"synthetic.csv", "ledger.json", "model", "report.html"} <= {
        p.name for p in Path("demo").iterdir()
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("/")
    print("the wheel works in a clean environment")
