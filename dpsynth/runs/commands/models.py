"""``dpsynth fit`` and ``sample``: a table to a model, a model to a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option

from dpsynth import progress
from dpsynth.errors import DataError, InputError
from dpsynth.files.codec import to_plain
from dpsynth.files.storage import claimed, require_free_file, require_free_folder
from dpsynth.runs.commands import console
from dpsynth.runs.commands.own_options import generator_options

if TYPE_CHECKING:
    import pandas as pd

    from dpsynth.privacy.records import PartitionedRecords
    from dpsynth.synthesis.options import FitOptions
    from dpsynth.synthesis.parts.studies import Studies
    from dpsynth.synthesis.synthesizer import Synthesizer
    from dpsynth.table.schema import TableSchema


def fit(
    context: Context,
    out: Annotated[Path, Option(help="Folder of the model.")],
    data: Annotated[
        Path | None,
        Option(help="CSV or Parquet file, a folder of Parquet files, or one of patients' files."),
    ] = None,
    schema: Annotated[Path | None, Option(help="YAML file.")] = None,
    dataset: console.DatasetOption = None,
    epsilon: console.EpsilonOption = None,
    advantage: console.AdvantageOption = None,
    tpr: console.TprOption = None,
    fpr: console.FprOption = None,
    delta: Annotated[
        float | None,
        Option(help="Default: n_public^-1.5 (at most 1e-3), or 1e-6 where the schema has no n_public."),
    ] = None,
    generator: console.GeneratorOption = "marginals",
    study: console.StudyOption = None,
    not_private: console.NotPrivateFlag = False,
    workers: console.WorkersOption = None,
    force: console.ForceFlag = False,
) -> None:
    """Fit a model to a table. The model may be shared if a guarantee holds and the schema is confirmed.

    The table is a file, --data with --schema, or a registered data set, --dataset.

    A folder of Parquet files is a table in parts. It is never in memory as a whole. If patients have several
    rows, each file must hold all rows of its patients.

    The cost stands in the file OUT.ledger, or in the ledger that DPSYNTH_LEDGER names.
    """
    parallel = None if workers is None else console.dask_workers(workers)
    risk = console.asked_risk(epsilon, advantage, tpr, fpr)
    if (epsilon is None and risk is None) != not_private:
        raise InputError("give either --epsilon, or --not-private for a model without any guarantee")
    from dpsynth.runs.spending import ledger_of_run
    from dpsynth.synthesis.check_inputs import check_options, check_place
    from dpsynth.synthesis.fit import cost_of
    from dpsynth.synthesis.generators import estimator
    from dpsynth.synthesis.parts.studies import Studies

    also = [Studies(study)] if study else []
    given = generator_options(context)
    kind = estimator(generator, given)
    with claimed(out, force=force, mark="model.json"):
        if risk is None:
            kind(epsilon, delta, **given).validate()
        known, table_of = _source(data, schema, dataset, parallel)
        if risk is not None:
            bound = risk.model_dump(exclude_none=True)
            epsilon = kind.for_risk(known, **bound, also=also, delta=delta, **given).epsilon
            console.say(f"epsilon {epsilon:g} allows {risk}")
        model = kind(epsilon, delta, **given)
        options = model.validate()
        check_options(known, options, also)
        check_place(options)
        _announce(data, options, known, also)
        with (
            ledger_of_run(None, cost_of(known, options), out, say=console.say) as ledger,
            table_of() as table,
            progress.training_bar() as draw,
            progress.stage_lines(),
        ):
            try:
                model.fit(
                    table,
                    schema=known,
                    ledger=ledger,  # paid above, before the table was opened
                    progress=draw,
                    also=also,
                )
            except KeyboardInterrupt:
                raise console.InterruptedCommand("interrupted: no model was written") from None
            model.save(out, replace=force)
    summary = model.ledger_.summary()
    lines = [*console.estimate_tables(model.estimates_), summary["guarantee"], f"wrote the model to {out}"]
    estimates = {"estimates": [to_plain(study) for study in model.estimates_]} if model.estimates_ else {}
    console.emit({"out": str(out), **summary, **estimates}, "\n".join(lines))


def _source(
    data: Path | None, schema: Path | None, dataset: str | None, parallel: dict[str, Any] | None
) -> tuple[TableSchema, Callable[[], AbstractContextManager[pd.DataFrame | PartitionedRecords]]]:
    """The schema of the table that the options name, and what opens it."""
    if dataset is not None:
        from dpsynth import datasets

        console.refuse({"--data": data, "--schema": schema}, "--dataset, which has a table and a schema")
        if parallel is not None:
            raise InputError("--workers reads tables in parts, and a registered data set is in memory")
        known = datasets.card(dataset).table
        return known, lambda: nullcontext(datasets.load(dataset).frame)
    if data is None or schema is None:
        raise InputError("give --data and --schema, or --dataset. dpsynth schema infer drafts a schema")
    from dpsynth.patients.schema import read_schema

    described = read_schema(schema)
    return described, partial(opened, data, described, schema, parallel)


def _announce(data: Path | None, options: FitOptions, schema: TableSchema, also: Sequence[Studies]) -> None:
    """Say how wide the intervals of studies will be, if the table is there."""
    from dpsynth.synthesis.fit import outlook

    if data is not None and not data.exists():
        raise DataError(f"{data}: there is no such file")
    for line in outlook(schema, options, also):
        console.say(line)


@contextmanager
def opened(
    data: Path,
    schema: TableSchema,
    schema_file: Path,
    parallel: dict[str, Any] | None,
) -> Iterator[pd.DataFrame | PartitionedRecords]:
    """Give a table: in memory, or in parts where it is a folder or workers are asked for."""
    linked = schema.reads_folder(data)
    if parallel is None and (linked or not data.is_dir()):
        from dpsynth.datasets import open_table

        yield open_table(data, schema, schema_file=schema_file).frame
        return
    if linked:
        raise InputError(
            f"the schema's files in {data} are linked in memory. Leave out --workers, or "
            "write all columns into Parquet files of whole patients"
        )
    from dpsynth.parallel import connected
    from dpsynth.privacy.records import PartitionedRecords
    from dpsynth.table.parquet import ParquetTable

    table = ParquetTable(data)
    with connected(**(parallel or {})) as client:
        yield PartitionedRecords(table, schema, client)


def sample(
    model: Annotated[Path, Argument(help="Folder of a model, or of a run.")],
    n: Annotated[int, Option("-n", "--n", help="Records to make.", min=0)],
    out: Annotated[
        Path,
        Option(help="File .csv or .parquet. For parts, several tables or files of patients: a folder."),
    ],
    where: Annotated[
        list[str] | None, Option(help="Condition on every record, such as 'age >= 65'. Repeatable.")
    ] = None,
    seed: Annotated[int | None, Option(help="Seed of the sampling.", min=0)] = None,
    partitions: Annotated[
        int | None, Option(help="Parquet files to sample into, side by side on Dask workers.", min=1)
    ] = None,
    tables: Annotated[int | None, Option(help="Tables to draw, to analyse alike and combine.", min=2)] = None,
    study: Annotated[
        str | None,
        Option(help="With --tables: name of the pre-specified regression that the tables are for."),
    ] = None,
    workers: console.WorkersOption = None,
    escape_formulas: Annotated[
        bool, Option(help="In CSV: an apostrophe before text that a spreadsheet would run (=HYPERLINK).")
    ] = True,
    force: console.ForceFlag = False,
) -> None:
    """Generate synthetic records from a model, at no further privacy cost and in bounded memory.

    One file is described beside it for catalogues, as FILE.croissant.json. If the schema names files of
    patients, --out may be a folder, which gets the same files. With --tables, write a folder of tables.
    Their differences show how far the noisy statistics may be off.
    """
    from dpsynth.parallel import connected
    from dpsynth.runs.folder import RunFolder
    from dpsynth.synthesis.many_tables import FIRST
    from dpsynth.synthesis.synthesizer import TABLE
    from dpsynth.table.files import WRITABLE

    in_parts, parallel = partitions is not None or workers is not None, console.dask_workers(workers)
    run = RunFolder(model)
    own = out.resolve() == run.synthetic.resolve()
    described = run.croissant if own else Path(f"{out}.croissant.json")
    if study is not None and tables is None:
        raise InputError("--study needs --tables, the number of tables to draw for it")
    if in_parts and tables is not None:
        raise InputError("--tables writes whole tables. Leave out --partitions and --workers")
    if tables is not None or in_parts:
        require_free_folder(out, force=force, mark=FIRST if in_parts else TABLE.format(1))
    elif out.name.lower().endswith(WRITABLE):
        require_free_file(out, force=force)
    fitted = run.load_model()
    visits = fitted.patients_
    linked = visits is not None and visits.writes_folder(out) and tables is None and not in_parts
    if visits is not None and linked:
        require_free_folder(out, force=force, mark=visits.files[0].name)
    if tables is not None:
        options = {"escape_formulas": escape_formulas, "replace": force}
        fitted.sample_many_to(out, tables, n, study=study, where=where, random_state=seed, **options)
    elif in_parts:
        with connected(**parallel) as client:
            fitted.sample_to_parts(
                out, n, client=client, partitions=partitions, where=where, random_state=seed, replace=force
            )
    else:
        if described.is_file():  # of an earlier table
            described.unlink()
        options = {"escape_formulas": escape_formulas, "replace": force}
        fitted.sample_to(out, n, where=where, random_state=seed, **options)
        if own and run.ledger.is_file():
            run.write_ledger(run.read_ledger())
        if not linked:
            _describe(fitted, out, n, described, escape_formulas=escape_formulas)
    guarantee, acceptance = str(fitted.guarantee()), fitted.acceptance_
    result = {"out": str(out), "records": n, "guarantee": guarantee, "acceptance": acceptance.to_dict()}
    what = fitted.model_.declared_schema.counted
    wrote = f"wrote {n:,} {what} to {out}"
    if tables is not None:
        result |= {"tables": tables, "study": study}
        wrote = f"wrote {tables:,} tables of {n:,} {what} to {out}. Analyse each, then use dpsynth.combine"
    elif not in_parts and not linked:
        result["croissant"] = str(described)
    console.emit(result, "\n".join([guarantee, *acceptance.lines(what), wrote]))


def _describe(
    fitted: Synthesizer, table: Path, records: int, described: Path, *, escape_formulas: bool
) -> None:
    """Write the metadata of a table that was sampled."""
    from dpsynth.files.storage import dump_json, write_text
    from dpsynth.report.catalogues import metadata_of
    from dpsynth.runs.pipeline import Origin

    schema = fitted.model_.released_schema
    report = Origin.of_model(fitted).report(
        schema,
        name=schema.name or "",
        outcome=schema.outcome,
        size={"synthetic_records": records},
        config={"sample": {"n": records}},
        seconds={},
    )
    record = metadata_of(report, schema, table, escape_formulas=escape_formulas)
    write_text(described, dump_json(record) + "\n", shared=fitted.may_share)
