"""The model card, with facts about the table and how it was made, and the glossary."""

from __future__ import annotations

from dpsynth.checks import together
from dpsynth.evaluation.tables import sampled
from dpsynth.files.yaml_text import dump_yaml
from dpsynth.report.formats import seconds_text, shown
from dpsynth.report.page.blocks import Block, Code, Facts, Section, Sentence, paragraph, texts
from dpsynth.report.run_report import RunReport


def section(report: RunReport) -> Section:
    """Return the model card."""
    blocks: list[Block] = [Facts(tuple(_facts(report)))]
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
    published = {} if report.ledger is None else report.ledger.published
    add("Data owner", published.get("data_owner"))
    add("Contact", published.get("contact"))
    add("Made on", report.day)
    add("Columns", table.get("columns"))
    add("Outcome", table.get("outcome"))
    add("Schema (SHA-256)", table.get("schema_sha256"))
    add("Public number of training records", table.get("n_public"))
    synthetic = table.get("synthetic_records")
    for name, label in (
        ("synthetic_records", "Synthetic records evaluated" if synthetic else "Synthetic records"),
        ("train_records", "Real training records"),
        ("test_records", "Real held-out records"),
    ):
        if name in measured and not (name == "synthetic_records" and measured[name].value == synthetic):
            exact = name == "synthetic_records" and report.exact_size
            add(label, measured[name].value, measured[name].internal or exact)
    for part in ("training", "held-out"):
        name = f"{'train' if part == 'training' else 'test'}_rows"
        if name in measured:
            add(f"Rows of {part} patients that are used", measured[name].value, True)
    add("Random parts", " ".join(sampled(measured)), True)
    add("Synthetic records", synthetic, report.exact_size)
    add("Their rows", table.get("synthetic_rows"), report.exact_size)
    add("SHA-256 of synthetic.csv", published.get("synthetic_sha256"))
    add("Guarantee", report.guarantee or "None is known.")
    add("Beyond the base model", _refinement(report))
    add("WGAN critic", _critic(report))
    add("Seeds", _seeds(report))
    add("Versions", ", ".join(f"{name} {version}" for name, version in report.versions.items()))
    add("Wall time", seconds_text(report.seconds), True)
    return facts


def _refinement(report: RunReport) -> str | None:
    """The refinements of the base model, and why there are no others."""
    entries = () if report.ledger is None else report.ledger.entries
    names = {entry.name.removeprefix("WGAN ") for entry in entries}  # as ledgers of older versions have it
    if "base model tables" not in names:
        return None
    pairs, histogram = (name in names for name in ("pairwise statistics", "nearest-neighbour histogram"))
    words = []
    if pairs:
        words.append("Pairwise statistics: noisy mean products of two columns, for all pairs at once.")
    if histogram:
        words.append(
            "Nearest-neighbour histogram and random Fourier features: noisy statistics of all columns "
            "together."
        )
    if not words:
        why = " By rule: at this budget their noise or their time outweighs their use."
        return "Neither pairwise statistics nor a nearest-neighbour histogram." + why
    if pairs and not histogram:
        words.append("No nearest-neighbour histogram: by rule there are too few records for it.")
    return " ".join(words)


def _critic(report: RunReport) -> str | None:
    """One sentence on the work of the WGAN critic for this table."""
    if report.ledger is None:
        return None
    entries = {entry.name.removeprefix("WGAN "): entry for entry in report.ledger.entries}
    steps, base_model = entries.get("critic steps"), "base model tables" in entries
    if steps is None:
        if not base_model:
            return None
        return "No steps: beside a base model they made no tested table better on the whole."
    if "random critic" in steps.sensitivity:
        return "Points were moved until their gradients at random WGAN critics matched those of the records."
    return "A generator was trained against a WGAN critic with noise, and made the table alone."


def _seeds(report: RunReport) -> str | None:
    if report.ledger is None:
        return None
    if report.ledger.not_private:
        return "Statistics without a guarantee have no noise."
    if report.ledger.seeded:
        return "The noise follows a seed, which is not kept. Anyone who knows the seed can remove the noise."
    if not report.ledger.generators:
        return "The ledger does not say which generator made the noise."
    drawn = together(report.ledger.generators)
    if any("not cryptographic" in name for name in report.ledger.generators):
        return f"The noise was drawn by {drawn}."
    return f"The noise was drawn by {drawn}. The key was never written down, and no other seed of it exists."


def glossary_section(*, internal: bool, studies: bool, levels: bool = False) -> Section:
    """Return sentences on each word. Words about numbers that the page does not show are left out.

    ``studies`` says whether the page shows estimates of pre-specified regressions, ``levels`` whether those
    of patients with several rows.
    """
    told, of_measures = texts("glossary.yaml"), internal or studies
    chosen = told["guarantees"] | (told["studies"] if studies else {}) | (told["levels"] if levels else {})
    chosen |= (told["effects"] if of_measures else {}) | (told["measures"] if internal else {})
    words = tuple((word, Sentence(text)) for word, text in chosen.items())
    start = paragraph(
        "Bounds of the guarantee are rounded up. Measured numbers depend on the records. They have intervals "
        "if these are known. Findings follow written rules."
    )
    return Section("glossary", "Words", (start, Facts(words)))
