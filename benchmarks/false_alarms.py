"""How often does a page raise an alarm about a table that remembers nobody, and about one that does?

    python benchmarks/false_alarms.py [--pages 600] [--copies 10] [--only SHAPE]
    python benchmarks/false_alarms.py --fitted randhie flchain --pages 40
    python benchmarks/false_alarms.py --quality --pages 600

*Strangers*: training and held-out records are fresh samples of one population. The synthetic table is made of
a third sample: fresh records, records drawn with replacement, single columns shuffled, or a few prototypes
repeated. So it is independent of which records trained. Counted are pages with an alarm: a finding of caution
or bad about memorisation or about an attack that passed its bound, whatever the sign. The bounds are those of
a ledger of a random epsilon. One page in four is judged without held-out records, too.

*Copies*: training records as they are, one in twenty of them among fresh records, and their rare values in
fresh records. Counted are pages that open red.

*Fitted*: half of a real table trains the default model, at epsilon 3 and 10, and half is held out. Such a
table does depend on who trained, within its guarantee. Counted are alarms, and pages that report a trace.

*Quality*: the synthetic table is a fresh sample of the population. Counted are pages on which a finding about
single columns, of records or of rows, warns of a fault that chance made.

Seeds are 0, 1, 2 and so on. No page is drawn.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from dpsynth import DPMarginals, datasets
from dpsynth.attacks.risk import Proved
from dpsynth.attacks.suite import Effort, attack_tables, attempts
from dpsynth.attacks.suite import verdict as in_words
from dpsynth.evaluation.disclosure_risk import disclosure
from dpsynth.evaluation.neighbour_inference import neighbours
from dpsynth.evaluation.results import Evaluation
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Tables
from dpsynth.evaluation.tails import columns_believed
from dpsynth.patients.schema import PatientSchema
from dpsynth.privacy import Ledger, gaussian_event
from dpsynth.report.verdicts.privacy import judge_attempts
from dpsynth.report.verdicts.rules import judge
from dpsynth.report.verdicts.verdict import Verdict
from dpsynth.table.schema import Column, Schema, TableSchema

#: of the attacks: less than a run takes, for 600 pages
EFFORT = Effort(descriptions=100, counted=5_000, targets=300, work=1e8)

Population = Callable[[int, np.random.Generator], pd.DataFrame]


def _choices(name: str, count: int, letter: str = "c") -> Column:
    return Column(name=name, kind="categorical", categories=tuple(f"{letter}{i}" for i in range(count)))


def few_categories(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Four questions of two to five answers: most records coincide with others."""
    made = {"a": rng.integers(2, size=n), "b": rng.integers(3, size=n), "c": rng.integers(5, size=n)}
    made["d"] = (made["a"] + rng.integers(2, size=n)) % 2
    return pd.DataFrame({name: [f"c{code}" for code in codes] for name, codes in made.items()})


