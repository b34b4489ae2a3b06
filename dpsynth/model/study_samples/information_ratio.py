"""How much the records know, compared with what draws say: a noisy ratio of informations in every direction.

Draws say what a study's information should be; that of the records is read with noise. In coordinates in
which the draws' is the identity the records' is a symmetric matrix of ratios plus noise. Its difference to
the identity is shrunk by the noise that it holds (James and Stein 1961), so that it does no harm where noise
drowns it. An interval is made as if the ratio in every direction were a standard error of that noise less:
unsure is wide.

A ratio is far below 1 where predictors go together more closely than the draws tell, as a radius, a perimeter
and an area do: a tree of binned columns cannot say how closely, and effects that only their differences tell
are hidden. Noise alone spreads the eigenvalues by ``sqrt(2 d)`` of its standard deviation (the edge of
Wigner's semicircle). An eigenvalue that lies farther below 1 is taken for such a direction, and its interval
may then claim next to nothing there. Where the edge itself is beyond 1, noise hides whether there is any.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: ratios are taken to be no less and no more
_RATIOS = (0.1, 4.0)
#: how far, in logarithms, draws may be off where noise drowns the records' information
_DOUBT = 0.5
#: what is left of a ratio at its lower end at least; of one beyond the noise's edge, which is itself no less
_LEAST, _LEAST_BEYOND = 0.3, 0.01
#: part of a ratio that is left where it is not said to be hidden
_HIDDEN = 0.5


@dataclass(frozen=True, eq=False)
class Compared:
    """The records' information, as far as its noise lets tell it from that of the draws.

    Attributes
    ----------
    estimate : ndarray of shape (d, d)
        Positive definite.
    lower : ndarray of shape (d, d)
        A standard error less, in every direction.
    hidden : ndarray of shape (d, k)
        Combinations of the coefficients, one a column, of which little is known and how little is not.
    blind : bool
        Whether the noise is too strong to see such combinations.
    """

    estimate: Floats
    lower: Floats
    hidden: Floats
    blind: bool


def compared(own: Floats, noisy: Floats, noise_std: float) -> Compared:
    """Compare a noisy information with that of draws.

    Parameters
    ----------
    own : ndarray of shape (d, d)
        What draws say, positive semidefinite.
    noisy : ndarray of shape (d, d)
        Of the records, with noise of ``noise_std`` on its diagonal and 1 / sqrt(2) of that beside it.
    noise_std : float
    """
    size = len(own)
    squared = float(((noisy - own) ** 2).sum())
    kept = max(0.0, 1.0 - noise_std**2 * size * (size + 1) / 2 / squared) if squared else 0.0
    root, inverse = roots(own)
    seen, axes = np.linalg.eigh(inverse @ noisy @ inverse)
    noise = noise_std * ((inverse @ axes) ** 2).sum(axis=0)
    edge = np.sqrt(2 * size) * noise
    beyond = seen < np.minimum(1.0 - edge, 0.5)
    shrunk = 1.0 + kept * (seen - 1.0)
    least = np.where(beyond, np.maximum(noise, _LEAST_BEYOND), _RATIOS[0])
    ratios = np.clip(shrunk, least, _RATIOS[1])
    relative = noise / ratios
    unsure = np.sqrt(kept) * relative + (1.0 - kept) * np.minimum(relative, _DOUBT)
    # a standard error less, of the logarithm where there is something for sure
    left = np.where(beyond, np.maximum(1.0 - unsure, _LEAST_BEYOND), np.maximum(np.exp(-unsure), _LEAST))
    back = root @ axes
    return Compared(
        (back * ratios) @ back.T,
        (back * (ratios * left)) @ back.T,
        (inverse @ axes)[:, beyond & (left < _HIDDEN)],
        bool(np.median(edge) > 1.0),
    )


def roots(matrix: Floats) -> tuple[Floats, Floats]:
    """Square root of a symmetric matrix and its inverse; what is 0 or less is lifted a little."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 1e-6 * max(float(values.mean()), 1e-12))
    return (vectors * values**0.5) @ vectors.T, (vectors * values**-0.5) @ vectors.T
