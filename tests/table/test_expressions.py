"""The language of rules, conditions and formulas against Python and SQL, and what it does not read."""

from __future__ import annotations

import contextlib
import math
import re
import sqlite3

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.table.expressions import parse, parse_rule
from dpsynth.table.schema import Column, Schema
from dpsynth.table.values import numbers_of

SCHEMA = Schema(
    columns=(
        Column(name="sbp", kind="integer", lower=0, upper=9, missing=True),
        Column(name="d bp", kind="integer", lower=0, upper=9),
        Column(name="grade", kind="ordinal", categories=("lo", "mid", "hi"), missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="dead", kind="binary", categories=(False, True)),
        Column(name="a.b", kind="binary", categories=(0, 1)),
        Column(name="airbag", kind="binary", categories=("airbag", "none")),
        Column(name="zip", kind="binary", categories=("02116", "4A")),
        Column(name="age", kind="binary", categories=("18-25", "26-99")),
        Column(name="stay", kind="continuous", lower=0, upper=9, decimals=1, special=(-1,)),
    )
)
FRAME = SCHEMA.conform(
    pd.DataFrame(
        {
            "sbp": [5, None, 3, 9],
            "d bp": [4, 4, 4, 0],
            "grade": ["lo", "hi", None, "mid"],
            "sex": ["F", "M", "F", "M"],
            "dead": [True, False, False, True],
            "a.b": [1, 0, 1, 0],
            "airbag": ["airbag", "none", "none", "airbag"],
            "zip": ["02116", "4A", "02116", "4A"],
            "age": ["18-25", "18-25", "26-99", "26-99"],
            "stay": [0.3, -1, 3.3, 9],
        }
    )
).frame


def test_rules_by_hand() -> None:
    """Would catch a wrong precedence of "and" over "or", or a missing value that breaks a rule."""
    for text, broken in [
        ("`d bp` <= sbp", [False, False, True, False]),
        ("sbp > `d bp` or sex == 'F'", [False, False, False, False]),
        ("not (sex == 'F') or dead == 'true'", [False, False, True, False]),
        ("grade >= 'mid'", [True, False, False, False]),
        ('grade != "hi"', [False, True, False, False]),
        ("a.b == 1 and `d bp` == 4", [False, True, False, True]),
        ("-1.5e0<sbp and +.5 <= sbp", [False, False, False, False]),
        ("not not sbp == 5", [False, False, True, True]),
        ("sex == 'F' or sex == 'M' and sbp < 0", [False, False, False, True]),
        ("sbp < 4 or sex == 'F'", [False, False, False, True]),
        ("sex = F", [False, True, False, True]),
        ("dead = true implies sex = F", [False, False, False, True]),
        ("sex = F implies dead = true implies sbp = 5", [False, False, False, False]),
        ("sex = F implies dead = true", [False, False, True, False]),
        ("sex = M and sbp > 0 or dead = true implies sbp < 9", [False, False, False, True]),
        ("grade in (lo, 'mid')", [False, True, False, False]),
        ("grade not in (lo, 'mid')", [True, False, False, True]),
        ("sbp in (5, 9)", [False, False, True, False]),
        ("sbp is missing", [True, False, True, True]),
        ("sex = M implies sbp is not missing", [False, True, False, False]),
        ("not sbp is missing", [False, True, False, False]),
        ("airbag = 'airbag' implies sbp > 5", [True, False, False, False]),
        ("airbag = `airbag`", [False, False, False, False]),
        ("airbag in (airbag)", [False, True, True, False]),
        ("zip = 02116", [False, True, False, True]),
        ("zip != 4A", [False, True, False, True]),
        ("age = '18-25'", [False, False, True, True]),
        ("sbp <= `d bp` + 1", [False, False, False, True]),
        ("sbp - `d bp` <= -1 + a.b", [True, False, False, True]),
        ("-sbp < -4", [False, False, True, False]),
        ("stay <= 0.1 + 0.2", [False, False, True, True]),
        ("0.1 + 0.2 <= stay", [False, False, False, False]),
        ("stay < 3.3", [False, False, True, True]),
        ("stay = -1 or stay >= 3", [True, False, False, False]),
    ]:
        assert parse_rule(text, SCHEMA.columns).broken(FRAME).tolist() == broken


