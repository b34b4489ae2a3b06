"""The model card: what the table is, how it was made, what is and is not guaranteed."""

from __future__ import annotations

from dpsynth.evaluation.records import shown
from dpsynth.files.yaml_text import dump_yaml
from dpsynth.report.load import ReportSource
from dpsynth.report.page.blocks import Block, Bullets, Code, Facts, Heading, Section, Sentence

#: what holds for every private table of this package
NOT_GUARANTEED = (
    "That a conclusion about patients in general is kept from anybody: if smoking harms, the table may show "
    "it.",
    "Groups: several records of one person are covered at a much weaker level. One row must be one patient.",
    "Numbers that were measured on real records without payment, and any tuning that was done by looking at "
    "them: they are outside the ledger.",
    "Attacks on floating-point arithmetic, and side channels of time and memory while the table was made.",
    "That a single synthetic record is plausible, or that a rare subgroup is there at all.",
)


def card(source: ReportSource) -> Section:
    """Return the model card of a source."""
    blocks: list[Block] = [Facts(tuple(_facts(source)))]
    if source.guarantee is not None and source.guarantee.private:
        blocks += [
            Heading("What is not guaranteed"),
            Bullets(tuple(Sentence(text) for text in NOT_GUARANTEED)),
        ]
    if source.config:
        blocks.append(Code("Configuration", dump_yaml(dict(source.config)).rstrip("\n")))
    return Section("card", "Model card", tuple(blocks))


def _facts(source: ReportSource) -> list[tuple[str, Sentence]]:
    table, evaluation = source.table, source.evaluation
    made: list[tuple[str, Sentence]] = []

    def add(name: str, value: object, internal: bool = False) -> None:
        if value is not None and value != "":
            made.append((name, Sentence(shown(value) if isinstance(value, int) else str(value), internal)))

    add("Data set", table.get("name"))
    add("Made on", source.day)
    add("Columns", table.get("columns"))
    add("Outcome", table.get("outcome"))
    add("Schema (SHA-256)", table.get("schema_sha256"))
    add("Public number of records", table.get("n_public"))
    synthetic = table.get("synthetic_records")
    if evaluation is not None:
        for name, label in (
            ("synthetic_records", "Synthetic records evaluated" if synthetic else "Synthetic records"),
            ("train_records", "Real training records"),
            ("test_records", "Real held-out records"),
        ):
            if name in evaluation and not (
                name == "synthetic_records" and evaluation[name].value == synthetic
            ):
                measure = evaluation[name]
                add(label, measure.value, measure.internal)
    add("Synthetic records", synthetic)
    add("Guarantee", str(source.guarantee) if source.guarantee is not None else "None is known.")
    add("Seeds", _seeds(source))
    add("Versions", ", ".join(f"{name} {version}" for name, version in source.versions.items()))
    add("Wall time", ", ".join(f"{stage} {value:.1f} s" for stage, value in source.seconds.items()), True)
    return made


def _seeds(source: ReportSource) -> str | None:
    if source.ledger is None:
        return None
    if source.ledger.not_private:
        return "No noise was drawn for what was released without a guarantee."
    if source.ledger.seeded:
        return (
            "The noise was drawn from a caller's seed, which is not kept: whoever knows it can take it away."
        )
    if not source.ledger.generators:
        return "The ledger does not say what drew the noise."
    drawn = "; ".join(source.ledger.generators)
    if any("not cryptographic" in name for name in source.ledger.generators):
        return f"The noise was drawn by {drawn}."
    return f"The noise was drawn by {drawn}; the key was never written down, and no other seed of it exists."
