"""Tables of known structure have the structure that they claim."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.ground.causal import interaction
from benchmarks.ground.known import is_yes, kept
from benchmarks.ground.parities import WRONG, signs_of
from benchmarks.ground.structures import STRUCTURES
from dpsynth.table.conform import round_frame

PARITIES = [name for name in STRUCTURES if name.startswith(("xor", "parity"))]
CURVES = ["rings", "moons", "bananas"]


def drawn(name: str, n: int = 20_000, seed: int = 1) -> pd.DataFrame:
    return STRUCTURES[name].draw(n, np.random.default_rng(seed))


def shuffled(frame: pd.DataFrame, columns: list[str] | None = None) -> pd.DataFrame:
    """Columns of the same marginals that have nothing to do with each other."""
    rng = np.random.default_rng(3)
    return frame.assign(**{name: rng.permutation(frame[name]) for name in columns or frame.columns})


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_schema_contains_all_draws(name):
    """Bounds that real records are clipped to, digits beyond the declared step, categories never drawn."""
    structure = STRUCTURES[name]
    frame = structure.draw(3000, np.random.default_rng(1))
    schema = structure.schema_of(3000)
    conformed = schema.conform(frame)
    assert not any(conformed.clipped.values()) and schema.n_public == len(frame) == 3000
    pd.testing.assert_frame_equal(round_frame(schema.columns, conformed.frame), conformed.frame)
    for column in schema.columns:
        assert column.is_numeric or set(frame[column.name]) == set(column.categories)
    assert not any(rule.broken(conformed.frame).any() for rule in schema.rules)
    again = structure.draw(3000, np.random.default_rng(1))
    pd.testing.assert_frame_equal(frame, again)
    assert not frame.equals(structure.draw(3000, np.random.default_rng(2)))


@pytest.mark.slow
@pytest.mark.parametrize("name", PARITIES)
def test_a_parity_is_invisible_to_all_smaller_marginals(name):
    """A cause that leans to one side, or a parity that a table of fewer columns shows."""
    frame = drawn(name, 100_000)
    names = [column for column in frame if column.startswith("cause")] + ["outcome"]
    bits = (signs_of(frame, names) > 0).astype(int)

    def p_value(chosen: tuple[int, ...]) -> float:
        cells = np.bincount(bits[:, chosen] @ (1 << np.arange(len(chosen))), minlength=2 ** len(chosen))
        return float(stats.chisquare(cells).pvalue)

    smaller = [c for k in range(1, len(names)) for c in combinations(range(len(names)), k)]
    # at most 254 tests of eight columns; a cell that is off by a tenth of its share is far beyond
    assert min(map(p_value, smaller)) > 1e-6
    assert p_value(tuple(range(len(names)))) < 1e-100
    # the outcome is the parity, but for errors
    odd = bits[:, :-1].sum(axis=1) % 2
    assert np.mean(odd != bits[:, -1]) == pytest.approx(WRONG, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, s in STRUCTURES.items() if s.score and n not in CURVES])
def test_a_score_is_one_for_real_records_and_nothing_for_independent_columns(name):
    """A score that a table of the right marginals has, or that real records lack."""
    frame = drawn(name)
    score = STRUCTURES[name].score
    assert score(frame) == pytest.approx(1.0, abs=0.1)
    assert score(shuffled(frame)) == pytest.approx(0.0, abs=0.1)


def test_what_is_kept_falls_on_both_sides():
    """A structure that is exaggerated scored as if it were right."""
    assert [kept(found, 0.8) for found in (0.8, 0.4, 0.0, 1.2)] == pytest.approx([1.0, 0.5, 0.0, 0.5])


def test_the_causal_table_hides_its_interaction_from_pairs():
    """A variant that goes with the treatment, or a drug that harms everybody."""
    frame = drawn("causal", 40_000)
    assert stats.chi2_contingency(pd.crosstab(frame["carrier"], frame["treated"])).pvalue > 1e-3
    assert interaction(frame) > 1.5
    assert abs(interaction(shuffled(frame, ["carrier"]))) < 0.2
    died = frame.assign(died=is_yes(frame["died"])).groupby(["stage", "carrier", "treated"])["died"].mean()
    change = died.xs("yes", level="treated") - died.xs("no", level="treated")
    assert (change.xs("no", level="carrier") < 0).all() and (change.xs("yes", level="carrier") > 0).all()


@pytest.mark.parametrize("name", CURVES)
def test_means_and_correlations_of_each_class_do_not_make_curves(name):
    """A distance so generous, or curves so dense, that a Gaussian of each class lies on them."""
    frame = drawn(name, 5000)
    score = STRUCTURES[name].score
    assert score(frame) == pytest.approx(1.0, abs=0.02)
    rng = np.random.default_rng(3)
    made = frame.copy()
    numbers = [column for column in frame if column != "outcome"]
    for value, part in frame.groupby("outcome"):
        gaussian = rng.multivariate_normal(part[numbers].mean(), part[numbers].cov(), len(part))
        made.loc[made["outcome"] == value, numbers] = gaussian
    assert score(made) < 0.4
    flipped = frame.assign(outcome=np.where(is_yes(frame["outcome"]), "no", "yes"))
    assert score(flipped) < 0.4  # bananas of the two classes cross
