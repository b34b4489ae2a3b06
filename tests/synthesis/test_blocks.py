"""Work on blocks of records: every record once, whatever the cores."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from dpsynth import parallel as blocks


@pytest.mark.parametrize("n", [0, 1, 2, 9, 1000])
def test_every_record_is_in_one_block(n: int) -> None:
    """Catches a block that is left out, done twice or longer than it may be."""
    done = np.zeros(n, int)

    def work(part: slice, rng: np.random.Generator) -> None:
        assert part.stop - part.start <= 7
        done[part] += 1

    blocks.in_blocks(work, n, 7, np.random.default_rng(0))
    assert (done == 1).all()


def test_results_do_not_depend_on_the_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches blocks or random streams by the number of cores, also of blocks within blocks."""

    def drawn(cores: int) -> np.ndarray:
        monkeypatch.setattr(blocks, "cpu_count", lambda: cores)
        found = np.zeros(200)

        def outer(part: slice, rng: np.random.Generator) -> None:
            def inner(of: slice, own: np.random.Generator) -> None:
                found[part][of] = own.random(of.stop - of.start)

            blocks.in_blocks(inner, part.stop - part.start, 10, rng)

        blocks.in_blocks(outer, 200, 40, np.random.default_rng(0))
        return found

    one = drawn(1)
    assert len(np.unique(one)) == 200
    np.testing.assert_array_equal(drawn(5), one)


def test_blocks_within_a_block_start_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches as many threads as the square of the cores, and more threads of BLAS beside them."""
    monkeypatch.setattr(blocks, "cpu_count", lambda: 2)
    threads, libraries = set(), []

    def outer(part: slice, rng: np.random.Generator) -> None:
        def inner(of: slice, own: np.random.Generator) -> None:
            threads.add(threading.get_ident())
            libraries.extend(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")

        blocks.in_blocks(inner, part.stop - part.start, 2, rng)

    before = threadpool_info()
    blocks.in_blocks(outer, 40, 10, np.random.default_rng(0))
    assert len(threads) <= 2 and threading.get_ident() not in threads
    assert set(libraries) == {1} and threadpool_info() == before


def test_a_block_that_fails_fails_the_whole() -> None:
    """Catches an error of a thread that nobody hears of, and records without values in its place."""

    def work(part: slice, rng: np.random.Generator) -> None:
        if part.start:
            raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        blocks.in_blocks(work, 20, 5, np.random.default_rng(0))
