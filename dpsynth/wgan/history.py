"""The history of a training, a row for each generator iteration, and what people are told of it.

Every column is a function of released quantities: noisy gradients, the weights that they made, generated
points and public settings. So the history may be shared as the model may. No TensorFlow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.files.codec import record
from dpsynth.wgan.snapshots import Snapshot

#: An estimate beyond so many of its standard errors is more than noise.
BEYOND = 2.0
# The noise's share of a released gradient that leaves little to learn from, and the share of iterations.
_NOISE, _OFTEN = 0.9, 0.1
# Parts of a training, and the errors beyond which the mean estimate of one is clear.
_TENTHS, _CLEAR = 10, 3.0
# Iterations that the latest estimate is the mean of.
_RECENT = 40


@record
@dataclass(frozen=True)
class LayerBound:
    """The two bounds of one record's gradient in a layer, at the last weights of the critic.

    ``size``: entries of the gradient.
    ``box``, ``ball``: radius of each, in the Euclidean norm. -1 for a ball that there is not.
    ``used``: the one from which the noise is made.
    ``reached``: largest distance of generated points' gradients from its centre, over its radius. At most 1.
    """

    size: int
    box: float
    ball: float
    used: Literal["box", "ball"]
    reached: float


@record
@dataclass(frozen=True, eq=False)
class TrainingHistory:
    """What a training released on its way.

    ``rows``: columns of a frame with a row for each iteration, arrays of one length.
    ``layers``: bounds at the end, without any for clipped gradients.
    ``snapshots``: single columns of the generator on its way.
    """

    rows: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    layers: tuple[LayerBound, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        layers: tuple[LayerBound, ...] = (),
        snapshots: tuple[Snapshot, ...] = (),
    ) -> TrainingHistory:
        """The history in a frame."""
        return cls({str(name): frame[name].to_numpy(np.float64) for name in frame}, layers, snapshots)

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


def over_blocks(frame: pd.DataFrame, most: int = 60) -> pd.DataFrame:
    """Means over at most so many blocks of neighbouring rows. Errors are those of the means.

    ``signal`` is what is left of the released gradient's root mean square norm without its noise.

    Examples
    --------
    >>> rows = pd.DataFrame({"step": [1, 2], "noise_std": [3.0, 3.0], "gradient_norm": [5.0, 5.0]})
    >>> over_blocks(rows, most=1).to_dict("records")
    [{'step': 2.0, 'noise_std': 3.0, 'gradient_norm': 5.0, 'signal': 4.0}]
    """
    block = np.arange(len(frame)) * min(most, len(frame)) // max(len(frame), 1)
    grouped = frame.groupby(block)
    found = grouped.mean()
    found["step"] = grouped["step"].max().astype(float)
    for name in {"noise_std", "gradient_norm", "wasserstein_error"} & set(frame):
        found[name] = np.sqrt((frame[name] ** 2).groupby(block).mean())
    if "wasserstein_error" in frame:
        found["wasserstein_error"] /= np.sqrt(grouped.size())
    found["signal"] = np.sqrt(np.maximum(found["gradient_norm"] ** 2 - found["noise_std"] ** 2, 0.0))
    return found.reset_index(drop=True)


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


def last_signal(frame: pd.DataFrame) -> int:
    """Row after the last tenth of a training whose mean estimate is beyond three standard errors. 0: none.

    A gradient of thousands of numbers may be mostly noise and still move the weights the right way. Single
    estimates of the Wasserstein distance are then within their noise, and their mean is not. With noise
    alone, one of ten means is beyond three errors in 1.3 % of the trainings.

    Examples
    --------
    >>> last_signal(pd.DataFrame({"wasserstein": [4.0, 4.0] + 18 * [0.0], "wasserstein_error": 1.0}))
    2
    """
    last, estimates, errors = 0, frame["wasserstein"].to_numpy(), frame["wasserstein_error"].to_numpy()
    for part in np.array_split(np.arange(len(frame)), min(_TENTHS, max(len(frame), 1))):
        if estimates[part].sum() > _CLEAR * np.sqrt((errors[part] ** 2).sum()):
            last = int(part[-1]) + 1
    return last


def mostly_noise(frame: pd.DataFrame) -> str | None:
    """The sentence on a training that learned from noise, as a whole or from some step on. None without one.

    Noise is then more than nine tenths of the released gradient in a tenth of the iterations, and nothing
    shows that the later half of them learned (`last_signal`).

    Examples
    --------
    >>> mostly_noise(pd.DataFrame({"noise_share": [0.2, 0.3]})) is None
    True
    """
    if "noise_share" not in frame or frame.empty:
        return None
    share = float((frame["noise_share"] > _NOISE).mean())
    found = last_signal(frame) if "wasserstein" in frame else 0
    if share < _OFTEN or found > len(frame) / 2:
        return None
    much = f"noise is more than {_NOISE:.0%} of the released gradient in {share:.0%} of the iterations"
    if found:
        step = int(frame["step"].iloc[found - 1])
        return (
            f"{much}. After step {step:,} no difference between real and generated records stands out from "
            "the noise. The later steps learned little or nothing from the records. Use about "
            f"{step:,} steps. Each of them then has less noise"
        )
    return (
        f"{much}. The training learned little or nothing from the records. Use a larger epsilon, more "
        "records, or a WGAN critic with smaller bounds, such as critic_constraint 'spectral' and penalty "
        "'public'"
    )
