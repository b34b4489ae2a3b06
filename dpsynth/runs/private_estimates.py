"""Private estimates of pre-specified regressions in a folder of their own, without a table.

Only the regressions' columns are modelled. A base model over few columns has less noise in each. Without WGAN
critic steps and other columns, more of the budget is left for the regressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpsynth.accounting.guarantee import NOT_PRIVATE, WARNING, Guarantee
from dpsynth.accounting.ledger import Ledger
from dpsynth.accounting.record import Summary
from dpsynth.errors import DataError, InputError
from dpsynth.files.atomic import dump_json, finite, read_json, sealed, unsealed, write_text
from dpsynth.files.markdown import inert
from dpsynth.files.storage import check_format, damaged
from dpsynth.files.yaml_text import read_yaml
from dpsynth.report.formats import level_text, round_up, short_p_value
from dpsynth.runs.run_folder import RunFolder
from dpsynth.studies.digits import effect_texts
from dpsynth.studies.estimates import Estimates
from dpsynth.studies.study import Study, read_studies
from dpsynth.synthesis.budget import Shares
from dpsynth.synthesis.synthesizer import DPWGANGP
from dpsynth.table.derived import inputs_of
from dpsynth.table.schema import Schema

#: part of mu^2 for the studies; the base model, which stands for the records elsewhere, gets the rest
SHARE = 0.5
_FORMAT = 2


def studies_of(path: str | Path) -> tuple[Study, ...]:
    """Return the ``studies`` of a YAML file, or raise InputError naming the file."""

    def build(data: Any) -> tuple[Study, ...]:
        if not isinstance(data, dict) or not data.get("studies"):
            raise InputError("the key studies, with a list of studies, is required")
        return read_studies(data["studies"])

    return read_yaml(path, build, error=InputError)


def study_schema(schema: Schema, studies: Sequence[Study]) -> Schema:
    """Return the schema of the studies' columns. The table may have others, which are not read.

    The first study's outcome that is no number becomes the schema's, and so the root of the base model.

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
    wanted = {name for model in models for name in model.named(schema)}
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
    """Make the unfitted model of the studies alone: a tree of private marginals and no critic's steps."""
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
    """The record of ``estimates.json``: a fitted model's studies and their cost."""
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
    """Write ``estimates.json``, ``estimates.md`` and ``ledger.json``, readable as the model is."""
    places, shared = RunFolder(folder), model.may_share
    text = dump_json(sealed(finite(estimates_record(model)))) + "\n"
    write_text(places.estimates_json, text, shared=shared)
    text = to_markdown(model.estimates_, model.guarantee(), model.ledger_.summary())
    write_text(places.estimates_md, text, shared=shared)
    model.ledger_.save(places.ledger)
    model.guarantee().write_warning(folder / WARNING)


def read_estimates(folder: str | Path) -> tuple[tuple[Estimates, ...], Guarantee]:
    """Return the estimates in the folder of ``dpsynth study fit``, of a run or of a model.

    Raises InputError if it is none of these or holds no study, DataError if a file is damaged or was changed.
    """
    places = RunFolder(Path(folder))
    if places.estimates_json.is_file():
        return _of_folder(places)
    model = read_model(folder)
    return model.estimates_, model.guarantee()


def read_model(folder: str | Path) -> DPWGANGP:
    """Return the model with studies in the folder of a run or of a model, or raise InputError."""
    places = RunFolder(Path(folder))
    home = places.model_home
    there = (home / "model.json").is_file()
    if not there and places.estimates_json.is_file():
        raise InputError(
            f"{folder} holds estimates alone, and simulated tables need a fitted model: name the "
            "folder of a fit or a run"
        )
    if not there:
        raise InputError(
            f"{folder} holds neither {places.estimates_json.name} nor a model: name the folder of a fit or a "
            "run"
        )
    model = DPWGANGP.load(home)
    if not model.estimates_:
        raise InputError(
            f"the model in {home} holds no study: none was pre-specified before its fit. `dpsynth study fit` "
            "estimates one, and uses privacy budget"
        )
    return model


def _of_folder(places: RunFolder) -> tuple[tuple[Estimates, ...], Guarantee]:
    folder, path = places.path, places.estimates_json
    record = unsealed(read_json(path), f"{folder} holds a damaged record of estimates: {path.name}")
    try:
        check_format(folder, "record of estimates", record["format"], _FORMAT)
        estimates = tuple(Estimates.from_dict(entry) for entry in record["estimates"])
        guarantee = Guarantee.from_dict(record["guarantee"])
    except (KeyError, TypeError, ValueError) as problem:
        if isinstance(problem, DataError):
            raise
        raise damaged(folder, "record of estimates", problem) from None
    if Ledger.load(places.ledger).guarantee() != guarantee:
        raise DataError(f"{places.ledger} is not the ledger of {path}: one of them was changed")
    return estimates, guarantee


def to_markdown(estimates: Sequence[Estimates], guarantee: Guarantee, summary: Summary) -> str:
    """Return the estimates as tables, with what they mean and what they cost."""
    lines = ["# Private estimates", ""]
    if not guarantee.private:
        lines += [f"> **{NOT_PRIVATE}.** Protect these numbers as you protect the records.", ""]
    for study in estimates:
        lines += _study_lines(study)
    lines += [
        "The intervals are about the population that the records come from. They include sampling error and "
        "privacy noise.",
        "",
        "## Guarantee",
        "",
        inert(str(guarantee)),
        "",
        "| noisy statistic | ε alone | ε so far |",
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
        p = short_p_value(row["p_value"])
        estimate, lower, upper = effect_texts(row)
        lines.append(f"| {inert(row['term'])} | {estimate} | {lower} to {upper} | {inert(p)} |")
    lines += ["", inert(" ".join((f"Intervals are {study.widened}.", *study.remarks))), ""]
    if study.survival is not None:
        unit = f" ({study.survival.unit})" if study.survival.unit else ""
        lines += [
            f"| time{inert(unit)} | survival | {level_text(study.survival.level)} band |",
            "|---:|---:|---|",
        ]
        lines += [f"| {' | '.join(cells)} |" for cells in study.survival.rows()]
        lines.append("")
    return lines
