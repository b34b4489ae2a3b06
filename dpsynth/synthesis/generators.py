"""The generators by the names that configurations and commands use, and how a saved one is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from dpsynth.checks import few
from dpsynth.errors import InputError
from dpsynth.synthesis.marginals import DPMarginals
from dpsynth.synthesis.matching import DPCriticMatching
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.part import Part
from dpsynth.synthesis.parts.studies import Studies
from dpsynth.synthesis.synthesizer import Synthesizer, read_model
from dpsynth.synthesis.wgan_gp import DPWGANGP

#: the estimator of each generator
GENERATORS: Mapping[str, type[Synthesizer]] = {
    each.options.generator: each for each in (DPMarginals, DPWGANGP, DPCriticMatching)
}
#: parts that a caller gives to any generator. A saved model may hold them
PARTS: tuple[type[Part], ...] = (Studies,)
#: the generator where nobody names one
DEFAULT = "marginals"


def estimator(generator: object, options: Iterable[str] = ()) -> type[Synthesizer]:
    """The estimator of a generator that has these options.

    Raises InputError for an unknown generator, and for an option that only others have.

    Examples
    --------
    >>> estimator("marginals", ["steps"])
    Traceback (most recent call last):
    dpsynth.errors.InputError: steps is an option of generator wgan-gp, not of marginals
    """
    found = GENERATORS.get(generator) if isinstance(generator, str) else None
    if found is None:
        raise InputError(f"generator must be one of {few(GENERATORS)}, got {generator!r:.80}")
    for name in options:
        if name in found._get_param_names():
            continue
        others = [other for other, each in GENERATORS.items() if name in each._get_param_names()]
        if others:
            raise InputError(f"{name} is an option of generator {' and '.join(others)}, not of {generator}")
    return found


def options_of(generator: str = DEFAULT, **given: object) -> FitOptions:
    """The checked options of a generator. Raises InputError as `estimator` does, or for a wrong value."""
    return estimator(generator, given).options.of(**given)


def unfitted(options: FitOptions) -> Synthesizer:
    """The estimator of these options."""
    return GENERATORS[options.generator].of(options)


def load(path: str | Path) -> Synthesizer:
    """Read a fitted model of any generator. Errors are those of :meth:`Synthesizer.load`."""
    return read_model(path, GENERATORS)
