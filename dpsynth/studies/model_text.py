"""Read and write a regression as one line: ``"kind: outcome ~ predictor + log(predictor) where rule"``.

:class:`~dpsynth.studies.model.EffectsModel` checks the names against a schema.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, Self, cast, get_args

from dpsynth.errors import InputError

Kind = Literal["logistic", "linear", "cox"]
#: logarithms that a column may enter by: of x, or of 1 + x, which has a value at 0
Log = Literal["log", "log1p"]

#: a name in backticks, which may hold any sign, or one without signs that mean something in the text
_NAME = r"(?:`[^`]+`|[^`~+(),]+)"
_COX_SIDE = re.compile(rf"\(\s*({_NAME})\s*,\s*({_NAME})\s*\)")
_ENTRY = re.compile(rf"({_NAME})|(log|log1p)\s*\(\s*({_NAME})\s*\)")
#: a word that ends the predictors, wherever it does not stand in backticks
_WHERE = re.compile(r"\s+where\s+(?=[^`]*(?:`[^`]*`[^`]*)*$)")
#: the right side of a regression without predictors
_NOTHING = "1"


@dataclass(frozen=True)
class Entry:
    """A column as it enters a regression: as it is, or as a logarithm.

    >>> str(Entry("age")), str(Entry("a+b", "log")), str(Entry("nodes", "log1p"))
    ('age', 'log(`a+b`)', 'log1p(nodes)')
    """

    column: str
    log: Log | None = None

    def __str__(self) -> str:
        """As text that is read back, in backticks where the name needs them."""
        signs = self.column in {".", _NOTHING} or re.search(r"[~+(),:]|\swhere\s", self.column)
        name = f"`{self.column}`" if signs else self.column
        return f"{self.log}({name})" if self.log else name


@dataclass(frozen=True)
class ModelText:
    """The parts of a line.

    ``kind`` is None if not given. ``predictors`` is None for all other columns, and empty for ``1``.
    ``where`` is the rule of a subgroup, None for all records.

    >>> text = ModelText.read("cox: (days, death) ~ age + log(creatinine) where sex == 'F'")
    >>> text.outcome.column, text.predictors[1], text.where
    ('death', Entry(column='creatinine', log='log'), "sex == 'F'")
    >>> str(text)
    "cox: (days, death) ~ age + log(creatinine) where sex == 'F'"
    """

    kind: Kind | None
    outcome: Entry
    duration: str | None
    predictors: tuple[Entry, ...] | None
    where: str | None = None

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a line. Raise InputError, with the part that cannot be read, if it is no model."""
        model, *where = _WHERE.split(text, maxsplit=1)
        sides = _split(model, "~")
        if len(sides) != 2:
            raise InputError(f"a model is written 'kind: outcome ~ predictors', got {text!r}")
        return cls(*_left_side(sides[0]), _right_side(sides[1]), where[0].strip() if where else None)

    def __str__(self) -> str:
        left = str(self.outcome)
        if self.duration is not None:
            left = f"({Entry(self.duration)}, {left})"
        right = "." if self.predictors is None else " + ".join(map(str, self.predictors)) or _NOTHING
        where = f" where {self.where}" if self.where else ""
        return f"{f'{self.kind}: ' if self.kind else ''}{left} ~ {right}{where}"


def check_kind(kind: str) -> None:
    """Refuse a kind of model that there is not."""
    if kind not in get_args(Kind):
        raise InputError(f"the kind of a model must be one of {', '.join(get_args(Kind))}, got {kind!r}")


def _left_side(text: str) -> tuple[Kind | None, Entry, str | None]:
    """Kind, outcome and duration of what stands before the tilde."""
    *kinds, side = (part.strip() for part in _split(text, ":"))
    if len(kinds) > 1:
        raise InputError(f"the left side of a model has one colon, got {text.strip()!r}")
    kind = kinds[0] if kinds else ""
    if kind:
        check_kind(kind)
    pair = _COX_SIDE.fullmatch(side)
    if pair:
        if kind and kind != "cox":
            raise InputError(f"the outcome of a {kind} model is one column, got {side!r}")
        return "cox", Entry(_unquoted(pair[2])), _unquoted(pair[1])
    if kind == "cox":
        raise InputError(f"the left side of a cox model is written '(duration, event)', got {side!r}")
    outcome = _entry(side)
    if outcome is None:
        raise InputError(f"the left side of a model is the name of one column, got {side!r}")
    return cast(Kind, kind) if kind else None, outcome, None


def _right_side(text: str) -> tuple[Entry, ...] | None:
    """Return the predictors, None for all, empty for none."""
    names = [name.strip() for name in _split(text, "+")]
    if not all(names):
        raise InputError(f"a predictor is missing beside '+' or '~' in {text.strip()!r}")
    if names == ["."]:
        return None
    if names == [_NOTHING]:
        return ()
    found = []
    for name in names:
        entry = _entry(name)
        if entry is None:
            raise InputError(
                "the right side of a model is 'column + log(column) + log1p(column)' or '.', "
                f"got {text.strip()!r}. "
                "Interactions and other functions are not read"
            )
        found.append(entry)
    return tuple(found)


def _entry(text: str) -> Entry | None:
    found = _ENTRY.fullmatch(text)
    if found is None:
        return None
    return Entry(_unquoted(found[1] or found[3]), cast("Log | None", found[2]))


def _split(text: str, sign: str) -> list[str]:
    """Split at a sign, wherever it does not stand in backticks."""
    # an even number of backticks follows
    return re.split(rf"{re.escape(sign)}(?=[^`]*(?:`[^`]*`[^`]*)*$)", text)


def _unquoted(name: str) -> str:
    name = name.strip()
    return name[1:-1] if name.startswith("`") else name
