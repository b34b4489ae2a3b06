"""Proved bounds of the critic's gradient against clipping: noise, distance of critics, utility, time, memory.

    python -m benchmarks.bounds_against_clipping

Each result is one line of benchmarks/results/bounds_against_clipping.jsonl. The command measures what is not
there yet. Then it updates the page of the same name: its figure, its table and the numbers in the section
"What the numbers say". All text of the page is written by hand.
"""

from __future__ import annotations

import json
import multiprocessing
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import tensorflow as tf
from sklearn.metrics import roc_auc_score

import dpsynth
from benchmarks.peers.tables import split
from dpsynth.evaluation.models import CLASSIFIERS, known_outcomes, learn_and_predict
from dpsynth.privacy import EpsilonTarget, Plan, calibrate_training
from dpsynth.report.plots import COLOURS, DASHES, line, panels, plain_ticks, save_figure, styled
from dpsynth.synthesis.generators import options_of, unfitted
from dpsynth.synthesis.model import independent_points
from dpsynth.table.coded import CodedTable
from dpsynth.wgan import Domain, algorithm, gradient_bounds, training
from dpsynth.wgan.algorithm import State, Step, critic_pass, squared_gradient_norms, weighted_gradient
from dpsynth.wgan.networks import ArrayOps, Weights, flatten, generator_pass, unflatten
from dpsynth.wgan.settings import TrainingSettings
from dpsynth.wgan.theorems import LayerBounds, allocate, layer_radii

PAGE = Path(__file__).parent / "results" / "bounds_against_clipping.md"
#: what is measured in the page's text: decimals, megabytes, and counts of seeds
NUMBER = re.compile(r"[+-]?\d+\.\d+|\de-\d+|[\d,]+(?= MB)|\d(?= of \d seeds)")
TABLES, EPSILON, STEPS = ("flchain", "support2"), 3.0, 500
WIDTHS, BATCHES = (16, 32, 64, 128), ("208", "quarter", "full")
RATES, CLIPS = (1e-2, 3e-3), (1.0, 3.0, 6.0)
TUNED_ON, JUDGED_ON = (100, 101, 102), (0, 1, 2)
#: critic steps after which noise and signal are read, and the start and length of the runs that are compared
READ_AT, START_AT, APART = (0, 100, 300), 100, 100
#: batches and widths of which steps are timed, and those of which noise is read, with a critic
COSTS = (("full", 32), ("208", 32), ("full", 128))
CELLS = [(*cell, "spectral") for cell in (*COSTS, ("full", 16), ("full", 64), ("quarter", 32))]
FREE = ("full", 32, "unconstrained")
#: the package's critic, and that of Pedersen (2022) without a constraint, with a penalty at public points
OTHER = {"activation": "leaky_relu", "critic_constraint": "none", "penalty": "public"}
CRITICS: dict[str, Any] = {"spectral": {}, "unconstrained": OTHER | {"critic_learning_rate": 1e-3}}


class BoxesAlone(algorithm.ProvedScales):
    """Noise scales from the bounds of the gradient's components alone."""

    def __call__(self, weights: Weights) -> tuple[list[Any], list[Any]]:
        domain, settings = Domain.from_layout(self.layout), self.settings
        bounds = gradient_bounds(weights, domain, activation=settings.activation, slope=settings.slope)
        return allocate(bounds, self.noise_shape)


class ConstantsAlone(algorithm.ProvedScales):
    """Noise scales from Lipschitz constants alone (Béthune et al. 2024), optimally split between layers."""

    def __call__(self, weights: Weights) -> tuple[list[Any], list[Any]]:
        radii = layer_radii(weights, self.norms(weights), Domain.from_layout(self.layout))
        shapes = [tuple(tuple(a.shape) for a in pair if a is not None) for pair in weights]
        balls = [LayerBounds(s, None, None, r) for s, r in zip(shapes, radii, strict=True)]
        return allocate(balls, self.noise_shape)


class RecordsAlone(Step):
    """A step that clips the gradients of records and leaves those of generated points as they are."""

    def coefficients(self, *rows: Any) -> Any:
        unclipped, n = replace(self, settings=replace(self.settings, clip_norm=None)), rows[-1].shape[0]
        both = [Step.coefficients(step, *rows) for step in (self, unclipped)]
        return tf.concat([both[0][:n], both[1][n:]], axis=0)


