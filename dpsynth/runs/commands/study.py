"""``dpsynth study``: private estimates of pre-specified regressions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.errors import InputError
from dpsynth.files.storage import claimed
from dpsynth.runs.commands import console, models
from dpsynth.runs.commands.console import CsvFormat, reads_tables

if TYPE_CHECKING:
    from dpsynth.studies.study import Study

app = typer.Typer(
    help="Private estimates of regressions that were specified before the fit.",
    rich_markup_mode=None,
    add_completion=False,
)


@app.command("fit")
@reads_tables
def fit_studies(
    data: Annotated[
        Path,
        typer.Option("--data", help="CSV or Parquet file, or a folder of Parquet files.", show_default=False),
    ],
    schema: Annotated[Path, typer.Option("--schema", help="YAML file.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Folder to write.", show_default=False)],
    study: console.StudyOption = None,
    studies: Annotated[
        Path | None, typer.Option("--studies", help="YAML file, such as a run's, with a list `studies`.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="Total budget.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="Probability of failure.")] = None,
    share: Annotated[
        float | None,
        typer.Option("--share", help="Part of the budget (of mu^2) for the studies; 0.5 by default."),
    ] = None,
    not_private: Annotated[bool, typer.Option("--not-private", help="Estimate without any noise.")] = False,
    accept_unreviewed: Annotated[
        bool, typer.Option("--accept-unreviewed", help="Use fields read off the data; the ledger says so.")
    ] = False,
    ledger: console.LedgerOption = None,
    forget_earlier: console.ForgetFlag = False,
    accept_n_public: console.AcceptNFlag = False,
    scheduler: console.SchedulerOption = None,
    workers: console.WorkersOption = None,
    force: console.ForceFlag = False,
    as_json: console.JsonFlag = False,
    *,
    csv_format: CsvFormat,
) -> None:
    """Estimate regressions privately, without making a table.

    Only the studies' columns are modelled. Writes estimates.json, estimates.md and ledger.json, which may be
    shared under the guarantee.
    """
    if (epsilon is None) != not_private:
        raise InputError("give either --epsilon, or --not-private for estimates without any guarantee")
    from dpsynth.accounting.journal import journalled
    from dpsynth.files import storage
    from dpsynth.runs import private_estimates as alone
    from dpsynth.runs.preflight import require_table
    from dpsynth.synthesis.studies import widening_lines
    from dpsynth.table.schema import Schema

    try:
        model = alone.study_estimator(
            _declared(study, studies),
            epsilon,
            delta,
            share=alone.SHARE if share is None else share,
            accept_unreviewed=accept_unreviewed,
        )
    except InputError as problem:
        # the only share that can be given here
        raise InputError(str(problem).replace("shares.studies", "--share")) from None
    options = model.validate()
    in_parts = data.is_dir() or scheduler is not None or workers is not None
    with claimed(out, force=force, mark=alone.ESTIMATES):
        part = alone.study_schema(Schema.from_yaml(schema), options.studies)
        earlier = console.earlier_ledger(ledger)
        if not in_parts:
            require_table(data)
        for line in widening_lines(options, part):
            console.say(line)
        with (
            journalled(out, earlier, forget=forget_earlier, say=console.say) as book,
            models.opened(data, part, csv_format, scheduler, workers) as (table, known),
        ):
            model.fit(table, schema=known, ledger=book, accept_n_public=accept_n_public)
            storage.write_folder(out, lambda folder: alone.write_estimates(model, folder), replace=force)
    files = sorted(entry.name for entry in out.iterdir())
    result = {"out": str(out), "files": files, **alone.estimates_record(model)}
    lines = [*console.told(model.estimates_), str(model.guarantee()), f"wrote {', '.join(files)} to {out}"]
    console.emit(result, "\n".join(lines), as_json=as_json)


@app.command("show")
def show_studies(
    folder: Annotated[
        Path,
        typer.Argument(help="Of `dpsynth study fit`, of a model or of a run.", show_default=False),
    ],
    name: Annotated[str | None, typer.Option("--name", help="Of one study; all by default.")] = None,
    rehearse: Annotated[
        int | None,
        typer.Option(
            "--rehearse",
            help="Also draw so many tables from what was released, and count what the intervals hold.",
            min=1,
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of --rehearse.", min=0)] = None,
    as_json: console.JsonFlag = False,
) -> None:
    """Print the private estimates that were bought before; reads no table and costs nothing.

    With --rehearse, for a model or a run: whether the intervals are honest for a table such as this.
    """
    from dpsynth.runs.private_estimates import read_estimates, read_model

    model = None if rehearse is None else read_model(folder)
    found, guarantee = read_estimates(folder) if model is None else (model.estimates_, model.guarantee())
    if name is not None:
        declared = ", ".join(estimates.study for estimates in found)
        found = tuple(estimates for estimates in found if estimates.study == name)
        if not found:
            raise InputError(
                f"study {name!r} was not declared before the fit of {folder} (declared were: {declared})"
            )
    result: dict[str, object] = {
        "estimates": [estimates.to_dict() for estimates in found],
        "effects": {estimates.study: estimates.effects() for estimates in found},
        "guarantee": guarantee.to_dict(),
    }
    lines = [*console.told(found), str(guarantee)]
    if model is not None and rehearse is not None:
        done = [model.rehearse(each.study, repetitions=rehearse, random_state=seed) for each in found]
        result["rehearsals"] = [each.to_dict() for each in done]
        lines += ["", "rehearsed:", *map(str, done)]
    console.emit(result, "\n".join(lines), as_json=as_json)


def _declared(texts: list[str] | None, file: Path | None) -> tuple[Study, ...]:
    """The studies of ``--studies`` and ``--study``, in this order."""
    from dpsynth.runs.private_estimates import studies_of
    from dpsynth.studies.study import read_studies

    written = () if file is None else studies_of(file)
    if not written and not texts:
        raise InputError("give a --study such as 'logistic: death ~ age + sex', or --studies FILE")
    try:
        read_studies(texts or [])
        return read_studies([*written, *(texts or [])])
    except InputError as problem:
        raise InputError(f"--study: {problem}") from None
