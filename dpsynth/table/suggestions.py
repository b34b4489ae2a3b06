"""Suggest formulas and rules between columns, as questions to the table's owner.

A suggestion follows from the names, units and kinds of a schema's columns alone: ``weight``, ``height`` and
``bmi`` stand together, ``admitted`` comes before ``discharged``. It reads no record. So whether records
obey it never decides what is asked. Names are English. A name is split into words (``DiasABP_first`` gives
*dias*, *abp*, *first*), and ``suggestions.yaml`` beside this module says what words stand for.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpsynth.errors import SchemaError
from dpsynth.files.text import shipped_yaml
from dpsynth.table.column import Column
from dpsynth.table.derived import agreement, deviations
from dpsynth.table.expressions import Expression
from dpsynth.table.identity import tokens
from dpsynth.table.schema import Schema, TableSchema
from dpsynth.table.values import numbers_of


class _Formula(NamedTuple):
    """How a quantity is computed of others, in which units, and what speaks against it."""

    of: str
    formula: str
    units: Mapping[str, str] = {}
    doubt: str = ""


@dataclass(frozen=True)
class _Words:
    """The content of ``suggestions.yaml``, whose comments say what each field is.

    Mappings are from a word to what it stands for, and sets are of words.
    """

    quantities: Mapping[str, str]
    formulas: tuple[_Formula, ...]
    conversions: Mapping[str, Mapping[str, str]]
    ages: Mapping[str, str]
    metric: frozenset[str]
    likely: Mapping[str, tuple[str, ...]]
    units: Mapping[str, str]
    fillers: frozenset[str]
    written: frozenset[str]
    statistics: Mapping[str, str]
    low_is_bad: frozenset[str]
    beside: frozenset[str]
    events: Mapping[str, str]
    later: Mapping[str, tuple[str, ...]]
    seen: tuple[str, ...]
    female: re.Pattern[str]
    male: re.Pattern[str]
    others: frozenset[str]
    women: frozenset[str]
    men: frozenset[str]
    yes: frozenset[str]
    no: frozenset[str]


@cache
def _words() -> _Words:
    """The words, read when they are first needed. Most imports of this module never need them."""
    held: dict[str, Any] = shipped_yaml("dpsynth.table", "suggestions.yaml")
    sets = ("metric", "fillers", "written", "low_is_bad", "beside", "others", "women", "men", "yes", "no")
    made: dict[str, Any] = {key: frozenset(held[key].split()) for key in sets}
    for key in ("quantities", "units", "statistics", "events"):
        made[key] = {word: what for what, words in held[key].items() for word in words.split()}
    for key in ("likely", "later"):
        made[key] = {what: tuple(words.split()) for what, words in held[key].items()}
    for key in ("female", "male"):
        made[key] = re.compile("|".join(held[key].split()))
    made["written"] |= made["units"].keys()
    made["beside"] |= made["statistics"].keys()
    formulas = tuple(_Formula(**one) for one in held["formulas"])
    return _Words(**{**held, **made, "formulas": formulas, "seen": tuple(held["seen"].split())})


#: What ends a word such as ``admittime``.
_CLOCK = re.compile(r"(?:date|time|datetime|day)$")


@dataclass(frozen=True)
class Suggestion:
    """A rule, or formulas of one column, to ask the owner about.

    ``texts`` has one rule, or one formula for each unit or convention that is possible. ``column`` is the
    column that they compute, None for a rule. ``columns`` has all columns. ``doubt`` says what speaks against
    a formula.
    """

    texts: tuple[str, ...]
    columns: tuple[str, ...]
    column: str | None = None
    doubt: str = ""

    def shown(self, text: str) -> str:
        """One of the texts with the column that it computes."""
        return text if self.column is None else f"{self.column} = {text}"

    def adopted(self, schema: Schema, text: str) -> Schema:
        """Return the schema that declares one of the texts, or raise SchemaError if its limits refuse it.

        A computed column may be missing if an input may be.
        """
        if self.column is None:
            return schema.with_fields(constraints=(*schema.constraints, text))
        changed: dict[str, Any] = {"derived": text}
        if self.needs_missing(schema):
            changed["missing"] = True
        columns = tuple(
            one.model_copy(update=changed if one.name == self.column else None) for one in schema.columns
        )
        return schema.with_fields(columns=columns)

    def needs_missing(self, schema: TableSchema) -> bool:
        """Whether the computed column must be allowed to be missing, since an input may be."""
        inputs = (schema.column(name) for name in self.columns if name != self.column)
        column = schema.column(str(self.column))
        return not column.missing and any(one.incomplete for one in inputs)


def suggested(schema: TableSchema) -> tuple[Suggestion, ...]:
    """Formulas and rules that the names, units and kinds of a schema's columns suggest, formulas first.

    Columns that one declared rule or formula already names together are left out. The limits of columns are
    not used, since those of a draft come from records.

    Examples
    --------
    >>> limits = {"kind": "continuous", "lower": 1, "upper": 300}
    >>> schema = Schema(columns=(Column(name="weight", unit="kg", **limits),
    ...                          Column(name="height", unit="cm", **limits), Column(name="BMI", **limits),
    ...                          Column(name="hr_min", **limits), Column(name="hr_max", **limits)))
    >>> [suggestion.shown(text) for suggestion in suggested(schema) for text in suggestion.texts]
    ['BMI = weight / (height / 100) ** 2', 'hr_min <= hr_max']
    """
    table = schema.table
    named = [
        _Named.of(column) for column in table.columns if column.name.isprintable() and "`" not in column.name
    ]
    declared = [frozenset(rule.columns) for rule in table.rules]
    computed = (*table.formulas, *table.readings)
    declared += [frozenset({column.name, *formula.columns}) for column, formula in computed]
    found = [*_formulas(named), *_ages(named), *_pressures(named), *_statistics(named), *_orders(named)]
    found += _sexes(named)
    return tuple(
        one
        for one in sorted(dict.fromkeys(found), key=lambda one: one.column is None)
        if not any(names >= {*one.columns} for names in declared)
        and (one.column is None or schema.computable(one.column, {*one.columns} - {one.column}))
    )


@dataclass(frozen=True)
class _Named:
    """A column and the words of its name."""

    column: Column
    words: tuple[str, ...]

    @classmethod
    def of(cls, column: Column) -> _Named:
        name = re.sub(r"(?i)kg\W*_?m(?:2|²|\^2)", "", column.name)
        name = re.sub(r"(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
        return cls(column, tuple(word for word in tokens(name) if word not in _words().fillers))

    @property
    def number(self) -> bool:
        """Whether the column holds numbers that are no dates."""
        return self.column.is_numeric and not self.column.written_apart

    @property
    def added(self) -> bool:
        """Whether a formula may add its values: numbers, or categories that are numbers."""
        return self.number or all(type(one) in (int, float) for one in self.column.categories or ("",))

    @property
    def shown(self) -> str:
        """The name as rules and formulas write it."""
        name = self.column.name
        plain = name.isascii() and name.isidentifier() and name not in ("and", "or", "not")
        return name if plain else f"`{name}`"

    @property
    def unit(self) -> str | None:
        """The declared unit by its usual name."""
        unit = (self.column.unit or "").lower()
        return _words().units.get(unit, unit) or None

    def unit_among(self, units: Collection[str]) -> str | None:
        """The declared unit, or the one in the name."""
        written = [_words().units[word] for word in self.words[1:] if _words().units.get(word) in units]
        likely = [unit for unit in written if unit != "in"] or written  # height_in_cm
        return self.unit if self.unit in units else likely[-1] if likely else None

    def found(self, names: Mapping[str, str]) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield each thing that adjacent words of the name stand for, with the other words."""
        for start, end in combinations(range(len(self.words) + 1), 2):
            key = names.get("".join(self.words[start:end]))
            if key is not None:
                yield key, frozenset(self.words[:start] + self.words[end:])


