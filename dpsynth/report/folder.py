"""A report in its folder: written as ``report.json`` and ``report.md``, and read back as the same record.

Of a folder of `dpsynth evaluate --out` without a known ledger, ``evaluation.json`` is read. The guarantee is
never read: it is computed from ``ledger.json``, as anybody can, and a ledger that is not the report's is
refused.

A report as Markdown, for people without a browser: ``report.md``.

It opens with the guarantee, since every number after it is read in its light, and says NOT PRIVATE first
where there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpsynth.accounting.guarantee import NOT_PRIVATE, round_up
from dpsynth.accounting.ledger import Ledger
from dpsynth.accounting.record import Summary
from dpsynth.attacks.attempt import Attempt
from dpsynth.errors import INTERNAL, DataError, InputError
from dpsynth.evaluation.records import Evaluation
from dpsynth.files.atomic import dump_json, read_json, write_text
from dpsynth.files.markdown import code_block, inert
from dpsynth.files.storage import check_same_ledger
from dpsynth.files.yaml_text import dump_yaml
from dpsynth.report.attempts import HEADER, WORDS, cells, closers, grouped, levels
from dpsynth.report.run_report import RunReport
from dpsynth.report.studies import PAID, described, guidance, rows, surviving
from dpsynth.studies.estimates import MEASURES, Estimates


def to_markdown(report: RunReport) -> str:
    """Return the report of a run; of one without a ledger, what is known."""
    lines = [f"# Synthetic table: {inert(str(report.table.get('name', 'unnamed')))}", ""]
    if report.guarantee is not None and report.summary is not None:
        if not report.guarantee.private:
            lines += [
                f"> **{NOT_PRIVATE}.** The records of this run's training table are not protected. "
                "Treat everything beside this report as you would treat them.",
                "",
            ]
        lines += ["## What is guaranteed", "", inert(str(report.guarantee)), ""]
        lines += _excluded(report.guarantee.excluded)
        lines += ["## What it cost", "", *_ledger_table(report.summary)]
    lines += _attempts(report)
    lines += _studies(report)
    if report.evaluation is not None:
        lines += [
            "## What it is worth",
            "",
            f"Numbers marked *{INTERNAL}* were computed from real records without payment: the guarantee "
            "does not cover them. Share the synthetic table, the model and the ledger, not this report.",
            "",
            report.evaluation.to_markdown(level=3),
        ]
    lines += ["## How it was made", "", *_facts(report.table), ""]
    lines += [*code_block(dump_yaml(dict(report.config)).rstrip("\n"), "yaml"), ""]
    lines.append(_joined("Versions", report.versions))
    times = {stage: f"{value:.1f} s" for stage, value in report.seconds.items()}
    lines += ["", _joined("Wall time (internal)", times), ""]
    return "\n".join(lines)


def _studies(report: RunReport) -> list[str]:
    if not report.studies:
        return []
    lines = ["## What the declared studies find", "", inert(" ".join(guidance(report))), ""]
    status = INTERNAL if report.withheld else PAID
    for told in report.studies:
        lines += [f"### {inert(told.study)}", "", inert(described(told)), ""]
        lines += [f"| term | {told.measure} | 95 % interval | p | release |", "|---|---:|---|---:|---|"]
        lines += ["| " + " | ".join(inert(cell) for cell in (*cells, status)) + " |" for cells in rows(told)]
        lines.append("")
        if told.survival is not None:
            lines += [inert(surviving(told.survival)), ""]
            lines += ["| time | survival | band | release |", "|---:|---:|---|---|"]
            lines += [f"| {' | '.join((*cells, status))} |" for cells in told.survival.rows()]
            lines.append("")
    return lines


def _attempts(report: RunReport) -> list[str]:
    if not report.attempts:
        return []
    lines = [
        "## What attacks reached, beside what is proved",
        "",
        f"Intervals are of {levels(report.attempts)}. An attempt below its bound proves nothing; one above "
        "it shows that the proof or the code is wrong.",
        "",
    ]
    for measure, attempts in grouped(report.attempts):
        name, meaning = WORDS[measure]
        lines += [f"### {name}", "", f"{meaning[:1].upper()}{meaning[1:]}.", ""]
        lines += [f"| {' | '.join(HEADER)} | release |", "|---|---:|---:|---:|---|---|"]
        for attempt in attempts:
            status = INTERNAL if attempt.internal else "released"
            lines.append("| " + " | ".join(inert(cell) for cell in (*cells(attempt), status)) + " |")
        lines += ["", *(inert(told) for told, _ in closers(attempts)), ""]
    return lines


def _excluded(reasons: Sequence[str]) -> list[str]:
    if not reasons:
        return []
    return ["The guarantee does **not** cover:", "", *(f"- {inert(reason)}" for reason in reasons), ""]


def _ledger_table(summary: Summary) -> list[str]:
    lines = [
        "| reading of the private table | event | sensitivity | ε alone | ε so far |",
        "|---|---|---|---:|---:|",
    ]
    for entry in summary["entries"]:
        cells = (
            entry["name"] + (f" ({entry['detail']})" if entry["detail"] else ""),
            entry["event"],
            entry["sensitivity"],
            _number(entry["epsilon_alone"]),
            _number(entry["epsilon_cumulative"]),
        )
        lines.append("| " + " | ".join(inert(cell) for cell in cells) + " |")
    lines += [
        "",
        f"In all: ε = {_number(summary['epsilon'])} at δ = {round_up(summary['delta'])}; total variation "
        f"{_number(summary['tv'])}, attack advantage at most {_number(summary['advantage'])}, attack "
        f"accuracy at most {_number(summary['attack_accuracy_bound'])}; adjacency: {summary['adjacency']}.",
        "",
    ]
    return lines


def _facts(table: Mapping[str, object]) -> list[str]:
    return [f"- {key.replace('_', ' ')}: {inert(str(value))}" for key, value in table.items()]


def _joined(label: str, values: Mapping[str, str]) -> str:
    return f"{label}: " + ", ".join(f"{name} {value}" for name, value in values.items()) + "."


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else round_up(value)


#: files of a report, and those that it is read from beside them
REPORT_JSON, REPORT_MD, REPORT_HTML = "report.json", "report.md", "report.html"
LEDGER, EVALUATION = "ledger.json", "evaluation.json"


def write_json(report: RunReport, path: Path) -> None:
    """Write the whole record but for its ledger, which whoever holds it writes beside it."""
    write_text(path, dump_json(report.to_dict()) + "\n")


def write_markdown(report: RunReport, path: Path) -> None:
    """Write the report for people without a browser."""
    write_text(path, to_markdown(report))


def load(folder: str | Path) -> RunReport:
    """Read the report in the folder of a run, or of ``dpsynth evaluate --out``.

    Parameters
    ----------
    folder : path
        With ``report.json`` and ``ledger.json``, or with ``evaluation.json``: then nothing is known of a
        guarantee.

    Raises
    ------
    InputError
        If the folder is neither.
    DataError
        If a file cannot be read or holds something else; the message names it.
    """
    folder = Path(folder)
    if (folder / REPORT_JSON).is_file():
        return _of_run(folder)
    path = folder / EVALUATION
    if path.is_file():
        return RunReport.of_evaluation(_evaluation(_read(path), path))
    raise InputError(
        f"{folder} is not the folder of a run or of an evaluation: it holds neither {REPORT_JSON} nor "
        f"{EVALUATION}"
    )


def _of_run(folder: Path) -> RunReport:
    path = folder / REPORT_JSON
    record = _read(path)
    if not (folder / LEDGER).is_file():
        raise DataError(f"{folder} holds {REPORT_JSON} but no {LEDGER}")
    ledger = Ledger.load(folder / LEDGER)
    check_same_ledger(folder / LEDGER, folder / "model")
    try:
        _same_story(ledger, record["ledger"], folder)
        evaluation = record["evaluation"]
        return RunReport(
            ledger=ledger,
            delta=float(record["ledger"]["delta"]),
            table=dict(record["table"]),
            config=dict(record["config"]),
            evaluation=None if evaluation is None else _evaluation(evaluation, path),
            versions=dict(record.get("versions", {})),
            seconds=dict(record.get("seconds", {})),
            created=record.get("created"),
            studies=tuple(_study(told) for told in record.get("studies", ())),
            attempts=tuple(Attempt.from_dict(told) for told in record.get("attempts", ())),
        )
    except (KeyError, TypeError, ValueError) as problem:
        if isinstance(problem, DataError):
            raise
        what = f"it lacks {problem}" if isinstance(problem, KeyError) else str(problem)
        raise DataError(f"{path} is not the report of a run: {what}") from None


def _same_story(ledger: Ledger, told: Mapping[str, Any], folder: Path) -> None:
    """Refuse a ledger that is not the one the report was written beside: a guarantee hangs on it."""
    same = (
        [entry["name"] for entry in told["entries"]] == [entry.name for entry in ledger.entries]
        and list(told["excluded"]) == list(ledger.excluded)
        and bool(told["seeded"]) == ledger.seeded
    )
    if same and told["epsilon"] is not None:
        epsilon = ledger.epsilon(float(told["delta"]))
        # versions of the accounting may differ in the last digits
        same = abs(epsilon - float(told["epsilon"])) <= 1e-3 * max(epsilon, float(told["epsilon"]))
    if not same:
        files = f"{LEDGER} and {REPORT_JSON}"
        raise DataError(f"{folder}: {files} tell different stories; one of them was changed")


def _study(record: Mapping[str, Any]) -> Estimates:
    """Read the estimates of one study; a file that somebody changed must not be drawn."""
    told = Estimates.from_dict(record)
    if told.kind not in MEASURES:
        raise ValueError(f"the study {told.study!r} is of the unknown kind {told.kind!r}")
    terms = len(told.terms)
    shapes = told.coefficients.shape == (terms,) and told.covariance.shape == (terms, terms)
    if not (shapes and np.isfinite(told.coefficients).all() and (np.diag(told.covariance) > 0).all()):
        raise ValueError(f"the study {told.study!r} lacks an estimate or a variance of one of its terms")
    return told


def _evaluation(record: Mapping[str, Any], path: Path) -> Evaluation:
    try:
        return Evaluation.from_dict(record)
    except InputError as problem:
        raise DataError(f"{path}: {problem}") from None


def _read(path: Path) -> dict[str, Any]:
    record = read_json(path)
    if not isinstance(record, dict):
        raise DataError(f"{path} must hold a JSON object, not a {type(record).__name__}")
    return record
