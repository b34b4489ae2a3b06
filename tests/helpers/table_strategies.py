"""Random columns, schemas, frames that fit them, and options of fits.

What a schema may say belongs here: a new field of `Column` is drawn in `columns`, and every test of a round
trip and the search for fits that fail (``whole_way``) see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from dpsynth.errors import SchemaError
from dpsynth.table.column import Column
from dpsynth.table.kinds import KINDS
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
def columns(draw, name: str, most_categories: int = 6) -> Column:
    """Any column; with more than six categories they are numbered words, which are cheap to draw."""
    kind = draw(st.sampled_from(["continuous", "integer", "ordinal", "categorical", "binary"]))
    common = {
        "name": name,
        "kind": kind,
        "missing": draw(st.booleans()),
        "unit": draw(st.none() | words.filter(lambda word: word not in KINDS)),
        "description": draw(st.none() | st.text(max_size=12)),
    }
    if kind in ("continuous", "integer"):
        return Column(**common, **draw(_numeric(kind)))
    if kind != "binary" and most_categories > 6 and draw(st.booleans()):
        number = draw(st.integers(1, most_categories))
        return Column(**common, categories=tuple(f"v{i:03d}" for i in range(number)))
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
def _numeric(draw, kind: str) -> dict[str, Any]:
    """Bounds, step, scale and cells of a numeric column."""
    cells = draw(st.none() | st.integers(1, 100))
    scale = draw(st.sampled_from(["linear", "linear", "log"]))
    if kind == "integer":
        step = draw(st.none() | st.integers(1, 5))
        lower = draw(
            st.sampled_from([0, 1, 20]) if scale == "log" else st.integers(-(10**6), 10**6) | st.just(0)
        )
        upper = lower + (step or 1) * draw(st.integers(1, 500) | st.sampled_from([1, 10**4, 10**6]))
        special = draw(_special(lower, upper))
        return {
            "lower": lower,
            "upper": upper,
            "step": step,
            "scale": scale,
            "cells": cells,
            "special": special,
        }
    decimals = draw(st.none() | st.integers(0, 4))
    step = draw(st.none() | st.sampled_from([0.05, 0.25, 0.5, 2.5])) if decimals is None else None
    rounded = step is not None or decimals is not None
    lower = draw(st.sampled_from([0, 1, 20][not rounded :]) if scale == "log" else st.integers(-50, 50))
    span = draw(st.integers(1, 1000) | st.sampled_from([1, 10**4, 10**6]))
    upper = lower + (step * span if step is not None else span)
    return {
        "lower": lower,
        "upper": upper,
        "decimals": decimals,
        "step": step,
        "scale": scale,
        "cells": cells,
        "special": draw(_special(lower, upper)),
    }


def _special(lower: float, upper: float) -> st.SearchStrategy[tuple[float, ...]]:
    return st.sampled_from([(), (), (lower - 1,), (lower - 7, upper + 999)])


@st.composite
def schemas(draw, max_columns: int = 4, most_categories: int = 6) -> Schema:
    drawn = [draw(columns(f"c{i}.{i}", most_categories)) for i in range(draw(st.integers(1, max_columns)))]
    possible = [column.name for column in drawn if not column.is_numeric]
    return Schema(
        columns=tuple(drawn),
        n_public=draw(st.none() | st.integers(1, 10**6)),
        outcome=draw(st.sampled_from([None, *possible])),
        name=draw(st.none() | words),
        description=draw(st.none() | words),
    )


@st.composite
def ruled_schemas(draw, max_columns: int = 4, most_categories: int = 6) -> Schema:
    """Schemas with a derived column and rules, where their columns allow some."""
    schema = draw(schemas(max_columns, most_categories))
    numeric = [column for column in schema.columns if column.is_numeric]
    derived: list[Column] = []
    if numeric and draw(st.booleans()):
        a, b = draw(st.sampled_from(numeric)), draw(st.sampled_from(numeric))
        formula, lower, upper = draw(
            st.sampled_from(
                [
                    (f"`{a.name}` + `{b.name}`", a.lower + b.lower, a.upper + b.upper),
                    (f"`{a.name}` - `{b.name}`", a.lower - b.upper, a.upper - b.lower),
                    (f"abs(`{a.name}`) / 2 + 1", 0, 1e6),
                    (f"sqrt(max(`{a.name}`, 0))", 0, 1e4),
                    (f"`{a.name}` / `{b.name}`", -1e3, 1e3),
                ]
            )
        )
        missing = a.incomplete or b.incomplete or "/ `" in formula
        kept = {"lower": lower, "upper": upper, "missing": missing, "derived": formula}
        derived = [Column(name="derived", kind="continuous", **kept)]
    extended = _extended(schema, derived, ())
    rules = draw(st.lists(_rule(extended), max_size=2)) if draw(st.booleans()) else ()
    try:
        return _extended(schema, derived, rules)
    except SchemaError:  # no declared values obey it
        return extended


def _extended(schema: Schema, derived: Sequence[Column], rules: Sequence[str]) -> Schema:
    fields = {field: getattr(schema, field) for field in Schema.model_fields}
    return Schema(**{**fields, "columns": (*schema.columns, *derived), "constraints": tuple(rules)})


@st.composite
def _rule(draw, schema: Schema) -> str:
    """A rule that many of the records obey."""
    column, other = (draw(st.sampled_from(schema.columns)) for _ in range(2))
    first = _condition(column, draw(st.floats(0, 0.3)))
    second = _condition(other, draw(st.floats(0, 0.3)))
    return draw(st.sampled_from([first, f"not {first}", f"{first} implies {second}", f"{first} or {second}"]))


def _condition(column: Column, place: float) -> str:
    if column.is_numeric:
        return f"`{column.name}` >= {column.lower + place * (column.upper - column.lower):.6g}"
    value = column.categories[int(place * (len(column.categories) - 1))]
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, str | bool):
        return f"`{column.name}` == {value!r}"
    quote = '"' if "'" in text else "'"
    return f"`{column.name}` is not missing" if quote in text else f"`{column.name}` == {quote}{text}{quote}"


#: how the values of a column may lie: any, one, all zero, a few, one record a value, nearly all missing
SHAPES = ("even", "constant", "zero", "spikes", "each", "missing")


def random_frame(schema: Schema, n: int, seed: int, shapes: Sequence[str] = ("even",)) -> pd.DataFrame:
    """Make a frame that fits ``schema``, about a quarter missing where that is allowed.

    ``shapes`` are taken by the columns in turn.
    """
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            column.name: _values(column, n, shapes[j % len(shapes)], rng)
            for j, column in enumerate(schema.columns)
            if column.derived is None
        },
        dtype=object,
    )


def _values(column: Column, n: int, shape: str, rng: np.random.Generator) -> np.ndarray:
    place = {
        "constant": np.full(n, rng.random()),
        "zero": np.zeros(n),
        "spikes": rng.choice(rng.random(3), n, p=[0.8, 0.15, 0.05]),
        "each": rng.permutation((np.arange(n) + 0.5) / max(n, 1)),
    }.get(shape, rng.random(n))
    values = np.array([None] * n, dtype=object)
    if column.is_numeric:
        drawn = column.lower + place * (column.upper - column.lower)
        if shape == "zero":
            drawn = np.full(n, np.clip(0.0, column.lower, column.upper))
        if column.special:
            drawn = np.where(rng.random(n) < 0.2, rng.choice(column.special, n), drawn)
        values[:] = [int(x) for x in np.rint(drawn)] if column.kind == "integer" else drawn
    else:
        for i, code in enumerate((place * len(column.categories)).astype(int)):
            values[i] = column.categories[code]
    if column.missing:
        share = {"missing": 0.95, "constant": 0.0, "zero": 0.0}.get(shape, 0.25)
        values[rng.random(n) < share] = None
    return values


@dataclass(frozen=True)
class Case:
    """A table, its schema and how it is fitted.

    Attributes
    ----------
    schema : Schema
    frame, test : DataFrame
        Records that are fitted, and that are held out.
    options : dict
        Of `fit_options`.
    """

    schema: Schema
    frame: pd.DataFrame
    test: pd.DataFrame
    options: dict[str, Any]


@st.composite
def cases(
    draw,
    most_rows: int = 5000,
    max_columns: int = 5,
    most_categories: int = 500,
    most_steps: int = 20,
) -> Case:
    """Everything that a fit can be asked, on tables of every shape."""
    schema = draw(ruled_schemas(max_columns, most_categories)).mark_reviewed()
    sizes = [n for n in (2, 3, 10, 30, 200, 1000, 5000) if n <= most_rows]
    n = draw(st.sampled_from(sizes) | st.integers(2, most_rows))
    schema = schema.with_n_public(draw(st.sampled_from([None, n])))
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=max_columns))
    seed = draw(st.integers(0, 2**32 - 1))
    return Case(
        schema,
        random_frame(schema, n, seed, shapes),
        random_frame(schema, max(n // 2, 2), seed + 1, shapes),
        draw(fit_options(schema, most_steps)),
    )


@st.composite
def fit_options(draw, schema: Schema, most_steps: int = 20) -> dict[str, Any]:
    """Options of `fits.dp_marginals`, or with ``steps`` of `DPWGANGP`, that do not contradict each other."""
    options: dict[str, Any] = {
        "epsilon": draw(st.sampled_from([0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0, None])),
        "delta": draw(st.sampled_from([None, 1e-9, 1e-5, 1e-3])),
        "random_state": draw(st.integers(0, 2**32 - 1)),
    }
    if most_steps and draw(st.integers(0, 14)) == 0:
        return {**options, "steps": draw(st.integers(1, most_steps))}
    options |= {
        "base_model": draw(st.sampled_from([None, "tree"] + ["tan"] * (schema.outcome is not None))),
        "pairwise_statistics": draw(st.sampled_from([None, None, True, False])),
    }
    own = schema.modelled.columns
    outcomes = [column for column in own if column.is_numeric or len(column.categories) == 2]
    if outcomes and len(own) > 1 and draw(st.integers(0, 3)) == 0:
        outcome = draw(st.sampled_from(outcomes))
        others = [f"`{column.name}`" for column in own if column != outcome]
        kind = "linear" if outcome.is_numeric else "logistic"
        options["studies"] = [f"{kind}: `{outcome.name}` ~ {' + '.join(others[: draw(st.integers(1, 2))])}"]
        options["epsilon"] = draw(st.sampled_from([3.0, 100.0, 1000.0, None]))  # less cannot bear a study
    return options
