"""Random numbers that a guarantee depends on: seeded by the operating system, in float64, drawn ahead.

Normals are drawn in float64 and cast. Generators that work in float32 stop between 5 and 6 standard
deviations. Such a mismatch of supports can cost up to 1e-4 of delta by itself. Drawing takes most of a
training step's time. A background thread therefore draws the next chunk while the current one is used. NumPy
releases the interpreter lock while it draws.

Noise of released sums is exact: whole numbers of a public step, see `with_noise`. The noise of the steps that
train a critic is in floating point, and attacks on its rounding (Mironov 2012) are not covered.
"""

from __future__ import annotations

import itertools
import json
import math
import queue
import secrets
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from randomgen import AESCounter

from dpsynth.errors import ConfigError, DataError, PrivacyError, RunError

# ------------------------------------------------------------------------------------------------
# Exact draws from the discrete Gaussian distribution and of Bernoulli trials, with whole numbers only.
#
# The last digits of a noisy number in floating point exclude some exact numbers that neighbouring tables
# have (Mironov 2012, "On significance of the least significant bits for differential privacy"). Here noise
# is a multiple of a public step. Its distribution is exact, given random bits.
#
# The sampler is that of Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential
# privacy", algorithms 1 to 3. All trials are made of whole numbers drawn evenly below a bound. No logarithm
# and no power is computed. A trial of probability exp(-(i + f)^2 / 2) is made of trials of exp(-1/2),
# exp(-f) and exp(-f^2 / 2). No product of large numbers is needed.

Ints = NDArray[np.int64]
#: The greatest scale: 120 times as much is still a number of 64 bits. A draw is as large with a probability
#: of 1e-3100, and a trial ends too late with one of 1e-80.
GREATEST = 2**56
#: Candidates that are held at once.
_BLOCK = 1 << 18


def discrete_gaussian(scale: int, size: int, rng: np.random.Generator) -> Ints:
    """Whole numbers k with probabilities in proportion to ``exp(-k^2 / (2 scale^2))``, shape (size,).

    ``scale``: about their standard deviation, from 1 to `GREATEST`.
    ``rng``: source of random bits, secret where the numbers are noise.

    Raises ConfigError if the scale is out of these bounds.

    Source: Canonne, Kamath, Steinke (2020), algorithm 3, with a discrete Laplace distribution of the same
    scale.

    Examples
    --------
    >>> draws = discrete_gaussian(3, 10_000, np.random.default_rng(0))
    >>> print(draws.dtype, round(float(draws.std()), 1))
    int64 3.0
    """
    if not 1 <= scale <= GREATEST:
        raise ConfigError(f"scale is {scale}, but must be from 1 to 2^56")
    found = [np.zeros(0, np.int64)]
    left = size
    while left > 0:
        kept = _candidates(scale, min(int(2.2 * left) + 40, _BLOCK), rng)[:left]
        found.append(kept)
        left -= len(kept)
    return np.concatenate(found)


def _candidates(scale: int, size: int, rng: np.random.Generator) -> Ints:
    """Draws of the discrete Laplace distribution, of which those are kept that make it a Gaussian one."""
    part = rng.integers(0, scale, size)
    part = part[_exponential(part, scale, rng)]
    whole = geometric(len(part), rng)
    negative = rng.integers(0, 2, len(part), dtype=np.int8).astype(bool)
    # Zero would be drawn twice, with either sign.
    once = ~(negative & (whole == 0) & (part == 0))
    part, whole, negative = part[once], whole[once], negative[once]
    # Kept with probability exp(-(i + f)^2 / 2), where i + f is |whole + part / scale - 1|.
    i = np.maximum(whole - 1, 0)
    f = np.where(whole > 0, part, scale - part)
    alive = np.flatnonzero(_exponential(f, scale, rng, squared=True))
    alive = _repeated(alive, i, f, scale, rng)  # exp(-i f)
    alive = _repeated(alive, i * i, np.ones_like(i), 1, rng, squared=True)  # exp(-i^2 / 2)
    value = whole[alive] * scale + part[alive]
    return np.where(negative[alive], -value, value)


def _repeated(
    alive: Ints,
    times: Ints,
    numerator: Ints,
    denominator: int,
    rng: np.random.Generator,
    *,
    squared: bool = False,
) -> Ints:
    """The candidates that succeed in all of so many trials, in their order."""
    due = times[alive]
    owner = np.repeat(np.arange(len(alive)), due)
    failed = ~_exponential(numerator[alive][owner], denominator, rng, squared=squared)
    kept = np.ones(len(alive), dtype=bool)
    kept[owner[failed]] = False
    return alive[kept]


def geometric(size: int, rng: np.random.Generator) -> Ints:
    """How many trials of probability exp(-1) succeed before the first that fails, shape (size,).

    The trials are one sequence, which its failures cut into runs.
    """
    found, done, begun = np.zeros(size, np.int64), 0, 0
    while done < size:
        trials = _exponential(np.ones(int(1.6 * (size - done)) + 16, np.int64), 1, rng)
        failures = np.flatnonzero(~trials)
        runs = np.diff(failures, prepend=-1)[: size - done] - 1
        runs[:1] += begun
        found[done : done + len(runs)] = runs
        done += len(runs)
        begun = len(trials) - 1 - failures[-1] if len(failures) else begun + len(trials)
    return found


