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


class Weeks(Number):
    """Days of a pregnancy, which tables hold as weeks and days such as 32+4."""

    refused = dict.fromkeys(("decimals", "special", "scale", "unit", "format", "cycles", "categories"), "")
    default_step = 1.0
    written_apart = True
    number_unit = difference_unit = "days"

    def normal(self, fields: dict[str, Any]) -> dict[str, Any]:
        ends = {end: _days(fields[end]) for end in ("lower", "upper") if isinstance(fields.get(end), str)}
        return {**fields, **ends}

    def numbers(self, column: Fields, cells: pd.Series) -> Floats:
        codes, uniques = distinct_cells(cells)
        return np.array([*map(_days, uniques), np.nan])[codes]

    def read(self, column: Fields, cells: pd.Series, present: np.ndarray) -> Floats:
        numbers = self.numbers(column, cells)
        refuse_cells(column, present & np.isnan(numbers), cells, "is no age such as 32+4")
        return numbers

    def code(self, column: Fields, values: pd.Series) -> Floats:
        return self.numbers(column, values)

    def series(self, column: Fields, values: Any, index: pd.Index | None = None) -> pd.Series:
        cells = [None if np.isnan(value) else self.shown(value) for value in np.asarray(values, dtype=float)]
        return pd.Series(cells, index=index, name=column.name, dtype=object).astype(TEXT_DTYPE)

    def dtype(self, column: Fields) -> Any:
        return TEXT_DTYPE

    def shown(self, number: float, figures: int = 6) -> str:
        return f"{int(number) // 7}+{int(number) % 7}"

    def written_as_numbers(self, column: Fields) -> bool:
        return False

    def data_type(self, column: Fields) -> str:
        return "Duration"

    def drafted(self, said: Remarks, cells: TextCells) -> dict[str, Any] | None:
        if not cells.others or any(np.isnan(_days(word)) for word in cells.others):
            return None
        return {"kind": self.name, "lower": min(cells.others), "upper": max(cells.others)}


def _days(text: Any) -> float:
    weeks, _, days = str(text).partition("+")
    return float(weeks) * 7 + float(days) if weeks.isdigit() and days.isdigit() else np.nan


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line where kinds are listed."""
    monkeypatch.setitem(KINDS, "weeks", Weeks("weeks"))


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    died = rng.random(3000) < 0.3
    days = np.clip(np.where(died, rng.normal(220, 14, 3000), rng.normal(275, 9, 3000)), 160, 299)
    born = [None if rng.random() < 0.05 else f"{int(d) // 7}+{int(d) % 7}" for d in days]
    return pd.DataFrame({"born": born, "age": rng.integers(18, 48, 3000), "died": died})


def described(table: pd.DataFrame) -> Schema:
    """The draft with public bounds in place of those of the records."""
    draft = infer_schema(table, outcome="died").schema
    assert (draft["born"].kind, draft["born"].missing) == ("weeks", True)
    known = draft["born"].model_copy(update={"lower": 154.0, "upper": 307.0})
    columns = (known, *draft.columns[1:])
    schema = Schema(columns=columns, outcome="died", n_public=len(table)).mark_reviewed()
    return Schema.from_yaml(schema.to_yaml())


def test_a_new_kind_is_drafted_read_and_written(toy: None, table: pd.DataFrame) -> None:
    """Catches a step from a table to its codes and back that asks for a kind's name."""
    schema = described(table)
    assert "lower: 22+0" in schema.to_yaml().replace("'", "")
    column = schema["born"]
    assert (column.allowed, column.n_values) == ("22+0 to 43+6", 154)
    conformed = schema.conform(table).frame["born"]
    assert conformed.isna().equals(table["born"].isna())
    assert (conformed.dropna() == table["born"].dropna()).all()
    with pytest.raises(DataError, match=r"column 'born', row 2: '8 months' is no age such as"):
        schema.conform(table.assign(born=["38+2", "8 months", *["40+0"] * 2998]))


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
    assert re.search(r"born, median \(quartiles\) \| \d\d\+\d \(\d\d\+\d to \d\d\+\d\)", page)
    assert re.search(r"born \(weeks\) .* [\d.]+ days → [\d.]+ days", page)
    assert '"dataType": "sc:Duration"' in (out / "croissant.json").read_text(encoding="utf-8")
