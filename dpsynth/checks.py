"""Check arguments at the boundary of the package, with one clear sentence for each fault.

TensorFlow Privacy, which an installation may lack, is imported here only. A plain ``import
tensorflow_privacy`` fails on TensorFlow 2.16 and later, because it loads estimators that are gone. The flag
below makes the package's ``__init__`` load nothing. Submodules are imported by path.
"""

from __future__ import annotations

import importlib
import math
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from numbers import Integral, Real
from types import ModuleType
from typing import Self

from dpsynth.errors import InputError


def in_range(
    name: str, value: object, low: float, high: float, *, low_open: bool = False, high_open: bool = False
) -> float:
    """Return ``value`` as a float after checking that it lies between ``low`` and ``high``.

    Examples
    --------
    >>> in_range("delta", 0.5, 0.0, 1.0)
    0.5
    """
    interval = f"{'(' if low_open else '['}{low:g}, {high:g}{')' if high_open else ']'}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} must be a number in {interval}, not {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a whole number of more than 308 digits
        number = -math.inf if value < 0 else math.inf
    if math.isnan(number):
        raise InputError(f"{name} must be a number in {interval}, not {value!r}")
    below = number < low or (low_open and number == low)
    above = number > high or (high_open and number == high)
    if below or above:
        raise InputError(f"{name} must lie in {interval}, not {number:g}")
    return number


def inside(name: str, value: object, low: float, high: float) -> float:
    """Return ``value`` as a float after checking that it lies between ``low`` and ``high`` and is neither.

    Examples
    --------
    >>> inside("delta", 0.0, 0.0, 1.0)
    Traceback (most recent call last):
    dpsynth.errors.InputError: delta must lie in (0, 1), not 0
    """
    return in_range(name, value, low, high, low_open=True, high_open=True)


def positive(name: str, value: object) -> float:
    """Return ``value`` as a float after checking that it is greater than 0. Infinity is allowed."""
    return in_range(name, value, 0.0, math.inf, low_open=True)


