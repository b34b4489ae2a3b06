"""Formulas and rules that names, units and kinds suggest, and how they are asked about and counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth import DPMarginals, PatientSchema, datasets
from dpsynth.cli import main
from dpsynth.patients import infer_patient_schema
from dpsynth.table import Column, Schema, infer_schema
from dpsynth.table.suggestions import suggested


def column(text: str) -> Column:
    """A number such as ``height`` or ``height[cm]``, ``admitted:date``, ``n:integer`` or ``sex:F|M``."""
    name, _, kind = text.partition(":")
    if "|" in kind:
        values = tuple(int(v) if v.isdigit() else v for v in kind.split("|"))
        return Column(name=name, kind="binary" if len(values) == 2 else "categorical", categories=values)
    if kind in ("date", "datetime"):
        return Column(name=name, kind=kind, lower="1900-01-01", upper="2100-01-01")
    name, _, unit = name.rstrip("]").partition("[")
    return Column(name=name, kind=kind or "continuous", lower=1, upper=300, unit=unit or None)


def asked(*columns: str) -> list[str]:
    """What a table of these columns is asked about, each of which its schema can declare."""
    schema = Schema(columns=tuple(map(column, (*columns, "filler"))))
    found = suggested(schema)
    for one in found:
        for text in one.texts:
            one.adopted(schema, text)
    return [one.shown(" | ".join(one.texts)) for one in found]


UNITS = [
    ("weight[kg] height[m] BMI", "BMI = weight / height ** 2"),
    ("weight[kg] height[cm] BMI", "BMI = weight / (height / 100) ** 2"),
    ("weight[lbs] height[inches] BMI", "BMI = (weight * 0.45359237) / (height * 0.0254) ** 2"),
    ("weight_kg height_in_cm BMI", "BMI = weight_kg / (height_in_cm / 100) ** 2"),
    ("weight_kg height_in BMI", "BMI = weight_kg / (height_in * 0.0254) ** 2"),
    ("wt_lb ht bmi_kg_m2", "bmi_kg_m2 = (wt_lb * 0.45359237) / (ht * 0.0254) ** 2"),
    ("weight height[m] BMI", "BMI = weight / height ** 2"),
    ("Weight Height_cm bmi", "bmi = Weight / (Height_cm / 100) ** 2"),
    (
        "weight height bmi",  # no unit: one formula for each usual pair
        "bmi = weight / height ** 2 | weight / (height / 100) ** 2 | "
        "(weight * 0.45359237) / (height * 0.0254) ** 2",
    ),
    (
        "baseline_weight[kg] baseline_height[m] baseline_bmi",
        "baseline_bmi = baseline_weight / baseline_height ** 2",
    ),
    ("BMXWT[kg] BMXHT[cm] BMXBMI", "BMXBMI = BMXWT / (BMXHT / 100) ** 2"),
]


def test_a_formula_has_the_factor_of_its_units() -> None:
    """Catches a body-mass index of centimetres or inches that is off by a factor, or a unit unread."""
    for columns, formula in UNITS:
        assert asked(*columns.split()) == [formula]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("sbp dbp map", ["map = (sbp + 2 * dbp) / 3", "dbp <= sbp"]),
        ("ap_hi ap_lo", ["ap_lo <= ap_hi"]),
        ("sysBP diaBP pulse_pressure", ["pulse_pressure = sysBP - diaBP", "diaBP <= sysBP"]),
        ("max_sbp max_dbp max_map", ["max_dbp <= max_map", "max_map <= max_sbp"]),
        ("na cl hco3 anion_gap", ["anion_gap = na - cl - hco3"]),
        ("gcs_eye:1|2|3|4 gcs_verbal:1|2|3 gcs_motor:1|2|3 gcs:integer",
         ["gcs = gcs_eye + gcs_verbal + gcs_motor"]),
        ("direct_bilirubin indirect_bilirubin total_bilirubin",
         ["total_bilirubin = direct_bilirubin + indirect_bilirubin"]),
        ("waist hip whr", ["whr = waist / hip"]),
        ("born:date visited:date visit_date:date age:integer",
         ["age = floor((visit_date - born) / 365.25)", "born <= visit_date"]),
        ("dob:date admitted:date age_months", ["age_months = (admitted - dob) / 30.4375", "dob <= admitted"]),
        ("birth_date:date enrolled:date age_at_death death:date",
         ["age_at_death = (death - birth_date) / 365.25", "birth_date <= enrolled", "enrolled <= death"]),
        ("admitted:date discharged:date los:integer", ["admitted <= discharged"]),
        ("start:date end:date", ["start <= end"]),
        ("first_visit:date last_visit:date", ["first_visit <= last_visit"]),
        ("in:datetime out:datetime stay", ["in <= out"]),
        ("hr_min hr_mean hr_max", ["hr_min <= hr_mean", "hr_mean <= hr_max"]),
        ("lowest_pH highest_pH", ["lowest_pH <= highest_pH"]),
        ("sex:F|M pregnant:no|yes", ["pregnant = 'yes' implies sex = 'F'"]),
        ("male:0|1 Pregnancies:integer", ["Pregnancies != 0 implies male = 0"]),
        ("gender:female|male menopause:0|1", ["menopause = 1 implies gender = 'female'"]),
        ("sex:1|2 pregnant:no|yes", []),  # which code is female?
        ("sex:F|M cancer:breast|ovary|cervix|prostate",
         ["cancer in ('ovary', 'cervix') implies sex = 'F'", "cancer = 'prostate' implies sex = 'M'"]),
    ],
)  # fmt: skip
def test_names_of_usual_columns(columns: str, expected: list[str]) -> None:
    """Catches a relation that clinicians hold and nobody is asked about, or one in the wrong direction."""
    assert asked(*columns.split()) == expected


def test_shipped_tables() -> None:
    """Catches a question about a shipped table that its data dictionary answers with no."""
    found = {name: suggested(datasets.card(name).table) for name in datasets.names()}
    declared = datasets.card("breast_cancer").table
    assert not found.pop("breast_cancer")  # the card declares them
    pairs = [one.texts for one in suggested(declared.model_copy(update={"constraints": ()}))]
    features = "radius texture perimeter area smoothness compactness concavity concave_points symmetry"
    assert pairs == [(f"mean_{f} <= worst_{f}",) for f in [*features.split(), "fractal_dimension"]]
    assert not any(found.values())


def test_names_that_only_look_alike() -> None:
    """Catches a wrong question, after which a reader trusts none."""
    for columns in [
        "lv_systolic_diameter lv_diastolic_diameter",  # the systolic one is smaller
        "low_density_lipoprotein high_density_lipoprotein",
        "haematocrit haemoglobin",  # about three times, but no definition
        "urine_sodium chloride bicarbonate anion_gap",
        "mean_gcs worst_gcs",
        "mean_temperature worst_temperature",
        "total_cholesterol hdl_cholesterol ldl_cholesterol",
        "total_protein urine_protein csf_protein",
        "weight[kg] maternal_height[m] bmi",
        "Weight_first Height_first bmi_first",  # perhaps of different days
        "admission_weight discharge_weight",
        "hr_min[1/min] hr_max[Hz]",
        "sbp[mmHg] dbp[kPa]",
        "sex:F|M mother_pregnant:no|yes family_prostate_cancer:no|yes",
        "sex:F|M pregnant:planned|unplanned",
        "sex:F|M spine:cervical|lumbar|other",
        "sex:F|M gender:female|male pregnant:no|yes",  # which of them?
        "pregnant:no|yes ovary:no|yes",
        "sbp systolic dbp",  # which of them?
        "birthplace:a|b age visit:date",
        "born age visit",  # no dates
        "sys`bp dia`bp",
    ]:
        assert asked(*columns.split()) == []


WORDS = """
weight height bmi sbp dbp map Systolic pressure min mean max worst lowest first last total visits gp er
kg cm in na cl hco3 k anion gap birth admitted discharged start end los age at date day sex male pregnant
ovary not lambda é 2 and
"""
NAMES = st.builds(
    lambda words, sign: sign.join(words),
    st.lists(st.sampled_from(WORDS.split()), min_size=1, max_size=3),
    st.sampled_from(["_", " ", ".", "", "-"]),
)
KINDS = st.sampled_from(
    ["", "", "", ":integer", ":date", ":datetime", ":F|M", ":no|yes", ":0|1", ":ovary|prostate|x"]
)


@pytest.mark.slow
@given(
    st.lists(st.tuples(NAMES, KINDS), min_size=1, max_size=12, unique_by=lambda each: each[0]), st.randoms()
)
@settings(max_examples=200, deadline=None)
def test_what_is_asked_can_be_declared(columns: list[tuple[str, str]], random) -> None:
    """Catches a rule that a name with signs breaks, a formula that is refused, or an order that matters."""
    texts = [name + kind for name, kind in columns]
    found = asked(*texts)
    random.shuffle(texts)
    assert {frozenset(one.split(" | ")) for one in asked(*texts)} == {
        frozenset(one.split(" | ")) for one in found
    }


def clinic(n: int = 600, seed: int = 0) -> pd.DataFrame:
    """Patients whose body-mass index and pressures follow from others, one in ten without a height."""
    rng = np.random.default_rng(seed)
    height, weight = rng.normal(170, 9, n).round(), rng.normal(75, 13, n).round(1)
    height[::10] = np.nan
    sbp = rng.normal(130, 15, n).round()
    dbp = (0.6 * sbp + rng.normal(0, 5, n)).round()
    sex = rng.choice(["F", "M"], n)
    admitted = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    return pd.DataFrame(
        {
            "height": height,
            "weight": weight,
            "bmi": (weight / (height / 100) ** 2).round(1),
            "sbp": sbp,
            "dbp": dbp,
            "map": ((sbp + 2 * dbp) / 3).round(1),
            "admitted": admitted,
            "discharged": admitted + pd.to_timedelta(rng.geometric(0.2, n), unit="D"),
            "sex": sex,
            "pregnant": np.where((sex == "F") & (rng.random(n) < 0.2), "yes", "no"),
        }
    )


MARKED = """
  #derived: weight / height ** 2
  #derived: weight / (height / 100) ** 2
  #derived: (weight * 0.45359237) / (height * 0.0254) ** 2
  #derived: (sbp + 2 * dbp) / 3
