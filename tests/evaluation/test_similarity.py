"""The whole comparison: names, what is released, baselines, and tables that leave little to compare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from compared import conformed

import dpsynth.evaluation.associations as pairs
import dpsynth.evaluation.discriminator as discriminator
from dpsynth.errors import InputError
from dpsynth.evaluation.associations import correlation_errors
from dpsynth.evaluation.resemblance import cell_counts, similarity
from dpsynth.evaluation.results import Evaluation, Findings, Measure
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import sampled
from dpsynth.report.quality import _associations
from dpsynth.report.run_report import RunReport
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=99, unit="years"),
        Column(name="lab", kind="continuous", lower=0.1, upper=50, scale="log", missing=True),
        Column(name="grade", kind="ordinal", categories=("lo", "mid", "hi")),
        Column(name="site", kind="categorical", categories=("A", "B", "C", "D"), missing=True),
        Column(name="dead", kind="binary", categories=(0, 1)),
    )
)


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the classifier small: what it sees is tested elsewhere."""
    full = discriminator._boosting

    def small(nominal: list[bool], seed: int) -> Any:
        return full(nominal, seed).set_params(max_iter=10)

    monkeypatch.setattr(discriminator, "_boosting", small)


def table(rng: np.random.Generator, n: int) -> pd.DataFrame:
    age = rng.integers(20, 90, n)
    lab = np.exp(rng.normal(age / 50, 0.5)).clip(0.1, 50)
    frame = pd.DataFrame({"age": age, "lab": np.where(rng.random(n) < 0.1, np.nan, lab)})
    frame["grade"] = rng.choice(["lo", "mid", "hi"], n)
    frame["site"] = rng.choice(np.array(["A", "B", "C", None], dtype=object), n, p=[0.6, 0.29, 0.01, 0.1])
    frame["dead"] = (rng.random(n) < age / 120).astype(int)
    return SCHEMA.conform(frame).frame


def compared(
    made: pd.DataFrame,
    train: pd.DataFrame,
    test: pd.DataFrame | None,
    schema: Schema = SCHEMA,
    *,
    rng: np.random.Generator,
    raw: pd.DataFrame | None = None,
    **options: object,
) -> Findings:
    return similarity(conformed(made, train, test, schema, raw), Settings.of(**options), rng)


def named(found: Findings) -> dict[str, Measure]:
    return {measure.name: measure for measure in found.measures}


def test_numbers_so_far_are_kept_and_baselines_stand_beside() -> None:
    """Would catch a measure that changes its value or its name."""
    rng = np.random.default_rng(0)
    made, train, test = table(rng, 300), table(rng, 400), table(rng, 200)
    found = named(compared(made, train, test, rng=rng))

    def distances(other: pd.DataFrame) -> dict[str, float]:
        shares = {
            c.name: [n / n.sum() for n in cell_counts(train[c.name], other[c.name], c)]
            for c in SCHEMA.columns
        }
        return {name: 0.5 * float(np.abs(p - q).sum()) for name, (p, q) in shares.items()}

    assert found["correlation_error"].value == correlation_errors(train, [made], SCHEMA)[0].value
    assert found["correlation_error_baseline"].value == correlation_errors(train, [test], SCHEMA)[0].value
    for name, value in distances(made).items():
        assert found[f"tvd[{name}]"].value == pytest.approx(value)
    assert found["tvd_mean"].value == pytest.approx(np.mean(list(distances(made).values())))
    assert found["tvd_mean_baseline"].value == pytest.approx(np.mean(list(distances(test).values())))
    # the same distribution: the distance is about what chance gives
    assert found["tvd_mean"].value == pytest.approx(found["tvd_mean_chance"].value, rel=0.5)
    assert found["association_error"].value < 0.15
    baselines = {name for name in found if name.endswith("_baseline")}
    assert {name.split("_baseline")[0] for name in baselines} == {
        "tvd_mean",
        "correlation_error",
        "association_error",
        "association_lost",
        "range_coverage",
    }
    assert found["category_coverage"].value >= 7 / 8 and found["category_coverage_chance"].value > 0.95


def test_what_is_released_needs_no_real_record() -> None:
    """Would catch any released number that changes with the real tables, their sizes or the seed."""
    rng = np.random.default_rng(1)
    made = table(rng, 100)
    rules = ["age < 80 or dead == 1"]
    one = compared(made, table(rng, 150), None, SCHEMA, rng=rng, constraints=rules, raw=made)
    other = compared(made, table(rng, 40), table(rng, 30), SCHEMA, rng=rng, constraints=rules, raw=made)
    released = [Evaluation(r.measures, {}, r.details).released() for r in (one, other)]
    assert released[0] == released[1]
    assert {m.name for m in released[0].measures} == {
        "missing_rate_synthetic[lab]",
        "missing_rate_synthetic[site]",
        "values_off_step",
        "rows_left_out",
        "values_outside",
        "values_undeclared",
        "values_missing",
        "constraint_violations_synthetic[age < 80 or dead == 1]",
    }
    assert set(released[0].details) == {"association", "marginal"}
    assert all(set(frame["table"]) == {"synthetic"} for frame in released[0].details.values())
    assert set(released[0].details["marginal"]["column"]) == set(SCHEMA.names)
    share = made["age"].ge(80) & made["dead"].eq(0)
    assert released[0]["constraint_violations_synthetic[age < 80 or dead == 1]"].value == share.mean()


