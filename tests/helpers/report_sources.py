"""Reports made by code: every kind of detail, hostile names, and unmistakable internal numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

from dpsynth.attacks.attempt import Attempt
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.results import Detail, Evaluation, Measure
from dpsynth.privacy import Ledger, gaussian_event, non_private_event
from dpsynth.privacy.events import training_event
from dpsynth.report.run_report import RunReport
from dpsynth.studies.estimation import SurvivalCurve
from dpsynth.studies.study import Estimates

DELTA = 1e-5
HOSTILE = (
    "<script>alert(1)</script>",
    "a|b",
    "say \"no\" & 'yes'",
    "Größe µ",
    "年齢",
    "$x_1$",
    "$\\foo$",
    "x" * 70,
)
MODELS = ("logistic_regression", "random_forest", "hist_gradient_boosting")


def ledger_of(entries: int = 4) -> Ledger:
    ledger = Ledger()
    long = "one count in each of 31 columns, and every word of this is meant to be read on paper as well"
    ledger.post("single-column counts", gaussian_event(3.1), sensitivity=f"sqrt(31), {long}", detail=long)
    for place in range(entries - 2):
        ledger.post(f"statistic {place}", gaussian_event(6.0 + place), sensitivity="1")
    if entries > 1:
        ledger.post("WGAN critic steps", training_event(4.0, 0.05, 200), sensitivity="proved each step")
    return ledger


def bare_ledger() -> Ledger:
    """One reading with noise and one without, so that epsilon is infinite from there on."""
    ledger = Ledger()
    ledger.post("counts", gaussian_event(3.0), sensitivity="1")
    ledger.post("fit without noise", non_private_event(), sensitivity="unbounded")
    return ledger


def study_of(name: str = "mortality", terms: tuple[str, ...] = HOSTILE, kind: str = "logistic") -> Estimates:
    """Private estimates of a declared study: effects that grow with the term's place, some of them clear."""
    places = np.arange(len(terms))
    covariance = np.diag(0.04 + 0.01 * places) + 0.001
    formula = f"{kind}: death ~ {' + '.join(terms)}"
    return Estimates(name, kind, formula, "death", terms, -0.4 + 0.2 * places, covariance, 1.4)


#: survival of a study whose outcome is a time
CURVE = SurvivalCurve(
    *np.array([[90.0, 180.0, 365.0], [0.9, 0.81, 0.7], [0.85, 0.74, 0.6], [0.93, 0.86, 0.78]]), unit="days"
)


class Numbers:
    """Internal numbers that are found again: 0.73 followed by digits that nothing else has.

    ``planted`` lists every number given out.
    """

    def __init__(self) -> None:
        self.planted: list[float] = []
        self._places = count(1)

    def __call__(self, near: float = 0.5) -> float:
        """Return a number near ``near`` whose digits occur once."""
        value = math.floor(near * 100) / 100 + 0.0071 + 0.0000137 * next(self._places)
        self.planted.append(value)
        return value


def column_names(columns: int, hostile: bool) -> tuple[str, ...]:
    names = tuple(f"column {place} of the table" for place in range(columns))
    return (*HOSTILE, *names)[:columns] if hostile else names


#: what a test does not say of the data of a detail
_UNSAID: dict[str, dict[str, Any]] = {
    "marginal": {"missing": None, "special": None, "unit": None, "log": False, "zero": False},
    "calibration": {"count": []},
    "distances": {"space": "encoded"},
    "effects": {
        "formula": "",
        "event": None,
        "level": 0.95,
        "note": "",
        "problems": {},
        "separated": [],
        "n_real": 1000,
        "n_synthetic": 1000,
    },
}
_UNSAID_OF_ROWS: dict[str, dict[str, Any]] = {
    "effects": {"real": None, "synthetic": None},
    "single_columns": {"size": 1000, "baseline": None},
}


def detail(kind: str, name: str, internal: bool, data: dict[str, Any]) -> Detail[Any]:
    """A detail, with what ``data`` leaves out filled in."""
    data = _UNSAID.get(kind, {}) | data
    if kind in _UNSAID_OF_ROWS:
        data["rows"] = [_UNSAID_OF_ROWS[kind] | row for row in data["rows"]]
    return Detail.from_dict({"kind": kind, "name": name, "internal": internal, "data": data})


