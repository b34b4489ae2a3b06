"""Runs of the proving ground as Markdown and as CSV: medians over seeds, their ranges, the headroom."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import pandas as pd

from benchmarks.ground.arms import NOISE_FREE, PRIOR, REAL
from benchmarks.ground.headroom import MEASURES, Headroom, sentence, split
from benchmarks.ground.structures import STRUCTURES
from dpsynth.files.text import inert

Record = Mapping[str, Any]
Block = Mapping[str, Sequence[Record]]

READING = """\
- **real**: fresh real records in the place of a synthetic table; nothing beats them but by chance;
- **noise-free base model**: the TAN without noise (not private), its own ceiling;
- **base model**: the TAN that has paid for everything; further arms as they say.

Every figure is against 20,000 fresh records (of a registry table: its test half):

- structure: what of the known structure is in the table, 1 is all of it (what it is, each table says);
- AUC: of a model trained on the table and tested on real records; 1 is best;
- discriminator: AUC of boosting that tells the table from real records; .5 is best;
- correlation error, TVD: mean absolute difference of correlations, mean total variation distance of columns;
- NN accuracy: nearest-neighbour adversarial accuracy against those records; .5 is best;
- outcome error: absolute error of the rate of the outcome.

Medians over seeds, whose number stands beside the arm, and in brackets their range. *Room* is the base
model's median distance from the best less that of real records; it is the sum of what is lost to *noise*
(against the noise-free base model) and to the *model* (of the noise-free base model against real records). A
minus sign is chance, or a base model that is better with noise than without. Seconds are of the fit."""


def blocks(records: Sequence[Record]) -> dict[tuple[str, int, float], dict[str, list[Record]]]:
    """Records by table, size and epsilon, then by arm; those without an epsilon stand with each."""
    keys = sorted(
        {(r["table"], r["n"], r["epsilon"]) for r in records if r["epsilon"] is not None}, key=_place
    )
    found: dict[tuple[str, int, float], dict[str, list[Record]]] = {}
    for table, n, epsilon in keys:
        part = [r for r in records if (r["table"], r["n"]) == (table, n) and r["epsilon"] in (None, epsilon)]
        arms: dict[str, list[Record]] = {}
        for record in sorted(part, key=lambda r: r["seed"]):
            arms.setdefault(_arm(record, part), []).append(record)
        first = [arm for arm in (REAL, NOISE_FREE, PRIOR) if arm in arms]
        found[table, n, epsilon] = {arm: arms[arm] for arm in dict.fromkeys([*first, *arms])}
    return found


def _arm(record: Record, part: Sequence[Record]) -> str:
    """The arm's name, and its parameters where an arm of that name had others before."""
    name, given = record["arm"], record["parameters"]
    if all(other["parameters"] == given for other in part if other["arm"] == name):
        return str(name)
    return f"{name} {json.dumps(given)}"


def _place(key: tuple[str, int, float]) -> tuple[int, str, int, float]:
    names = list(STRUCTURES)
    table, n, epsilon = key
    return (names.index(table) if table in names else len(names), table, n, epsilon)


def room(block: Block) -> list[Headroom]:
    """The headroom of a block, over the seeds that all three arms have; empty where one is absent."""
    if not all(arm in block for arm in (REAL, NOISE_FREE, PRIOR)):
        return []
    by_seed = [{r["seed"]: r["figures"] for r in block[arm]} for arm in (REAL, NOISE_FREE, PRIOR)]
    common = sorted(set.intersection(*(set(arm) for arm in by_seed)))
    return split(*([arm[seed] for seed in common] for arm in by_seed)) if common else []


def markdown(records: Sequence[Record], made_by: str) -> str:
    """All records: where a refinement can win, then the tables."""
    found = blocks(records)
    lines = ["# The proving ground", "", made_by, "", READING, "", "## Where a refinement can win", ""]
    rooms = {key: room(block) for key, block in found.items()}
    said = [f"- **{_title(key)}**: {sentence(entries)}" for key, entries in rooms.items() if entries]
    lines += said or [f"Not known: that takes the arms {REAL}, {NOISE_FREE} and {PRIOR}."]
    for key, block in found.items():
        lines += ["", f"## {_title(key)}", ""]
        if key[0] in STRUCTURES:
            structure = STRUCTURES[key[0]]
            score = f" Structure: {structure.score_name}." if structure.score else ""
            lines += [f"{structure.about}{score}", ""]
        lines += _table(block)
    return "\n".join(lines) + "\n"


def _title(key: tuple[str, int, float]) -> str:
    table, n, epsilon = key
    return f"{inert(table)}, n = {n:,}, ε = {epsilon:g}"


def _table(block: Block) -> list[str]:
    headrooms = {entry.measure: entry for entry in room(block)}
    heads = [f"{inert(arm)} ({len(runs)})" for arm, runs in block.items()]
    lines = ["| measure | " + " | ".join(heads) + " | room | noise | model |"]
    lines.append("|---|" + "---:|" * (len(block) + 3))
    for name in MEASURES:
        if not any(name in run["figures"] for runs in block.values() for run in runs):
            continue
        cells = [_cell([run["figures"][name] for run in runs]) for runs in block.values()]
        entry = headrooms.get(name)
        cells += [f"{v:.3f}" for v in (entry.total, entry.noise, entry.model)] if entry else [""] * 3
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    seconds = [[run["seconds"] for run in runs if run["seconds"] is not None] for runs in block.values()]
    lines.append("| seconds | " + " | ".join(_cell(v, 1) for v in seconds) + " |  |  |  |")
    return lines


def _cell(values: Sequence[float], digits: int = 3) -> str:
    if not values:
        return ""
    shown = [f"{value:.{digits}f}" for value in (median(values), min(values), max(values))]
    return shown[0] if len(values) == 1 else f"{shown[0]} ({shown[1]} to {shown[2]})"


def rows(records: Sequence[Record]) -> pd.DataFrame:
    """One row a run, one column a figure."""
    columns = ("table", "n", "columns", "epsilon", "arm", "seed", "seconds", "seconds of measuring")
    return pd.DataFrame([{**{c: r[c] for c in columns}, **r["figures"]} for r in records])
