"""The proving ground's tables by name.

from benchmarks.ground.structures import STRUCTURES
frame = STRUCTURES["xor"].draw(20_000, np.random.default_rng(0))
"""

from __future__ import annotations

from benchmarks.ground.causal import CAUSAL
from benchmarks.ground.curves import BANANAS, MOONS, RINGS
from benchmarks.ground.gaussian import dense, wide
from benchmarks.ground.known import Structure
from benchmarks.ground.parities import parity
from benchmarks.ground.product import PRODUCT

_ALL = (
    parity(1),
    parity(2),
    parity(3),
    parity(4),
    parity(5),
    parity(6),
    parity(7),
    parity(2, numeric=True),
    parity(3, numeric=True),
    PRODUCT,
    dense(10),
    dense(20),
    dense(30),
    dense(50),
    CAUSAL,
    RINGS,
    MOONS,
    BANANAS,
    wide(20),
    wide(50),
    wide(100),
    wide(150),
)

#: by name, in the order of the report
STRUCTURES: dict[str, Structure] = {structure.name: structure for structure in _ALL}
