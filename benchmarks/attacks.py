"""The attacks on synthetic tables beside anonymeter's, on two tables and three generators; and false alarms.

    python benchmarks/attacks.py FOLDER [--null 100] [--run RUN] [--shadow 40]

anonymeter is installed into an environment of its own in FOLDER, which may be there from before, and reads
the tables from files: nothing of it is imported here. Each table is cut at random into training, held-out and
fresh records. The generators: a bootstrap of the training records, half of that and half fresh records, and
fresh records alone, which owe the training records nothing. --null simulates so many tables of mixed columns
that owe the training records nothing, in three sizes, and counts the alarms. --run attacks the generator of
a run's folder by shadow models, which are kept in FOLDER: with what tells canaries best, and by distances
alone.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd

import dpsynth
from dpsynth.attacks.risk import Risk
from dpsynth.attacks.shadow import learned_guesses, shadow_attack
from dpsynth.attacks.suite import QUICK, attack_tables
from dpsynth.evaluation.tables import Tables
from dpsynth.runs.attack_inputs import attacked_run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))
from attacked_tables import MIXED, patients

VERSION = "1.1.0"
#: table, records of each part, inferred column, the columns of two files
TABLES = (
    (
        "breast_cancer",
        189,
        "diagnosis",
        ("mean_radius,mean_texture,mean_smoothness", "worst_radius,worst_texture,worst_symmetry"),
    ),
    ("flchain", 1000, "creatinine", ("age,sex,kappa", "lambda,creatinine,death")),
)
GENERATORS = ("bootstrap", "half bootstrap", "fresh records")

THEIRS = """
import json, sys, time, warnings
import pandas as pd
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator
warnings.simplefilter("ignore")
task = json.load(open(sys.argv[1]))
syn, ori, control = (pd.read_csv(task[name]) for name in ("synthetic", "train", "control"))
for name in task["text"]:
    for frame in (syn, ori, control):
        frame[name] = frame[name].astype(str)
known = [name for name in ori.columns if name != task["secret"]]
found = {}
def keep(name, evaluator, **options):
    start = time.time()
    results = evaluator.evaluate(**options).results()
    risk = results.risk()
    rates = [results.attack_rate, results.baseline_rate, results.control_rate]
    spent = time.time() - start
    found[name] = {"rates": [list(rate) for rate in rates], "risk": [risk.value, *risk.ci], "seconds": spent}
for mode in ("univariate", "multivariate"):
    evaluator = SinglingOutEvaluator(ori, syn, n_attacks=500, n_cols=3, control=control, seed=0)
    keep("singling out, " + mode, evaluator, mode=mode)
