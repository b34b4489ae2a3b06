"""Which steps, delta and accountant give the noise levels of Jia's figure 4? The paper prints only the noise.

Jia 2023, "Total variation distance privacy", section 5.2: DP-SGD on MNIST in batches of 300, with noise for
which no membership attack is more accurate than 0.8, 0.7, 0.6 or 0.55: 1.4, 2.0, 3.7, 7 by DP, and 0.7, 0.8,
1.4, 2.4 by TVD privacy. For every number of epochs this script computes the least noise for each accuracy:

- DP: accuracy (e^epsilon + delta) / (1 + e^epsilon) (eq. 1), epsilon at delta from Renyi divergences at the
  orders of TensorFlow Privacy's tutorial, converted the old way (Mironov 2017) or the new way (Canonne et al.
  2020, as in dp_accounting), or from the exact curve;
- TVD: accuracy 1/2 + alpha / 2, alpha by Pinsker from the steps times the larger KL divergence (the paper and
  its MATLAB code), from the smaller one, by Bretagnolle and Huber, or exactly, delta(0).

Noise is in units of the clipping norm C, as in the tutorial, which adds it to the sum over microbatches:
add/remove one record. Under replace one the sum moves by 2 C and all noise doubles.

    python benchmarks/jia_figure4.py [--epochs 200] [--records 60000] [--batch 300] [--every 10] [--no-exact]

A number is marked n where it rounds to the printed one, u where it does so upwards; misfit is the largest
absolute logarithm of the ratio to the printed number.
"""

from __future__ import annotations

import argparse
import itertools
import math

import numpy as np
from dp_accounting.rdp import RdpAccountant
from scipy.interpolate import PchipInterpolator
from scipy.special import logsumexp

from dpsynth.attacks.tv_bounds import sampled_gaussian_kl
from dpsynth.privacy import Profile
from dpsynth.privacy.events import training_event

ACCURACIES = (0.8, 0.7, 0.6, 0.55)
PRINTED = {"DP": ("1.4", "2.0", "3.7", "7"), "TVD": ("0.7", "0.8", "1.4", "2.4")}
DELTAS = {"delta 1e-5": 1e-5, "delta 1e-6": 1e-6, "delta 1/n": None}
ORDERS = np.array([1 + x / 10 for x in range(1, 100)] + list(range(12, 64)))  # of the tutorial
NOISES = np.geomspace(0.3, 20.0, 500)
LADDER = 250 * 2 ** np.arange(9)  # steps at which the exact curve is computed

Levels = dict[str, np.ndarray]  # by method: least noise, accuracies by epochs


def kind_of(method: str) -> str:
    return method.partition(",")[0]


def epsilon_for(accuracy: float, delta: float) -> float:
    return math.log((accuracy - delta) / (1 - accuracy))  # eq. 1, solved for epsilon


def renyi(noise: float, q: float) -> np.ndarray:
    """Renyi divergence of one step at each order, by the trapezoidal rule."""
    t = np.arange(-12 * noise, ORDERS[-1] + 12 * noise, min(noise, 1.0) / 10)
    loss = np.logaddexp(math.log1p(-q), math.log(q) + (2 * t - 1) / (2 * noise * noise))
    density = -t * t / (2 * noise * noise) - math.log(noise * math.sqrt(2 * math.pi))
    moments = logsumexp(ORDERS[:, None] * loss + density, axis=1) + math.log(t[1] - t[0])
    return np.maximum(moments, 0.0) / (ORDERS - 1)


def least_noise(steps: np.ndarray, most_steps: np.ndarray) -> np.ndarray:
    """Noise that allows just so many steps, from the most steps that each of NOISES allows."""
    use = most_steps > 0
    if not np.any(use):
        return np.full(len(steps), math.nan)
    x, y = np.log(most_steps[use]), np.log(NOISES[use])
    return np.exp(np.interp(np.log(steps), x, y, left=math.nan, right=math.nan))


