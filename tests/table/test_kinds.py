"""A kind of column plugs in: a new one works from draft to report without a change elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.cli import main
from dpsynth.errors import DataError
from dpsynth.table import Schema, infer_schema
from dpsynth.table.cells import TextCells, distinct_cells
from dpsynth.table.kinds import KINDS
from dpsynth.table.kinds.category import TEXT_DTYPE
from dpsynth.table.kinds.kind import Fields, Floats, refuse_cells
from dpsynth.table.kinds.number import Number
from dpsynth.table.remarks import Remarks


class TimeOfDay(Number):
    """Minutes since midnight, which tables hold as text such as 13:05."""

    refused = dict.fromkeys(("decimals", "special", "scale", "unit", "format", "cycles", "categories"), "")
    default_step = 1.0
    written_apart = True
    number_unit = difference_unit = "minutes"

    def normal(self, fields: dict[str, Any]) -> dict[str, Any]:
        ends = {end: _minutes(fields[end]) for end in ("lower", "upper") if isinstance(fields.get(end), str)}
        return {**fields, **ends}

    def numbers(self, column: Fields, cells: pd.Series) -> Floats:
        codes, uniques = distinct_cells(cells)
        return np.array([*map(_minutes, uniques), np.nan])[codes]

    def read(self, column: Fields, cells: pd.Series, present: np.ndarray) -> Floats:
        numbers = self.numbers(column, cells)
        refuse_cells(column, present & np.isnan(numbers), cells, "is no time of day such as 13:05")
        return numbers

    def code(self, column: Fields, values: pd.Series) -> Floats:
        return self.numbers(column, values)

    def series(self, column: Fields, values: Any, index: pd.Index | None = None) -> pd.Series:
        cells = [None if np.isnan(value) else self.shown(value) for value in np.asarray(values, dtype=float)]
        return pd.Series(cells, index=index, name=column.name, dtype=object).astype(TEXT_DTYPE)

    def dtype(self, column: Fields) -> Any:
        return TEXT_DTYPE

    def shown(self, number: float, figures: int = 6) -> str:
        return f"{int(number) // 60:02}:{int(number) % 60:02}"

    def written_as_numbers(self, column: Fields) -> bool:
        return False

    def data_type(self, column: Fields) -> str:
        return "Time"

    def drafted(self, said: Remarks, cells: TextCells) -> dict[str, Any] | None:
        if cells.shape() != "times of day":
            return None
        return {"kind": self.name, "lower": min(cells.others), "upper": max(cells.others)}


def _minutes(text: Any) -> float:
    hour, _, minute = str(text).partition(":")
    return float(hour) * 60 + float(minute) if hour.isdigit() and minute.isdigit() else np.nan


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line where kinds are listed."""
    monkeypatch.setitem(KINDS, "time", TimeOfDay("time"))


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    died = rng.random(3000) < 0.3
    minutes = np.clip(np.where(died, rng.normal(300, 60, 3000), rng.normal(840, 120, 3000)), 0, 1439)
    admitted = [None if rng.random() < 0.05 else f"{int(m) // 60:02}:{int(m) % 60:02}" for m in minutes]
    return pd.DataFrame({"admitted": admitted, "age": rng.integers(18, 91, 3000), "died": died})


def described(table: pd.DataFrame) -> Schema:
    """The draft with public bounds in place of those of the records."""
    draft = infer_schema(table, outcome="died").schema
    assert (draft["admitted"].kind, draft["admitted"].missing) == ("time", True)
    known = draft["admitted"].model_copy(update={"lower": 0.0, "upper": 1439.0})
    columns = (known, *draft.columns[1:])
    schema = Schema(columns=columns, outcome="died", n_public=len(table)).mark_reviewed()
    return Schema.from_yaml(schema.to_yaml())


def test_a_new_kind_is_drafted_read_and_written(toy: None, table: pd.DataFrame) -> None:
    """Catches a step from a table to its codes and back that asks for a kind's name."""
    schema = described(table)
    assert "lower: 00:00" in schema.to_yaml().replace("'", "")
    column = schema["admitted"]
    assert (column.allowed, column.n_values) == ("00:00 to 23:59", 1440)
    conformed = schema.conform(table).frame["admitted"]
    assert conformed.isna().equals(table["admitted"].isna())
    assert (conformed.dropna() == table["admitted"].dropna()).all()
    with pytest.raises(DataError, match=r"column 'admitted', row 2: '7 pm' is no time of day"):
        schema.conform(table.assign(admitted=["07:00", "7 pm", *["08:00"] * 2998]))


@pytest.mark.slow
@pytest.mark.usefixtures("projected", "unaudited", "undrawn")
def test_a_new_kind_goes_through_a_whole_run(toy: None, table: pd.DataFrame, tmp_path: Path) -> None:
    """Catches an evaluator, an attack, a page or a catalogue that asks for a kind's name."""
    table = table[:600]
    described(table).to_yaml(tmp_path / "s.yaml")
    table.to_csv(tmp_path / "d.csv", index=False)
    out = tmp_path / "run"
    asked = {"--data": tmp_path / "d.csv", "--schema": tmp_path / "s.yaml", "--epsilon": 3, "--out": out}
    assert main(["run", *(str(word) for pair in asked.items() for word in pair)]) == 0
    page = (out / "report.md").read_text(encoding="utf-8")
    assert re.search(r"admitted, median \(quartiles\) \| \d\d:\d\d \(\d\d:\d\d to \d\d:\d\d\)", page)
    assert re.search(r"admitted \(time\) .* \d+ minutes → \d+ minutes", page)
    assert '"dataType": "sc:Time"' in (out / "croissant.json").read_text(encoding="utf-8")
