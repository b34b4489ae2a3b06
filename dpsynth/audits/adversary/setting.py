"""What is played against A_DI: the mechanism of a run, and how the two tables differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, get_args

from dpsynth.accounting.events import training_event
from dpsynth.accounting.normal_form import ADD_REMOVE, REPLACE_ONE
from dpsynth.accounting.profile import Profile
from dpsynth.attacks.adversary.neighbours import Neighbour
from dpsynth.checks import in_range, inside, one_of, whole

Difference = Literal["removed", "replaced"]
Choice = Literal["dataset", "gradient", "worst-case"]
Noise = Literal["global", "local"]

#: how the differing record was chosen, in words
CHOSEN = {
    "dataset": "furthest from the others (dataset sensitivity)",
    "gradient": "that moves the first step most (local sensitivity)",
    "worst-case": "that nobody is, made up within the public bounds to move the steps as far as it can",
}


@dataclass(frozen=True)
class Setting:
    """A game.

    Parameters
    ----------
    steps : int
        Noisy sums of one run, T.
    noise_multiplier : float
        That of the event of one step, in units of the sensitivity to one record more or less. Where a record
        is replaced it is twice the noise over the sensitivity.
    sampling_prob : float
        In (0, 1].
    neighbour : {"removed", "replaced"}
        Whether D' lacks the differing record or has another one in its place.
    choice : {"dataset", "gradient", "worst-case"}
        By the distance between records (MOSAICrOWN D5.3, Definition 6), by how far the candidates move the
        first step (Definition 3 at the initial weights), or a record that is nobody's.
    rank : int
        0 for the furthest such record, 1 for the next, -1 for the nearest; with ``choice="dataset"``.
    noise : {"global", "local"}
        Whether the noise is in proportion to the bound or to the two records. The second is not private and
        for DP-SGD alone.
    """

    steps: int
    noise_multiplier: float
    sampling_prob: float = 1.0
    neighbour: Difference = "removed"
    choice: Choice = "dataset"
    rank: int = 0
    noise: Noise = "global"

    def __post_init__(self) -> None:
        whole("steps", self.steps)
        inside("noise_multiplier", self.noise_multiplier, 0.0, float("inf"))
        in_range("sampling_prob", self.sampling_prob, 0.0, 1.0, low_open=True)
        one_of("neighbour", self.neighbour, get_args(Difference))
        one_of("choice", self.choice, get_args(Choice))
        one_of("noise", self.noise, get_args(Noise))

    @property
    def adjacency(self) -> str:
        """Under which the run is accounted for."""
        return ADD_REMOVE if self.neighbour == "removed" else REPLACE_ONE

    def profile(self) -> Profile:
        """What one run costs."""
        event = training_event(self.noise_multiplier, self.sampling_prob, self.steps)
        return Profile([event], adjacency=self.adjacency)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


class Subject(Protocol):
    """Something that is trained on D or on D', and attacked. It is sent to other processes."""

    @property
    def setting(self) -> Setting:
        """What is played."""

    def play(self, start: int, stop: int, seed: int) -> dict[str, Any]:
        """Carry out the runs with these numbers; even ones are on D, odd ones on D'.

        Returns
        -------
        dict
            ``worlds`` (runs,), ``log_odds`` (runs, T + 1), ``moved`` (T,): the mean over runs of how far the
            two tables' means are apart, as a part of the bound; and ``accuracy``, (runs,) or None.
        """

    def told(self) -> str:
        """What is trained on what, in one sentence."""

    def digest(self) -> str:
        """Changes with the records and with how they are trained on."""


def by_rank(found: list[Neighbour], backwards: list[Neighbour], rank: int) -> Neighbour:
    """The neighbour with this rank, from both ends of the order."""
    return found[rank] if rank >= 0 else backwards[-rank - 1]
