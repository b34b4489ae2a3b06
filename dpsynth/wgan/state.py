"""The state of a training, from which it goes on: its arrays, and where its noise is. No TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import DataError, RunError
from dpsynth.wgan.history import LayerBound
from dpsynth.wgan.snapshots import Snapshot


@dataclass
class TrainingState:
    """Everything needed to continue, private except for what was released, so it stays with the data.

    ``arrays``: dictionaries and lists of float32 arrays, such as weights, points and Adam averages.
    ``step``: iterations so far.
    ``history``: a row for every iteration or chunk of iterations, from released quantities.
    ``noise``: where the noise goes on, as `generator_state` has it. None before the first chunk.
    ``layers``: bounds at the last weights, once the training is at its end.
    ``snapshots``: single columns of the generator so far.
    ``awaits_noise``: whether records are still to be read with noise. Without, nothing in it is secret.
    """

    arrays: dict[str, Any]
    step: int = 0
    history: pd.DataFrame = field(default_factory=pd.DataFrame)
    noise: str | None = None
    layers: tuple[LayerBound, ...] = ()
    awaits_noise: bool = True
    snapshots: tuple[Snapshot, ...] = ()


class DivergedError(RunError):
    """A training that would diverge again, so there is nothing to go on from."""


@contextmanager
def handed_over(
    latest: Callable[[], TrainingState], on_stop: Callable[[TrainingState], None] | None
) -> Iterator[None]:
    """Give ``on_stop`` the latest state if anything stops the block, and raise what stopped it.

    A training that diverged is not given: it would diverge again.
    """
    try:
        yield
    except DivergedError:
        raise
    except BaseException as problem:
        if on_stop is not None:
            on_stop(latest())
        # TensorFlow turns an interrupt into its own error while it compiles
        if isinstance(problem, RuntimeError) and "KeyboardInterrupt" in str(problem):
            raise KeyboardInterrupt from None
        raise


def by_place(arrays: Any, place: str = "") -> dict[str, NDArray[np.float32]]:
    """The arrays of a state by their places.

    Examples
    --------
    >>> sorted(by_place({"critic": [np.zeros(2), np.ones(3)], "rate": np.float32(1)}))
    ['critic/0', 'critic/1', 'rate']
    """
    if isinstance(arrays, list | tuple):
        arrays = {str(k): part for k, part in enumerate(arrays)}
    if not isinstance(arrays, Mapping):
        return {place: np.asarray(arrays, np.float32)}
    found: dict[str, NDArray[np.float32]] = {}
    for name, part in arrays.items():
        found |= by_place(part, f"{place}/{name}" if place else str(name))
    return found


def nested(arrays: Mapping[str, NDArray[np.float32]]) -> Any:
    """Inverse of `by_place`. Numbers are places of a list.

    Raises DataError if a list has a gap.

    Examples
    --------
    >>> nested({"critic/1": 3, "critic/0": 2, "rate": 1})
    {'critic': [2, 3], 'rate': 1}
    """
    if set(arrays) == {""}:
        return arrays[""]
    parts: dict[str, dict[str, Any]] = {}
    for place, array in arrays.items():
        name, _, rest = place.partition("/")
        parts.setdefault(name, {})[rest] = array
    if not all(name.isdecimal() for name in parts):
        return {name: nested(part) for name, part in parts.items()}
    if set(parts) != {str(k) for k in range(len(parts))}:
        raise DataError(f"a list of arrays has the places {sorted(parts)}")
    return [nested(parts[str(k)]) for k in range(len(parts))]
