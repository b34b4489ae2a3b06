"""Time of a critic step, with privacy and without, in one run.

    python benchmarks/step_time.py [--repeats 9] [--steps 500]           # the default critics
    python benchmarks/step_time.py --hidden 64,128,256 --batch 208       # one critic, ways to bound it
    python benchmarks/step_time.py --host        # work of the host for a step on a GPU

Default critics are those that the rules choose for 4,000 and 36,000 records, and that of HealthGAN
for 2,085. *Plain* is the same program without bounds and noise: the same constraint, penalty and
batch. *Bare* has no constraint and no penalty either.

Records are made up. All loops draw their Poisson samples and latent inputs the same way, and take turns.
Medians over the repeats are printed: milliseconds by the clock, and of the processor (all threads, the one
that draws ahead included), which a loaded machine moves less.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field, replace

import numpy as np

from dpsynth.privacy.noise import secure_generator
from dpsynth.privacy.release import Plan
from dpsynth.synthesis import default_rules
from dpsynth.table import Column, Schema
from dpsynth.table.encoder import Layout
from dpsynth.wgan.settings import TrainingSettings
from dpsynth.wgan.training import TrainingRun, build_step

#: public number of records, name and noise shape of each default critic
DEFAULTS = ((4_000, "default", "optimal"), (36_000, "default", "optimal"), (2_085, "healthgan", "layerwise"))


@dataclass
class Loop:
    """Runs of one training on made-up records. ``shape`` is that of its noise, None for no privacy."""

    settings: TrainingSettings
    shape: str | None
    n: int
    batch: int
    dim: int
    steps: int
    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.steps -= self.steps % self.settings.critic_steps
        plan = Plan(
            sampling_prob=self.batch / self.n,
            expected_batch=float(self.batch),
            steps=self.steps,
            noise_multiplier=None if self.shape is None else 1.0,
            noise_shape=self.shape or "spherical",
        )
        points = np.random.default_rng(0).random((self.n, self.dim), dtype=np.float32)
        layout = Layout(self.dim)
        bank = points if self.settings.penalty == "public" else None
        self.trainer = TrainingRun(points, layout, self.settings, plan, bank=bank)
        start = time.perf_counter()
        self.trainer.run(np.random.default_rng(1))
        self.first_call = time.perf_counter() - start

    def time(self) -> None:
        """Run once more and keep the milliseconds of a critic step."""
        start, used = time.perf_counter(), time.process_time()
        self.trainer.run(np.random.default_rng(1))
        self.clock.append((time.perf_counter() - start) / self.steps * 1e3)
        self.processor.append((time.process_time() - used) / self.steps * 1e3)


def take_turns(loops: list[Loop], repeats: int) -> list[Loop]:
    """The loops, timed so many times."""
    for _ in range(repeats):
        for loop in loops:
            loop.time()
    return loops


def of_default_critics(steps: int, repeats: int) -> None:
    """Print a table of the default critics."""
    numbers = Schema(columns=[Column(name=f"x{i}", kind="continuous", lower=0, upper=1) for i in range(12)])
    print("| critic | records | batch | bare, ms | plain, ms | private, ms | clock | processor |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for n, name, shape in DEFAULTS:
        settings = default_rules.healthgan(numbers) if name == "healthgan" else TrainingSettings()
        bare = replace(settings, critic_constraint="none", bjorck_steps=0, penalty="none")
        batch = n // 10 if name == "healthgan" else min(n // 4, 2_048)
        arms = ((bare, None), (settings, None), (settings, shape))
        loops = take_turns([Loop(*arm, n, batch, len(numbers), steps) for arm in arms], repeats)
        clock = [float(np.median(loop.clock)) for loop in loops]
        _, plain, private = (float(np.median(loop.processor)) for loop in loops)
        cells = [name, *map(str, settings.critic_hidden)]
        cells = ["-".join(cells), f"{n:,}", f"{batch:,}", *(f"{ms:.2f}" for ms in clock)]
        cells += [f"{clock[2] / clock[1]:.2f} ×", f"{private / plain:.2f} ×"]
        print("|", " | ".join(cells), "|", flush=True)


def of_one_critic(hidden: str, batch: int, dim: int, steps: int, repeats: int) -> None:
    """Print JSON. Two loops without privacy stand for what a WGAN does to be Lipschitz anyway."""
    # Five critic steps for one of the generator, as in the thesis.
    base = TrainingSettings(
        critic_hidden=tuple(int(width) for width in hidden.split(",")),
        generator_hidden=(2 * dim, int(1.5 * dim)),
        activation="leaky_relu",
        bjorck_steps=0,
        critic_constraint="none",
        penalty="none",
        critic_steps=5,
        latent=100,
        latent_law="uniform",
        critic_learning_rate=1e-4,
        generator_learning_rate=1e-4,
    )
    penalty, spectral = replace(base, penalty="data"), replace(base, critic_constraint="spectral")
    arms = {
        "without privacy": (base, None),
        "gradient penalty, without privacy": (penalty, None),
        "interval bounds, optimal noise": (base, "optimal"),
        "interval bounds, spherical noise": (base, "spherical"),
        "spectral, without noise": (spectral, None),
        "spectral, optimal noise": (spectral, "optimal"),
    }
    loops = {name: Loop(*arm, 10 * batch, batch, dim, steps) for name, arm in arms.items()}
    first, *_ = take_turns(list(loops.values()), repeats)
    rows = {
        name: {
            "median_ms": round(float(np.median(loop.clock)), 4),
            "min_ms": round(min(loop.clock), 4),
            "max_ms": round(max(loop.clock), 4),
            "ratio": round(float(np.median(loop.clock) / np.median(first.clock)), 3),
            "processor_ms": round(float(np.median(loop.processor)), 4),
            "processor_ratio": round(float(np.median(loop.processor) / np.median(first.processor)), 3),
            "first_call_s": round(loop.first_call, 2),
        }
        for name, loop in loops.items()
    }
    print(json.dumps(rows, indent=1))


def of_the_host(repeats: int) -> None:
    """Print a table: what the host draws for a step where the noise is made on a GPU, samples and seeds."""
    print("| batch | records | host, ms of the processor |")
    print("|---:|---:|---:|")
    for batch in (2_048, 65_536):
        for n in (10_000, 100_000, 1_000_000, 10_000_000):
            if batch > n:
                continue
            plan = Plan(sampling_prob=batch / n, expected_batch=float(batch), steps=2, noise_multiplier=1.0)
            step = build_step(
                Layout(12),
                TrainingSettings(critic_steps=2, penalty="none"),
                plan,
                n_records=n,
                n_bank=0,
                in_graph=True,
                n_steps=1,
            )
            rng, times = secure_generator(), []
            for _ in range(20 * repeats + 1):
                used = time.process_time()
                step.draws.draw(rng)
                times.append((time.process_time() - used) / 2 * 1e3)
            print(f"| {batch:,} | {n:,} | {np.median(times[1:]):.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--hidden", help="widths of one critic, instead of the default critics")
    parser.add_argument("--batch", type=int, default=208)
    parser.add_argument("--dim", type=int, default=12)
    parser.add_argument("--host", action="store_true", help="what the host draws")
    given = parser.parse_args()
    if given.host:
        of_the_host(given.repeats)
    elif given.hidden:
        of_one_critic(given.hidden, given.batch, given.dim, given.steps, given.repeats)
    else:
        of_default_critics(given.steps, given.repeats)


if __name__ == "__main__":
    main()