class PerRow(Step):
    """A step that forms the gradient of every row, as DP-SGD libraries do, and clips it."""

    def coefficients(self, *rows: Any) -> Any:
        return Step.coefficients(replace(self, settings=replace(self.settings, clip_norm=None)), *rows)

    def sum_of_gradients(self, weights: Weights, inputs: list[Any], *rows: Any) -> list[Any]:
        def gradient(row: Any) -> list[Any]:
            flat = [tf.identity(a) for a in flatten(weights)]
            with tf.GradientTape() as tape:
                tape.watch(flat)
                score = critic_pass(unflatten(flat, output_bias=False), row[None], self.activation)[0][0]
            return tape.gradient(score, flat)

        each = tf.vectorized_map(gradient, inputs[0])
        norms = sum(tf.reduce_sum(g * g, axis=list(range(1, len(g.shape)))) for g in each)
        shortened = tf.minimum(1.0, self.settings.clip_norm / tf.sqrt(norms + 1e-12))
        kept = rows[1] * tf.cast(shortened, tf.float64)
        return [tf.tensordot(kept, tf.cast(g, tf.float64), axes=1) for g in each]


class Arm(NamedTuple):
    """A way to make a step private: its name in the table and in the figure, and what it consists of."""

    name: str
    short: str
    shape: str = "spherical"
    clips: tuple[float | None, ...] = (None,)
    bounds: type[algorithm.ProvedScales] = algorithm.ProvedScales
    step: type[Step] = Step


ARMS = {
    "box": Arm("boxes alone, optimal noise", "boxes alone", "optimal", bounds=BoxesAlone),
    "best": Arm("box or ball of each layer, optimal noise", "box or ball, optimal", "optimal"),
    "sphere": Arm("box or ball of each layer, spherical noise", "box or ball, spherical"),
    "constant": Arm("Lipschitz constants alone", "Lipschitz constants", "layerwise", bounds=ConstantsAlone),
    "clip": Arm("per-record clipping", "clipping", clips=CLIPS),
    "records": Arm("clipping of records alone", "records alone", clips=(1.0,), step=RecordsAlone),
    "each": Arm("clipping, a gradient for every row", "a gradient for every row", clips=(1.0,), step=PerRow),
    "none": Arm("no noise, no privacy", "no noise", "optimal"),
}
COMPARED = ("box", "best", "sphere", "constant", "clip")
#: noise of "constant" is that of "best" on this critic, as the page shows, so it has no fits of its own
FITTED = ("box", "best", "sphere", "clip", "records", "none")
#: in results of time and memory "plain" is the arm "none"
TIMED = ("plain", "best", "sphere", "constant", "clip", "each")
#: arm and clip norm by the name in results of noise
VARIANTS = {k if c is None else f"{k} {c:g}": (ARMS[k], c) for k in COMPARED for c in ARMS[k].clips}


@contextmanager
def parts_of(bounds: type[algorithm.ProvedScales], step: type[Step]) -> Iterator[None]:
    """Have training runs take these bounds and this step in place of the package's own."""
    with mock.patch.object(training, "Step", step), mock.patch.object(algorithm, "ProvedScales", bounds):
        yield


@cache
def encoded(table: str) -> tuple[np.ndarray, Any, np.ndarray]:
    """Training records as points, by the encoder of an ordinary private fit, and public points."""
    options = {"epsilon": EPSILON, "random_state": 0}
    options["statistics"] = {"base_model": "tree", "pairwise_statistics": False}
    train, _ = split(table)
    fitted = unfitted(options_of(**options)).fit(train.frame, schema=train.schema)
    encoder = fitted.model_.encoder
    public = independent_points(encoder, 10_000, np.random.default_rng(0))
    return encoder.transform(CodedTable(train.frame), np.random.default_rng(0)), encoder.layout, public


