"""Time of a critic step on a GPU against the processor, at several batches and widths.

    python benchmarks/gpu.py                      # TensorFlow: the processor, and the GPU where there is one
    python benchmarks/gpu.py --export FOLDER      # the compiled programs and their inputs, for JAX
    python benchmarks/gpu.py --jax FOLDER         # where JAX has a GPU and TensorFlow is not installed

Batches 208, 2,048 and 32,768, critics of three hidden layers of 128, 512 and 2,048 (--batch, --width); 64
numeric columns, spectral projection, optimal noise; the generator takes one step for two of the critic. On
the processor NumPy draws the noise ahead, on an accelerator the program draws it in float64. The first call
compiles and is not counted. Prints JSON lines, one a case, then tables of milliseconds a step, and ends with
what could not be measured here.

A GPU machine without TensorFlow runs the same program: TensorFlow hands out the HLO that it compiles, JAX
turns it into StableHLO and compiles that for its first device. ``--export`` needs no GPU and ``--jax`` no
dpsynth. Arrays of more than 10,000 real numbers are not written: both sides draw them from the same seeds.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

COLUMNS, STEPS = 64, 20
LARGE = 10_000


def trainer_of(batch: int, width: int, *, in_graph: bool, steps: int = STEPS):
    """A training run on made-up records."""
    from dpsynth.privacy.release import Plan
    from dpsynth.table.encoder import Layout
    from dpsynth.wgan.settings import TrainingSettings
    from dpsynth.wgan.training import TrainingRun

    rng = np.random.default_rng(0)
    points = rng.random((4 * batch, COLUMNS), dtype=np.float32)
    settings = TrainingSettings(critic_hidden=(width,) * 3, generator_hidden=(width, width))
    plan = Plan(sampling_prob=0.25, expected_batch=float(batch), steps=steps, noise_multiplier=1.0)
    return TrainingRun(points, Layout(COLUMNS), settings, plan, bank=None, in_graph=in_graph)


def arguments_of(trainer) -> tuple:
    """What the compiled loop is called with, for one chunk."""
    import tensorflow as tf

    from dpsynth.wgan.training import initial_state

    rng = np.random.default_rng(1)
    state = initial_state(trainer.layout, trainer.settings, rng)
    chunk = {name: tf.constant(a) for name, a in trainer.step.draws.draw(rng).items()}
    chunk["noise_multiplier"] = tf.constant(trainer.noise_multiplier, tf.float32)
    arrays = tf.nest.map_structure(tf.constant, state.arrays)
    return arrays, trainer._data, trainer._bank, chunk, tf.constant(trainer.step.draws.shapes.steps)


def in_tensorflow(batch: int, width: int, device: str, repeats: int) -> dict[str, object]:
    """Milliseconds of a critic step, the drawing included."""
    import tensorflow as tf

    with tf.device(device):
        trainer = trainer_of(batch, width, in_graph="GPU" in device)
        start = time.perf_counter()
        trainer.run(np.random.default_rng(1))
        first, times = time.perf_counter() - start, []
        for _ in range(repeats):
            start = time.perf_counter()
            trainer.run(np.random.default_rng(1))
            times.append((time.perf_counter() - start) / STEPS * 1e3)
    return {"device": device, "ms": float(np.median(times)), "first_call_s": first}


def export(folder: Path, batch: int, width: int) -> None:
    """Write the program's HLO, its inputs in order, and the outputs of this machine's processor."""
    import tensorflow as tf

    trainer = trainer_of(batch, width, in_graph=True)
    arguments = arguments_of(trainer)
    program = trainer._loop.experimental_get_compiler_ir(*arguments)(stage="hlo_serialized")
    flat = [a.numpy() for a in tf.nest.flatten(arguments)]
    drawn = {
        i: [list(a.shape), *spread(a)] for i, a in enumerate(flat) if a.size > LARGE and a.dtype == np.float32
    }
    inputs = [uniform(i, *drawn[i]) if i in drawn else a for i, a in enumerate(flat)]
    done = trainer._loop(*tf.nest.pack_sequence_as(arguments, [tf.constant(a) for a in inputs]))
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{batch}x{width}"
    (folder / f"{stem}.hlo").write_bytes(program)
    np.savez(folder / f"{stem}-in.npz", **{str(i): a for i, a in enumerate(flat) if i not in drawn})
    np.savez(folder / f"{stem}-out.npz", *(some(a.numpy()) for a in tf.nest.flatten(done)))
    steps = trainer.step.draws.shapes.steps * trainer.settings.critic_steps
    record = {"batch": batch, "width": width, "steps": steps, "inputs": len(flat), "drawn": drawn}
    (folder / f"{stem}.json").write_text(json.dumps(record))


def spread(array: np.ndarray) -> tuple[float, float]:
    """The bounds of a uniform distribution with an array's mean and standard deviation."""
    middle, half = float(array.mean()), float(array.std()) * 3**0.5
    return middle - half, middle + half


