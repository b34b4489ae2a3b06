"""Time of one critic step: proved bounds and noise, against the same loop without privacy, in one run.

The thesis's critic (12-64-128-256-1) at batch 208 on made-up records. All loops draw their Poisson samples
and latent inputs the same way; they alternate, and medians over the repeats are printed: seconds on the wall,
and of the processor (all threads, the one that draws ahead included), which a loaded machine moves less. Two
of the loops without privacy stand for what a WGAN does anyway to be Lipschitz: a gradient penalty, or the
spectral projection.

    python benchmarks/step_time.py [--repeats 7] [--steps 1000] [--hidden 64,128,256] [--batch 208]
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from dpsynth.mechanism.plan import Plan
from dpsynth.model.wgan.settings import TrainingSettings
from dpsynth.model.wgan.training import Trainer
from dpsynth.table.layout import Layout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--hidden", default="64,128,256")
    parser.add_argument("--batch", type=int, default=208)
    parser.add_argument("--dim", type=int, default=12)
    args = parser.parse_args()
    hidden = tuple(int(h) for h in args.hidden.split(","))
    layout = Layout(n_numeric=args.dim, groups=())
    n = 10 * args.batch
    points = np.random.default_rng(0).random((n, args.dim), dtype=np.float32)

    loops = {}
    for name, constraint, penalty, multiplier, shape in (
        ("without privacy", "none", "none", None, "optimal"),
        ("gradient penalty, without privacy", "none", "data", None, "optimal"),
        ("interval bounds, optimal noise", "none", "none", 1.0, "optimal"),
        ("interval bounds, spherical noise", "none", "none", 1.0, "spherical"),
        ("spectral, without noise", "spectral", "none", None, "optimal"),
        ("spectral, optimal noise", "spectral", "none", 1.0, "optimal"),
    ):
        # Five critic steps for one of the generator, as in the thesis.
        settings = TrainingSettings(
            critic_hidden=hidden,
            generator_hidden=(2 * args.dim, int(1.5 * args.dim)),
            activation="leaky_relu",
            bjorck_steps=0,
            critic_constraint=constraint,
            penalty=penalty,
            critic_steps=5,
            latent=100,
            latent_law="uniform",
            critic_learning_rate=1e-4,
            generator_learning_rate=1e-4,
        )
        plan = Plan(
            sampling_prob=args.batch / n,
            expected_batch=float(args.batch),
            steps=args.steps,
            noise_multiplier=multiplier,
            noise_shape=shape,
        )
        trainer = Trainer(points, layout, settings, plan, bank=None, with_base_model=False)
        start = time.perf_counter()
        trainer.run(np.random.default_rng(1))
        loops[name] = (trainer, time.perf_counter() - start, [], [])
    for _ in range(args.repeats):
        for trainer, _, times, processor in loops.values():
            start, used = time.perf_counter(), time.process_time()
            trainer.run(np.random.default_rng(1))
            times.append((time.perf_counter() - start) / args.steps * 1e3)
            processor.append((time.process_time() - used) / args.steps * 1e3)
    base, base_processor = (np.median(loops["without privacy"][k]) for k in (2, 3))
    rows = {
        name: {
            "median_ms": round(float(np.median(times)), 4),
            "min_ms": round(min(times), 4),
            "max_ms": round(max(times), 4),
            "ratio": round(float(np.median(times) / base), 3),
            "processor_ms": round(float(np.median(processor)), 4),
            "processor_ratio": round(float(np.median(processor) / base_processor), 3),
            "first_call_s": round(first, 2),
        }
        for name, (_, first, times, processor) in loops.items()
    }
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