SIGNS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
SUMS = st.sampled_from(
    ["x", "y", "x + y", "x - y", "-x", "2 * x - y", "(x + 1) * y", "x - (y - 1)", "abs(x - y)"]
)
#: Conditions as they are here and in SQL.
comparisons = st.one_of(
    st.tuples(SUMS, SIGNS, st.integers(-1, 3)).map(lambda p: (f"{p[0]} {p[1]} {p[2]}",) * 2),
    st.tuples(SUMS, SIGNS, SUMS).map(lambda p: (f"{p[0]} {p[1]} {p[2]}",) * 2),
    st.sampled_from("xy").flatmap(
        lambda name: st.sampled_from(
            [
                (f"{name} in (1, 3)",) * 2,
                (f"{name} not in (0)",) * 2,
                (f"{name} is missing", f"{name} is null"),
                (f"{name} is not missing", f"{name} is not null"),
            ]
        )
    ),
)


def joined(parts: tuple[tuple[str, str], str, tuple[str, str]]) -> tuple[str, str]:
    (one, first), word, (other, second) = parts
    sql = f"(not ({first}) or ({second}))" if word == "implies" else f"{first} {word} {second}"
    return f"{one} {word} {other}", sql


plain = st.tuples(comparisons, st.sampled_from(["and", "or"]), comparisons).map(joined)
conditions = st.recursive(
    st.one_of(
        comparisons,
        comparisons.map(lambda a: (f"not {a[0]}", f"not {a[1]}")),
        st.tuples(plain, st.sampled_from(["and", "or", "implies"]), comparisons).map(joined),
        st.tuples(comparisons, st.just("implies"), plain).map(joined),
    ),
    lambda inner: st.one_of(
        inner.map(lambda a: (f"not ({a[0]})", f"not ({a[1]})")),
        st.tuples(
            inner.map(lambda a: (f"({a[0]})", f"({a[1]})")),
            st.sampled_from(["and", "or", "implies"]),
            inner.map(lambda a: (f"({a[0]})", f"({a[1]})")),
        ).map(joined),
    ),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None)
@given(conditions)
def test_a_condition_is_true_and_false_where_sql_says(texts: tuple[str, str]) -> None:
    """Would catch a constraint that differs from SQL's CHECK, or a condition that differs from its WHERE."""
    text, sql = texts
    schema = Schema(
        columns=tuple(Column(name=n, kind="integer", lower=0, upper=3, missing=True) for n in "xy")
    )
    values = [None, 0, 1, 2, 3]
    pairs = [(x, y) for x in values for y in values]
    grid = schema.conform(pd.DataFrame(pairs, columns=["x", "y"])).frame
    with sqlite3.connect(":memory:") as base:
        base.execute("create table t (x, y)")
        base.executemany("insert into t values (?, ?)", pairs)
        truth = [row[0] for row in base.execute(f"select ({sql}) from t order by rowid")]
    rule = parse_rule(text, schema.columns)
    assert rule.selected(grid).tolist() == [value == 1 for value in truth]
    assert rule.broken(grid).tolist() == [value == 0 for value in truth]
    value = parse(text, schema.columns).value(numbers_of(grid))
    np.testing.assert_array_equal(value, np.array(truth, dtype=float))


NAMES = ("x", "y", "z z")
NUMBERS = tuple(Column(name=name, kind="continuous", lower=-4, upper=4) for name in NAMES)
PYTHON = {name: getattr(math, name) for name in ("sqrt", "log", "exp", "floor")} | {"min": min, "max": max}
leaves = st.sampled_from(["x", "y", "`z z`", "2", "0.5", "3.25"])
tests = st.tuples(st.sampled_from(["x", "`z z`"]), SIGNS, leaves).map(" ".join)
texts = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(inner, st.sampled_from("+-*/"), leaves).map(lambda p: f"{p[0]} {p[1]} {p[2]}"),
        inner.map(lambda a: f"-({a})"),
        inner.map(lambda a: f"({a}) ** 2"),
        inner.map(lambda a: f"abs({a})"),
        inner.map(lambda a: f"floor({a})"),
        tests.map(lambda a: f"({a})"),
        st.tuples(tests, st.sampled_from(["and", "or", "and not"]), tests).map(lambda p: f"({' '.join(p)})"),
        inner.map(lambda a: f"sqrt({a})"),
        inner.map(lambda a: f"log({a})"),
        st.tuples(inner, inner, inner).map(lambda p: f"max({p[0]}, min({p[1]}, {p[2]}))"),
    ),
    max_leaves=6,
).filter(lambda text: re.search(r"\b[xyz]\b", text) is not None)


