"""``dpsynth run``: a configuration in, a folder with the synthetic table and its ledger out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option

from dpsynth import progress
from dpsynth.errors import ConfigError, InputError, RunError
from dpsynth.files.storage import claimed, write_folder
from dpsynth.runs.commands import console
from dpsynth.runs.commands.own_options import generator_options, options_as_given

if TYPE_CHECKING:
    from dpsynth.evaluation.results import Evaluation
    from dpsynth.privacy.guarantee import Guarantee
    from dpsynth.privacy.risk import RiskLimit
    from dpsynth.runs.config import RunConfig
    from dpsynth.runs.evaluation import FinishedRun
    from dpsynth.runs.forecast import BudgetPlan
    from dpsynth.synthesis.parts.part import Part
    from dpsynth.table.schema import TableSchema


# ------------------------------------------------------------------------------------------------
# ``dpsynth plan``: what a fit would give, from public numbers alone.

#: files of ``--out``
RECORD, PICTURE, TEXT = "plan.json", "plan.svg", "plan.txt"


def plan_run(
    file: Annotated[
        Path, Argument(help="YAML file of a reviewed schema or of a run, or a name such as support2.")
    ],
    records: Annotated[
        int | None, Option(help="Records in the table, of which a part trains. Default: n_public.")
    ] = None,
    epsilon: Annotated[float | None, Option(help="Total budget (3 by default).")] = None,
    advantage: console.AdvantageOption = None,
    tpr: console.TprOption = None,
    fpr: console.FprOption = None,
    delta: console.DeltaOption = None,
    test_fraction: console.TestFractionOption = None,
    study: console.StudyOption = None,
    out: Annotated[Path | None, Option(help="Folder for plan.json, plan.svg and plan.txt.")] = None,
    force: console.ForceFlag = False,
) -> None:
    """Plan a run from public numbers: noise, smallest groups and interval widths.

    If the schema has unreviewed fields, the plan is confidential and says so.

    Opens no data file and uses no privacy budget. Compares epsilon 0.5, 1, 3 and 10. Half of the records
    train, as in `dpsynth run`, unless --test-fraction or the YAML file of a run says otherwise.
    """
    from dpsynth.runs.forecast import plan

    given = {"--epsilon": epsilon, "--delta": delta, "--study": study, "--test-fraction": test_fraction}
    risk = console.asked_risk(epsilon, advantage, tpr, fpr)
    given = {name: value for name, value in {**given, console.RISK: risk}.items() if value is not None}
    schema, options, train = _read(file, given)
    if records is not None:
        options["n"] = round(records * train)
        console.say(f"planning for {options['n']:,} training {schema.counted} of {records:,}")
    if risk is not None:
        at = schema.with_n_public(options["n"]) if "n" in options else schema
        options["epsilon"] = _epsilon_for(risk, at, "marginals", options, options["also"])
    found = plan(schema, **options)
    if out is not None:
        with claimed(out, force=force, mark=RECORD):
            shared = not found.confidential
            write_folder(out, lambda folder: _write(found, folder), replace=force, shared=shared)
            console.say(f"wrote {RECORD}, {PICTURE} and {TEXT} to {out}")
    console.emit(found.to_dict(), str(found))


def _epsilon_for(
    risk: RiskLimit,
    schema: TableSchema,
    generator: str,
    options: Mapping[str, Any],
    also: Sequence[Part[Any]],
) -> float:
    """The epsilon of a fit with this risk, which is said."""
    from dpsynth.synthesis.generators import estimator
    from dpsynth.synthesis.risk import epsilon_for

    kind = estimator(generator, options).options
    epsilon = epsilon_for(
        risk, schema, kind.of(**{k: v for k, v in options.items() if k in kind.model_fields}), also
    )
    console.say(f"epsilon {epsilon:g} allows {risk}")
    return epsilon


def _read(file: Path, given: dict[str, Any]) -> tuple[TableSchema, dict[str, Any], float]:
    """The schema and the options of a schema's or a run's YAML file, and the share of records that train."""
    from dpsynth.datasets.table import training_schema
    from dpsynth.files.text import read_yaml
    from dpsynth.patients.schema import read_schema
    from dpsynth.runs.config import RunConfig, SplitConfig
    from dpsynth.synthesis.parts.studies import Studies

    if file.exists() and read_yaml(
        file, lambda data: isinstance(data, dict) and "columns" in data, error=InputError
    ):
        schema, tests = read_schema(file), given.pop("--test-fraction", SplitConfig().test_fraction)
        if not 0 <= tests < 1:
            raise InputError(f"--test-fraction must be from 0 and less than 1, got {tests:g}")
        study = given.pop("--study", None)
        given.pop(console.RISK, None)
        options = {name.removeprefix("--"): value for name, value in given.items()}
        options["also"] = [Studies(study)] if study else []
        return training_schema(schema, tests) if tests else schema, options, 1.0 - tests
    from dpsynth import datasets

    config = RunConfig.from_yaml(file)
    console.refuse(given, f"{file}: write it into that file")
    if config.data is None:
        schema = datasets.card(str(config.dataset)).table
    else:
        schema = read_schema(Path(config.data.schema_path))
    schema = training_schema(schema, config.split.test_fraction)
    options = {"generator": config.model.generator, "also": config.also, **config.arguments()}
    return schema, options, 1.0 - config.split.test_fraction


def _write(found: BudgetPlan, folder: Path) -> None:
    from dpsynth.files.storage import dump_json, write_text
    from dpsynth.report.plots import save_figure

    shared = not found.confidential
    write_text(folder / RECORD, dump_json(found.to_dict()) + "\n", shared=shared)
    write_text(folder / TEXT, f"{found}\n", shared=shared)
    save_figure(found.plot(), folder / PICTURE, "Plan of a fit", shared=shared)


def run_configuration(
    context: Context,
    out: Annotated[Path, Option(help="Folder to write.")],
    config: Annotated[Path | None, Argument(help="YAML file of the run, or a name such as support2.")] = None,
    data: Annotated[Path | None, Option(help="CSV or Parquet file: a run without a YAML file.")] = None,
    schema: Annotated[Path | None, Option(help="YAML file of the schema of --data.")] = None,
    dataset: console.DatasetOption = None,
    epsilon: Annotated[float | None, Option(help="Total budget, with --data or --dataset.")] = None,
    advantage: console.AdvantageOption = None,
    tpr: console.TprOption = None,
    fpr: console.FprOption = None,
    delta: console.DeltaOption = None,
    test_fraction: console.TestFractionOption = None,
    generator: Annotated[
        str | None, Option(help="marginals (default), wgan-gp or matching. Its options follow.")
    ] = None,
    study: console.StudyOption = None,
    resume: Annotated[bool, Option("--resume", help="Go on with an interrupted run.")] = False,
    evaluate: Annotated[
        bool, Option(help="Evaluate the table. Without it, `dpsynth evaluate` does so later.")
    ] = True,
    force: console.ForceFlag = False,
) -> None:
    """Fit, sample, evaluate and report, as a YAML file or --data, --schema and --epsilon say.

    --dataset NAME takes a registered data set in place of --data and --schema.

    Writes synthetic.csv, model/ and ledger.json, and then evaluates the table for report.json, report.md and
    report.html. Ctrl-C during the evaluation keeps the table. `dpsynth evaluate` then continues. Half of the
    records train and half test, unless --test-fraction says otherwise. A YAML file can change everything.

    The cost stands in the file OUT.ledger, or in the ledger that the YAML file or DPSYNTH_LEDGER names.
    """
    from dpsynth.runs import pipeline
    from dpsynth.runs.config import RunConfig
    from dpsynth.runs.folder import RunFolder

    given = {
        "--data": data,
        "--schema": schema,
        "--dataset": dataset,
        "--epsilon": epsilon,
        console.RISK: console.asked_risk(epsilon, advantage, tpr, fpr),
        "--delta": delta,
        "--test-fraction": test_fraction,
        "--generator": generator,
        "--study": study,
    }
    options = generator_options(context)
    if config is None:
        settings = _of_options(given, options)
    else:
        if config.name.lower().endswith((".csv", ".csv.gz", ".parquet")):
            raise InputError(f"{config} is a table: give it with --data, and its schema with --schema")
        console.refuse({**given, **options_as_given(options)}, f"{config}: write it into that file")
        settings = RunConfig.from_yaml(config)
    try:
        with progress.run_bars() as (draw, stages), progress.stage_lines():
            done = pipeline.run(
                settings,
                out,
                force=force,
                resume=resume,
                evaluate=evaluate,
                progress=draw,
                stages=stages,
                log=console.say,
            )
    except KeyboardInterrupt:
        if (folder := RunFolder(out)).interrupted:
            left = f"a private checkpoint is in {folder.checkpoint}. Continue with --resume"
        else:
            left = "no table was written"
        raise console.InterruptedCommand(f"interrupted: {left}") from None
    result = {"out": str(done.out), "files": list(done.folder.files), **done.report.to_dict()}
    console.emit(result, _text(done))
    end_of(done)


def _of_options(given: Mapping[str, Any], options: Mapping[str, Any]) -> RunConfig:
    """The configuration of a run without a YAML file. ``options`` are those of the generator."""
    from dpsynth.runs.config import RunConfig

    data, schema, epsilon = (given[name] for name in ("--data", "--schema", "--epsilon"))
    if (dataset := given["--dataset"]) is not None:
        console.refuse({"--data": data, "--schema": schema}, "--dataset, which has a table and a schema")
    elif data is None:
        raise InputError("give a YAML file, or --data, --schema and --epsilon")
    elif schema is None:
        raise InputError(f"--schema is needed. `dpsynth schema infer {data} --out my.yaml` drafts one")
    own = {name: given[f"--{name}"] for name in ("delta", "generator")}
    model = {name: value for name, value in own.items() if value is not None}
    if (risk := given[console.RISK]) is not None:
        from dpsynth.synthesis.parts.studies import Studies

        studies = given["--study"]
        known = _part_that_trains(schema, dataset, given["--test-fraction"])
        also = [Studies(studies)] if studies else []
        settings = {**{name: value for name, value in model.items() if name != "generator"}, **options}
        epsilon = _epsilon_for(risk, known, model.get("generator", "marginals"), settings, also)
    if epsilon is None:
        raise InputError(
            "--epsilon is needed, or --advantage in its place. A run without any guarantee needs a YAML file"
        )
    files = {"data": {"path": str(data), "schema": str(schema)}}
    record = {
        **(files if dataset is None else {"dataset": dataset}),
        "model": {"epsilon": epsilon, **model, **options},
        **({} if (part := given["--test-fraction"]) is None else {"split": {"test_fraction": part}}),
        "studies": given["--study"] or [],
        **({} if risk is None else {"risk": risk.model_dump(exclude_none=True)}),
    }
    try:
        return RunConfig.from_dict(record).located(".")
    except ConfigError as problem:
        # the keys of the file that was not written
        said = re.sub("^model: ", "--", str(problem)).replace("model.", "--")
        said = said.replace("split.test_fraction", "--test-fraction")
        if said.startswith("studies: "):
            said = f"--study: {said.removeprefix('studies: ')}"
        raise ConfigError(said) from None


def _part_that_trains(schema: Path, dataset: str | None, test_fraction: float | None) -> TableSchema:
    """The schema of the part of a table that trains in a run of options alone."""
    from dpsynth import datasets
    from dpsynth.datasets.table import training_schema
    from dpsynth.patients.schema import read_schema
    from dpsynth.runs.config import SplitConfig

    whole = datasets.card(dataset).table if dataset is not None else read_schema(schema)
    split = SplitConfig() if test_fraction is None else SplitConfig.of(test_fraction=test_fraction)
    return training_schema(whole, split.test_fraction)


def end_of(done: FinishedRun) -> None:
    """Raise the failure or interrupt, and say what is there and how to continue."""
    if not done.problems:
        return
    table = done.folder.synthetic
    if table.exists():
        again = f"`dpsynth evaluate {done.out}{' --force' if done.report.evaluation else ''}`"
        there = f"The table, the model and the ledger are in {done.out}. {again} evaluates the table"
    else:
        there = (
            f"The model and the ledger are in {done.out}. `dpsynth sample {done.out} -n N --out {table}` and "
            f"`dpsynth evaluate {done.out}` make the rest"
        )
    sentence = ". ".join([*done.problems, there])
    raise console.InterruptedCommand(sentence) if done.interrupted else RunError(sentence)


def judgement(evaluation: Evaluation, guarantee: Guarantee | None = None) -> list[str]:
    """Findings of an evaluation, as lines: the verdicts, the numbers of records, and the parts used."""
    from dpsynth.evaluation.tables import sampled
    from dpsynth.files.text import inert
    from dpsynth.report.verdicts.rules import judge

    lines = [verdict.sentence for verdict in judge(evaluation, guarantee)]
    if "test_records" in evaluation:
        train, test = (evaluation[f"{name}_records"].value for name in ("train", "test"))
        lines.append(
            f"{train:,} {evaluation.counted} trained the model, and {test:,} were held out to test it."
        )
    lines += sampled(evaluation)
    return [f"- {inert(line)}" for line in lines]


def _text(done: FinishedRun) -> str:
    lines = [str(done.report.guarantee)]
    evaluation = done.report.evaluation
    if evaluation is not None:
        lines += ["Quality of the table (confidential):", *judgement(evaluation, done.report.guarantee)]
    lines.append(f"wrote {', '.join(done.folder.files)} to {done.out}")
    if evaluation is None and done.folder.synthetic.exists():
        lines.append(f"not evaluated. `dpsynth evaluate {done.out}` does it")
    elif done.folder.page().exists():
        lines.append(f"open {done.folder.page()} in a browser")
    if "studies" in done.report.config:
        lines.append(f"`dpsynth report {done.out} --mode studies` prints the estimates of regressions")
    return "\n".join(lines)