def details_of(columns: tuple[str, ...], numbers: Numbers) -> Iterator[Detail]:
    """One detail of each kind and table; those of real tables hold planted numbers."""
    rng = np.random.default_rng(0)
    for place, name in enumerate(columns):
        for table in ("synthetic", "train"):
            internal = table == "train"
            raw = rng.dirichlet(np.full(20 if place % 3 else 5, 2.0)).tolist()
            share = [numbers(0.2) for _ in raw] if internal else raw
            data: dict[str, Any] = {
                "column": name,
                "table": table,
                "share": share,
                "unit": None,
                "log": False,
            }
            data["missing"] = (numbers(0.1) if internal else 0.125) if place % 2 else None
            if place % 3:
                edges = np.geomspace if place % 3 == 1 else np.linspace
                data |= {"type": "numeric", "edges": edges(1, 1000, len(raw) + 1).tolist()}
                data |= {"unit": 'mg/"dl"', "log": place % 3 == 1}
            else:
                data |= {"type": "categories", "labels": [f"<b>{i}</b> of {name}" for i in range(len(raw))]}
            yield detail("marginal", f"marginal[{name}].{table}", internal, data)
    for table in ("synthetic", "train"):
        matrix = np.abs(np.corrcoef(rng.normal(size=(len(columns), len(columns) + 9)))).clip(0, 1)
        rows = [[numbers(0.3) for _ in row] for row in matrix] if table == "train" else matrix.tolist()
        data = {"table": table, "columns": list(columns), "matrix": rows}
        yield detail("association", f"association.{table}", table == "train", data)
    for model in MODELS:
        for table in ("synthetic", "train"):
            fpr = np.linspace(0, 1, 50)
            data = {"trained_on": table, "model": model, "fpr": fpr.tolist(), "auc": numbers(0.8)}
            data["tpr"] = [numbers(float(f ** (0.4 if table == "train" else 0.55)) * 0.98) for f in fpr]
            yield detail("roc", f"roc.{table}.{model}", True, data)
            data = {"trained_on": table, "model": model, "count": [30] * 8}
            data |= {"predicted": [numbers(p) for p in np.linspace(0.05, 0.9, 8)]}
            data |= {"observed": [numbers(p) for p in np.linspace(0.1, 0.8 if table == "train" else 0.7, 8)]}
            yield detail("calibration", f"calibration.{table}.{model}", True, data)
    effects = [
        {
            "term": name,
            "real": {"estimate": numbers(1.2), "lower": numbers(1.05), "upper": numbers(1.5)},
            "synthetic": None
            if place == 1
            else {"estimate": numbers(1.1), "lower": numbers(0.8), "upper": numbers(1.4)},
            "same_sign": None if place == 1 else bool(place % 3),
            "overlap": None if place == 1 else numbers(0.6),
            "standardised_difference": None if place == 1 else numbers(0.4),
        }
        for place, name in enumerate(columns)
    ]
    data = {"model": "logistic", "outcome": "death", "measure": "odds ratio", "rows": effects}
    yield detail("effects", "effects.logistic", True, data | {"n_real": 7131, "n_synthetic": 500, "note": ""})
    yield compared_study(study_of("<i>mortality</i>", columns), numbers)
    yield from believable_details(columns, numbers)
    yield from table_one_details(columns, numbers)
    yield subgroup_detail(columns, numbers)
    yield from patient_details(columns, numbers)
    data = {"space": "euclidean", "edges": [numbers(e) for e in np.linspace(0.01, 2, 21)]}
    data |= {"synthetic_to_train": [numbers(0.05) for _ in range(20)]}
    data |= {"test_to_train": [numbers(0.04) for _ in range(20)]}
    yield detail("distances", "distances.euclidean", True, data)


def compared_study(study: Estimates, numbers: Numbers) -> Detail:
    """A declared study beside real and synthetic records: its estimates are public, all else is planted."""

    def fitted(near: float) -> dict[str, float]:
        return {"estimate": numbers(near), "lower": numbers(0.6 * near), "upper": numbers(1.5 * near)}

    def against(place: int) -> dict[str, Any]:
        alike = {"same_sign": bool(place % 4), "overlap": numbers(0.5), "covered": True}
        return alike | {"standardised_difference": numbers(0.7)}

    rows = [
        {
            "term": effect["term"],
            "real": fitted(effect["estimate"]),
            "synthetic": None if place == 1 else fitted(1.4),
            "declared": None if place == 2 else effect | against(place) | {"holds_real": bool(place % 5)},
            **(against(place + 1) if place != 1 else dict.fromkeys(against(0))),
        }
        for place, effect in enumerate(study.effects())
    ]
    data = {"study": study.study, "model": study.kind, "outcome": study.outcome, "measure": study.measure}
    data |= {"rows": rows, "n_real": 7131, "n_synthetic": 500, "note": "", "level": 0.95}
    return detail("effects", "effects.declared", True, data)


