"""Stays of made-up patients with laboratory values whose truth is known.

    python -m benchmarks.patients_stays --seeds 3

Each patient has up to five stays, and those of frail patients are longer. Values are taken soon after
admission and then about each day. Some stays end in a death, which has a file of its own.
Half of 8,000 patients train and half judge. Medians over seeds. ``--demo`` takes the MIMIC-III demo instead.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp

from benchmarks.patients.command import judged
from dpsynth import DPMarginals, PatientSchema

TEXT = """
unit: id
rows: {most: 40, order: hour}
files:
  patients.csv: [age]
  stays.csv: {lasts: los, columns: [los, ward]}
  labs.csv: {within: stays.csv, columns: [creatinine, sodium]}
  deaths.csv: [died]
columns:
  - {name: hour, kind: integer, lower: 0, upper: 30000, unit: hours}
  - {name: age, kind: integer, lower: 18, upper: 100, per: patient}
  - {name: los, kind: integer, lower: 0, upper: 1000, unit: hours, scale: log}
  - {name: ward, kind: categorical, categories: [medicine, surgery, intensive]}
  - {name: creatinine, kind: continuous, lower: 0.1, upper: 20, decimals: 1, scale: log}
  - {name: sodium, kind: integer, lower: 100, upper: 180}
  - {name: died, kind: binary, categories: ["no", "yes"], over_time: terminal}
"""
DEMO = """
unit: subject_id
rows: {most: 60, order: hour}
files:
  patients.csv: [gender]
  stays.csv: {lasts: los, columns: [los, admission]}
  labs.csv: {within: stays.csv, columns: [creatinine, potassium, sodium, haemoglobin]}
columns:
  - {name: hour, kind: integer, lower: 0, upper: 150000, unit: hours}
  - {name: gender, kind: binary, categories: [F, M], per: patient}
  - {name: los, kind: integer, lower: 0, upper: 3000, unit: hours, scale: log}
  - {name: admission, kind: categorical, categories: [ELECTIVE, EMERGENCY, URGENT]}
  - {name: creatinine, kind: continuous, lower: 0.1, upper: 20, decimals: 1, missing: true}
  - {name: potassium, kind: continuous, lower: 1, upper: 12, decimals: 1, missing: true}
  - {name: sodium, kind: integer, lower: 90, upper: 190, missing: true}
  - {name: haemoglobin, kind: continuous, lower: 2, upper: 22, decimals: 1, missing: true}
"""
LABS = ("creatinine", "sodium")


def files(n: int, seed: int) -> dict[str, pd.DataFrame]:
    """The files of n made-up patients."""
    rng = np.random.default_rng(seed)
    age, frail = np.clip(rng.normal(62, 15, n), 18, 95).round().astype(int), rng.standard_normal(n)
    stays, labs, deaths = [], [], []
    for i in range(n):
        hour, usual = rng.uniform(0, 8760), rng.normal(0, 0.4)
        for _ in range(min(1 + rng.geometric(0.5), 5) if frail[i] > 0 else rng.integers(1, 3)):
            los = float(np.clip(np.exp(4.4 + 0.5 * frail[i] + 0.6 * rng.standard_normal()), 4, 700))
            if hour + los > 29_000:
                break
            stays.append(
                (i, hour, los, ("medicine", "surgery", "intensive")[rng.choice(3, p=[0.6, 0.3, 0.1])])
            )
            taken = hour + rng.exponential(1.5)
            while taken < hour + los:
                level = np.exp(usual + 0.2 * frail[i] + 0.15 * rng.standard_normal())
                labs.append((i, taken, level.clip(0.1, 20).round(1), rng.normal(139, 3)))
                taken += max(rng.normal(24, 3) if rng.random() < 0.8 else rng.uniform(4, 20), 1)
            hour += los
            if rng.random() < 0.02 + 0.001 * max(age[i] - 50, 0):
                deaths.append((i, hour, "yes"))
                break
            hour += rng.lognormal(7.2, 1)
    found = {
        "patients.csv": pd.DataFrame({"id": np.arange(n), "age": age}),
        "stays.csv": pd.DataFrame(stays, columns=["id", "hour", "los", "ward"]),
        "labs.csv": pd.DataFrame(labs, columns=["id", "hour", *LABS]),
        "deaths.csv": pd.DataFrame(deaths, columns=["id", "hour", "died"]),
    }
    ends = np.floor(found["stays.csv"][["hour", "los"]].sum(axis=1))
    for frame in found.values():
        frame[[c for c in frame if c in ("hour", "sodium")]] //= 1
    found["stays.csv"]["los"] = ends - found["stays.csv"]["hour"]
    return found


def demo() -> dict[str, pd.DataFrame]:
    """Admissions of the MIMIC-III demo and four laboratory values, by hours since the patient's first."""
    folder = Path(os.environ.get("DPSYNTH_DATA_DIR", ".")) / "mimic3-demo"
    items = {50912: "creatinine", 50971: "potassium", 50983: "sodium", 51222: "haemoglobin"}
    labs = pd.read_csv(folder / "LABEVENTS.csv", parse_dates=["charttime"])
    labs = labs[labs["itemid"].isin(items)].dropna(subset="valuenum")
    labs = labs.pivot_table("valuenum", ["subject_id", "charttime"], labs["itemid"].map(items)).reset_index()
    stays = pd.read_csv(folder / "ADMISSIONS.csv", parse_dates=["admittime", "dischtime"])
    first = pd.concat(
        [labs[["subject_id", "charttime"]].set_axis(["subject_id", "admittime"], axis=1), stays]
    )
    first = first.groupby("subject_id")["admittime"].min()

    def hours(times: pd.Series, who: pd.Series) -> pd.Series:
        return (times - who.map(first)) // pd.Timedelta("1h")

    labs["hour"] = hours(labs["charttime"], labs["subject_id"])
    stays["hour"] = hours(stays["admittime"], stays["subject_id"])
    stays["los"] = hours(stays["dischtime"], stays["subject_id"]) - stays["hour"]
    stays = stays.rename(columns={"admission_type": "admission"})
    people = pd.read_csv(folder / "PATIENTS.csv")[["subject_id", "gender"]]
    kept = ["subject_id", "hour", "los", "admission"]
    return {"patients.csv": people, "stays.csv": stays[kept], "labs.csv": labs.drop(columns="charttime")}


