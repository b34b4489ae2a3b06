"""A synthetic table in public catalogues: Croissant, and the registry of deployments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpsynth.errors import InputError, PrivacyError
from dpsynth.files.storage import sha256
from dpsynth.privacy.events import event_to_dict
from dpsynth.privacy.guarantee import Guarantee, round_up
from dpsynth.privacy.ledger import Ledger
from dpsynth.report.privacy import division
from dpsynth.report.run_report import RunReport
from dpsynth.report.words import has_floating_noise, wording
from dpsynth.table.cells import escape
from dpsynth.table.column import Column
from dpsynth.table.schema import Schema

# ------------------------------------------------------------------------------------------------
# Croissant metadata of a synthetic table: JSON-LD that catalogues and machine-learning tools read.
#
# It has only parts that may be shared: the public schema without undecided columns, the digest of the file,
# and the guarantee. The publisher of the table adds ``url``, ``creator`` and ``datePublished``.
#
# Source: Croissant format specification 1.0, https://docs.mlcommons.org/croissant/docs/croissant-spec.html


def metadata_of(
    report: RunReport,
    schema: Schema,
    file: str | Path,
    license: str | None = None,
    *,
    escape_formulas: bool = True,
) -> dict[str, Any]:
    """Describe a synthetic table's file as Croissant metadata, which JSON can hold.

    Parameters
    ----------
    report : RunReport
        Report of the table. Only its ``released()`` part is used.
    schema : Schema
        Schema of the table. Undecided columns are given by name and type alone.
    file : path
        CSV or Parquet file of the table, beside which the metadata will stand.
    license : str, optional
        License under which the table is shared, best as an address. By default none is named.
    escape_formulas : bool
        As the CSV file was written, see :func:`dpsynth.table.files.write_table`.
    """
    file, shared = Path(file), report.released()
    in_csv = file.suffix != ".parquet"
    # as the library of the format, mlcroissant, writes it
    context = resources.files("dpsynth.report").joinpath("croissant_context.json")
    records, rows = shared.table.get("synthetic_records"), shared.table.get("synthetic_rows")
    start = f"{records:,} synthetic" if isinstance(records, int) else "Synthetic"
    counted = f"{start} {report.counted}"
    counted += f" with {rows:,} rows" if isinstance(rows, int) else ""
    guarantee = "No guarantee is known." if report.guarantee is None else str(report.guarantee)
    said = wording(
        "croissant",
        report.counted,
        name=str(shared.table.get("name") or "synthetic-table"),
        counted=counted,
        guarantee=guarantee,
        license=license or "",
        day=shared.day or "",
        file=file.name,
        size=file.stat().st_size,
        encoding="text/csv" if in_csv else "application/x-parquet",
        sha256=sha256(file),
    )
    record = {"@context": json.loads(context.read_text(encoding="utf-8"))}
    record |= {name: value for name, value in said.items() if value}
    headers = [escape(name) if in_csv and escape_formulas else name for name in schema.names]
    fields = [_field(each, file.name, name) for each, name in zip(schema.columns, headers, strict=True)]
    record["recordSet"][0]["field"] = fields
    return record


def _field(column: Column, file: str, header: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"records/{quote(column.name, safe='')}",
        "name": column.name,
        "description": _described(column),
        "dataType": f"sc:{column.data_type}",
        "source": {"fileObject": {"@id": file}, "extract": {"column": header}},
    }


def _described(column: Column) -> str:
    if column.undecided:
        return "Allowed values are not given: nobody has confirmed that they are public."
    values = (
        f"From {column.allowed}" if column.is_numeric else f"One of: {', '.join(map(str, column.categories))}"
    )
    unit = f" ({column.unit})" if column.unit else ""
    missing = " Values may be missing." if column.missing else ""
    return f"{column.description + '. ' if column.description else ''}{values}{unit}.{missing}"


# ------------------------------------------------------------------------------------------------
# The public record of a synthetic table, after the fields of the Differential Privacy Deployments Registry.
#
# The part ``record`` has the fields of that registry's schema (https://registry.opendp.org), as of commit
# 3e9c812a924c of 15 July 2026 of ``schemas/deployments-schema.yaml`` in
# ``opendp/deployments-registry-data``. The schema allows no other field. Everything else stands in the part
# ``details``: total variation, each noisy statistic with its event, and the versions of the software.
#
# Some fields only the publisher can fill. Without a value they hold :data:`TO_COMPLETE`. ``to_complete``
# names these.

FORMAT, VERSION = "dpsynth registry record", 1
#: which schema the part ``record`` follows
FOLLOWS = {
    "repository": "https://github.com/opendp/deployments-registry-data",
    "file": "schemas/deployments-schema.yaml",
    "commit": "3e9c812a924cf01d228f26f6c462c59c391c3f2a",
    "date": "2026-07-15",
}
#: stands where only the publisher knows what to write
TO_COMPLETE = "To be completed by the publisher."


def registry_record(report: RunReport) -> dict[str, Any]:
    """Return the record of a private table, from public facts alone (:meth:`RunReport.released`).

    Parameters
    ----------
    report : RunReport
        With its ledger, which names the contact and the holder of the real records if the run's
        configuration does.

    Returns
    -------
    dict
        Ready for JSON: ``format``, ``version``, ``follows``, ``contact``, ``to_complete``, ``record`` and
        ``details``.

    Raises
    ------
    InputError
        If the report has no ledger, or names no day.
    PrivacyError
        If there is no guarantee.
    """
    published = {} if report.ledger is None else report.ledger.published
    contact, owner = published.get("contact"), published.get("data_owner")
    absent = [] if owner else ["basic.data_curators"]
    absent += ["basic.intended_use", "basic.data_product_region"]
    absent += [] if contact else ["administrative.registry_authors"]
    report = report.released()
    ledger, guarantee, summary = report.ledger, report.guarantee, report.summary
    if ledger is None or guarantee is None or summary is None:
        raise InputError("a record needs the ledger of the table, and there is none")
    if not guarantee.private:
        raise PrivacyError(f"only a private table has a record. {guarantee}")
    if report.day is None:
        raise InputError("a record needs the day of the run, and the report names none")
    statistics = [
        {
            "name": cost["name"],
            "stage": cost["stage"],
            "event": event_to_dict(entry.event),
            "event_in_words": cost["event"],
            "sensitivity": cost["sensitivity"],
            "detail": cost["detail"],
            "epsilon_alone": cost["epsilon_alone"],
        }
        for entry, cost in zip(ledger.entries, summary["entries"], strict=True)
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "follows": dict(FOLLOWS),
        "contact": contact or TO_COMPLETE,
        "to_complete": [f"deployment.{name}" for name in absent],
        "record": _record(report, contact or TO_COMPLETE, owner or TO_COMPLETE),
        "details": {
            "guarantee": str(guarantee),
            "epsilon": float(round_up(guarantee.epsilon)),
            "delta": float(round_up(guarantee.delta)),
            "total_variation": float(round_up(guarantee.tv)),
            "attack_accuracy_bound": summary["attack_accuracy_bound"],
            "privacy_unit": guarantee.unit,
            "neighbouring_datasets": guarantee.adjacency,
            "model_of_trust": "central",
            "not_covered": [*_excluded(report, guarantee), _unprotected(ledger)],
            "released": _products(report),
            "made_on": report.day,
            "software": dict(report.versions),
            "noise_drawn_by": list(ledger.generators),
            "stages": [dict(stage) for stage in summary["stages"]],
            "statistics": statistics,
        },
    }


def _record(report: RunReport, contact: str, owner: str) -> dict[str, Any]:
    """The fields of the registry, as ``registry`` in ``words.yaml`` has them."""
    guarantee, ledger = report.guarantee, report.ledger
    assert guarantee is not None and ledger is not None and report.day is not None
    slug = re.sub(r"[^a-z0-9]+", "-", f"{report.title} {report.day[:4]}".casefold()).strip("-")
    compared = report.words("registry neighbours")[guarantee.adjacency]
    composed = report.say("registry stages", stages=guarantee.stages) if guarantee.stages > 1 else ""
    record: dict[str, Any] = wording(
        "registry",
        report.counted,
        slug=slug,
        title=report.title,
        day=report.day,
        contact=contact,
        owner=owner,
        todo=TO_COMPLETE,
        variant="Pure DP" if guarantee.delta == 0 else "Approximate DP",
        domain=_domain(report),
        excluded=_list(_excluded(report, guarantee)),
        products=_list(_products(report)),
        unit=guarantee.unit,
        unit_details=" ".join((compared, *division(report))),
        guarantee=str(guarantee),
        tv=round_up(guarantee.tv),
        composed=composed,
        schema=_schema(report),
        mechanisms=_mechanisms(report),
    )
    deployment = record["deployment"]
    if not guarantee.excluded:
        del deployment["dp_variant"]["unprotected_quantities"]
    numbers = {"epsilon": guarantee.epsilon} | ({"delta": guarantee.delta} if guarantee.delta else {})
    parameters = {name: float(round_up(value)) for name, value in numbers.items()}
    deployment["privacy_loss"]["privacy_parameters"] = parameters
    return record


def _excluded(report: RunReport, guarantee: Guarantee) -> list[str]:
    """The exceptions of the guarantee, and what repeats those about the schema."""
    return [*guarantee.excluded, *([report.say("repeated")] if guarantee.of_schema else [])]


def _products(report: RunReport) -> list[str]:
    """The published parts."""
    table = report.table
    products = ["The fitted model.", "The privacy ledger: each noisy statistic and its cost."]
    if count := table.get("synthetic_records"):
        columns = f", {table['columns']} columns" if table.get("columns") else ""
        rows = f" with {table['synthetic_rows']:,} rows" if table.get("synthetic_rows") else ""
        digest = "" if report.ledger is None else report.ledger.published.get("synthetic_sha256", "")
        named = f" (SHA-256 of synthetic.csv: {digest})" if digest else ""
        products.insert(0, f"A synthetic table: {count:,} {report.counted}{rows}{columns}{named}.")
    if report.studies:
        names = ", ".join(study.study for study in report.studies)
        products.append(f"Private estimates of pre-specified regressions: {names}.")
    return products


def _domain(report: RunReport) -> str:
    table = report.table
    columns = f"Tables of {table['columns']} columns" if table.get("columns") else "Tables"
    said = [f"{columns}, with the bounds and categories of {_schema(report)}."]
    if digest := table.get("schema_sha256"):
        said.append(f"The SHA-256 of the schema is {digest}.")
    if n_public := table.get("n_public"):
        # of the training part: of an independent split, the number to expect
        split = report.config.get("split")
        independent = isinstance(split, Mapping) and split.get("method") == "independent"
        which = "expected number" if independent else "number"
        said.append(f"The {which} of training {report.counted}, {n_public:,}, is treated as public.")
    return " ".join(said)


def _schema(report: RunReport) -> str:
    """The schema in words. It may hold what was read off records if the guarantee has exceptions about it."""
    whole = report.guarantee is not None and not report.guarantee.of_schema
    return "a public schema" if whole else "a schema (see the unprotected quantities)"


def _mechanisms(report: RunReport) -> str:
    assert report.summary is not None and report.ledger is not None
    lines = [
        f"{entry['name']}: {entry['event']}. Sensitivity: {entry['sensitivity']}."
        for entry in report.summary["entries"]
    ]
    if report.ledger.generators:
        lines.append(f"Noise drawn by: {', '.join(report.ledger.generators)}.")
    software = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    lines += [f"Software: {software}."] if software else []
    return _list([*lines, _unprotected(report.ledger)])


def _unprotected(ledger: Ledger) -> str:
    """Attacks that no guarantee of this ledger covers. Only what ran is named."""
    rounding = (
        "attacks on the floating-point noise of WGAN critic steps, and " if has_floating_noise(ledger) else ""
    )
    return f"Not protected against: {rounding}side channels of time and memory while the table is made."


def _list(lines: list[str] | tuple[str, ...]) -> str:
    """Sentences as a list in Markdown, which the registry renders."""
    return "\n".join(f"- {line}" for line in lines)
