"""What a command shows of names."""

from __future__ import annotations

import numpy as np
from chosen_statistics import marginals_options

from dpsynth.checks import together
from dpsynth.privacy.ledger import Ledger
from dpsynth.synthesis.check_inputs import record_provenance
from dpsynth.table.schema import Column, Schema


def test_a_table_of_a_thousand_columns_does_not_fill_the_screen() -> None:
    """Would catch a guarantee that names every unreviewed column: `sample` printed 28 KB."""
    columns = tuple(Column(name=f"laboratory_{i}", kind="integer", lower=0, upper=9) for i in range(843))
    ledger, rng = Ledger(), np.random.default_rng(0)
    unreviewed = {column.name: ("lower", "upper") for column in columns}
    record_provenance(ledger, Schema(columns=columns), marginals_options(), rng, unreviewed)
    (said,) = ledger.excluded
    assert "laboratory_9: lower, upper and 833 more" in said and "laboratory_10" not in said
    assert together([column.name for column in columns]).endswith("laboratory_9 and 833 more")
