"""sdmetrics' answers to questions that ours answers too: ``python metrics_sdmetrics.py TASK.json``."""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sdmetrics.column_pairs import CorrelationSimilarity
from sdmetrics.single_column import CategoryCoverage, RangeCoverage, TVComplement
from sdmetrics.single_table import DCROverfittingProtection, LogisticDetection, NewRowSynthesis


def main():
    warnings.simplefilter("ignore")
    np.random.seed(0)  # noqa: NPY002  (what the library draws from)
    task = json.loads(Path(sys.argv[1]).read_text())
    kinds = task["kinds"]
    train, made, test = (_read(task[name], kinds) for name in ("train", "synthetic", "test"))
    metadata = {"columns": {name: {"sdtype": kind} for name, kind in kinds.items()}}
    metadata["METADATA_SPEC_VERSION"] = "V1"
    texts = [name for name, kind in kinds.items() if kind == "categorical"]
    numbers = [name for name, kind in kinds.items() if kind == "numerical"]
    pairs = [(a, b) for i, a in enumerate(numbers) for b in numbers[:i]]
    questions = {
        "tvd of categories": lambda: 1 - np.mean([TVComplement.compute(train[n], made[n]) for n in texts]),
        "correlation error": lambda: np.mean(
            # its similarity is 1 - |difference| / 2, here of Pearson's correlations
            [
                2 - 2 * CorrelationSimilarity.compute(train[[*p]], made[[*p]], coefficient="Pearson")
                for p in pairs
            ]
        ),
        "category coverage": lambda: np.mean([CategoryCoverage.compute(train[n], made[n]) for n in texts]),
        "range coverage": lambda: np.mean([RangeCoverage.compute(train[n], made[n]) for n in numbers]),
        "discriminator (logistic)": lambda: _auc(LogisticDetection.compute(train, made, metadata)),
        "copies of training records": lambda: (
            1 - NewRowSynthesis.compute(train, made, metadata, numerical_match_tolerance=1e-12)
        ),
        "nearer to training records": lambda: DCROverfittingProtection.compute_breakdown(
            train, made, test, metadata, None
        )["synthetic_data_percentages"]["closer_to_training"],
    }
    found = {}
    for name, ask in questions.items():
        begun = time.perf_counter()
        try:
            found[name] = {"value": float(ask()), "seconds": time.perf_counter() - begun}
        except Exception as problem:
            found[name] = {"failed": f"{type(problem).__name__}: {problem}"}
    print(json.dumps(found))


def _read(path, kinds):
    frame = pd.read_csv(path)
    for name, kind in kinds.items():
        if kind == "categorical":
            frame[name] = frame[name].astype(str)
    return frame


def _auc(score):
    # its score is 1 - (2 max(AUC, .5) - 1)
    return 1 - score / 2


if __name__ == "__main__":
    main()