def numbers(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Five correlated numbers."""
    common = rng.normal(size=n)
    return pd.DataFrame({name: np.clip(0.6 * common + 0.8 * rng.normal(size=n), -5, 5) for name in "vwxyz"})


def rare_codes(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Age, sex, and a diagnosis of 400 codes, most of them rare."""
    codes = np.minimum(rng.zipf(1.5, size=n) - 1, 399)
    age = np.clip(np.rint(40 + 10 * np.log1p(codes) + rng.normal(0, 12, n)), 0, 110)
    sex = rng.integers(2, size=n)
    return pd.DataFrame({"age": age, "sex": [f"c{s}" for s in sex], "code": [f"c{c}" for c in codes]})


def fine_times(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Minute of admission within a year, a cost in cents, and a ward: values that one patient alone has."""
    minute = np.rint(rng.uniform(0, 525_599, n))
    cost = np.round(np.clip(rng.lognormal(6, 1.2, n), 0, 99_999), 2)
    return pd.DataFrame({"minute": minute, "cost": cost, "ward": [f"c{w}" for w in rng.integers(6, size=n)]})


def heavy_tails(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Counts with zeros, a skewed concentration with missing values, and a spike at one price."""
    count = np.minimum(rng.negative_binomial(0.3, 0.05, n), 500).astype(float)
    level = np.round(np.clip(rng.lognormal(1, 1.5, n), 0, 999), 1)
    level[rng.random(n) < 0.4] = np.nan
    price = np.where(rng.random(n) < 0.2, 99.9, np.round(rng.gamma(1.5, 80, n), 1).clip(0, 2000))
    return pd.DataFrame({"count": count, "level": level, "price": price})


def wide(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Thirty numbers on fine scales: thirty columns that may raise an alarm."""
    loadings = np.random.default_rng(0).normal(size=(3, 30))  # of one population
    made = rng.normal(size=(n, 3)) @ loadings * 0.5 + rng.normal(size=(n, 30))
    return pd.DataFrame({f"x{i}": np.clip(np.round(column, 3), -9, 9) for i, column in enumerate(made.T)})


def visits(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """A patient's age and one to four values of a laboratory, a patient a row (see :func:`as_rows`)."""
    common = rng.normal(size=(n, 1))
    labs = np.round(np.clip(np.exp(0.6 * common + 0.4 * rng.normal(size=(n, 4))), 0, 99), 1)
    labs[np.arange(4) >= rng.integers(1, 5, size=(n, 1))] = np.nan
    made = {"age": np.clip(np.rint(60 + 12 * rng.normal(size=n)), 0, 110)}
    return pd.DataFrame(made | {f"lab{day}": column for day, column in enumerate(labs.T)})


def as_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of patients whose values stand side by side; other tables as they are."""
    if "lab0" not in frame:
        return frame
    frame = frame.reset_index(drop=True).rename_axis("patient").reset_index()
    rows = frame.melt(["patient", "age"], var_name="day", value_name="lab").dropna()
    return rows.assign(day=rows["day"].str[3:].astype(int)).sort_values(["patient", "day"])


def _integer(name: str, upper: float) -> Column:
    return Column(name=name, kind="integer", lower=0, upper=upper)


def _continuous(name: str, lower: float, upper: float, step: float, missing: bool = False) -> Column:
    return Column(name=name, kind="continuous", lower=lower, upper=upper, step=step, missing=missing)


PATIENTS = PatientSchema(
    unit="patient",
    order="day",
    most=4,
    per_patient=("age",),
    columns=(_integer("age", 110), _continuous("lab", 0, 99, 0.1)),
)
#: name: population, columns, records that train, are held out, and are synthetic, and share of the pages
SHAPES: dict[str, tuple[Population, tuple[Column, ...], tuple[int, int, int], float]] = {
    "few categories, 60": (few_categories, tuple(_choices(n, 5) for n in "abcd"), (60, 60, 60), 0.15),
    "few categories, 300": (few_categories, tuple(_choices(n, 5) for n in "abcd"), (300, 300, 300), 0.1),
    "numbers, 150": (numbers, tuple(_continuous(n, -5, 5, 0.001) for n in "vwxyz"), (150, 150, 150), 0.15),
    "numbers, 400": (numbers, tuple(_continuous(n, -5, 5, 0.1) for n in "vwxyz"), (400, 100, 400), 0.1),
    "rare codes, 300": (
        rare_codes,
        (_integer("age", 110), _choices("sex", 2), _choices("code", 400)),
        (300, 300, 300),
        0.1,
    ),
    "fine times, 300": (
        fine_times,
        (_integer("minute", 525_600), _continuous("cost", 0, 99_999, 0.01), _choices("ward", 6)),
        (300, 300, 1_000),
        0.12,
    ),
    "heavy tails, 300": (
        heavy_tails,
        (_integer("count", 500), _continuous("level", 0, 999, 0.1, True), _continuous("price", 0, 2000, 0.1)),
        (300, 150, 300),
        0.1,
    ),
    "patients with several rows, 200": (visits, (), (200, 200, 400), 0.1),
    "thirty columns, 200": (
        wide,
        tuple(_continuous(f"x{i}", -9, 9, 0.001) for i in range(30)),
        (200, 200, 600),
        0.07,
    ),
    "fine times, 15,000": (
        fine_times,
        (_integer("minute", 525_600), _continuous("cost", 0, 99_999, 0.01), _choices("ward", 6)),
        (7_500, 7_500, 15_000),
        0.01,
    ),
}  # fmt: skip


def fresh(third: pd.DataFrame, size: int, rng: np.random.Generator) -> pd.DataFrame:
    """Records of the third sample, each once."""
    return third.head(size)


def again(third: pd.DataFrame, size: int, rng: np.random.Generator) -> pd.DataFrame:
    """Records of the third sample, drawn with replacement."""
    return third.iloc[rng.integers(len(third) // 2, size=size)]


def shuffled(third: pd.DataFrame, size: int, rng: np.random.Generator) -> pd.DataFrame:
    """Columns of the third sample, each shuffled by itself."""
    return pd.DataFrame({name: rng.permutation(third[name].to_numpy()[:size]) for name in third})


def prototypes(third: pd.DataFrame, size: int, rng: np.random.Generator) -> pd.DataFrame:
    """Twenty records of the third sample, repeated unequally often."""
    return third.iloc[rng.choice(20, size=size, p=rng.dirichlet(np.full(20, 0.5)))]


MAKERS = (fresh, fresh, again, shuffled, prototypes)


def copied(third: pd.DataFrame, train: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The training records."""
    return train


def partly_copied(third: pd.DataFrame, train: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """One training record in twenty among fresh records."""
    few = train.sample(max(len(train) // 20, 1), random_state=int(rng.integers(2**31)))
    return pd.concat([third.head(len(train) - len(few)), few])


def rare_values_copied(third: pd.DataFrame, train: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Fresh records with the values of the training records in the column of the most different values."""
    column = max(train.columns, key=lambda name: train[name].nunique())
    made = third.head(len(train)).reset_index(drop=True)
    return made.assign(**{column: rng.permutation(train[column].to_numpy())})


REMEMBERING = (copied, partly_copied, rare_values_copied)


def page(tables: Tables, ledger: Ledger, rng: np.random.Generator, attacked: bool = True) -> list[Verdict]:
    """The findings about privacy on the page of one table, but for those about the guarantee."""
    parts = [evaluator(tables, Settings(), rng) for evaluator in (disclosure, neighbours)]
    measures = tuple(measure for part in parts for measure in part.measures)
    found = [*judge(Evaluation(measures, {"level": 0.95}), ledger.guarantee(1e-6))]
    if attacked and tables.test is not None:
        risks = attack_tables(tables, rng=rng, proved=Proved(ledger.profile()), effort=EFFORT)
        found += judge_attempts(attempts(risks))
        if "was found" in (said := in_words(risks)) or "passed its proved bound" in said:
            found.append(Verdict("said_by_attack", "caution", said, about="risk"))
    return [verdict for verdict in found if verdict.about == "risk"]


def ledger_of(rng: np.random.Generator) -> Ledger:
    """The ledger of one Gaussian release, of an epsilon between 0.1 and 8."""
    ledger = Ledger()
    ledger.begin_stage(1e-6)
    ledger.post(
        "counts", gaussian_event(float(np.exp(rng.uniform(np.log(0.6), np.log(40))))), sensitivity="1"
    )
    return ledger


def alarms(found: list[Verdict]) -> set[str]:
    """Codes of the findings that warn of a leak. Without a control, that nobody can tell is no alarm."""
    return {v.code for v in found if v.severity in ("caution", "bad") and v.code != "no_baseline"}


def sampled(
    shape: str, rng: np.random.Generator
) -> tuple[TableSchema, tuple[int, int, int], list[pd.DataFrame]]:
    """Training, held-out and third records of a shape."""
    population, columns, sizes, _ = SHAPES[shape]
    n, h, m = sizes
    return (
        Schema(columns=columns) if columns else PATIENTS,
        sizes,
        [population(k, rng) for k in (n, h, max(m, n))],
    )


def compared(made: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame, schema: TableSchema) -> Tables:
    """The tables of a page."""
    return Tables.of(as_rows(made), train=as_rows(train), test=as_rows(test), schema=schema)


def fitted(name: str, pages: int) -> None:
    """Print the alarms about tables of the default model, at each epsilon."""
    table = datasets.load(name)
    for epsilon in (3.0, 10.0):
        found, traces = Counter[str](), 0
        for seed in range(pages):
            train, test = datasets.train_test(table, 0.5, seed)
            model = DPMarginals(epsilon=epsilon, delta=1e-5).fit(train.frame, schema=train.schema)
            made = model.sample(len(train.frame))
            tables = Tables.of(made, train=train.frame, test=test.frame, schema=train.schema)
            measures = disclosure(tables, Settings(), np.random.default_rng(seed)).measures
            said = [
                v for v in judge(Evaluation(measures), model.ledger_.guarantee(1e-5)) if v.about == "risk"
            ]
            found.update(alarms(said))
            traces += any("trace" in verdict.sentence for verdict in said)
        which = ", ".join(f"{code} {times}" for code, times in sorted(found.items()))
        print(f"| {name} | {epsilon:g} | {pages} | {traces} | {which or '0'} |", flush=True)


def quality(pages: int, only: str) -> None:
    """Print the warnings about single columns of fresh samples."""
    print("| shape | pages | with a warning | which |\n|---|---:|---:|---|")
    every = Counter[str]()
    for place, (shape, (*_, part)) in enumerate(SHAPES.items()):
        found, count = Counter[str](), max(round(pages * part), 1) if only in shape else 0
        for seed in range(count):
            rng = np.random.default_rng([seed, place, 2])
            schema, (_, _, m), (train, test, third) = sampled(shape, rng)
            tables = compared(fresh(third, m, rng), train, test, schema)
            own = columns_believed(tables, Settings(), rng)
            said = judge(Evaluation(own.measures, {}, own.details))
            codes = {verdict.code for verdict in said if verdict.severity in ("caution", "bad")}
            found.update([*codes, *["any"] * bool(codes)])
        which = ", ".join(f"{code} {times}" for code, times in sorted(found.items()) if code != "any")
        if count:
            print(f"| {shape} | {count} | {found['any']} | {which} |", flush=True)
        every.update(any=found["any"], pages=count)
    print(f"| all | {every['pages']} | {every['any']} | |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=600)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--fitted", nargs="+", default=[])
    parser.add_argument("--quality", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.quality:
        quality(arguments.pages, arguments.only)
        return
    if arguments.fitted:
        print("| table | epsilon | pages | with a trace | with an alarm |\n|---|---:|---:|---:|---|")
        for name in arguments.fitted:
            fitted(name, arguments.pages)
        return
    shapes = [shape for shape in SHAPES if arguments.only in shape]
    every: Counter[str] = Counter()
    pages = 0
    print("| shape | strangers | with an alarm | which | without held-out records | red: " + ", ".join(
        maker.__doc__.rstrip(".").lower() for maker in REMEMBERING if maker.__doc__) + " |")  # fmt: skip
    print("|---|---:|---:|---|---:|---|")
    for shape in shapes:
        place = list(SHAPES).index(shape)
        start, found, blind = time.perf_counter(), Counter[str](), [0, 0]
        count = max(round(arguments.pages * SHAPES[shape][3]), 1)
        for seed in range(count):
            rng = np.random.default_rng([seed, place])
            schema, (_, _, m), (train, test, third) = sampled(shape, rng)
            made = MAKERS[seed % len(MAKERS)](third, m, rng).reset_index(drop=True)
            tables = compared(made, train, test, schema)
            ledger = ledger_of(rng)
            codes = alarms(page(tables, ledger, rng))
            if seed % 4 == 0:
                blind[0] += bool(alarms(page(replace(tables, test=None), ledger, rng)))
                blind[1] += 1
            found.update([*codes, *["any"] * bool(codes)])
        red = []
        for maker in REMEMBERING:
            bad = 0
            for seed in range(max(min(arguments.copies, count), 2)):
                rng = np.random.default_rng([seed, place, 1])
                schema, _, (train, test, third) = sampled(shape, rng)
                tables = compared(maker(third, train, rng), train, test, schema)
                bad += any(v.severity == "bad" for v in page(tables, ledger_of(rng), rng, attacked=False))
            red.append(f"{bad} of {max(min(arguments.copies, count), 2)}")
        which = ", ".join(f"{code} {times}" for code, times in sorted(found.items()) if code != "any")
        print(
            f"| {shape} | {count} | {found['any']} | {which} | {blind[0]} of {blind[1]} | {', '.join(red)} |",
            f"<!-- {time.perf_counter() - start:.0f} s -->",
            flush=True,
        )
        every["any"] += found["any"]
        every["blind"] += blind[0]
        every["blind of"] += blind[1]
        pages += count
    print(f"| all | {pages} | {every['any']} | | {every['blind']} of {every['blind of']} | |")


if __name__ == "__main__":
    main()