def _exponential(
    numerator: Ints, denominator: int, rng: np.random.Generator, *, squared: bool = False
) -> NDArray[np.bool_]:
    """Trials of probability exp(-f), or exp(-f^2 / 2), with f = numerator / denominator in [0, 1].

    Trials of probability f / k for k = 1, 2, ... go on until one fails. The number of the failing one is odd
    with probability exp(-f) (algorithm 1 of the source, after von Neumann).
    """
    odd = np.zeros(len(numerator), dtype=bool)
    alive, k = np.arange(len(numerator)), 1
    while len(alive):
        left = numerator[alive]
        went_on = rng.integers(0, (2 * k if squared else k) * denominator, len(alive)) < left
        if squared:
            went_on &= rng.integers(0, denominator, len(alive)) < left
        odd[alive[~went_on]] = k % 2 == 1
        alive = alive[went_on]
        k += 1
    return odd


def exponential_trial(numerator: int, denominator: int, rng: np.random.Generator) -> bool:
    """One trial of probability exp(-numerator / denominator), a fraction in [0, 1], of any length.

    Examples
    --------
    >>> exponential_trial(0, 1, np.random.default_rng(0))
    True
    """
    k = 1
    while below(k, rng) == 0 and below(denominator, rng) < numerator:
        k += 1
    return k % 2 == 1


def below(bound: int, rng: np.random.Generator) -> int:
    """A whole number from 0 to bound - 1, evenly, of any length."""
    bits = (bound - 1).bit_length()
    length = math.ceil(bits / 8)
    while True:
        drawn = int.from_bytes(rng.bytes(length), "little") >> (8 * length - bits)
        if drawn < bound:
            return drawn


T = TypeVar("T")
# Float64 draws wait in a buffer of this many numbers (half a megabyte, so that it stays in cache).
_SLAB = 1 << 16

#: Step of what a record adds to a sum of fractions.
STEP = 2.0**-24
#: A standard deviation of noise has at least 2^30 steps. How much more noise is drawn than is charged for.
_FINENESS, _MORE = 30, 2.0**-20
#: Sums of more steps are not exact in floating point.
_MOST = 2**53


def in_steps(values: NDArray[np.floating]) -> NDArray[np.int64]:
    """Whole numbers of `STEP`, rounded towards zero, so that no vector becomes longer by it.

    Values are first made smaller by more than the rounding of their own computation.

    Examples
    --------
    >>> in_steps(np.array([2.0**-23, -1e-9, 0.0])).tolist()
    [1, 0, 0]
    """
    return np.trunc(values * ((1.0 - 2.0**-40) / STEP)).astype(np.int64)


def with_noise(
    exact: Sequence[NDArray[np.int64]], step: float, std: float, rng: np.random.Generator
) -> list[NDArray[np.float64]]:
    """Exact sums with discrete Gaussian noise of the step or of a finer one.

    ``exact``: one array or more of whole numbers of ``step``, a power of two. Fewer than 2^53.
    ``std``: standard deviation of the noise, 0 for none: **not private**. A millionth more is drawn.

    The noise is a multiple of a step of at most ``std / 2^30``. A noisy sum is then as likely as under
    Gaussian noise that is rounded to steps, up to a factor of exp(6e-18). The millionth more makes up for it
    (``docs/explanation/guarantee.md``). To round the answer of a Gaussian mechanism is post-processing.

    Raises PrivacyError if the sums are not whole numbers, or too many steps for an exact sum.
    """
    flat = np.concatenate([array.ravel() for array in exact])
    if flat.dtype != np.int64:
        raise PrivacyError(f"exact sums must be whole numbers of a step, got {flat.dtype}")
    noisy = _noisy(flat, step, std, rng) if std else flat * step
    parts = np.split(noisy, np.cumsum([array.size for array in exact])[:-1])
    return [part.reshape(array.shape) for part, array in zip(parts, exact, strict=True)]


def check_exact(sums: NDArray[np.int64]) -> None:
    """Refuse sums of more steps than float64 counts, which would be rounded."""
    if sums.size and max(-int(sums.min()), int(sums.max())) >= _MOST:
        raise PrivacyError(f"sums of more than {_MOST:,} steps are not exact: fit a part of the records")


