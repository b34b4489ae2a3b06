"""What the package ``tableone`` (0.9.6) says of a made-up table: the values of ``table_one_values.json``.

Run in an environment of its own (``pip install tableone==0.9.6``): ``python make_table_one_values.py``.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

COLUMNS = ("age", "crea", "sex", "ward")


def made(n: int, rng: np.random.Generator, shift: float) -> pd.DataFrame:
    """Records of one group; creatinine is missing now and then."""
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 90, n) + round(10 * shift),
            "crea": np.exp(rng.normal(shift, 0.6, n)).round(2),
            "sex": np.where(rng.random(n) < 0.45 + shift / 3, "M", "F"),
            "ward": rng.choice(["a", "b", "c", "d"], n, p=[0.4 - shift / 3, 0.3, 0.2, 0.1 + shift / 3]),
        }
    )
    frame.loc[rng.random(n) < 0.1, "crea"] = np.nan
    return frame


def main() -> None:
    """Write the table and what ``tableone`` makes of it."""
    from tableone import TableOne  # where these values are made alone

    rng = np.random.default_rng(2012)
    groups = {"real": made(140, rng, 0.0), "synthetic": made(90, rng, 0.3)}
    data = pd.concat([frame.assign(group=name) for name, frame in groups.items()], ignore_index=True)
    table = TableOne(
        data,
        columns=list(COLUMNS),
        categorical=["sex", "ward"],
        nonnormal=["crea"],
        groupby="group",
        decimals=6,
        smd=True,
        missing=True,
    ).tableone
    table.columns = [name for _, name in table.columns]
    told = {
        " ".join(part for part in row if part): {name: str(value) for name, value in cells.items()}
        for row, cells in table.to_dict("index").items()
    }
    records = {
        name: {column: [None if v != v else v for v in frame[column].tolist()] for column in COLUMNS}
        for name, frame in groups.items()
    }
    path = Path(__file__).with_name("table_one_values.json")
    path.write_text(json.dumps({"records": records, "tableone": told}) + "\n")


if __name__ == "__main__":
    main()
