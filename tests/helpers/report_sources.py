"""Reports made by code: every kind of detail, hostile names, and unmistakable internal numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import count, pairwise
from typing import Any

import numpy as np

from dpsynth.attacks.attempt import Attempt
from dpsynth.evaluation.effects import COMPARISONS
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.results import Evaluation, Findings, Measure
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


def details_of(columns: tuple[str, ...], numbers: Numbers) -> dict[str, list[dict[str, Any]]]:
    """Rows of each frame and table; those of real tables hold planted numbers."""
    found = Findings()
    rng = np.random.default_rng(0)
    for place, name in enumerate(columns):
        for table in ("synthetic", "train"):
            rows = _marginal(place, name, table, numbers, rng)
            found.frame("marginal", rows, confidential=table == "train")
    for table in ("synthetic", "train"):
        matrix = np.abs(np.corrcoef(rng.normal(size=(len(columns), len(columns) + 9)))).clip(0, 1)
        values = [[numbers(0.3) for _ in row] for row in matrix] if table == "train" else matrix.tolist()
        pairs = [
            {"table": table, "first": first, "second": second, "value": value}
            for first, row in zip(columns, values, strict=True)
            for second, value in zip(columns, row, strict=True)
        ]
        found.frame("association", pairs, confidential=table == "train")
    for model in MODELS:
        for table in ("synthetic", "train"):
            _curves(found, table, model, numbers)
    effects: list[dict[str, Any]] = []
    for place, name in enumerate(columns):
        effects.append(effect(name, "real", _interval(numbers, 1.2, 1.05, 1.5)))
        if place == 1:
            effects.append(effect(name, "synthetic"))
            continue
        made = _interval(numbers, 1.1, 0.8, 1.4)
        alike = {"same_sign": bool(place % 3), "overlap": numbers(0.6)}
        effects.append(effect(name, "synthetic", made, **alike, standardised_difference=numbers(0.4)))
    regression(found, "effects.logistic", effects, model="logistic", outcome="death", measure="odds ratio")
    compared_study(found, study_of("<i>mortality</i>", columns), numbers)
    believable_details(found, columns, numbers)
    table_one_details(found, columns, numbers)
    subgroup_details(found, columns, numbers)
    patient_details(found, columns, numbers)
    ends = [numbers(e) for e in np.linspace(0.01, 2, 21)]
    for table, near in (("synthetic", 0.05), ("test", 0.04)):
        rows = [
            {"table": table, "space": "euclidean", "lower": low, "upper": high, "share": numbers(near)}
            for low, high in pairwise(ends)
        ]
        found.frame("distances", rows, confidential=True)
    return found.details


def _marginal(
    place: int, name: str, table: str, numbers: Numbers, rng: np.random.Generator
) -> list[dict[str, Any]]:
    internal = table == "train"
    raw = rng.dirichlet(np.full(20 if place % 3 else 5, 2.0)).tolist()
    share = [numbers(0.2) for _ in raw] if internal else raw
    of = {"column": name, "table": table, "unit": 'mg/"dl"' if place % 3 else None}
    of |= {"scale": "log" if place % 3 == 1 else "linear"}
    cells: list[dict[str, Any]]
    if place % 3:
        edges = (np.geomspace if place % 3 == 1 else np.linspace)(1, 1000, len(raw) + 1).tolist()
        cells = [{"cell": "bin", "lower": low, "upper": high, "label": None} for low, high in pairwise(edges)]
    else:
        labels = [f"<b>{i}</b> of {name}" for i in range(len(raw))]
        cells = [{"cell": "category", "lower": None, "upper": None, "label": label} for label in labels]
    rows = [of | cell | {"share": part} for cell, part in zip(cells, share, strict=True)]
    if place % 2:
        missing = {"cell": "missing", "lower": None, "upper": None, "label": None}
        rows.append(of | missing | {"share": numbers(0.1) if internal else 0.125})
    return rows


def _curves(found: Findings, table: str, model: str, numbers: Numbers) -> None:
    of = {"trained_on": table, "model": model}
    auc, grid = numbers(0.8), np.linspace(0, 1, 50).tolist()
    heights = [numbers(float(f ** (0.4 if table == "train" else 0.55)) * 0.98) for f in grid]
    rows = [of | {"fpr": fpr, "tpr": tpr, "auc": auc} for fpr, tpr in zip(grid, heights, strict=True)]
    found.frame("roc", rows, confidential=True)
    predicted = [numbers(p) for p in np.linspace(0.05, 0.9, 8)]
    observed = [numbers(p) for p in np.linspace(0.1, 0.8 if table == "train" else 0.7, 8)]
    groups = zip(predicted, observed, strict=True)
    rows = [of | {"predicted": p, "observed": o, "count": 30} for p, o in groups]
    found.frame("calibration", rows, confidential=True)


def _interval(numbers: Numbers, *near: float) -> dict[str, float]:
    return dict(zip(("estimate", "lower", "upper"), map(numbers, near), strict=True))


def effect(term: str, side: str, interval: dict[str, float] | None = None, **compared: Any) -> dict[str, Any]:
    """A row of the frame of effects, with what a test does not say left out."""
    none = dict.fromkeys(("estimate", "lower", "upper", "p_value", *COMPARISONS))
    return {"term": term, "side": side} | none | (interval or {}) | compared


def regression(found: Findings, name: str, rows: list[dict[str, Any]], **facts: Any) -> None:
    """Append a regression and its effects, with what a test does not say filled in."""
    row = {
        "regression": name,
        "study": None,
        "model": "logistic",
        "formula": "",
        "outcome": "y",
        "event": None,
    }
    row |= {"measure": "difference", "level": 0.95, "note": ""}
    row |= {"n_real": 7131, "problem_real": "", "separated_real": False}
    row |= {"n_synthetic": 500, "problem_synthetic": "", "separated_synthetic": False}
    found.frame("regressions", [row | facts], confidential=True)
    found.frame("effects", [{"regression": name, **own} for own in rows], confidential=True)


def regression_of(rows: Iterable[dict[str, Any]], **facts: Any) -> dict[str, list[dict[str, Any]]]:
    """Details of one regression from rows of a term with ``real``, ``synthetic`` and ``declared`` estimates.

    ``same_sign`` and what else compares stands in the row for the synthetic estimate, which is by default the
    real one, and in the private one for itself.
    """
    found, effects = Findings(), []
    for row in rows:
        compared = {name: row[name] for name in COMPARISONS if row.get(name) is not None}
        made = row.get("synthetic") or (row["real"] if compared else None)
        effects += [
            effect(row["term"], "real", row.get("real")),
            effect(row["term"], "synthetic", made, **compared),
        ]
        if "declared" in row:
            effects.append(effect(row["term"], "declared", row["declared"]))
    regression(found, "effects", effects, **facts)
    return found.details


def compared_study(found: Findings, study: Estimates, numbers: Numbers) -> None:
    """A declared study beside real and synthetic records: its estimates are public, all else is planted."""

    def fitted(near: float) -> dict[str, float]:
        return _interval(numbers, near, 0.6 * near, 1.5 * near)

    def against(place: int) -> dict[str, Any]:
        alike = {"same_sign": bool(place % 4), "overlap": numbers(0.5), "covered": True}
        return alike | {"standardised_difference": numbers(0.7)}

    rows = []
    for place, told in enumerate(study.effects()):
        own: dict[str, Any] = {name: told[name] for name in ("estimate", "lower", "upper", "p_value")}
        rows.append(effect(told["term"], "real", fitted(told["estimate"])))
        made = (None, {}) if place == 1 else (fitted(1.4), against(place + 1))
        rows.append(effect(told["term"], "synthetic", made[0], **made[1]))
        private = (None, {}) if place == 2 else (own, against(place) | {"holds_real": bool(place % 5)})
        rows.append(effect(told["term"], "declared", private[0], **private[1]))
    regression(
        found,
        "effects.declared",
        rows,
        study=study.study,
        model=study.kind,
        outcome=study.outcome,
        measure=study.measure,
    )


def believable_details(found: Findings, columns: tuple[str, ...], numbers: Numbers) -> None:
    """Tails, point masses, single columns and steps: everything in them was read off real records."""

    def compared(measure: str, real: float, synthetic: float, near: float, **more: Any) -> dict[str, Any]:
        row = {"measure": measure, "at": None, "real": numbers(real), "synthetic": numbers(synthetic)}
        return row | {"few": False, **_estimate(numbers, near), "baseline": None} | more

    rows = []
    for place, name in enumerate(columns):
        of = {"of": "records", "column": name, "unit": "<i>mg</i>" if place % 2 else None}
        rows += [
            of | compared("spread_ratio", 1.5, 4.5, 3.0, baseline=numbers(1.0)),
            of | compared("percentile_1_error", 0.2, 0.6, 2.0, baseline=numbers(0.1)),
            of | compared("percentile_99_error", 9.0, 27.0, 2.0, baseline=numbers(0.1)),
            of | compared("point_mass_error", 0.7, 0.36, -0.34, at="<u>none</u>"),
        ]
    found.frame("tails", rows, confidential=True)
    single = []
    for name in columns:
        auc = _estimate(numbers, 0.8)
        row = {"column": name, "auc": auc["value"], "lower": auc["lower"], "upper": auc["upper"]}
        row |= {"last_digits": numbers(0.75), "size": 7133, "baseline": numbers(0.5)}
        single.append(row | {"reference": "held-out"})
    found.frame("single_columns", single, confidential=True)
    ratio = _estimate(numbers, 0.6)
    row = {"train": numbers(1.9), "synthetic": numbers(1.1), "ratio": ratio.pop("value")} | ratio
    found.frame("missing_cells", [row], confidential=True)
    for table, values in (("train", 7134), ("synthetic", 12)):
        row = {"table": table, "column": columns[0], "count": values, "step": 0.1, "unit": None}
        found.frame("finer_than_declared", [row], confidential=table == "train")


def _estimate(numbers: Numbers, near: float) -> dict[str, float]:
    return {"value": numbers(near), "lower": numbers(near - 0.1), "upper": numbers(near + 0.1)}


def table_one_details(found: Findings, columns: tuple[str, ...], numbers: Numbers) -> None:
    """Table 1 of both tables, whole and of one outcome; that of the real one holds planted numbers."""
    for group in (None, "death = <i>yes</i>"):
        for table in ("synthetic", "train"):
            internal = table == "train"
            of = {"table": table, "group": group, "records": 7135 if internal else 500}
            for place, name in enumerate(columns):
                rows = _summary(place, name, numbers if internal else None)
                found.frame("table_one", [of | row for row in rows], confidential=internal)
        chance = numbers(0.1)
        smds = [
            {"group": group, "column": name, "smd": numbers(0.7) if place else None, "chance": chance}
            for place, name in enumerate(columns)
        ]
        found.frame("table_one_differences", smds, confidential=True)


def _summary(place: int, name: str, numbers: Numbers | None) -> list[dict[str, Any]]:
    row: dict[str, Any] = {"column": name, "unit": "<i>mg</i>" if place % 2 else None, "form": "counts"}
    row |= dict.fromkeys(("label", "count", "center", "spread", "low", "high"))
    row |= {"special": (7137 if numbers else 4) if place % 3 == 1 else None}
    row |= {"missing": (7136 if numbers else 3) if place % 2 else None}
    if place % 3 == 0:
        counts = [7138, 7139, 7140] if numbers else [20, 30, 450]
        labels = ["<b>none</b>", "a|b", "other"][: 2 if place % 2 else 3]
        return [row | {"label": label, "count": count} for label, count in zip(labels, counts, strict=False)]
    values = [numbers(near) if numbers else near for near in (50.0, 12.0, 40.0, 60.0)]
    names = ("center", "spread", "low", "high")[: 2 if place % 3 == 1 else 4]
    form = {"form": "mean" if place % 3 == 1 else "median"}
    return [row | form | dict(zip(names, values, strict=False))]


def patient_details(found: Findings, columns: tuple[str, ...], numbers: Numbers) -> None:
    """Rows over time and a few patients of both tables; those of the real one are planted."""
    clock = columns[0]
    for table in ("synthetic", "train"):
        internal = table == "train"

        def told(*nears: float, internal: bool = internal) -> list[float]:
            return [numbers(near) for near in nears] if internal else [*nears]

        def add(
            name: str, of: dict[str, Any], internal: bool = internal, table: str = table, **cells: list[Any]
        ) -> None:
            rows = (dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True))
            found.frame(name, ({"table": table} | of | row for row in rows), confidential=internal)

        add("rows_per_patient", {}, rows=[1, 2, 3], share=told(0.5, 0.3, 0.2))
        add("gaps", {"clock": clock}, share=[0.0, 0.5, 1.0], gap=told(1.0, 30.0, 900.0))
        for name in columns[:2]:
            add("events", {"event": name, "clock": clock}, time=told(0.0, 90.0), share=told(0.9, 0.4))
        for name in columns[:4]:
            add("lags", {"column": name}, lag=[1, 2, 3], correlation=[*told(0.8, 0.7), None])
        for place, name in enumerate(columns[:4]):
            for patient in range(3):
                of = {"column": name, "unit": "<i>mg</i>" if place % 2 else None, "clock": clock}
                of |= {"patient": patient}
                add("paths", of, time=told(0.0, 10.0, 400.0), value=told(5.0, 6.0, 7.0))


def subgroup_details(found: Findings, columns: tuple[str, ...], numbers: Numbers) -> None:
    """Subgroups with scores, too few records, and without a score; everything in them is planted."""
    for place, name in enumerate(columns):
        of = {"column": name, "subgroup": "<b>F</b>"}
        row: dict[str, Any] = {}
        for part, near in (("real", 0.4), ("synthetic", 0.5), ("difference", 0.1)):
            ends = _estimate(numbers, near)
            row |= {part: ends["value"], f"{part}_lower": ends["lower"], f"{part}_upper": ends["upper"]}
        row |= {"records": 7141 + place, "events": 7151 + place, "event": "death = <i>yes</i>"}
        row |= {"model": "logistic_regression", "level": 0.95, "fewest": 20, "note": ""}
        found.frame("subgroups", [of | row], confidential=True)
        for table in ("synthetic", "train"):
            for score, near in (("auc", 0.8), ("calibration", 0.1)):
                known = place % 3 == 0 or (place % 3 == 2 and score == "auc")
                ends = _estimate(numbers, near) if known else dict.fromkeys(("value", "lower", "upper"))
                why = {"why": "too few" if place % 3 == 1 else ""}
                row = of | {"trained_on": table, "score": score} | ends | why
                found.frame("subgroup_scores", [row], confidential=True)


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
    looks = "Similarity to the training table"
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
        details_of(names, numbers),
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
