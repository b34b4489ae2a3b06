"""What the fits of `fits` gave before, and how a fit of today differs from it.

    python tests/behaviour/record.py [NAME ...]     # print what differs, and record the fits of today

A record has two halves. Its **laws** are what each release costs and adds: sensitivity, mechanism and noise
of each entry of the ledger by its name, and the total. Its **digests** are what one seed gives: the order of
releases and samples bit by bit, and the estimates, on processors and versions that are alike.

A digest may be renewed where a change moves draws on purpose (their order, one encoding in place of two). The
commit says why, and `benchmarks/behaviour.py` shows that utility stayed. A law may be renewed where a change
of the mechanism is the aim, or where only a release's name or words are new. The commit then says what each
patient loses by it. Nothing is renewed to make a test pass.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fits import CASES, fitted

RECORDS = Path(__file__).parent / "records"
#: relative difference by which numbers may differ, from rounding in sums of privacy losses and of estimates
CLOSE = 1e-9
PACKAGES = ("numpy", "pandas", "scipy", "scikit-learn", "randomgen", "tensorflow")


def computer() -> str:
    """What decides about the last bits of a floating-point number."""
    told = Path("/proc/cpuinfo")
    words = told.read_text().split("flags", 1)[-1].split("\n", 1)[0].split() if told.exists() else []
    vectors = sorted(word for word in words if word.startswith(("avx", "fma")))
    python = ".".join(platform.python_version_tuple()[:2])
    packages = [f"{name} {version(name)}" for name in PACKAGES]
    return ", ".join([f"Python {python}", platform.machine(), *vectors, *packages])


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Numbers and text of nested mappings and lists, by their paths."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value, 1)
    found = {}
    for key, part in pairs:
        inner = f"{path}, {key}" if path else str(key)
        found |= leaves(part, inner) if isinstance(part, dict | list) else {inner: part}
    return found


def record_of(name: str) -> dict[str, dict[str, Any]]:
    """What is stored of a fit: its laws, and its digests with the computer that they are of."""
    ledger, sample, estimates = fitted(name)
    laws = {"total": {key: ledger[key] for key in ("unit", "adjacency", "epsilon", "delta", "tv")}}
    order = []
    for entry in ledger["entries"]:
        release = entry["name"]
        while release in laws:  # a second release of this name
            release += ", again"
        laws[release] = {key: entry[key] for key in ("sensitivity", "adjacency")} | leaves(entry["event"])
        order.append(f"stage {entry['stage']}: {release}")
    digests = {
        column: hashlib.sha256(f"{values.dtype} {values.tolist()}".encode()).hexdigest()[:16]
        for column, values in sample.items()
    }
    found = {"computer": computer(), "releases": order, "sample": digests, "estimates": estimates}
    return {"laws": laws, "digests": found}


def differences(half: str, stored: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """A line for each leaf of ``laws`` or ``digests`` in which a record differs from the stored one."""
    before, now, lines = leaves(stored[half]), leaves(found[half]), []
    for path in dict.fromkeys([*before, *now]):
        one, other = before.get(path, "absent"), now.get(path, "absent")
        numbers = isinstance(one, int | float) and isinstance(other, int | float)
        if not (math.isclose(one, other, rel_tol=CLOSE) if numbers else one == other):
            lines.append(f"{half}, {path}: {one} before, {other} now")
    return lines


def stored_record(name: str) -> dict[str, dict[str, Any]]:
    """The record of a configuration, empty where it has none yet."""
    path = RECORDS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"laws": {}, "digests": {}}


def main() -> None:
    """Print what differs, and record the fits of today."""
    RECORDS.mkdir(exist_ok=True)
    for name in sys.argv[1:] or CASES:
        stored, found = stored_record(name), record_of(name)
        lines = [line for half in found for line in differences(half, stored, found)]
        print("\n".join(f"{name}: {line}" for line in lines or ["as before"]), flush=True)
        text = json.dumps(found, indent=1, ensure_ascii=False)
        (RECORDS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
