"""A number out of range yields no number: every argument of every formula is refused by its name.

This stands in the place of a table of bad arguments beside each formula.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

from dpsynth.checks import in_range, inside, positive, whole
from dpsynth.errors import InputError

MODULES = (
    "attacks.closed_forms",
    "privacy.conversions",
    "privacy.gaussian_loss",
    "research.papers.ghazi_issa",
    "research.papers.ghazi_issa_local",
    "research.papers.jia",
    "research.papers.lowy_gaussian",
    "research.papers.mosaicrown",
)
#: steps of other formulas, whose arguments were checked before
INNER = {
    "times_exp",
    "tpr_bound",
    "difference_law",
    "gaussian_deltas",
    "in_the_form_of",
    "checked_rates",
    "amplified",
}
INNER |= {"checked_values", "largest_distance", "single_epsilon", "private_root"}
#: one value of each argument with which its formulas have an answer
GOOD: dict[str, Any] = {
    **dict.fromkeys(("fpr", "sampling_prob", "probability", "input_tv", "tv", "advantage"), 0.2),
    **dict.fromkeys(("prior", "gamma", "tpr", "belief"), 0.5),
    **dict.fromkeys(("epsilon", "mu", "noise_multiplier", "scale", "sigma", "value_range", "kl"), 0.9),
    **dict.fromkeys(("steps", "k", "count", "n"), 3),
    **dict(delta=0.01, rtol=0.001, order=2.0, epsilon_rdp=1.0, f="kl", epsilons=[0.1], tvs=[0.01]),
    **dict(values=[0.0, 0.2, 0.25, 1.0], p=[0.5, 0.5], q=[0.4, 0.6], channel=[[0.5, 0.5], [0.4, 0.6]]),
}


def formulas() -> Iterator[tuple[str, Callable[..., Any]]]:
    for module in MODULES:
        for name, formula in vars(import_module(f"dpsynth.{module}")).items():
            own = inspect.isfunction(formula) and formula.__module__ == f"dpsynth.{module}"
            if own and not name.startswith("_") and name not in INNER:
                yield name, formula


@pytest.mark.parametrize(("name", "formula"), list(formulas()), ids=lambda x: x if isinstance(x, str) else "")
def test_a_number_out_of_range_is_refused_by_its_name(name, formula):
    """NaN, a negative number or half a step that is computed with: a guarantee that does not hold."""
    arguments = inspect.signature(formula).parameters.values()
    numbers = {a.name: a.annotation for a in arguments if a.annotation in ("float", "int", "Rate")}
    given = {a.name: GOOD[a.name] for a in arguments if a.name in numbers or a.default is a.empty}
    formula(**given)
    for argument, kind in numbers.items():
        for bad in (math.nan, -1.0, *((2.5, True) if kind == "int" else ())):
            with pytest.raises(InputError, match=argument):
                formula(**(given | {argument: bad}))


def test_checks_of_numbers():
    """An end that belongs to the range or not, and what is no number: a truth value, a text, half a count."""
    assert in_range("x", 0, 0, 1) == in_range("x", 0.0, 0, 1) == 0.0 and whole("x", 10**15) == 10**15
    assert positive("x", math.inf) == math.inf
    for check, value in (
        *((lambda v: in_range("x", v, 0, 1), v) for v in (1.1, -1e-300, math.nan, True, "1", None, 10**400)),
        *((lambda v: inside("x", v, 0, 1), v) for v in (0.0, 1.0, 0, 1)),
        (lambda v: positive("x", v), 0.0),
        *((lambda v: whole("x", v), v) for v in (0, 2.0, True, "2", math.nan, 10**15 + 1)),
    ):
        with pytest.raises(InputError, match=r"^x must"):
            check(value)
