"""``dpsynth attack ltu``: the leave-two-unlabeled attacker on a scikit-learn classifier."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.errors import InputError
from dpsynth.runs.commands import console
from dpsynth.runs.commands.console import CsvFormat, reads_tables

if TYPE_CHECKING:
    from dpsynth.research.ltu.trainers import Sides

#: a log gets a line on the rounds this often
_LOG_SECONDS = 30.0


@reads_tables
def attack_classifier(
    dataset: Annotated[str | None, typer.Option("--dataset", help="A table of `dpsynth data list`.")] = None,
    data: Annotated[Path | None, typer.Option("--data", help="CSV or Parquet file of one's own.")] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", help="YAML file, with an outcome; goes with --data.")
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
            help="How often the attacker trains with each of the two; 0 not at all, from 2 on also the Bayes "
            "attack.",
            min=0,
        ),
    ] = 1,
    shadows: Annotated[
        int,
        typer.Option("--shadows", help="Shadow models on random halves, an even number; 0 none.", min=0),
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
    seed: Annotated[int, typer.Option("--seed", help="Of the draws of records and pairs.", min=0)] = 0,
    level: Annotated[float, typer.Option("--level", help="Of the confidence intervals.")] = 0.95,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder where rounds are kept; the same command goes on with the others."),
    ] = None,
    as_json: console.JsonFlag = False,
    *,
    csv_format: CsvFormat,
) -> None:
    """Tell which of two records a classifier was trained on, knowing everything else.

    The leave-two-unlabeled attacker of Pedersen (2022), sections 4.2 and 5, with its strategies: scores of
    the model, a bounded loss, retraining on both, Bayes. Results are internal: they are about real records.
    """
    from dpsynth.research.ltu.experiment import attack_trainer
    from dpsynth.research.ltu.results import told
    from dpsynth.research.ltu.rounds import Design
    from dpsynth.research.ltu.trainers import classifier

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
    sides = _sides(dataset, data, schema, csv_format, records, seed)
    try:
        with console.stage_bar() as stages:
            last = time.monotonic()

            def on_round(done: int, total: int, label: str, seconds: float) -> None:
                nonlocal last
                stages(f"rounds of {model}", done / total)
                if time.monotonic() - last >= _LOG_SECONDS:
                    last = time.monotonic()
                    console.say(f"attacking: {done:,} of {total:,} rounds")

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
    except KeyboardInterrupt:
        kept = "nothing is kept; name a folder with --out"
        if out is not None:
            kept = f"finished rounds are kept in {out}; the same command goes on with the others"
        raise console.Interrupted(f"interrupted: {kept}") from None
    record_ = result.to_dict() | {"out": None if out is None else str(out)}
    text = told(result)
    if out is not None:
        from dpsynth.files.atomic import dump_json, write_text

        write_text(out / "ltu.json", dump_json(record_) + "\n")
        write_text(out / "ltu.txt", text + "\n")
        text += f"\nwrote ltu.json and ltu.txt to {out}"
    console.emit(record_, text, as_json=as_json)


def _sides(
    dataset: str | None,
    data: Path | None,
    schema: Path | None,
    csv_format: CsvFormat,
    records: int,
    seed: int,
) -> Sides:
    from dpsynth.datasets import load, open_table
    from dpsynth.research.ltu.trainers import sides_of_table

    if (dataset is None) == (data is None):
        raise InputError("give either --dataset, or --data with --schema")
    if dataset is not None:
        if schema is not None:
            raise InputError("--schema goes with --data; a table of --dataset has its own")
        return sides_of_table(load(dataset), records, seed)
    if data is None or schema is None:
        raise InputError("--data needs --schema, a YAML file that names the outcome")
    return sides_of_table(open_table(data, schema, csv_format=csv_format), records, seed)
