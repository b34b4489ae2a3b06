"""The private estimates of declared studies in a folder of their own, where no table is wanted.

Only the studies' columns are modelled: a base model over few columns has less noise in each, and without
critic steps or other columns more of the budget is left for the studies themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpsynth.accounting.guarantee import NOT_PRIVATE, WARNING, Guarantee, round_up
from dpsynth.accounting.ledger import Ledger
from dpsynth.accounting.record import Summary
from dpsynth.errors import DataError, InputError
from dpsynth.files.atomic import dump_json, read_json, write_text
from dpsynth.files.markdown import inert
from dpsynth.files.storage import check_format, damaged
from dpsynth.files.yaml_text import read_yaml
from dpsynth.studies.digits import effect_texts
from dpsynth.studies.estimates import Estimates
from dpsynth.studies.study import Study, read_studies
from dpsynth.synthesis.budget import Shares
from dpsynth.synthesis.synthesizer import DPWGANGP
from dpsynth.table.derived import inputs_of
from dpsynth.table.schema import Schema

#: files of the folder
ESTIMATES, ESTIMATES_MD, LEDGER = "estimates.json", "estimates.md", "ledger.json"
#: part of mu^2 for the studies; the base model stands for the records where nothing is bought, and gets the
#: rest
SHARE = 0.5
_FORMAT = 1


def studies_of(path: str | Path) -> tuple[Study, ...]:
    """Return what stands under ``studies`` in a YAML file, a run's configuration for example.

    Raises
    ------
    InputError
        If there is nothing or something else; the message starts with the file's name.
    """

    def build(data: Any) -> tuple[Study, ...]:
        if not isinstance(data, dict) or not data.get("studies"):
            raise InputError("the key studies, with a list of studies, is required")
        return read_studies(data["studies"])

    return read_yaml(path, build, error=InputError)


def study_schema(schema: Schema, studies: Sequence[Study]) -> Schema:
    """Return the schema of the studies' columns; the table may have the others, which are not read.

    The first study's outcome that is no number becomes the schema's, and so the root of the base model.

    Raises
    ------
    InputError
        If a study does not fit the schema.

    Examples
    --------
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=99),
    ...                          Column(name="ward", kind="categorical", categories=("a", "b")),
    ...                          Column(name="died", kind="binary", categories=(0, 1))))
    >>> part = study_schema(schema, [Study(model="died ~ age")])
    >>> part.names, part.outcome, part.ignored
    (('age', 'died'), 'died', ('ward',))
    """
    models = [study.effects(schema) for study in studies]
    wanted = {name for model in models for name in (model.outcome, model.duration) if name is not None}
    wanted |= {column.name for model in models for column in model.columns(schema)}
    wanted = wanted.union(*(inputs_of(name, schema.formulas) for name in wanted))
    chosen = [name for name in schema.names if name in wanted]
    outcomes = [model.outcome for model in models if not schema.column(model.outcome).is_numeric]
    fields = dict(schema.select(chosen))
    others = tuple(name for name in schema.names if name not in wanted)
    return Schema(**{**fields, "outcome": next(iter(outcomes), None), "ignored": (*schema.ignored, *others)})


def study_estimator(
    studies: Sequence[Study],
    epsilon: float | None,
    delta: float | None = None,
    *,
    share: float = SHARE,
    accept_unreviewed: bool = False,
) -> DPWGANGP:
    """Make the unfitted model of the studies alone: a tree of private marginals and no critic's steps.

    Raises
    ------
    InputError
        If an argument is out of range, naming it.
    """
    model = DPWGANGP(
        epsilon,
        delta,
        base_model="tree",
        pairwise_statistics=False,
        training_steps=0,
        shares=Shares(studies=share),
        studies=tuple(studies),
        accept_unreviewed=accept_unreviewed,
    )
    model.validate()
    return model


def estimates_record(model: DPWGANGP) -> dict[str, Any]:
    """What ``estimates.json`` holds: a JSON-able record of a fitted model's studies and what they cost."""
    return {
        "format": _FORMAT,
        "studies": [study.declared.to_dict() for study in model.model_.studies],
        "estimates": [estimates.to_dict() for estimates in model.estimates_],
        "effects": {estimates.study: estimates.effects() for estimates in model.estimates_},
        "records": model.n_,
        "guarantee": model.guarantee().to_dict(),
        "ledger": model.ledger_.summary(),
    }


