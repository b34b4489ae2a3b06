"""Blocks of a coded table, other declarations, and errors for the owner only. Codes: `test_grid.py`."""

from __future__ import annotations

import pandas as pd
import pytest

from dpsynth.errors import DataError
from dpsynth.table.coded import CodedTable, Codes
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid


def test_columns_of_many_steps_have_room_for_their_numbers():
    """Catches a number of a step that is cut to four bytes."""
    column = Column(name="t", kind="datetime", lower="1900-01-01", upper="2100-01-01", step=1)
    codes = Codes.of(column, pd.Series(pd.to_datetime(["2099-12-31 23:59:59"])))
    assert codes.number.tolist() == [column.n_values - 2] and codes.number[0] > 2**31


def test_many_special_codes_have_room_for_their_numbers():
    """Catches a number of a special code that is cut to one byte: a value or another code."""
    special = tuple(float(-1 - k) for k in range(200))
    column = Column(name="x", kind="integer", lower=0, upper=9, special=special, missing=True)
    codes = Codes.of(column, pd.Series([-1, -128, -129, -200, None, 9], dtype="Int64"))
    assert codes.apart.tolist() == [0, 127, 128, 199, 200, -1]
    assert Grid.from_column(column).cells(codes).tolist() == [10, 137, 138, 209, 210, 9]


def test_a_block_has_the_codes_of_its_rows(monkeypatch):
    """Catches a block that codes its rows again, or those of another one."""
    sex = Column(name="sex", kind="binary", categories=("F", "M"))
    table, coded = CodedTable(pd.DataFrame({"sex": ["F", "M", "M", "F", "M"]})), []
    of = Codes.of
    monkeypatch.setattr(Codes, "of", lambda *given: coded.append(given) or of(*given))
    blocks = [table.block(start, start + 2) for start in (0, 2, 4)]
    assert [block.codes(sex).number.tolist() for block in blocks] == [[0, 1], [1, 0], [1]]
    assert [block.frame["sex"].tolist() for block in blocks] == [["F", "M"], ["M", "F"], ["M"]]
    assert len(table.block(0, 0)) == 0 == len(table.block(0, 0).codes(sex))
    assert len(coded) == 1


def test_another_declaration_is_coded_anew():
    """Catches codes of one schema that are read with the categories of another."""
    table = CodedTable(pd.DataFrame({"sex": ["F", "M"]}))
    one, other = (Column(name="sex", kind="binary", categories=tuple(order)) for order in ("FM", "MF"))
    assert table.codes(one).number.tolist() == [0, 1] and table.codes(other).number.tolist() == [1, 0]
    equal = one.model_copy()
    assert table.codes(one) is table.codes(equal)


@pytest.mark.parametrize(
    ("value", "message"), [("X", "row 3: 'X' is not a declared"), (None, "row 3: the value is missing")]
)
def test_values_outside_of_the_schema_are_named_to_the_owner_alone(value, message):
    """Catches a value of a record in a message that is not marked as confidential, or in a wrong row."""
    sex = Column(name="sex", kind="binary", categories=("F", "M"))
    table = CodedTable(pd.DataFrame({"sex": ["F", "M", value]}))
    with pytest.raises(DataError, match=message) as caught:
        table.block(2, 3).codes(sex)
    assert "confidential" in str(caught.value)
