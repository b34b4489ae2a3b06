"""A draft of a schema: what values look like, and which columns give the outcome away."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from dpsynth.errors import SchemaError
from dpsynth.table import identity
from dpsynth.table.cells import TextCells, codes_of_categories, likely_codes, number, spoken
from dpsynth.table.column import Column
from dpsynth.table.kinds import KINDS
from dpsynth.table.kinds.category import CategoryMatcher
from dpsynth.table.kinds.date import are_dates, date_fields, series_moments, text_moments
from dpsynth.table.kinds.number import EXACT_INTEGERS
from dpsynth.table.remarks import LISTED, Answer, LeftOut, Remarks, n_cells

# ------------------------------------------------------------------------------------------------
# Draft one column of a schema: its fields, and questions to the table's owner.
#
# Each rule here guesses from the values and the name. If a reader could disagree, a remark reports the
# guess.

_MOST_DECIMALS = 6
_FINE_DECIMALS = 3  # more than a bedside or a laboratory reports
_MOST_CATEGORIES = 50
_LOG_RATIO = 50.0
#: times the 99th percentile beyond which the largest value is asked about
_FAR = 50.0
_INEXACT = 0.1  # of a step; one value in five lies so close to a step by chance
_ADVICE = {
    "times of day": "Write them all alike, such as 13:05",
    "dates with years of two digits": "Write years of four digits, such as 2010-01-31",
    "dates": "Write them all alike, such as 2010-01-31",
    "hexadecimal numbers": "Write them as decimal numbers if they are measurements",
    "numbers with commas": "Write decimal points, and nothing between thousands",
    "percentages": "Write the numbers without the sign",
    "limits": "Write the limit itself, and say so in the schema's description",
}


def is_text(values: pd.Series) -> bool:
    """Whether a column holds text to be read, not numbers, dates, true/false or declared categories."""
    is_other = pd.api.types.is_numeric_dtype(values.dtype) or isinstance(values.dtype, pd.CategoricalDtype)
    is_other = is_other or _is_dates(values) or pd.api.types.is_timedelta64_dtype(values.dtype)
    return not (is_other or all(isinstance(v, bool | np.bool_) for v in values.dropna()))


def _is_dates(values: pd.Series) -> bool:
    return pd.api.types.is_datetime64_any_dtype(values.dtype)


def draft_column(
    said: Remarks,
    values: pd.Series,
    cells: TextCells | None,
    absent: set[str],
    keep: tuple[str, ...],
    outcome: str | None,
) -> Column:
    """Draft one column with every field unreviewed, or raise `LeftOut` if it cannot be synthesized.

    ``said`` receives decisions and questions. ``cells`` are the words of a text column, and ``absent`` the
    words that stand for a missing value in text columns too.
    """
    name = said.column
    kept = name in keep or name == outcome
    if not name.strip():
        raise LeftOut("has no name")
    n = int(values.notna().sum())
    if n == 0:
        raise LeftOut("has no values")
    try:
        distinct = values.nunique()
    except TypeError:  # which no file but Parquet can hold
        raise LeftOut("holds lists or records. Give each of their entries a column of its own") from None
    if not kept and identity.named_identifier(name, distinct, n):
        raise LeftOut("says whose row or which row it is (keep or --keep takes it)")
    if pd.api.types.is_timedelta64_dtype(values.dtype):
        raise LeftOut("holds durations. Give them as numbers of days or hours instead")
    if cells is not None:
        fields = _text_fields(said, cells, absent, kept, outcome)
    else:
        fields = _typed_fields(said, values, kept, outcome)
    try:
        column = Column(name=name, **fields, unreviewed=tuple(fields))
    except SchemaError as problem:  # text of several lines, say
        raise LeftOut(str(problem).removeprefix(f"column {name!r}: ")) from None
    if column.unconfirmed:
        held = cells.counts if cells is not None else values.value_counts()
        said.question("public_list", PUBLIC_LIST, rarely_held(column, dict(held))[1])
    return column


def fields_as(values: pd.Series, kind: str, pattern: str | None = None) -> dict[str, Any]:
    """Bounds, or categories, of cells that a dictionary says are of this kind, whatever they look like.

    ``pattern`` is the form of dates. Raises `LeftOut` if the cells are of another kind.
    """
    present = values.dropna()
    said = Remarks(str(values.name))
    if KINDS[kind].seconds is not None:
        if _is_dates(values):
            moments = series_moments(present, "datetime")
        else:
            moments = text_moments(present.map(spoken), "datetime", pattern)
        if not len(moments) or np.isnan(moments).any():
            raise LeftOut(f"holds cells that are no dates{f' in the form {pattern}' if pattern else ''}")
        found = date_fields(said, moments)
        return {end: found[end][: 10 if kind == "date" else None] for end in ("lower", "upper")}
    if KINDS[kind].level == "numeric":
        numbers = pd.to_numeric(present, errors="coerce").to_numpy(np.float64)
        if not np.isfinite(numbers).any() or np.ptp(numbers[np.isfinite(numbers)]) == 0:
            raise LeftOut("holds no two different numbers, which would give limits")
        numbers = numbers[np.isfinite(numbers)]
        ends = {"lower": float(numbers.min()), "upper": float(numbers.max())}
        whole = bool(np.all(numbers == np.rint(numbers)))
        decimals = None if kind == "integer" else 0 if whole else _decimals(np.unique(numbers))
        return ends if decimals is None else {**ends, "decimals": decimals}
    words = {spoken(cell) for cell in present.unique()}
    numbers_only = all(number(word) is not None for word in words)
    return {"categories": tuple(sorted(words, key=lambda w: (float(w) if numbers_only else 0.0, w)))}


#: what a draft asks of each list of categories or codes
PUBLIC_LIST = (
    "is this list public, from a data dictionary say, and not a list of what occurs in the records? Then "
    "write reviewed: true"
)
#: rows below which a value may identify
RARE = 10


def rarely_held(column: Column, held: Mapping[Any, int]) -> tuple[int, str]:
    """Count the categories or codes of a column that few rows hold, as a number and in words. Confidential.

    ``held`` says how many rows hold each cell, as text or as any reader gives it.

    Examples
    --------
    >>> stage = Column(name="stage", kind="categorical", categories=(1, 2, 3))
    >>> rarely_held(stage, {"1": 700, "2": 8, "3.0": 2})
    (2, '3 categories, 2 of them in fewer than 10 rows')
    """
    match = CategoryMatcher.of(column) if column.categories else _code
    rows = dict.fromkeys(column.listed, 0)
    for cell, n in held.items():
        if (value := match(cell)) in rows:
            rows[value] += int(n)
    rare = sum(0 < n < RARE for n in rows.values())
    one, many = ("category", "categories") if column.categories else ("code", "codes")
    count = f"1 {one}" if len(rows) == 1 else f"{len(rows):,} {many}"
    return rare, f"{count}, {rare:,} of them in fewer than {RARE} rows"


def _code(cell: Any) -> Any:
    """A cell as the number that a code is, if it is one."""
    try:
        return float(cell)
    except (TypeError, ValueError):
        return cell


def _typed_fields(said: Remarks, values: pd.Series, kept: bool, outcome: str | None) -> dict[str, Any]:
    present = values.dropna()
    missing = bool(values.isna().any())
    if _is_dates(values):
        return {**date_fields(said, series_moments(present, "datetime")), "missing": missing}
    if isinstance(values.dtype, pd.CategoricalDtype):
        kind = "ordinal" if values.dtype.ordered else "categorical"
        return {
            **_category_fields(said, kind, list(values.dtype.categories), len(present), kept),
            "missing": missing,
        }
    if pd.api.types.is_bool_dtype(values.dtype) or not pd.api.types.is_numeric_dtype(values.dtype):
        return {"kind": "binary", "categories": (False, True), "missing": missing}
    numbers = present.to_numpy(dtype=np.float64)
    infinite = np.flatnonzero(np.isinf(values.to_numpy(dtype=np.float64, na_value=np.nan)))
    if infinite.size:
        said.slips(len(infinite), [(int(i) + 1, float(values.iloc[i])) for i in infinite[:LISTED]], "number")
        numbers = numbers[np.isfinite(numbers)]
        if not numbers.size:
            raise LeftOut("holds no finite number")
    whole = pd.api.types.is_integer_dtype(values.dtype)
    return {**number_fields(said, numbers, whole, kept, outcome), "missing": missing}


def _text_fields(
    said: Remarks, cells: TextCells, absent: set[str], kept: bool, outcome: str | None
) -> dict[str, Any]:
    if cells.is_numeric:
        for word, times in cells.absent.items():
            said.note(f"the word {word!r} is taken as missing", n_cells(times))
        if cells.others:
            said.slips(cells.n_others, cells.rows(cells.others, LISTED), "number")
        numbers = np.repeat(list(cells.numbers.values()), [cells.counts[word] for word in cells.numbers])
        fields = number_fields(said, numbers, cells.written_whole, kept, outcome)
        return {**fields, "missing": bool(cells.text.isna().any() or cells.absent)}
    for kind in KINDS.values() if outcome != said.column else ():
        if (found := kind.drafted(said, cells)) is not None:
            for word, times in cells.absent.items():
                said.note(f"the word {word!r} is taken as missing", n_cells(times))
            return {**found, "missing": bool(cells.text.isna().any() or cells.absent)}
    shape = cells.shape()
    if shape is not None and not kept:
        raise LeftOut(f"holds {shape}. {_ADVICE[shape]}", f"such as {next(iter(cells.others))!r}")
    gone = {word: n for word, n in cells.absent.items() if word in absent}
    asked = {word: n for word, n in cells.absent.items() if word not in absent}
    words = sorted(word for word in cells.counts if word not in gone)
    if not words or not (cells.others or cells.numbers or len(asked) > 1):
        raise LeftOut("has no values", _times(cells.absent))
    for word, times in gone.items():
        said.note(
            f"the word {word!r} is taken as missing, as in the columns of numbers. If it is an answer here, "
            "add it to the categories",
            n_cells(times),
        )
    for word, times in asked.items():
        said.question(
            "missing_word",
            f"is {word!r} an answer (such as 'not done'), as drafted, or a missing value? Then name "
            f"{word!r} in missing_words or --missing-word, for all columns",
            n_cells(times),
            (
                Answer(
                    "missing", "it stands for no value, in all columns", options={"missing_words": (word,)}
                ),
                Answer("answer", "it is one of the categories, as drafted"),
            ),
            word,
        )
    if cells.n_numbers > cells.n_others:
        said.question(
            "mixed_cells",
            "most cells are numbers, but not all: codes, as drafted, or numbers with slips to correct?",
            f"{cells.n_others:,} are not: {_times(cells.others)}",
        )
    missing = bool(cells.text.isna().any() or gone)
    if {word.lower() for word in words} <= {"true", "false"}:
        return {"kind": "binary", "categories": (False, True), "missing": missing}
    n = sum(cells.counts[word] for word in words)
    return {**_category_fields(said, "categorical", words, n, kept), "missing": missing}


def number_fields(
    said: Remarks, numbers: np.ndarray, written_whole: bool, kept: bool, outcome: str | None
) -> dict[str, Any]:
    """Fields of a column of these numbers, shape (n,). Raises `LeftOut` if they are none to be modelled."""
    distinct, counts = np.unique(numbers, return_counts=True)
    n, n_distinct = len(numbers), len(distinct)
    whole = bool(np.all(distinct == np.rint(distinct)))
    if whole and np.abs(distinct).max() > EXACT_INTEGERS:
        raise LeftOut("holds whole numbers beyond 2**53: identifiers?")
    if whole and are_dates(distinct) and said.column != outcome:
        moments = text_moments(pd.Series([f"{v:.0f}" for v in distinct], dtype=object), "date", "%Y%m%d")
        if not np.isnan(moments).any():
            said.question(
                "date_numbers",
                "dates written as whole numbers, as drafted? If they are numbers, write kind: integer",
                f"such as {distinct[0]:.0f}",
            )
            return {**date_fields(said, moments * 86_400.0, counts), "format": "%Y%m%d"}
    if whole and written_whole and not kept and identity.numbers_identify(said.column, distinct, n):
        raise LeftOut(
            "has a different whole number in nearly every row: identifiers? (keep or --keep takes it)",
            f"{n_distinct:,} in {n:,} rows",
        )
    few = n_distinct <= 2 and (whole or n_distinct == 1)
    coded = whole and identity.looks_coded(said.column, n_distinct, n)
    is_outcome = said.column == outcome and whole and n_distinct <= _MOST_CATEGORIES
    if few or coded or is_outcome:
        if n_distinct == 1:
            said.note("one value only. It can be left out")
        elif coded and not is_outcome:
            number = {"kind": "integer", "lower": float(distinct[0]), "upper": float(distinct[-1])}
            ordered = {"kind": "ordinal", "categories": tuple(int(v) for v in distinct)}
            said.question(
                "code_or_count",
                "few different whole numbers: codes of a category, as drafted, or a count or score? Then "
                "kind integer with lower and upper, or ordinal",
                _range(distinct),
                (
                    Answer("codes", "categories without an order, as drafted"),
                    Answer("ordered", "categories with an order", ordered),
                    Answer("count", "a count or score", number),
                ),
            )
        if len(codes := codes_of_categories(distinct)):
            said.question(
                "placeholder",
                "codes, apart from the other categories? As drafted they are categories of their own. If "
                "they stand for no value, move them to missing_codes, and write missing: true",
                _counted(codes, distinct, counts),
                (
                    Answer("missing", "they stand for no value", _without(codes, distinct, whole)),
                    Answer("value", "categories, as drafted"),
                ),
                _listed(codes),
            )
        return _numbered(distinct, whole)
    codes = likely_codes(distinct, counts)
    if len(codes):
        ends = {"lower": float(distinct[0]), "upper": float(distinct[-1])}
        said.question(
            "placeholder",
            "codes, apart from the other values? As drafted they are values of their own (special). If they "
            "stand for no value, write missing_codes for special, and missing: true. If they were measured, "
            "delete special and widen lower and upper",
            _counted(codes, distinct, counts),
            (
                Answer(
                    "missing",
                    "they stand for no value",
                    {"missing_codes": tuple(map(float, codes)), "special": None, "missing": True},
                ),
                Answer("code", "a value of its own, as drafted"),
                Answer("value", "they were measured", {"special": None, **ends}),
            ),
            _listed(codes),
        )
        distinct = np.setdiff1d(distinct, codes)
    lower, upper = float(distinct[0]), float(distinct[-1])
    usual = float(np.quantile(numbers[~np.isin(numbers, codes)], 0.99, method="lower"))
    if upper > _FAR * usual > 0:
        said.question(
            "far_value",
            "is the largest value a slip, far beyond the others? Then correct it in the table, and write the "
            "largest plausible value as upper",
            f"{upper:g}, and 99 in 100 are at most {usual:g}",
        )
    decimals = None if whole else _decimals(distinct)
    if not whole and (decimals is None or decimals > _FINE_DECIMALS):
        coarse = _hidden_decimals(distinct)
        if coarse is None or round(upper, coarse) <= round(lower, coarse):
            said.question(
                "step",
                "many decimals: in which step is it measured or reported? Write it as decimals or step, and "
                "lower and upper as multiples of it",
                f"such as {_longest(distinct)}",
            )
        else:
            decimals, lower, upper = coarse, round(lower, coarse), round(upper, coarse)
            inexact = distinct[distinct != np.round(distinct, coarse)]
            said.note(
                f"nearly all values lie close to multiples of {1 / 10**coarse:g}, the step in this draft. "
                "A fit rounds the others to it",
                f"but {_longest(inexact)}",
            )
    fields: dict[str, Any] = {"kind": "integer" if whole else "continuous", "lower": lower, "upper": upper}
    if decimals is not None:
        fields["decimals"] = decimals
    if lower > 0 and upper / lower >= _LOG_RATIO:
        fields["scale"] = "log"
    if len(codes):
        fields["special"] = tuple(map(float, codes))
    return fields


def _decimals(distinct: np.ndarray) -> int | None:
    for decimals in range(1, _MOST_DECIMALS + 1):
        if np.array_equal(np.round(distinct, decimals), distinct):
            return decimals
    return None


def _hidden_decimals(distinct: np.ndarray) -> int | None:
    """Return the decimals that nearly all values have, apart from inexact copies (1.19995 for 1.2)."""
    for decimals in range(_FINE_DECIMALS if len(distinct) >= 20 else 0):
        steps = distinct * 10**decimals
        if np.mean(np.abs(steps - np.rint(steps)) <= _INEXACT) >= 0.95:
            return decimals
    return None


def _category_fields(said: Remarks, kind: str, words: list[Any], n: int, kept: bool) -> dict[str, Any]:
    if not kept and kind == "categorical" and identity.words_identify(len(words), n):
        raise LeftOut(
            "has many different words: identifiers or free text? (keep or --keep takes it)",
            f"{len(words):,} in {n:,} rows",
        )
    if len(words) > _MOST_CATEGORIES:
        said.question(
            "many_categories",
            "many categories, and noise hides the rare ones: can they be grouped in the table?",
            f"{len(words):,}",
        )
    if len(words) == 1:
        said.note("one value only. It can be left out")
    categories = tuple(word.item() if isinstance(word, np.generic) else word for word in words)
    return {
        "kind": "binary" if kind == "categorical" and len(categories) == 2 else kind,
        "categories": categories,
    }


def _numbered(distinct: np.ndarray, whole: bool) -> dict[str, Any]:
    """A category for each number."""
    categories = tuple(int(v) if whole else float(v) for v in distinct)
    return {"kind": "binary" if len(categories) == 2 else "categorical", "categories": categories}


def _without(codes: np.ndarray, distinct: np.ndarray, whole: bool) -> dict[str, Any]:
    """Categories without those that stand for no value."""
    words = tuple(f"{code:g}" for code in codes)
    return {**_numbered(np.setdiff1d(distinct, codes), whole), "missing_codes": words, "missing": True}


def _listed(codes: np.ndarray) -> str:
    return ", ".join(f"{code:g}" for code in codes)


def _counted(codes: np.ndarray, distinct: np.ndarray, counts: np.ndarray) -> str:
    return ", ".join(f"{code:g} in {n_cells(int(counts[distinct == code][0]))}" for code in codes)


def _times(counts: dict[str, int]) -> str:
    shown = [f"{word!r} in {n_cells(n)}" for word, n in list(counts.items())[:LISTED]]
    return ", ".join(shown) + (f", … ({len(counts):,} words)" if len(counts) > LISTED else "")


def _range(distinct: np.ndarray) -> str:
    values = [f"{value:.0f}" for value in distinct]
    run = distinct[-1] - distinct[0] == len(distinct) - 1
    if run or len(values) > 12:
        return f"{'' if run else f'{len(values)} from '}{values[0]} to {values[-1]}"
    return ", ".join(values)


def _longest(values: np.ndarray) -> str:
    """Return the number that takes the most digits to write."""
    return max((repr(float(value)) for value in values), key=lambda text: ("e" not in text, len(text)))


# ------------------------------------------------------------------------------------------------
# Find columns that give the outcome away: known only after it, or another name for it.
#
# This reads private records without noise. The result is confidential, for their owner only.

#: AUC of one column from which it is named
GIVES_AWAY = 0.95
_MOST_CLASSES = 10
#: records that an outcome's value must have, and not have
_FEWEST = 10
_BINS = 64
# Of so many cells with one outcome by chance.
_CHANCE = math.log(1e-6)


@dataclass(frozen=True)
class Leak:
    """A column that predicts the outcome nearly alone. Confidential."""

    column: str
    auc: float
    only: bool

    def __str__(self) -> str:
        only = "only with one outcome" if self.only else ""
        return ", ".join(filter(None, (f"AUC {self.auc:.2f}" if self.auc >= GIVES_AWAY else "", only)))


def find_leaks(frame: pd.DataFrame, outcome: str) -> tuple[Leak, ...]:
    """Find the columns that give the outcome away.

    ``frame`` holds numbers and words, None or NaN where missing. ``outcome`` is a column of few values. Other
    columns, and outcomes with fewer than 10 records, are skipped.

    Examples
    --------
    >>> died = [0, 1] * 50
    >>> table = pd.DataFrame({"age": range(100), "ward": ["icu", "morgue"] * 50, "died": died})
    >>> [(leak.column, str(leak)) for leak in find_leaks(table, "died")]
    [('ward', 'AUC 1.00')]
    """
    known = frame[frame[outcome].notna()]
    classes, distinct = pd.factorize(known[outcome])
    sizes = np.bincount(classes, minlength=len(distinct))
    if not 2 <= len(distinct) <= _MOST_CLASSES:
        return ()
    told = [c for c, size in enumerate(sizes) if min(size, len(known) - size) >= _FEWEST]
    told = told[:1] if len(distinct) == 2 else told
    found = []
    for name in known.columns:
        if name == outcome:
            continue
        groups, absent = _groups(known[name])
        auc = max((_auc(groups, classes == c) for c in told), default=0.5)
        present = classes[~absent]
        only = bool(absent.any() and len(present) and (present == present[0]).all())
        only = only and len(present) * math.log(sizes[present[0]] / len(known)) < _CHANCE
        if auc >= GIVES_AWAY or only:
            found.append(Leak(str(name), auc, only))
    return tuple(found)


def _groups(values: pd.Series) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The category, or the bin of a number, of each record, missing values as a group of their own."""
    absent = values.isna().to_numpy(dtype=bool)
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        values = pd.Series(series_moments(values, "datetime"))
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, _BINS + 1))) if not absent.all() else []
        groups = np.searchsorted(edges, numbers, side="right")
        groups[absent] = len(edges) + 1
        return groups, absent
    return pd.factorize(values.astype(object))[0] + 1, absent


def _auc(groups: NDArray[np.int64], positive: NDArray[np.bool_]) -> float:
    rate = positive.mean()
    # by chance and the same every time: cases and controls may alternate in a file
    half = np.random.default_rng(0).permutation(len(groups)) % 2 == 1
    score = np.empty(len(groups))
    size = int(groups.max()) + 1
    for read, scored in ((half, ~half), (~half, half)):
        total = np.bincount(groups[read], minlength=size)
        hits = np.bincount(groups[read], weights=positive[read], minlength=size)
        score[scored] = ((hits + rate) / (total + 1))[groups[scored]]
    n = int(positive.sum())
    ranks = float(rankdata(score)[positive].sum())
    return (ranks - n * (n + 1) / 2) / (n * (len(groups) - n))
