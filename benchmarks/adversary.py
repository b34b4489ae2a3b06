"""The adversary A_DI of MOSAICrOWN D5.3 against DP-SGD and our critic: Table 5.1, figures 5.1 to 5.3.

    python benchmarks/adversary.py --out FOLDER [--runs 1000] [--jobs 2] [--only golden table digits ...]

Every game is kept in FOLDER/games and gone on with; FOLDER receives adversary.md and the drawings. Noise for
rho_beta = 0.9 and delta = 0.01 over 30 steps by Renyi composition, as in the document. Noise scaled to two
records (local sensitivity) is not private; every row and drawing of it says so.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
import time
from dataclasses import replace
from pathlib import Path

import adversary_figures as drawing
import numpy as np
from sklearn.datasets import load_digits

from dpsynth import datasets
from dpsynth.audits import adversary as critic
from dpsynth.audits.adversary import Setting
from dpsynth.privacy.conversions import epsilon_of_belief
from dpsynth.report.plots import save_figure, styled
from dpsynth.research.adversary.dp_sgd import (
    NOT_PRIVATE,
    DpSgd,
    LabelledPoints,
    classifier_subject,
    labelled_points,
)
from dpsynth.research.adversary.playing import Played, draw_beliefs, play
from dpsynth.research.papers.mosaicrown import noise_for_belief_rdp
from dpsynth.wgan.settings import TrainingSettings

BELIEF, DELTA, STEPS = 0.9, 0.01, 30
TABLE = "breast_cancer"
BELIEFS = (0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
HEADER = (
    "| | records | D' | chosen by | noise | runs | advantage | by its beliefs | belief above ρ_β | "
    "of the bound | accuracy |\n|---|---:|---|---|---|---:|---|---|---|---:|---:|"
)


class Games:
    """Plays and keeps games of one table."""

    def __init__(self, out: Path, runs: int, jobs: int) -> None:
        self.out, self.runs, self.jobs = out, runs, jobs
        self.rows: list[str] = []

    def play(self, name: str, subject: object, belief: float = BELIEF, runs: int | None = None) -> Played:
        start = time.perf_counter()
        folder = self.out / "games" / name
        played = play(subject, belief=belief, runs=runs or self.runs, jobs=self.jobs, folder=folder)  # type: ignore[arg-type]
        print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
        return played


def setting(neighbour: str = "removed", belief: float = BELIEF, **more: object) -> Setting:
    z = noise_for_belief_rdp(belief, DELTA, STEPS)
    multiplier = z if neighbour == "removed" else 2 * z
    return Setting(STEPS, multiplier, neighbour=neighbour, **more)  # type: ignore[arg-type]


def row(label: str, played: Played) -> str:
    game, told = played.game, played.subject.setting
    records = played.subject.told().split(" records")[0].split()[-1]
    noise = "to the bound" if played.private else f"to the two records: {NOT_PRIVATE}"
    accuracy = "" if played.accuracy is None else f"{np.median(played.accuracy):.3f}"
    return (
        f"| {label} | {records} | {told.neighbour} | {told.choice} | {noise} | {game.runs} | "
        f"{between(game.advantage())} | {between(game.reckoned_advantage())} | "
        f"{between(game.exceedance(played.belief), 4)} | {played.moved.mean():.2f} | {accuracy} |"
    )


def between(estimate: object, digits: int = 3) -> str:
    ends = (estimate.value, estimate.lower, estimate.upper)  # type: ignore[attr-defined]
    value, lower, upper = (f"{end:.{digits}f}" for end in ends)
    return f"{value} ({lower} to {upper})"


def digits(records: int) -> tuple[LabelledPoints, LabelledPoints]:
    """scikit-learn's digits, 8 x 8 pixels, in the unit cube; D and the rest."""
    bunch = load_digits()
    order = np.random.default_rng(0).permutation(len(bunch.target))
    whole = LabelledPoints(bunch.data[order] / 16.0, bunch.target[order].astype(np.int64))
    return whole.take(range(records)), whole.take(range(records, len(whole)))


