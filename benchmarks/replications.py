"""Runs published studies and writes what came out into their pages.

    python benchmarks/replications.py flchain-mortality support2-mortality --out runs/studies --jobs 2

A study that is there already is not run again; the section "Results" of ``docs/replications/NAME.md`` is made
of its folder.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from dpsynth.files.markdown import inert
from dpsynth.research.replications.protocol import find_protocol, names
from dpsynth.research.replications.running import run_study

PAGES = Path(__file__).resolve().parents[1] / "docs" / "replications"
#: sheets of a page, in this order
WANTED = ("findings", r"regression-\d+-estimates", r"regression-\d+-coverage", "table-3.3", "table-3.4")
#: explained once, in docs/replications.md
_READING = """\
Medians over {seeds} splits, in parentheses the lowest and the highest (95 % intervals in the column of all
real records). How to read them: [replications](../replications.md#what-is-written). HealthGAN is NOT PRIVATE;
its critic made {steps:,} steps."""


def table(sheet: dict[str, Any]) -> list[str]:
    lines = [f"### {inert(sheet['title'])}", ""]
    lines += [
        "| " + " | ".join(map(inert, row)) + " |" for row in (sheet["header"], ["---"] * len(sheet["header"]))
    ]
    lines += ["| " + " | ".join(inert(entry["text"]) for entry in row) + " |" for row in sheet["rows"]]
    return [*lines, ""]


def section(folder: Path) -> str:
    found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    protocol = found["protocol"]
    steps = protocol.get("baseline", {}).get("training_steps", 0)
    lines = ["## Results", "", _READING.format(seeds=protocol["seeds"], steps=steps), ""]
    for pattern in WANTED:
        for sheet in found["sheets"]:
            if re.fullmatch(pattern, sheet["name"]) and sheet["rows"]:
                lines += table(sheet)
    return "\n".join(lines)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("studies", nargs="+", choices=names())
    arguments.add_argument("--out", type=Path, required=True)
    arguments.add_argument("--jobs", type=int, default=1)
    given = arguments.parse_args()
    for name in given.studies:
        run_study(find_protocol(name), given.out / name, jobs=given.jobs, log=print)
        page = PAGES / f"{name}.md"
        text = page.read_text(encoding="utf-8")
        begin = text.index("## Results")
        rest = re.search(r"^## (?!Results)", text[begin:], re.MULTILINE)
        after = text[begin + rest.start() :] if rest else ""
        page.write_text(text[:begin] + section(given.out / name) + after, encoding="utf-8")
        print(f"wrote {page}")


if __name__ == "__main__":
    main()
