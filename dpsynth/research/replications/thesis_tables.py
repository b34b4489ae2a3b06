"""Make tables 3.1 to 3.4 of Pedersen (2022) for any study, and the evaluation of privacy of its chapter 4.

The latter is unbiased nearest-neighbour accuracy, definition 4.1.1, with ties shared out as in equation 4.5.
Permutation tests are ours. If the study is on one of its three cohorts, the printed numbers stand beside
ours. Rates are shares here and percentages there. Table 3.1 calls N the number of points in the training set.
Table 3.2 gives the same numbers as data points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

from dpsynth.files.text import shipped_yaml
from dpsynth.research.replications.arms import HEALTHGAN, REAL
from dpsynth.research.replications.results import (
    NOT_PRIVATE,
    RATE,
    Results,
    Row,
    Way,
    study_sheet,
    to_decimals,
    ways,
)
from dpsynth.research.writing import NOT_KNOWN, Sheet, SheetCell, counted, lone_number

#: of one table, by the evaluator's names
NEAREST = ("nn_accuracy_train", "nn_accuracy_test", "privacy_loss")
#: a p-value below this is counted
_LEVEL = 0.05
_whole: Callable[[float], str] = "{:,.0f}".format

#: widths of every critic's layers, after the dimension of the data (section 3.3)
CRITIC = (64, 128, 256, 1)
#: rows of table 3.3 after HealthGAN: standard deviations of the noise as the thesis writes them
NOISE_LEVELS = ("1e-7", "1e-6", "1e-5", "1e-4")


@cache
def thesis_numbers() -> dict[str, Any]:
    """Published numbers by the name of the cohort, with the fields of ``thesis.yaml``."""
    told = shipped_yaml("dpsynth.research.replications", "thesis.yaml")
    return {cohort: SimpleNamespace(**numbers) for cohort, numbers in told.items()}


def thesis_sheets(results: Results) -> tuple[Sheet, ...]:
    """Return tables 3.1 to 3.4, and that of chapter 4, of a study's results."""
    thesis = thesis_numbers().get(results.protocol.cohort or "")
    compared = ways(results)
    return (
        _architecture(results, thesis),
        _characteristics(results, thesis),
        _positive_rates(results, compared, thesis),
        _comparison(results, compared, thesis),
        _classifiers(results, compared),
        _privacy(results, compared),
    )


def _architecture(results: Results, thesis: Any) -> Sheet:
    rows = []
    for arm in results.arms:
        # all fits of an arm are planned alike; where a number of records differs, the first one's is told
        fits = [t for trials in results.of(arm.name).values() for t in trials if t.architecture]
        for trial in fits[:1]:
            built = trial.architecture
            name = f"{arm.name} ({NOT_PRIVATE})" if arm.name == HEALTHGAN else arm.name
            rows.append(_networks(name, trial.records, built["batch"], built["generator"], built["critic"]))
    notes = [] if rows or thesis else ["No generator with networks was fitted."]
    if thesis is not None:
        critic = (thesis.dimension, *CRITIC)
        name = f"thesis, data set {thesis.number}"
        rows.append(_networks(name, thesis.n, thesis.batch, thesis.generator, critic))
    return study_sheet("table-3.1", rows, notes=notes)


def _networks(name: str, n: int, batch: int, generator: Sequence[int], critic: Sequence[int]) -> Row:
    numbers = (lone_number(number, _whole) for number in (n, batch, critic[0]))
    return [name, *numbers, *(", ".join(map(str, nodes)) for nodes in (generator, critic))]


def _characteristics(results: Results, thesis: Any) -> Sheet:
    real = [trial for trials in results.of(REAL).values() for trial in trials]
    features = [column for column in results.schema.columns if column.name != results.schema.outcome]
    numeric = sum(column.is_numeric for column in features)
    kinds = f"{numeric} numeric, {len(features) - numeric} categorical"
    records = lone_number(real[0].records if real else None, _whole)
    rate = results.rates(results.first(REAL))
    rows: list[Row] = [[results.source, records, kinds, results.schema.outcome or NOT_KNOWN, rate]]
    if thesis is not None:
        name, records = f"thesis, data set {thesis.number}", lone_number(thesis.n, _whole)
        rows.append([name, records, thesis.features, thesis.label, _rate(thesis.positive_rate)])
    return study_sheet("table-3.2", rows)