def write_estimates(model: DPWGANGP, folder: Path) -> None:
    """Write ``estimates.json``, ``estimates.md`` and ``ledger.json``, all of which may be shared."""
    write_text(folder / ESTIMATES, dump_json(estimates_record(model)) + "\n")
    text = to_markdown(model.estimates_, model.guarantee(), model.ledger_.summary())
    write_text(folder / ESTIMATES_MD, text)
    model.ledger_.save(folder / LEDGER)
    model.guarantee().write_warning(folder / WARNING)


def read_estimates(folder: str | Path) -> tuple[tuple[Estimates, ...], Guarantee]:
    """Return the estimates in the folder of ``dpsynth study fit``, of a run or of a model.

    Raises
    ------
    InputError
        If the folder is none of these, or its model holds no study.
    DataError
        If a file is damaged, or the ledger beside it is not its own.
    """
    if (Path(folder) / ESTIMATES).is_file():
        return _of_folder(Path(folder))
    model = read_model(folder)
    return model.estimates_, model.guarantee()


def read_model(folder: str | Path) -> DPWGANGP:
    """Return the model with studies in the folder of a run or of a model.

    Raises
    ------
    InputError
        If the folder holds no model, or its model no study.
    DataError
        If a file is damaged, or the ledger beside it is not its own.
    """
    folder = Path(folder)
    home = next((path for path in (folder, folder / "model") if (path / "model.json").is_file()), None)
    if home is None and (folder / ESTIMATES).is_file():
        raise InputError(
            f"{folder} holds estimates alone, and a rehearsal draws its tables from a fitted model: name the "
            "folder of a fit or a run"
        )
    if home is None:
        raise InputError(f"{folder} holds neither {ESTIMATES} nor a model: name the folder of a fit or a run")
    model = DPWGANGP.load(home)
    if not model.estimates_:
        raise InputError(
            f"the model in {home} holds no study: none was declared before its fit, and what was not bought "
            "then costs budget now"
        )
    return model


def _of_folder(folder: Path) -> tuple[tuple[Estimates, ...], Guarantee]:
    record = read_json(folder / ESTIMATES)
    try:
        check_format(folder, "estimates", record["format"], _FORMAT)
        estimates = tuple(Estimates.from_dict(entry) for entry in record["estimates"])
        guarantee = Guarantee.from_dict(record["guarantee"])
    except (KeyError, TypeError, ValueError) as problem:
        if isinstance(problem, DataError):
            raise
        raise damaged(folder, "record of estimates", problem) from None
    if Ledger.load(folder / LEDGER).guarantee() != guarantee:
        raise DataError(
            f"{folder / LEDGER} is not the ledger of {folder / ESTIMATES}: one of them was changed"
        )
    return estimates, guarantee


def to_markdown(estimates: Sequence[Estimates], guarantee: Guarantee, summary: Summary) -> str:
    """Return the estimates as tables, with what they mean and what they cost."""
    lines = ["# Private estimates", ""]
    if not guarantee.private:
        lines += [f"> **{NOT_PRIVATE}.** Treat these numbers as you would treat the records.", ""]
    for study in estimates:
        lines += _study_lines(study)
    lines += [
        "The intervals are about the population that the records come from: they hold the sampling of the "
        "records and the noise for privacy.",
        "",
        "## What is guaranteed",
        "",
        inert(str(guarantee)),
        "",
        "| reading of the private table | ε alone | ε so far |",
        "|---|---:|---:|",
    ]
    for entry in summary["entries"]:
        cost = (round_up(entry["epsilon_alone"]), round_up(entry["epsilon_cumulative"]))
        lines.append(f"| {inert(entry['name'])} | {' | '.join(cost)} |")
    return "\n".join([*lines, ""])


def _study_lines(study: Estimates) -> list[str]:
    lines = [f"## {inert(study.study)}", "", inert(study.formula), ""]
    lines += [f"| term | {study.measure} | 95 % interval | p |", "|---|---:|---|---:|"]
    for row in study.effects():
        p = "below .001" if row["p_value"] < 0.001 else f"{row['p_value']:.3f}".lstrip("0")
        estimate, lower, upper = effect_texts(row)
        lines.append(f"| {inert(row['term'])} | {estimate} | {lower} to {upper} | {inert(p)} |")
    lines += ["", inert(" ".join((f"Intervals are {study.widened}.", *study.remarks))), ""]
    if study.survival is not None:
        unit = f" ({study.survival.unit})" if study.survival.unit else ""
        lines += [
            f"| time{inert(unit)} | survival | {100 * study.survival.level:g} % band |",
            "|---:|---:|---|",
        ]
        lines += [f"| {' | '.join(cells)} |" for cells in study.survival.rows()]
        lines.append("")
    return lines
