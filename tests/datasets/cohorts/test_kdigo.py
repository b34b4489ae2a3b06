"""KDIGO stages of every demo patient against a transcription of the guideline's table 2, row by row."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dpsynth.datasets.cohorts.definitions import RESOURCES

DAY, HOUR = pd.Timedelta("1D"), pd.Timedelta("1h")


def creatinine_stage(values: pd.Series, intime: pd.Timestamp) -> int:
    """Values by time; those in the unit are staged against the seven days before each."""
    stage = 0
    for time, value in values[values.index >= intime].items():
        week = values[(values.index >= time - 7 * DAY) & (values.index <= time)]
        two_days = week[week.index >= time - 2 * DAY]
        ratio, rise = value / week.min(), round(value - two_days.min(), 6)
        if ratio >= 3 or (value >= 4 and (rise >= 0.3 or ratio >= 1.5)):
            stage = max(stage, 3)
        elif ratio >= 2:
            stage = max(stage, 2)
        elif ratio >= 1.5 or rise >= 0.3:
            stage = max(stage, 1)
    return stage


def urine_stage(volumes: pd.Series, weight: float | None, intime: pd.Timestamp) -> int:
    """Volumes by time; windows end at a charted volume and begin in the unit; one is the whole day."""
    if weight is None or volumes.empty:
        return 0
    stage = 3 if volumes.sum() / weight / 24 < 0.3 else 0
    for time in volumes.index:
        six = volumes[(volumes.index > time - 6 * HOUR) & (volumes.index <= time)].sum()
        twelve = volumes[(volumes.index > time - 12 * HOUR) & (volumes.index <= time)].sum()
        if time - intime >= 12 * HOUR and twelve <= 0:
            stage = 3
        elif time - intime >= 12 * HOUR and twelve / weight / 12 < 0.5:
            stage = max(stage, 2)
        elif time - intime >= 6 * HOUR and six / weight / 6 < 0.5:
            stage = max(stage, 1)
    return stage


@pytest.fixture(scope="module")
def tables(demo: Path) -> dict[str, pd.DataFrame]:
    columns = ["icustay_id", "itemid", "charttime", "value", "valuenum", "error"]
    return {
        "stays": pd.read_csv(demo / "ICUSTAYS.csv", parse_dates=["intime"]).set_index("icustay_id"),
        "labs": pd.read_csv(demo / "LABEVENTS.csv", parse_dates=["charttime"]),
        "out": pd.read_csv(demo / "OUTPUTEVENTS.csv", parse_dates=["charttime"]),
        "chart": pd.read_csv(demo / "CHARTEVENTS.csv.gz", usecols=columns, parse_dates=["charttime"]),
        "procedures": pd.read_csv(demo / "PROCEDUREEVENTS_MV.csv", parse_dates=["starttime", "endtime"]),
        "items": pd.read_csv(demo / "D_ITEMS.csv").set_index("itemid"),
    }


def during(events: pd.DataFrame, stay: int, begin: pd.Timestamp, end: pd.Timestamp) -> pd.DataFrame:
    own = events[events["icustay_id"] == stay]
    return own[own["charttime"].between(begin, end)]


@pytest.mark.slow
def test_stages_of_every_patient(cohorts, tables):
    """A window too long, a baseline after the value, an hour taken for a day, in any of 33 patients."""
    frame = cohorts["aki-mortality"].frame
    with (RESOURCES / "definitions" / "items.csv").open() as source:
        items = pd.read_csv(source)
    of_urine = items[items["concept"] == "urine"].set_index("itemid")["factor"]
    labels = tables["items"]["label"]
    creatinine = tables["labs"][tables["labs"]["itemid"] == 50912].dropna(subset="valuenum")
    expected = {}
    for stay in frame.index:
        who = tables["stays"].loc[stay]
        begin, end = who["intime"], who["intime"] + DAY
        labs = creatinine[creatinine["subject_id"] == who["subject_id"]]
        labs = labs[labs["valuenum"].between(0.1, 30) & (labs["charttime"] <= end)].set_index("charttime")
        out = during(tables["out"], stay, begin, end)
        out = out[out["itemid"].isin(of_urine.index)].dropna(subset="value")
        volumes = (out["value"] * out["itemid"].map(of_urine)).groupby(out["charttime"]).sum()
        chart = during(tables["chart"], stay, begin, end)
        chart = chart[chart["error"] != 1]
        label = chart["itemid"].map(labels)
        kilograms = chart["valuenum"].where(
            label != "Admission Weight (lbs.)", chart["valuenum"] * 0.45359237
        )
        weighed = chart.assign(kilograms=kilograms)[
            label.str.contains(r"Admit Wt|Daily Weight|Admission Weight")
        ]
        weighed = weighed[weighed["kilograms"].between(25, 350)].sort_values(["charttime", "kilograms"])
        weight = float(weighed["kilograms"].iloc[0]) if len(weighed) else None
        procedures = tables["procedures"][tables["procedures"]["icustay_id"] == stay]
        procedures = procedures[(procedures["starttime"] <= end) & (procedures["endtime"] >= begin)]
        dialysed = procedures["itemid"].map(labels).str.contains("ialysis -|Hemodialysis|Peritoneal D").any()
        dialysed |= bool(chart[chart["itemid"] == 152]["value"].notna().any())
        dialysed |= bool((chart[chart["itemid"] == 146]["valuenum"] > 0).any())
        stages = [creatinine_stage(labs["valuenum"].sort_index(), begin), urine_stage(volumes, weight, begin)]
        expected[stay] = max(*stages, 3 if dialysed else 0)
    assert frame["kdigo_stage"].astype(int).to_dict() == expected
    assert set(expected.values()) == {0, 1, 2, 3}
