"""What makes text hard to read: long sentences, weak first words, words that have a plainer one."""

from __future__ import annotations

import ast
import re

LONGEST = 25  # words in a sentence
MEAN = 15

# first words that hide the subject
WEAK = ("Of", "Where", "What", "That", "Whoever")

# A prior distribution of Bayesian statistics keeps its name.
_PRIOR = (
    r"(?<!flat )(?<!normal )(?<!Bayesian )priors?\b"
    r"(?! (probabilit|knowledge|odds|belief|precision|distribution))"
)
# Pattern to what to write instead. Words of the glossary with another ordinary sense (made, memory, table,
# unit, ledger) are left to the reader.
GLOSSARY = {
    _PRIOR: "base model, or prior probability",
    r"moments?\b(?! accountant)": "pairwise statistics",
    r"(?<!WGAN )(?<!WGAN-GP )critics?": "WGAN critic",
    r"tilt(s|ed|ing)?": "reweighting",
    r"draws": "samples, or generates",
    r"laws?": "distribution",
    r"one-way marginals?": "single-column counts",
    r"releas(e|es|ed|ing)\b(?! checklist)": "noisy statistic, or publish and share",
    r"(buy|buys|bought|buying|pays?|paid|paying) for|paid-for|buys?|bought": "use privacy budget",
    r"adjacency": "neighbouring datasets",
    r"internal": "confidential",
    r"declared (study|studies|regressions?)": "pre-specified regression",
    r"intervals? (hold|holds|held)": "the interval covers",
    r"honest(ly)?": "valid",
    r"rehears(e|es|ed|al|als|ing)": "simulation check",
    r"discriminators?": "real-versus-synthetic classifier",
    r"remember(s|ed)?": "memorisation",
    r"worth": "quality, similarity or usefulness",
    r"empty-handed": "baseline attack",
    r"proving ground": "simulated data",
    r"told|tells?|telling": "reported, or says",
    r"mend(s|ed|ing)?": "corrected, or changed",
    r"the thesis": "Pedersen (2022)",
}
_GLOSSARY = {
    re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE): plain
    for pattern, plain in GLOSSARY.items()
}


def sentences(text: str) -> list[str]:
    """Sentences of Markdown prose: no code, tables, headings, formulas or HTML; a list item ends its own."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"(?ms)^ *(```|~~~).*?^ *\1 *$", "\n\n", text)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$", "\n\n", text, flags=re.DOTALL)
    paragraphs: list[str] = [""]
    for line in text.splitlines():
        line = line.strip()
        bullet = re.match(r"([-*+]|\d+[.)]) +", line)
        if not line or line.startswith(("|", "#", "!!!", "???", ":::", "[!", "![", "<")):
            paragraphs.append("")
        elif bullet:
            paragraphs.append(line[bullet.end() :])
        else:
            paragraphs[-1] += " " + line.removeprefix("> ")
    found = []
    for paragraph in paragraphs:
        plain = re.sub(r"``.*?``|`[^`]*`|\$[^$]*\$", "CODE", paragraph)
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain).replace("*", "").replace("_", " ")
        plain = re.sub(r"https?://\S+", "LINK", plain)
        plain = re.sub(r'(\(\d{4}\), |\d{4}, )"[^"]+"', r"\1TITLE", plain)
        plain = re.sub(r"\b(e\.g|i\.e|et al|cf|vs|approx|Fig|Eq|Sec|No|p|pp)\.", r"\1", plain)
        found += [part.strip() for part in re.split(r"(?<=[.!?:])[\"')\]]* +(?=[A-Z0-9(\"'“`ε])", plain)]
    return [sentence for sentence in found if words(sentence)]


def words(sentence: str) -> int:
    """Words of a sentence; code and a number count as one."""
    return len(re.findall(r"[^\W_][\w.,'’/%·-]*", sentence))


def hard_words(text: str) -> list[str]:
    """Each word of the glossary's left column in the text's prose, with what to write."""
    return [
        f"{match.group(0)!r} -> {plain}: {sentence}"
        for sentence in sentences(text)
        for pattern, plain in _GLOSSARY.items()
        for match in pattern.finditer(sentence)
    ]


def complaints(text: str, *, glossary: bool = True) -> list[str]:
    """All that breaks rules 1, 2 and 3 and, where asked, the glossary."""
    found = sentences(text)
    counts = [words(sentence) for sentence in found]
    out = [f"{n} words: {s}" for n, s in zip(counts, found, strict=True) if n > LONGEST]
    out += [f"semicolon: {s}" for s in found if re.search(r"(?<!\d\d\)|\d\d\d);", s)]  # not between citations
    out += [
        f"starts with {s.split()[0]}: {s}"
        for s in found
        if s.split()[0].strip("(\"'") in WEAK and not s.endswith("?")
    ]
    if counts and sum(counts) / len(counts) > MEAN:
        out.append(f"{sum(counts) / len(counts):.1f} words a sentence on average, at most {MEAN}")
    return out + (hard_words(text) if glossary else [])


def printed(text: str) -> list[str]:
    """The same of what a command prints, where each line stands for itself and no mean is taken."""
    return [one for line in text.splitlines() for one in complaints(line) if "on average" not in one]


def messages(source: str) -> list[str]:
    """Texts of errors and warnings in a module; what is filled in counts as one word."""
    found = []
    for node in ast.walk(ast.parse(source)):
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call) or not call.args:
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if isinstance(node, ast.Raise) or name == "warn":
            found.append(_literal(call.args[0]))
    return [text for text in found if text]


def _literal(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else "`x`"
    if isinstance(node, ast.JoinedStr):
        return "".join(_literal(value) for value in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _literal(node.left) + _literal(node.right)
    return "`x`" if isinstance(node, ast.FormattedValue) else ""


def complaints_of_code(source: str) -> list[str]:
    """All that breaks the rules in a module's messages."""
    return [one for text in messages(source) for one in complaints(text) if "on average" not in one]


if __name__ == "__main__":
    import sys
    from pathlib import Path

    names = [found for name in sys.argv[1:] for found in (sorted(Path(name).rglob("*.py")) or [Path(name)])]
    for name in names:
        text = name.read_text(encoding="utf-8")
        if name.suffix == ".py":
            found = complaints_of_code(text)
            print(f"{name}: {len(found)}")
        else:
            found = complaints(text)
            counts = [words(s) for s in sentences(text)]
            mean = sum(counts) / max(len(counts), 1)
            print(f"{name}: {len(text.split())} words, {len(counts)} sentences, mean {mean:.1f}")
        print(*(f"  {line}" for line in found), sep="\n")
