"""K-marginal scores of tables of national2019 by NIST's own program, which has an environment of its own.

    python score_nist.py DATA TABLE.csv...

``DATA`` is NIST's folder: ``national/national2019.csv`` and ``.json``, ``data_dictionary.json``,
``config.json`` and ``mappings.json``. Prints a line a table, the score and the name.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sdnist.load import TestDatasetName
from sdnist.report.dataset import Dataset
from sdnist.report.score.utility import KMarginal
from sdnist.utils import SimpleLogger


def main(data: str, tables: list[str]) -> None:
    """Score as ``sdnist.report`` does, without its plots."""
    for table in tables:
        read = Dataset(Path(table), SimpleLogger(), TestDatasetName.national2019, Path(data), download=False)
        groups = read.config["k_marginal"]["group_features"]
        judge = KMarginal(read.d_target_data, read.d_synthetic_data, groups)
        judge.compute_score()
        print(f"score {int(judge.score)} {table}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
