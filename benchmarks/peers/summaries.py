"""Medians and intervals of what a suite found, as CSV and Markdown."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.peers.measures import MEASURES
from dpsynth.files.storage import write_text
from dpsynth.files.text import inert

KEYS = ["table", "epsilon", "arm"]


def medians(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a table, epsilon and arm, in the order of the rows.

    Returns
    -------
    pandas.DataFrame
        ``seeds`` that gave a table, ``failures`` and the first failure's line; of every measure, of seconds
        and of memory the median, ``_low`` and ``_high``: the smallest and the largest. With five seeds that
        is a 94 % interval of the median, whatever the distribution (1 - 2 / 2^5).
    """
    found = []
    for (table, epsilon, arm), part in rows.groupby(KEYS, sort=False):
        made = part[part["failed"].isna()]
        row = {"table": table, "epsilon": epsilon, "arm": arm, "seeds": len(made)}
        row |= {"failures": len(part) - len(made), "failed": _first(part["failed"])}
        for name in (*MEASURES, "seconds", "cpu_seconds", "peak_mib"):
            values = made[name].astype(float) if name in made else pd.Series(dtype=float)
            row |= {name: values.median(), f"{name}_low": values.min(), f"{name}_high": values.max()}
        found.append(row)
    return pd.DataFrame(found)


def as_markdown(summary: pd.DataFrame) -> list[str]:
    """A table for each data set and epsilon; the first row is what real records reach."""
    lines: list[str] = []
    for table, of_table in summary.groupby("table", sort=False):
        ideal = of_table[of_table["epsilon"] == 0]
        for epsilon, part in of_table[of_table["epsilon"] > 0].groupby("epsilon", sort=False):
            lines += ["", f"## {table}, ε = {epsilon:g}", "", _head(), _rule()]
            lines += [_line(row) for _, row in pd.concat([ideal, part]).iterrows()]
            broken = part[part["failures"] > 0]
            lines += [""] if len(broken) else []
            lines += [
                f"- {row['arm']}: {row['failures']} failed, {inert(row['failed'])}"
                for _, row in broken.iterrows()
            ]
    return lines


def write(folder: Path, rows: pd.DataFrame, title: str, notes: list[str]) -> pd.DataFrame:
    """Write ``fits.csv``, ``medians.csv`` and ``README.md``; return the medians."""
    summary = medians(rows)
    dropped = [name for name in ("measures", "options", "n") if name in rows]
    write_text(folder / "fits.csv", rows.drop(columns=dropped).to_csv(index=False, float_format="%.5g"))
    write_text(folder / "medians.csv", summary.to_csv(index=False, float_format="%.5g"))
    explained = [f"- {name} (best: {best}): {what}." for name, (best, what) in MEASURES.items()]
    lines = [f"# {title}", "", *notes, "", *explained, *as_markdown(summary)]
    write_text(folder / "README.md", "\n".join(lines) + "\n")
    return summary


def _first(failures: pd.Series) -> str:
    told = failures.dropna()
    return "" if told.empty else str(told.iloc[0])


def _head() -> str:
    return f"| arm | seeds | {' | '.join(MEASURES)} | CPU s | MiB |"


def _rule() -> str:
    return "|---|---:|" + "---:|" * (len(MEASURES) + 2)


def _line(row: pd.Series) -> str:
    cells = [_cell(row, name, ".3f") for name in MEASURES]
    cells += [_cell(row, "cpu_seconds", ".3g"), _cell(row, "peak_mib", ".0f", interval=False)]
    return f"| {row['arm']} | {row['seeds']} | {' | '.join(cells)} |"


def _cell(row: pd.Series, name: str, form: str, *, interval: bool = True) -> str:
    if pd.isna(row[name]):
        return ""
    low, high = (format(row[f"{name}_{end}"], form) for end in ("low", "high"))
    text = format(row[name], form)
    return f"{text} ({low} to {high})" if interval and low != high else text
