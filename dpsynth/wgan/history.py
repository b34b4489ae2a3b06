"""The history of a training, a row for each generator iteration, and what people are told of it.

Every column is a function of released quantities: noisy gradients, the weights that they made, generated
points and public settings. So the history may be shared as the model may. No TensorFlow.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.files.codec import record

#: An estimate beyond so many of its standard errors is more than noise.
BEYOND = 2.0
# The noise's share of a released gradient that leaves little to learn from, and the share of iterations.
_NOISE, _OFTEN = 0.9, 0.1
# Iterations that the latest estimate is the mean of.
_RECENT = 40


@record
@dataclass(frozen=True, eq=False)
class History:
    """What a training released on its way.

    ``rows``: columns of a frame with a row for each iteration, arrays of one length.
    """

    rows: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: pd.DataFrame) -> History:
        """The history in a frame."""
        return cls({str(name): frame[name].to_numpy(np.float64) for name in frame})

    @property
    def frame(self) -> pd.DataFrame:
        """The rows as a frame, ``step`` in whole numbers. Empty if nothing was trained."""
        frame = pd.DataFrame(self.rows)
        return frame.astype({"step": np.int64}) if "step" in frame else frame


def latest(frame: pd.DataFrame) -> tuple[float, float] | None:
    """Mean of the last estimates of the Wasserstein distance, and its standard error. None without any.

    Examples
    --------
    >>> latest(pd.DataFrame({"wasserstein": [1.0, 3.0], "wasserstein_error": [0.3, 0.4]}))
    (2.0, 0.25)
    """
    if "wasserstein" not in frame or frame.empty:
        return None
    last = frame.iloc[-_RECENT:]
    error = np.sqrt((last["wasserstein_error"] ** 2).sum()) / len(last)
    return float(last["wasserstein"].mean()), float(error)


def quiet(frame: pd.DataFrame) -> int:
    """Iterations since an estimate was beyond twice its standard error.

    Examples
    --------
    >>> quiet(pd.DataFrame({"wasserstein": [0.5, 0.3, 0.1], "wasserstein_error": [0.2, 0.2, 0.2]}))
    2
    """
    if "wasserstein" not in frame:
        return 0
    beyond = np.flatnonzero(frame["wasserstein"] > BEYOND * frame["wasserstein_error"])
    return len(frame) - (int(beyond[-1]) + 1 if len(beyond) else 0)


def mostly_noise(frame: pd.DataFrame) -> str | None:
    """The sentence on a training whose released gradients were mostly noise. None if they were not.

    A gradient of thousands of numbers may be mostly noise and still move the weights the right way. Estimates
    of the Wasserstein distance then stand out from their noise, more often than the 2.3 % of chance.

    Examples
    --------
    >>> mostly_noise(pd.DataFrame({"noise_share": [0.2, 0.3]})) is None
    True
    """
    if "noise_share" not in frame or frame.empty:
        return None
    share = float((frame["noise_share"] > _NOISE).mean())
    if share < _OFTEN:
        return None
    if "wasserstein" in frame:
        found = frame["wasserstein"] > BEYOND * frame["wasserstein_error"]
        if found.mean() >= _OFTEN:
            return None
    return (
        f"noise is more than {_NOISE:.0%} of the released gradient in {share:.0%} of the iterations. The "
        "training learned little or nothing from the records. Use a larger epsilon, more records, or a WGAN "
        "critic with smaller bounds, such as critic_constraint 'spectral' and penalty 'public'"
    )
