"""What a fit buys where nobody says, from public numbers and the noisy count alone."""

from __future__ import annotations

import pytest
from chosen_statistics import marginals_options

from dpsynth import Column, Schema
from dpsynth.privacy import Profile
from dpsynth.synthesis.fit import planned_parts
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.pairwise import Pairwise
from dpsynth.synthesis.parts.part import Parts

SCHEMA = Schema(
    columns=(
        *(Column(name=f"lab{j}", kind="continuous", lower=0, upper=1) for j in range(12)),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    outcome="died",
)


def chosen(n: float, schema: Schema = SCHEMA, **given) -> Parts:
    options = marginals_options(**{"epsilon": 3.0, "delta": 1e-5} | given)
    return options.parts(schema.with_n_public(int(n)), n, 1e-5)


def test_the_rule() -> None:
    """Catches pairwise statistics that are mere noise, or absent, and steps beside a base model."""
    for n, given, pairwise_statistics in [
        (100, {}, False),
        (3000, {}, True),
        (36_000, {}, True),
        (3000, {"epsilon": 0.01, "delta": 1e-5}, False),
        (100, {"epsilon": None}, True),
        (100, {"pairwise_statistics": True}, True),
        (3000, {"pairwise_statistics": False}, False),
        (36_000, {"pairwise_statistics": False}, False),
    ]:
        parts = chosen(n, **given)
        assert (parts.of(Pairwise) is not None) is pairwise_statistics
        assert parts.rest is None


@pytest.mark.parametrize("wanted", [None, True])
def test_two_columns_have_no_moments(wanted) -> None:
    """A share of the budget for pairs that the tables hold already."""
    parts = chosen(9000, SCHEMA.select(["lab0", "died"]), pairwise_statistics=wanted)
    assert parts.of(Pairwise) is None


@pytest.mark.parametrize("n", [40, 1000, 4000, 40_000])
def test_a_private_count_chooses_as_a_public_number_does(n) -> None:
    """Catches statistics that are mere noise, bought only because the number of records is private."""
    options = marginals_options(epsilon=3.0, delta=1e-5)
    parts = options.parts(SCHEMA.with_n_public(None), float(n), 1e-5, 20.0)
    assert [*map(type, parts)] == [*map(type, chosen(n))]
    assert parts.of(Columns).n == n and parts.of(Columns).n_std == 20.0


@pytest.mark.parametrize("given", [{}, {"pairwise_statistics": False}])
def test_a_private_count_moves_no_promise(given) -> None:
    """A total variation, printed in the ledger, that tells on which side of a rule the noisy count fell."""
    options, stages, bought = marginals_options(epsilon=3.0, delta=1e-5, **given), set(), set()
    for n in (40.0, 1000.0, 40_000.0):
        parts = planned_parts(SCHEMA.with_n_public(None), n, options, 20.0, (0.06, 2e-7))
        stage, profile = parts.stage, Profile(parts.events)
        assert 0.98 * stage.epsilon < profile.epsilon(stage.delta) <= stage.epsilon
        assert 0.96 * stage.tv < profile.tv() <= stage.tv
        stages.add((stage.epsilon, stage.delta, stage.tv))
        bought.add(len(parts.events))
    assert stages == {(2.94, 1e-5 - 2e-7, stage.tv)}
    assert len(bought) == (2 if "pairwise_statistics" in given else 3)


def test_wide_tables_have_no_moments() -> None:
    """A default that takes minutes or hours: the products of 40 columns of 10 categories are 80,000."""
    columns = tuple(
        Column(name=f"c{j}", kind="categorical", categories=tuple("abcdefghij")) for j in range(40)
    )
    assert chosen(36_000, Schema(columns=columns)).of(Pairwise) is None