def closed_form_levels(steps: np.ndarray, q: float, n: int) -> Levels:
    kls = [sampled_gaussian_kl(noise, q) for noise in NOISES]
    larger, smaller = np.array([max(kl) for kl in kls]), np.array([min(kl) for kl in kls])
    table = np.array([renyi(noise, q) for noise in NOISES])
    levels: Levels = {}
    for (name, delta), accuracy in itertools.product(DELTAS.items(), ACCURACIES):
        delta = delta or 1 / n
        epsilon = epsilon_for(accuracy, delta)
        # what each order leaves for steps * divergence
        old = epsilon + np.log(delta) / (ORDERS - 1)
        new = epsilon - np.log1p(-1 / ORDERS) + np.log(delta * ORDERS) / (ORDERS - 1)
        for conversion, room in (("old", old), ("new", new)):
            found = least_noise(steps, (room / table).max(axis=1))
            levels.setdefault(f"DP, Renyi {conversion}, {name}", []).append(found)
    for accuracy in ACCURACIES:
        square = (2 * accuracy - 1) ** 2
        for name, kl, total in (
            ("TVD, Pinsker", larger, 2 * square),
            ("TVD, Pinsker with the smaller KL", smaller, 2 * square),
            ("TVD, Bretagnolle-Huber", larger, -math.log1p(-square)),
        ):
            levels.setdefault(name, []).append(least_noise(steps, total / kl))
    return {name: np.array(rows) for name, rows in levels.items()}


def exact_levels(steps: np.ndarray, q: float, n: int) -> Levels:
    """The same from exact curves, interpolated: log steps in log delta, then log noise in log steps."""
    levels: Levels = {}
    for (kind, span), (i, accuracy) in itertools.product(
        {"DP": (0.6, 2.0), "TVD": (0.5, 1.8)}.items(), enumerate(ACCURACIES)
    ):
        noises = float(PRINTED[kind][i]) * np.geomspace(*span, 9)
        wanted = {f"DP, exact, {name}": delta or 1 / n for name, delta in DELTAS.items()}
        if kind == "TVD":
            wanted = {"TVD, exact": 2 * accuracy - 1}
        most = {name: np.full(len(noises), math.nan) for name in wanted}
        for j, noise in enumerate(noises):
            profiles = [Profile([training_event(noise, q, int(count))]) for count in LADDER]
            for name, delta in wanted.items():
                epsilon = epsilon_for(accuracy, delta) if kind == "DP" else 0.0
                curve = np.log([max(profile.delta(epsilon), 1e-12) for profile in profiles])
                use = np.diff(curve, prepend=-math.inf) > 0
                if curve[0] < math.log(delta) < curve[-1]:
                    most[name][j] = PchipInterpolator(curve[use], np.log(LADDER[use]))(math.log(delta))
        for name, counts in most.items():
            use = np.isfinite(counts)
            noise_of = PchipInterpolator(counts[use], np.log(noises[use]), extrapolate=False)
            levels.setdefault(name, []).append(np.exp(noise_of(np.log(steps))))
    return {name: np.array(rows) for name, rows in levels.items()}


def marks(noise: float, printed: str) -> str:
    unit = 10.0 ** -len(printed.partition(".")[2])
    units, target = noise / unit, round(float(printed) / unit)
    return ("n" if abs(units - target) <= 0.5 else "") + ("u" if target - 1 < units <= target else "")


def hits(noises: np.ndarray, printed: tuple[str, ...], rounding: str) -> int:
    return sum(rounding in marks(v, p) for v, p in zip(noises, printed, strict=True))


def misfit(noises: np.ndarray, printed: tuple[str, ...]) -> float:
    return float(np.max(np.abs(np.log(noises / np.array(printed, dtype=float)))))


def show(name: str, noises: np.ndarray, printed: tuple[str, ...]) -> None:
    cells = "  ".join(f"{v:7.3f} {marks(v, p):<2}" for v, p in zip(noises, printed, strict=True))
    print(f"  {name:<48} {cells}  misfit {misfit(noises, printed):.3f}")


