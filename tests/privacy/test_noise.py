import threading
import time

import numpy as np
import pytest
import randomgen
from scipy import stats

from dpsynth.errors import RunError
from dpsynth.privacy.noise import NoiseStream, secure_generator, standard_normals


def test_normals_are_standard():
    """Catches a wrong scale: the test accepts the right one and rejects 2/3 and 3/2 of it."""
    draws = standard_normals(np.random.default_rng(3), (40, 50)).ravel()
    assert draws.dtype == np.float32
    assert stats.kstest(draws, "norm").pvalue > 0.01
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(wrong * draws, "norm").pvalue < 1e-6


def test_slabs_join_without_seam():
    """Catches a slab that is skipped, repeated or cast wrongly: the stream equals one plain draw."""
    size = 3 * 65536 + 17
    got = standard_normals(np.random.default_rng(8), size)
    want = np.random.default_rng(8).standard_normal(size).astype(np.float32)
    np.testing.assert_array_equal(got, want)
    assert standard_normals(np.random.default_rng(8), 0).size == 0


def test_tails_reach_beyond_six_sigma():
    """Catches draws made in float32: fed the rarest bits, the float64 algorithm goes beyond 9 sigma.

    A draw beyond 6 sigma has probability 2e-9, so the bits that lead to one are handed to NumPy's own
    algorithm (Marsaglia's tail: index 0, beyond the last layer, then two exponentials).
    """
    exponential = int((1.0 - np.exp(-6.0 / 0.2737)) * 2**53) << 11
    bits = iter([0xFFFF_FFFF_FFFF_F000 & ~(1 << 8) & ~0xFF, exponential, 0xFFFF_FFFF_FFFF_FFFF])
    rng = np.random.Generator(randomgen.UserBitGenerator(lambda _: next(bits), 64))
    assert abs(standard_normals(rng, 1)[0]) > 9.0


def test_secure_generators_are_cryptographic_and_differ():
    """Catches a fixed key, and a generator whose output an attacker can continue."""
    first, second = secure_generator(), secure_generator()
    assert type(first.bit_generator).__name__ == "AESCounter"
    assert not (first.integers(0, 2**63, 4) == second.integers(0, 2**63, 4)).any()
    assert stats.kstest(standard_normals(first, 2000), "norm").pvalue > 1e-6


def test_every_bit_of_a_key_is_random():
    """Catches a key of 16 bits, all of which an attacker can try: 64 keys leave no bit as it is."""
    keys = [int(word) for _ in range(64) for word in secure_generator().bit_generator.state["s"]["seed"][:2]]
    for words in (keys[::2], keys[1::2]):
        assert np.bitwise_or.reduce(np.array(words, np.uint64)) == 2**64 - 1
        assert np.bitwise_and.reduce(np.array(words, np.uint64)) == 0


def test_it_is_aes_in_counter_mode():
    """Catches a generator of that name that is something else: its bits are those of the standard's cipher.

    FIPS 197, appendix B has key and plaintext; the counter is set to that plaintext, both little-endian.
    """
    key = int.from_bytes(bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"), "little")
    counter = int.from_bytes(bytes.fromhex("3243f6a8885a308d313198a2e0370734"), "little")
    words = randomgen.AESCounter(key=key, counter=counter).random_raw(16).tobytes()
    assert bytes.fromhex("3925841d02dc09fbdc118597196a0b32") in words


def test_stream_is_the_sequence_of_draws():
    """Catches chunks out of order, lost or repeated."""

    def draw(rng):
        return {"noise": standard_normals(rng, 5), "rows": rng.integers(0, 9, 3)}

    with NoiseStream(draw, np.random.default_rng(4)) as stream:
        got = [next(stream) for _ in range(6)]
    rng = np.random.default_rng(4)
    for chunk in got:
        want = draw(rng)
        np.testing.assert_array_equal(chunk["noise"], want["noise"])
        np.testing.assert_array_equal(chunk["rows"], want["rows"])


def test_draws_ahead_but_not_without_end():
    """Catches a queue without bound (memory), and a stream that draws only when asked (no overlap)."""
    drawn = []
    with NoiseStream(lambda rng: drawn.append(1) or len(drawn), np.random.default_rng(0)) as stream:
        deadline = time.monotonic() + 5
        while len(drawn) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        assert len(drawn) == 2
        assert next(stream) == 1


@pytest.mark.parametrize("count", [0, 1, 5])
def test_no_chunk_is_drawn_beyond_the_last(count):
    """Catches chunks for nobody: a short training drew three times the noise that it used."""
    drawn = []
    with NoiseStream(lambda rng: drawn.append(1) or len(drawn), np.random.default_rng(0), count) as stream:
        assert list(stream) == list(range(1, count + 1))
        assert list(stream) == []
    assert len(drawn) == count


def test_failures_reach_the_reader():
    """Catches a reader that waits for ever for a thread that died."""

    def draw(rng):
        if rng.random() >= 0:
            raise ZeroDivisionError("no more noise")

    with NoiseStream(draw, np.random.default_rng(0)) as stream:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError, match="no more noise"):
                next(stream)


def test_closing_ends_the_thread_whatever_happens():
    """Catches a thread left behind: at once, after a draw, with a full queue, and after an error inside."""
    before = threading.active_count()
    for reads, count in [(reads, count) for reads in range(3) for count in (None, 2, 3, 4)]:
        with NoiseStream(lambda rng: rng.random(3), np.random.default_rng(0), count) as stream:
            for _ in range(reads):
                next(stream)
    with (
        pytest.raises(KeyError),
        NoiseStream(lambda rng: rng.random(3), np.random.default_rng(0)) as stream,
    ):
        next(stream)
        raise KeyError("interrupted")
    assert threading.active_count() == before


def test_refuses_use_outside_its_block():
    """Catches a stream that would wait for ever before it is opened or after it is closed."""
    stream = NoiseStream(lambda rng: rng.random(), np.random.default_rng(0))
    with pytest.raises(RunError, match="not open"):
        next(stream)
    with stream:
        next(stream)
    with pytest.raises(RunError, match="not open"):
        next(stream)
    with pytest.raises(RunError, match="once"), stream:
        pass
