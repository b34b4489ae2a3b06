"""Play resumable rounds of runs against A_DI, side by side, sum them up, and draw the beliefs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.attempt import Attempt, passing
from dpsynth.attacks.beliefs import Game
from dpsynth.audits.adversary import CHOSEN, CriticSubject
from dpsynth.checks import inside, whole
from dpsynth.files.storage import OnRound, carry_out, print_nothing
from dpsynth.privacy.conversions import epsilon_of_belief
from dpsynth.privacy.profile import Profile
from dpsynth.report.blocks import Plots
from dpsynth.report.plots import Plot, finished, line, panels
from dpsynth.report.words import plain
from dpsynth.research.adversary.dp_sgd import NOT_PRIVATE, ClassifierSubject
from dpsynth.research.writing import ResultsPage, Sheet, SheetCell, SheetGroup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
#: what is trained on D or on D', and attacked; sent to other processes
Subject = CriticSubject | ClassifierSubject

#: runs of a round, even, so that both tables have as many
A_ROUND = 50


@dataclass(frozen=True)
class Played:
    """Outcome of a game of N runs of T steps.

    ``log_odds`` (N, T + 1) are those of D against D' before the first step and after each. ``moved`` (T,) is
    the distance of the two tables' means in each step, as a part of the bound, averaged over runs.
    ``accuracy`` (N,) is that of the trained classifiers on records that are not in D, if any. ``belief`` is
    rho_beta.
    """

    subject: Subject
    profile: Profile
    worlds: NDArray[np.int64]
    log_odds: Floats
    moved: Floats
    accuracy: Floats | None
    belief: float

    @property
    def game(self) -> Game:
        """Log-odds at the end of the runs."""
        return Game(self.worlds, self.log_odds[:, -1])

    @property
    def private(self) -> bool:
        """Whether the runs are differentially private: not where noise is scaled to the two records."""
        return self.subject.setting.noise == "global"

    @property
    def name(self) -> str:
        """Name of the target and the attack, with a label if it is not private."""
        setting = self.subject.setting
        name = f"A_DI against {self.subject.told()}, {setting.steps} steps, record {setting.neighbour}"
        return name if self.private else f"{name} ({NOT_PRIVATE})"

    def attempts(self, level: float = 0.95) -> tuple[Attempt, ...]:
        """Advantage and exceedance for a report. None for runs that are not private: nothing is proved."""
        if not self.private:
            return ()
        about = f"the record {CHOSEN[self.subject.setting.choice]}; {self.moved.mean():.0%} of the bound"
        return self.game.attempts(self.profile, self.belief, attack=self.name, about=about, level=level)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return plain data: the game, its results, and the proved bounds."""
        game, epsilon = self.game, epsilon_of_belief(self.belief)
        found = {
            "advantage": game.advantage(level),
            "reckoned_advantage": game.reckoned_advantage(level),
            "exceedance": game.exceedance(self.belief, level),
            "median_belief": game.median_belief(level),
        }
        return {
            "attack": self.name,
            "private": self.private,
            "label": None if self.private else NOT_PRIVATE,
            "setting": self.subject.setting.to_dict(),
            "runs": game.runs,
            "level": level,
            "found": {name: asdict(estimate) for name, estimate in found.items()},
            "exact": {
                "tv": self.profile.tv(),
                "belief": self.belief,
                "epsilon": epsilon,
                "exceedance": self.profile.exceedance(epsilon),
                "largest_exceedance": self.profile.largest_exceedance(epsilon),
                "delta": self.profile.delta(epsilon),
            },
            "moved": self.moved.tolist(),
            "accuracy": None if self.accuracy is None else float(np.median(self.accuracy)),
            "attempts": [attempt.to_dict() for attempt in self.attempts(level)],
            "internal": True,
        }

    def page(self, level: float = 0.95) -> ResultsPage:
        """Return the results for the owner of the records. Each line of its text has the label, if any."""
        record, setting = self.to_dict(level), self.subject.setting
        exact, found = record["exact"], record["found"]
        most = "at most" if self.private else "for these two records alone"
        other = "lacks one record" if setting.neighbour == "removed" else "has another record in one's place"
        told = {
            "Game": f"{record['runs']:,} trainings of {setting.steps} steps, half on a table that {other}",
            "Record": f"the one {CHOSEN[setting.choice]}; it moves a step by {self.moved.mean():.0%} of the "
            f"bound (first step {self.moved[0]:.0%}, last {self.moved[-1]:.0%})",
            "Adversary": "knows all other records, sees every noisy sum and starts undecided",
        }
        if self.accuracy is not None:
            told["Classifiers"] = f"right on {np.median(self.accuracy):.1%} of other records"
        bounds = {
            "advantage": ("advantage", f"{exact['tv']:.4f} (exact total variation)"),
            "reckoned_advantage": ("advantage by its own beliefs", f"{exact['tv']:.4f}"),
            "exceedance": (
                f"belief above {self.belief:g}",
                f"{exact['largest_exceedance']:.4f} ({exact['exceedance']:.4f} for a record that moves every "
                "step by the whole bound)",
            ),
            "median_belief": ("median belief in the table that was used", ""),
        }
        rows: list[list[str | SheetCell]] = [
            [
                label,
                SheetCell("{value:.4f} ({lower:.4f} to {upper:.4f})".format(**found[name]), found[name]),
                limit,
            ]
            for name, (label, limit) in bounds.items()
        ]
        said = [
            f"Of 100 trainings it names the right table in {50 * (1 + found['advantage']['value']):.1f} "
            f"(by guessing 50; {most} {50 * (1 + exact['tv']):.1f})."
        ]
        if self.private:
            broken = [attempt.measure for attempt in passing(self.attempts(level)) if not attempt.one_table]
            passed = f"{' and '.join(broken)} PASSED the bound: the proof or its code is wrong."
            said.append(passed if broken else "No bound was passed.")
        sheet = Sheet.of("measures", "What the adversary reaches", ("measure", "reached", most), rows)
        alt = f"Distribution of the belief in the table that was used, and the limit {self.belief:g}"
        label = "\n".join(textwrap.wrap(self.name, 70))
        plot = Plot(lambda: draw_beliefs({label: self.game}, self.belief), alt, self.name, internal=True)
        return ResultsPage(
            title=self.name,
            said=tuple(said),
            facts=tuple(told.items()),
            groups=(SheetGroup("measures", "Beliefs and guesses", (sheet,), (Plots((plot,)),)),),
            record=record,
            warnings=() if self.private else ((f"{NOT_PRIVATE}.", "Nothing is proved for other records."),),
            mark="" if self.private else NOT_PRIVATE,
        )


