"""Golden values: numbers published or computed independently, and the same numbers from this package.

Each source's are in its own ``golden`` module. ``dpsynth account verify`` prints them with the deviations, so
that whoever relies on an installation can see that its numbers are right there too. A value holds if it
agrees to within one unit of the last digit in which the golden value is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpsynth.research.papers.ghazi_issa import golden as ghazi_issa
from dpsynth.research.papers.jia import golden as jia
from dpsynth.research.papers.lowy import golden as lowy
from dpsynth.research.papers.mosaicrown import golden as mosaicrown

#: Each source's golden values: an iterator of (name, value as written, value computed now).
_SOURCES = {
    "Jia 2023": jia.values,
    "Ghazi and Issa 2024": ghazi_issa.values,
    "MOSAICrOWN D5.3": mosaicrown.values,
    "Lowy 2024": lowy.values,
}


@dataclass(frozen=True)
class Check:
    """A golden value and what this package computes.

    ``golden`` is the value as written, whose digits set the tolerance; ``value`` is computed now.
    """

    source: str
    name: str
    golden: str
    value: float

    @property
    def deviation(self) -> float:
        """Computed less golden."""
        return self.value - float(self.golden)

    @property
    def holds(self) -> bool:
        """Whether the two agree to one unit of the last written digit.

        Examples
        --------
        >>> Check("x", "y", "0.25", 0.2549).holds, Check("x", "y", "0.25", 0.2649).holds
        (True, False)
        """
        mantissa, _, exponent = self.golden.lower().partition("e")
        places = len(mantissa.partition(".")[2]) - int(exponent or 0)
        return abs(self.deviation) <= 1.000001 * 10.0**-places

    def to_dict(self) -> dict[str, str | float | bool]:
        """Return the check as a dictionary that JSON can hold."""
        return {
            "source": self.source,
            "name": self.name,
            "golden": float(self.golden),
            "value": self.value,
            "deviation": self.deviation,
            "holds": self.holds,
        }


def check() -> tuple[Check, ...]:
    """Compute every golden value; takes a few seconds."""
    return tuple(Check(source, *line) for source, values in _SOURCES.items() for line in values())


def to_table(checks: Sequence[Check]) -> str:
    """A readable table of checks, and how many hold."""
    width = max(len(check.name) for check in checks)
    lines = [f"{'value':<{width}}  {'golden':>12}  {'computed':>14}  {'deviation':>10}"]
    source = ""
    for one in checks:
        if one.source != source:
            source = one.source
            lines.append(source)
        lines.append(
            f"{one.name:<{width}}  {one.golden:>12}  {one.value:>14.8g}  {one.deviation:>10.1e}"
            + ("" if one.holds else "  DIFFERS")
        )
    held = sum(one.holds for one in checks)
    lines.append(f"{held} of {len(checks)} values agree to the last digit in which they are written")
    return "\n".join(lines)