def golden(games: Games, train: object, test: object) -> list[str]:
    own, pool, classes = labelled_points(train, test)  # type: ignore[arg-type]
    points, rest, layout = critic.encoded(train, test)  # type: ignore[arg-type]
    rows, kept = [], {}
    for neighbour in ("removed", "replaced"):
        for choice in ("dataset", "gradient", "worst-case"):
            told = setting(neighbour, choice=choice)
            subjects = {
                "DP-SGD": classifier_subject(TABLE, own, pool, classes, DpSgd(), told),
                "critic": critic.critic_subject(TABLE, points, rest, layout, TrainingSettings(), told),
            }
            for label, subject in subjects.items():
                # a critic's training takes 20 times as long; two of its games have all the runs
                all_runs = label == "DP-SGD" or (neighbour == "removed" and choice != "gradient")
                runs = games.runs if all_runs else games.runs // 5
                played = games.play(f"golden-{label}-{neighbour}-{choice}", subject, runs=runs)
                rows.append(row(label, played))
                if neighbour == "removed":
                    kept[f"{label}, record {choice}"] = played
    drawn = {label: played.game for label, played in kept.items() if "gradient" not in label}
    draw(games, "beliefs", lambda: draw_beliefs(drawn, BELIEF), "Beliefs after 30 steps")
    curves = {label: played.moved for label, played in kept.items()}
    draw(games, "moved", lambda: drawing.draw_steps(curves, "part of the bound"), "What one record moves")
    return ["## The golden run", "", HEADER, *rows, ""]


def table(games: Games, train: object, test: object) -> list[str]:
    """Table 5.1, figures 5.1 and 5.2 on a table of the registry."""
    own, pool, classes = labelled_points(train, test)  # type: ignore[arg-type]
    return four(games, TABLE, own, pool, classes, learning_rate=2.0)


def four(
    games: Games, name: str, own: LabelledPoints, pool: LabelledPoints, classes: int, **training: float
) -> list[str]:
    rows, kept = [], {}
    for neighbour in ("replaced", "removed"):
        for noise in ("local", "global"):
            told = setting(neighbour, noise=noise)
            subject = classifier_subject(name, own, pool, classes, DpSgd(**training), told)
            played = games.play(f"table-{name}-{len(own)}-{neighbour}-{noise}", subject)
            kind = "bounded" if neighbour == "replaced" else "unbounded"
            label = f"{name}, {kind}, {noise}"
            rows.append(row(label, played))
            mark = "" if played.private else f"\n{NOT_PRIVATE}"
            kept[f"{kind}, {noise}{mark}"] = played
    stem = f"{name}-{len(own)}"
    draw(
        games, f"beliefs-{stem}",
        lambda: draw_beliefs({label: p.game for label, p in kept.items()}, BELIEF),
        f"Beliefs, {stem}",
    )  # fmt: skip
    draw(
        games, f"accuracies-{stem}",
        lambda: drawing.draw_accuracies({label: p.accuracy for label, p in kept.items()}),  # type: ignore[misc]
        f"Accuracy, {stem}",
    )  # fmt: skip
    return [f"## Table 5.1 on {name}, {len(own)} records", "", HEADER, *rows, ""]


