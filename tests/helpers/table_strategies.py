"""Random columns, schemas and frames that fit them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from dpsynth.errors import SchemaError
from dpsynth.table.column import Column
from dpsynth.table.schema import Schema

# words that YAML 1.1, pandas and the csv module each like to take for something else
TRAPS = (
    "no",
    "yes",
    "on",
    "1e-5",
    "010",
    "1.0",
    "038.9",
    "12:30",
    "NA",
    "nan",
    "null",
    "true",
    "~",
    "=",
    "<<",
    "2020-01-01",
    'a "quoted" one',
    "a,b",
    "'",
    "- x",
    "# y",
    "k: v",
    "é",
    "1_000",
    "0x1F",
    ".5",
    "+1",
    "none",
)
words = st.sampled_from(TRAPS) | st.text(min_size=1, max_size=8).filter(lambda text: _accepted(text))


def _accepted(text: str) -> bool:
    try:
        Column(name="x", kind="categorical", categories=(text,))
    except SchemaError:
        return False
    return True


def _unlike(text: str) -> str:
    return text.strip().lower()


@st.composite
def columns(draw, name: str) -> Column:
    kind = draw(st.sampled_from(["continuous", "integer", "ordinal", "categorical", "binary"]))
    common = {
        "name": name,
        "kind": kind,
        "missing": draw(st.booleans()),
        "unit": draw(st.none() | words),
        "description": draw(st.none() | st.text(max_size=12)),
    }
    if kind == "continuous":
        decimals = draw(st.none() | st.integers(0, 4))
        lower = draw(st.integers(1, 50))
        upper = lower + draw(st.integers(1, 1000))
        scale = draw(st.sampled_from(["linear", "log"]))
        cells = draw(st.none() | st.integers(1, 100))
        return Column(**common, lower=lower, upper=upper, decimals=decimals, scale=scale, cells=cells)
    if kind == "integer":
        lower = draw(st.integers(-(10**6), 10**6))
        step = draw(st.none() | st.integers(1, 5))
        upper = lower + (step or 1) * draw(st.integers(1, 500))
        return Column(**common, lower=lower, upper=upper, step=step)
    size = {"min_size": 2, "max_size": 2} if kind == "binary" else {"min_size": 1, "max_size": 6}
    numbers = st.floats(-1e6, 1e6, allow_nan=False)
    values = draw(
        st.lists(words, unique_by=_unlike, **size)
        | st.lists(st.integers(-99, 99), unique=True, **size)
        | st.lists(numbers, unique=True, **size)
        | st.permutations([False, True])
    )
    return Column(**common, categories=tuple(values), unreviewed=draw(st.sampled_from([(), ("categories",)])))


@st.composite
def schemas(draw, max_columns: int = 4) -> Schema:
    drawn = [draw(columns(f"c{i}.{i}")) for i in range(draw(st.integers(1, max_columns)))]
    possible = [column.name for column in drawn if not column.is_numeric]
    return Schema(
        columns=tuple(drawn),
        n_public=draw(st.none() | st.integers(1, 10**6)),
        outcome=draw(st.sampled_from([None, *possible])),
        name=draw(st.none() | words),
        description=draw(st.none() | words),
    )


def random_frame(schema: Schema, n: int, seed: int) -> pd.DataFrame:
    """Make a frame that fits ``schema``, about a quarter missing where that is allowed."""
    rng = np.random.default_rng(seed)
    data = {}
    for column in schema.columns:
        if column.kind == "continuous":
            values = rng.uniform(column.lower, column.upper, n).astype(object)
        elif column.kind == "integer":
            values = rng.integers(int(column.lower), int(column.upper), n, endpoint=True).astype(object)
        else:
            values = np.array([None] * n, dtype=object)
            for i, code in enumerate(rng.integers(0, len(column.categories), n)):
                values[i] = column.categories[code]
        if column.missing:
            values[rng.random(n) < 0.25] = None
        data[column.name] = values
    return pd.DataFrame(data, dtype=object)
