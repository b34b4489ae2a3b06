"""A small table with several rows for each patient, and its schema."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from dpsynth.patients.files import PatientFile
from dpsynth.patients.histories import Histories
from dpsynth.patients.rates import Rate
from dpsynth.patients.schema import PatientSchema
from dpsynth.table.schema import Column

VISITS = PatientSchema(
    unit="id",
    order="day",
    most=6,
    columns=(
        Column(name="day", kind="integer", lower=0, upper=365),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="lab", kind="integer", lower=0, upper=99, missing=True),
        Column(name="grade", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="weight", kind="continuous", lower=30, upper=200),
    ),
    per_patient=("sex",),
)


def visits(n: int, seed: int = 0, most: int = 9) -> pd.DataFrame:
    """One to nine rows of each of n patients, out of order. Labs lie around the patient's own level."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, most + 1, n)
    who = np.repeat(np.arange(n), rows)
    m = len(who)
    own = rng.integers(20, 80, n)
    lab = np.clip(own[who] + rng.integers(-9, 10, m), 0, 99).astype(float)
    lab[rng.random(m) < 0.2] = np.nan
    usual = rng.integers(0, 3, n)
    grade = np.where(rng.random(m) < 0.8, usual[who], rng.integers(0, 3, m))
    words = np.array(["a", "b", "c", None], dtype=object)
    return pd.DataFrame(
        {
            "id": who,
            "day": rng.integers(0, 366, m),
            "sex": np.array(["F", "M"])[rng.integers(0, 2, n)][who],
            "lab": lab,
            "grade": words[np.where(rng.random(m) < 0.1, 3, grade)],
            "weight": np.round(60 + 5 * rng.standard_normal(m), 1),
        }
    )


def histories_of(frame: pd.DataFrame, schema: PatientSchema) -> pd.DataFrame:
    """One row for each patient, as releases read them."""
    return Histories.of(frame, schema, np.random.default_rng(0)).to_frame(schema)


#: The same from two files, of which one gives two columns and one of them may be missing there.
FILED = VISITS.model_copy(
    update={
        "columns": tuple(c.model_copy(update={"missing": c.name == "grade"}) for c in VISITS.columns),
        "files": (
            PatientFile(name="patients.csv", columns=("sex",)),
            PatientFile(name="visits.csv", columns=("grade", "weight")),
            PatientFile(name="labs.csv", item="test", value="value", columns=("lab",)),
        ),
    }
)


def filed(n: int, seed: int = 0) -> pd.DataFrame:
    """Rows of `visits` of which some come from one of the two files, and some from both."""
    frame = visits(n, seed, most=FILED.most)
    lacks = np.random.default_rng(seed + 1).random(len(frame)) < 0.4
    frame.loc[lacks, ["grade", "weight"]] = None
    frame.loc[lacks & frame["lab"].isna(), "lab"] = 50.0
    return frame


#: Stays with a stage that never falls, a death, an age by formula, and rules.
STAYS = PatientSchema(
    unit="id",
    order="day",
    most=8,
    columns=(
        Column(name="day", kind="integer", lower=0, upper=4000),
        Column(name="end", kind="integer", lower=0, upper=4000),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="first_age", kind="continuous", lower=18, upper=90, decimals=1),
        Column(
            name="age", kind="continuous", lower=18, upper=101, decimals=1, derived="first_age + day / 365.25"
        ),
        Column(name="stage", kind="ordinal", categories=("I", "II", "III", "IV")),
        Column(name="dose", kind="integer", lower=0, upper=500, missing=True),
        Column(name="sbp", kind="integer", lower=60, upper=260),
        Column(name="dbp", kind="integer", lower=30, upper=160),
        Column(name="pregnant", kind="binary", categories=("no", "yes")),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    per_patient=("end", "sex", "first_age"),
    increasing=("stage", "dose"),
    terminal=("died",),
    constraints=(
        "day <= end",
        "dbp < sbp",
        "pregnant = yes implies sex = F and age < 56",
        "stage = I implies dose <= 300 or dose is missing",
    ),
)


