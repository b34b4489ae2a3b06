"""Benchmarks that are more than one script: ``python -m benchmarks NAME ...``.

    python -m benchmarks peers --help

NAME is a folder beside this file; its ``command.py`` reads the arguments that follow.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def main() -> None:
    names = sorted(path.parent.name for path in Path(__file__).parent.glob("*/command.py"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.exit(f"usage: python -m benchmarks {{{','.join(names)}}} ...")
    import_module(f"benchmarks.{sys.argv[1]}.command").main(sys.argv[2:])


if __name__ == "__main__":
    main()