#: Columns by what they are and the words beside it, if there is one of that kind.
Found = dict[tuple[str, frozenset[str]], _Named]


def _single(found: Iterable[tuple[tuple[str, frozenset[str]], _Named]]) -> Found:
    groups: dict[tuple[str, frozenset[str]], list[_Named]] = {}
    for key, one in found:
        groups.setdefault(key, []).append(one)
    return {key: ones[0] for key, ones in groups.items() if len(ones) == 1}


def _alike(columns: Iterable[_Named]) -> bool:
    """Whether no two columns have different units."""
    return len({one.unit for one in columns} - {None}) < 2


def _quantities(named: Sequence[_Named]) -> Found:
    found = []
    for one in named:
        for quantity, words in (
            one.found(_words().quantities) if one.added and one.column.kind != "binary" else ()
        ):
            beside = words - _words().written
            if all(word in _words().beside or word.isdigit() for word in beside):
                found.append(((quantity, beside), one))
    return _single(found)


def _computed(column: _Named, texts: Sequence[str], inputs: Iterable[_Named], doubt: str = "") -> Suggestion:
    names = dict.fromkeys([column.column.name, *(one.column.name for one in inputs)])
    return Suggestion(tuple(texts), tuple(names), column.column.name, doubt)


def _rule(text: str, *columns: _Named) -> Suggestion:
    return Suggestion((text,), tuple(one.column.name for one in columns))