def stays(n: int, seed: int = 0) -> pd.DataFrame:
    """Stays of n patients that obey the rules. Both pressures rise and fall together."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 9, n)
    who = np.repeat(np.arange(n), rows)
    m = len(who)
    day = (np.sort(rng.integers(0, 3000, (n, 8)), axis=1) + np.arange(8))[np.arange(8) < rows[:, None]]
    place = np.arange(m) - np.repeat(np.cumsum(rows) - rows, rows)
    last = place == rows[who] - 1
    sex, age = rng.choice(["F", "M"], n), np.round(rng.uniform(18, 90, n), 1)
    stage = np.minimum(rng.integers(0, 2, n)[who] + (place * rng.random(n)[who] * 0.7).astype(int), 3)
    dose = np.minimum(place * rng.integers(5, 41, n)[who], 300).astype(float)
    dose[rng.random(m) < 0.2] = np.nan
    sbp = np.round(rng.normal(130, 12, n)[who] + rng.normal(0, 12, m)).clip(70, 250)
    dbp = np.round(40 + 0.3 * sbp + rng.normal(0, 2, m)).clip(30, sbp - 1)
    young = (sex == "F")[who] & (age[who] + day / 365.25 < 55)
    return pd.DataFrame(
        {
            "id": who,
            "day": day,
            "end": np.maximum.reduceat(day, np.cumsum(rows) - rows)[who] + rng.integers(0, 900, n)[who],
            "sex": sex[who],
            "first_age": age[who],
            "stage": np.array(["I", "II", "III", "IV"])[stage],
            "dose": dose,
            "sbp": sbp,
            "dbp": dbp,
            "pregnant": np.where(young & (rng.random(m) < 0.1), "yes", "no"),
            "died": np.where(last & (rng.random(m) < 0.3), "yes", "no"),
        }
    )


#: Careers: experience and a stage that rise no faster than the time, and a wage that rises with experience.
CAREERS = PatientSchema(
    unit="id",
    order="day",
    most=6,
    columns=(
        Column(name="day", kind="integer", lower=0, upper=4000, unit="days"),
        Column(name="experience", kind="continuous", lower=0, upper=40, decimals=1, missing=True),
        Column(name="grade", kind="ordinal", categories=("I", "II", "III", "IV", "V")),
        Column(name="wage", kind="continuous", lower=0, upper=50, decimals=2),
    ),
    increasing=("experience", "grade"),
    rates=(Rate(column="experience", most=1, per="year"), Rate(column="grade", most=2, per="years")),
)


def careers(n: int, seed: int = 0) -> pd.DataFrame:
    """One to six rows of each of n persons, of whom each works a part of the time of their own."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 7, n)
    who = np.repeat(np.arange(n), rows)
    day = np.sort(rng.integers(0, 4000, (n, 6)), axis=1)[np.arange(6) < rows[:, None]]
    gap = np.where(np.r_[True, who[1:] != who[:-1]], 0, np.diff(day, prepend=0)) / 365.25
    works = np.where(rng.random(len(who)) < rng.beta(2, 0.5, n)[who], 1.0, 0.2) * gap
    steps = pd.DataFrame({"works": works, "grades": rng.random(len(who)) * gap}).groupby(who).cumsum()
    experience = rng.gamma(2, 4, n)[who] + steps["works"].to_numpy()
    grade = np.minimum((rng.random(n)[who] + steps["grades"].to_numpy()).astype(int), 4)
    wage = 10 + 0.8 * experience + rng.normal(0, 2, n)[who] + rng.normal(0, 0.3, len(who))
    return pd.DataFrame(
        {
            "id": who,
            "day": day,
            "experience": np.where(rng.random(len(who)) < 0.1, np.nan, np.floor(10 * experience) / 10),
            "grade": np.array(["I", "II", "III", "IV", "V"])[grade],
            "wage": wage.clip(0, 50).round(2),
        }
    )


#: Diagnoses at their first time, laboratory values beside some of them, and an end after which nothing comes.
DIAGNOSES = PatientSchema(
    unit="id",
    order="day",
    most=7,
    columns=(
        Column(name="day", kind="integer", lower=-4000, upper=4000),
        Column(name="end", kind="integer", lower=0, upper=4000),
        Column(name="age", kind="integer", lower=18, upper=99),
        Column(name="code", kind="categorical", categories=("index", "a", "b", "c", "d"), missing=True),
        Column(name="lab", kind="integer", lower=0, upper=99, missing=True),
    ),
    per_patient=("end", "age"),
    once=("code",),
    constraints=("day <= end",),
)


