"""Options of a generator in a command: the arguments of its class, such as ``--steps 1000``.

No command lists them. One of the class `GeneratorCommand` takes them beside its own. Dots lead into an option
with parts, as in ``--training.penalty data``. Values are written as in YAML, and checked where those of a
configuration are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer import Context
from typer.core import TyperCommand

from dpsynth.errors import InputError

_KEY = f"{__name__}.given"
#: arguments that are options of the commands themselves, or no single value
_APART = ("epsilon", "delta", "studies", "statistics", "accept_unreviewed")


def option_names() -> Mapping[str, str]:
    """The argument of each option of any generator, by the option: ``--batch-size``."""
    from dpsynth.synthesis.generators import GENERATORS

    names = {name: None for each in GENERATORS.values() for name in each._get_param_names()}
    return {f"--{name.replace('_', '-')}": name for name in names if name not in _APART}


def generator_options(context: Context) -> dict[str, Any]:
    """The options of a generator that the command line gave, as a configuration has them under ``model``."""
    found: dict[str, Any] = context.meta.get(_KEY, {})
    return found


def options_as_given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same, by their names on the command line."""
    return {f"--{name.replace('_', '-')}": value for name, value in options.items()}


class GeneratorCommand(TyperCommand):
    """A command that also takes the options of the generators."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the generators' options out of the words, and give the others to the command."""
        own = {name for parameter in self.params for name in (*parameter.opts, *parameter.secondary_opts)}
        left: list[str] = []
        given: dict[str, Any] = {}
        words = iter(args)
        for word in words:
            option, joined, value = word.partition("=")
            first, *inner = option.split(".")
            unknown = option.startswith("--") and option not in own and option not in ("--", "--help")
            name = option_names().get(first) if unknown else None
            if name is None:  # an option of nobody is for the command to refuse
                left.append(word)
                continue
            text = value if joined else next(words, None)
            if text is None:
                raise InputError(f"{option} needs a value, such as {option} 1000")
            *outer, last = [key.replace("-", "_") for key in (name, *inner)]
            place = given
            for key in outer:
                place = place.setdefault(key, {})
                if not isinstance(place, dict):
                    raise InputError(f"{option} is a part of {first}, which was given as a whole")
            place[last] = _read(option, text)
        ctx.meta[_KEY] = given
        return super().parse_args(ctx, left)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Name the options of the generators, read from their classes."""
        from dpsynth.synthesis.generators import GENERATORS

        with formatter.section("Options of one generator, explained in the help of its class"):
            known = {name: option for option, name in option_names().items()}
            rows = [
                (generator, ", ".join(known[n] for n in each._get_param_names() if n in known))
                for generator, each in GENERATORS.items()
            ]
            formatter.write_dl(rows)


def _read(option: str, text: str) -> Any:
    from dpsynth.files.text import load_yaml

    return load_yaml(text, origin=option, error=InputError)
