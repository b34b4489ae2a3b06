"""Write replace_one_values.json: sampled Gaussians under replace-one, by a dp_accounting that knows them.

Run it in an environment of its own with ``pip install dp-accounting==0.6.0``, which this package's own
dependencies do not allow beside TensorFlow Privacy:

    python tests/privacy/make_replace_one_values.py > tests/privacy/replace_one_values.json
"""

import importlib.metadata
import json

from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution

SETTINGS = [
    (1.1, 256 / 60000, 3525),
    (1.1, 256 / 60000, 1),
    (0.5, 0.1, 1),
    (0.5, 0.1, 10),
    (2.0, 0.5, 50),
    (1.0, 0.01, 1000),
    (0.3, 0.001, 20),
]


def values(z: float, q: float, steps: int) -> dict[str, float]:
    pld = privacy_loss_distribution.from_gaussian_mechanism(
        z,
        sampling_prob=q,
        value_discretization_interval=1e-4 if steps < 100 else 2e-5,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    ).self_compose(steps)
    return {
        "noise_multiplier": z,
        "sampling_prob": q,
        "steps": steps,
        "tv": float(pld.get_delta_for_epsilon(0.0)),
        "delta_at_half": float(pld.get_delta_for_epsilon(0.5)),
        "epsilon_at_1e-5": float(pld.get_epsilon_for_delta(1e-5)),
    }


if __name__ == "__main__":
    record = {
        "made_with": {"dp-accounting": importlib.metadata.version("dp-accounting")},
        "values": [values(*setting) for setting in SETTINGS],
    }
    print(json.dumps(record, indent=2))