def best_epochs(levels: Levels, methods: tuple[str, ...], factor: float) -> tuple[int, float, int] | None:
    """Minus the numbers reproduced by the better rounding, the misfit, and the index of the epochs."""
    found = []
    for j in range(levels[methods[0]].shape[1]):
        pairs = [(factor * levels[method][:, j], PRINTED[kind_of(method)]) for method in methods]
        if all(np.all(np.isfinite(noises)) for noises, _ in pairs):
            number = max(sum(hits(v, p, rounding) for v, p in pairs) for rounding in "nu")
            found.append((-number, max(misfit(v, p) for v, p in pairs), j))
    return min(found, default=None)


def show_best(levels: Levels, factor: float, reading: str) -> None:
    print(f"\nBest number of epochs of each method, {reading}")
    for method, table in levels.items():
        if (best := best_epochs(levels, (method,), factor)) is not None:
            j = best[2]
            show(f"{method}: {j + 1} epochs", factor * table[:, j], PRINTED[kind_of(method)])
    pairs = itertools.product(*([m for m in levels if kind_of(m) == kind] for kind in PRINTED))
    both = sorted((best, pair) for pair in pairs if (best := best_epochs(levels, pair, factor)) is not None)
    print(f"Both at one number of epochs, {reading}")
    if both:
        print(f"  all eight are reproduced: {'yes' if both[0][0][0] == -8 else 'no, by no setting'}")
    for (number, worst, j), pair in both[:6]:
        print(f"  {-number} of 8, misfit {worst:.3f}, {j + 1} epochs: {'; '.join(pair)}")


def show_windows(levels: Levels, steps: np.ndarray) -> None:
    print("\nSteps T of whole epochs at which each printed number is the nearest, add/remove one")
    for method, table in levels.items():
        windows = []
        for row, p in zip(table, PRINTED[kind_of(method)], strict=True):
            near = [int(t) for t, v in zip(steps, row, strict=True) if np.isfinite(v) and "n" in marks(v, p)]
            windows.append(f"{near[0]}-{near[-1]}" if near else "none")
        print(f"  {method:<36} " + "  ".join(f"{window:>11}" for window in windows))


def show_check(q: float, steps: int) -> None:
    print(f"\ndp_accounting's Renyi accountant at the printed DP noise, T = {steps}, delta 1e-5")
    for p, accuracy in zip(PRINTED["DP"], ACCURACIES, strict=True):
        accountant = RdpAccountant(ORDERS)
        accountant.compose(training_event(float(p), q, steps))
        epsilon = accountant.get_epsilon(1e-5)
        bound = (math.exp(epsilon) + 1e-5) / (1 + math.exp(epsilon))
        print(f"  noise {p}: epsilon {epsilon:.4f}, accuracy at most {bound:.4f}, wanted {accuracy}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=200, help="largest number of epochs")
    parser.add_argument("--records", type=int, default=60_000)
    parser.add_argument("--batch", type=int, default=300)
    parser.add_argument("--every", type=int, default=10, help="epochs between the rows shown; 1 for all")
    parser.add_argument(
        "--no-exact", action="store_true", help="leave out the exact curves: they take minutes"
    )
    args = parser.parse_args()
    q, per_epoch = args.batch / args.records, args.records // args.batch
    steps = per_epoch * np.arange(1, args.epochs + 1)
    levels = closed_form_levels(steps, q, args.records)
    if not args.no_exact:
        levels |= exact_levels(steps, q, args.records)
    print(f"q = {q:g}, {per_epoch} steps an epoch; columns: accuracy at most {ACCURACIES}")
    for j in range(args.every - 1, args.epochs, args.every):
        print(f"{j + 1} epochs, T = {steps[j]}")
        for method, table in levels.items():
            show(method, table[:, j], PRINTED[kind_of(method)])
    show_best(levels, 1.0, "add/remove one")
    show_best(levels, 2.0, "replace one")
    show_windows(levels, steps)
    show_check(q, 30 * per_epoch)


if __name__ == "__main__":
    main()
