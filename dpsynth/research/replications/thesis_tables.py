"""Tables 3.1 to 3.4 of Pedersen (2022) for any study.

Where the study is on one of the thesis's three cohorts, what the thesis prints stands beside what was found.

The refined evaluation of privacy in chapter 4 of Pedersen (2022): unbiased nearest-neighbour accuracy.

Definition 4.1.1, with ties shared out as in equation 4.5, and permutation tests, which are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dpsynth.research.replications.arms import HEALTHGAN, REAL
from dpsynth.research.replications.results import OverSeeds, Results
from dpsynth.research.replications.selected_tables import NOT_PRIVATE, Way, ways
from dpsynth.research.replications.sheets import (
    NOT_KNOWN,
    Entry,
    Sheet,
    counted,
    decimals,
    over_seeds,
    percent,
    plain,
    rates_over_seeds,
)
from dpsynth.research.replications.thesis_numbers import CRITIC, NOISE_LEVELS, THESIS, Compared, ThesisDataset
from dpsynth.research.replications.trial import Trial

#: of one table, by the evaluator's names
NEAREST = ("nn_accuracy_train", "nn_accuracy_test", "privacy_loss")
#: a p-value below this is counted
_LEVEL = 0.05


def privacy_sheet(results: Results, compared: Sequence[Way]) -> Sheet:
    """Return accuracies, privacy loss and p-values of each way's tables."""
    seeds = results.seeds
    rows = []
    for way in compared:
        row = [Entry(way.label), *(over_seeds(way.over_seeds(name), decimals, seeds) for name in NEAREST)]
        for name in ("nn_copies_p", "nn_apart_p"):
            known = [value for value in way.values(name) if value is not None and not math.isnan(value)]
            row += [over_seeds(way.over_seeds(name), decimals, seeds)]
            row += [counted(sum(value < _LEVEL for value in known), len(known))]
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


_RATE = "positive_rate_synthetic"
_UNBIASED = (
    "TrResembLoss and TeResembLoss are nearest-neighbour adversarial accuracies to training and test records "
    "(0.5: the same distribution, 1: disjoint), PrivacyLoss is the second minus the first, on parts of one "
    "size. They are computed "
    "by definition 4.1.1 of the thesis, which is unbiased; its own table 3.4 has the older, slightly "
    "biased one."
)


def thesis_sheets(results: Results) -> tuple[Sheet, ...]:
    """Return tables 3.1 to 3.4, and that of chapter 4, of a study's results."""
    thesis = THESIS.get(results.protocol.cohort or "")
    compared = ways(results)
    return (
        _architecture(results, thesis),
        _characteristics(results, thesis),
        _positive_rates(results, compared, thesis),
        _comparison(results, compared, thesis),
        _classifiers(results, compared),
        privacy_sheet(results, compared),
    )


def _architecture(results: Results, thesis: ThesisDataset | None) -> Sheet:
    rows = []
    for arm in results.arms:
        told = [trial for trials in results.of(arm.name).values() for trial in trials if trial.architecture]
        if told:
            rows.append(_networks(f"{arm.name} ({NOT_PRIVATE})" if arm.name == HEALTHGAN else arm.name, told))
    if thesis is not None:
        critic = (thesis.dimension, *CRITIC)
        numbers = (thesis.n, thesis.batch, thesis.dimension)
        rows.append(
            (
                Entry(f"thesis, data set {thesis.number}"),
                *(plain(number, _whole) for number in numbers),
                Entry(_nodes(thesis.generator)),
                Entry(_nodes(critic)),
            )
        )
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


def _networks(name: str, trials: Sequence[Trial]) -> tuple[Entry, ...]:
    """All fits of an arm are planned alike; where a number of records differs, the first one's is told."""
    trial = trials[0]
    generator, critic = trial.architecture["generator"], trial.architecture["critic"]
    numbers = (trial.records, trial.architecture["batch"], critic[0])
    return (
        Entry(name),
        *(plain(number, _whole) for number in numbers),
        Entry(_nodes(generator)),
        Entry(_nodes(critic)),
    )


def _characteristics(results: Results, thesis: ThesisDataset | None) -> Sheet:
    real = [trial for trials in results.of(REAL).values() for trial in trials]
    rate = OverSeeds.of(each.set.measures.get(_RATE) for each in results.first(REAL))
    records = real[0].records if real else None
    row = (
        Entry(results.source),
        plain(records, _whole),
        Entry(_features(results, real)),
        Entry(NOT_KNOWN if results.schema is None else results.schema.outcome or NOT_KNOWN),
        rates_over_seeds(rate, results.seeds),
    )
    rows = [row]
    if thesis is not None:
        rows.append(
            (
                Entry(f"thesis, data set {thesis.number}"),
                plain(thesis.n, _whole),
                Entry(thesis.features),
                Entry(thesis.label),
                _rate(thesis.positive_rate),
            )
        )
    return Sheet(
        "table-3.2",
        "Table 3.2: Characteristics of the data set",
        ("data set", "data points (training part)", "features", "label", "+ rate (%)"),
        tuple(rows),
        ("The + rate is the share of records of the training part in which the outcome is positive.",),
    )


