"""Sixty columns of made-up tables as hospitals have them, each with what a draft must ask about it.

None of them is real. The tables are written as text, as a file has them, so a draft sees what a reader sees.
`TABLES` has each table with its traps. Columns without a trap are ordinary: a question about one of them is
needless (but that for a public list, which a draft always asks).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

ROWS = 600


@dataclass(frozen=True)
class Trap:
    """A column and the identifiers of the questions of which one must be asked about it."""

    column: str
    ask: tuple[str, ...]


@dataclass(frozen=True)
class Trapped:
    """A table and its traps. ``whole`` has questions about the table."""

    name: str
    frame: pd.DataFrame
    traps: tuple[Trap, ...]


def _traps(**columns: str) -> tuple[Trap, ...]:
    return tuple(Trap(column, tuple(asked.split())) for column, asked in columns.items())


def _picked(rng: np.random.Generator, values: object, n: int = ROWS, fall: float = 1.1) -> np.ndarray:
    """Values of a list, the first ones most often."""
    held = np.asarray(list(values), dtype=object)  # type: ignore[call-overload]
    weights = 1.0 / (1.0 + np.arange(len(held))) ** fall
    return rng.choice(held, size=n, p=weights / weights.sum())


def _written(values: np.ndarray, decimals: int = 0) -> np.ndarray:
    return np.array([f"{value:.{decimals}f}" for value in values], dtype=object)


def _some(rng: np.random.Generator, values: np.ndarray, share: float, word: str) -> np.ndarray:
    """The values, a share of them replaced by one word."""
    made = np.array(values, dtype=object)
    made[rng.random(len(made)) < share] = word
    return made


def _dates(
    rng: np.random.Generator, n: int = ROWS, first: str = "2012-01-01", days: int = 3000
) -> np.ndarray:
    moments = np.datetime64(first) + rng.integers(0, days, n).astype("timedelta64[D]")
    return moments.astype(str).astype(object)


def ordinary(rng: np.random.Generator, n: int = ROWS) -> dict[str, np.ndarray]:
    """Columns about which nothing need be asked."""
    return {
        "age": _written(rng.normal(62, 14, n).clip(18, 99)),
        "sex": _picked(rng, ("F", "M"), n, 0.1),
        "systolic": _written(rng.normal(131, 18, n).clip(80, 220)),
        "haemoglobin": _written(rng.normal(13.2, 1.6, n).clip(6, 19), 1),
        "smoker": _picked(rng, ("no", "yes"), n),
        "length_of_stay": _written(rng.gamma(2.0, 3.0, n).clip(0, 80)),
    }


def _codes(rng: np.random.Generator) -> Trapped:
    icd = [
        f"{whole:03d}.{rest:02d}"
        for whole in (38, 250, 401, 410, 414, 428, 486, 584)
        for rest in (0, 1, 9, 90)
    ]
    whole = {
        "icd9_code": _picked(rng, icd),
        "cpt_code": _picked(rng, [str(99200 + 7 * i) for i in range(60)]),
        "drg": _picked(rng, [str(v) for v in rng.choice(np.arange(1, 990), 70, replace=False)]),
        "itemid": _picked(rng, [str(v) for v in rng.choice(np.arange(50800, 51500), 120, replace=False)]),
        "drug_code": _picked(rng, [str(v) for v in rng.choice(np.arange(100000, 999999), 90, replace=False)]),
        "snomed": _picked(rng, [str(v) for v in rng.integers(10**16, 10**17, 60)]),
        "hospital_id": _picked(rng, [str(v) for v in rng.choice(np.arange(1, 400), 80, replace=False)]),
    }
    asked = "code_numbers"
    traps = dict.fromkeys(whole, asked) | {"icd9_code": "code_numbers code_tree"}
    return Trapped("codes", pd.DataFrame(ordinary(rng) | whole), _traps(**traps))


def _trees(rng: np.random.Generator) -> Trapped:
    atc = [
        f"{a}{b:02d}{c}{d}{e:02d}"
        for a in "ACJN"
        for b in (1, 3, 7)
        for c in "AB"
        for d in "AC"
        for e in (1, 2, 4)
    ]
    icd = [f"{a}{b:02d}.{c}" for a in "CEIJ" for b in (10, 11, 25, 48, 50) for c in (0, 1, 9)]
    held = {
        "atc_code": _picked(rng, atc),
        "main_diagnosis": _picked(rng, icd),
        "other_diagnoses": np.array(
            [";".join(dict.fromkeys(_picked(rng, icd, k))) for k in rng.integers(1, 5, ROWS)], dtype=object
        ),
    }
    traps = _traps(atc_code="code_tree", main_diagnosis="code_tree", other_diagnoses="several_values")
    return Trapped("trees", pd.DataFrame(ordinary(rng) | held), traps)


def _placeholders(rng: np.random.Generator) -> Trapped:
    plain = ordinary(rng)
    held = {
        "admitted_on": _dates(rng),
        "died_on": _some(rng, _dates(rng, first="2013-01-01"), 0.79, "1900-01-01"),
        "insured_until": _some(rng, _dates(rng, first="2013-01-01"), 0.4, "9999-12-31"),
        "planned_end": _some(rng, _dates(rng, first="2014-01-01"), 0.2, "2099-12-31"),
        "age": _some(rng, plain["age"], 0.02, "300"),
        "bmi": _some(rng, _written(rng.normal(27, 4, ROWS).clip(15, 50), 1), 0.05, "0"),
        "glucose": _some(rng, _written(rng.normal(6.1, 1.5, ROWS).clip(3, 18), 1), 0.04, "0"),
        "crp": _some(rng, _written(rng.gamma(1.2, 30, ROWS).clip(1, 320)), 0.03, "1000"),
        "creatinine": _some(rng, _written(rng.normal(1.1, 0.3, ROWS).clip(0.4, 3), 2), 0.03, "9.99"),
        "potassium": _some(rng, _written(rng.normal(4.2, 0.5, ROWS).clip(2.5, 6.5), 1), 0.03, "-99.9"),
        "weight": _some(rng, _written(rng.normal(78, 14, ROWS).clip(40, 160)), 0.03, "999"),
        "heart_rate": _some(rng, _written(rng.normal(82, 15, ROWS).clip(40, 170)), 0.02, "0"),
    }
    traps = dict.fromkeys([name for name in held if name != "admitted_on"], "placeholder")
    return Trapped("placeholders", pd.DataFrame(plain | held), _traps(**traps))


def _numbers(rng: np.random.Generator) -> Trapped:
    cost = rng.gamma(2.0, 900.0, ROWS)
    held = {
        "charges": np.array([f"{value:,.2f}" for value in cost], dtype=object),
        "price": np.array([f"€ {value:.2f}" for value in cost / 10], dtype=object),
        "swiss": np.array([f"{value:,.0f}".replace(",", "'") for value in cost], dtype=object),
        "narrow": np.array([f"{value:,.0f}".replace(",", "\u202f") for value in cost], dtype=object),
        "ferritin": _some(rng, _written(rng.gamma(2.0, 60, ROWS).clip(5, 900)), 0.15, "N"),
        "seen_at": np.array(
            [
                f"{h:02d}:{m:02d}"
                for h, m in zip(rng.integers(0, 24, ROWS), rng.integers(0, 60, ROWS), strict=True)
            ],
            dtype=object,
        ),
        "troponin": _some(rng, _written(rng.gamma(1.0, 3.0, ROWS).clip(0.51, 40), 2), 0.3, "<0.50"),
        "ejection": np.array(
            [f"{value:.0f}%" for value in rng.normal(52, 9, ROWS).clip(15, 75)], dtype=object
        ),
        "age_band": _picked(rng, [f"{a}-{a + 9}" for a in range(20, 90, 10)], fall=0.3),
        "pressure": np.array(
            [
                f"{a:.0f}/{b:.0f}"
                for a, b in zip(rng.normal(130, 15, ROWS), rng.normal(78, 9, ROWS), strict=True)
            ],
            dtype=object,
        ),
        "dose": np.array([f"{value:g} mg" for value in rng.choice([2.5, 5, 10, 20, 40], ROWS)], dtype=object),
    }
    traps = _traps(
        charges="number_marks",
        price="number_marks",
        swiss="number_marks",
        narrow="number_marks",
        ferritin="missing_word",
        troponin="below_detection",
        ejection="number_marks",
        age_band="ordered_bands",
        pressure="two_numbers",
        dose="number_marks",
    )
    return Trapped("numbers", pd.DataFrame(ordinary(rng) | held), traps)


def _dots(rng: np.random.Generator) -> Trapped:
    """From a semicolon file of a country that writes dots between thousands."""
    counts = np.array(
        [f"{value:,.0f}".replace(",", ".") for value in rng.gamma(2.0, 1000, ROWS) + 40], dtype=object
    )
    held = {
        "leukocytes": counts,
        "weight": np.array([f"{v:.1f}".replace(".", ",") for v in rng.normal(78, 12, ROWS)], dtype=object),
    }
    plain = {name: column for name, column in ordinary(rng).items() if name != "haemoglobin"}
    return Trapped("dots", pd.DataFrame(plain | held), _traps(leukocytes="thousands"))


def _spelling(rng: np.random.Generator) -> Trapped:
    held = {
        "gender": _picked(rng, ("female", "male", "Female", "MALE", "Male"), fall=0.6),
        "history": _picked(rng, ("diabetes", "none", "hypertension", "diabetis", "hypertention"), fall=0.8),
        "ward_name": _picked(rng, ("Cardiology", "Surgery", "cardiology", "ICU", "I.C.U."), fall=0.7),
    }
    return Trapped(
        "spelling",
        pd.DataFrame({k: v for k, v in ordinary(rng).items() if k != "sex"} | held),
        _traps(gender="spelling", history="spelling", ward_name="spelling"),
    )


def _persons(rng: np.random.Generator, named: str) -> Trapped:
    """Rows of persons: constants of a person, measurements that change."""
    persons, years = 150, 4
    who = np.repeat(rng.choice(np.arange(1000, 90000), persons, replace=False), years)
    born = np.repeat(rng.integers(1930, 1990, persons), years)
    held = {
        named: who.astype(str).astype(object),
        "year": np.tile(np.arange(2001, 2001 + years), persons).astype(str).astype(object),
        "sex": np.repeat(_picked(rng, ("F", "M"), persons, 0.1), years),
        "born": born.astype(str).astype(object),
        "income": _written(rng.gamma(3.0, 9000.0, persons * years)),
        "weight": _written(
            (np.repeat(rng.normal(75, 12, persons), years) + rng.normal(0, 2, persons * years)), 1
        ),
    }
    return Trapped(f"persons by {named}", pd.DataFrame(held), _traps(**{named: "person"}))


def _long(rng: np.random.Generator) -> Trapped:
    n = ROWS
    labname = _picked(rng, ("sodium", "potassium", "creatinine", "haemoglobin"), n, 0.3)
    centre = {"sodium": (139, 4), "potassium": (4.2, 0.5), "creatinine": (90, 25), "haemoglobin": (13, 1.6)}
    result = np.array([rng.normal(*centre[name]) for name in labname])
    held = {
        "patientunitstayid": np.repeat(np.arange(5000, 5000 + n // 6), 6).astype(str).astype(object),
        "labname": labname,
        "labresult": _written(result, 1),
    }
    return Trapped("long", pd.DataFrame(held), _traps(patientunitstayid="person", labresult="items"))


def _names(rng: np.random.Generator) -> Trapped:
    names = [
        a + b for a in ("Ba", "Ke", "Lo", "Mi", "Ta", "Zo") for b in ("rin", "lan", "mer", "ston", "vik")
    ]
    held = {
        "fake_last_name": _picked(rng, names, fall=0.3),
        "first_name": _picked(rng, ["Anna", "Maria", "Peter", "Jan", "Eva", *names[:20]], fall=0.5),
        "gp_name": _picked(rng, ["Dr " + name for name in names], fall=0.4),
        "zip": _picked(
            rng, [str(v) for v in rng.choice(np.arange(10000, 99999), 200, replace=False)], fall=0.4
        ),
        "birth_date": _dates(rng, first="1930-01-01", days=22000),
        "ssn_last4": _written(rng.integers(1000, 9999, ROWS)),
        "street": _picked(rng, [f"{name} Street" for name in names], fall=0.4),
    }
    return Trapped("names", pd.DataFrame(ordinary(rng) | held), _traps(**dict.fromkeys(held, "identifying")))


def _related(rng: np.random.Generator) -> Trapped:
    plain = ordinary(rng)
    race = rng.choice(5, size=ROWS, p=(0.6, 0.2, 0.1, 0.06, 0.04))
    sets = {
        f"race_{name}": (race == i).astype(int).astype(str).astype(object)
        for i, name in enumerate(("white", "black", "asian", "native", "other"))
    }
    celsius = rng.normal(37.1, 0.7, ROWS).clip(34, 41)
    hospital = rng.choice(30, size=ROWS)
    bmi = rng.normal(27, 4, ROWS).clip(15, 50)
    held = {
        **sets,
        "birth_year": np.array([str(2020 - int(age)) for age in plain["age"]], dtype=object),
        "temp_c": _written(celsius, 1),
        "temp_f": _written(celsius.round(1) * 1.8 + 32, 1),
        "bmi_value": _written(bmi, 1),
        "bmi_class": np.select(
            [bmi.round(1) < 18.5, bmi.round(1) < 25, bmi.round(1) < 30], ["under", "normal", "over"], "obese"
        ).astype(object),
        "hospital": np.array([f"H{i:02d}" for i in hospital], dtype=object),
        "region": np.array([f"R{i % 5}" for i in hospital], dtype=object),
        "days_ward": _written(rng.gamma(2.0, 2.0, ROWS)),
        "days_icu": _written(rng.gamma(0.6, 2.0, ROWS)),
    }
    held["days_total"] = np.array(
        [str(int(a) + int(b)) for a, b in zip(held["days_ward"], held["days_icu"], strict=True)], dtype=object
    )
    traps = _traps(
        race_white="one_of_a_set",
        birth_year="same_measure",
        temp_f="same_measure",
        bmi_class="decided_by",
        region="decided_by",
        days_total="sum_of_parts",
    )
    return Trapped("related", pd.DataFrame(plain | held), traps)


def tables(seed: int = 0) -> Iterator[Trapped]:
    """All tables, each from its own random numbers."""
    makers: list[Callable[[np.random.Generator], Trapped]] = [
        _codes,
        _trees,
        _placeholders,
        _numbers,
        _dots,
        _spelling,
        _long,
        _names,
        _related,
        *(
            (lambda rng, named=named: _persons(rng, named))
            for named in ("idcode", "uniquepid", "patnr", "lopnr", "who")
        ),
    ]
    for i, make in enumerate(makers):
        yield make(np.random.default_rng([seed, i]))