def believable_details(columns: tuple[str, ...], numbers: Numbers) -> Iterator[Detail]:
    """Tails, point masses, single columns and steps: everything in them was read off real records."""

    def estimate(near: float) -> dict[str, float]:
        return {"value": numbers(near), "lower": numbers(near - 0.1), "upper": numbers(near + 0.1)}

    def percentile(near: float) -> dict[str, Any]:
        return {"real": numbers(near), "synthetic": numbers(3 * near), "error": estimate(2.0)}

    tails = [
        {
            "column": name,
            "unit": "<i>mg</i>" if place % 2 else None,
            "deviation_real": numbers(1.5),
            "deviation_synthetic": numbers(4.5),
            "spread": estimate(3.0),
            "spread_baseline": numbers(1.0),
            "low": percentile(0.2),
            "low_baseline": numbers(0.1),
            "high": percentile(9.0),
            "high_baseline": numbers(0.1),
            "masses": [
                {"value": "<u>none</u>", "real": numbers(0.7), "synthetic": numbers(0.36),
                 "difference": estimate(-0.34)}
            ],
        }
        for place, name in enumerate(columns)
    ]  # fmt: skip
    yield detail("tails", "tails", True, {"rows": tails})
    single = [
        {"column": name, "auc": estimate(0.8), "last_digits": numbers(0.75),
         "baseline": numbers(0.5), "size": 7133}
        for name in columns
    ]  # fmt: skip
    yield detail("single_columns", "single_columns", True, {"reference": "held-out", "rows": single})
    data = {"train": numbers(1.9), "synthetic": numbers(1.1), "ratio": estimate(0.6)}
    yield detail("missing_cells", "missing_cells", True, data)
    for table, values in (("train", 7134), ("synthetic", 12)):
        rows = [{"column": columns[0], "values": values, "step": 0.1, "unit": None}]
        yield detail("finer_than_declared", f"finer_than_declared.{table}", table == "train", {"rows": rows})


def table_one_details(columns: tuple[str, ...], numbers: Numbers) -> Iterator[Detail]:
    """Table 1 of both tables, whole and of one outcome; that of the real one holds planted numbers."""
    for group in (None, "death = <i>yes</i>"):
        mark = "" if group is None else f"[{group}]"
        for table in ("synthetic", "train"):
            internal = table == "train"
            rows = [
                _summary(place, name, numbers if internal else None) for place, name in enumerate(columns)
            ]
            data = {"table": table, "group": group, "records": 7135 if internal else 500, "rows": rows}
            yield detail("table_one", f"table_one{mark}.{table}", internal, data)
        smds: list[dict[str, Any]] = [{"column": name, "smd": numbers(0.7)} for name in columns]
        smds[0]["smd"] = None
        data = {"group": group, "chance": numbers(0.1), "rows": smds}
        yield detail("table_one_differences", f"table_one_differences{mark}", True, data)


def _summary(place: int, name: str, numbers: Numbers | None) -> dict[str, Any]:
    told: dict[str, Any] = {"column": name, "unit": "<i>mg</i>" if place % 2 else None}
    told |= {"missing": (7136 if numbers else 3) if place % 2 else None}
    told |= {"special": (7137 if numbers else 4) if place % 3 == 1 else None}
    if place % 3 == 0:
        counts = [7138, 7139, 7140] if numbers else [20, 30, 450]
        kept = 2 if place % 2 else 3
        labels = ["<b>none</b>", "a|b", "other"]
        return told | {"form": "counts", "labels": labels[:kept], "counts": counts[:kept]}
    values = [numbers(near) if numbers else near for near in (50.0, 12.0, 40.0, 60.0)]
    if place % 3 == 1:
        return told | {"form": "mean"} | dict(zip(("center", "spread"), values, strict=False))
    return told | {"form": "median"} | dict(zip(("center", "spread", "low", "high"), values, strict=True))


