"""``dpsynth attack adversary`` and ``attack ltu``: attackers of training runs and of classifiers."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth import progress
from dpsynth.errors import InputError
from dpsynth.files.storage import OnRound
from dpsynth.runs.commands import console
from dpsynth.runs.commands.console import CsvFormat, reads_tables

if TYPE_CHECKING:
    from dpsynth.audits.adversary import Setting
    from dpsynth.datasets.table import Table
    from dpsynth.research.adversary.playing import Played, Subject

#: a log gets a line on the rounds this often
_LOG_SECONDS = 30.0

DatasetOption = Annotated[str | None, typer.Option("--dataset", help="A table of `dpsynth data list`.")]
DataOption = Annotated[Path | None, typer.Option("--data", help="CSV or Parquet file of one's own.")]
LevelOption = Annotated[float, typer.Option("--level", help="Level of the confidence intervals.")]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", help="Folder where rounds are kept. The same command continues with the others."),
]


@reads_tables
def attack_training(
    dataset: DatasetOption = None,
    data: DataOption = None,
    schema: Annotated[Path | None, typer.Option("--schema", help="YAML file for --data.")] = None,
    model: Annotated[
        str, typer.Option("--model", help="`critic` (of our own WGAN) or `dp-sgd` (a classifier).")
    ] = "dp-sgd",
    belief: Annotated[
        float, typer.Option("--belief", help="rho_beta: the belief that the noise is meant to prevent.")
    ] = 0.9,
    delta: Annotated[float, typer.Option("--delta", help="But for this probability.")] = 0.01,
    steps: Annotated[int, typer.Option("--steps", help="Noisy sums of one training.", min=1)] = 30,
    sampling_prob: Annotated[
        float, typer.Option("--sampling-prob", help="Probability of each record in each step.")
    ] = 1.0,
    runs: Annotated[
        int, typer.Option("--runs", help="Number of trainings. Half are on the neighbouring dataset.", min=2)
    ] = 1000,
    neighbour: Annotated[
        str, typer.Option("--neighbour", help="removed, or replaced by a record that is not in the table.")
    ] = "removed",
    worst_case: Annotated[
        bool, typer.Option("--worst-case", help="With a record made up within the public bounds.")
    ] = False,
    local_noise: Annotated[
        bool,
        typer.Option(
            "--local-noise",
            help="NOT PRIVATE: noise in proportion to the two records, to see the belief. "
            "For `dp-sgd` alone.",
        ),
    ] = False,
    hidden: Annotated[
        int, typer.Option("--hidden", help="Hidden units of `dp-sgd`. 0 for softmax regression.", min=0)
    ] = 0,
    learning_rate: Annotated[float, typer.Option("--learning-rate", help="Learning rate of `dp-sgd`.")] = 0.5,
    jobs: Annotated[int, typer.Option("--jobs", help="Rounds of trainings at a time.", min=1)] = 1,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed of the experiment, which publishes nothing.", min=0)
    ] = 0,
    level: LevelOption = 0.95,
    out: OutOption = None,
    as_json: console.JsonFlag = False,
    *,
    csv_format: CsvFormat,
) -> None:
    """Guess from every noisy sum of a training whether one record is in the table.

    The adversary A_DI of MOSAICrOWN D5.3 knows all other records, sees every step and updates its belief.
    Half of the table trains. A replacement comes from the other half, on which classifiers are measured.
    With all records in every step, the noise is that of the document (Renyi composition). With sampling, it
    is the smallest that keeps the belief except with probability delta. Results are confidential: they are
    about real records.
    """
    from dpsynth.audits.adversary import Setting
    from dpsynth.checks import in_range, inside, one_of
    from dpsynth.datasets import train_test
    from dpsynth.research.adversary.playing import play

    one_of("--model", model, ("critic", "dp-sgd"))
    inside("--belief", belief, 0.5, 1.0)
    inside("--delta", delta, 0.0, 1.0)
    inside("--level", level, 0.0, 1.0)
    in_range("--sampling-prob", sampling_prob, 0.0, 1.0, low_open=True)
    if model == "critic" and (local_noise or hidden or learning_rate != 0.5):
        raise InputError("--local-noise, --hidden and --learning-rate go with --model dp-sgd")
    one_of("--neighbour", neighbour, ("removed", "replaced"))
    multiplier, rho_a = _noise(belief, delta, steps, sampling_prob, replaced=neighbour == "replaced")
    setting = Setting(
        steps=steps,
        noise_multiplier=multiplier,
        sampling_prob=sampling_prob,
        neighbour=neighbour,  # type: ignore[arg-type]  # checked above
        choice="worst-case" if worst_case else "dataset",
        noise="local" if local_noise else "global",
    )
    table = _table(dataset, data, schema, csv_format, "--data needs --schema, a YAML file")
    train, test = train_test(table, seed=seed)
    subject = _subject(model, train, test, setting, hidden, learning_rate)
    with _rounds("the adversary's trainings", "rounds of trainings", out) as on_round:
        played = play(subject, belief=belief, runs=runs, seed=seed, jobs=jobs, folder=out, on_round=on_round)
    record = played.to_dict(level) | {"delta": delta, "rho_a": rho_a, "out": out and str(out)}
    text = "\n".join([_noise_told(played, delta, rho_a), *played.lines(level)])
    if out is not None:
        _draw(out / "beliefs.svg", played)
        text += _written(out, "adversary", record, text, "adversary.json, adversary.txt and beliefs.svg")
    console.emit(record, text, as_json=as_json)


def _noise(
    belief: float, delta: float, steps: int, sampling_prob: float, *, replaced: bool
) -> tuple[float, float | None]:
    """Noise multiplier that keeps the belief, and the document's bound rho_a where it has one."""
    if sampling_prob == 1.0:
        from dpsynth.research.papers.mosaicrown import noise_for_belief_rdp, rdp_guarantee

        multiplier = noise_for_belief_rdp(belief, delta, steps)
        rho_a = rdp_guarantee(multiplier, delta, steps).advantage
        # the sensitivity of a replaced record is twice that of one record more or less
        return multiplier * (2 if replaced else 1), rho_a
    from dpsynth.privacy.calibration import BeliefTarget, calibrate_training

    adjacency = "replace-one" if replaced else "add/remove"
    return calibrate_training(BeliefTarget(belief, delta), sampling_prob, steps, adjacency=adjacency), None


