"""What the thesis's noise level amounts to: sigma_dp = 1e-4 with the published bounds.

Trains HealthGAN without noise, takes the published sensitivity of Algorithm 1 at the critic's
weights on the way (interval bounds plus lambda times Theorem 3.1.3 as printed; bounds add, see the modules of
`dpsynth.wgan.theorems`), and composes ``z_t = 2 sigma_dp / Delta_t`` over the thesis's million critic
steps: ``rho = sum 1 / (2 z_t^2)``, ``epsilon <= rho + 2 sqrt(rho log(1 / delta))``, unamplified. The tight
bound of this package stands beside it.

    python benchmarks/thesis_epsilon.py [--data breast_cancer] [--sigma 1e-4] [--steps 2000]
"""

from __future__ import annotations

import argparse
import json
import math

import numpy as np

import dpsynth
from dpsynth.privacy.release import Plan
from dpsynth.synthesis import default_rules
from dpsynth.table.coded import CodedTable
from dpsynth.table.encoder import Encoder
from dpsynth.wgan.networks import unflatten
from dpsynth.wgan.norms import spectral_norm_bound
from dpsynth.wgan.theorems import Domain, gradient_box, penalty_radii, published_penalty_radii
from dpsynth.wgan.training import TrainingRun, TrainingState, initial_state

THESIS_STEPS = 5 * 200_000


def sensitivities(weights: list, domain: Domain, weight: float) -> tuple[float, float, float]:
    """Replace-one sensitivity of the critic term alone, with the published penalty, with the tight one."""
    box = gradient_box(weights, domain)
    spans = [i for pair in zip(box.matrices, box.biases, strict=True) for i in pair if i is not None]
    critic = math.sqrt(sum(float(np.sum((s.hi.numpy() - s.lo.numpy()) ** 2)) for s in spans))
    norms = [spectral_norm_bound(w) for w, _ in weights]
    slope = float(np.prod([float(n) for n in norms]))
    published, tight = (
        math.sqrt(sum(float(r) ** 2 for r in radii))
        for radii in (published_penalty_radii(weights, slope), penalty_radii(weights, norms))
    )
    return critic, critic + 2 * weight * published, critic + 2 * weight * tight


def epsilon(rho: float, delta: float) -> float:
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="breast_cancer")
    parser.add_argument("--sigma", type=float, default=1e-4)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--segments", type=int, default=4)
    args = parser.parse_args()
    train, _ = dpsynth.datasets.train_test(dpsynth.datasets.load(args.data))
    n, rng = train.schema.n_public, np.random.default_rng(0)
    records = CodedTable(train.schema.conform(train.frame).frame)
    encoder = Encoder(train.schema, None)
    settings = default_rules.healthgan(train.schema)
    batch = max(n // 10, 1)
    domain = Domain.from_layout(encoder.layout)
    points = encoder.transform(records, rng)
    per_segment = args.steps // args.segments
    plan = Plan(
        sampling_prob=batch / n, expected_batch=float(batch), steps=per_segment, noise_multiplier=None
    )
    trainer = TrainingRun(points, encoder.layout, settings, plan, bank=None)
    state = initial_state(encoder.layout, settings, rng)
    rows = []
    for segment in range(args.segments + 1):
        weights = unflatten([np.asarray(a) for a in state.arrays["critic"]], output_bias=False)
        critic, published, tight = sensitivities(weights, domain, settings.penalty_weight)
        rows.append(
            {"critic_step": segment * per_segment, "critic": critic, "published": published, "tight": tight}
        )
        if segment < args.segments:
            state = trainer.run(rng, state=TrainingState(state.arrays))
    delta = n**-1.5
    result = {
        "data": args.data,
        "columns": encoder.layout.dim,
        "n": n,
        "delta": delta,
        "sigma_dp": args.sigma,
    }
    result["sensitivity"] = rows
    for name in ("critic", "published", "tight"):
        smallest = min(row[name] for row in rows)  # the figure that is kindest to the thesis
        z = 2 * args.sigma / smallest
        rho = THESIS_STEPS / (2 * z * z)
        result[f"{name}_bound"] = {
            "noise_multiplier": z,
            "rho": rho,
            "epsilon": epsilon(rho, delta),
            "label": "no meaningful guarantee",
        }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
