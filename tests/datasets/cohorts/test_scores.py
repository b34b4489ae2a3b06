"""SAPS II, SOFA and OASIS of every demo patient with kidney injury, typed again from the papers.

Values are gathered with pandas, by our item numbers and limits (other tests compare these with labels);
the points are written here a second time.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pytest

from dpsynth.datasets.cohorts.definitions import RESOURCES

DAY, HOUR = pd.Timedelta("1D"), pd.Timedelta("1h")


def definition(name: str) -> pd.DataFrame:
    with (RESOURCES / "definitions" / f"{name}.csv").open() as source:
        return pd.read_csv(source)


def most(values: Iterable[float], *limits: tuple[float, int], rest: int = 0) -> int:
    """Most points of any value: those of the first limit that it lies below, else the rest."""
    return max((next((p for limit, p in limits if v < limit), rest) for v in values), default=0)


def sapsii(v: dict[str, list[float]], who: pd.Series, codes: set[str]) -> int:
    three = {code[:3] for code in codes}
    blood = three & {str(n) for n in range(200, 209)} or {c[:4] for c in codes} & {"2386", "2733"}
    metastases = three & {"196", "197", "198"} or {c[:4] for c in codes} & {"1990", "1991"}
    chronic = 17 if three & {"042", "043", "044"} else 10 if blood else 9 if metastases else 0
    elective = who["admission_type"] == "ELECTIVE"
    return (
        most([who["age"]], (40, 0), (60, 7), (70, 12), (75, 15), (80, 16), rest=18)
        + most(v["heart_rate"], (40, 11), (70, 2), (120, 0), (160, 4), rest=7)
        + most(v["systolic"], (70, 13), (100, 5), (200, 0), rest=2)
        + most(v["temperature"], (39, 0), rest=3)
        + most(v["ratio_ventilated"], (100, 11), (200, 9), rest=6)
        + most(v["urine_sum"], (500, 11), (1000, 4))
        + most(v["urea"], (28, 0), (84, 6), rest=10)
        + most(v["leucocytes"], (1, 12), (20, 0), rest=3)
        + most(v["potassium"], (3, 3), (5, 0), rest=3)
        + most(v["sodium"], (125, 5), (145, 0), rest=1)
        + most(v["bicarbonate"], (15, 6), (20, 3))
        + most(v["bilirubin"], (4, 0), (6, 4), rest=9)
        + most(v["gcs"], (6, 26), (9, 13), (11, 7), (14, 5))
        + chronic
        + (6 if not who["surgical"] else 0 if elective else 8)
    )


def sofa(v: dict[str, list[float]]) -> int:
    strong = [*v["epinephrine"], *v["norepinephrine"]]
    circulation = max(
        most(v["mean_pressure"], (70, 1)),
        2 if v["dobutamine"] else 0,
        max((2 if r <= 5 else 3 if r <= 15 else 4 for r in v["dopamine"]), default=0),
        max((3 if r <= 0.1 else 4 for r in strong), default=0),
    )
    return (
        max(most(v["ratio"], (300, 2), (400, 1)), most(v["ratio_ventilated"], (100, 4), (200, 3)))
        + most(v["platelets"], (20, 4), (50, 3), (100, 2), (150, 1))
        + most(v["bilirubin"], (1.2, 0), (2, 1), (6, 2), (12, 3), rest=4)
        + circulation
        + most(v["gcs"], (6, 4), (10, 3), (13, 2), (15, 1))
        + max(
            most(v["creatinine"], (1.2, 0), (2, 1), (3.5, 2), (5, 3), rest=4),
            most(v["urine_sum"], (200, 4), (500, 3)),
        )
    )


def oasis(v: dict[str, list[float]], who: pd.Series) -> int:
    before = (who["intime"] - who["admittime"]) / HOUR
    return (
        most([before], (0.17, 5), (4.95, 3), (24.01, 0), (311.81, 2), rest=1)
        + most([who["age"]], (24, 0), (54, 3), (78, 6), (90, 9), rest=7)
        + most(v["gcs"], (8, 10), (14, 4), (15, 3))
        + most(v["heart_rate"], (33, 4), (89, 0), (107, 1), (126, 3), rest=6)
        + most(v["mean_pressure"], (20.65, 4), (51, 3), (61.33, 2), (143.45, 0), rest=3)
        + most(v["respiratory_rate"], (6, 10), (13, 1), (23, 0), (31, 1), (45, 6), rest=9)
        + most(v["temperature"], (33.22, 3), (35.94, 4), (36.4, 2), (36.89, 0), (39.89, 2), rest=6)
        + most(v["urine_sum"], (671.09, 10), (1427, 5), (2544.15, 1), (6896.81, 0), rest=8)
        + (9 if v["ventilator"] else 0)
        + (0 if who["surgical"] and who["admission_type"] == "ELECTIVE" else 6)
    )


class Records:
    """The demo's tables, and what was measured of a stay in its first day."""

    def __init__(self, demo: Path) -> None:
        items, self.limits = definition("items"), definition("limits").set_index("concept")
        self.chosen = {key: of.set_index("itemid") for key, of in items.groupby(["source", "concept"])}
        self.none = items[:0].set_index("itemid")

        def read(name: str, *times: str, ending: str = "csv") -> pd.DataFrame:
            return pd.read_csv(demo / f"{name}.{ending}", parse_dates=list(times), low_memory=False)

        self.chart = read("CHARTEVENTS", "charttime", ending="csv.gz")
        self.chart = self.chart[self.chart["itemid"].isin(items["itemid"])]
        self.labs, self.out = read("LABEVENTS", "charttime"), read("OUTPUTEVENTS", "charttime")
        self.care, self.meta = (
            read("INPUTEVENTS_CV", "charttime"),
            read("INPUTEVENTS_MV", "starttime", "endtime"),
        )
        self.done, self.codes = read("PROCEDUREEVENTS_MV", "starttime", "endtime"), read("DIAGNOSES_ICD")
        self.services = read("SERVICES", "transfertime")
        people, admissions = read("PATIENTS"), read("ADMISSIONS", "admittime")
        stays = read("ICUSTAYS", "intime").merge(people[["subject_id", "dob"]], on="subject_id")
        self.stays = stays.merge(
            admissions[["hadm_id", "admittime", "admission_type"]], on="hadm_id"
        ).set_index("icustay_id")

    def of(self, frame: pd.DataFrame, source: str, concept: str) -> pd.DataFrame:
        chosen = self.chosen.get((source, concept), self.none)
        rows = frame[frame["itemid"].isin(chosen.index)]
        return rows.assign(
            factor=rows["itemid"].map(chosen["factor"]), plus=rows["itemid"].map(chosen["summand"])
        )

    def inside(self, rows: pd.DataFrame, concept: str) -> pd.DataFrame:
        value = (rows["valuenum"] * rows["factor"] + rows["plus"]).round(4)
        return rows.assign(v=value)[value.between(*self.limits.loc[concept, ["low", "high"]])]

    def measured(self, stay: int) -> tuple[dict[str, list[float]], pd.Series, set[str]]:
        who = self.stays.loc[stay].copy()
        begin, end = who["intime"], who["intime"] + DAY
        chart = self.chart[(self.chart["icustay_id"] == stay) & (self.chart["error"] != 1)]
        chart = chart[chart["charttime"].between(begin, end)]
        labs = self.labs[(self.labs["subject_id"] == who["subject_id"])]
        labs = labs[labs["charttime"].between(begin, end)]
        v: dict[str, list[float]] = {}
        for concept in self.limits.index:
            sources = (("chartevents", chart), ("labevents", labs))
            rows = [
                self.inside(self.of(frame, source, concept), concept)
                for source, frame in sources
                if (source, concept) in self.chosen
            ]
            v[concept] = [float(x) for found in rows for x in found["v"]]
        v["gcs"] = []
        parts = [
            self.inside(self.of(chart, "chartevents", f"gcs_{p}"), f"gcs_{p}")
            for p in ("eye", "motor", "verbal")
        ]
        for time in set.intersection(*(set(part["charttime"]) for part in parts)):
            at = [part[part["charttime"] == time] for part in parts]
            if not at[2]["value"].isin(["1.0 ET/Trach", "No Response-ETT"]).any():
                v["gcs"].append(sum(part["v"].min() for part in at))
        out = self.out[(self.out["icustay_id"] == stay) & self.out["charttime"].between(begin, end)]
        out = self.of(out, "outputevents", "urine").dropna(subset="value")
        v["urine_sum"] = [max(float((out["value"] * out["factor"]).sum()), 0.0)] if len(out) else []
        signs = self.of(chart, "chartevents", "ventilator").dropna(subset="value")
        signs = signs[
            ~signs["value"].isin(["Other/Remarks", "Other", "Standby"]) & (signs["valuenum"].fillna(1) > 0)
        ]
        done = self.of(self.done[self.done["icustay_id"] == stay], "procedureevents_mv", "ventilator")
        done = done[
            (done["statusdescription"] != "Rewritten")
            & (done["starttime"] <= end)
            & (done["endtime"] >= begin)
        ]
        spans = [(t, t) for t in signs["charttime"]] + list(
            zip(done["starttime"], done["endtime"], strict=True)
        )
        v["ventilator"] = [1.0] * len(spans)
        v["ratio"], v["ratio_ventilated"] = [], []
        fractions = self.of(chart, "chartevents", "fio2")
        share = (fractions["itemid"] == 223835) & (fractions["valuenum"] <= 1)
        fractions = self.inside(fractions.assign(factor=fractions["factor"].where(~share, 100)), "fio2")
        for time, at in labs.groupby("charttime"):
            gas = self.inside(self.of(at, "labevents", "pao2"), "pao2")["v"]
            if gas.empty or (at.loc[at["itemid"] == 50800, "value"].dropna() != "ART").any():
                continue
            own = self.inside(self.of(at, "labevents", "fio2"), "fio2")["v"]
            earlier = fractions[fractions["charttime"].between(time - 4 * HOUR, time)].sort_values(
                ["charttime", "v"]
            )
            if own.empty and earlier.empty:
                continue
            ratio = 100 * gas.min() / (own.max() if len(own) else earlier["v"].iloc[-1])
            v["ratio"].append(ratio)
            if any(a <= time and b >= time - 6 * HOUR for a, b in spans):
                v["ratio_ventilated"].append(ratio)
        for drug in ("dopamine", "dobutamine", "epinephrine", "norepinephrine"):
            care = self.of(self.care[self.care["icustay_id"] == stay], "inputevents_cv", drug)
            meta = self.of(self.meta[self.meta["icustay_id"] == stay], "inputevents_mv", drug)
            meta = meta[(meta["starttime"] <= end) & (meta["endtime"] >= begin)]
            meta = meta[meta["statusdescription"] != "Rewritten"]
            rates = pd.concat([care[care["charttime"].between(begin, end)], meta])
            assert set(rates["rateuom"].dropna().str.replace("/", "")) <= {"mcgkgmin"}  # no weight is needed
            v[drug] = [float(r) for r in rates["rate"].dropna() if r >= self.limits.loc[drug, "low"]]
        born = pd.Timestamp(who["dob"])
        who["age"] = min(begin.year - born.year - ((begin.month, begin.day) < (born.month, born.day)), 90)
        services = self.services[self.services["hadm_id"] == who["hadm_id"]].sort_values("transfertime")
        there = services[services["transfertime"] <= begin]
        service = (there.iloc[-1] if len(there) else services.iloc[0])["curr_service"]
        who["surgical"] = service.endswith("SURG") or service == "ORTHO"
        return v, who, set(self.codes.loc[self.codes["hadm_id"] == who["hadm_id"], "icd9_code"].astype(str))


@pytest.mark.slow
def test_scores_of_every_patient(demo, cohorts):
    """Points lost in a join, a lowest value where the worst counts, a gas without its fraction, in 33."""
    frame = cohorts["aki-mortality"].frame
    records = Records(demo)
    for stay in frame.index:
        values, who, codes = records.measured(stay)
        expected = (sapsii(values, who, codes), sofa(values), oasis(values, who))
        assert tuple(frame.loc[stay, ["sapsii", "sofa", "oasis"]]) == expected, stay
