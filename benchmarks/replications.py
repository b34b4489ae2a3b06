"""Runs published studies again, and keeps what came out as tables.

    python benchmarks/replications.py flchain-mortality support2-mortality --out runs/studies --jobs 2

A study that is there already is not run again. Its tables go to ``benchmarks/results/replications/NAME/``,
and the section "Results" of ``benchmarks/results/replications/NAME.md`` names them.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from pathlib import Path
from typing import Any

from dpsynth.files.text import inert
from dpsynth.research.replications.protocol import find_protocol, protocol_names
from dpsynth.research.replications.running import run_study

PAGES = Path(__file__).resolve().parent / "results" / "replications"
#: sheets that are kept, in this order
WANTED = ("findings", r"regression-\d+-estimates", r"regression-\d+-coverage", "table-3.3", "table-3.4")
#: explained once, in docs/reference/replication-protocols.md
_READING = """\
Medians over {seeds} splits, in parentheses the lowest and the highest (95 % intervals in the column of all
real records). How to read them: [protocols](../../../docs/reference/replication-protocols.md). HealthGAN is
NOT PRIVATE; its critic made {steps:,} steps."""


def write_tables(found: dict[str, Any], page: Path) -> None:
    """Write the sheets of a replication beside its page, and name them on it."""
    protocol = found["protocol"]
    steps = protocol.get("baseline", {}).get("training_steps", 0)
    lines = ["## Results", "", _READING.format(seeds=protocol["seeds"], steps=steps), ""]
    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    for pattern in WANTED:
        for sheet in found["sheets"]:
            if re.fullmatch(pattern, sheet["name"]) and sheet["rows"]:
                file = folder / f"{sheet['name']}.csv"
                with file.open("w", newline="", encoding="utf-8") as target:
                    writer = csv.writer(target, lineterminator="\n")
                    writer.writerow(sheet["header"])
                    writer.writerows([entry["text"] for entry in row] for row in sheet["rows"])
                lines.append(f"- [{file.name}]({folder.name}/{file.name}): {inert(sheet['title'])}")
    text = page.read_text(encoding="utf-8")
    page.write_text(text[: text.index("## Results")] + "\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("studies", nargs="+", choices=protocol_names())
    arguments.add_argument("--out", type=Path, required=True)
    arguments.add_argument("--jobs", type=int, default=1)
    given = arguments.parse_args()
    for name in given.studies:
        run_study(find_protocol(name), given.out / name, jobs=given.jobs, log=print)
        found = json.loads((given.out / name / "results.json").read_text(encoding="utf-8"))
        write_tables(found, PAGES / f"{name}.md")
        print(f"wrote {PAGES / name}.md and its tables")


if __name__ == "__main__":
    main()
