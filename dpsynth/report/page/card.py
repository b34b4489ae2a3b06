"""The model card: what the table is, how it was made, what is and is not guaranteed."""

from __future__ import annotations

from collections.abc import Mapping

from dpsynth.evaluation.records import shown
from dpsynth.evaluation.tables import sampled
from dpsynth.files.yaml_text import dump_yaml
from dpsynth.report.page.blocks import Block, Bullets, Code, Facts, Heading, Section, Sentence
from dpsynth.report.run_report import RunReport

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


def section(report: RunReport) -> Section:
    """Return the model card."""
    blocks: list[Block] = [Facts(tuple(_facts(report)))]
    if report.guarantee is not None and report.guarantee.private:
        blocks += [
            Heading("What is not guaranteed"),
            Bullets(tuple(Sentence(text) for text in NOT_GUARANTEED)),
        ]
    if report.config:
        blocks.append(Code("Configuration", dump_yaml(dict(report.config)).rstrip("\n")))
    return Section("card", "Model card", tuple(blocks))


def _facts(report: RunReport) -> list[tuple[str, Sentence]]:
    table, measured = report.table, report.measured
    facts: list[tuple[str, Sentence]] = []

    def add(name: str, value: object, internal: bool = False) -> None:
        if value is not None and value != "":
            facts.append((name, Sentence(shown(value) if isinstance(value, int) else str(value), internal)))

    add("Data set", table.get("name"))
    add("Made on", report.day)
    add("Columns", table.get("columns"))
    add("Outcome", table.get("outcome"))
    add("Schema (SHA-256)", table.get("schema_sha256"))
    add("Public number of records", table.get("n_public"))
    synthetic = table.get("synthetic_records")
    for name, label in (
        ("synthetic_records", "Synthetic records evaluated" if synthetic else "Synthetic records"),
        ("train_records", "Real training records"),
        ("test_records", "Real held-out records"),
    ):
        if name in measured and not (name == "synthetic_records" and measured[name].value == synthetic):
            add(label, measured[name].value, measured[name].internal)
    add("Random parts", " ".join(sampled(measured)), True)
    add("Synthetic records", synthetic)
    add("Guarantee", report.guarantee or "None is known.")
    add("Beyond the base model", _refinement(report))
    add("Seeds", _seeds(report))
    add("Versions", ", ".join(f"{name} {version}" for name, version in report.versions.items()))
    add("Wall time", ", ".join(f"{stage} {value:.1f} s" for stage, value in report.seconds.items()), True)
    return facts


def _refinement(report: RunReport) -> str | None:
    """What the base model was improved by, and why by nothing else."""
    names = set() if report.ledger is None else {entry.name for entry in report.ledger.entries}
    if "base model tables" not in names:
        return None
    model = report.config.get("model")
    asked = model if isinstance(model, Mapping) else {}
    by_rule = {
        key
        for key in ("pairwise_statistics", "neighbour_histogram", "training_steps")
        if asked.get(key) == "auto"
    }
    pairs, histogram, steps = (
        name in names for name in ("pairwise statistics", "nearest-neighbour histogram", "critic steps")
    )
    words = []
    if pairs:
        words.append("Pairwise statistics: noisy mean products of two columns, for all pairs at once.")
    if histogram:
        words.append(
            "Nearest-neighbour histogram and random Fourier features: noisy statistics of all columns "
            "together."
        )
    if steps:
        words.append("Critic steps.")
    if not words:
        why = " By rule: at this budget their noise, or their time, outweighs what they tell."
        none = "Neither pairwise statistics nor a nearest-neighbour histogram nor critic steps."
        return none + (why if "pairwise_statistics" in by_rule else "")
    if pairs and not histogram and "neighbour_histogram" in by_rule:
        words.append("No nearest-neighbour histogram: by rule there are too few records for it.")
    if pairs and not steps and "training_steps" in by_rule:
        words.append("No critic steps: by rule none are made beside pairwise statistics.")
    return " ".join(words)


def _seeds(report: RunReport) -> str | None:
    if report.ledger is None:
        return None
    if report.ledger.not_private:
        return "No noise was drawn for what was released without a guarantee."
    if report.ledger.seeded:
        return (
            "The noise was drawn from a caller's seed, which is not kept: whoever knows it can take it away."
        )
    if not report.ledger.generators:
        return "The ledger does not say what drew the noise."
    drawn = "; ".join(report.ledger.generators)
    if any("not cryptographic" in name for name in report.ledger.generators):
        return f"The noise was drawn by {drawn}."
    return f"The noise was drawn by {drawn}; the key was never written down, and no other seed of it exists."