@settings(max_examples=150, deadline=None)
@given(texts, st.integers(0, 10**6))
def test_a_formula_means_what_python_means_and_stays_in_its_bounds(text: str, seed: int) -> None:
    """Would catch any operator, function or precedence that differs from Python's, and bounds too narrow."""
    formula = parse(text, NUMBERS)
    values = np.random.default_rng(seed).uniform(-4, 4, (5, 3))
    values[0], values[1] = 4.0, -4.0
    found = formula.value(lambda column: values[:, NAMES.index(column.name)])
    expected = []
    for row in values.tolist():
        scope = dict(zip(("x", "y", "z_z"), row, strict=True))
        try:
            expected.append(eval(text.replace("`z z`", "z_z"), PYTHON | {"abs": abs}, scope))
        except (ZeroDivisionError, ValueError, OverflowError):
            expected.append(math.nan)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    try:
        low, high = formula.interval(dict.fromkeys(NAMES, (-4.0, 4.0)))
    except ValueError:
        return
    assert not np.isnan(found).any()
    slack = 1e-9 * max(abs(low), abs(high), 1)
    assert low - slack <= found.min() and found.max() <= high + slack


def test_a_special_code_equals_itself_and_has_no_value() -> None:
    """Catches a code that is more or less than something, or one that adds up in a formula."""
    stay = Column(name="stay", kind="continuous", lower=0, upper=9, decimals=1, special=(-1,))
    numbers = numbers_of(pd.DataFrame({"stay": [-1.0, 2.0]}))
    assert [side.tolist() for side in parse("stay = -1", [stay]).truth(numbers)] == [
        [True, False],
        [False, True],
    ]
    assert [side.tolist() for side in parse("stay < 1", [stay]).truth(numbers)] == [
        [False] * 2,
        [False, True],
    ]
    for text, value in (("stay + 1", 3.0), ("(stay == 2) * 5", 5.0), ("(stay == -1) * 5", 0.0)):
        np.testing.assert_array_equal(parse(text, [stay]).value(numbers), [np.nan, value])


def test_arithmetic_beside_a_sign_of_comparison() -> None:
    """Catches a rule of a product or function that is refused, or a condition that does not count as 1."""
    texts = {
        "sbp / 2 >= `d bp` - 2": [False, False, True, False],
        "max(sbp, `d bp`) * 2 < 10": [True, False, False, True],
        "(sex = F) + dead >= 1": [False, True, False, False],
        "(sex = F) = dead": [False, False, True, True],
    }
    for text, broken in texts.items():
        assert parse_rule(text, SCHEMA.columns).broken(FRAME).tolist() == broken, text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it ends where a column"),
        ("sbp <=", "it ends where a column"),
        ("sbp and sex", "'sbp' is no condition. A comparison"),
        ("sbp =< 3", "is expected in place of '<'"),
        ("sex = X", "'X' is not a column and no category of 'sex' ('F', 'M')"),
        ("sbp is", "'is' stands between a column and 'missing'"),
        ("sex in F", "'in' is followed by values between brackets"),
        ("sex in (F, M", "bracket is not closed"),
        ("sex in (F M)", "'M' is not expected here, after '(F'"),
        ("sbp in (`d bp`)", "'in' stands between a column and values"),
        ("implies sbp < 3", "'sbp' is not expected here, after 'implies'"),
        ("sbp < 3)", "is not expected here"),
        ("pulse < 3", "'pulse' is not a column"),
        ("sbp.mean < 3", "'sbp.mean' is not a column"),
        ("sbp < 'a'", "cannot be compared with a numeric column"),
        ("sex == 'X'", "not a declared category"),
        ("sex < 'M'", "compare only by == and !="),
        ("sbp == grade", "different values"),
        ("1 < 2", "compares no column"),
        ("(" * 900 + "sbp < 1" + ")" * 900, "at most 100 brackets within one another are read"),
        ("sbp < 3 ; sex = F", "'; sex = F' cannot be read"),
        (
            "airbag = airbag",
            "'airbag' is a column and also a category of 'airbag': write \"airbag = 'airbag'\"",
        ),
        ("airbag = airbag", 'or "airbag = `airbag`" for the column'),
        ("age = 18-25", "stands in quotes, such as '18-25'"),
        ("sbp <= sex + 3", "'sex' holds text, not numbers"),
        ("sbp <= 'F' + 3", "'F' is no number, and no date"),
        ("sbp + 1 in (3, 4)", "'in' stands between a column and values"),
        ("zip = 2116", "2116 is not a declared category ('02116', '4A')"),
    ],
)
def test_bad_rules_are_one_sentence(text: str, sentence: str) -> None:
    """Would catch a traceback, code that runs, or a rule that silently means something else."""
    with pytest.raises(InputError) as caught:
        parse_rule(text, SCHEMA.columns)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_the_longest_rule_is_read() -> None:
    """Would catch nested brackets that pass the limit of words and end in a RecursionError."""
    text = "(" * 73 + "sbp < 9" + ")" * 73
    assert parse_rule(text, SCHEMA.columns).broken(FRAME).tolist() == [False, False, False, True]
    text = "not " * 146 + "sbp < 9"
    assert parse_rule(text, SCHEMA.columns).broken(FRAME).tolist() == [False, False, False, True]