def on_digits(games: Games) -> list[str]:
    """The document's 100 records, and 1,000 with a tenth of the runs, for accuracies (figure 5.2)."""
    fewer = Games(games.out, max(games.runs // 10, 20), games.jobs)
    lines = four(games, "digits", *digits(100), 10, clip_norm=3.0, hidden=32, learning_rate=0.2)
    return lines + four(fewer, "digits", *digits(1000), 10, clip_norm=3.0, hidden=32, learning_rate=0.5)


def ranks(games: Games) -> list[str]:
    """Figure 5.3: the records, or pairs, that are the furthest and the nearest."""
    own, pool = digits(100)
    lines, curves = [], {}
    for neighbour in ("removed", "replaced"):
        for rank in (0, 1, 2, -3, -2, -1):
            told = setting(neighbour, rank=rank)
            training = DpSgd(clip_norm=3.0, hidden=32, learning_rate=0.2)
            subject = classifier_subject("digits", own, pool, 10, training, told)
            played = games.play(f"rank-{neighbour}-{rank}", subject, runs=250)
            place = f"furthest {rank + 1}" if rank >= 0 else f"nearest {-rank}"
            if neighbour == "replaced":
                curves[f"{place}: distance {subject.distance:.2f}"] = played.moved
            advantage = between(played.game.reckoned_advantage())
            cells = (neighbour, place, f"{subject.distance:.2f}", f"{played.moved.mean():.2f}", advantage)
            lines.append(f"| {' | '.join(cells)} |")
    draw(games, "ranks", lambda: drawing.draw_steps(curves, "part of the bound"), "Dataset sensitivity")
    header = "| D' | rank | distance | of the bound | advantage by its beliefs |\n|---|---|---:|---:|---|"
    return ["## Figure 5.3: dataset sensitivity against local sensitivity, digits", "", header, *lines, ""]


def along_epsilon(games: Games, train: object, test: object) -> list[str]:
    own, pool, classes = labelled_points(train, test)  # type: ignore[arg-type]
    points, rest, layout = critic.encoded(train, test)  # type: ignore[arg-type]
    found: dict[str, list[drawing.Point]] = {"DP-SGD, worst-case record": [], "critic, worst-case record": []}
    lines, kept = [], {}
    for belief in BELIEFS:
        told = setting(belief=belief, choice="worst-case")
        epsilon = epsilon_of_belief(belief)
        subjects = (
            classifier_subject(TABLE, own, pool, classes, DpSgd(), told),
            critic.critic_subject(TABLE, points, rest, layout, TrainingSettings(), told),
        )
        for (label, reached), subject in zip(found.items(), subjects, strict=True):
            name = f"epsilon-{belief}-{label.split(',')[0]}"
            if belief == BELIEF:
                name = f"golden-{label.split(',')[0]}-removed-worst-case"
            all_runs = belief == BELIEF or label.startswith("DP-SGD")
            played = games.play(name, subject, belief, runs=games.runs if all_runs else games.runs // 10)
            game, profile = played.game, played.profile
            reached.append(drawing.Point(epsilon, game.advantage(), profile.tv()))
            if belief == BELIEF:
                kept[label] = played
            cells = (
                f"{belief:g}",
                f"{epsilon:.3f}",
                label,
                between(game.advantage()),
                between(game.reckoned_advantage()),
                f"{profile.tv():.4f}",
                between(game.exceedance(belief), 4),
                f"{profile.exceedance(epsilon):.4f}",
                f"{profile.largest_exceedance(epsilon):.4f}",
            )
            lines.append(f"| {' | '.join(cells)} |")
    drawn = {label: played.game for label, played in kept.items()}
    profile = setting().profile()
    draw(
        games,
        "bounds",
        lambda: drawing.draw_bounds(found, drawn, profile, BELIEF),
        "Advantage and exceedance",
    )
    header = (
        "| ρ_β | ε | | advantage | by its beliefs | exact TV, ρ_a | belief above ρ_β | exact, at the bound | "
        "no observer passes |\n|---:|---:|---|---|---|---:|---|---:|---:|"
    )
    return ["## Along ε", "", header, *lines, ""]


def sampled(games: Games, train: object, test: object) -> list[str]:
    """Steps that take a quarter of the records."""
    from dpsynth.privacy.calibration import BeliefTarget, calibrate_training

    own, pool, classes = labelled_points(train, test)  # type: ignore[arg-type]
    lines = []
    for neighbour, adjacency in (("removed", "add/remove"), ("replaced", "replace-one")):
        multiplier = calibrate_training(BeliefTarget(BELIEF, DELTA), 0.25, STEPS, adjacency=adjacency)
        told = replace(
            setting(neighbour, choice="worst-case"), sampling_prob=0.25, noise_multiplier=multiplier
        )
        subject = classifier_subject(TABLE, own, pool, classes, DpSgd(), told)
        played = games.play(f"sampled-{neighbour}", subject, runs=4 * games.runs)
        epsilon = epsilon_of_belief(BELIEF)
        lines += [
            row("DP-SGD, q = 0.25", played),
            f"\nexact TV {played.profile.tv():.4f}, exceedance {played.profile.exceedance(epsilon):.4f}, "
            f"no observer passes {played.profile.largest_exceedance(epsilon):.4f}; of the runs on D "
            f"{between(played.game.exceedance(BELIEF, world=0), 4)}, on D' "
            f"{between(played.game.exceedance(BELIEF, world=1), 4)}\n",
            HEADER,
        ]
    return ["## Sampled steps", "", HEADER, *lines[:-1], ""]


def draw(games: Games, stem: str, make: object, title: str) -> None:
    with styled():
        figure = make()  # type: ignore[operator]
        figure.savefig(games.out / f"adversary-{stem}.png", dpi=110)
    save_figure(figure, games.out / f"adversary-{stem}.svg", title)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parts = ("golden", "table", "digits", "rank", "sampled", "epsilon")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    games = Games(args.out, args.runs, args.jobs)
    train, test = datasets.train_test(datasets.load(TABLE))
    profile, epsilon = setting().profile(), epsilon_of_belief(BELIEF)
    lines = [
        f"{datetime.date.today()}, Python {platform.python_version()}, NumPy {np.__version__}; "
        "two shared cores",
        "",
        f"ρ_β = {BELIEF}, δ = {DELTA}, {STEPS} steps: noise {setting().noise_multiplier:.4f}, "
        f"ρ_a and exact TV {profile.tv():.4f}, exact exceedance {profile.exceedance(epsilon):.5f}, "
        f"no observer passes {profile.largest_exceedance(epsilon):.5f}",
        "",
    ]
    for part in args.only:
        lines += {
            "golden": lambda: golden(games, train, test),
            "table": lambda: table(games, train, test),
            "digits": lambda: on_digits(games),
            "rank": lambda: ranks(games),
            "sampled": lambda: sampled(games, train, test),
            "epsilon": lambda: along_epsilon(games, train, test),
        }[part]()  # fmt: skip
        (args.out / "adversary.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
