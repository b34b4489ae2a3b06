import numpy as np
import pytest

from dpsynth.table.draws import draw_conditional


@pytest.mark.parametrize("even", [True, False])
def test_each_record_has_its_groups_law(even):
    """A draw from another group's distribution, or a biased one; one record's law, over many calls."""
    rng = np.random.default_rng(0)
    tables = np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 5.0], [2.0, 1.0, 1.0]])
    groups = np.array([2, 0, 1, 0, 2, 2, 0])
    draws = np.array([draw_conditional(tables, groups, rng, even=even) for _ in range(4000)])
    for row, group in enumerate(groups):
        law = np.bincount(draws[:, row], minlength=3) / 4000
        assert law == pytest.approx(tables[group] / tables[group].sum(), abs=0.04)


def test_even_draws_have_even_counts():
    """Counts of a group that differ from their expectation by more than rounding allows."""
    rng = np.random.default_rng(1)
    tables = rng.random((40, 6))
    groups = rng.integers(0, 40, 20_000)
    drawn = draw_conditional(tables, groups, rng)
    counts = np.zeros((40, 6))
    np.add.at(counts, (groups, drawn), 1)
    expected = counts.sum(1, keepdims=True) * tables / tables.sum(1, keepdims=True)
    assert np.abs(counts - expected).max() <= 2
    plain = draw_conditional(tables, groups, rng, even=False)
    rough = np.zeros((40, 6))
    np.add.at(rough, (groups, plain), 1)
    assert np.abs(rough - expected).max() > 5


def test_order_of_records_carries_nothing():
    """Even draws that come out sorted: neighbours in the frame must be unrelated."""
    rng = np.random.default_rng(2)
    drawn = draw_conditional(np.ones((1, 50)), np.zeros(5000, dtype=int), rng)
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.06


def test_edges():
    """No records, one entry, a group without weight, or an entry without weight that is drawn."""
    rng = np.random.default_rng(3)
    assert len(draw_conditional(np.ones((2, 3)), np.zeros(0, dtype=int), rng)) == 0
    assert draw_conditional(np.ones((1, 1)), np.zeros(4, dtype=int), rng).tolist() == [0] * 4
    assert set(draw_conditional(np.zeros((1, 2)), np.zeros(10, dtype=int), rng)) == {0, 1}
    assert set(draw_conditional([[0.0, 1.0, 0.0, 1.0, 0.0]], np.zeros(1000, dtype=int), rng)) == {1, 3}