def whole(name: str, value: object, low: int = 1) -> int:
    """Return ``value`` as an int after checking that it is a whole number of at least ``low``.

    ``2.0`` is refused as well, because a count is never measured.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < low:
        raise InputError(f"{name} must be a whole number of at least {low}, not {value!r}")
    if int(value) > 10**15:
        raise InputError(f"{name} must be at most 1,000,000,000,000,000, not {len(str(value))} digits long")
    return int(value)


def checked_seed(value: object) -> int | None:
    """Return a ``random_state`` after checking that it is None or a whole number of at least 0."""
    return None if value is None else whole("random_state", value, 0)


def one_of(name: str, value: object, choices: Collection[str]) -> None:
    """Check that ``value`` is one of ``choices``.

    Examples
    --------
    >>> one_of("shape", "flat", ("round", "long"))
    Traceback (most recent call last):
    dpsynth.errors.InputError: shape must be one of round, long, not 'flat'
    """
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def text(name: str, value: object, may_be_empty: bool = False) -> str:
    """Return ``value`` after checking that it is a text, and not an empty one unless that is allowed."""
    if not isinstance(value, str) or (not value and not may_be_empty):
        raise InputError(
            f"{name} must be a text{'' if may_be_empty else ' that is not empty'}, not {value!r}"
        )
    return value


def given_twice(names: Iterable[str]) -> str | None:
    """The first name that is given more than once, or None.

    Examples
    --------
    >>> given_twice(["age", "sex", "age"])
    'age'
    """
    return next((name for name, times in Counter(names).items() if times > 1), None)


# Signs that end a name, begin a stream or name a drive somewhere, and names of devices of Windows.
_UNNAMEABLE = re.compile(r'[<>:"/\\|?*]')
_DEVICE = re.compile(
    r"(?:con|prn|aux|nul|(?:conin|conout|clock)\$|(?:com|lpt)[0-9¹²³]) *(?:\.|$)", re.IGNORECASE
)
_LONGEST_NAME = 230  # bytes, of the 255 that file systems have: temporary names are longer


def file_name(name: str) -> str:
    """Return the name of a file in a folder, or raise InputError if it is none on some computer.

    A name out of somebody's YAML file must not lead out of the folder that we join it to. The rule is the
    same on every platform, so that a schema holds everywhere or nowhere.

    Examples
    --------
    >>> file_name("Größe (cm).csv")
    'Größe (cm).csv'
    >>> file_name("C:rows.csv")
    Traceback (most recent call last):
    dpsynth.errors.InputError: 'C:rows.csv' is not the name of a file on every computer: ...
    """
    wrong = (
        not name.isprintable()
        or _UNNAMEABLE.search(name)
        or _DEVICE.match(name)
        or name.strip(" .") == ""
        or name.endswith((" ", "."))
        or len(name.encode()) > _LONGEST_NAME
    )
    if wrong:
        raise InputError(
            f"{name[:100]!r} is not the name of a file on every computer: it must name no folder and no "
            'drive, have none of < > : " / \\ | ? *, no invisible sign, no space or full stop at the end. '
            f"Nor may it be a device (NUL, CON, AUX, PRN, COM1) or longer than {_LONGEST_NAME} bytes"
        )
    return name


def few(names: Iterable[object], most: int = 10, separator: str = ", ") -> str:
    """Names for a message, which a table of a thousand columns must not fill.

    Examples
    --------
    >>> few(["age", "sex"]), few(range(843), most=3)
    ('age, sex', '0, 1, 2 and 840 more')
    """
    known = [str(name) for name in names]
    more = f" and {len(known) - most:,} more" if len(known) > most else ""
    return separator.join(known[:most]) + more


def together(names: Sequence[str]) -> str:
    """Names as a sentence has them: ``a``, ``a and b``, ``a, b and c``, at most ten."""
    if len(names) > 10:
        return few(names)
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


#: first words of what neighbouring tables differ in, where a patient may have several rows
PATIENT = "one patient with all rows"


class Counted(StrEnum):
    """What the records of a table are called: records, or patients where these have several rows.

    As a text it is the plural.

    Examples
    --------
    >>> f"{Counted.PATIENTS}, one {Counted.PATIENTS.one}", Counted.PATIENTS.fill("{Records} without {own}")
    ('patients, one patient', 'Patients without rows')
    """

    RECORDS = "records"
    PATIENTS = "patients"

    @classmethod
    def of(cls, unit: str | None) -> Self:
        """What has the rows of a table: patients, if its unit is a patient with all rows."""
        return cls.PATIENTS if (unit or "").startswith(PATIENT) else cls.RECORDS

    @property
    def one(self) -> str:
        """The singular."""
        return self.value[:-1]

    @property
    def own(self) -> str:
        """What a person has in the table: a record, or rows."""
        return "record" if self is Counted.RECORDS else "rows"

    def fill(self, text: str, /, **values: object) -> str:
        """Return a text with ``{record}``, ``{records}``, ``{Records}``, ``{own}`` and the values filled in.

        Without values, other braces stay.
        """
        nouns = {"record": self.one, "records": self.value, "Records": self.capitalize(), "own": self.own}
        if values:
            return text.format(**nouns, **values)
        return re.sub(r"\{(record|records|Records|own)\}", lambda noun: nouns[noun[1]], text)


def tf_privacy_module(path: str) -> ModuleType:
    """Import ``tensorflow_privacy.privacy.<path>``, or raise ImportError if it is not installed.

    Its Keras models and optimizers need ``TF_USE_LEGACY_KERAS=1`` in the environment before TensorFlow is
    imported, and tf-keras.
    """
    sys.skip_tf_privacy_import = True  # type: ignore[attr-defined]
    return importlib.import_module(f"tensorflow_privacy.privacy.{path}")