def _noisy(
    exact: NDArray[np.int64], step: float, std: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    finer = max(0, _FINENESS - math.floor(math.log2(std / step)))
    scale = math.ceil(math.ldexp(std / step, finer) * (1.0 + _MORE))
    noise = discrete_gaussian(scale, exact.size, rng)
    if finer == 0:
        return (exact + noise) * step
    check_exact(exact)
    # The sum is that of exact numbers, rounded once, so it is a function of the exact noisy sum.
    return exact * step + noise * math.ldexp(step, -finer)


def secure_generator() -> np.random.Generator:
    """AES-128 in counter mode under a key of 128 random bits from the operating system.

    The generator is cryptographic: its output cannot be distinguished from true randomness or predicted. It
    is secret: keep neither the object nor its state with anything that is shared.
    """
    return np.random.Generator(AESCounter(key=secrets.randbits(128)))


#: bit generators whose state can be kept, by the name in it
_KINDS: dict[str, Any] = {
    "AESCounter": AESCounter,
    "PCG64": np.random.PCG64,
    "PCG64DXSM": np.random.PCG64DXSM,
}


def generator_state(rng: np.random.Generator) -> str:
    """The state of a generator as JSON text, from which `generator_at` goes on. As secret as the generator.

    Examples
    --------
    >>> rng = secure_generator()
    >>> copy = generator_at(generator_state(rng))
    >>> bool(copy.integers(2**62) == rng.integers(2**62))
    True
    """
    return json.dumps(rng.bit_generator.state, default=lambda array: [array.dtype.str, array.tolist()])


def generator_at(state: str) -> np.random.Generator:
    """The generator that goes on from a state of `generator_state`.

    Raises DataError if the text holds no such state.
    """

    def arrays(value: Any) -> Any:
        if isinstance(value, list):
            return np.array(value[1], dtype=np.dtype(value[0]))
        return {name: arrays(part) for name, part in value.items()} if isinstance(value, dict) else value

    try:
        known = arrays(json.loads(state))
        made: Any = _KINDS[known["bit_generator"].rpartition(".")[2]](0)
        made.state = known
        return np.random.Generator(made)
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise DataError(f"it holds no state of a generator of noise ({problem})") from None


def describe_generator(rng: np.random.Generator) -> str:
    """Name the generator of the noise in words, for the ledger."""
    name = type(rng.bit_generator).__name__
    if name == "AESCounter":
        return "AES-128 in counter mode, key from the operating system's randomness"
    return f"{name}, which is not cryptographic"


def standard_normals(rng: np.random.Generator, shape: int | tuple[int, ...]) -> NDArray[np.float32]:
    """Standard normals drawn in float64 and cast to float32."""
    out = np.empty(shape, np.float32)
    flat = out.reshape(-1)
    slab = np.empty(min(_SLAB, flat.size))
    for start in range(0, flat.size, _SLAB):
        part = slab[: min(_SLAB, flat.size - start)]
        rng.standard_normal(out=part)
        flat[start : start + part.size] = part
    return out


class _Failure:
    """An exception on its way from the drawing thread to the reader."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class NoiseStream(Generic[T]):
    """Iterator over chunks drawn ahead by a background thread, for use in a ``with`` statement.

    The chunks equal those of repeated calls of ``draw(rng)``. The thread is the only user of ``rng`` while
    the stream is open. It draws at most two chunks that nobody has asked for, and no more than ``count`` in
    all.

    Examples
    --------
    >>> with NoiseStream(lambda rng: standard_normals(rng, 4), secure_generator()) as stream:
    ...     next(stream).dtype
    dtype('float32')
    """

    def __init__(
        self, draw: Callable[[np.random.Generator], T], rng: np.random.Generator, count: int | None = None
    ) -> None:
        self._draw = draw
        self._rng = rng
        self._chunks = itertools.repeat(None) if count is None else itertools.repeat(None, count)
        self._waiting: queue.Queue[T | _Failure] = queue.Queue(maxsize=1)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: _Failure | None = None

    def __enter__(self) -> NoiseStream[T]:
        if self._thread is not None:
            raise RunError("a noise stream can be opened once only")
        # A daemon, so that an interpreter that is told to quit does not wait for a chunk.
        self._thread = threading.Thread(target=self._work, name="dpsynth-noise", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._clear()  # frees a thread that waits to hand over its chunk
        if self._thread is not None:
            self._thread.join()
        self._clear()

    def __iter__(self) -> NoiseStream[T]:
        return self

    def __next__(self) -> T:
        """Wait for the next chunk. An exception of ``draw`` is raised here unchanged."""
        if self._failure is not None:
            raise self._failure.error
        if self._thread is None or self._stop.is_set():
            raise RunError("the noise stream is not open: use it inside its with statement")
        chunk = self._waiting.get()
        if isinstance(chunk, _Failure):
            self._failure = chunk
            raise chunk.error
        return chunk

    def _work(self) -> None:
        for _ in self._chunks:
            if self._stop.is_set():
                return
            try:
                chunk: T | _Failure = self._draw(self._rng)
            except BaseException as error:  # whatever it is, the reader must not wait for ever
                chunk = _Failure(error)
            self._waiting.put(chunk)
            if isinstance(chunk, _Failure):
                return
        if not self._stop.is_set():  # nobody would take it
            self._waiting.put(_Failure(StopIteration()))

    def _clear(self) -> None:
        try:
            while True:
                self._waiting.get_nowait()
        except queue.Empty:
            pass