def joined(parts: dict[str, pd.DataFrame], schema: PatientSchema) -> pd.DataFrame:
    """The rows that the files give together, as many as are used."""
    with TemporaryDirectory() as place:
        for name, frame in parts.items():
            frame.to_csv(Path(place) / name, index=False)
        rows = schema.read(place)
    return rows.groupby(schema.unit, sort=False).head(schema.most).reset_index(drop=True)


def measures(rows: pd.DataFrame, real: pd.DataFrame, schema: PatientSchema) -> dict[str, float]:
    """What is impossible, and how near times are to those of real rows."""
    (found, labs), (truth, _) = (_timed(table, schema) for table in (rows, real))
    names = list(next(file.columns for file in schema.files if file.name == "labs.csv"))
    inside = labs["end"] >= labs["hour"]
    stays = rows[rows["los"].notna()]
    again = stays["hour"] < (stays["hour"] + stays["los"]).groupby(stays[schema.unit]).shift()
    after = pd.Series([0.0])
    if "died" in rows:
        dead = rows["hour"].where(rows["died"] == "yes").groupby(rows[schema.unit]).transform("min")
        after = (rows["hour"] > dead) & rows[names].notna().any(axis=1)
    far = {name: ks_2samp(found[name], truth[name]).statistic for name in truth}
    many = stays.assign(labs=labs.groupby("stay").size().reindex(stays.index, fill_value=0))
    return {
        "outside, %": 100 * float(1 - inside.mean()),
        "overlap, %": 100 * float(again.sum() / (stays.groupby(schema.unit).size() - 1).sum()),
        "after death, %": 100 * float(after.mean()),
        **{f"{name}, KS": float(value) for name, value in far.items()},
        "los and labs, r": float(many["los"].corr(many["labs"], method="spearman")),
    }


def _timed(rows: pd.DataFrame, schema: PatientSchema) -> tuple[dict[str, pd.Series], pd.DataFrame]:
    """Times between rows and stays, lengths, places in stays, and rows with values beside the stay before."""
    names = list(next(file.columns for file in schema.files if file.name == "labs.csv"))
    # a stay before rows of its first hour
    rows = rows.assign(later=rows["los"].isna()).sort_values([schema.unit, "hour", "later"], kind="stable")
    own = rows[schema.unit]
    stay = rows["los"].notna()
    before = pd.DataFrame(
        {"begin": rows["hour"].where(stay), "end": (rows["hour"] + rows["los"]).where(stay)}
    )
    before["stay"] = pd.Series(rows.index, rows.index).where(stay)
    before = before.groupby(own).ffill()
    labs = rows[names].notna().any(axis=1)
    placed = rows[["hour"]].join(before)[labs]
    inside = placed[placed["end"] >= placed["hour"]]
    place = (inside["hour"] - inside["begin"]) / (inside["end"] - inside["begin"]).clip(lower=1)
    stays = rows[stay]
    idle = stays["hour"] - (stays["hour"] + stays["los"]).groupby(stays[schema.unit]).shift()
    in_stay = placed["hour"].groupby(placed["stay"]).diff()
    found = {"gaps": rows["hour"].groupby(own).diff(), "gaps in stays": in_stay, "between stays": idle}
    found |= {"los": stays["los"], "place": place, "labs of a stay": inside.groupby("stay").size()}
    return {name: values.dropna() for name, values in found.items()}, placed


def main() -> None:
    """Print a line for each schema and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--patients", type=int, default=4000)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--arms", nargs="+", default=["plain", "stays"])
    parser.add_argument("--demo", action="store_true")
    asked = parser.parse_args()
    schema = PatientSchema.from_yaml(DEMO if asked.demo else TEXT)
    plain = [file.model_copy(update={"lasts": None, "within": None}) for file in schema.files]
    schemas = {"plain": schema.with_fields(files=tuple(plain)), "stays": schema}
    parts = demo() if asked.demo else files(2 * asked.patients, 0)
    rows = joined(parts, schema)
    ids = np.sort(rows[schema.unit].unique())
    first = np.random.default_rng(0).permutation(len(ids)) < len(ids) // 2
    mine = rows[schema.unit].isin(ids[first])
    train, test = rows[mine].reset_index(drop=True), rows[~mine].reset_index(drop=True)
    n = int(first.sum())

    def line(made: pd.DataFrame, beside: pd.DataFrame) -> dict[str, float]:
        found = judged(made, train, beside, plain_schema)
        return measures(made, beside, schema) | {"patient AUC": found["patient AUC"], "lags": found["lags"]}

    plain_schema = schemas["plain"].with_fields(n_public=n)
    lines = {"real": pd.Series(line(test, train))}
    for arm in asked.arms:
        for epsilon in asked.epsilons:
            found = []
            for seed in range(asked.seeds):
                model = DPMarginals(epsilon, 1e-5, random_state=seed)
                model.fit(train, schema=schemas[arm].with_fields(n_public=n))
                found.append(line(model.sample(n, random_state=seed), test))
            lines[f"{arm}, {epsilon:g}"] = pd.DataFrame(found).median()
            print(pd.DataFrame(lines).round(3).to_string(), flush=True)


if __name__ == "__main__":
    main()
