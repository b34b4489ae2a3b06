"""Do records obey the rules of their table? The language of rules is :mod:`dpsynth.table.rules`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from dpsynth.evaluation.records import Measure
from dpsynth.table.derived import differing
from dpsynth.table.rules import Rule
from dpsynth.table.schema import Schema

GROUP = "Constraints"


def violations(rules: Sequence[Rule], synthetic: pd.DataFrame, train: pd.DataFrame) -> Iterator[Measure]:
    """Yield the share of synthetic and of training records that break each rule.

    Both tables are conformed and hold a record at least.
    """
    for rule in rules:
        for table, frame in (("synthetic", synthetic), ("train", train)):
            broken = rule.broken(frame)
            what = f"share of {table} records that break it, {int(broken.sum()):,} of {len(frame):,}"
            name = f"constraint_violations_{table}[{rule.text}]"
            yield Measure(GROUP, name, float(broken.mean()), table != "synthetic", what)


def derived_differences(schema: Schema, synthetic: pd.DataFrame, train: pd.DataFrame) -> Iterator[Measure]:
    """Yield the share of records in which a derived column is more than a step off its formula.

    Both tables are conformed and hold a record at least.
    """
    for column, formula in schema.formulas:
        for table, frame in (("synthetic", synthetic), ("train", train)):
            off = differing(frame, column, formula, schema.columns)
            what = f"share of {table} records that are off the formula, {int(off.sum()):,} of {len(frame):,}"
            name = f"constraint_violations_{table}[{column.name} = {formula.text}]"
            yield Measure(GROUP, name, float(off.mean()), table != "synthetic", what)