def test_a_bad_formula_is_one_sentence() -> None:
    """Would catch a traceback, code that runs, or a formula that silently means something else."""
    for text, sentence in [
        ("3 + 4", "it names no column"),
        ("x + pulse", "'pulse' is not a column (columns: x, sex)"),
        ("x if x > 1 else 2", "'if' is not expected here, after 'x'"),
        ("x > 2 > 1", "'x > 2 > 1' holds two comparisons"),
        ("x == not x", "it cannot be read at 'not x'"),
        ("(x, x)", "a comma stands between the values of a list"),
        ("(sex == 'f') * x", "'f' is not a declared category ('F', 'M')"),
        ("(x == 'F') * x", "the text 'F' cannot be compared with a numeric column"),
        ("x + 'F'", "'F' is no number, and no date such as '2010-01-31'"),
        ("(lambda: x)()", "': x)()' cannot be read"),
        ("__import__('os').system('true')", "\".system('true')\" cannot be read"),
        ("__import__('os')", "'__import__' is no function. There are abs, exp"),
        ("x + 2j", "'2j' is not a column"),
        ("x // 2", "a column, number or text is expected in place of '/'"),
        ("round(x)", "'round' is no function"),
        ("sqrt(x, 2)", "sqrt takes one number"),
        ("max()", "expected in place of ')'"),
        ("x and sex = F", "'x' is no condition. A comparison such as <= is expected"),
        ("x * 1e999", "a number in it is too large"),
        ("x + " + "9" * 400, "a number in it is too large"),
        ("x + x" * 200, "At most 150 are read"),
        ("(" * 101 + "x" + ")" * 101, "at most 100 brackets within one another are read"),
        ("max(" * 120 + "x" + ")" * 120, "at most 100 brackets"),
        ("sex + x", "'sex' holds text, not numbers. Compare it, as in (sex == 'F')"),
    ]:
        sex = Column(name="sex", kind="binary", categories=("F", "M"))
        with pytest.raises(ValueError, match=re.escape(sentence)) as caught:
            parse(text, (Column(name="x", kind="continuous", lower=1, upper=9), sex))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["(" * 100 + "x" + ")" * 100, "-" * 149 + "x", "x" + " ** x" * 74, "abs(" * 100 + "x" + ")" * 100]
)
def test_the_deepest_formula_is_read(text: str) -> None:
    """Would catch a text within the limits that ends in a RecursionError."""
    column = Column(name="x", kind="continuous", lower=0, upper=2)
    formula = parse(text, [column])
    assert abs(formula.value(lambda _: np.ones(1))[0]) == 1 and abs(formula.interval({"x": (1, 1)})[0]) == 1


def test_a_hostile_text_ends_in_a_sentence() -> None:
    """Would catch any text of the language's own pieces that ends in anything but a ValueError."""
    signs = ["=", "<", "-", "**", "(", ")", ",", "`", "'"]
    pieces = [*signs, "sbp", "`d bp`", "sex", "F", "'F'", "3", "not", "in", "is", "missing", "implies", "max"]
    with pytest.raises(ValueError, match="is not a column"):  # in linear time
        parse("9" * 200_000 + "x", SCHEMA.columns)
    rng = np.random.default_rng(0)
    for size in rng.integers(1, 12, 3000):
        with contextlib.suppress(ValueError):
            parse(" ".join(rng.choice(pieces, size)), SCHEMA.columns).value(numbers_of(FRAME))