@cache
def plan_of(table: str, batch: str, shape: str = "optimal", noisy: bool = True) -> Plan:
    """The critic steps alone, at the whole of epsilon and the table's default delta."""
    n = len(split(table)[0].frame)
    q = {"208": 208, "quarter": n // 4, "full": n}[batch] / n
    z = calibrate_training(EpsilonTarget(EPSILON, n**-1.5), q, STEPS) if noisy else None
    return Plan(sampling_prob=q, expected_batch=q * n, steps=STEPS, noise_multiplier=z, noise_shape=shape)


def passed(arrays: State, points: np.ndarray, step: Step, critic: State | None = None) -> tuple[Any, ...]:
    """A critic's weights, and its pass over all records and as many points of the generator."""
    generator = unflatten([np.asarray(a) for a in arrays["generator"]], output_bias=True)
    latent = np.random.default_rng(2).standard_normal((len(points), 32), dtype=np.float32)
    made = generator_pass(generator, latent, step.layout, ArrayOps)
    rows = tf.constant((np.concatenate([points, made]) - step.layout.center).astype(np.float32))
    weights = unflatten([tf.constant(a) for a in (critic or arrays)["critic"]], output_bias=False)
    return weights, *critic_pass(weights, rows, step.activation)


def noise(table: str, batch: str, width: int, critic: str) -> dict[str, Any]:
    """Noise and mean gradient of each arm along a critic's path without noise, and how far noise moves it."""
    points, layout, public = encoded(table)
    settings, n = TrainingSettings(critic_hidden=(width, width), **CRITICS[critic]), len(points)
    plan, plain = plan_of(table, batch), plan_of(table, batch, noisy=False)
    path = training.TrainingRun(points, layout, settings, plain, bank=public)
    state = training.initial_state(layout, settings, np.random.default_rng(0))
    state.arrays["critic"] = [np.asarray(a) for a in path.step.constrain(state.arrays["critic"])]
    rng, readings, distances = np.random.default_rng(1), {}, None
    for steps in READ_AT:
        path.n_steps = steps // settings.critic_steps
        if steps:
            state = path.run(rng, state=state)
        weights, _, inputs, deltas = passed(state.arrays, points, path.step)
        norms = np.sqrt(squared_gradient_norms(inputs, deltas, weights).numpy())
        sign = np.repeat([-1.0 / n, 1.0 / n], n).astype(np.float32)
        arms = {}
        for label, (arm, clip) in VARIANTS.items():
            kept = sign * np.minimum(1.0, (clip or np.inf) / norms).astype(np.float32)
            mean = weighted_gradient(inputs, deltas, tf.constant(kept), weights)
            with parts_of(arm.bounds, Step):
                scales = training.noise_scales(layout, settings, replace(plan, noise_shape=arm.shape))
            stds = [np.float64(clip)] * len(mean) if clip else scales(weights)[1]
            every = [np.broadcast_to(s, g.shape).ravel() for s, g in zip(stds, mean, strict=True)]
            std = plan.noise_multiplier / plan.expected_batch * np.concatenate(every).astype(float)
            arms[label] = {
                "total": float(np.linalg.norm(std)),
                "signal": float(np.sqrt(sum(np.sum(g.numpy() ** 2) for g in mean))),
                "std": [float(std.min()), float(np.median(std)), float(std.max())],
            }
        norm = {"norm_least": float(norms.min()), "norm_largest": float(norms[:n].max())}
        readings[str(steps)] = norm | {"arms": arms}
        if steps == START_AT and (critic, width) == ("spectral", 32):
            distances = apart(state.arrays, table, batch, settings)
    scale = {"batch": plan.expected_batch, "multiplier": plan.noise_multiplier}
    return scale | {"at": readings, "apart": distances}


def apart(start: State, table: str, batch: str, settings: TrainingSettings) -> dict[str, Any]:
    """Correlation of the changes of scores after steps with noise, with those of the same steps without."""
    points, layout, _ = encoded(table)
    data = tf.constant(points - layout.center.astype(np.float32))

    def changes(arm: Arm, clip: float | None, noisy: bool = True) -> list[np.ndarray]:
        own, plan = replace(settings, clip_norm=clip, critic_steps=1), plan_of(table, batch, arm.shape)
        shapes = {"n_records": len(points), "n_bank": 0, "n_steps": APART}
        with parts_of(arm.bounds, Step):
            step = training.build_step(layout, own, plan, in_graph=False, **shapes)
        step = step if noisy else replace(step, noise_scales=None)  # the same samples

        @tf.function(autograph=False)
        def advance(state: State, chunk: dict[str, Any], limit: tf.Tensor) -> State:
            def body(i: Any, state: State) -> tuple[Any, State]:
                gradient = step.noisy_gradient(state, data, data[:1], chunk, i, 0)[0]
                return i + 1, step.updated_critic(state, gradient)

            return tf.while_loop(lambda i, _: i < limit, body, (tf.constant(0), state))[1]

        scores = [passed(start, points, step)[1].numpy().astype(float)]
        for seed in (10, 11, 12):
            rng, state = np.random.default_rng(seed), tf.nest.map_structure(tf.constant, start)
            for done in range(0, APART, step.draws.shapes.steps):
                chunk = {name: tf.constant(a) for name, a in step.draws.draw(rng).items()}
                chunk["noise_multiplier"] = tf.constant(plan.noise_multiplier, tf.float32)
                state = advance(state, chunk, tf.constant(min(step.draws.shapes.steps, APART - done)))
            scores.append(passed(start, points, step, state)[1].numpy().astype(float))
        return [after - scores[0] for after in scores[1:]]

    truth = changes(ARMS["box"], None, noisy=False)
    distances = {name: zip(changes(*arm), truth, strict=True) for name, arm in VARIANTS.items()}
    return {n: [{"change": float(np.corrcoef(pair)[0, 1])} for pair in d] for n, d in distances.items()}


def mean_auc(made: Any, table: str, rng: np.random.Generator) -> float:
    """Mean AUC on held-out records of three classifiers that learn from a table."""
    train, test = split(table)
    known, y = known_outcomes(test.frame, train.schema, train.schema.outcome)
    learned = learn_and_predict(made, known, train.schema, train.schema.outcome, models=CLASSIFIERS, rng=rng)
    return float(np.mean([roc_auc_score(y, p.predicted[:, 1]) for p in learned.predictions.values()]))


def real(table: str) -> dict[str, Any]:
    return {"auc": mean_auc(split(table)[0].frame, table, np.random.default_rng(0))}


def fit(key: str, table: str, seed: int, rate: float, clip: float | None) -> dict[str, Any]:
    """Utility of one synthetic table of the WGAN alone."""
    arm, (train, _), rng = ARMS[key], split(table), np.random.default_rng(0)
    settings = TrainingSettings(clip_norm=clip, critic_learning_rate=rate)
    options = {"training": settings, "noise_shape": arm.shape}
    options |= {"steps": STEPS, "batch_size": len(train.frame), "random_state": seed}
    with parts_of(arm.bounds, arm.step):
        model = dpsynth.DPWGANGP(None if key == "none" else EPSILON, **options)
        made = model.fit(train.frame, schema=train.schema).sample(len(train.frame), random_state=seed)
    return {"auc": mean_auc(made, table, rng)}


def trainer_of(key: str, table: str, batch: str, width: int, steps: int) -> training.TrainingRun:
    (points, layout, _), arm = encoded(table), ARMS["none" if key == "plain" else key]
    settings = TrainingSettings(clip_norm=arm.clips[0], critic_hidden=(width, width))
    plan = replace(plan_of(table, batch, arm.shape, key != "plain"), steps=steps)
    with parts_of(arm.bounds, arm.step):
        return training.TrainingRun(points, layout, settings, plan, bank=None)


def cost(table: str, batch: str, width: int) -> dict[str, Any]:
    """Milliseconds a critic step, wall and processor, of every arm in turn. The first repeat compiles."""
    steps = {key: (2 if key == "each" else 20) * (5 if batch == "208" else 1) for key in TIMED}
    loops = {key: trainer_of(key, table, batch, width, n) for key, n in steps.items()}
    taken: dict[str, list[tuple[float, float]]] = {key: [] for key in TIMED}
    for _, (key, trainer) in product(range(4), loops.items()):
        began, used = time.perf_counter(), time.process_time()
        trainer.run(np.random.default_rng(1))
        taken[key].append((time.perf_counter() - began, time.process_time() - used))
    medians = {key: np.median(seconds[1:], axis=0) / steps[key] * 1e3 for key, seconds in taken.items()}
    return {key: {"wall": float(wall), "processor": float(used)} for key, (wall, used) in medians.items()}


def memory(table: str, batch: str, width: int, key: str) -> dict[str, Any]:
    """Peak memory of a process of its own that trains for a few steps."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return {"peak_mb": pool.apply(peak, (table, batch, width, key))}


def peak(table: str, batch: str, width: int, key: str) -> float:
    trainer_of(key, table, batch, width, 4).run(np.random.default_rng(1))
    # The peak of getrusage is inherited from the process that started this one.
    return int(Path("/proc/self/status").read_text("utf-8").split("VmHWM:")[1].split()[0]) / 1024


class Results(dict[tuple[Any, ...], dict[str, Any]]):
    """Results by task, and the numbers of the page."""

    def tuned(self, key: str) -> tuple[float, float, float | None]:
        """Highest mean AUC over both tables, with its learning rate and clip norm."""
        tasks, settings = list(product(TABLES, TUNED_ON)), product(RATES, ARMS[key].clips)
        return max((np.mean([self["fit", key, *t, *how]["auc"] for t in tasks]), *how) for how in settings)

    def chosen(self, key: str) -> tuple[float, float | None]:
        """Learning rate and clip norm. Without noise they are those of boxes alone."""
        return self.tuned("box" if key == "none" else key)[1:]

    def variant(self, key: str) -> str:
        """Name of an arm in results of noise, with the clip norm that it chose."""
        return f"clip {self.chosen('clip')[1]:g}" if key == "clip" else key

    def noise(self, key: str, table: str, batch: str, width: int) -> dict[str, Any]:
        """Noise and signal, and the total noise over the norm of the mean gradient."""
        found = self["noise", table, batch, width, "spectral"]["at"][str(START_AT)]["arms"][self.variant(key)]
        return found | {"ratio": found["total"] / found["signal"]}

    def far(self, key: str, table: str, batch: str) -> float:
        """Correlation of changes, the mean over the seeds of the noise."""
        distances = self["noise", table, batch, 32, "spectral"]["apart"][self.variant(key)]
        return float(np.mean([one["change"] for one in distances]))

    def fits(self, what: str, key: str, table: str) -> list[float]:
        return [self["fit", key, table, seed, *self.chosen(key)][what] for seed in JUDGED_ON]

    def cost(self, key: str, batch: str, width: int, clock: str = "processor") -> float:
        """Milliseconds a step; NaN for an arm that is not timed."""
        return self["cost", "support2", batch, width].get(key, {}).get(clock, np.nan)


def tasks(found: Results) -> Iterator[tuple[Any, ...]]:
    """What is to be measured, in order. Later tasks may depend on earlier results."""
    for t, key in product(TABLES, FITTED[:-1]):
        yield from (("fit", key, t, s, *how) for how in product(RATES, ARMS[key].clips) for s in TUNED_ON)
    yield from (("real", table) for table in TABLES)
    yield from (("noise", table, *cell) for cell, table in product((*CELLS, FREE), TABLES))
    for table, seed, key in product(TABLES, JUDGED_ON, FITTED):
        yield "fit", key, table, seed, *found.chosen(key)
    yield from (("cost", "support2", *cell) for cell in COSTS)
    yield from (("memory", "support2", "full", 128, key) for key in TIMED)


def table_of(found: Results) -> str:
    """Rows of the one table: one for each arm and data set."""
    rows = []
    for table, (key, arm) in product(TABLES, ARMS.items()):
        setting, distances, utility, costs = "", [""] * 3, "", [""] * 3
        if key in COMPARED:
            full, small = (found.noise(key, table, batch, 32) for batch in ("full", "208"))
            far = (f"{found.far(key, table, batch):.2f}" for batch in ("full", "208"))
            stds = "{1:.4f} ({0:.4f} to {2:.4f})".format(*full["std"])
            distances = [stds, f"{full['ratio']:.2f}, {small['ratio']:.2f}", ", ".join(far)]
        if key in FITTED:
            setting = ", ".join(f"{value:g}" for value in found.chosen(key) if value is not None)
            aucs = found.fits("auc", key, table)
            utility = f"{np.median(aucs):.3f} ({min(aucs):.3f} to {max(aucs):.3f})"
        timed = "plain" if key == "none" else key
        if timed in TIMED and table == "support2":
            clocks = [[found.cost(timed, b, 32, c) for c in ("processor", "wall")] for b in ("full", "208")]
            mb = found["memory", "support2", "full", 128, timed]["peak_mb"]
            costs = [f"{used:.2f} ({wall:.2f})" for used, wall in clocks] + [f"{mb:.0f}"]
        if any((*distances, utility, *costs)):
            rows.append(f"| {' | '.join([table, arm.name, setting, *distances, utility, *costs])} |\n")
    return "".join(rows)


def figure(found: Results) -> None:
    """Noise by width and batch, distance of critics, utility and time, drawn beside the page."""
    colours, dots = dict(zip((*COMPARED, "each"), COLOURS, strict=False)), {"marker": "o", "markersize": 3}
    sizes = [round(found["noise", "support2", batch, 32, "spectral"]["batch"]) for batch in BATCHES]
    with styled():
        drawn, axes = panels(2, 3, width=3.1, height=2.6)
        for number, key in enumerate(COMPARED):
            look = dots | line(number)
            label = ARMS[key].short + (f" at {found.chosen(key)[1]:g}" if key == "clip" else "")
            by_width = [found.noise(key, "support2", "full", width)["ratio"] for width in WIDTHS]
            by_batch = [found.noise(key, "support2", batch, 32)["ratio"] for batch in BATCHES]
            axes[0].plot(WIDTHS, by_width, label=label, **look)
            axes[1].plot(sizes, by_batch, **look)
            axes[2].plot(sizes, [found.far(key, "support2", batch) for batch in BATCHES], **look)
        for key, dash in zip(("plain", *COMPARED, "each"), DASHES, strict=True):
            label = {"plain": "no privacy", "each": ARMS["each"].short}.get(key)
            values, colour = [found.cost(key, "full", w) for w in (32, 128)], colours.get(key, "#000000")
            axes[3].plot((32, 128), values, label=label, color=colour, linestyle=dash, **dots)
        for axis, table in zip(axes[4:], TABLES, strict=True):
            for place, key in enumerate(FITTED):
                values, colour = found.fits("auc", key, table), colours.get(key, "#000000")
                axis.plot(values, [place] * len(values), "o", color=colour, markersize=4)
            axis.axvline(found["real", table]["auc"], color="black", linestyle=":", linewidth=1)
            rows = [ARMS[k].short.replace("optimal", "opt.").replace("spherical", "sph.") for k in FITTED]
            axis.set_yticks(range(len(FITTED)), rows)
            axis.set_ylim(len(FITTED) - 0.5, -0.5)
            axis.set(title=f"{table}: AUC (dotted: real)", xlabel="mean AUC of three classifiers")
        axes[0].set(title="support2, full batch", xlabel="critic width", ylabel="noise / signal")
        axes[1].set(title="support2, width 32", xlabel="batch", ylabel="noise / signal")
        axes[2].set(title="support2, width 32", xlabel="batch", ylabel="correlation of changes")
        axes[3].set(title="support2, full batch", xlabel="critic width", ylabel="processor ms a step")
        for axis in (axes[0], axes[1], axes[3]):
            axis.set_yscale("log")
            low, high = axis.get_ylim()
            axis.set_yticks([t for t in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if low <= t <= high])
            axis.set_ylim(low, high)
            plain_ticks(axis.yaxis)
        for axis, ticks in zip(axes[:4], (WIDTHS, sizes, sizes, (32, 128)), strict=True):
            axis.set_xscale("log")
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            axis.minorticks_off()
        handles = [*axes[0].get_legend_handles_labels()[0], *axes[3].get_legend_handles_labels()[0]]
        drawn.legend(handles=handles, loc="outside lower center", ncols=4)
    save_figure(drawn, PAGE.with_suffix(".svg"), "Proved bounds against clipping")


def numbers(found: Results) -> Iterator[str]:
    """Yield the numbers of the section "What the numbers say", in the order of its text."""
    slack = [found["noise", table, "full", 32, "spectral"] for table in TABLES]
    clip, full = found.variant("clip"), [("full", width, "spectral") for width in WIDTHS]

    def over(arm: str, other: str, *cells: tuple[Any, ...], relative: bool = False) -> list[float]:
        """Noise of an arm over that of another in cells of both tables, by signal if ``relative``."""
        runs = [r["arms"] for t, c in product(TABLES, cells) for r in found["noise", t, *c]["at"].values()]
        pairs = [(arms[arm], arms[other]) for arms in runs]
        return [a["total"] / b["total"] * (b["signal"] / a["signal"]) ** relative for a, b in pairs]

    def ends(quotients: list[float], digits: int = 2) -> list[str]:
        return [f"{end:.{digits}f}" for end in (min(quotients), max(quotients))]

    def times(key: str) -> list[str]:
        return [f"{found.cost(key, *cell) / found.cost('best', *cell):.2f}" for cell in COSTS]

    yield from ends(over("box", "constant", *CELLS), 1)
    yield f"{max(abs(quotient - 1.0) for quotient in over('best', 'constant', *CELLS)):.0e}"
    yield from (*ends(over("best", "constant", FREE)), *ends(over("clip 3", "best", FREE, relative=True)))
    yield from (f"{np.mean(over('best', 'sphere', cell)):.2f}" for cell in full)
    yield from (f"{np.mean(over(clip, 'best', cell, relative=True)):.2f}" for cell in full)
    for key, batch in product(("best", "sphere", "box", "clip"), BATCHES):
        yield f"{np.mean([found.far(key, table, batch) for table in TABLES]):.2f}"
    for norms in (one["at"][str(START_AT)] for one in slack):
        yield from (f"{norms['norm_least']:.2f}", f"{norms['norm_largest']:.2f}")
    for one in slack:
        yield f"{one['at'][str(START_AT)]['arms']['sphere']['std'][1] * one['batch'] / one['multiplier']:.2f}"
    for key, table in product(("best", "sphere", "box", "clip", "none"), TABLES):
        yield f"{np.median(found.fits('auc', key, table)):.3f}"
    yield from (f"{found['real', table]['auc']:.3f}" for table in TABLES)
    for key, table in product(("clip", "sphere"), TABLES):
        gaps = np.subtract(found.fits("auc", "best", table), found.fits("auc", key, table))
        yield from (f"{gaps.mean():+.3f}", str((gaps > 0).sum()))
    yield from (f"{found.tuned(key)[0]:.3f}" for key in ("clip", "best"))
    yield from (f"{np.median(found.fits('auc', 'records', table)):.3f}" for table in TABLES)
    yield from (*times("clip"), *times("each"))
    for key in ("plain", "best", "clip", "each"):
        yield f"{found['memory', 'support2', 'full', 128, key]['peak_mb']:,.0f}"
    yield times("clip")[0]
    for batch in BATCHES:
        yield f"{np.mean(over(clip, 'best', (batch, 32, 'spectral'), relative=True)):.2f}"


def main() -> None:
    rows = PAGE.with_suffix(".jsonl")
    kept = map(json.loads, rows.read_text("utf-8").splitlines())
    found = Results({tuple(row["task"]): row["found"] for row in kept})
    for task in tasks(found):
        if task not in found:
            print(*task, file=sys.stderr, flush=True)
            found[task] = globals()[task[0]](*task[1:])
            with rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"task": task, "found": found[task]}) + "\n")
    figure(found)
    before, heading, text = PAGE.read_text("utf-8").partition("## What the numbers say\n")
    section, image, after = text.partition("![")
    values, places = list(numbers(found)), NUMBER.findall(section)
    if len(places) != len(values):
        sys.exit(f"{PAGE}: the findings have {len(places)} numbers. Change `numbers`: it has {len(values)}")
    section = NUMBER.sub(lambda _: values.pop(0), section)
    after = re.sub(r"(?<=:\|\n)(\|.*\n)+", table_of(found), after)
    PAGE.write_text(before + heading + section + image + after, encoding="utf-8")


if __name__ == "__main__":
    main()