def uniform(seed: int, shape: list[int], low: float, high: float) -> np.ndarray:
    """An array in float32 that every machine draws alike."""
    return (low + (high - low) * np.random.default_rng(seed).random(shape)).astype(np.float32)


def some(array: np.ndarray) -> np.ndarray:
    """At most a thousand or so numbers of an output, evenly spaced, to be compared."""
    return array.reshape(-1)[:: max(array.size // 1_000, 1)]


def in_jax(folder: Path, stem: str, repeats: int) -> dict[str, object]:
    """Milliseconds of a critic step of an exported program, and how far its outputs lie from TensorFlow's."""
    import jax
    from jax.extend.mlir import ir
    from jaxlib import xla_client

    record = json.loads((folder / f"{stem}.json").read_text())
    drawn = {int(i): of for i, of in record.pop("drawn").items()}
    device = jax.devices()[0]
    jax.config.update("jax_enable_x64", True)  # noise is drawn in float64
    text = xla_client._xla.mlir.hlo_to_stablehlo((folder / f"{stem}.hlo").read_bytes())
    with jax._src.interpreters.mlir.make_ir_context() as context:
        module = ir.Module.parse(text, context)
        devices = xla_client.DeviceList((device,))
        loaded = device.client.compile_and_load(module, devices, xla_client.CompileOptions())
    with np.load(folder / f"{stem}-in.npz") as kept:
        arrays = [uniform(i, *drawn[i]) if i in drawn else kept[str(i)] for i in range(record.pop("inputs"))]
    inputs = [jax.device_put(a, device) for a in arrays]

    def call() -> list[jax.Array]:
        return [a.block_until_ready() for a in loaded.execute(inputs)]

    found, times = [some(np.asarray(a)) for a in call()], []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) / record["steps"] * 1e3)
    with np.load(folder / f"{stem}-out.npz") as kept:
        off = max(float(np.abs(a - kept[f"arr_{i}"]).max(initial=0)) for i, a in enumerate(found))
    return record | {"device": f"JAX {device}", "ms": float(np.median(times)), "largest_difference": off}


def tables(found: list[dict[str, object]]) -> str:
    """Milliseconds of a critic step against batch and width, a table for each device."""
    import pandas as pd

    frame = pd.DataFrame(found)
    parts = [
        f"{device}: milliseconds by batch (rows) and width (columns)\n"
        + part.pivot_table(index="batch", columns="width", values="ms").round(3).to_string()
        for device, part in frame.groupby("device")
    ]
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, nargs="+", default=[208, 2048, 32768])
    parser.add_argument("--width", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--export", type=Path, help="write programs and inputs here")
    parser.add_argument("--jax", type=Path, help="run what --export wrote here")
    given = parser.parse_args()
    cases = [(batch, width) for batch in given.batch for width in given.width]
    found = []

    def keep(record: dict[str, object]) -> None:
        print(json.dumps(record), flush=True)
        found.append(record)

    if given.jax:
        for batch, width in cases:
            keep(in_jax(given.jax, f"{batch}x{width}", given.repeats))
        print(tables(found))
        return
    if given.export:
        for batch, width in cases:
            export(given.export, batch, width)
        return
    import tensorflow as tf

    gpus = [gpu.name.removeprefix("/physical_device:") for gpu in tf.config.list_physical_devices("GPU")]
    for batch, width in cases:
        for device in ("/CPU:0", *(f"/{gpu}" for gpu in gpus[:1])):
            keep({"batch": batch, "width": width} | in_tensorflow(batch, width, device, given.repeats))
    print(tables(found))
    if not gpus:
        print("no GPU that TensorFlow can use: the processor alone was timed, and the script stands ready")


if __name__ == "__main__":
    main()