def test_shuffled_columns_are_caught_as_useless() -> None:
    """Would catch a comparison of columns one by one: they are perfect here."""
    rng = np.random.default_rng(2)
    train = table(rng, 400)
    made = SCHEMA.conform(pd.DataFrame({c: rng.permutation(train[c].to_numpy()) for c in SCHEMA.names})).frame
    result = compared(made, train, table(rng, 400), SCHEMA, rng=rng)
    found = named(result)
    assert found["tvd_mean"].value == 0.0
    assert found["association_error"].value > 2 * found["association_error_baseline"].value


@pytest.mark.parametrize("n", [1, 2, 4, 20])
def test_small_constant_and_missing_tables_give_clear_results(n: int) -> None:
    """Would catch a warning, a traceback, NaN in JSON or a name given twice."""
    rng = np.random.default_rng(n)
    odd = table(rng, n)
    odd["lab"], odd["age"], odd["dead"] = np.nan, 50, 1
    for made, train, test in (
        (odd, table(rng, n), table(rng, n)),
        (table(rng, n), odd, None),
        (odd, odd, odd),
    ):
        result = compared(made, train, test, SCHEMA, rng=rng, constraints=["age < 9", "age < 9"])
        Evaluation(result.measures, {}, result.details).to_json()
        found = named(result)
        for measure in result.measures:
            assert measure.value is not None or "not defined" in measure.detail or "none" in measure.detail
        assert ("discriminator_auc" in found) == (n < 5)


@pytest.mark.parametrize("column", SCHEMA.columns, ids=lambda column: column.name)
def test_one_column(column: Column) -> None:
    """Would catch a mean over no pair, or over no column of categories."""
    schema = Schema(columns=(column,))
    rng = np.random.default_rng(3)
    frames = [table(rng, n)[[column.name]] for n in (40, 50, 30)]
    result = compared(*frames, schema, rng=rng)
    Evaluation(result.measures, {}, result.details).to_json()
    found = named(result)
    assert found["association_error"].value is None
    assert found["tvd_mean"].value == found[f"tvd[{column.name}]"].value


def test_settings_are_checked_and_progress_ends() -> None:
    """Would catch a rule that is read only after minutes of work, or a bar that never fills."""
    rng = np.random.default_rng(4)
    frame = table(rng, 30)
    seen: list[float] = []
    similarity(conformed(frame, frame, None, SCHEMA), Settings(), rng, seen.append)
    assert seen == sorted(seen) and 0 < seen[-1] <= 1.0
    with pytest.raises(InputError, match="'pulse' is not a column"):
        compared(frame, frame, None, SCHEMA, rng=rng, constraints=["pulse < 3"])


def test_the_schemas_own_rules_and_formulas_are_checked() -> None:
    """Would catch a table of another tool whose broken rules or wrong formula nobody is told of."""
    columns = (
        Column(name="x", kind="integer", lower=0, upper=9),
        Column(name="y", kind="integer", lower=0, upper=18, derived="2 * x"),
    )
    schema = Schema(columns=columns, constraints=("x < 5",))
    made = schema.conform(pd.DataFrame({"x": [1, 2, 3, 9], "y": [2, 4, 9, 18]})).frame
    real = schema.conform(pd.DataFrame({"x": [1, 2, 3, 4]})).frame
    rng = np.random.default_rng(0)
    found = compared(made, real, None, schema, rng=rng, constraints=["x > 1"], raw=made[["x"]])
    values = {m.name: (m.value, m.internal) for m in found.measures if "constraint" in m.name}
    assert values == {
        "constraint_violations_synthetic[x < 5]": (0.25, False),
        "constraint_violations_train[x < 5]": (0.0, True),
        "constraint_violations_synthetic[x > 1]": (0.25, False),
        "constraint_violations_train[x > 1]": (0.25, True),
        "constraint_violations_synthetic[y = 2 * x]": (0.25, False),
        "constraint_violations_train[y = 2 * x]": (0.0, True),
    }


@pytest.mark.slow
def test_many_columns_are_compared_by_a_part_of_their_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch all pairs of any table, or a part where all were asked for.

    And columns that are chosen by real records, since the names of some may be shared.
    """
    monkeypatch.setattr(pairs, "ALL_PAIRS", 4)
    monkeypatch.setattr(pairs, "_MOST", 3)
    rng = np.random.default_rng(0)
    made, train = table(rng, 200), table(rng, 200)
    found = compared(made, train, None, rng=np.random.default_rng(1))
    for n in (60, 90, 120, 150):
        other = compared(made, table(rng, n), table(rng, 80), rng=np.random.default_rng(1))
        made_of = [
            [row for row in each.details["association"] if row["table"] == "synthetic"]
            for each in (found, other)
        ]
        assert made_of[0] == made_of[1] and made_of[0]
    parts = found.details["parts"]
    assert [(part["used"], part["total"], part["unit"]) for part in parts] == [(4, 10, "pairs of columns")]
    assert "a random 4 of 10 pairs of columns" in named(found)["association_error"].detail
    assert "parts" not in compared(made, train, None, rng=rng, records="all").details
    (sentence,) = sampled(Evaluation((), details=found.details))
    assert sentence.startswith("Comparing associations used a random 4 of 10 pairs of columns. This adds a")
    page = "".join(
        str(block) for block in _associations(RunReport(evaluation=Evaluation((), details=found.details)))
    )
    assert "The heat maps show 3 of 5 columns, chosen at random." in page
