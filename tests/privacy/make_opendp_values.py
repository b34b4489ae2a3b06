"""Store draws of OpenDP's discrete Gaussian sampler, as a reference that shares no code with this package's.

OpenDP is large and slow for whole tables (17 microseconds a number). It runs in an environment of its own:

    python -m venv opendp && opendp/bin/pip install opendp==0.16.0
    opendp/bin/python tests/privacy/make_opendp_values.py
"""

from __future__ import annotations

import json
from collections import Counter
from importlib.metadata import version
from pathlib import Path

SCALES, DRAWS = (2, 5), 20_000


def main() -> None:
    """Write the counts of the values of each scale, from the least to the greatest."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    counts = {}
    for scale in SCALES:
        drawn = Counter(dp.m.make_gaussian(*space, scale=float(scale))([0] * DRAWS))
        ends = max(map(abs, drawn))
        counts[scale] = [drawn[value] for value in range(-ends, ends + 1)]
    made = {"opendp": version("opendp"), "scales": SCALES, "counts": counts}
    Path(__file__).with_name("opendp_values.json").write_text(json.dumps(made) + "\n")


if __name__ == "__main__":
    main()
