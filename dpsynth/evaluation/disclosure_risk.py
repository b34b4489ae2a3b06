"""Memorisation of training records: copies, distances and membership, against held-out records.

Every number has a control: as many held-out records of the same source, without a part in the synthetic
table. A finding about training records that held-out ones do not show is memorisation. Without held-out
records the numbers are still given. Each then says that its size by chance is unknown. Real records are read
without noise: all but the duplicates within the synthetic table is confidential.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from dpsynth.checks import Counted
from dpsynth.evaluation.distances import (
    Closest,
    Copies,
    Floats,
    Membership,
    Pooled,
    closer_share,
    closest,
    copy_sign,
    count_copies,
    distance_signs,
    exchange_p_values,
    lone_value_shares,
    lone_values,
    membership,
    named_more_often,
    one_to_one,
    record_distance,
)
from dpsynth.evaluation.estimates import Estimate, quantile
from dpsynth.evaluation.results import Findings, Measure, Row
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import COMPARED, Progress, Tables, on_part, silent

GROUP = "Disclosure"
_NO_TEST = "not defined without held-out {records}: nothing says what chance gives"
_EXCHANGE = "Interval: which of the real {records} were the training ones"
_BINS = 40
#: real records of each kind among which copies and lone values are exchanged
POOLED = 100_000

_measure = partial(Measure.estimated, GROUP)


def disclosure(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """Measure the information that a synthetic table gives about its training records.

    Distances use a random part of each table, with training and held-out part of equal size. Copies and lone
    values are counted in whole tables. ``memory_p`` is the p-value of all signs of memorisation together, and
    ``memory_p[SIGN]`` that of one, valid for all together (:mod:`dpsynth.evaluation.distances`).
    The other intervals are each for itself: they show sizes and are no test.

    Intervals of medians are order statistics over records taken as independent, with the
    other table held fixed. Synthetic rows that were adjusted to match marginals are not quite independent.
    """
    schema, level, counted = tables.schema, settings.level, tables.schema.counted
    limit = settings.most(schema, COMPARED)
    synthetic, train, test = tables.synthetic, tables.train, tables.test
    found = count_copies(synthetic, train, test, rng=rng, level=level)
    measures = [
        Measure(
            GROUP,
            "duplicates_synthetic",
            int(synthetic.duplicated().sum()),
            False,
            f"synthetic {counted} that equal an earlier one, of {len(synthetic):,}",
        ),
        *_copies(found, len(train), None if test is None else len(test), counted),
    ]
    progress(0.1)

    size = min(len(train), limit, len(train) if test is None else len(test))
    metric = record_distance(schema)

    def mixed(frame: pd.DataFrame) -> pd.DataFrame:
        """Records in random order, and of a very large table a random part."""
        return frame.iloc[rng.permutation(len(frame))[: max(limit, POOLED)]]

    made = metric.encode(mixed(synthetic).head(limit), schema)
    members = mixed(train)
    others = None if test is None else mixed(test)
    real = metric.encode(members.head(size), schema)
    held_out = None if others is None else metric.encode(others.head(size), schema)
    near = closest(made, real, held_out, metric=metric)
    progress(0.95)
    by_distance = [*_distances(near, level, counted), _closer(near, size, level, rng, counted)]
    attack = None
    if near.test_synthetic is not None:
        references = near.train_reference, near.test_reference
        attack = membership(near.train_synthetic, near.test_synthetic, *references, level=level)
    by_distance += _membership(attack, level, counted)
    total = min(len(train), len(train) if test is None else len(test))
    parts = on_part(by_distance, f"distances between {counted}", size, total, level, counted)
    results = Findings(measures).join(parts)
    if others is not None and held_out is not None:
        pooled = Pooled(len(members), len(others), size)
        signs = distance_signs(near, np.vstack([real, held_out]), metric, rng)
        results.measures += _memory((synthetic, members, others), pooled, signs, level, rng, counted)
    results.frame("distances", _histogram(near), confidential=True)
    return results


def _copies(found: Copies, n: int, h: int | None, counted: Counted) -> Iterator[Measure]:
    yield Measure(
        GROUP,
        "copies_train",
        found.train,
        True,
        f"of {found.synthetic:,} synthetic {counted}, how many equal one of {n:,} training {counted}",
    )
    yield _measure("copies_train_share", found.train_share, f"their share, interval over synthetic {counted}")
    source = f"training {counted} that equal another one"
    if h is not None:
        source = f"held-out {counted} that equal one"
    if found.expected_share is None:
        why = f"not defined: a single training {counted.one} and no held-out one"
        yield Measure(GROUP, "copies_expected_share", None, True, why)
        yield Measure(GROUP, "copies_expected", None, True, why)
    else:
        what = f"share of copies that coincidence explains: {source}"
        yield _measure("copies_expected_share", found.expected_share, what)
        share = found.expected_share
        times = [found.synthetic * end for end in (share.value, share.lower, share.upper)]
        what = f"copies_train to expect of a fresh draw of as many {counted}"
        yield _measure("copies_expected", Estimate(*times), what)
    if found.excess is None or found.size is None:
        for name in ("copies_test", "copies_excess"):
            yield Measure(GROUP, name, None, True, counted.fill(_NO_TEST))
        return
    yield Measure(GROUP, "copies_test", found.test, True, f"as copies_train, of {h:,} held-out {counted}")
    what = (
        f"share of synthetic {counted} that equal one of {found.size:,} training {counted} "
        f"({found.equal_train:.4g}) minus one of as many held-out {counted} ({found.equal_test:.4g}). "
        f"Above 0 is memorisation. {counted.fill(_EXCHANGE)}, and which synthetic {counted} were drawn"
    )
    yield _measure("copies_excess", found.excess, what)


def _distances(near: Closest, level: float, counted: Counted) -> Iterator[Measure]:
    k = len(near.train_synthetic)
    tables = (
        ("train", near.synthetic_train, f"synthetic to nearest of {k:,} training {counted}"),
        ("test", near.synthetic_test, f"synthetic to nearest of {k:,} held-out {counted}"),
        ("holdout", near.test_train, f"held-out to nearest of {k:,} training {counted}, what a new draw has"),
    )
    for suffix, values, between in tables:
        name = f"dcr_median_{suffix}"
        if values is None:
            yield Measure(GROUP, name, None, True, counted.fill(_NO_TEST))
        else:
            yield _measure(name, quantile(values, 0.5, level), f"median distance, {between}")


def _closer(near: Closest, size: int, level: float, rng: np.random.Generator, counted: Counted) -> Measure:
    if near.weights is None:
        return Measure(GROUP, "dcr_closer_to_train", None, True, counted.fill(_NO_TEST))
    what = (
        f"share of synthetic {counted} that are nearest to one of {size:,} training rather than of as many "
        f"held-out {counted}, ties split. 0.5 is best. {counted.fill(_EXCHANGE)}"
    )
    return _measure("dcr_closer_to_train", closer_share(near.weights, size, level, rng=rng), what)


def _membership(attack: Membership | None, level: float, counted: Counted) -> Iterator[Measure]:
    labels = {0.01: "membership_tpr_at_1pct", 0.001: "membership_tpr_at_0.1pct"}
    if attack is None:
        for name in ("membership_auc", "membership_auc_calibrated", *labels.values()):
            yield Measure(GROUP, name, None, True, counted.fill(_NO_TEST))
        return
    who = f"{attack.n_members:,} training against {attack.n_non_members:,} held-out {counted}"
    fixed = f"Interval over real {counted}, the synthetic table held fixed"
    what = f"attack by distance to the nearest synthetic {counted.one}, AUC, {who}. 0.5 is best. {fixed}"
    yield _measure("membership_auc", attack.auc, what)
    what = f"the same, distance compared with that to half of the held-out {counted}. {fixed}"
    if attack.auc_calibrated is None:
        why = f"not defined: two held-out {counted} are needed, one of them for reference"
        yield Measure(GROUP, "membership_auc_calibrated", None, True, why)
    else:
        yield _measure("membership_auc_calibrated", attack.auc_calibrated, what)
    for rate, name in labels.items():
        estimate, chance = attack.tpr[rate], attack.tpr_by_chance[rate]
        if estimate is None or chance is None:
            why = f"not defined: {attack.n_non_members:,} held-out {counted}, {round(1 / rate):,} are needed"
            yield Measure(GROUP, name, None, True, why)
        else:
            what = (
                f"share of training {counted} named where at most {100 * rate:g} % of held-out ones are. "
                f"Chance alone gives up to {chance:.3g} in {100 * level:g} % of tables. Interval over "
                f"training {counted}, the threshold held fixed"
            )
            yield _measure(name, estimate, what)
            what = f"what {name} stays below in {100 * level:g} % of tables without memorisation"
            yield Measure(GROUP, f"{name}_chance", chance, True, what)


def _memory(
    tables: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame],
    pooled: Pooled,
    by_distance: dict[str, Floats],
    level: float,
    rng: np.random.Generator,
    counted: Counted,
) -> Iterator[Measure]:
    """All signs of memorisation, their test, and what an attacker by copies or lone values reaches.

    ``tables`` are the synthetic one and the pooled training and held-out records. The distances are those of
    the first records of both.
    """
    synthetic, train, test = tables
    copies, lone = copy_sign(synthetic, train, test), lone_values(synthetic, train, test)
    what = (
        f"share of training {counted} among those real {counted} whose value in this column nobody else has "
        "and the synthetic table holds. By chance it is 0.5. Intervals are for all columns together"
    )
    for name, estimate in lone_value_shares(lone, pooled, level).items():
        yield _measure(f"lone_values_train[{name}]", estimate, what)
    who = {"copies": copies > 0, "lone_values": np.any([np.zeros(len(copies)), *lone.values()], axis=0)}
    rule = {"copies": "equal a synthetic one", "lone_values": "have such a value in any column"}
    for name, called in who.items():
        what = f"share of training {counted} that {rule[name]}, minus that of held-out ones"
        yield _measure(f"{name}_advantage", named_more_often(called, pooled, level), what)
    signs = {"copies_excess": copies} | {f"lone_values_train[{c}]": w for c, w in lone.items()}
    for name, weights in by_distance.items():
        signs[name] = np.zeros(len(copies))
        signs[name][pooled.part] = weights
    for table, real in (("train", train), ("test", test)):
        what = (
            f"share of synthetic {counted} that equal {table} {counted} one to one, if sizes are made equal"
        )
        yield Measure(GROUP, f"matched_{table}", one_to_one(synthetic, real), True, what)
    found = exchange_p_values(signs, pooled, rng)
    what = f"p-value of all {len(found)} signs of memorisation together, by exchanges of who trained"
    yield Measure(GROUP, "memory_p", min(found.values(), default=1.0), True, what)
    for name, p in found.items():
        yield Measure(GROUP, f"memory_p[{name}]", p, True, "p-value of this sign, valid for all together")


def _histogram(near: Closest) -> Iterator[Row]:
    """Shares of the synthetic and of the held-out records over the distance to a training record."""
    to_train, baseline = near.synthetic_train, near.test_train
    both = to_train if baseline is None else np.concatenate([to_train, baseline])
    edges = np.linspace(0.0, float(both.max()) or 1.0, _BINS + 1)

    for table, values in (("synthetic", to_train), ("test", baseline)):
        if values is not None:
            shares = np.histogram(values, edges)[0] / len(values)
            ends = zip(edges.tolist(), edges[1:].tolist(), shares.tolist(), strict=False)
            for low, high, share in ends:
                yield {"table": table, "space": "euclidean", "lower": low, "upper": high, "share": share}
