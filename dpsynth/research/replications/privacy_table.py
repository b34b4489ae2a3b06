"""The refined evaluation of privacy in chapter 4 of Pedersen (2022): unbiased nearest-neighbour accuracy.

Definition 4.1.1, with ties shared out as in equation 4.5, and permutation tests, which are ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpsynth.research.replications.results import Results
from dpsynth.research.replications.selected_tables import Way
from dpsynth.research.replications.sheets import Entry, Sheet, counted, decimals, over_seeds

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
