"""The record of a release: the registry's fields, public facts alone, and private releases alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import report_sources as sources

from dpsynth.errors import InputError, PrivacyError
from dpsynth.privacy import Ledger
from dpsynth.privacy.events import event_from_dict, event_to_dict
from dpsynth.privacy.guarantee import STRATIFIED
from dpsynth.report.catalogues import TO_COMPLETE, registry_record
from dpsynth.report.run_report import RunReport

# Of schemas/deployments-schema.yaml of opendp/deployments-registry-data, commit 3e9c812a924c: the fields of
# each section, and the words of those that take no others. All but three fields are text.
FIELDS = {
    "basic": "name data_curators intended_use data_product_type data_product_region description "
    "publication_date data_product_sector",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters privacy_parameters_details",
    "deployment_model": "model_name model_name_details actors release_type release_type_details "
    "data_source_type data_source_type_details access_type access_type_details",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources notes registry_authors",
}
REQUIRED = {"basic": FIELDS["basic"].split()[:7], "administrative": ["registry_authors"]}
WORDS = {
    "data_product_type": {
        "Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API",
        "SQL queries",
    },
    "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
    "model_name": {"Local", "Central", "Shuffle", "Federated", "Varies"},
    "release_type": {"One release", "Many releases"},
    "data_source_type": {"Static", "Dynamic"},
    "access_type": {"Interactive", "Non-interactive"},
}  # fmt: skip


def private_report(**changes: object) -> tuple[RunReport, list[float]]:
    report, planted = sources.full_report(4)
    return replace(report, **changes), planted


def test_the_record_has_the_registrys_fields():
    """Catches a field that the registry does not know, a required one that is absent, and a wrong word."""
    record = registry_record(private_report()[0])["record"]
    assert set(record) == {"url_slug", "status", "tier", "deployment"}
    assert record["status"] == "Draft" and record["tier"] == 3
    assert set(record["deployment"]) <= set(FIELDS)
    for section, values in record["deployment"].items():
        assert set(values) <= set(FIELDS[section].split()), section
        assert set(values) >= set(REQUIRED.get(section, ())), section
        for name, value in values.items():
            assert name not in WORDS or value in WORDS[name], name
            if name in ("data_curators", "registry_authors"):
                assert value and all(isinstance(entry, str) for entry in value)
            elif name == "privacy_parameters":
                assert set(value) == {"epsilon", "delta"} and all(
                    isinstance(v, float) for v in value.values()
                )
            else:
                assert isinstance(value, str) and value, name
    assert record["deployment"]["basic"]["publication_date"] == "2026-03-04"


def test_the_record_tells_the_ledger():
    """Catches a cost or a statistic that is not the ledger's, and a field to complete that is not named."""
    report, _ = private_report()
    record = registry_record(report)
    details, guarantee = record["details"], report.guarantee
    # four figures, never below the cost
    for name, cost in (
        ("epsilon", guarantee.epsilon),
        ("delta", guarantee.delta),
        ("total_variation", guarantee.tv),
    ):
        assert cost * (1 - 1e-13) <= details[name] <= cost * 1.001, name
    assert record["record"]["deployment"]["privacy_loss"]["privacy_parameters"] == {
        "epsilon": details["epsilon"],
        "delta": details["delta"],
    }
    again = Ledger()
    for told, entry in zip(details["statistics"], report.ledger.entries, strict=True):
        assert told["event"] == event_to_dict(entry.event) and told["name"] == entry.name
        again.post(told["name"], event_from_dict(told["event"]), sensitivity=told["sensitivity"])
    assert again.epsilon(details["delta"]) == pytest.approx(details["epsilon"], rel=1e-3)
    assert details["software"] == {"python": "3.11", "dpsynth": "0.1.0"}
    basic = record["record"]["deployment"]["basic"]
    still_open = [f"deployment.basic.{name}" for name, value in basic.items() if TO_COMPLETE in value]
    assert record["to_complete"] == [*still_open, "deployment.administrative.registry_authors"]
    assert record["contact"] == TO_COMPLETE and json.loads(json.dumps(record, allow_nan=False)) == record


def test_nothing_internal_is_in_the_record():
    """Catches a number of real records, a seed, a path or free text in a public record."""
    report, planted = private_report()
    text = json.dumps(registry_record(report), ensure_ascii=False)
    for secret in ("SECRETWARD", "secretfolder", "7131", "7,131", "73310171", "73530", "73640", "73750"):
        assert secret not in text, secret
    for number in planted:
        assert f"{number:.4f}" not in text
    named = {**report.table, "name": "secretfile"}
    assert "secretfile" not in json.dumps(registry_record(replace(report, table=named)))


def test_what_the_guarantee_leaves_out_is_told():
    """Catches a record that calls a guarantee with a hole whole."""
    ledger = sources.ledger_of()
    ledger.exclude("bounds of age, read off the records")
    record = registry_record(private_report(ledger=ledger)[0])
    variant = record["record"]["deployment"]["dp_variant"]
    unprotected = variant["unprotected_quantities"]
    assert unprotected.startswith("- bounds of age, read off the records\n- ")
    assert "(model/) repeat" in unprotected
    assert record["details"]["not_covered"][0] == "bounds of age, read off the records"
    assert "(model/) repeat" in record["details"]["not_covered"][1]
    assert "public schema" not in json.dumps(record)
    # of bounds that were read off the records: a guess can be checked
    assert "abab" not in json.dumps(record)


def test_a_stratified_split_stands_with_the_neighbours():
    """Catches a split that makes the schema look private, or that hides the outcomes it read."""
    ledger = sources.ledger_of()
    ledger.exclude(STRATIFIED)
    config = {"split": {"method": "stratified", "test_fraction": 0.5}}
    record = registry_record(private_report(ledger=ledger, config=config)[0])
    deployment = record["record"]["deployment"]
    said = deployment["privacy_loss"]["privacy_unit_details"]
    assert "read the outcome of every record without privacy budget" in said
    assert "does not hold for two whole tables" in said
    assert "a public schema" in deployment["dp_variant"]["data_domain"]
    assert deployment["dp_variant"]["unprotected_quantities"] == f"- {STRATIFIED}"
    assert "model/" not in json.dumps(record)


@pytest.mark.parametrize(("method", "which"), [("independent", "expected number"), ("stratified", "number")])
def test_the_public_number_is_that_of_the_training_part(method, which):
    """Catches the number of training records told as that of all real records."""
    report, _ = private_report(config={"split": {"method": method, "test_fraction": 0.5}})
    report = replace(report, table={**report.table, "n_public": 285})
    domain = registry_record(report)["record"]["deployment"]["dp_variant"]["data_domain"]
    assert f"The {which} of training records, 285, is treated as public." in domain
    assert "real records" not in domain


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"ledger": None, "delta": None}, InputError, "ledger"),
        ({"created": None}, InputError, "day"),
        ({"ledger": sources.bare_ledger()}, PrivacyError, "NOT PRIVATE"),
    ],
)
def test_no_record_without_a_guarantee(changes, error, words):
    """Catches a record of a table that is not private, or of which nothing is known."""
    with pytest.raises(error, match=words):
        registry_record(private_report(**changes)[0])