options = {"n_attacks": len(ori), "control": control}
keep("linkability", LinkabilityEvaluator(ori, syn, tuple(task["linked"]), **options))
options["regression"] = task["number"]
keep("inference", InferenceEvaluator(ori, syn, known, task["secret"], **options))
print(json.dumps(found))
"""


def environment(folder: Path) -> Path:
    """Return the Python of an environment that holds anonymeter."""
    python = folder / "anonymeter" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "anonymeter")], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", f"anonymeter=={VERSION}"], check=True)
    return python


def generated(name: str, train: pd.DataFrame, fresh: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    copies = train.iloc[rng.integers(len(train), size=len(train))]
    if name == "bootstrap":
        return copies.reset_index(drop=True)
    if name == "fresh records":
        return fresh
    half = len(train) // 2
    return pd.concat([copies[:half], fresh[half:]], ignore_index=True)


def theirs(python: Path, folder: Path, tables: Tables, secret: str, linked: list[list[str]]) -> dict:
    schema = tables.schema
    task = {"secret": secret, "linked": linked, "number": schema.column(secret).is_numeric}
    task["text"] = [column.name for column in schema.columns if not column.is_numeric]
    for name, frame in (("synthetic", tables.synthetic), ("train", tables.train), ("control", tables.test)):
        task[name] = str(folder / f"{name}.csv")
        frame.to_csv(task[name], index=False)
    (folder / "task.json").write_text(json.dumps(task))
    (folder / "theirs.py").write_text(THEIRS)
    done = subprocess.run(
        [str(python), "theirs.py", "task.json"], cwd=folder, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def ours(tables: Tables, secret: str, linked: list[list[str]]) -> tuple[dict[str, Risk], float]:
    start = time.time()
    risks = attack_tables(
        tables, rng=np.random.default_rng(0), linked=(linked[0], linked[1]), sensitive=[secret]
    )
    names = {
        "descriptions of one column": "singling out, univariate",
        "descriptions of 3 columns": "singling out, multivariate",
    }
    named = {
        names.get(risk.attack, risk.risk): risk
        for risk in risks
        if "worst-off" not in risk.attack and risk.risk != "membership"
    }
    named |= {f"membership, {risk.attack}": risk for risk in risks if risk.risk == "membership"}
    return named, time.time() - start


def percent(numbers: list[float]) -> str:
    return f"{100 * numbers[0]:.1f} ({100 * numbers[1]:.1f} to {100 * numbers[2]:.1f})"


def compare(folder: Path) -> list[str]:
    python = environment(folder)
    lines: list[str] = []
    for name, size, secret, columns in TABLES:
        linked = [part.split(",") for part in columns]
        table = dpsynth.datasets.load(name)
        rng = np.random.default_rng(0)
        whole = table.frame.iloc[rng.permutation(len(table.frame))].reset_index(drop=True)
        train, control, fresh = (whole[i * size : (i + 1) * size].reset_index(drop=True) for i in range(3))
        lines += ["", f"## {name}: {size:,} records of each kind, {len(table.schema)} columns", ""]
        lines.append(f"Linked: {columns[0]} with {columns[1]}. Inferred: {secret}.")
        lines += [
            "",
            "| generator | attack | training: here | anonymeter | held out: here | anonymeter | risk: here "
            "| anonymeter |",
            "|---|---|---:|---:|---:|---:|---:|---:|",
        ]
        seconds = [0.0, 0.0]
        for generator in GENERATORS:
            made = generated(generator, train, fresh, np.random.default_rng(1))
            tables = Tables.of(made, train=train, test=control, schema=table.schema)
            found, spent = ours(tables, secret, linked)
            other = theirs(python, folder, tables, secret, linked)
            seconds = [seconds[0] + spent, seconds[1] + sum(each["seconds"] for each in other.values())]
            for attack, risk in found.items():
                there = other.get(attack)
                cells = [
                    f"{100 * risk.rate.value:.1f}",
                    "",
                    f"{100 * risk.held_out.value:.1f}",
                    "",
                    percent(list(vars(risk.normalised).values())),
                    "",
                ]
                if there is not None:
                    cells[1], cells[3] = (f"{100 * there['rates'][i][0]:.1f}" for i in (0, 2))
                    cells[5] = percent(there["risk"])
                lines.append(f"| {generator} | {attack} | {' | '.join(cells)} |")
        lines += [
            "",
            f"Seconds for the three tables: here {seconds[0]:.1f} (membership included), anonymeter "
            f"{seconds[1]:.1f}.",
        ]
    return lines


def null(count: int) -> list[str]:
    lines = ["", f"## False alarms: {count} tables that owe the training records nothing", ""]
    lines.append(
        "Mixed columns (integers, a skewed value with 10 % missing, ordinal, 3 % positive, rare wards)."
    )
    lines.append(
        "Alarms: the whole interval of the excess above 0. Any column: of all columns' intervals together."
    )
    lines += ["", "| synthetic, training, held out | attack | alarms | below 0 |", "|---|---|---:|---:|"]
    for sizes in ((60, 60, 60), (400, 300, 100), (200, 200, 200)):
        alarms: Counter[str] = Counter()
        below: Counter[str] = Counter()
        for number in range(count):
            rng = np.random.default_rng([number, sizes[0]])
            made, train, control = (patients(size, rng) for size in sizes)
            tables = Tables.of(made, train=train, test=control, schema=MIXED)
            columns = {}
            for risk in attack_tables(tables, rng=rng, effort=QUICK):
                key = f"{risk.risk}, {risk.attack}"
                if risk.risk == "inference" and not risk.attack.startswith("mean"):
                    key = "inference, any column" + (", worst-off" if "worst-off" in risk.attack else "")
                    columns[key] = columns.get(key, False) or risk.found
                    continue
                alarms[key] += risk.found
                below[key] += risk.excess.upper < 0
            for key, found in columns.items():
                alarms[key] += found
        for key in alarms:
            lines.append(f"| {', '.join(map(str, sizes))} | {key} | {alarms[key]} | {below[key]} |")
    return lines


def shadows(runs: list[Path], folder: Path, rounds: int) -> list[str]:
    lines = ["", f"## Shadow models: {rounds} fits, half of them targets, 20 canaries in each", ""]
    lines.append("Accuracy of guessing whether a canary was used, in per cent.")
    lines += [
        "",
        "| run | epsilon | right | by distances alone | proved |",
        "|---|---:|---:|---:|---:|",
    ]
    for run in runs:
        attacked = attacked_run(run)
        kept = folder / f"shadow-{run.name}"
        found = shadow_attack(
            attacked.generator,
            attacked.tables.train,
            attacked.tables.schema,
            rounds=rounds,
            seed=0,
            proved=attacked.proved,
            folder=kept,
            settings=attacked.identity,
        )
        records = [json.loads(path.read_text()) for path in sorted((kept / "rounds").glob("*.json"))]
        coins = np.array([record["used"] for record in records])
        near = np.array([record["looks"] for record in records])[:, :, :2]
        half = rounds // 2
        alone = (learned_guesses(coins[:half], near[:half], near[half:]) == coins[half:]).mean()
        epsilon = attacked.generator.config["model"].get("epsilon")
        cells = [
            run.name,
            "none" if epsilon is None else f"{epsilon:g}",
            percent(list(vars(found.accuracy).values())),
            f"{100 * alone:.1f}",
            "nothing" if found.proved is None else f"at most {100 * found.proved:.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--null", type=int, default=100)
    parser.add_argument("--run", type=Path, action="append", default=[])
    parser.add_argument("--shadow", type=int, default=40)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("dpsynth-health", "numpy", "pandas"))
    lines = [
        "# Attacks on synthetic tables, beside anonymeter's",
        "",
        f"{datetime.now(UTC).date()}; Python {platform.python_version()}, {versions}; anonymeter {VERSION} "
        "in an environment of its own; two shared cores. "
        "`python benchmarks/attacks.py FOLDER --run RUN`.",
        "",
        "Rates and risks in per cent; the risk is (training - held out) / (1 - held out) with its 95 % "
        "interval. Univariate singling out on flchain: anonymeter divides by the 500 descriptions it was "
        "asked for, also where the table offers fewer; here by those that were tried.",
        *compare(options.folder),
        *(null(options.null) if options.null else []),
        *(shadows(options.run, options.folder, options.shadow) if options.run else []),
    ]
    (options.folder / "attacks.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