def _not_more(less: _Named, more: _Named) -> Suggestion:
    return _rule(f"{less.shown} <= {more.shown}", less, more)


def _formulas(named: Sequence[_Named]) -> Iterator[Suggestion]:
    found = _quantities(named)
    for (quantity, beside), column in found.items():
        texts: list[str] = []
        inputs: list[_Named] = []
        # the first, or the largest, of two quantities may be of different times
        if not column.number or beside & {*_words().statistics, "first", "last", "initial", "final"}:
            continue
        doubt = ""
        for one in _words().formulas:
            parts = {part: found.get((part, beside)) for part in re.findall(r"{(.+?)}", one.formula)}
            known = {part: one for part, one in parts.items() if one is not None}
            alike = _alike(each for part, each in known.items() if part not in one.units)
            if one.of == quantity and len(known) == len(parts) and alike:
                texts += _in_units(one.formula, known, one.units)
                inputs += known.values()
                doubt = doubt or one.doubt
        if texts:
            yield _computed(column, texts, inputs, doubt)


def _in_units(template: str, parts: Mapping[str, _Named], units: Mapping[str, str]) -> Iterator[str]:
    """The formula for each choice of units that is possible: all metric, or none where no name says more."""
    known = {part: parts[part].unit_among(_words().conversions[unit]) for part, unit in units.items()}
    choices = [(known[part],) if known[part] else _words().likely[unit] for part, unit in units.items()]
    for chosen in product(*choices):
        if None in known.values() and len({unit in _words().metric for unit in chosen}) > 1:
            continue
        shown = {part: one.shown for part, one in parts.items()}
        for (part, wanted), unit in zip(units.items(), chosen, strict=True):
            conversion = _words().conversions[wanted][str(unit)]
            shown[part] = f"({shown[part]}{conversion})" if conversion else shown[part]
        yield re.sub(r"{(.+?)}", lambda match, shown=shown: shown[match[1]], template)  # type: ignore[misc]


def _events(named: Sequence[_Named]) -> Found:
    """Columns of dates by their event. A column named ``date`` is of a visit."""
    found = []
    for one in named:
        if one.column.is_date:
            words = [_CLOCK.sub("", word) for word in one.words if word not in ("dt", "dttm", "ts")]
            stripped = _Named(one.column, tuple(filter(None, words)))
            events = [*stripped.found(_words().events)] if stripped.words else [("visit", frozenset[str]())]
            found += [(event, stripped) for event in events]
    return _single(found)


def _ages(named: Sequence[_Named]) -> Iterator[Suggestion]:
    """An age, from the date of birth and the only date at which it can have been asked."""
    events, alone = _events(named), frozenset[str]()
    birth = events.get(("birth", alone))
    for one in named if birth else ():
        words = [word for word in one.words if _words().units.get(word) not in _words().ages]
        if not (one.number and birth and "age" in words):
            continue
        event = _words().events.get("".join(word for word in words if word != "age"))
        known = [
            events.get((name, alone)) for name in (_words().seen if words == ["age"] else (event or "",))
        ]
        dates = [date for date in known if date is not None and date != birth]
        if len(dates) == 1:
            age = (
                f"({dates[0].shown} - {birth.shown}){_words().ages[one.unit_among(_words().ages) or 'years']}"
            )
            text = f"floor({age})" if one.column.kind == "integer" else age
            yield _computed(one, [text], [dates[0], birth])