#: The same codes where a patient keeps each.
KEPT = DIAGNOSES.with_fields(once=(), chronic=("code",))


def diagnoses(n: int, seed: int = 0) -> pd.DataFrame:
    """Patients who have the index diagnosis at day 0, others before or after it, the older the more.

    Some codes stand there twice: the second one is no diagnosis.
    """
    rng = np.random.default_rng(seed)
    age, end = rng.integers(20, 95, n), rng.integers(100, 4000, n)
    parts = [pd.DataFrame({"id": np.arange(n), "day": rng.integers(0, 20, n), "code": "index"})]
    for code, share in (("a", 0.2), ("b", 0.5), ("c", 0.1), ("d", 0.3)):
        has = rng.random(n) < share * age / 60
        day = np.where(rng.random(n) < 0.4, -rng.integers(1, 3000, n), (rng.random(n) * end).astype(int))
        parts.append(pd.DataFrame({"id": np.arange(n), "day": day, "code": code})[has])
    frame = pd.concat(parts)
    again = frame.sample(frac=0.1, random_state=seed)
    frame = pd.concat([frame, again.assign(day=np.minimum(again["day"] + 50, end[again["id"]]))])
    frame["lab"] = np.where(rng.random(len(frame)) < 0.5, rng.integers(0, 100, len(frame)), np.nan)
    who = np.repeat(np.arange(n), rng.integers(0, 7, n))
    day, lab = (rng.random(len(who)) * end[who]).astype(int), rng.integers(0, 100, len(who))
    frame = pd.concat([frame, pd.DataFrame({"id": who, "day": day, "lab": lab})], ignore_index=True)
    return frame.assign(end=end[frame["id"]], age=age[frame["id"]])


