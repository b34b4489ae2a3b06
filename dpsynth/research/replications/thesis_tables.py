"""Make tables 3.1 to 3.4 of Pedersen (2022) for any study, and the evaluation of privacy of its chapter 4.

The latter is unbiased nearest-neighbour accuracy, definition 4.1.1, with ties shared out as in equation 4.5.
Permutation tests are ours. If the study is on one of its three cohorts, the printed numbers stand beside
ours. Rates are shares here and percentages there. Table 3.1 calls N the number of points in the training set.
Table 3.2 gives the same numbers as data points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated

from pydantic import BeforeValidator

from dpsynth.files.codec import OptionGroup, listed
from dpsynth.files.text import shipped_yaml
from dpsynth.research.replications.arms import HEALTHGAN, REAL
from dpsynth.research.replications.results import NOT_PRIVATE, Results, Way, ways
from dpsynth.research.replications.sheets import (
    NOT_KNOWN,
    Sheet,
    SheetCell,
    counted,
    lone_number,
    measured_over_seeds,
    rates_over_seeds,
    three_decimals,
    two_decimals,
)
from dpsynth.research.replications.trial import Measured

#: of one table, by the evaluator's names
NEAREST = ("nn_accuracy_train", "nn_accuracy_test", "privacy_loss")
#: a p-value below this is counted
_LEVEL = 0.05
_RATE = "positive_rate_synthetic"
_UNBIASED = (
    "TrResembLoss and TeResembLoss are nearest-neighbour adversarial accuracies to training and test records "
    "(0.5: the same distribution, 1: disjoint), PrivacyLoss is the second minus the first, on parts of one "
    "size. They are computed "
    "by definition 4.1.1 of the thesis, which is unbiased; its own table 3.4 has the older, slightly "
    "biased one."
)
_whole: Callable[[float], str] = "{:,.0f}".format

#: widths of every critic's layers, after the dimension of the data (section 3.3)
CRITIC = (64, 128, 256, 1)
#: rows of table 3.3 after HealthGAN: standard deviations of the noise as the thesis writes them
NOISE_LEVELS = ("1e-7", "1e-6", "1e-5", "1e-4")


class ComparedColumn(OptionGroup):
    """A column of table 3.4."""

    auc: float
    positive_rate: float
    train_resemblance: float
    test_resemblance: float
    privacy_loss: float


class ThesisDataset(OptionGroup):
    """Published numbers of one data set, with this number: tables 3.1 to 3.4.

    ``generator`` are nodes of each layer. ``positive_rate`` is that of the training part in table 3.2. The
    rates after it are those of table 3.3, ``private_rates`` in the order of :data:`NOISE_LEVELS`.
    """

    number: int
    n: int
    batch: int
    dimension: int
    generator: Annotated[tuple[int, ...], BeforeValidator(listed)]
    features: str
    label: str
    positive_rate: float
    train_rate: float
    test_rate: float
    healthgan_rate: float
    private_rates: Annotated[tuple[float, ...], BeforeValidator(listed)]
    healthgan: ComparedColumn
    private: ComparedColumn


@cache
def thesis_numbers() -> dict[str, ThesisDataset]:
    """Published numbers by the name of the cohort."""
    told = shipped_yaml("dpsynth.research.replications", "thesis.yaml")
    return {cohort: ThesisDataset.of(**numbers) for cohort, numbers in told.items()}


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


def _architecture(results: Results, thesis: ThesisDataset | None) -> Sheet:
    rows = []
    for arm in results.arms:
        told = [trial for trials in results.of(arm.name).values() for trial in trials if trial.architecture]
        # all fits of an arm are planned alike; where a number of records differs, the first one's is told
        for trial in told[:1]:
            built = trial.architecture
            name = f"{arm.name} ({NOT_PRIVATE})" if arm.name == HEALTHGAN else arm.name
            rows.append(_networks(name, trial.records, built["batch"], built["generator"], built["critic"]))
    if thesis is not None:
        critic = (thesis.dimension, *CRITIC)
        name = f"thesis, data set {thesis.number}"
        rows.append(_networks(name, thesis.n, thesis.batch, thesis.generator, critic))
    return Sheet(
        "table-3.1",
        "Table 3.1: Characteristics of the architecture by generator",
        ("generator", "N", "batch size", "dimension", "generator nodes/layer", "critic nodes/layer"),
        tuple(rows),
        (
            "N is the number of training records, and the dimension that of a record as the networks see it. "
            "The batch of a private generator is the expected number of records of a Poisson sample.",
            *(() if rows else ("No generator with networks was fitted.",)),
        ),
    )


def _networks(
    name: str, n: int, batch: int, generator: Sequence[int], critic: Sequence[int]
) -> tuple[SheetCell, ...]:
    numbers = (lone_number(number, _whole) for number in (n, batch, critic[0]))
    return (
        SheetCell(name),
        *numbers,
        *(SheetCell(", ".join(map(str, nodes))) for nodes in (generator, critic)),
    )


def _characteristics(results: Results, thesis: ThesisDataset | None) -> Sheet:
    real = [trial for trials in results.of(REAL).values() for trial in trials]
    features = [column for column in results.schema.columns if column.name != results.schema.outcome]
    numeric = sum(column.is_numeric for column in features)
    kinds = f"{numeric} numeric, {len(features) - numeric} categorical"
    records, rate = real[0].records if real else None, _rates(results, results.first(REAL))
    told = [(results.source, records, kinds, results.schema.outcome or NOT_KNOWN, rate)]
    if thesis is not None:
        name, rate = f"thesis, data set {thesis.number}", _rate(thesis.positive_rate)
        told.append((name, thesis.n, thesis.features, thesis.label, rate))
    rows = [
        (SheetCell(name), lone_number(n, _whole), SheetCell(features), SheetCell(label), rate)
        for name, n, features, label, rate in told
    ]
    return Sheet(
        "table-3.2",
        "Table 3.2: Characteristics of the data set",
        ("data set", "data points (training part)", "features", "label", "+ rate (%)"),
        tuple(rows),
        ("The + rate is the share of records of the training part in which the outcome is positive.",),
    )


def _positive_rates(results: Results, compared: Sequence[Way], thesis: ThesisDataset | None) -> Sheet:
    real = results.first(REAL)
    told: dict[str, float] = {}
    if thesis is not None:
        told = {"training set": thesis.train_rate, "test set": thesis.test_rate}
        best = [way.label for way in compared if math.isinf(way.stated)]
        told |= dict.fromkeys(best[-1:], thesis.healthgan_rate)
    records = (("training set", _RATE), ("test set", "positive_rate_test"))
    rows = [
        [SheetCell(name), _rates(results, real, measure), *[SheetCell("")] * 3] for name, measure in records
    ]
    for way in compared:
        above = [
            rate > known
            for rate, known in zip(way.values(_RATE), way.values("positive_rate_train"), strict=True)
            if rate is not None and known is not None
        ]
        spent = _epsilon(way.stated), _epsilon(way.spent)
        reached = _rates(results, way.chosen)
        rows.append([SheetCell(way.label), reached, counted(sum(above), len(above)), *spent])
    header: tuple[str, ...] = ("table", "+ rate (%)", "above the training set", "ε stated", "ε spent")
    if thesis is not None:
        header += ("thesis (%)",)
        rows = [[*row, _rate(told[row[0].text]) if row[0].text in told else SheetCell("")] for row in rows]
        for level, rate in zip(NOISE_LEVELS, thesis.private_rates, strict=True):
            rows.append([SheetCell(f"thesis, σ_dp = {level}"), *[SheetCell("")] * 4, _rate(rate)])
    return Sheet(
        "table-3.3",
        "Table 3.3: Highest positivity rate of the synthetic tables over restarts, and what selection costs",
        header,
        tuple(map(tuple, rows)),
        (
            "The selection is the thesis's: of all synthetic tables of a generator's restarts, the one "
            "with the highest positive rate.",
            "The thesis states the noise of one fit. Choosing looks at the tables of all fits, so that all "
            "of them are spent: ε stated is that of one fit, ε spent that of everything looked at, "
            "composed from the ledgers (the largest over seeds). Unpaid: each restart has the whole ε, and "
            "the two differ. Paid: the restarts share ε by the rule for Gaussian mechanisms, which with "
            "critic's steps may leave some of it unspent.",
            "The selection prefers tables with too many positive records: a rate above that of the "
            "training set is no merit. The column 'above the training set' counts the seeds in which it is.",
            "Each seed is another split of the same records, as a repetition for measuring: ε is that of one "
            "seed. To release the tables of several seeds would cost them all.",
        ),
    )


def _comparison(results: Results, compared: Sequence[Way], thesis: ThesisDataset | None) -> Sheet:
    first = results.first(REAL)
    area, rate = measured_over_seeds(results, first, ("auc_mean",)), _rates(results, first)
    rows = [(SheetCell("real training records"), SheetCell(""), *area, rate, *[SheetCell("")] * 3)]
    for way in compared:
        area, rate = measured_over_seeds(results, way.chosen, ("auc_mean",)), _rates(results, way.chosen)
        nearest = measured_over_seeds(results, way.chosen, NEAREST)
        rows.append((SheetCell(way.label), _epsilon(way.spent), *area, rate, *nearest))
    if thesis is not None:
        rows.append(_printed(f"thesis, HealthGAN ({NOT_PRIVATE})", _epsilon(math.inf), thesis.healthgan))
        rows.append(_printed("thesis, with D.P.", SheetCell("not stated"), thesis.private))
    names = ", ".join(name.replace("_", " ") for name in results.protocol.classifiers)
    return Sheet(
        "table-3.4",
        "Table 3.4: Utility, resemblance and privacy loss of the synthetic tables",
        ("trained on", "ε spent", "AUC", "+ rate (%)", "TrResembLoss", "TeResembLoss", "PrivacyLoss"),
        tuple(rows),
        (
            f"AUC is that on the test records, a mean over classifiers ({names}) that were trained on the "
            "table.",
            _UNBIASED,
            "A table without a single positive record teaches nothing: its classifiers have an AUC of 0.5.",
            "Rows and columns are exchanged against the thesis. 'Best' is the selection of table 3.3.",
        ),
    )


def _printed(label: str, spent: SheetCell, told: ComparedColumn) -> tuple[SheetCell, ...]:
    nearest = (told.train_resemblance, told.test_resemblance, told.privacy_loss)
    auc, *others = (lone_number(value, three_decimals) for value in (told.auc, *nearest))
    return (SheetCell(label), spent, auc, _rate(told.positive_rate), *others)


def _classifiers(results: Results, compared: Sequence[Way]) -> Sheet:
    classifiers = results.protocol.classifiers
    names = [f"auc_{name}" for name in classifiers]
    rows = [(SheetCell("real training records"), *measured_over_seeds(results, results.first(REAL), names))]
    rows += [(SheetCell(way.label), *measured_over_seeds(results, way.chosen, names)) for way in compared]
    return Sheet(
        "table-3.4-classifiers",
        "Table 3.4, by classifier: area under the ROC curve on the test records",
        ("trained on", *(name.replace("_", " ") for name in classifiers)),
        tuple(rows),
    )


def _privacy(results: Results, compared: Sequence[Way]) -> Sheet:
    """Return accuracies, privacy loss and p-values of each way's tables."""
    rows = []
    for way in compared:
        row = [SheetCell(way.label), *measured_over_seeds(results, way.chosen, NEAREST)]
        for name in ("nn_copies_p", "nn_apart_p"):
            known = [value for value in way.values(name) if value is not None and not math.isnan(value)]
            row += measured_over_seeds(results, way.chosen, (name,))
            row.append(counted(sum(value < _LEVEL for value in known), len(known)))
        rows.append(tuple(row))
    return Sheet(
        "table-4",
        "Table 4.x: Refined evaluation of privacy (chapter 4)",
        (
            "table",
            "accuracy, training",
            "accuracy, test",
            "privacy loss",
            "p, copies",
            "copies: p < .05",
            "p, apart",
            "apart: p < .05",
        ),
        tuple(rows),
        (
            "Accuracy is the unbiased nearest-neighbour adversarial accuracy of definition 4.1.1, with ties "
            "shared out: 0.5 for two samples of one distribution. Privacy loss is test minus training.",
            "p, copies: a small value says that synthetic records lie closer to the training records than a "
            "sample of the same distribution would. p, apart: a small value says that synthetic and test "
            "records differ in distribution. Both are permutation tests; 'p < .05' counts seeds.",
            "These are measurements of one table, no bounds: a privacy loss near 0 proves no privacy. What "
            "is guaranteed is ε, and only that.",
            "The thesis's own table 4.1 is a worked example of a theorem on attackers, no result of a study; "
            "attacks are a part of their own.",
        ),
    )


def _rates(results: Results, chosen: Sequence[Measured], measure: str = _RATE) -> SheetCell:
    """A share of the tables that were kept, over seeds, in per cent."""
    return rates_over_seeds(results.over_seeds(chosen, measure), results.seeds)


def _epsilon(value: float | None) -> SheetCell:
    if value is None:
        return SheetCell(NOT_KNOWN)
    if math.isinf(value):
        return SheetCell(NOT_PRIVATE)
    # three digits, rounded up: a cost is never told as less than it is
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return SheetCell(f"{unit * math.ceil(value / unit - 1e-9):.3g}", {"value": value})


def _rate(share: float) -> SheetCell:
    return lone_number(round(100 * share, 6), two_decimals)