#constraints:
#- dbp <= sbp
#- admitted <= discharged
#- pregnant = 'yes' implies sex = 'F'
"""


def accepted(draft: str) -> str:
    """The draft as its owner leaves it, who says yes to each question and measures in kg and cm."""
    lines = [line for line in draft.splitlines() if "unreviewed" not in line]
    marked = {line for line in MARKED.splitlines()[1:] if "height ** 2" not in line and "0.0254" not in line}
    return "\n".join(line.replace("#", "", 1) if line in marked else line for line in lines)


def test_a_draft_is_accepted_by_taking_marks_off() -> None:
    """Catches a marked formula or rule that the schema does not take, or a question without its lines."""
    made = infer_schema(clinic())
    text = made.to_yaml()
    assert all(line in text.splitlines() for line in MARKED.splitlines()[1:])
    assert Schema.from_yaml(text) == made.schema and not made.schema.constraints
    said = made.lines()
    assert "question: bmi (weight / height ** 2 or weight / (height / 100) ** 2 or" in "\n".join(said)
    assert said[-3].endswith("dbp <= sbp, admitted <= discharged, pregnant = 'yes' implies sex = 'F'")
    schema = Schema.from_yaml(accepted(text))
    assert schema["bmi"].derived == "weight / (height / 100) ** 2" and schema["map"].derived is not None
    assert len(schema.constraints) == 3 and not suggested(schema)


def test_records_decide_nothing() -> None:
    """Catches a rule or a unit that is asked about because the private records obey it."""
    real = clinic()
    broken = real.assign(
        bmi=real["bmi"].iloc[::-1].to_numpy(),
        height=(real["height"] / 100).round(2),
        map=real["sbp"] + 9.5,
        dbp=real["sbp"] + 5,
        admitted=real["discharged"],
        discharged=real["admitted"],
        sex=np.where(real["sex"] == "M", "F", "M"),
    )
    questions = [
        [remark for remark in infer_schema(frame).remarks if "names suggest" in remark.text.lower()]
        for frame in (real, broken)
    ]
    assert questions[0] == questions[1] and len(questions[0]) == 5


def test_formulas_of_patients_hold_within_what_is_constant() -> None:
    """Catches an age at each visit that is drafted as one age for a patient, or a computed order of rows."""
    rng = np.random.default_rng(1)
    who = np.repeat(np.arange(80), 4)
    born = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 9000, 80), unit="D")
    visit = pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.permutation(320) * 9, unit="D")
    rows = pd.DataFrame(
        {"patient_id": who, "visit_date": visit, "born": born[who], "sex": np.tile(["F", "M"], 160)[who]}
    )
    rows["age"] = (rows["visit_date"] - rows["born"]).dt.days // 365.25
    rows["sbp"], rows["dbp"] = rng.integers(120, 180, 320), rng.integers(50, 110, 320)
    rows["pregnant"] = rng.choice(["no", "yes"], 320)
    made = infer_patient_schema(rows, order="visit_date")
    wanted = ["age = floor((visit_date - born) / 365.25)", "dbp <= sbp", "born <= visit_date",
              "pregnant = 'yes' implies sex = 'F'"]  # fmt: skip
    assert [one.shown(text) for one in suggested(made.schema) for text in one.texts] == wanted
    text = accepted(made.to_yaml()).replace("  #derived: floor", "  derived: floor")
    schema = PatientSchema.from_yaml(text)
    assert len(schema.constraints) == 2 and schema.column("age").derived
    first = rows.assign(age=rows.groupby("patient_id")["age"].transform("first"))
    found = suggested(infer_patient_schema(first, unit="patient_id", order="visit_date").schema)
    assert [one for one in found if one.column == "age"] == []


def test_the_check_counts_rows_that_obey(tmp_path: Path, monkeypatch, capsys) -> None:
    """Catches a count that pandas does not get, one that is not confidential, or a formula in wrong units."""
    monkeypatch.chdir(tmp_path)
    frame = clinic()
    frame.loc[3:7, "dbp"] = frame.loc[3:7, "sbp"] + 20
    frame.loc[5:14, "bmi"] += 3
    frame.to_csv("t.csv", index=False)
    infer_schema(frame).schema.to_yaml("t.yaml")
    assert main(["schema", "check", "t.yaml", "--data", "t.csv", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    rules = {rule["text"]: rule for rule in record["rules"]}
    assert "rules" in record["internal"] and not any(rule["declared"] for rule in rules.values())
    off = (frame["bmi"] - frame["weight"] / (frame["height"] / 100) ** 2).abs()
    bmi = rules["bmi = weight / (height / 100) ** 2"]
    assert (bmi["obey"], bmi["broken"], bmi["open"]) == ((off < 0.15).sum(), (off > 0.15).sum(), 60)
    assert bmi["off_by"] == pytest.approx(3, abs=0.11) and "bmi = weight / height ** 2" not in rules
    assert rules["dbp <= sbp"]["broken"] == (frame["dbp"] > frame["sbp"]).sum() == 5
    Path("t.yaml").write_text(accepted(infer_schema(frame).to_yaml()))
    assert main(["schema", "check", "t.yaml", "--data", "t.csv"]) == 0
    said = capsys.readouterr().out
    assert "\ndbp <= sbp: 595 rows obey, 5 do not (confidential)" in said and "not declared" not in said
    assert " not (median distance 3), 60 lack a value (confidential)" in said


@pytest.mark.slow
def test_an_accepted_draft_makes_exact_rows() -> None:
    """Catches an accepted draft that cannot be fitted, or samples off their formulas and rules."""
    frame = clinic(2000)
    schema = Schema.from_yaml(accepted(infer_schema(frame).to_yaml()))
    made = DPMarginals(epsilon=3.0, delta=1e-5).fit(frame, schema=schema).sample(500)
    limits = schema["bmi"].bounds
    bmi = (made["weight"] / (made["height"] / 100) ** 2).clip(*limits)
    assert ((made["bmi"] - bmi).abs().dropna() <= 0.0501).all() and 0.5 < made["bmi"].notna().mean() < 1
    assert (made["dbp"] <= made["sbp"]).all() and (made["admitted"] <= made["discharged"]).all()
    assert not ((made["pregnant"] == "yes") & (made["sex"] == "M")).any()