#: Stays that last some hours, laboratory values within them, calls at any time, and deaths.
WARD_HOURS = PatientSchema(
    unit="id",
    order="hour",
    most=9,
    columns=(
        Column(name="hour", kind="integer", lower=0, upper=5000, unit="hours"),
        Column(name="age", kind="integer", lower=18, upper=99),
        Column(name="los", kind="integer", lower=0, upper=600, unit="hours"),
        Column(name="ward", kind="categorical", categories=("a", "b", "c")),
        Column(name="lab", kind="integer", lower=0, upper=99),
        Column(name="call", kind="binary", categories=("in", "out")),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    per_patient=("age",),
    terminal=("died",),
    files=(
        PatientFile(name="patients.csv", columns=("age",)),
        PatientFile(name="stays.csv", columns=("los", "ward"), lasts="los"),
        PatientFile(name="labs.csv", columns=("lab",), within="stays.csv"),
        PatientFile(name="calls.csv", columns=("call",)),
        PatientFile(name="deaths.csv", columns=("died",)),
    ),
)


def ward_hours(n: int, seed: int = 0, most: int = 9) -> pd.DataFrame:
    """Patients with up to three stays, whose values become the more the longer. Some values lie outside.

    The last one has six stays in whose first hour all else happens too.
    """
    rng = np.random.default_rng(seed)
    parts = []
    for i in range(n):
        hour, age = rng.integers(0, 1000), rng.integers(18, 100)
        own = [(hour + rng.integers(0, 2000), None, None, None, rng.choice(["in", "out"]), "no")]
        for _ in range(rng.integers(1, 4)):
            los = int(rng.integers(10, 200))
            own.append((hour, los, rng.choice([*"abc"]), rng.integers(0, 100), None, "no"))
            taken = np.arange(hour + 5, hour + los + 30 * (rng.random() < 0.1), 40)
            own += [(t, None, None, rng.integers(0, 100), None, "no") for t in taken]
            hour += los + rng.integers(0, 800)
        own = sorted(own, key=lambda row: row[0])[:most]
        if rng.random() < 0.3:
            own = [*own[: most - 1], (max(own[-1][0], hour), None, None, None, None, "yes")]
        parts += [(i, row[0], age, *row[1:]) for row in own]
    parts = [row for row in parts if row[0] < n - 1]
    for k in range(6):
        parts.append(
            (n - 1, 300 * k + 40 * k**2, 50, 30 + 5 * k, "abc"[k % 3], 40 + k**2, ["in", "out"][k % 2], "no")
        )
        parts += [(n - 1, 300 * k + 40 * k**2 + 20, 50, None, None, 50, None, "no")] * (k < 3)
    names = ["id", "hour", "age", "los", "ward", "lab", "call", "died"]
    return pd.DataFrame(parts, columns=names)


#: Rows in the order of a number that is not modelled, with categories that go together. A third of the
#: patients do not say whether they smoke.
WARDS = PatientSchema(
    unit="id",
    order="stay",
    most=6,
    columns=(
        Column(name="ward", kind="categorical", categories=("a", "b", "c")),
        Column(name="drug", kind="categorical", categories=("x", "y", "z"), missing=True),
        Column(name="stage", kind="ordinal", categories=(1, 2, 3)),
        Column(name="code", kind="categorical", categories=tuple(f"c{k}" for k in range(14))),
        Column(name="lab", kind="integer", lower=0, upper=99, missing=True),
        Column(name="smoker", kind="binary", categories=("no", "yes"), missing=True),
    ),
    per_patient=("smoker",),
    missing_words=("?",),
)


def wards(n: int, seed: int = 0) -> pd.DataFrame:
    """One to twelve stays of each of n patients, in any order. The number of a stay may have two digits."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), rng.integers(1, 13, n))
    m = len(who)
    ward = rng.integers(0, 3, m)
    drug = np.where(rng.random(m) < 0.7, ward, rng.integers(0, 3, m))
    lab = rng.integers(0, 100, m).astype(float)
    frame = pd.DataFrame(
        {
            "id": who,
            "stay": 1 + pd.Series(who).groupby(who).cumcount(),
            "ward": np.array(["a", "b", "c"])[ward],
            "drug": np.array(["x", "y", "z", None], dtype=object)[np.where(rng.random(m) < 0.1, 3, drug)],
            "stage": 1 + drug,
            "code": [f"c{k}" for k in rng.integers(0, 14, m)],
            "lab": np.where(rng.random(m) < 0.1, np.nan, lab),
            "smoker": np.array(["no", "yes", None], dtype=object)[rng.integers(0, 3, n)][who],
        }
    )
    return frame.iloc[rng.permutation(m)].reset_index(drop=True)


def _cells(column: Column, words: tuple[str, ...]) -> st.SearchStrategy:
    absent = [None, *words] if column.missing else []
    if not column.is_numeric:
        return st.sampled_from([*column.categories, *absent])
    low, high = map(int, column.bounds)
    odd = [low, high, low - 10**6, high + 10**15, *absent]
    return st.sampled_from(odd) | st.integers(low, high)


#: One patient's identifier.
SPELLINGS = ("new", " new", "new  ", "new\u00a0", "\u200bnew", "\uff4eew")


def patients_of(schema: PatientSchema) -> st.SearchStrategy[pd.DataFrame]:
    """Rows of any patient: too many, beyond the limits, empty, at one time, after a death, against rules.

    The patient's identifier may be spelled in several ways.
    """
    given = [column for column in schema.columns if column.derived is None]
    cells = {column.name: _cells(column, schema.missing_words) for column in given}
    if not schema.timed:
        cells[schema.order] = st.sampled_from([1, 2, 10, 2.5, "x", "010"])
    row = st.fixed_dictionaries(cells)
    rows = st.lists(row, min_size=1, max_size=2 * schema.most)
    many = st.tuples(row, st.integers(1, 2 * schema.most)).map(lambda pair: [pair[0]] * pair[1])
    spelled = st.lists(st.sampled_from(SPELLINGS), min_size=1, max_size=3)
    return st.tuples(rows | many, spelled).map(
        lambda made: pd.DataFrame(made[0], dtype=object).assign(
            **{schema.unit: np.resize(np.array(made[1], dtype=object), len(made[0]))}
        )
    )


def read_by_pandas(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame from a file that pandas reads: one cell decides whether a column holds numbers or text."""
    return pd.read_csv(io.StringIO(frame.to_csv(index=False)))