def _subject(
    model: str, train: Table, test: Table, setting: Setting, hidden: int, learning_rate: float
) -> Subject:
    if model == "critic":
        from dpsynth.audits import adversary as critic
        from dpsynth.wgan.settings import TrainingSettings

        points, pool, layout = critic.encoded(train, test)
        return critic.critic_subject(train.name, points, pool, layout, TrainingSettings(), setting)
    from dpsynth.research.adversary import dp_sgd

    records, held_out, classes = dp_sgd.labelled_points(train, test)
    training = dp_sgd.DpSgd(learning_rate=learning_rate, hidden=hidden)
    return dp_sgd.classifier_subject(train.name, records, held_out, classes, training, setting)


def _noise_told(played: Played, delta: float, rho_a: float | None) -> str:
    from dpsynth.research.adversary.dp_sgd import NOT_PRIVATE

    setting = played.subject.setting
    over = setting.noise_multiplier / (1 if setting.neighbour == "removed" else 2)
    mark, moved = "", "what one record can move a sum"
    if not played.private:
        mark, moved = f"{NOT_PRIVATE} | ", "what these two records move a sum"
    known = "" if rho_a is None else f"; rho_a = {rho_a:.4f}"
    limit = f"for beliefs up to {played.belief:g} but for probability {delta:g}"
    return f"{mark}noise {over:.4g} times {moved}, {limit}{known}"


def _draw(path: Path, played: Played) -> None:
    from dpsynth.report.plots import save_figure, styled
    from dpsynth.research.adversary.playing import draw_beliefs

    with styled():
        figure = draw_beliefs({"\n".join(textwrap.wrap(played.name, 70)): played.game}, played.belief)
    save_figure(figure, path, f"Beliefs of the adversary: {played.name}")


def _written(out: Path, name: str, record: dict[str, object], text: str, files: str) -> str:
    from dpsynth.files.storage import dump_json, write_text

    write_text(out / f"{name}.json", dump_json(record) + "\n")
    write_text(out / f"{name}.txt", text + "\n")
    return f"\nwrote {files} to {out}"