def patient_details(columns: tuple[str, ...], numbers: Numbers) -> Iterator[Detail]:
    """Rows over time and a few patients of both tables; those of the real one are planted."""
    for table in ("synthetic", "train"):
        internal = table == "train"

        def told(nears: list[float], internal: bool = internal) -> list[float]:
            return [numbers(near) for near in nears] if internal else nears

        data: dict[str, Any] = {"table": table, "clock": columns[0], "rows": told([0.5, 0.3, 0.2])}
        data |= {"gaps": told([1.0, 30.0, 900.0])}
        data |= {
            "events": {name: {"times": told([0.0, 90.0]), "values": told([0.9, 0.4])} for name in columns[:2]}
        }
        data |= {"lags": {name: [*told([0.8, 0.7]), None] for name in columns[:4]}}
        yield detail("over_time", f"over_time.{table}", internal, data)
        for place, name in enumerate(columns[:4]):
            paths = [{"times": told([0.0, 10.0, 400.0]), "values": told([5.0, 6.0, 7.0])} for _ in range(3)]
            data = {"column": name, "table": table, "unit": "<i>mg</i>" if place % 2 else None}
            data |= {"clock": columns[0], "paths": paths}
            yield detail("paths", f"paths[{name}].{table}", internal, data)


def subgroup_detail(columns: tuple[str, ...], numbers: Numbers) -> Detail:
    """Subgroups with scores, too few records, and without a score; everything in them is planted."""

    def estimate(near: float) -> dict[str, float]:
        return {"value": numbers(near), "lower": numbers(near - 0.1), "upper": numbers(near + 0.1)}

    def scores(table: str, place: int) -> dict[str, Any]:
        told = {"trained_on": table, "auc": None, "calibration": None, "why": ""}
        if place % 3 == 1:
            return told | {"why": "too few"}
        return told | {"auc": estimate(0.8)} | ({} if place % 3 else {"calibration": estimate(0.1)})

    rows = [
        {
            "column": name,
            "name": "<b>F</b>",
            "real": estimate(0.4),
            "synthetic": estimate(0.5),
            "difference": estimate(0.1),
            "records": 7141 + place,
            "events": 7151 + place,
            "scores": [scores(table, place) for table in ("synthetic", "train")],
        }
        for place, name in enumerate(columns)
    ]
    data = {"event": "death = <i>yes</i>", "model": "logistic_regression", "level": 0.95, "fewest": 20}
    return detail("subgroups", "subgroups", True, data | {"note": "", "rows": rows})


def measures_of(columns: tuple[str, ...], numbers: Numbers) -> Iterator[Measure]:
    def real(group: str, name: str, near: float, detail: str = "") -> Measure:
        detail = f"{detail} (of {numbers(0.9)})"
        return Measure(group, name, numbers(near), True, detail, numbers(near - 0.05), numbers(near + 0.05))

    yield Measure("Records", "synthetic_records", 500, False, "rows of the synthetic table")
    yield Measure("Records", "train_records", 7131, True, "real rows it was made from")
    yield Measure("Records", "test_records", 7132, True, "real rows held out")
    utility = "Utility: predicting death"
    yield Measure(utility, "positive_rate_synthetic", 0.25, False, "share of death = 'yes', synthetic")
    yield real(utility, "positive_rate_train", 0.3)
    for name in ("mean", *MODELS):
        yield real(utility, f"auc_{name}", 0.7, "train on synthetic, test on real")
        yield real(utility, f"auc_real_{name}", 0.75, "train on real, test on real")
    yield real(utility, "positive_rate_test", 0.4)
    for name, near in (("brier_mean", 0.12), ("brier_real_mean", 0.03), ("brier_difference_mean", 0.09)):
        yield real(utility, name, near)
    yield real(utility, "calibration_intercept_mean", 1.4)
    yield Measure(utility, "auc_undefined", None, True, "one outcome only")
    for name, near in (
        ("effects_overlap_mean", 0.5),
        ("declared_overlap_mean", 0.7),
        ("declared_covered", 0.8),
    ):
        yield real("Replication", name, near, "study <i>mortality</i>")
    looks = "Similarity to the training records"
    yield real(looks, "tvd_mean", 0.1)
    yield real(looks, "discriminator_auc", 0.6)
    for place, name in enumerate(columns):
        yield real(looks, f"discriminator_loss[{name}]", 0.1 + 0.02 * place)
        yield real("Disclosure", f"lone_values_train[{name}]", 0.6)
        yield real(looks, f"tvd[{name}]", 0.1)
        yield Measure(looks, f"constraint_violations[{name}]", 0, False, "out of bounds")
    for name in columns[:2]:
        yield real("Tails and point masses", f"spread_ratio[{name}]", 3.0)
        yield real("Single columns", f"single_column_auc[{name}]", 0.8)
    yield real("Tails and point masses", "spread_ratio_worst", 3.0, f"of the worst column, {columns[0]}")
    close = "Nearest neighbours"
    for name in ("train", "train_real", "train_synthetic", "test"):
        yield real(close, f"nn_accuracy_{name}", 0.55, "nearest-neighbour accuracy")
    yield real(close, "privacy_loss", 0.01)
    yield real("Disclosure", "membership_auc", 0.52)
    yield real("Disclosure", "membership_tpr_at_1pct", 0.02)
    yield real("Disclosure", "dcr_closer_to_train", 0.51)
    yield real("Disclosure", "copies_excess", -0.02)
    yield real("An unknown group", "something_new", 0.4)


