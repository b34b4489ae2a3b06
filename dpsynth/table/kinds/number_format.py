"""How a table writes numbers that no program reads as such: marks between thousands, a currency, a unit.

The form is given by an example, such as ``$1,234.50``, ``1.234,5`` or ``5.2 mg``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

#: signs that are written alike: blanks, apostrophes and minus signs
_ALIKE = str.maketrans("\u00a0\u202f\u2009\u2019\u2212", "   '-")
_MARKS = "[.,' ]"
_EXAMPLE = re.compile(rf"(?P<before>[^\d.,+-]*)(?P<body>\d(?:\d|{_MARKS}(?=\d))*)(?P<after>[^\d]*)", re.ASCII)
_SIGNED = re.compile(rf"[+-]?\s*{_EXAMPLE.pattern}", re.ASCII)


@dataclass(frozen=True)
class NumberFormat:
    """Text before and after a number, its decimal sign, and the mark between thousands. Any may be empty."""

    before: str
    after: str
    decimal: str
    thousands: str

    @classmethod
    def of(cls, example: str) -> NumberFormat:
        """The form of an example. The last of two marks is the decimal sign. One before three digits is none.

        Raises ValueError if it shows no such number.

        Examples
        --------
        >>> NumberFormat.of("$1,234.50")
        NumberFormat(before='$', after='', decimal='.', thousands=',')
        >>> NumberFormat.of("1.234").thousands, NumberFormat.of("0,5 mg").decimal
        ('.', ',')
        """
        match = _EXAMPLE.fullmatch(example.translate(_ALIKE).strip())
        if match is None or {*match["before"], *match["after"]} & {*"()"}:
            raise ValueError(
                "format must show a number as the table writes it, such as 1.234,5 or $1,234.50, got "
                f"{example!r}"
            )
        decimal, thousands = _marks([match["body"]])
        form = cls(match["before"].strip(), match["after"].strip(), decimal or ".", thousands or "")
        if form.number(example) is None:
            raise ValueError(
                f"format {example!r} does not show which marks stand between thousands. Write 1.234,5"
            )
        return form

    @classmethod
    def likely(cls, words: Iterable[str]) -> str | None:
        """An example of the form that most of the words have, None if it is not the same of nine in ten.

        A point before three digits may be either, and is taken for a mark between thousands.

        Examples
        --------
        >>> NumberFormat.likely(["$1,200", "$15", "$2,000,000"])
        '$1,234'
        >>> NumberFormat.likely(["5.2 mg", "11 mg", "9"])
        '1.5 mg'
        """
        words = list(words)
        found = [match for word in words if (match := _SIGNED.fullmatch(word.translate(_ALIKE).strip()))]
        if not found:
            return None
        befores, afters = (Counter(match[part].strip() for match in found) for part in ("before", "after"))
        decimal, thousands = _marks(match["body"] for match in found)
        before, after = (_usual(counts) for counts in (befores, afters))
        text = f"1{thousands}234" if thousands else "1"
        text += f"{decimal}5" if decimal else ""
        gap = {match["after"][:1] for match in found if match["after"].strip() == after}
        example = f"{before}{text}{' ' if after and gap == {' '} else ''}{after}"
        try:
            form = cls.of(example)
        except ValueError:
            return None
        read = sum(form.number(word) is not None for word in words)
        return example if 10 * read >= 9 * len(words) else None

    def number(self, text: str) -> float | None:
        """A text as a number, with or without what stands before and after it. None if it has another form.

        Numbers as programs write them are read too: samples are written so.

        Examples
        --------
        >>> form = NumberFormat.of("1.234,5 mg")
        >>> [form.number(text) for text in ("2.142", "12,25 mg", "-7", "3.5", "1.23,4", "5 kg")]
        [2142.0, 12.25, -7.0, 3.5, None, None]
        """
        plain = text.translate(_ALIKE).strip()
        match = _pattern(self).fullmatch(plain)
        if match is None:
            return float(plain) if _PLAIN.fullmatch(plain) else None
        whole = re.sub(_MARKS, "", match["whole"])
        sign = "-" if "-" in (match["sign"] or "", match["sign2"] or "") else ""
        return float(f"{sign}{whole}.{match['part'] or 0}")


_PLAIN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


@cache
def _pattern(form: NumberFormat) -> re.Pattern[str]:
    whole = r"\d+"
    if form.thousands:
        whole = rf"\d{{1,3}}(?:{re.escape(form.thousands)}\d{{3}})+|\d+"
    before, after = (rf"(?:{re.escape(text)})?" if text else "" for text in (form.before, form.after))
    return re.compile(
        rf"(?P<sign>[+-])?\s*{before}\s*(?P<sign2>[+-])?(?P<whole>{whole})"
        rf"(?:{re.escape(form.decimal)}(?P<part>\d+))?\s*{after}",
        re.ASCII,
    )


def _marks(bodies: Iterable[str]) -> tuple[str, str]:
    """The decimal sign and the mark between thousands of numbers, each "" where none is seen."""
    decimal, thousands = Counter[str](), Counter[str]()
    for body in bodies:
        marks = re.findall(_MARKS, body)
        if not marks:
            continue
        last, digits = marks[-1], len(re.split(_MARKS, body)[-1])
        others = {mark for mark in marks[:-1] if mark != last}
        if others or (last in ".," and marks.count(last) == 1 and digits != 3):
            decimal[last] += 1
            thousands.update(others)
        else:
            thousands[last] += 1
    sign = _usual(decimal)
    # A number with three decimals looks grouped where others show that its mark is the decimal sign.
    rest = Counter({mark: n for mark, n in thousands.items() if mark != sign})
    return sign, _usual(rest)


def _usual(counts: Counter[str]) -> str:
    return counts.most_common(1)[0][0] if counts else ""