@reads_tables
def attack_classifier(
    dataset: DatasetOption = None,
    data: DataOption = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", help="YAML file for --data, with an outcome.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="logistic_regression, ridge, naive_bayes, svc, nearest_neighbours, sgd, perceptron, "
            "linear_svc, mlp or random_forest.",
        ),
    ] = "logistic_regression",
    records: Annotated[
        int, typer.Option("--records", help="On each side: trained on, kept aside.", min=2)
    ] = 400,
    rounds: Annotated[int, typer.Option("--rounds", help="Pairs to show the attacker.", min=1)] = 100,
    scenario: Annotated[
        str,
        typer.Option(
            "--scenario",
            help="original (the attacker knows order and seed), random (the seed), unseeded (neither).",
        ),
    ] = "original",
    retrainings: Annotated[
        int,
        typer.Option(
            "--retrainings",
            help="How often the attacker trains with each of the two. 0: never. From 2 on: also the Bayes "
            "attack.",
            min=0,
        ),
    ] = 1,
    shadows: Annotated[
        int,
        typer.Option("--shadows", help="Shadow models on random halves, an even number. 0 for none.", min=0),
    ] = 0,
    anew: Annotated[
        bool, typer.Option("--anew", help="The defender trains anew in each round, with a seed of its own.")
    ] = False,
    record: Annotated[
        int | None,
        typer.Option(
            "--record", help="Show this one of the records that were trained on in every round.", min=0
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Rounds at a time.", min=1)] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random records and pairs.", min=0)] = 0,
    level: LevelOption = 0.95,
    out: OutOption = None,
    as_json: console.JsonFlag = False,
    *,
    csv_format: CsvFormat,
) -> None:
    """Guess which of two records a classifier was trained on, with all other records known.

    The leave-two-unlabeled attacker of Pedersen (2022), sections 4.2 and 5, with its strategies: scores of
    the model, a bounded loss, retraining on both, Bayes. Results are confidential.
    """
    from dpsynth.research.ltu.experiment import attack_trainer
    from dpsynth.research.ltu.results import result_text
    from dpsynth.research.ltu.rounds import Design
    from dpsynth.research.ltu.trainers import classifier, sides_of_table

    if shadows % 2:
        raise InputError(f"--shadows must be even, one on each half of the records, got {shadows}")
    if shadows and anew:
        raise InputError("--shadows does not go with --anew: shadow models are compared with one model")
    trainer = classifier(model)
    design = Design(
        scenario=scenario,  # type: ignore[arg-type]  # checked by Design
        defender="anew" if anew else "once",
        retrainings=retrainings,
        splits=shadows // 2,
        record=record,
        seed=seed,
    )
    needed = "--data needs --schema, a YAML file that names the outcome"
    sides = sides_of_table(_table(dataset, data, schema, csv_format, needed), records, seed)
    with _rounds(f"rounds of {model}", "rounds", out) as on_round:
        result = attack_trainer(
            trainer,
            sides,
            design,
            rounds=rounds,
            name=f"{model}: {trainer.description}",
            folder=out,
            jobs=jobs,
            on_round=on_round,
            level=level,
        )
    found, text = result.to_dict() | {"out": out and str(out)}, result_text(result)
    if out is not None:
        text += _written(out, "ltu", found, text, "ltu.json and ltu.txt")
    console.emit(found, text, as_json=as_json)


def _table(
    dataset: str | None, data: Path | None, schema: Path | None, csv_format: CsvFormat, needed: str
) -> Table:
    from dpsynth.datasets import load, open_table

    if (dataset is None) == (data is None):
        raise InputError("give either --dataset, or --data with --schema")
    if dataset is not None:
        if schema is not None:
            raise InputError("--schema goes with --data. A table of --dataset has its own")
        return load(dataset)
    if data is None or schema is None:
        raise InputError(needed)
    return open_table(data, schema, csv_format=csv_format)


@contextmanager
def _rounds(stage: str, counted: str, out: Path | None) -> Iterator[OnRound]:
    """Show how many rounds are done, and say what an interrupt leaves."""
    try:
        with progress.stage_bar() as stages:
            last = time.monotonic()

            def on_round(done: int, total: int, label: str, seconds: float) -> None:
                nonlocal last
                stages(stage, done / total)
                if time.monotonic() - last >= _LOG_SECONDS:
                    last = time.monotonic()
                    console.say(f"attacking: {done:,} of {total:,} {counted}")

            yield on_round
    except KeyboardInterrupt:
        kept = "nothing is kept; name a folder with --out"
        if out is not None:
            kept = f"finished rounds are kept in {out}; the same command goes on with the others"
        raise console.InterruptedCommand(f"interrupted: {kept}") from None