def play(
    subject: Subject,
    *,
    belief: float,
    runs: int = 1000,
    seed: int = 0,
    jobs: int = 1,
    folder: str | Path | None = None,
    on_round: OnRound = print_nothing,
) -> Played:
    """Carry out what is missing of a game, half of whose runs are on D'. ``belief`` is rho_beta.

    The same call on the same folder, or one with more runs, goes on with what is there. The seed is that of
    the whole experiment, which publishes nothing.
    """
    inside("belief", belief, 0.5, 1.0)
    whole("runs", runs, 2)
    profile = subject.setting.profile()
    parts = [(start, min(start + A_ROUND, runs)) for start in range(0, runs, A_ROUND)]
    tasks = {f"runs-{start:06d}-{stop:06d}": (subject, start, stop, seed) for start, stop in parts}
    told = {"subject": subject.told(), "digest": subject.digest(), "seed": seed}
    settings = told | subject.setting.to_dict()
    if subject.setting.noise != "global":
        settings["label"] = NOT_PRIVATE
    rounds = carry_out(_round, tasks, folder=folder, settings=settings, jobs=jobs, on_round=on_round)
    names = ("worlds", "log_odds", "moved", "accuracy")
    found = {name: [part[name] for part in rounds.values()] for name in names}
    worlds, odds = np.concatenate(found["worlds"]), np.concatenate(found["log_odds"])
    moved = np.average(found["moved"], axis=0, weights=[len(part) for part in found["worlds"]])
    accuracy = None if found["accuracy"][0] is None else np.concatenate(found["accuracy"])
    return Played(subject, profile, worlds, odds, moved, accuracy, belief)


def _round(task: tuple[Subject, int, int, int]) -> dict[str, Any]:
    subject, start, stop, seed = task
    found = subject.play(start, stop, seed)
    return found if subject.setting.noise == "global" else {"label": NOT_PRIVATE, **found}


def draw_beliefs(games: Mapping[str, Game], limit: float, title: str = "") -> Figure:
    """Draw the distribution of the belief in the used table at the end of a run, one line a game.

    Labels name games that are not private. ``limit`` is rho_beta, drawn as a line.
    """
    (axis,) = panels(width=5.0, height=3.6)
    edges = np.linspace(0.0, 1.0, 41)
    for number, (label, game) in enumerate(games.items()):
        share = np.histogram(game.beliefs, edges)[0] / game.runs
        axis.stairs(share, edges, label=label, linewidth=1.6, **line(number))
    axis.axvline(0.5, color="black", linewidth=0.8)
    for end in (limit, 1 - limit):
        axis.axvline(end, color="black", linewidth=1.0, linestyle="--")
    place: dict[str, Any] = {
        "xycoords": ("data", "axes fraction"),
        "ha": "right",
        "va": "top",
        "rotation": 90,
        "fontsize": 8,
    }
    axis.annotate(f"ρ$_β$ = {plain(limit)}", (limit, 0.98), **place)
    axis.set(xlabel="belief in the table that was used", ylabel="share of runs", xlim=(0.0, 1.0), title=title)
    return finished(axis, legend=legend_columns(games), fewest=1)


def legend_columns(labels: Iterable[str]) -> int:
    """Columns of a legend in which no label is cut off: one that says `not private` must be seen."""
    return 1 if max(len(part) for label in labels for part in label.split("\n")) > 28 else 2