def attempts_of(numbers: Numbers) -> Iterator[Attempt]:
    """Attacks on the releases, which read no real record, and on the table."""
    for name, value in (("count", 0.31), ("WGAN critic steps", 0.97)):
        found = Estimate(value, value - 0.1, value + 0.1)
        yield Attempt(
            f"white box, {name}", "epsilon", found, 1.7, None, "10,000 trials", "more", internal=False
        )
    for name in ("distance", "<b>density</b> | ratio"):
        found = Estimate(numbers(), numbers(0.45), numbers(0.55))
        control = Estimate(numbers(), numbers(0.4), numbers(0.6))
        yield Attempt(f"membership, {name}", "accuracy", found, 0.67, control, "7131 members", "a copy")
    yield Attempt("singling out", "rate", Estimate(numbers(0.1), numbers(0.05), numbers(0.15)))


def attempts_like_a_run() -> tuple[Attempt, ...]:
    """As many attacks, with names as long, as `dpsynth run` makes of its table and its noisy statistics."""
    attacks = (
        "singling out, descriptions of one column",
        "singling out, descriptions of 3 columns",
        "linkability, 16 columns with 15 others (every other one)",
        "inference, mean of the columns",
        "inference, mean of the columns, worst-off",
        "membership, distance",
        "membership, density ratio",
    )
    audits = (
        "single-column counts",
        "base model edges, at other noise",
        "base model tables",
        "WGAN critic steps",
    )
    rate, excess, nobody = Estimate(0.22, 0.18, 0.27), Estimate(0.06, -0.02, 0.14), Estimate(0.0, 0.0, 0.0)
    found = []
    for name in attacks:
        found.append(Attempt(name, "rate", rate, None, Estimate(0.04, 0.02, 0.06)))
        found.append(Attempt(f"{name}, beyond held-out records", "advantage", excess, 0.28, one_table=True))
    for name in audits:
        found.append(Attempt(f"audit: {name}", "tv", excess, 0.28, nobody, level=0.999, internal=False))
    for name, internal in (("a record at the bound", False), ("the record furthest from all others", True)):
        found.append(Attempt(f"A_DI against {name}", "advantage", excess, 0.11, nobody, internal=internal))
    return tuple(found)


def full_report(columns: int = 8, *, hostile: bool = True, entries: int = 4) -> tuple[RunReport, list[float]]:
    """A report with everything in it, and the internal numbers that were planted."""
    numbers = Numbers()
    names = column_names(columns, hostile)
    evaluation = Evaluation(
        tuple(measures_of(names, numbers)),
        {"outcome": "death", "seed": 73310171, "level": 0.95, "records": 73420},
        tuple(details_of(names, numbers)),
    )
    report = RunReport(
        ledger=ledger_of(entries),
        delta=DELTA,
        table={
            "name": "<cohort> & more",
            "synthetic_records": 500,
            "columns": columns,
            "outcome": "death",
            "schema_sha256": "ab" * 32,
            "clip_counts": 73530,
        },
        config={
            "description": "made from 7131 records of SECRETWARD",
            "data": {"path": "/secretfolder/secretfile.csv", "schema": "/secretfolder/schema.yaml"},
            "split": {"method": "independent", "test_fraction": 0.5, "seed": 73640},
            "model": {"epsilon": 3.0, "random_state": 73750, "shares": {"n": numbers(0.1)}},
            "evaluate": {"seed": 73860, "enabled": True},
        },
        evaluation=evaluation,
        versions={"python": "3.11", "dpsynth": "0.1.0"},
        seconds={"fit": numbers(12.3), "evaluate": numbers(4.5)},
        created="2026-03-04T05:06:07+00:00",
        studies=(study_of("<i>mortality</i>", names), study_of("pressure", ("age (years)",), "linear")),
        attempts=tuple(attempts_of(numbers)),
    )
    return report, numbers.planted