def _statistics(named: Sequence[_Named]) -> Iterator[Suggestion]:
    """The smallest, a middle and the largest value of the same thing."""
    groups: dict[frozenset[str], dict[str, list[_Named]]] = {}
    for one in named:
        places = [_words().statistics[word] for word in one.words if word in _words().statistics]
        if one.number and len(places) == 1:
            group = groups.setdefault(frozenset(one.words) - {*_words().statistics}, {})
            group.setdefault(places[0], []).append(one)
    for of, group in groups.items():
        low, mid, high = (group.get(place, []) for place in ("low", "mid", "high"))
        pairs = [*product(low, mid), *product(mid, high)] if mid else [*product(low, high)]
        if not of & _words().low_is_bad:
            pairs += product(mid, group.get("worst", []))
        yield from (_not_more(*pair) for pair in pairs if _alike(pair))


def _pressures(named: Sequence[_Named]) -> Iterator[Suggestion]:
    found = _quantities([one for one in named if one.number])
    for (quantity, beside), low in found.items():
        high, mean = found.get(("systolic", beside)), found.get(("mean pressure", beside))
        if quantity == "diastolic" and high and "worst" not in beside and _alike((low, high)):
            if mean and beside & {*_words().statistics, "first", "last"}:
                yield from (_not_more(low, mean), _not_more(mean, high))
            else:
                yield _not_more(low, high)


def _orders(named: Sequence[_Named]) -> Iterator[Suggestion]:
    """Dates of which one cannot be before the other."""
    found = _events(named)
    pairs = {
        (one, later)
        for (event, beside), one in found.items()
        for name in _words().later.get(event, ())
        if (later := found.get((name, beside))) and _alike((one, later))
    }
    # birth <= death follows from birth <= admission and admission <= death
    implied = {(a, c) for (a, b), (same, c) in product(pairs, pairs) if b == same}
    yield from (
        _not_more(*pair) for pair in product(found.values(), found.values()) if pair in pairs - implied
    )


def _sexes(named: Sequence[_Named]) -> Iterator[Suggestion]:
    """States that one sex alone can have."""
    sexes = [(one, found) for one in named if (found := _sex_texts(one))]
    for one in named if len(sexes) == 1 else ():
        sex, texts = sexes[0]
        if one is sex or {*one.words} & _words().others:
            continue
        for pattern, text in zip((_words().female, _words().male), texts, strict=True):
            if condition := _condition(one, pattern):
                yield _rule(f"{condition} implies {text}", one, sex)


def _sex_texts(one: _Named) -> tuple[str, str] | None:
    """Conditions of female and of male, if the column is a sex."""
    categories, words = one.column.categories, {*one.words}
    if words in ({"male"}, {"female"}, {"is", "male"}, {"is", "female"}):
        yes, no = _one_of(categories, _words().yes), _one_of(categories, _words().no)
        texts = tuple(f"{one.shown} = {_written(value)}" for value in (no, yes) if value is not None)
        return None if len(texts) < 2 else (texts[0], texts[1]) if "male" in words else (texts[1], texts[0])
    women, men = _one_of(categories, _words().women), _one_of(categories, _words().men)
    if words not in ({"sex"}, {"gender"}, {"sex", "birth"}) or women is None or men is None:
        return None
    return f"{one.shown} = {_written(women)}", f"{one.shown} = {_written(men)}"


def _condition(one: _Named, pattern: re.Pattern[str]) -> str | None:
    """The condition of a state that the pattern names: of a whole column, or of some categories."""
    categories = one.column.categories
    if any(map(pattern.fullmatch, one.words)):
        if one.words[-1] in ("parity", "gravida", "gravidity", "pregnancies"):
            counts = one.number or (one.added and 0 in categories)
            return f"{one.shown} != 0" if counts else None
        yes = _one_of(categories, _words().yes) if _one_of(categories, _words().no) is not None else None
        return None if yes is None else f"{one.shown} = {_written(yes)}"
    of = [value for value in categories if isinstance(value, str) and not ("'" in value and '"' in value)]
    split = {value: {*tokens(value)} for value in of}
    of_one = {
        value
        for value, has in split.items()
        if any(map(pattern.fullmatch, has)) and not has & _words().others
    }
    found = [value for value in of if value in of_one]
    if not found:
        return None
    values = ", ".join(map(_written, found))
    return f"{one.shown} in ({values})" if len(found) > 1 else f"{one.shown} = {values}"


