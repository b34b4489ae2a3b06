"""Exact draws from the discrete Gaussian distribution and of Bernoulli trials, with whole numbers only.

The last digits of a noisy number in floating point exclude some exact numbers that neighbouring tables have
(Mironov 2012, "On significance of the least significant bits for differential privacy"). Here noise is a
multiple of a public step. Its distribution is exact, given random bits.

The sampler is that of Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
algorithms 1 to 3. All trials are made of whole numbers drawn evenly below a bound. No logarithm and no power
is computed. A trial of probability exp(-(i + f)^2 / 2) is made of trials of exp(-1/2), exp(-f) and
exp(-f^2 / 2). No product of large numbers is needed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ConfigError

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
    turn, kept = 0, np.ones(len(times), dtype=bool)
    due = alive[times[alive] > turn]
    while len(due):
        succeeded = _exponential(numerator[due], denominator, rng, squared=squared)
        kept[due[~succeeded]] = False
        turn += 1
        due = due[succeeded & (times[due] > turn)]
    return alive[kept[alive]]


def geometric(size: int, rng: np.random.Generator) -> Ints:
    """How many trials of probability exp(-1) succeed before the first that fails, shape (size,)."""
    count = np.zeros(size, np.int64)
    alive = np.arange(size)
    while len(alive):
        alive = alive[_exponential(np.ones(len(alive), np.int64), 1, rng)]
        count[alive] += 1
    return count


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
