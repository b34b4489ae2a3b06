"""``dpsynth plan``: what a fit would give, from public numbers alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from dpsynth.errors import InputError
from dpsynth.files.storage import claimed, write_folder
from dpsynth.runs.commands import console

if TYPE_CHECKING:
    from dpsynth.runs.plan_record import BudgetPlan
    from dpsynth.table.patients import TableSchema

#: files of ``--out``
RECORD, PICTURE, TEXT = "plan.json", "plan.svg", "plan.txt"


def plan_fit(
    file: Annotated[Path, Argument(help="YAML file of a reviewed schema, or of a run.")],
    records: Annotated[
        int | None, Option(help="Records in the table, of which a part trains. Default: n_public.")
    ] = None,
    epsilon: Annotated[float | None, Option(help="Total budget (3 by default).")] = None,
    delta: console.DeltaOption = None,
    study: console.StudyOption = None,
    out: Annotated[Path | None, Option(help="Folder for plan.json, plan.svg and plan.txt.")] = None,
    force: console.ForceFlag = False,
    as_json: console.JsonFlag = False,
) -> None:
    """Plan a run from public numbers: noise, smallest groups and interval widths.

    If the schema has unreviewed fields, the plan is confidential and says so.

    Opens no data file and uses no privacy budget. Compares epsilon 0.5, 1, 3 and 10. Half of the records
    train, as in `dpsynth run`, unless the YAML file of a run says otherwise.
    """
    from dpsynth.runs.budget_plan import plan

    given = {"--epsilon": epsilon, "--delta": delta, "--study": study}
    schema, options, train = _read(file, {name: value for name, value in given.items() if value is not None})
    if records is not None:
        options["n"] = round(records * train)
        console.say(f"planning for {options['n']:,} training {schema.counted} of {records:,}")
    found = plan(schema, **options)
    if out is not None:
        with claimed(out, force=force, mark=RECORD):
            shared = not found.confidential
            write_folder(out, lambda folder: _write(found, folder), replace=force, shared=shared)
            console.say(f"wrote {RECORD}, {PICTURE} and {TEXT} to {out}")
    console.emit(found.to_dict(), str(found), as_json=as_json)


def _read(file: Path, given: dict[str, Any]) -> tuple[TableSchema, dict[str, Any], float]:
    """The schema and the options of a schema's or a run's YAML file, and the share of records that train."""
    from dpsynth.datasets.table import training_schema
    from dpsynth.files.yaml_text import read_yaml
    from dpsynth.runs.config import RunConfig, SplitConfig
    from dpsynth.table.patients import read_schema

    if read_yaml(file, lambda data: isinstance(data, dict) and "columns" in data, error=InputError):
        schema, tests = read_schema(file), SplitConfig().test_fraction
        names = {"--epsilon": "epsilon", "--delta": "delta", "--study": "studies"}
        options = {names[name]: value for name, value in given.items()}
        return training_schema(schema, tests), options, 1.0 - tests
    from dpsynth import datasets

    config = RunConfig.from_yaml(file)
    console.refuse(given, f"{file}: write it into that file")
    if config.data is None:
        schema = datasets.card(str(config.dataset)).table
    else:
        schema = read_schema(Path(config.data.schema_path))
    schema = training_schema(schema, config.split.test_fraction)
    options = {"generator": config.model.generator, **config.arguments()}
    return schema, options, 1.0 - config.split.test_fraction


def _write(found: BudgetPlan, folder: Path) -> None:
    from dpsynth.files.atomic import dump_json, write_text
    from dpsynth.report.drawing.style import save

    shared = not found.confidential
    write_text(folder / RECORD, dump_json(found.to_dict()) + "\n", shared=shared)
    write_text(folder / TEXT, f"{found}\n", shared=shared)
    save(found.plot(), folder / PICTURE, "Plan of a fit", shared=shared)