def _one_of(categories: Sequence[Any], words: Collection[str]) -> Any:
    """The category that one of the words is, None if there is none or more than one."""
    found = [value for value in categories if str(value).strip().lower() in words]
    return found[0] if len(found) == 1 else None


def _written(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"' if "'" in value else f"'{value}'"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


# ------------------------------------------------------------------------------------------------
# Count the rows of a table that obey each rule and formula: those declared, and those that names suggest.
#
# All of this is confidential: it reads the records without noise. It is for the owner, who decides by it
# which declared rule is wrong. A rule that nobody declared must hold by definition or nature to be declared.


@dataclass(frozen=True)
class RuleCount:
    """How many rows obey a rule or formula, break it, or leave it open by a missing value. Confidential.

    ``column`` is the one that a formula computes, None for a rule. ``off_by`` is the median distance of rows
    that break a formula from its value, in ``unit``. It is None for a rule, and if no row breaks the formula.
    """

    text: str
    declared: bool
    obey: int
    broken: int
    open: int
    column: str | None = None
    off_by: float | None = None
    unit: str | None = None

    def __str__(self) -> str:
        rows = f"{self.obey:,} row{' obeys' if self.obey == 1 else 's obey'}"
        said = f"{rows}, {self.broken:,} {'does' if self.broken == 1 else 'do'} not"
        if self.off_by is not None:
            said += f" (median distance {self.off_by:.3g}{f' {self.unit}' if self.unit else ''})"
        said += f", {self.open:,} lack a value" if self.open else ""
        return f"{'' if self.declared else 'not declared: '}{self.text}: {said} (confidential)"


def count_rules(
    schema: Schema, frame: pd.DataFrame, rules: Sequence[Expression], suggestions: Iterable[Suggestion] = ()
) -> tuple[RuleCount, ...]:
    """Count the rows of a conformed frame that obey each rule, formula and suggestion, in this order.

    ``rules`` may be the declared ones or more. A suggestion is left out if a rule already names its columns
    together. So is a suggested formula if the declared limits exclude it, such as one in other units. The
    frame has derived columns as its owner gave them.

    Examples
    --------
    >>> from dpsynth.table.column import Column
    >>> from dpsynth.table.suggestions import suggested
    >>> schema = Schema(columns=(Column(name="sbp", kind="integer", lower=40, upper=260),
    ...                          Column(name="dbp", kind="integer", lower=20, upper=160, missing=True)))
    >>> frame = schema.conform(pd.DataFrame({"sbp": [120, 80, 140], "dbp": [70, 90, None]})).frame
    >>> print(*count_rules(schema, frame, schema.rules, suggested(schema)))
    not declared: dbp <= sbp: 1 row obeys, 1 does not, 1 lack a value (confidential)
    """
    found = [*_of_rules(rules, frame, declared=True), *_of_formulas(schema, frame, declared=True)]
    for one in suggestions:
        if any(set(rule.columns) >= {*one.columns} for rule in rules):
            continue
        plain = schema.select(one.columns)
        for text in one.texts:
            with contextlib.suppress(SchemaError):
                adopted = one.adopted(plain, text)
                counts = [*_of_rules(adopted.rules, frame, declared=False)]
                counts += _of_formulas(adopted, frame, declared=False)
                found += [count for count in counts if count.text == one.shown(text)]
    return tuple(found)


def _of_rules(rules: Iterable[Expression], frame: pd.DataFrame, *, declared: bool) -> Iterator[RuleCount]:
    for rule in rules:
        true, false = rule.truth(numbers_of(frame))
        yield RuleCount(rule.text, declared, *_sums(true, false))


def _of_formulas(schema: Schema, frame: pd.DataFrame, *, declared: bool) -> Iterator[RuleCount]:
    for column, formula in schema.formulas:
        agree, differ = agreement(frame, column, formula)
        off = np.abs(deviations(frame, column, formula)[differ])
        text = f"{column.name} = {formula.text}"
        distance = float(np.median(off)) if len(off) else None
        yield RuleCount(text, declared, *_sums(agree, differ), column.name, distance, column.number_unit)


def _sums(obey: np.ndarray, broken: np.ndarray) -> tuple[int, int, int]:
    return int(obey.sum()), int(broken.sum()), int((~obey & ~broken).sum())