def _positive_rates(results: Results, compared: Sequence[Way], thesis: Any) -> Sheet:
    real = results.first(REAL)
    printed: dict[str, float] = {}
    if thesis is not None:
        printed = {"training set": thesis.train_rate, "test set": thesis.test_rate}
        best = [way.label for way in compared if math.isinf(way.stated)]
        printed |= dict.fromkeys(best[-1:], thesis.healthgan_rate)
    rows: list[Row] = [
        ["training set", results.rates(real), "", "", ""],
        ["test set", results.rates(real, "positive_rate_test"), "", "", ""],
    ]
    for way in compared:
        known = way.chosen[[RATE, "positive_rate_train"]].dropna()
        above = counted(int((known[RATE] > known["positive_rate_train"]).sum()), len(known))
        rows.append([way.label, results.rates(way.chosen), above, _epsilon(way.stated), _epsilon(way.spent)])
    if thesis is None:
        return study_sheet("table-3.3", rows)
    for row in rows:
        row.append(_rate(printed[str(row[0])]) if row[0] in printed else "")
    for level, rate in zip(NOISE_LEVELS, thesis.private_rates, strict=True):
        rows.append([f"thesis, σ_dp = {level}", "", "", "", "", _rate(rate)])
    return study_sheet("table-3.3", rows, columns=["thesis (%)"])


def _comparison(results: Results, compared: Sequence[Way], thesis: Any) -> Sheet:
    first = results.first(REAL)
    rows: list[Row] = [
        ["real training records", "", *results.measured(first, "auc_mean"), results.rates(first), "", "", ""]
    ]
    for way in compared:
        area, *nearest = results.measured(way.chosen, "auc_mean", *NEAREST)
        rows.append([way.label, _epsilon(way.spent), area, results.rates(way.chosen), *nearest])
    if thesis is not None:
        rows.append(_printed(f"thesis, HealthGAN ({NOT_PRIVATE})", _epsilon(math.inf), thesis.healthgan))
        rows.append(_printed("thesis, with D.P.", SheetCell("not stated"), thesis.private))
    names = ", ".join(name.replace("_", " ") for name in results.protocol.classifiers)
    return study_sheet("table-3.4", rows, classifiers=names)


def _printed(label: str, spent: SheetCell, told: Mapping[str, float]) -> Row:
    names = ("auc", "train_resemblance", "test_resemblance", "privacy_loss")
    auc, *nearest = (lone_number(told[name], "{:.3f}".format) for name in names)
    return [label, spent, auc, _rate(told["positive_rate"]), *nearest]


def _classifiers(results: Results, compared: Sequence[Way]) -> Sheet:
    classifiers = results.protocol.classifiers
    tables = {"real training records": results.first(REAL)} | {way.label: way.chosen for way in compared}
    names = [f"auc_{name}" for name in classifiers]
    rows: list[Row] = [[label, *results.measured(chosen, *names)] for label, chosen in tables.items()]
    columns = (name.replace("_", " ") for name in classifiers)
    return study_sheet("table-3.4-classifiers", rows, columns=columns)


def _privacy(results: Results, compared: Sequence[Way]) -> Sheet:
    """Return accuracies, privacy loss and p-values of each way's tables."""
    rows = []
    for way in compared:
        row: Row = [way.label, *results.measured(way.chosen, *NEAREST)]
        for name in ("nn_copies_p", "nn_apart_p"):
            known = way.chosen[name].dropna()
            row += results.measured(way.chosen, name)
            row.append(counted(int((known < _LEVEL).sum()), len(known)))
        rows.append(row)
    return study_sheet("table-4", rows)


def _epsilon(value: float | None) -> SheetCell:
    if value is None:
        return SheetCell(NOT_KNOWN)
    if math.isinf(value):
        return SheetCell(NOT_PRIVATE)
    # three digits, rounded up: a cost is never told as less than it is
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return SheetCell(f"{unit * math.ceil(value / unit - 1e-9):.3g}", {"value": value})


def _rate(share: float) -> SheetCell:
    return lone_number(round(100 * share, 6), lambda rate: to_decimals(2)(rate)[0])
