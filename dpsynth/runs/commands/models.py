"""``dpsynth fit`` and ``dpsynth sample``: a table to a model, a model to a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.errors import InputError
from dpsynth.files.storage import claimed, require_free_file, require_free_folder
from dpsynth.runs.commands import console
from dpsynth.runs.commands.console import CsvFormat, reads_tables

if TYPE_CHECKING:
    import pandas as pd

    from dpsynth.releases.partitioned import PartitionedRecords
    from dpsynth.table.schema import Schema


@reads_tables
def fit(
    data: Annotated[
        Path,
        typer.Option("--data", help="CSV or Parquet file, or a folder of Parquet files.", show_default=False),
    ],
    schema: Annotated[Path, typer.Option("--schema", help="YAML file.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Folder of the model.", show_default=False)],
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="Total budget.")] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            "--delta", help="Default: n_public^-1.5 (at most 1e-3), or 1e-6 where the schema has no n_public."
        ),
    ] = None,
    base_model: Annotated[str | None, typer.Option("--base-model", help="none, tree or tan.")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Critic steps.")] = None,
    study: console.StudyOption = None,
    not_private: Annotated[bool, typer.Option("--not-private", help="Fit without any noise.")] = False,
    accept_unreviewed: Annotated[
        bool,
        typer.Option("--accept-unreviewed", help="Use fields read off the data; the ledger says so."),
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
    """Fit a model on a private table; the folder holds no private record and may be shared.

    A folder of Parquet files is a table in parts: it is never in memory as a whole, and no critic
    steps can be made.
    """
    if (epsilon is None) != not_private:
        raise InputError("give either --epsilon, or --not-private for a model without any guarantee")
    from dpsynth.accounting.journal import journalled
    from dpsynth.runs.preflight import require_table
    from dpsynth.synthesis.studies import widening_lines
    from dpsynth.synthesis.synthesizer import DPWGANGP
    from dpsynth.table.schema import Schema

    in_parts = data.is_dir() or scheduler is not None or workers is not None
    given = {"base_model": base_model, "training_steps": steps, "studies": study}
    model = DPWGANGP(epsilon, delta, accept_unreviewed=accept_unreviewed)
    model.set_params(**{name: value for name, value in given.items() if value is not None})
    options = model.validate()
    with claimed(out, force=force, mark="model.json"):
        earlier = console.earlier_ledger(ledger)
        if not in_parts:
            require_table(data)
        if options.studies:
            for line in widening_lines(options, Schema.from_yaml(schema)):
                console.say(line)
        with (
            journalled(out, earlier, forget=forget_earlier, say=console.say) as book,
            opened(data, schema, csv_format, scheduler, workers) as (table, known),
        ):
            with console.progress_bar() as draw:
                model.fit(
                    table,
                    schema=known,
                    ledger=book,
                    accept_n_public=accept_n_public,
                    progress=draw,
                )
            model.save(out, replace=force)
    summary = model.ledger_.summary()
    lines = [*console.told(model.estimates_), summary["guarantee"], f"wrote the model to {out}"]
    estimates = {"estimates": [study.to_dict() for study in model.estimates_]} if model.estimates_ else {}
    console.emit({"out": str(out), **summary, **estimates}, "\n".join(lines), as_json=as_json)


@contextmanager
def opened(
    data: Path,
    schema: Path | Schema,
    csv_format: CsvFormat,
    scheduler: str | None = None,
    workers: int | None = None,
) -> Iterator[tuple[pd.DataFrame | PartitionedRecords, Schema]]:
    """Give a table and its schema: in memory, or in parts where it is a folder or workers are asked for."""
    if not (data.is_dir() or scheduler is not None or workers is not None):
        from dpsynth.datasets import open_table

        whole = open_table(data, schema, csv_format=csv_format)
        yield whole.frame, whole.schema
        return
    from dpsynth.cluster import connected
    from dpsynth.releases.partitioned import PartitionedRecords
    from dpsynth.table.parquet import ParquetTable
    from dpsynth.table.schema import Schema

    known = schema if isinstance(schema, Schema) else Schema.from_yaml(schema)
    table = ParquetTable(data)
    with connected(scheduler, workers=workers) as client:
        yield PartitionedRecords(table, known, client), known


def sample(
    model: Annotated[Path, typer.Argument(help="Folder of a model, or of a run.", show_default=False)],
    n: Annotated[int, typer.Option("-n", "--n", help="Records to make.", min=0, show_default=False)],
    out: Annotated[
        Path,
        typer.Option("--out", help=".csv or .parquet file; in parts or many, a folder.", show_default=False),
    ],
    where: Annotated[
        list[str] | None,
        typer.Option("--where", help="Condition on every record, such as 'age >= 65'; may be repeated."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of the sampling.", min=0)] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", help="Parquet files to sample into, side by side on Dask workers.", min=1
        ),
    ] = None,
    tables: Annotated[
        int | None,
        typer.Option("--tables", help="Tables to draw, to analyse alike and combine.", min=2),
    ] = None,
    study: Annotated[
        str | None, typer.Option("--study", help="With --tables: for this declared study, by its name.")
    ] = None,
    scheduler: console.SchedulerOption = None,
    workers: console.WorkersOption = None,
    escape_formulas: Annotated[
        bool,
        typer.Option(help="In CSV: an apostrophe before text that a spreadsheet would run (=HYPERLINK)."),
    ] = True,
    force: console.ForceFlag = False,
    as_json: console.JsonFlag = False,
) -> None:
    """Draw synthetic records from a model, at no further cost, in bounded memory.

    With --tables, a folder of tables whose differences tell how far the released numbers may be off.
    """
    from dpsynth.cluster import connected
    from dpsynth.synthesis.partitioned import FIRST
    from dpsynth.synthesis.synthesizer import DPWGANGP, TABLE

    in_parts = partitions is not None or scheduler is not None or workers is not None
    if study is not None and tables is None:
        raise InputError("--study needs --tables, the number of tables to draw for it")
    if in_parts and tables is not None:
        raise InputError("--tables draws whole tables; leave out --partitions, --scheduler and --workers")
    if tables is not None:
        require_free_folder(out, force=force, mark=TABLE.format(1))
    elif in_parts:
        require_free_folder(out, force=force, mark=FIRST)
    else:
        require_free_file(out, force=force)
    folder = model / "model" if (model / "model" / "model.json").exists() else model
    fitted = DPWGANGP.load(folder)
    if tables is not None:
        fitted.sample_many_to(
            out,
            tables,
            n,
            study=study,
            where=where,
            random_state=seed,
            escape_formulas=escape_formulas,
            replace=force,
        )
    elif in_parts:
        with connected(scheduler, workers=workers) as client:
            fitted.sample_to_parts(
                out, n, client=client, partitions=partitions, where=where, random_state=seed, replace=force
            )
    else:
        fitted.sample_to(out, n, where=where, random_state=seed, escape_formulas=escape_formulas)
    guarantee, acceptance = str(fitted.guarantee()), fitted.acceptance_
    result = {"out": str(out), "records": n, "guarantee": guarantee, "acceptance": acceptance.to_dict()}
    wrote = f"wrote {n:,} records to {out}"
    if tables is not None:
        result |= {"tables": tables, "study": study}
        wrote = f"wrote {tables:,} tables of {n:,} records to {out}; analyse each, then dpsynth.combine"
    lines = [guarantee, *acceptance.lines(), wrote]
    console.emit(result, "\n".join(lines), as_json=as_json)
