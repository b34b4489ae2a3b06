"""The public record of a synthetic table, after the fields of the Differential Privacy Deployments Registry.

The part ``record`` has the fields of that registry's schema (https://registry.opendp.org), as of commit
3e9c812a924c of 15 July 2026 of ``schemas/deployments-schema.yaml`` in ``opendp/deployments-registry-data``.
The schema allows no other field. Everything else stands in the part ``details``: total variation, each noisy
statistic with its event, and the versions of the software.

Some fields only the publisher can fill. Without a value they hold :data:`TO_COMPLETE`. ``to_complete`` names
these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.accounting.events import event_to_dict
from dpsynth.accounting.guarantee import Guarantee, round_up
from dpsynth.accounting.ledger import Ledger
from dpsynth.accounting.normal_form import ADD_REMOVE
from dpsynth.checks import about_patients
from dpsynth.errors import InputError, PrivacyError
from dpsynth.report.run_report import RunReport
from dpsynth.report.wording import REPEATED, division, has_floating_noise

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


def registry_record(
    report: RunReport, contact: str = "", *, curators: Sequence[str] = (), use: str = "", region: str = ""
) -> dict[str, Any]:
    """Return the record of a private table, from public facts alone (:meth:`RunReport.released`).

    Parameters
    ----------
    report : RunReport
        With its ledger.
    contact : str
        Whom readers may ask: a name, an address, or both. Default: the ledger's.
    curators : sequence of str
        Persons or organisations that hold the real records. Default: the owner that the ledger names.
    use : str
        Intended use of the synthetic table.
    region : str
        Country or region that the table is about.

    Returns
    -------
    dict
        Ready for JSON: ``format``, ``version``, ``follows``, ``contact``, ``to_complete``, ``record`` and
        ``details``.

    Raises
    ------
    InputError
        If nobody names a contact, the report has no ledger, or it names no day.
    PrivacyError
        If there is no guarantee.
    """
    published = {} if report.ledger is None else report.ledger.published
    contact = " ".join(contact.split()) or published.get("contact", "")
    if not contact:
        raise InputError(
            "contact is needed: whom readers of the record may ask, such as 'Data office, data@example.org'. "
            "Give --contact, or contact in the configuration of a run"
        )
    told = {
        "data_curators": [n.strip() for n in curators or (published.get("data_owner", ""),) if n.strip()],
        "intended_use": use.strip(),
        "data_product_region": region.strip(),
    }
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
        "contact": contact,
        "to_complete": [f"deployment.basic.{name}" for name, value in told.items() if not value],
        "record": _record(report, contact, told),
        "details": {
            "guarantee": str(guarantee),
            "epsilon": float(round_up(guarantee.epsilon)),
            "delta": float(round_up(guarantee.delta)),
            "total_variation": float(round_up(guarantee.tv)),
            "attack_accuracy_bound": summary["attack_accuracy_bound"],
            "privacy_unit": guarantee.unit,
            "neighbouring_datasets": guarantee.adjacency,
            "model_of_trust": "central",
            "not_covered": [*_excluded(guarantee), _unprotected(ledger)],
            "released": _products(report),
            "made_on": report.day,
            "software": dict(report.versions),
            "noise_drawn_by": list(ledger.generators),
            "stages": [dict(stage) for stage in summary["stages"]],
            "statistics": statistics,
        },
    }


def _record(report: RunReport, contact: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the registry."""
    guarantee, ledger = report.guarantee, report.ledger
    assert guarantee is not None and ledger is not None and report.day is not None
    say = about_patients if report.of_patients else str
    pure = guarantee.delta == 0
    variant: dict[str, Any] = {
        "variant_name": "Pure DP" if pure else "Approximate DP",
        "data_domain": _domain(report),
    }
    if guarantee.excluded:
        variant["unprotected_quantities"] = _list(_excluded(guarantee))
    parameters = {"epsilon": float(round_up(guarantee.epsilon))}
    if not pure:
        parameters["delta"] = float(round_up(guarantee.delta))
    slug = re.sub(r"[^a-z0-9]+", "-", f"{report.title} {report.day[:4]}".casefold()).strip("-")
    return {
        "url_slug": slug,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": report.title,
                "data_curators": told["data_curators"] or [TO_COMPLETE],
                "intended_use": told["intended_use"] or TO_COMPLETE,
                "data_product_type": "Synthetic data",
                "data_product_region": told["data_product_region"] or TO_COMPLETE,
                "description": _list(_products(report)),
                "publication_date": report.day,
            },
            "dp_variant": variant,
            "privacy_loss": {
                "privacy_unit": guarantee.unit,
                "privacy_unit_details": " ".join((_neighbours(guarantee.adjacency), *division(report))),
                "privacy_parameters": parameters,
                "privacy_parameters_details": f"{guarantee} Total variation: {round_up(guarantee.tv)}.",
            },
            "deployment_model": {
                "model_name": "Central",
                "actors": say(
                    "The holder of the real records runs the software, and is trusted with them. "
                    "Readers of what is released need not be trusted, and may work together."
                ),
                "release_type": "One release",
                "release_type_details": (
                    "The parameters hold for all statistics in the ledger. "
                    "Other releases about the same people add to them."
                ),
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": say(
                    "Synthetic records are drawn from the noisy statistics alone. "
                    "Fitting and drawing them is post-processing."
                ),
                "composition": _composition(guarantee.stages),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": say(
                    f"Bounds, steps and categories come from {_schema(report)}. "
                    "Values outside the bounds are clipped. Tuning on real records is not in the ledger."
                ),
                "mechanisms": _mechanisms(report),
            },
            "administrative": {"notes": f"Contact: {contact}", "registry_authors": [contact]},
        },
    }


def _excluded(guarantee: Guarantee) -> list[str]:
    """The exceptions of the guarantee, and what repeats those about the schema."""
    return [*guarantee.excluded, *([REPEATED] if guarantee.of_schema else [])]


def _products(report: RunReport) -> list[str]:
    """The published parts."""
    table = report.table
    products = ["The fitted model.", "The privacy ledger: each noisy statistic and its cost."]
    if count := table.get("synthetic_records"):
        columns = f", {table['columns']} columns" if table.get("columns") else ""
        what = "patients" if report.of_patients else "records"
        rows = f" with {table['synthetic_rows']:,} rows" if table.get("synthetic_rows") else ""
        digest = "" if report.ledger is None else report.ledger.published.get("synthetic_sha256", "")
        named = f" (SHA-256 of synthetic.csv: {digest})" if digest else ""
        products.insert(0, f"A synthetic table: {count:,} {what}{rows}{columns}{named}.")
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
        what = "patients" if report.of_patients else "records"
        said.append(f"The {which} of training {what}, {n_public:,}, is treated as public.")
    return " ".join(said)


def _schema(report: RunReport) -> str:
    """The schema in words. It may hold what was read off records if the guarantee has exceptions about it."""
    whole = report.guarantee is not None and not report.guarantee.of_schema
    return "a public schema" if whole else "a schema (see the unprotected quantities)"


def _neighbours(adjacency: str) -> str:
    if adjacency == ADD_REMOVE:
        return "Two tables are neighbours if one has one more of these units, and is the same otherwise."
    return "Two tables are neighbours if they have as many of these units, and differ in one of them."


def _composition(stages: int) -> str:
    within = "The statistics of a stage compose on their privacy-loss distributions (dp-accounting)."
    return f"{within} The {stages} stages add up, by basic composition." if stages > 1 else within


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
