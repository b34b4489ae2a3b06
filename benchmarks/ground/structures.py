"""Tables with a known structure, by name.

from benchmarks.ground.structures import STRUCTURES
frame = STRUCTURES["xor"].draw(20_000, np.random.default_rng(0))
"""

from __future__ import annotations

from benchmarks.ground.causal import CAUSAL
from benchmarks.ground.curves import BANANAS, MOONS, RINGS
from benchmarks.ground.known import Structure
from benchmarks.ground.parities import parity

_ALL = (
    *(parity(causes) for causes in range(1, 7)),
    parity(2, numeric=True),
    CAUSAL,
    RINGS,
    MOONS,
    BANANAS,
)

#: by name, in the order of the report
STRUCTURES: dict[str, Structure] = {structure.name: structure for structure in _ALL}