def _features(results: Results, real: Sequence[Trial]) -> str:
    schema = results.schema
    if schema is None:
        return f"{real[0].columns - 1} columns" if real else NOT_KNOWN
    features = [column for column in schema.columns if column.name != schema.outcome]
    numeric = sum(column.is_numeric for column in features)
    return f"{numeric} numeric, {len(features) - numeric} categorical"


def _positive_rates(results: Results, compared: Sequence[Way], thesis: ThesisDataset | None) -> Sheet:
    real, seeds = results.first(REAL), results.seeds
    told: dict[str, float] = {}
    if thesis is not None:
        told = {"training set": thesis.train_rate, "test set": thesis.test_rate}
        best = [way.label for way in compared if math.isinf(way.stated)]
        told |= dict.fromkeys(best[-1:], thesis.healthgan_rate)
    records = (("training set", _RATE), ("test set", "positive_rate_test"))
    rows = [
        [Entry(name), rates_over_seeds(results.over_seeds(real, measure), seeds), *[Entry("")] * 3]
        for name, measure in records
    ]
    for way in compared:
        above = [
            rate > known
            for rate, known in zip(way.values(_RATE), way.values("positive_rate_train"), strict=True)
            if rate is not None and known is not None
        ]
        rows.append(
            [
                Entry(way.label),
                rates_over_seeds(way.over_seeds(_RATE), seeds),
                counted(sum(above), len(above)),
                _epsilon(way.stated),
                _epsilon(way.spent),
            ]
        )
    header: tuple[str, ...] = ("table", "+ rate (%)", "above the training set", "ε stated", "ε spent")
    if thesis is not None:
        header += ("thesis (%)",)
        rows = [[*row, _rate(told[row[0].text]) if row[0].text in told else Entry("")] for row in rows]
        for level, rate in zip(NOISE_LEVELS, thesis.private_rates, strict=True):
            rows.append([Entry(f"thesis, σ_dp = {level}"), *[Entry("")] * 4, _rate(rate)])
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
    seeds = results.seeds
    first = results.first(REAL)
    rows = [
        (
            Entry("real training records"),
            Entry(""),
            over_seeds(results.over_seeds(first, "auc_mean"), decimals, seeds),
            rates_over_seeds(results.over_seeds(first, _RATE), seeds),
            *[Entry("")] * 3,
        )
    ]
    for way in compared:
        rows.append(
            (
                Entry(way.label),
                _epsilon(way.spent),
                over_seeds(way.over_seeds("auc_mean"), decimals, seeds),
                rates_over_seeds(way.over_seeds(_RATE), seeds),
                *(over_seeds(way.over_seeds(name), decimals, seeds) for name in NEAREST),
            )
        )
    if thesis is not None:
        rows.append(_printed(f"thesis, HealthGAN ({NOT_PRIVATE})", _epsilon(math.inf), thesis.healthgan))
        rows.append(_printed("thesis, with D.P.", Entry("not stated"), thesis.private))
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


def _printed(label: str, spent: Entry, told: Compared) -> tuple[Entry, ...]:
    nearest = (told.train_resemblance, told.test_resemblance, told.privacy_loss)
    return (
        Entry(label),
        spent,
        plain(told.auc, decimals),
        _rate(told.positive_rate),
        *(plain(value, decimals) for value in nearest),
    )


def _classifiers(results: Results, compared: Sequence[Way]) -> Sheet:
    classifiers, first, seeds = results.protocol.classifiers, results.first(REAL), results.seeds
    rows = [
        (
            Entry("real training records"),
            *(over_seeds(results.over_seeds(first, f"auc_{name}"), decimals, seeds) for name in classifiers),
        )
    ]
    for way in compared:
        found = (over_seeds(way.over_seeds(f"auc_{name}"), decimals, seeds) for name in classifiers)
        rows.append((Entry(way.label), *found))
    return Sheet(
        "table-3.4-classifiers",
        "Table 3.4, by classifier: area under the ROC curve on the test records",
        ("trained on", *(name.replace("_", " ") for name in classifiers)),
        tuple(rows),
    )


def _epsilon(value: float | None) -> Entry:
    if value is None:
        return Entry(NOT_KNOWN)
    if math.isinf(value):
        return Entry(NOT_PRIVATE)
    # three digits, rounded up: a cost is never told as less than it is
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return Entry(f"{unit * math.ceil(value / unit - 1e-9):.3g}", {"value": value})


def _rate(share: float) -> Entry:
    return plain(round(100 * share, 6), percent)


def _nodes(widths: Sequence[int]) -> str:
    return ", ".join(map(str, widths))


_whole: Callable[[float], str] = "{:,.0f}".format
